"""Reductions, running totals and statistics."""

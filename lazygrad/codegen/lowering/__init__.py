"""Kernel ASTs (form 2) become loops (form 3)."""

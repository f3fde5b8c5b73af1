"""Scheduled loops (form 4) become vector code (form 5)."""

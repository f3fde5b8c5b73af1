"""Grids of threads: what a workgroup shares, what its first thread does alone."""

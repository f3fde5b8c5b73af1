"""Kernels (form 2) become linear programs (form 7), which a renderer writes as text."""

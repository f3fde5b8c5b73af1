"""Kernels to look at and to play with, as any target would have them; nothing is run by looking."""

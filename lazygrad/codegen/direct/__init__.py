"""Kernels that are linear programs at once: sorts, what users wrote, loops over time."""

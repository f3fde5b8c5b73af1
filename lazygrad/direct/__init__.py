"""Kernels that are linear programs at once: sorts, factorizations, spectra, and what users wrote.

No part of the compiler, which knows them by the rows of `codegen/direct_kernels.py` alone: each file here
adds its own when it is imported, and this imports them all.
"""

from . import own_kernel, routines, sort

__all__ = ["own_kernel", "routines", "sort"]

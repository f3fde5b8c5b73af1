"""Kernels that are linear programs at once: sorts, factorizations, spectra, attention, and what users wrote.

No part of the compiler, which knows them by the rows of `codegen/direct_kernels.py` alone: each file here
adds its own when it is imported, and this imports them all.
"""

from . import own_kernel, routines, sort
from .one_pass import joined_sums, nested_sums

__all__ = ["joined_sums", "nested_sums", "own_kernel", "routines", "sort"]

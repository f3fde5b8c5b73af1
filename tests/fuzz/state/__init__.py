"""State of every kind that a function may read."""

from . import containers, functions, names, objects, refused, tensors
from .kinds import KINDS, REFUSED, Read

__all__ = ["KINDS", "REFUSED", "Read", "containers", "functions", "names", "objects", "refused", "tensors"]

"""Tensor, as the families see it and as users do.

At run time it is the core, on which assembly.py sets what the families hold: a family is written as a class
over `Tensor`, and calls what any other one has. For type checkers and editors face.pyi says what that is,
under both names of arguments (names.py), with the methods that write in place (in_place.py): it is written
from the families by `python docs/generate.py face`. So families know the face, the face knows the core, and
neither of the two knows a family.
"""

from __future__ import annotations

from typing import Any

from .core import TensorCore
from .unknown import unknown_name


class Tensor(TensorCore):
    """A lazy array: a node of the tensor graph. Nothing runs until its values are asked for.

    data           a number, a (nested) list, a numpy array, bytes (uint8), a path (the bytes of a file,
                   lazily), a Tensor, or None (an empty tensor of shape (0,))
    device         where it lives; the default device if not given
    dtype          its element type; that of the data if not given
    requires_grad  whether `backward` fills its `grad`
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(unknown_name(type(self), name))

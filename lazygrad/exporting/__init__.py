"""A function and its weights as a file, for a fresh process, as C, or as an ONNX graph; or as a page.

In: a function and example arguments (`writing.export`). Out: a file, or a folder. docs/export.md shows each
kind. What is imported here is what running a file needs.
"""

from __future__ import annotations

import os

from .container import FileError
from .exported import Exported

__all__ = ["Exported", "FileError", "load_exported"]


def load_exported(path: str | os.PathLike[str], verify: bool = False) -> Exported:
    """The function that `export` wrote to a file, ready to be called. It runs the file's machine code.

    verify  compare the weights with their checksum now, and not when they are first used

    FileError says what is wrong with a file.
    """
    return Exported(path, verify)

"""A function and its weights as one file: for a fresh process, as C, or as an ONNX graph.

In: a function and example arguments. Out: a file. docs/export.md shows each kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..jit.errors import describe_fn
from .c_source import save_c
from .capturing import captured_with
from .container import FileError
from .exported import Exported, save_captured
from .onnx_graph import save_onnx

__all__ = ["Exported", "FileError", "export", "load_exported"]


def export(
    fn: Callable[..., Any],
    args: Sequence[Any],
    path: str | os.PathLike[str],
    kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Write what `fn(*args)` does to a file, with the weights it uses.

    fn      a function of tensors, a model, or a TinyJit of one; one that has no capture for these arguments
            is called up to three times
    args    example arguments: tensors, bound Variables, numbers, and lists, tuples and dicts of these
    kwargs  the same by name

    `path` ends in what is wanted: .c for a C source with a header beside it, .onnx for an ONNX graph,
    anything else for a file that `load_exported` reads.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "double.lzg")
    >>> lazygrad.export(lambda x: x * 2, (Tensor([1.0, 2.0]),), path)
    >>> lazygrad.load_exported(path)(Tensor([4.0, 5.0])).tolist()
    [8.0, 10.0]
    """
    if isinstance(args, (str, bytes)) or not isinstance(args, (list, tuple)):
        raise TypeError(f"args is a tuple of example arguments, not {type(args).__name__}: write (x,)")
    target = os.fspath(path)
    if target.endswith(".onnx"):
        save_onnx(fn, args, kwargs or {}, target)
        return
    if target.endswith(".c"):
        save_c(fn, args, kwargs or {}, target)
        return
    captured, call = captured_with(fn, args, kwargs or {})
    save_captured(captured, call, describe_fn(getattr(fn, "fxn", fn)), target)


def load_exported(path: str | os.PathLike[str], verify: bool = False) -> Exported:
    """The function that `export` wrote to a file, ready to be called. It runs the file's machine code.

    verify  compare the weights with their checksum now, and not when they are first used

    FileError says what is wrong with a file.
    """
    return Exported(path, verify)

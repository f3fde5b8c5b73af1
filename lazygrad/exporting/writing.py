"""`lazygrad.export`: which kind of file is written. Apart from what reads them, which is to begin at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..jit.errors import describe_fn
from ..jit.tinyjit import TinyJit
from ..nn.module import Module
from .c_source import save_c
from .capturing import captured_with, refuse_training
from .exported import save_captured
from .onnx_graph import save_onnx
from .page.write import save_page

#: What the path of a folder ends in.
_ENDS = ("/", os.sep)


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

    `path` ends in what is wanted: .c for a C source with a header beside it, .onnx for an ONNX graph, a `/`
    for a folder with a page that runs it in a browser (a folder that is there needs no `/`), .lzg (or no
    suffix) for a file that `load_exported` reads. A model in training mode raises ValueError; a training
    step, which makes gradients, may be exported.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "double.lzg")
    >>> lazygrad.export(lambda x: x * 2, (Tensor([1.0, 2.0]),), path)
    >>> lazygrad.load_exported(path)(Tensor([4.0, 5.0])).tolist()
    [8.0, 10.0]
    """
    if isinstance(args, (str, bytes)) or not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be a tuple of example arguments, not {type(args).__name__}: write (x,)")
    target = os.fspath(path)
    inner = fn.fxn if isinstance(fn, TinyJit) else fn
    is_method = getattr(inner, "__name__", "") in ("forward", "__call__")
    model = getattr(inner, "__self__", inner) if is_method else inner
    if isinstance(model, Module):  # before it is called, which would change what it counts
        trains = [module for module in model.modules() if isinstance(module, Module) and module.training]
        refuse_training(type(trains[-1]).__name__ if trains else "")
    if target.endswith(".onnx"):
        save_onnx(fn, args, kwargs or {}, target)
        return
    if target.endswith(".c"):
        save_c(fn, args, kwargs or {}, target)
        return
    if target.endswith(_ENDS) or os.path.isdir(target):
        save_page(fn, args, kwargs or {}, target)
        return
    suffix = os.path.splitext(target)[1]
    if suffix not in ("", ".lzg"):
        near = f"; did you mean {suffix.lower()}?" if suffix.lower() in (".c", ".onnx", ".lzg") else ""
        raise ValueError(
            f"export writes .lzg (load_exported), .c, .onnx, and folders (a path that ends in /), not "
            f"{suffix!r}{near}"
        )
    captured, call = captured_with(fn, args, kwargs or {})
    save_captured(captured, call, describe_fn(inner), target)

"""A jit pickles as what it captured: whoever loads it needs neither the function nor where it was defined.

What is in the pickle is what `lazygrad.export` writes to a file. A jit that no file can hold (export.md),
or that has not captured yet, is pickled as its function, and captures again.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ..exporting import Exported
from ..exporting.capturing import captured_with
from ..exporting.exported import save_captured
from ..jit import TinyJit
from ..jit.errors import Changed, JitError, Mismatch, describe_fn
from ..jit.specs import BoundSpec, Call, DictSpec, PlainSpec, SequenceSpec, Spec
from ..jit.tensor_specs import TensorSpec
from ..tensor import Tensor


def reduce_jit(jit: TinyJit[..., Any]) -> tuple[Any, ...]:
    """What pickle takes for a jit."""
    content = _content_of(jit)
    return (TinyJit, (jit.fxn,)) if content is None else (captured_function, (content,))


def captured_function(content: bytes) -> Exported:
    """The function that was captured: call it with arguments like those of the capture."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "function")
        with open(path, "wb") as file:
            file.write(content)
        return Exported(path)  # which maps the file: it may be gone then


def _content_of(jit: TinyJit[..., Any]) -> bytes | None:
    """The file of the capture that was used last; None where there is none."""
    captured = jit.captured
    if captured is None:
        return None
    tensors: list[Tensor] = []
    try:
        args = [_example(spec, tensors) for spec in captured.args]
        kwargs = {name: _example(spec, tensors) for name, spec in captured.kwargs.items()}
        captured.match(tuple(args), kwargs, Call())  # else it would be called, to be captured
        found, call = captured_with(jit, args, kwargs)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "function")
            save_captured(found, call, describe_fn(jit.fxn), path)
            with open(path, "rb") as file:
                return file.read()
    except (NotImplementedError, ValueError, JitError, Changed, Mismatch):
        return None


def _example(spec: Spec, tensors: list[Tensor]) -> Any:
    """An argument like that of the capture; tensors have any values."""
    if type(spec) is TensorSpec:
        if spec.first is not None:
            return tensors[spec.first]
        if spec.symbolic or not isinstance(spec.device, str):
            raise NotImplementedError(f"{spec.name} of symbolic size, or on several devices")
        made = Tensor.empty(*spec.shape, dtype=spec.dtype, device=spec.device, requires_grad=spec.grad)
        tensors.append(made.realize())
        return made
    if isinstance(spec, BoundSpec):
        return spec.variable.bind(spec.variable.arg[1])
    if isinstance(spec, PlainSpec):
        return spec.value
    if isinstance(spec, SequenceSpec) and spec.kind in (list, tuple):
        return spec.kind([_example(item, tensors) for item in spec.items])
    if isinstance(spec, DictSpec) and spec.kind is dict:
        values = [_example(item, tensors) for item in spec.items]
        return dict(zip(spec.keys, values, strict=True))
    raise NotImplementedError(f"{spec.name} cannot be described in a file")

"""Form 1, the tensor graph: whole arrays, movements, elementwise operations, reductions."""

from __future__ import annotations

from typing import Any

from ...dtype import dtypes
from ..args import CollectiveArg, MultiArg
from ..ops import ELEMENTWISE, REDUCTIONS, Ops
from ..uop import UOp
from .checks import (
    Spec,
    arg_is,
    both,
    const,
    elementwise,
    integer_index,
    keeps_dtype,
    ok,
    program,
    reduce_axis,
    scan,
    sources,
    variable,
    void,
)


def _is_sint(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, UOp) and value.dtype is dtypes.index
    )


def _shape(u: UOp) -> str | None:
    good = isinstance(u.arg, tuple) and all(map(_is_sint, u.arg))
    return None if good else f"its arg is a shape, not {u.arg!r}"


def _pairs(u: UOp) -> str | None:
    good = isinstance(u.arg, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and all(map(_is_sint, pair)) for pair in u.arg
    )
    return None if good else f"its arg is a pair of sizes per axis, not {u.arg!r}"


def _axes(u: UOp) -> str | None:
    good = isinstance(u.arg, tuple) and all(isinstance(axis, int) and axis >= 0 for axis in u.arg)
    return None if good and len(set(u.arg)) == len(u.arg) else f"its arg is different axes, not {u.arg!r}"


def _order(u: UOp) -> str | None:
    wrong = _axes(u)
    if wrong is None and set(u.arg) != set(range(len(u.arg))):
        return f"its arg is an order of all axes, not {u.arg!r}"
    return wrong


def _copy(u: UOp) -> str | None:
    """Values of one dtype, and the device that they go to: one after another."""
    *copied, device = u.src or (u,)
    if not copied or device.op is not Ops.DEVICE:
        return "it takes values, and the DEVICE they go to"
    wrong = next((s.dtype for s in copied if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its sources, {wrong}, not {u.dtype}"


def _multi(u: UOp) -> str | None:
    """A part for each device that is here, all of one dtype."""
    if not isinstance(u.arg, MultiArg) or len(u.arg.here) != len(u.src):
        return f"it has a part for each device, not {len(u.src)} for {u.arg!r}"
    wrong = next((s.dtype for s in u.src if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its parts, {wrong}, not {u.dtype}"


def _collective(u: UOp) -> str | None:
    """The part of one device; and the collective that goes before it, if there is one."""
    if not isinstance(u.arg, CollectiveArg) or not 1 <= len(u.src) <= 2:
        return f"it takes the part of one device, and what goes before it, not {len(u.src)} with {u.arg!r}"
    part = u.src[0]
    return None if part.dtype is u.dtype else f"its dtype is that of its source, {part.dtype}, not {u.dtype}"


def _tensor_const(u: UOp) -> str | None:
    return sources(Ops.DEVICE, least=0)(u) or const(u)


def _scatter(u: UOp) -> str | None:
    if u.arg is not None and u.arg not in REDUCTIONS:
        return f"its arg is an op that combines, or None, not {u.arg!r}"
    if u.src[2].dtype is not u.dtype:
        return f"it stores values of {u.dtype}, not {u.src[2].dtype}"
    return None


TENSOR = Spec(
    1,
    "tensor graph",
    {
        Ops.SINK: void,
        Ops.NOOP: ok,
        Ops.DEVICE: both(void, sources(), arg_is(str, tuple)),
        Ops.UNIQUE: both(sources(), arg_is(int)),
        Ops.BUFFER: both(sources(Ops.DEVICE, Ops.UNIQUE), arg_is(int)),
        Ops.BUFFER_VIEW: sources(None, more=True),
        Ops.COPY: _copy,
        Ops.COLLECTIVE: _collective,
        Ops.CONTIGUOUS: keeps_dtype(1),
        Ops.DETACH: keeps_dtype(1),
        Ops.FUNCTION: sources(None, more=True),
        Ops.DEFERRED: lambda u: "a call whose node is not made is in no graph",
        Ops.MULTI: _multi,
        Ops.ASSIGN: sources(None, None, more=True),
        Ops.KERNEL: void,
        Ops.BIND: sources(Ops.DEFINE_VAR, Ops.CONST),
        Ops.DEFINE_VAR: variable,
        Ops.CONST: _tensor_const,
        Ops.IOTA: both(sources(Ops.DEVICE, least=0), arg_is(int, UOp)),
        Ops.RESHAPE: both(keeps_dtype(1), _shape),
        Ops.EXPAND: both(keeps_dtype(1), _shape),
        Ops.PERMUTE: both(keeps_dtype(1), _order),
        Ops.PAD: both(keeps_dtype(1), _pairs),
        Ops.SHRINK: both(keeps_dtype(1), _pairs),
        Ops.FLIP: both(keeps_dtype(1), _axes),
        Ops.REDUCE_AXIS: both(sources(None), reduce_axis),
        Ops.SCAN: scan,
        Ops.PROGRAM: program,
        Ops.GATHER: both(keeps_dtype(2), integer_index(1)),
        Ops.SCATTER: both(keeps_dtype(3), integer_index(1), _scatter),
        **dict.fromkeys(ELEMENTWISE, elementwise),
    },
)

#: The tensor graph of one device, from which kernels are cut.
PLAIN = Spec(
    1,
    "plain graph",
    {
        op: check
        for op, check in TENSOR.checks.items()
        if op not in (Ops.DETACH, Ops.MULTI, Ops.FUNCTION, Ops.DEFERRED)
    },
)

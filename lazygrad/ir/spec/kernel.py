"""Form 2, kernel ASTs: stores of expressions over memory that is seen through VIEWs."""

from __future__ import annotations

from ...dtype import dtypes
from ..ops import ELEMENTWISE, REDUCTIONS, Ops
from ..uop import UOp
from .checks import (
    MEMORY,
    Spec,
    arg_is,
    both,
    const,
    elementwise,
    integer_index,
    keeps_dtype,
    no_index,
    one_lane,
    program,
    reduce_axis,
    same_dtype_as_source,
    scan,
    sources,
    variable,
    void,
)


def _has_views(u: UOp) -> str | None:
    if not hasattr(u.arg, "views"):
        return f"its arg is a ShapeTracker, not {u.arg!r}"
    return None


def _view(u: UOp) -> str | None:
    if not u.src:
        return _has_views(u) or void(u)
    return sources(None)(u) or _has_views(u) or same_dtype_as_source(u)


def _view_of_memory(u: UOp) -> str | None:
    return "its VIEW has no value below it" if u.src[1].src else None


def _load(u: UOp) -> str | None:
    if u.dtype is not u.src[0].dtype.base:
        return f"it reads {u.src[0].dtype.base} from {u.src[0].dtype}, not {u.dtype}"
    if len(u.src) == 3:
        return integer_index(2)(u)
    return None


def _store(u: UOp) -> str | None:
    if u.src[2].dtype is not u.src[0].dtype.base:
        return f"it stores {u.src[2].dtype} into {u.src[0].dtype}"
    if len(u.src) == 4:
        if u.arg is not None and u.arg not in REDUCTIONS:
            return f"its arg is an op that combines, or None, not {u.arg!r}"
        return integer_index(3)(u)
    return None if u.arg is None else f"only a scatter combines; this one has arg {u.arg!r}"


def _elementwise(u: UOp) -> str | None:
    """On values; or on sizes, which are made of Variables and become values by a CAST."""
    if u.dtype is dtypes.index or (u.op is Ops.CAST and u.src[0].dtype is dtypes.index):
        return elementwise(u)
    return no_index(elementwise)(u)


def _check(u: UOp) -> str | None:
    """A checked value, with the memory of reports behind it."""
    if len(u.src) != 4 or u.src[3].op is not Ops.DEFINE_GLOBAL:
        return "it takes a value, a bool, an integer and the DEFINE_GLOBAL of reports"
    return elementwise(u.replace(src=u.src[:3]))


def _plain_source(u: UOp) -> str | None:
    """A VIEW below a CONST or IOTA is the place itself, not a value seen through one."""
    return "its VIEW has no value below it" if u.src[0].src else None


def _nests(u: UOp) -> str | None:
    """Where the stores are not all in the same loops, how many each nest has."""
    if u.arg is None or (isinstance(u.arg, tuple) and len(u.arg) > 1 and sum(u.arg) == len(u.src)):
        return None
    return f"its arg is how many stores each of its nests has, not {u.arg!r}"


KERNEL = Spec(
    2,
    "kernel AST",
    {
        Ops.SINK: both(void, sources(Ops.STORE, more=True), _nests),
        Ops.STORE: both(
            void, sources(Ops.DEFINE_GLOBAL, Ops.VIEW, None, None, least=3), _view_of_memory, _store
        ),
        Ops.LOAD: both(sources(Ops.DEFINE_GLOBAL, Ops.VIEW, None, least=2), _view_of_memory, one_lane(_load)),
        Ops.DEFINE_GLOBAL: MEMORY,
        Ops.DEFINE_VAR: variable,
        Ops.BIND: sources(Ops.DEFINE_VAR, Ops.CONST),
        Ops.CONST: lambda u: (
            (None if u.dtype is dtypes.index else both(sources(Ops.VIEW), _plain_source)(u)) or const(u)
        ),
        Ops.IOTA: both(sources(Ops.VIEW), _plain_source),
        Ops.VIEW: _view,
        Ops.REDUCE_AXIS: both(sources(None), reduce_axis),
        Ops.SCAN: scan,
        Ops.PROGRAM: both(sources(Ops.LOAD, more=True, least=0), program),
        Ops.STAGE: both(sources(None), keeps_dtype(1), arg_is(int)),
        Ops.ONE_PASS: both(sources(None), keeps_dtype(1)),
        **dict.fromkeys(ELEMENTWISE, one_lane(_elementwise)),
        Ops.CHECK: one_lane(_check),
    },
)

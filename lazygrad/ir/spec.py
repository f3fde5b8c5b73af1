"""What is legal in each form of the graph: one table per form, op → what a node of it must be like.

`verify` runs between stages in tests and under CHECK=1. A check returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dtype import DType, PtrDType, dtypes
from .args import AxisType, MultiArg, RangeArg, ReduceArg
from .nest import closed_ranges, scan_ranges, scan_values, stage_stores
from .ops import ALU, COMPARISONS, ELEMENTWISE, OPS, REDUCTIONS, SCANS, Ops
from .text import linear_text, uop_text
from .uop import UOp, toposort

#: What is wrong with a node, or None.
Check = Callable[[UOp], str | None]
#: Whether a target has an operation on a type.
Supports = Callable[[Ops, DType], bool]


class Spec(NamedTuple):
    """A form: its number and name, and a check for every op that may occur in it."""

    form: int
    name: str
    checks: dict[Ops, Check]


class SpecError(RuntimeError):
    """A pass made something that its form does not allow."""


# *** checks that the forms share


def ok(u: UOp) -> str | None:
    """Anything of this op is fine."""
    return None


def sources(*ops: Ops | tuple[Ops, ...] | None, more: bool = False, least: int | None = None) -> Check:
    """One source for each entry, of that op or of one of those; None = any. The entries after `least` may be
    missing, and with `more` any number may follow."""
    wanted = [None if op is None else (op,) if isinstance(op, Ops) else op for op in ops]
    fewest = len(ops) if least is None else least

    def check(u: UOp) -> str | None:
        count = len(u.src)
        if count < fewest or (count > len(wanted) and not more):
            return (
                f"it takes {fewest}{' or more' if more or fewest < len(wanted) else ''} sources, not {count}"
            )
        for position, (source, allowed) in enumerate(zip(u.src, wanted, strict=False)):
            if allowed is not None and source.op not in allowed:
                return f"source {position} must be {' or '.join(map(str, allowed))}, not {source.op}"
        return None

    return check


def both(*checks: Check) -> Check:
    """All of these must hold."""

    def check(u: UOp) -> str | None:
        for one in checks:
            wrong = one(u)
            if wrong is not None:
                return wrong
        return None

    return check


def void(u: UOp) -> str | None:
    return None if u.dtype is dtypes.void else f"its dtype is void, not {u.dtype}"


def arg_is(*types: type) -> Check:
    """The arg is of one of these types, and not a bool where an int is asked for."""

    def check(u: UOp) -> str | None:
        good = isinstance(u.arg, types) and not (isinstance(u.arg, bool) and bool not in types)
        return None if good else f"its arg is {' or '.join(t.__name__ for t in types)}, not {u.arg!r}"

    return check


def same_dtype_as_source(u: UOp) -> str | None:
    first = u.src[0].dtype
    return None if u.dtype is first else f"its dtype is that of its source, {first}, not {u.dtype}"


_FLOATS_ONLY = frozenset(
    (Ops.RECIP, Ops.SQRT, Ops.EXP, Ops.LOG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.TANH, Ops.ERF, Ops.FDIV)
)
_INTS_ONLY = frozenset((Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR))
_NO_FLOATS = frozenset((Ops.AND, Ops.OR, Ops.XOR))


def elementwise(u: UOp) -> str | None:
    """The number of sources, their types and lanes, and the type of the result are those of the op's row."""
    info = OPS[u.op]
    if len(u.src) != info.arity:
        return f"it takes {info.arity} sources, not {len(u.src)}"
    for s in u.src:
        if s.dtype is dtypes.void or isinstance(s.dtype, PtrDType):
            return f"{s.op} of dtype {s.dtype} is no value to compute with"
        if s.dtype.count != u.dtype.count:
            return f"it has {u.dtype.count} lanes and its source {s.op} has {s.dtype.count}"
    if u.op in (Ops.CAST, Ops.BITCAST):
        if u.op is Ops.BITCAST and u.dtype.itemsize != u.src[0].dtype.itemsize:
            return f"it changes the size of an element, from {u.src[0].dtype} to {u.dtype}"
        return None
    operands = u.src[1:] if u.op is Ops.WHERE else u.src
    kind = operands[-1].dtype
    if u.op is Ops.WHERE and not dtypes.is_bool(u.src[0].dtype):
        return f"its condition is a bool, not {u.src[0].dtype}"
    if any(s.dtype is not kind for s in operands):
        return f"its sources have one dtype, not {', '.join(repr(s.dtype) for s in operands)}"
    expected = dtypes.bool.vec(kind.count) if u.op in COMPARISONS else kind
    if u.dtype is not expected:
        return f"its dtype is {expected}, not {u.dtype}"
    if u.op in _FLOATS_ONLY and not dtypes.is_float(kind):
        return f"it is for floats, not {kind}"
    if u.op in _INTS_ONLY and not dtypes.is_int(kind):
        return f"it is for integers, not {kind}"
    if u.op in _NO_FLOATS and dtypes.is_float(kind):
        return f"it is for integers and bools, not {kind}"
    return None


def no_index(check: Check) -> Check:
    """The check, and neither the node nor its sources are index arithmetic."""

    def checked(u: UOp) -> str | None:
        for node in (u, *u.src):
            if node.dtype is dtypes.index:
                return f"{node.op} is index arithmetic, which has no place here"
        return check(u)

    return checked


def one_lane(check: Check) -> Check:
    """The check, and the node is a single number."""

    def checked(u: UOp) -> str | None:
        return f"it has {u.dtype.count} lanes; vectors come later" if u.dtype.count > 1 else check(u)

    return checked


def const(u: UOp) -> str | None:
    """A number of the dtype's Python kind, or one per lane."""
    lanes = u.arg if isinstance(u.arg, tuple) else (u.arg,)
    if len(lanes) != u.dtype.count:
        return f"it has {len(lanes)} values for {u.dtype.count} lanes"
    kind = float if dtypes.is_float(u.dtype) else bool if dtypes.is_bool(u.dtype) else int
    if any(type(value) is not kind for value in lanes):
        return f"a {u.dtype} is a Python {kind.__name__}, not {u.arg!r}"
    return None


def variable(u: UOp) -> str | None:
    if not (isinstance(u.arg, tuple) and len(u.arg) == 3 and isinstance(u.arg[0], str)):
        return f"its arg is (name, least, greatest), not {u.arg!r}"
    return None if not u.src else "it has no sources"


def pointer(u: UOp) -> str | None:
    return None if isinstance(u.dtype, PtrDType) else f"its dtype is an address, not {u.dtype}"


# *** form 1: the tensor graph


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


def reduce_axis(u: UOp) -> str | None:
    if not isinstance(u.arg, ReduceArg) or u.arg.op not in REDUCTIONS:
        return f"its arg is a ReduceArg with an op that combines, not {u.arg!r}"
    if any(not isinstance(axis, int) or axis < 0 for axis in u.arg.axes):
        return f"it reduces over axes counted from 0, not {u.arg.axes!r}"
    return same_dtype_as_source(u)


def scan(u: UOp) -> str | None:
    """In forms 1 and 2: a running value along one axis."""
    if not isinstance(u.arg, ReduceArg) or u.arg.op not in SCANS:
        return f"its arg is a ReduceArg with an op that combines, not {u.arg!r}"
    if len(u.arg.axes) != 1 or not isinstance(u.arg.axes[0], int) or u.arg.axes[0] < 0:
        return f"it runs along one axis counted from 0, not {u.arg.axes!r}"
    if len(u.src) != (2 if u.arg.op is Ops.MULACC else 1):
        return f"it has a value, and for MULACC a factor, not {len(u.src)} sources"
    wrong = next((s.dtype for s in u.src if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its sources, {wrong}, not {u.dtype}"


def sort(u: UOp) -> str | None:
    """The order of unsigned keys; in a kernel, with an int as arg, so many words of its working memory."""
    if len(u.src) != 1 or not dtypes.is_unsigned(u.src[0].dtype):
        return f"it sorts unsigned integers, not {u.src[0].dtype if u.src else 'nothing'}"
    expected = dtypes.int32 if u.arg is None else dtypes.uint64
    return None if u.dtype is expected else f"its dtype is {expected}, not {u.dtype}"


def _copy(u: UOp) -> str | None:
    """Values of one dtype, and the device that they go to: one after another."""
    *copied, device = u.src or (u,)
    if not copied or device.op is not Ops.DEVICE:
        return "it takes values, and the DEVICE they go to"
    wrong = next((s.dtype for s in copied if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its sources, {wrong}, not {u.dtype}"


def _multi(u: UOp) -> str | None:
    """A part for each device, all of one dtype."""
    if not isinstance(u.arg, MultiArg) or len(u.arg.devices) != len(u.src):
        return f"it has a part for each device, not {len(u.src)} for {u.arg!r}"
    wrong = next((s.dtype for s in u.src if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its parts, {wrong}, not {u.dtype}"


def _tensor_const(u: UOp) -> str | None:
    return sources(Ops.DEVICE, least=0)(u) or const(u)


def _keeps_dtype(count: int) -> Check:
    return both(sources(*(None,) * count), same_dtype_as_source)


def _scatter(u: UOp) -> str | None:
    if u.arg is not None and u.arg not in REDUCTIONS:
        return f"its arg is an op that combines, or None, not {u.arg!r}"
    if u.src[2].dtype is not u.dtype:
        return f"it stores values of {u.dtype}, not {u.src[2].dtype}"
    return None


def _integer_index(position: int) -> Check:
    def check(u: UOp) -> str | None:
        dtype = u.src[position].dtype
        return None if dtypes.is_int(dtype) else f"it is indexed by integers, not {dtype}"

    return check


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
        Ops.CONTIGUOUS: _keeps_dtype(1),
        Ops.DETACH: _keeps_dtype(1),
        Ops.FUNCTION: sources(None, more=True),
        Ops.MULTI: _multi,
        Ops.ASSIGN: sources(None, None, more=True),
        Ops.KERNEL: void,
        Ops.BIND: sources(Ops.DEFINE_VAR, Ops.CONST),
        Ops.DEFINE_VAR: variable,
        Ops.CONST: _tensor_const,
        Ops.IOTA: both(sources(Ops.DEVICE, least=0), arg_is(int, UOp)),
        Ops.RESHAPE: both(_keeps_dtype(1), _shape),
        Ops.EXPAND: both(_keeps_dtype(1), _shape),
        Ops.PERMUTE: both(_keeps_dtype(1), _order),
        Ops.PAD: both(_keeps_dtype(1), _pairs),
        Ops.SHRINK: both(_keeps_dtype(1), _pairs),
        Ops.FLIP: both(_keeps_dtype(1), _axes),
        Ops.REDUCE_AXIS: both(sources(None), reduce_axis),
        Ops.SCAN: scan,
        Ops.SORT: sort,
        Ops.GATHER: both(_keeps_dtype(2), _integer_index(1)),
        Ops.SCATTER: both(_keeps_dtype(3), _integer_index(1), _scatter),
        **dict.fromkeys(ELEMENTWISE, elementwise),
    },
)

# *** form 2: kernel ASTs


def _has_views(u: UOp) -> str | None:
    if not hasattr(u.arg, "views"):
        return f"its arg is a ShapeTracker, not {u.arg!r}"
    return None


def _kernel_view(u: UOp) -> str | None:
    if not u.src:
        return _has_views(u) or void(u)
    return sources(None)(u) or _has_views(u) or same_dtype_as_source(u)


def _view_of_memory(u: UOp) -> str | None:
    return "its VIEW has no value below it" if u.src[1].src else None


def _kernel_load(u: UOp) -> str | None:
    if u.dtype is not u.src[0].dtype.base:
        return f"it reads {u.src[0].dtype.base} from {u.src[0].dtype}, not {u.dtype}"
    if len(u.src) == 3:
        return _integer_index(2)(u)
    return None


def _kernel_store(u: UOp) -> str | None:
    if u.src[2].dtype is not u.src[0].dtype.base:
        return f"it stores {u.src[2].dtype} into {u.src[0].dtype}"
    if len(u.src) == 4:
        if u.arg is not None and u.arg not in REDUCTIONS:
            return f"its arg is an op that combines, or None, not {u.arg!r}"
        return _integer_index(3)(u)
    return None if u.arg is None else f"only a scatter combines; this one has arg {u.arg!r}"


def _kernel_elementwise(u: UOp) -> str | None:
    if u.op is Ops.CAST and u.src[0].op in (Ops.DEFINE_VAR, Ops.BIND):
        return None
    return no_index(elementwise)(u)


def _plain_source(u: UOp) -> str | None:
    """A VIEW below a CONST or IOTA is the place itself, not a value seen through one."""
    return "its VIEW has no value below it" if u.src[0].src else None


_MEMORY = both(sources(), pointer, arg_is(int))

KERNEL = Spec(
    2,
    "kernel AST",
    {
        Ops.SINK: both(void, sources(Ops.STORE, more=True)),
        Ops.STORE: both(
            void, sources(Ops.DEFINE_GLOBAL, Ops.VIEW, None, None, least=3), _view_of_memory, _kernel_store
        ),
        Ops.LOAD: both(
            sources(Ops.DEFINE_GLOBAL, Ops.VIEW, None, least=2), _view_of_memory, one_lane(_kernel_load)
        ),
        Ops.DEFINE_GLOBAL: _MEMORY,
        Ops.DEFINE_VAR: variable,
        Ops.BIND: sources(Ops.DEFINE_VAR, Ops.CONST),
        Ops.CONST: lambda u: (
            (None if u.dtype is dtypes.index else both(sources(Ops.VIEW), _plain_source)(u)) or const(u)
        ),
        Ops.IOTA: both(sources(Ops.VIEW), _plain_source),
        Ops.VIEW: _kernel_view,
        Ops.REDUCE_AXIS: both(sources(None), reduce_axis),
        Ops.SCAN: scan,
        Ops.SORT: both(sources(Ops.LOAD), sort),
        Ops.STAGE: both(sources(None), _keeps_dtype(1), arg_is(int)),
        **dict.fromkeys(ELEMENTWISE, one_lane(_kernel_elementwise)),
    },
)

# *** forms 3 to 6: loops


def _range(u: UOp) -> str | None:
    if not isinstance(u.arg, RangeArg) or not isinstance(u.arg.kind, AxisType):
        return f"its arg is a RangeArg, not {u.arg!r}"
    return None if dtypes.is_int(u.dtype) else f"it counts in integers, not {u.dtype}"


def _index(u: UOp) -> str | None:
    buffer, place = u.src[:2]
    if u.dtype is not buffer.dtype or not isinstance(u.dtype, PtrDType):
        return f"its dtype is that of its memory, {buffer.dtype}, not {u.dtype}"
    if place.dtype.count > 1 or not dtypes.is_int(place.dtype):
        return f"its place is one integer, not {place.dtype}"
    if len(u.src) > 2 and not dtypes.is_bool(u.src[2].dtype):
        return f"its validity is a bool, not {u.src[2].dtype}"
    return None


def _canonical_index(u: UOp) -> str | None:
    place = u.src[1].dtype
    return None if place is dtypes.index else f"its place is index arithmetic, not {place}"


def _loop_load(u: UOp) -> str | None:
    memory = u.src[0].dtype.base
    if u.dtype.scalar_type is not memory.scalar_type:
        return f"it reads {memory} from {u.src[0].dtype}, not {u.dtype}"
    if len(u.src) > 1 and u.src[1].dtype is not u.dtype:
        return f"what it is where invalid has its dtype {u.dtype}, not {u.src[1].dtype}"
    return None


def _loop_store(u: UOp) -> str | None:
    memory = u.src[0].dtype.base
    if u.src[1].dtype.scalar_type is not memory.scalar_type:
        return f"it stores {u.src[1].dtype} into {u.src[0].dtype}"
    return None


def _reduce(u: UOp) -> str | None:
    if u.arg not in REDUCTIONS:
        return f"its arg is an op that combines, not {u.arg!r}"
    if any(s.op is not Ops.RANGE for s in u.src[1:]):
        return "what follows its value are RANGEs"
    return same_dtype_as_source(u)


def _scan(u: UOp) -> str | None:
    if u.arg not in SCANS:
        return f"its arg is an op that combines, not {u.arg!r}"
    if not scan_ranges(u) or any(s.op is not Ops.RANGE for s in scan_ranges(u)):
        return "what follows its values are RANGEs"
    wrong = next((s.dtype for s in scan_values(u) if s.dtype is not u.dtype), None)
    return None if wrong is None else f"its dtype is that of its values, {wrong}, not {u.dtype}"


def stage(u: UOp) -> str | None:
    """Memory, the STOREs that fill it, the RANGEs of the filling."""
    if not u.src or u.src[0].op is not Ops.DEFINE_LOCAL or u.dtype is not u.src[0].dtype:
        return "its first source is the DEFINE_LOCAL that it fills, of its dtype"
    stores = stage_stores(u)
    if not stores or u.src[1:] != (*stores, *closed_ranges(u)):
        return "what follows its memory are STOREs and then RANGEs"
    if any(store.src[0].src[0] is not u.src[0] for store in stores):
        return "its STOREs fill its own memory"
    return None


def _not_in_registers(u: UOp) -> str | None:
    if u.arg.kind in (AxisType.UPCAST, AxisType.UNROLL):
        return f"{u.arg.kind.name} ranges have become lanes and registers"
    return None


def _vectorize(u: UOp) -> str | None:
    if u.dtype.count != len(u.src) or len(u.src) < 2:
        return f"it makes {u.dtype.count} lanes of {len(u.src)} sources"
    scalar = u.dtype.scalar_type
    wrong = next((s.dtype for s in u.src if s.dtype is not scalar), None)
    return None if wrong is None else f"its sources are {scalar}, not {wrong}"


def _gep(u: UOp) -> str | None:
    lanes = u.arg
    if not isinstance(lanes, tuple) or not all(isinstance(lane, int) for lane in lanes):
        return f"its arg is lanes, not {lanes!r}"
    if any(not 0 <= lane < u.src[0].dtype.count for lane in lanes):
        return f"it takes lanes {lanes} of {u.src[0].dtype}"
    expected = u.src[0].dtype.scalar_type.vec(len(lanes))
    return None if u.dtype is expected else f"its dtype is {expected}, not {u.dtype}"


def _pack(u: UOp) -> str | None:
    if len({s.dtype for s in u.src}) != 1:
        return f"its sources have one dtype, not {', '.join(repr(s.dtype) for s in u.src)}"
    bits = sum(s.dtype.scalar_type.itemsize for s in u.src)
    if u.src[0].dtype.count != u.dtype.count or not dtypes.is_unsigned(u.dtype):
        return f"it is an unsigned integer in each of {u.src[0].dtype.count} lanes, not {u.dtype}"
    held = u.dtype.scalar_type.itemsize
    return None if bits == held else f"it packs {bits} bytes into {held}"


def _dot(u: UOp) -> str | None:
    first, second, total = u.src
    if total.dtype is not u.dtype:
        return f"its dtype is that of its sum, {total.dtype}, not {u.dtype}"
    if first.dtype is not second.dtype or not dtypes.is_unsigned(first.dtype):
        return f"its factors are packed numbers, not {first.dtype} and {second.dtype}"
    if first.dtype.count != u.dtype.count:
        return f"it has {u.dtype.count} lanes and its factors have {first.dtype.count}"
    return None if isinstance(u.arg, DType) else f"its arg is the type of what is packed, not {u.arg!r}"


_DOTS: dict[Ops, Check] = {
    Ops.PACK: both(sources(None, None, more=True), _pack),
    Ops.DOT: both(sources(None, None, None), _dot),
}

_BUFFERS = (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.STAGE)

_loops: dict[Ops, Check] = {
    Ops.SINK: both(void, sources(Ops.STORE, more=True, least=0)),
    Ops.DEFINE_GLOBAL: _MEMORY,
    Ops.DEFINE_VAR: variable,
    Ops.SPECIAL: arg_is(tuple),
    Ops.CONST: both(sources(), const),
    Ops.RANGE: both(sources(None), _range),
    Ops.INDEX: both(sources(_BUFFERS, None, None, least=2), _index, _canonical_index),
    Ops.LOAD: both(sources(Ops.INDEX), one_lane(_loop_load)),
    Ops.STORE: both(void, sources(Ops.INDEX, None), _loop_store),
    Ops.REDUCE: both(sources(None, Ops.RANGE, more=True), one_lane(_reduce)),
    Ops.SCAN: one_lane(_scan),
    Ops.DEFINE_LOCAL: _MEMORY,
    Ops.STAGE: stage,
    **dict.fromkeys(ELEMENTWISE, one_lane(elementwise)),
}
LOOPS = Spec(3, "loops", _loops)
SCHEDULED = Spec(4, "scheduled loops", {**_loops, **_DOTS, Ops.BARRIER: ok})
_vectors: dict[Ops, Check] = {
    **SCHEDULED.checks,
    Ops.RANGE: both(sources(None), _range, _not_in_registers),
    Ops.LOAD: both(sources(Ops.INDEX, None, least=1), _loop_load),
    Ops.REDUCE: both(sources(None, Ops.RANGE, more=True), _reduce),
    Ops.SCAN: _scan,
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: both(sources(None), _gep),
    **dict.fromkeys(ELEMENTWISE, elementwise),
}
VECTORS = Spec(5, "vector code", _vectors)
TARGET = Spec(
    6,
    "target code",
    {
        op: no_index(both(sources(_BUFFERS, None, None, least=2), _index) if op is Ops.INDEX else check)
        for op, check in _vectors.items()
        if op is not Ops.PACK
    },
)

# *** form 7: the linear program


def _linear_range(u: UOp) -> str | None:
    return _range(u) or _not_in_registers(u)


def _assign(u: UOp) -> str | None:
    value = u.src[1].dtype
    return None if value is u.src[0].dtype else f"it puts {value} into an accumulator of {u.src[0].dtype}"


_GRAPHS_ONLY = (Ops.SINK, Ops.REDUCE, Ops.SCAN, Ops.STAGE)
LINEAR = Spec(
    7,
    "linear program",
    {
        **{op: check for op, check in TARGET.checks.items() if op not in _GRAPHS_ONLY},
        Ops.DEFINE_ACC: both(sources(None, Ops.RANGE, more=True), arg_is(tuple)),
        Ops.RANGE: both(sources(None, None), no_index(_linear_range)),
        Ops.ENDRANGE: both(void, sources(Ops.RANGE)),
        Ops.ASSIGN: both(sources(Ops.DEFINE_ACC, None), _assign),
        Ops.IF: both(void, sources(None, more=True)),
        Ops.ENDIF: both(void, sources(Ops.IF)),
        Ops.BARRIER: ok,
        Ops.NOOP: ok,
    },
)

SPECS: dict[int, Spec] = {
    spec.form: spec for spec in (TENSOR, KERNEL, LOOPS, SCHEDULED, VECTORS, TARGET, LINEAR)
}

# *** verifying


def verify(
    what: UOp | Sequence[UOp], spec: Spec, pass_name: str = "", supports: Supports | None = None
) -> None:
    """Raise SpecError, naming the node and the pass, unless the graph (or the linear program) is legal.

    `supports` says which operations the target has, from form 6 on.
    """
    nodes = toposort((what,)) if isinstance(what, UOp) else what
    made = f"after {pass_name}" if pass_name else "here"
    checks = spec.checks
    for node in nodes:
        check = checks.get(node.op)
        wrong = "it has no place in this form" if check is None else check(node)
        if (
            wrong is None
            and supports is not None
            and node.op in ALU
            and not supports(node.op, node.src[-1].dtype)
        ):
            wrong = f"the target has no {node.op.name} of {node.src[-1].dtype}"
        if wrong is not None:
            raise SpecError(f"{made} ({spec.name}): {node.op}: {wrong}\n{_excerpt(uop_text(node))}")
    if isinstance(what, UOp):
        _verify_ranges(nodes, spec, made)
    else:
        _verify_order(what, made)


def _excerpt(text: str, lines: int = 40) -> str:
    found = text.splitlines()
    return "\n".join(found if len(found) <= lines else [*found[:lines], "..."])


def _verify_ranges(nodes: Sequence[UOp], spec: Spec, made: str) -> None:
    """No two RANGEs of a kernel have the same number."""
    seen: dict[int, UOp] = {}
    for node in nodes:
        if node.op is Ops.RANGE and seen.setdefault(node.arg.id, node) is not node:
            raise SpecError(
                f"{made} ({spec.name}): two RANGEs have the number {node.arg.id}\n{seen[node.arg.id]}\n{node}"
            )


_CLOSES = {Ops.ENDRANGE: Ops.RANGE, Ops.ENDIF: Ops.IF}


def _verify_order(program: Sequence[UOp], made: str) -> None:
    """Every step uses what is computed before it and still open, and what opens closes, innermost first."""
    open_steps: list[UOp] = []
    visible: list[list[UOp]] = [[]]
    known: set[UOp] = set()

    def fail(step: int, wrong: str) -> SpecError:
        row = linear_text(program).splitlines()[step]
        return SpecError(f"{made} (linear program): {program[step].op}: {wrong}\n{row.strip()}")

    for step, node in enumerate(program):
        if node in known:
            raise fail(step, "it is in the list twice")
        for source in node.src:
            if source not in known and not (node.op is Ops.DEFINE_ACC and source.op is Ops.RANGE):
                raise fail(
                    step, f"it uses {source.op} {source.arg}, which is not computed yet or no more in scope"
                )
        if node.op in _CLOSES:
            if not open_steps or open_steps[-1] is not node.src[0]:
                raise fail(step, "what it closes is not the innermost that is open")
            open_steps.pop()
            known.difference_update(visible.pop())
            continue
        visible[-1].append(node)
        known.add(node)
        if node.op in _CLOSES.values():
            open_steps.append(node)
            visible.append([])
    if open_steps:
        raise fail(
            len(program) - 1, f"the program ends before {open_steps[-1].op} {open_steps[-1].arg} is closed"
        )

"""Forms 3 to 6: ranges, and memory at integer places; as lowered, scheduled, made of vectors, and legal for a
target."""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ..args import AxisType, RangeArg
from ..nest import closed_ranges, scan_ranges, scan_values, stage_stores
from ..ops import ELEMENTWISE, REDUCTIONS, SCANS, Ops
from ..uop import UOp
from .checks import (
    MEMORY,
    Check,
    Spec,
    arg_is,
    both,
    const,
    elementwise,
    no_index,
    ok,
    one_lane,
    same_dtype_as_source,
    sources,
    variable,
    void,
)


def loop_range(u: UOp) -> str | None:
    """A loop, in forms 3 to 7."""
    if not isinstance(u.arg, RangeArg) or not isinstance(u.arg.kind, AxisType):
        return f"its arg is a RangeArg, not {u.arg!r}"
    return None if dtypes.is_int(u.dtype) else f"it counts in integers, not {u.dtype}"


def _index(u: UOp) -> str | None:
    buffer, place = u.src[:2]
    if u.dtype is not buffer.dtype or not isinstance(u.dtype, PtrDType):
        return f"its dtype is that of its memory, {buffer.dtype}, not {u.dtype}"
    if not dtypes.is_int(place.dtype):
        return f"its place is an integer, not {place.dtype}"
    if len(u.src) > 2 and not dtypes.is_bool(u.src[2].dtype):
        return f"its validity is a bool, not {u.src[2].dtype}"
    return None


def _canonical_index(u: UOp) -> str | None:
    place = u.src[1].dtype
    return None if place is dtypes.index else f"its place is index arithmetic, not {place}"


def _index_of_lanes(u: UOp) -> str | None:
    place = u.src[1].dtype
    if place.scalar_type is not dtypes.index:
        return f"its place is index arithmetic, not {place}"
    return None


def _lanes_of(u: UOp) -> int:
    """How many places an INDEX has: a load at several gathers its lanes."""
    return u.src[1].dtype.count if len(u.src) > 1 else 1


def _load(u: UOp) -> str | None:
    memory = u.src[0].dtype.base
    of_words = dtypes.is_unsigned(u.dtype) and u.dtype.scalar_type.itemsize > memory.scalar_type.itemsize
    if u.dtype.scalar_type is not memory.scalar_type and not of_words:
        return f"it reads {memory} from {u.src[0].dtype}, not {u.dtype}"
    if _lanes_of(u.src[0]) not in (1, u.dtype.count):
        return f"it reads {u.dtype.count} lanes at {_lanes_of(u.src[0])} places"
    others = [source for source in u.src[1:] if source.op is not Ops.RANGE]
    if len(others) > 1 or (others and others[0].dtype is not u.dtype):
        return f"what it is where invalid has its dtype {u.dtype}, not {u.src[1].dtype}"
    return None


def _store(u: UOp) -> str | None:
    memory = u.src[0].dtype.base
    if u.src[1].dtype.scalar_type is not memory.scalar_type:
        return f"it stores {u.src[1].dtype} into {u.src[0].dtype}"
    if _lanes_of(u.src[0]) > 1:
        return "it stores at one place, and those behind it"
    return None


def _fetch(u: UOp) -> str | None:
    into, source = u.src
    if not isinstance(u.arg, int) or u.arg < 1:
        return f"its arg is how many neighbours it copies, not {u.arg!r}"
    if into.dtype.base is not source.dtype.base:
        return f"it copies {source.dtype} to {into.dtype}"
    return None if _lanes_of(into) == _lanes_of(source) == 1 else "it copies between single places"


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
    if not u.src or u.src[0].op not in (Ops.DEFINE_LOCAL, Ops.STAGE) or u.dtype is not u.src[0].dtype:
        return "its first source is the DEFINE_LOCAL that it fills, or a STAGE that began to, of its dtype"
    stores = stage_stores(u)
    if not stores or u.src[1:] != (*stores, *closed_ranges(u)):
        return "what follows its memory are STOREs or FETCHes and then RANGEs"
    if any(store.src[0].src[0] is not u.src[0] for store in stores):
        return "its STOREs fill its own memory"
    return None


def not_in_registers(u: UOp) -> str | None:
    """A loop that is left once lanes are vectors."""
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


def _wmma(u: UOp) -> str | None:
    *words, number = u.src
    if u.arg.columns and all(word.op is Ops.INDEX for word in words):
        words = []  # where both matrices lie
    wrong = next((s.dtype for s in words if s.dtype.scalar_type is not dtypes.uint32), None)
    if wrong is not None:
        return f"its factors are words of packed numbers, not {wrong}"
    return None if dtypes.is_int(number.dtype) else f"which sum it is, is an integer, not {number.dtype}"


def _shuffle(u: UOp) -> str | None:
    if not isinstance(u.arg, int) or u.arg < 1 or u.arg & (u.arg - 1):
        return f"its arg is a power of two, by which threads' numbers differ, not {u.arg!r}"
    return None


_DOTS: dict[Ops, Check] = {
    Ops.PACK: both(sources(None, None, more=True), _pack),
    Ops.DOT: both(sources(None, None, None), _dot),
    Ops.WMMA: both(sources(None, None, None, more=True), _wmma),
}

_BUFFERS = (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.STAGE)

_loops: dict[Ops, Check] = {
    Ops.SINK: both(void, sources(Ops.STORE, more=True, least=0)),
    Ops.DEFINE_GLOBAL: MEMORY,
    Ops.DEFINE_VAR: variable,
    Ops.SPECIAL: arg_is(tuple),
    Ops.CONST: both(sources(), const),
    Ops.RANGE: both(sources(None), loop_range),
    Ops.INDEX: both(sources(_BUFFERS, None, None, least=2), _index, _canonical_index),
    Ops.LOAD: both(sources(Ops.INDEX, Ops.RANGE, more=True, least=1), one_lane(_load)),
    Ops.STORE: both(void, sources(Ops.INDEX, None), _store),
    Ops.REDUCE: both(sources(None, Ops.RANGE, more=True), one_lane(_reduce)),
    Ops.SCAN: one_lane(_scan),
    Ops.DEFINE_LOCAL: MEMORY,
    Ops.STAGE: stage,
    **dict.fromkeys(ELEMENTWISE, one_lane(elementwise)),
}
LOOPS = Spec(3, "loops", _loops)
SCHEDULED = Spec(4, "scheduled loops", {**_loops, **_DOTS, Ops.BARRIER: ok})
_vectors: dict[Ops, Check] = {
    **SCHEDULED.checks,
    Ops.RANGE: both(sources(None), loop_range, not_in_registers),
    Ops.INDEX: both(sources(_BUFFERS, None, None, least=2), _index, _index_of_lanes),
    Ops.LOAD: both(sources(Ops.INDEX, None, more=True, least=1), _load),
    Ops.REDUCE: both(sources(None, Ops.RANGE, more=True), _reduce),
    Ops.SCAN: _scan,
    Ops.FETCH: both(void, sources(Ops.INDEX, Ops.INDEX), _fetch),
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: both(sources(None), _gep),
    Ops.SHUFFLE: both(sources(None), same_dtype_as_source, _shuffle),
    **dict.fromkeys(ELEMENTWISE, elementwise),
}
VECTORS = Spec(5, "vector code", _vectors)
_widths: dict[Ops, Check] = {
    op: no_index(both(sources(_BUFFERS, None, None, least=2), _index) if op is Ops.INDEX else check)
    for op, check in _vectors.items()
}
#: Form 5 on its way to 6: every integer has a width.
WIDTHS = Spec(5, "vector code, of widths", _widths)
TARGET = Spec(6, "target code", {op: check for op, check in _widths.items() if op is not Ops.PACK})

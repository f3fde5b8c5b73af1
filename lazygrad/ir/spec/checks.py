"""Checks that the forms share, and what a form is made of them. A check returns what is wrong, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...dtype import PtrDType, dtypes
from ..args import WORKING, Array, CheckArg, ProgramArg, ReduceArg
from ..ops import COMPARISONS, OPS, REDUCTIONS, SCANS, Ops
from ..uop import UOp

#: What is wrong with a node, or None.
Check = Callable[[UOp], str | None]


class Spec(NamedTuple):
    """A form: its number and name, and a check for every op that may occur in it."""

    form: int
    name: str
    checks: dict[Ops, Check]


# *** parts of checks


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


def keeps_dtype(count: int) -> Check:
    """So many sources, and the dtype of the first."""
    return both(sources(*(None,) * count), same_dtype_as_source)


def integer_index(position: int) -> Check:
    """The source at this position counts elements."""

    def check(u: UOp) -> str | None:
        dtype = u.src[position].dtype
        return None if dtypes.is_int(dtype) else f"it is indexed by integers, not {dtype}"

    return check


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


# *** values


_FLOATS_ONLY = frozenset(
    (Ops.RECIP, Ops.SQRT, Ops.EXP, Ops.LOG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF)
    + (Ops.FDIV, Ops.FMOD, Ops.LDEXP)
)
_INTS_ONLY = frozenset((Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR))
_NO_FLOATS = frozenset((Ops.AND, Ops.OR, Ops.XOR))


def elementwise(u: UOp) -> str | None:
    """The number of sources, their types and lanes, and the type of the result are those of the op's row."""
    info = OPS[u.op]
    if u.op is Ops.CHECK:
        return _check(u)
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
    operands = u.src[1:] if u.op in (Ops.WHERE, Ops.LDEXP) else u.src
    kind = operands[-1].dtype
    if u.op is Ops.WHERE and not dtypes.is_bool(u.src[0].dtype):
        return f"its condition is a bool, not {u.src[0].dtype}"
    if u.op is Ops.LDEXP and not (dtypes.is_int(u.src[0].dtype) and u.src[0].dtype.itemsize == kind.itemsize):
        return f"its power is an integer as wide as {kind}, not {u.src[0].dtype}"
    if any(s.dtype is not kind for s in operands):
        return f"its sources have one dtype, not {', '.join(repr(s.dtype) for s in operands)}"
    expected = dtypes.bool.vec(kind.count) if u.op in COMPARISONS else kind
    if u.dtype is not expected:
        return f"its dtype is {expected}, not {u.dtype}"
    if u.op in _FLOATS_ONLY and not dtypes.is_float(kind):
        return f"it is for floats, not {kind}"
    if u.op in _INTS_ONLY and not dtypes.is_int(kind):
        return f"it is for integers, not {kind}"
    if u.op is Ops.DP4A and kind.scalar_type is not dtypes.int32:
        return f"it is for int32, words of four bytes, not {kind}"
    if u.op in _NO_FLOATS and dtypes.is_float(kind):
        return f"it is for integers and bools, not {kind}"
    return None


def _check(u: UOp) -> str | None:
    """A value, whether its index is good, and the index."""
    if not isinstance(u.arg, CheckArg):
        return f"its arg is a CheckArg, not {u.arg!r}"
    if len(u.src) != 3:
        return f"it takes 3 sources, not {len(u.src)}"
    value, good, place = u.src
    if value.dtype is not u.dtype:
        return f"its dtype is that of its value, {value.dtype}, not {u.dtype}"
    if not dtypes.is_bool(good.dtype) or not dtypes.is_int(place.dtype):
        return f"it takes a bool and an integer, not {good.dtype} and {place.dtype}"
    if good.dtype.count != u.dtype.count or place.dtype.count != u.dtype.count:
        return f"it has {u.dtype.count} lanes, its sources {good.dtype.count} and {place.dtype.count}"
    return None


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


#: What a kernel is given, or has of its own, by its number.
MEMORY = both(sources(), pointer, arg_is(int))


# *** what goes over axes, in forms 1 and 2


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


def program(u: UOp) -> str | None:
    """A result of a kernel; in its AST also the memory that it works in."""
    if not isinstance(u.arg, ProgramArg):
        return f"its arg is a ProgramArg, not {u.arg!r}"
    given = [source.dtype for source in u.src]
    wrong: str | None = u.arg.kernel.problem(given)
    if wrong or u.arg.output == WORKING:
        return wrong
    expected = u.arg.kernel.makes([Array(dtype, ()) for dtype in given])[u.arg.output].dtype
    return None if u.dtype is expected else f"its dtype is {expected}, not {u.dtype}"

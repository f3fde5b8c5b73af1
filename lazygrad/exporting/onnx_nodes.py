"""Each op of the tensor graph as ONNX nodes: a table, op → function that writes them (opset 18).

What ONNX lacks on a type is said in another type or in several nodes; what cannot be said raises
NotImplementedError with the op's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..dtype import DType, dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import shape_of
from .onnx_writer import Writer

#: Writes a node, whose sources have these names; gives the name of its value.
Row = Callable[[Writer, UOp, list[str]], str]
OPSET = 18

#: Where sums, products and extremes are computed for types that ONNX Runtime has no kernel for.
_WIDE = {
    dtypes.bool: dtypes.int32,
    dtypes.int8: dtypes.int32,
    dtypes.uint8: dtypes.int32,
    dtypes.int16: dtypes.int32,
    dtypes.uint16: dtypes.int32,
    dtypes.uint32: dtypes.int64,
    dtypes.uint64: dtypes.int64,
    dtypes.bfloat16: dtypes.float32,
    dtypes.float16: dtypes.float32,
}


def unsaid(node: UOp, why: str = "") -> NotImplementedError:
    return NotImplementedError(
        f"exporting {node.op.name} of {node.dtype} to ONNX is not supported{why and ': '}{why}"
    )


def _plain(name: str) -> Row:
    return lambda w, node, src: w.add(name, src)


def _arithmetic(name: str, on_bool: str = "") -> Row:
    """A node that numbers have; narrow ones compute in a wider type and are cast back, which wraps."""

    def row(w: Writer, node: UOp, src: list[str]) -> str:
        dtype = node.src[0].dtype
        if dtype is dtypes.bool:
            if not on_bool:
                raise unsaid(node)
            return w.add(on_bool, src)
        if dtype not in _WIDE or dtypes.is_float(dtype):
            return w.add(name, src)
        return w.cast(w.add(name, [w.cast(each, _WIDE[dtype]) for each in src]), dtype)

    return row


def _compared(name: str, negated: bool = False) -> Row:
    def row(w: Writer, node: UOp, src: list[str]) -> str:
        dtype = node.src[0].dtype
        if dtype in _WIDE and not dtypes.is_float(dtype):
            src = [w.cast(each, _WIDE[dtype]) for each in src]
        found = w.add(name, src)
        return w.add("Not", [found]) if negated else found

    return row


def _bits(name: str, on_bool: str) -> Row:
    return lambda w, node, src: w.add(on_bool if node.dtype is dtypes.bool else name, src)


def _shifted(left: bool) -> Row:
    def row(w: Writer, node: UOp, src: list[str]) -> str:
        dtype = node.dtype
        if dtypes.is_unsigned(dtype) and dtype is not dtypes.uint16:
            return w.add("BitShift", src, direction="LEFT" if left else "RIGHT")
        power = w.cast(w.add("Pow", [w.scalar(2.0, dtypes.float64), w.cast(src[1], dtypes.float64)]), dtype)
        if left:
            return w.add("Mul", [src[0], power])
        return _floor_divided(w, dtype, src[0], power)

    return row


def _floor_divided(w: Writer, dtype: DType, x: str, y: str) -> str:
    """⌊x / y⌋; ONNX divides integers towards zero."""
    quotient = w.add("Div", [x, y])
    if dtypes.is_unsigned(dtype):
        return quotient
    zero = w.scalar(0, dtype)
    rest = w.add("Sub", [x, w.add("Mul", [quotient, y])])
    other_sign = w.add("Xor", [w.add("Less", [rest, zero]), w.add("Less", [y, zero])])
    lower = w.add("And", [other_sign, w.add("Not", [w.add("Equal", [rest, zero])])])
    return w.add("Sub", [quotient, w.cast(lower, dtype)])


def _divided(rest: bool) -> Row:
    """IDIV and MOD round down, and what is divided by 0 is 0."""

    def row(w: Writer, node: UOp, src: list[str]) -> str:
        dtype = node.dtype
        wide = _WIDE.get(dtype, dtype)
        x, y = (w.cast(each, wide) for each in src)
        zero = w.scalar(0, wide)
        is_zero = w.add("Equal", [y, zero])
        y = w.add("Where", [is_zero, w.scalar(1, wide), y])
        quotient = _floor_divided(w, wide, x, y)
        found = w.add("Sub", [x, w.add("Mul", [quotient, y])]) if rest else quotient
        return w.cast(w.add("Where", [is_zero, zero, found]), dtype)

    return row


def _negated(w: Writer, node: UOp, src: list[str]) -> str:
    if node.dtype is dtypes.bool:
        return w.add("Not", src)
    if dtypes.is_unsigned(node.dtype):
        wide = _WIDE[node.dtype]
        return w.cast(w.add("Neg", [w.cast(src[0], wide)]), node.dtype)
    return w.add("Neg", src)


def _truncated(w: Writer, node: UOp, src: list[str]) -> str:
    if not dtypes.is_float(node.dtype):
        return src[0]
    down, up = w.add("Floor", src), w.add("Ceil", src)
    return w.add("Where", [w.add("Less", [src[0], w.scalar(0.0, node.dtype)]), up, down])


def _power_of_two(w: Writer, node: UOp, src: list[str]) -> str:
    return w.add("Pow", [w.scalar(2.0, node.dtype), src[0]])


def _log2(w: Writer, node: UOp, src: list[str]) -> str:
    return w.add("Mul", [w.add("Log", src), w.scalar(1 / math.log(2), node.dtype)])


def _cast(w: Writer, node: UOp, src: list[str]) -> str:
    return w.cast(src[0], node.dtype)


def _first(w: Writer, node: UOp, src: list[str]) -> str:
    return src[0]


def _where(w: Writer, node: UOp, src: list[str]) -> str:
    wide = _WIDE.get(node.dtype, node.dtype)
    return w.cast(w.add("Where", [src[0], *[w.cast(each, wide) for each in src[1:]]]), node.dtype)


# *** movement


def _sizes(node: UOp) -> list[int]:
    shape = shape_of(node)
    if not all(isinstance(size, int) for size in shape):
        raise unsaid(node, "sizes are numbers there, and not Variables")
    return [size for size in shape if isinstance(size, int)]


def _reshaped(w: Writer, node: UOp, src: list[str]) -> str:
    return w.add("Reshape", [src[0], w.integers(_sizes(node))], allowzero=1)


def _expanded(w: Writer, node: UOp, src: list[str]) -> str:
    return w.add("Expand", [src[0], w.integers(_sizes(node))])


def _permuted(w: Writer, node: UOp, src: list[str]) -> str:
    return w.add("Transpose", src, perm=list(node.arg))


def _padded(w: Writer, node: UOp, src: list[str]) -> str:
    before, after = zip(*node.arg, strict=True)
    dtype = node.dtype
    wide = _WIDE.get(dtype, dtype)
    zero = w.scalar(0, wide)
    return w.cast(w.add("Pad", [w.cast(src[0], wide), w.integers([*before, *after]), zero]), dtype)


def _shrunk(w: Writer, node: UOp, src: list[str]) -> str:
    starts, ends = zip(*node.arg, strict=True)
    _sizes(node)
    return w.add("Slice", [src[0], w.integers(starts), w.integers(ends)])


def _flipped(w: Writer, node: UOp, src: list[str]) -> str:
    axes = list(node.arg)
    count = len(axes)
    if not axes:
        return src[0]
    ends = [-(1 << 62)] * count
    return w.add(
        "Slice",
        [src[0], w.integers([-1] * count), w.integers(ends), w.integers(axes), w.integers([-1] * count)],
    )


# *** more than elementwise

_REDUCES = {Ops.ADD: "ReduceSum", Ops.MUL: "ReduceProd", Ops.MAX: "ReduceMax", Ops.MIN: "ReduceMin"}
_COMBINES = {Ops.ADD: "add", Ops.MUL: "mul", Ops.MAX: "max", Ops.MIN: "min"}
#: On truth values sums are `or`, products `and`.
_OF_BOOLS = {Ops.ADD: "ReduceMax", Ops.MUL: "ReduceMin", Ops.OR: "ReduceMax", Ops.AND: "ReduceMin"}


def _reduced(w: Writer, node: UOp, src: list[str]) -> str:
    op, axes = node.arg.op, node.arg.axes
    names = {**_REDUCES, **_OF_BOOLS} if node.dtype is dtypes.bool else _REDUCES
    if op not in names:
        raise unsaid(node, f"a reduction by {op.name}")
    wide = _WIDE.get(node.dtype, node.dtype)
    found = w.add(names[op], [w.cast(src[0], wide), w.integers(axes)], keepdims=1)
    return w.cast(found, node.dtype)


def _scanned(w: Writer, node: UOp, src: list[str]) -> str:
    if node.arg.op is not Ops.ADD or node.dtype is dtypes.bool:
        raise unsaid(node, f"a running {node.arg.op.name}")
    wide = _WIDE.get(node.dtype, node.dtype)
    axis = w.constant([node.arg.axes[0]], dtypes.int64, ())
    return w.cast(w.add("CumSum", [w.cast(src[0], wide), axis]), node.dtype)


def _gathered(w: Writer, node: UOp, src: list[str]) -> str:
    """From a row of elements; an index that is out of range reads 0."""
    index = w.cast(src[1], dtypes.int64)
    missing = w.add("Less", [index, w.scalar(0, dtypes.int64)])
    place = w.add("Where", [missing, w.scalar(0, dtypes.int64), index])
    found = w.add("Gather", [src[0], place], axis=0)
    return w.add("Where", [missing, w.scalar(0, node.dtype), found])


def _scattered(w: Writer, node: UOp, src: list[str]) -> str:
    """Into a row of elements; what has an index below 0 is put behind the row, and left out."""
    if node.arg is not None and node.arg not in _COMBINES:
        raise unsaid(node, f"combined by {node.arg.name}")
    (size,) = _sizes(node)
    index = w.cast(src[1], dtypes.int64)
    missing = w.add("Less", [index, w.scalar(0, dtypes.int64)])
    place = w.add("Where", [missing, w.scalar(size, dtypes.int64), index])
    flat = w.integers([-1])
    row = w.add("Concat", [src[0], w.constant([0], node.dtype, (1,))], axis=0)
    more = {} if node.arg is None else {"reduction": _COMBINES[node.arg]}
    values = [row, w.add("Reshape", [place, flat]), w.add("Reshape", [src[2], flat])]
    made = w.add("ScatterElements", values, axis=0, **more)
    return w.add("Slice", [made, w.integers([0]), w.integers([size])])


ROWS: dict[Ops, Row] = {
    **dict.fromkeys((Ops.CONTIGUOUS, Ops.DETACH, Ops.FUNCTION, Ops.CHECK, Ops.COPY), _first),
    Ops.CAST: _cast,
    Ops.NEG: _negated,
    Ops.RECIP: _plain("Reciprocal"),
    Ops.SQRT: _plain("Sqrt"),
    Ops.EXP: _plain("Exp"),
    Ops.LOG: _plain("Log"),
    Ops.EXP2: _power_of_two,
    Ops.LOG2: _log2,
    Ops.SIN: _plain("Sin"),
    Ops.COS: _plain("Cos"),
    Ops.TANH: _plain("Tanh"),
    Ops.ERF: _plain("Erf"),
    Ops.TRUNC: _truncated,
    Ops.ADD: _arithmetic("Add", "Or"),
    Ops.SUB: _arithmetic("Sub", "Xor"),
    Ops.MUL: _arithmetic("Mul", "And"),
    Ops.MAX: _arithmetic("Max", "Or"),
    Ops.MIN: _arithmetic("Min", "And"),
    Ops.POW: _arithmetic("Pow"),
    Ops.FDIV: _plain("Div"),
    Ops.IDIV: _divided(rest=False),
    Ops.MOD: _divided(rest=True),
    Ops.FMOD: lambda w, node, src: w.add("Mod", src, fmod=1),
    Ops.CMPLT: _compared("Less"),
    Ops.CMPLE: _compared("LessOrEqual"),
    Ops.CMPEQ: _compared("Equal"),
    Ops.CMPNE: _compared("Equal", negated=True),
    Ops.AND: _bits("BitwiseAnd", "And"),
    Ops.OR: _bits("BitwiseOr", "Or"),
    Ops.XOR: _bits("BitwiseXor", "Xor"),
    Ops.SHL: _shifted(left=True),
    Ops.SHR: _shifted(left=False),
    Ops.WHERE: _where,
    Ops.RESHAPE: _reshaped,
    Ops.EXPAND: _expanded,
    Ops.PERMUTE: _permuted,
    Ops.PAD: _padded,
    Ops.SHRINK: _shrunk,
    Ops.FLIP: _flipped,
    Ops.REDUCE_AXIS: _reduced,
    Ops.SCAN: _scanned,
    Ops.GATHER: _gathered,
    Ops.SCATTER: _scattered,
}

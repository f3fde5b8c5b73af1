"""The meaning of a tensor graph in numpy: slow, obvious, and independent of scheduler, compiler and devices.

`evaluate(node)` gives the array that a node of form 1 stands for. Tests compare the values that kernels
compute, and the gradients that rules build, with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lazygrad.device import Buffer
from lazygrad.dtype import DType, dtypes, numpy_name
from lazygrad.ir.index import evaluate as evaluate_index
from lazygrad.ir.ops import MOVEMENT, Ops
from lazygrad.ir.uop import UOp
from lazygrad.programs.runners import get_runner
from lazygrad.schedule.graph.versions import buffer_of
from lazygrad.shape.rules import shape_of
from lazygrad.shape.tracker import ShapeTracker

Array = np.ndarray[Any, Any]


def by_interpreter(node: UOp, sources: list[Array]) -> Array:
    """What a routine leaves: signs and the order of equal numbers are its own, so device PYTHON runs it."""
    arrays = [np.zeros(sizes(shape_of(node)), np_dtype(node.dtype)), *map(np.ascontiguousarray, sources)]
    kinds = [node.dtype, *(source.dtype for source in node.src)]
    known = list(zip(kinds, arrays, strict=True))
    memories = [
        UOp(Ops.DEFINE_GLOBAL, kind.ptr(a.size), (), number) for number, (kind, a) in enumerate(known)
    ]
    views = [UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape(array.shape)) for array in arrays]
    pairs = list(zip(memories, views, strict=True))
    loads = [UOp(Ops.LOAD, *each) for each in zip(kinds[1:], pairs[1:], strict=True)]
    value = UOp(Ops.PROGRAM, node.dtype, tuple(loads), node.arg)
    ast = UOp.sink(UOp(Ops.STORE, dtypes.void, (memories[0], views[0], value)))
    buffers = [Buffer("PYTHON", a.size, kind).allocate().copyin(a.reshape(-1).data) for kind, a in known]
    runner = get_runner("PYTHON", ast)
    runner.program(tuple([buffer.ensure_allocated()._buf for buffer in buffers]), ())
    return np.frombuffer(buffers[0].tobytes(), arrays[0].dtype).reshape(arrays[0].shape)


def np_dtype(dtype: DType) -> Any:
    """The numpy type that computes like `dtype`; bfloat16 and fp8 are not known here."""
    if dtype.fmt is None:
        raise NotImplementedError(f"the oracle does not know {dtype}")
    return np.dtype(numpy_name(dtype))


def size(value: Any) -> int:
    """A size that may be an expression over bound Variables."""
    return evaluate_index(value, {}) if isinstance(value, UOp) else int(value)


def sizes(shape: Any) -> tuple[int, ...]:
    return tuple(size(s) for s in shape)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, b: Array) -> Array:
        bits = a.dtype.itemsize * 8
        amount = np.clip(b, 0, bits - 1).astype(a.dtype)
        moved = np.left_shift(a, amount) if left else np.right_shift(a, amount)
        beyond = np.zeros_like(a) if left else np.where(a < 0, -1, 0).astype(a.dtype)
        return np.where((b < 0) | (b >= bits), beyond, moved)

    return shift


def _floor_divide(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _modulo(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _power(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.floating):
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, 0))
    reciprocal = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, reciprocal, whole).astype(a.dtype)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


BINARY: dict[Ops, Callable[[Array, Array], Array]] = {
    Ops.ADD: lambda a, b: a | b if a.dtype == bool else a + b,
    Ops.SUB: lambda a, b: a ^ b if a.dtype == bool else a - b,
    Ops.MUL: lambda a, b: a & b if a.dtype == bool else a * b,
    Ops.FDIV: np.divide,
    Ops.FMOD: np.fmod,
    Ops.IDIV: _floor_divide,
    Ops.MOD: _modulo,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.POW: _power,
    Ops.CMPLT: np.less,
    Ops.CMPLE: np.less_equal,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: _shift(True),
    Ops.SHR: _shift(False),
}
UNARY: dict[Ops, Callable[[Array], Array]] = {
    Ops.NEG: lambda x: ~x if x.dtype == bool else -x,
    Ops.RECIP: lambda x: (1.0 / x).astype(x.dtype),
    Ops.SQRT: np.sqrt,
    Ops.EXP: np.exp,
    Ops.LOG: np.log,
    Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.COS: np.cos,
    Ops.TANH: np.tanh,
    Ops.ERF: _erf,
    Ops.TRUNC: np.trunc,
}
REDUCE: dict[Ops, Any] = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}
SAME = frozenset((Ops.CONTIGUOUS, Ops.DETACH, Ops.COPY, Ops.FUNCTION))


def cast(x: Array, dtype: DType) -> Array:
    """float → int cuts the fraction, saturates, and makes 0 of NaN; ints wrap; bool is `!= 0`."""
    target = np_dtype(dtype)
    if dtype is dtypes.bool:
        return x != 0
    if np.issubdtype(x.dtype, np.floating) and np.issubdtype(target, np.integer):
        info = np.iinfo(target)
        whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = np.clip(whole, float(info.min), float(info.max))
        result = np.where(np.abs(inside) < 2.0**62, inside, 0).astype(target)
        result = np.where(whole >= float(info.max), info.max, result)
        return np.where(whole <= float(info.min), info.min, result).astype(target)
    return x.astype(target)


def moved(node: UOp, x: Array) -> Array:
    op, arg = node.op, node.arg
    if op is Ops.RESHAPE:
        return x.reshape(sizes(arg))
    if op is Ops.EXPAND:
        return np.broadcast_to(x, sizes(arg))
    if op is Ops.PERMUTE:
        return np.transpose(x, arg)
    if op is Ops.PAD:
        return np.pad(x, [sizes(pair) for pair in arg])
    if op is Ops.SHRINK:
        return x[tuple(slice(*sizes(span)) for span in arg)]
    return np.flip(x, arg)


def gathered(x: Array, index: Array) -> Array:
    inside = (index >= 0) & (index < len(x))
    if not len(x):
        return np.zeros(index.shape, x.dtype)
    return np.where(inside, x[np.where(inside, index, 0).astype(np.int64)], np.zeros((), x.dtype))


def scattered(base: Array, index: Array, values: Array, op: Ops | None) -> Array:
    result = base.copy()
    for place, value in zip(index.reshape(-1).tolist(), values.reshape(-1), strict=True):
        if 0 <= place < len(result):
            result[place] = value if op is None else BINARY[op](result[place], value)
    return result


def scanned(arg: Any, x: Array, *factor: Array) -> Array:
    """Along an axis, each element combined with all before it; MULACC: y[i] = y[i-1] * factor[i] + x[i]."""
    op, (axis,) = arg
    if op is not Ops.MULACC:
        return REDUCE[op].accumulate(x, axis=axis, dtype=x.dtype)
    result = np.moveaxis(x.copy(), axis, 0)
    along = np.moveaxis(factor[0], axis, 0)
    for i in range(1, len(result)):
        result[i] += result[i - 1] * along[i]
    return np.moveaxis(result, 0, axis)


def evaluate(root: UOp) -> Array:
    """The array that a tensor graph stands for.

    Raises:
        NotImplementedError: For an op that the oracle does not know. What planning made of a graph is such:
            a kernel's memory has its value when it has run, and may be another value's memory before.
    """
    done: dict[UOp, Any] = {}
    nodes = root.toposort()
    if any(node.op is Ops.KERNEL for node in nodes):
        raise NotImplementedError("the oracle reads graphs of tensors, not the kernels planned for them")
    with np.errstate(all="ignore"):
        for node in nodes:
            done[node] = _value(node, [done[s] for s in node.src])
    result: Array = done[root]
    return result


def _value(node: UOp, sources: list[Any]) -> Any:
    op = node.op
    if op in (Ops.DEVICE, Ops.UNIQUE, Ops.DEFINE_VAR, Ops.KERNEL):
        return None
    if op is Ops.BUFFER:
        buffer = buffer_of(node)  # memory that nothing has written reads zeros
        if not buffer.is_allocated:
            return np.zeros(node.arg, np_dtype(node.dtype))
        return np.array(buffer.numpy()).reshape(-1)[: node.arg]
    if op is Ops.CONST:
        return np.asarray(node.arg, dtype=np.int64 if node.dtype is dtypes.index else np_dtype(node.dtype))
    if op is Ops.BIND:
        return np.asarray(node.src[1].arg, dtype=np.int64)
    if op is Ops.IOTA:
        return np.arange(size(node.arg)).astype(np_dtype(node.dtype))
    if op is Ops.COPY and len(sources) > 2:
        return np.concatenate(sources[:-1])
    if op in SAME:
        return sources[0]
    if op in MOVEMENT:
        return moved(node, sources[0])
    if op is Ops.CAST:
        return cast(np.asarray(sources[0]), node.dtype)
    if op is Ops.BITCAST:
        return np.ascontiguousarray(sources[0]).view(np_dtype(node.dtype)).reshape(sources[0].shape)
    if op is Ops.WHERE:
        return np.where(*sources)
    if op is Ops.MULACC:
        return sources[0] * sources[1] + sources[2]
    if op is Ops.CHECK:
        return sources[0]
    if op is Ops.REDUCE_AXIS:
        function = REDUCE[node.arg.op]
        kept: Any = sources[0]
        return function.reduce(kept, axis=tuple(node.arg.axes), keepdims=True, dtype=kept.dtype)
    if op is Ops.PROGRAM and node.arg.kernel.kind == "routine":
        return by_interpreter(node, sources)
    if op is Ops.PROGRAM and node.arg.kernel.kind == "sort":
        return np.argsort(sources[0], axis=-1, kind="stable").astype(np.int32)
    if op is Ops.SCAN:
        return scanned(node.arg, *sources)
    if op is Ops.GATHER:
        return gathered(*sources)
    if op is Ops.SCATTER:
        return scattered(*sources, node.arg)
    if op is Ops.MULTI:
        return sources[0] if node.arg.axis is None else np.concatenate(sources, node.arg.axis)
    if op is Ops.ASSIGN and node.arg is None:
        return sources[1]
    if op in UNARY:
        return np.asarray(UNARY[op](sources[0]))
    if op in BINARY:
        result = BINARY[op](*sources)
        want = bool if node.dtype is dtypes.bool else np.asarray(sources[0]).dtype
        return np.asarray(result, dtype=want)
    raise NotImplementedError(f"the oracle does not know {op}")


def check_shapes(root: UOp) -> None:
    """Every node's value has the shape that `shape_of` promises, and the dtype."""
    done: dict[UOp, Any] = {}
    with np.errstate(all="ignore"):
        for node in root.toposort():
            done[node] = value = _value(node, [done[s] for s in node.src])
            if isinstance(value, np.ndarray) and node.op is not Ops.BIND and node.dtype is not dtypes.index:
                assert value.shape == sizes(shape_of(node)), (
                    f"{node.op}: {value.shape} is not {shape_of(node)}"
                )
                assert value.dtype == np_dtype(node.dtype), f"{node.op}: {value.dtype} is not {node.dtype}"

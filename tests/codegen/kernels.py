"""Kernel ASTs written by hand, for tests: builders, the seven that every stage must carry, and how to run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Buffer, CompiledDevice, Device
from lazygrad.dtype import ALL_DTYPES, DType, cast_value, dtypes
from lazygrad.ir.args import ReduceArg
from lazygrad.ir.ops import Ops, to_bits
from lazygrad.ir.uop import UOp, Variable
from lazygrad.renderer.python import DOTS, PythonRenderer
from lazygrad.runtime.python import PythonDevice
from lazygrad.shape import ShapeTracker, shape_of, vmax
from lazygrad.target import Target
from tests.aarch64 import ARM64

F = dtypes.float

# *** builders


def plain(*shape: Any) -> ShapeTracker:
    return ShapeTracker.from_shape(shape)


def memory(number: int, size: int, dtype: DType = F) -> UOp:
    return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), number)


def view(tracker: ShapeTracker) -> UOp:
    return UOp(Ops.VIEW, dtypes.void, (), tracker)


def load(number: int, tracker: ShapeTracker, dtype: DType = F, size: int | None = None) -> UOp:
    buffer = memory(number, tracker.real_size() if size is None else size, dtype)
    return UOp(Ops.LOAD, dtype, (buffer, view(tracker)))


def gather(number: int, size: int, where: UOp, dtype: DType = F) -> UOp:
    return UOp(Ops.LOAD, dtype, (memory(number, size, dtype), view(plain(size)), where))


def store(number: int, value: UOp) -> UOp:
    shape = shape_of(value)
    size = math.prod(vmax(s) for s in shape)
    buffer = memory(number, size, value.dtype)
    return UOp(Ops.STORE, dtypes.void, (buffer, view(plain(*shape)), value))


def scatter(number: int, size: int, value: UOp, where: UOp, combine: Ops | None = None) -> UOp:
    buffer = memory(number, size, value.dtype)
    return UOp(Ops.STORE, dtypes.void, (buffer, view(plain(size)), value, where), combine)


def const(value: Any, like: UOp) -> UOp:
    """A constant of the shape and dtype of another value."""
    shape = shape_of(like)
    tracker = plain(*(1 for _ in shape)).expand(shape)
    return UOp(Ops.CONST, like.dtype, (view(tracker),), value)


def move(value: UOp, tracker: ShapeTracker) -> UOp:
    return UOp(Ops.VIEW, value.dtype, (value,), tracker)


def reduce(value: UOp, op: Ops, *axes: int) -> UOp:
    return UOp(Ops.REDUCE_AXIS, value.dtype, (value,), ReduceArg(op, axes))


def spread(value: UOp, *shape: Any) -> UOp:
    """A value whose axes of size 1 are repeated."""
    return move(value, plain(*shape_of(value)).expand(shape))


def sink(*stores: UOp) -> UOp:
    return UOp.sink(*stores)


# *** the seven


def add() -> UOp:
    return sink(store(0, load(1, plain(4, 4)) + load(2, plain(4, 4))))


def dot() -> UOp:
    a, b = load(1, plain(2), dtypes.int), load(2, plain(2), dtypes.int)
    return sink(store(0, reduce(a * b, Ops.ADD, 0)))


def softmax() -> UOp:
    x = load(1, plain(4, 5))
    shifted = (x - spread(reduce(x, Ops.MAX, 1), 4, 5)).alu(Ops.EXP)
    total = reduce(shifted, Ops.ADD, 1)
    return sink(store(0, shifted / spread(total, 4, 5)))


def value_and_statistic() -> UOp:
    """A row minus its mean, and the mean: outputs of shapes (3, 4) and (3, 1)."""
    x = load(2, plain(3, 4))
    total = reduce(x, Ops.ADD, 1)
    mean = total * const(0.25, total)
    return sink(store(0, x - spread(mean, 3, 4)), store(1, mean))


def padded() -> UOp:
    """One plain value and one computed value, both with a border of zeros."""
    border = plain(3, 4).pad(((1, 1), (1, 0)))
    x = load(1, plain(3, 4))
    return sink(store(0, load(2, border, size=12) + move(x + const(1.0, x), border)))


def gathered() -> UOp:
    """Rows of a table chosen by indices, some of them outside."""
    where = load(2, plain(3, 1).expand((3, 4)), dtypes.int)
    column = UOp(Ops.IOTA, dtypes.int, (view(plain(1, 4).expand((3, 4))),))
    return sink(store(0, gather(1, 20, where * const(4, where) + column)))


def symbolic_sum() -> UOp:
    n = Variable("n", 1, 10)
    x = load(1, plain(2, n), size=20)
    total = reduce(x, Ops.ADD, 1)
    return sink(store(0, total * move(UOp(Ops.CAST, F, (n,)), plain().reshape((1, 1)).expand((2, 1)))))


SEVEN = {
    "add": add,
    "dot": dot,
    "softmax": softmax,
    "value_and_statistic": value_and_statistic,
    "padded": padded,
    "gathered": gathered,
    "symbolic_sum": symbolic_sum,
}
#: What the symbolic ones are run with.
VARIABLES = {"symbolic_sum": {"n": 7}}

# *** running


def buffers_of(ast: UOp) -> list[UOp]:
    """The DEFINE_GLOBALs of a kernel, by number."""
    found = {node.arg: node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL}
    return [found[number] for number in sorted(found)]


def random_contents(ast: UOp, seed: int = 0, low: int = -4, high: int = 5) -> list[list[Any]]:
    """Small whole numbers, so that floating sums are exact in any order, for each buffer."""
    rng = np.random.default_rng(seed)
    return [
        [cast_value(value, b.dtype.base) for value in rng.integers(low, high, b.dtype.size).tolist()]
        for b in buffers_of(ast)
    ]


#: The interpreter as a device with a grid: threads in workgroups, vectors only in memory.
GRID = Target(
    "PYTHON", load_bytes=16, grid=True, has_local=True, local_bytes=1 << 14, group_threads=256,
    native_dtypes=frozenset(ALL_DTYPES), has_fma=True, dots=DOTS,
)  # fmt: skip


def opened(device: str | Target) -> CompiledDevice:
    """A device; "AARCH64" is an emulated processor, "GRID", or a Target, the interpreter with workgroups."""
    if device == "AARCH64":
        return ARM64()
    if isinstance(device, str) and device != "GRID":
        return Device[device]
    grid = PythonDevice("PYTHON")
    grid._renderer = PythonRenderer(GRID if isinstance(device, str) else device)
    return grid


def run(
    ast: UOp, device: str | Target, contents: Sequence[Sequence[Any]], variables: Any = None, opts: Any = ()
) -> list[list[Any]]:
    """What a compiled kernel leaves in the buffers it writes; without optimization unless `opts` says."""
    found = left_by(ast, device, contents, variables, opts)
    return [found[number] for number in sorted({store.src[0].arg for store in ast.src})]


def left_by(
    ast: UOp, device: str | Target, contents: Sequence[Sequence[Any]], variables: Any = None, opts: Any = ()
) -> list[list[Any]]:
    """What is in all of a kernel's buffers after it: also in the one that its CHECKs report in."""
    there = opened(device)
    spec = compile_kernel(ast, there.renderer, opts)
    program = there.load(spec, there.compile(spec))
    buffers = []
    for node, values in zip(buffers_of(ast), contents, strict=True):
        buffer = Buffer(there.name, node.dtype.size, node.dtype.base).allocate()
        numbers = in_memory(values, node.dtype.base)
        buffer.copyin(memoryview(numbers).cast("B"))
        buffers.append(buffer)
    values = tuple((variables or {})[v.arg[0]] for v in spec.vars)
    program(tuple(buffer._buf for buffer in buffers), values, wait=True)
    return [buffer.numpy().reshape(-1).tolist() for buffer in buffers]


def in_memory(values: Sequence[Any], dtype: DType) -> Any:
    """Numbers as they lie in a buffer: of bfloat16 and fp8 their bits."""
    if dtype.fmt is None:
        return np.array([to_bits(value, dtype) for value in values], f"uint{8 * dtype.itemsize}")
    return np.array(values, np.bool_ if dtype is dtypes.bool else np.dtype(dtype.fmt))


def equal(a: Sequence[Any], b: Sequence[Any], tolerance: float = 0.0) -> bool:
    """Whether two outputs agree: NaN with NaN, and numbers to a relative tolerance."""
    for x, y in zip(a, b, strict=True):
        if x == y or (x != x and y != y):
            continue
        with contextlib.suppress(OverflowError):
            if tolerance and abs(x - y) <= tolerance * max(abs(x), abs(y), 1.0):
                continue
        return False
    return True

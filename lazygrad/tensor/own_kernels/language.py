"""The words of a kernel's function: loops, branches, memory of its own, reductions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...dtype import DType, default_float, dtypes, sum_acc_dtype, to_dtype
from ...ir import index
from ...ir.args import Array, AxisType
from ...ir.ops import ANY_ORDER, Ops, start_value
from ...ir.uop import UOp
from .arrays import KernelArray, Output, Register
from .recording import Block, KernelError, Recorder, recorder
from .values import Value, as_condition, binary, function, index_of, made, value_of, where


class Language:
    """What a kernel's function calls, as `kernel.range` and so on."""

    LOOPS: tuple[type, ...] = ()
    where = staticmethod(where)
    exp, exp2, log, log2 = (staticmethod(function(name)) for name in ("exp", "exp2", "log", "log2"))
    sqrt, rsqrt, sin, cos = (staticmethod(function(name)) for name in ("sqrt", "rsqrt", "sin", "cos"))
    tanh, erf, sigmoid, relu = (staticmethod(function(name)) for name in ("tanh", "erf", "sigmoid", "relu"))
    abs, floor, ceil, trunc = (staticmethod(function(name)) for name in ("abs", "floor", "ceil", "trunc"))

    # *** loops and branches

    @staticmethod
    def range(start: Any, stop: Any = None, step: int = 1) -> Iterator[Value]:
        """A loop, in order: `for i in kernel.range(n)`, with Python's meaning of start, stop and step.

        Start and stop may be indices of other loops or be computed; the step is a number. Python's own
        `range` writes the body out once for each of its numbers.
        """
        if stop is None:
            start, stop = 0, start
        return _Loop(start, stop, step)

    @staticmethod
    def grid(*sizes: int) -> Iterator[Any]:
        """The places of a kernel, done in any order and side by side: `for i, j in kernel.grid(n, m)`.

        On a GPU each place is a thread; on a processor its cores share them. A kernel has one grid at most.
        """
        return _Grid(sizes)

    @staticmethod
    def threads(size: int) -> Iterator[Value]:
        """The threads of a workgroup, inside of a grid whose places are workgroups then:

        for b in kernel.grid(blocks):
            tile = kernel.shared(256)
            for t in kernel.threads(256):
                tile[t] = x[b * 256 + t]
                kernel.barrier()
                ...
        """
        return _Threads(size)

    @staticmethod
    def barrier() -> None:
        """All threads of the workgroup come here before any goes on: what they stored in `kernel.shared`
        memory is there for all. It stands in loops that turn as often for each thread, and in no `when`.
        """
        recorder().barrier()

    @staticmethod
    @contextmanager
    def when(condition: Any) -> Iterator[None]:
        """`with kernel.when(c):` does what is inside only where c holds."""
        if isinstance(condition, bool):
            condition = value_of(condition)
        here = recorder()
        asked = as_condition(condition)
        with opened_branch(here, asked.node):
            yield
        here.block.branch = asked.node

    @staticmethod
    @contextmanager
    def otherwise() -> Iterator[None]:
        """`with kernel.otherwise():` right behind a `when`: where its condition did not hold."""
        here = recorder()
        asked = here.block.branch
        if asked is None or not isinstance(here.block.items[-1], Block):
            raise KernelError("kernel.otherwise() stands right behind a `with kernel.when(...)`")
        with opened_branch(here, index.logical_not(asked)):
            yield
        here.block.branch = None

    # *** memory

    @staticmethod
    def zeros(*shape: Any, dtype: DType | str | None = None) -> Output:
        """An array that the kernel makes, and returns. What it does not store is 0."""
        return _output(_sizes(shape), default_float() if dtype is None else to_dtype(dtype), ("fill", 0))

    @staticmethod
    def full(shape: Any, value: float, dtype: DType | str | None = None) -> Output:
        """An array that the kernel makes, which begins with a number everywhere."""
        kind = value_of(value).dtype if dtype is None else to_dtype(dtype)
        return _output(_sizes((shape,)), kind, ("fill", value))

    @staticmethod
    def zeros_like(x: KernelArray, dtype: DType | str | None = None) -> Output:
        """An array that the kernel makes, of the shape and dtype of another. What it does not store is 0."""
        return _output(x.shape, x.dtype if dtype is None else to_dtype(dtype), ("fill", 0))

    @staticmethod
    def copy(x: KernelArray, dtype: DType | str | None = None) -> Output:
        """An array that the kernel makes, which begins with the elements of an input."""
        if not isinstance(x, KernelArray) or x.input is None:
            raise KernelError("kernel.copy copies an input of the kernel")
        return _output(x.shape, x.dtype if dtype is None else to_dtype(dtype), ("copy", x.input))

    @staticmethod
    def local(value: Any = 0.0, dtype: DType | str | None = None) -> Register:
        """One number that may change, of this place of the grid: `r.set(v)`, `r += v`. It begins anew each
        time that this line is reached.
        """
        begin = value_of(value)
        kind = _whole(begin.dtype) if dtype is None else to_dtype(dtype)
        made = Register("the local", recorder().memory(kind, 1), kind, ())
        made.set(begin)
        return made

    @staticmethod
    def array(*shape: Any, dtype: DType | str | None = None, fill: Any = 0) -> KernelArray:
        """Memory of this place of the grid, filled with a number each time that this line is reached."""
        kind = default_float() if dtype is None else to_dtype(dtype)
        sizes = _sizes(shape)
        made = KernelArray("the array", recorder().memory(kind, _count(sizes)), kind, sizes)
        flat = KernelArray("the array", made.memory, kind, (made.size,))
        for i in _Loop(0, made.size, 1):
            flat[i] = fill
        return made

    @staticmethod
    def shared(*shape: Any, dtype: DType | str | None = None) -> KernelArray:
        """Memory that the threads of a workgroup share; it begins with anything."""
        here = recorder()
        if here.threads is not None and here.threads.open:
            raise KernelError("kernel.shared is made before the threads that share it")
        kind = default_float() if dtype is None else to_dtype(dtype)
        sizes = _sizes(shape)
        return KernelArray("the shared array", here.memory(kind, _count(sizes), True), kind, sizes)

    # *** reductions

    @staticmethod
    def sum(values: Iterable[Any]) -> Value:
        """`kernel.sum(x[i, k] * y[k, j] for k in kernel.range(n))`; whole numbers are summed as in Tensor."""
        return _reduced(Ops.ADD, values)

    @staticmethod
    def prod(values: Iterable[Any]) -> Value:
        """The product over a loop, as `kernel.sum` sums."""
        return _reduced(Ops.MUL, values)

    @staticmethod
    def max(values: Iterable[Any]) -> Value:
        """The greatest over a loop, as `kernel.sum` sums; NaN where there is one."""
        return _reduced(Ops.MAX, values)

    @staticmethod
    def min(values: Iterable[Any]) -> Value:
        """The least over a loop, as `kernel.sum` sums; NaN where there is one."""
        return _reduced(Ops.MIN, values)

    @staticmethod
    def maximum(a: Any, b: Any) -> Value:
        return binary(Ops.MAX, a, b)

    @staticmethod
    def minimum(a: Any, b: Any) -> Value:
        return binary(Ops.MIN, a, b)


# *** loops


class _Loop(Iterator[Value]):
    """One turn, with a symbol for its index; the loop is closed when the next turn is asked for."""

    kind = AxisType.LOOP

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        if not isinstance(step, int) or isinstance(step, bool) or step == 0:
            raise KernelError(f"the step of kernel.range must be a whole number other than 0, not {step!r}")
        self.start, self.step = _index_of(start), step
        first, last = self.start.node, _index_of(stop).node
        turns = last - first if step > 0 else first - last
        if abs(step) > 1:
            turns = index.floordiv(turns + (abs(step) - 1), index.const(abs(step)))
        self.iterations, self.block = turns, None  # type: tuple[UOp, Block | None]

    def __next__(self) -> Value:
        here = recorder()
        if self.block is not None:
            here.close(self.block)
            raise StopIteration
        self.block = here.open_loop(self.iterations, AxisType.LOOP)
        assert self.block.opener is not None
        return Value(self.start.node + self.block.opener * index.const(self.step), self.block)


class _Grid(Iterator[Any]):
    """The loops of a grid, one in the other."""

    kind = AxisType.GLOBAL

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        self.sizes = _sizes(sizes)
        self.blocks: list[Block] = []

    @property
    def block(self) -> Block | None:
        return self.blocks[-1] if self.blocks else None

    def __next__(self) -> Any:
        here = recorder()
        if self.blocks:
            for block in reversed(self.blocks):
                here.close(block)
            raise StopIteration
        if here.grid is not None:
            raise KernelError(
                f"{here.name} has a grid already, at {here.grid.line}: a kernel has one; use kernel.range "
                "for a loop in order, or a second kernel"
            )
        if here.block is not here.root:
            raise KernelError("kernel.grid stands outside of all loops and branches: inside use kernel.range")
        self.blocks = [here.open_loop(index.const(size), self.kind) for size in self.sizes or (1,)]
        here.grid = self.blocks[0]
        places = tuple(Value(block.opener, block) for block in self.blocks if block.opener is not None)
        return places[0] if len(self.sizes) == 1 else places if self.sizes else ()


class _Threads(Iterator[Value]):
    """The loop of the threads of a workgroup."""

    kind = AxisType.LOCAL

    def __init__(self, size: int) -> None:
        (self.size,) = _sizes((size,))
        self.block: Block | None = None

    def __next__(self) -> Value:
        here = recorder()
        if self.block is not None:
            here.close(self.block)
            raise StopIteration
        if here.threads is not None:
            raise KernelError(
                f"{here.name} has threads already, at {here.threads.line}: a kernel has one such loop"
            )
        if any(block.kind is not AxisType.GLOBAL for block in here.block.around() if block is not here.root):
            raise KernelError("kernel.threads stands in the grid, outside of other loops and branches")
        self.block = here.threads = here.open_loop(index.const(max(self.size, 1)), AxisType.LOCAL)
        assert self.block.opener is not None
        return Value(self.block.opener, self.block)


Language.LOOPS = (_Loop, _Grid, _Threads)


def _index_of(x: Any) -> Value:
    value = value_of(x, dtypes.index)
    if not dtypes.is_int(value.dtype):
        raise KernelError(f"kernel.range counts whole numbers, not {value.dtype}")
    return value.like(index_of(value))


@contextmanager
def opened_branch(here: Recorder, condition: UOp) -> Iterator[None]:
    """What is recorded inside is done where the condition holds."""
    block = here.open(UOp(Ops.IF, dtypes.void, (condition,), here.number("if")))
    yield
    here.close(block)


# *** memory


def _sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    sizes = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise KernelError(f"sizes must be whole numbers that Python knows, not {size!r}")
    return sizes


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        raise KernelError(f"memory of shape {sizes} has no elements")
    return count


def _output(shape: tuple[int, ...], dtype: DType, begin: tuple[str, Any]) -> Output:
    here = recorder()
    if here.block is not here.root:
        raise KernelError("what a kernel makes is made outside of its loops")
    number = len(here.outputs)
    here.outputs.append(Array(dtype, shape))
    here.begins.append(begin)
    count = 1
    for size in shape:
        count *= size
    return Output(number, UOp(Ops.DEFINE_GLOBAL, dtype.ptr(count), (), number), dtype, shape)


def _whole(dtype: DType) -> DType:
    return dtypes.int64 if dtype is dtypes.index else dtype


# *** reductions


def _reduced(op: Ops, values: Iterable[Any]) -> Value:
    """A local that each turn of the loops is added to, and its value behind them."""
    here = recorder()
    outer, place = here.block, len(here.block.items)
    turns = iter(values)
    try:
        given = value_of(next(turns))
    except StopIteration:
        raise KernelError("a reduction goes over a loop: kernel.sum(x[k] for k in kernel.range(n))") from None
    if here.block is outer:
        raise KernelError("a reduction goes over a loop: kernel.sum(x[k] for k in kernel.range(n))")
    dtype = _whole(given.dtype)
    kind = sum_acc_dtype(dtype) if op in (Ops.ADD, Ops.MUL) else dtype
    if kind.itemsize < 4 and dtypes.is_float(kind):
        kind = dtypes.float32
    if dtypes.is_float(dtype) is False and kind is dtypes.bool:
        kind = dtypes.int32
    here.counts["local"] += 1
    memory = UOp(Ops.DEFINE_LOCAL, kind.ptr(1), (), here.counts["local"] - 1)
    here.owners[memory] = outer
    total = Register("the sum", memory, kind, ())
    start = UOp(Ops.INDEX, memory.dtype, (memory, index.const(0)))
    begin = UOp.const(kind, start_value(op, kind))
    outer.items.insert(place, UOp(Ops.STORE, dtypes.void, (start, begin), here.number("store")))
    added = given.cast(kind)
    if op is Ops.ADD and dtypes.is_float(kind):
        if added.node.op is Ops.MUL:
            added = added.like(added.node.replace(arg=ANY_ORDER))
        before = total._value()
        total.set(made(UOp(Ops.ADD, kind, (before.node, added.node), ANY_ORDER), before, added))
    else:
        total.set(binary(op, total, added))
    if next(turns, None) is not None:
        raise KernelError(
            "a reduction goes over kernel.range; Python's own range gives several values to add up"
        )
    result = total._value()
    return result.cast(dtype) if dtypes.is_float(dtype) else result

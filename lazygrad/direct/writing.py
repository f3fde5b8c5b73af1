"""Writing a linear program (form 7) by hand: loops, loads, stores, and vectors where the target has them.

A value that depends on numbers and loop counters alone is written in the outermost loop that knows them. A
load is written where it is asked for, once for each time it is: memory may have changed since the last one.
An accumulator is what it was assigned last; an expression of one is written where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ..dtype import DType, dtypes
from ..ir.args import AxisType, Prefetch, RangeArg
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Renderer
from ..target import TensorCore

#: A place in memory, a bound of a loop: known now or when the kernel runs.
Int = UOp | int


class _Block:
    """An open loop or branch: its steps so far, and what they made."""

    def __init__(self) -> None:
        self.steps: list[UOp] = []
        self.made: list[UOp] = []


class Program:
    """The program while it is written, on floats of one dtype.

    memories  the kernel's buffers, and its Variables
    """

    def __init__(self, memories: list[UOp], dtype: DType, renderer: Renderer) -> None:
        self.dtype, self.renderer, self.target = dtype, renderer, renderer.target
        arrays = [memory for memory in memories if memory.op is Ops.DEFINE_GLOBAL]
        great = any(memory.dtype.size > 1 << 30 for memory in arrays)  # type: ignore[attr-defined]
        self.index_dtype = dtypes.int64 if great else dtypes.int32
        self.blocks = [_Block()]
        self.level: dict[UOp, int] = dict.fromkeys(memories, 0)
        self.blocks[0].steps += memories
        self.readers: dict[UOp, list[UOp]] = {}  # accumulator → what was made of it
        self.reads: dict[UOp, frozenset[UOp]] = {}  # what was made of accumulators → these
        self.ranges = self.loads = self.accumulators = self.memories = 0
        self.has_fma = renderer.supports(Ops.MULACC, dtype)

    def program(self) -> list[UOp]:
        """The list; constants and memory come first."""
        (block,) = self.blocks
        first = (Ops.CONST, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)
        return sorted(block.steps, key=lambda node: node.op not in first)

    # *** numbers

    def integer(self, value: Int) -> UOp:
        return UOp.const(self.index_dtype, value) if isinstance(value, int) else value

    def number(self, value: float, lanes: int = 1) -> UOp:
        return UOp.const(self.dtype.vec(lanes), (value,) * lanes if lanes > 1 else value)

    def float_of(self, value: Int) -> UOp:
        return self.integer(value).cast(self.dtype)

    def index_of(self, value: UOp) -> UOp:
        """A float that holds a whole number, as a place."""
        return value.cast(self.index_dtype)

    def splat(self, value: UOp, lanes: int) -> UOp:
        """The number in every lane."""
        return UOp(Ops.VECTORIZE, value.dtype.vec(lanes), (value,) * lanes) if lanes > 1 else value

    def lane(self, value: UOp, lane: int) -> UOp:
        return UOp(Ops.GEP, value.dtype.scalar_type, (value,), (lane,)) if value.dtype.count > 1 else value

    def fma(self, a: UOp, b: UOp, c: UOp) -> UOp:
        """a·b + c."""
        return UOp(Ops.MULACC, c.dtype, (a, b, c)) if self.has_fma else a * b + c

    def abs(self, value: UOp) -> UOp:
        return (value < 0.0).where(-value, value)

    def sqrt(self, value: UOp) -> UOp:
        return value.alu(Ops.SQRT)

    def sum_of_lanes(self, value: UOp) -> UOp:
        """Halves are added until one is left."""
        while value.dtype.count > 1:
            value = self.halves(value)
        return value

    def halves(self, value: UOp) -> UOp:
        """The sum of both halves of a vector."""
        count = value.dtype.count
        half, dtype = count // 2, value.dtype.scalar_type.vec(count // 2)
        low = UOp(Ops.GEP, dtype, (value,), tuple(range(half)))
        return low + UOp(Ops.GEP, dtype, (value,), tuple(range(half, count)))

    # *** steps

    def let(self, root: UOp) -> UOp:
        """Write a value here, after what it is made of."""
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self.level:
                stack.pop()
                continue
            missing = [s for s in node.src if s not in self.level]
            if missing:
                stack += missing
                continue
            stack.pop()
            read = frozenset[UOp]().union(*[self.reads[s] for s in node.src if s in self.reads])
            if read:
                self.reads[node] = read
                for acc in read:
                    self.readers[acc].append(node)
            level = len(self.blocks) - 1 if read else max([self.level[s] for s in node.src], default=0)
            self._write(node, level)
        return root

    def _write(self, node: UOp, level: int | None = None) -> UOp:
        level = len(self.blocks) - 1 if level is None else level
        self.level[node] = level
        self.blocks[level].steps.append(node)
        self.blocks[level].made.append(node)
        return node

    def _index(self, memory: UOp, place: Int) -> UOp:
        return self.let(UOp(Ops.INDEX, memory.dtype, (memory, self.integer(place))))

    def load(self, memory: UOp, place: Int, lanes: int = 1) -> UOp:
        """What memory holds now."""
        self.loads += 1
        index = self._index(memory, place)
        return self._write(UOp(Ops.LOAD, memory.dtype.base.vec(lanes), (index,), self.loads))

    def load_word(self, memory: UOp, place: Int) -> UOp:
        """As many neighbours as a word of 4 bytes holds."""
        self.loads += 1
        return self._write(UOp(Ops.LOAD, dtypes.uint32, (self._index(memory, place),), self.loads))

    def store(self, memory: UOp, place: Int, value: UOp) -> None:
        index = self._index(memory, place)
        self._write(UOp(Ops.STORE, dtypes.void, (index, self.let(value)), self._serial()))

    def prefetch(self, memory: UOp, place: Int, writes: bool = False) -> None:
        """Ask for what lies there, to be read or written soon; it need not be in the memory."""
        if self.renderer.supports(Ops.PREFETCH, self.dtype):
            asked = Prefetch(writes, self._serial())
            self._write(UOp(Ops.PREFETCH, dtypes.void, (self._index(memory, place),), asked))

    def barrier(self) -> None:
        """The threads of a workgroup wait for each other, and see what each of them stored."""
        self._write(UOp(Ops.BARRIER, dtypes.void, (), self._serial()))

    def _serial(self) -> int:
        self.loads += 1
        return self.loads

    def scratch(self, size: int, shared: bool = False, dtype: DType | None = None) -> UOp:
        """Memory for so many numbers that ends with the kernel; that of a workgroup, if it is shared."""
        self.memories += 1
        kind = (dtype or self.dtype).ptr(size, local=shared)
        memory = UOp(Ops.DEFINE_LOCAL, kind, (), self.memories - 1)
        self.blocks[0].steps.append(memory)
        self.level[memory] = 0
        return memory

    def accumulator(self, start: UOp) -> UOp:
        """A value that `assign` changes."""
        self.accumulators += 1
        arg = (self.accumulators,)
        loop = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 0),) * 2, RangeArg(-1, AxisType.LOOP))
        acc = UOp(Ops.DEFINE_ACC, start.dtype, (self.let(start), loop), arg)
        self.readers[acc], self.reads[acc] = [], frozenset((acc,))
        return self._write(acc)

    def assign(self, accumulator: UOp, value: UOp) -> None:
        self.assign_all({accumulator: value})

    def assign_all(self, values: dict[UOp, UOp]) -> None:
        """Accumulators become these values, all of what they were before."""
        for value in values.values():
            self.let(value)
        for accumulator, value in values.items():
            self._write(UOp(Ops.ASSIGN, accumulator.dtype, (accumulator, value), self._serial()))
        self._forget(values)

    def _forget(self, accumulators: Iterable[UOp]) -> None:
        """What is made of them again is another value."""
        for accumulator in accumulators:
            for node in self.readers[accumulator]:
                self.level.pop(node, None)
                self.reads.pop(node, None)
            self.readers[accumulator] = []

    def multiply(self, sums: list[UOp], words: list[UOp], core: TensorCore) -> None:
        """Add a product of matrices to the sums of a thread, which are accumulators (WMMA)."""
        for word in words:
            self.let(word)
        self._write(UOp(Ops.WMMA, dtypes.void, (*sums, *words), core))
        self._forget(sums)

    # *** copies into memory of a workgroup

    def fetch(self, to: tuple[UOp, UOp], source: tuple[UOp, UOp], count: int, valid: UOp | None) -> None:
        """Copy so many neighbours from a place in memory to one in that of the workgroup; zeros, where they
        are not valid. They are on the way until `wait`.
        """
        access = self._index(*source)
        if valid is not None:
            access = self.let(access.replace(src=(*access.src, self.let(valid))))
        self._write(UOp(Ops.FETCH, dtypes.void, (self._index(*to), access), count))

    def commit(self) -> None:
        """The copies so far that are in no group become one."""
        self._write(UOp(Ops.COMMIT, dtypes.void, (), self._serial()))

    def wait(self, groups: int) -> None:
        """Wait for a thread's own copies, but for those of so many last groups."""
        self._write(UOp(Ops.WAIT, dtypes.void, (), groups))

    # *** loops and branches

    @contextmanager
    def loop(self, start: Int, end: Int, kind: AxisType = AxisType.LOOP) -> Iterator[UOp]:
        """The steps inside, for each integer from `start` to below `end`."""
        start, end = self.let(self.integer(start)), self.let(self.integer(end))
        self.ranges += 1
        counter = UOp(Ops.RANGE, self.index_dtype, (start, end), RangeArg(self.ranges - 1, kind))
        with self._inside(counter, Ops.ENDRANGE):
            yield counter

    @contextmanager
    def when(self, condition: UOp) -> Iterator[None]:
        """The steps inside, where this holds."""
        opened = UOp(Ops.IF, dtypes.void, (self.let(condition),), self._serial())
        with self._inside(opened, Ops.ENDIF):
            yield

    @contextmanager
    def _inside(self, opened: UOp, closing: Ops) -> Iterator[None]:
        self.blocks.append(_Block())
        self._write(opened)
        yield
        block = self.blocks.pop()
        for node in block.made:
            self.level.pop(node, None)
        outer = self.blocks[-1]
        outer.steps += block.steps
        outer.steps.append(UOp(closing, dtypes.void, (opened,)))

    def tiles(self, start: Int, end: Int, size: int, body: Callable[[UOp, int], None]) -> None:
        """`body(place, size)` for tiles of so many places, and `body(place, 1)` for those that are left."""
        divides = isinstance(start, int) and isinstance(end, int) and (end - start) % size == 0
        start, end = self.integer(start), self.integer(end)
        if size > 1:
            shift = size.bit_length() - 1
            count = self.let((end - start) >> shift)
            with self.loop(0, count) as tile:
                body(self.let(start + (tile << shift)), size)
            if divides:
                return
            start = self.let(start + (count << shift))
        with self.loop(start, end) as place:
            body(place, 1)

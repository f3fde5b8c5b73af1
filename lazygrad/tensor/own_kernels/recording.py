"""The steps of a kernel while its function runs: loops and branches that are open, what was done in them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.args import Array, AxisType, RangeArg
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..trace import user_line

#: So many steps back it is looked for what memory holds.
FORGOTTEN = 16


class KernelError(ValueError):
    """A kernel's function does what a kernel cannot."""


class Block:
    """A loop or branch, or the whole kernel: its steps in order, some of them Blocks.

    opener  the RANGE or IF; None of the whole kernel
    line    where the user opened it
    """

    def __init__(self, opener: UOp | None, parent: Block | None) -> None:
        self.opener, self.parent = opener, parent
        self.items: list[UOp | Block] = []
        self.open = True
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.line = user_line()
        self.branch: UOp | None = None  # the condition of the `when` that ended last here
        self.barriers = self.left = False  # whether a loop has a barrier, or a `break`

    @property
    def kind(self) -> AxisType | None:
        """What a loop is; None of a branch."""
        loop = self.opener is not None and self.opener.op is Ops.RANGE
        return self.opener.arg.kind if loop and self.opener is not None else None

    def around(self) -> Iterator[Block]:
        """This block and those that it stands in, the innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def steps(self) -> Iterator[UOp]:
        """All steps inside, in order, with those that open and close blocks."""
        for item in self.items:
            if not isinstance(item, Block):
                yield item
            elif item.opener is not None:
                yield item.opener
                yield from item.steps()
                closing = Ops.ENDRANGE if item.opener.op is Ops.RANGE else Ops.ENDIF
                yield UOp(closing, dtypes.void, (item.opener,))


class Recorder:
    """What the function of a kernel has done so far.

    begins   for each output what it begins with: an input's number, or a number for all its elements
    known    what an earlier run of the function found out: dtypes of variables, which `while`s are loops
    markers  where memory that has no dtype yet is to begin
    """

    def __init__(self, name: str, inputs: list[Array], known: dict[Any, Any] | None = None) -> None:
        self.name, self.inputs = name, inputs
        self.known = {} if known is None else known
        self.markers: list[tuple[Block, UOp]] = []
        self.outputs: list[Array] = []
        self.begins: list[tuple[str, Any]] = []
        self.block = self.root = Block(None, None)
        self.grid: Block | None = None
        self.threads: Block | None = None
        self.counts = {
            "load": 0,
            "store": 0,
            "range": 0,
            "if": 0,
            "local": 0,
            "barrier": 0,
            "variable": 0,
            "marker": 0,
            "break": 0,
        }
        self.indices: dict[UOp, tuple[UOp, ...]] = {}  # INDEX of an input → the place on each axis
        self.doubts: list[Any] = []  # accesses that may be outside: `outside.py`
        self.owners: dict[UOp, Block] = {}  # memory of the kernel's own → where it was made

    def number(self, what: str) -> int:
        """The next one of a kind."""
        self.counts[what] += 1
        return self.counts[what] - 1

    # *** blocks

    def open(self, opener: UOp) -> Block:
        block = Block(opener, self.block)
        self.block.items.append(block)
        self.block = block
        return block

    def close(self, block: Block) -> None:
        if self.block is not block:
            raise KernelError(
                f"{self._what(self.block)} did not run to its end before the one around it ended: "
                "no `break` or `return` inside; use `with kernel.when(...)`"
            )
        assert block.parent is not None
        block.open = False
        self.block = block.parent

    def open_loop(self, size: UOp, kind: AxisType) -> Block:
        loop = UOp(Ops.RANGE, dtypes.index, (size,), RangeArg(self.number("range"), kind))
        return self.open(loop)

    def finish(self) -> None:
        """The function has returned: everything must be closed."""
        for holder, marker in self.markers:
            if marker in holder.items:
                holder.items.remove(marker)
        if self.block is not self.root:
            raise KernelError(
                f"{self.name}: {self._what(self.block)} did not run to its end: a kernel has no `break`, and "
                "no `return` inside of a loop; use `with kernel.when(...)`"
            )
        for block, word in ((self.grid, "grid"), (self.threads, "threads")):
            for item in self.root.items if block is not None else ():
                for step, around in _steps_in(item, ()):
                    memory = step.src[0].src[0] if step.op is Ops.STORE else None
                    if memory is not None and memory.op is Ops.DEFINE_GLOBAL and block not in around:
                        raise KernelError(
                            f"{self.name} stores into output {memory.arg} outside of its {word}: "
                            "all its points would do that; store inside"
                        )

    def _what(self, block: Block) -> str:
        kind = "loop" if block.kind is not None else "`when`"
        return f"the {kind} at {block.line}"

    # *** steps

    def add(self, step: UOp) -> UOp:
        self.block.items.append(step)
        return step

    def load(self, access: UOp, dtype: DType) -> UOp:
        found = self._known_value(access) if access.src[0] in self.owners else None
        return found if found is not None else self.add(UOp(Ops.LOAD, dtype, (access,), self.number("load")))

    def _known_value(self, access: UOp) -> UOp | None:
        """What an element of the kernel's own memory is, if this block loaded or stored it just now."""
        memory: Any = access.src[0]
        if memory.dtype.local or len(access.src) > 2:
            return None
        for item in self.block.items[: -1 - FORGOTTEN : -1]:
            if isinstance(item, Block) or item.op is Ops.BARRIER:
                return None
            if item.op in (Ops.LOAD, Ops.STORE) and item.src[0] is access:
                return item if item.op is Ops.LOAD else item.src[1]
            if item.op is Ops.STORE and item.src[0].src[0] is memory:
                return None
        return None

    def store(self, access: UOp, value: UOp) -> None:
        self.add(UOp(Ops.STORE, dtypes.void, (access, value), self.number("store")))

    def barrier(self) -> None:
        threads = self.threads
        if threads is None or not threads.open:
            raise KernelError("kernel.barrier() stands inside of kernel.threads")
        for block in self.block.around():
            if block is threads:
                break
            block.barriers = True
            if block.left:
                raise KernelError(f"kernel.barrier() in the loop at {block.line}, which has a `break`")
            if block.kind is None or block.opener is None:
                raise KernelError(
                    "kernel.barrier() in a `when`: threads for which it does not hold never come"
                )
            if any(node is threads.opener or node.op is Ops.LOAD for node in block.opener.src[0].toposort()):
                raise KernelError(
                    f"kernel.barrier() in the loop at {block.line}, whose number of iterations "
                    "depends on data or on the thread"
                )
        self.add(UOp(Ops.BARRIER, dtypes.void, (), self.number("barrier")))

    def leave(self, loop: Block) -> None:
        """`break`: the loop ends here; the step stands in it, or in branches there."""
        if loop.barriers:
            raise KernelError(
                f"`break` in the loop at {loop.line}, which has a kernel.barrier(): all threads wait for all"
            )
        loop.left = True
        self.add(UOp(Ops.BREAK, dtypes.void, (loop.opener,), self.number("break")))  # type: ignore[arg-type]

    def marked(self) -> tuple[Block, UOp]:
        """A place for a step that is known later."""
        marker = UOp(Ops.NOOP, dtypes.void, (), ("marker", self.number("marker")))
        self.add(marker)
        self.markers.append((self.block, marker))
        return self.markers[-1]

    def memory(self, dtype: DType, size: int, shared: bool = False) -> UOp:
        """Memory of the kernel's own: of each place of the grid, or shared by a workgroup."""
        made = UOp(Ops.DEFINE_LOCAL, dtype.ptr(size, local=shared), (), self.number("local"))
        self.owners[made] = self.block
        return made

    def does_nothing(self) -> bool:
        """Whether there is no place of the grid, or nothing to store."""
        if self.grid is None:
            return not any(array.size for array in self.outputs)
        block: Block | UOp | None = self.grid
        while isinstance(block, Block) and block.kind is AxisType.GLOBAL and block.opener is not None:
            if block.opener.src[0].arg == 0:
                return True
            block = next((item for item in block.items if isinstance(item, Block)), None)
        return not any(array.size for array in self.outputs)

    def begun(self) -> tuple[bool, ...]:
        """For each output, whether what it begins with counts: else all of it is stored before it is read."""
        return tuple([
            how == "copy" or not self._is_stored_whole(number)
            for number, (how, _) in enumerate(self.begins)
        ])  # fmt: skip

    def _is_stored_whole(self, number: int) -> bool:
        """Whether loops that always turn store each element before anything reads one."""
        for item in self.root.items:
            for step, around in _steps_in(item, ()):
                memory = step.src[0].src[0] if step.op in (Ops.LOAD, Ops.STORE) else None
                if memory is None or memory.op is not Ops.DEFINE_GLOBAL or memory.arg != number:
                    continue
                if step.op is Ops.LOAD:
                    return False
                if stored_loops(step, around, self.outputs[number].shape) is not None:
                    return not any(
                        later.op is Ops.LOAD and later.src[0].src[0] is memory
                        for later, _ in _steps_in(item, ())
                    )
        return False

    def sink(self) -> UOp:
        """All steps."""
        return UOp.sink(*self.root.steps())


def _steps_in(item: UOp | Block, around: tuple[Block, ...]) -> Iterator[tuple[UOp, tuple[Block, ...]]]:
    """The steps of an item in order, each with the blocks around it."""
    if not isinstance(item, Block):
        yield item, around
        return
    for inner in item.items:
        yield from _steps_in(inner, (*around, item))


def stored_loops(store: UOp, around: tuple[Block, ...], shape: tuple[int, ...]) -> list[UOp | None] | None:
    """The loop that walks each axis of an array of this shape (None: of size 1), where a STORE is done for
    each of its elements, whatever the data; None where that is not so.
    """
    access = store.src[0]
    loops = [block.opener for block in around if block.kind is not None and block.opener is not None]
    if len(access.src) > 2 or len(loops) < len(around):
        return None
    if any(loop.src[0].op is not Ops.CONST or loop.src[0].arg < 1 for loop in loops):
        return None
    terms, _ = index.terms_of(access.src[1])
    place, stride = index.const(0), 1
    found: list[UOp | None] = []
    for size in reversed(shape):
        loop = None
        if size != 1:
            loop = next(
                (m[0] for m, c in terms.items() if len(m) == 1 and c == stride and m[0] in loops), None
            )
            if loop is None or loop.src[0].arg != size:
                return None
            place = place + loop * stride
        found.append(loop)
        stride *= size
    return found[::-1] if place is access.src[1] else None


class _Current(threading.local):
    """The kernel whose function runs in this thread."""

    recorder: Recorder | None = None


_current = _Current()


def recorder() -> Recorder:
    """The kernel whose function runs."""
    found = _current.recorder
    if found is None:
        raise KernelError("kernel.range, kernel.grid and their like belong inside a function under @kernel")
    return found


def recording() -> bool:
    """Whether the function of a kernel runs."""
    return _current.recorder is not None


class running:
    """Within the block a kernel's function runs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> Recorder:
        if _current.recorder is not None:
            raise KernelError(
                f"{self.recorder.name} is called inside of kernel {_current.recorder.name}: a "
                "kernel's function calls plain functions; call a kernel with tensors"
            )
        _current.recorder = self.recorder
        return self.recorder

    def __exit__(self, *_: object) -> None:
        _current.recorder = None


def in_range(place: UOp, size: int) -> UOp:
    """Whether a place is inside of an axis: TRUE where that follows from its loops."""
    low = index.TRUE if _extreme(place, up=False) >= 0 else index.less(index.const(-1), place)
    high = index.TRUE if _extreme(place, up=True) < size else index.less(place, index.const(size))
    return index.all_of([low, high])


def _extreme(place: UOp, up: bool) -> int:
    """The greatest or least that a place can be: each loop at one of its ends, the innermost first, since its
    end may depend on those around it (`for i in range(j + 1, n)`).
    """
    while True:
        terms, _ = index.terms_of(place)
        loops = [
            m[0] for m in terms if len(m) == 1 and m[0].op is Ops.RANGE and m[0].src[0].op is not Ops.CONST
        ]
        loop = max(loops, key=lambda r: r.arg.id, default=None)
        if loop is None or any(loop in m for m in terms if len(m) > 1):
            return index.bounds(place)[up]
        coefficient = terms[(loop,)]
        end = loop.src[0] - 1 if (coefficient > 0) == up else index.const(0)
        place = place + (end - loop) * coefficient

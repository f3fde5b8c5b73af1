"""The body of a loop, planned: its kernels, and which memory each works on in which turn.

A value that is carried is written by one turn and read by the next. Where all of its values are wanted it
lies among them, and a turn reads what the one before wrote there; else two places take turns, and the last
turn writes the result. So nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dtype import DType
from ...ir.loop import Launch, Loop, LoopPlan, Slot, parameter
from ...ir.ops import ELEMENTWISE, TRANSFERS, Ops
from ...ir.uop import UOp
from ...ir.walks import device_of
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ..graph.requested import Request, nameable
from .arena import arrange
from .items import bind_values
from .template import Leaf, Memory, Output, Part, Template, version_of

#: Parts of the working memory begin at multiples of so many bytes.
ALIGNMENT = 64
#: Words for each place, and so many more, are what a native loop notes for itself.
WORD = 8


def plan_loop(loop: Loop, plan: Callable[[Request], Template], key: object) -> LoopPlan:
    """The planned body of a loop.

    plan  what plans the kernels of a graph; `key` says for what: the target, and whether kernels are fused
    """
    found = loop.plans.get(key)
    if found is None:
        found = loop.plans[key] = _Planner(loop, plan).planned()
    return found


def _stored(roots: Sequence[UOp]) -> list[UOp]:
    """The roots as nodes that have memory of their own, in their order.

    What is computed is stored as it is, and who needs it in the body reads or computes it as well. What is
    held, moved or a number, and a value that is a root already, is copied: with an argument of its own for
    each, since two roots of one value have two memories.
    """
    made: dict[UOp, None] = {}
    for number, root in enumerate(roots):
        node = root
        while node.op is Ops.RESHAPE:
            node = node.src[0]
        computed = node.op in ELEMENTWISE or node.op is Ops.REDUCE_AXIS
        if not computed or node in made or device_of(node) is None:
            node = UOp(Ops.CONTIGUOUS, root.dtype, (root,), ("loop", number))
        made[node] = None
    return list(made)


class _Planner:
    def __init__(self, loop: Loop, plan: Callable[[Request], Template]) -> None:
        self.loop = loop
        roots = _stored(loop.roots)
        asked = Request.of(roots)
        self.order = nameable(asked.order)
        self.template = plan(asked)
        numbers = {parameter(loop.device, n, p.array): n for n, p in enumerate(loop.params)}
        self.param_of = {at: numbers[node] for at, node in enumerate(self.order) if node in numbers}
        self.root_of = self._roots(roots)
        self.scratch, self.first_source = len(loop.outputs), len(loop.outputs) + 1
        #: the result that a root is: (its number, whether of all turns)
        self.result_of = {result.root: (n, result.stacked) for n, result in enumerate(loop.results)}
        self.offsets: dict[Output | int, int] = {}
        self.slots: dict[Slot, int] = {}

    def _roots(self, roots: list[UOp]) -> dict[Output, int]:
        """Output of a kernel → the root that it is."""
        number = {root: n for n, root in enumerate(roots)}
        results = [(output, self.order[at]) for at, output in self.template.results]
        found = {output: number[node] for output, node in results if node in number}
        if set(found.values()) != set(range(len(roots))):
            raise RuntimeError("a result of a loop's body has no memory")
        return found

    def planned(self) -> LoopPlan:
        loop = self.loop
        size = self._arrange()
        launches = []
        for kernel in self.template.kernels:
            if kernel.ast.op in TRANSFERS:
                raise NotImplementedError(
                    f"{loop.name}: a body that copies between devices, or joins more than 32 values, "
                    "is not implemented yet"
                )
            binds = [bind for bind in kernel.binds if isinstance(bind, UOp)]
            if len(binds) < len(kernel.binds):
                raise NotImplementedError(
                    f"{loop.name}: Variables in the body of a loop are not implemented yet"
                )
            places = [self._numbered(self._slot(memory)) for memory in (*kernel.outputs, *kernel.inputs)]
            values = bind_values(kernel.ast, [bind.unbind() for bind in binds])
            launches.append(Launch(kernel.ast, tuple(places), tuple(values.items())))
        most = max((len(launch.slots) + len(launch.values) for launch in launches), default=0)
        words = len(self.slots) + sum(len(launch.values) for launch in launches) + most
        outputs, inputs = loop.outputs, loop.inputs
        return LoopPlan.of(
            loop.name, loop.iterations, tuple(launches), tuple(self.slots), outputs, inputs, size,
            size + WORD * (words + 2 * len(launches) + 4),
        )  # fmt: skip

    def _numbered(self, place: Slot) -> int:
        return self.slots.setdefault(place, len(self.slots))

    # *** working memory

    def _arrange(self) -> int:
        """Give what lives within a turn, and second places of what is carried, offsets; how many bytes."""
        lives: dict[Output | int, list[int]] = {}
        kernels = self.template.kernels
        for number, kernel in enumerate(kernels):
            for memory in (*kernel.outputs, *kernel.inputs):
                version = version_of(memory)
                if isinstance(version, Output):
                    made = self._first(version)
                    if made not in self.root_of:
                        lives.setdefault(made, [number, number])[1] = number
        for root, (_, stacked) in self.result_of.items():
            if not stacked:
                lives[root] = [0, len(kernels)]
        sizes = [(first, last, self._bytes(memory)) for memory, (first, last) in lives.items()]
        offsets, size = arrange(sizes, ALIGNMENT)
        self.offsets = dict(zip(lives, offsets, strict=True))
        return size

    def _bytes(self, memory: Output | int) -> int:
        return memory.nbytes if isinstance(memory, Output) else self._root_bytes(memory)

    def _root_bytes(self, root: int) -> int:
        node = self.loop.roots[root]
        return _nbytes(shape_of(node), node.dtype)

    def _first(self, output: Output) -> Output:
        """The fresh output whose memory an output goes to."""
        while output.into is not None:
            if not isinstance(output.into, Output):
                raise NotImplementedError(
                    f"{self.loop.name}: a body that writes in place is not implemented yet"
                )
            output = output.into
        return output

    # *** places

    def _slot(self, memory: Memory) -> Slot:
        if isinstance(memory, Part):
            return self._slot(memory.of).moved(memory.offset, memory.size * memory.dtype.itemsize)
        if isinstance(memory, Leaf):
            return self._param(self.param_of[memory.number])
        made = self._first(memory)
        # a value that is begun in one memory and ends there is a root by its end
        ends = [end for end in self.root_of if self._first(end) is made]
        if ends:
            return self._output_slot(self.root_of[ends[0]])
        at = (self.scratch, self.offsets[made])
        return Slot(at, at, 0, self._bytes(made))

    def _output_slot(self, root: int) -> Slot:
        """Where a turn writes a root."""
        output, stacked = self.result_of[root]
        nbytes, turns = self._root_bytes(root), self.loop.iterations
        if stacked:
            begin, step = self._along(nbytes)
            return Slot((output, begin), (output, begin), step, nbytes)
        ends, other = (output, 0), (self.scratch, self.offsets[root])
        even, odd = (ends, other) if (turns - 1) % 2 == 0 else (other, ends)
        return Slot(even, odd, 0, nbytes)

    def _along(self, nbytes: int) -> tuple[int, int]:
        """(where parts of so many bytes begin, and how far it is to the next)."""
        return ((self.loop.iterations - 1) * nbytes, -nbytes) if self.loop.reverse else (0, nbytes)

    def _param(self, number: int) -> Slot:
        param = self.loop.params[number]
        source = self.first_source + param.first
        nbytes = _nbytes(param.shape, param.dtype)
        begin, step = self._along(nbytes)
        if param.kind == "whole":
            return Slot((source, 0), (source, 0), 0, nbytes)
        if param.kind == "slice":
            return Slot((source, begin), (source, begin), step, nbytes)
        if param.kind == "next":
            then = (self.first_source + param.then, begin + step)
            return Slot(then, then, step, nbytes, self.loop.iterations - 1, (source, 0))
        written = self._output_slot(param.then)
        array, begin = written.even
        if written.step:
            before = (array, begin - written.step)
            return Slot(before, before, written.step, nbytes, 0, (source, 0))
        return Slot(written.odd, written.even, 0, nbytes, 0, (source, 0))  # what the other turns write


def _nbytes(shape: object, dtype: DType) -> int:
    size = prod(shape)  # type: ignore[arg-type]
    assert isinstance(size, int)  # Tensor.scan takes known sizes
    return size * dtype.itemsize

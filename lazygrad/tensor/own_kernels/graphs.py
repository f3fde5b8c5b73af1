"""A kernel that only loads, computes, reduces and stores each element once, as a tensor graph.

Its steps are followed in order, with what each local holds as an expression: a loop that adds to a local is a
REDUCE, a `when` that sets one is a WHERE. What is stored in the end is an expression of indices and of
elements of inputs, and becomes whole arrays over these loops, its *frame*: an element `x[j, i + 1]` is x
permuted and shifted, one at a computed place a GATHER. So it fuses with its neighbours, has a gradient, and
is optimized like anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...config import CHECK
from ...dtype import cast_value, dtypes
from ...gradient import filled, reduce_axes
from ...ir import index
from ...ir.index import bounds
from ...ir.ops import ELEMENTWISE, REDUCTIONS, Ops, start_value
from ...ir.own import unguarded
from ...ir.rewrite import resolve
from ...ir.uop import UOp
from ...ir.walks import device_of
from ...shape import movement
from ...shape.rules import shape_of
from ..creation import iota
from ..indexing.addresses import checked
from .recording import Block, Recorder, stored_loops

#: A frame of more elements than this is left to the steps: a graph would compute what they skip.
MOST = 1 << 40
Frame = tuple[UOp, ...]


class Impure(Exception):
    """The steps are no graph."""


def graphs_of(recorder: Recorder, inputs: Sequence[UOp]) -> list[UOp] | None:
    """The node of each output, if the kernel is pure."""
    try:
        stored = _Follower(recorder).outputs()
        return [
            _Builder(recorder, inputs).array(value, loops, recorder.outputs[number].shape)
            for number, (value, loops) in enumerate(stored)
        ]
    except Impure:
        return None


# *** what is stored, as expressions


class _Follower:
    """Follows the steps; `holds` says what each local is now, `known` what each load of one gave."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.holds: dict[UOp, UOp] = {}
        self.known: dict[UOp, UOp] = {}
        self.stores: dict[int, tuple[UOp, Frame]] = {}

    def outputs(self) -> list[tuple[UOp, Frame]]:
        self._block(self.recorder.root, ())
        count = len(self.recorder.outputs)
        if not count or len(self.stores) != count:
            raise Impure
        return [self.stores[number] for number in range(count)]

    def _now(self, node: UOp) -> UOp:
        return index.substitute((node,), self.known)[node]

    def _block(self, block: Block, around: tuple[Block, ...]) -> None:
        for item in block.items:
            if not isinstance(item, Block):
                self._step(item, around)
            elif item.kind is None:
                self._branch(item)
            elif _stores_output(item):
                self._walked(item, around)
            else:
                self._reduction(item)

    def _step(self, step: UOp, around: tuple[Block, ...]) -> None:
        if step.op not in (Ops.LOAD, Ops.STORE):
            raise Impure
        memory = step.src[0].src[0]
        if memory.op is Ops.DEFINE_LOCAL:
            if memory.dtype.size != 1 or len(step.src[0].src) > 2:  # type: ignore[attr-defined]
                raise Impure
            if step.op is Ops.STORE:
                self.holds[memory] = self._now(step.src[1])
            elif memory in self.holds:
                self.known[step] = self.holds[memory]
            else:
                raise Impure
        elif step.op is Ops.STORE:
            loops = stored_loops(step, around, self.recorder.outputs[memory.arg].shape)
            if loops is None or memory.arg in self.stores or len(around) != sum(r is not None for r in loops):
                raise Impure
            self.stores[memory.arg] = self._now(step.src[1]), tuple([r for r in loops if r is not None])
        elif memory.arg >= 0:  # it reads what it makes
            raise Impure
        else:
            self.known[step] = self._now(step) if step.src[0] is not self._now(step.src[0]) else step

    def _walked(self, block: Block, around: tuple[Block, ...]) -> None:
        """A loop over outputs: what changes in it is its own."""
        before = dict(self.holds)
        self._block(block, (*around, block))
        for memory, value in before.items():
            if self.holds[memory] is not value:
                raise Impure
        self.holds = before

    def _branch(self, block: Block) -> None:
        """A `when`: what it sets is the old value elsewhere."""
        assert block.opener is not None
        condition, before = self._now(block.opener.src[0]), dict(self.holds)
        if _stores_output(block):
            raise Impure
        self._block(block, ())
        for memory, value in before.items():
            now = self.holds[memory]
            self.holds[memory] = value if now is value else condition.where(now, value)
        self.holds = {memory: self.holds[memory] for memory in before}

    def _reduction(self, block: Block) -> None:
        """A loop whose turns add to locals: what a local was before it, and a REDUCE."""
        assert block.opener is not None
        loop, before = block.opener, dict(self.holds)
        size = self._now(loop.src[0])
        if size is not loop.src[0]:
            raise Impure  # how often it turns depends on the data
        begun = {m: UOp(Ops.NOOP, m.dtype.base, (), ("before", m.arg, loop.arg)) for m in before}
        self.holds = dict(begun)
        self._block(block, ())
        changed = {m: self.holds[m] for m in before if self.holds[m] is not begun[m]}
        self.holds = before
        kept = {begun[m]: value for m, value in before.items() if m not in changed}
        for memory, value in changed.items():
            op, term = _added(value, begun[memory])
            term = index.substitute((term,), kept)[term]
            if not {begun[m] for m in changed}.isdisjoint(term.toposort()):
                raise Impure
            total = UOp(Ops.REDUCE, value.dtype, (term, loop), op)
            start = before[memory]
            identity = start.op is Ops.CONST and start.arg == start_value(op, value.dtype)
            self.holds[memory] = total if identity else start.alu(op, total)


def _added(value: UOp, before: UOp) -> tuple[Ops, UOp]:
    """A value as `before op term`."""
    if value.op is Ops.SUB and value.src[0] is before:
        return Ops.ADD, -value.src[1]
    if value.op in REDUCTIONS and before in value.src and value.dtype is not dtypes.index:
        left, right = value.src
        return value.op, right if left is before else left
    raise Impure


def _stores_output(block: Block) -> bool:
    return any(step.op is Ops.STORE and step.src[0].src[0].op is Ops.DEFINE_GLOBAL for step in block.steps())


# *** expressions as arrays


class _Builder:
    """Arrays over the loops of a frame; an index is a whole number of the dtype `counting`."""

    def __init__(self, recorder: Recorder, inputs: Sequence[UOp]) -> None:
        self.recorder, self.inputs = recorder, inputs
        self.device = next((device_of(node) for node in inputs), None)
        self.counting = dtypes.int32
        self.known: dict[tuple[UOp, Frame], UOp] = {}
        self.checked: set[UOp] = set()  # loads whose index is checked

    def array(self, value: UOp, frame: Frame, shape: tuple[int, ...]) -> UOp:
        nodes = value.toposort()
        if CHECK and CHECK.value != "nan":
            self.checked = unguarded([UOp.sink(value)])
        if any(
            node.dtype is dtypes.index and not -(1 << 31) <= bounds(node)[0] <= bounds(node)[1] < 1 << 31
            for node in nodes
        ):
            self.counting = dtypes.int64
        made = resolve((value, frame), self._below, self._made, self.known)
        return movement.reshape(made, shape)

    def _shape(self, frame: Frame) -> tuple[int, ...]:
        shape = tuple([max(bounds(loop.src[0])[1], 0) for loop in frame])
        count = 1
        for size in shape:
            count *= size
        if count > MOST:
            raise Impure
        return shape

    def _below(self, question: tuple[UOp, Frame]) -> list[tuple[UOp, Frame]]:
        node, frame = question
        if node.op is Ops.REDUCE:
            value, loop = node.src
            inside = (*frame, loop)
            condition = [] if loop.src[0].op is Ops.CONST else [(index.less(loop, loop.src[0]), inside)]
            return [(value, inside), *condition]
        if node.op is Ops.LOAD:
            access = node.src[0]
            return [] if self._moved(access, frame) is not None else [(s, frame) for s in access.src[1:]]
        if node.op in ELEMENTWISE:
            return [(s, frame) for s in node.src]
        return []

    def _made(self, question: tuple[UOp, Frame]) -> UOp:
        node, frame = question
        shape = self._shape(frame)
        dtype = self.counting if node.dtype is dtypes.index else node.dtype
        below = [self.known[asked] for asked in self._below(question)]
        if node.op is Ops.CONST:
            return filled(shape, dtype, cast_value(node.arg, dtype))
        if node.op is Ops.RANGE:
            if node not in frame:
                raise Impure
            axis = frame.index(node)
            counted = iota(shape[axis], dtype, self.device)  # type: ignore[arg-type]
            placed = movement.reshape(counted, tuple([s if a == axis else 1 for a, s in enumerate(shape)]))
            return movement.expand(placed, shape)
        if node.op is Ops.REDUCE:
            value = below[0]
            if len(below) > 1:
                value = below[1].where(
                    value, filled((*shape, self._shape(node.src[1:])[0]), dtype, start_value(node.arg, dtype))
                )
            if 0 in self._shape(node.src[1:]):
                return filled(shape, dtype, start_value(node.arg, dtype))
            return movement.reshape(reduce_axes(value, node.arg, (len(shape),)), shape)
        if node.op is Ops.LOAD:
            found = self._moved(node.src[0], frame)
            if found is not None:
                return found
            number = -1 - node.src[0].src[0].arg
            flat = movement.reshape(self.inputs[number], (self.recorder.inputs[number].size,))
            place, *valid = below
            if not valid:
                return UOp(Ops.GATHER, node.dtype, (flat, place))
            if node in self.checked:
                valid = [checked(valid[0], valid[0], place, self.recorder.inputs[number].size)]
            read = UOp(Ops.GATHER, node.dtype, (flat, valid[0].where(place, filled(shape, place.dtype, 0))))
            return valid[0].where(read, filled(shape, node.dtype, cast_value(0, node.dtype)))
        if node.op is Ops.CAST:
            return below[0].cast(dtype)
        if node.op in ELEMENTWISE:
            return UOp(node.op, dtype, tuple(below), None)
        raise Impure

    def _moved(self, access: UOp, frame: Frame) -> UOp | None:
        """An input's elements over a frame by movements alone: each axis at a place of its own or walked by a
        loop of its own. Outside of the input there are zeros, as a load gives.
        """
        places = self.recorder.indices.get(access)
        if places is None:
            return None
        number = -1 - access.src[0].arg
        node, walked = self.inputs[number], []
        for axis, (place, size) in enumerate(zip(places, self.recorder.inputs[number].shape, strict=True)):
            terms, begin = index.terms_of(place)
            if len(terms) > 1 or any(len(m) > 1 or m[0] not in frame for m in terms):
                return None
            loop, step = next(((m[0], c) for m, c in terms.items()), (None, 1))
            if loop is not None and (loop in walked or step == 0):
                return None
            turns = 1 if loop is None else self._shape((loop,))[0]
            node = _walked_axis(node, axis, size, begin, step, turns)
            walked.append(loop)
        shape = self._shape(frame)
        order = [walked.index(loop) for loop in frame if loop in walked]
        rest = [axis for axis, loop in enumerate(walked) if loop is None]
        node = movement.permute(node, (*order, *rest))
        node = movement.reshape(
            node, tuple([s if loop in walked else 1 for loop, s in zip(frame, shape, strict=True)])
        )
        return movement.expand(node, shape)


def _walked_axis(node: UOp, axis: int, size: int, begin: int, step: int, turns: int) -> UOp:
    """An axis at `begin + step*turn`; zeros outside."""
    low, stride = (begin, step) if step > 0 else (begin + step * (turns - 1), -step)
    end = low + stride * turns
    before, behind = max(0, -low), max(0, end - size)
    shape = shape_of(node)

    def on_axis(pair: tuple[int, int]) -> list[tuple[int, int]]:
        return [pair if a == axis else (0, 0) for a in range(len(shape))]

    if before or behind:
        node = movement.pad(node, on_axis((before, behind)))
    spans = [(0, s) if a != axis else (low + before, end + before) for a, s in enumerate(shape)]
    node = movement.shrink(node, spans)
    if stride > 1:
        cut = (*shape[:axis], turns, stride, *shape[axis + 1 :])
        node = movement.reshape(node, cut)
        node = movement.shrink(node, [(0, 1) if a == axis + 1 else (0, s) for a, s in enumerate(cut)])
        node = movement.reshape(node, (*shape[:axis], turns, *shape[axis + 1 :]))
    return movement.flip(node, (axis,)) if step < 0 else node

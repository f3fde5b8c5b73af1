"""The kernels of a function, captured on the memory of PyTorch's tensors, and replayed on that of others.

The graph is captured once for each way that its inputs can be (sizes that change, other strides). A call
gives the kernels the addresses of the inputs, and of new tensors of PyTorch for the outputs: nothing is
copied, and no lazygrad tensor is made.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..config import Context, flags_state
from ..device import Device
from ..engine.replay import Replay
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..jit import JitError, TinyJit, asks_nothing
from ..jit.captured import Captured
from ..jit.errors import Changed
from ..jit.results import OutputPart
from ..runtime._host import HUGE_FROM, ask_for_huge_pages
from ..schedule.graph.versions import latest, peel
from ..shape import shape_of
from ..shape.movement import base_and_tracker
from ..tensor import Tensor
from ..tensor.modes import usual_modes
from ..tensor.random import sampling
from ..tensor.storage import is_view
from .dtypes import from_torch_dtype, to_torch_dtype
from .memory import Lying, flat, in_order, laid, lying, lying_now, on_memory, viewed
from .recycled import LEAST, POOL, RecycledMemory
from .sizes import Sizes

#: Gets lazygrad tensors, and numbers; gives a list of them.
Compute = Callable[[Sequence[Any]], list[Any]]


class _Result(NamedTuple):
    """An output of the graph: a new tensor, which the kernels fill; an input; or a number, or None.

    shape, stride, dtype   of a new tensor      slot      its place among the outputs of the kernels
    recycled               its memory, where that is kept from call to call
    given                  which input it is, or (with a stride) a view of, which begins at `offset`
    constant               what else it is
    said, order            of what has other sizes in each call: a tensor with symbolic sizes, or a number;
                           its axes from the outermost in memory to the innermost
    """

    slot: int = -1
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    recycled: RecycledMemory | None = None
    given: int = -1
    offset: int = 0
    constant: Any = None
    said: Any = None
    order: tuple[int, ...] = ()


class Capture:
    """The kernels for inputs that are in one way; with `sizes` for inputs of many sizes.

    hands_on  for each result whether it may be a view of an input
    """

    def __init__(
        self,
        function: Compute,
        inputs: Sequence[Any],
        wanted: Sequence[Any],
        sizes: Sizes | None = None,
        hands_on: Sequence[bool] = (),
    ) -> None:
        self.ways = [lying(x.shape, x.stride()) if isinstance(x, torch.Tensor) else None for x in inputs]
        self.tensors = [number for number, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        self.results: list[_Result] = []
        self.sizes = sizes
        self._wanted, self._hands_on = wanted, hands_on
        memory = self._memory(inputs)

        ended = False

        def run(given: list[Tensor], bound: list[UOp]) -> list[Tensor]:
            nonlocal ended
            values, before = list(inputs), [tensor._node() for tensor in given]
            if sizes is not None:
                for place, number in sizes.numbers.items():
                    values[place] = number
            for number, tensor in zip(self.tensors, given, strict=True):
                way = self.ways[number]
                assert way is not None  # holes are gone
                if sizes is not None and sizes.varies(number):
                    shape = sizes.shapes[number]
                    values[number] = viewed(tensor[: math.prod(shape)], way._replace(shape=shape))
                else:
                    values[number] = viewed(tensor, way)
            made = self._laid(function, values)
            if any(tensor._node() is not node for tensor, node in zip(given, before, strict=True)):
                raise NotImplementedError("a function that writes its arguments")
            ended = True
            return made

        jitted = TinyJit(asks_nothing(run))
        with Context(JIT=1, BEAM=0), usual_modes():
            try:
                jitted(memory, [] if sizes is None else list(sizes.bound.values()))
            except JitError:
                if self.computes or not ended:
                    raise
        #: None where every result is an input, or a number
        self.captured = jitted.captured
        #: the memory of a replay: inputs, then so many outputs
        self.reads: list[int] = []
        self.count = 0
        #: result → the output of the kernels that it is; of several that are one, the first is filled
        self.slots: list[int] = []
        if self.captured is not None:
            self._follow(self.captured)
        elif self.computes:
            raise NotImplementedError("a graph that cannot be captured")
        #: the inputs that are tensors, with the strides of those that are not contiguous
        self.lies = [(n, None if inputs[n].is_contiguous() else inputs[n].stride()) for n in self.tensors]
        self.flags_state = flags_state()

    def _memory(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The inputs as lazygrad tensors, none in the memory of another one."""
        known: set[int] = set()
        found = []
        for number in self.tensors:
            x = inputs[number]
            if self.sizes is not None and self.sizes.varies(number):  # for its shape only: nothing is read
                found.append(Tensor.zeros(self.sizes.elements[number], dtype=from_torch_dtype(x.dtype)))
                continue
            if x.data_ptr() in known:
                x = x.clone(memory_format=torch.preserve_format)
            known.add(x.data_ptr())
            found.append(on_memory(x))
        return found

    def _laid(self, function: Compute, values: list[Any]) -> list[Tensor]:
        """The outputs that are computed, each as memory of its own."""
        made: list[Tensor] = []
        self.results = []
        places = {id(value): number for number, value in enumerate(values) if isinstance(value, Tensor)}
        held = {_base(values[number]): number for number in self.tensors}
        results = function(values)
        nothing = [None] * len(results)
        for value, said, may_share in zip(
            results, self._wanted or nothing, self._hands_on or nothing, strict=True
        ):
            if id(value) in places:
                self.results.append(_Result(given=places[id(value)]))
            elif isinstance(value, UOp):  # a size, or what follows from some
                self.results.append(_Result(said=said))
            elif not isinstance(value, Tensor):
                self.results.append(_Result(constant=value))
            elif may_share and (view := _view(value, said, held)) is not None:
                self.results.append(view)
            elif not all(isinstance(size, int) for size in value.shape):
                order = lying_now(said)
                slot = _slot(_own(value.permute(order)), made)
                self.results.append(
                    _Result(slot, (), (), to_torch_dtype(value.dtype), said=said, order=order)
                )
            else:
                shape: Any = value.shape
                way = _way(shape, said)
                dtype = to_torch_dtype(value.dtype)
                large = math.prod(shape) * value.dtype.itemsize >= LEAST
                kept = RecycledMemory(way.shape, way.stride, dtype, POOL) if large else None
                slot = _slot(_own(laid(value, way)), made)
                self.results.append(_Result(slot, way.shape, way.stride, dtype, kept))
        return made

    @property
    def computes(self) -> bool:
        """Whether there are results that kernels make."""
        return any(result.slot >= 0 for result in self.results)

    def _follow(self, captured: Captured) -> None:
        """Each output must be in memory that a replay is given."""
        self.slots = [part.output if isinstance(part, OutputPart) else -1 for part in captured.made]
        if -1 in self.slots or captured.ties or captured.pins or captured.gradients:
            raise NotImplementedError("a graph whose outputs have no memory of their own")
        self.reads = [self.tensors[captured.owners[number]] for number in captured.slots]
        self.count = len(captured.outputs)

    def has_room(self, inputs: Sequence[Any]) -> bool:
        """Whether a capture for many sizes has room for these, which lie in the order of its own."""
        if self.sizes is None or self.captured is None or not self.sizes.hold(inputs):
            return False
        with contextlib.suppress(Changed):  # slices and pads fit
            self.captured.limits.check(self.sizes.binds(inputs))
            return self._are_ordered(inputs)
        return False

    def _are_ordered(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs lie in the order in which those of the capture did."""
        for number in self.tensors:
            x, way = inputs[number], self.ways[number]
            if way is None or not (x.is_contiguous() if way.is_contiguous else _has_order(x, way.order)):
                return False
        return True

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether the inputs lie as those of the capture did; PyTorch's guards hold their shapes."""
        for number, stride in self.lies:
            x = inputs[number]
            if not x.is_contiguous() if stride is None else x.stride() != stride:
                return False
        return True

    def call(self, inputs: Sequence[Any]) -> list[Any]:
        """Replay on these inputs, which have no holes."""
        memory = [inputs[number] for number in self.reads]
        found, equal = list[Any](), list[tuple[torch.Tensor, torch.Tensor]]()
        filled: list[Any] = [None] * self.count
        for result in self.results:
            if result.slot < 0:
                found.append(self._other(result, inputs))
                continue
            if result.recycled is not None:
                made = result.recycled.tensor()
            elif result.said is None:
                made = torch.empty_strided(result.shape, result.stride, dtype=result.dtype)
            else:
                made = self._empty(result, inputs)
            found.append(made)
            slot = self.slots[result.slot]
            if filled[slot] is None:
                filled[slot] = made
            else:
                equal.append((made, filled[slot]))
        memory += filled
        if self.captured is not None:
            binds = {} if self.sizes is None else self.sizes.binds(inputs)
            self._replay(self.captured.replay, memory, binds)
        for made, source in equal:
            flat(made).copy_(flat(source))
        return found

    def _other(self, result: _Result, inputs: Sequence[Any]) -> Any:
        """A result that no kernel makes."""
        if result.given >= 0:
            x = inputs[result.given]
            return (
                x.as_strided(result.shape, result.stride, x.storage_offset() + result.offset)
                if result.stride
                else x
            )
        if result.said is None or self.sizes is None:
            return result.constant
        return self.sizes.number_of(result.said, self.sizes.known(inputs))

    def _empty(self, result: _Result, inputs: Sequence[Any]) -> torch.Tensor:
        """Memory for a result that has other sizes in each call."""
        assert self.sizes is not None  # else sizes are known
        shape = self.sizes.shape_of(result.said, self.sizes.known(inputs))
        made = torch.empty([shape[axis] for axis in result.order], dtype=result.dtype)
        if made.nbytes >= HUGE_FROM:
            ask_for_huge_pages(made.data_ptr(), made.nbytes)
        return made.permute([result.order.index(axis) for axis in range(len(shape))])

    def _replay(self, replay: Replay, memory: Sequence[torch.Tensor], binds: dict[str, int]) -> None:
        overlay, changes = flags_state()
        if overlay is not self.flags_state[0] or changes != self.flags_state[1]:
            replay.follow_flags()
            self.flags_state = overlay, changes
        values = _numbers(replay.sources, binds) if replay.sources else []
        if replay.is_one_call():
            replay.run_at([x.data_ptr() for x in memory], values)
            return
        adopt = Device["CPU"].allocator._adopt
        replay.run([adopt(x.data_ptr(), x.nbytes) for x in memory], values)


def _has_order(x: torch.Tensor, order: tuple[int, ...]) -> bool:
    way = lying(x.shape, x.stride())
    return way is not None and way.order == order


def _leaves_in_order(node: UOp) -> bool:
    """Whether a value has a kernel of its own, which leaves it in order."""
    return node.op is Ops.SCATTER or (node.op is Ops.PROGRAM and node.arg.kernel.is_stored)


def _own(value: Tensor) -> Tensor:
    """A value in memory that is no input's."""
    if is_view(value.uop):
        return value.clone()
    base, tracker = base_and_tracker(peel(latest(value.uop)))
    stored = _leaves_in_order(base) and tracker.contiguous and tracker.size == math.prod(shape_of(base))
    return value if stored else value.contiguous()


def _slot(value: Tensor, made: list[Tensor]) -> int:
    """The place of a value among those that are made. A value that stays where its kernel leaves it may be
    several results of the graph: it is made once.
    """
    found = next((slot for slot, each in enumerate(made) if each is value), len(made))
    if found == len(made):
        made.append(value)
    return found


def _base(value: Tensor) -> UOp:
    return base_and_tracker(peel(latest(value.uop)))[0]


def _view(value: Tensor, said: Any, held: dict[UOp, int]) -> _Result | None:
    """A value as a view of the memory of an input, with the strides that PyTorch says; None of any other."""
    base, tracker = base_and_tracker(peel(latest(value.uop)))
    if base not in held or len(tracker.views) != 1 or tracker.views[0].mask is not None:
        return None
    shape: Any = tracker.views[0].shape
    offset: Any = tracker.views[0].offset
    stride = tracker.views[0].strides
    wanted = said.stride() if isinstance(said, torch.Tensor) else ()
    # a comparison of a symbolic size would make it that size for good
    known = isinstance(offset, int) and all(isinstance(each, int) for each in (*shape, *stride, *wanted))
    if not known or 0 in shape or len(shape) != len(wanted) or not shape:
        return None
    if any(n > 1 and one != two for n, one, two in zip(shape, stride, wanted, strict=True)):
        return None
    return _Result(given=held[base], shape=shape, stride=tuple(wanted), offset=offset)


def _way(shape: tuple[int, ...], said: Any) -> Lying:
    """How a result of this shape is to lie: as PyTorch says, where that leaves no holes."""
    if isinstance(said, torch.Tensor):
        # a comparison of a symbolic size would make it that size for good
        known = all(isinstance(size, int) for size in (*said.shape, *said.stride()))
        if known and tuple(said.shape) == shape:
            found = lying(shape, said.stride())
            if found is not None:
                return found
        elif said.ndim == len(shape):
            return in_order(shape, lying_now(said))
    return in_order(shape, tuple(range(len(shape))))


def _numbers(sources: Sequence[Any], binds: dict[str, int]) -> list[int]:
    """The integers that change with each call: sizes; where its random numbers begin, and their seed."""
    seed = _drawn_seed() if "seed" in sources else 0
    return [seed if key == "seed" else binds[key[1]] if key[0] == "bind" else int(key[1]) for key in sources]


def _drawn_seed() -> int:
    """A seed that PyTorch's generator gives: the same after the same `torch.manual_seed`."""
    return int(torch.randint(0, sampling.SEED_LIMIT, (), dtype=torch.int64))

"""One graph as captured kernels, replayed on the memory of PyTorch's tensors.

The graph is captured once for each way that its inputs can be (sizes that change, other strides). A call
gives the kernels the addresses of the inputs, and of new tensors of PyTorch for the outputs: nothing is
copied, and no lazygrad tensor is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ..config import Context, flags_state
from ..device import Device
from ..engine.replay import Replay
from ..jit import JitError, TinyJit, asks_nothing
from ..jit.captured import Captured
from ..jit.results import OutputPart
from ..tensor import Tensor
from ..tensor.random import sampling
from ..tensor.storage import is_view
from .dtypes import to_torch_dtype
from .graph import GraphFunction, values_of
from .memory import flat, laid, lying, on_memory, seen, without_holes

#: Gets lazygrad tensors, and numbers; gives a list of them.
Compute = Callable[[Sequence[Any]], list[Any]]


class _Result(NamedTuple):
    """An output of the graph: a new tensor, which the kernels fill; an input; or a number, or None.

    shape, stride, dtype   of a new tensor      slot      its place among the outputs of the kernels
    given                  which input it is    constant  what else it is
    """

    slot: int = -1
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    given: int = -1
    constant: Any = None


class _Capture:
    """The kernels for inputs that are in one way."""

    def __init__(self, function: Compute, inputs: Sequence[Any], wanted: Sequence[Any]) -> None:
        self.ways = [lying(x.shape, x.stride()) if isinstance(x, torch.Tensor) else None for x in inputs]
        self.tensors = [number for number, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        self.results: list[_Result] = []
        self._wanted = wanted
        memory = self._memory(inputs)

        def run(*given: Tensor) -> list[Tensor]:
            values = list(inputs)
            for number, tensor in zip(self.tensors, given, strict=True):
                way = self.ways[number]
                assert way is not None  # holes are gone
                values[number] = seen(tensor, way)
            return self._laid(function, values)

        jitted = TinyJit(asks_nothing(run))
        with Context(JIT=1, BEAM=0):
            try:
                jitted(*memory)
            except JitError:
                if self.computes:
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
        results = function(values)
        for value, said in zip(results, self._wanted or [None] * len(results), strict=True):
            if id(value) in places:
                self.results.append(_Result(given=places[id(value)]))
            elif not isinstance(value, Tensor):
                self.results.append(_Result(constant=value))
            else:
                shape: Any = value.shape
                way = lying(shape, _strides(shape, said))
                assert way is not None  # they are made so
                self.results.append(_Result(len(made), way.shape, way.stride, to_torch_dtype(value.dtype)))
                made.append(_own(laid(value, way)))
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
                found.append(inputs[result.given] if result.given >= 0 else result.constant)
                continue
            made = torch.empty_strided(result.shape, result.stride, dtype=result.dtype)
            found.append(made)
            slot = self.slots[result.slot]
            if filled[slot] is None:
                filled[slot] = made
            else:
                equal.append((made, filled[slot]))
        memory += filled
        if self.captured is not None:
            self._replay(self.captured.replay, memory)
        for made, source in equal:
            flat(made).copy_(flat(source))
        return found

    def _replay(self, replay: Replay, memory: Sequence[torch.Tensor]) -> None:
        overlay, changes = flags_state()
        if overlay is not self.flags_state[0] or changes != self.flags_state[1]:
            replay.follow_flags()
            self.flags_state = overlay, changes
        values = _numbers(replay.sources) if replay.sources else []
        if replay.is_one_call():
            replay.run_at([x.data_ptr() for x in memory], values)
            return
        adopt = Device["CPU"].allocator._adopt
        replay.run([adopt(x.data_ptr(), x.nbytes) for x in memory], values)


def _own(value: Tensor) -> Tensor:
    """A value in memory that is no input's."""
    return value.clone() if is_view(value.uop) else value.contiguous()


def _strides(shape: tuple[int, ...], said: Any) -> tuple[int, ...]:
    """The strides that PyTorch says a result has, where these leave no holes; else those of its shape."""
    if isinstance(said, torch.Tensor) and all(isinstance(s, int) for s in (*said.shape, *said.stride())):
        if tuple(said.shape) == shape and lying(shape, said.stride()) is not None:
            return tuple(said.stride())
    made: list[int] = []
    step = 1
    for size in reversed(shape):
        made.append(step)
        step *= max(size, 1)
    return tuple(reversed(made))


def _numbers(sources: Sequence[Any]) -> list[int]:
    """The integers that change with each call: where its random numbers begin, and their seed."""
    seed = _drawn_seed()
    return [seed if key == "seed" else int(key[1]) for key in sources]


def _drawn_seed() -> int:
    """A seed that PyTorch's generator gives: the same after the same `torch.manual_seed`."""
    return int(torch.randint(0, sampling.SEED_LIMIT, (), dtype=torch.int64))


class Replayed:
    """A function of lazygrad tensors that is called with PyTorch's, and numbers.

    function   gets lazygrad tensors in place of PyTorch's, and gives a list
    wanted     tensors like the results, where their strides are to be as PyTorch says; or nothing
    has_sizes  whether the inputs may be of other shapes in each call
    """

    def __init__(self, function: Compute, wanted: Sequence[Any] = (), has_sizes: bool = True) -> None:
        self.function, self.wanted, self.has_sizes = function, wanted, has_sizes
        self._captures: dict[Any, _Capture] = {}
        self._lock = threading.Lock()
        self._last: _Capture | None = None

    @property
    def captures(self) -> int:
        """How often it was captured."""
        return len(self._captures)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        with self._lock:
            last = self._last
            if last is not None and last.fits(inputs):
                return last.call(inputs)
            given = [without_holes(x) if isinstance(x, torch.Tensor) else x for x in inputs]
            key = tuple([_key(x) for x in given])
            capture = self._captures.get(key)
            if capture is None:
                with sampling.fork_random():
                    sampling.set_state((0, 0))
                    capture = self._captures[key] = _Capture(self.function, given, self.wanted)
            if not self.has_sizes:
                self._last = capture
            return capture.call(given)


def _key(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    return (x.dtype, x.shape) if x.is_contiguous() else (x.dtype, x.shape, x.stride())


class CompiledGraph:
    """A graph of ATen operations that lazygrad runs: call it with tensors of PyTorch, and numbers."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.function = GraphFunction(module)
        wanted = [
            node.meta.get("val") if isinstance(node, fx.Node) else None for node in self.function.outputs
        ]
        #: without numbers among the inputs, which are sizes, PyTorch's guards hold all shapes
        has_sizes = not all(values_of(node) for node in self.function.placeholders)
        self.replayed = Replayed(self.function, wanted, has_sizes)

    def __call__(self, *inputs: Any) -> Any:
        found = self.replayed(inputs)
        return found[0] if self.function.is_one else tuple(found)

"""Pipeline parallel: the blocks of a model on the devices along an axis of a mesh, one stage each.

The weights of all stages are one tensor each, with an axis of stages in front, which is split along the mesh;
a stage is the same function on each device (`vmap`). What one stage gives the next is that tensor of results
moved by one along the axis of stages, so that each device sends its own to the next one (Xu et al. 2021,
"GSPMD", arXiv:2105.04663, section 3.3). Gradients go back the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..device.mesh import Mesh
from ..ir.args import MultiArg
from ..schedule.extensions import sharding
from ..schedule.graph.layouts import copied, layout, renumbered, settled
from ..schedule.graph.versions import laid_with_order
from ..tensor import Function, Tensor
from ..tensor.transforms.derivatives import vmap
from .state import Hidden, get_state_dict, members_of


class Pipeline:
    """Blocks of one kind in a row, divided into as many stages as a mesh has devices along an axis.

    blocks        callables with tensors of the same names and shapes, that give the shape they are given;
                  a multiple of the number of stages. Their values are copied: of the first one only the
                  code is used
    microbatches  into so many parts each batch is divided: with s stages, each device computes for
                  `microbatches` of `microbatches + s - 1` turns

    Called with a batch (examples along the first axis, their number a multiple of `microbatches`) that lies
    on the same mesh; the result lies as it does. All micro-batches go forward, then all go back (Huang et al.
    2019, "GPipe", arXiv:1811.06965), so what the backward pass needs of each is kept. In its other turns a
    stage computes, too, and nothing of that is used: random numbers, as in dropout, are others than without a
    pipeline. ValueError where sizes do not fit.
    """

    def __init__(
        self, blocks: Sequence[Any], mesh: Mesh, axis: str = "pipe", microbatches: int | None = None
    ) -> None:
        stages = mesh.size(axis)
        if not blocks or len(blocks) % stages:
            raise ValueError(f"{len(blocks)} blocks cannot be divided into {stages} stages")
        states = [get_state_dict(block) for block in blocks]
        shapes = [{name: (tensor.shape, tensor.dtype) for name, tensor in state.items()} for state in states]
        if any(other != shapes[0] for other in shapes):
            raise ValueError("the blocks of a pipeline have tensors of the same names, shapes and dtypes")
        self.weights: dict[str, Tensor] = {}
        for name, first in states[0].items():
            joined = Tensor.stack(*[state[name].detach() for state in states])
            joined = joined.reshape(stages, len(blocks) // stages, *first.shape).contiguous()
            self.weights[name] = joined.shard_(mesh, {0: axis}).requires_grad_(first.requires_grad)
        self._block = _Function(blocks[0])
        self._mesh, self._axis, self._blocks = mesh, axis, len(blocks) // stages
        self.microbatches = stages if microbatches is None else microbatches
        if self.microbatches < 1:
            raise ValueError(f"a pipeline needs at least one micro-batch, not {microbatches}")

    def __call__(self, x: Tensor) -> Tensor:
        """What the last block gives for a batch."""
        stages, count = self._mesh.size(self._axis), self.microbatches
        given = self._microbatches(x)
        number = Tensor.arange(stages).reshape(stages, *[1] * x.ndim).shard(self._mesh, {0: self._axis})
        stage = vmap(self._stage)
        state: Tensor | None = None
        done = []
        for turn in range(count + stages - 1):
            new = given[min(turn, count - 1)].unsqueeze(0)
            # a stage whose turn it is not yet computes with what there is: zeros might have no gradient
            before = new.expand(stages, *new.shape[1:]) if state is None else _to_the_next(state)
            state = stage((number == 0).where(new, before), *self.weights.values())
            if turn >= stages - 1:
                done.append(state)
        result = Tensor.stack(*done, dim=2)[stages - 1]
        return result.reshape(x.shape[0], *result.shape[2:])

    def loss(self, function: Callable[..., Tensor], x: Tensor, *given: Tensor) -> Tensor:
        """The mean over the micro-batches of what a function makes of each, for training.

        function  of the last block's result for a micro-batch, and of that part of the tensors `given`: a
                  number. It may use other tensors, such as those of a head
        x, given  examples along the first axis, of one number

        With the last stage there a micro-batch goes back at once, between those that still go forward (one
        forward, one backward; Narayanan et al. 2021, "Efficient large-scale language model training on GPU
        clusters using Megatron-LM", section 2.2). So stage s of p keeps what the backward pass needs of p - s
        micro-batches, or one more, and not of all. As in `__call__` each device computes for `microbatches`
        of `microbatches + p - 1` turns; in the others it does nothing. ValueError where sizes do not fit.
        """
        stages = self._mesh.size(self._axis)
        parts = [self._microbatches(tensor) for tensor in (x, *given)]
        if any(tensor.shape[0] != x.shape[0] for tensor in given):
            told = ", ".join(str(tensor.shape[0]) for tensor in (x, *given))
            raise ValueError(f"a pipeline is given tensors of as many examples each, not {told}")
        at, own = self._layouts(parts[0][0]), self._layouts()
        weights = [self._weights_of(stage, own[stage]) for stage in range(stages)]
        mapped, ended = vmap(self._stage), vmap(function)
        losses: list[Tensor] = []
        for number, (part, *others) in enumerate(zip(*parts, strict=True)):
            value: Tensor = _Begun.apply(part, at[0])
            for stage in range(stages):
                if stage:
                    turns = 2 * number + stage - 1, 2 * number + 2 * stages - 1 - stage
                    value = _Sent.apply(value, at[stage], at[stage - 1], turns)
                value = mapped(value, *weights[stage][number])
            losses.append(ended(value, *[other.unsqueeze(0) for other in others]).contiguous())
        total = losses[0]
        for value in losses[1:]:
            total = total + value
        return total.sum() / self.microbatches

    def _weights_of(self, stage: int, target: MultiArg | None) -> list[list[Tensor]]:
        """A stage's weights for each micro-batch. Of the gradients only their sum so far is kept: the last
        micro-batch reads the weights, and each one those of the micro-batch after it, whose sum is its own
        gradient and the sum before.
        """
        found = [[_own(weight, stage, target) for weight in self.weights.values()]]
        for _ in range(1, self.microbatches):
            found.append([_Summed.apply(weight) for weight in found[-1]])
        return found[::-1]

    def _layouts(self, x: Tensor | None = None) -> list[MultiArg | None]:
        """How something with an axis of stages in front lies that one stage alone has, for each stage; None
        on one device. Along the other axes of the mesh it lies as `x` does.
        """
        mesh, along = self._mesh, self._mesh.axis_number(self._axis)
        if len(mesh.devices) == 1:
            return [None] * mesh.sizes[along]
        lies = copied(mesh) if x is None else settled(sharding().layout_of_value(x.uop))
        if lies.placements[along] is not None or lies.mesh.devices != mesh.devices:
            raise ValueError(f"the batch of a pipeline is copied along {self._axis!r} of {mesh}")
        behind = renumbered(lies, {axis: axis + 1 for axis in lies.axes})
        places = [0 if number == along else place for number, place in enumerate(behind.placements)]
        stages = mesh.sizes[along]
        ends = [tuple([int(number >= stage) for number in range(stages)]) for stage in range(stages)]
        return [layout(mesh, places, {**dict(behind.ends), 0: each}) for each in ends]

    def _microbatches(self, x: Tensor) -> list[Tensor]:
        """Every so many-th example, so that a batch that is split along the mesh remains where it is."""
        count = self.microbatches
        if x.shape[0] % count:
            raise ValueError(f"{x.shape[0]} examples cannot be divided into {count} micro-batches")
        given = x.reshape(x.shape[0] // count, count, *x.shape[1:])
        return [given[:, number] for number in range(count)]

    def _stage(self, x: Tensor, *weights: Tensor) -> Tensor:
        """The blocks of one stage, whose tensors have an axis of blocks in front."""
        for number in range(self._blocks):
            with self._block.having([weight[number] for weight in weights]):
                x = self._block.called(x)
        return x


def _own(weight: Tensor, stage: int, target: MultiArg | None) -> Tensor:
    """What one stage has of a weight of all, where it is."""
    part = weight[stage : stage + 1]
    return part if target is None else part._unary(laid_with_order(part.uop, target))


class _Summed(Function):
    """A tensor whose gradient is stored."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    def backward(self, grad: Tensor) -> Tensor:
        return grad.contiguous()


class _Begun(Function):
    """A micro-batch on the first stage, with an axis of stages in front."""

    def forward(self, x: Tensor, target: MultiArg | None) -> Tensor:
        x = x.unsqueeze(0)
        return x if target is None else x._unary(laid_with_order(x.uop, target))

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        return grad.sum(0), None


class _Sent(Function):
    """What a stage has made, on the next one; its gradient goes back."""

    def forward(self, x: Tensor, there: MultiArg, here: MultiArg, turns: tuple[int, int]) -> Tensor:
        self.here, self.send_order = here, turns[1]
        return x._unary(laid_with_order(x.uop, there, turns[0]))

    def backward(self, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return grad._unary(laid_with_order(grad.uop, self.here, self.send_order)), None, None, None


def _to_the_next(state: Tensor) -> Tensor:
    """What each stage has from the one before it; the first one has zeros."""
    gap = ((1, 0), *[(0, 0)] * (state.ndim - 1))
    return state.pad(gap)[: state.shape[0]]


class _Function(Hidden):
    """A block as a function of its tensors, too."""

    def __init__(self, called: Any) -> None:
        self.called = called

    @contextlib.contextmanager
    def having(self, values: Sequence[Tensor]) -> Iterator[None]:
        """In the block it has other tensors, in the order of its state."""
        own = get_state_dict(self.called)
        _exchange(self.called, {id(old): new for old, new in zip(own.values(), values, strict=True)})
        try:
            yield
        finally:
            _exchange(self.called, {id(new): old for old, new in zip(own.values(), values, strict=True)})


def _exchange(block: Any, others: dict[int, Tensor]) -> None:
    """Put tensors in the place of others, wherever an object has them."""
    todo, seen = [block], set[int]()
    while todo:
        value = todo.pop()
        seen.add(id(value))
        for name, part in list(members_of(value)):
            if isinstance(part, Tensor):
                other = others.get(id(part), part)
                if isinstance(value, (dict, list)):
                    value[name] = other
                elif other is not part:
                    setattr(value, name, other)
            elif id(part) not in seen:
                todo.append(part)

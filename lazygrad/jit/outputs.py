"""What a replay hands out: tensors on its outputs, free ones of earlier calls first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Buffer
from ..ir.index import as_sint, sint, substitute
from ..ir.ops import Ops
from ..ir.uop import UOp, new_node
from ..ir.walks import device_of
from ..shape import shape_of
from ..shape.movement import base_and_tracker
from ..tensor import Tensor
from ..tensor.storage import Storage
from .layout import Layout, Moves
from .specs import binds_in
from .tensor_memory import tensors_on

#: So many results of earlier calls are kept, to be handed out again when nobody holds them any more.
KEPT_RESULTS = 2
#: So many calls in a row make new results without looking for old ones, where the caller keeps them.
LONGEST_REST = 8
#: For so many values of Variables the movements are kept.
KNOWN_SIZES = 64


class Output:
    """Memory that a replay fills and hands out as tensors.

    That of an earlier call is filled again when the tensors on it are gone and nobody was told the node that
    they stood for. Who keeps its results has no use for that: then few calls look for free memory.
    """

    def __init__(
        self, likes: Sequence[Buffer], parts: Sequence[tuple[type[Tensor], Moves]], layout: Layout
    ) -> None:
        self.likes = [Buffer(like.device, like.size, like.dtype) for like in likes]
        self.layout = layout
        self.layout_views = parts
        seen = [*layout.moves, *(moves for _, moves in parts)]
        self.symbolic = any(_binds_of(argument) for moves in seen for _, argument in moves)
        version = layout.on(self.likes)
        self.views = [] if self.symbolic else [View(version, kind, moves) for kind, moves in parts]
        #: the movements for values that Variables had
        self.known: dict[Any, tuple[list[View], Layout]] = {}
        self.recycled: list[RecycledMemory] = []
        self.rest = 0  #: calls that do not look for free results
        self.longest = 0  #: how long the last such rest was

    def take(self, binds: dict[str, int], numbers: str | None = None) -> tuple[list[Buffer], list[Tensor]]:
        """Memory that nobody holds, one Buffer for each device, and the tensors on it.

        numbers  the name of a Variable that they have a number for
        """
        if self.symbolic:
            made = self._fresh(*self._views_for(binds, numbers))
            return made.buffers, tensors_on(made.storage, made.layout_views)
        if self.rest:
            self.rest -= 1
            made = self._fresh(self.views, self.layout)
            return made.buffers, tensors_on(made.storage, made.layout_views)
        for kept in self.recycled:
            storage = kept.storage
            for tensor in storage.tensors.values():
                if tensor() is not None:
                    break
            else:  # the tensors on it are gone
                self.longest = 0
                if kept.is_unseen():
                    if kept is not self.recycled[-1]:
                        self.recycled.reverse()  # the next call finds the other one first
                    storage.tensors.clear()
                    return kept.buffers, tensors_on(storage, kept.layout_views)
                self.recycled.remove(kept)  # whoever else sees it has it alone now
                break
        if len(self.recycled) >= KEPT_RESULTS:
            self.recycled.pop(0)
            self.rest = self.longest = min(self.longest + 1, LONGEST_REST)
        made = self._fresh(self.views, self.layout)
        self.recycled.append(made)
        return made.buffers, tensors_on(made.storage, made.layout_views)

    def _views_for(self, binds: dict[str, int], numbers: str | None) -> tuple[list[View], Layout]:
        """The movements for what the Variables are in this call, and with a number for one of them."""
        key = (*binds.items(), numbers)
        found = self.known.get(key)
        if found is None:
            layout = self.layout.with_moves(lambda moves: _rebound(moves, binds))
            version = layout.on(self.likes)
            views = []
            for kind, moves in self.layout_views:
                rebound = _rebound(moves, binds)
                if numbers is not None:
                    rebound = numbered(rebound, shape_of(version), numbers, binds[numbers])
                views.append(View(version, kind, rebound))
            if len(self.known) >= KNOWN_SIZES:
                self.known.clear()
            found = self.known[key] = views, layout
        return found

    def _fresh(self, views: list[View], layout: Layout) -> RecycledMemory:
        buffers = [like.fresh() for like in self.likes]
        storage = Storage(layout.on(buffers))
        storage.known = False
        return RecycledMemory(buffers, storage, views)


class View:
    """The movements of one result, for one version after the other: what is known of one holds for all."""

    __slots__ = ("device", "kind", "shape", "steps", "tracker")

    def __init__(self, version: UOp, kind: type[Tensor], moves: Moves) -> None:
        self.kind, self.shape, self.device = kind, shape_of(version), device_of(version)
        self.steps = []
        node = version
        for op, argument in moves:
            node = UOp(op, node.dtype, (node,), argument)
            self.steps.append((op, node.dtype, argument, shape_of(node)))
        self.tracker = base_and_tracker(node)[1]

    def of(self, version: UOp) -> UOp:
        node, device = version, self.device
        facts = node.facts
        facts["shape"], facts["device"] = self.shape, device
        for op, dtype, argument, shape in self.steps:
            node = new_node(op, dtype, (node,), argument)
            facts = node.facts
            facts["shape"], facts["device"] = shape, device
        if node is not version:
            node.facts["base_and_tracker"] = version, self.tracker
        return node


class RecycledMemory:
    """The memory of a result, to be handed out again when the tensors on it are gone."""

    __slots__ = ("_version", "buffers", "layout_views", "storage")

    def __init__(self, buffers: list[Buffer], storage: Storage, views: list[View]) -> None:
        self.buffers, self.storage = buffers, storage
        self._version = version = storage.version
        self.layout_views = [(view.kind, view.of(version)) for view in views]

    def is_unseen(self) -> bool:
        """Whether nobody but tensors sees the memory: neither a graph, nor numpy."""
        storage = self.storage
        if storage.known or storage.version is not self._version:
            return False
        return not any(buffer.exported for buffer in self.buffers)


def numbered(moves: Moves, shape: tuple[sint, ...], name: str, size: int) -> Moves:
    """The movements, from memory of this shape, with a number for the Variable of that name."""
    found = []
    for n, (op, argument) in enumerate(moves):
        known = _numbers(argument, name, size)
        if not (n == 0 and op is Ops.SHRINK and known == tuple((0, length) for length in shape)):
            found.append((op, known))
    return tuple(found)


def _numbers(argument: Any, name: str, size: int) -> Any:
    if isinstance(argument, tuple):
        return tuple(_numbers(part, name, size) for part in argument)
    if not isinstance(argument, UOp):
        return argument
    known = {b: b.src[1].replace(arg=size) for b in binds_in((argument,)) if b.src[0].arg[0] == name}
    return as_sint(substitute((argument,), known)[argument])


def _binds_of(argument: Any) -> list[UOp]:
    """The bound Variables in a movement's argument."""
    if isinstance(argument, tuple):
        return [bind for part in argument for bind in _binds_of(part)]
    return binds_in((argument,)) if isinstance(argument, UOp) else []


def _rebound(moves: Moves, binds: dict[str, int]) -> Moves:
    """The movements with the values that Variables have in this call."""

    def replaced(argument: Any) -> Any:
        if isinstance(argument, tuple):
            return tuple(replaced(part) for part in argument)
        if not isinstance(argument, UOp):
            return argument
        mapping = {
            bind: bind.src[0].bind(binds.get(bind.src[0].arg[0], bind.src[1].arg))
            for bind in _binds_of(argument)
        }
        return substitute([argument], mapping)[argument]

    return tuple((op, replaced(argument)) for op, argument in moves)

"""An optimizer's step as a recipe: its formulas make the same of the gradients and its memory each time.

The formulas are written with tensors, some twelve operations for each parameter in Adam. A step of one of our
optimizers whose options and numbers are those of the steps before makes the same graph from other versions of
its memory: the third such step is recorded, and from then on its nodes are made without running the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...config import flags_state
from ...dtype import default_float
from ...ir.uop import UOp
from ...locks import WeakKeys, table_lock
from ...shape.recipe import Recipe
from ...shape.rules import shape_of
from ...tensor import Tensor
from ...tensor.assigning import is_still_sole, overwrite, sole_version
from ...tensor.modes import mode
from ...tensor.storage import chain_to, marked

#: A step is recorded when it is the same for this time.
MEETINGS = 3


class CachedStep:
    """What is known of an optimizer's steps: the key of the last, how often it came, the recipe.

    looks    how each tensor looks at its memory: (op, arg) from the tensor down
    mutated  the places in the list of tensors of those that are written
    """

    def __init__(self) -> None:
        self.key: Any = None
        self.times = 0
        self.recipe: Recipe | None = None
        self.looks: list[tuple[Any, ...]] = []
        self.mutated: list[int] = []


_cached: WeakKeys[Any, CachedStep] = WeakKeys()


class _Memory(NamedTuple):
    """Where the tensors of an optimizer stand: their nodes, and the versions that these look at."""

    tensors: list[Any]
    nodes: list[UOp]
    versions: list[UOp]


def step(optimizer: Any, grads: Sequence[Tensor]) -> bool:
    """Make a step by the recipe; False where it has to be made by the formulas. These may be recorded by
    `record`.
    """
    key = _key(optimizer, grads)
    kept = _cached.get(optimizer) or _cached.put(optimizer, CachedStep())
    if key is None or key != kept.key:
        kept.key, kept.times, kept.recipe = key, 1, None
        return False
    kept.times += 1
    recipe = kept.recipe
    if recipe is None:
        return False
    memory = _memory(optimizer)
    if memory is None or [_view(node) for node in memory.nodes] != kept.looks:
        return False
    made = recipe.on([*(grad.uop for grad in grads), *memory.nodes, *memory.versions])
    with table_lock:
        for tensor, version in zip(memory.tensors, memory.versions, strict=True):
            if not is_still_sole(tensor, version):  # another thread came between
                return False
        for place, result in zip(kept.mutated, recipe.results, strict=True):
            overwrite(memory.tensors[place], made[result])
    return True


def record(optimizer: Any, grads: Sequence[Tensor]) -> None:
    """Make a step by the formulas, and keep how it is made where it came often enough."""
    kept = _cached.get(optimizer)
    memory = (
        _memory(optimizer) if kept is not None and kept.key is not None and kept.times == MEETINGS else None
    )
    if kept is None or memory is None:
        optimizer._step(grads)
        return
    looks = [_view(node) for node in memory.nodes]
    stand_ins = [marked(grad.uop) for grad in grads]  # nodes that no formula makes
    known = zip(stand_ins, grads, strict=True)
    optimizer._step([Tensor._computed(node, grad._requires_grad) for node, grad in known])
    inputs = [*stand_ins, *memory.nodes, *memory.versions]
    written = [
        (place, tensor._storage.version)
        for place, (tensor, before) in enumerate(zip(memory.tensors, memory.versions, strict=True))
        if tensor._storage.version is not before
    ]
    results = [version for _, version in written]
    recipe = Recipe.of(results, inputs)
    if recipe is None or recipe.checks:
        return
    made = recipe.on(inputs)
    if any(made[place] is not node for place, node in zip(recipe.results, results, strict=True)):
        return
    kept.recipe, kept.looks, kept.mutated = recipe, looks, [place for place, _ in written]
    made = recipe.on([*(grad.uop for grad in grads), *memory.nodes, *memory.versions])
    with table_lock:  # the graph is that of the steps before: it is planned already
        for (place, version), result in zip(written, recipe.results, strict=True):
            storage = memory.tensors[place]._storage
            if storage.version is version:  # else another thread came between
                storage.move_to(made[result])


def _memory(optimizer: Any) -> _Memory | None:
    """The memory of an optimizer, if all of it is realized and nobody else reads it."""
    tensors = [*optimizer.params, *optimizer._buffers]
    nodes, versions = [], []
    for tensor in tensors:
        version = sole_version(tensor)
        if version is None:
            return None
        versions.append(version)
        nodes.append(tensor.uop)
    return _Memory(tensors, nodes, versions)


def _view(node: UOp) -> tuple[Any, ...]:
    return tuple([(look.op, look.arg) for look in chain_to(node)])


# *** what a step's graph follows from


def _key(optimizer: Any, grads: Sequence[Tensor]) -> tuple[Any, ...] | None:
    """Options, numbers, which tensors there are, the forms of the gradients; None for what may follow from
    more: classes that are not ours, and attributes of other kinds.
    """
    kind, (overlay, changes) = type(optimizer), flags_state()
    if not kind.__module__.startswith(__package__ + ".") or overlay or optimizer._only_if:
        return None
    key: list[Any] = [kind._step, kind._begin, kind._moved, changes, mode.autocast, default_float()]
    if mode.examples:
        return None
    for name, value in vars(optimizer).items():
        if name not in _KNOWN and not _describe(value, key):
            return None
    for group in optimizer.param_groups:
        for value in group._items.values():
            if not _describe(value, key):
                return None
    key += map(id, optimizer._buffers)
    for grad in grads:
        node = grad.uop
        key += (shape_of(node), node.dtype, grad.device, grad._requires_grad)
    return tuple(key)


#: Attributes that are described elsewhere, or change no graph.
_KNOWN = frozenset(("_started", "_buffers", "param_groups", "_group_of", "_only_if"))


def _describe(value: Any, parts: list[Any]) -> bool:
    kind = type(value)
    parts.append(kind)
    if kind in (int, float, bool, str, type(None)):
        parts.append(value or str(value))  # two zeros are equal
    elif kind is Tensor:
        parts.append(id(value))
    elif kind is list or kind is tuple:
        parts.append(len(value))
        return all(_describe(part, parts) for part in value)
    else:
        return False
    return True

"""An optimizer's step as a recipe: its formulas make the same of the gradients and its memory each time.

The formulas are written with tensors, some twelve operations for each parameter in Adam. A step of one of our
optimizers whose options, numbers and forms of memory are those of steps before makes the same graph from
other versions of memory: the third such step is recorded, and from then on its nodes are made without running
the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...config import flags_state
from ...dtype import default_float
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import device_of
from ...locks import table_lock
from ...shape.recipe import Recipe, learned
from ...shape.rules import shape_of
from ...tensor import Tensor
from ...tensor.assigning import is_still_sole, overwrite, sole_version
from ...tensor.modes import mode
from ...tensor.recipes import describe
from ...tensor.storage import chain_to, marked


class _Memory(NamedTuple):
    """Where the tensors of an optimizer stand: their nodes, and the versions that these look at."""

    tensors: list[Any]
    nodes: list[UOp]
    versions: list[UOp]


class _Step(NamedTuple):
    """A step that is known: its recipe, and the places in the list of tensors of those that are written."""

    recipe: Recipe
    mutated: list[int]


def step(optimizer: Any, grads: Sequence[Tensor]) -> None:
    """Make a step: by a recipe, or by the formulas."""
    memory = _memory(optimizer)
    key = None if memory is None else _key(optimizer, grads, memory)
    known: _Step | None = learned.get(key)
    if memory is not None and known is not None and _is_made(known, memory, grads):
        return
    if memory is None or key is None or key in learned or not learned.is_due(key):
        optimizer._step(grads)
    else:
        recorded = _recorded(optimizer, grads, memory)
        counts = _key(optimizer, grads, memory) != key  # in Python, which a recipe does not
        learned.keep(key, None if counts else recorded)


def _is_made(known: _Step, memory: _Memory, grads: Sequence[Tensor]) -> bool:
    """Make a step by its recipe; False where another thread came between."""
    made = known.recipe.on([*(grad.uop for grad in grads), *memory.nodes, *memory.versions])
    with table_lock:
        if not all(map(is_still_sole, memory.tensors, memory.versions)):
            return False
        for place, result in zip(known.mutated, known.recipe.results, strict=True):
            overwrite(memory.tensors[place], made[result])
    return True


def _recorded(optimizer: Any, grads: Sequence[Tensor], memory: _Memory) -> _Step | None:
    """Make a step by the formulas; its recipe, if it follows from its key."""
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
    if recipe is None or recipe.checks or recipe.makes(inputs) != results:
        return None
    made = recipe.on([*(grad.uop for grad in grads), *memory.nodes, *memory.versions])
    with table_lock:  # the graph is that of the steps before: it is planned already
        for (place, version), result in zip(written, recipe.results, strict=True):
            storage = memory.tensors[place]._storage
            if storage.version is version:  # else another thread came between
                storage.move_to(made[result])
    return _Step(recipe, [place for place, _ in written])


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


# *** what a step's graph follows from


def _key(optimizer: Any, grads: Sequence[Tensor], memory: _Memory) -> tuple[Any, ...] | None:
    """Formulas, options, numbers, the forms of memory and gradients; None for what may follow from more:
    classes that are not ours, and attributes of other kinds.
    """
    kind, (overlay, changes) = type(optimizer), flags_state()
    if not kind.__module__.startswith(__package__ + ".") or overlay or optimizer._only_if or mode.examples:
        return None
    key: list[Any] = [kind, kind._step, kind._begin, kind._moved, changes, mode.autocast, default_float()]
    for node, version in zip(memory.nodes, memory.versions, strict=True):
        key += (version.dtype, version.arg, device_of(version))
        for look in chain_to(node):
            key += (look.op, look.arg if look.op is not Ops.DETACH else None)  # which says whose leaf it is
    place = {id(tensor): number for number, tensor in enumerate(memory.tensors)}

    def which(tensor: Any) -> bool:
        number = place.get(id(tensor))
        key.append((Tensor, number))
        return number is not None

    for options in (vars(optimizer), *[group._items for group in optimizer.param_groups]):
        for name, value in options.items():
            key.append(name)
            if name not in _KNOWN and not describe(value, key, which):
                return None
    for grad in grads:
        node = grad.uop
        key += (shape_of(node), node.dtype, grad.device, grad._requires_grad)
    return tuple(key)


#: Attributes that are described elsewhere, or change no graph.
_KNOWN = frozenset(("_started", "_buffers", "param_groups", "_group_of", "_only_if"))

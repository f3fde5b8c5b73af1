"""What a captured function takes and gives, by names for other languages, and what weights are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..ir.index import sint
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, toposort
from ..jit.captured import Captured
from ..jit.errors import describe_fn
from ..jit.nest import Nest
from ..jit.specs import Spec
from ..jit.tinyjit import argument_names
from ..schedule.graph.versions import effective
from ..tensor import Tensor

# *** arguments


def name_arguments(captured: Captured, fn: Any, args: Sequence[Any]) -> None:
    """Call the positional arguments as `fn` does: what was captured stands around it, and has no names."""
    for spec, name in zip(captured.args, argument_names(fn, tuple(args)), strict=True):
        _rename(spec, spec.name, name)


def _rename(spec: Spec, old: str, new: str) -> None:
    spec.name = new + spec.name.removeprefix(old)
    for part in spec.members():
        _rename(part, old, new)


def leaves(specs: Sequence[Spec]) -> list[Spec]:
    """The specs that have no others inside, in order."""
    return [leaf for spec in specs for leaf in (leaves(spec.members()) or [spec])]


def variables_in(shape: Sequence[sint]) -> list[UOp]:
    """The Variables that a shape depends on."""
    sizes = tuple([size for size in shape if isinstance(size, UOp)])
    return [node for node in toposort(sizes) if node.op is Ops.DEFINE_VAR]


def identifier(name: str, taken: set[str], keywords: Collection[str] = ()) -> str:
    r"""A name as an identifier that is not taken yet: `argument \`pair\`[0]` is pair_0."""
    plain = re.sub(r"\W+", "_", name.removeprefix("argument "), flags=re.ASCII).strip("_") or "argument"
    if not plain[0].isalpha() or plain in keywords:
        plain = f"argument_{plain}"
    while plain in taken:
        plain += "_"
    taken.add(plain)
    return plain


# *** results


class OwnResults:
    """A function that gives every tensor of a function's result once, in memory of its own, in a list.

    named   where they stood, once it has been called: (result, result[0] or result['key'], which of the list)
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__qualname__ = describe_fn(fn)  # what errors call it
        self.named: list[tuple[str, int]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        value = self.fn(*args, **kwargs)
        tensors = Nest(value, lambda tensor: False).tensors
        number = {id(tensor): n for n, tensor in enumerate(tensors)}
        self.named = [(name, number[id(tensor)]) for name, tensor in _tensors_in(value, "result")]
        named = {n for _, n in self.named}
        self.named += [(f"result {n}", n) for n in range(len(tensors)) if n not in named]
        return [tensor.clone() for tensor in tensors]


def _tensors_in(value: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors in containers, and where each is."""
    if isinstance(value, Tensor):
        return [(name, value)]
    members: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        members = [(f"{name}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        names = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{n}]" for n in range(len(value))]
        members = list(zip(names, value, strict=True))
    return [place for path, part in members for place in _tensors_in(part, path)]


# *** weights


def weight_names(fn: Any) -> dict[UOp, tuple[str, Tensor]]:
    """The names of a model's tensors, and the tensors, by the node below them, as nn.state finds them."""
    found: dict[UOp, tuple[str, Tensor]] = {}
    todo: list[tuple[str, Any]] = [("", getattr(fn, "__self__", fn))]
    visited: set[int] = set()
    while todo:
        name, value = todo.pop()
        if isinstance(value, Tensor):
            found.setdefault(below_views(value.uop), (name, value))
        elif id(value) not in visited:
            visited.add(id(value))
            if isinstance(value, Mapping):
                parts = list(value.items())
            elif isinstance(value, (list, tuple)):
                parts = list(enumerate(value))
            else:
                parts = list(getattr(value, "__dict__", {}).items())
            todo += [(f"{name}.{key}" if name else str(key), part) for key, part in parts]
    return found


def below_views(node: UOp) -> UOp:
    """The memory, or the value, that a node is a view of."""
    node = effective(node)
    while node.op in MOVEMENT or node.op is Ops.DETACH:
        node = effective(node.src[0])
    return node

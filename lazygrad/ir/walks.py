"""Walks that look and change nothing: what is reached from somewhere, what a node's facts follow from,
and of these the device on which its value lives.

Those that make graphs of graphs, and `resolve`, are in `rewrite.py`; `toposort` is with the node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from .args import Devices
from .ops import Ops
from .uop import UOp, toposort

Item = TypeVar("Item", bound=Hashable)


def of_op(nodes: Iterable[UOp], *ops: Ops) -> list[UOp]:
    """Those of the nodes that are of one of these ops, in their order."""
    return [node for node in nodes if node.op in ops]


def has_op(nodes: Iterable[UOp], *ops: Ops) -> bool:
    """Whether one of the nodes is of one of these ops."""
    return any(node.op in ops for node in nodes)


def reached(starts: Iterable[Item], further: Callable[[Item], Sequence[Item]]) -> Iterator[Item]:
    """What is reached from the starts, each once: one of them, what is reached from it, then the next."""
    visited: set[Item] = set()
    stack = [*starts][::-1]
    while stack:
        item = stack.pop()
        if item not in visited:
            visited.add(item)
            yield item
            stack.extend(reversed(further(item)))


def noted(
    node: UOp, key: str, work: Callable[[UOp], Any], below: Callable[[UOp], Iterable[UOp]] | None = None
) -> Any:
    """A fact of a node that nobody has asked for: it is worked out, and noted, after that of its sources.

    below  the sources that the work asks; None: all
    """
    if below is None:
        stack = [node]
        while stack:
            top = stack[-1]
            known = len(stack)
            if key not in top.facts:
                for source in top.src:
                    if key not in source.facts:
                        stack.append(source)
                if len(stack) > known:
                    continue
                top.facts[key] = work(top)  # type: ignore[literal-required]
            stack.pop()
        return node.facts[key]  # type: ignore[literal-required]
    for source in below(node):
        if key not in source.facts:
            _note_below(node, key, work, below)
            break
    found = node.facts[key] = work(node)  # type: ignore[literal-required]
    return found


def _note_below(
    node: UOp, key: str, work: Callable[[UOp], Any], below: Callable[[UOp], Iterable[UOp]]
) -> None:
    def unknown(node: UOp) -> list[UOp]:
        return [s for s in below(node) if key not in s.facts]

    for source in toposort(unknown(node), unknown):
        source.facts[key] = work(source)  # type: ignore[literal-required]


# *** on which device a value lives


def device_of(node: UOp) -> Devices | None:
    """Where a node's value lives: the device of the first source that has one; None for bare constants.

    A tuple of devices for what is sharded over them, or copied on each.
    """
    if "device" in node.facts:
        return node.facts["device"]
    for source in node.src:
        if "device" not in source.facts:
            return noted(node, "device", _device)  # type: ignore[no-any-return]
    found = node.facts["device"] = _device(node)
    return found


def _device(node: UOp) -> Devices | None:
    says = _SAY.get(node.op)
    if says is not None:
        return says(node)
    for source in node.src:
        device = source.facts["device"]
        if device is not None:
            return device
    return None


#: Ops whose nodes say where they are.
_SAY: dict[Ops, Callable[[UOp], Devices]] = {
    Ops.DEVICE: attrgetter("arg"),
    Ops.MULTI: attrgetter("arg.devices"),
    Ops.COPY: lambda node: node.src[-1].arg,
}

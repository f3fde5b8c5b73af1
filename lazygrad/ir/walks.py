"""Walks that look and change nothing: what is reached from somewhere, what a node's facts follow from.

Those that make graphs of graphs, and `resolve`, are in `rewrite.py`; `toposort` is with the node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

from .uop import UOp

Item = TypeVar("Item", bound=Hashable)


def reached(starts: Iterable[Item], further: Callable[[Item], Iterable[Item]]) -> Iterator[Item]:
    """What is reached from the starts, each once: one of them, what is reached from it, then the next."""
    seen: set[Item] = set()
    stack = [*starts][::-1]
    while stack:
        item = stack.pop()
        if item not in seen:
            seen.add(item)
            yield item
            stack += [*further(item)][::-1]


def noted(
    node: UOp, key: str, work: Callable[[UOp], Any], below: Callable[[UOp], Iterable[UOp]] | None = None
) -> Any:
    """A fact of a node that nobody has asked for: it is worked out, and noted, after that of its sources.

    below  the sources that the work asks; None: all
    """
    stack = [node]
    while stack:
        top = stack[-1]
        facts: Any = top.facts  # ir/facts.py declares the keys
        if key not in facts:
            waiting = [s for s in (top.src if below is None else below(top)) if key not in s.facts]
            if waiting:
                stack += waiting
                continue
            facts[key] = work(top)
        stack.pop()
    return facts[key]

"""The one rewriting machine: `graph_rewrite` applies a table of rules to every node, sources first."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .index import rebuild
from .pattern import PatternMatcher, Rule
from .uop import UOp

#: More rewrites than this, each of the result of the one before, are taken for rules that undo each other.
MAX_ROUNDS = 1000

#: (name of the pass, file:line of the rule, node before, node after; of a renderer's row, its text)
Observer = Callable[[str, str, UOp, Any], None]


class _Observers(threading.local):
    """Who watches rewrites in this thread."""

    def __init__(self) -> None:
        self.callbacks: tuple[Observer, ...] = ()


_observers = _Observers()


@contextlib.contextmanager
def observe(callback: Observer) -> Iterator[None]:
    """Call `callback(pass name, rule's file:line, before, after)` for each rewrite of this thread inside."""
    outer = _observers.callbacks
    _observers.callbacks = (*outer, callback)
    try:
        yield
    finally:
        _observers.callbacks = outer


def watched() -> bool:
    """Whether somebody watches the rewrites of this thread."""
    return bool(_observers.callbacks)


def notify(name: str, rule: Callable[..., Any], before: UOp, after: UOp) -> None:
    """Tell who watches that a pass with a walk of its own replaced a node, by this function."""
    code = getattr(rule, "__code__", None)
    tell(name, f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "", before, after)


def tell(name: str, place: str, before: UOp, after: Any) -> None:
    """Tell who watches what the rule at `file:line` made of a node."""
    for callback in _observers.callbacks:
        callback(name, place, before, after)


class RewriteError(RuntimeError):
    """Rules that never come to an end."""


def graph_rewrite(root: UOp, matcher: PatternMatcher, ctx: Any = None, name: str = "rewrite") -> UOp:
    """The graph with the rules applied until none matches any more.

    One walk, each node after its sources; what a rule makes is walked too, what a node became is remembered.
    Rules that go round in circles raise RewriteError with the rules of the circle.
    """
    return rewrite_all((root,), matcher, ctx, name)[root]


def rewrite_node(node: UOp, matcher: PatternMatcher, ctx: Any = None, name: str = "rewrite") -> UOp | None:
    """What the first rule that matches makes of this very node; None where none does.

    For a pass with a walk of its own: sources are not entered, and what the rule made is not walked.
    """
    rules = matcher.table.get(node.op)
    for matched, rule in matcher.rules_for(node.op) if rules is None else rules:
        after: UOp | None = matched(node, ctx)
        if after is not None and after is not node:
            for callback in _observers.callbacks:
                callback(name, rule.place(), node, after)
            return after
    return None


def rewrite_all(
    roots: tuple[UOp, ...], matcher: PatternMatcher, ctx: Any = None, name: str = "rewrite"
) -> dict[UOp, UOp]:
    """Every node that was met → what it became; the roots share the walk."""
    done: dict[UOp, UOp] = {}
    becomes: dict[UOp, UOp] = {}  # nodes on the stack that wait for what replaced them
    cause: dict[UOp, Rule] = {}
    rounds: dict[UOp, int] = {}  # how many rewrites led to a node, where it is not 0
    table, rules_for, callbacks = matcher.table, matcher.rules_for, _observers.callbacks
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        after = becomes.get(node)
        if after is not None:
            final = done.get(after)
            if final is None:
                raise _endless(name, node, becomes, cause)
            done[node] = final
            stack.pop()
            continue
        src = node.src
        waiting = [s for s in src if s not in done]
        if waiting:
            made = rounds.get(node)
            for source in waiting:
                if source in becomes:
                    raise _endless(name, source, becomes, cause)
                if made:
                    rounds.setdefault(source, made)
            waiting.reverse()
            stack.extend(waiting)
            continue
        new_src = tuple([done[s] for s in src])
        made = rounds.get(node, 0)
        if new_src != src:
            after = rebuild(node, new_src)
            if after is node:
                after = None
        if after is None:
            rules = table.get(node.op)
            for matched, rule in rules_for(node.op) if rules is None else rules:
                after = matched(node, ctx)
                if after is not None and after is not node:
                    cause[node] = rule
                    made += 1
                    for callback in callbacks:
                        callback(name, rule.place(), node, after)
                    break
            else:
                done[node] = node
                stack.pop()
                continue
        final = done.get(after)
        if final is not None:
            done[node] = final
            stack.pop()
            continue
        becomes[node] = after
        if after in becomes or made > MAX_ROUNDS:
            raise _endless(name, after, becomes, cause)
        if made:
            rounds[after] = made
        stack.append(after)
    return done


def _endless(name: str, node: UOp, becomes: dict[UOp, UOp], cause: dict[UOp, Rule]) -> RewriteError:
    """The error for rules without end: the last ones that fired, newest last."""
    last = list(dict.fromkeys(rule for at, rule in cause.items() if at in becomes))[-6:]
    rules = "\n".join(f"  {rule.place()}  {rule}" for rule in last)
    return RewriteError(
        f"{name}: the rules never come to an end at {node.op} {node.dtype}; they were\n{rules}"
    )

"""The walks that make graphs of graphs, each node after its sources; all rewrites are seen by who watches.

`graph_rewrite` applies a table of rules until none matches: for what a node and its (rewritten) sources say.
`transform` asks one function of each node, which sees the node as it was beside its new sources: for what
changes types, or depends on where a node stands. `resolve` is for passes that ask what a node is at some
indices, or at some place: each question is answered once, after those that it raises.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from .index import note_bounds, rebuild
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


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Nobody watches the rewrites of this thread inside."""
    outer = _observers.callbacks
    _observers.callbacks = ()
    try:
        yield
    finally:
        _observers.callbacks = outer


def watched() -> bool:
    """Whether somebody watches the rewrites of this thread."""
    return bool(_observers.callbacks)


def notify(name: str, rule: Callable[..., Any], before: UOp, after: UOp) -> None:
    """Tell who watches that a function replaced a node."""
    code = getattr(rule, "__code__", None)
    tell(name, f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "", before, after)


def tell(name: str, place: str, before: UOp, after: Any) -> None:
    """Tell who watches what the rule at `file:line` made of a node."""
    for callback in _observers.callbacks:
        callback(name, place, before, after)


class RewriteError(RuntimeError):
    """Rules that never come to an end."""


Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")

#: A node on new sources.
Rebuild = Callable[[UOp, tuple[UOp, ...]], UOp]
#: What a node becomes, from it and its new sources; None: the node on these.
Change = Callable[[UOp, tuple[UOp, ...]], "UOp | None"]


def as_it_is(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node on new sources, nothing else changed."""
    return UOp(node.op, node.dtype, src, node.arg)


def same_value(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node on sources that have the same values but may hide it: what is known of its own stays known."""
    made = UOp(node.op, node.dtype, src, node.arg)
    known = node.facts.get("bounds")
    if known is not None:
        note_bounds(made, *known)
    return made


def graph_rewrite(
    root: UOp,
    matcher: PatternMatcher,
    ctx: Any = None,
    name: str = "rewrite",
    *,
    rebuild: Rebuild = rebuild,
    kept: Iterable[UOp] = (),
) -> UOp:
    """The graph with the rules applied until none matches any more; `kept` nodes are not entered.

    One walk, each node after its sources; what a rule makes is walked too, what a node became is remembered.
    Rules that go round in circles raise RewriteError with the rules of the circle.
    """
    done: dict[UOp, UOp] = {node: node for node in kept}
    pending: dict[UOp, UOp] = {}  # nodes on the stack that wait for what replaced them
    cause: dict[UOp, Rule] = {}
    rewrites: dict[UOp, int] = {}  # how many rewrites led to a node, where it is not 0
    table, rules_for, callbacks = matcher.table, matcher.rules_for, _observers.callbacks
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node in pending:
            final = done.get(pending[node])
            if final is None:
                raise _endless(name, node, pending, cause)
            done[node] = final
            stack.pop()
            continue
        src = node.src
        waiting = [s for s in src if s not in done]
        if waiting:
            made = rewrites.get(node)
            for source in waiting:
                if source in pending:
                    raise _endless(name, source, pending, cause)
                if made:
                    rewrites.setdefault(source, made)
            waiting.reverse()
            stack.extend(waiting)
            continue
        new_src = tuple([done[s] for s in src])
        made = rewrites.get(node, 0)
        after = None
        if new_src != src:
            after = rebuild(node, new_src)
            if after is node:
                after = None
            elif after.src == new_src and after not in done and after not in pending:
                pending[node] = after  # its sources are done, so it is its turn at once
                stack.append(after)
                node, after = after, None
        if after is None:
            rules = table.get(node.op)
            for matched, rule in rules_for(node.op) if rules is None else rules:
                after = matched(node, ctx)
                if after is not None and after is not node:
                    cause[node] = rule
                    made += 1
                    for callback in callbacks:
                        callback(name, rule.file_and_line(), node, after)
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
        pending[node] = after
        if after in pending or made > MAX_ROUNDS:
            raise _endless(name, after, pending, cause)
        if made:
            rewrites[after] = made
        stack.append(after)
    return done[root]


def rewrite_node(node: UOp, matcher: PatternMatcher, ctx: Any = None, name: str = "rewrite") -> UOp | None:
    """What the first rule that matches makes of this very node; None where none does.

    For a pass with a walk of its own: sources are not entered, and what the rule made is not walked.
    """
    rules = matcher.table.get(node.op)
    for matched, rule in matcher.rules_for(node.op) if rules is None else rules:
        after: UOp | None = matched(node, ctx)
        if after is not None and after is not node:
            for callback in _observers.callbacks:
                callback(name, rule.file_and_line(), node, after)
            return after
    return None


def _endless(name: str, node: UOp, becomes: dict[UOp, UOp], cause: dict[UOp, Rule]) -> RewriteError:
    """The error for rules without end: the last ones that fired, newest last."""
    last = list(dict.fromkeys(rule for at, rule in cause.items() if at in becomes))[-6:]
    rules = "\n".join(f"  {rule.file_and_line()}  {rule}" for rule in last)
    return RewriteError(
        f"{name}: these rules rewrite each other's results forever, at {node.op} {node.dtype}:\n{rules}"
    )


def transform(
    root: UOp,
    change: Change,
    name: str | None,
    *,
    rebuild: Rebuild = as_it_is,
    order: Iterable[UOp] | None = None,
    done: dict[UOp, UOp] | None = None,
) -> UOp:
    """The graph with each node as `change` says, which is asked once of each, after its sources.

    `order` is `root.toposort()`, for who has it; `done` says of some nodes what they become, and is filled.
    Without a name nobody is told: for parts of a change that is told as a whole, as an Opt is.
    """
    done = {} if done is None else done
    watchers = watched() and name is not None
    for node in root.toposort() if order is None else order:
        if node in done:
            continue
        src = tuple([done[s] for s in node.src])
        made = change(node, src)
        if made is None:
            made = node if src == node.src else rebuild(node, src)
        elif watchers and made is not node:
            notify(str(name), change, node, made)
        done[node] = made
    return done[root]


def resolve(
    root: Question,
    needs: Callable[[Question], Sequence[Question]],
    answer: Callable[[Question], Answer],
    done: dict[Question, Answer],
) -> Answer:
    """The answer to a question; each is asked once, after all that it needs. `done` holds what is known.

    No recursion: graphs are deeper than Python's stack.
    """
    stack = [root]
    while stack:
        question = stack[-1]
        if question in done:
            stack.pop()
            continue
        waiting = [need for need in needs(question) if need not in done]
        if waiting:
            waiting.reverse()
            stack.extend(waiting)
            continue
        stack.pop()
        done[question] = answer(question)
    return done[root]

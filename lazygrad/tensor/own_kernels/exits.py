"""`break`, `continue` and `return` in a kernel's function as flags, and what stands behind them as branches.

for i in kernel.range(n):           stop = False
    if x[i] < 0:                    for i in kernel.range(n):
        break              →            if x[i] < 0: stop = True
    total += x[i]                       if not stop: total += x[i]
                                        (the loop ends where stop is set)
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from .syntax_nodes import (
    LOOPS,
    SCOPES,
    bodies,
    call_of,
    later,
    name_of,
    placed_at,
    set_to,
)

RESULT, RETURNED = "__lazygrad_result", "__lazygrad_returned"


class Exits:
    """`break`, `continue` and `return` as flags."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.returns = False

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        self.returns = any(_leaves(s, ast.Return) for s in body if not isinstance(s, ast.Return))
        if not self.returns:
            return self.block(body, None, None)
        always = ast.Constant(_always_returns(body))
        made = [
            set_to(RETURNED, ast.Constant(False), True),
            *self.block(body, None, None),
            ast.Return(call_of("result", later(name_of(RESULT)), name_of(RETURNED), always)),
        ]
        return placed_at(made, body[-1])

    def block(self, body: Sequence[ast.stmt], stop: str | None, skip: str | None) -> list[ast.stmt]:
        """Statements, in a loop with the flags `stop` (break) and `skip` (continue)."""
        made: list[ast.stmt] = []
        for place, statement in enumerate(body):
            flags = self._flags(statement, stop, skip)
            made += self._statement(statement, stop, skip)
            rest = body[place + 1 :]
            if not flags:
                continue
            if rest and not isinstance(statement, (ast.Break, ast.Continue, ast.Return)):
                test = call_of("none_of", *map(name_of, flags))
                inside = self.block(rest, stop, skip)
                made += placed_at([ast.If(test, inside, [])], rest[0])
            break
        return made

    def _flags(self, statement: ast.stmt, stop: str | None, skip: str | None) -> list[str]:
        """The flags that a statement may set."""
        kinds = ((stop, ast.Break), (skip, ast.Continue), (RETURNED if self.returns else None, ast.Return))
        return [flag for flag, kind in kinds if flag is not None and _leaves(statement, kind)]

    def _statement(self, statement: ast.stmt, stop: str | None, skip: str | None) -> list[ast.stmt]:
        if isinstance(statement, ast.Break) and stop is not None:
            return placed_at([set_to(stop, ast.Constant(True))], statement)
        if isinstance(statement, ast.Continue) and skip is not None:
            return placed_at([set_to(skip, ast.Constant(True))], statement)
        if isinstance(statement, ast.Return) and self.returns:
            value = statement.value or ast.Constant(None)
            return placed_at([set_to(RESULT, value), set_to(RETURNED, ast.Constant(True))], statement)
        if isinstance(statement, SCOPES):
            return [statement]
        if isinstance(statement, LOOPS):
            return self._loop(statement)
        for field in ("body", "orelse", "finalbody"):
            if getattr(statement, field, None):
                setattr(statement, field, self.block(getattr(statement, field), stop, skip))
        for inner in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            inner.body = self.block(inner.body, stop, skip)
        return [statement]

    def _loop(self, loop: ast.For | ast.While) -> list[ast.stmt]:
        number, body, behind = next(self.numbers), loop.body, loop.orelse
        stop = f"__lazygrad_stop{number}" if any(_leaves(s, ast.Break) for s in body) else None
        skip = f"__lazygrad_skip{number}" if any(_leaves(s, ast.Continue) for s in body) else None
        before: list[ast.stmt] = []
        returns = self.returns and any(_leaves(s, ast.Return) for s in body)
        loop.orelse, loop.body = [], self.block(body, stop, skip)
        if skip is not None:
            loop.body = [*placed_at([set_to(skip, ast.Constant(False), True)], loop), *loop.body]
        if stop is not None:
            before = placed_at([set_to(stop, ast.Constant(False), True)], loop)
        leaves = [stop] if stop is not None else []
        if returns:
            leaves.append(RETURNED)
        loop.leaves, loop.number = leaves, number  # type: ignore[union-attr]
        made = [*before, loop]
        if behind:
            inside = self.block(behind, None, None)
            made += (
                inside
                if not leaves
                else placed_at([ast.If(call_of("none_of", *map(name_of, leaves)), inside, [])], behind[0])
            )
        return made


def _leaves(statement: ast.stmt, kind: type[ast.stmt]) -> bool:
    """Whether a `break` or `continue` of the loop around a statement, or a `return`, stands in it."""
    if isinstance(statement, kind):
        return True
    if isinstance(statement, SCOPES) or (isinstance(statement, LOOPS) and kind is not ast.Return):
        return isinstance(statement, LOOPS) and any(_leaves(s, kind) for s in statement.orelse)
    return any(_leaves(s, kind) for body in bodies(statement) for s in body)


def _always_returns(body: Sequence[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Raise)):
            return True
        if isinstance(statement, ast.If) and statement.orelse:
            if _always_returns(statement.body) and _always_returns(statement.orelse):
                return True
        elif isinstance(statement, ast.With) and _always_returns(statement.body):
            return True
        elif isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant):
            if statement.test.value and not any(_leaves(s, ast.Break) for s in statement.body):
                return True
    return False

"""The words of a kernel's function as calls of `flow.py`.

Variables that change in branches and loops are kept where the kernel can change them.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from .exits import Exits
from .syntax_nodes import (
    FLOW,
    SCOPES,
    bodies,
    call_of,
    for_loop,
    later,
    name_of,
    placed_at,
    set_to,
)


def _assigned(statements: Iterable[ast.stmt]) -> dict[str, None]:
    """The names that statements assign, in order; not those that they only reset for themselves."""
    found: dict[str, None] = {}
    reset: set[str] = set()
    for statement in statements:
        if isinstance(statement, SCOPES):
            continue
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
            if getattr(statement, "raw", False):
                reset |= {t.id for t in targets if isinstance(t, ast.Name)}
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            targets = [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found[node.id] = None
        for body in bodies(statement):
            found |= _assigned(body)
    return {name: None for name in found if name not in reset}


_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_IN_PLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
    ast.LShift: "ilshift", ast.RShift: "irshift", ast.MatMult: "imatmul",
}  # fmt: skip


class Words(ast.NodeTransformer):
    """The statements of a function with calls of `flow.py`.

    changing  the names that branches or loops assign: they are read and assigned by calls
    """

    def __init__(self, function: ast.FunctionDef, free: Sequence[str]) -> None:
        self.body = Exits().function(function.body)
        of = function.args
        self.parameters = {
            a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg) if a
        }
        outer = {
            name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }  # fmt: skip
        inside = itertools.chain.from_iterable(itertools.chain.from_iterable(map(bodies, self.body)))
        self.changing = {
            name: None for name in _changed(list(inside)) if name not in outer and name not in free
        }
        self.numbers = itertools.count()

    def function(self) -> list[ast.stmt]:
        known = ast.Attribute(name_of(FLOW), "UNBOUND", ast.Load())
        begins = [set_to(name, known) for name in self.changing if name not in self.parameters]
        doc = self.body[:1] if _is_text(self.body[0]) else []
        body = self._block(self.body[len(doc) :])
        return [*doc, *placed_at(begins, self.body[0]), *body] or [ast.Pass()]

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for place, statement in enumerate(statements):
            following = statements[place + 1] if place + 1 < len(statements) else None
            found = (
                self._with(statement, following) if isinstance(statement, ast.With) else self.visit(statement)
            )
            made += placed_at(found if isinstance(found, list) else [found], statement)
        return made or [ast.Pass()]

    def _fresh(self, what: str) -> str:
        return f"__lazygrad_{what}{next(self.numbers)}"

    def _entered(self, asked: str, names: Iterable[str], both: Iterable[str] = ()) -> list[ast.stmt]:
        """`a, b = flow.entering(asked, ("a", "b"), (a, b), both)`."""
        known = [name for name in names if name in self.changing]
        if not known:
            return []
        sides = set(both)
        values = [
            ast.Tuple([ast.Constant(name) for name in known], ast.Load()),
            ast.Tuple([name_of(name) for name in known], ast.Load()),
            ast.Tuple([ast.Constant(name in sides) for name in known], ast.Load()),
        ]
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in known], ast.Store())
        return [ast.Assign([targets], call_of("entering", name_of(asked), *values))]

    # *** statements

    def visit_If(self, node: ast.If) -> Any:
        asked, side = self._fresh("asked"), self._fresh("side")
        yes, no = _assigned(node.body), _assigned(node.orelse)
        both = [name for name in yes if name in no]
        inside = ast.If(
            name_of(side), self._block(node.body), self._block(node.orelse) if node.orelse else []
        )
        return [
            set_to(asked, call_of("condition", self.visit(node.test))),
            *self._entered(asked, yes | no, both),
            for_loop(side, call_of("sides", name_of(asked), ast.Constant(bool(node.orelse))), [inside]),
        ]

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node, call_of("iterations", self.visit(node.iter)), node.target)

    def visit_While(self, node: ast.While) -> Any:
        turns = call_of("While", ast.Constant(node.lineno), later(self.visit(node.test)),
                      ast.Constant(isinstance(node.test, ast.Constant)))  # fmt: skip
        return self._loop(node, turns, ast.Name(self._fresh("turn"), ast.Store()))

    def _loop(self, node: ast.For | ast.While, turns: ast.expr, target: ast.expr) -> list[ast.stmt]:
        loop = self._fresh("loop")
        leaves: list[str] = node.leaves  # type: ignore[union-attr]
        names = _assigned(node.body)
        body = self._block(node.body)
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                names.pop(each.id, None)
        if leaves:
            flags = [self.visit(name_of(flag)) for flag in leaves]
            goes_on = self._fresh("side")
            body = [
                for_loop(goes_on, call_of("going", name_of(loop), *flags), body),
                ast.If(call_of("ends", name_of(loop), *flags), [ast.Break()], []),
            ]
        return [
            set_to(loop, turns),
            *self._entered(loop, names),
            ast.For(target, name_of(loop), body, []),
        ]

    def _with(self, node: ast.With, following: ast.stmt | None) -> list[ast.stmt]:
        """`with kernel.when(c)`: what it and its `otherwise` assign is kept as an `if` keeps it."""
        made: list[ast.stmt] = []
        if _is_call_of(node, "when"):
            asked = self._fresh("asked")
            other = _assigned(following.body) if _is_call_of(following, "otherwise") else {}  # type: ignore[union-attr]
            yes = _assigned(node.body)
            entered = self._entered(asked, yes | other, [name for name in yes if name in other])
            made = [set_to(asked, call_of("conditional")), *entered] if entered else []
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
        node.body = self._block(node.body)
        return [*made, node]

    def visit_Try(self, node: ast.Try) -> Any:
        node.body = self._block(node.body)
        for field in ("orelse", "finalbody"):
            if getattr(node, field):
                setattr(node, field, self._block(getattr(node, field)))
        for handler in node.handlers:
            handler.body = self._block(handler.body)
        return node

    def visit_Match(self, node: Any) -> Any:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.body = self._block(case.body)
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        return [ast.Expr(call_of("raises")), self.generic_visit(node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if getattr(node, "raw", False):
            return node
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            return set_to(name, self._saved(name, value)) if name in self.changing else set_to(name, value)
        kept = self._fresh("value")
        made: list[ast.stmt] = [set_to(kept, value)]
        for target in node.targets:
            made += self._to(target, name_of(kept))
        return made

    def _to(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """A value to a target; names in a tuple that change get what stands there by a name between."""
        between: dict[str, str] = {}
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in self.changing:
                between[node.id] = node.id = self._fresh("value")
        target = self.visit(target)
        made: list[ast.stmt] = [ast.Assign([target], value)]
        return made + [set_to(old, self._saved(old, name_of(new))) for old, new in between.items()]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id in self.changing:
            name = node.target.id
            word = ast.Constant(_IN_PLACE[type(node.op)])
            return set_to(
                name, self._saved(name, call_of("in_place", word, self.visit(name_of(name)), value))
            )
        node.value, node.target = value, self.visit(node.target)
        return node

    def _saved(self, name: str, value: ast.expr) -> ast.expr:
        return call_of("assigned", ast.Constant(name), name_of(name), value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # written anew itself, where it is called

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    # *** expressions

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.changing:
            return ast.copy_location(call_of("read", ast.Constant(node.id), name_of(node.id)), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if node.func.value.id == FLOW:
                return node
        node.func = ast.copy_location(call_of("callee", node.func), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return ast.copy_location(call_of("selected", node.test, later(node.body), later(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        word = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return ast.copy_location(call_of(word, node.values[0], *map(later, node.values[1:])), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return (
            ast.copy_location(call_of("not_", node.operand), node) if isinstance(node.op, ast.Not) else node
        )

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) < 2 or any(type(op) not in _COMPARISONS for op in node.ops):
            return node
        words = ast.Constant(" ".join([_COMPARISONS[type(op)] for op in node.ops]))
        return ast.copy_location(call_of("chain", words, node.left, *map(later, node.comparators)), node)


def _changed(statements: Sequence[ast.stmt]) -> dict[str, None]:
    """All names that are assigned, at any depth, with those that are reset."""
    found: dict[str, None] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign) and getattr(statement, "raw", False):
            found |= {t.id: None for t in statement.targets if isinstance(t, ast.Name)}
        found |= _assigned([statement])
        for body in bodies(statement):
            found |= _changed(body)
    return found


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_call_of(statement: ast.stmt | None, word: str) -> bool:
    if not isinstance(statement, ast.With):
        return False
    called = statement.items[0].context_expr
    function = called.func if isinstance(called, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == word

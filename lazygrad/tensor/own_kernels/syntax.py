"""Python's own `if`, `while`, `break`, `continue`, `return`, `and`, `or`, `not` in a kernel's function.

Python asks a condition at once, and a kernel knows it only when it runs. So the function is written anew
before it is traced, its lines kept: each such word becomes a call of `flow.py`, which does what Python does
where the condition is known, and else records a branch or a loop. First (`_Exits`) what leaves a loop or the
function becomes flags, and what stands behind it a branch on them:

    for i in kernel.range(n):           stop = False
        if x[i] < 0:                    for i in kernel.range(n):
            break              →            if x[i] < 0: stop = True
        total += x[i]                       if not stop: total += x[i]
                                            (the loop ends where stop is set)

Then (`_Words`) variables that change in branches and loops are kept where the kernel can change them.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterable, Sequence
from typing import Any

FLOW = "__lazygrad_flow"
FUNCTION = "__lazygrad_function"
RESULT, RETURNED = "__lazygrad_result", "__lazygrad_returned"
_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def rewritten(function: types.FunctionType, flow: Any) -> types.FunctionType | None:
    """The function with calls of `flow` in place of these words; None if its source is not there, or if it is
    none that can be written anew (a generator, a lambda).
    """
    code = _code_of(function.__code__)
    if code is None:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[FLOW] = types.CellType(flow)
    closure = tuple([cells[name] for name in code.co_freevars])
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@functools.lru_cache(4096)
def _code_of(code: types.CodeType) -> types.CodeType | None:
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        return None
    ast.increment_lineno(found, first - 1)
    found.decorator_list, found.returns = [], None
    found.name = FUNCTION  # its own name is what it reads: a function may call itself
    found.body = _Words(found, code.co_freevars).function()
    given = [ast.arg(name) for name in (*code.co_freevars, FLOW)]
    outer = ast.FunctionDef(
        name="__lazygrad_outer",
        args=ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[found],
        decorator_list=[],
    )
    ast.copy_location(outer, found)
    outer.type_params = []  # type: ignore[attr-defined]  # Python 3.12 asks for it
    module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    made = compile(module, code.co_filename, "exec", dont_inherit=True)
    around = next(each for each in made.co_consts if isinstance(each, types.CodeType))
    return next(
        each for each in around.co_consts if isinstance(each, types.CodeType) and each.co_name == found.name
    )


# *** nodes


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(word: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(FLOW), word, ast.Load()), list(args), [])


def _set(name: str, value: ast.expr, raw: bool = False) -> ast.Assign:
    """`name = value`; `raw`: whatever the name was, in this block it is that."""
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    made.raw = raw  # type: ignore[attr-defined]
    return made


def _for(name: str, turns: ast.expr, body: list[ast.stmt]) -> ast.For:
    return ast.For(ast.Name(name, ast.Store()), turns, body, [])


def _later(value: ast.expr) -> ast.Lambda:
    """Something that is computed when it is asked for."""
    return ast.Lambda(
        ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), value
    )


def _placed(statements: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """New statements, on the line of the user's for which they stand."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
                ast.copy_location(node, at)
    return list(statements)


def _bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside of one."""
    found = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    found += [case.body for case in getattr(statement, "cases", [])]
    return [body for body in found if body]


# *** what leaves a loop or the function


class _Exits:
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
            _set(RETURNED, ast.Constant(False), True),
            *self.block(body, None, None),
            ast.Return(_call("result", _later(_name(RESULT)), _name(RETURNED), always)),
        ]
        return _placed(made, body[-1])

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
                test = _call("none_of", *map(_name, flags))
                inside = self.block(rest, stop, skip)
                made += _placed([ast.If(test, inside, [])], rest[0])
            break
        return made

    def _flags(self, statement: ast.stmt, stop: str | None, skip: str | None) -> list[str]:
        """The flags that a statement may set."""
        kinds = ((stop, ast.Break), (skip, ast.Continue), (RETURNED if self.returns else None, ast.Return))
        return [flag for flag, kind in kinds if flag is not None and _leaves(statement, kind)]

    def _statement(self, statement: ast.stmt, stop: str | None, skip: str | None) -> list[ast.stmt]:
        if isinstance(statement, ast.Break) and stop is not None:
            return _placed([_set(stop, ast.Constant(True))], statement)
        if isinstance(statement, ast.Continue) and skip is not None:
            return _placed([_set(skip, ast.Constant(True))], statement)
        if isinstance(statement, ast.Return) and self.returns:
            value = statement.value or ast.Constant(None)
            return _placed([_set(RESULT, value), _set(RETURNED, ast.Constant(True))], statement)
        if isinstance(statement, _SCOPES):
            return [statement]
        if isinstance(statement, _LOOPS):
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
            loop.body = [*_placed([_set(skip, ast.Constant(False), True)], loop), *loop.body]
        if stop is not None:
            before = _placed([_set(stop, ast.Constant(False), True)], loop)
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
                else _placed([ast.If(_call("none_of", *map(_name, leaves)), inside, [])], behind[0])
            )
        return made


def _leaves(statement: ast.stmt, kind: type[ast.stmt]) -> bool:
    """Whether a `break` or `continue` of the loop around a statement, or a `return`, stands in it."""
    if isinstance(statement, kind):
        return True
    if isinstance(statement, _SCOPES) or (isinstance(statement, _LOOPS) and kind is not ast.Return):
        return isinstance(statement, _LOOPS) and any(_leaves(s, kind) for s in statement.orelse)
    return any(_leaves(s, kind) for body in _bodies(statement) for s in body)


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


# *** words


def _assigned(statements: Iterable[ast.stmt]) -> dict[str, None]:
    """The names that statements assign, in order; not those that they only reset for themselves."""
    found: dict[str, None] = {}
    reset: set[str] = set()
    for statement in statements:
        if isinstance(statement, _SCOPES):
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
        for body in _bodies(statement):
            found |= _assigned(body)
    return {name: None for name in found if name not in reset}


_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_IN_PLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
    ast.LShift: "ilshift", ast.RShift: "irshift", ast.MatMult: "imatmul",
}  # fmt: skip


class _Words(ast.NodeTransformer):
    """The statements of a function with calls of `flow.py`.

    changing  the names that branches or loops assign: they are read and assigned by calls
    """

    def __init__(self, function: ast.FunctionDef, free: Sequence[str]) -> None:
        self.body = _Exits().function(function.body)
        of = function.args
        self.parameters = {
            a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg) if a
        }
        outer = {
            name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }  # fmt: skip
        inside = itertools.chain.from_iterable(itertools.chain.from_iterable(map(_bodies, self.body)))
        self.changing = {
            name: None for name in _changed(list(inside)) if name not in outer and name not in free
        }
        self.numbers = itertools.count()

    def function(self) -> list[ast.stmt]:
        known = ast.Attribute(_name(FLOW), "UNBOUND", ast.Load())
        begins = [_set(name, known) for name in self.changing if name not in self.parameters]
        doc = self.body[:1] if _is_text(self.body[0]) else []
        body = self._block(self.body[len(doc) :])
        return [*doc, *_placed(begins, self.body[0]), *body] or [ast.Pass()]

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for place, statement in enumerate(statements):
            following = statements[place + 1] if place + 1 < len(statements) else None
            found = (
                self._with(statement, following) if isinstance(statement, ast.With) else self.visit(statement)
            )
            made += _placed(found if isinstance(found, list) else [found], statement)
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
            ast.Tuple([_name(name) for name in known], ast.Load()),
            ast.Tuple([ast.Constant(name in sides) for name in known], ast.Load()),
        ]
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in known], ast.Store())
        return [ast.Assign([targets], _call("entering", _name(asked), *values))]

    # *** statements

    def visit_If(self, node: ast.If) -> Any:
        asked, side = self._fresh("asked"), self._fresh("side")
        yes, no = _assigned(node.body), _assigned(node.orelse)
        both = [name for name in yes if name in no]
        inside = ast.If(_name(side), self._block(node.body), self._block(node.orelse) if node.orelse else [])
        return [
            _set(asked, _call("condition", self.visit(node.test))),
            *self._entered(asked, yes | no, both),
            _for(side, _call("sides", _name(asked), ast.Constant(bool(node.orelse))), [inside]),
        ]

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node, _call("turns", self.visit(node.iter)), node.target)

    def visit_While(self, node: ast.While) -> Any:
        turns = _call("While", ast.Constant(node.lineno), _later(self.visit(node.test)),
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
            flags = [self.visit(_name(flag)) for flag in leaves]
            goes_on = self._fresh("side")
            body = [
                _for(goes_on, _call("going", _name(loop), *flags), body),
                ast.If(_call("ends", _name(loop), *flags), [ast.Break()], []),
            ]
        return [_set(loop, turns), *self._entered(loop, names), ast.For(target, _name(loop), body, [])]

    def _with(self, node: ast.With, following: ast.stmt | None) -> list[ast.stmt]:
        """`with kernel.when(c)`: what it and its `otherwise` assign is kept as an `if` keeps it."""
        made: list[ast.stmt] = []
        if _is_call_of(node, "when"):
            asked = self._fresh("asked")
            other = _assigned(following.body) if _is_call_of(following, "otherwise") else {}  # type: ignore[union-attr]
            yes = _assigned(node.body)
            entered = self._entered(asked, yes | other, [name for name in yes if name in other])
            made = [_set(asked, _call("conditional")), *entered] if entered else []
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
        return [ast.Expr(_call("raises")), self.generic_visit(node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if getattr(node, "raw", False):
            return node
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            return _set(name, self._kept(name, value)) if name in self.changing else _set(name, value)
        kept = self._fresh("value")
        made: list[ast.stmt] = [_set(kept, value)]
        for target in node.targets:
            made += self._to(target, _name(kept))
        return made

    def _to(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """A value to a target; names in a tuple that change get what stands there by a name between."""
        between: dict[str, str] = {}
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in self.changing:
                between[node.id] = node.id = self._fresh("value")
        target = self.visit(target)
        made: list[ast.stmt] = [ast.Assign([target], value)]
        return made + [_set(old, self._kept(old, _name(new))) for old, new in between.items()]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id in self.changing:
            name = node.target.id
            word = ast.Constant(_IN_PLACE[type(node.op)])
            return _set(name, self._kept(name, _call("in_place", word, self.visit(_name(name)), value)))
        node.value, node.target = value, self.visit(node.target)
        return node

    def _kept(self, name: str, value: ast.expr) -> ast.expr:
        return _call("assigned", ast.Constant(name), _name(name), value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # written anew itself, where it is called

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    # *** expressions

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.changing:
            return ast.copy_location(_call("read", ast.Constant(node.id), _name(node.id)), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if node.func.value.id == FLOW:
                return node
        node.func = ast.copy_location(_call("callee", node.func), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return ast.copy_location(_call("chosen", node.test, _later(node.body), _later(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        word = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return ast.copy_location(_call(word, node.values[0], *map(_later, node.values[1:])), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return ast.copy_location(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) < 2 or any(type(op) not in _COMPARISONS for op in node.ops):
            return node
        words = ast.Constant(" ".join([_COMPARISONS[type(op)] for op in node.ops]))
        return ast.copy_location(_call("chain", words, node.left, *map(_later, node.comparators)), node)


def _changed(statements: Sequence[ast.stmt]) -> dict[str, None]:
    """All names that are assigned, at any depth, with those that are reset."""
    found: dict[str, None] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign) and getattr(statement, "raw", False):
            found |= {t.id: None for t in statement.targets if isinstance(t, ast.Name)}
        found |= _assigned([statement])
        for body in _bodies(statement):
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

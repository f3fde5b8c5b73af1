"""Small pieces of syntax trees, of which rewritten functions are made."""

from __future__ import annotations

import ast
from collections.abc import Sequence

#: The name under which a rewritten function finds `flow.py`.
FLOW = "__lazygrad_flow"
LOOPS = (ast.For, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def name_of(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def call_of(word: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(name_of(FLOW), word, ast.Load()), list(args), [])


def set_to(name: str, value: ast.expr, raw: bool = False) -> ast.Assign:
    """`name = value`; `raw`: whatever the name was, in this block it is that."""
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    made.raw = raw  # type: ignore[attr-defined]
    return made


def for_loop(name: str, turns: ast.expr, body: list[ast.stmt]) -> ast.For:
    return ast.For(ast.Name(name, ast.Store()), turns, body, [])


def later(value: ast.expr) -> ast.Lambda:
    """Something that is computed when it is asked for."""
    return ast.Lambda(
        ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), value
    )


def placed_at(statements: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """New statements, on the line of the user's for which they stand."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
                ast.copy_location(node, at)
    return list(statements)


def bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside of one."""
    found = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    found += [case.body for case in getattr(statement, "cases", [])]
    return [body for body in found if body]

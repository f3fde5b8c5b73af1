"""Python's own `if`, `while`, `break`, `continue`, `return`, `and`, `or`, `not` in a kernel's function.

Python asks a condition at once, and a kernel knows it only when it runs. So the function is written anew
before it is traced, its lines kept: each such word becomes a call of `flow.py`, which does what Python does
where the condition is known, and else records a branch or a loop. First (`exits.py`) what leaves a loop or
the function becomes flags, and what stands behind it a branch on them; then (`words.py`) the words are calls.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any

from .syntax_nodes import FLOW
from .words import Words

FUNCTION = "__lazygrad_function"


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
    found.body = Words(found, code.co_freevars).function()
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

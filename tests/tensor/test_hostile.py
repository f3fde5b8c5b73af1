"""Every method's own example with one argument after another replaced by what it never expected.

It gives a result, or an error from a short list in a user's words. It never crashes, hangs or takes
all memory.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import math
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, dtypes, nn
from lazygrad.device import DeviceError
from tests.tensor.wrong import INSIDE

ERRORS = (TypeError, ValueError, IndexError, OverflowError, RuntimeError, NotImplementedError, DeviceError)
#: Names in the examples' own words.
NAMES = {"Tensor": Tensor, "nn": nn, "dtypes": dtypes, "math": math, "np": np, "lazygrad": lazygrad}
GARBAGE: dict[str, Any] = {
    "None": None,
    "a string": "a",
    "a negative": -7,
    "far too many": 10**12,
    "no int64": 2**70,
    "a fraction": 1.5,
    "nan": math.nan,
    "nothing": (),
    "lists of lists": [[1], [2, 3]],
    "an object": object(),
    "a matrix": Tensor([[1, 2], [3, 4]]),
    "elsewhere": Tensor([1.0, 2.0], device="PYTHON"),
    "empty": Tensor([]),
}
#: What runs a function, sets state that other tests see, or has its example inside a lambda.
LEFT_OUT = {"sequential", "manual_seed", "train", "test", "no_grad", "inference_mode", "backward", "gradient"}


def examples() -> Iterator[tuple[str, str, str]]:
    """(method, the statements of its docstring before, the statement that calls it)."""
    for name in dir(Tensor):
        member = getattr(Tensor, name)
        if name.startswith("_") or not callable(member) or name in LEFT_OUT:
            continue
        before = ""
        for example in doctest.DocTestParser().get_examples(member.__doc__ or ""):
            if call_in(ast.parse(example.source), member.__name__) is not None:
                yield member.__name__, before, example.source
                break
            before += example.source


def call_in(tree: ast.AST, name: str) -> ast.Call | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            return node
    return None


def mutations(name: str, source: str) -> Iterator[ast.Expression]:
    """The call alone, each time with another argument replaced by the name GARBAGE."""
    call = call_in(ast.parse(source), name)
    assert call is not None
    given = {keyword.arg for keyword in call.keywords}
    optional = [
        p.name
        for p in list(inspect.signature(getattr(Tensor, name)).parameters.values())[len(call.args) + 1 :]
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given
    ]
    garbage = ast.Name("GARBAGE", ast.Load())
    for place in range(len(call.args) + len(call.keywords) + len(optional)):
        made = call_in(ast.parse(source), name)
        assert made is not None
        if place < len(made.args):
            made.args[place] = garbage
        elif place < len(made.args) + len(made.keywords):
            made.keywords[place - len(made.args)].value = garbage
        else:
            made.keywords.append(ast.keyword(optional[place - len(call.args) - len(call.keywords)], garbage))
        yield ast.fix_missing_locations(ast.Expression(made))


class TookTooLong(BaseException):
    pass


def too_long(*_: object) -> None:
    raise TookTooLong


@pytest.mark.slow
def test_every_argument_of_every_method() -> None:
    poor, tried = [], 0
    old = signal.signal(signal.SIGALRM, too_long)
    try:
        for name, before, source in examples():
            for expression in mutations(name, source):
                for what, garbage in GARBAGE.items():
                    names = dict(NAMES)
                    exec(before, names)
                    tried += 1
                    signal.setitimer(signal.ITIMER_REAL, 20)
                    try:
                        eval(compile(expression, name, "eval"), {**names, "GARBAGE": garbage})
                        continue
                    except ERRORS as error:
                        problem = str(error) if INSIDE.search(str(error)) or not str(error) else ""
                    except BaseException as error:
                        problem = repr(error)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    if problem:
                        poor.append(f"{ast.unparse(expression)} with {what}: {problem}")
    finally:
        signal.signal(signal.SIGALRM, old)
    assert not poor, "\n".join(poor)
    assert tried > 10_000

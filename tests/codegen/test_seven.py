"""The seven kernels that every stage must carry: each printed at every form, each equal to the evaluator."""

from __future__ import annotations

import pytest

from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.config import Context
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.text import linear_text
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CStyleRenderer
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.python import PythonRenderer
from tests.helpers import needs

from .kernels import SEVEN, VARIABLES, equal, random_contents, run

seven = pytest.mark.parametrize("name", SEVEN)


@seven
def test_every_form(name, golden):
    ast = SEVEN[name]()
    forms = dict(stages(ast, CStyleRenderer()))
    texts = {
        "2 kernel": repr(ast),
        "3 loops": loops_text(forms["lower"]),
        "6 target code": loops_text(forms["form multiply-add"]),
        "7 linear program": linear_text(forms["form sums"]),
        "8 C": compile_kernel(ast, CStyleRenderer(), ()).src,
        "8 LLVM": compile_kernel(ast, LLVMRenderer(), ()).src,
        "8 PYTHON": compile_kernel(ast, PythonRenderer(), ()).src,
    }
    assert golden("\n".join(f"==== {form}\n{text.rstrip()}\n" for form, text in texts.items()))


@pytest.mark.parametrize(
    "device",
    [
        "PYTHON",
        "GRID",
        "CPU",
        pytest.param("AARCH64", marks=needs("aarch64")),
        pytest.param("CLANG", marks=needs("clang")),
        pytest.param("CL", marks=needs("cl")),
    ],
)
@seven
def test_equal_to_the_evaluator(name, device):
    ast = SEVEN[name]()
    tolerance = 1e-6 if name == "softmax" else 0.0  # exp is within a few last places, all else is exact
    for seed in range(3):
        contents = random_contents(ast, seed)
        with Context(CHECK=1):
            found = run(ast, device, contents, VARIABLES.get(name))
        expected = evaluate(ast, contents, VARIABLES.get(name))
        assert all(equal(a, b, tolerance) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_symbolic_size_is_an_argument(n):
    ast = SEVEN["symbolic_sum"]()
    contents = random_contents(ast)
    assert run(ast, "PYTHON", contents, {"n": n}) == evaluate(ast, contents, {"n": n})

"""Random kernels agree with the evaluator, to the bit, on every device that runs here."""

from __future__ import annotations

import pytest

from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.oracle.evaluate import evaluate
from tests.helpers import needs

from .kernels import equal, load, plain, random_contents, run, scatter, sink
from .programs import Programs


def check(seed: int, device: str) -> None:
    ast = Programs(seed).kernel()
    contents = random_contents(ast, seed)
    with Context(CHECK=1):
        found = run(ast, device, contents)
    expected = evaluate(ast, contents)
    for a, b in zip(found, expected, strict=True):
        assert equal(a, b), f"seed {seed} on {device}: {a} is not {b}"


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_on_python(first):
    for seed in range(first, first + 50):
        check(seed, "PYTHON")


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_on_the_cpu(first):
    for seed in range(first, first + 25):
        check(seed, "CPU")


@needs("clang")
def test_on_clang():
    for seed in range(20):
        check(seed, "CLANG")


def test_on_a_grid():
    for seed in range(100):
        check(seed, "GRID")


@needs("cl")
def test_on_opencl():
    for seed in range(8):
        check(seed, "CL")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_many_on_python(first):
    for seed in range(first, first + 500):
        check(seed, "PYTHON")


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
@pytest.mark.parametrize("combine", [None, Ops.ADD, Ops.MAX, Ops.MIN, Ops.MUL], ids=str)
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 2)], ids=str)
def test_scatter(shape, combine, device):
    """All indices differ, or some axes do not move them at all."""
    whole = plain(*shape)
    for kept in (shape, (*shape[:-1], 1), (1, *shape[1:]), (1,) * len(shape)):
        where = load(2, plain(*kept).expand(shape), dtypes.int)
        ast = sink(scatter(0, 5, load(1, whole, dtypes.int), where, combine))
        for seed in range(4):
            contents = random_contents(ast, seed, -2, 7)
            with Context(CHECK=1):
                assert run(ast, device, contents) == evaluate(ast, contents)

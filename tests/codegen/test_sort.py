"""Kernels that sort: rows of unsigned keys in order, by the evaluator and on every device."""

from __future__ import annotations

import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.direct_kernels import direct_value
from lazygrad.config import Context
from lazygrad.device import Device
from lazygrad.direct.sort import WORD, SortPlan
from lazygrad.dtype import DType, dtypes
from lazygrad.ir.args import SORT, WORKING, ProgramArg
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from tests.helpers import needs

from .kernels import add, load, plain, random_contents, run, sink, store

KEYS = [dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64]


def sort(shape: tuple[int, ...], dtype: DType) -> UOp:
    keys = load(2, plain(*shape), dtype)
    words = SortPlan.of(shape, dtype).words
    order = UOp(Ops.PROGRAM, dtypes.int32, (keys,), SORT)
    working = UOp(Ops.PROGRAM, WORD, (keys,), ProgramArg(SORT.kernel, WORKING, words))
    return sink(store(0, order), store(1, working))


@pytest.mark.parametrize(
    "device",
    [
        "PYTHON",
        "CPU",
        pytest.param("AARCH64", marks=needs("aarch64")),
        pytest.param("CLANG", marks=needs("clang")),
    ],
)
@pytest.mark.parametrize("dtype", KEYS, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (2, 70), (1, 300), (2, 3, 4)], ids=str)
def test_rows_in_order(shape: tuple[int, ...], dtype: DType, device: str) -> None:
    """Few values, so that many keys are equal, and all of them."""
    ast = sort(shape, dtype)
    for low, high in ((0, 4), (0, min(dtypes.max(dtype), 2**62))):
        contents = random_contents(ast, 1, low, int(high))
        with Context(CHECK=1):
            found = run(ast, device, contents)
        assert found[0] == evaluate(ast, contents)[0]


def test_order_is_stable() -> None:
    ast = sort((1, 6), dtypes.uint8)
    contents: list[list[int]] = [[0] * 6, [0] * SortPlan.of((1, 6), dtypes.uint8).words, [3, 1, 3, 1, 0, 3]]
    assert evaluate(ast, contents) == [[4, 1, 3, 0, 2, 5]]
    assert run(ast, "PYTHON", contents)[0] == [4, 1, 3, 0, 2, 5]


def test_what_it_is_called_and_costs() -> None:
    spec = compile_kernel(sort((4, 1000), dtypes.uint32), Device["CPU"].renderer)
    assert spec.name == "sort_4_1000"
    assert spec.outs == (0, 1)
    assert spec.ins == (1, 2)
    assert spec.estimates.ops > 4000


def test_other_kernels_do_not_sort() -> None:
    assert direct_value(add()) is None


@pytest.mark.parametrize("dtype", KEYS, ids=str)
def test_memory_for_a_word_of_each_element(dtype: DType) -> None:
    plan = SortPlan.of((10, 1000), dtype)
    assert plan.passes * plan.digit >= dtype.itemsize * 8
    assert plan.words <= plan.counts + 4 * 1000

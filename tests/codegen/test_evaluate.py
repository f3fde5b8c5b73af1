"""The evaluator of kernel ASTs against numpy: it is the oracle of all that follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.oracle.evaluate import evaluate

from .kernels import (
    SEVEN,
    const,
    gather,
    load,
    move,
    plain,
    random_contents,
    reduce,
    scatter,
    sink,
    store,
    view,
)


def floats(values: list) -> np.ndarray:
    return np.array(values, np.float32)


def test_add():
    ast = SEVEN["add"]()
    contents = random_contents(ast)
    assert evaluate(ast, contents) == [(floats(contents[1]) + floats(contents[2])).tolist()]


def test_dot():
    assert evaluate(SEVEN["dot"](), [None, [1, 2], [3, 4]]) == [[11]]


def test_softmax():
    x = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
    shifted = np.exp(x - x.max(1, keepdims=True))
    (found,) = evaluate(SEVEN["softmax"](), [None, x])
    assert np.allclose(found, (shifted / shifted.sum(1, keepdims=True)).reshape(-1), rtol=1e-6)


def test_value_and_statistic():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    centred, mean = evaluate(SEVEN["value_and_statistic"](), [None, None, x])
    assert mean == x.mean(1).tolist()
    assert centred == (x - x.mean(1, keepdims=True)).reshape(-1).tolist()


def test_padded():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(100.0, 112).reshape(3, 4)
    expected = np.pad(y, ((1, 1), (1, 0))) + np.pad(x + 1, ((1, 1), (1, 0)))
    assert evaluate(SEVEN["padded"](), [None, x, y]) == [expected.reshape(-1).tolist()]


def test_gathered_rows_outside_are_zero():
    table = np.arange(20.0)
    (found,) = evaluate(SEVEN["gathered"](), [None, table, [3, -1, 5]])
    assert found == [12.0, 13.0, 14.0, 15.0, *[0.0] * 8]


@pytest.mark.parametrize("n", [1, 4, 10])
def test_symbolic_sum(n):
    x = np.arange(20.0)
    (found,) = evaluate(SEVEN["symbolic_sum"](), [None, x], {"n": n})
    assert found == [x[:n].sum() * n, x[n : 2 * n].sum() * n]
    assert evaluate(SEVEN["symbolic_sum"](), [None, x], {Variable("n", 1, 10): n}) == [found]


def test_several_views():
    tracker = plain(3, 2).permute((1, 0)).reshape((3, 2)).flip((0,)).pad(((1, 0), (0, 1)))
    x = np.arange(6.0).reshape(3, 2)
    expected = np.pad(x.T.reshape(3, 2)[::-1], ((1, 0), (0, 1)))
    assert evaluate(sink(store(0, load(1, tracker))), [None, x]) == [expected.reshape(-1).tolist()]
    moved = move(load(1, plain(3, 2)), tracker)
    assert evaluate(sink(store(0, moved)), [None, x]) == [expected.reshape(-1).tolist()]


def test_numbers_are_those_of_the_dtype():
    big = load(1, plain(1), dtypes.int8)
    assert evaluate(sink(store(0, big + big)), [None, [100]]) == [[-56]]
    half = load(1, plain(1), dtypes.float16)
    assert evaluate(sink(store(0, half * half)), [None, [300.0]]) == [[math.inf]]
    bits = np.array([0x3FC0], np.uint16)  # 1.5 in bfloat16
    value = load(1, plain(1), dtypes.bfloat16)
    assert evaluate(sink(store(0, value + value)), [None, bits]) == [[3.0]]


def test_constants_and_iota_are_masked():
    tracker = plain(3).pad(((1, 1),))
    seven = UOp(Ops.CONST, dtypes.int, (view(tracker),), 7)
    number = UOp(Ops.IOTA, dtypes.int, (view(tracker.flip((0,))),))
    assert evaluate(sink(store(0, seven + number)), [None]) == [[0, 9, 8, 7, 0]]


def test_an_empty_reduction_is_the_identity():
    nothing = load(1, plain(2, 0), size=1)
    assert evaluate(sink(store(0, reduce(nothing, Ops.MAX, 1))), [None, [0]]) == [[-math.inf] * 2]


WHERE = load(1, plain(6), dtypes.int)
VALUES = load(2, plain(6))


@pytest.mark.parametrize(
    ("combine", "expected"),
    [(None, [4, 1, 5, 1]), (Ops.ADD, [1 + 0 + 4, 1, 1 + 2 + 5, 1]), (Ops.MAX, [4, 1, 5, 1])],
)
def test_scatter(combine, expected):
    ast = sink(scatter(0, 4, VALUES, WHERE, combine))
    assert evaluate(ast, [[1] * 4, [0, -1, 2, 4, 0, 2], [0, 1, 2, 3, 4, 5]]) == [expected]


def test_loads_see_the_memory_as_it_was():
    x = load(0, plain(4), size=4)
    reversed_x = load(0, plain(4).flip((0,)), size=4)
    assert evaluate(sink(store(0, x + reversed_x)), [[1, 2, 3, 4]]) == [[5, 5, 5, 5]]


def test_gather_in_a_computed_place():
    table = load(1, plain(3), dtypes.int)
    ast = sink(store(0, gather(2, 5, table + const(1, table))))
    assert evaluate(ast, [None, [0, 3, 4], [10, 11, 12, 13, 14]]) == [[11, 14, 0]]

"""Sizes that are arguments: every kernel agrees with the evaluator for each value they take."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.lowering.lower import lower
from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.oracle.evaluate import evaluate

from .kernels import (
    equal,
    gather,
    load,
    move,
    plain,
    random_contents,
    reduce,
    run,
    scatter,
    sink,
    spread,
    store,
)

N, M = Variable("n", 1, 6), Variable("m", 1, 5)


def centred() -> UOp:
    x = load(1, plain(3, N), size=18)
    below = x - spread(reduce(x, Ops.MAX, 1), 3, N)
    return sink(store(0, below + spread(reduce(below, Ops.ADD, 1), 3, N)))


def computed_border() -> UOp:
    total = reduce(load(1, plain(N, 4, 2), size=48), Ops.ADD, 2)
    return sink(store(0, move(total, plain(N, 4, 1).pad(((0, 0), (1, 1), (0, 0))))))


PLACES = load(2, plain(N, 1).expand((N, M)), dtypes.int, size=6)
#: name of the kernel → the kernel
KERNELS = {
    "outer": ("E_n*4", sink(store(0, load(1, plain(N, 4), size=24) + load(2, plain(N, 4), size=24)))),
    "inner": ("E_4_n", sink(store(0, load(1, plain(4, N), size=24)))),
    "both": (
        "E_n_m",
        sink(store(0, load(1, plain(N, M), size=30) + load(2, plain(M, N).permute((1, 0)), size=30))),
    ),
    "row": ("r_3_n_n_n", centred()),
    "border": ("E_n+3", sink(store(0, load(1, plain(N).pad(((1, 2),)), size=6)))),
    "part": ("E_n", sink(store(0, load(1, plain(6).shrink(((0, N),)), size=6)))),
    "reshaped": ("E_n*4", sink(store(0, load(1, plain(N, 4).permute((1, 0)).reshape((N * 4,)), size=24)))),
    "computed": ("r_n_6_2", computed_border()),
    "sum": ("r_n*4", sink(store(0, reduce(load(1, plain(N, 4), size=24), Ops.ADD, 0, 1)))),
    "gather": ("E_n_m", sink(store(0, gather(1, 9, load(2, plain(N, M), dtypes.int, size=30))))),
    "added": ("E_n_m", sink(scatter(0, 9, load(1, plain(N, M), size=30), PLACES, Ops.ADD))),
    "last": ("E_n", sink(scatter(0, 9, load(1, plain(N, M), size=30), PLACES))),
    "guarded": (
        "E_n_m",
        sink(store(0, load(3, plain(N, M), size=30)), store(1, load(2, plain(1, M), size=5))),
    ),
    "backwards": ("E_n*4", sink(store(0, load(1, plain(N, 4).flip((0, 1)), size=24)))),
}


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_size(name, device):
    displayed, ast = KERNELS[name]
    assert lower(ast).arg.name == displayed
    for n, m in ((1, 1), (2, 5), (6, 3)):
        contents = random_contents(ast, n, -3, 9)
        variables = {"n": n, "m": m}
        with Context(CHECK=1):
            found = run(ast, device, contents, variables)
        expected = evaluate(ast, contents, variables)
        assert all(equal(a, b) for a, b in zip(found, expected, strict=True)), (n, m)


def test_a_vector_has_no_more_lanes_than_there_can_be_steps():
    """Sixteen lanes for at most three rows were more padding than PADTO allows."""
    table = Tensor.arange(40).reshape(10, 4).cast("float16").realize()
    rows = Tensor([1, 2, 3]).realize()
    for count in (1, 2, 3):
        some = rows[: Variable("count", 1, 3).bind(count)]
        assert table[some].sum().item() == sum(range(4, 4 + 4 * count))

"""What adds in order on a grid: the axes whose places never meet are threads."""

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.lowering.disjoint_stores import disjoint_threads
from lazygrad.codegen.lowering.lower import lower
from lazygrad.config import Context
from lazygrad.ir.args import AxisType
from lazygrad.ir.ops import Ops
from lazygrad.target import Target
from tests.helpers import needs

GRID = Target("", grid=True)


def kinds(value: Tensor, target: Target = GRID) -> list[str]:
    """The output loops of the last kernel, and what they are on a target."""
    with Context(PLAN_FOR="cuda:sm_90"):
        sink = disjoint_threads(lower(value.schedule()[-1].ast), target)
    ranges = [node for node in sink.toposort() if node.op is Ops.RANGE]
    found = [(node.arg.kind.name, node.src[0].arg) for node in ranges if node.arg.kind is not AxisType.REDUCE]
    return sorted(f"{name} {size}" for name, size in found)


def memory(*shape: int, dtype: str = "float") -> Tensor:
    return Tensor.empty(*shape, dtype=dtype).realize()


@pytest.mark.choice
def test_rows_are_added_by_a_thread_for_each_column():
    table = memory(10, 8).requires_grad_()
    (table[memory(5, dtype="int")] * memory(5, 8)).sum().backward()
    assert kinds(table.grad) == ["GLOBAL 8", "LOOP 5"]


def test_a_processor_walks_the_columns():
    table = memory(10, 8).requires_grad_()
    (table[memory(5, dtype="int")] * memory(5, 8)).sum().backward()
    assert kinds(table.grad, Target("")) == ["LOOP 5", "LOOP 8"]


def test_single_numbers_may_meet():
    assert kinds(memory(10).scatter_reduce(0, memory(5, dtype="int"), memory(5), "sum")) == ["LOOP 5"]


@pytest.mark.choice
def test_places_of_each_column_may_meet_where_each_has_its_own():
    found = memory(10, 8).scatter_reduce(0, memory(5, 8, dtype="int"), memory(5, 8), "sum")
    assert kinds(found) == ["GLOBAL 8", "LOOP 5"]  # a column is added to itself only


def test_windows_of_one_row_may_meet():
    table = memory(10).requires_grad_()
    windows = table[memory(5, 1, dtype="int") + Tensor.arange(3).reshape(1, 3)]
    (windows * memory(5, 3)).sum().backward()
    assert "GLOBAL 3" not in kinds(table.grad)


@pytest.mark.parametrize(
    "device", [pytest.param("CL", marks=needs("cl")), pytest.param("WEBGPU", marks=needs("webgpu"))]
)
def test_the_numbers_are_those_of_numpy(device):
    rng = np.random.default_rng(0)
    rows, values = rng.integers(0, 7, 33).astype(np.int32), rng.standard_normal((33, 64), dtype=np.float32)
    expected = np.zeros((7, 64), np.float32)
    np.add.at(expected, rows, values)
    with Context(DEV=device):
        table = Tensor.zeros(7, 64).contiguous().requires_grad_()
        (table[Tensor(rows)] * Tensor(values)).sum().backward()
        np.testing.assert_allclose(table.grad.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.choice
def test_a_sum_that_all_threads_would_compute_is_made_before():
    table = memory(10, 64).requires_grad_()
    x = table[memory(5, dtype="int")]
    (x * (x.square().mean(-1, keepdim=True) + 1).rsqrt()).sum().backward()
    assert kinds(table.grad) == ["GLOBAL 64", "LOOP 5"]

"""Short kernels that do not wait for each other are one, with a nest of loops for each (others:
`test_followers.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.horizontal_fusion.joined_kernel import joined
from lazygrad.schedule.horizontal_fusion.side_by_side import cost_of
from lazygrad.schedule.kernels.template import KernelTemplate, Leaf, Output, Part, Template, verify_order
from lazygrad.schedule.plan import target_of
from lazygrad.schedule.what_if import Planned


def memory(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return Tensor(values).realize()


def nests(*tensors: Tensor) -> list[tuple[int, ...]]:
    """For each kernel, how many stores each of its nests has."""
    first, *others = tensors
    return [item.ast.arg or (len(item.ast.src),) for item in first.schedule(*others)]


@pytest.mark.choice
def test_sums_of_other_sizes_are_nests_of_one_kernel():
    x, y = memory(4, 5), memory(70, seed=1)
    sums, squares = x.sum(1), y * y
    assert nests(sums, squares) == [(1, 1)]
    np.testing.assert_allclose(sums.numpy(), x.numpy().sum(1), rtol=1e-6)
    np.testing.assert_array_equal(squares.numpy(), y.numpy() ** 2)


@pytest.mark.choice
def test_nests_read_what_both_need_once():
    x = memory(4, 5)
    first, second = x.sum(1), x.max(0)
    (item,) = first.schedule(second)
    assert len(item.inputs) == 1


@pytest.mark.choice
def test_who_waits_for_another_has_a_kernel_of_its_own():
    x = memory(4, 5)
    sums = x.sum(1).contiguous()
    assert nests(sums, x / sums.sum()) == [(1,), (1,)]


@pytest.mark.choice
def test_what_is_between_decides_which_kernel_moves():
    """The last one joins the first: it needs nothing that comes later."""
    x, y = memory(4, 5), memory(7, seed=1)
    sums = x.sum(1).contiguous()
    last = y * 2
    assert sorted(nests(sums, (x / sums.sum()), last)) == [(1,), (1, 1)]
    np.testing.assert_array_equal(last.numpy(), y.numpy() * 2)


def test_an_update_in_place_runs_after_who_reads_the_old_values():
    x, y = memory(6), memory(9, seed=1)
    before = x.numpy()
    old, other = x.sum(), y + 1
    x.assign(x * 2)
    Tensor.realize(old, x, other)
    np.testing.assert_allclose(old.numpy(), before.sum(), rtol=1e-6)
    np.testing.assert_array_equal(x.numpy(), before * 2)
    np.testing.assert_array_equal(other.numpy(), y.numpy() + 1)


@pytest.mark.choice
def test_a_large_product_joins_nobody():
    x, y = memory(128, 128), memory(7, seed=1)
    assert nests(x @ x, y * 2) == [(1,), (1,)]


@pytest.mark.choice
def test_two_long_kernels_stay_apart():
    x, y = memory(1 << 11, 1 << 11), memory(1 << 22, seed=1)
    assert nests(x.sum(1), y * 2) == [(1,), (1,)]


@pytest.mark.choice
def test_kernels_in_pieces_share_them():
    """A short one that runs in pieces joins a long one that does; a sum of few numbers does not."""
    x, y, few = memory(1 << 10, 1 << 10), memory(1 << 20, seed=1), memory(5, seed=2)
    asts = [item.ast for made in (x.sum(0), y * 3, few * 3) for item in made.schedule()]
    target = replace(target_of("CPU"), threads=2)
    assert [cost.in_chunks for cost in (cost_of(ast, target) for ast in asts) if cost] == [True, True, False]
    if target_of("CPU").threads > 1:
        assert len(nests(x.sum(0) + 1, y * 2, few * 2)) == 2


def test_a_grid_has_one_launch_for_each():
    x, y = memory(4, 5), memory(7, seed=1)
    with Context(PLAN_FOR="cuda:sm_90"):
        assert nests(x.sum(1), y * 2) == [(1,), (1,)]


def test_a_budget_of_memory_leaves_kernels_where_they_are():
    x, y = memory(4, 5), memory(7, seed=1)
    with Context(MEMORY_BUDGET=1 << 20):
        assert nests(x.sum(1), y * 2) == [(1,), (1,)]


@pytest.mark.choice
def test_what_if_knows_the_values_of_nests():
    x, y = memory(4, 5), memory(7, seed=1)
    sums, doubled = x.sum(1), y * 2
    planned = Planned(Request.of([sums.uop, doubled.uop]), fuse=True)
    assert [[value.op for value in values] for values in planned.values] == [[Ops.REDUCE_AXIS, Ops.MUL]]


def test_versions_of_memory_in_one_kernel_are_one_output():
    """Four writes of one memory, two and two as one kernel: each has one name for it, and so do others."""
    versions: list[Output] = []
    kernels = []
    for number in range(4):
        versions.append(Output(versions[-1] if versions else Leaf(0), "CPU", 8, dtypes.float))
        value = UOp.const(dtypes.float, float(number))
        memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(8), (), 0)
        ast = UOp.sink(UOp(Ops.STORE, dtypes.void, (memory, value, value)))
        kernels.append(KernelTemplate(ast, versions[-1:], [], [], ()))
    last = Output(None, "CPU", 8, dtypes.float)
    kernels.append(KernelTemplate(kernels[0].ast, [last], [Part(versions[3], 4, 0, dtypes.float)], [], ()))
    made = joined(
        Template(kernels, [(0, versions[3]), (1, versions[1])]), [kernels[:2], kernels[2:4], kernels[4:]]
    )
    verify_order(made, "join kernels")
    assert made.before == [[], [0], [1]]
    assert [made.maker_of[output] for _, output in made.results] == [1, 0]
    assert [len(kernel.outputs) for kernel in made.kernels] == [1, 1, 1]
    assert {output.root for kernel in made.kernels for output in kernel.outputs} == {Leaf(0), last}

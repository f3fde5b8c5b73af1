"""kernelize, schedule, realize: what they make, what they do not run; they can be called again and again."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor, Variable, dtypes
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from tests.helpers import needs


def memory(values) -> Tensor:
    return Tensor(values).realize()


def ran() -> int:
    return GlobalCounters.kernel_count


# ---- where numbers are stored that are on no device


@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_numbers_are_stored_where_they_are_needed(device):
    """Without fusion every value is stored: the order along an axis of one element, too."""
    with Context(FUSE=0):
        values, places = Tensor.ones(2, 1, 16, device=device).sort(1)
        assert (values.sum().item(), places.sum().item()) == (32.0, 0)


def test_numbers_that_two_devices_need_are_computed_on_both():
    with Context(FUSE=0):
        x = Tensor([[1.0], [2.0]]).shard(("CPU", "CPU:1"), 0)
        assert x.sort(1)[0].tolist() == [[1.0], [2.0]]


# ---- what kernelize makes


@pytest.mark.usefixtures("undisturbed")
def test_kernelize_runs_nothing_and_allocates_nothing():
    a = memory([1, 2, 3])
    out = a * 2 + 1
    before, used = ran(), GlobalCounters.mem_used
    out.kernelize()
    assert (ran(), GlobalCounters.mem_used) == (before, used)
    (item,) = out.schedule()
    assert not item.bufs[0].is_allocated
    assert out.tolist() == [3, 5, 7]


def test_an_output_becomes_an_assign_of_its_buffer_and_its_kernel():
    a, b = memory([1]), memory([2])
    out = (a + b).kernelize()
    assert out.uop.op is Ops.ASSIGN
    buffer, kernel = out.uop.src
    assert buffer.op is Ops.BUFFER
    assert (buffer.arg, buffer.dtype) == (1, dtypes.int)
    assert kernel.op is Ops.KERNEL
    assert kernel.src == (buffer, a.uop, b.uop)
    assert kernel.arg.ast.op is Ops.SINK


def test_what_is_fused_stays_what_it_was():
    a = memory([1])
    product = a * 2
    out = (product + 1).kernelize()
    assert product.uop.op is Ops.MUL
    assert out.uop.op is Ops.ASSIGN
    assert product.tolist() == [2]


def test_a_movement_on_top_stays_on_top():
    out = (memory([[1, 2], [3, 4]]) + 1).T.kernelize()
    assert out.uop.op is Ops.PERMUTE
    assert out.tolist() == [[2, 4], [3, 5]]


def test_kernelize_twice_keeps_the_kernels():
    out = (memory([1, 2]) + 1).kernelize()
    planned = out.uop
    assert out.kernelize().uop is planned
    assert [item.kernel for item in out.schedule()] == [planned.src[1]]


def test_kernelize_of_memory_is_nothing():
    a = memory([1, 2])
    held = a.uop
    assert a.kernelize().uop is held
    assert a.schedule() == []


def test_kernelize_takes_several_tensors():
    a = memory([1, 2])
    x, y, z = a + 1, a * 2, (a + 1) * 3
    assert x.kernelize(y, z) is x
    assert [t.uop.op for t in (x, y, z)] == [Ops.ASSIGN] * 3
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2, 3], [2, 4], [6, 9])


def test_children_of_a_kernelized_tensor_load_its_buffer():
    a = memory([1, 2])
    out = (a * 3).kernelize()
    child = (out + 2).kernelize()
    buffer, kernel = child.uop.src
    assert kernel.src == (buffer, out.uop)
    assert Ops.MUL not in [node.op for node in kernel.arg.ast.toposort()]
    before = ran()
    assert child.tolist() == [5, 8]
    assert ran() - before == 2


def test_an_intermediate_can_be_kernelized_after_its_child():
    a = memory([1, 2])
    middle = a * 3
    child = (middle + 2).kernelize()
    middle.kernelize()
    assert (child.tolist(), middle.tolist()) == ([5, 8], [3, 6])


def test_fusion_is_laid_out_step_by_step():
    x = memory([1.0, 2.0])
    for _ in range(3):
        x = ((x + 1) * 2).kernelize()
    assert len(x.schedule()) == 3
    before = ran()
    assert x.tolist() == [22.0, 30.0]
    assert ran() - before == 3


def test_realize_runs_the_kernels_that_are_planned():
    out = (memory([1]) + 1).kernelize()
    kernel = out.schedule()[0].kernel
    before = ran()
    out.realize()
    assert ran() - before == 1
    assert "ran" in kernel.facts


def test_realizing_a_child_runs_its_parents_once():
    a = memory([1, 2])
    parent = (a + 1).kernelize()
    before = ran()
    assert (parent * 2).tolist() == [4, 6]
    assert (parent * 3).tolist() == [6, 9]
    assert ran() - before == 3


# ---- after running


def test_a_realized_tensor_is_a_buffer_and_its_graph_is_gone():
    a = memory([1, 2])
    kept = a + 1
    out = kept * 2
    out.realize()
    assert out.uop.op is Ops.BUFFER
    assert kept.uop.op is Ops.ADD
    assert out.is_realized
    assert not kept.is_realized


def test_realize_again_runs_nothing():
    out = (memory([1, 2]) + 1).realize()
    before = ran()
    out.realize()
    Tensor.realize(out, out)
    assert ran() == before


def test_realize_returns_its_tensor():
    a = Tensor([1])
    assert a.realize() is a
    assert Tensor.realize(a) is a


def test_a_bare_constant_is_stored():
    zero = Tensor(3.0).realize()
    assert zero.uop.op is Ops.BUFFER or zero.uop.op is Ops.RESHAPE
    zero.assign(4.0)
    assert zero.item() == 4.0


@pytest.mark.usefixtures("undisturbed")
def test_the_graph_of_what_ran_is_freed():
    a = Tensor.ones(1024).contiguous().realize()
    used = GlobalCounters.mem_used
    for _ in range(20):
        a = (a * 0.5 + 1).realize()
    assert GlobalCounters.mem_used == used


# ---- schedules


@pytest.mark.choice
def test_schedule_is_a_list_in_the_order_of_running():
    a = memory(np.ones((4, 4), np.float32))
    out = (a @ a).relu().contiguous() + 1
    items = out.schedule()
    assert len(items) == 2
    assert items[0].outputs[0] is items[1].inputs[0]
    assert items[0].ast.op is Ops.SINK
    assert out.numpy().tolist() == [[5.0] * 4] * 4


@pytest.mark.choice
def test_schedule_items_name_what_they_come_from():
    a, b = memory([1.0, 2.0]), memory([3.0, 4.0])
    (item,) = (a * b).sum().schedule()
    assert [str(m) for m in item.metadata] == ["sum", "__mul__"]
    assert [buffer.size for buffer in item.bufs] == [1, 2, 2]


def test_data_from_the_host_is_a_copy_item():
    items = (Tensor([1.0, 2.0]) + 1).schedule()
    assert [item.ast.op for item in items] == [Ops.COPY, Ops.SINK]
    assert items[0].bufs[1].device == "NPY"


def test_realized_inputs_are_not_scheduled_again():
    a = Tensor([1.0, 2.0])
    first = (a + 1).schedule()
    a.realize()
    assert (len(first), len((a + 2).schedule())) == (2, 1)


def test_schedule_with_vars():
    size = Variable("size", 1, 8).bind(3)
    a = memory(list(range(8)))
    items, values = a.shrink(((0, size),)).sum().schedule_with_vars()
    assert len(items) == 1
    assert {variable.arg[0]: value for variable, value in values.items()} == {"size": 3}
    assert items[0].var_vals == values


def test_scheduled_items_can_be_run_one_by_one():
    from lazygrad.engine.realize import run_item

    out = memory([1, 2, 3]) + 4
    for item in out.schedule():
        run_item(item)
    assert item.bufs[0].numpy().tolist() == [5, 6, 7]
    assert out.tolist() == [5, 6, 7]


# ---- sizes


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_tensors(shape):
    a = Tensor.ones(*shape).contiguous().realize()
    assert (a + 1).numpy().shape == shape
    assert (a + 1).sum().item() == 0.0


def test_symbolic_sizes_reach_the_result():
    a = memory([1.0, 2.0, 3.0, 4.0])
    for count in (1, 4, 2):
        n = Variable("n", 1, 4).bind(count)
        assert (a.shrink(((0, n),)) * 2).sum().item() == count * (count + 1)


@pytest.mark.parametrize("check", [0, 1])
def test_numbers_of_several_bound_sizes_are_computed_by_the_kernel(check):
    a = memory([[1.0, 2.0, 3.0, 4.0]] * 4)
    with Context(CHECK=check):
        for rows, columns in ((4, 4), (1, 2), (3, 1)):
            n, m = Variable("n", 1, 4).bind(rows), Variable("m", 1, 4).bind(columns)
            part = a.shrink(((0, n), (0, m)))
            assert part.mean().item() == (columns + 1) / 2
            assert (part.sum() * (n * 4 + m)).item() == rows * columns * (columns + 1) / 2 * (
                rows * 4 + columns
            )

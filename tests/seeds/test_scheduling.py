"""SEEDS 11: scheduling and fusion."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import stages
from lazygrad.device import Device, GlobalCounters
from lazygrad.ir import Ops
from lazygrad.ir.text import loops_text
from lazygrad.schedule.kernels.items import ScheduleItem


@pytest.mark.choice
def test_S98_one_tree_is_one_kernel():
    a, b = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    items = (a * b + a).schedule()
    assert len(items) == 1
    assert isinstance(items[0], ScheduleItem)


@pytest.mark.choice
def test_S99_the_dot_product_is_one_kernel():
    before = GlobalCounters.kernel_count
    items = Tensor([1, 2]).dot(Tensor([3, 4])).schedule()
    assert [item.ast.op for item in items] == [Ops.COPY, Ops.COPY, Ops.SINK]
    assert Tensor([1, 2]).dot(Tensor([3, 4])).numpy() == 11
    assert GlobalCounters.kernel_count - before == 3


def test_S100_parts_of_a_schedule_item():
    a = Tensor([1, 2]).realize()
    (item,) = (a + 1).schedule()
    assert [store.op for store in item.ast.src] == [Ops.STORE]
    assert [buffer.size for buffer in item.outputs] == [2]
    assert [buffer.size for buffer in item.inputs] == [2]
    assert item.var_vals == {}
    assert [str(m) for m in item.metadata] == ["__add__"]
    copy, *_ = Tensor([1, 2]).schedule()
    assert copy.ast.op is Ops.COPY


def test_S101_realized_inputs_are_not_scheduled_again():
    a = Tensor([1, 2])
    assert len((a + 1).schedule()) == 2
    a.realize()
    assert len((a + 1).schedule()) == 1


def test_S103_what_is_realized():
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    assert len((a + b).schedule()) == 1
    assert len(((a + b).contiguous() * 2).schedule()) == 2
    assert [item.ast.op for item in (a + b).to("PYTHON").schedule()] == [Ops.SINK, Ops.COPY]


@pytest.mark.usefixtures("undisturbed")
def test_S104_a_pad_is_a_masked_load():
    a = Tensor([1.0, 2.0]).realize()
    used = GlobalCounters.mem_used
    (item,) = (a.pad(((1, 1),)) + 1).schedule()
    assert [buffer.size for buffer in item.inputs] == [2]
    assert GlobalCounters.mem_used == used


@pytest.mark.choice
def test_S106_a_store_uses_the_loops_that_its_kernel_has():
    x = Tensor.empty(4, 6).realize()
    total = x.sum(1)
    (item,) = Tensor.schedule(total, x / total.reshape(4, 1))
    lowered = dict(stages(item.ast, Device["CPU"].renderer, []))["lower"]
    assert loops_text(lowered).splitlines() == [
        "for gidx0 in 0..4   GLOBAL",
        "  acc0 = 0.0",
        "  for ridx0 in 0..6   REDUCE",
        "    acc0 += data2[gidx0*6+ridx0]",
        "  for gidx1 in 0..6   LOOP",
        "    data0[gidx0*6+gidx1] = data2[gidx0*6+gidx1] / acc0",
        "  data1[gidx0] = acc0",
    ]


def test_S107_shared_parts_are_visited_once():
    x = Tensor([1.0]).realize()
    for _ in range(200):
        x = x + x
    assert len(x.uop.toposort()) < 300
    assert x.item() == float("inf")  # 2 to the 200


def test_S108_no_recursion():
    x = Tensor([1]).realize()
    for _ in range(5000):
        x = x + 1
    assert len(x.schedule()) >= 2
    assert x.item() == 5001
    deep = repr((Tensor([1]).realize() + 1).uop)
    assert deep.startswith("UOp(Ops.ADD")


@pytest.mark.choice
def test_S109_variance_is_two_passes_in_one_kernel():
    a = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    (item,) = a.var().schedule()
    assert sum(node.op is Ops.REDUCE_AXIS for node in item.ast.toposort()) == 2
    assert [str(m) for m in item.metadata] == ["var"]
    assert abs(a.var().item() - 5 / 3) < 1e-6

"""Schedules and programs that are run by hand."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, Variable
from lazygrad.compat.running import (
    CompiledRunner,
    ExecItem,
    create_schedule_with_vars,
    get_kernel,
    get_program,
    lower_schedule,
)
from lazygrad.device import Buffer, Device
from lazygrad.dtype import dtypes


def test_a_schedule_item_by_item():
    out = Tensor([1.0, 2.0]) + 1
    items = [item for _, item in lower_schedule(out.schedule())]
    assert [len(item.bufs) for item in items] == [2, 2]
    for item in items:
        item.run()
    assert out.tolist() == [2.0, 3.0]


def test_a_program_on_buffers():
    ast = (Tensor.empty(2) * 3).schedule()[-1].ast
    runner = CompiledRunner(get_program(ast))
    source = Buffer("CPU", 2, dtypes.float).allocate().copyin(memoryview(b"\0\0\x80?" * 2))
    into = Buffer("CPU", 2, dtypes.float)
    assert ExecItem(runner, [into, source]).run(wait=True) > 0
    assert into.numpy().tolist() == [3.0, 3.0]
    assert runner.display_name == runner.p.name


@pytest.mark.choice
def test_a_program_with_a_variable():
    size = Variable("size", 1, 4)
    items, values = create_schedule_with_vars([(Tensor.empty(4)[: size.bind(2)] + 1).sum().uop])
    assert list(values.values()) == [2]
    runner = CompiledRunner(get_program(items[-1].ast))
    into, source = (Buffer("CPU", n, dtypes.float).allocate() for n in (1, 4))
    runner([into, source], {size: 3})
    assert into.numpy().tolist() == [3.0]
    with pytest.raises(ValueError, match="Variable size has no value"):
        runner([into, source])


@pytest.mark.choice
def test_a_kernel_with_the_chosen_opts():
    ast = Tensor.empty(64, 64).sum(0).schedule()[-1].ast
    kernel = get_kernel(Device["CPU"].renderer, ast)
    assert tuple(kernel.applied_opts) == get_program(ast).applied_opts

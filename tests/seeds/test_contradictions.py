"""SEEDS 18: where the seeds disagree, and how both are served (the rest is in the files of each line)."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.ir import Ops, UOp
from tests.helpers import needs

from .support import rows, run_file

pytestmark = pytest.mark.usefixtures("installed")


def test_C2_families_of_operations_are_other_names():
    from tinygrad.ops import BinaryOps, UOps

    assert BinaryOps.MUL is UOps.MUL is Ops.MUL
    assert str(BinaryOps.MUL) == "Ops.MUL"


def test_C4_a_lazybuffer_is_a_node():
    from tinygrad.lazy import LazyBuffer

    node = (Tensor([1]) + 1).lazydata
    assert LazyBuffer is UOp
    assert isinstance(node, LazyBuffer)
    assert (node.base is node, node.st.shape, node.realized, len(node.srcs)) == (True, (1,), None, 2)


def test_C10_both_paths_of_the_nodes():
    import tinygrad.ops
    import tinygrad.uop.ops

    assert tinygrad.ops.UOp is tinygrad.uop.ops.UOp is UOp


@needs("clang")
def test_C12_a_device_is_printed_as_it_was_asked_for():
    for name in ("CLANG", "CPU"):
        shown = rows(run_file("add", DEBUG=2, **{name: 1}))
        assert [row.split()[1] for row in shown] == [name] * 3


def test_C16_schedule_and_kernelize_stand_side_by_side():
    first, second = Tensor([1]).realize() + 1, Tensor([2]).realize() + 1
    assert len(first.schedule()) == len(second.kernelize().schedule()) == 1

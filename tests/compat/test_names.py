"""Older names of operations, and what nodes answered as LazyBuffers."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, UOp, dtypes
from lazygrad.compat.enums import BinaryOps, LoadOps, MovementOps, ReduceOps, TernaryOps, UnaryOps, UOps
from lazygrad.device import Buffer
from lazygrad.ir import Ops


def test_families():
    assert (BinaryOps.MUL, UnaryOps.SQRT, TernaryOps.WHERE) == (Ops.MUL, Ops.SQRT, Ops.WHERE)
    assert (ReduceOps.SUM, MovementOps.STRIDE, LoadOps.COPY) == (Ops.ADD, Ops.FLIP, Ops.COPY)
    assert (UOps.LOOP, UOps.ENDLOOP, UOps.PHI, UOps["LOAD"]) == (
        Ops.RANGE,
        Ops.ENDRANGE,
        Ops.ASSIGN,
        Ops.LOAD,
    )
    assert Ops.MUL in BinaryOps
    assert Ops.MUL not in UnaryOps
    assert set(MovementOps) >= {Ops.RESHAPE, Ops.PAD}


def test_names_that_are_in_no_family():
    with pytest.raises(AttributeError, match=r"no ALU here: each operation is its own op, such as Ops\.ADD"):
        UOps.ALU
    with pytest.raises(AttributeError, match=r"BinaryOps has no PLUS; see docs/glossary\.md"):
        BinaryOps.PLUS
    with pytest.raises(KeyError, match="UOps has no NONE"):
        UOps["NONE"]


@pytest.mark.usefixtures("installed")
def test_views_and_concrete_nodes():
    tensor = Tensor([[1.0, 2.0], [3.0, 4.0]]) + 1
    node, view = tensor.lazydata, tensor.permute(1, 0).lazydata
    assert node.base is node
    assert view.base is node
    assert view.st.views[0].strides == (1, 2)
    assert (view.shape, view.size, view.device) == ((2, 2), 4, "CPU")
    assert view.srcs == (node,)
    assert len(node.srcs) == 2
    assert str(node.metadata) == "__add__"
    assert (node.key == node.key, node.key != view.key) == (True, True)


@pytest.mark.usefixtures("installed")
def test_what_is_realized():
    tensor = Tensor([1.0, 2.0]) + 1
    before = tensor.lazydata
    assert before.realized is None
    assert before.forced_realize is False
    assert tensor.contiguous().lazydata.forced_realize is True
    tensor.realize()
    assert isinstance(before.realized, Buffer)
    assert tensor.lazydata.realized is before.realized


@pytest.mark.usefixtures("installed")
def test_bounds():
    assert (UOp.const(dtypes.int, 3).vmin, UOp.const(dtypes.int, 3).vmax) == (3, 3)
    assert UOp.const(dtypes.float, 3.0).vmax == float("inf")

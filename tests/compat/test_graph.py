"""Groups of operations, values and symbolic sizes by their older names, and what nodes did."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, UOp, Variable, dtypes
from lazygrad.compat import graph
from lazygrad.compat.graph import GroupOp
from lazygrad.compat.kernel import Kernel
from lazygrad.ir import Ops
from lazygrad.ir.spec import SpecError


def test_groups():
    assert Ops.ADD in GroupOp.Binary & GroupOp.Associative
    assert Ops.WHERE in GroupOp.Ternary
    assert Ops.RESHAPE in GroupOp.Movement
    assert Ops.CAST in GroupOp.Elementwise - GroupOp.ALU


def test_values():
    assert graph.exec_alu(Ops.ADD, dtypes.uint8, (250, 10)) == 4
    assert graph.exec_alu(Ops.ADD, dtypes.uint8, (250, 10), truncate_output=False) == 260
    with pytest.raises(TypeError, match="LOAD has no meaning on single values"):
        graph.exec_alu(Ops.LOAD, dtypes.int, (), truncate_output=False)


def test_symbolic_sizes():
    size = Variable("n", 1, 10)
    assert (graph.resolve(size < 11), graph.resolve(size < 5), graph.resolve(size < 5, False)) == (
        True,
        True,
        False,
    )
    assert graph.sym_infer(size * 2 + 1, {size: 3}) == graph.sym_infer(size * 2 + 1, {"n": 3}) == 7
    assert (graph.sym_infer(4, {}), graph.ssimplify(size - size), graph.ssimplify(3)) == (4, 0, 3)
    assert (graph.smax(1, 3, 2), graph.smin([4, 2]), graph.smax(size, 0)) == (3, 2, size)


def test_a_linear_program_is_verified():
    program = Kernel((Tensor.empty(4) + 1).schedule()[-1].ast).uops
    graph.type_verify(program)
    with pytest.raises(SpecError, match="linear program"):
        graph.type_verify(program[::-1])


@pytest.mark.usefixtures("installed")
def test_what_nodes_did():
    x = UOp.variable("x", 0, 10)
    assert (x.expr, x.vmin, x.vmax, (x + x).render(), (x - x).ssimplify()) == ("x", 0, 10, "(x*2)", 0)
    y = UOp.variable("y", 0, 3)
    assert (x + 1).substitute({x: y}) is y + 1
    assert (x + y).variables() == [x, y]
    node = UOp.const(dtypes.float, 1.0) + UOp.const(dtypes.float, 2.0)
    assert node.simplify().arg == 3.0
    assert [n.op for n in node.toposort] == [n.op for n in node.toposort()] == [Ops.CONST] * 2 + [Ops.ADD]
    assert [n.op for n in node.sink().src] == [Ops.ADD]
    held = Tensor([1.0]).realize().uop
    assert held.is_realized
    assert held.buffer.size == 1


@pytest.mark.usefixtures("installed")
def test_a_kernel_by_hand():
    """Nodes as the pages on kernels make them: load, add, store."""
    memory = [UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(4), (), number) for number in (0, 1)]
    zero = UOp.const(dtypes.int, 0)
    value = memory[1].index(zero).load() + 1.0
    stored = memory[0].index(zero).store(value)
    assert (value.src[0].op, value.dtype, stored.op) == (Ops.LOAD, dtypes.float, Ops.STORE)
    assert value.src[0].replace(dtype=dtypes.float.vec(4)).gep(2).dtype is dtypes.float


@pytest.mark.usefixtures("installed")
def test_loops_and_vectors():
    assert UOp.range(10, 0).vmax == UOp.range(dtypes.int, 0, 10, 0).vmax == 9
    with pytest.raises(NotImplementedError, match="a loop begins at 0, not at 1"):
        UOp.range(dtypes.int, 1, 10, 0)
    one = UOp.const(dtypes.float, 1.0)
    assert one.broadcast(4) is one.vectorize(one, one, one)
    assert (one.broadcast(1), one.broadcast(4).dtype) == (one, dtypes.float.vec(4))
    assert UOp.const(dtypes.float.vec(2), 1.0).arg == (1.0, 1.0)
    low, high = (Variable("x", 0, 4) < 9).vmin, (Variable("x", 0, 4) < 2).vmax
    assert (low, high) == (1, 1)

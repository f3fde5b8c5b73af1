"""A kernel optimized by hand, under the older names."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.opt import KernelOptError, OptOps
from lazygrad.compat.kernel import Kernel, Opt
from lazygrad.ir import Ops
from lazygrad.renderer.cstyle import MetalRenderer


def add() -> Kernel:
    a, b = Tensor.empty(4, 4), Tensor.empty(4, 4)
    return Kernel((a + b).schedule()[-1].ast, opts=MetalRenderer())


def test_opts_are_applied_one_by_one():
    kernel = add()
    assert (kernel.full_shape, kernel.shape_len) == ((16,), 1)
    kernel.apply_opt(Opt(OptOps.UPCAST, 0, 4)).apply_opts([Opt(OptOps.LOCAL, axis=0, amt=4)])
    assert [str(opt) for opt in kernel.applied_opts] == [
        "Opt(op=OptOps.UPCAST, axis=0, amount=4)",
        "Opt(op=OptOps.LOCAL, axis=0, amount=4)",
    ]
    program = kernel.linearize().to_program()
    assert program.name == kernel.name == "E_4_4"
    assert program.local_size == (4, 1, 1)
    assert kernel.uops[0].op is Ops.DEFINE_GLOBAL


def test_no_opts_are_no_opts():
    assert add().to_program().name == "E_16"


def test_the_chosen_ones():
    assert add().hand_coded_optimizations().applied_opts != []


def test_another_name():
    assert "kernel void mine(" in add().to_program("mine").src


def test_an_amount_by_its_older_names():
    assert Opt(OptOps.UPCAST, 0, amt=4) == Opt(OptOps.UPCAST, 0, arg=4) == Opt(OptOps.UPCAST, 0, 4)
    assert (Opt(OptOps.UPCAST, 0, 4).amt, Opt(OptOps.UPCAST, 0, 4).arg) == (4, 4)
    with pytest.raises(TypeError, match="an Opt has one amount"):
        Opt(OptOps.UPCAST, 0, 4, amt=3)


def test_what_does_not_fit():
    with pytest.raises(KernelOptError, match="3 does not divide 16"):
        add().apply_opt(Opt(OptOps.UPCAST, 0, 3))
    with pytest.raises(TypeError, match=r"a kernel's AST is a SINK of STOREs, not Ops\.COPY"):
        Kernel(Tensor([1]).schedule()[0].ast)

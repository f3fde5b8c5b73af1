"""SEEDS 16: Opts by hand."""

from __future__ import annotations

import re

import pytest

from lazygrad import Tensor
from lazygrad.codegen.opt import KernelOptError, OptOps
from lazygrad.compat.kernel import Kernel, Opt
from lazygrad.renderer.cstyle import MetalRenderer


def lines(tensor: Tensor, *opts: Opt) -> list[str]:
    """The kernel on Metal, a line each; the terms of sums of indices in one order."""
    kernel = Kernel(tensor.schedule()[-1].ast, opts=MetalRenderer())
    for opt in opts:
        kernel.apply_opt(opt)
    return [_sorted_terms(line.strip()) for line in kernel.linearize().to_program().src.splitlines()]


def _sorted_terms(line: str) -> str:
    """`((gidx0<<1)+lidx0)` and `(lidx0+(gidx0<<1))` read alike."""
    term = r"(?:\w+|\(\w+<<\d+\))"

    def ordered(found: re.Match[str]) -> str:
        return f"({'+'.join(sorted(re.findall(term, found[0][1:-1])))})"

    return re.sub(rf"\({term}(?:\+{term})+\)", ordered, line)


def addition() -> Tensor:
    return Tensor.empty(4, 4) + Tensor.empty(4, 4)


def row_sums() -> Tensor:
    return Tensor.ones(4, 4).contiguous().realize().sum(1)


def test_S140_upcast():
    text = lines(addition(), Opt(OptOps.UPCAST, 0, 8))
    assert "kernel void E_2_8(" in text[2]
    assert text[3:5] == ["int gidx0 = gid.x; /* 2 */", "int alu0 = (gidx0<<3);"]
    assert sum("float4 val" in line for line in text) == 4
    assert sum(line.startswith("*((device float4*)") for line in text) == 2


@pytest.mark.parametrize("amount", [0, 4])
def test_S141_unroll_all(amount):
    text = lines(row_sums(), Opt(OptOps.UNROLL, 0, amount))
    assert not any("for (" in line for line in text)
    assert next(line for line in text if " val" in line).startswith("float4 val0 = ")  # all four at once


def test_S141_unroll_a_part():
    text = lines(row_sums(), Opt(OptOps.UNROLL, 0, 2))
    assert "for (int ridx0 = 0; ridx0 < 2; ridx0++) {" in text
    assert sum("float2 val" in line for line in text) == 1
    with pytest.raises(KernelOptError, match="3 does not divide 4"):
        lines(row_sums(), Opt(OptOps.UNROLL, 0, 3))


def test_S142_local():
    text = lines(addition(), Opt(OptOps.LOCAL, 0, 2))
    assert "kernel void E_8_2(" in text[2]
    assert "int lidx0 = lid.x; /* 2 */" in text
    assert "int alu0 = ((gidx0<<1)+lidx0);" in text


def test_S145_bad_opts():
    with pytest.raises(KernelOptError, match="3 does not divide 16"):
        lines(addition(), Opt(OptOps.UPCAST, 0, 3))
    with pytest.raises(KernelOptError):
        lines(addition(), Opt(OptOps.UPCAST, 5, 2))
    with pytest.raises(KernelOptError):
        lines(addition(), Opt(OptOps.UNROLL, 0, 2))


@pytest.mark.usefixtures("installed")
def test_S145_the_older_path():
    from tinygrad.codegen.kernel import Kernel as OldKernel
    from tinygrad.codegen.kernel import KernelOptError as OldError
    from tinygrad.codegen.kernel import OptOps as OldOps

    assert (OldKernel, OldError, OldOps) == (Kernel, KernelOptError, OptOps)


def test_S143_group():
    text = lines(row_sums(), Opt(OptOps.GROUP, 0, 2))
    assert "threadgroup float temp0[2];" in text
    barrier = text.index("threadgroup_barrier(mem_flags::mem_threadgroup);")
    load = next(line for line in text if "data1+" in line)
    terms = sorted(re.search(r"data1\+(.*)\);", load)[1].replace("((", "(").replace("))", ")").split("+"))
    assert [term.strip("()") for term in terms] == ["gidx0<<2", "ridx0<<1", "lidx0"]
    only_first = text.index("if (lidx0==0) {")
    store = text.index("*(data0+gidx0) = acc1;")
    assert barrier < only_first < store
    assert row_sums().tolist() == [4.0] * 4


@pytest.mark.parametrize(("opt", "stride"), [(OptOps.GROUP, "ridx0<<1"), (OptOps.GROUPTOP, "lidx0<<1")])
def test_S144_which_elements_a_thread_takes(opt, stride):
    """GROUP: neighbours go to different threads; GROUPTOP: each thread has consecutive ones."""
    text = lines(row_sums(), Opt(opt, 0, 2))
    load = next(line for line in text if "data1+" in line)
    assert f"({stride})" in load
    assert "(gidx0<<2)" in load

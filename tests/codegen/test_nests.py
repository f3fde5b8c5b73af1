"""Kernels of several nests of loops: each nest is compiled as it would be alone."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.codegen.nests import in_nests, nests_of, opts_of_nests
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps
from lazygrad.device import Device
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.ir.spec import KERNEL, SpecError, verify
from lazygrad.ir.uop import UOp
from lazygrad.renderer.cstyle import CUDARenderer
from tests.helpers import needs

pytestmark = pytest.mark.choice


def memory(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return Tensor(values).realize()


def ast_of(*tensors: Tensor) -> UOp:
    first, *others = tensors
    (item,) = first.schedule(*others)
    return item.ast


def two_nests() -> UOp:
    return ast_of(memory(4, 5).sum(1), memory(70, seed=1) * 2)


def test_the_loops_of_nests_stand_one_after_another():
    forms = dict(stages(two_nests(), Device["PYTHON"].renderer))
    assert loops_text(forms["lower"]) == (
        "for gidx0 in 0..4   GLOBAL\n"
        "  acc0 = 0.0\n"
        "  for ridx0 in 0..5   REDUCE\n"
        "    acc0 += data2[gidx0*5+ridx0]\n"
        "  data0[gidx0] = acc0\n"
        "for gidx1 in 0..70   GLOBAL\n"
        "  data1[gidx1] = data3[gidx1] * 2.0"
    )


def test_each_nest_has_the_opts_that_it_has_alone():
    ast, renderer = two_nests(), Device["CPU"].renderer
    alone = [compile_kernel(nest, renderer).applied_opts for nest in nests_of(ast)]
    program = compile_kernel(ast, renderer)
    assert program.applied_opts == sum(alone, ())
    assert compile_kernel(ast, renderer, program.applied_opts).src == program.src
    assert compile_kernel(ast, renderer, []).applied_opts == ()


def test_other_opts_are_refused():
    ast = two_nests()
    with pytest.raises(
        KernelOptError, match="each nest of a kernel of 2 has the Opts that are chosen for it"
    ):
        compile_kernel(ast, Device["CPU"].renderer, [Opt(OptOps.UPCAST, 0, 2)])


def test_nests_have_pieces_together_or_not_at_all():
    renderer = Device["CPU"].renderer
    asts = [ast_of(memory(1 << 10, 1 << 10).sum(1)), ast_of(memory(5) * 2)]
    nests = [next(form for _, form in stages(ast, renderer, ())) for ast in asts]
    for chosen in opts_of_nests(nests, renderer.target, None):
        assert not any(opt.op is OptOps.THREAD for opt in chosen)


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang")), "PYTHON"])
def test_every_processor_runs_nests(device):
    """One with a row that is kept, one with sums of sums whose lengths depend on each other, one number."""
    with Context(CHECK=1):
        x, y, z = (memory(*shape).to(device).realize() for shape in ((6, 300), (2700,), (1,)))
        made = x.gelu().softmax(), y.sum(), z + 1
        assert len(nests_of(ast_of(*made))) == 3
        Tensor.realize(*made)
    np.testing.assert_allclose(made[1].numpy(), y.numpy().sum(), rtol=1e-4)
    np.testing.assert_allclose(made[0].numpy().sum(1), np.ones(6), rtol=1e-5)
    np.testing.assert_array_equal(made[2].numpy(), z.numpy() + 1)


def test_a_spec_of_nests_counts_their_stores():
    ast = two_nests()
    verify(ast, KERNEL, "a test")
    with pytest.raises(SpecError, match="how many stores each of its nests has"):
        verify(UOp(Ops.SINK, src=ast.src, arg=(1, 2)), KERNEL, "a test")


def test_nests_are_told_of_at_every_level(capsys):
    first, second = memory(4, 5).sum(1), memory(70) * 2
    with Context(DEBUG=7, DEBUG_STYLE=""):
        Tensor.realize(first, second)
    assert "_and_E_" in capsys.readouterr().out


def test_a_grid_takes_no_nests():
    with pytest.raises(NotImplementedError, match="2 nests of loops has no one grid"):
        compile_kernel(two_nests(), CUDARenderer("sm_90"))


def test_nests_of_nests_are_nests():
    one, two = two_nests(), ast_of(memory(3) + 1)
    assert in_nests([one, two]).arg == (1, 1, 1)

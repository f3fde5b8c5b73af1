"""The list of passes, what they cost, and what a program's record says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen import compile as compiling
from lazygrad.codegen.aligned_chunks import in_chunks
from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.codegen.cost.estimate import estimate
from lazygrad.codegen.lowering.lower import lower, lowered
from lazygrad.codegen.nests import nests_of
from lazygrad.codegen.opt import Loops, Opt, OptOps, apply_opts
from lazygrad.codegen.passes import PASSES
from lazygrad.device import Device
from lazygrad.ir import index
from lazygrad.ir.args import AxisType
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.renderer.cstyle import OpenCLRenderer
from lazygrad.renderer.python import PythonRenderer
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.horizontal_fusion.joined_kernel import joined_kernel
from lazygrad.schedule.what_if import Planned

from .kernels import SEVEN, load, plain, reduce, sink, store

RENDERER = PythonRenderer()


def test_every_pass_is_timed_and_promises_something():
    compiling.stage_times.clear()
    names = [name for name, _ in stages(SEVEN["softmax"](), RENDERER)]
    assert names == [step.name for step in PASSES] == list(compiling.stage_times)
    assert all(step.promise for step in PASSES)
    assert [step.spec.form for step in PASSES] == sorted(step.spec.form for step in PASSES)


def test_forms_are_legal_where_lanes_are_scalars():
    """Before lanes are split, arithmetic on vectors is not yet what the target has."""
    x, columns = Tensor.empty(4), Tensor.arange(4)
    with Context(OPTS=""):  # planned as predicted
        (item,) = (columns - columns.reshape(4, 1) < 1).where(x, 0).sum(1).schedule()
    with Context(CHECK=1):
        *_, (name, _) = stages(item.ast, OpenCLRenderer(), None)
    assert name == PASSES[-1].name


def test_the_record_of_a_program():
    spec = compile_kernel(SEVEN["value_and_statistic"](), RENDERER, ())
    assert (spec.name, spec.globals, spec.outs, spec.ins) == ("r_3_4_4", 3, (0, 1), (2,))
    spec = compile_kernel(SEVEN["symbolic_sum"](), RENDERER, ())
    assert [v.arg for v in spec.vars] == [("n", 1, 10)]


def test_a_buffer_that_nothing_reads_stays_an_argument():
    hidden = load(1, plain(3).pad(((3, 0),)).shrink(((0, 3),)), size=3)
    spec = compile_kernel(sink(store(0, hidden)), RENDERER, ())
    assert spec.globals == 2
    assert spec.src.startswith("def E_3(data0, data1):")


@pytest.mark.parametrize(
    ("name", "operations", "moved"),
    [
        ("add", 16, 16 * 4 * 3),
        ("dot", 2 + 2, (1 + 2 + 2) * 4),
        ("value_and_statistic", 12 + 3 + 12, (12 + 3 + 12) * 4),
    ],
)
def test_estimates(name, operations, moved):
    found = estimate(lower(SEVEN[name]()))
    assert (found.ops, found.bytes) == (operations, moved)


def test_a_buffer_read_twice_moves_once():
    a = load(1, plain(8, 1, 8).expand((8, 8, 8)))
    b = load(2, plain(8, 8).permute((1, 0)).reshape((1, 8, 8)).expand((8, 8, 8)))
    found = estimate(lower(sink(store(0, reduce(a * b, Ops.ADD, 2)))))
    assert (found.ops, found.bytes) == (2 * 8**3, 3 * 64 * 4)


def test_estimates_may_be_symbolic():
    found = estimate(lower(SEVEN["symbolic_sum"]()))
    (n,) = [u for u in found.ops.toposort() if u.op is Ops.DEFINE_VAR]
    assert isinstance(found.bytes, UOp)
    assert index.evaluate(found.ops, {n: 7}) == 2 * 7 + 2
    assert index.evaluate(found.bytes, {n: 7}) == (2 * 7 + 2) * 4


def test_nests_in_pieces_have_as_many_turns():
    """625 turns of 32 elements, and 2,500 of 8: halves of both would end at 9,984 and at 10,000."""
    target = replace(Device["CPU"].renderer.target, threads=2)
    first = (Tensor.empty(20_000).exp() * 2).contiguous()
    with Context(OPTS=""):  # planned as predicted
        template = Planned(Request.of([(first + 1).exp().contiguous().uop]), fuse=True).template
    both = [lowered(nest) for nest in nests_of(joined_kernel(template.kernels).ast)]
    found = in_chunks(both, [[Opt(OptOps.UPCAST, 0, 32)], [Opt(OptOps.TILE, 0, 8)]], 2, target)
    made = [] if found is None else zip(both, found.opts, strict=True)
    for nest, opts in made:
        nodes = apply_opts(Loops.of(nest), opts, target).toposort()
        (size,) = [n.src[0].arg for n in nodes if n.op is Ops.RANGE and n.arg.kind is AxisType.THREAD]
        assert size == 625

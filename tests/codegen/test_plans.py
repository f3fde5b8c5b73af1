"""Plans: what they are predicted to take before anything is made of them, and which one is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import stages
from lazygrad.codegen.cost.cost_model import cycles, issued
from lazygrad.codegen.cost.predict import predict
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps, heuristic
from lazygrad.codegen.opt.cpu.planned import planned
from lazygrad.codegen.opt.cpu.plans import plans
from lazygrad.codegen.opt.facts import Facts
from lazygrad.codegen.opt.moves.inline import all_inline
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.target import PROCESSORS, refined

from .kernels import load, plain, reduce, sink, store
from .test_opt import add, column_sum, convolution, matmul, row_sum, softmax_rows
from .test_vectorize import chosen, statistic

KERNELS = {
    "add": add(1 << 16),
    "add with a tail": add((1 << 16) + 3),
    "row sums": row_sum(256, 1024),
    "sum": row_sum(1, 1 << 20),
    "column sums": column_sum(256, 1024),
    "column sums, lines that share a set": column_sum(1024, 1024),
    "softmax": softmax_rows(256, 512),
    "a row less its mean": statistic(256, 512),
    "many rows less their means": statistic(1 << 14, 1024),
    "rows at loaded indices": chosen(512, 64),
    "few rows": matmul(2, 256, 256),
    "a short convolution": convolution(1, 4, 10, 4),
}


CACHES = (1 << 15, 1 << 19, 1 << 25)


def renderer(processor: str) -> LLVMRenderer:
    found = refined(llvm_target(), processor, PROCESSORS[processor].features)
    return LLVMRenderer(replace(found, memory=replace(found.memory, caches=CACHES), threads=1))


def predicted(ast: UOp, on: LLVMRenderer) -> dict[str, tuple[float, float]]:
    """Of each different plan the cycles in closed form, and those of the program that is made of it."""
    loops = Loops.of(lower(ast))
    plain, _ = all_inline(loops)
    found = {}
    for plan in plans(Facts.of(plain), on.target, loops):
        opts = plan.opts()
        program = dict(stages(ast, on, opts))["form sums"]
        found[str(opts)] = cycles(plan.loop_costs(), on.target), predict(program, on.target)
    return found


@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3", "aarch64"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_plan_that_is_chosen_is_the_best_by_the_program_as_well(name, processor):
    on = renderer(processor)
    found = predicted(KERNELS[name], on)
    chosen = found[str(heuristic.on_one_core(Loops.of(lower(KERNELS[name])), on.target).opts)]
    assert chosen[1] <= 1.25 * min(program for _, program in found.values())


def test_what_is_planned_takes_about_what_its_program_takes():
    ratios = []
    for ast in KERNELS.values():
        found = predicted(ast, renderer("x86-64-v3")).values()
        ratios += [plan / program for plan, program in found]
    near = [ratio for ratio in ratios if 1 / 1.4 <= ratio <= 1.4]
    assert len(near) >= 0.8 * len(ratios)


def test_sums_that_share_nothing_stand_beside_each_other():
    """Of softmax the largest of a row and the sum of its exponentials: one loop after the other."""
    loops, _ = all_inline(Loops.of(lower(softmax_rows(8, 16))))
    facts = Facts.of(loops)
    assert all(outer in (None, 0) for _, outer in facts.nest)
    matrix = Facts.of(Loops.of(lower(matmul(4, 8, 16))))
    assert matrix.nest == [(0, None), (1, 0), (2, 1)]


def test_lanes_are_those_that_the_program_will_have():
    """Along an axis whose neighbours are far apart in memory vectors save nothing: there are none."""
    facts = Facts.of(Loops.of(lower(row_sum(64, 64))))
    target = renderer("x86-64-v3").target
    scalars = 64 * 64 / target.core.loads
    assert issued(planned(facts, target, {0: 8}), target) > scalars
    assert issued(planned(facts, target, {1: 32}), target) < scalars / 2


def test_rows_that_share_nothing_may_go_side_by_side():
    """Four at once, of a layer norm of 4096 x 1024, take 0.77 of the time; rows of no whole vector do not."""
    on = renderer("x86-64-v3")
    four = Opt(OptOps.UPCAST, 0, 4)
    assert any(str(four) in opts for opts in predicted(statistic(64, 1024), on))
    assert not any(str(four) in opts for opts in predicted(statistic(64, 10), on))


@pytest.mark.choice
def test_a_short_axis_is_computed_at_once_for_what_its_places_share():
    """Where a pixel comes from is the same for all channels."""
    image, places = (
        Tensor.zeros(2, 3, 4096).contiguous().realize(),
        Tensor.zeros(2, 4096).contiguous().realize(),
    )
    index = (places * 7.0).exp().cast("int32").maximum(0).minimum(4095)
    (item,) = image.gather(2, index.unsqueeze(1).expand(2, 3, 4096)).schedule()
    opts = heuristic.on_one_core(Loops.of(lower(item.ast)), renderer("znver5").target).opts
    assert Opt(OptOps.UPCAST, 1, 3) in opts


@pytest.mark.choice
def test_weights_are_read_once_for_all_images_of_a_small_batch():
    """512 results of 4,608 products at each of 4 places of two images, which lie apart in what is stored."""
    shape = (2, 512, 4, 4608)
    windows = plain(4608, 2, 4).permute((1, 2, 0)).reshape((2, 1, 4, 4608)).expand(shape)
    weights = plain(512, 4608).reshape((1, 512, 1, 4608)).expand(shape)
    product = load(1, windows, size=4608 * 8) * load(2, weights, size=512 * 4608)
    ast = sink(store(0, reduce(product, Ops.ADD, 3)))
    opts = heuristic.on_one_core(Loops.of(lower(ast)), renderer("znver5").target).opts
    assert [Opt(OptOps.UPCAST, axis, size) for axis, size in ((0, 2), (2, 4))] == [
        opt for opt in opts if opt.op is OptOps.UPCAST and opt.axis != 1
    ]

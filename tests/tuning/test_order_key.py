"""Order keys: what keeps the order of a float sum, and what changes it (random kernels are in tests/fuzz)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.dtype import dtypes
from lazygrad.ir.args import NONTEMPORAL
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.tuning.order_key import hashed
from tests.codegen.kernels import const, left_by, load, opened, plain, reduce, sink, store
from tests.codegen.test_opt import add, column_sum, matmul, softmax_rows

from .keys import key_of

UPCAST, UNROLL, STAGE, THREAD = OptOps.UPCAST, OptOps.UNROLL, OptOps.STAGE, OptOps.THREAD


def rows():
    """Sums of 12 rows of 64."""
    return sink(store(0, reduce(load(1, plain(12, 64)), Ops.ADD, 1)))


def squares():
    """Sums of the squares of 12 rows of 64, each with another factor."""
    x = load(1, plain(12, 64))
    return sink(store(0, reduce(x * x * const(0.3, x), Ops.ADD, 1)))


def key(ast, *opts):
    return key_of(ast, compile_kernel(ast, opened("CPU").renderer, opts))


@pytest.mark.parametrize(
    "opts",
    [
        [Opt(UPCAST, 0, 2)],
        [Opt(UPCAST, 0, 3)],
        [Opt(UPCAST, 0, 12)],
        [Opt(THREAD, 0, 3)],
        [Opt(UPCAST, 0, 4), Opt(THREAD, 0, 3)],
    ],
    ids=str,
)
@pytest.mark.parametrize("ast", [rows, squares])
def test_what_is_computed_beside_a_sum_keeps_its_order(ast, opts):
    assert key(ast(), *opts) == key(ast())


def test_what_is_done_for_every_sum_at_once_is_in_the_key():
    plainly, unrolled, longer = (
        key(rows(), *opts) for opts in ([], [Opt(UNROLL, 0, 4)], [Opt(UNROLL, 0, 8)])
    )
    assert len({plainly, unrolled, longer}) == 3
    assert key(rows(), Opt(UNROLL, 0, 4), Opt(UPCAST, 0, 3)) == unrolled


def test_a_copy_of_a_factor_keeps_the_order_of_a_product():
    assert key(matmul(8, 36, 16), Opt(UPCAST, 1, 8)) == key(
        matmul(8, 36, 16), Opt(UPCAST, 1, 8), Opt(STAGE, 1, 2)
    )


def test_a_kernel_without_sums_has_one_key():
    assert key(add(8), Opt(UPCAST, 0, 2)) == key(add(8))


def test_the_maximum_of_a_row_does_not_hide_its_sum():
    assert key(softmax_rows(4, 40), Opt(THREAD, 0, 2)) == key(softmax_rows(4, 40))


def test_sums_that_wait_in_memory_have_an_order_too():
    rounds = [Opt(OptOps.ROUNDS, 0, 8), Opt(UNROLL, 0, 8)]
    keys = [key(column_sum(64, 48), Opt(UPCAST, 0, strip), *rounds) for strip in (8, 16, 24)]
    assert len(set(keys)) == 1
    assert keys[0] != key(column_sum(64, 48), Opt(UPCAST, 0, 8))


def test_one_that_is_chosen_hides_no_sum():
    sums = reduce(load(1, plain(12, 64)), Ops.ADD, 1)
    clamped = sink(store(0, sums.alu(Ops.MAX, const(0.0, sums))))
    assert key(clamped, Opt(UNROLL, 0, 4)) != key(clamped)
    chosen = sink(store(0, (sums < const(0.0, sums)).where(const(1.0, sums), sums)))
    assert key(chosen, Opt(UNROLL, 0, 4)) != key(chosen)


def test_what_hashes_cannot_say_has_its_text_as_a_key():
    spec = compile_kernel(rows(), opened("CPU").renderer, ())
    fetching = dataclasses.replace(spec, uops=(*spec.uops, UOp(Ops.FETCH, dtypes.void, (), 4)))
    assert key_of(rows(), fetching).startswith("text ")


def test_a_store_past_the_caches_stores_the_same():
    program = compile_kernel(column_sum(8, 12), opened("CPU").renderer, ()).uops
    past = [step.replace(arg=NONTEMPORAL) if step.op is Ops.STORE else step for step in program]
    assert hashed(past) == hashed(program)


def test_other_keys_are_other_bits():
    contents = [[0.0] * 12, np.random.default_rng(0).standard_normal(12 * 64).astype(np.float32).tolist()]
    found = {}
    for opts in ([], [Opt(UPCAST, 0, 4)], [Opt(UNROLL, 0, 16)]):
        found[key(rows(), *opts)] = left_by(rows(), "CPU", contents, opts=opts)[0]
    plainly, unrolled = found.values()
    assert plainly != unrolled
    np.testing.assert_allclose(plainly, unrolled, rtol=1e-4, atol=1e-5)

"""The search of Opt lists with made-up times, and the prediction that ranks them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.codegen.cost.predict import predict
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import ACTIONS, Loops, Opt, OptOps
from lazygrad.codegen.opt.search import LONGEST, TIMED, Found, Space, search
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import Variable
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.target import Core, Memory, Target

from .kernels import load, plain, reduce, sink, store

CPU = Target(
    "CPU",
    vector_bytes=64,
    vector_registers=32,
    threads=2,
    memory=Memory((1 << 15, 1 << 20, 1 << 24)),
    native_dtypes=LLVMRenderer().target.native_dtypes,
    has_fma=True,
)


def add(*shape):
    return sink(store(0, load(1, plain(*shape)) + load(2, plain(*shape))))


def row_sum(rows, columns):
    return sink(store(0, reduce(load(1, plain(rows, columns)), Ops.ADD, 1)))


def matmul(m, k, n):
    a = load(1, plain(m, k).reshape((m, 1, k)).expand((m, n, k)), size=m * k)
    b = load(2, plain(k, n).permute((1, 0)).reshape((1, n, k)).expand((m, n, k)), size=k * n)
    return sink(store(0, reduce(a * b, Ops.ADD, 2)))


def searched(ast, measured, predicted=lambda opts: 1.0, width=2, **more):
    return search(Loops.of(lower(ast)), CPU, [()], width, predicted, measured, **more)


# *** the search


def test_it_finds_what_is_fastest_and_measures_nothing_twice():
    best = (Opt(OptOps.UPCAST, 0, 8), Opt(OptOps.UPCAST, 0, 2))
    asked = []

    def measured(opts):
        asked.append(opts)
        return 1.0 - 0.3 * sum(mine == yours for mine, yours in zip(opts, best, strict=False))

    predicted = lambda opts: 1.0 - sum(mine == yours for mine, yours in zip(opts, best, strict=False))
    found = searched(add(64), measured, predicted)
    assert found[0].opts == best
    assert len(asked) == len(set(asked))
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)


def test_what_cannot_be_measured_is_left_out():
    measured = lambda opts: None if opts else 1.0
    assert searched(add(64), measured) == [Found((), 1.0)]
    assert searched(add(64), lambda opts: None) == []


def test_only_the_promising_are_measured():
    asked, rounds = [], []

    def measured(opts):
        asked.append(opts)
        return 1.0

    searched(matmul(16, 16, 16), measured, on_round=lambda *row: rounds.append(row[:2]))
    assert [number for number, _ in rounds] == [0, 1]  # no gain: one round
    assert rounds[1][1] > len(asked)
    assert len(asked) <= 1 + 2 * TIMED


def test_an_opt_that_gains_nothing_is_left_out():
    found = searched(add(64), lambda opts: 1.0)
    assert found[0].opts == ()


def test_every_action_of_the_registry_is_tried(monkeypatch):
    class Mark:
        """Changes nothing."""

        counts = "all"

        def check(self, *given):
            pass

        def apply(self, loops, *given):
            return loops

    monkeypatch.setitem(ACTIONS, OptOps.TC, Mark())
    kinds = {each.op for each in Space(Loops.of(lower(matmul(16, 16, 16))), CPU).moves(())}
    assert {OptOps.TC, OptOps.UPCAST, OptOps.UNROLL, OptOps.THREAD, OptOps.SWAP} <= kinds


def test_moves_fit_and_neighbours_change_one_opt():
    loops = Loops.of(lower(row_sum(8, 16)))
    opts = (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UNROLL, 0, 4))
    found = list(Space(loops, CPU).neighbours(opts))
    assert (Opt(OptOps.UNROLL, 0, 4),) in found
    assert (Opt(OptOps.UPCAST, 0, 8), Opt(OptOps.UNROLL, 0, 4)) in found
    assert any(len(each) == 3 and each[:2] == opts for each in found)
    assert all(len(each) <= LONGEST for each in found)


# *** the prediction


def predicted(ast, opts, renderer=None):
    renderer = renderer or LLVMRenderer(CPU)
    return predict(compile_kernel(ast, renderer, opts).uops, renderer.target)


U, R = OptOps.UPCAST, OptOps.UNROLL


@pytest.mark.parametrize(
    ("ast", "rising"),
    [
        # a tile of accumulators, vectors alone, neither
        (matmul(128, 128, 128), [[(U, 0, 8), (U, 1, 32)], [(U, 1, 16)], []]),
        # a tile that fits the registers, one that does not
        (matmul(128, 128, 128), [[(U, 0, 8), (U, 1, 32)], [(U, 0, 32), (U, 1, 32)]]),
        # several sums hide the latency of one, one sum of vectors, one of numbers
        (row_sum(64, 4096), [[(R, 0, 64)], [(R, 0, 16)], []]),
        # lanes along what is contiguous, lanes that are gathered
        (row_sum(4096, 64), [[(R, 0, 16)], [(U, 0, 16)]]),
        (add(1 << 16), [[(U, 0, 16)], []]),
    ],
)
def test_it_ranks_as_a_processor_does(ast, rising):
    times = [predicted(ast, [Opt(*each) for each in opts]) for opts in rising]
    assert times == sorted(times)
    assert times[-1] > 1.1 * times[0]


def test_more_cores_take_less_of_a_large_kernel_only():
    thread = [Opt(OptOps.THREAD, 0, 4)]
    assert predicted(matmul(256, 256, 256), thread) < 0.7 * predicted(matmul(256, 256, 256), [])
    assert predicted(add(64), thread) > predicted(add(64), [])


def test_what_does_not_fit_a_cache_is_fetched_again():
    """Walked down its columns, a matrix larger than the caches is fetched line by line for each element."""
    rows = sink(store(0, load(1, plain(1 << 16, 64))))
    columns = sink(store(0, load(1, plain(1 << 16, 64).permute((1, 0)))))
    assert predicted(columns, []) > 2 * predicted(rows, [])


def test_what_fits_a_cache_is_not_fetched_from_beyond_it():
    """A kernel that runs again finds it there: elements of a small one take less time each."""
    small, large = 1 << 10, 1 << 24
    lanes = [Opt(OptOps.UPCAST, 0, 16)]
    assert predicted(add(large), lanes) / large > 2 * predicted(add(small), lanes) / small


def test_a_loop_waits_as_long_as_its_processors_additions_take():
    ast, slow = row_sum(64, 4096), replace(CPU, core=Core(add=12))
    assert predicted(ast, [], LLVMRenderer(slow)) > 2 * predicted(ast, [])


def test_a_last_block_that_is_shorter_does_not_hide_the_others():
    """The block's loop has min(16, what is left) turns."""
    even, odd = (predicted(row_sum(64, 32 * turns), [Opt(R, 0, 32)]) for turns in (16, 18))
    assert odd > even


def test_on_a_grid_neighbours_read_neighbours():
    cuda = CUDARenderer("sm_90")
    columns = sink(store(0, load(1, plain(512, 512).permute((1, 0)))))
    local = [Opt(OptOps.LOCAL, 0, 32)]
    assert predicted(add(1 << 18), local, cuda) < predicted(columns, [Opt(OptOps.LOCAL, 1, 32)], cuda)
    assert predicted(add(1 << 18), local, cuda) < predicted(add(1 << 18), [], cuda)


def test_symbolic_sizes_and_other_types_have_a_prediction():
    n = Variable("n", 1, 64)
    assert predicted(sink(store(0, reduce(load(1, plain(n, 8)), Ops.ADD, 1))), []) > 0
    half = sink(store(0, load(1, plain(64), dtypes.half) + load(2, plain(64), dtypes.half)))
    assert predicted(half, []) > 0
    assert dict(stages(half, LLVMRenderer(CPU), ()))

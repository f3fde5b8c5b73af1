"""Loops that ask for what is packed, or read where it lies, in the next turn of a loop around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.linearizing.tile_prefetch import Ask, tile_prefetches
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import Device
from lazygrad.renderer.llvmir import LLVMRenderer, target
from lazygrad.target import PROCESSORS, refined

pytestmark = pytest.mark.choice

#: What the texts are for, whatever machine this is.
NAME = "emeraldrapids"
TARGET = refined(target(), NAME, PROCESSORS[NAME].features)
PADTO, TILE, UPCAST, UNROLL = OptOps.PADTO, OptOps.TILE, OptOps.UPCAST, OptOps.UNROLL
PACKED = [Opt(TILE, 1, 64), Opt(UPCAST, 0, 4), Opt(UPCAST, 1, 64), Opt(OptOps.STAGE, 1, 2)]
ROUNDS = [Opt(UPCAST, 0, 4), Opt(UPCAST, 1, 64), Opt(OptOps.ROUNDS, 0, 32)]
LANES = [Opt(TILE, 1, 4), Opt(UPCAST, 0, 4), Opt(UPCAST, 1, 4), Opt(UNROLL, 0, 16)]


def product(k: int, n: int, transposed: bool) -> Tensor:
    """16 rows times weights, of k x n or the other way round."""
    x, weights = Tensor.empty(16, k), Tensor.empty(*((n, k) if transposed else (k, n)))
    return x @ (weights.T if transposed else weights)


def asked(value: Tensor, opts: list[Opt], it=TARGET) -> list[Ask]:
    spec = compile_kernel(value.schedule()[-1].ast, LLVMRenderer(it), opts)
    found = list(tile_prefetches(spec.uops, it).values())
    assert spec.src.count("call void @llvm.prefetch.p0(") == sum(ask.lines for ask in found)
    return found


def moved(ask: Ask) -> list[int]:
    """Bytes by which each loop moves what is asked for."""
    return [step for _, step in ask.steps]


def test_the_next_panel_is_asked_for_while_one_is_multiplied():
    """Of 64 rows of 2 KB, by four tiles of 512 steps: a line each."""
    (ask,) = asked(product(512, 1024, True), PACKED)
    assert (ask.begin, ask.lines) == (64 * 2048, 1)
    assert moved(ask)[:2] == [64 * 2048, 64 * 512]
    assert moved(ask)[-1] == 64


def test_a_panel_of_pieces_of_rows_is_not_asked_for():
    assert not asked(product(512, 1024, False), PACKED)


def test_the_next_round_is_asked_for():
    """32 rows of 4 KB, by 16 * 4 tiles of 32 steps."""
    (ask,) = asked(product(512, 1024, False), ROUNDS)
    assert (ask.begin, ask.lines) == (32 * 4096, 1)
    assert moved(ask) == [32 * 4096, 4 * 32 * 64, 32 * 64, 64]


def test_the_next_rows_of_a_sum_in_lanes_are_asked_for():
    """Four rows of 2 KB, by four tiles of 32 steps."""
    (ask,) = asked(product(512, 1024, True), LANES)
    assert (ask.begin, ask.lines) == (4 * 2048, 1)
    assert moved(ask)[:2] == [4 * 2048, 32 * 64]


@pytest.mark.parametrize(
    ("value", "opts"),
    [
        (lambda: product(512, 256, True), PACKED),  # the second cache holds it
        (lambda: product(512, 1024, True), []),  # there are far more steps than lines
        (lambda: product(512, 1024, False), [Opt(UPCAST, 1, 64)]),
        (lambda: Tensor.empty(1024, 1024).sum(1), [Opt(UNROLL, 0, 16)]),
    ],
    ids=["small", "elements", "a strip of far more than is held", "a sum"],
)
def test_what_is_left_as_it_is(value, opts):
    assert not asked(value(), opts)


def test_no_target_asks_where_that_was_not_measured():
    slow = replace(TARGET, memory=replace(TARGET.memory, prefetches_tile=False))
    assert not asked(product(512, 1024, True), PACKED, slow)


@pytest.mark.parametrize(
    ("transposed", "opts"),
    [(True, PACKED), (False, ROUNDS), (True, LANES)],
    ids=["packed", "rounds", "lanes"],
)
def test_asking_behind_the_end_of_memory_reads_nothing(transposed, opts):
    rng = np.random.default_rng(0)
    x, weights = rng.random((16, 512), np.float32), rng.random((512, 1024), np.float32)
    stored = Tensor(np.ascontiguousarray(weights.T) if transposed else weights).realize()
    item = (Tensor(x).realize() @ (stored.T if transposed else stored)).schedule()[-1]
    device = Device["CPU"]
    here = device.renderer.target
    asks = replace(here, memory=replace(here.memory, prefetches_tile=True))
    spec = compile_kernel(item.ast, LLVMRenderer(asks), opts)
    kernel = device.load(spec, device.compile(spec))
    kernel(tuple([buffer.ensure_allocated()._buf for buffer in item.bufs]), ())
    np.testing.assert_allclose(item.bufs[0].numpy().reshape(16, 1024), x @ weights, rtol=1e-4)

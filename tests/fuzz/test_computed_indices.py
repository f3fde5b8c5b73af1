"""Random programs that read and write at computed indices agree with numpy, with whatever Opts and vectors.

Each kernel of a program is also run in the interpreter, which refuses an access outside of its memory: with
the Opts that other machines would choose, and with random ones. None of them may find an index out of range.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.codegen.direct_kernels import direct_value
from lazygrad.codegen.nests import has_nests
from lazygrad.codegen.opt import KernelOptError
from lazygrad.config import Context
from lazygrad.engine.realize import run_item
from lazygrad.ir.ops import Ops
from lazygrad.schedule.kernels.items import ScheduleItem

from ..codegen.kernels import buffers_of, equal, left_by
from ..codegen.test_checks import TARGETS
from ..codegen.test_random_opts import random_opts
from ..helpers import needs
from .computed_indices import WRITES, Program, made, programs
from .harness import fuzz_seed, fuzzed, number_of

#: How a program is run as a whole.
FLAGS: list[dict[str, Any]] = [{}] * 3 + [dict(NOOPT=1), dict(FUSE=0), dict(THREADS=1), dict(CHECK=1)]
#: Adaptive pooling is tried from every size to every size below.
SIZES = 25


def play(program: Program, **flags: Any) -> None:
    with Context(**flags):
        here, there = made(program)
        np.testing.assert_allclose(here.numpy(), there, rtol=1e-5, err_msg=str(program))


@fuzzed(quick=20, sweep=12_000, share=1500)
@given(programs(), st.sampled_from(FLAGS))
def test_computed_indices(program: Program, flags: dict[str, Any]) -> None:
    play(program, **flags)


@fuzzed(quick=10, sweep=3000, share=500)
@given(programs(WRITES), st.sampled_from(FLAGS))
def test_writes_at_computed_indices(program: Program, flags: dict[str, Any]) -> None:
    play(program, **flags)


@fuzzed(quick=4, sweep=1000, share=250)
@given(programs())
def test_computed_indices_on_python(program: Program) -> None:
    play(program, DEV="PYTHON")


@needs("clang")
@fuzzed(quick=2, sweep=500, share=250)
@given(programs())
def test_computed_indices_on_clang(program: Program) -> None:
    play(program, DEV="CLANG")


@needs("cl")
@fuzzed(quick=1, sweep=300, share=100)
@given(programs())
def test_computed_indices_on_cl(program: Program) -> None:
    play(program, DEV="CL")


# ---- with the choices of other machines


@fuzzed(quick=8, sweep=2000, share=250)
@given(programs(), st.sampled_from(tuple(TARGETS)), st.integers(0, 1000))
def test_kernels_of_computed_indices_with_any_opts(program: Program, target: str, number: int) -> None:
    play_kernels(made(program)[0], target, number, str(program))


def play_kernels(value: Tensor, target: str, number: int, shown: str) -> None:
    """Run the kernels of a tensor, each in the interpreter too: with a target's Opts and with random ones."""
    for item in value.schedule():
        before = {
            n: buffer.numpy().reshape(-1).tolist()
            for n, buffer in enumerate(item.bufs)
            if buffer.is_allocated
        }
        run_item(item)
        planned_here = has_nests(item.ast) and TARGETS[target].grid  # and not for a grid
        if item.ast.op is Ops.SINK and direct_value(item.ast) is None and not planned_here:
            drawn = (
                [] if has_nests(item.ast) else [random_opts(item.ast, TARGETS[target], random.Random(number))]
            )
            for opts in (None, *drawn):
                _play_kernel(item, before, target, opts, f"{shown}\n{target}: {opts}")


def _play_kernel(
    item: ScheduleItem, before: dict[int, list[Any]], target: str, opts: Any, shown: str
) -> None:
    buffers = buffers_of(item.ast)
    contents = [before.get(b.arg, [0] * b.dtype.size) for b in buffers]
    variables = {variable.arg[0]: number for variable, number in item.var_vals.items()}
    try:
        left = left_by(item.ast, TARGETS[target], contents, variables, opts)
    except KernelOptError:  # what is threads on this grid was loops
        return
    reported = [number for b in buffers if b.dtype.role == "bad" for number in left[b.arg]]
    assert not any(reported), f"an index that nobody asked for: {shown}"
    for n in {store.src[0].arg for store in item.ast.src}:
        assert equal(left[n], item.bufs[n].numpy().reshape(-1).tolist(), 1e-5), shown


# ---- adaptive pooling: bounds of windows that are computed, and its gradient


def pooled(array: np.ndarray[Any, Any], out: int, of: Any) -> np.ndarray[Any, Any]:
    size = len(array)
    spans = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
    return np.array([of(array[begin:end]) for begin, end in spans])


def pool(size: int, out: int) -> None:
    array = np.arange(size, dtype=np.float32) ** 2 % 17
    x = Tensor(array.reshape(1, 1, size), requires_grad=True).realize()
    mean, most = x.adaptive_avg_pool1d(out), x.adaptive_max_pool1d(out)
    slope = np.zeros(size)
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        slope[begin:end] += (i + 1) / (end - begin)
    weighted = (mean * (Tensor.arange(out) + 1)).sum().gradient(x)[0]
    shown = f"{size} to {out}"
    np.testing.assert_allclose(weighted.numpy().ravel(), slope, rtol=1e-5, err_msg=shown)
    np.testing.assert_allclose(mean.numpy().ravel(), pooled(array, out, np.mean), rtol=1e-5, err_msg=shown)
    np.testing.assert_array_equal(most.numpy().ravel(), pooled(array, out, np.max), err_msg=shown)


def pool_elsewhere(size: int, out: int, target: str) -> None:
    x = Tensor(np.arange(size, dtype=np.float32).reshape(1, 1, size), requires_grad=True).realize()
    mean = x.adaptive_avg_pool1d(out)
    play_kernels(mean, target, size, f"{size} to {out}")
    play_kernels(mean.sum().gradient(x)[0], target, size, f"gradient, {size} to {out}")


def some_sizes(name: str, count: int) -> list[tuple[int, int]]:
    drawn = random.Random(number_of(fuzz_seed(), name))
    return [(drawn.randrange(1, SIZES), drawn.randrange(1, SIZES)) for _ in range(count)]


def test_adaptive_pooling_of_some_sizes() -> None:
    for size, out in [(1, 7), (7, 5), *some_sizes("pooling", 2)]:
        pool(size, out)


def test_adaptive_pooling_of_some_sizes_elsewhere() -> None:
    for (size, out), target in zip(some_sizes("elsewhere", len(TARGETS)), TARGETS, strict=True):
        pool_elsewhere(size, out, target)


@pytest.mark.slow
@pytest.mark.parametrize("out", range(1, SIZES))
def test_adaptive_pooling_of_every_size(out: int) -> None:
    for size in range(1, SIZES):
        pool(size, out)
        pool_elsewhere(size, out, list(TARGETS)[(size + out) % len(TARGETS)])

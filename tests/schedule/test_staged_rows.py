"""Expensive values that loops along one row need: they stay in the kernel, which computes each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Device, Tensor
from lazygrad.codegen.compile import stages
from lazygrad.codegen.nests import nests_of
from lazygrad.codegen.opt import Loops, heuristic
from lazygrad.codegen.opt.moves.actions import Opt, OptOps
from lazygrad.config import Context
from lazygrad.ir.ops import Ops
from lazygrad.report.forms import reasons
from lazygrad.schedule.kernels.items import ScheduleItem
from lazygrad.target import Memory, Target
from tests.helpers import needs

pytestmark = pytest.mark.choice

SHAPE = (64, 1024)
VALUES = np.random.default_rng(0).standard_normal(SHAPE)


def memory(device: str = "CPU", shape: tuple[int, ...] = SHAPE) -> Tensor:
    return Tensor(VALUES.astype(np.float32)[: shape[0], : shape[1]], device=device).contiguous().realize()


def gelu(x):
    return x * 0.5 * (np.tanh((x + x**3 * 0.044715) * np.sqrt(2 / np.pi)) + 1)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layernorm(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def log_softmax(x):
    return np.log(softmax(x))


def gradient_of_logsumexp(x):
    """Of Σ logsumexp(sin(x)) along rows."""
    return softmax(np.sin(x)) * np.cos(x)


#: what is computed, the same in numpy, rows that are kept, and expensive ops that are in the program once
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable, int, list[Ops]]] = {
    "softmax of gelu": (lambda x: x.gelu().softmax(), lambda x: softmax(gelu(x)), 2, [Ops.TANH, Ops.EXP]),
    "softmax of exp": (lambda x: x.sin().exp().softmax(), lambda x: softmax(np.exp(np.sin(x))), 2, [Ops.SIN]),
    "layernorm of gelu": (lambda x: x.gelu().layernorm(), lambda x: layernorm(gelu(x)), 2, [Ops.TANH]),
    "log_softmax of gelu": (
        lambda x: x.gelu().log_softmax(),
        lambda x: log_softmax(gelu(x)),
        2,
        [Ops.TANH, Ops.EXP],
    ),
    "gradient of logsumexp": (
        lambda x: x.sin().logsumexp(1).sum().gradient(x)[0],
        gradient_of_logsumexp,
        2,
        [Ops.EXP],
    ),
}


def only_kernel(tensor: Tensor) -> ScheduleItem:
    (item,) = tensor.schedule()
    return item


def rows_kept(item: ScheduleItem) -> int:
    return sum("kept in the kernel, a row of" in line for line in reasons(item))


def opts_of(item: ScheduleItem) -> list:
    """What the heuristic chooses for a kernel."""
    device = Device["CPU"]
    loops = dict(stages(item.ast, device.renderer, ()))["lower"]
    return heuristic.on_one_core(Loops.of(loops), device.target).opts


@pytest.mark.parametrize("name", CASES)
def test_a_dear_value_stays_in_the_kernel(name):
    make, _, rows, _ = CASES[name]
    assert rows_kept(only_kernel(make(memory()))) == rows


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_keeps_what_placement_counts_on(name):
    make, _, rows, _ = CASES[name]
    item = only_kernel(make(memory()))
    loops = dict(stages(item.ast, Device["CPU"].renderer, ()))["lower"]
    assert sum(node.op is Ops.STAGE for node in loops.toposort()) == rows
    assert all(opt.op is not OptOps.INLINE for opt in opts_of(item))


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_is_computed_once(name):
    make, _, _, once = CASES[name]
    item = only_kernel(make(memory()))
    form = dict(stages(item.ast, Device["CPU"].renderer, ()))["apply opts"]  # without any Opt, too
    ops = [node.op for node in form.toposort()]
    assert [ops.count(op) for op in once] == [1] * len(once)


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang")), "PYTHON"])
@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_numpy(name, device):
    make, expected, _, _ = CASES[name]
    shape = (4, 256) if device == "PYTHON" else SHAPE
    result = make(memory(device, shape)).numpy()
    np.testing.assert_allclose(result, expected(VALUES[: shape[0], : shape[1]]), rtol=2e-4, atol=2e-5)


def test_a_row_that_vectors_do_not_divide():
    x = memory(shape=(64, 1001))
    result = x.gelu().softmax().numpy()
    np.testing.assert_allclose(result, softmax(gelu(VALUES[:, :1001])), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize(("length", "kept"), [(1021, 2), (61, 2), (29, 0)])
def test_without_masks_one_slow_turn_ends_a_row(length, kept, monkeypatch):
    """Of 1021 and 61 elements vectors of 8 walk all but some; four turns and less are walked one by one."""
    renderer = Device["CPU"].renderer
    target = replace(renderer.target, vector_bytes=32, load_bytes=32, vector_registers=16, has_masks=False)
    monkeypatch.setattr(renderer, "target", target)
    item = memory(shape=(64, length)).gelu().softmax().schedule()[-1]
    assert rows_kept(item) == kept
    assert all(opt.op is not OptOps.INLINE for opt in opts_of(item))


def test_a_row_that_is_written_out_is_not_kept():
    item = only_kernel(memory(shape=(64, 8)).gelu().softmax())
    assert rows_kept(item) == 2
    assert opts_of(item)[0] == Opt(OptOps.INLINE, 1)


def test_without_opts_a_row_is_kept_too():
    with Context(NOOPT=1):
        result = memory().gelu().softmax().numpy()
    np.testing.assert_allclose(result, softmax(gelu(VALUES)), rtol=2e-4, atol=2e-6)


# ---- where it is not kept


def test_a_grid_keeps_no_rows():
    assert Target("GPU", vector_bytes=16, grid=True).row_bytes == 0


def test_half_of_the_second_cache_is_for_rows():
    assert Target("CPU", vector_bytes=32, memory=Memory((32 << 10, 1 << 20))).row_bytes == 512 << 10
    assert Target("CPU", vector_bytes=32).row_bytes == 256 << 10


def test_a_value_read_across_rows_is_stored():
    """Its kernel brings it in order; a loop along the row would jump from line to line."""
    items = memory().T.gelu().softmax().schedule()
    assert sum([len(nests_of(item.ast)) for item in items]) > 1


def test_a_cheap_value_is_computed_again():
    assert rows_kept(only_kernel((memory() + 1).layernorm())) == 0


def test_a_value_that_is_a_result_too_is_stored():
    expensive = memory().gelu()
    items = expensive.schedule(expensive.layernorm())
    assert [rows_kept(item) for item in items] == [0] * len(items)


def test_a_matmul_does_not_read_kept_rows():
    """It needs the row again for every column."""
    x = memory(shape=(64, 64))
    assert rows_kept((x.sin() @ x + x.sin()).schedule()[-1]) == 0

"""Borders of loops apart: what each part computes, where it is done, and that no number changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lazygrad import Context, Device, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, apply_opts
from lazygrad.codegen.vectorizing import borders
from lazygrad.codegen.vectorizing.borders import split_borders
from lazygrad.codegen.vectorizing.vectorize import vectorize
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.programs.runners import clear_programs
from lazygrad.renderer.llvmir import LLVMRenderer
from tests.helpers import needs

from .test_opt import SMALL_CPU
from .test_random_opts import check_random_kernels

pytestmark = pytest.mark.choice


@pytest.fixture
def everywhere(monkeypatch):
    """Kernels of any size, and loops that are mostly borders, are split as well."""
    monkeypatch.setattr(borders, "WORTH", 0)
    monkeypatch.setattr(borders, "MOST", 0.0)
    clear_programs()
    with Context(CACHELEVEL=0):
        yield
    clear_programs()


def slope_of_convolution(size: int, window: int) -> Tensor:
    """The slope of a convolution over a row, by its input: each place meets only some of the window's."""
    x, weight = Tensor.empty(1, 1, size), Tensor.empty(1, 1, window)
    y = x.requires_grad_().conv2d(weight)
    return y.gradient(x, gradient=Tensor.empty(*y.shape))[0]


def lowered(value: Tensor):
    return lower(value.schedule()[-1].ast)


@pytest.mark.usefixtures("everywhere")
def test_only_the_ends_are_masked(golden):
    assert golden(loops_text(split_borders(lowered(slope_of_convolution(12, 3)))))


@pytest.mark.usefixtures("everywhere")
def test_the_middle_has_no_mask():
    sink = split_borders(lowered(slope_of_convolution(12, 3)))
    masked = [any(node.op is Ops.WHERE for node in store.toposort()) for store in sink.src]
    assert masked == [True, False, True]


def test_little_work_stays_together():
    sink = lowered(slope_of_convolution(12, 3))
    assert split_borders(sink) is sink


def test_a_loop_that_is_mostly_border_stays_together(monkeypatch):
    monkeypatch.setattr(borders, "WORTH", 0)
    sink = lowered(slope_of_convolution(12, 5))
    assert split_borders(sink) is sink
    assert len(split_borders(lowered(slope_of_convolution(12, 4))).src) == 3


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize(("masks", "parts"), [(True, 1), (False, 3)])
def test_masks_that_cost_nothing_stay(masks, parts):
    target = dataclasses.replace(SMALL_CPU, has_masks=masks)
    loops = apply_opts(lowered(slope_of_convolution(12, 3)), [Opt(OptOps.UNROLL, 0, 3)], target)
    assert len(vectorize(loops, target).src) == parts


@pytest.mark.parametrize("masks", [True, False])
def test_lanes_with_one_mask_share_the_choice(masks):
    target = dataclasses.replace(Device["CPU"].renderer.target, has_masks=masks)
    upper = (Tensor.arange(8).reshape(8, 1) < 4).expand(8, 4)  # 4 lanes have one row
    chosen = upper.where(Tensor.empty(8, 4), Tensor.empty(8, 4))
    text = compile_kernel(chosen.schedule()[-1].ast, LLVMRenderer(target), [Opt(OptOps.UPCAST, 1, 4)]).src
    assert ("select i1" in text) is not masks


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("device", ["PYTHON", "CPU", pytest.param("CLANG", marks=needs("clang"))])
@pytest.mark.parametrize("padding", [0, 2])
def test_slopes_of_convolutions(device, padding):
    r = np.random.default_rng(0)
    x = Tensor(r.integers(-4, 5, (2, 3, 9, 10)).astype("f"), device=device, requires_grad=True)
    weight = Tensor(r.integers(-4, 5, (4, 3, 3, 4)).astype("f"), device=device)
    y = x.conv2d(weight, padding=padding)
    up = r.integers(-4, 5, y.shape).astype("f")
    (slope,) = y.gradient(x, gradient=Tensor(up, device=device))
    expected = np.zeros((2, 3, 9 + 2 * padding, 10 + 2 * padding), "f")
    for i in range(up.shape[2]):
        for j in range(up.shape[3]):
            expected[:, :, i : i + 3, j : j + 4] += np.einsum("nf,fcij->ncij", up[:, :, i, j], weight.numpy())
    inside = slice(padding, -padding or None)
    np.testing.assert_array_equal(slope.numpy(), expected[:, :, inside, inside])


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize(
    "device",
    [
        "PYTHON",
        "CPU",
        pytest.param("AARCH64", marks=needs("aarch64")),
        pytest.param("CLANG", marks=needs("clang")),
    ],
)
def test_random_kernels(device, monkeypatch):
    split = []

    def counted(sink):
        made = split_borders(sink)
        split.append(made is not sink)
        return made

    monkeypatch.setattr("lazygrad.codegen.vectorizing.vectorize.split_borders", counted)
    split_ones = (2020, 2031, 2035)  # of the first forty; a C compiler takes its time
    assert check_random_kernels(device, split_ones if device in ("AARCH64", "CLANG") else range(2000, 2040))
    assert not split or any(split)  # a processor with masks splits none

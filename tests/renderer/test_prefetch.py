"""Loads that ask for what comes later: of what a kernel reads once, in loops inside of each other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.linearizing.prefetch import prefetched_loads
from lazygrad.device import Device
from lazygrad.nn.quantized import quantize
from lazygrad.renderer.llvmir import LLVMRenderer, target
from lazygrad.target import PROCESSORS, Target, refined

#: What the texts are for, whatever machine this is.
NAME = "znver5"
TARGET = refined(target(), NAME, PROCESSORS[NAME].features)


def renderer(ahead: int = 16384, it: Target = TARGET) -> LLVMRenderer:
    """That of a processor, asking so many bytes ahead."""
    return LLVMRenderer(replace(it, memory=replace(it.memory, prefetched=ahead)))


def program(value: Tensor, ahead: int = 16384):
    return compile_kernel(value.schedule()[-1].ast, renderer(ahead))


@pytest.mark.choice
def test_weights_are_asked_for_and_the_vector_is_not():
    spec = program(Tensor.empty(1, 576) @ Tensor.empty(512, 576).T)
    asked = prefetched_loads(spec.uops, renderer().target)
    assert {load.src[0].src[0].dtype.size for load in asked} == {512 * 576}
    assert set(asked.values()) == {16384}
    assert "call void @llvm.prefetch.p0(" in spec.src
    assert "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)" in spec.src


@pytest.mark.choice
def test_scales_are_asked_for_as_many_turns_ahead():
    weight = quantize(Tensor.rand(512, 576), "Q4_0").realize()
    spec = program(weight.linear(Tensor.empty(1, 576)))
    asked = prefetched_loads(spec.uops, renderer().target)
    by_size = {load.src[0].src[0].dtype.size: ahead for load, ahead in asked.items()}
    assert by_size == {512 * 288: 16384, 512 * 18: 4096}


@pytest.mark.choice
@pytest.mark.parametrize(
    "value",
    [
        lambda: Tensor.empty(64, 512) @ Tensor.empty(512, 512),  # rows share what they multiply
        lambda: Tensor.empty(1, 64) @ Tensor.empty(32, 64).T,  # in the first cache
        lambda: Tensor.empty(1 << 20).sum(),  # no loop in a loop of rows
        lambda: Tensor.empty(1 << 20) + 1,
        lambda: Tensor.empty(512, 576).softmax(-1),  # read more than once
        lambda: Tensor.empty(4096, 576)[Tensor.empty(512, dtype="int32")].sum(1),  # which rows, data says
    ],
    ids=["a tile", "small", "a sum", "elements", "softmax", "gathered"],
)
def test_what_is_left_as_it_is(value):
    assert not prefetched_loads(program(value()).uops, renderer().target)


def computing(value: Tensor) -> dict[int, int]:
    """Elements that a load has → how far ahead it asks, on a machine where 4096 bytes were measured."""
    machine = replace(TARGET, memory=replace(TARGET.memory, prefetched=0, computing=4096))
    spec = compile_kernel(value.schedule()[-1].ast, LLVMRenderer(machine))
    asked = prefetched_loads(spec.uops, machine)
    assert ("@llvm.prefetch" in spec.src) == bool(asked)
    return {load.src[0].src[0].arg: ahead for load, ahead in asked.items()}


@pytest.mark.choice
def test_what_computes_much_of_each_line_asks_for_lines():
    assert computing(Tensor.empty(1 << 20).gelu()) == {1: 4096}
    assert computing(Tensor.empty(1 << 20).sigmoid() + Tensor.empty(1 << 20)) == {1: 4096, 2: 4096}


@pytest.mark.choice
@pytest.mark.parametrize(("row", "ahead"), [(512, 4096), (2000, 8000), (4096, 16384)])
def test_rows_that_are_walked_again_ask_for_the_next_row(row, ahead):
    assert computing(Tensor.empty(1024, row).softmax(-1)) == {1: ahead}


@pytest.mark.choice
@pytest.mark.parametrize(
    "value",
    [
        lambda: Tensor.empty(1 << 20) + 1,  # computes little
        lambda: Tensor.empty(1024, 1024).sum(1),  # walks each row once
        lambda: Tensor.empty(1 << 10).gelu(),  # in the second cache
        lambda: Tensor.empty(1024, 1024).softmax(0),  # not from end to end
        lambda: Tensor.empty(1024, 1024).T.gelu().contiguous(),
        lambda: Tensor.empty(64, 512) @ Tensor.empty(512, 512),
    ],
    ids=["a copy", "a sum", "small", "columns", "turned", "a tile"],
)
def test_what_does_not_ask_though_that_was_measured(value):
    assert computing(value()) == {}


def test_no_target_asks_where_that_was_not_measured():
    spec = program(Tensor.empty(1, 576) @ Tensor.empty(512, 576).T, ahead=0)
    assert "prefetch" not in spec.src


def test_asking_behind_the_end_of_memory_reads_nothing():
    """The last rows are asked for far behind the end of their buffer."""
    x, weight = (np.random.default_rng(0).random(shape, np.float32) for shape in ((1, 576), (512, 576)))
    item = (Tensor(x).realize() @ Tensor(weight).realize().T).schedule()[-1]
    device = Device["CPU"]
    spec = compile_kernel(item.ast, renderer(1 << 20, device.renderer.target))
    kernel = device.load(spec, device.compile(spec))
    kernel(tuple([buffer.ensure_allocated()._buf for buffer in item.bufs]), ())
    np.testing.assert_allclose(item.bufs[0].numpy(), (x @ weight.T)[0], rtol=1e-4)


def test_a_place_that_follows_from_floats_is_none_that_is_asked_for():
    x = Tensor([0.5, 2.0, math.inf], dtype=dtypes.float64).realize()
    place = (x > 3).where(math.inf, x).clamp(0.0, 2.0).cast(dtypes.int64)
    assert Tensor([5.0, 6.0, 7.0]).realize()[place].tolist() == [5.0, 7.0, 7.0]
    assert Tensor(np.arange(14.0)).histc(3).tolist() == [5.0, 4.0, 5.0]

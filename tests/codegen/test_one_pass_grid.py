"""Kernels in one pass on a grid: what is planned, and that the programs compute it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.compile import compile_kernel, prediction_of
from lazygrad.codegen.lowering.lower import lower
from lazygrad.direct.one_pass import is_one_pass, one_pass
from lazygrad.direct.one_pass.grid.grid_blocks import block_of, layout_of
from lazygrad.direct.one_pass.rule import OnePass
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.cstyle.dialects import cuda_target, metal_target
from lazygrad.renderer.cstyle.wgsl import wgsl_target
from tests.helpers import needs, slow_but_for

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)
DEVICES = [pytest.param("CL", marks=needs("cl")), pytest.param("WEBGPU", marks=needs("webgpu"))]
#: A GPU for which short attention is one pass too: what is planned for it runs here.
PLANNED = "cuda:sm_90"


def asts(value: Tensor) -> list[UOp]:
    return [item.ast for item in value.schedule() if item.ast.op is Ops.SINK]


def attention(*shape: int, keys: int = 0, dtype: str = "float32", **options: Any) -> UOp:
    """The kernel of an attention, planned for a GPU."""
    *batch, rows, depth = shape
    q, k, v = (Tensor.empty(*batch, n, depth, dtype=dtype) for n in (rows, keys or rows, keys or rows))
    with Context(PLAN_FOR=PLANNED):
        (ast,) = asts(q.scaled_dot_product_attention(k, v, **options))
    assert is_one_pass(ast)
    return ast


def parts_of(ast: UOp) -> OnePass:
    found = one_pass(lower(ast))
    assert found is not None
    return found


# *** what is chosen


@pytest.mark.parametrize("depth", [8, 64, 128])
@pytest.mark.parametrize(
    "target", [cuda_target("sm_90"), metal_target(), wgsl_target()], ids=["cuda", "metal", "webgpu"]
)
def test_a_block_fits_into_what_a_workgroup_has(depth: int, target: Any) -> None:
    parts = parts_of(attention(32, 300, depth))
    found = block_of(parts, target)
    assert found is not None
    block, predicted = found.block, found.prediction
    layout = layout_of(parts, block, target)
    assert predicted.shared_bytes == 4 * sum(layout.shared(block)) <= target.local_bytes
    assert block.threads <= target.group_threads


def test_one_query_has_a_kernel_for_each_reduction() -> None:
    """A workgroup alone would walk through all keys."""
    q, k, v = (Tensor.empty(8, n, 64) for n in (1, 4096, 4096))
    with Context(PLAN_FOR=PLANNED):
        assert not any(map(is_one_pass, asts(q.scaled_dot_product_attention(k, v))))


def test_no_kernel_needs_the_weights_in_memory() -> None:
    ast = attention(8, 16384, 64)
    touched = {node.dtype.size for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL}  # type: ignore[attr-defined]
    assert touched == {8 * 16384 * 64}


def test_what_is_predicted() -> None:
    ast = attention(8, 1024, 64)
    predicted = prediction_of(ast, cuda_target("sm_90"), [])
    assert predicted is not None
    assert predicted.bound == "arithmetic"
    assert 0.2 < predicted.share < 1
    half = prediction_of(attention(8, 1024, 64, is_causal=True), cuda_target("sm_90"), [])
    assert half is not None
    assert 0.5 < half.seconds / predicted.seconds < 0.8


def test_a_target_without_room_has_a_kernel_for_each_reduction() -> None:
    spec = compile_kernel(attention(2, 100, 64), CUDARenderer(cuda_target("sm_90")))
    assert sum(u.op is Ops.BARRIER for u in spec.uops) == 5
    small = CUDARenderer(replace(cuda_target("sm_90"), local_bytes=512))
    assert not any(u.op is Ops.BARRIER for u in compile_kernel(attention(2, 100, 64), small, []).uops)


# *** what the programs compute


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    repeats = q.shape[0] // k.shape[0]
    k, v = k.repeat(repeats, 0), v.repeat(repeats, 0)
    x = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    x = x if mask is None else np.where(mask, x, -np.inf)
    e = np.exp(x - np.maximum(x.max(-1, keepdims=True), -1e30))
    result: np.ndarray = e / np.maximum(e.sum(-1, keepdims=True), 1e-30) @ v
    return result


def places(rows: int, keys: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(rows)[:, None], np.arange(keys)


def window(x: Tensor) -> Tensor:
    i, j = Tensor.arange(x.shape[-2]).reshape(-1, 1), Tensor.arange(x.shape[-1])
    i, j = i.to(x.device), j.to(x.device)
    return ((j <= i) & (i < j + 20)).where(x, -math.inf)


#: name → heads of queries and of keys, rows, keys, depth, columns, dtype, and what hides keys.
CASES = {
    "one": (2, 2, 1, 1, 8, 8, "float32", ""),
    "seven": (2, 2, 7, 7, 7, 5, "float32", "causal"),
    "other-sizes": (2, 2, 33, 90, 12, 20, "float32", ""),
    "heads": (6, 2, 45, 45, 16, 16, "float32", "causal"),
    "window": (1, 1, 100, 100, 16, 16, "float32", "window"),
    "mask": (2, 2, 40, 70, 16, 24, "float32", "mask"),
    "halves": (2, 2, 50, 50, 24, 24, "float16", "causal"),
    "hundred": (2, 2, 100, 100, 64, 64, "float32", "causal"),
    "thousand": (2, 2, 1000, 1000, 32, 32, "float32", "causal"),
    "thousand-halves": (1, 1, 1000, 1000, 64, 64, "float16", ""),
    "wide": (2, 1, 60, 100, 128, 128, "float32", "causal"),
    "wide-halves": (2, 1, 60, 100, 128, 128, "float16", "mask"),
}


def drawn(device: str, *shape: int, dtype: str) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(dtype), device=device).realize()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", slow_but_for(CASES, "seven"))
def test_attention_is_computed(name: str, device: str) -> None:
    heads, shared, rows, keys, depth, columns, dtype, hidden = CASES[name]
    q = drawn(device, heads, rows, depth, dtype=dtype)
    k, v = (drawn(device, shared, keys, n, dtype=dtype) for n in (depth, columns))
    i, j = places(rows, keys)
    mask = {
        "": None, "causal": j <= i, "window": (j <= i) & (i < j + 20), "mask": RNG.random((rows, keys)) > 0.5,
    }[hidden]  # fmt: skip
    with Context(PLAN_FOR=PLANNED):
        if hidden == "window":
            value = window(q @ k.transpose(1, 2) * depth**-0.5).softmax() @ v
        elif hidden == "mask":
            assert mask is not None
            mask[3] = False
            value = q.scaled_dot_product_attention(k, v, Tensor(mask, device=device), enable_gqa=True)
        else:
            value = q.scaled_dot_product_attention(k, v, is_causal=hidden == "causal", enable_gqa=True)
        assert is_one_pass(asts(value)[-1]) or rows == 1
        got = value.numpy()
    error = 2e-3 if dtype == "float16" else 2e-6
    np.testing.assert_allclose(got, reference(q.numpy(), k.numpy(), v.numpy(), mask), atol=error)


#: How q, k and v of 2 x 40 x 16, 2 x 60 x 16 and 2 x 60 x 24 are made of what lies in memory.
LAYOUTS: dict[str, tuple[list[tuple[int, ...]], Any]] = {
    "keys-turned": ([(2, 40, 16), (2, 16, 60), (2, 60, 24)], lambda q, k, v: (q, k.transpose(1, 2), v)),
    "heads-beside": ([(40, 2, 16), (60, 2, 16), (60, 2, 24)], lambda *a: [x.transpose(0, 1) for x in a]),
    "parts": ([(2, 60, 60)], lambda x: (x[:, :40, 3:19], x[:, :, 20:36], x[:, :, 36:])),
}


@pytest.mark.slow
@needs("cl")
@pytest.mark.parametrize("name", LAYOUTS)
def test_operands_as_they_lie_in_memory(name: str) -> None:
    shapes, made = LAYOUTS[name]
    q, k, v = made(*[drawn("CL", *shape, dtype="float32") for shape in shapes])
    with Context(PLAN_FOR=PLANNED):
        value = q.scaled_dot_product_attention(k, v)
        assert is_one_pass(asts(value)[-1])
        got = value.numpy()
    np.testing.assert_allclose(got, reference(q.numpy(), k.numpy(), v.numpy()), atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_computed_in_one_pass(device: str) -> None:
    """The result with its statistics, and three gradients, of which none stores the scores."""
    arrays = [RNG.standard_normal((2, 90, 16)).astype(np.float32) for _ in range(4)]
    found = []
    for where, planned in ((device, PLANNED), ("CPU", "")):
        q, k, v, arriving = (Tensor(a, device=where).realize() for a in arrays)
        with Context(PLAN_FOR=planned):
            value = q.scaled_dot_product_attention(k, v, is_causal=True)
            gradients = value.gradient(q, k, v, gradient=arriving)
            kernels = [item.ast for item in value.schedule(*gradients) if item.ast.op is Ops.SINK]
            found.append([each.numpy() for each in (value, *gradients)])
        assert where == "CPU" or sum(map(is_one_pass, kernels)) == 4
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-5)

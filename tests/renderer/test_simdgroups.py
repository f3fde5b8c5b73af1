"""TC on Metal: products of matrices by SIMD-groups, as text and executed on this CPU (gpu/simdgroup.h)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps, apply_opts
from lazygrad.device import Buffer, Device
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import MetalRenderer
from lazygrad.renderer.cstyle.dialects import metal_target
from lazygrad.runtime import metal as runtime
from lazygrad.target import SIMDGROUPS
from tests.codegen.kernels import GRID, equal, random_contents, run
from tests.codegen.test_opt import matmul
from tests.helpers import needs
from tests.runtime import emulated_metal
from tests.runtime.emulated_metal import GPU

half, single = dtypes.float16, dtypes.float32
TC, UPCAST, LOCAL, UNROLL, STAGE, PADTO = (
    OptOps.TC,
    OptOps.UPCAST,
    OptOps.LOCAL,
    OptOps.UNROLL,
    OptOps.STAGE,
    OptOps.PADTO,
)
ONE = [Opt(TC, 0, 8)]
TILED = [*ONE, Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 2), Opt(LOCAL, 0, 2), Opt(LOCAL, 1, 2), Opt(UNROLL, 0, 2)]
COPIED = [*TILED, Opt(STAGE, 2, 1), Opt(STAGE, 2, 2)]


@pytest.fixture
def gpu() -> Iterator[GPU]:
    with emulated_metal.emulated() as found:
        yield found[0]


@pytest.mark.parametrize("dtype", [half, single], ids=["half", "float"])
def test_a_product_as_text(dtype: Any, golden: Any) -> None:
    assert golden(compile_kernel(matmul(32, 64, 16, dtype), MetalRenderer(), ONE).src)


@needs("g++")
@pytest.mark.parametrize(
    ("sizes", "dtype", "opts"),
    [
        pytest.param((32, 24, 16), half, ONE, id="half"),
        pytest.param((32, 24, 16), single, ONE, id="float"),
        pytest.param((64, 32, 32), half, COPIED, id="copies of half", marks=pytest.mark.slow),
        pytest.param((64, 32, 32), single, COPIED, id="copies of float"),
        pytest.param(
            (20, 20, 10), half, [Opt(PADTO, 0, 32), Opt(PADTO, 1, 16), Opt(PADTO, 2, 16), *ONE], id="a border"
        ),
    ],
)
def test_products_of_simdgroups(sizes: Any, dtype: Any, opts: list[Opt], gpu: GPU) -> None:
    rows, steps, columns = sizes
    device = Device["METAL"]
    spec = compile_kernel(matmul(rows, steps, columns, dtype), device.renderer, opts)
    assert any(u.op is Ops.WMMA for u in spec.uops)
    rng, kind = np.random.default_rng(0), np.float16 if dtype is half else np.float32
    a, b = rng.standard_normal((rows, steps)).astype(kind), rng.standard_normal((steps, columns)).astype(kind)
    out = Buffer("METAL", rows * columns, single).allocate()
    given = [out, *(Buffer("METAL", x.size, dtype).allocate().copyin(x.reshape(-1)) for x in (a, b))]
    device.load(spec, device.compile(spec))(tuple(buffer._buf for buffer in given))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(out.numpy().reshape(rows, columns), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [half, single, dtypes.bfloat16], ids=["half", "float", "bfloat16"])
def test_the_interpreter_computes_them_too(dtype: Any) -> None:
    ast = matmul(32, 48, 16, dtype)
    contents = random_contents(ast, 3, -8, 8)
    found = run(ast, replace(GRID, tensor_cores=SIMDGROUPS), contents, opts=ONE)
    assert all(equal(a, b) for a, b in zip(found, evaluate(ast, contents), strict=True))


def test_the_matrices_take_local_memory() -> None:
    small = replace(metal_target(), local_bytes=4 * 384)
    assert apply_opts(lower(matmul(64, 64, 32, half)), TILED, small)
    with pytest.raises(
        KernelOptError, match="matrices would take 1536 bytes of local memory; METAL has 1535"
    ):
        apply_opts(lower(matmul(64, 64, 32, half)), TILED, replace(small, local_bytes=4 * 384 - 1))


def test_gpus_without_them(gpu: GPU) -> None:
    target = Device["METAL"].target
    assert (target.tensor_cores, target.shuffles) == (SIMDGROUPS, 32)
    gpu.family = 2002  # a Mac's, of another maker
    connection = runtime.Connection("METAL", sys.modules["Metal"], sys.modules["objc"], gpu)
    found = runtime.device_target(connection)
    assert (found.tensor_cores, found.shuffles) == ((), 0)
    with pytest.raises(KernelOptError, match="METAL has no instruction for sums of products"):
        apply_opts(lower(matmul(32, 64, 16, half)), ONE, found)


@pytest.mark.choice
def test_what_is_predicted_of_a_gpu_whose_matrices_have_no_known_speed() -> None:
    """They are taken for ordinary products."""
    a = Tensor.empty(64, 64, dtype=half)
    (kernel,) = (a @ a).kernels(target="metal")
    prediction = kernel.with_opts(ONE).prediction
    assert prediction is not None
    assert not prediction.known
    assert 3e-6 < prediction.seconds < 1e-3

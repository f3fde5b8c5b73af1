"""What an op becomes on a target, in operations, and that kernels stay as small as the target asks."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import stages
from lazygrad.codegen.price import WORST, prices_for
from lazygrad.device import Device
from lazygrad.dtype import DType, dtypes
from lazygrad.inspection.targets import find_target
from lazygrad.ir.ops import ELEMENTWISE, OPS, Ops
from lazygrad.ir.uop import UOp


def node(op: Ops, dtype: DType = dtypes.float32) -> UOp:
    inputs = [UOp(Ops.DEFINE_VAR, dtype, (), (f"x{n}", 0, 1)) for n in range(OPS[op].arity or 0)]
    return UOp(op, dtype, tuple(inputs))


def price(target: str, op: Ops, dtype: DType = dtypes.float32) -> int:
    return prices_for(find_target(target).renderer)(node(op, dtype))


def test_a_function_costs_what_it_is_decomposed_into():
    assert price("llvm", Ops.ADD) == 1
    assert 15 < price("llvm", Ops.EXP2) < 60 < price("llvm", Ops.SIN) < 250
    assert price("python", Ops.SIN) == OPS[Ops.SIN].cost


def test_a_sum_of_halves_costs_its_rounding():
    assert price("llvm:x86-64-v3", Ops.ADD, dtypes.float16) == 3
    assert price("python", Ops.ADD, dtypes.float16) == 1
    assert 10 < price("llvm:x86-64", Ops.ADD, dtypes.float16) < 40


@pytest.mark.parametrize("target", ["llvm", "llvm:x86-64", "cl", "cuda", "metal"])
@pytest.mark.parametrize(
    "dtype", [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64]
)
def test_no_price_passes_the_worst(target, dtype):
    prices = prices_for(find_target(target).renderer)
    for op in (Ops.ADD, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.IDIV, Ops.MOD, Ops.EXP, Ops.LOG, Ops.SIN, Ops.POW):
        if dtypes.is_float(dtype) or op not in (Ops.FDIV, Ops.EXP, Ops.LOG, Ops.SIN, Ops.POW):
            if dtypes.is_int(dtype) or op not in (Ops.IDIV, Ops.MOD):
                assert 1 <= prices(node(op, dtype)) <= WORST * OPS[op].cost


@pytest.mark.choice
def test_kernels_of_many_sines_stay_below_the_targets_operations():
    x = Tensor([0.5]).realize()
    for _ in range(40):
        x = x.sin() + 0.1
    renderer = Device["CPU"].renderer
    assert renderer is not None
    kernels = x.schedule()
    assert 3 <= len(kernels) <= 6
    for item in kernels:
        forms = dict(stages(item.ast, renderer))
        operations = sum(u.op in ELEMENTWISE for u in forms["form multiply-add"].toposort())
        assert operations <= renderer.target.max_ops


@pytest.mark.parametrize(
    "made", [lambda x: x != 2.0, lambda x: -x, lambda x: x.cast("float32"), lambda x: x.exp()]
)
def test_a_type_that_the_target_lacks_is_named(made):
    [kernel] = made(Tensor([0.5], dtype=dtypes.float64).realize()).kernels(target="metal")
    with pytest.raises(NotImplementedError, match=r"float64 on a device that has none .*cast to float32"):
        kernel.source

"""What an op of a constant leaves as it is, in every integer type, for every value."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.expressions.constants import unchanged
from lazygrad.dtype import ALL_DTYPES, dtypes
from lazygrad.ir.ops import ELEMENTWISE, Ops, execute
from lazygrad.ir.uop import UOp

INTEGERS = [d for d in ALL_DTYPES if dtypes.is_int(d)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_what_is_dropped_changes_no_value(dtype):
    values = {dtypes.min(dtype), dtypes.min(dtype) and -1, 0, 1, 5, dtypes.max(dtype)}
    x = UOp(Ops.DEFINE_VAR, dtype, (), ("x", dtypes.min(dtype), dtypes.max(dtype)))
    dropped = 0
    for op in sorted(ELEMENTWISE, key=str):
        for number in sorted(values):
            for src in ((x, UOp.const(dtype, number)), (UOp.const(dtype, number), x)):
                if unchanged(op, dtype, src) is None:
                    continue
                dropped += 1
                for value in values:
                    given = [value if s is x else number for s in src]
                    assert execute(op, dtype, tuple(given), dtype) == value, (op, given)
    assert dropped >= 8


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL])
def test_floats_keep_what_a_zero_does_to_signs(op):
    x = UOp(Ops.DEFINE_VAR, dtypes.float32, (), ("x", 0.0, 1.0))
    assert unchanged(op, dtypes.float32, (x, UOp.const(dtypes.float32, 0.0))) is None


@pytest.mark.choice
@pytest.mark.parametrize("target", ["cuda:sm_90", "metal", "cl", "c"])
def test_texts_add_no_zero(target):
    """The first of four lanes is `x`, and not `x + 0`."""
    tensor = Tensor.arange(64).idiv(7).mod(3).cast("uint8").contiguous()
    (kernel,) = tensor.kernels(target=target)
    body = kernel.source[kernel.source.index("{") :].replace("data0+0", "data0")
    assert "+0)" not in body
    assert "*1)" not in body

"""On a grid each product of matrices has a kernel, and reads 16-bit floats as they are."""

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.config import Context
from lazygrad.ir.ops import Ops
from tests.helpers import needs


def memory(*shape: int, dtype: str = "float") -> Tensor:
    return Tensor.empty(*shape, dtype=dtype).realize()


def kernels_of(value: Tensor, plan_for: str = "cuda:sm_90") -> int:
    with Context(PLAN_FOR=plan_for):
        return len(value.schedule())


def read_twice() -> Tensor:
    x, a, b = memory(64, 64).requires_grad_(), memory(64, 64), memory(64, 64)
    y, z = x @ a, x @ b
    (y * memory(64, 64) + z * memory(64, 64)).sum().backward()
    return x.grad


@pytest.mark.choice
def test_the_gradient_of_what_is_read_twice_is_two_products():
    with Context(PLAN_FOR="cuda:sm_90"):
        items = read_twice().schedule()
    products = [sum(n.op is Ops.REDUCE_AXIS for n in item.ast.toposort()) for item in items]
    assert [count for count in products if count] == [1, 1]
    assert len(items[-1].bufs) == 1 + 3  # what is added to, and two matrices


@pytest.mark.choice
def test_short_sums_stay():
    a, b, c, d = (memory(8, 16) for _ in range(4))
    value = (a.unsqueeze(1) * b.unsqueeze(0) + c.unsqueeze(1) * d.unsqueeze(0)).sum(2)
    assert kernels_of(value) == 1


@pytest.mark.choice
def test_16_bit_floats_are_stored_as_they_are():
    x, a, b = (memory(128, 128, dtype="bfloat16") for _ in range(3))
    with Context(PLAN_FOR="cuda:sm_90"):
        items = ((x @ a).relu() @ b).schedule()
    assert [item.outputs[0].dtype.name for item in items] == ["bfloat16", "bfloat16"]


@pytest.mark.parametrize("device", [pytest.param("CL", marks=needs("cl"))])
def test_the_numbers_are_those_of_numpy(device):
    rng = np.random.default_rng(1)
    x, a, b = (rng.standard_normal((40, 40), dtype=np.float32) for _ in range(3))
    with Context(DEV=device):
        leaf = Tensor(x).requires_grad_()
        y, z = leaf @ Tensor(a), leaf @ Tensor(b)
        (y * z).sum().backward()
        found = leaf.grad.numpy()
    np.testing.assert_allclose(found, (x @ b) @ a.T + (x @ a) @ b.T, rtol=1e-4, atol=1e-3)

"""`@kernel` functions as the steps that they are, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Device, Tensor, TinyJit, kernel, vmap
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from tests.tensor.own_kernels import (
    DEVICES,
    cholesky,
    edit_distance,
    normal,
    rng,
    saxpy,
    steps,
    word,
)


@pytest.mark.parametrize("device", DEVICES)
def test_loops_that_carry_what_they_stored(device: str) -> None:
    m = normal(3, 6, 6)
    positive = m @ m.transpose(0, 2, 1) + 6 * np.eye(6, dtype=np.float32)
    with Context(CHECK=1):
        found = cholesky(Tensor(positive, device=device))
        assert found.uop.op is Ops.PROGRAM
        np.testing.assert_allclose(found.numpy(), np.linalg.cholesky(positive), atol=1e-4)
        assert edit_distance(word("kitten", device), word("sitting", device)).item() == 3


def test_a_gradient_of_ones_own() -> None:
    own = steps(saxpy)

    @own.gradient
    def slopes(grad: Tensor, out: Tensor, a: float, x: Tensor, y: Tensor) -> Any:
        return None, grad * a, grad

    x = Tensor([1.0, 2.0], requires_grad=True)
    (own(3.0, x, x) ** 2).sum().backward()
    assert x.grad.tolist() == [32.0, 64.0]


def test_without_a_gradient_it_is_said_how_to_give_one() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = steps(saxpy)(2.0, x, x)
    with pytest.raises(NotImplementedError, match=r"kernel saxpy has no gradient.*@saxpy.gradient"):
        y.sum().backward()


@kernel
def halves(x: Any) -> Any:
    double, number = kernel.zeros_like(x), kernel.zeros(x.shape, dtype="int")
    for i in kernel.range(len(x)):
        double[i] = 2 * x[i]
        number[i] = i
    return double, number


def test_several_results_are_one_kernel() -> None:
    x = Tensor([1.0, 2.0]).realize()
    GlobalCounters.reset()
    double, number = steps(halves)(x)
    assert double.tolist() == [2.0, 4.0]
    assert number.tolist() == [0, 1]
    assert GlobalCounters.kernel_count == 1
    GlobalCounters.reset()
    assert steps(halves)(x * 3)[1].tolist() == [0, 1]  # the other is stored, and let go
    assert GlobalCounters.kernel_count == 2


@kernel
def reversed_in_place(x: Any) -> Any:
    out = kernel.copy(x)
    n = len(x)
    for i in kernel.range(n // 2):
        a, b = out[i], out[n - 1 - i]
        out[i] = b
        out[n - 1 - i] = a
    return out


def test_an_output_begins_with_an_input_or_zeros() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    assert reversed_in_place(x * 2).tolist() == [10.0, 8.0, 6.0, 4.0, 2.0]
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]

    @kernel
    def sparse(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            with kernel.when(x[i] > 2):
                out[i] = 1
        return out

    assert sparse(x).tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_jit_replays_it() -> None:
    calls = TinyJit(lambda x: (steps(saxpy)(2.0, x, x + 1) * 2).realize())
    for k in range(4):
        assert calls(Tensor([float(k), 1.0]).realize()).tolist() == [6.0 * k + 2, 8.0]


def test_vmap_is_one_more_axis_of_the_grid() -> None:
    m = normal(4, 5, 5)
    positive = m @ m.transpose(0, 2, 1) + 5 * np.eye(5, dtype=np.float32)
    found = vmap(lambda a: cholesky(a.reshape(1, 5, 5)).reshape(5, 5))(Tensor(positive))
    np.testing.assert_allclose(found.numpy(), np.linalg.cholesky(positive), atol=1e-4)


def test_it_is_written_over_memory() -> None:
    z = Tensor.zeros(3).contiguous().realize()
    z.assign(steps(saxpy)(2.0, z + 1, z))
    z.assign(steps(saxpy)(2.0, z, z))
    assert z.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "double", "uchar", "int", "long", "bool"])
def test_every_kind_of_number(dtype: str, device: str) -> None:
    @kernel(as_written=True)
    def add(x: Any, y: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            out[i] = x[i] | y[i] if dtype == "bool" else x[i] + y[i]
        return out

    x = Tensor([0, 1, 1, 0], dtype=dtype, device=device)
    expected = [0, 1, 1, 0] if dtype == "bool" else [0, 2, 2, 0]
    assert add(x, x).numpy().astype(int).tolist() == expected


@pytest.mark.parametrize("device", DEVICES)
def test_arithmetic_is_pythons(device: str) -> None:
    @kernel(as_written=True)
    def all_of_it(x: Any, y: Any) -> Any:
        out = kernel.zeros(12, len(x))
        for i in kernel.grid(len(x)):
            a, b = x[i], y[i]
            for n, v in enumerate(
                (
                    a + b,
                    a - b,
                    a * b,
                    a / b,
                    a // b,
                    a % b,
                    a**2,
                    abs(a),
                    -a,
                    kernel.where(a < b, a, b),
                    a.floor(),
                    kernel.exp(a),
                )
            ):
                out[n, i] = v
        return out

    a, b = np.float32([1.5, -2.5, 3.0]), np.float32([2.0, 2.0, -2.0])
    expected = [a + b, a - b, a * b, a / b, a // b, a % b, a**2, abs(a), -a, np.minimum(a, b), np.floor(a)]
    found = all_of_it(Tensor(a, device=device), Tensor(b, device=device)).numpy()
    np.testing.assert_allclose(found, [*expected, np.exp(a)], rtol=1e-5)

    @kernel(as_written=True)
    def whole(x: Any, y: Any) -> Any:
        out = kernel.zeros(4, len(x), dtype="int")
        for i in kernel.grid(len(x)):
            for n, v in enumerate((x[i] // y[i], x[i] % y[i], x[i] << 1, i * 10 + x[i])):
                out[n, i] = v
        return out

    p, q = np.int32([7, -7, 8]), np.int32([2, 2, -3])
    found = whole(Tensor(p, device=device), Tensor(q, device=device)).numpy()
    assert found.tolist() == [(p // q).tolist(), (p % q).tolist(), (p * 2).tolist(), [7, 3, 28]]


def test_loops_count_as_pythons_do() -> None:
    for args in ((5,), (1, 6), (0, 7, 2), (6, 0, -1), (7, -1, -3), (3, 3), (5, 2)):

        @kernel(as_written=True)
        def walked(x: Any, args: Any = args) -> Any:
            out = kernel.zeros(16, dtype="int")
            n = kernel.local(0)
            for i in kernel.range(*args):
                out[n] = i
                n += 1
            out[15] = n
            return out

        expected = list(range(*args))
        found = walked(Tensor([1.0])).tolist()
        assert found[: len(expected)] == expected
        assert found[15] == len(expected)


def test_outside_of_an_array_there_are_zeros_and_nothing_is_stored() -> None:
    @kernel(as_written=True)
    def moved(x: Any, by: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.range(len(x)):
            out[i + by[0]] = x[i + by[1]]
        return out

    x = Tensor([1.0, 2.0, 3.0])
    for stored, loaded, expected in (
        (0, 1, [2.0, 3.0, 0.0]),
        (1, 0, [0.0, 1.0, 2.0]),
        (-1, 0, [2.0, 3.0, 0.0]),
        (10**9, 0, [0.0] * 3),
        (0, -(10**9), [0.0] * 3),
    ):
        assert moved(x, Tensor([stored, loaded])).tolist() == expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["long", "ulong", "int", "uint"])
def test_the_greatest_numbers_as_places(dtype: str, device: str) -> None:
    @kernel(as_written=True)
    def pick(x: Any, at: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            out[i] = x[at[i] + at[i] + i]
            out[at[i] * 3] = x[i]
        return out

    info = np.iinfo({"long": "int64", "ulong": "uint64", "int": "int32", "uint": "uint32"}[dtype])
    at = Tensor([info.max, info.min or info.max - 1, info.max // 2 + 1], dtype=dtype, device=device)
    x = Tensor([1.0, 2.0, 3.0], device=device)
    assert all(value in (0.0, 1.0, 2.0, 3.0) for value in pick(x, at).tolist())


def test_a_long_grid_is_shared_by_the_cores() -> None:
    @kernel(as_written=True)
    def shares(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(x.shape[0]):
            total = kernel.sum(x[i, k] for k in kernel.range(x.shape[1]))
            for j in kernel.range(x.shape[1]):
                out[i, j] = x[i, j] / total
        return out

    x = rng.random((600, 1000), dtype=np.float32)
    [made] = shares(Tensor(x).realize()).kernels()
    assert [opt.op.name for opt in made.applied_opts] == ["THREAD"] * (Device["CPU"].target.threads > 1)
    with Context(THREADS=4):
        np.testing.assert_allclose(shares(Tensor(x)).numpy(), x / x.sum(1, keepdims=True), rtol=1e-4)


def test_no_bound_is_asked_that_loops_prove() -> None:
    m = np.eye(4, dtype=np.float32).reshape(1, 4, 4)
    source = cholesky(Tensor(m).realize()).kernels(target="c")[-1].source
    assert "?" not in source
    assert "if (" not in source

"""What a `@kernel` function cannot do, and how it is said."""

from __future__ import annotations

from typing import Any

import pytest

from lazygrad import KernelError, Tensor, kernel
from tests.tensor.own_kernels import (
    refused,
    saxpy,
)


def test_pythons_own_range_takes_no_number_of_the_kernel() -> None:
    def uses_range(x: Any) -> Any:
        for i in kernel.grid(2):
            for _ in range(i):
                pass
        return kernel.zeros_like(x)

    assert "kernel.range" in refused(uses_range)


def test_values_belong_to_their_loop() -> None:
    def late(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.range(2):
            v = x[i]
        out[0] = v + 1
        return out

    assert "kernel.local" in refused(late)


def test_a_grid_stands_alone() -> None:
    def two(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            out[i] = 1
        for i in kernel.grid(2):
            out[i] = 2
        return out

    assert "has a grid already" in refused(two)

    def inside(x: Any) -> Any:
        for _ in kernel.range(2):
            for _ in kernel.grid(2):
                pass
        return kernel.zeros_like(x)

    assert "outside of all loops" in refused(inside)

    def shared(x: Any) -> Any:
        out = kernel.zeros_like(x)
        total = kernel.local(0.0)
        for i in kernel.grid(2):
            total += x[i]
        out[0] = total
        return out

    assert "make it inside" in refused(shared)

    def outside(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            out[i] = x[i]
        out[0] = 5
        return out

    assert "stores into output 0 outside of its grid" in refused(outside)


def test_arguments_and_results() -> None:
    def writes_its_input(x: Any) -> Any:
        x[0] = 1
        return x

    assert "x is an input" in refused(writes_its_input)

    def returns_a_number(x: Any) -> Any:
        return 3

    assert "returns what kernel.zeros" in refused(returns_a_number)

    def too_many(x: Any) -> Any:
        return kernel.zeros_like(x, x[0, 1])

    assert "takes 1 indices, not 2" in refused(too_many)

    def outside(x: Any) -> Any:
        out = kernel.zeros_like(x)
        out[2] = 1
        return out

    assert "index 2 is out of range for axis 0 of output 0 with size 2" in refused(outside)

    def always_outside(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.range(2):
            out[i] = x[i + 2]
        return out

    assert "always outside" in refused(always_outside)

    def a_tensor(x: Any) -> Any:
        out = kernel.zeros_like(x)
        out[0] = Tensor([1.0])
        return out

    assert "not with Tensor" in refused(a_tensor)

    def another_kernel(x: Any) -> Any:
        return saxpy(2.0, Tensor([1.0]), Tensor([1.0]))

    assert "is called inside of kernel" in refused(another_kernel)
    with pytest.raises(KernelError, match="belong inside a function under @kernel"):
        list(kernel.range(3))
    with pytest.raises(TypeError, match="missing a required argument"):
        saxpy(2.0)
    assert refused(lambda x: kernel.zeros(2.5)).startswith("sizes must be whole numbers")


def test_an_error_inside_leaves_nothing_behind() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        kernel(fails)(Tensor([1.0]))
    assert saxpy(1.0, Tensor([1.0]), Tensor([1.0])).tolist() == [2.0]

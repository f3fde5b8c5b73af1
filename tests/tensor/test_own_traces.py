"""What a `@kernel` function was traced to is kept, and never stale."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from lazygrad import Tensor, dtypes, kernel
from tests.tensor.own_kernels import matmul, steps

runs: list[int] = []
FACTOR = 2.0
TABLE = [1.0, 2.0]


def seen() -> None:
    """Count how often a function is traced: `runs` is a closure of no kernel."""
    runs.append(1)


def traced(call: Any) -> int:
    before = len(runs)
    call()
    return len(runs) - before


def counted(function: Any, as_written: bool = False) -> Any:
    """A kernel that counts how often its function runs, out of its own sight."""
    own = kernel(function, as_written=as_written)
    record = own._recorded

    def recorded(*args: Any) -> Any:
        seen()
        return record(*args)

    own._recorded = recorded
    return own


def scaled(x: Any, a: float = 3.0) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = a * x[i]
    return out


@pytest.mark.parametrize("as_written", [False, True])
def test_a_function_is_traced_once_for_each_shape_dtype_and_number(as_written: bool) -> None:
    own = counted(scaled, as_written)
    x = Tensor([1.0, 2.0])
    assert traced(lambda: own(x)) == 1
    assert traced(lambda: own(x + 1)) == 0
    assert traced(lambda: own(x, 4.0)) == 1
    assert traced(lambda: own(x, a=4.0)) == 0
    assert traced(lambda: own(Tensor([1.0, 2.0, 3.0]))) == 1
    assert traced(lambda: own(Tensor([1, 2]))) == 1
    assert traced(lambda: own(x.to("PYTHON"))) == 1
    assert traced(lambda: own(Tensor([5.0, 6.0]))) == 0
    assert own(Tensor([5.0, 6.0])).tolist() == [15.0, 18.0]
    assert own(Tensor([5.0, 6.0]), 4.0).tolist() == [20.0, 24.0]


def test_numbers_that_are_equal_but_not_the_same() -> None:
    @kernel
    def filled(x: Any, a: Any) -> Any:
        out = kernel.full(len(x), a)
        for i in kernel.grid(len(x)):
            out[i] = a
        return out

    x = Tensor([1.0])
    assert filled(x, 1).dtype is dtypes.int32
    assert filled(x, 1.0).dtype is dtypes.float32
    assert filled(x, True).dtype is dtypes.bool
    assert math.copysign(1, filled(x, 0.0).item()) == 1
    assert math.copysign(1, filled(x, -0.0).item()) == -1


def test_closures_globals_defaults_and_called_functions_that_change(monkeypatch: Any) -> None:
    by = 1.0
    table = [1.0, 2.0]

    def helper(v: Any) -> Any:
        return v * FACTOR + by

    def uses(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            out[i] = helper(x[i]) + table[1] + math.pi * TABLE[0]
        return out

    own = counted(uses)
    x = Tensor([1.0])

    def expected() -> float:
        return pytest.approx(FACTOR + by + table[1] + math.pi * TABLE[0])

    def after(runs: int) -> None:
        assert traced(lambda: own(x)) == runs
        assert own(x).item() == expected()

    after(1)
    after(0)
    by = 5.0
    after(1)
    table[1] = 7.0
    after(1)
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    after(1)
    TABLE[0] = 3.0
    after(1)
    after(0)
    TABLE[0] = 1.0
    after(0)  # it was traced so before, but for what changed since
    by = 1.0


def test_what_may_change_unseen_is_traced_at_each_call() -> None:
    class Settings:
        factor = 1.0

    settings = Settings()

    def uses(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            out[i] = x[i] * settings.factor
        return out

    own = counted(uses)
    x = Tensor([1.0])
    assert own(x).item() == 1.0
    settings.factor = 2.0
    assert own(x).item() == 2.0
    assert traced(lambda: own(x)) == 1


def test_the_default_dtype_is_part_of_it() -> None:
    @kernel
    def zeros(x: Any) -> Any:
        out = kernel.zeros(len(x))
        for i in kernel.grid(len(x)):
            out[i] = i
        return out

    x = Tensor([1, 2])
    assert zeros(x).dtype is dtypes.float32
    kept = dtypes.default_float
    try:
        dtypes.default_float = dtypes.float64
        assert zeros(x).dtype is dtypes.float64
    finally:
        dtypes.default_float = kept


def test_a_failed_trace_is_not_kept() -> None:
    limit = [1]

    @kernel
    def fails(x: Any) -> Any:
        if len(x) > limit[0]:
            raise ValueError("too long")
        return kernel.zeros_like(x)

    for _ in range(2):
        with pytest.raises(ValueError, match="too long"):
            fails(Tensor([1.0, 2.0]))
    limit[0] = 2
    assert fails(Tensor([1.0, 2.0])).tolist() == [0.0, 0.0]


def test_a_kept_trace_holds_no_tensor_and_keeps_gradients() -> None:
    own = counted(scaled)
    x = Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        own(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    y = Tensor([4.0, 5.0])
    assert own(y + 1).tolist() == [15.0, 18.0]
    assert own(own(y)).tolist() == [36.0, 45.0]


def test_a_second_call_takes_little() -> None:
    a = Tensor.ones(4, 4).contiguous().realize()
    for own in (matmul, steps(matmul)):
        own(a, a)
        calls: list[str] = []
        sys.setprofile(lambda frame, event, argument, calls=calls: calls.append(event))  # type: ignore[misc]
        own(a, a)
        sys.setprofile(None)
        assert calls.count("call") < 200, "a trace takes a thousand calls of Python functions and more"


def test_a_function_that_knows_itself_is_called() -> None:
    assert with_its_factor(Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    times_its_factor.factor = 4.0  # type: ignore[attr-defined]
    assert with_its_factor(Tensor([1.0, 2.0])).tolist() == [4.0, 8.0]
    times_its_factor.factor = 2.0  # type: ignore[attr-defined]


def times_its_factor(value: Any) -> Any:
    return value * times_its_factor.factor  # type: ignore[attr-defined]


times_its_factor.factor = 2.0  # type: ignore[attr-defined]


@kernel
def with_its_factor(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.range(len(x)):
        out[i] = times_its_factor(x[i])
    return out

"""Python's `if`, `while`, `break`, `continue`, `return`, `and`, `or`, `not` in `@kernel` functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, kernel
from lazygrad.ir.ops import Ops
from tests.tensor.own_kernels import DEVICES, refused, rng


def steep(v: Any) -> Any:
    if v > 2:
        return v * 10
    elif v < 0:
        return 0.0
    return v


def branches(out: Any, x: Any, y: Any) -> None:
    for i in kernel.grid(len(x)):
        if x[i] > 1 and not x[i] > 3:
            out[i] = 1
        elif 3 < x[i] < 5 or x[i] == -7:
            out[i] = steep(x[i])
        else:
            out[i] = -1 if x[i] < 0 else -2


def both_sides(out: Any, x: Any, y: Any) -> None:
    for i in kernel.grid(len(x)):
        if x[i] > y[i]:
            most, least = x[i], y[i]
        else:
            most, least = y[i], x[i]
        out[i] = most * 2 - least


def halvings(out: Any, x: Any, y: Any) -> None:
    for i in kernel.grid(len(x)):
        v, n = x[i], 0
        while v > 1 and n < 100:
            v /= 2
            n += 1
        out[i] = n


def newton(out: Any, x: Any, y: Any) -> None:
    """Square roots, until a step changes little."""
    for i in kernel.grid(len(x)):
        a, root = abs(x[i]) + 1, 1.0
        while True:
            before = root
            root = (root + a / root) / 2
            if abs(root - before) <= 0.001 * root:
                break
        out[i] = root


def first_above(out: Any, x: Any, y: Any) -> None:
    for i in kernel.grid(len(x)):
        total = 0
        for j in kernel.range(len(y)):
            if y[j] == 3:
                continue
            total += y[j]
            if total > x[i]:
                out[i] = j
                break
        else:
            out[i] = 99


def early(out: Any, x: Any, y: Any) -> None:
    def found(v: Any) -> Any:
        for j in kernel.range(len(y)):
            if y[j] >= v:
                return j
        return -1

    for i in kernel.grid(len(x)):
        if x[i] < 0:
            continue
        out[i] = found(x[i])


def pythons_own_loops(out: Any, x: Any, y: Any) -> None:
    """Loops that Python writes out, left under conditions of the kernel."""
    for i in kernel.grid(len(x)):
        v = x[i]
        for step in range(6):
            if step % 2:
                continue
            if v > 20:
                break
            v = v * 2 + step
        n = 0
        while n < 3:
            n += 1
            v -= n
        out[i] = v


def changing_indices(out: Any, x: Any, y: Any) -> None:
    """A binary search."""
    for i in kernel.grid(len(x)):
        low, high = 0, len(y)
        while low < high:
            middle = (low + high) // 2
            if y[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


def swapped_in_a_loop(out: Any, x: Any, y: Any) -> None:
    for i in kernel.grid(len(x)):
        a, b = 0, 1
        for _ in kernel.range(10):
            a, b = b, a + b
        out[i] = a + x[i]


BODIES = (branches, both_sides, halvings, newton, first_above, early, pythons_own_loops)
BODIES += (changing_indices, swapped_in_a_loop)


class _Plain:
    """What the same text does in Python, on numpy's arrays."""

    def __enter__(self) -> None:
        self.kept = {name: vars(type(kernel)).get(name) for name in ("grid", "range")}
        type(kernel).grid = type(kernel).range = staticmethod(range)  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        for name, value in self.kept.items():
            if value is None:
                delattr(type(kernel), name)


def in_python(body: Any, x: Any, y: Any) -> list[float]:
    out = np.zeros(len(x))
    with _Plain():
        body(out, x.tolist(), y.tolist())
    return [float(v) for v in out]


def under_kernel(body: Any) -> Any:
    @kernel
    def own(x: Any, y: Any) -> Any:
        out = kernel.zeros(len(x))
        body(out, x, y)
        return out

    return own


X = np.float32([1, 2, 3, 4, -1, 100, 0, -7])
Y = np.float32([1, 2, 3, 4, 5, 7, 8, 9])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_same_text_gives_the_same_in_python(body: Any, device: str) -> None:
    with Context(CHECK=1):
        found = under_kernel(body)(Tensor(X, device=device), Tensor(Y, device=device))
        np.testing.assert_allclose(found.numpy(), in_python(body, X, Y), rtol=1e-4)


def test_a_branch_that_only_sets_variables_is_a_graph_with_a_gradient() -> None:
    @kernel
    def leaky(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            v = x[i]
            if v < 0:
                v *= 0.5
            total = 0
            for k in kernel.range(len(x)):
                total += x[k]
            out[i] = steep(v) + total
        return out

    x = Tensor([1.0, -2.0, 4.0], requires_grad=True)
    y = leaky(x)
    assert y.uop.op is not Ops.PROGRAM
    assert y.tolist() == [4.0, 3.0, 43.0]
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 3.0, 13.0]


def test_a_variable_is_as_wide_as_what_it_is_given() -> None:
    @kernel
    def grows(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            v = 0
            if x[i] > 1:
                v = 0.5
            found = False
            if x[i] > 2:
                found = 3
            out[i] = v + found
        return out

    assert grows(Tensor([1.0, 2.0, 3.0])).tolist() == [0.0, 0.5, 3.5]


def test_a_while_that_turns_often_and_one_that_never_turns() -> None:
    @kernel
    def counts(n: Any) -> Any:
        out = kernel.zeros(len(n), dtype="int")
        for i in kernel.grid(len(n)):
            k = 0
            while k < n[i]:
                k += 7
            out[i] = k
        return out

    n = rng.integers(-10, 100000, size=50).astype(np.int32)
    assert counts(Tensor(n)).tolist() == [max(0, -(-int(v) // 7) * 7) for v in n]


def test_a_loop_that_only_return_ends() -> None:
    def halvings_of(v: Any) -> Any:
        n = 0
        while True:
            if v <= 1:
                return n
            v /= 2
            n += 1

    @kernel
    def counted(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(len(x)):
            out[i] = halvings_of(x[i])
        return out

    assert counted(Tensor([1.0, 100.0, -5.0])).tolist() == [0.0, 7.0, 0.0]


def test_break_is_a_break_in_every_language() -> None:
    x = Tensor(X).realize()
    for target in ("c", "cl", "cuda", "metal", "python"):
        [*_, made] = under_kernel(first_above)(x, x).kernels(target=target)
        assert "break" in made.source
    [*_, made] = under_kernel(first_above)(x, x).kernels(target="llvm")
    assert "left0:" in made.source


# *** what cannot be


def test_the_grid_is_not_left() -> None:
    def leaves(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            if x[i] > 0:
                break
            out[i] = 1
        return out

    assert "points run in any order, so none can end the others; `continue` ends one point" in refused(leaves)

    def returns(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            if x[i] > 0:
                return out
            out[i] = 1
        return out

    assert "`continue` ends one point" in refused(returns)


def test_a_name_without_a_value_on_some_path() -> None:
    def one_side(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            if x[i] > 0:
                v = x[i]
            out[i] = v
        return out

    assert "is used after it has ended" in refused(one_side)

    def nothing(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            out[i] = half_of_it(x[i])
        return out

    assert "a function returns a value on some paths" in refused(nothing)

    def never(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            out[i] = w  # noqa: F821
            w = x[i]  # noqa: F841
        return out

    assert "w has no value here" in refused(never)


def half_of_it(v: Any) -> Any:  # noqa: RET503
    if v > 0:
        return v / 2


def test_a_branch_does_not_change_which_object_a_name_is() -> None:
    def chooses(x: Any, y: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            read = x
            if x[i] > 0:
                read = y
            out[i] = read[i]
        return out

    assert "not which object a name is" in refused(chooses, Tensor([1.0, 2.0]), Tensor([1.0, 2.0]))

    def raises(x: Any) -> Any:
        for i in kernel.grid(2):
            if x[i] > 0:
                raise ValueError("negative")
        return kernel.zeros_like(x)

    assert "cannot raise in the branch" in refused(raises)


def test_a_loop_with_a_barrier_is_not_left() -> None:
    def leaves(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for t in kernel.threads(2):
            for k in kernel.range(3):
                kernel.barrier()
                if x[k] > 0:
                    break
            out[t] = 1
        return out

    assert "which has a kernel.barrier()" in refused(leaves)


def test_where_the_source_is_not_there_it_is_said_what_to_write() -> None:
    text = """
def without_source(x):
    out = kernel.zeros_like(x)
    for i in kernel.grid(2):
        if x[i] > 0:
            out[i] = 1
    return out
"""
    scope: dict[str, Any] = {"kernel": kernel}
    exec(text, scope)
    assert "kernel.when" in refused(scope["without_source"])

"""`@kernel`: a Python function over indices, as a graph or as its steps, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Context, Device, KernelError, Tensor, TinyJit, kernel, vmap
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from tests.helpers import needs, require

DEVICES = [
    "CPU",
    "PYTHON",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]
rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def steps(own: Any) -> Any:
    """The same kernel, whose loops stay as they are."""
    return kernel(own.function, as_written=True)


@kernel
def saxpy(a: Any, x: Any, y: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = a * x[i] + y[i]
    return out


@kernel
def matmul(a: Any, b: Any) -> Any:
    out = kernel.zeros(a.shape[0], b.shape[1])
    for i, j in kernel.grid(*out.shape):
        out[i, j] = kernel.sum(a[i, k] * b[k, j] for k in kernel.range(a.shape[1]))
    return out


@kernel
def rmsnorm(x: Any, residual: Any, weight: Any, eps: float = 1e-5) -> Any:
    n, d = x.shape
    out = kernel.zeros_like(x)
    for i in kernel.grid(n):
        mean = kernel.sum((x[i, k] + residual[i, k]) ** 2 for k in kernel.range(d)) / d
        scale = kernel.rsqrt(mean + eps)
        for j in kernel.range(d):
            out[i, j] = (x[i, j] + residual[i, j]) * scale * weight[j]
    return out


@kernel
def stencil(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = x[i - 1] + 2 * x[i] + x[i + 1]
    return out


@kernel
def take(x: Any, ids: Any) -> Any:
    out = kernel.zeros(len(ids), x.shape[1])
    for i, j in kernel.grid(*out.shape):
        out[i, j] = x[ids[i], j]
    return out


@kernel
def sums_so_far(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = kernel.sum(x[k] for k in kernel.range(i + 1))
    return out


@kernel
def every_second_from_the_end(x: Any) -> Any:
    n = len(x)
    out = kernel.zeros(n // 2)
    for i in kernel.grid(n // 2):
        out[i] = x[n - 1 - 2 * i] * i
    return out


@kernel
def clipped(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        v = kernel.local(x[i])
        with kernel.when(v > 2):
            v.set(2.0)
        with kernel.otherwise():
            v *= 10
        out[i] = v
    return out


@kernel
def greatest(x: Any) -> Any:
    out = kernel.zeros(x.shape[0])
    for i in kernel.grid(x.shape[0]):
        best = kernel.local(float("-inf"))
        for k in kernel.range(x.shape[1]):
            best.set(kernel.maximum(best, x[i, k]))
        out[i] = best
    return out


@kernel
def cholesky(a: Any) -> Any:
    b, n, _ = a.shape
    L = kernel.zeros_like(a)
    for s in kernel.grid(b):
        for j in kernel.range(n):
            d = a[s, j, j] - kernel.sum(L[s, j, k] ** 2 for k in kernel.range(j))
            root = d.sqrt()
            L[s, j, j] = root
            for i in kernel.range(j + 1, n):
                t = kernel.sum(L[s, i, k] * L[s, j, k] for k in kernel.range(j))
                L[s, i, j] = (a[s, i, j] - t) / root
    return L


@kernel
def edit_distance(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    out = kernel.zeros((), dtype="int")
    row = kernel.array(m + 1, dtype="int")
    for j in kernel.range(m + 1):
        row[j] = j
    for i in kernel.range(n):
        corner = kernel.local(row[0])
        row[0] = i + 1
        for j in kernel.range(m):
            best = kernel.local(corner + kernel.where(a[i] == b[j], 0, 1))
            corner.set(row[j + 1])
            best.set(kernel.minimum(best, kernel.minimum(corner, row[j]) + 1))
            row[j + 1] = best
    out[()] = row[m]
    return out


def word(text: str, device: str = "CPU") -> Tensor:
    return Tensor(list(text.encode()), dtype="uint8", device=device)


X, Y, W = normal(4, 8), normal(4, 8), normal(8)
PURE: list[tuple[Any, tuple[Any, ...], Any]] = [
    (saxpy, (2.0, W, W), 3 * W),
    (matmul, (X, Y.T.copy()), X @ Y.T),
    (rmsnorm, (X, Y, W), (X + Y) / np.sqrt(((X + Y) ** 2).mean(-1, keepdims=True) + 1e-5) * W),
    (stencil, (np.float32([1, 2, 3]),), [4, 8, 8]),
    (take, (np.float32([[1, 2], [3, 4]]), np.int32([1, 0, 1, 5])), [[3, 4], [1, 2], [3, 4], [0, 0]]),
    (sums_so_far, (np.float32([1, 2, 3, 4]),), [1, 3, 6, 10]),
    (every_second_from_the_end, (np.float32([1, 2, 3, 4]),), [0, 2]),
    (clipped, (np.float32([1, 2, 3, 0.5]),), [10, 20, 2, 5]),
    (greatest, (X,), X.max(-1)),
]


def tensors(args: tuple[Any, ...], device: str) -> list[Any]:
    return [Tensor(a, device=device) if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("own", "args", "expected"), PURE, ids=lambda p: getattr(p, "name", ""))
def test_a_graph_and_its_steps_give_the_same(own: Any, args: Any, expected: Any, device: str) -> None:
    with Context(CHECK=1):
        graph, as_written = own(*tensors(args, device)), steps(own)(*tensors(args, device))
        assert graph.uop.op is not Ops.CUSTOM
        assert as_written.uop.op is Ops.CUSTOM
        np.testing.assert_allclose(graph.numpy(), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(as_written.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_loops_that_carry_what_they_stored(device: str) -> None:
    m = normal(3, 6, 6)
    positive = m @ m.transpose(0, 2, 1) + 6 * np.eye(6, dtype=np.float32)
    with Context(CHECK=1):
        found = cholesky(Tensor(positive, device=device))
        assert found.uop.op is Ops.CUSTOM
        np.testing.assert_allclose(found.numpy(), np.linalg.cholesky(positive), atol=1e-4)
        assert edit_distance(word("kitten", device), word("sitting", device)).item() == 3


def test_what_is_pure_is_one_kernel_with_its_neighbours_and_gets_opts() -> None:
    x, y = Tensor(X).realize(), Tensor(Y.T.copy()).realize()
    GlobalCounters.reset()
    (matmul(x + 1, y).relu() * 2).realize()
    assert GlobalCounters.kernel_count == 1
    [own] = matmul(x, y).kernels()
    assert [opt for opt in own.applied_opts if opt.op.name == "UPCAST"]
    weight = Tensor(W).realize()
    GlobalCounters.reset()
    (rmsnorm(x, x, weight) * 2).realize()
    assert GlobalCounters.kernel_count == 1


def test_a_kernel_is_rendered_for_every_target() -> None:
    x = Tensor([1.0, 2.0]).realize()
    for own in (saxpy, steps(saxpy)):
        for target in ("llvm", "c", "cl", "cuda", "metal", "python", "llvm:aarch64"):
            [made] = own(2.0, x, x).kernels(target=target)
            assert "2.0" in made.source or "0x4000" in made.source


@needs("torch")
def test_gradients_of_a_graph_beside_pytorch() -> None:
    torch = require("torch")
    a, b, c = (torch.tensor(v, requires_grad=True) for v in (X, Y, W))
    h = a + b
    (h * torch.rsqrt((h**2).mean(-1, keepdim=True) + 1e-5) * c).pow(3).sum().backward()
    x, y, w = (Tensor(v, requires_grad=True) for v in (X, Y, W))
    (rmsnorm(x, y, w) ** 3).sum().backward()
    for mine, theirs in ((x, a), (y, b), (w, c)):
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_a_gradient_goes_through_shifts_choices_and_places_that_data_knows() -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (stencil(x) * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [12.0, 121.0, 210.0]
    t = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    take(t, Tensor([1, 1, 0, 7])).sum().backward()
    assert t.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]]


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


def test_on_several_devices() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0]).shard(("CPU:0", "CPU:1"), axis=0)
    assert saxpy(2.0, x, x).tolist() == [3.0, 6.0, 9.0, 12.0]
    assert steps(saxpy)(2.0, x, x).tolist() == [3.0, 6.0, 9.0, 12.0]


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


def test_empty_arrays() -> None:
    none = Tensor.zeros(0)
    assert steps(saxpy)(2.0, none, none).shape == (0,)

    @kernel
    def total(x: Any) -> Any:
        out = kernel.zeros(())
        out[()] = kernel.sum(x[k] for k in kernel.range(len(x)))
        return out

    assert total(none).item() == 0.0


def test_no_bound_is_asked_that_loops_prove() -> None:
    m = np.eye(4, dtype=np.float32).reshape(1, 4, 4)
    source = cholesky(Tensor(m).realize()).kernels(target="c")[-1].source
    assert "?" not in source
    assert "if (" not in source


@kernel
def tiled(a: Any, b: Any) -> Any:
    n, m, K, T = a.shape[0], b.shape[1], a.shape[1], 4
    out = kernel.zeros(n, m)
    for bi, bj in kernel.grid(n // T, m // T):
        left, right = kernel.shared(T, T), kernel.shared(T, T)
        for t in kernel.threads(T * T):
            i, j = t // T, t % T
            total = kernel.local(0.0)
            for k in kernel.range(K // T):
                left[i, j] = a[bi * T + i, k * T + j]
                right[i, j] = b[k * T + i, bj * T + j]
                kernel.barrier()
                for step in range(T):
                    total += left[i, step] * right[step, j]
                kernel.barrier()
            out[bi * T + i, bj * T + j] = total
    return out


@kernel
def block_sums(x: Any) -> Any:
    size = 8
    out = kernel.zeros(len(x) // size)
    for b in kernel.grid(len(x) // size):
        tile = kernel.shared(size)
        for t in kernel.threads(size):
            mine = x[b * size + t]
            tile[t] = mine
            kernel.barrier()
            for stride in (4, 2, 1):
                with kernel.when(t < stride):
                    tile[t] += tile[t + stride]
                kernel.barrier()
            with kernel.when(t == 7):
                out[b] = tile[0] + mine  # which was loaded before all barriers
    return out


@pytest.mark.parametrize("device", DEVICES)
def test_threads_that_share_memory(device: str) -> None:
    a, b = normal(8, 12), normal(12, 4)
    x = normal(32)
    with Context(CHECK=1):
        found = tiled(Tensor(a, device=device), Tensor(b, device=device)).numpy()
        np.testing.assert_allclose(found, a @ b, atol=1e-4)
        sums = block_sums(Tensor(x, device=device)).numpy()
        np.testing.assert_allclose(sums, x.reshape(4, 8).sum(1) + x[7::8], atol=1e-4)


def test_threads_are_threads_in_text_for_gpus() -> None:
    x = Tensor(normal(32)).realize()
    for target, word in (("cuda", "__syncthreads"), ("metal", "threadgroup_barrier"), ("cl", "barrier(")):
        *_, made = block_sums(x).kernels(target=target)
        assert word in made.source
        assert made.local_size == (8, 1, 1)
        assert made.global_size == (4, 1, 1)


# *** what cannot be


def refused(function: Any, *args: Any) -> str:
    with pytest.raises((KernelError, IndexError, TypeError, ValueError, NotImplementedError)) as error:
        kernel(function)(*(args or (Tensor([1.0, 2.0]),)))
    return str(error.value)


def test_pythons_own_if_and_loops_are_refused_with_what_to_write() -> None:
    def uses_if(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(2):
            if x[i] > 0:
                out[i] = 1
        return out

    assert "kernel.when" in refused(uses_if)

    def uses_range(x: Any) -> Any:
        for i in kernel.grid(2):
            for _ in range(i):
                pass
        return kernel.zeros_like(x)

    assert "kernel.range" in refused(uses_range)

    def breaks(x: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.range(2):
            out[i] = 1
            break
        return out

    assert "did not run to its end" in refused(breaks)
    assert "test_own_kernels.py" in refused(breaks)


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


def test_barriers_that_not_all_threads_meet() -> None:
    def in_a_branch(x: Any) -> Any:
        for t in kernel.threads(2):
            with kernel.when(t > 0):
                kernel.barrier()
        return kernel.zeros_like(x)

    assert "in a `when`" in refused(in_a_branch)

    def in_a_loop(x: Any) -> Any:
        for t in kernel.threads(2):
            for _ in kernel.range(t):
                kernel.barrier()
        return kernel.zeros_like(x)

    assert "as often as data say, or the thread" in refused(in_a_loop)
    assert "inside of kernel.threads" in refused(lambda x: kernel.barrier())


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
    assert refused(lambda x: kernel.zeros(2.5)).startswith("sizes are whole numbers")


def test_an_error_inside_leaves_nothing_behind() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        kernel(fails)(Tensor([1.0]))
    assert saxpy(1.0, Tensor([1.0]), Tensor([1.0])).tolist() == [2.0]


def test_it_is_found_at_the_top() -> None:
    assert lazygrad.kernel is kernel
    assert repr(saxpy) == "<kernel saxpy>"
    assert saxpy.__name__ == "saxpy"


def test_a_search_changes_the_graph_and_leaves_steps_alone(tmp_path: Any) -> None:
    x, y = Tensor(X).realize(), Tensor(Y.T.copy()).realize()
    with Context(BEAM=1, CACHELEVEL=1):
        np.testing.assert_allclose(matmul(x, y).numpy(), X @ Y.T, atol=1e-4)
        np.testing.assert_allclose(steps(matmul)(x, y).numpy(), X @ Y.T, atol=1e-4)

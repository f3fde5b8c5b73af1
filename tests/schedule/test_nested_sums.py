"""Attention's gradient without memory for each query and key: when that is chosen, and that it is right."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.direct_kernels import is_joined
from lazygrad.device import Device
from lazygrad.direct.one_pass import is_one_pass, takes
from lazygrad.direct.one_pass.joined_sums import join_sums
from lazygrad.direct.one_pass.operands import OnePasses
from lazygrad.ir.ops import Ops
from lazygrad.report.forms import reasons
from lazygrad.schedule import plan
from tests.helpers import needs, require

RNG = np.random.default_rng(0)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def inputs(values: list[np.ndarray], device: str | None = None) -> list[Tensor]:
    return [Tensor(value, device=device, requires_grad=True).realize() for value in values]


def attended(q: Any, k: Any, v: Any, hidden: Any = None, added: Any = None) -> Any:
    """What attention is, in PyTorch; `hidden` says which keys are not seen."""
    times = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    k, v = (each.repeat_interleave(times, -3) if times > 1 else each for each in (k, v))
    x = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if added is not None:
        x = x + added
    if hidden is not None:
        x = x.masked_fill(hidden, -math.inf)
    return x.softmax(-1).nan_to_num(0.0) @ v


def expected(values: list[np.ndarray], arriving: np.ndarray, **masks: Any) -> list[np.ndarray]:
    """The result and the gradients, in float64."""
    torch = require("torch")
    wide = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]
    result = attended(*wide, **{name: torch.tensor(mask) for name, mask in masks.items()})
    result.backward(torch.tensor(arriving, dtype=torch.float64))
    return [result.detach().numpy(), *[each.grad.numpy() for each in wide]]


def computed(values: list[np.ndarray], arriving: np.ndarray, **options: Any) -> tuple[list[Any], list[Any]]:
    """The kernels, and what they make: the result and the gradients."""
    leaves = inputs(values)
    result = leaves[0].scaled_dot_product_attention(*leaves[1:], **options)
    result.backward(Tensor(arriving).realize())
    gradients = [each.grad for each in leaves]
    kernels = [item for item in result.schedule(*gradients) if item.ast.op is Ops.SINK]
    Tensor.realize(result, *gradients)
    return kernels, [result.numpy(), *[each.numpy() for each in gradients]]


def compare(got: list[np.ndarray], wanted: list[np.ndarray], atol: float = 1e-5) -> None:
    for mine, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, other, atol=atol, rtol=1e-4)


def largest(kernels: list[Any]) -> int:
    """The elements of the largest buffer that a kernel writes or reads."""
    return max(buffer.size for item in kernels for buffer in item.bufs)


def above(rows: int, keys: int) -> np.ndarray:
    return np.arange(keys) > np.arange(rows)[:, None]


# *** that it is the gradient


@pytest.mark.parametrize(
    ("rows", "keys", "causal"),
    [
        (1, 1, False),
        (7, 7, True),
        (33, 130, True),
        (130, 33, False),
        (100, 100, False),
        (259, 37, True),
        (1000, 1000, True),
    ],
)
def test_sizes_that_no_block_divides(one_pass_always: None, rows: int, keys: int, causal: bool) -> None:
    values, (arriving,) = arrays((2, rows, 12), (2, keys, 12), (2, keys, 20)), arrays((2, rows, 20))
    kernels, got = computed(values, arriving, is_causal=causal)
    masks = {"hidden": above(rows, keys)} if causal else {}
    compare(got, expected(values, arriving, **masks), 2e-5)
    if min(rows, keys) > 20:
        assert sum(is_one_pass(item.ast) for item in kernels) in (2, 3)
        assert largest(kernels) < 2 * rows * keys


@pytest.mark.parametrize("heads", [1, 2])
def test_query_heads_that_share_keys(one_pass_always: None, heads: int) -> None:
    values, (arriving,) = arrays((6, 70, 16), (heads, 70, 16), (heads, 70, 16)), arrays((6, 70, 16))
    kernels, got = computed(values, arriving, is_causal=True, enable_gqa=True)
    times = 6 // heads
    wanted = expected(
        [values[0], *[each.repeat(times, 0) for each in values[1:]]], arriving, hidden=above(70, 70)
    )
    shared = [each.reshape(heads, times, 70, 16).sum(1) for each in wanted[2:]]
    compare(got, [*wanted[:2], *shared])
    assert sum(is_one_pass(item.ast) for item in kernels) in (2, 3)
    assert largest(kernels) < 6 * 70 * 70


def test_several_axes_of_batches(one_pass_always: None) -> None:
    values, (arriving,) = arrays(*[(2, 3, 2, 40, 16)] * 3), arrays((2, 3, 2, 40, 16))
    kernels, got = computed(values, arriving)
    compare(got, expected(values, arriving))
    assert sum(is_one_pass(item.ast) for item in kernels) in (2, 3)


@pytest.mark.parametrize("kind", ["hidden", "added", "some for each head"])
def test_masks_in_memory_and_rows_that_see_nothing(one_pass_always: None, kind: str) -> None:
    values, (arriving,) = arrays((2, 40, 16), (2, 70, 16), (2, 70, 16)), arrays((2, 40, 16))
    hidden = RNG.random((2, 40, 70) if kind == "some for each head" else (40, 70)) > 0.5
    hidden[..., 3, :] = True
    mask = np.where(hidden, -np.inf, RNG.random(hidden.shape)).astype(np.float32)
    given = mask if kind == "added" else ~hidden
    masks = {"added": np.where(hidden, 0.0, mask)} if kind == "added" else {}
    kernels, got = computed(values, arriving, attn_mask=Tensor(given))
    compare(got, expected(values, arriving, hidden=hidden, **masks))
    assert sum(is_one_pass(item.ast) for item in kernels) in (2, 3)


def test_a_window(one_pass_always: None) -> None:
    values, (arriving,) = arrays(*[(2, 300, 16)] * 3), arrays((2, 300, 16))
    q, k, v = inputs(values)
    i, j = Tensor.arange(300).reshape(300, 1), Tensor.arange(300).reshape(1, 300)
    seen = (j <= i) & (i < j + 50)
    result = seen.where(q @ k.transpose(1, 2) * 0.25, -math.inf).softmax() @ v
    result.backward(Tensor(arriving))
    kernels = result.schedule(q.grad, k.grad, v.grad)
    Tensor.realize(result, q.grad, k.grad, v.grad)
    rows = np.arange(300)
    hidden = above(300, 300) | (rows[:, None] >= rows + 50)
    got = [each.numpy() for each in (result, q.grad, k.grad, v.grad)]
    compare(got, expected(values, arriving, hidden=hidden))
    assert sum(is_one_pass(item.ast) for item in kernels if item.ast.op is Ops.SINK) in (2, 3)
    assert largest([item for item in kernels if item.ast.op is Ops.SINK]) < 2 * 300 * 300


def test_the_result_is_read_again(one_pass_always: None) -> None:
    """Attention between layers: its result, and what arrives for it, are made by other kernels."""
    torch = require("torch")
    x, w, u = (each * 0.3 for each in arrays((2, 50, 24), (24, 72), (24, 24)))
    tensors = inputs([x, w, u])
    wide = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (x, w, u)]
    found = []
    for (a, b, c), attend in (
        (tensors, lambda q, k, v: q.scaled_dot_product_attention(k, v)),
        (wide, attended),
    ):
        q, k, v = ((a @ b)[..., n * 24 : (n + 1) * 24] for n in range(3))
        o = attend(q, k, v)
        loss = ((o @ c + o * o).tanh() * a).sum()
        loss.backward()
        found.append([each.grad.numpy() for each in (a, b, c)])
    compare(found[0], found[1], 1e-4)


def test_a_second_gradient(one_pass_always: None) -> None:
    torch = require("torch")
    values = arrays((20, 8), (30, 8), (30, 8))
    found = []
    for leaves in (
        inputs(values),
        [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values],
    ):
        q, k, v = leaves
        if isinstance(q, Tensor):
            (first,) = q.scaled_dot_product_attention(k, v).square().sum().gradient(q)
        else:
            (first,) = torch.autograd.grad(attended(q, k, v).square().sum(), q, create_graph=True)
        first.square().sum().backward()
        found.append([np.asarray(each.grad.numpy()) for each in leaves])
    compare(found[0], found[1], 1e-4)


def test_a_check_of_every_kernel_finds_nothing(one_pass_always: None) -> None:
    values, (arriving,) = arrays((2, 9, 8), (2, 20, 8), (2, 20, 8)), arrays((2, 9, 8))
    with Context(CHECK=1):
        _, got = computed(values, arriving, is_causal=True)
    compare(got, expected(values, arriving, hidden=above(9, 20)))


def test_the_bits_do_not_depend_on_the_cores(one_pass_always: None) -> None:
    values, (arriving,) = arrays(*[(4, 200, 16)] * 3), arrays((4, 200, 16))
    found = []
    for threads in (1, 5):
        with Context(THREADS=threads):
            found.append(computed(values, arriving, is_causal=True)[1])
    assert all(np.array_equal(a, b) for more in found[1:] for a, b in zip(found[0], more, strict=True))


@needs("clang")
def test_the_programs_in_c(one_pass_always: None) -> None:
    values, (arriving,) = arrays((2, 40, 12), (2, 40, 12), (2, 40, 20)), arrays((2, 40, 20))
    q, k, v = inputs(values, "CLANG")
    result = q.scaled_dot_product_attention(k, v, is_causal=True)
    result.backward(Tensor(arriving, device="CLANG"))
    got = [each.numpy() for each in (result, q.grad, k.grad, v.grad)]
    compare(got, expected(values, arriving, hidden=above(40, 40)))


# *** when


def gradient_of(heads: int, length: int, causal: bool) -> list[Any]:
    """The kernels of a result and its gradients; nothing runs."""
    q, k, v = (Tensor.empty(heads, length, 64, requires_grad=True) for _ in range(3))
    result = q.scaled_dot_product_attention(k, v, is_causal=causal)
    result.backward(Tensor.empty(heads, length, 64))
    return [item for item in result.schedule(q.grad, k.grad, v.grad) if item.ast.op is Ops.SINK]


@pytest.mark.choice
def test_what_is_faster_is_chosen() -> None:
    """Blocks that a causal mask hides are left out; without one, the values are rather stored."""
    assert largest(gradient_of(8, 512, True)) == 8 * 512 * 64
    assert largest(gradient_of(8, 128, False)) == 8 * 128 * 128


@pytest.mark.choice
@pytest.mark.parametrize(("threads", "sums"), [(1, [1, 3]), (64, [1, 1, 2])])
def test_sums_of_rows_are_joined_where_each_core_has_a_batch(
    one_pass_always: None, monkeypatch: pytest.MonkeyPatch, threads: int, sums: list[int]
) -> None:
    """dq beside dk and dv, where two heads are enough for the cores; else a kernel of its own."""
    joined = [lambda made, target: join_sums(made, replace(target, threads=threads))]
    monkeypatch.setattr(plan, "JOINERS", joined)
    q, k, v = (Tensor.empty(2, 40, 16, requires_grad=True).realize() for _ in range(3))
    result = q.scaled_dot_product_attention(k, v)
    gradients = result.gradient(q, k, v, gradient=Tensor.empty(2, 40, 16).realize())
    asts = [item.ast for item in result.schedule(*gradients) if item.ast.op is Ops.SINK]
    found = [1 if not is_joined(ast) else len(ast.src) for ast in asts if is_one_pass(ast)]
    assert sorted(found) == sums


@pytest.mark.choice
def test_a_long_context_takes_no_memory() -> None:
    """8 heads of 16,384: each value of all queries and keys would be 8 GiB."""
    kernels = gradient_of(8, 16384, False)
    assert largest(kernels) == 8 * 16384 * 64
    assert len(kernels) in (3, 4)
    written = {buffer for item in kernels for buffer in item.bufs[: len(item.ast.src)]}
    assert sum(buffer.size * 4 for buffer in written) < 300 << 20


@pytest.mark.choice
def test_the_reason_says_so() -> None:
    q, k, v = leaves = [Tensor.empty(8, 512, 64, requires_grad=True) for _ in range(3)]
    result = (q + 1).scaled_dot_product_attention(k * 2, v * 3, is_causal=True)
    result.backward(Tensor.empty(8, 512, 64))
    items = result.schedule(*[leaf.grad / 7 for leaf in leaves])
    texts = [text for item in items for text in reasons(item)]
    assert sum("computed again rather than stored" in text for text in texts) == 3


def test_weights_that_others_read_are_stored(one_pass_always: None) -> None:
    values, (arriving,) = arrays((40, 16), (50, 16), (50, 16)), arrays((40, 16))
    q, k, v = inputs(values)
    weights = (q @ k.T * 0.25).softmax()
    result = weights @ v
    result.backward(Tensor(arriving))
    Tensor.realize(weights, result, q.grad, k.grad, v.grad)
    compare([each.numpy() for each in (result, q.grad, k.grad, v.grad)], expected(values, arriving))


def test_layers_with_powers_are_computed_as_before(one_pass_always: None) -> None:
    """A GELU between two products is made of powers, and its family has no sum in one pass."""
    x, w, u = (Tensor.empty(40, 40, requires_grad=True) for _ in range(3))
    result = (x @ w).gelu() @ u
    result.backward(Tensor.empty(40, 40))
    items = result.schedule(x.grad, w.grad, u.grad)
    assert not any(is_one_pass(item.ast) for item in items if item.ast.op is Ops.SINK)


def test_steps_of_a_recurrence_are_not_lowered_to_plan_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would be lowered with all steps before it; the product of all of them with each in its place."""
    steps, lowered = 12, []
    asked = OnePasses.pattern
    monkeypatch.setattr(OnePasses, "pattern", lambda *args: lowered.append(args[1]) or asked(*args))
    x, u, c = Tensor.empty(steps, 4), Tensor.empty(4, 8), Tensor.empty(steps, 8)
    decay, state, results = (x @ u).exp(), Tensor.zeros(3, 8), []
    for step in range(steps):
        state = state * decay[step] + Tensor.empty(3, 8)
        results.append((state * c[step]).sum(-1))
    with Context(CACHELEVEL=0):
        (Tensor.stack(*results) @ Tensor.empty(3, 16)).schedule()
    assert not lowered


def test_a_target_without_such_kernels_stores_them(one_pass_always: None) -> None:
    q, k, v = (Tensor.empty(2, 40, 16, device="PYTHON", requires_grad=True) for _ in range(3))
    result = q.scaled_dot_product_attention(k, v)
    result.backward(Tensor.empty(2, 40, 16, device="PYTHON"))
    assert not takes(Device["PYTHON"].target)
    items = result.schedule(q.grad, k.grad, v.grad)
    assert not any(is_one_pass(item.ast) for item in items if item.ast.op is Ops.SINK)

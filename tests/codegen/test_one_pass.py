"""Reductions in one pass: when the rule holds, what blocks are left out, and that the programs compute it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, dtypes
from lazygrad.codegen.compile import stages
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.passes import DIRECT_PASSES
from lazygrad.device import Device
from lazygrad.direct.one_pass import is_one_pass, one_pass
from lazygrad.direct.one_pass import operands as schedule_one_pass
from lazygrad.direct.one_pass.rule import OnePass
from lazygrad.direct.one_pass.sizes import sizes_of
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.report.forms import reasons
from tests.helpers import needs

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)


def memory(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(dtype)).realize()


def asts(value: Tensor) -> list[UOp]:
    """The kernels of a value."""
    return [item.ast for item in value.schedule() if item.ast.op is Ops.SINK]


def parts_of(value: Tensor) -> OnePass:
    """The parts of a value that one kernel makes in one pass."""
    (ast,) = asts(value)
    assert is_one_pass(ast)
    found = one_pass(lower(ast))
    assert found is not None
    return found


def weights(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# *** the rule


def sizes(ranges: Any) -> list[int]:
    return [r.src[0].arg for r in ranges]


def test_the_parts_of_attention() -> None:
    q, k, v = memory(2, 48, 16), memory(2, 40, 16), memory(2, 40, 24)
    parts = parts_of(q.scaled_dot_product_attention(k, v))
    assert sizes(parts.batch) == [2]
    assert parts.groups == ()
    assert sizes([parts.row, parts.key, parts.column]) == [48, 40, 24]
    assert [p.depth.src[0].arg for p in parts.products] == [16]
    assert len(parts.most) == len(parts.sums) == 1
    assert [f.divides for f in parts.late] == [True]


def test_rows_that_share_their_keys_are_groups() -> None:
    q, k, v = memory(8, 48, 16), memory(2, 48, 16), memory(2, 48, 16)
    parts = parts_of(q.scaled_dot_product_attention(k, v, enable_gqa=True))
    assert (sizes(parts.batch), sizes([*parts.groups, parts.row])) == ([2], [4 * 48])


def test_nothing_recognises_a_name() -> None:
    """Any weights that are powers shifted by their greatest: of base 2, of a distance, times a factor."""
    x, centres, v = memory(64, 1), memory(1, 96), memory(96, 32)
    score = -(x - centres).abs()
    power = (score - score.max(1, keepdim=True)).exp2()
    value = (power * centres / power.sum(1, keepdim=True)) @ v
    parts = parts_of(value)
    assert parts.power.op in (Ops.EXP, Ops.EXP2)
    assert parts.products == ()
    assert len(parts.weights) <= 1
    s = -np.abs(x.numpy() - centres.numpy())
    p = np.exp2(s - s.max(1, keepdims=True))
    expected = (p * centres.numpy() / p.sum(1, keepdims=True)) @ v.numpy()
    np.testing.assert_allclose(value.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    "value",
    [
        lambda x, v: x.exp() @ v,  # no reduction before it
        lambda x, v: (x - x.max(1, keepdim=True)).sin() @ v,  # sin(a + b) is no product
        lambda x, v: (x - x.max(0, keepdim=True)).exp() @ v,  # the greatest along another axis
        lambda x, v: ((x - x.max(1, keepdim=True)).exp() + 1) @ v,  # a sum, no product
    ],
)
def test_what_the_rule_says_nothing_of(value: Any) -> None:
    x, v = memory(64, 64), memory(64, 64)
    assert not any(is_one_pass(ast) for ast in asts(value(x, v)))


def test_one_query_is_not_worth_a_copy_of_the_keys() -> None:
    q, k, v = memory(8, 1, 64), memory(8, 256, 64), memory(8, 256, 64)
    assert not any(is_one_pass(ast) for ast in asts(q.scaled_dot_product_attention(k, v)))


def test_what_others_read_is_stored() -> None:
    """Who asks for the weights too gets them, and they are read."""
    q, k, v = memory(64, 32), memory(64, 32), memory(64, 32)
    p = (q @ k.T).softmax()
    value = p @ v
    Tensor.realize(p, value)
    np.testing.assert_allclose(value.numpy(), weights(q.numpy() @ k.numpy().T) @ v.numpy(), atol=1e-5)


def test_the_reason_says_so() -> None:
    q, k, v = memory(64, 32), memory(64, 32), memory(64, 32)
    items = (q.scaled_dot_product_attention(k, v) @ memory(32, 8)).schedule()
    assert any("in one pass" in text for item in items for text in reasons(item))


def test_conditions_on_indices_limit_the_keys() -> None:
    q, k, v = memory(64, 32), memory(64, 32), memory(64, 32)
    (limit,) = parts_of(q.scaled_dot_product_attention(k, v, is_causal=True)).limits
    assert limit.slope == -1
    assert limit.rest.op is Ops.RANGE


# *** what the programs compute


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    x = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return weights(x if mask is None else np.where(mask, x, -np.inf)) @ v


def at_most(rows: int, keys: int) -> np.ndarray:
    return np.arange(keys) <= np.arange(rows)[:, None]


@pytest.mark.parametrize(("rows", "keys"), [(7, 7), (16, 1), (33, 300), (100, 100), (259, 130)])
@pytest.mark.parametrize("causal", [False, True])
def test_sizes_that_no_block_divides(rows: int, keys: int, causal: bool) -> None:
    q, k, v = memory(2, rows, 12), memory(2, keys, 12), memory(2, keys, 20)
    got = q.scaled_dot_product_attention(k, v, is_causal=causal).numpy()
    mask = at_most(rows, keys) if causal else None
    np.testing.assert_allclose(got, reference(q.numpy(), k.numpy(), v.numpy(), mask), atol=2e-6)


def test_a_window_and_shared_heads() -> None:
    """Blocks on both sides of the window are left out; heads lie beside each other in memory."""
    q, k, v = memory(300, 6, 16), memory(300, 2, 16), memory(300, 2, 16)
    q, k, v = (each.transpose(0, 1) for each in (q, k, v))
    k, v = (each.repeat_interleave(3, 0) for each in (k, v))
    x = q @ k.transpose(1, 2) * 0.25
    i, j = Tensor.arange(300).reshape(300, 1), Tensor.arange(300).reshape(1, 300)
    value = ((j <= i) & (i < j + 50)).where(x, -math.inf).softmax() @ v
    parts = parts_of(value)
    assert sorted(limit.slope for limit in parts.limits) == [-1, 1]
    assert sizes(parts.groups) == [3]
    rows = np.arange(300)
    mask = at_most(300, 300) & (rows[:, None] < rows + 50)
    np.testing.assert_allclose(value.numpy(), reference(q.numpy(), k.numpy(), v.numpy(), mask), atol=2e-6)


def test_blocks_that_are_hidden_are_not_read() -> None:
    """The values of keys that no row of a block sees may be anything."""
    q, k, v = memory(600, 16), memory(600, 16), memory(600, 16)
    target = Device["CPU"].target
    parts = parts_of(q.scaled_dot_product_attention(k, v, is_causal=True))
    blocks = sizes_of(parts, target)
    clean = q.scaled_dot_product_attention(k, v, is_causal=True).numpy()
    hidden = v.numpy().copy()
    hidden[-(600 % blocks.keys or blocks.keys) :] = np.nan
    got = q.scaled_dot_product_attention(k, Tensor(hidden), is_causal=True).numpy()
    seen = 600 - (600 % blocks.keys or blocks.keys) - blocks.tile
    np.testing.assert_array_equal(got[: min(seen, blocks.rows)], clean[: min(seen, blocks.rows)])


@pytest.mark.parametrize("masked", [lambda m: m, lambda m: np.where(m, 0.0, -np.inf).astype(np.float32)])
def test_masks_in_memory_and_rows_that_see_nothing(masked: Any) -> None:
    q, k, v = memory(2, 40, 16), memory(2, 70, 16), memory(2, 70, 16)
    mask = RNG.random((40, 70)) > 0.5
    mask[3] = False
    got = q.scaled_dot_product_attention(k, v, attn_mask=Tensor(masked(mask))).numpy()
    with np.errstate(invalid="ignore"):
        expected = reference(q.numpy(), k.numpy(), v.numpy(), mask)
    expected[:, 3] = 0.0
    np.testing.assert_allclose(got, expected, atol=2e-6)


def test_a_mask_hides_no_missing_scores() -> None:
    """A NaN in a query makes its result NaN, though the mask has something to say."""
    q, k, v = memory(40, 16), memory(70, 16), memory(70, 16)
    broken = q.numpy().copy()
    broken[5, 2] = np.nan
    got = Tensor(broken).scaled_dot_product_attention(k, v, attn_mask=Tensor(np.ones((40, 70), bool))).numpy()
    assert np.isnan(got[5]).all()
    assert not np.isnan(np.delete(got, 5, 0)).any()


def test_infinite_and_missing_scores() -> None:
    """A softmax of -inf alone, or with inf or NaN in it, is NaN, as in a kernel for each reduction."""
    x, v = RNG.standard_normal((32, 200)).astype(np.float32), memory(200, 16)
    x[1] = -np.inf
    x[2, 150], x[3, 5], x[4, :150] = np.inf, np.nan, -np.inf
    value = Tensor(x).softmax() @ v
    assert any(is_one_pass(ast) for ast in asts(value))
    with np.errstate(invalid="ignore"):
        expected = weights(x.astype(np.float64)) @ v.numpy()
    np.testing.assert_allclose(value.numpy(), expected, atol=2e-6)
    assert np.isnan(value.numpy()[1:4]).all()


def test_greatest_scores_that_grow_from_block_to_block() -> None:
    x = np.linspace(-2000.0, 3000.0, 1000, dtype=np.float32)[None] + RNG.random((32, 1)).astype(np.float32)
    v = memory(1000, 16)
    got = (Tensor(x).softmax() @ v).numpy()
    np.testing.assert_allclose(got, weights(x.astype(np.float64)) @ v.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "error"), [("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-12)])
def test_other_dtypes(name: str, error: float) -> None:
    dtype = getattr(dtypes, name)
    q, k, v = (memory(2, 50, 24).cast(dtype).realize() for _ in range(3))
    value = q.scaled_dot_product_attention(k, v, is_causal=True)
    assert is_one_pass(asts(value)[-1])
    assert value.dtype is dtype
    wide = [each.cast(dtypes.float64).numpy() for each in (q, k, v)]
    got = value.cast(dtypes.float64).numpy()
    np.testing.assert_allclose(got, reference(*wide, at_most(50, 50)), atol=error)


def test_the_bits_do_not_depend_on_the_cores() -> None:
    q, k, v = memory(4, 300, 32), memory(4, 300, 32), memory(4, 300, 32)
    found = []
    for threads in (1, 2, 5):
        with Context(THREADS=threads):
            found.append(q.scaled_dot_product_attention(k, v, is_causal=True).numpy())
    assert all(np.array_equal(found[0], each) for each in found[1:])


def test_the_result_is_added_to_and_laid_out_as_asked() -> None:
    q, k, v, w = memory(2, 4, 40, 16), memory(2, 4, 40, 16), memory(2, 4, 40, 16), memory(64, 24)
    mixed = q.scaled_dot_product_attention(k, v).transpose(1, 2).flatten(2)
    expected = reference(q.numpy(), k.numpy(), v.numpy()).swapaxes(1, 2).reshape(2, 40, 64)
    np.testing.assert_allclose((mixed @ w + 1).numpy(), expected @ w.numpy() + 1, atol=2e-5)
    np.testing.assert_allclose(mixed.contiguous().numpy(), expected, atol=2e-6)


def test_operands_that_are_computed_first() -> None:
    x, w = memory(50, 48), memory(48, 48)
    q, k, v = (x @ w) * 0.5, (x @ w).relu(), x @ w + 1
    value = q.scaled_dot_product_attention(k, v)
    assert sum(is_one_pass(ast) for ast in asts(value)) == 1
    y = x.numpy() @ w.numpy()
    got = ((x @ w) * 0.5).scaled_dot_product_attention((x @ w).relu(), x @ w + 1).numpy()
    np.testing.assert_allclose(got, reference(y * 0.5, np.maximum(y, 0), y + 1), atol=5e-5)


def test_the_forms_are_what_the_specs_say() -> None:
    q, k, v = memory(8, 50, 12), memory(2, 50, 12), memory(2, 50, 20)
    (ast,) = asts(q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=True))
    with Context(CHECK=1):
        forms = dict(stages(ast, Device["CPU"].renderer))
    assert list(forms) == [step.name for step in DIRECT_PASSES]
    assert len(forms["linearize"]) > 100


def test_no_kernel_needs_the_weights_in_memory() -> None:
    """8 heads of 16,384 would be 8 GiB of them."""
    q, k, v = (Tensor.empty(8, 16384, 64) for _ in range(3))
    (ast,) = asts(q.scaled_dot_product_attention(k, v))
    assert is_one_pass(ast)
    program = dict(stages(ast, Device["CPU"].renderer))["linearize"]
    kept = sum(node.dtype.size for node in program if node.op is Ops.DEFINE_LOCAL)  # type: ignore[attr-defined]
    assert kept * 4 < 1 << 20


def test_operands_that_are_parts_of_one_value() -> None:
    x, w, b = memory(1, 50, 32), memory(32, 96), memory(96)
    y = x.numpy() @ w.numpy() + b.numpy()
    q, k, v = (part.unflatten(-1, (2, 16)).transpose(1, 2) for part in (x @ w + b).chunk(3, -1))
    value = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).flatten(2)
    kernels = asts(value.contiguous())
    assert [is_one_pass(ast) for ast in kernels] == [False, True]
    parts = [part.reshape(1, 50, 2, 16).swapaxes(1, 2) for part in np.split(y, 3, -1)]
    expected = reference(*parts, at_most(50, 50)).swapaxes(1, 2).reshape(1, 50, 32)
    np.testing.assert_allclose(value.numpy(), expected, atol=5e-4)


def test_a_check_of_every_kernel_finds_nothing() -> None:
    q, k, v = memory(2, 9, 8), memory(2, 20, 8), memory(2, 20, 8)
    with Context(CHECK=1):
        got = q.scaled_dot_product_attention(k, v).numpy()
    np.testing.assert_allclose(got, reference(q.numpy(), k.numpy(), v.numpy()), atol=1e-6)


def test_numbers_that_differ_from_call_to_call() -> None:
    """A scale, or where the keys begin, becomes an argument of the kernel."""
    q, k = memory(2, 40, 16), memory(2, 200, 16)
    for scale, begin in ((0.1, 3), (0.2, 50), (0.3, 100), (0.25, 120)):
        part = k[:, begin : begin + 40]
        value = q.scaled_dot_product_attention(part, part, scale=scale)
        assert all(is_one_pass(item.ast) for item in value.schedule())
        np.testing.assert_allclose(
            value.numpy(), reference(q.numpy() * scale * 4, part.numpy(), part.numpy()), atol=2e-6
        )


@needs("clang")
def test_the_program_in_c() -> None:
    q, k, v = (Tensor(memory(2, 40, 12).numpy(), device="CLANG").realize() for _ in range(3))
    value = q.scaled_dot_product_attention(k, v, is_causal=True)
    (ast,) = asts(value)
    assert is_one_pass(ast)
    np.testing.assert_allclose(
        value.numpy(), reference(q.numpy(), k.numpy(), v.numpy(), at_most(40, 40)), atol=1e-6
    )


def test_a_value_that_is_wanted_in_two_dtypes_is_computed_once() -> None:
    q, k, v = memory(2, 40, 12), memory(2, 40, 12), memory(2, 40, 12)
    value = q.scaled_dot_product_attention(k, v)
    half = value.half()
    items = value.schedule(half)
    assert sum(is_one_pass(item.ast) for item in items if item.ast.op is Ops.SINK) == 1
    np.testing.assert_array_equal(half.numpy(), value.numpy().astype(np.float16))


def test_what_is_far_below_a_sum_is_not_looked_at(monkeypatch):
    seen: list[int] = []
    monkeypatch.setattr(schedule_one_pass, "_pattern_of", lambda ast: seen.append(len(ast.toposort())))
    x = Tensor.empty(2, 8, 6, 6)
    for _ in range(24):
        x = x * x.mean((2, 3), keepdim=True).sigmoid() + x
    x.sum().schedule()
    assert not [size for size in seen if size > 300]


# *** the program


def program(value: Tensor) -> list[UOp]:
    (ast,) = asts(value)
    found: list[UOp] = dict(stages(ast, Device["CPU"].renderer, ()))["linearize"]
    return found


def numbers(node: UOp) -> set[Any]:
    """Of a constant what its lanes are."""
    return set(np.ravel(node.arg).tolist()) if node.op is Ops.CONST else set()


def test_the_rows_of_a_tile_are_corrected_together() -> None:
    """Whether all x of a row were -inf is asked of as many rows at once as a vector has lanes."""
    q, k, v = memory(2, 60, 16), memory(2, 64, 16), memory(2, 64, 16)
    steps = program(q.scaled_dot_product_attention(k, v))
    asked = [u for u in steps if u.op is Ops.CMPEQ and numbers(u.src[1]) == {-math.inf}]
    tile = sizes_of(parts_of(q.scaled_dot_product_attention(k, v)), Device["CPU"].renderer.target).tile
    assert 0 < len(asked) < tile


def test_lanes_behind_the_last_key_are_zeros() -> None:
    """They are multiplied as others are, and what is left in memory may take a core very long."""
    q, k, v = memory(2, 32, 16), memory(2, 17, 16), memory(2, 17, 16)
    steps = program(q.scaled_dot_product_attention(k, v))
    panel = [u for u in steps if u.op is Ops.DEFINE_LOCAL][1]
    stored = [numbers(u.src[1]) for u in steps if u.op is Ops.STORE and u.src[0].src[0] is panel]
    assert {0.0} in stored

"""Where PyTorch's functions have gradients, dtypes and shapes of their own: the same call and result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.nn import functional
from tests.helpers import needs, require, slow_but_for
from tests.tensor.support import data

pytestmark = needs("torch")


def like(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *given: Any,
    moved: tuple[int, ...] = (),
    **options: Any,
) -> None:
    """Both give the same values in the same dtype, and the same gradients of the arguments that are moved."""
    torch = require("torch")
    mine = [
        Tensor(a, requires_grad=True if i in moved else None) if isinstance(a, np.ndarray) else a
        for i, a in enumerate(given)
    ]
    other = [
        torch.tensor(a, requires_grad=i in moved) if isinstance(a, np.ndarray) else a
        for i, a in enumerate(given)
    ]
    found, expected = ours(*mine, **options), theirs(*other, **options)
    wanted = expected.detach().numpy()
    assert found.numpy().dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)
    if moved:
        weights = data(*wanted.shape, seed=9)
        (found * Tensor(weights)).sum().backward()
        (expected * torch.tensor(weights)).sum().backward()
    for i in moved:
        np.testing.assert_allclose(mine[i].grad.numpy(), other[i].grad.numpy(), rtol=1e-3, atol=1e-4)


def torch_functional() -> Any:
    return require("torch").nn.functional


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_max_unpool(axes: int) -> None:
    torch = require("torch")
    x = torch.tensor(data(2, 3, *(6, 4, 4)[:axes]))
    best, where = getattr(torch_functional(), f"max_pool{axes}d")(x, 2, return_indices=True)
    name = f"max_unpool{axes}d"
    ours, theirs = getattr(functional, name), getattr(torch_functional(), name)
    like(ours, theirs, best.numpy(), where.numpy(), 2, moved=(0,))
    like(ours, theirs, best.numpy()[0], where.numpy()[0], 2, moved=(0,))
    like(ours, theirs, best.numpy(), where.numpy(), 2, moved=(0,), output_size=[n + 1 for n in x.shape[2:]])


# *** CTC

LOGS = np.log(np.random.default_rng(1).dirichlet(np.ones(5), (12, 3)).astype(np.float32))
TEXTS = np.array([[1, 1, 2, 2], [3, 4, 1, 2], [2, 1, 2, 1]])
TIMES, SIZES = np.array([12, 10, 7]), np.array([4, 2, 3])


@pytest.mark.parametrize("reduction", slow_but_for(["none", "mean", "sum"], "mean"))
def test_gradients_of_ctc_loss(reduction: str) -> None:
    theirs = torch_functional().ctc_loss
    like(functional.ctc_loss, theirs, LOGS, TEXTS, TIMES, SIZES, moved=(0,), reduction=reduction)
    raw = data(12, 3, 5)
    like(functional.ctc_loss, theirs, raw, TEXTS, TIMES, SIZES, moved=(0,), reduction=reduction)
    one = (LOGS[:, 0], TEXTS[0], (12,), (4,))
    like(functional.ctc_loss, theirs, *one, moved=(0,), reduction=reduction)
    short = np.array([3, 10, 7])  # the first text does not fit
    options = {"reduction": reduction, "zero_infinity": True}
    like(functional.ctc_loss, theirs, LOGS, TEXTS, short, SIZES, moved=(0,), **options)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_a_sample_without_times(zero_infinity: bool) -> None:
    """An empty text is certain, any other impossible."""
    options = {"reduction": "none", "zero_infinity": zero_infinity}
    times, sizes = np.array([0, 0, 7]), np.array([0, 2, 0])
    like(functional.ctc_loss, torch_functional().ctc_loss, LOGS, TEXTS, times, sizes, moved=(0,), **options)


@pytest.mark.parametrize(
    ("times", "sizes"), [([13, 1, 1], [1, 1, 1]), ([1, 1, -1], [1, 1, 1]), ([1] * 3, [1, 5, 1])]
)
def test_lengths_beyond_what_there_is(times: list[int], sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=r"_lengths are numbers from 0 to (12|4), not (13|-1|5)"):
        functional.ctc_loss(Tensor(LOGS), Tensor(TEXTS), times, sizes)


def test_gradient_of_a_text_that_does_not_fit_is_zero() -> None:
    logs = Tensor(LOGS, requires_grad=True)
    loss = functional.ctc_loss(logs, Tensor(TEXTS), [3, 10, 7], [4, 2, 3], reduction="sum")
    assert loss.item() == np.inf
    loss.backward()
    found = logs.grad.numpy()
    assert not found[:, 0].any()
    assert np.isfinite(found).all()
    assert found[:, 1].any()


# *** Cholesky


@pytest.mark.parametrize("upper", [False, True])
def test_gradients_from_a_cholesky_factor(upper: bool) -> None:
    torch = require("torch")
    a = data(4, 4)
    factor = np.linalg.cholesky(a @ a.T + 4 * np.eye(4, dtype=np.float32))
    factor = np.ascontiguousarray(factor.T) if upper else factor
    other = np.tril(data(4, 4, seed=2), -1) if upper else np.triu(data(4, 4, seed=2), 1)
    for triangle in (factor, factor + other):  # the other triangle is not read
        like(Tensor.cholesky_inverse, torch.cholesky_inverse, triangle, upper, moved=(0,))
        right = data(4, 2, seed=3)
        like(Tensor.cholesky_solve, torch.cholesky_solve, right, triangle, upper, moved=(0, 1))
    batch = data(3, 4, 2, seed=3)
    like(Tensor.cholesky_solve, torch.cholesky_solve, batch, factor, upper, moved=(0, 1))


# *** integers

WHOLE = np.array([-7, -1, 0, 2, 5, 9])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_activations_keep_integers(dtype: str) -> None:
    for name, limits in (
        ("hardtanh", ()),
        ("hardtanh", (-2, 3)),
        ("relu", ()),
        ("relu6", ()),
        ("threshold", (1, 5)),
    ):
        like(getattr(functional, name), getattr(torch_functional(), name), WHOLE.astype(dtype), *limits)
    half = functional.hardtanh(Tensor(WHOLE), -0.5, 0.5)
    assert half.dtype is dtypes.default_float


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pooling_keeps_integers(axes: int) -> None:
    whole = np.random.default_rng(2).integers(-9, 9, (2, 3, *(6, 4, 4)[:axes]))

    def by_floats(name: str) -> Any:  # PyTorch has not all of them for integers
        return lambda x, *sizes: getattr(torch_functional(), name)(x.double(), *sizes).to(x.dtype)

    for name in (f"max_pool{axes}d", f"avg_pool{axes}d", f"adaptive_max_pool{axes}d"):
        like(getattr(functional, name), by_floats(name), whole, 2)
    name = f"max_pool{axes}d"
    like(getattr(functional, name), by_floats(name), whole.astype(np.int8), 2, 1, 1)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", ((2, 2), (2, 3), (3, 2))),
        ("addmv", ((2,), (2, 3), (3,))),
        ("addr", ((2, 3), (2,), (3,))),
        ("addbmm", ((2, 2), (4, 2, 3), (4, 3, 2))),
        ("baddbmm", ((4, 2, 2), (4, 2, 3), (4, 3, 2))),
    ],
)
def test_products_with_sums_keep_integers(name: str, shapes: Any, dtype: str) -> None:
    torch = require("torch")
    r = np.random.default_rng(3)
    given = [r.integers(-4, 4, shape).astype(dtype) for shape in shapes]
    like(getattr(Tensor, name), getattr(torch, name), *given)
    like(getattr(Tensor, name), getattr(torch, name), *given, beta=2, alpha=3)


# *** bags, losses, images


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_by_offsets(mode: str) -> None:
    theirs, weight = torch_functional().embedding_bag, data(10, 3)
    words, begins = np.array([1, 2, 4, 5, 4, 3, 2]), np.array([0, 3, 3, 5])
    like(functional.embedding_bag, theirs, words, weight, begins, moved=(1,), mode=mode)
    ends = np.array([0, 3, 5, 7])
    like(
        functional.embedding_bag, theirs, words, weight, ends, moved=(1,), mode=mode, include_last_offset=True
    )
    like(functional.embedding_bag, theirs, words, weight, begins, moved=(1,), mode=mode, padding_idx=2)


def test_bags_with_weights() -> None:
    def weighted(space: Any) -> Any:
        return lambda words, weight, begins, scale: space.embedding_bag(
            words, weight, begins, mode="sum", per_sample_weights=scale
        )

    given = (np.array([1, 2, 4, 5, 4]), data(10, 3), np.array([0, 3]), data(5, seed=4))
    like(weighted(functional), weighted(torch_functional()), *given, moved=(1, 3))


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "name",
    [
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "kl_div",
        "poisson_nll_loss",
        "hinge_embedding_loss",
    ],
)
def test_losses_broadcast(name: str) -> None:
    ours, theirs = getattr(functional, name), getattr(torch_functional(), name)
    wanted = np.sign(data(4, 3, seed=5))
    like(ours, theirs, data(4, 3), wanted[0], moved=(0,), reduction="sum")
    like(ours, theirs, data(4, 1), wanted, moved=(0,), reduction="none")
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        ours(Tensor(data(4, 3)), Tensor(data(2)))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_images_of_bytes_stay_such(mode: str) -> None:
    torch = require("torch")
    pixels = np.random.default_rng(4).integers(0, 256, (1, 3, 9, 7)).astype(np.uint8)
    for antialias in {False, mode in ("bilinear", "bicubic")}:
        for size in ((5, 11), (20, 3)):
            found = functional.interpolate(Tensor(pixels), size, mode=mode, antialias=antialias).numpy()
            wanted = torch_functional().interpolate(
                torch.tensor(pixels), size, mode=mode, antialias=antialias
            )
            away = np.abs(found.astype(int) - wanted.numpy().astype(int))
            assert found.dtype == np.uint8
            assert away.max() <= 1  # where a sum of weights is half a number
            assert (away > 0).mean() < 0.02


def test_gradient_of_the_nearest_pixel_is_zero() -> None:
    grid = Tensor(data(1, 2, 2, 2), requires_grad=True)
    functional.grid_sample(Tensor(data(1, 1, 3, 3)), grid, mode="nearest").sum().backward()
    assert grid.grad.numpy().tolist() == np.zeros((1, 2, 2, 2)).tolist()

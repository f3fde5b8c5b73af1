"""`nn.functional` is `torch.nn.functional`: the same call, the same result, the same gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, dtypes
from lazygrad.nn import functional
from tests.helpers import needs, require
from tests.tensor.support import data

IMAGE = data(2, 4, 6, 5, seed=11)
LINE = data(2, 4, 9, seed=12)
VOLUME = data(1, 2, 4, 5, 3, seed=13)
FLAT = data(3, 4, seed=14)
OTHER = data(3, 4, seed=15)
EDGES = np.array([-3.0, -0.5, -0.0, 0.0, 0.5, 3.0, 25.0, np.nan], np.float32)
CLASSES = np.array([3, 0, 1], np.int64)
SIGNS = np.array([1.0, -1.0, 1.0], np.float32)
PROBABILITIES = np.random.RandomState(0).dirichlet(np.ones(4), 3).astype(np.float32)


def call(name: str, *arrays: Any, **options: Any) -> tuple[str, list[Any], dict[str, Any]]:
    return name, list(arrays), options


ACTIVATIONS = [
    call("relu", FLAT),
    call("relu6", FLAT * 4),
    call("hardtanh", FLAT, min_val=-0.5, max_val=0.7),
    call("glu", FLAT, dim=1),
    call("glu", LINE[:, :, :8].transpose(2, 0, 1)[:, :, :2]),
    call("hardshrink", FLAT, lambd=0.7),
    call("softshrink", FLAT, lambd=0.7),
    call("tanhshrink", FLAT),
    call("threshold", FLAT, threshold=0.3, value=-7.0),
    call("prelu", LINE, data(4, seed=3)),
    call("prelu", FLAT, data(1, seed=3)),
    call("rrelu", FLAT),
    call("mish", FLAT * 9),
    call("celu", FLAT, alpha=0.6),
    call("selu", FLAT),
    call("gelu", FLAT),
    call("gelu", FLAT, approximate="tanh"),
    call("softplus", FLAT * 9, beta=3.0),
    call("softplus", FLAT * 9, beta=3.0, threshold=2.0),
    call("leaky_relu", FLAT, negative_slope=0.2),
    call("softmin", FLAT, dim=0),
    call("alpha_dropout", FLAT),
    call("feature_alpha_dropout", FLAT),
]
PRODUCTS = [
    call("linear", FLAT, data(5, 4), data(5)),
    call("linear", FLAT, data(4)),
    call("bilinear", FLAT, data(3, 2), data(5, 4, 2), data(5)),
    call("conv1d", LINE, data(6, 2, 3), data(6), stride=2, padding=1, dilation=2, groups=2),
    call("conv1d", LINE[0], data(6, 4, 4), padding="same"),
    call("conv2d", IMAGE, data(3, 4, 2, 3), data(3), stride=(2, 1), padding=(1, 0)),
    call("conv2d", IMAGE, data(4, 1, 3, 3), groups=4, dilation=(1, 2), padding=2),
    call("conv3d", VOLUME, data(3, 2, 2, 3, 1), data(3), padding=(1, 1, 0), stride=(1, 2, 1)),
    call("conv_transpose1d", LINE, data(4, 3, 3), data(6), stride=3, padding=1, output_padding=2, groups=2),
    call("conv_transpose2d", IMAGE, data(4, 2, 3, 2), stride=(2, 1), padding=(1, 1), dilation=(1, 2)),
    call("conv_transpose2d", IMAGE[0], data(4, 2, 2, 2), stride=2, output_padding=(1, 0)),
    call(
        "conv_transpose3d", VOLUME, data(2, 2, 2, 1, 2), data(2), stride=(1, 2, 1), output_padding=(0, 1, 0)
    ),
]
POOLS = [
    call("max_pool1d", LINE, 3, 2, 1),
    call("max_pool1d", LINE, 2, dilation=3, ceil_mode=True),
    call("max_pool2d", IMAGE, (3, 2), (2, 1), padding=(1, 1), dilation=(2, 1)),
    call("max_pool2d", IMAGE, 3, 2, ceil_mode=True),
    call("max_pool3d", VOLUME, 2, 1),
    call("avg_pool1d", LINE, 4, 3, 2),
    call("avg_pool2d", IMAGE, 3, 2, 1, True, False),
    call("avg_pool2d", IMAGE, 3, 2, 1, True, True),
    call("avg_pool2d", IMAGE, 2, divisor_override=3),
    call("avg_pool3d", VOLUME, (2, 3, 1), 1, (1, 1, 0)),
    call("lp_pool1d", np.abs(LINE), 3.0, 2),
    call("lp_pool2d", IMAGE, 2.0, 2, 1),
    call("lp_pool3d", np.abs(VOLUME), 3.0, 2),
    call("adaptive_avg_pool1d", LINE, 4),
    call("adaptive_avg_pool2d", IMAGE, (4, None)),
    call("adaptive_avg_pool2d", IMAGE, (3, 1)),
    call("adaptive_avg_pool3d", VOLUME, (3, 2, 2)),
    call("adaptive_max_pool1d", LINE, 4),
    call("adaptive_max_pool2d", IMAGE, (4, 3)),
    call("adaptive_max_pool3d", VOLUME, 2),
    call("unfold", IMAGE, (3, 2), dilation=(2, 1), padding=1, stride=2),
    call("fold", data(2, 12, 16), (6, 5), (3, 2), padding=(1, 0), stride=(1, 1), dilation=(2, 1)),
    call("fold", data(8, 9), (6, 6), 2, stride=2),
]
RESIZES = [
    call("pixel_shuffle", IMAGE, 2),
    call("pixel_unshuffle", data(2, 3, 4, 6), 2),
    call("channel_shuffle", IMAGE, 2),
    call("interpolate", LINE, 5),
    call("interpolate", IMAGE, scale_factor=(1.7, 0.6)),
    call("interpolate", IMAGE, (9, 4), mode="nearest-exact"),
    call("interpolate", LINE, 14, mode="linear"),
    call("interpolate", LINE, 4, mode="linear", align_corners=True),
    call("interpolate", IMAGE, (9, 3), mode="bilinear"),
    call("interpolate", IMAGE, scale_factor=1.6, mode="bilinear"),
    call("interpolate", IMAGE, scale_factor=1.6, mode="bilinear", recompute_scale_factor=True),
    call("interpolate", IMAGE, (11, 4), mode="bicubic"),
    call("interpolate", IMAGE, (2, 9), mode="bilinear", antialias=True),
    call("interpolate", IMAGE, scale_factor=0.4, mode="bicubic", antialias=True),
    call("interpolate", IMAGE, (3, 9), mode="bicubic", align_corners=True),
    # some results begin exactly between two pixels: the weights are counted from where it reads
    call("interpolate", data(1, 1, 50, 3), (22, 3), mode="bilinear", antialias=True, align_corners=True),
    call("interpolate", VOLUME, (6, 3, 3), mode="trilinear", align_corners=True),
    call("interpolate", IMAGE, (4, 3), mode="area"),
]
GRID = data(2, 3, 4, 2, seed=5, low=-1.3, high=1.3)
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _corners in (False, True):
            RESIZES.append(
                call("grid_sample", IMAGE, GRID, mode=_mode, padding_mode=_padding, align_corners=_corners)
            )
RESIZES += [
    call("grid_sample", VOLUME, data(1, 2, 3, 2, 3, seed=6, low=-1.3, high=1.3), align_corners=False),
    call("affine_grid", data(2, 2, 3), (2, 3, 4, 5), align_corners=False),
    call("affine_grid", data(2, 3, 4), (2, 3, 2, 4, 1), align_corners=True),
]
NORMS = [
    call("layer_norm", FLAT, (4,), data(4), data(4)),
    call("layer_norm", LINE, (4, 9)),
    call("rms_norm", FLAT, (4,), data(4)),
    call("rms_norm", LINE, (4, 9), eps=0.1),
    call("group_norm", IMAGE, 2, data(4), data(4), eps=0.1),
    call("instance_norm", IMAGE, weight=None),
    call("local_response_norm", IMAGE, 3, alpha=0.3, beta=0.6, k=1.5),
    call("local_response_norm", LINE, 2),
    call("normalize", FLAT),
    call("normalize", FLAT, p=3.0, dim=0),
    call("normalize", FLAT * 0),
    call("cosine_similarity", FLAT, OTHER),
    call("cosine_similarity", LINE, data(9), dim=-1),
    call("pairwise_distance", FLAT, OTHER),
    call("pairwise_distance", FLAT, OTHER, p=1.0, keepdim=True),
    call("one_hot", CLASSES, 5),
]
LOSSES = [
    call("mse_loss", FLAT, OTHER),
    call("l1_loss", FLAT, OTHER, reduction="sum"),
    call("smooth_l1_loss", FLAT, OTHER, beta=0.7),
    call("smooth_l1_loss", FLAT, OTHER, beta=0.0),
    call("huber_loss", FLAT, OTHER, delta=0.7, reduction="none"),
    call("kl_div", FLAT, PROBABILITIES, reduction="batchmean"),
    call("kl_div", FLAT, np.eye(3, 4, dtype=np.float32), reduction="sum"),
    call("kl_div", FLAT, OTHER, log_target=True, reduction="none"),
    call("poisson_nll_loss", FLAT, np.abs(OTHER) * 3),
    call("poisson_nll_loss", np.abs(FLAT), np.abs(OTHER) * 3, log_input=False, full=True),
    call("gaussian_nll_loss", FLAT, OTHER, np.abs(data(3, 4, seed=8)), full=True),
    call("gaussian_nll_loss", FLAT, OTHER, np.abs(data(3, 1, seed=8)), reduction="none"),
    call("gaussian_nll_loss", FLAT, OTHER, np.zeros(3, np.float32), eps=0.1),
    call("soft_margin_loss", FLAT, np.sign(OTHER)),
    call("hinge_embedding_loss", FLAT, np.sign(OTHER), margin=0.7),
    call("margin_ranking_loss", FLAT, OTHER, np.sign(data(3, 4)), margin=0.3),
    call("cosine_embedding_loss", FLAT, OTHER, SIGNS, margin=0.1),
    call("triplet_margin_loss", FLAT, OTHER, data(3, 4), margin=0.5, swap=True),
    call("triplet_margin_loss", FLAT, OTHER, data(3, 4), p=3.0, reduction="none"),
    call("triplet_margin_with_distance_loss", FLAT, OTHER, data(3, 4)),
    call("multi_margin_loss", FLAT, CLASSES),
    call("multi_margin_loss", FLAT, CLASSES, p=2, margin=0.6, weight=data(4, low=0.1), reduction="none"),
    call("multi_margin_loss", FLAT[0], CLASSES[0]),
    call("multilabel_margin_loss", FLAT, np.array([[1, 3, -1, 0], [-1, 0, 0, 0], [0, 1, 2, 3]])),
    call("multilabel_soft_margin_loss", FLAT, PROBABILITIES, data(4, low=0.1)),
    call("cross_entropy", FLAT, CLASSES, data(4, low=0.1), label_smoothing=0.2, ignore_index=1),
    call("cross_entropy", FLAT, PROBABILITIES, data(4, low=0.1), label_smoothing=0.2),
    call("cross_entropy", FLAT[0], CLASSES[0]),
    call("nll_loss", LINE, np.arange(18).reshape(2, 9) % 4, data(4, low=0.1), reduction="none"),
    call("binary_cross_entropy", PROBABILITIES, PROBABILITIES[::-1].copy(), data(4, low=0.1)),
    call(
        "binary_cross_entropy_with_logits",
        FLAT * 9,
        PROBABILITIES,
        data(3, 4, low=0.1),
        pos_weight=data(4, low=0.1),
        reduction="sum",
    ),
]
SYMBOLS = np.array([[1, 0, 4, 1], [2, 2, 3, 0]], np.int64)
EMBEDDINGS = [
    call("embedding", SYMBOLS, data(5, 3)),
    call("embedding", SYMBOLS, data(5, 3), padding_idx=-3),
    call("embedding_bag", SYMBOLS, data(5, 3)),
    call("embedding_bag", SYMBOLS, data(5, 3), mode="max"),
    call("embedding_bag", SYMBOLS, data(5, 3), mode="mean", padding_idx=2),
    call("embedding_bag", SYMBOLS.flatten(), data(5, 3), np.array([0, 3, 3, 7]), mode="sum"),
    call("embedding_bag", SYMBOLS, data(5, 3), mode="sum", per_sample_weights=data(2, 4)),
    call(
        "embedding_bag",
        SYMBOLS.flatten(),
        data(5, 3),
        np.array([0, 2, 8]),
        mode="max",
        include_last_offset=True,
    ),
]
HEADS = [data(2, 4, 5, 6, seed=1), data(2, 4, 7, 6, seed=2), data(2, 4, 7, 3, seed=3)]
ATTENTION = [
    call("scaled_dot_product_attention", *HEADS),
    call("scaled_dot_product_attention", *HEADS, is_causal=True, scale=0.2),
    call("scaled_dot_product_attention", *HEADS, data(5, 7)),
    call("scaled_dot_product_attention", *HEADS, data(4, 5, 7) > 0),
    call("scaled_dot_product_attention", HEADS[0], HEADS[1][:, :2], HEADS[2][:, :2], enable_gqa=True),
]
CALLS = ACTIVATIONS + PRODUCTS + POOLS + RESIZES + NORMS + LOSSES + EMBEDDINGS + ATTENTION


def names(calls: list[Any]) -> Iterator[str]:
    for name, arrays, options in calls:
        said = [str(a) for a in arrays if not isinstance(a, np.ndarray)]
        said += [f"{k}={v}" for k, v in options.items() if not isinstance(v, np.ndarray)]
        yield "-".join([name, *said])


#: Losses whose weights and targets PyTorch does not differentiate.
_FIXED = {
    "cross_entropy", "nll_loss", "multi_margin_loss", "binary_cross_entropy", "multilabel_soft_margin_loss",
    "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "soft_margin_loss",
    "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss",
}  # fmt: skip


def compare(name: str, arrays: list[Any], options: dict[str, Any], device: str | None = None) -> None:
    torch = require("torch")
    theirs = getattr(torch.nn.functional, name)
    ours = getattr(functional, name)
    tensors = [a for a in arrays if isinstance(a, (np.ndarray, np.integer))]
    tensors = [np.asarray(a) for a in tensors]
    trained = 2 if name in ("margin_ranking_loss", "cosine_embedding_loss") else 1 if name in _FIXED else 9
    keys = [k for k, v in options.items() if isinstance(v, np.ndarray)]

    def filled(make: Any, given: tuple[Any, ...]) -> Any:
        left = list(given)
        args = [left.pop(0) if isinstance(a, (np.ndarray, np.integer)) else a for a in arrays]
        more = {k: make(v) if k in keys else v for k, v in options.items()}
        return args, more

    def run_ours(*given: Tensor) -> Tensor:
        args, more = filled(Tensor, tuple(t if i < trained else t.detach() for i, t in enumerate(given)))
        return ours(*args, **more)

    def run_theirs(*given: Any) -> Any:
        args, more = filled(
            torch.tensor, tuple(t if i < trained else t.detach() for i, t in enumerate(given))
        )
        return theirs(*args, **more)

    with Context(DEV=device) if device else Context():
        alike(run_ours, run_theirs, tensors)


def alike(ours: Any, theirs: Any, arrays: list[Any], rtol: float = 2e-4, atol: float = 2e-5) -> None:
    """The same result as PyTorch and the same gradients of a weighted sum of it, in one run."""
    torch = require("torch")
    floats = [np.issubdtype(a.dtype, np.floating) for a in arrays]
    other = [torch.tensor(a, requires_grad=f) for a, f in zip(arrays, floats, strict=True)]
    expected = theirs(*other)
    wanted = expected.detach().numpy()
    weights = data(*wanted.shape, seed=99, low=0.5, high=1.5)
    if expected.requires_grad:
        (expected * torch.tensor(weights)).sum().backward()
    reached = [o.grad is not None and bool(o.grad.any()) for o in other]
    mine = [Tensor(a, requires_grad=r or None) for a, r in zip(arrays, reached, strict=True)]
    found = ours(*mine)
    trained = [m for m, r in zip(mine, reached, strict=True) if r]
    grads = (found * Tensor(weights)).sum().gradient(*trained) if trained else []
    Tensor.realize(found, *grads)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=rtol, atol=atol)
    theirs_reached = [o.grad.numpy() for o, r in zip(other, reached, strict=True) if r]
    for number, (grad, theirs_grad) in enumerate(zip(grads, theirs_reached, strict=True)):
        np.testing.assert_allclose(grad.numpy(), theirs_grad, rtol, atol, err_msg=f"gradient {number}")


@needs("torch")
@pytest.mark.parametrize(("name", "arrays", "options"), CALLS, ids=list(names(CALLS)))
def test_as_in_pytorch(name: str, arrays: list[Any], options: dict[str, Any]) -> None:
    compare(name, arrays, options)


#: One of each kind, on the other devices.
SAMPLE = [
    "glu-dim=1",
    "conv2d-stride=(2, 1)-padding=(1, 0)",
    "pixel_shuffle-2",
    "avg_pool2d-3-2-1-True-False",
    "interpolate-14-mode=linear",
    "cosine_similarity",
]


@needs("torch")
@pytest.mark.parametrize("device", [pytest.param("CLANG", marks=needs("clang")), "PYTHON"])
@pytest.mark.parametrize("case", SAMPLE)
def test_a_sample_on_other_devices(case: str, device: str) -> None:
    compare(*dict(zip(names(CALLS), CALLS, strict=True))[case], device=device)


def test_linear_interpolation_along_several_axes():
    """As older scripts call it: bilinear along two axes, trilinear along three."""
    x = Tensor.arange(12).reshape(1, 1, 3, 4)
    assert x.interpolate((5, 7), mode="linear").tolist() == x.interpolate((5, 7), mode="bilinear").tolist()


@pytest.mark.parametrize("name", ["celu", "hardsigmoid", "hardswish", "hardtanh", "mish", "selu"])
def test_inplace_changes_nothing(name: str) -> None:
    x, function = Tensor([-1.0, 2.0]), getattr(functional, name)
    assert function(x, inplace=True).tolist() == function(x).tolist()
    assert functional.threshold(x, 0.5, 9.0, True).tolist() == [9.0, 2.0]
    assert x.tolist() == [-1.0, 2.0]


@needs("torch")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        {"divisor_override": 4},
    ],
)
def test_averages_of_integers_are_integers(options: dict[str, Any]) -> None:
    torch = require("torch")
    x = np.random.RandomState(0).randint(-50, 50, (2, 3, 7, 9))
    ours, theirs = (
        f(t(x), 3, **options)
        for f, t in ((functional.avg_pool2d, Tensor), (torch.nn.functional.avg_pool2d, torch.tensor))
    )
    assert ours.dtype == dtypes.int64
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area", "nearest"])
def test_an_image_of_one_number_keeps_it(mode: str, dtype: str) -> None:
    image = Tensor([0.1, 0.7, 3.3]).cast(dtype).reshape(1, 3, 1, 1)
    assert (image.interpolate((3, 5), mode=mode) == image).all().item()


@pytest.mark.parametrize("name", ["clamp", "hardtanh", "hardsigmoid", "hardswish", "relu6"])
def test_slopes_at_a_limit_are_zero(name: str) -> None:
    low, high = {"clamp": (-1, 1), "hardtanh": (-1, 1), "relu6": (0, 6)}.get(name, (-3, 3))
    x = Tensor([float(low), float(high)], requires_grad=True)
    y = x.clamp(low, high) if name == "clamp" else getattr(x, name)()
    assert y.sum().gradient(x)[0].tolist() == [0.0, 1.0 if name == "hardswish" else 0.0]

"""Methods against PyTorch: values of kernels and oracle, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require
from tests.tensor.support import data, like_torch

pytestmark = needs("torch")


def torch_() -> Any:
    return require("torch")


def functional() -> Any:
    return require("torch").nn.functional


X = data(3, 4, seed=1)
Y = data(3, 4, seed=2)
ROW = data(4, seed=3)
POSITIVE = data(3, 4, seed=4, low=0.1, high=3.0)
UNIT = data(3, 4, seed=5, low=-0.95, high=0.95)
EDGES = np.array(
    [-np.inf, -1e30, -100.0, -20.0, -0.0, 0.0, 1e-6, 20.0, 100.0, 1e30, np.inf, np.nan], np.float32
)
INTS = np.array([[-7, -1, 0, 1], [2, 3, 5, 8], [100, -100, 9, 4]], np.int32)

Case = tuple[Callable[..., Any], Callable[..., Any], list[Any]]

UNARY: dict[str, Any] = {
    "abs": X,
    "neg": X,
    "square": X,
    "sign": X,
    "exp": X,
    "exp2": X,
    "expm1": X,
    "log1p": UNIT,
    "sqrt": POSITIVE,
    "rsqrt": POSITIVE,
    "log": POSITIVE,
    "log2": POSITIVE,
    "log10": POSITIVE,
    "reciprocal": POSITIVE,
    "sin": X * 4,
    "cos": X * 4,
    "tan": UNIT,
    "asin": UNIT,
    "acos": UNIT,
    "atan": X * 4,
    "sinh": X,
    "cosh": X,
    "tanh": X,
    "asinh": X * 9,
    "acosh": POSITIVE + 1,
    "atanh": UNIT,
    "erf": X,
    "sigmoid": X * 4,
    "relu": X,
    "floor": X * 3,
    "ceil": X * 3,
    "round": X * 3,
    "trunc": X * 3,
    "frac": X * 3,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    torch = torch_()
    like_torch(lambda x: getattr(x, name)(), lambda x: getattr(torch, name)(x), [UNARY[name]])


ACTIVATIONS: dict[str, tuple[Callable[..., Any], str, dict[str, Any]]] = {
    "gelu tanh": (lambda x: x.gelu(), "gelu", {"approximate": "tanh"}),
    "gelu": (lambda x: x.gelu("none"), "gelu", {}),
    "silu": (lambda x: x.silu(), "silu", {}),
    "softplus": (lambda x: x.softplus(), "softplus", {}),
    "softplus beta": (lambda x: x.softplus(beta=3.0), "softplus", {"beta": 3.0}),
    "elu": (lambda x: x.elu(0.7), "elu", {"alpha": 0.7}),
    "celu": (lambda x: x.celu(0.7), "celu", {"alpha": 0.7}),
    "selu": (lambda x: x.selu(), "selu", {}),
    "leaky_relu": (lambda x: x.leaky_relu(0.1), "leaky_relu", {"negative_slope": 0.1}),
    "relu6": (lambda x: (x * 4).relu6(), "relu6", {"x4": 1}),
    "hardswish": (lambda x: (x * 4).hardswish(), "hardswish", {"x4": 1}),
    "hardsigmoid": (lambda x: (x * 4).hardsigmoid(), "hardsigmoid", {"x4": 1}),
    "hardtanh": (lambda x: x.hardtanh(), "hardtanh", {}),
    "mish": (lambda x: x.mish(), "mish", {}),
    "softsign": (lambda x: x.softsign(), "softsign", {}),
    "logsigmoid": (lambda x: x.logsigmoid(), "logsigmoid", {}),
    "softmin": (lambda x: x.softmin(-1), "softmin", {"dim": -1}),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    ours, theirs, options = ACTIVATIONS[name]
    more = {k: v for k, v in options.items() if k != "x4"}
    scale = 4 if "x4" in options else 1
    like_torch(ours, lambda x: getattr(functional(), theirs)(x * scale, **more), [X])


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "tanh",
        "sigmoid",
        "relu",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "trunc",
        "erf",
        "log1p",
    ],
)
def test_functions_at_the_edges(name: str) -> None:
    like_torch(lambda x: getattr(x, name)(), lambda x: getattr(torch_(), name)(x), [EDGES], backward=False)


@pytest.mark.parametrize("name", ["softplus", "gelu", "silu", "elu", "logsigmoid", "softsign", "mish"])
def test_activations_have_finite_gradients_far_out(name: str) -> None:
    x = np.array([-200.0, -90.0, -30.0, 30.0, 90.0, 200.0], np.float32)
    options = {"approximate": "tanh"} if name == "gelu" else {}
    like_torch(lambda x: getattr(x, name)(), lambda x: getattr(functional(), name)(x, **options), [x])


BINARY: dict[str, Case] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, [X, ROW]),
    "add number": (lambda a: 1.5 + a + 2, lambda a: 1.5 + a + 2, [X]),
    "sub": (lambda a, b: a - b, lambda a, b: a - b, [X, ROW]),
    "rsub": (lambda a: 2 - a, lambda a: 2 - a, [X]),
    "mul": (lambda a, b: a * b, lambda a, b: a * b, [X[:, :1], ROW]),
    "div": (lambda a, b: a / b, lambda a, b: a / b, [X, POSITIVE]),
    "rdiv": (lambda a: 2 / a, lambda a: 2 / a, [POSITIVE]),
    "int div": (lambda a: a / 3, lambda a: a / 3, [INTS]),
    "floordiv": (lambda a, b: a // b, lambda a, b: a // b, [X * 5, POSITIVE]),
    "floordiv int": (lambda a: a // 3, lambda a: a // 3, [INTS]),
    "mod": (lambda a, b: a % b, lambda a, b: a % b, [X * 5, POSITIVE]),
    "mod int": (lambda a: a % -3, lambda a: a % -3, [INTS]),
    "fmod": (lambda a: a.fmod(1.5), lambda a: a.fmod(1.5), [X * 5]),
    "idiv": (lambda a: a.idiv(3), lambda a: torch_().div(a, 3, rounding_mode="trunc"), [INTS]),
    "pow 2": (lambda a: a**2, lambda a: a**2, [X]),
    "pow 3": (lambda a: a**3, lambda a: a**3, [X]),
    "pow -2": (lambda a: a**-2, lambda a: a**-2, [POSITIVE]),
    "pow 0.5": (lambda a: a**0.5, lambda a: a**0.5, [POSITIVE]),
    "pow 2.5": (lambda a: a**2.5, lambda a: a**2.5, [POSITIVE]),
    "pow int": (lambda a: a**3, lambda a: a**3, [INTS]),
    "pow tensors": (lambda a, b: a**b, lambda a, b: a**b, [POSITIVE, X]),
    "rpow": (lambda a: 3.0**a, lambda a: 3.0**a, [X]),
    "rpow 2": (lambda a: 2**a, lambda a: 2**a, [X]),
    "maximum": (lambda a, b: a.maximum(b), lambda a, b: torch_().maximum(a, b), [X, Y]),
    "minimum": (lambda a, b: a.minimum(b), lambda a, b: torch_().minimum(a, b), [X, Y]),
    "where": (lambda a, b: (a > 0).where(a, b), lambda a, b: torch_().where(a > 0, a, b), [X, Y]),
    "where torch": (lambda a, b: a.where(a > 0, b), lambda a, b: a.where(a > 0, b), [X, Y]),
    "where numbers": (lambda a: (a > 0).where(1.0, 0.0), lambda a: (a > 0).float(), [X]),
    "clamp": (lambda a: a.clamp(-1, 0.5), lambda a: a.clamp(-1, 0.5), [X]),
    "clamp tensor": (lambda a, b: a.clamp(min=b), lambda a, b: a.clamp(min=b), [X, ROW]),
    "lerp": (lambda a, b: a.lerp(b, 0.3), lambda a, b: a.lerp(b, 0.3), [X, Y]),
    "logaddexp": (lambda a, b: a.logaddexp(b), lambda a, b: a.logaddexp(b), [X * 30, Y * 30]),
    "copysign": (lambda a, b: a.copysign(b), lambda a, b: a.copysign(b), [X, Y]),
    "atan2": (lambda a, b: a.atan2(b), lambda a, b: a.atan2(b), [X, Y]),
    "masked_fill": (lambda a, b: a.masked_fill(b > 0, -9), lambda a, b: a.masked_fill(b > 0, -9), [X, Y]),
    "compare": (lambda a, b: (a < b) | (a >= 1), lambda a, b: (a < b) | (a >= 1), [X, Y]),
    "equal": (lambda a: (a == 3) ^ (a != 0), lambda a: (a == 3) ^ (a != 0), [INTS]),
    "bits": (lambda a: ((a & 6) | 1) ^ ~a, lambda a: ((a & 6) | 1) ^ ~a, [INTS]),
    "shift": (lambda a: (a << 2) + (a >> 1), lambda a: (a << 2) + (a >> 1), [INTS]),
    "isclose": (lambda a, b: a.isclose(b, rtol=0.5), lambda a, b: a.isclose(b, rtol=0.5), [X, Y]),
    "nan checks": (lambda a: a.isnan() | a.isinf(), lambda a: a.isnan() | a.isinf(), [EDGES]),
    "isfinite": (lambda a: a.isfinite(), lambda a: a.isfinite(), [EDGES]),
    "logical": (
        lambda a, b: a.logical_and(b).logical_xor(b.logical_not()),
        lambda a, b: a.logical_and(b).logical_xor(b.logical_not()),
        [INTS, INTS.T.reshape(3, 4)],
    ),
}


@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name: str) -> None:
    like_torch(*BINARY[name], backward=name != "floordiv")  # PyTorch has no gradient of //


T = data(2, 3, 4, seed=6)
REDUCTIONS: dict[str, Case] = {
    "sum": (lambda a: a.sum(), lambda a: a.sum(), [T]),
    "sum axis": (lambda a: a.sum(1), lambda a: a.sum(1), [T]),
    "sum axes": (lambda a: a.sum((0, -1), keepdim=True), lambda a: a.sum((0, -1), keepdim=True), [T]),
    "sum dim": (lambda a: a.sum(dim=2, keepdims=True), lambda a: a.sum(dim=2, keepdim=True), [T]),
    "sum int": (lambda a: a.sum(0), lambda a: a.sum(0), [INTS]),
    "sum bool": (lambda a: (a > 0).sum(), lambda a: (a > 0).sum(), [T]),
    "prod": (lambda a: a.prod(2), lambda a: a.prod(2), [T]),
    "max": (lambda a: a.max(1), lambda a: a.amax(1), [T]),
    "min": (lambda a: a.min((0, 1)), lambda a: a.amin((0, 1)), [T]),
    "max ties": (lambda a: a.round().max(0), lambda a: a.round().amax(0), [T]),
    "max int": (lambda a: a.max(), lambda a: a.max(), [INTS]),
    "mean": (lambda a: a.mean(1), lambda a: a.mean(1), [T]),
    "mean int": (lambda a: a.mean(), lambda a: a.float().mean(), [INTS]),
    "var": (lambda a: a.var(2), lambda a: a.var(2), [T]),
    "var biased": (lambda a: a.var(2, correction=0), lambda a: a.var(2, correction=0), [T]),
    "std": (lambda a: a.std((0, 2), keepdim=True), lambda a: a.std((0, 2), keepdim=True), [T]),
    "any": (lambda a: (a > 1.5).any(1), lambda a: (a > 1.5).any(1), [T]),
    "all": (lambda a: (a > -1.5).all(0), lambda a: (a > -1.5).all(0), [T]),
    "argmax": (lambda a: a.argmax(1), lambda a: a.argmax(1), [T]),
    "argmax all": (lambda a: a.argmax(), lambda a: a.argmax(), [T]),
    "argmin": (lambda a: a.argmin(-1, keepdim=True), lambda a: a.argmin(-1, keepdim=True), [T]),
    "softmax": (lambda a: a.softmax(), lambda a: a.softmax(-1), [T]),
    "softmax dim": (lambda a: a.softmax(dim=1), lambda a: a.softmax(1), [T * 50]),
    "log_softmax": (lambda a: a.log_softmax(1), lambda a: a.log_softmax(1), [T]),
    "logsumexp": (lambda a: a.logsumexp((0, 1)), lambda a: a.logsumexp((0, 1)), [T * 50]),
    "cumsum": (lambda a: a.cumsum(1), lambda a: a.cumsum(1), [T]),
    "cumprod": (lambda a: a.cumprod(2), lambda a: a.cumprod(2), [T]),
    "cummax": (lambda a: a.cummax(2), lambda a: a.cummax(2)[0], [T]),
    "norm": (lambda a: a.norm(axis=1), lambda a: a.norm(dim=1), [T]),
    "norm 1": (lambda a: a.norm(1, 2), lambda a: a.norm(1, 2), [T]),
    "norm 3": (lambda a: a.norm(3, 2), lambda a: a.norm(3, 2), [T]),
    "norm inf": (lambda a: a.norm(np.inf), lambda a: a.norm(np.inf), [T]),
    "scalar": (
        lambda a: a.sum(0) * a.max(-1),
        lambda a: a.sum(0) * a.amax(-1),
        [np.float32(3.0).reshape(())],
    ),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    like_torch(*REDUCTIONS[name])


MOVEMENT: dict[str, Case] = {
    "reshape": (lambda a: a.reshape(6, -1), lambda a: a.reshape(6, -1), [T]),
    "permute": (lambda a: a.permute(2, 0, 1), lambda a: a.permute(2, 0, 1), [T]),
    "transpose": (lambda a: a.transpose(-1, 0), lambda a: a.transpose(-1, 0), [T]),
    "T": (lambda a: a.T, lambda a: a.T, [X]),
    "movedim": (lambda a: a.movedim(0, -1), lambda a: a.movedim(0, -1), [T]),
    "expand": (lambda a: a.expand(5, -1, 4), lambda a: a.expand(5, -1, 4), [X[:, :1]]),
    "flip": (lambda a: a.flip(0, -1), lambda a: a.flip(0, -1), [T]),
    "squeeze": (lambda a: a.unsqueeze(1).squeeze(1).unsqueeze(-1), lambda a: a.unsqueeze(-1), [T]),
    "flatten": (lambda a: a.flatten(1), lambda a: a.flatten(1), [T]),
    "unflatten": (lambda a: a.unflatten(-1, (2, -1)), lambda a: a.unflatten(-1, (2, -1)), [T]),
    "pad": (
        lambda a: a.pad((1, 2, 0, 1), value=3.0),
        lambda a: functional().pad(a, (1, 2, 0, 1), value=3.0),
        [T],
    ),
    "pad cut": (lambda a: a.pad((-1, 2)), lambda a: functional().pad(a, (-1, 2)), [T]),
    "pad reflect": (
        lambda a: a.pad((2, 1), mode="reflect"),
        lambda a: functional().pad(a, (2, 1), mode="reflect"),
        [T],
    ),
    "pad replicate": (
        lambda a: a.pad((2, 1), mode="replicate"),
        lambda a: functional().pad(a, (2, 1), mode="replicate"),
        [T],
    ),
    "pad circular": (
        lambda a: a.pad((2, 1), mode="circular"),
        lambda a: functional().pad(a, (2, 1), mode="circular"),
        [T],
    ),
    "cat": (lambda a, b: a.cat(b, dim=1), lambda a, b: torch_().cat([a, b], 1), [X, Y]),
    "cat many": (
        lambda a, b: Tensor.cat([a, b, a * 2, b, b], 0),
        lambda a, b: torch_().cat([a, b, a * 2, b, b], 0),
        [X, Y],
    ),
    "stack": (lambda a, b: Tensor.stack(a, b, dim=-1), lambda a, b: torch_().stack([a, b], -1), [X, Y]),
    "split": (
        lambda a: a.split(3, 2)[1] * a.split([1, 3], 2)[0],
        lambda a: a.split(3, 2)[1] * a.split([1, 3], 2)[0],
        [T],
    ),
    "chunk": (lambda a: a.chunk(2, 1)[1], lambda a: a.chunk(2, 1)[1], [T]),
    "repeat": (lambda a: a.repeat(2, 1, 3), lambda a: a.repeat(2, 1, 3), [X]),
    "repeat_interleave": (lambda a: a.repeat_interleave(3, 1), lambda a: a.repeat_interleave(3, 1), [X]),
    "roll": (
        lambda a: a.roll(1, 2) + a.roll((-1, 3), (0, 1)),
        lambda a: a.roll(1, 2) + a.roll((-1, 3), (0, 1)),
        [T],
    ),
    "roll flat": (lambda a: a.roll(5), lambda a: a.roll(5), [T]),
    "unfold": (lambda a: a.unfold(2, 2, 1), lambda a: a.unfold(2, 2, 1), [T]),
    "unfold step": (lambda a: a.unfold(0, 3, 2), lambda a: a.unfold(0, 3, 2), [data(9, 2)]),
    "diagonal": (lambda a: a.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2), [T]),
    "diag": (lambda a: a.diag(1), lambda a: a.diag(1), [ROW]),
    "tril": (lambda a: a.tril(1), lambda a: a.tril(1), [T]),
    "triu": (lambda a: a.triu(), lambda a: a.triu(), [T]),
    "meshgrid": (
        lambda a, b: a.meshgrid(b)[0] * a.meshgrid(b)[1],
        lambda a, b: torch_().meshgrid(a, b, indexing="ij")[0] * torch_().meshgrid(a, b, indexing="ij")[1],
        [ROW, data(3)],
    ),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    like_torch(*MOVEMENT[name])


A, B = data(3, 5, seed=7), data(5, 4, seed=8)
PRODUCTS: dict[str, Case] = {
    "matrices": (lambda a, b: a @ b, lambda a, b: a @ b, [A, B]),
    "line line": (lambda a, b: a.dot(b), lambda a, b: a.dot(b), [ROW, data(4, seed=9)]),
    "line matrix": (lambda a, b: a @ b, lambda a, b: a @ b, [data(5), B]),
    "matrix line": (lambda a, b: a @ b, lambda a, b: a @ b, [A, data(5)]),
    "batch": (lambda a, b: a @ b, lambda a, b: a @ b, [data(2, 1, 3, 5), data(4, 5, 2)]),
    "batch line": (lambda a, b: a @ b, lambda a, b: a @ b, [data(2, 3, 5), data(5)]),
    "int": (lambda a: a @ a.T, lambda a: a @ a.T, [INTS]),
    "outer": (lambda a, b: a.outer(b), lambda a, b: a.outer(b), [ROW, data(3)]),
    "einsum ij,jk": (
        lambda a, b: Tensor.einsum("ij,jk->ik", a, b),
        lambda a, b: torch_().einsum("ij,jk->ik", a, b),
        [A, B],
    ),
    "einsum trace": (lambda a: Tensor.einsum("ii", a), lambda a: torch_().einsum("ii", a), [data(4, 4)]),
    "einsum diagonal": (
        lambda a: Tensor.einsum("ii->i", a),
        lambda a: torch_().einsum("ii->i", a),
        [data(4, 4)],
    ),
    "einsum sum": (lambda a: Tensor.einsum("ijk->k", a), lambda a: torch_().einsum("ijk->k", a), [T]),
    "einsum dots": (
        lambda a, b: Tensor.einsum("...ij,kj->...ik", a, b),
        lambda a, b: torch_().einsum("...ij,kj->...ik", a, b),
        [T, data(5, 4)],
    ),
    "einsum three": (
        lambda a, b, c: Tensor.einsum("ij,jk,k->i", a, b, c),
        lambda a, b, c: torch_().einsum("ij,jk,k->i", a, b, c),
        [A, B, ROW],
    ),
    "einsum implicit": (
        lambda a, b: Tensor.einsum("ij,jk", a, b),
        lambda a, b: torch_().einsum("ij,jk", a, b),
        [A, B],
    ),
    "tensordot": (
        lambda a, b: a.tensordot(b, ([2, 0], [0, 1])),
        lambda a, b: torch_().tensordot(a, b, ([2, 0], [0, 1])),
        [T, data(4, 2, 5)],
    ),
    "trace": (lambda a: a.trace(), lambda a: a.trace(), [data(4, 4)]),
    "addmm": (
        lambda c, a, b: c.addmm(a, b, beta=0.5, alpha=2),
        lambda c, a, b: c.addmm(a, b, beta=0.5, alpha=2),
        [data(3, 4), A, B],
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    like_torch(*PRODUCTS[name])


IMAGE = data(2, 4, 7, 6, seed=10)
CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "plain": ({}, (6, 4, 3, 3)),
    "padding": ({"padding": 1}, (6, 4, 3, 3)),
    "padding uneven": ({"padding": (2, 1)}, (3, 4, 3, 2)),
    "stride": ({"stride": 2, "padding": 1}, (3, 4, 3, 3)),
    "stride over": ({"stride": 3}, (3, 4, 2, 2)),
    "dilation": ({"dilation": 2}, (3, 4, 3, 2)),
    "groups": ({"groups": 2, "padding": 1}, (6, 2, 3, 3)),
    "depthwise": ({"groups": 4}, (4, 1, 3, 3)),
    "pointwise": ({}, (5, 4, 1, 1)),
    "pointwise stride": ({"stride": 2}, (5, 4, 1, 1)),
    "patches": ({"stride": 2}, (5, 4, 2, 2)),
    "same": ({"padding": "same"}, (5, 4, 3, 2)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    options, shape = CONVOLUTIONS[name]
    arrays = [IMAGE, data(*shape, seed=11), data(shape[0], seed=12)]
    like_torch(
        lambda x, w, b: x.conv2d(w, b, **options),
        lambda x, w, b: functional().conv2d(x, w, b, **options),
        arrays,
    )


def test_convolutions_of_other_ranks() -> None:
    line, cube = data(2, 3, 9), data(1, 2, 4, 5, 3)
    like_torch(
        lambda x, w: x.conv1d(w, padding=1),
        lambda x, w: functional().conv1d(x, w, padding=1),
        [line, data(4, 3, 3)],
    )
    like_torch(lambda x, w: x.conv3d(w), lambda x, w: functional().conv3d(x, w), [cube, data(3, 2, 2, 3, 2)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"dilation": 2},
        {"groups": 2},
    ],
    ids=str,
)
def test_transposed_convolutions(options: dict[str, Any]) -> None:
    arrays = [data(2, 4, 5, 4), data(4, 3, 3, 2), data(3 * options.get("groups", 1))]
    like_torch(
        lambda x, w, b: x.conv_transpose2d(w, b, **options),
        lambda x, w, b: functional().conv_transpose2d(x, w, b, **options),
        arrays,
    )


@pytest.mark.parametrize(
    "options",
    [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": (2, 3), "stride": 1}]
    + [
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
    ],
    ids=str,
)
def test_pooling(options: dict[str, Any]) -> None:
    like_torch(lambda x: x.max_pool2d(**options), lambda x: functional().max_pool2d(x, **options), [IMAGE])
    like_torch(lambda x: x.avg_pool2d(**options), lambda x: functional().avg_pool2d(x, **options), [IMAGE])
    like_torch(
        lambda x: x.avg_pool2d(**options, count_include_pad=False),
        lambda x: functional().avg_pool2d(x, **options, count_include_pad=False),
        [IMAGE],
    )


def test_pooling_with_dilation() -> None:
    like_torch(
        lambda x: x.max_pool2d(2, dilation=2), lambda x: functional().max_pool2d(x, 2, dilation=2), [IMAGE]
    )


def test_normalization() -> None:
    w, b = data(4, seed=13), data(4, seed=14)
    F = functional()
    like_torch(lambda x: x.layernorm(), lambda x: F.layer_norm(x, (6,)), [IMAGE])
    like_torch(lambda x: x.layernorm((-2, -1)), lambda x: F.layer_norm(x, (7, 6)), [IMAGE])
    like_torch(lambda x: x.rms_norm(eps=1e-6), lambda x: F.rms_norm(x, (6,), eps=1e-6), [IMAGE])
    like_torch(lambda x, w, b: x.group_norm(2, w, b), lambda x, w, b: F.group_norm(x, 2, w, b), [IMAGE, w, b])

    def batchnorm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        mean = x.mean((0, 2, 3))
        return x.batchnorm(w, b, mean, (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt())

    like_torch(
        batchnorm, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [IMAGE, w, b], atol=1e-4
    )


def test_attention() -> None:
    q, k, v = data(2, 3, 5, 4), data(2, 3, 6, 4, seed=1), data(2, 3, 6, 7, seed=2)
    F = functional()
    mask = data(5, 6, seed=3)
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v), F.scaled_dot_product_attention, [q, k, v]
    )
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [q, k[:, :, :5], v[:, :, :5]],
    )
    like_torch(
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m, scale=0.3),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        [q, k, v, mask],
    )
    like_torch(
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m > -1),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > -1),
        [q, k, v, mask],
    )
    shared = [data(2, 4, 5, 4), data(2, 2, 6, 4), data(2, 2, 6, 4)]
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        shared,
    )


LOGITS, CLASSES = data(6, 5, seed=15), np.array([0, 4, 2, 2, 1, 3])
LOSSES: dict[str, Case] = {
    "cross_entropy": (
        lambda x, y: x.cross_entropy(y),
        lambda x, y: functional().cross_entropy(x, y),
        [LOGITS, CLASSES],
    ),
    "smoothing": (
        lambda x, y: x.cross_entropy(y, label_smoothing=0.1),
        lambda x, y: functional().cross_entropy(x, y, label_smoothing=0.1),
        [LOGITS, CLASSES],
    ),
    "sum": (
        lambda x, y: x.cross_entropy(y, "sum"),
        lambda x, y: functional().cross_entropy(x, y, reduction="sum"),
        [LOGITS, CLASSES],
    ),
    "none": (
        lambda x, y: x.cross_entropy(y, "none"),
        lambda x, y: functional().cross_entropy(x, y, reduction="none"),
        [LOGITS, CLASSES],
    ),
    "ignore": (
        lambda x, y: x.cross_entropy(y, ignore_index=2),
        lambda x, y: functional().cross_entropy(x, y, ignore_index=2),
        [LOGITS, CLASSES],
    ),
    "weight": (
        lambda x, y, w: x.cross_entropy(y, weight=w),
        lambda x, y, w: functional().cross_entropy(x, y, weight=w.detach()),
        [LOGITS, CLASSES, data(5, low=0.1)],
    ),
    "weight smoothing": (
        lambda x, y, w: x.cross_entropy(y, weight=w, label_smoothing=0.2, ignore_index=2),
        lambda x, y, w: functional().cross_entropy(
            x, y, weight=w.detach(), label_smoothing=0.2, ignore_index=2
        ),
        [LOGITS, CLASSES, data(5, low=0.1)],
    ),
    "images": (
        lambda x, y: x.cross_entropy(y),
        lambda x, y: functional().cross_entropy(x, y),
        [data(2, 5, 3, 2), CLASSES.reshape(2, 3)[:, :, None].repeat(2, 2)],
    ),
    "probabilities": (
        lambda x, y: x.cross_entropy(y.softmax(1).detach()),
        lambda x, y: functional().cross_entropy(x, y.softmax(1).detach()),
        [LOGITS, data(6, 5)],
    ),
    "nll": (
        lambda x, y: x.log_softmax(1).nll_loss(y),
        lambda x, y: functional().nll_loss(x.log_softmax(1), y),
        [LOGITS, CLASSES],
    ),
    "sparse": (
        lambda x, y: x.sparse_categorical_crossentropy(y),
        lambda x, y: functional().cross_entropy(x, y),
        [LOGITS, CLASSES],
    ),
    "sparse ignore": (
        lambda x, y: x.sparse_categorical_crossentropy(y - 1),
        lambda x, y: functional().cross_entropy(x, y - 1, ignore_index=-1),
        [LOGITS, CLASSES],
    ),
    "mse": (lambda x, y: x.mse_loss(y), lambda x, y: functional().mse_loss(x, y), [X, Y]),
    "l1": (
        lambda x, y: x.l1_loss(y, "sum"),
        lambda x, y: functional().l1_loss(x, y, reduction="sum"),
        [X, Y],
    ),
    "bce": (
        lambda x, y: x.sigmoid().binary_crossentropy(y.sigmoid().detach()),
        lambda x, y: functional().binary_cross_entropy(x.sigmoid(), y.sigmoid().detach()),
        [X, Y],
    ),
    "bce logits": (
        lambda x, y: x.binary_crossentropy_logits(y.sigmoid().detach()),
        lambda x, y: functional().binary_cross_entropy_with_logits(x, y.sigmoid().detach()),
        [X * 20, Y],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    like_torch(*LOSSES[name])


def test_one_hot_and_linear() -> None:
    like_torch(lambda y: y.one_hot(6), lambda y: functional().one_hot(y, 6), [CLASSES])
    like_torch(lambda y: y.one_hot(), lambda y: functional().one_hot(y), [CLASSES])
    like_torch(lambda x, w, b: x.linear(w.T, b), functional().linear, [A, data(2, 5), data(2)])

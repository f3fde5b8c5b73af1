"""Operations of every kind on a page: browsers compile WGSL of their own, and more strictly than wgpu."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import needs

pytestmark = needs("chromium", "playwright")

#: What each operation does with the tensors of `given`.
QUICK = {
    "sine of large numbers": lambda t: (t["x"] * 100).sin(),
    "a power": lambda t: t["x"].abs() ** t["x"],
    "no number": lambda t: t["x"].sqrt().isnan(),
    "float to int8": lambda t: (t["x"] * 100).cast("int8"),
    "bits": lambda t: t["x"].bitcast("int32"),
    "int64 product": lambda t: t["long"] * t["long"],
    "int64 remainder": lambda t: t["long"] % (t["long"].flip(1).abs() + 1),
    "bytes": lambda t: t["byte"] * t["byte"] + 200,
    "halves": lambda t: t["half"] @ t["half"].T,
    "sum of many": lambda t: t["many"].sum(),
    "greatest of many": lambda t: t["many"].argmax(),
    "softmax": lambda t: t["x"].softmax(1),
    "cumulative": lambda t: t["many"][:5000].cumsum(0),
    "product": lambda t: t["matrix"].T @ t["matrix"],
    "convolution": lambda t: t["image"].conv2d(t["window"], padding=1).max_pool2d(),
    "gather": lambda t: t["x"].gather(1, t["int"].abs() % 40),
    "scatter": lambda t: t["x"].scatter(1, (t["int"].abs() % 40)[:, :5], 9.0),
    "sort": lambda t: t["x"][:2, :12].sort(1)[0],
    "transform": lambda t: t["matrix"][:, :64].rfft(),
}
OTHERS = {
    "exp": lambda t: t["x"].exp(),
    "log": lambda t: t["x"].abs().log(),
    "tanh": lambda t: t["x"].tanh(),
    "erf": lambda t: t["x"].erf(),
    "square root": lambda t: t["x"].abs().rsqrt(),
    "floor": lambda t: (t["x"] * 5).floor() + (t["x"] * 5).round() + (t["x"] * 5).trunc(),
    "quotient": lambda t: t["x"] / t["x"].flip(0),
    "remainder": lambda t: t["x"] % 0.7 + t["x"].fmod(0.7),
    "infinite": lambda t: (t["x"] / 0).isinf(),
    "int32": lambda t: t["int"] // 7 + t["int"] % 7 + (t["int"] << 3) + (t["int"] >> 2),
    "int32 bits": lambda t: ~t["int"] ^ t["int"].flip(0),
    "comparison": lambda t: t["int"] < t["int"].flip(1),
    "int64 quotient": lambda t: t["long"] // 12345,
    "int64 sum": lambda t: t["long"].sum(0) + t["long"].max(0),
    "int64 to float": lambda t: t["long"].float(),
    "sum of bytes": lambda t: t["byte"].sum(1),
    "exp of halves": lambda t: t["half"].exp(),
    "variance": lambda t: t["many"].var(),
    "least": lambda t: t["x"].argmin(0),
    "product of all": lambda t: t["x"].prod(1),
    "logsumexp": lambda t: t["x"].logsumexp(1),
    "layer norm": lambda t: t["x"].layernorm(),
    "cumulative product": lambda t: t["x"].cumprod(1),
    "matrix and vector": lambda t: t["matrix"] @ t["matrix"][0],
    "strides": lambda t: t["image"].conv2d(t["window"], stride=2).avg_pool2d(),
    "attention": lambda t: Tensor.scaled_dot_product_attention(*[t["matrix"][:64].reshape(1, 2, 64, 65)] * 3),
    "rows": lambda t: t["x"][t["int"][:, 0].abs() % 6],
    "one hot": lambda t: (t["byte"][0] % 5).one_hot(5),
    "pad": lambda t: t["x"].pad(((1, 2), (3, 0)), value=2.0).roll(3, 1),
    "joined": lambda t: t["x"].cat(t["x"], dim=1).tril(),
    "choice": lambda t: (t["x"] > 0).where(t["x"], -1.0),
    "top": lambda t: t["x"][0].topk(5)[0],
    "any": lambda t: (t["x"] > 2).any(1) & (t["x"] > -3).all(),
    "interpolation": lambda t: t["image"].interpolate((30, 30)),
    "windows": lambda t: t["x"].unfold(1, 5, 3),
    "activations": lambda t: t["x"].softplus() + t["x"].silu() + t["x"].mish() + t["x"].elu() + t["x"].gelu(),
    "int64 matrices": lambda t: (t["long"] % 7) @ (t["long"] % 5).T,
}


def given() -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((6, 40)).astype(np.float32))
    return {
        "x": x,
        "half": x.half().realize(),
        "int": Tensor(rng.integers(-50, 50, (6, 40)).astype(np.int32)),
        "long": Tensor(rng.integers(-(1 << 40), 1 << 40, (6, 40))),
        "byte": Tensor(rng.integers(0, 255, (6, 40)).astype(np.uint8)),
        "many": Tensor(rng.standard_normal(300_000).astype(np.float32)),
        "matrix": Tensor(rng.standard_normal((200, 130)).astype(np.float32)),
        "image": Tensor(rng.standard_normal((2, 3, 20, 20)).astype(np.float32)),
        "window": Tensor(rng.standard_normal((8, 3, 3, 3)).astype(np.float32)),
    }


@pytest.mark.parametrize(
    "operations", [pytest.param(QUICK, id="some"), pytest.param(OTHERS, marks=pytest.mark.slow, id="others")]
)
def test_as_on_the_cpu(exported, operations):
    """Integers to the bit, floats but for rounding: sums are in another order."""
    tensors = given()

    def compute(tensors):
        return [function(tensors) for function in operations.values()]

    page = exported(compute, tensors)
    found = page.run(**{
        f"tensors_{name}": (tensor.bitcast("uint16") if tensor.dtype is dtypes.half else tensor).numpy()
        for name, tensor in tensors.items()
    })  # fmt: skip
    for number, (name, expected) in enumerate(zip(operations, compute(tensors), strict=True)):
        got = found[f"result_{number}"]
        if dtypes.is_float(expected.dtype):
            scale = max(1.0, float(expected.abs().max().item()))
            small = 1e-3 if expected.dtype is dtypes.half else 1e-5
            np.testing.assert_allclose(got, expected.numpy(), rtol=small, atol=small * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(got, expected.numpy(), err_msg=name)

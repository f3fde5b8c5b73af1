"""Single operations beside PyTorch: convolutions, pools, orders, lookups, transforms, layouts; one core.

python -m bench single_ops                   all
python -m bench single_ops --cases pool      those with one of these words in their names
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .beside import Case, table


def _normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def _places(size: int, count: int) -> Callable[[np.random.Generator], list[np.ndarray]]:
    return lambda rng: [rng.standard_normal(size, np.float32), rng.integers(0, size, count)]


def _layer(name: str, method: str, *shapes: tuple[int, ...], **options: Any) -> Case:
    """A method of Tensor, and the function of PyTorch with its name."""
    return Case(
        name,
        _normal(*shapes),
        lambda x, *weights: getattr(x, method)(*weights, **options),
        lambda x, *weights: getattr(_torch().nn.functional, method)(x, *weights, **options),
    )


def cases() -> list[Case]:
    """All of them. PyTorch is imported where its side runs."""
    from lazygrad import Tensor

    pictures: Sequence[tuple[int, ...]] = ((32, 224, 224, 3),)
    return [
        _layer("transposed 2 x 2, step 2", "conv_transpose2d", (4, 64, 56, 56), (64, 32, 2, 2), stride=2),
        _layer(
            "transposed 4 x 4, step 2",
            "conv_transpose2d",
            *((4, 64, 28, 28), (64, 32, 4, 4)),
            stride=2,
            padding=1,
        ),
        _layer("transposed 3 x 3", "conv_transpose2d", (4, 64, 28, 28), (64, 32, 3, 3), padding=1),
        _layer("convolution of one picture", "conv2d", (1, 64, 28, 28), (64, 64, 3, 3), padding=1),
        _layer("depthwise convolution", "conv2d", (4, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64),
        _layer("max pool", "max_pool2d", (8, 64, 112, 112), kernel_size=3, stride=2, padding=1),
        _layer("mean pool", "avg_pool2d", (8, 64, 112, 112), kernel_size=3, stride=2, padding=1),
        Case("top 64 of a million", _normal((1 << 20,)), lambda x: x.topk(64)[0], lambda x: x.topk(64)[0]),
        Case("top 50 of 64 rows", _normal((64, 50257)), lambda x: x.topk(50)[0], lambda x: x.topk(50)[0]),
        Case("sort a million", _normal((1 << 20,)), lambda x: x.sort()[0], lambda x: x.sort()[0]),
        Case("argmax of rows", _normal((2048, 2048)), lambda x: x.argmax(1), lambda x: x.argmax(1)),
        Case("4 M of 16 M at random", _places(1 << 24, 1 << 22), lambda x, at: x[at], lambda x, at: x[at]),
        Case(
            "scatter-add of a million",
            _places(1 << 20, 1 << 20),
            lambda x, at: Tensor.zeros(1 << 20).scatter_add(0, at, x),
            lambda x, at: _torch().zeros(1 << 20).scatter_add(0, at, x),
        ),
        Case(
            "real FFT of 4096",
            _normal((256, 4096)),
            lambda x: x.rfft(),
            lambda x: _torch().view_as_real(_torch().fft.rfft(x)),
        ),
        Case(
            "bytes to floats, channels first",
            lambda rng: [rng.integers(0, 256, shape, dtype=np.uint8) for shape in pictures],
            lambda x: x.permute(0, 3, 1, 2).float() / 255,
            lambda x: (x.permute(0, 3, 1, 2).float() / 255).contiguous(),
        ),
        Case(
            "flip, roll, pad",
            _normal((2048, 2048)),
            lambda x: x.flip(1).roll(5, 0).pad((1, 1, 1, 1)),
            lambda x: _torch().nn.functional.pad(x.flip(1).roll(5, 0), (1, 1, 1, 1)),
        ),
        Case("softmax of rows", _normal((2048, 1024)), lambda x: x.softmax(1), lambda x: x.softmax(1)),
        Case(
            "gradient of layer norm",
            _normal((2048, 1024), (1024,), (1024,)),
            lambda x, w, b: (x.layernorm() * w + b).square().sum().gradient(x)[0],
            _gradient_of_layer_norm,
        ),
        Case(
            "enlarged by two, bilinear",
            _normal((8, 3, 256, 256)),
            lambda x: x.interpolate((512, 512), mode="bilinear"),
            lambda x: _torch().nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        ),
        Case(
            "two blocks of a ResNet, one picture",
            _normal((1, 64, 56, 56), *[(64, 64, 3, 3)] * 4),
            lambda x, *w: _blocks(lambda x, w: x.conv2d(w, padding=1), x, w),
            lambda x, *w: _blocks(lambda x, w: _torch().nn.functional.conv2d(x, w, padding=1), x, w),
        ),
        Case("16 steps of an LSTM, unrolled", _normal((16, 16, 512), (128, 512)), _unrolled, _unrolled),
    ]


def _torch() -> Any:
    return importlib.import_module("torch")


def _gradient_of_layer_norm(x: Any, w: Any, b: Any) -> Any:
    torch = _torch()
    return torch.func.grad(lambda x: torch.nn.functional.layer_norm(x, x.shape[1:], w, b).square().sum())(x)


def _blocks(convolve: Callable[[Any, Any], Any], x: Any, weights: Sequence[Any]) -> Any:
    for first, second in zip(weights[::2], weights[1::2], strict=True):
        x = (x + convolve(convolve(x, first * 0.05).relu(), second * 0.05)).relu()
    return x


def _unrolled(gates: Any, weight: Any) -> Any:
    """What an LSTM makes of (steps, batch, 4 x width), which are its inputs times their weights."""
    cell = state = gates[0, :, : weight.shape[0]] * 0
    for now in gates:
        i, f, g, o = (now + state @ (weight * 0.05)).chunk(4, 1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
    return state


def main(arguments: list[str]) -> int:
    """Print the table."""
    return table("single_ops", __doc__, cases, arguments)

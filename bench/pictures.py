"""Resizing, warps and crops, and lookups beside them: lazygrad and PyTorch in turn, one core.

python -m bench pictures                     all
python -m bench pictures --cases smooth      those with one of these words in their names
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .beside import Case, table


def _picture(*shape: int) -> Callable[[np.random.Generator], list[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32)]


def _resize(name: str, shape: tuple[int, ...], size: tuple[int, int], **options: Any) -> Case:
    from torch.nn import functional

    return Case(
        name,
        _picture(*shape),
        lambda x: x.interpolate(size, **options),
        lambda x: functional.interpolate(x, size, **options),
    )


def _grids(rng: np.random.Generator, shape: tuple[int, ...], places: tuple[int, int]) -> list[np.ndarray]:
    """Pictures, and a grid that turns them a little and shakes each place by less than two pixels."""
    turned = _matrices(shape[0])
    lines = [(np.arange(n, dtype=np.float32) + 0.5) * 2 / n - 1 for n in places]
    y, x = np.meshgrid(*lines, indexing="ij")
    grid = np.einsum("hwk,bik->bhwi", np.stack([x, y, np.ones_like(x)], -1), turned)
    grid += rng.uniform(-1, 1, grid.shape) * (4 / shape[-1])
    return [rng.standard_normal(shape, np.float32), grid.astype(np.float32)]


def _matrices(batch: int, angle: float = 0.3) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.tile(np.array([[[c, -s, 0.05], [s, c, -0.1]]], np.float32), (batch, 1, 1))


def _warp(
    name: str, shape: tuple[int, ...] = (4, 3, 512, 512), places: tuple[int, int] = (512, 512), **options: Any
) -> Case:
    from torch.nn import functional

    options = {"align_corners": False, **options}
    return Case(
        name,
        lambda rng: _grids(rng, shape, places),
        lambda x, grid: x.grid_sample(grid, **options),
        lambda x, grid: functional.grid_sample(x, grid, **options),
    )


def _affine(name: str, shape: tuple[int, ...], size: tuple[int, int], **options: Any) -> Case:
    from torch.nn import functional

    whole = (*shape[:2], *size)
    options = {"align_corners": False, **options}

    def ours(x: Any, theta: Any) -> Any:
        return x.grid_sample(type(x).affine_grid(theta, whole), **options)

    def theirs(x: Any, theta: Any) -> Any:
        return functional.grid_sample(x, functional.affine_grid(theta, whole, align_corners=False), **options)

    return Case(name, lambda rng: [rng.standard_normal(shape, np.float32), _matrices(shape[0])], ours, theirs)


def _lookups() -> list[Case]:
    """What the same loads serve elsewhere."""

    def rows(rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal((50_000, 256), np.float32), rng.integers(0, 50_000, 8192)]

    def places(rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal((1024, 1024), np.float32), rng.integers(0, 1024, (1024, 1024))]

    def sums(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            np.zeros((4096, 64), np.float32),
            rng.integers(0, 4096, (16384, 64)),
            rng.standard_normal((16384, 64), np.float32),
        ]

    def numbers(rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal(1 << 20, np.float32), rng.integers(0, 1 << 20, 1 << 20)]

    return [
        Case("lookup: rows", rows, lambda x, i: x[i], lambda x, i: x[i]),
        Case("lookup: numbers", numbers, lambda x, i: x[i], lambda x, i: x[i]),
        Case("lookup: along rows", places, lambda x, i: x.gather(1, i), lambda x, i: x.gather(1, i)),
        Case("lookup: along columns", places, lambda x, i: x.gather(0, i), lambda x, i: x.gather(0, i)),
        Case(
            "lookup: added to rows",
            sums,
            lambda x, i, v: x.scatter_add(0, i, v),
            lambda x, i, v: x.scatter_add(0, i, v),
        ),
    ]


def cases() -> list[Case]:
    """All of them."""
    photo, batch = (1, 3, 1024, 1024), (8, 3, 512, 512)
    found = []
    for mode in ("bilinear", "bicubic"):
        kind = {"mode": mode, "align_corners": False}
        found += [
            _resize(f"{mode} up", batch, (768, 768), **kind),
            _resize(f"{mode} down", batch, (224, 224), **kind),
            _resize(f"{mode} smooth down", batch, (224, 224), antialias=True, **kind),
            _resize(f"{mode} smooth down by 4", photo, (256, 256), antialias=True, **kind),
            _resize(f"{mode} smooth up", batch, (768, 768), antialias=True, **kind),
            _resize(f"{mode} smooth down, odd", (5, 3, 427, 641), (224, 225), antialias=True, **kind),
        ]
    found += [
        _warp("warp bilinear"),
        _warp("warp bilinear, 1 channel", (8, 1, 512, 512)),
        _warp("warp bilinear, 64 channels", (1, 64, 128, 128), (128, 128)),
        _warp("warp bilinear, border", padding_mode="border"),
        _warp("warp bilinear, reflection", padding_mode="reflection"),
        _warp("warp nearest", mode="nearest"),
        _warp("warp bicubic", mode="bicubic"),
        _affine("rotation bilinear", (4, 3, 512, 512), (512, 512)),
        _affine("rotation nearest", (4, 3, 512, 512), (512, 512), mode="nearest"),
        _affine("rotation bicubic", (1, 3, 512, 512), (512, 512), mode="bicubic"),
        _affine("rotation to 224", (8, 3, 512, 512), (224, 224)),
        Case(
            "crop",
            _picture(8, 3, 512, 512),
            lambda x: x[:, :, 30:478, 41:489].contiguous(),
            lambda x: x[:, :, 30:478, 41:489].clone(),
        ),
        Case(
            "crop, mirrored",
            _picture(8, 3, 512, 512),
            lambda x: x[:, :, 30:478, 41:489].flip(-1).contiguous(),
            lambda x: x[:, :, 30:478, 41:489].flip(-1),
        ),
        Case(
            "quarter turn",
            _picture(8, 3, 512, 512),
            lambda x: x.rot90(1, (2, 3)).contiguous(),
            lambda x: x.rot90(1, (2, 3)).contiguous(),
        ),
        *_lookups(),
    ]
    return found


def main(arguments: list[str]) -> int:
    """Print the table."""
    return table("pictures", __doc__, cases, arguments)

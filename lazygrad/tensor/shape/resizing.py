"""Images at other sizes and positions: interpolation, sampling along a grid, pixels moved between axes.

Formulas are those of PyTorch: pixel i of n is at (i + 1/2) / n of the whole, or at i / (n - 1) with
`align_corners`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import prod, shape_text
from ..creation import counting_dtype, iota
from ..face import Tensor
from ..indexing.addresses import trusted

INTERPOLATIONS = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")
#: How many axes a mode is for; those that are missing take any number.
_AXES_OF: dict[str, int | None] = {"linear": None, "bilinear": 2, "bicubic": 2, "trilinear": 3}
#: The slope of the cubic kernel at distance 1 (Keys 1981; PyTorch's choice).
CUBIC = -0.75


class Resizing(Tensor):
    """Methods that resample images."""

    # *** pixels between axes

    def pixel_shuffle(self, upscale_factor: int) -> Tensor:
        """Channels to pixels: (..., c·r², h, w) → (..., c, h·r, w·r) (Shi et al. 2016).

        >>> Tensor.arange(4).reshape(1, 4, 1, 1).pixel_shuffle(2).tolist()
        [[[[0, 1], [2, 3]]]]
        """
        r = upscale_factor
        channels = self.shape[-3] if self.ndim >= 3 else 0
        if r < 1 or not isinstance(channels, int) or self.ndim < 3 or channels % (r * r):
            raise ValueError(
                f"pixel_shuffle by {r} takes (..., channels, height, width) with channels that {r * r} "
                f"divides, not shape {shape_text(self.shape)}"
            )
        lead, (height, width) = self.shape[:-3], self.shape[-2:]
        n = len(lead)
        x = self.reshape((*lead, channels // (r * r), r, r, height, width))
        x = x.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
        return x.reshape((*lead, channels // (r * r), prod((height, r)), prod((width, r))))

    def pixel_unshuffle(self, downscale_factor: int) -> Tensor:
        """Pixels to channels: the inverse of `pixel_shuffle`.

        >>> Tensor.arange(4).reshape(1, 1, 2, 2).pixel_unshuffle(2).tolist()
        [[[[0]], [[1]], [[2]], [[3]]]]
        """
        r = downscale_factor
        sizes = self.shape[-3:]
        if r < 1 or self.ndim < 3 or any(not isinstance(s, int) or s % r for s in sizes[1:]):
            raise ValueError(
                f"pixel_unshuffle by {r} takes (..., channels, height, width) with a height and a width that "
                f"{r} divides, not shape {shape_text(self.shape)}"
            )
        lead, (channels, height, width) = self.shape[:-3], sizes
        n = len(lead)
        x = self.reshape((*lead, channels, height // r, r, width // r, r))
        x = x.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
        return x.reshape((*lead, prod((channels, r * r)), height // r, width // r))

    def channel_shuffle(self, groups: int) -> Tensor:
        """Channels (axis 1) dealt out anew: the first of each group, then the second of each, ...

        >>> Tensor.arange(4).reshape(1, 4, 1).channel_shuffle(2).flatten().tolist()
        [0, 2, 1, 3]
        """
        channels = self.shape[1] if self.ndim > 1 else 0
        if self.ndim < 3 or groups < 1 or not isinstance(channels, int) or channels % groups:
            raise ValueError(
                f"channel_shuffle takes (batch, channels, ...) with channels that {groups} groups divide, "
                f"not shape {shape_text(self.shape)}"
            )
        parted = self.reshape((self.shape[0], groups, channels // groups, *self.shape[2:]))
        return parted.transpose(1, 2).reshape(self.shape)

    # *** interpolation

    def interpolate(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        antialias: bool = False,
    ) -> Tensor:
        """The last axes at another size: `torch.nn.functional.interpolate`.

        self  (batch, channels, *sizes)
        size  the new sizes, or `scale_factor`, what to multiply them by
        mode  nearest, nearest-exact, linear (along any number of axes), bilinear, bicubic, trilinear or area
        antialias   bilinear and bicubic to a smaller size look at all old pixels that a new one covers

        Pixels of uint8 stay such, rounded and limited to 0 to 255; other integers become floats, but for the
        modes that only choose.

        >>> Tensor([[[1.0, 3.0]]]).interpolate(4).tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
        """
        if mode not in INTERPOLATIONS:
            raise ValueError(f"interpolate's mode must be one of {', '.join(INTERPOLATIONS)}, not {mode!r}")
        if antialias and mode not in _SMOOTH:
            raise ValueError(f"antialias is for {' and '.join(_SMOOTH)}, not for {mode}")
        count = self.ndim - 2
        if count < 1 or (_AXES_OF.get(mode) or count) != count:
            raise ValueError(
                f"interpolate by {mode} takes (batch, channels) and {_AXES_OF.get(mode) or 'some'} axes, "
                f"not shape {shape_text(self.shape)}"
            )
        if align_corners is not None and mode not in _AXES_OF:
            raise ValueError(f"align_corners is for {', '.join(_AXES_OF)}, not for {mode}")
        sizes, scales = self._new_sizes(size, scale_factor, bool(recompute_scale_factor))
        if mode == "area":
            return self._adaptive_avg(sizes, count, "interpolate")
        chosen = mode.startswith("nearest")
        steps = list(enumerate(zip(sizes, scales, strict=True)))
        pixels = self.dtype is dtypes.uint8 and mode in _AXES_OF
        fixed = pixels and count == 2
        # weights of narrow floats would not sum to 1; those of pixels are made for float32
        x: Any = self if chosen else self.cast(dtypes.float32) if fixed else self._wide()
        if fixed:  # as PyTorch: rows first, whose pixels are rounded and limited too
            steps.reverse()
        for number, (i, (new, scale)) in enumerate(steps):
            if number and mode in _AXES_OF:
                x = _pixels(x).contiguous().cast(dtypes.float32) if fixed else x.contiguous()
            corners = bool(align_corners)
            if antialias:
                x = _smoothed(x, 2 + i, new, scale, corners, mode, fixed)
            elif mode in _WEIGHTED:
                x = _WEIGHTED[mode](x, 2 + i, new, scale, corners, fixed)
            else:
                x = _SAMPLED[mode](x, 2 + i, new, scale, corners)
        return _pixels(x) if pixels else x.cast(self.dtype if chosen else self._float().dtype)

    def _new_sizes(
        self, size: Any, scale_factor: Any, recompute: bool
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """The sizes of the result, and how many old pixels a new one is wide."""
        old: Any = self.shape[2:]
        count = len(old)
        if (size is None) == (scale_factor is None):
            raise ValueError("interpolate takes size or scale_factor, one of the two")
        given = size if size is not None else scale_factor
        values = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
        if len(values) != count:
            raise ValueError(f"interpolate takes one number or {count} of them, not {given!r}")
        if any(not isinstance(n, int) for n in old):
            raise NotImplementedError(
                f"interpolate over axes of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        if size is not None:
            sizes = tuple(int(v) for v in values)
        else:
            sizes = tuple(int(n * v) for n, v in zip(old, values, strict=True))
        if any(n < 1 for n in sizes):
            raise ValueError(f"interpolate to sizes {sizes}: they are positive")
        if size is not None or recompute:
            return sizes, tuple(n / new for n, new in zip(old, sizes, strict=True))
        return sizes, tuple(1.0 / v for v in values)

    # *** sampling

    @classmethod
    def affine_grid(cls, theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
        """Where each pixel of a result looks, in coordinates from -1 to 1: a grid for `grid_sample`.

        theta  (batch, 2, 3) for images, (batch, 3, 4) for volumes: a matrix and a shift
        size   (batch, channels, *sizes) of the result → (batch, *sizes, 2 or 3), x before y before z

        >>> Tensor.affine_grid(Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
        [[[[-0.5, 0.0], [0.5, 0.0]]]]
        """
        sizes = tuple(size)[2:]
        count = len(sizes)
        if count not in (2, 3) or theta.shape[1:] != (count, count + 1):
            raise ValueError(
                f"affine_grid takes matrices (batch, 2, 3) and four sizes, or (batch, 3, 4) and five, "
                f"not {shape_text(theta.shape)} and {tuple(size)}"
            )
        if theta.shape[0] != size[0]:
            raise ValueError(f"affine_grid: {theta.shape[0]} matrices for a batch of {size[0]}")
        lines = []
        for n in sizes:
            line: Tensor = cls.linspace(-1.0, 1.0, n, dtype=theta.dtype, device=theta.device)
            if n == 1:
                line = line * 0.0
            lines.append(line if align_corners else line * ((n - 1) / n))
        grids = lines[0].meshgrid(*lines[1:])
        base = grids[0].stack(*grids[1:], grids[0]._filled(1.0), dim=-1)
        order = [*range(count - 1, -1, -1), count]  # x before y before z, then the 1
        points = base[..., order].reshape(1, prod(sizes), count + 1)
        return points.dot(theta._lift(theta).transpose(1, 2)).reshape((theta.shape[0], *sizes, count))

    def grid_sample(
        self,
        grid: Tensor,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool | None = None,
    ) -> Tensor:
        """The pixels at the positions of a grid: `torch.nn.functional.grid_sample`.

        self          (batch, channels, height, width), or with a depth before the height
        grid          (batch, *sizes, 2 or 3): x, y (and z) from -1 to 1 → (batch, channels, *sizes)
        mode          bilinear, nearest, or (images only) bicubic
        padding_mode  what lies outside: zeros, border, or reflection

        >>> image, grid = Tensor([[[[1.0, 3.0]]]]), Tensor([[[[0.0, 0.0]]]])
        >>> image.grid_sample(grid).tolist()
        [[[[2.0]]]]
        """
        count = self.ndim - 2
        if count not in (2, 3) or grid.ndim != self.ndim or grid.shape[-1] != count:
            raise ValueError(
                f"grid_sample takes images (batch, channels, height, width) and a grid (batch, ..., ..., 2), "
                f"or volumes and one more axis, not {shape_text(self.shape)} and {shape_text(grid.shape)}"
            )
        if grid.shape[0] != self.shape[0]:
            raise ValueError(f"grid_sample: {grid.shape[0]} grids for a batch of {self.shape[0]}")
        if mode not in ("bilinear", "nearest", "bicubic"):
            raise ValueError(f"grid_sample's mode must be bilinear, nearest or bicubic, not {mode!r}")
        if mode == "bicubic" and count == 3:
            raise NotImplementedError("grid_sample by bicubic is for images, not for volumes")
        if padding_mode not in ("zeros", "border", "reflection"):
            raise ValueError(
                f"grid_sample's padding_mode must be zeros, border or reflection, not {padding_mode!r}"
            )
        x, where = self._float(), self._operand(grid)
        corners, cubic = bool(align_corners), mode == "bicubic"
        places = where.shape[1:-1]
        number = {"nearest": 1, "bilinear": 2, "bicubic": 4}[mode]
        position: Any = None
        weight: Any = None
        sampled: Any = None
        for axis in range(count):
            size: Any = self.shape[2 + axis]
            at = where[..., count - 1 - axis]
            at = (at + 1.0) * ((size - 1) / 2) if corners else ((at + 1.0) * size - 1.0) / 2
            if not cubic:  # else the neighbours are moved, and not the point between them
                at = _inside(at, size, padding_mode, corners)
            # the neighbours along this axis are a new axis of their own, behind the places
            at = at.reshape((*at.shape, *((1,) * count)))
            tap = _counter(at, number).reshape((number,) + (1,) * (count - 1 - axis))
            low = at.detach().round() if mode == "nearest" else at.detach().floor()
            factor = _TAP_WEIGHTS[mode](at - low, tap)
            low = low + (tap - 1 if cubic else tap)
            if cubic:
                low = _inside(low, size, padding_mode, corners)
                low = low.round() if padding_mode == "reflection" else low
            good = (low >= 0.0) & (low <= size - 1.0)
            # as extremes: their bounds are seen, and nobody asks whether the place is one
            whole = good.where(low, 0.0).cast(dtypes.int32).maximum(0).minimum(size - 1)
            position = whole if position is None else position * size + whole
            sampled = good if sampled is None else sampled & good
            weight = factor if weight is None else weight * factor
        index = position.reshape((position.shape[0], 1, prod(position.shape[1:])))
        flat = x.reshape((*self.shape[:2], prod(self.shape[2:])))
        with trusted():
            picked = flat.gather(2, index.expand((*self.shape[:2], index.shape[2])))
        picked = picked.reshape((*self.shape[:2], *places, *((number,) * count)))
        weighted: Tensor = picked * sampled.where(weight, 0.0).unsqueeze(1)
        return weighted.sum(tuple(range(-count, 0)))


# *** along one axis


def _pixels(x: Tensor) -> Tensor:
    """The nearest numbers from 0 to 255."""
    return (x + 0.5).clamp(0.0, 255.0).cast(dtypes.uint8)


def _counter(x: Tensor, count: int) -> Tensor:
    return x._make(iota(count, counting_dtype(count), x.device))


def _taken(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """The lines of these numbers, of which those beyond an end are the last one there."""
    size: Any = x.shape[axis]
    # as extremes: their bounds are seen, and nobody asks whether a place is one
    within = index.maximum(0).minimum(size - 1)
    with trusted():
        return x[(slice(None),) * axis + (within,)]


def _along(weights: Tensor, x: Tensor, axis: int) -> Tensor:
    """Weights whose last axis is this one."""
    return weights.cast(x.dtype).reshape((*weights.shape, *(1,) * (x.ndim - axis - 1)))


def _nearest(x: Tensor, axis: int, new: int, scale: float, align_corners: bool) -> Tensor:
    size: Any = x.shape[axis]
    if size == new and scale == 1:
        return x
    at = (_counter(x, new).cast(dtypes.float32) * scale).floor().cast(dtypes.int32)
    return _taken(x, axis, at.clamp(max=size - 1))


def _nearest_exact(x: Tensor, axis: int, new: int, scale: float, align_corners: bool) -> Tensor:
    size: Any = x.shape[axis]
    at = ((_counter(x, new).cast(dtypes.float32) + 0.5) * scale).floor().cast(dtypes.int32)
    return _taken(x, axis, at.clamp(max=size - 1))


def _position(x: Tensor, axis: int, new: int, scale: float, align_corners: bool) -> Tensor:
    """Where along the old axis the new pixels stand, in old pixels."""
    size: Any = x.shape[axis]
    counter = _counter(x, new).cast(least_float(x))
    if align_corners:
        return counter * ((size - 1) / (new - 1) if new > 1 else 0.0)
    return (counter + 0.5) * scale - 0.5


def least_float(x: Tensor) -> Any:
    """The dtype that positions are counted in: float32, or float64 for such tensors."""
    return dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32


def _fixed_point(weights: Tensor) -> Tensor:
    """Weights of pixels of uint8 as PyTorch rounds them: to as many binary places as 16 bits have for the
    greatest. Products with such pixels, and their sums, are exact in float32."""
    places = 32767.5 / weights.max()
    power = (places.bitcast(dtypes.int32) & 0x7F800000).bitcast(dtypes.float32).contiguous()
    return (weights * power + 0.5).floor() / power


def _linear(x: Tensor, axis: int, new: int, scale: float, align_corners: bool, fixed: bool) -> Tensor:
    size: Any = x.shape[axis]
    at = _position(x, axis, new, scale, align_corners).clamp(min=0.0)
    low = at.floor().clamp(max=size - 1.0)
    begin = low.cast(dtypes.int32)
    end = (begin + 1).clamp(max=size - 1)
    part = (at - low).clamp(max=1.0)
    if fixed:
        first, second = _fixed_point((1.0 - part).stack(part)).contiguous().unbind()
        return _taken(x, axis, begin) * _along(first, x, axis) + _taken(x, axis, end) * _along(
            second, x, axis
        )
    weight = _along(part, x, axis)
    return _taken(x, axis, begin) * (1.0 - weight) + _taken(x, axis, end) * weight


def _cubic(x: Tensor, axis: int, new: int, scale: float, align_corners: bool, fixed: bool) -> Tensor:
    size: Any = x.shape[axis]
    at = _position(x, axis, new, scale, align_corners)
    low = at.floor()
    weights = _cubic_weights(at - low)
    if fixed:
        weights = list(_fixed_point(weights[0].stack(*weights[1:])).contiguous().unbind())
    begin = low.cast(dtypes.int32)
    parts = [
        _taken(x, axis, (begin + (i - 1)).clamp(0, size - 1)) * _along(w, x, axis)
        for i, w in enumerate(weights)
    ]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _cubic_near(d: Tensor, slope: float = CUBIC) -> Tensor:
    """The cubic kernel at a distance of at most 1 (Keys 1981)."""
    return ((slope + 2.0) * d - (slope + 3.0)) * d * d + 1.0


def _cubic_far(d: Tensor, slope: float = CUBIC) -> Tensor:
    """The cubic kernel at a distance from 1 to 2."""
    return ((slope * d - 5.0 * slope) * d + 8.0 * slope) * d - 4.0 * slope


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """The weights of the four pixels around a place, `t` behind the second of them."""
    return [_cubic_far(t + 1.0), _cubic_near(t), _cubic_near(1.0 - t), _cubic_far(2.0 - t)]


def _cubic_taps(t: Tensor, tap: Tensor) -> Tensor:
    """The same for the pixel that `tap` counts, 0 to 3."""
    before = tap < 2
    distance = before.where(t, -t) + before.where(1 - tap, tap - 1)
    inner = (tap == 1) | (tap == 2)
    return inner.where(_cubic_near(distance), _cubic_far(distance))


#: How much a neighbour counts, by how far behind the first one (the second, of four) the place is.
_TAP_WEIGHTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "nearest": lambda t, tap: t * 0.0 + 1.0,
    "bilinear": lambda t, tap: (tap == 0).where(1.0 - t, t),
    "bicubic": _cubic_taps,
}


#: With antialias: (the kernel, how far it reaches).
_SMOOTH: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "bilinear": (lambda d: 1.0 - d, 1.0),
    "bicubic": (lambda d: (d < 1.0).where(_cubic_near(d, -0.5), _cubic_far(d, -0.5)), 2.0),
}


def _smoothed(
    x: Tensor, axis: int, new: int, scale: float, align_corners: bool, mode: str, fixed: bool
) -> Tensor:
    """Each new pixel a weighted mean of the old ones around it, of a kernel as wide as the new pixels.

    The weights of a new pixel sum to 1, and are the same for all lines. The cubic kernel's slope is -1/2.
    """
    kernel, reach = _SMOOTH[mode]
    size: Any = x.shape[axis]
    if align_corners:
        scale = (size - 1) / (new - 1) if new > 1 else 0.0
    wide = max(scale, 1.0)
    taps = min(math.ceil(2.0 * reach * wide) + 1, size)
    middle = (_counter(x, new).cast(least_float(x)) + 0.5) * scale
    begin = (middle - reach * wide + 0.5).floor().cast(dtypes.int32)
    # stored: a kernel that fuses products rounds otherwise, and would count the weights from another place
    begin = begin.maximum(0).minimum(max(size - taps, 0)).contiguous()
    old = begin + _counter(x, taps).unsqueeze(1)  # (taps, new): lanes that walk over the new pixels
    distance = (old.cast(least_float(x)) + 0.5 - middle).abs() * (1.0 / wide)
    weights = (distance < reach).where(kernel(distance), 0.0)
    weights = weights / weights.sum(0, keepdim=True)
    weights = (_fixed_point(weights) if fixed else weights).cast(x.dtype).contiguous()
    near = x[(slice(None),) * axis + (old,)]
    return (near * _along(weights, x, axis)).sum(axis)


#: The modes that only choose pixels, and those that weight them: these are told whether pixels are of uint8.
_SAMPLED: dict[str, Callable[[Tensor, int, int, float, bool], Tensor]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
}
_WEIGHTED: dict[str, Callable[[Tensor, int, int, float, bool, bool], Tensor]] = {
    "linear": _linear,
    "bilinear": _linear,
    "trilinear": _linear,
    "bicubic": _cubic,
}


# *** along a grid


def _inside(at: Tensor, size: int, padding_mode: str, corners: bool) -> Tensor:
    """A position brought into the image, where the padding mode does that."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        at = _reflected(at, 0.0, 2.0 * (size - 1)) if corners else _reflected(at, -1.0, 2.0 * size - 1.0)
    return at.clamp(0.0, size - 1.0)


def _reflected(at: Tensor, twice_low: float, twice_high: float) -> Tensor:
    """Reflected at both ends until it is between them."""
    if twice_low == twice_high:
        return at * 0.0
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    away = (at - low).abs()
    turns = (away.detach() / span).floor()
    rest = away - turns * span
    even = turns.detach() - (turns.detach() / 2).floor() * 2 == 0
    return even.where(rest + low, span - rest + low)

"""Images: sampling at places, regions, boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tensor import Tensor
from ..execution import Run
from ..table import op
from ..values import Array, ints, scalar, shape_of

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@op("GridSample")
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    return x.grid_sample(grid, _MODES.get(mode, mode), padding_mode, bool(align_corners))


@op("AffineGrid", host=("size",))
def affine_grid(theta: Tensor, size: Any, *, align_corners: int = 0) -> Tensor:
    return Tensor.affine_grid(theta, ints(size), bool(align_corners))


@op("RoiAlign", since=10)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    coordinate_transformation_mode: str | None = None,
    file_opset: int,
    run: Run,
) -> Tensor:
    """Each region in a grid of cells, each the mean (or greatest) of points in it (He et al. 2017).

    Before opset 16 no half pixel was taken off. `sampling_ratio` 0 is as many points as pixels lie in a cell:
    then the greatest number of any region's cells is computed, and what a region lacks is hidden.
    """
    half = coordinate_transformation_mode != "output_half_pixel" if file_opset >= 16 else False
    shift = 0.5 if half else 0.0
    count, (height, width) = shape_of(rois)[0], shape_of(x)[2:]
    corners = rois.float() * spatial_scale - shift
    x1, y1, x2, y2 = (corners[:, number].reshape(-1, 1, 1) for number in range(4))
    roi_w, roi_h = x2 - x1, y2 - y1
    if not half:
        roi_w, roi_h = roi_w.maximum(1.0), roi_h.maximum(1.0)
    cell_h, cell_w = roi_h / output_height, roi_w / output_width
    if sampling_ratio > 0:
        most_h = most_w = sampling_ratio
        points_h = points_w = Tensor.full((count, 1, 1), float(sampling_ratio))
    else:
        points_h, points_w = cell_h.ceil().maximum(1.0), cell_w.ceil().maximum(1.0)
        most_h, most_w = (
            int(run.on_host(points.max(), "the points of a cell")) for points in (points_h, points_w)
        )
    inner_h, inner_w = _line(most_h), _line(most_w)
    ys = y1 + cell_h * _line(output_height).reshape(1, -1, 1) + (inner_h + 0.5) * (cell_h / points_h)
    xs = x1 + cell_w * _line(output_width).reshape(1, -1, 1) + (inner_w + 0.5) * (cell_w / points_w)
    images = x[batch_indices]  # (regions, channels, height, width)
    near_y, near_x = _between(ys, height), _between(xs, width)
    total: Any = None
    for y_place, y_weight in near_y:
        for x_place, x_weight in near_x:
            picked = _pixels(images, y_place, x_place)
            weight = (y_weight.unsqueeze(2).unsqueeze(-1) * x_weight.unsqueeze(1).unsqueeze(3)).unsqueeze(1)
            part = picked * weight
            total = part if total is None else (total.maximum(part) if mode == "max" else total + part)
    # (regions, channels, cells down, cells across, points down, points across)
    there = (
        (inner_h < points_h)
        .reshape(count, 1, 1, 1, -1, 1)
        .logical_and((inner_w < points_w).reshape(count, 1, 1, 1, 1, -1))
    )
    if mode == "max":
        return there.where(total, -math.inf).max((-1, -2)).cast(x.dtype)
    return (there.where(total, 0.0).sum((-1, -2)) / (points_h * points_w).reshape(-1, 1, 1, 1)).cast(x.dtype)


def _line(size: int) -> Tensor:
    return Tensor.arange(size).float()


def _between(place: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """The two pixels around each place and their weights; what lies more than a pixel outside counts
    nothing.
    """
    inside = (place >= -1.0).logical_and(place <= size)
    held = place.clamp(0, size - 1)
    low = held.floor().minimum(max(size - 2, 0)).maximum(0)
    share = held - low
    high = (low + 1).minimum(size - 1)
    return [(low.int(), inside.where(1 - share, 0.0)), (high.int(), inside.where(share, 0.0))]


def _pixels(images: Tensor, ys: Tensor, xs: Tensor) -> Tensor:
    """(n, c, h, w) at (n, a, s) and (n, b, t) → (n, c, a, b, s, t)"""
    n, c, _, w = shape_of(images)
    _, a, s = shape_of(ys)
    _, b, t = shape_of(xs)
    flat = ys.reshape(n, a, 1, s, 1) * w + xs.reshape(n, 1, b, 1, t)
    places = flat.reshape(n, 1, -1).expand(n, c, a * b * s * t)
    return images.reshape(n, c, -1).gather(2, places).reshape(n, c, a, b, s, t)


@op("NonMaxSuppression", host=("boxes", "scores", "limit", "iou_threshold", "score_threshold"))
def non_max_suppression(
    boxes: Any,
    scores: Any,
    limit: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    *,
    center_point_box: int = 0,
) -> Any:
    """(batch, class, box) of the boxes that are kept: by falling score, none that overlaps a better one
    too much.
    """
    most = 0 if limit is None else int(scalar(limit))
    overlap = 0.0 if iou_threshold is None else float(scalar(iou_threshold))
    least = None if score_threshold is None else float(scalar(score_threshold))
    found = []
    for batch in range(len(boxes)):
        corners = _corners(boxes[batch], center_point_box)
        for number in range(shape_of(scores)[1]):
            line = scores[batch, number]
            order = np.argsort(-line, kind="stable")
            order = order if least is None else order[line[order] > least]
            selected: list[int] = []
            while len(order) and len(selected) < most:
                best, order = int(order[0]), order[1:]
                selected.append(best)
                order = order[_overlaps(corners[best], corners[order]) <= overlap]
            found += [(batch, number, place) for place in selected]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Array, by_center: int) -> Array:
    """(low, low, high, high), whichever corners the boxes name."""
    if by_center:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlaps(box: Array, others: Array) -> Array:
    """The shared area divided by that of both together."""
    shared = np.prod(
        np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0), 1
    )
    both = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], 1) - shared
    return np.where(both > 0, shared / np.where(both > 0, both, 1), 0)


@op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: Any, spatial_scale: float = 1.0) -> Tensor:
    """The greatest pixel of each cell of each region; 0 where a cell has none (Girshick 2015).

    rois  (regions, 5): the number of the image, then x and y of two corners, which belong to the region
    """
    images = x[rois[:, 0].int()]  # (regions, channels, height, width)
    corners = (rois[:, 1:] * spatial_scale + 0.5).floor()
    for axis, count in ((3, pooled_shape[1]), (2, pooled_shape[0])):
        size = shape_of(images)[axis]
        first, last = corners[:, 3 - axis], corners[:, 5 - axis]
        cell = ((last - first + 1).maximum(1) / count).reshape(-1, 1)
        start = (Tensor.arange(count) * cell).floor() + first.reshape(-1, 1)
        end = (Tensor.arange(1, count + 1) * cell).ceil() + first.reshape(-1, 1)
        places = Tensor.arange(size).float()
        inside = (places >= start.unsqueeze(-1)).logical_and(
            places < end.unsqueeze(-1)
        )  # (regions, cells, size)
        line = images.transpose(axis, 3).unsqueeze(3)
        shape = (-1, 1, 1, count, size)
        images = inside.reshape(*shape).where(line, -math.inf).max(-1).transpose(axis, 3)
    return (images == -math.inf).where(0.0, images).cast(x.dtype)

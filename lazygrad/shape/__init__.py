"""Views of memory and the shape of every op: movement in, index expressions out, and no element is copied."""

from .movement import (
    base_and_tracker,
    broadcast_shapes,
    broadcast_to,
    expand,
    expanded,
    flip,
    pad,
    permute,
    reshape,
    resolve_minus_one,
    shrink,
)
from .rules import SHAPES, numel, shape_of, shape_or_none
from .sizes import Shape, prod, resolve_equal, shape_text, size_text, smax, smin, vmax, vmin
from .tracker import ShapeTracker
from .view import View

__all__ = [
    "SHAPES",
    "Shape",
    "ShapeTracker",
    "View",
    "base_and_tracker",
    "broadcast_shapes",
    "broadcast_to",
    "expand",
    "expanded",
    "flip",
    "numel",
    "pad",
    "permute",
    "prod",
    "reshape",
    "resolve_equal",
    "resolve_minus_one",
    "shape_of",
    "shape_or_none",
    "shape_text",
    "shrink",
    "size_text",
    "smax",
    "smin",
    "vmax",
    "vmin",
]

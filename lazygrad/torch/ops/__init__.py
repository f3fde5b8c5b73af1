"""The rows of the table of ATen operations, by family."""

from . import (
    attention,
    creation,
    indexing,
    layers,
    matrices,
    pointwise,
    products,
    random,
    reductions,
    shapes,
    special,
)

__all__ = [
    "attention",
    "creation",
    "indexing",
    "layers",
    "matrices",
    "pointwise",
    "products",
    "random",
    "reductions",
    "shapes",
    "special",
]

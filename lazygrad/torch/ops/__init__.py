"""The rows of the table of ATen operations, by family."""

from . import attention, creation, indexing, layers, pointwise, products, random, reductions, shapes

__all__ = [
    "attention",
    "creation",
    "indexing",
    "layers",
    "pointwise",
    "products",
    "random",
    "reductions",
    "shapes",
]

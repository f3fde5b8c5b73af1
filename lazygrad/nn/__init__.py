"""What networks are built with and trained by: layers, `optim`, `state` (weights, files), `datasets`."""

from . import datasets, functional, optim, state
from .layers import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
)

__all__ = [
    "BatchNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "datasets",
    "functional",
    "optim",
    "state",
]

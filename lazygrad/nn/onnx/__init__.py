"""ONNX files run as tensor graphs: `OnnxRunner(path)({"x": array})["y"]`. docs/onnx.md shows it."""

from .runner import OnnxRunner as OnnxRunner
from .runner import ValueInfo as ValueInfo

__all__ = ["OnnxRunner", "ValueInfo"]

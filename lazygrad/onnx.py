"""`nn.onnx` under a short name: `lazygrad.onnx.OnnxRunner(path)` runs an ONNX file."""

from .nn.onnx import OnnxRunner as OnnxRunner
from .nn.onnx import ValueInfo as ValueInfo

__all__ = ["OnnxRunner", "ValueInfo"]

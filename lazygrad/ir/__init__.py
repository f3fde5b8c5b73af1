"""The language: nodes, the op table, index arithmetic, patterns, rewriting, the spec of each form, and printed text."""

from .index import bounds, sint
from .ops import OPS, OpInfo, Ops
from .uop import UOp, Variable

__all__ = ["OPS", "OpInfo", "Ops", "UOp", "Variable", "bounds", "sint"]

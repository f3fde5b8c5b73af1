"""The language: nodes, the op table, index arithmetic, patterns, rewriting, specs of forms, printed text."""

from .args import AxisType, RangeArg, ReduceArg
from .index import bounds, sint
from .ops import OPS, OpInfo, Ops
from .pattern import PatternMatcher, Rule, UPat
from .rewrite import RewriteError, graph_rewrite, observe
from .spec import SPECS, Spec, SpecError, verify
from .text import (
    announce_style,
    expression,
    linear_text,
    loops_text,
    register_style,
    render,
    styled,
    uop_text,
)
from .uop import UOp, Variable

__all__ = [
    "OPS",
    "SPECS",
    "AxisType",
    "OpInfo",
    "Ops",
    "PatternMatcher",
    "RangeArg",
    "ReduceArg",
    "RewriteError",
    "Rule",
    "Spec",
    "SpecError",
    "UOp",
    "UPat",
    "Variable",
    "announce_style",
    "bounds",
    "expression",
    "graph_rewrite",
    "linear_text",
    "loops_text",
    "observe",
    "register_style",
    "render",
    "sint",
    "styled",
    "uop_text",
    "verify",
]

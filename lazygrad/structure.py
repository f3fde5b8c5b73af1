"""Graphs, targets and arguments as texts and digests that are the same in every process.

A digest of a kernel names it on disk. A structure is less: what stays the same of a graph where numbers and
memory are others. The registry of decisions (`decisions/`) asks for it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from .dtype import DType, const_bits, dtypes
from .ir.members import Member
from .ir.ops import MOVEMENT, Ops
from .ir.uop import UOp
from .shape import ShapeTracker, View
from .shape.rules import shape_of
from .target import Target


class Unlasting(Exception):
    """Something without a text that is the same in every process."""


# *** texts that tell one from another


@functools.lru_cache(64)
def target_text(target: Target) -> str:
    return str([(f.name, lasting_text(getattr(target, f.name))) for f in dataclasses.fields(target)])


def digest(node: UOp) -> str:
    """A digest of a node's structure. Raises Unlasting for an argument that only this process knows."""
    known = node.facts.get("digest")
    if known is None:
        known = node.facts["digest"] = _digest(node)
    return known


def _digest(node: UOp) -> str:
    number: dict[UOp, int] = {}
    rows = []
    for each in node.toposort():
        src = ",".join([str(number[s]) for s in each.src])
        number[each] = len(number)
        arg = each.arg
        if each.op is Ops.CONST:
            lanes = arg if isinstance(arg, tuple) else (arg,)
            arg = tuple([const_bits(value, each.dtype) for value in lanes])
        rows.append(f"{each.op.name} {each.dtype!r} {src} {lasting_text(arg)}")
    return hashlib.blake2b("\n".join(rows).encode(), digest_size=32).hexdigest()


#: Whose `repr` says all.
_SAYS_ALL = frozenset((type(None), bool, int, float, str, bytes))


def lasting_text(arg: Any) -> str:
    """An argument as a text that says all of it, and is the same in every process."""
    kind = type(arg)
    if kind is tuple:  # the key of a plan is mostly these
        return f"tuple({', '.join([repr(p) if type(p) in _SAYS_ALL else lasting_text(p) for p in arg])})"
    if kind in _SAYS_ALL or isinstance(arg, (int, float, str, bytes)):
        return repr(arg)
    if isinstance(arg, ShapeTracker):
        return " + ".join([_view_text(view) for view in arg.views])
    if isinstance(arg, UOp):
        return f"<{digest(arg)}>"
    if isinstance(arg, Member):
        return f"{type(arg).__name__}.{arg.name}"
    if isinstance(arg, (tuple, list)):
        return f"{type(arg).__name__}({', '.join([lasting_text(part) for part in arg])})"
    if isinstance(arg, frozenset):
        return "{" + ", ".join(sorted([lasting_text(part) for part in arg])) + "}"
    if isinstance(arg, DType):
        return repr(arg)
    if dataclasses.is_dataclass(arg) and not isinstance(arg, type):
        fields = tuple([getattr(arg, f.name) for f in dataclasses.fields(arg)])
        return f"{type(arg).__name__}{lasting_text(fields)}"
    raise Unlasting(type(arg).__name__)


@functools.lru_cache(4096)
def _view_text(view: View) -> str:
    return lasting_text((view.shape, view.strides, view.offset, view.mask))


# *** structures


#: A structure is that of so many nodes: what is further down has little to say in a choice.
NEAR = 64


def structure_of(
    roots: Iterable[UOp], is_leaf: Callable[[UOp], bool] = lambda node: False, most: int = 0
) -> str:
    """A digest of what a graph computes, whatever its numbers and the memory that it reads: the same for two
    turns of a loop, in every process, and on every rank.

    is_leaf  which values of a tensor graph are read from memory: only their shape counts
    most     so many nodes are looked at, the nearest first, and of those below only the shape; 0 = all
    """
    number: dict[UOp, int] = {}
    for root in roots:
        number.setdefault(root, len(number))
    rows: list[str] = []
    for node in (order := list(number)):
        leaf = node.op in _MEMORY or is_leaf(node) or bool(most and len(rows) >= most)
        if not leaf:
            for source in node.src:
                if source not in number:
                    number[source] = len(number)
                    order.append(source)
        rows.append(_leaf_row(node) if leaf else _row(node, number))
    return hashlib.blake2b("\n".join(rows).encode(), digest_size=8).hexdigest()


#: What says which memory there is, and on which device.
_MEMORY = frozenset((Ops.BUFFER, Ops.BUFFER_VIEW, Ops.DEVICE, Ops.UNIQUE))
#: Numbers that may be others in the next turn, and be lifted out of the graph or the kernel.
_NUMBERS = frozenset((Ops.CONST, Ops.DEFINE_VAR, Ops.BIND))


def _leaf_row(node: UOp) -> str:
    return "" if node.op in (Ops.DEVICE, Ops.UNIQUE) else f"{node.dtype!r} {_shape_text(node)}"


def _row(node: UOp, number: dict[UOp, int]) -> str:
    if node.op in _NUMBERS and node.dtype is not dtypes.index:
        return f"number {node.dtype!r}"
    src = ",".join([str(number[source]) for source in node.src])
    return f"{node.op.name} {node.dtype!r} {_arg_text(node)} {src}"


def _arg_text(node: UOp) -> str:
    if node.op in MOVEMENT and node.op is not Ops.PERMUTE:
        return _shape_text(node)  # where a part begins is a number
    if node.op is Ops.DEFINE_GLOBAL:
        return ""  # which argument it is says its place in the kernel's list
    try:
        return lasting_text(node.arg)
    except Unlasting:
        return type(node.arg).__name__


def _shape_text(node: UOp) -> str:
    try:
        return lasting_text(shape_of(node))
    except (Unlasting, ValueError):  # a kernel that is planned has no shape
        return ""

"""Kernels, targets and programs as plain data, the same in every process: what is kept on disk, and what one
process tells another.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from typing import Any

from ..dtype import DTYPES_BY_NAME, DType, const_bits
from ..ir.args import AxisType
from ..ir.members import Member
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Estimates, ProgramSpec
from ..shape import ShapeTracker, View
from ..target import Target
from .opt import Opt, OptOps


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


# *** records of programs


def record_of(spec: ProgramSpec, lib: bytes) -> dict[str, Any]:
    """What a program is, without its linear form: `Runner.uops` makes that again."""
    return {
        "name": spec.name,
        "src": spec.src.encode(),
        "device": spec.device,
        "opts": [[opt.op.name, *opt[1:]] for opt in spec.applied_opts],
        "globals": spec.globals,
        "vars": [expression_rows(v) for v in spec.vars],
        "outs": spec.outs,
        "ins": spec.ins,
        "global_size": _sizes(spec.global_size),
        "local_size": _sizes(spec.local_size),
        "estimates": [expression_rows(spec.estimates.ops), expression_rows(spec.estimates.bytes)],
        "axes": [kind.name for kind in spec.axes],
        "lib": lib,
    }


def spec_of(record: dict[str, Any]) -> tuple[ProgramSpec, bytes]:
    lib: bytes = record["lib"]
    spec = ProgramSpec(
        record["name"],
        record["src"].decode(),
        record["device"],
        (),
        tuple([Opt(OptOps[op], *rest) for op, *rest in record["opts"]]),
        record["globals"],
        tuple([expression_of(v) for v in record["vars"]]),
        tuple(record["outs"]),
        tuple(record["ins"]),
        _sizes_of(record["global_size"]),
        _sizes_of(record["local_size"]),
        Estimates(*[expression_of(number) for number in record["estimates"]]),
        tuple([AxisType[kind] for kind in record["axes"]]),
    )
    return spec, lib


def _sizes(sizes: Sequence[Any] | None) -> list[Any] | None:
    return None if sizes is None else [expression_rows(size) for size in sizes]


def _sizes_of(found: list[Any] | None) -> tuple[Any, ...] | None:
    return None if found is None else tuple([expression_of(size) for size in found])


def expression_rows(value: Any) -> Any:
    """An int as it is; an index expression or a variable as the rows of its nodes, sources first."""
    if not isinstance(value, UOp):
        if not isinstance(value, int):
            raise Unlasting(type(value).__name__)
        return value
    number: dict[UOp, int] = {}
    rows = []
    for node in value.toposort():
        arg = list(node.arg) if node.op is Ops.DEFINE_VAR else node.arg
        if node.op not in _PLAIN and arg is not None:
            raise Unlasting(node.op.name)
        rows.append([node.op.name, node.dtype.name, [number[s] for s in node.src], arg])
        number[node] = len(number)
    return rows


_PLAIN = (Ops.DEFINE_VAR, Ops.CONST)


def expression_of(found: Any) -> Any:
    if isinstance(found, int):
        return found
    nodes: list[UOp] = []
    for op, dtype, src, arg in found:
        arg = tuple(arg) if isinstance(arg, list) else arg
        nodes.append(UOp(Ops[op], DTYPES_BY_NAME[dtype], tuple([nodes[n] for n in src]), arg))
    return nodes[-1]

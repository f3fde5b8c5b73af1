"""Programs as plain data, the same in every process: what is kept on disk, and what one process tells
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DTYPES_BY_NAME
from ..ir.args import AxisType
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Estimates, ProgramSpec
from ..structure import Unlasting
from .opt import Opt, OptOps

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

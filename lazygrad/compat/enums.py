"""The families that operations were once divided into: `BinaryOps.MUL` is `Ops.MUL`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..ir.ops import OPS, Ops

#: Operations that had another name.
_RENAMED = {
    "LOOP": Ops.RANGE,
    "ENDLOOP": Ops.ENDRANGE,
    "PHI": Ops.ASSIGN,
    "DIV": Ops.FDIV,
    "ACC": Ops.DEFINE_ACC,
    "DEFINE_LOCALS": Ops.DEFINE_LOCAL,
}


class Family(type):
    """A class whose attributes are operations: `UOps.LOAD`, `UOps["LOAD"]`, `op in UOps`."""

    members: dict[str, Ops]

    def __getattr__(cls, name: str) -> Ops:
        found = vars(cls).get("members", {}).get(name)
        if found is not None:
            return found  # type: ignore[no-any-return]
        if name == "ALU":
            raise AttributeError("arithmetic has no ALU here: each operation is its own op, such as Ops.ADD")
        raise AttributeError(f"{cls.__name__} has no {name}; see docs/glossary.md for what it is called here")

    def __getitem__(cls, name: str) -> Ops:
        try:
            return cls.members[name]
        except KeyError:
            raise KeyError(f"{cls.__name__} has no {name}") from None

    def __contains__(cls, op: object) -> bool:
        return op in cls.members.values()

    def __iter__(cls) -> Iterator[Ops]:
        return iter(cls.members.values())


def _family(name: str, members: dict[str, Ops]) -> Any:
    return Family(name, (), {"members": members})


def _named(*names: str) -> dict[str, Ops]:
    return {name: _RENAMED.get(name) or Ops[name] for name in names}


def _arithmetic(arity: int) -> dict[str, Ops]:
    return {op.name: op for op, info in OPS.items() if info.arity == arity and info.evaluate is not None}


UOps = _family("UOps", {**Ops.__members__, **_RENAMED})
UnaryOps = _family("UnaryOps", _arithmetic(1) | _named("CAST", "BITCAST"))
BinaryOps = _family("BinaryOps", _arithmetic(2) | _named("DIV"))
TernaryOps = _family("TernaryOps", _arithmetic(3))
ReduceOps = _family("ReduceOps", _named("SUM", "MAX", "MUL") | {"PROD": Ops.MUL})
MovementOps = _family(
    "MovementOps", _named("RESHAPE", "PERMUTE", "EXPAND", "PAD", "SHRINK") | {"STRIDE": Ops.FLIP}
)
LoadOps = _family("LoadOps", _named("EMPTY", "CONST", "COPY", "CONTIGUOUS", "ASSIGN"))
MetaOps = _family("MetaOps", _named("EMPTY", "CONST", "COPY", "CONTIGUOUS", "ASSIGN", "KERNEL"))
BufferOps = _family("BufferOps", _named("LOAD", "CONST", "STORE"))

"""Patterns as older scripts write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from ..dtype import ConstType, DType
from ..ir import pattern
from ..ir.ops import Ops
from ..ir.uop import UOp

Types = DType | Iterable[DType] | None


class UPat(pattern.UPat):
    """A pattern; `arg=None` is any, `allow_any_len` allows more sources than the pattern has."""

    __slots__ = ()

    def __init__(
        self,
        op: Ops | Iterable[Ops] | None = None,
        dtype: Types = None,
        src: Any = None,
        arg: Any = None,
        name: str | None = None,
        allow_any_len: bool = False,
        location: Any = None,
        custom_early_reject: Any = None,
    ) -> None:
        if isinstance(src, pattern.UPat):
            raise NotImplementedError(
                "one pattern that every source must match: give a tuple, a pattern for each source"
            )
        if src is not None and allow_any_len:
            src = (*src, ...)
        ops = op if op is None or isinstance(op, Ops) else tuple(op)
        super().__init__(ops, dtype, src, pattern.ANY if arg is None else arg, name)

    @staticmethod
    def var(name: str | None = None, dtype: Types = None) -> UPat:
        """Any node."""
        return UPat(None, dtype, name=name)

    @staticmethod
    def cvar(name: str | None = None, dtype: Types = None, vec: bool = True) -> UPat:
        """A constant, in every lane where it is a vector."""
        made = UPat(Ops.CONST, dtype, name=name)
        made.plain = True
        return made

    @staticmethod
    def const(dtype: Types, value: ConstType) -> UPat:  # type: ignore[override]
        """This constant: its type comes first."""
        made = UPat.cvar(None, dtype)
        made.literal = value
        return made

    @staticmethod
    def any(*choices: pattern.UPat) -> UPat:
        """What matches one of the patterns, the first that does."""
        made = UPat()
        made.choices = choices
        return made

    def match(self, node: UOp, store: dict[str, UOp]) -> list[dict[str, UOp]]:
        """The captured nodes by name, in a list with those of `store`; empty where it does not match."""
        found = self.matches(node)
        if found is None or any(store.get(name, at) is not at for name, at in found.items()):
            return []
        return [{**store, **found}]

    def f(self, op: Ops, *more: pattern.UPat, **fields: Any) -> Self:
        """A pattern of an operation whose first source this is."""
        return type(self)(op, src=(self, *more), **fields)

    def load(self, *more: pattern.UPat, **fields: Any) -> Self:
        return self.f(Ops.LOAD, *more, **fields)

    def store(self, *more: pattern.UPat, **fields: Any) -> Self:
        return self.f(Ops.STORE, *more, **fields)

    def index(self, *more: pattern.UPat, **fields: Any) -> Self:
        return self.f(Ops.INDEX, *more, **fields)

    def or_casted(self, name: str | None = None) -> UPat:
        """This pattern, or a cast of it; `name` captures which of the two it is."""
        made = UPat.any(self, self.f(Ops.CAST))
        made.name = name
        return made

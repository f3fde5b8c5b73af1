"""The operators that a node and a pattern of nodes share: `x + 1` is ADD of x and of what 1 is beside x."""

from __future__ import annotations

from typing import Self

from ..dtype import ConstType
from .ops import Ops


class Arithmetic:
    """Python's operators, each by the op that it is. `==` stays identity: elementwise equality is `eq`."""

    __slots__ = ()

    def alu(self, op: Ops, *others: Self) -> Self:
        """`op` of this and others; NotImplemented where one of these is."""
        raise NotImplementedError

    def _coerce(self, other: Self | ConstType) -> Self:
        """An operand beside this one, which may be a number; NotImplemented where it answers itself."""
        raise NotImplementedError

    def _beside(self, other: Self | ConstType) -> Self:
        """An operand of what is no operator of Python: nothing else answers there."""
        operand = self._coerce(other)
        if operand is NotImplemented:
            raise TypeError(f"a node takes nodes and numbers beside it, not {type(other).__name__}")
        return operand

    def __add__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.ADD, self._coerce(other))

    def __radd__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.ADD, self)

    def __sub__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.SUB, self._coerce(other))

    def __rsub__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.SUB, self)

    def __mul__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.MUL, self._coerce(other))

    def __rmul__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.MUL, self)

    def __truediv__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.FDIV, self._coerce(other))

    def __rtruediv__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.FDIV, self)

    def __floordiv__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.IDIV, self._coerce(other))

    def __rfloordiv__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.IDIV, self)

    def __mod__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.MOD, self._coerce(other))

    def __rmod__(self, other: Self | ConstType) -> Self:
        return self._coerce(other).alu(Ops.MOD, self)

    def __neg__(self) -> Self:
        return self.alu(Ops.NEG)

    def __and__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.AND, self._coerce(other))

    def __or__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.OR, self._coerce(other))

    def __xor__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.XOR, self._coerce(other))

    def __lshift__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.SHL, self._coerce(other))

    def __rshift__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.SHR, self._coerce(other))

    def __lt__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.CMPLT, self._coerce(other))

    def __gt__(self, other: Self | ConstType) -> Self:
        operand = self._coerce(other)
        return operand if operand is NotImplemented else operand.alu(Ops.CMPLT, self)

    def __le__(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.CMPLE, self._coerce(other))

    def __ge__(self, other: Self | ConstType) -> Self:
        operand = self._coerce(other)
        return operand if operand is NotImplemented else operand.alu(Ops.CMPLE, self)

    def eq(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.CMPEQ, self._beside(other))

    def ne(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.CMPNE, self._beside(other))

    def maximum(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.MAX, self._beside(other))

    def minimum(self, other: Self | ConstType) -> Self:
        return self.alu(Ops.MIN, self._beside(other))

    def reciprocal(self) -> Self:
        return self.alu(Ops.RECIP)

    def sqrt(self) -> Self:
        return self.alu(Ops.SQRT)

    def trunc(self) -> Self:
        return self.alu(Ops.TRUNC)

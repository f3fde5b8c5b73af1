"""Logic on bools and on the bits of integers, shifts included."""

from __future__ import annotations

from typing import Any, Self

from ...dtype import dtypes
from ...gradient import filled
from ...ir.ops import Ops
from ..face import Tensor
from .formulas import formula


class Logic(Tensor):
    """Logic, as methods and operators."""

    def logical_not(self) -> Tensor:
        """Whether an element is 0.

        >>> Tensor([0, 2]).logical_not().tolist()
        [True, False]
        """
        return self == 0 if not dtypes.is_bool(self.dtype) else self != True  # noqa: E712

    def logical_and(self, other: Any) -> Tensor:
        """Whether both are other than 0.

        >>> Tensor([0, 2]).logical_and(True).tolist()
        [False, True]
        """
        return self._bool() & _as_bool(self, other)

    def logical_or(self, other: Any) -> Tensor:
        """Whether one is other than 0.

        >>> Tensor([0, 2]).logical_or(False).tolist()
        [False, True]
        """
        return self._bool() | _as_bool(self, other)

    def logical_xor(self, other: Any) -> Tensor:
        """Whether exactly one is other than 0.

        >>> Tensor([0, 2]).logical_xor(True).tolist()
        [True, False]
        """
        return self._bool() ^ _as_bool(self, other)

    def _bits(self, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        right = self._operand(other)
        if dtypes.is_float(self.dtype) or dtypes.is_float(right.dtype):
            raise TypeError(f"bits of {self.dtype} and {right.dtype} are not combined; cast to integers")
        return self._binary(op, right, reverse)

    bitwise_and = formula(
        "Bits that both have; logic on bools.", lambda x, other: x._bits(Ops.AND, other), [6], [2], 3
    )
    bitwise_or = formula(
        "Bits that one has; logic on bools.", lambda x, other: x._bits(Ops.OR, other), [6], [7], 3
    )
    bitwise_xor = formula(
        "Bits that exactly one has; logic on bools.", lambda x, other: x._bits(Ops.XOR, other), [6], [5], 3
    )

    def bitwise_not(self) -> Tensor:
        """All bits inverted; `not` on bools.

        >>> Tensor([0]).bitwise_not().tolist()
        [-1]
        """
        if dtypes.is_bool(self.dtype):
            return self.logical_not()
        if dtypes.is_float(self.dtype):
            raise TypeError(f"bits of {self.dtype} are not inverted; cast to integers")
        return self._unary(self.uop.alu(Ops.XOR, filled(self.shape, self.dtype, -1)))

    def lshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits moved up; by the width or more gives 0.

        >>> Tensor([1]).lshift(3).tolist()
        [8]
        """
        return self._bits(Ops.SHL, other, reverse)

    def rshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits moved down, the sign kept; by the width or more gives 0, or -1 for negative numbers.

        >>> Tensor([9]).rshift(1).tolist()
        [4]
        """
        return self._bits(Ops.SHR, other, reverse)

    # *** operators

    def __and__(self, other: Any) -> Tensor:
        return self.bitwise_and(other)

    def __rand__(self, other: Any) -> Tensor:
        return self._bits(Ops.AND, other, reverse=True)

    def __or__(self, other: Any) -> Tensor:
        return self.bitwise_or(other)

    def __ror__(self, other: Any) -> Tensor:
        return self._bits(Ops.OR, other, reverse=True)

    def __xor__(self, other: Any) -> Tensor:
        return self.bitwise_xor(other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._bits(Ops.XOR, other, reverse=True)

    def __lshift__(self, other: Any) -> Tensor:
        return self.lshift(other)

    def __rlshift__(self, other: Any) -> Tensor:
        return self.lshift(other, reverse=True)

    def __rshift__(self, other: Any) -> Tensor:
        return self.rshift(other)

    def __rrshift__(self, other: Any) -> Tensor:
        return self.rshift(other, reverse=True)

    def __invert__(self) -> Tensor:
        return self.bitwise_not()

    def __iand__(self, other: Any) -> Self:
        return self._write_back(self & other)

    def __ior__(self, other: Any) -> Self:
        return self._write_back(self | other)

    def __ixor__(self, other: Any) -> Self:
        return self._write_back(self ^ other)

    def __ilshift__(self, other: Any) -> Self:
        return self._write_back(self << other)

    def __irshift__(self, other: Any) -> Self:
        return self._write_back(self >> other)


def _as_bool(near: Tensor, value: Any) -> Tensor:
    return near._operand(value)._bool()

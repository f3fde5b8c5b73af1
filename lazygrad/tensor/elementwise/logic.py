"""Logic on bools and on the bits of integers, shifts included."""

from __future__ import annotations

from typing import Any

from ...dtype import dtypes
from ...gradient import filled
from ...ir.ops import Ops
from ...shape import broadcast_shapes, broadcast_to
from ..face import Tensor
from ..formulas import formula, operator


class Logic(Tensor):
    """Logic, as methods and operators."""

    def logical_not(self) -> Tensor:
        """Whether an element is 0.

        >>> Tensor([0, 2]).logical_not().tolist()
        [True, False]
        """
        return self == 0 if not dtypes.is_bool(self.dtype) else self != True  # noqa: E712

    def logical_and(self, other: Any) -> Tensor:
        """Whether both are nonzero.

        >>> Tensor([0, 2]).logical_and(True).tolist()
        [False, True]
        """
        return self._bool() & _as_bool(self, other)

    def logical_or(self, other: Any) -> Tensor:
        """Whether at least one is nonzero.

        >>> Tensor([0, 2]).logical_or(False).tolist()
        [False, True]
        """
        return self._bool() | _as_bool(self, other)

    def logical_xor(self, other: Any) -> Tensor:
        """Whether exactly one is nonzero.

        >>> Tensor([0, 2]).logical_xor(True).tolist()
        [True, False]
        """
        return self._bool() ^ _as_bool(self, other)

    def _bits(self, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        right = self._operand(other)
        if dtypes.is_float(self.dtype) or dtypes.is_float(right.dtype):
            raise TypeError(f"bits of {self.dtype} and {right.dtype} cannot be combined; cast to integers")
        return self._binary(op, right, reverse)

    bitwise_and = formula(
        "Bitwise and; logical and on bools.", lambda x, other: x._bits(Ops.AND, other), [6], [2], 3
    )
    bitwise_or = formula(
        "Bitwise or; logical or on bools.", lambda x, other: x._bits(Ops.OR, other), [6], [7], 3
    )
    bitwise_xor = formula(
        "Bitwise exclusive or; logical on bools.", lambda x, other: x._bits(Ops.XOR, other), [6], [5], 3
    )

    def bitwise_not(self) -> Tensor:
        """All bits inverted; `not` on bools.

        >>> Tensor([0]).bitwise_not().tolist()
        [-1]
        """
        if dtypes.is_bool(self.dtype):
            return self.logical_not()
        if dtypes.is_float(self.dtype):
            raise TypeError(f"bits of {self.dtype} cannot be inverted; cast to integers")
        return self._unary(self.uop.alu(Ops.XOR, filled(self.shape, self.dtype, -1)))

    def lshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits shifted left; a shift by the width or more gives 0.

        >>> Tensor([1]).lshift(3).tolist()
        [8]
        """
        return self._bits(Ops.SHL, other, reverse)

    def rshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits shifted right, keeping the sign; a shift by the width or more gives 0, or -1 if negative.

        >>> Tensor([9]).rshift(1).tolist()
        [4]
        """
        return self._bits(Ops.SHR, other, reverse)

    def dp4a(self, other: Tensor, total: Any = 0) -> Tensor:
        """`total` and the four products of the bytes of two words, in int32: those of this tensor without
        signs, from 0 to 255, those of `other` with, from -128 to 127. Sums wrap.

        One instruction where the processor has it, as GPUs do.

        >>> Tensor([0x01020304]).dp4a(Tensor([0x01010101]), 5).tolist()
        [15]
        """
        words = (self, self._operand(other), self._operand(total))
        wrong = [each.dtype for each in words if each.dtype is not dtypes.int32]
        if wrong:
            raise TypeError(f"dp4a is for int32, words of four bytes, not {wrong[0]}; bitcast bytes to int32")
        shape = broadcast_shapes(*(each.shape for each in words))
        for each in words:
            self._check_device(each)
        a, b, c = (broadcast_to(each.uop, shape) for each in words)
        return self._make(a.alu(Ops.DP4A, b, c), *words)

    # *** operators

    __and__ = operator(lambda x, other: x.bitwise_and(other))
    __rand__ = operator(lambda x, other: x._bits(Ops.AND, other, reverse=True))
    __or__ = operator(lambda x, other: x.bitwise_or(other))
    __ror__ = operator(lambda x, other: x._bits(Ops.OR, other, reverse=True))
    __xor__ = operator(lambda x, other: x.bitwise_xor(other))
    __rxor__ = operator(lambda x, other: x._bits(Ops.XOR, other, reverse=True))
    __lshift__ = operator(lambda x, other: x.lshift(other))
    __rlshift__ = operator(lambda x, other: x.lshift(other, reverse=True))
    __rshift__ = operator(lambda x, other: x.rshift(other))
    __rrshift__ = operator(lambda x, other: x.rshift(other, reverse=True))
    __invert__ = operator(lambda x: x.bitwise_not())


def _as_bool(near: Tensor, value: Any) -> Tensor:
    return near._operand(value)._bool()

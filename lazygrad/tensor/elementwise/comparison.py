"""Comparisons and questions about elements: bool results."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import cast_value, dtypes, least_upper_dtype
from ...ir.ops import Ops
from ..face import Tensor
from ..formulas import formula, operator
from ..sources import plain_number


class Comparison(Tensor):
    """Comparisons, as methods and operators."""

    def _compare(self, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        other = other if isinstance(other, Tensor) else plain_number(other)
        if isinstance(other, int) and not isinstance(other, bool) and not dtypes.is_float(self.dtype):
            if (
                cast_value(other, dtype := self._scalar_dtype(other)) != other
            ):  # as far as any number beyond it
                far = math.inf if other > dtypes.max(dtype) else -math.inf
                return self.cast(dtypes.float32)._binary(op, far, reverse)
        if isinstance(other, Tensor) and {dtypes.is_int(self.dtype), dtypes.is_int(other.dtype)} == {True}:
            if not dtypes.is_int(least_upper_dtype(self.dtype, other.dtype)):
                return _as_integers(op, *((other, self) if reverse else (self, other)))
        return self._binary(op, other, reverse)

    eq = formula("self == other.", lambda x, other: x._compare(Ops.CMPEQ, other), [1, 2], [False, True], 2)
    ne = formula("self != other.", lambda x, other: x._compare(Ops.CMPNE, other), [1, 2], [True, False], 2)
    lt = formula("self < other.", lambda x, other: x._compare(Ops.CMPLT, other), [1, 2], [True, False], 2)
    le = formula("self <= other.", lambda x, other: x._compare(Ops.CMPLE, other), [1, 2], [True, False], 1)
    gt = formula(
        "self > other.", lambda x, other: x._compare(Ops.CMPLT, other, True), [1, 2], [False, True], 1
    )
    ge = formula(
        "self >= other.", lambda x, other: x._compare(Ops.CMPLE, other, True), [1, 2], [False, True], 2
    )
    isnan = formula("Whether an element is NaN.", lambda x: x != x, "[1.0, math.nan]", [False, True])

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
        """Whether an element is infinite.

        >>> Tensor([1.0, math.inf]).isinf().tolist()
        [False, True]
        """
        if not dtypes.is_float(self.dtype):
            return self._filled(False, dtypes.bool)
        positive, negative = self == math.inf, self == -math.inf
        if detect_positive and detect_negative:
            return positive | negative
        return (
            positive if detect_positive else negative if detect_negative else self._filled(False, dtypes.bool)
        )

    def isfinite(self) -> Tensor:
        """Whether an element is neither infinite nor NaN.

        >>> Tensor([1.0, math.inf]).isfinite().tolist()
        [True, False]
        """
        if not dtypes.is_float(self.dtype):
            return self._filled(True, dtypes.bool)
        return (self > -math.inf) & (self < math.inf)

    def isclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
        """|self - other| <= atol + rtol·|other|, elementwise.

        >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.1])).tolist()
        [True, False]
        """
        if rtol < 0 or atol < 0:
            raise ValueError(f"isclose needs tolerances of at least 0, not {rtol} and {atol}")
        right = self._operand(other)
        if dtypes.is_bool(self.dtype) or dtypes.is_unsigned(
            self.dtype
        ):  # whose differences wrap, or are none
            return self.cast(dtypes.int64).isclose(right, rtol, atol, equal_nan)
        near = (right - self).abs() <= right.abs() * rtol + atol
        close = (self == right) | (near & self.isfinite() & right.isfinite())
        return close | (self.isnan() & right.isnan()) if equal_nan else close

    def _bool(self) -> Tensor:
        return self.cast(dtypes.bool) if dtypes.is_bool(self.dtype) else self != 0

    def equal(self, other: Any) -> bool:
        """Whether another tensor has the same shape and values, as a bool. It computes both.

        >>> Tensor([1, 2]).equal(Tensor([1, 2]))
        True
        """
        right = self._operand(other)
        return self.shape == right.shape and bool((self == right).all().item())

    # *** operators

    __hash__ = Tensor.__hash__

    __eq__ = operator(lambda x, other: NotImplemented if _is_no_operand(other) else x.eq(other))
    __ne__ = operator(lambda x, other: NotImplemented if _is_no_operand(other) else x.ne(other))
    __lt__ = operator(lambda x, other: x.lt(other))
    __le__ = operator(lambda x, other: x.le(other))
    __gt__ = operator(lambda x, other: x.gt(other))
    __ge__ = operator(lambda x, other: x.ge(other))


def _as_integers(op: Ops, left: Tensor, right: Tensor) -> Tensor:
    """A comparison of uint64 with signed integers, whose mix is a float: as numbers, as numpy 2 does.

    A negative number is less than all that are unsigned; the others are compared as unsigned.
    """
    lower = not dtypes.is_unsigned(left.dtype)
    negative = (left if lower else right) < 0
    same = left.cast(dtypes.uint64)._binary(op, right.cast(dtypes.uint64), False)
    holds = op is Ops.CMPNE or (lower and op is not Ops.CMPEQ)
    return negative | same if holds else negative.logical_not() & same


def _is_no_operand(value: Any) -> bool:
    """No tensor equals None or a string: Python then answers False, as it does for numbers."""
    return value is None or isinstance(value, str)

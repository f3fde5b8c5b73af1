"""Casts by the name of the dtype, or to that of another tensor."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ..face import Tensor


class Casting(Tensor):
    """Casts. (A class of its own, because here `int` is a method and no type.)"""

    def float(self) -> Tensor:
        """Cast to float32.

        >>> Tensor([1]).float().tolist()
        [1.0]
        """
        return self.cast(dtypes.float32)

    def half(self) -> Tensor:
        """Cast to float16.

        >>> Tensor([1]).half().dtype
        dtypes.half
        """
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Tensor:
        """Cast to bfloat16.

        >>> Tensor([1]).bfloat16().dtype
        dtypes.bfloat16
        """
        return self.cast(dtypes.bfloat16)

    def double(self) -> Tensor:
        """Cast to float64.

        >>> Tensor([1]).double().dtype
        dtypes.double
        """
        return self.cast(dtypes.float64)

    def int(self) -> Tensor:
        """Cast to int32.

        >>> Tensor([1.5]).int().tolist()
        [1]
        """
        return self.cast(dtypes.int32)

    def long(self) -> Tensor:
        """Cast to int64.

        >>> Tensor([1]).long().dtype
        dtypes.long
        """
        return self.cast(dtypes.int64)

    def short(self) -> Tensor:
        """Cast to int16.

        >>> Tensor([1]).short().dtype
        dtypes.short
        """
        return self.cast(dtypes.int16)

    def char(self) -> Tensor:
        """Cast to int8.

        >>> Tensor([1]).char().dtype
        dtypes.char
        """
        return self.cast(dtypes.int8)

    def byte(self) -> Tensor:
        """Cast to uint8.

        >>> Tensor([1]).byte().dtype
        dtypes.uchar
        """
        return self.cast(dtypes.uint8)

    def bool(self) -> Tensor:
        """Whether elements are other than 0.

        >>> Tensor([0, 2]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)

    def type(self, dtype: DType | str) -> Tensor:
        """Cast to a dtype.

        >>> Tensor([1]).type("float32").tolist()
        [1.0]
        """
        return self.cast(dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """Cast to the dtype of another tensor.

        >>> Tensor([1]).type_as(Tensor([0.5])).tolist()
        [1.0]
        """
        return self.cast(other.dtype)

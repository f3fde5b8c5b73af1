"""How LLVM IR spells types and constants."""

from __future__ import annotations

from ...dtype import ConstType, DType, PtrDType, dtypes
from ...ir.uop import UOp

TYPES = {
    dtypes.bool: "i1", dtypes.int8: "i8", dtypes.uint8: "i8", dtypes.int16: "i16", dtypes.uint16: "i16",
    dtypes.int32: "i32", dtypes.uint32: "i32", dtypes.int64: "i64", dtypes.uint64: "i64",
    dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
#: As intrinsics' names spell a type.
_MANGLED = {"half": "f16", "float": "f32", "double": "f64"}


def type_text(dtype: DType) -> str:
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = TYPES.get(dtype.scalar_type)
    if scalar is None:
        raise NotImplementedError(f"LLVM IR has no {dtype!r}: legalize replaces it")
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def memory_type(dtype: DType) -> str:
    """A bool is a byte in memory."""
    return type_text(dtypes.uint8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype)


def mangled(dtype: DType, memory: bool = False) -> str:
    scalar = (memory_type if memory else type_text)(dtype.scalar_type)
    return (f"v{dtype.count}" if dtype.count > 1 else "") + _MANGLED.get(scalar, scalar)


def splat(text: str, dtype: DType) -> str:
    return text if dtype.count == 1 else f"splat ({type_text(dtype.scalar_type)} {text})"


def zero(dtype: DType) -> str:
    if dtype.count > 1:
        return "zeroinitializer"
    return "0.0" if dtypes.is_float(dtype) else "false" if dtype.scalar_type is dtypes.bool else "0"


def constant(node: UOp) -> str:
    return constant_text(node.arg, node.dtype)


def constant_text(value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
    if not isinstance(value, tuple):
        return splat(_number(value, dtype.scalar_type), dtype)
    lanes = [_number(lane, dtype.scalar_type) for lane in value]
    if len(set(lanes)) == 1:
        return splat(lanes[0], dtype)
    return "<" + ", ".join(f"{type_text(dtype.scalar_type)} {lane}" for lane in lanes) + ">"


def _number(value: ConstType, dtype: DType) -> str:
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if not dtypes.is_float(dtype):
        return str(int(value))
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        if dtype is dtypes.float16:
            return "0xH7E00" if number != number else "0xH7C00" if number > 0 else "0xHFC00"
        return (
            "0x7FF8000000000000" if number != number
            else "0x7FF0000000000000" if number > 0
            else "0xFFF0000000000000"
        )  # fmt: skip
    # A float32 or half is exact as the float64 whose digits these are; LLVM wants a point in the mantissa.
    mantissa, exponent_mark, exponent = repr(number).partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent_mark + exponent


def has_nan(node: UOp) -> bool:
    values = node.arg if isinstance(node.arg, tuple) else (node.arg,)
    return any(value != value for value in values)

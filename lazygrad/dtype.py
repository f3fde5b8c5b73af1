"""Element types: what a tensor's elements are, how they mix, and what a Python number becomes in them.

A `DType` is one of a fixed set of objects, so "same type" is `is`. `vec(n)` is n lanes of it, `ptr(n)` the
address of n elements. `dtypes.index` is the type of index arithmetic: unbounded integers, until `legalize`
picks a width.
"""

from __future__ import annotations

import builtins
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, Protocol

from .config import setting_changed

ConstType = bool | int | float


class DType:
    """The type of one element (or of `count` lanes of it).

    priority  the place in the promotion order    itemsize  bytes of the whole value, lanes included
    name      its name in `dtypes`                fmt       its `struct` letter, None where struct has none
    count     the number of lanes

    Never changed: every tensor of the type would change with it. Copies and pickles give the same object.
    """

    __slots__ = ("_ptrs", "_vecs", "base", "count", "fmt", "itemsize", "name", "priority", "scalar_type")

    priority: int
    itemsize: int
    name: str
    fmt: str | None
    count: int
    scalar_type: DType
    base: DType
    _vecs: dict[int, DType]
    _ptrs: dict[tuple[int, bool, str], PtrDType]

    def __init__(
        self,
        priority: int,
        itemsize: int,
        name: str,
        fmt: str | None,
        count: int = 1,
        scalar_type: DType | None = None,
    ) -> None:
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(
                f"the name of a dtype stands in generated text, and {name!r} is not an identifier"
            )
        self._set(priority=priority, itemsize=itemsize, name=name, fmt=fmt, count=count)
        self._set(scalar_type=scalar_type or self, base=self, _vecs={}, _ptrs={})

    def _set(self, **fields: Any) -> None:
        """While it is made."""
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __setattr__(self, field: str, value: Any) -> NoReturn:
        raise AttributeError(f"{self!r} is the same for all tensors: its {field} cannot be set")

    def __delattr__(self, field: str) -> NoReturn:
        raise AttributeError(f"{self!r} is the same for all tensors: its {field} cannot be deleted")

    def __setstate__(self, state: Any) -> NoReturn:
        raise TypeError(f"{self!r} has no state to set")

    def __repr__(self) -> str:
        return f"dtypes.{self.scalar_type.name}" + (f".vec({self.count})" if self.count > 1 else "")

    def __reduce__(self) -> Any:
        return (_by_name, (self.scalar_type.name, self.count))

    def __lt__(self, other: DType) -> bool:
        return (self.priority, self.itemsize, self.name) < (other.priority, other.itemsize, other.name)

    def scalar(self) -> DType:
        """The type of one lane."""
        return self.scalar_type

    def vec(self, count: int) -> DType:
        """`count` lanes of this type; `vec(1)` is the type itself."""
        if self.count != 1:
            raise ValueError(f"{self!r} is a vector already; take .scalar() first")
        if count == 1 or self.name == "void":
            return self
        found = self._vecs.get(count)
        if found is None:
            made = DType(self.priority, self.itemsize * count, f"{self.name}{count}", None, count, self)
            found = self._vecs.setdefault(count, made)
        return found

    def ptr(self, size: int = -1, local: bool = False, role: str = "data") -> PtrDType:
        """The address of `size` elements; `local` for memory inside the kernel; `role`: what it is called."""
        found = self._ptrs.get((size, local, role))
        return found or self._ptrs.setdefault((size, local, role), PtrDType(self, size, local, role))

    @property
    def min(self) -> ConstType:
        return dtypes.min(self)

    @property
    def max(self) -> ConstType:
        return dtypes.max(self)


class PtrDType(DType):
    """The address of `size` elements of `base`."""

    __slots__ = ("local", "role", "size")

    size: int
    local: bool
    role: str

    def __init__(self, base: DType, size: int, local: bool, role: str) -> None:
        super().__init__(base.priority, base.itemsize, base.name, base.fmt, base.count, base.scalar_type)
        self._set(base=base, size=size, local=local, role=role)

    def __repr__(self) -> str:
        more = ", local" if self.local else "" if self.role == "data" else f", {self.role}"
        return f"{self.base!r}.ptr({self.size}{more})"

    def __reduce__(self) -> Any:
        return (DType.ptr, (self.base, self.size, self.local, self.role))

    def vec(self, count: int) -> DType:
        raise ValueError(f"{self!r} is an address, which has no lanes")


class ImageDType:
    """Textures (a name of the older documents)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("image dtypes (textures) are not supported yet; use an ordinary dtype")


class _Defaults(type):
    """`dtypes.default_float` and `dtypes.default_int` can be read and set."""

    @property
    def default_float(cls) -> DType:
        return default_float()

    @default_float.setter
    def default_float(cls, dtype: DType) -> None:
        if not dtypes.is_float(dtype):
            raise TypeError(f"the default float must be a float type, not {dtype}")
        set_default_dtype(dtype)

    @property
    def default_int(cls) -> DType:
        return default_int()

    @default_int.setter
    def default_int(cls, dtype: DType) -> None:
        if not dtypes.is_int(dtype):
            raise TypeError(f"the default int must be an integer type, not {dtype}")
        set_default_dtype(dtype)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name not in ("default_float", "default_int"):
            raise AttributeError(f"dtypes.{name} cannot be set; dtypes.default_float and default_int can")
        super().__setattr__(name, value)


class dtypes(metaclass=_Defaults):
    """Every element type, under its short and its sized name."""

    void: Final = DType(-1, 0, "void", None)
    index: Final = DType(-1, 8, "index", None)
    bool: Final = DType(0, 1, "bool", "?")
    int8: Final = DType(1, 1, "char", "b")
    uint8: Final = DType(2, 1, "uchar", "B")
    int16: Final = DType(3, 2, "short", "h")
    uint16: Final = DType(4, 2, "ushort", "H")
    int32: Final = DType(5, 4, "int", "i")
    uint32: Final = DType(6, 4, "uint", "I")
    int64: Final = DType(7, 8, "long", "q")
    uint64: Final = DType(8, 8, "ulong", "Q")
    fp8e4m3: Final = DType(9, 1, "fp8e4m3", None)
    fp8e5m2: Final = DType(10, 1, "fp8e5m2", None)
    float16: Final = DType(11, 2, "half", "e")
    bfloat16: Final = DType(12, 2, "bfloat16", None)
    float32: Final = DType(13, 4, "float", "f")
    float64: Final = DType(14, 8, "double", "d")

    char = int8
    uchar = uint8
    short = int16
    ushort = uint16
    int = int32
    uint = uint32
    long = int64
    ulong = uint64
    half = float16
    float = float32
    double = float64

    fp8s = (fp8e4m3, fp8e5m2)
    #: in the order in which they are tried as the type of a mix
    floats = (*fp8s, float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = (*uints, *sints)
    all = (*floats, *ints, bool)

    @staticmethod
    def fields() -> dict[str, DType]:
        """Every type by every name that it has here."""
        return {name: found for name, found in vars(dtypes).items() if isinstance(found, DType)}

    @staticmethod
    def is_float(dtype: DType) -> builtins.bool:
        return dtype.scalar_type in _FLOATS

    @staticmethod
    def is_int(dtype: DType) -> builtins.bool:
        """An integer type, `index` included, `bool` not."""
        return dtype.scalar_type in _INTS

    @staticmethod
    def is_unsigned(dtype: DType) -> builtins.bool:
        return dtype.scalar_type in _UNSIGNED

    @staticmethod
    def is_bool(dtype: DType) -> builtins.bool:
        return dtype.scalar_type is dtypes.bool

    @staticmethod
    def min(dtype: DType) -> ConstType:
        """The smallest value: -inf for floats."""
        if dtypes.is_float(dtype):
            return -math.inf
        if dtypes.is_bool(dtype):
            return False
        return 0 if dtypes.is_unsigned(dtype) else -(1 << (dtype.scalar_type.itemsize * 8 - 1))

    @staticmethod
    def max(dtype: DType) -> ConstType:
        """The largest value: inf for floats."""
        if dtypes.is_float(dtype):
            return math.inf
        if dtypes.is_bool(dtype):
            return True
        bits = dtype.scalar_type.itemsize * 8
        return (1 << bits) - 1 if dtypes.is_unsigned(dtype) else (1 << (bits - 1)) - 1

    @staticmethod
    def finfo(dtype: DType) -> FloatInfo:
        """The limits of a float type."""
        if not dtypes.is_float(dtype):
            raise TypeError(f"finfo needs a float dtype, not {dtype}")
        return FloatInfo(dtype.scalar_type)

    @staticmethod
    def iinfo(dtype: DType) -> IntInfo:
        """The limits of an integer type."""
        if not dtypes.is_int(dtype):
            raise TypeError(f"iinfo needs an integer dtype, not {dtype}")
        return IntInfo(dtype.scalar_type)

    @staticmethod
    def as_const(value: ConstType, dtype: DType) -> ConstType:
        """The Python number that a value is in a type: of an integer type an int, of a float type a float."""
        return cast_value(value, dtype)

    @staticmethod
    def from_py(value: Any) -> DType:
        """The type that a bare Python number takes, or a list or tuple of them together."""
        if isinstance(value, (list, tuple)):
            kinds = [dtypes.from_py(one) for one in value]
            return max(kinds, default=default_float())
        if isinstance(value, builtins.bool):
            return dtypes.bool
        if isinstance(value, builtins.int):
            return default_int()
        if isinstance(value, builtins.float):
            return default_float()
        raise TypeError(f"{value!r} is a {type(value).__name__}, not a number")


_UNSIGNED = frozenset(dtypes.uints)
_INTS = frozenset((*dtypes.ints, dtypes.index))
_FLOATS = frozenset(dtypes.floats)
#: Every type a tensor may have, in promotion order.
ALL_DTYPES: tuple[DType, ...] = tuple(sorted(dtypes.all, key=lambda d: d.priority))
_OF_TENSORS = frozenset(ALL_DTYPES)
DTYPES_BY_NAME: dict[str, DType] = {
    **{d.name: d for d in (*ALL_DTYPES, dtypes.void, dtypes.index)},
    **dtypes.fields(),
}


def _by_name(name: str, count: int) -> DType:
    return DTYPES_BY_NAME[name].vec(count)


class NamedDType(Protocol):
    """A dtype of another library: numpy's `np.dtype("int8")`."""

    @property
    def itemsize(self) -> int: ...


#: What says a dtype: ours, a name, one of Python's (bool, int, float: the default ones) and numpy's types, or
#: a dtype of numpy, ml_dtypes or PyTorch.
DTypeSaid = DType | str | type[Any] | NamedDType


def to_dtype(dtype: DTypeSaid) -> DType:
    """The dtype of tensors, itself or as it is said; an unknown name raises and suggests the nearest."""
    if isinstance(dtype, DType):
        if dtype not in _OF_TENSORS:
            raise TypeError(
                f"{dtype!r} is no dtype of tensors; known: {', '.join(d.name for d in ALL_DTYPES)}"
            )
        return dtype
    found = DTYPES_BY_NAME.get(dtype) if isinstance(dtype, str) else _foreign_dtype(dtype)
    if found not in _OF_TENSORS:
        import difflib

        near = difflib.get_close_matches(str(dtype), DTYPES_BY_NAME, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(d.name for d in ALL_DTYPES)}"
        shown = f"a {type(dtype).__name__}" if hasattr(dtype, "shape") else repr(dtype)
        raise TypeError(f"{shown} is not a dtype{hint}")
    return found


def dtype_of_bits(dtype: DTypeSaid) -> DType:
    """`to_dtype` where bytes are looked at as they are: numbers of the other byte order are refused."""
    if not getattr(dtype, "isnative", True):
        raise TypeError(
            f"{dtype!r} is of the other byte order: its bytes are not this machine's numbers; read them with "
            "numpy.frombuffer, whose array Tensor() copies"
        )
    return to_dtype(dtype)


def says_dtype(value: DTypeSaid) -> builtins.bool:
    """Whether an argument that may also be a device says a dtype."""
    if isinstance(value, str):
        return value in DTYPES_BY_NAME
    return type(value).__name__ != "device"  # PyTorch's


#: ml_dtypes' names of our 8-bit floats.
_FP8_NAMES = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}


def _foreign_dtype(dtype: Any) -> DType | None:
    """The dtype that one of Python's, numpy's, ml_dtypes' or PyTorch's types stands for; None for others."""
    if dtype is builtins.bool:
        return dtypes.bool
    if dtype is int or dtype is float:
        return dtypes.default_int if dtype is int else dtypes.default_float
    kind = dtype if isinstance(dtype, type) else type(dtype)
    library = kind.__module__.partition(".")[0]
    if library == "torch":
        name = str(dtype).removeprefix("torch.")
    elif library in ("numpy", "ml_dtypes"):
        import numpy as np

        try:
            name = np.dtype(dtype).name
        except TypeError:
            return None
    else:
        return None
    return DTYPES_BY_NAME.get(_FP8_NAMES.get(name, name))


class FloatInfo:
    """Limits of a float type, as `numpy.finfo` names them."""

    #: dtype → (exponent bits, mantissa bits, largest finite value)
    _LAYOUT: dict[DType, tuple[int, int, float]] = {
        dtypes.fp8e4m3: (4, 3, 448.0),  # the "fn" variant: no infinity (OCP 8-bit floating point, 2023)
        dtypes.fp8e5m2: (5, 2, 57344.0),
        dtypes.float16: (5, 10, 65504.0),
        dtypes.bfloat16: (8, 7, (2.0 - 2.0**-7) * 2.0**127),
        dtypes.float32: (8, 23, (2.0 - 2.0**-23) * 2.0**127),
        dtypes.float64: (11, 52, 1.7976931348623157e308),
    }

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.exponent_bits, self.mantissa_bits, self.max = self._LAYOUT[dtype]
        self.bits = dtype.itemsize * 8
        self.min = -self.max
        self.eps = 2.0**-self.mantissa_bits
        self.bias = (1 << (self.exponent_bits - 1)) - 1
        self.tiny = self.smallest_normal = 2.0 ** (1 - self.bias)
        self.smallest_subnormal = 2.0 ** (1 - self.bias - self.mantissa_bits)

    def __repr__(self) -> str:
        return f"finfo(dtype={self.dtype}, bits={self.bits}, min={self.min}, max={self.max}, eps={self.eps})"

    def __iter__(self) -> Iterator[int]:
        """The bits of the exponent and of the mantissa: `exponent, mantissa = dtypes.finfo(dtype)`."""
        return iter((self.exponent_bits, self.mantissa_bits))


class IntInfo:
    """Limits of an integer type, as `numpy.iinfo` names them."""

    def __init__(self, dtype: DType) -> None:
        self.dtype, self.bits = dtype, dtype.itemsize * 8
        self.min, self.max = int(dtypes.min(dtype)), int(dtypes.max(dtype))

    def __repr__(self) -> str:
        return f"iinfo(dtype={self.dtype}, bits={self.bits}, min={self.min}, max={self.max})"


# *** Python numbers in a dtype


def _round_narrow(dtype: DType) -> Callable[[float], float]:
    """Round to nearest, ties to even, in a format that `struct` has no letter for."""
    info = FloatInfo(dtype)
    overflow = math.nan if dtype is dtypes.fp8e4m3 else math.inf

    def rounded(value: float) -> float:
        if value != value or value == 0.0 or math.isinf(value):
            return math.copysign(overflow, value) if math.isinf(value) else value
        exponent = max(math.frexp(value)[1] - 1, 1 - info.bias)
        step = 2.0 ** (exponent - info.mantissa_bits)
        result = round(value / step) * step  # Python rounds ties to even; both products are exact
        if abs(result) > info.max:
            return math.copysign(overflow, value)
        return math.copysign(result, value)

    return rounded


def _round_struct(fmt: str) -> Callable[[float], float]:
    pack, unpack = struct.Struct(fmt).pack, struct.Struct(fmt).unpack

    def rounded(value: float) -> float:
        try:
            return unpack(pack(value))[0]  # type: ignore[no-any-return]
        except OverflowError:
            return math.copysign(math.inf, value)

    return rounded


def _wrap(dtype: DType) -> Callable[[int], int]:
    bits = dtype.itemsize * 8
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if dtypes.is_unsigned(dtype):
        return lambda value: value & mask
    return lambda value: ((value + half) & mask) - half


_TRUNCATE: dict[DType, Callable[[Any], Any]] = {
    dtypes.bool: bool,
    dtypes.index: int,
    dtypes.float64: float,
    dtypes.float32: _round_struct("<f"),
    dtypes.float16: _round_struct("<e"),
    **{d: _round_narrow(d) for d in (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)},
    **{d: _wrap(d) for d in _INTS if d is not dtypes.index},
}


def truncate(value: ConstType, dtype: DType) -> ConstType:
    """The value as `dtype` holds it: floats rounded to nearest even, integers wrapped.

    `value` is of the right Python kind already: an int for integers, a float for floats.
    """
    return _TRUNCATE[dtype.scalar_type](value)  # type: ignore[no-any-return]


def truncation(dtype: DType) -> Callable[[Any], Any]:
    """`truncate` to one dtype, for who asks it of many values."""
    return _TRUNCATE[dtype.scalar_type]


def cast_value(value: ConstType, dtype: DType) -> ConstType:
    """What CAST makes of a number: float → int saturates, NaN → 0, int → int wraps, to bool is != 0."""
    scalar = dtype.scalar_type
    if scalar is dtypes.bool:
        return bool(value)
    if scalar in _FLOATS:
        try:
            exact = scalar is dtypes.float64 or abs(value) < 1 << 53 or isinstance(value, float)
            return truncate(float(value if exact else _odd(int(value))), scalar)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, float):
        if value != value:
            return 0
        low, high = int(dtypes.min(scalar)), int(dtypes.max(scalar))
        if scalar is not dtypes.index:
            return high if value >= high else low if value <= low else int(value)
    return truncate(int(value), scalar)


def _odd(value: int) -> int:
    """An integer cut off to 53 bits, the last one set if anything was cut: a float of it is rounded once."""
    cut = abs(value).bit_length() - 53
    kept = (abs(value) >> cut) | (abs(value) & ((1 << cut) - 1) != 0)
    return kept << cut if value >= 0 else -(kept << cut)


def const_bits(value: ConstType, dtype: DType) -> Any:
    """A key that keeps apart what `==` joins: 0.0 and -0.0, and makes every NaN one."""
    if isinstance(value, float):
        if value != value:
            return "nan"
        return (value, math.copysign(1.0, value)) if value == 0.0 else value
    return value


def storage_fmt(dtype: DType) -> str:
    """The `struct` letter of the bytes in memory: bf16 and fp8 are read and written as plain integers."""
    return dtype.fmt or {1: "B", 2: "H"}[dtype.itemsize]


# *** promotion


def least_upper_dtype(*found: DType) -> DType:
    """The type that holds a mix of types, whatever their order.

    As in JAX (JEP 9407): bool < ints < floats; signed and unsigned of one width meet in the next wider signed
    type, uint64 and a signed type in float32; half and bfloat16 meet in float32.
    """
    kinds = {dtype.scalar_type for dtype in found}
    if len(kinds) == 1:
        return kinds.pop()
    floats = kinds & _FLOATS
    if floats:
        return next(d for d in dtypes.floats if all(d is f or d.itemsize > f.itemsize for f in floats))
    signed, unsigned = kinds - _UNSIGNED - {dtypes.bool}, kinds & _UNSIGNED
    widest = max(kinds)
    if not signed or not unsigned or max(signed).itemsize > max(unsigned).itemsize:
        return max(signed) if signed else widest
    return {1: dtypes.int16, 2: dtypes.int32, 4: dtypes.int64, 8: dtypes.float32}[max(unsigned).itemsize]


def sum_acc_dtype(dtype: DType) -> DType:
    """The type in which a sum of this type is accumulated and returned: 32 bits or more."""
    if dtypes.is_float(dtype):
        return least_upper_dtype(dtype, dtypes.float32)
    if dtypes.is_unsigned(dtype):
        return least_upper_dtype(dtype, dtypes.uint32)
    return least_upper_dtype(dtype, dtypes.int32)


INITIAL_DEFAULTS: dict[str, DType] = {"float": dtypes.float32, "int": dtypes.int32}
defaults = dict(INITIAL_DEFAULTS)


def wide_float(dtype: DType) -> DType:
    """The float dtype for formulas of several steps: this one, if it has 32 bits at least, else float32."""
    return dtype if dtypes.is_float(dtype) and dtype.itemsize >= 4 else dtypes.float32


def default_float() -> DType:
    """The type of a bare Python float."""
    return defaults["float"]


def default_int() -> DType:
    """The type of a bare Python int."""
    return defaults["int"]


def set_default_dtype(dtype: DTypeSaid) -> None:
    """Choose the type that bare Python floats (or, for an integer type, bare ints) take."""
    chosen = to_dtype(dtype)
    if not (dtypes.is_float(chosen) or dtypes.is_int(chosen)):
        raise TypeError(f"a default dtype must be a float or an integer type, not {chosen}")
    set_defaults({**defaults, "float" if dtypes.is_float(chosen) else "int": chosen})


def set_defaults(chosen: dict[str, DType]) -> None:
    """Choose both; what has followed from others is worked out again."""
    if chosen != defaults:
        defaults.update(chosen)
        setting_changed()


def numpy_name(dtype: DType) -> str:
    """The name numpy gives this type in memory; bf16 and fp8 are unsigned integers of their width to it."""
    scalar = dtype.scalar_type
    if scalar.fmt is None:
        return {1: "uint8", 2: "uint16"}[scalar.itemsize]
    if scalar is dtypes.bool:
        return "bool"
    kind = "float" if scalar in _FLOATS else "uint" if scalar in _UNSIGNED else "int"
    return f"{kind}{scalar.itemsize * 8}"


def from_numpy_name(name: str) -> DType:
    """The dtype of a numpy dtype's name; a type we have not raises."""
    found = _NUMPY_NAMES.get(name)
    if found is None:
        raise TypeError(f"numpy dtype {name} has no lazygrad dtype; supported: {', '.join(_NUMPY_NAMES)}")
    return found


_NUMPY_NAMES = {numpy_name(d): d for d in ALL_DTYPES if d.fmt is not None}

"""Narrow floats (bfloat16, fp8, half where the target lacks it): integers in memory, float32 in arithmetic.

A part of `legalize`. Every value of a narrow type becomes the float32 of the same value. Each op on
them is done in float32 and its result rounded to the narrow type at once (to nearest, ties to even), as
`ops.execute` does: for + − × ÷ and √ rounding twice gives what rounding once would, since float32 has
more than twice the digits. A REDUCE accumulates in float32 and rounds its result. Everything is
arithmetic on bits: no branches, no tables.
"""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.ops import ALU, COMPARISONS, Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from ..expressions.narrow import NARROW

_FP8 = (dtypes.fp8e4m3, dtypes.fp8e5m2)
#: Ops whose result is one of their sources, or exact: nothing to round.
_EXACT = frozenset((Ops.NEG, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.TRUNC, Ops.FMOD))


class Emulation:
    """`emulated`: types whose arithmetic is done in float32; `stored`: types the target loads and casts."""

    def __init__(self, renderer: Renderer) -> None:
        self.emulated = {d for d in NARROW if not renderer.supports(Ops.ADD, d)}
        self.stored = {d for d in NARROW if renderer.supports(Ops.LOAD, d)}
        self.flushes = renderer.target.flushes
        self.narrowed: dict[tuple[UOp, DType], UOp] = {}  #: a number that is of a type → it in that type

    def change(self, node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        """The node without these types, on sources that are; None where it has nothing to do with them."""
        touched = node.dtype.scalar_type in NARROW or any(s.dtype.scalar_type in NARROW for s in node.src)
        return self.narrow(node, src) if touched else None

    def narrow(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """The node for one that makes or takes narrow floats."""
        op, dtype = node.op, node.dtype
        scalar = dtype.scalar_type
        wide = (
            dtypes.float32.vec(dtype.count)
            if scalar in self.emulated and not isinstance(dtype, PtrDType)
            else dtype
        )
        if op is Ops.FETCH:
            return UOp(op, dtype, src, node.arg)
        if isinstance(dtype, PtrDType):  # DEFINE_GLOBAL, DEFINE_LOCAL, INDEX
            return UOp(op, self.storage(dtype), src, node.arg)
        if op is Ops.LOAD and scalar not in NARROW:  # a word of them
            return UOp(op, dtype, src, node.arg)
        if op is Ops.LOAD:
            bits = UOp(op, src[0].dtype.base.vec(dtype.count), src, node.arg)
            value = self.decode(bits, scalar)
            self.narrowed[value, scalar] = bits
            return value
        if op is Ops.STORE:
            return self.store(node, src)
        if op is Ops.CAST:
            return self.cast(src[0], node.src[0].dtype.scalar_type, scalar)
        if op is Ops.BITCAST:
            return self.bitcast(src[0], node.src[0].dtype.scalar_type, dtype)
        made = UOp(op, wide, src, node.arg)
        if op in COMPARISONS or wide is dtype:
            return UOp(op, dtype, src, node.arg)
        exact = op in _EXACT or (op not in ALU and not (op is Ops.REDUCE and node.arg in (Ops.ADD, Ops.MUL)))
        return made if exact else self.rounded(made, scalar)

    def storage(self, dtype: PtrDType) -> DType:
        """The pointer type through which a narrow type is read and written."""
        scalar = dtype.base.scalar_type
        if scalar in self.stored:
            return dtype
        return _word(scalar).vec(dtype.base.count).ptr(dtype.size, dtype.local)

    def decode(self, bits: UOp, scalar: DType) -> UOp:
        if scalar not in self.emulated:
            return bits
        return bits.cast(dtypes.float32) if scalar in self.stored else decode(bits, scalar, self.flushes)

    def encode(self, value: UOp, scalar: DType) -> UOp:
        if scalar not in self.emulated:
            return value
        if (value, scalar) in self.narrowed:
            return self.narrowed[value, scalar]
        return value.cast(scalar) if scalar in self.stored else encode(value, scalar, self.flushes)

    def rounded(self, value: UOp, scalar: DType) -> UOp:
        """A float32 rounded to a value of the narrow type, kept as a float32."""
        if scalar not in self.stored:
            return round_to(value, scalar)
        narrow = value.cast(scalar)
        made = narrow.cast(dtypes.float32)
        self.narrowed[made, scalar] = narrow
        return made

    def store(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        scalar = node.src[1].dtype.scalar_type
        if scalar in self.emulated and isinstance(node.arg, Ops) and node.arg is not Ops.SCATTER:
            raise NotImplementedError(
                f"a store that combines ({node.arg}) with {scalar} in memory is not supported"
            )
        return UOp(node.op, node.dtype, (src[0], self.encode(src[1], scalar), *src[2:]), node.arg)

    def cast(self, value: UOp, source: DType, target: DType) -> UOp:
        """A value, in its new form, of type `source` as `target`: rounded once, and by way of float32."""
        if target not in NARROW:
            return value.cast(dtypes.float32).cast(target)
        if source is dtypes.float64:
            value = round_to_odd(value)
        elif dtypes.is_int(source):
            value = _integer_for(value, target)
        if target not in self.emulated:
            return value.cast(dtypes.float32).cast(target)
        value = value.cast(dtypes.float32)
        exact = (
            source is dtypes.bool
            or source is target
            or (source in _FP8 and target not in _FP8)  # half and bfloat16 have every value of both
        )
        return value if exact else self.rounded(value, target)

    def bitcast(self, value: UOp, source: DType, target: DType) -> UOp:
        if source in self.emulated:
            value = self.encode(value, source)
        if target.scalar_type in self.emulated:
            word = target.scalar_type if target.scalar_type in self.stored else _word(target.scalar_type)
            return self.decode(value.bitcast(word), target.scalar_type)
        return value.bitcast(target)


def _word(scalar: DType) -> DType:
    return dtypes.uint8 if scalar.itemsize == 1 else dtypes.uint16


# *** float32 ↔ narrow bits


def decode(bits: UOp, scalar: DType, flushes: bool = False) -> UOp:
    """The float32 of the same value as these bits (an unsigned integer) of a narrow type."""
    info = dtypes.finfo(scalar)
    word = bits.cast(dtypes.uint32)
    if scalar is dtypes.bfloat16:
        return (word << 16).bitcast(dtypes.float32)
    drop = 23 - info.mantissa_bits
    sign = (word & (1 << (info.bits - 1))) << (32 - info.bits)
    magnitude = (word & ((1 << (info.bits - 1)) - 1)) << drop
    if flushes:  # normal numbers by their exponent; a subnormal one is a whole number of the smallest
        whole = (magnitude >> drop).cast(dtypes.float32) * 2.0 ** (1 - info.bias - info.mantissa_bits)
        normal = magnitude + ((127 - info.bias) << 23)
        value = (magnitude < (1 << 23)).where(whole.bitcast(dtypes.uint32), normal)
    else:
        # The exponent read as float32's is 2**(127 - bias) too small, subnormals too: an exact product.
        value = (magnitude.bitcast(dtypes.float32) * 2.0 ** (127 - info.bias)).bitcast(dtypes.uint32)
    if scalar is dtypes.fp8e4m3:  # one NaN, no infinity
        value = magnitude.eq(0x7F << drop).where(0x7FC00000, value)
    else:
        special = ((1 << info.exponent_bits) - 1) << 23
        value = (magnitude < special).where(value, magnitude | 0x7F800000)
    return (value | sign).bitcast(dtypes.float32)


def encode(value: UOp, scalar: DType, flushes: bool = False) -> UOp:
    """The bits, as an unsigned integer, of a float32 that is a value of the narrow type (see `round_to`)."""
    info = dtypes.finfo(scalar)
    word = value.bitcast(dtypes.uint32)
    if scalar is dtypes.bfloat16:
        return (word >> 16).cast(dtypes.uint16)
    sign = (word & 0x80000000) >> (32 - info.bits)
    magnitude = word & 0x7FFFFFFF
    if flushes:
        number = magnitude.bitcast(dtypes.float32)
        small = number < info.tiny
        whole = small.where(number * 2.0 ** (info.bias - 1 + info.mantissa_bits), 0.0).cast(dtypes.uint32)
        normal = (magnitude - ((127 - info.bias) << 23)) >> (23 - info.mantissa_bits)
        code = small.where(whole, normal)
    else:
        scaled = magnitude.bitcast(dtypes.float32) * 2.0 ** (info.bias - 127)
        code = scaled.bitcast(dtypes.uint32) >> (23 - info.mantissa_bits)
    infinity = ((1 << info.exponent_bits) - 1) << info.mantissa_bits
    if scalar is dtypes.fp8e4m3:
        code = (magnitude < 0x7F800001).where(code | sign, 0x7F)
    else:
        quiet = infinity | 1 << (info.mantissa_bits - 1)
        code = (magnitude < 0x7F800000).where(
            code, (magnitude < 0x7F800001).where(code.const_like(infinity), quiet)
        ) | sign
    return code.cast(_word(scalar))


def round_to(value: UOp, scalar: DType) -> UOp:
    """A float32 rounded to the nearest value of the narrow type, ties to even, kept as a float32."""
    info = dtypes.finfo(scalar)
    drop = 23 - info.mantissa_bits
    word = value.bitcast(dtypes.uint32)
    half = (1 << (drop - 1)) - 1
    keep = 0xFFFFFFFF ^ ((1 << drop) - 1)
    nearest = (
        word + ((word >> drop) & 1) + half
    ) & keep  # a carry out of the mantissa raises the exponent: right
    if scalar is dtypes.bfloat16:  # subnormals and overflow to infinity come out right by themselves
        quiet = (word | 0x00400000) & keep
        return value.ne(value).where(quiet, nearest).bitcast(dtypes.float32)
    sign = word & 0x80000000
    magnitude = (word & 0x7FFFFFFF).bitcast(dtypes.float32)
    # Below the normal range the spacing is fixed: adding a number with that spacing rounds to it.
    spaced = 2.0 ** (1 - info.bias - info.mantissa_bits + 23)
    subnormal = ((magnitude + spaced) - spaced).bitcast(dtypes.uint32) | sign
    rounded = (magnitude < info.tiny).where(subnormal, nearest)
    overflow = sign | 0x7F800000 if scalar is not dtypes.fp8e4m3 else word.const_like(0x7FC00000)
    rounded = ((rounded & 0x7FFFFFFF).bitcast(dtypes.float32) <= info.max).where(rounded, overflow)
    return value.ne(value).where(value, rounded.bitcast(dtypes.float32))


# *** wider types → float32, so that the narrow rounding that follows is the only one


def round_to_odd(value: UOp) -> UOp:
    """A float64 as a float32, an inexact one with its last bit set: rounding it to fewer digits rounds once.

    S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
    to odd", 2008.
    """
    nearest = value.cast(dtypes.float32)
    back = nearest.cast(dtypes.float64)
    word = nearest.bitcast(dtypes.uint32)
    sign_free = (word & 0x7FFFFFFF).bitcast(dtypes.float32).cast(dtypes.float64)
    magnitude = (value < 0.0).where(-value, value)
    toward_zero = (magnitude < sign_free).where(word - 1, word)
    odd = (toward_zero | 1).bitcast(dtypes.float32)
    return (back.eq(value) | value.ne(value)).where(nearest, odd)


def _integer_for(value: UOp, target: DType) -> UOp:
    """An integer whose float32 is exact and rounds to `target` as the given integer does."""
    source = value.dtype.scalar_type
    bits = source.itemsize * 8
    if bits <= 16:
        return value
    if target is not dtypes.bfloat16:  # all of them overflow long before 2**20
        limit = 1 << 20
        value = (value < limit).where(value, limit)
        return value if dtypes.is_unsigned(source) else (value < -limit).where(-limit, value)
    # Eight digits count, and whether anything follows: the low bits of larger numbers become one sticky bit.
    magnitude = value if dtypes.is_unsigned(source) else (value < 0).where(-value, value)
    result = value
    for least, low in (
        (24, 15),
        (39, 30),
        (54, 45),
    ):  # 24 digits at most are left, the sticky one 9 below the first
        if least >= bits:
            break
        mask = (1 << low) - 1
        sticky = (value & mask).ne(0).where(value.const_like(1 << low), 0)
        result = (magnitude < (1 << least)).where(result, (value & ~mask) | sticky)
    if not dtypes.is_unsigned(source):  # the least integer is its own negation, and exact
        result = (magnitude < 0).where(value, result)
    return result

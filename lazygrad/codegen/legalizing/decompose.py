"""What a target lacks, said in what it has: a table of rules, applied by `graph_rewrite`.

A row is (pattern, replacement, condition). `ctx` is what the target has; most rows hold where it lacks the op
(`lacks`). A row makes nodes that are legal, or that other rows make legal, so the rewriting comes to an end.
Whether a division, a shift or a CAST is legal as it stands depends on the numbers that it may meet, on their
`bounds`. A row that makes sure of them by a choice, which `bounds` does not see through, notes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...dtype import DType, dtypes
from ...ir.index import bounds, note_bounds
from ...ir.ops import ELEMENTWISE, OPS, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.rewrite import graph_rewrite, same_value
from ...ir.uop import UOp
from ...renderer import Renderer
from ...simplify.algebra import BOOLS, FLOATS, INTS, NUMBERS, WHOLE
from ..expressions.constants import fold, gathered, is_zero, lane_of, lane_values, power_of_two
from .transcendental import DECOMPOSITIONS


@dataclass(eq=False)
class Abilities:
    """What a renderer supports, asked once for each op and type: the `ctx` of the rules."""

    renderer: Renderer
    known: dict[tuple[Ops, DType], bool] = field(default_factory=dict)

    def has(self, op: Ops, dtype: DType) -> bool:
        key = (op, dtype.scalar_type)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.renderer.supports(op, dtype.scalar_type)
        return found


def decompose(sink: UOp, renderer: Renderer) -> UOp:
    """Every elementwise op in a form that the target has, constants folded on the way.

    float64 is the one type that nothing else stands in for: NotImplementedError where the target lacks it.
    """
    if not renderer.supports(Ops.ADD, dtypes.float64):
        if any(node.dtype.scalar_type is dtypes.float64 for node in sink.toposort()):
            raise NotImplementedError(
                f"float64 on a device that has none ({renderer.target.name}); "
                "cast to float32, or compute on CPU"
            )
    return decomposed(sink, renderer)


def decomposed(root: UOp, renderer: Renderer, kept: Iterable[UOp] = ()) -> UOp:
    """The same for one value; what is `kept` is legal already, and not entered."""
    return graph_rewrite(
        root, decompositions, Abilities(renderer), "decompose", rebuild=same_value, kept=kept
    )


x, y, z = UPat.var("x"), UPat.var("y"), UPat.var("z")
flag = UPat.var("flag", dtypes.bool)


def lacks(ctx: Abilities, n: UOp) -> bool:
    """Whether the target does not have this op on this type."""
    return not ctx.has(n.op, n.src[-1].dtype)


def _noted(node: UOp, least: int, greatest: int) -> UOp:
    """A node whose value has bounds that its form does not show; a float's are those of its whole part."""
    note_bounds(node, least, greatest)
    return node


def _bits(x: UOp) -> int:
    return x.dtype.scalar_type.itemsize * 8


# *** constants, lanes, choices

_CONST = UPat(Ops.CONST)


def _exact(arity: int) -> tuple[Ops, ...]:
    return tuple(op for op in ELEMENTWISE if OPS[op].exact and OPS[op].arity == arity and op is not Ops.CHECK)


def folded(n: UOp) -> UOp | None:
    return fold(n.op, n.dtype, n.src)


constants = PatternMatcher(
    [
        (UPat(_exact(1), src=(_CONST,), name="n"), folded),
        (UPat(_exact(2), src=(_CONST, _CONST), name="n"), folded),
        (UPat(_exact(3), src=(_CONST, _CONST, _CONST), name="n"), folded),
        (UPat(Ops.POW, INTS, (_CONST, _CONST), name="n"), folded),
        (UPat(Ops.VECTORIZE, name="n"), lambda n: gathered(n.src)),
        (
            UPat(Ops.GEP, src=(UPat((Ops.VECTORIZE, Ops.CONST), name="x"),), name="n"),
            lambda n, x: gathered([lane_of(x, lane) for lane in n.arg]),
        ),
        (flag.where(x, x), x),
        (UPat.const(True).where(x, y), x),
        (UPat.const(False).where(x, y), y),
        (UPat(Ops.CHECK, src=(x, UPat.const(True), y)), x),
    ]
)

# *** bools have AND, OR, XOR, CMPEQ and CMPNE

_LOGIC = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.SUB: Ops.XOR, Ops.MAX: Ops.OR, Ops.MIN: Ops.AND}

bools = PatternMatcher(
    [
        (UPat(tuple(_LOGIC), name="n"), lambda n: UOp(_LOGIC[n.op], n.dtype, n.src)),
        (-x, x.ne(True)),
        (x < y, x.ne(True) & y),
        (x <= y, x.ne(True) | y),
    ],
    on=BOOLS,
)

# *** arithmetic and comparisons


def by_comparison(n: UOp) -> UOp:
    """MAX or MIN; NaN if either is NaN: x by the comparison's failing, y by the test."""
    x, y = n.src
    take = x < y if n.op is Ops.MAX else y < x
    return ((take | y.ne(y)) if dtypes.is_float(x.dtype) else take).where(y, x)


def truncated(x: UOp) -> UOp:
    """Through an integer where |x| is small enough to have a fraction; the sign is put back for -0.0."""
    info = dtypes.finfo(x.dtype)
    integer = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[info.bits]
    sign = x.bitcast(integer) & int(dtypes.min(integer))
    fractional = (x < 2.0**info.mantissa_bits) & (-(2.0**info.mantissa_bits) < x)
    whole = fractional.where(x, 0.0).cast(integer).cast(x.dtype)
    return fractional.where((whole.bitcast(integer) | sign).bitcast(x.dtype), x)


def _has_opposite(ctx: Abilities, n: UOp) -> bool:
    opposite = Ops.CMPEQ if n.op is Ops.CMPNE else Ops.CMPNE
    return lacks(ctx, n) and ctx.has(opposite, n.src[-1].dtype)


arithmetic = PatternMatcher(
    [
        ((x - y).named("n"), x + -y, lacks),
        (UPat((Ops.MAX, Ops.MIN), name="n"), by_comparison, lacks),
        (UPat(Ops.CMPNE, name="n"), lambda n: n.src[0].eq(n.src[1]) ^ True, _has_opposite),
        (UPat(Ops.CMPEQ, name="n"), lambda n: n.src[0].ne(n.src[1]).ne(True), _has_opposite),
        (UPat(Ops.RECIP, src=(x,), name="n"), lambda x: 1.0 / x, lacks),
    ],
    on=NUMBERS,
) + PatternMatcher(
    [
        ((-x).named("n"), UPat.const(-0.0) - x, lacks),
        ((x <= y).named("n"), (x < y) | x.eq(y), lacks),
        (UPat(Ops.TRUNC, src=(x,), name="n"), truncated, lacks),
    ],
    on=FLOATS,
)

# *** casts


def _is_in_range(x: UOp, dtype: DType) -> bool:
    """Whether a float is known to truncate to a number of an integer type."""
    known = x.facts.get("bounds")
    return known is not None and int(dtypes.min(dtype)) <= known[0] and known[1] <= int(dtypes.max(dtype))


def _may_overflow(ctx: Abilities, n: UOp, x: UOp) -> bool:
    return not ctx.has(Ops.CAST, n.dtype) and not _is_in_range(x, n.dtype)


def saturated(n: UOp, x: UOp) -> UOp:
    """The nearest integer towards zero that the type has, 0 for NaN, from a CAST of a value in range."""
    least, greatest = int(dtypes.min(n.dtype)), int(dtypes.max(n.dtype))
    too_great = float(greatest + 1)  # a power of two: exact
    inside = (x >= float(least)) & (x < too_great)
    value = _noted(inside.where(x, 0.0), least, greatest).cast(n.dtype)
    outside = (x >= too_great).where(
        value.const_like(greatest), (x < float(least)).where(value.const_like(least), 0)
    )
    return inside.where(value, outside)


casts = PatternMatcher(
    [
        (x.cast(name="n"), x, lambda n, x: n.dtype.scalar_type is x.dtype.scalar_type),
        (x.cast(dtypes.bool), lambda x: x.ne(0)),
    ]
) + PatternMatcher([(x.cast(INTS, name="n"), saturated, _may_overflow)], on=FLOATS)

# *** whole numbers

_UNSIGNED_OF = {
    dtypes.int8: dtypes.uint8,
    dtypes.int16: dtypes.uint16,
    dtypes.int32: dtypes.uint32,
    dtypes.int64: dtypes.uint64,
}


def _may_shift_too_far(n: UOp) -> bool:
    least, greatest = bounds(n.src[1])
    return least < 0 or greatest >= _bits(n)


def shifted(n: UOp) -> UOp:
    """A shift by the width or more, or by a negative amount, gives 0, or all sign bits for a signed `>>`."""
    x, amount = n.src
    width = _bits(x)
    unsigned = _UNSIGNED_OF.get(amount.dtype.scalar_type)
    inside = (amount if unsigned is None else amount.bitcast(unsigned)) < width
    if n.op is Ops.SHR and not dtypes.is_unsigned(x.dtype):
        return x >> _noted(inside.where(amount, width - 1), 0, width - 1)
    return inside.where(x.alu(n.op, _noted(amount & (width - 1), 0, width - 1)), 0)


def by_power_of_two(n: UOp, x: UOp, y: UOp) -> UOp | None:
    """A quotient as a shift, a remainder as a mask."""
    power = power_of_two(y)
    if power is None:
        return None
    if n.op is Ops.MOD:
        return x & ((1 << power) - 1)
    return _noted(x >> power, *bounds(n)) if power else x


def _may_trap(x: UOp, y: UOp) -> bool:
    """Whether a quotient may round the wrong way, or divide by 0."""
    not_negative = dtypes.is_unsigned(x.dtype) or bounds(x)[0] >= 0
    return not not_negative or bounds(y)[0] <= 0


def divided(n: UOp, x: UOp, y: UOp) -> UOp:
    """`x // y` rounded down, `x % y` with the sign of y; 0 where y is 0, the least integer // -1 itself."""
    if dtypes.is_unsigned(x.dtype):
        return y.eq(0).where(0, x.alu(n.op, _not_zero(y)))
    if bounds(y)[0] > 0:
        quotient = _floor_by_positive(x, y)
        return _noted(quotient if n.op is Ops.IDIV else x - quotient * y, *bounds(n))
    return _signed_division(x, y)[n.op is Ops.MOD]


def _not_zero(y: UOp) -> UOp:
    return _noted(y.eq(0).where(1, y), 1, int(dtypes.max(y.dtype)))


def _floor_by_positive(x: UOp, y: UOp) -> UOp:
    """floor(x / d) = ~(~x // d) for negative x, where ~x is not negative."""
    sign = x >> (_bits(x) - 1)
    return (_noted(x ^ sign, 0, int(dtypes.max(x.dtype))) // y) ^ sign


def _signed_division(x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder of any two signed integers, by an unsigned division of their magnitudes.

    Magnitudes are exact as unsigned numbers, that of the least integer too: it // -1 wraps to itself.
    """
    signed, unsigned = x.dtype, _UNSIGNED_OF[x.dtype.scalar_type].vec(x.dtype.count)
    top = _bits(x) - 1
    sign_x, sign_y = x >> top, y >> top
    magnitude_x = ((x ^ sign_x) - sign_x).bitcast(unsigned)
    magnitude_y = _not_zero(((y ^ sign_y) - sign_y).bitcast(unsigned))
    whole = magnitude_x // magnitude_y
    left_over = magnitude_x - whole * magnitude_y
    differ = sign_x ^ sign_y
    inexact = left_over.ne(0)
    zero = y.eq(0)
    quotient = (whole.bitcast(signed) ^ differ) - differ + inexact.where(differ, 0)
    remainder = (left_over.bitcast(signed) ^ sign_x) - sign_x + (inexact & differ.ne(0)).where(y, 0)
    return zero.where(0, quotient), zero.where(0, remainder)


def integer_power(x: UOp, y: UOp) -> UOp:
    """x**y by squaring, wrapped; a negative power is the truncated reciprocal, which only 1 and -1 have."""
    constant = len(set(lane_values(y))) == 1 if y.op is Ops.CONST else False
    exponent = int(lane_values(y)[0]) if constant else None
    result, square = x.const_like(1), x
    steps = _bits(x) - (0 if dtypes.is_unsigned(x.dtype) else 1)
    if exponent is not None:
        steps = max(exponent, 0).bit_length()
    for bit in range(steps):
        if exponent is None:
            result = ((y >> bit) & 1).ne(0).where(result * square, result)
        elif exponent >> bit & 1:
            result = square if result.op is Ops.CONST else result * square
        if bit + 1 < steps:
            square = square * square
    if dtypes.is_unsigned(y.dtype) or (exponent is not None and exponent >= 0):
        return result
    minus_one = (y & 1).ne(0).where(x.const_like(-1), 1)
    return (y < 0).where(x.eq(-1).where(minus_one, x.eq(1).where(x.const_like(1), 0)), result)


def by_bytes(n: UOp) -> UOp:
    """DP4A as four products: bytes of the one are masked, those of the other shifted with their sign."""
    a, b, total = n.src
    for place in range(0, 32, 8):
        total = total + ((a >> place) & 255) * ((b << (24 - place)) >> 24)
    return total


def added_to(x: UOp, n: UOp) -> UOp:
    """Products of bytes that are added to something: the instruction does that too."""
    a, b, total = n.src
    return UOp(Ops.DP4A, n.dtype, (a, b, x if is_zero(total) else x + total))


integers = PatternMatcher(
    [
        (UPat(Ops.DP4A, name="n"), by_bytes, lacks),
        (x + UPat(Ops.DP4A, name="n"), added_to),  # in either order
        ((-x).named("n"), UPat.const(0) - x, lacks),
        ((x <= y).named("n"), (y < x).ne(True), lacks),
        (UPat((Ops.SHL, Ops.SHR), name="n"), shifted, _may_shift_too_far),
        (UPat((Ops.IDIV, Ops.MOD), src=(x, y), name="n"), by_power_of_two),
        (UPat((Ops.IDIV, Ops.MOD), src=(x, y), name="n"), divided, _may_trap),
        (x.alu(Ops.POW, y), integer_power),
    ],
    on=INTS,
) + PatternMatcher(
    [
        (UPat(Ops.TRUNC, src=(x,)), x),
        (UPat(Ops.MULACC, src=(x, y, z), name="n"), x * y + z, lacks),
    ],
    on=WHOLE,
)

# *** functions of floats


def from_arithmetic(ctx: Abilities, n: UOp) -> UOp:
    """A transcendental function from arithmetic; of narrow types in float32, rounded."""
    if n.dtype.scalar_type not in (dtypes.float32, dtypes.float64):
        return in_float32(n)
    return DECOMPOSITIONS[n.op](
        *n.src,
        has_float64=ctx.has(Ops.ADD, dtypes.float64),
        has_fma=ctx.has(Ops.MULACC, n.dtype),
        has_ldexp=ctx.has(Ops.LDEXP, n.dtype),
    )


def in_float32(n: UOp) -> UOp:
    """An op on a narrow type, which float32 has every number of."""
    wide = dtypes.float32.vec(n.dtype.count)
    return UOp(n.op, wide, tuple([s.cast(wide) for s in n.src])).cast(n.dtype)


functions = PatternMatcher(
    [
        (UPat(tuple(DECOMPOSITIONS), name="n"), from_arithmetic, lacks),
        (UPat(Ops.FMOD, FLOATS - {dtypes.float32, dtypes.float64}, name="n"), in_float32, lacks),
    ],
    on=FLOATS,
)

# *** what has no other form must be there

_NATIVE = (
    *(Ops.ADD, Ops.MUL, Ops.FDIV, Ops.SQRT, Ops.FMOD, Ops.MULACC, Ops.LDEXP),
    *(Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE),
)


def refused(ctx: Abilities, n: UOp) -> None:
    dtype = n.src[-1].dtype
    if ctx.has(n.op, dtype) or (n.op in (Ops.CMPEQ, Ops.CMPNE) and dtypes.is_bool(dtype)):
        return
    if n.op is Ops.MULACC:
        raise NotImplementedError(f"MULACC of {dtype} (one rounding) is not supported on this target")
    raise NotImplementedError(f"{n.op} of {dtype} is not supported on this target")


def not_of_floats(n: UOp) -> UOp:
    raise NotImplementedError(f"{n.op.name} of floats is not an op of kernels: use FDIV and TRUNC")


refusals = PatternMatcher([(UPat(_NATIVE, name="n"), refused)]) + PatternMatcher(
    [(UPat((Ops.IDIV, Ops.MOD), name="n"), not_of_floats)], on=FLOATS
)

decompositions = constants + bools + arithmetic + casts + integers + functions + refusals

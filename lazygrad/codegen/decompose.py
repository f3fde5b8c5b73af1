"""Ops that a target has not, one by one, by rules: a part of `legalize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..dtype import DType, dtypes
from ..ir.index import bounds
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.rewrite import notify, watched
from ..ir.uop import UOp
from .constants import fold, gathered, lane_of, lane_values
from .transcendental import DECOMPOSITIONS


class Capabilities(Protocol):
    """What `legalize` needs of a renderer."""

    @property
    def target(self) -> Any: ...
    def supports(self, op: Ops, dtype: DType) -> bool: ...


class Lowering:
    """One walk that replaces what the target cannot say, by RULES; a rule's None keeps the node."""

    def __init__(self, renderer: Capabilities) -> None:
        self.renderer = renderer
        self.known: dict[tuple[Ops, DType], bool] = {}
        self.done: dict[UOp, UOp] = {}

    def has(self, op: Ops, dtype: DType) -> bool:
        key = (op, dtype.scalar_type)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.renderer.supports(op, dtype.scalar_type)
        return found

    def walk(self, root: UOp) -> UOp:
        """The graph below the root, legal; nodes done before are not entered."""
        done = self.done
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            waiting = [s for s in node.src if s not in done]
            if waiting:
                waiting.reverse()
                stack.extend(waiting)
                continue
            stack.pop()
            src = tuple([done[s] for s in node.src])
            same = node
            if src != node.src:
                same = UOp(node.op, node.dtype, src, node.arg)
                if "bounds" in node.facts:  # the same value, whose sources may hide it better
                    same.facts.setdefault("bounds", node.facts["bounds"])
            made = self.legal(same)
            done[node] = done[made] = made
        return done[root]

    def legal(self, node: UOp) -> UOp:
        """The node, whose sources are legal, or what stands for it."""
        op = node.op
        if op not in ELEMENTWISE:
            return _lanes(node) if op is Ops.GEP or op is Ops.VECTORIZE else node
        if op is Ops.CHECK:
            return node
        if op not in DECOMPOSITIONS or not dtypes.is_float(node.dtype):
            folded = fold(op, node.dtype, node.src)
            if folded is not None:
                if watched():
                    notify("fold", fold, node, folded)
                return folded
        rule = RULES.get(op)
        if rule is None:
            self.require(node)
            return node
        made = rule(self, node, *node.src)
        if made is None:
            return node
        if watched():
            notify("legalize", rule, node, made)
        return self.walk(made)

    def keep(self, op: Ops, dtype: DType, *src: UOp) -> UOp:
        """A node that is legal as it stands because of what its sources are, which no rule could see."""
        legal = tuple([self.walk(s) for s in src])
        node = fold(op, dtype, legal) or UOp(op, dtype, legal)
        self.done[node] = node
        return node

    def require(self, node: UOp) -> None:
        """An op with no other form must be native."""
        if node.op not in (Ops.BITCAST, Ops.WHERE) and not self.has(node.op, node.src[-1].dtype):
            raise NotImplementedError(f"{node.op} of {node.src[-1].dtype} is not supported on this target")


def decompose(sink: UOp, renderer: Capabilities) -> UOp:
    """Every elementwise op in a form that the target has, constants folded on the way."""
    if not renderer.supports(Ops.ADD, dtypes.float64):  # the one type that nothing else stands in for
        _refuse_doubles(sink)
    return Lowering(renderer).walk(sink)


def _refuse_doubles(sink: UOp) -> None:
    if any(node.dtype.scalar_type is dtypes.float64 for node in sink.toposort()):
        raise NotImplementedError(
            "float64 on a device that has none (Metal, some of OpenCL's); cast to float32, or compute on CPU"
        )


def _lanes(node: UOp) -> UOp:
    """VECTORIZE of constants is a constant, a GEP of known lanes those lanes."""
    if node.op is Ops.VECTORIZE:
        return gathered(node.src)
    vector = node.src[0]
    if vector.op is not Ops.VECTORIZE and vector.op is not Ops.CONST:
        return node
    return gathered([lane_of(vector, i) for i in node.arg])


Rule = Callable[..., "UOp | None"]


def _is_bool(x: UOp) -> bool:
    return x.dtype.scalar_type is dtypes.bool


def _bits(x: UOp) -> int:
    return x.dtype.scalar_type.itemsize * 8


def _native(low: Lowering, node: UOp) -> bool:
    return low.has(node.op, node.src[-1].dtype)


def logical_not(x: UOp) -> UOp:
    return x.ne(True)


def _logic(operation: Callable[[UOp, UOp], UOp], otherwise: Rule | None = None) -> Rule:
    """What an op is on bools; on numbers it is native, or `otherwise`."""

    def rule(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
        if _is_bool(x):
            return operation(x, y)
        if otherwise is not None and not _native(low, node):
            return otherwise(low, node, x, y)
        low.require(node)
        return None

    return rule


def _max(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp:
    """The greater; NaN if either is NaN: x by the comparison's failing, y by the test."""
    take = x < y
    return ((take | y.ne(y)) if dtypes.is_float(x.dtype) else take).where(y, x)


def _min(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp:
    take = y < x
    return ((take | y.ne(y)) if dtypes.is_float(x.dtype) else take).where(y, x)


def _negated(low: Lowering, node: UOp, x: UOp) -> UOp | None:
    if _is_bool(x):
        return logical_not(x)
    if low.has(Ops.NEG, x.dtype):
        return None
    return x.const_like(-0.0 if dtypes.is_float(x.dtype) else 0) - x


def _less_equal(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp:
    return (x < y) | x.eq(y) if dtypes.is_float(x.dtype) else logical_not(y < x)


def _not_equal(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    if _is_bool(x) or _native(low, node):
        return None
    if not low.has(Ops.CMPEQ, x.dtype):
        low.require(node)
    return x.eq(y) ^ True


def _equal(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    if _is_bool(x) or _native(low, node):
        return None
    if not low.has(Ops.CMPNE, x.dtype):
        low.require(node)
    return logical_not(x.ne(y))


def _reciprocal(low: Lowering, node: UOp, x: UOp) -> UOp | None:
    return None if _native(low, node) else 1.0 / x


def _truncated(low: Lowering, node: UOp, x: UOp) -> UOp | None:
    """Through an integer where |x| is small enough to have a fraction; the sign is put back for -0.0."""
    if not dtypes.is_float(x.dtype):
        return x
    if _native(low, node):
        return None
    info = dtypes.finfo(x.dtype)
    integer = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[info.bits]
    sign = x.bitcast(integer) & int(dtypes.min(integer))
    fractional = (x < 2.0**info.mantissa_bits) & (-(2.0**info.mantissa_bits) < x)
    whole = fractional.where(x, 0.0).cast(integer).cast(x.dtype)
    return fractional.where((whole.bitcast(integer) | sign).bitcast(x.dtype), x)


def _where(low: Lowering, node: UOp, condition: UOp, yes: UOp, no: UOp) -> UOp | None:
    if yes is no:
        return yes
    if condition.op is Ops.CONST and len(set(lane_values(condition))) == 1:
        return yes if lane_values(condition)[0] else no
    return None


def _cast(low: Lowering, node: UOp, x: UOp) -> UOp | None:
    source, target = x.dtype.scalar_type, node.dtype.scalar_type
    if source is target:
        return x
    if target is dtypes.bool:
        return x.ne(0)
    if not dtypes.is_float(source) or not dtypes.is_int(target) or low.has(Ops.CAST, target):
        return None
    if source is dtypes.float16:
        return x.cast(dtypes.float32).cast(target)
    return _saturated(low, x, target)


def _saturated(low: Lowering, x: UOp, target: DType) -> UOp:
    """The nearest integer towards zero that `target` has, 0 for NaN, from a CAST of a value in range."""
    least, greatest = int(dtypes.min(target)), int(dtypes.max(target))
    too_great = float(greatest + 1)  # a power of two: exact
    inside = (x >= float(least)) & (x < too_great)
    value = low.keep(Ops.CAST, target.vec(x.dtype.count), inside.where(x, 0.0))
    outside = (x >= too_great).where(
        value.const_like(greatest), (x < float(least)).where(value.const_like(least), 0)
    )
    return inside.where(value, outside)


def _shifted(low: Lowering, node: UOp, x: UOp, amount: UOp) -> UOp | None:
    """A shift by the width or more, or by a negative amount, gives 0, or all sign bits for a signed `>>`."""
    if _native(low, node):
        return None
    width = _bits(x)
    least, greatest = bounds(amount)
    if least >= 0 and greatest < width:
        return None
    unsigned = _UNSIGNED_OF.get(amount.dtype.scalar_type)
    inside = (amount if unsigned is None else amount.bitcast(unsigned)) < width
    if node.op is Ops.SHR and not dtypes.is_unsigned(x.dtype):
        return low.keep(Ops.SHR, x.dtype, x, inside.where(amount, width - 1))
    return inside.where(low.keep(node.op, x.dtype, x, amount & (width - 1)), 0)


_UNSIGNED_OF = {
    dtypes.int8: dtypes.uint8,
    dtypes.int16: dtypes.uint16,
    dtypes.int32: dtypes.uint32,
    dtypes.int64: dtypes.uint64,
}


def _is_safe_division(x: UOp, y: UOp) -> bool:
    not_negative = dtypes.is_unsigned(x.dtype) or bounds(x)[0] >= 0
    return not_negative and bounds(y)[0] > 0


def _power_of_two(node: UOp) -> int | None:
    values = set(lane_values(node)) if node.op is Ops.CONST else set()
    if len(values) != 1:
        return None
    value = int(values.pop())
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _quotient(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    """`x // y` rounded down, 0 where y is 0, the least integer // -1 itself."""
    if dtypes.is_float(x.dtype):
        raise NotImplementedError("IDIV of floats is not an op of kernels: use FDIV and TRUNC")
    if (power := _power_of_two(y)) is not None:
        return x >> power if power else x
    if _is_safe_division(x, y):
        return None
    if dtypes.is_unsigned(x.dtype):
        return y.eq(0).where(0, low.keep(Ops.IDIV, x.dtype, x, _not_zero(y)))
    if bounds(y)[0] > 0:
        return _floor_by_positive(low, x, y)
    return _signed_division(low, x, y)[0]


def _remainder(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    """`x % y` with the sign of y, 0 where y is 0."""
    if dtypes.is_float(x.dtype):
        raise NotImplementedError("MOD of floats is not an op of kernels: use FDIV and TRUNC")
    if (power := _power_of_two(y)) is not None:
        return x & ((1 << power) - 1)
    if _is_safe_division(x, y):
        return None
    if dtypes.is_unsigned(x.dtype):
        return y.eq(0).where(0, low.keep(Ops.MOD, x.dtype, x, _not_zero(y)))
    if bounds(y)[0] > 0:
        return x - _floor_by_positive(low, x, y) * y
    return _signed_division(low, x, y)[1]


def _not_zero(y: UOp) -> UOp:
    return y.eq(0).where(1, y)


def _floor_by_positive(low: Lowering, x: UOp, y: UOp) -> UOp:
    """floor(x / d) = ~(~x // d) for negative x, where ~x is not negative."""
    sign = x >> (_bits(x) - 1)
    return low.keep(Ops.IDIV, x.dtype, x ^ sign, y) ^ sign


def _signed_division(low: Lowering, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder of any two signed integers, by an unsigned division of their magnitudes.

    Magnitudes are exact as unsigned numbers, that of the least integer too: it // -1 wraps to itself.
    """
    signed, unsigned = x.dtype, _UNSIGNED_OF[x.dtype.scalar_type].vec(x.dtype.count)
    top = _bits(x) - 1
    sign_x, sign_y = x >> top, y >> top
    magnitude_x = ((x ^ sign_x) - sign_x).bitcast(unsigned)
    magnitude_y = _not_zero(((y ^ sign_y) - sign_y).bitcast(unsigned))
    truncated = low.keep(Ops.IDIV, unsigned, magnitude_x, magnitude_y)
    left_over = magnitude_x - truncated * magnitude_y
    differ = sign_x ^ sign_y
    inexact = left_over.ne(0)
    zero = y.eq(0)
    quotient = (truncated.bitcast(signed) ^ differ) - differ + inexact.where(differ, 0)
    remainder = (left_over.bitcast(signed) ^ sign_x) - sign_x + (inexact & differ.ne(0)).where(y, 0)
    return zero.where(0, quotient), zero.where(0, remainder)


def _power_rule(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    return _float_function(low, node, x, y) if dtypes.is_float(x.dtype) else _integer_power(x, y)


def _integer_power(x: UOp, y: UOp) -> UOp:
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


def _float_function(low: Lowering, node: UOp, *src: UOp) -> UOp | None:
    """A transcendental function the target has not, from arithmetic; half in float32, rounded."""
    if low.has(node.op, node.dtype):
        return None
    if node.dtype.scalar_type not in (dtypes.float32, dtypes.float64):
        wide = dtypes.float32.vec(node.dtype.count)
        return UOp(node.op, wide, tuple([s.cast(wide) for s in src])).cast(node.dtype)
    return DECOMPOSITIONS[node.op](*src, has_float64=low.has(Ops.ADD, dtypes.float64))


def _float_remainder(low: Lowering, node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Native, or in float32, which has every number of the narrow types; the result is exact in both."""
    if low.has(node.op, node.dtype):
        return None
    if node.dtype.scalar_type in (dtypes.float32, dtypes.float64):
        low.require(node)
    wide = dtypes.float32.vec(node.dtype.count)
    return UOp(node.op, wide, (x.cast(wide), y.cast(wide))).cast(node.dtype)


def _multiply_add(low: Lowering, node: UOp, x: UOp, y: UOp, z: UOp) -> UOp | None:
    if _native(low, node):
        return None
    if dtypes.is_float(x.dtype):
        raise NotImplementedError(f"MULACC of {x.dtype} (one rounding) is not supported on this target")
    return x * y + z


RULES: dict[Ops, Rule] = {
    Ops.ADD: _logic(lambda x, y: x | y),
    Ops.MUL: _logic(lambda x, y: x & y),
    Ops.SUB: _logic(lambda x, y: x ^ y, lambda low, node, x, y: x + -y),
    Ops.MAX: _logic(lambda x, y: x | y, _max),
    Ops.MIN: _logic(lambda x, y: x & y, _min),
    Ops.CMPLT: _logic(lambda x, y: logical_not(x) & y),
    Ops.CMPLE: _logic(lambda x, y: logical_not(x) | y, _less_equal),
    Ops.CMPNE: _not_equal,
    Ops.CMPEQ: _equal,
    Ops.NEG: _negated,
    Ops.RECIP: _reciprocal,
    Ops.TRUNC: _truncated,
    Ops.WHERE: _where,
    Ops.CAST: _cast,
    Ops.SHL: _shifted,
    Ops.SHR: _shifted,
    Ops.IDIV: _quotient,
    Ops.MOD: _remainder,
    Ops.FMOD: _float_remainder,
    Ops.POW: _power_rule,
    Ops.MULACC: _multiply_add,
    **dict.fromkeys((op for op in DECOMPOSITIONS if op is not Ops.POW), _float_function),
}

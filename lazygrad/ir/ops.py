"""The op table: every operation, and what is true of it, written once.

`Ops` names the operations of all forms of the graph. `OPS` holds one row per op: what kind of thing it is,
how many sources it takes, the dtype of its result, and, for arithmetic, its exact meaning as a Python
function. Folding, the evaluator, the interpreter, bounds and half the tests read this table.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dtype import ConstType, DType, cast_value, dtypes, truncate
from .members import IntMember, Member


class Ops(IntMember):
    """Every operation. The documents fix the numbers of STORE, MUL, ADD, ASSIGN, BUFFER; others are ours."""

    # structure
    SINK = 1
    NOOP = 2
    # tensor graph: where data is
    DEVICE = 10
    UNIQUE = 11
    BUFFER = 23
    BUFFER_VIEW = 12
    COPY = 13
    COLLECTIVE = 104
    CONTIGUOUS = 14
    DETACH = 15
    FUNCTION = 9
    DEFERRED = 93
    MULTI = 16
    ASSIGN = 66
    KERNEL = 17
    BIND = 18
    # tensor graph: movement
    RESHAPE = 19
    EXPAND = 20
    PERMUTE = 21
    PAD = 22
    SHRINK = 24
    FLIP = 25
    # tensor graph: more than elementwise
    REDUCE_AXIS = 26
    GATHER = 27
    SCATTER = 28
    SCAN = 29
    PROGRAM = 95
    ONE_PASS = 98
    IOTA = 31
    # kernels and loops
    VIEW = 32
    DEFINE_GLOBAL = 33
    DEFINE_VAR = 34
    DEFINE_LOCAL = 35
    DEFINE_ACC = 36
    STAGE = 37
    SPECIAL = 38
    RANGE = 39
    ENDRANGE = 40
    IF = 41
    ENDIF = 42
    BARRIER = 43
    BREAK = 96
    FETCH = 100
    COMMIT = 101
    WAIT = 102
    SHUFFLE = 103
    PREFETCH = 105
    INDEX = 44
    STORE = 45
    LOAD = 46
    REDUCE = 47
    CONST = 49
    # vectors
    VECTORIZE = 50
    GEP = 51
    # elementwise, one source
    CAST = 60
    BITCAST = 61
    NEG = 62
    RECIP = 63
    SQRT = 64
    EXP = 65
    LOG = 67
    EXP2 = 68
    LOG2 = 69
    SIN = 70
    TANH = 71
    ERF = 72
    TRUNC = 73
    COS = 87
    # elementwise, two sources
    MUL = 48
    ADD = 52
    SUB = 53
    FDIV = 54
    IDIV = 55
    MOD = 56
    FMOD = 88
    MAX = 57
    MIN = 58
    POW = 59
    CMPLT = 74
    CMPLE = 75
    CMPEQ = 76
    CMPNE = 77
    AND = 78
    OR = 79
    XOR = 80
    SHL = 81
    SHR = 82
    LDEXP = 106
    # elementwise, three sources
    WHERE = 83
    MULACC = 84
    DP4A = 91
    CHECK = 89
    # in every lane, sums of products by one instruction
    PACK = 85
    DOT = 86
    WMMA = 99
    # names of older documents
    SUM = 52  # an alias: a sum is REDUCE_AXIS with ADD
    EMPTY = 23  # an alias: empty memory is a BUFFER


class Kind(Member):
    """What sort of thing an op is."""

    ELEMENTWISE = "elementwise"
    MOVEMENT = "movement"
    REDUCE = "reduce"
    DATA = "data"
    STRUCTURE = "structure"


#: (dtype of the result, values of the sources) → value, before rounding to dtype.
Meaning = Callable[..., ConstType]


@dataclass(frozen=True)
class OpInfo:
    """One row of the op table.

    kind      what sort of thing it is
    arity     the number of sources; None = any number
    dtype     of the result: that of which source, by its place, or this one in as many lanes as the first;
              None = the creator states it
    evaluate  elementwise ops: the exact meaning on Python numbers, called with the dtype of the *sources*
              first (of the result for CAST); `execute` rounds the answer to the result's dtype
    symbol    infix text, where there is one
    identity  for ops that can combine a reduction: dtype → the value that changes nothing
    commutes  whether the two sources may be swapped
    cost      how long it takes where it is native, in simple operations: time, while codegen/price.py
              counts the operations that it becomes on a target, native or not, which are a kernel's size
    exact     whether every device computes the same bits; else each stays within the function's stated bound
    """

    kind: Kind
    arity: int | None
    dtype: int | DType | None = None
    evaluate: Meaning | None = None
    symbol: str | None = None
    identity: Callable[[DType], ConstType] | None = None
    commutes: bool = False
    cost: int = 1
    exact: bool = True


# *** meanings


def _guarded(function: Callable[[float], float], at_error: Callable[[float], float]) -> Meaning:
    """A `math` function made total: what Python raises becomes what IEEE arithmetic gives."""

    def evaluate(dtype: DType, x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return at_error(x)

    return evaluate


def _log_of_nonpositive(x: float) -> float:
    return -math.inf if x == 0 else math.nan


def _fdiv(dtype: DType, a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _idiv(dtype: DType, a: int, b: int) -> int:
    return 0 if b == 0 else a // b


def _mod(dtype: DType, a: int, b: int) -> int:
    return 0 if b == 0 else a % b


def _fmod(dtype: DType, a: float, b: float) -> float:
    """What is left of a when whole multiples of b are taken off towards zero: exact in every float type."""
    try:
        return math.fmod(a, b)
    except ValueError:  # an infinite a, or b = 0
        return math.nan


def _max(dtype: DType, a: Any, b: Any) -> Any:
    return a + b if a != a or b != b else max(a, b)


def _min(dtype: DType, a: Any, b: Any) -> Any:
    return a + b if a != a or b != b else min(a, b)


def _pow(dtype: DType, a: Any, b: Any) -> Any:
    if dtypes.is_float(dtype):
        try:
            return math.pow(a, b)
        except OverflowError:
            return -math.inf if a < 0 and abs(math.fmod(b, 2)) == 1 else math.inf
        except ValueError:  # a negative base with a fraction, or zero to a negative power
            if a == 0:
                return -math.inf if math.copysign(1.0, a) < 0 and abs(math.fmod(b, 2)) == 1 else math.inf
            return math.nan
    if b < 0:  # an integer's reciprocal, truncated: only 1 and -1 have one
        return (1 if b % 2 == 0 else -1) if a == -1 else int(a == 1)
    bits = 1 << (dtype.itemsize * 8)
    return pow(int(a), int(b), bits)


def _shl(dtype: DType, a: int, b: int) -> int:
    return a << b if 0 <= b < dtype.scalar_type.itemsize * 8 else 0


def _shr(dtype: DType, a: int, b: int) -> int:
    return a >> b if 0 <= b < dtype.scalar_type.itemsize * 8 else (-1 if a < 0 else 0)


def _ldexp(dtype: DType, n: int, x: float) -> float:
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def _mulacc(dtype: DType, a: Any, b: Any, c: Any) -> Any:
    """a*b+c with one rounding; the caller's rounding to dtype must then see the exact sum."""
    if not dtypes.is_float(dtype) or not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    if dtype.scalar_type.itemsize <= 4:
        return _sum_to_odd(a * b, c)  # the product of two numbers of 24 bits has 48, and is exact
    from fractions import Fraction  # slow to import, and only float64 asks for it

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c  # which knows the sign of zero
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _sum_to_odd(a: float, b: float) -> float:
    """a+b in float64, inexact sums as the neighbour with an odd last bit (Boldo and Melquiond 2008).

    Rounded once more to a type of far fewer bits, that is the exact sum rounded once.
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)  # the exact one (Knuth)
    if error and not struct.unpack("<q", struct.pack("<d", total))[0] & 1:
        return math.nextafter(total, math.copysign(math.inf, error))
    return total


def _dp4a(dtype: DType, a: int, b: int, c: int) -> int:
    """c and the products of the four unsigned bytes of a with the four signed bytes of b."""
    for place in range(0, 32, 8):
        c += (a >> place & 255) * ((b >> place & 255 ^ 128) - 128)
    return c


def _neg(dtype: DType, x: Any) -> Any:
    return (not x) if dtype.scalar_type is dtypes.bool else -x


def _bool_or(operation: Callable[[Any, Any], Any], logical: Callable[[Any, Any], Any]) -> Meaning:
    """Arithmetic on numbers, logic on bools: ADD is `or`, MUL is `and`."""
    return lambda dtype, a, b: logical(a, b) if dtype.scalar_type is dtypes.bool else operation(a, b)


def _plain(operation: Callable[[Any, Any], Any]) -> Meaning:
    return lambda dtype, a, b: operation(a, b)


def _unary(
    function: Callable[[float], float],
    at_error: Callable[[float], float] = lambda x: math.nan,
    cost: int = 1,
    exact: bool = True,
) -> OpInfo:
    return OpInfo(Kind.ELEMENTWISE, 1, 0, _guarded(function, at_error), cost=cost, exact=exact)


def _binary(evaluate: Meaning, symbol: str | None = None, **more: Any) -> OpInfo:
    return OpInfo(Kind.ELEMENTWISE, 2, more.pop("dtype", 0), evaluate, symbol, **more)


def _trunc(dtype: DType, x: Any) -> Any:
    return x if not dtypes.is_float(dtype) or not math.isfinite(x) else math.copysign(float(math.trunc(x)), x)


_MOVEMENT = OpInfo(Kind.MOVEMENT, 1, 0)
_DATA = OpInfo(Kind.DATA, None)
_STRUCTURE = OpInfo(Kind.STRUCTURE, None)

OPS: dict[Ops, OpInfo] = {
    Ops.CAST: OpInfo(Kind.ELEMENTWISE, 1, None, lambda dtype, x: cast_value(x, dtype)),
    Ops.BITCAST: OpInfo(Kind.ELEMENTWISE, 1, None, None),  # its meaning needs both dtypes: see execute
    Ops.NEG: OpInfo(Kind.ELEMENTWISE, 1, 0, _neg),
    Ops.RECIP: _unary(lambda x: 1.0 / x, lambda x: math.copysign(math.inf, x), cost=4),
    Ops.SQRT: _unary(math.sqrt, cost=4),
    Ops.EXP: _unary(math.exp, lambda x: math.inf, cost=12, exact=False),
    Ops.LOG: _unary(math.log, _log_of_nonpositive, cost=12, exact=False),
    Ops.EXP2: _unary(lambda x: 2.0**x, lambda x: math.inf, cost=12, exact=False),
    Ops.LOG2: _unary(math.log2, _log_of_nonpositive, cost=12, exact=False),
    Ops.SIN: _unary(math.sin, cost=20, exact=False),
    Ops.COS: _unary(math.cos, cost=20, exact=False),
    Ops.TANH: _unary(math.tanh, cost=16, exact=False),
    Ops.ERF: _unary(math.erf, cost=20, exact=False),
    Ops.TRUNC: OpInfo(Kind.ELEMENTWISE, 1, 0, _trunc),
    Ops.ADD: _binary(
        _bool_or(operator.add, operator.or_), "+", identity=lambda d: cast_value(0, d), commutes=True
    ),
    Ops.MUL: _binary(
        _bool_or(operator.mul, operator.and_), "*", identity=lambda d: cast_value(1, d), commutes=True
    ),
    Ops.SUB: _binary(_bool_or(operator.sub, operator.xor), "-"),
    Ops.FDIV: _binary(_fdiv, "/", cost=4),
    Ops.IDIV: _binary(_idiv, "//", cost=8),
    Ops.MOD: _binary(_mod, "%", cost=8),
    Ops.FMOD: _binary(_fmod, cost=12),
    Ops.MAX: _binary(_max, identity=lambda d: dtypes.min(d), commutes=True),
    Ops.MIN: _binary(_min, identity=lambda d: dtypes.max(d), commutes=True),
    Ops.POW: _binary(_pow, "**", cost=40, exact=False),
    Ops.CMPLT: _binary(_plain(operator.lt), "<", dtype=dtypes.bool),
    Ops.CMPLE: _binary(_plain(operator.le), "<=", dtype=dtypes.bool),
    Ops.CMPEQ: _binary(_plain(operator.eq), "==", dtype=dtypes.bool, commutes=True),
    Ops.CMPNE: _binary(_plain(operator.ne), "!=", dtype=dtypes.bool, commutes=True),
    Ops.AND: _binary(_plain(operator.and_), "&", identity=lambda d: cast_value(-1, d), commutes=True),
    Ops.OR: _binary(_plain(operator.or_), "|", identity=lambda d: cast_value(0, d), commutes=True),
    Ops.XOR: _binary(_plain(operator.xor), "^", identity=lambda d: cast_value(0, d), commutes=True),
    Ops.SHL: _binary(_shl, "<<"),
    Ops.SHR: _binary(_shr, ">>"),
    # LDEXP(n, x) is x·2**n, rounded once; n is an integer as wide as x
    Ops.LDEXP: OpInfo(Kind.ELEMENTWISE, 2, 1, _ldexp, cost=2),
    Ops.WHERE: OpInfo(Kind.ELEMENTWISE, 3, 1, lambda dtype, c, a, b: a if c else b),
    Ops.MULACC: OpInfo(Kind.ELEMENTWISE, 3, 0, _mulacc, cost=1),
    # DP4A(a, b, c): four products of bytes in words, those of a unsigned, those of b signed; int32 alone
    Ops.DP4A: OpInfo(Kind.ELEMENTWISE, 3, 0, _dp4a, cost=1),
    # CHECK(value, good, index) is the value; where `good` fails a kernel also reports the index
    Ops.CHECK: OpInfo(Kind.ELEMENTWISE, 3, 0, lambda dtype, value, good, index: value, cost=1),
    **dict.fromkeys((Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.PAD, Ops.SHRINK, Ops.FLIP), _MOVEMENT),
    Ops.REDUCE_AXIS: OpInfo(Kind.REDUCE, 1, 0),
    Ops.SCAN: OpInfo(Kind.REDUCE, None, 0),
    Ops.REDUCE: OpInfo(Kind.REDUCE, None, 0),
    Ops.CONTIGUOUS: OpInfo(Kind.DATA, 1, 0),
    Ops.DETACH: OpInfo(Kind.DATA, 1, 0),
    Ops.FUNCTION: OpInfo(Kind.DATA, None, 0),
    Ops.COPY: OpInfo(Kind.DATA, None, 0),
    Ops.COLLECTIVE: OpInfo(Kind.DATA, None, 0),
    Ops.ASSIGN: OpInfo(Kind.DATA, 2, 0),
    Ops.GATHER: OpInfo(Kind.DATA, 2, 0),
    Ops.SCATTER: OpInfo(Kind.DATA, 3, 0),
    # a kernel by itself, of values in memory: no loops are optimized, its program is written at once
    Ops.PROGRAM: OpInfo(Kind.DATA, None),
    **dict.fromkeys((Ops.BUFFER, Ops.BUFFER_VIEW, Ops.MULTI, Ops.BIND, Ops.IOTA, Ops.CONST), _DATA),
    Ops.DEFERRED: _DATA,  # a call of a method whose node is not made yet (schedule/calls.py)
    **dict.fromkeys((Ops.VIEW, Ops.LOAD, Ops.STAGE, Ops.ONE_PASS, Ops.INDEX, Ops.SPECIAL), _DATA),
    **dict.fromkeys((Ops.DEFINE_VAR, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_ACC), _DATA),
    **dict.fromkeys((Ops.VECTORIZE, Ops.GEP, Ops.PACK, Ops.DOT, Ops.WMMA, Ops.SHUFFLE), _DATA),
    **dict.fromkeys((Ops.SINK, Ops.NOOP, Ops.DEVICE, Ops.UNIQUE, Ops.KERNEL, Ops.STORE), _STRUCTURE),
    **dict.fromkeys((Ops.RANGE, Ops.ENDRANGE, Ops.IF, Ops.ENDIF, Ops.BARRIER, Ops.BREAK), _STRUCTURE),
    **dict.fromkeys((Ops.FETCH, Ops.COMMIT, Ops.WAIT, Ops.PREFETCH), _STRUCTURE),
}


def _of_kind(kind: Kind) -> frozenset[Ops]:
    return frozenset(op for op, info in OPS.items() if info.kind is kind)


ELEMENTWISE = _of_kind(Kind.ELEMENTWISE)
MOVEMENT = _of_kind(Kind.MOVEMENT)
#: Their argument consists of sizes: of the result, or of what it is a part of.
SIZED = frozenset((Ops.RESHAPE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.IOTA))
#: The ops f with f(a + b) = f(a)·f(b): of -inf they are 0.
SUMS_TO_PRODUCTS = frozenset((Ops.EXP, Ops.EXP2))
#: What brings values from device to device; no kernels.
TRANSFERS = frozenset((Ops.COPY, Ops.COLLECTIVE))
#: The arg of a float ADD or MUL in a sum that may be added up in any order, and its products fused.
ANY_ORDER = "any order"
#: What is done in every lane of a vector alike. PACK makes an unsigned integer of narrow numbers, the first
#: in its low bits. DOT(a, b, c) adds to c the products of the numbers in two of them, of the type in its arg,
#: the last ones first, each with one rounding; where an instruction does it, subnormals may count as zero.
#: WMMA(words..., n) is the n-th sum that a thread gets of a product of matrices, whose elements the threads
#: of a warp hold, packed in words: what the TensorCore in its arg does. Where that says that factors are read
#: from panels, it has the first word of each; in target code, where these lie. In a linear program it is a
#: step that adds to all sums of a thread.
#: SHUFFLE(x) is the x of another thread of the warp: of that whose number in the workgroup differs in the bit
#: that its arg, a power of two, has. All threads of a workgroup come to it together.
LANEWISE = ELEMENTWISE | {Ops.PACK, Ops.DOT, Ops.WMMA, Ops.SHUFFLE}
#: FETCH(to, from) copies as many neighbours as its arg says between two INDEXes; zeros, where `from` is not
#: valid. It is done when its thread has come to a WAIT: WAIT n waits for all but the last n of the groups
#: that end with a COMMIT, WAIT 0 for everything.
#: Arithmetic whose result depends only on values, not on dtypes alone: all but the casts, and CHECK, which
#: does more than compute.
ALU = ELEMENTWISE - {Ops.CAST, Ops.BITCAST, Ops.CHECK}
COMPARISONS = frozenset((Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE))
COMMUTATIVE = frozenset(op for op, info in OPS.items() if info.commutes)
#: What may combine a reduction.
REDUCTIONS = frozenset((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))
#: What a SCAN may carry along: a reduction's running value, or by MULACC `carried*factor + value`.
SCANS = REDUCTIONS | {Ops.MULACC}


def start_value(op: Ops, dtype: DType) -> ConstType:
    """What a reduction or scan starts with: the op's identity; 0 for MULACC."""
    identity = OPS[op].identity
    if op is Ops.MULACC:
        return cast_value(0, dtype)
    if identity is None:
        raise ValueError(f"{op} does not combine a reduction")
    return identity(dtype)


def execute(
    op: Ops, dtype: DType, values: tuple[ConstType, ...], source_dtype: DType | None = None
) -> ConstType:
    """The value of one elementwise op on Python numbers, exactly as every device must compute it.

    `dtype` is that of the result, `source_dtype` that of the (last) source, needed by comparisons, shifts and
    BITCAST.
    """
    source = source_dtype or dtype
    if op is Ops.BITCAST:
        return bitcast_value(values[0], source, dtype)
    evaluate = OPS[op].evaluate
    if evaluate is None:
        raise TypeError(f"{op} has no meaning on single values")
    if op is Ops.CAST:
        return evaluate(dtype, values[0])
    return truncate(evaluate(source, *values), dtype)


def bitcast_value(value: ConstType, source: DType, target: DType) -> ConstType:
    """The same bits read as another dtype of the same size."""
    bits = to_bits(value, source.scalar_type)
    return from_bits(bits, target.scalar_type)


#: Types whose bits are the first ones of a wider type's.
_BEGINS = {dtypes.bfloat16: dtypes.float32, dtypes.fp8e5m2: dtypes.float16}


def to_bits(value: ConstType, dtype: DType) -> int:
    """The bits of a value as an unsigned integer."""
    if dtype.fmt is not None:
        return int.from_bytes(struct.pack("<" + dtype.fmt, value), "little")
    if dtype is dtypes.fp8e4m3:  # a half with one bit less for the exponent, and no infinity
        if value != value:
            return 0x7F
        bits = to_bits(value / 256, dtypes.float16)
        return bits >> 8 & 0x80 | bits >> 7 & 0x7F
    wider = _BEGINS[dtype]
    return to_bits(value, wider) >> (wider.itemsize - dtype.itemsize) * 8


def from_bits(bits: int, dtype: DType) -> ConstType:
    """The value whose bits these are."""
    if dtype.fmt is not None:
        value: ConstType = struct.unpack("<" + dtype.fmt, bits.to_bytes(dtype.itemsize, "little"))[0]
        return value
    if dtype is dtypes.fp8e4m3:
        if bits & 0x7F == 0x7F:
            return math.nan
        return from_bits((bits & 0x80) << 8 | (bits & 0x7F) << 7, dtypes.float16) * 256
    wider = _BEGINS[dtype]
    return from_bits(bits << (wider.itemsize - dtype.itemsize) * 8, wider)

"""int64 and uint64 in WGSL, which has 32 bits: pairs of words, the low one first, as memory has them.

Each op is a small function of the module, but for those that do the same to both words. Sums carry, products
are made of halves of words (Knuth, The Art of Computer Programming 2, 4.3.1), division goes bit by bit. A
number is rounded to float32 as integers are, to the nearest, ties to even: conversions of WGSL promise less.
"""

from __future__ import annotations

from ...dtype import ConstType, DType, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .parentheses import without_parentheses
from .text import Row, Text

#: The types, and what they are called in the names of functions.
WIDE = {dtypes.int64: "int64", dtypes.uint64: "uint64"}
PAIR = "vec2<u32>"

#: name → (parameters and result, body, the functions that the body calls)
_FUNCTIONS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "add64": (
        "(a: W, b: W) -> W",
        "let low = a.x+b.x; return W(low, a.y+b.y+select(0u, 1u, low < a.x));",
        (),
    ),
    "sub64": ("(a: W, b: W) -> W", "return W(a.x-b.x, a.y-b.y-select(0u, 1u, a.x < b.x));", ()),
    "neg64": ("(a: W) -> W", "return sub64(W(0u, 0u), a);", ("sub64",)),
    "mul64": (
        "(a: W, b: W) -> W",
        "let p = a.x&0xFFFFu; let q = a.x>>16u; let r = b.x&0xFFFFu; let s = b.x>>16u; "
        "let low = p*r; let one = q*r+(low>>16u); let two = p*s+(one&0xFFFFu); "
        "return W((two<<16u)|(low&0xFFFFu), q*s+(one>>16u)+(two>>16u)+a.x*b.y+a.y*b.x);",
        (),
    ),
    # shifts by 1 to 31, by 32 to 63, and by what is not known
    "shl64_less": ("(a: W, n: u32) -> W", "return W(a.x<<n, (a.y<<n)|(a.x>>(32u-n)));", ()),
    "shl64_more": ("(a: W, n: u32) -> W", "return W(0u, a.x<<(n-32u));", ()),
    "shl64": (
        "(a: W, n: u32) -> W",
        "let low = a.x<<(n&31u); let high = (a.y<<(n&31u))|((a.x>>1u)>>(31u-(n&31u))); "
        "return select(W(low, high), W(0u, low), n >= 32u);",
        (),
    ),
    "shr_uint64_less": ("(a: W, n: u32) -> W", "return W((a.x>>n)|(a.y<<(32u-n)), a.y>>n);", ()),
    "shr_uint64_more": ("(a: W, n: u32) -> W", "return W(a.y>>(n-32u), 0u);", ()),
    "shr_uint64": (
        "(a: W, n: u32) -> W",
        "let high = a.y>>(n&31u); let low = (a.x>>(n&31u))|((a.y<<1u)<<(31u-(n&31u))); "
        "return select(W(low, high), W(high, 0u), n >= 32u);",
        (),
    ),
    "shr_int64_less": (
        "(a: W, n: u32) -> W",
        "return W((a.x>>n)|(a.y<<(32u-n)), bitcast<u32>(bitcast<i32>(a.y)>>n));",
        (),
    ),
    "shr_int64_more": (
        "(a: W, n: u32) -> W",
        "let high = bitcast<i32>(a.y); return bitcast<W>(vec2<i32>(high>>(n-32u), high>>31u));",
        (),
    ),
    "shr_int64": (
        "(a: W, n: u32) -> W",
        "let sign = bitcast<u32>(bitcast<i32>(a.y)>>31u); "
        "let high = bitcast<u32>(bitcast<i32>(a.y)>>(n&31u)); "
        "let low = (a.x>>(n&31u))|((a.y<<1u)<<(31u-(n&31u))); "
        "return select(W(low, high), W(high, sign), n >= 32u);",
        (),
    ),
    "less_uint64": ("(a: W, b: W) -> bool", "return a.y < b.y || (a.y == b.y && a.x < b.x);", ()),
    "less_int64": (
        "(a: W, b: W) -> bool",
        "return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);",
        (),
    ),
    "divided64": (
        "(a: W, b: W) -> vec4<u32>",
        "if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x/b.x, 0u, a.x%b.x, 0u); } "
        "var quotient = W(0u, 0u); var rest = W(0u, 0u); "
        "for (var n = 0u; n < 64u; n++) { "
        "let word = select(a.x, a.y, n < 32u); let over = (rest.y>>31u) == 1u; "
        "rest = W((rest.x<<1u)|((word>>(31u-(n&31u)))&1u), (rest.y<<1u)|(rest.x>>31u)); "
        "quotient = W(quotient.x<<1u, (quotient.y<<1u)|(quotient.x>>31u)); "
        "if (over || !less_uint64(rest, b)) { rest = sub64(rest, b); quotient.x |= 1u; } } "
        "return vec4<u32>(quotient, rest);",
        ("less_uint64", "sub64"),
    ),
    "sign64": ("(a: W, negative: bool) -> W", "return select(a, neg64(a), negative);", ("neg64",)),
    "div_uint64": ("(a: W, b: W) -> W", "return divided64(a, b).xy;", ("divided64",)),
    "mod_uint64": ("(a: W, b: W) -> W", "return divided64(a, b).zw;", ("divided64",)),
    "div_int64": (
        "(a: W, b: W) -> W",
        "let p = (a.y>>31u) == 1u; let q = (b.y>>31u) == 1u; "
        "return sign64(divided64(sign64(a, p), sign64(b, q)).xy, p != q);",
        ("sign64", "divided64"),
    ),
    "mod_int64": (
        "(a: W, b: W) -> W",
        "let p = (a.y>>31u) == 1u; let q = (b.y>>31u) == 1u; "
        "return sign64(divided64(sign64(a, p), sign64(b, q)).zw, p);",
        ("sign64", "divided64"),
    ),
    # the 24 bits below the first one, and half of the last of them: a whole number times a power of two
    "f32_of_uint64": (
        "(a: W) -> f32",
        "let zeros = select(countLeadingZeros(a.y), 32u+countLeadingZeros(a.x), a.y == 0u); "
        "if (zeros == 64u) { return bitcast<f32>(at.ZERO); } "
        "let top = shl64(a, zeros); let rest = (top.y&255u)|select(0u, 1u, top.x != 0u); "
        "let whole = top.y>>8u; "
        "let up = select(0u, 1u, rest > 128u || (rest == 128u && (whole&1u) == 1u)); "
        "return bitcast<f32>((((190u-zeros)<<23u)+(whole-0x800000u)+up)|at.ZERO);",
        ("shl64",),
    ),
    "f32_of_int64": (
        "(a: W) -> f32",
        "let negative = (a.y>>31u) == 1u; let found = bitcast<u32>(f32_of_uint64(sign64(a, negative))); "
        "return bitcast<f32>(found|select(0u, 0x80000000u, negative));",
        ("f32_of_uint64", "sign64"),
    ),
    # a float's whole part, of magnitude below 2⁶⁴
    "whole64": (
        "(bits: u32) -> W",
        "let exponent = (bits>>23u)&255u; if (exponent < 127u) { return W(0u, 0u); } "
        "let mantissa = (bits&0x7FFFFFu)|0x800000u; "
        "if (exponent < 150u) { return W(mantissa>>(150u-exponent), 0u); } "
        "return shl64(W(mantissa, 0u), exponent-150u);",
        ("shl64",),
    ),
    "uint64_of_f32": (
        "(x: f32) -> W",
        "let bits = bitcast<u32>(x); let magnitude = bits&0x7FFFFFFFu; "
        "if (magnitude > 0x7F800000u || bits > 0x7FFFFFFFu) { return W(0u, 0u); } "
        "if (magnitude >= 0x5F800000u) { return W(0xFFFFFFFFu, 0xFFFFFFFFu); } "
        "return whole64(bits);",
        ("whole64",),
    ),
    "int64_of_f32": (
        "(x: f32) -> W",
        "let bits = bitcast<u32>(x); let magnitude = bits&0x7FFFFFFFu; let negative = bits > 0x7FFFFFFFu; "
        "if (magnitude > 0x7F800000u) { return W(0u, 0u); } "
        "if (magnitude >= 0x5F000000u) { "
        "return select(W(0xFFFFFFFFu, 0x7FFFFFFFu), W(0u, 0x80000000u), negative); } "
        "return sign64(whole64(magnitude), negative);",
        ("whole64", "sign64"),
    ),
}


def _function(ctx: Text, name: str) -> str:
    """The name of a function that the module has from now on."""
    if name not in ctx.functions.texts:
        head, body, needed = _FUNCTIONS[name]
        ctx.functions.texts[name] = f"fn {name}{head} {{ {body} }}".replace("W", PAIR)
        for other in needed:
            _function(ctx, other)
    return name


def is_pair(ctx: Text, dtype: DType) -> bool:
    """Whether numbers of a type are pairs of words in this dialect."""
    return ctx.row.types.get(dtype) == PAIR


def compares(node: UOp) -> bool:
    """Whether it compares two such numbers."""
    return node.op is Ops.CMPLT and node.src[0].dtype in WIDE


def call(ctx: Text, name: str, *operands: UOp) -> str:
    return f"{_function(ctx, name)}({','.join(without_parentheses(ctx.of(s)) for s in operands)})"


def literal(value: ConstType) -> str:
    number = int(value) % (1 << 64)
    return f"{PAIR}({number & 0xFFFFFFFF}u,{number >> 32}u)"


def low(text: str) -> str:
    """The word of a number that fits one."""
    return f"({without_parentheses(text)}).x"


def word(ctx: Text, node: UOp) -> str:
    """A number from 0 on as an unsigned one of 32 bits."""
    if node.op is Ops.CONST:
        return f"{node.arg}u"
    text = ctx.of(node)
    return low(text) if is_pair(ctx, node.dtype) else f"u32({without_parentheses(text)})"


# *** conversions


def from_narrow(text: str, source: DType) -> str:
    """A bool, or an integer in a word, as a pair."""
    if source is dtypes.bool:
        return f"{PAIR}(select(0u,1u,{text}),0u)"
    if dtypes.is_unsigned(source):
        return f"{PAIR}({text},0u)"
    return f"bitcast<{PAIR}>(vec2<i32>({text},({text})>>31u))"


def cast(ctx: Text, node: UOp) -> str:
    """To or from a pair; of a narrower integer the text is its word, as an unsigned number."""
    source, target, value = node.src[0].dtype, node.dtype, without_parentheses(ctx.of(node.src[0]))
    if is_pair(ctx, target):
        if is_pair(ctx, source):
            return ctx.of(node.src[0])
        if dtypes.is_float(source):
            return call(ctx, f"{WIDE[target]}_of_f32", *node.src)
        return from_narrow(value, source)
    if target is dtypes.bool:
        return f"any({value}!={PAIR}(0u,0u))"
    return call(ctx, f"f32_of_{WIDE[source]}", *node.src) if dtypes.is_float(target) else low(value)


# *** rows


def _calls(name: str) -> Row:
    """A function of the sources; `{dtype}` is their type."""
    return lambda ctx, node: call(ctx, name.format(dtype=WIDE[node.src[0].dtype]), *node.src)


def _shifts(name: str) -> Row:
    """A shift: how far is an unsigned number of 32 bits."""

    def text(ctx: Text, node: UOp) -> str:
        value, amount = node.src
        function = name.format(dtype=WIDE[node.dtype])
        if amount.op is Ops.CONST:
            if amount.arg == 0:
                return ctx.of(value)
            function += "_less" if amount.arg < 32 else "_more"
        return f"{_function(ctx, function)}({without_parentheses(ctx.of(value))},{word(ctx, amount)})"

    return text


def _extremum(template: str) -> Row:
    """The lesser of two, or the greater: the first if they are equal."""

    def text(ctx: Text, node: UOp) -> str:
        first, second = [without_parentheses(ctx.of(s)) for s in node.src]
        less = _function(ctx, f"less_{WIDE[node.dtype]}")
        return template.format(less=less, first=first, second=second)

    return text


ROWS = PatternMatcher(
    [
        (UPat(Ops.ADD), _calls("add64")),
        (UPat(Ops.SUB), _calls("sub64")),
        (UPat(Ops.MUL), _calls("mul64")),
        (UPat(Ops.NEG), _calls("neg64")),
        (UPat(Ops.IDIV), _calls("div_{dtype}")),
        (UPat(Ops.MOD), _calls("mod_{dtype}")),
        (UPat(Ops.SHL), _shifts("shl64")),
        (UPat(Ops.SHR), _shifts("shr_{dtype}")),
        (UPat(Ops.MIN), _extremum("select({first},{second},{less}({second},{first}))")),
        (UPat(Ops.MAX), _extremum("select({first},{second},{less}({first},{second}))")),
        (UPat(Ops.AND), "({0}&{1})"),
        (UPat(Ops.OR), "({0}|{1})"),
        (UPat(Ops.XOR), "({0}^{1})"),
        (UPat(Ops.CMPLT), _calls("less_{dtype}")),
        (
            UPat(Ops.CMPLE),
            lambda ctx, node: f"!{call(ctx, f'less_{WIDE[node.src[0].dtype]}', *node.src[::-1])}",
        ),
        (UPat(Ops.CMPEQ), "all({0}=={1})"),
        (UPat(Ops.CMPNE), "any({0}!={1})"),
    ],
    on=tuple(WIDE),
)

"""WGSL, the language of WebGPU: what each op is, and what a device is taken to have that says nothing.

What differs from the languages that look like C:

- WGSL lets a driver take floats for real numbers, and drivers do: `x-x` becomes 0, `(x+c)-c` becomes x,
  `x!=x` false. So each result is hidden from such rules: a word of the arguments, ZERO, that is always 0 and
  that no compiler knows, is added to its bits (`exact`, and `said` of comparisons). Zero, infinity and NaN
  are written by ZERO too.
- Integers have 32 bits. Narrower ones are kept in 32, brought back into their range by each op that may leave
  it; in memory they share words (`load_` and `store_` functions, in wgsl_kernel.py).
- int64 and uint64 are pairs of words (wgsl_wide.py), or what an adapter has that goes beyond WebGPU (WGSL64).
  There is no float64: lavapipe has it, and multiplies wrongly.
- A view of memory begins where bindings may not, so each place is relative to a SKIP of the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dtype import ConstType, DType, PtrDType, dtypes
from ...ir.linear import buffer_name
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.text import number_text
from ...ir.uop import UOp
from ...target import Target
from ..texts import variable_name
from . import control, memory, wgsl_wide
from .arithmetic import BY_SIGNS, NARROW, is_not, opposite, sum_or_product
from .dialect import Dialect
from .memory import load, store
from .parentheses import without_parentheses
from .text import Row, Text
from .wgsl_wide import PAIR, WIDE, is_pair

_SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32)

#: dtype → what holds a value of it, of at most 32 bits.
TYPES = {
    dtypes.bool: "bool",
    **dict.fromkeys(_SIGNED, "i32"),
    **dict.fromkeys(_UNSIGNED, "u32"),
    dtypes.float32: "f32",
}
#: The same of 64 bits, where an adapter has such.
TYPES_OF_64 = {dtypes.int64: "i64", dtypes.uint64: "u64"}
#: The types of memory that share words.
IN_WORDS = (dtypes.bool, *NARROW)
#: The most workgroups along an axis, as every implementation has it.
MOST_GROUPS = 65535
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_SUFFIX = {"i32": "", "u32": "u", "i64": "li", "u64": "lu"}
_ZERO = "bitcast<f32>(at.ZERO)"


# *** numbers


def literal(value: ConstType, dtype: DType) -> str:
    """A number; of floats, those that a compiler has rules for are made of bits that it does not know."""
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if dtypes.is_float(dtype):
        return _float_literal(float(value))
    number = int(value)
    if number == dtypes.min(dtype) and dtype in (dtypes.int32, dtypes.int64):
        return f"({literal(number + 1, dtype)}-{literal(1, dtype)})"
    text = f"{number}{_SUFFIX[TYPES.get(dtype) or TYPES_OF_64[dtype]]}"
    return f"({text})" if number < 0 else text


def _float_literal(number: float) -> str:
    if number == 0.0:
        return f"(-{_ZERO})" if math.copysign(1.0, number) < 0 else _ZERO
    if math.isfinite(number):
        text = f"{number_text(number, dtypes.float32)}f"
        return f"({text})" if number < 0 else text
    found = f"bitcast<f32>({_NAN if number != number else _INFINITY}u|at.ZERO)"
    return f"(-{found})" if number < 0 else found


def exact(template: str) -> Row:
    """Arithmetic on floats, whose result is exactly that; of two that are one, the second is hidden too."""

    def text(ctx: Text, node: UOp) -> str:
        operands = [ctx.of(s) for s in node.src]
        if len(node.src) > 1 and node.src[0] is node.src[1]:
            operands[1] = _exact(ctx, operands[1])
        return _exact(ctx, template.format(*operands))

    return text


def _exact(ctx: Text, text: str) -> str:
    # A sum of words: drivers know that an OR, done twice, is the same as once, so that x-exact(x) is x-x.
    ctx.functions.texts["exact"] = "fn exact(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x)+at.ZERO); }"
    return f"exact({without_parentheses(text)})"


def compared(sign: str, opposite: str = "") -> Row:
    """A comparison of floats, whose result no rule about numbers may use. (wgpu's `!=` is false for NaN.)"""

    def text(ctx: Text, node: UOp) -> str:
        ctx.functions.texts["said"] = "fn said(x: bool) -> bool { return x != (at.ZERO != 0u); }"
        first, second = [ctx.of(s) for s in node.src]
        if node.src[0] is node.src[1]:
            second = _exact(ctx, second)
        return f"said({opposite}({first}{sign}{second}))"

    return text


def is_itself(node: UOp) -> bool:
    return node.src[0] is node.src[1]


def nan_test(expected: str) -> Row:
    """Whether a float is no number, by its bits; or whether it is one."""

    def text(ctx: Text, node: UOp) -> str:
        return f"((bitcast<u32>({ctx.of(node.src[0])})&{(1 << 31) - 1}u){expected}{_INFINITY}u)"

    return text


def in_range(text: str, dtype: DType) -> str:
    """32 bits as a number of a type: of the narrow ones, with what is above left out."""
    width = 8 * dtype.itemsize
    if dtype in (dtypes.int8, dtypes.int16):
        return f"extractBits({without_parentheses(text)},0u,{width}u)"
    return f"({text}&{(1 << width) - 1}u)" if dtype in (dtypes.uint8, dtypes.uint16) else text


def narrow(template: str) -> Row:
    return lambda ctx, node: in_range(ctx.filled(template, node), node.dtype)


def shifted(sign: str) -> Row:
    """A shift: how far is an unsigned number of 32 bits."""

    def text(ctx: Text, node: UOp) -> str:
        return in_range(f"({ctx.of(node.src[0])}{sign}{wgsl_wide.word(ctx, node.src[1])})", node.dtype)

    return text


# *** conversions


def cast(ctx: Text, node: UOp) -> str:
    """A number as another type; floats to integers saturate, NaN is 0."""
    source, target, value = node.src[0].dtype, node.dtype, without_parentheses(ctx.of(node.src[0]))
    if source is target:
        return ctx.of(node.src[0])
    if is_pair(ctx, source) or is_pair(ctx, target):
        found = wgsl_wide.cast(ctx, node)
        if target not in (*_SIGNED, *_UNSIGNED):
            return found
        return in_range(found if target in _UNSIGNED else f"bitcast<i32>({found})", target)
    if dtypes.is_float(source) and dtypes.is_int(target):
        return f"{_saturated(ctx, target)}({value})"
    kinds = ctx.type(source), ctx.type(target)
    if source is dtypes.bool and target.itemsize == 8:
        return f"select({literal(0, target)},{literal(1, target)},{value})"
    if kinds in (("i32", "u64"), ("u32", "i64")):  # wgpu extends these by the sign of the result
        value = f"{kinds[0][0]}64({value})"
    found = ctx.of(node.src[0]) if kinds[0] == kinds[1] else f"{kinds[1]}({value})"
    return found if source is dtypes.bool or dtypes.is_float(target) else in_range(found, target)


def _saturated(ctx: Text, target: DType) -> str:
    name, to = f"{target.name}_of_float", ctx.type(target)
    low, high = int(dtypes.min(target)), int(dtypes.max(target))
    ctx.functions.texts[name] = (
        f"fn {name}(x: f32) -> {to} {{ "
        f"if ((bitcast<u32>(x)&{(1 << 31) - 1}u)>{_INFINITY}u) {{ return {literal(0, target)}; }} "
        f"if (x >= {literal(float(high + 1), dtypes.float32)}) {{ return {literal(high, target)}; }} "
        f"if (x < {literal(float(low), dtypes.float32)}) {{ return {literal(low, target)}; }} "
        f"return {to}(x); }}"
    )
    return name


def bitcast(ctx: Text, node: UOp) -> str:
    source, target = node.src[0].dtype, node.dtype
    value = without_parentheses(ctx.of(node.src[0]))
    if dtypes.bool in (source, target) or source is target or is_pair(ctx, source):
        return cast(ctx, node)
    if target.itemsize < 4:
        return in_range(f"{ctx.type(target)}({value})", target)
    return f"bitcast<{ctx.type(target)}>({value})"


# *** remainder


def remainder(ctx: Text, node: UOp) -> str:
    """FMOD by hand: m·2^p mod n·2^q is (m·2^(p-q) mod n)·2^q, as many bits at a time as a word has above a
    mantissa (as remainder.py does for C).
    """
    ctx.functions.texts["remainder"] = _REMAINDER
    return f"remainder({','.join(without_parentheses(ctx.of(s)) for s in node.src)})"


_REMAINDER = f"""fn remainder(a: f32, b: f32) -> f32 {{
  let sign = bitcast<u32>(a)&{1 << 31}u;
  let x = bitcast<u32>(a)^sign;
  let y = bitcast<u32>(b)&{(1 << 31) - 1}u;
  if (x>={_INFINITY}u || y>{_INFINITY}u || y==0u) {{ return bitcast<f32>({_NAN}u|at.ZERO); }}
  if (x<y) {{ return a; }}
  var p = x>>23u; var q = y>>23u;
  var m = x&{(1 << 23) - 1}u; var n = y&{(1 << 23) - 1}u;
  if (p!=0u) {{ m |= {1 << 23}u; }} else {{ p = 1u; }}
  if (q!=0u) {{ n |= {1 << 23}u; }} else {{ q = 1u; }}
  m %= n;
  var k = p-q;
  while (k!=0u) {{
    let s = min(k, 8u);
    m = (m<<s)%n; k -= s;
  }}
  if (m==0u) {{ return bitcast<f32>(sign|at.ZERO); }}
  while (m<{1 << 23}u && q>1u) {{ m <<= 1u; q -= 1u; }}
  return bitcast<f32>((sign|((q-1u)<<23u))+m);
}}"""


# *** the launch


def folded(groups: tuple[int, ...]) -> tuple[int, ...]:
    """The workgroups to launch for these: some more along two axes where an axis would be too long."""
    if max(groups) <= MOST_GROUPS:
        return groups
    return (MOST_GROUPS, -(-math.prod(groups) // MOST_GROUPS), 1)


def numbers_format(buffers: int, variables: Sequence[UOp]) -> str:
    """What a launch is given beside so many buffers, as `struct` packs it: ZERO, the SKIPs, the Variables."""
    return "@" + "I" * (1 + buffers) + "".join(str(variable.dtype.fmt) for variable in variables)


def launch_index(ctx: Text, node: UOp) -> str:
    """A place in the launch; in one that is folded, what the number of the workgroup says."""
    name, size = node.arg
    number = int(name[4:])
    found = f"{'thread' if name.startswith('l') else 'group'}.{'xyz'[number]}"
    groups = groups_of(ctx.uops)
    if name.startswith("g") and folded(groups) != groups:
        found = "number"
        if ctx.names.fresh("folded") == "folded0":
            ctx.line(f"let number = group.x+group.y*{MOST_GROUPS}u;")
            ctx.line(f"if (number >= {math.prod(groups)}u) {{ return; }}")
        below = math.prod(groups[:number])
        found = f"number/{below}u" if below > 1 else found
        found = f"({found})%{size}u" if number < 2 else found
    ctx.value[node] = name
    kind = ctx.type(node.dtype)
    found = wgsl_wide.from_narrow(found, dtypes.uint32) if kind == PAIR else f"{kind}({found})"
    return ctx.line(f"let {name} = {found}; /* {size} */")


def groups_of(uops: Sequence[UOp], kind: str = "gidx") -> tuple[int, int, int]:
    """How many workgroups, or threads (`lidx`) of one, a program has along x, y and z."""
    sizes = {u.arg[0]: u.arg[1] for u in uops if u.op is Ops.SPECIAL}
    return (sizes.get(f"{kind}0", 1), sizes.get(f"{kind}1", 1), sizes.get(f"{kind}2", 1))


# *** memory


def position(ctx: Text, node: UOp) -> str:
    """Which element an INDEX is, of memory that is bound where it may be."""
    buffer, place = node.src[:2]
    found = wgsl_wide.word(ctx, place)
    if buffer.op is not Ops.DEFINE_GLOBAL:
        return found if is_pair(ctx, place.dtype) else without_parentheses(ctx.of(place))
    return f"at.SKIP{ctx.buffers.index(buffer)}+{found}"


def shares_words(index: UOp) -> bool:
    return index.src[0].op is Ops.DEFINE_GLOBAL and _element(index) in IN_WORDS


def _element(index: UOp) -> DType:
    pointer = index.src[0].dtype
    assert isinstance(pointer, PtrDType)
    return pointer.base


def element(ctx: Text, index: UOp, dtype: DType) -> str:
    found = position(ctx, index)
    return (
        f"load_{ctx.of(index.src[0])}({found})" if shares_words(index) else f"{ctx.of(index.src[0])}[{found}]"
    )


def store_element(ctx: Text, index: UOp, value: UOp) -> str:
    text = ctx.of(value)
    if shares_words(index):
        return f"store_{ctx.of(index.src[0])}({position(ctx, index)},{without_parentheses(text)})"
    return f"{element(ctx, index, value.dtype)} = {text}"


def masked(ctx: Text, node: UOp) -> str:
    """A LOAD that is valid or not: WGSL reads somewhere in the memory if the place is outside of it."""
    index = node.src[0]
    found = f"select({memory.other_of(ctx, node)},{element(ctx, index, node.dtype)},{ctx.of(index.src[2])})"
    return memory.loaded(ctx, node, found)


def define_local(ctx: Text, node: UOp) -> str:
    """An array; one that a workgroup shares is declared outside of the function."""
    assert isinstance(node.dtype, PtrDType)
    kind, name = memory.local(ctx, node)
    array = f"{name}: array<{kind}, {node.dtype.size}>;"
    if node.dtype.local:
        ctx.functions.typedefs[f"var<workgroup> {array}"] = None
        return ""
    return ctx.line(f"var {array}")


def long_loop(ctx: Text, node: UOp) -> str:
    raise NotImplementedError(
        f"{ctx.name}: a loop of more than {2**31 - 1:,} turns on a device without int64"
    )


_OWN = (
    PatternMatcher(
        [
            (UPat(Ops.ADD), narrow("({0}+{1})")),
            (UPat(Ops.SUB), narrow("({0}-{1})")),
            (UPat(Ops.MUL), narrow("({0}*{1})")),
        ],
        on=NARROW,
    )
    + PatternMatcher([(UPat(Ops.NEG), narrow("(0u-{0})"))], on=_UNSIGNED)
    + PatternMatcher([(UPat(Ops.NEG), "(0lu-{0})")], on=(dtypes.uint64,))
    + PatternMatcher(
        [
            *BY_SIGNS,
            (UPat(Ops.NEG), narrow("(-{0})")),
            (UPat(Ops.IDIV), "({0}/{1})"),
            (UPat(Ops.MOD), "({0}%{1})"),
            (UPat(Ops.SHL), shifted("<<")),
            (UPat(Ops.SHR), shifted(">>")),
            (UPat(Ops.MAX), "max({0},{1})"),
            (UPat(Ops.MIN), "min({0},{1})"),
            (UPat(Ops.XOR), sum_or_product("^")),
            (UPat(Ops.CMPLT), "({0}<{1})"),
            (UPat(Ops.CMPLE), "({0}<={1})"),
        ],
        on=dtypes.ints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.CMPNE), opposite, is_not),
            (UPat(Ops.NEG), "!{0}"),
            (UPat(Ops.XOR), "({0}!={1})"),
        ],
        on=(dtypes.bool,),
    )
    + PatternMatcher(
        [(UPat(Ops.AND), sum_or_product("&")), (UPat(Ops.OR), sum_or_product("|"))],
        on=(dtypes.bool, *dtypes.ints),
    )
    + PatternMatcher(
        [
            (UPat(Ops.ADD), exact("({0}+{1})")),
            (UPat(Ops.SUB), exact("({0}-{1})")),
            (UPat(Ops.MUL), exact("({0}*{1})")),
            (UPat(Ops.FDIV), exact("({0}/{1})")),
            (UPat(Ops.NEG), exact("(-{0})")),
            (UPat(Ops.SQRT), exact("sqrt({0})")),
            (UPat(Ops.TRUNC), exact("trunc({0})")),
            (UPat(Ops.FMOD), remainder),
            (UPat(Ops.CMPNE), nan_test(">"), is_itself),
            (UPat(Ops.CMPEQ), nan_test("<="), is_itself),
            (UPat(Ops.CMPLT), compared("<")),
            (UPat(Ops.CMPLE), compared("<=")),
            (UPat(Ops.CMPEQ), compared("==")),
            (UPat(Ops.CMPNE), compared("==", "!")),
        ],
        on=(dtypes.float32,),
    )
    + PatternMatcher(
        [
            (UPat(Ops.CMPEQ), "({0}=={1})"),
            (UPat(Ops.CMPNE), "({0}!={1})"),
            (UPat(Ops.WHERE), "select({2},{1},{0})"),
            (UPat(Ops.CAST), cast),
            (UPat(Ops.BITCAST), bitcast),
            (UPat(Ops.SPECIAL), launch_index),
            (UPat(Ops.BARRIER), "workgroupBarrier();"),
            (UPat(Ops.INDEX), position),
            (UPat(Ops.LOAD), masked, lambda node: len(node.src[0].src) > 2),
            (UPat(Ops.LOAD), load(element)),
            (UPat(Ops.STORE), store(store_element)),
            (UPat(Ops.DEFINE_VAR), lambda ctx, node: ctx.named(node, f"at.{variable_name(node.arg[0])}")),
            (UPat(Ops.DEFINE_LOCAL), define_local),
        ]
    )
)

#: Arithmetic on pairs. The opposite of `less(a,b)` is written as such, not as `a>=b`.
_PAIRS = (
    wgsl_wide.ROWS
    + PatternMatcher([(UPat(Ops.RANGE), long_loop)], on=tuple(WIDE))
    + PatternMatcher(
        [(UPat(Ops.CMPNE), "!{0}", lambda node: is_not(node) and wgsl_wide.compares(node.src[0]))],
        on=(dtypes.bool,),
    )
)


def _dialect(rows: PatternMatcher, wide: dict[DType, str]) -> Dialect:
    return Dialect(
        rows=rows
        + PatternMatcher([(UPat(Ops.DEFINE_GLOBAL), lambda ctx, node: ctx.named(node, buffer_name(node)))])
        + control.ROWS,
        types={**TYPES, **wide},
        vector_types={},
        vector_lengths=frozenset(),
        make_vector="",
        lane="",
        long_suffix="",
        kernel="",
        named="let {name}: {type} = {value};",
        changing="var {name}: {type} = {value};",
        counted="for (var {name}: {type} = {start}; {name} < {end}; {name}++) {{",
    )


#: What every implementation understands.
WGSL = _dialect(_PAIRS + _OWN, dict.fromkeys(WIDE, PAIR))
#: For adapters with wgpu's feature `shader-int64`, which no browser's has.
WGSL64 = _dialect(_OWN, TYPES_OF_64)


def arguments(bindings: int) -> int:
    """How many arguments kernels are planned with: one more may be stored, and one holds reports."""
    return bindings - 2


def wgsl_target(arch: str = "") -> Target:
    """What every implementation of WebGPU has: the defaults of its limits."""
    return Target(
        "WEBGPU", arch, grid=True, has_local=True, local_bytes=16 << 10, group_threads=256,
        group_sizes=(256, 256, 64), grid_sizes=(2**31 - 1, MOST_GROUPS, MOST_GROUPS), max_args=arguments(8),
        native_dtypes=frozenset((*TYPES, *WIDE)), flushes=True,
    )  # fmt: skip

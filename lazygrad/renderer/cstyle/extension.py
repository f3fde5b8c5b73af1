"""What C has of its own: vectors that compute (the extension of gcc and clang), halves that are only stored.

A lane of a vector bool is a mask, 0 or -1, as wide as what was compared; in memory it is a byte of 0 or 1.
"""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ..scratch import MAX_STACK
from .arithmetic import converted, is_vector
from .control import assigned, defined, open_branch
from .memory import define_local, load, loaded, local, other_of, store, value_at
from .text import MASKS, Row, Text

# *** vectors that are masks


def compare(ctx: Text, node: UOp) -> str:
    """Two vectors: the mask is as wide as their lanes."""
    dtype = node.src[0].dtype
    first, second = (ctx.of(s) for s in node.src)
    nbytes = ctx.mask[node] = dtype.scalar_type.itemsize
    return f"(({ctx.type(MASKS[nbytes].vec(dtype.count))})({first}{_COMPARE[node.op]}{second}))"


_COMPARE = {Ops.CMPLT: "<", Ops.CMPLE: "<=", Ops.CMPEQ: "==", Ops.CMPNE: "!="}


def logic(template: str) -> Row:
    """Two masks."""

    def text(ctx: Text, node: UOp) -> str:
        a, b = node.src
        first = ctx.of(a)
        nbytes = ctx.mask[node] = ctx.mask[a]
        return template.format(first, ctx.as_mask(b, nbytes))

    return text


def inverted(ctx: Text, node: UOp) -> str:
    text = ctx.filled("(~{0})", node)
    ctx.mask[node] = ctx.mask[node.src[0]]
    return text


def choose(ctx: Text, node: UOp) -> str:
    """Lanes by a mask."""
    condition, yes, no = node.src
    first, second = ctx.of(yes), ctx.of(no)
    ctx.of(condition)
    where = ctx.functions.where(node.dtype)
    return f"{where}({ctx.as_mask(condition, node.dtype.scalar_type.itemsize)},{first},{second})"


def choose_mask(ctx: Text, node: UOp) -> str:
    """One of two masks, or lanes of both."""
    condition, yes, no = node.src
    ctx.of(yes)
    nbytes = ctx.mask[node] = ctx.mask[yes] if yes.op is not Ops.CONST else 1
    first, second = ctx.as_mask(yes, nbytes), ctx.as_mask(no, nbytes)
    if condition.dtype.count == 1:
        return f"({ctx.of(condition)}?{first}:{second})"
    where = ctx.functions.where(MASKS[nbytes].vec(node.dtype.count))
    return f"{where}({ctx.as_mask(condition, nbytes)},{first},{second})"


def of_mask(ctx: Text, node: UOp) -> str:
    """A mask as numbers."""
    source, target = node.src[0], node.dtype
    value, scalar = ctx.of(source), target.scalar_type
    if scalar is dtypes.bool:
        return value
    one = f"({ctx.as_mask(source, min(scalar.itemsize, 8))}&1)"
    if scalar is dtypes.float16:
        one = ctx.converted(one, dtypes.float32.vec(target.count))
    return ctx.converted(one, target)


def to_mask(ctx: Text, node: UOp) -> str:
    """Numbers that are not zero."""
    source = node.src[0].dtype
    value, scalar = ctx.of(node.src[0]), source.scalar_type
    if scalar is dtypes.float16:
        value, scalar = ctx.wide(value, source), dtypes.float32
    nbytes = ctx.mask[node] = scalar.itemsize
    mask, zeros = MASKS[nbytes].vec(source.count), scalar.vec(source.count)
    return f"(({ctx.type(mask)})({value}!=({ctx.type(zeros)}){{}}))"


def vector_of_bools(ctx: Text, node: UOp) -> str:
    lanes = [f"-{ctx.of(s)}" for s in node.src]
    ctx.mask[node] = 1
    return ctx.vector(dtypes.int8.vec(node.dtype.count), lanes)


def lane_of_mask(ctx: Text, node: UOp) -> str:
    return f"({ctx.lane(ctx.of(node.src[0]), node.arg[0])}!=0)"


def shuffled(ctx: Text, node: UOp) -> str:
    source = node.src[0]
    vector = ctx.of(source)
    if source in ctx.mask:
        ctx.mask[node] = ctx.mask[source]
    return f"__builtin_shufflevector({vector}, {vector}, {', '.join(map(str, node.arg))})"


def define_mask(ctx: Text, node: UOp) -> str:
    ctx.of(node.src[0])
    ctx.mask[node] = 1
    return defined(ctx, node, ctx.as_mask(node.src[0], 1))


def assign_mask(ctx: Text, node: UOp) -> str:
    acc, value = node.src
    ctx.of(value)
    return assigned(ctx, node, ctx.as_mask(value, ctx.mask[acc]))


def branch_of_any(ctx: Text, node: UOp) -> str:
    """Where it holds in any lane."""
    condition = ctx.of(node.src[0])
    lanes = [f"{condition}[{lane}]" for lane in range(node.src[0].dtype.count)]
    return open_branch(ctx, node, "|".join(lanes))


# *** other vectors


def reciprocal(ctx: Text, node: UOp) -> str:
    x = ctx.of(node.src[0])
    return f"({ctx.literal((1.0,) * node.dtype.count, node.dtype)}/{x})"


def bitcast(ctx: Text, node: UOp) -> str:
    value = ctx.of(node.src[0])
    return f"(({ctx.type(node.dtype)}){value})"


# *** halves: computed as floats


def compare_halves(ctx: Text, node: UOp) -> str:
    first, second = (ctx.wide(ctx.of(s), s.dtype) for s in node.src)
    text = f"({first}{_COMPARE[node.op]}{second})"
    count = node.dtype.count
    if count == 1:
        return text
    ctx.mask[node] = dtypes.float32.itemsize
    return f"(({ctx.type(MASKS[dtypes.float32.itemsize].vec(count))}){text})"


def halves(template: str) -> Row:
    def text(ctx: Text, node: UOp) -> str:
        values = [ctx.wide(ctx.of(s), node.dtype) for s in node.src]
        return ctx.converted(template.format(*values), node.dtype)

    return text


def extremum_of_halves(ctx: Text, node: UOp) -> str:
    first, second = (ctx.wide(ctx.of(s), node.dtype) for s in node.src)
    name = ctx.functions.extremum(node.op, dtypes.float32.vec(node.dtype.count))
    return ctx.converted(f"{name}({first},{second})", node.dtype)


def function_of_halves(ctx: Text, node: UOp) -> str:
    value = ctx.wide(ctx.of(node.src[0]), node.dtype)
    name = ctx.functions.library(node.op, dtypes.float32.vec(node.dtype.count))
    return ctx.converted(f"{name}({value})", node.dtype)


def is_more_than_float(node: UOp) -> bool:
    """Whether a half becomes something through a float."""
    return node.dtype.scalar_type not in (dtypes.float16, dtypes.float32)


def from_half(ctx: Text, node: UOp) -> str:
    source = node.src[0].dtype
    value = ctx.wide(ctx.of(node.src[0]), source)
    return converted(ctx, value, dtypes.float32.vec(source.count), node.dtype)


def has_no_half(node: UOp) -> bool:
    """Whether a type becomes a half through a float: an integer or a bool."""
    return not dtypes.is_float(node.src[0].dtype)


def to_half(ctx: Text, node: UOp) -> str:
    single = dtypes.float32.vec(node.dtype.count)
    return ctx.converted(ctx.converted(ctx.of(node.src[0]), single), node.dtype)


# *** memory


def _in_memory(dtype: DType) -> DType:
    return dtypes.int8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype


def _pointer(ctx: Text, index: UOp, kind: DType) -> str:
    return f"({ctx.type(kind.scalar_type)}*){ctx.of(index)}"


def bytes_at(ctx: Text, index: UOp, dtype: DType) -> str:
    """Bytes of 0 and 1 become a mask."""
    return f"(-{value_at(ctx, index, dtype)})"


def load_bytes(ctx: Text, node: UOp) -> str:
    ctx.mask[node] = 1
    return _load_bytes(ctx, node)


_load_bytes = load(bytes_at)


def load_masked(ctx: Text, node: UOp) -> str:
    index, kind = node.src[0], _in_memory(node.dtype)
    if kind is not node.dtype:
        ctx.mask[node] = 1
    other = other_of(ctx, node)
    ctx.of(index.src[2])
    mask = ctx.as_mask(index.src[2], kind.scalar_type.itemsize)
    called = f"{ctx.functions.masked_load(kind)}({_pointer(ctx, index, kind)},{mask},"
    return loaded(ctx, node, f"(-{called}(-{other})))" if node in ctx.mask else f"{called}{other})")


def _stored(ctx: Text, value: UOp) -> str:
    """A value as memory holds it."""
    text = ctx.of(value)
    return f"({ctx.as_mask(value, 1)}&1)" if value.dtype.scalar_type is dtypes.bool else text


def bytes_to(ctx: Text, index: UOp, value: UOp) -> str:
    text = _stored(ctx, value)
    return f"{value_at(ctx, index, value.dtype)} = {text}"


def past_caches(ctx: Text, index: UOp, value: UOp) -> str:
    text = _stored(ctx, value)
    name = ctx.functions.nontemporal_store(_in_memory(value.dtype), ctx.target.past_caches)
    return f"{name}({ctx.of(index)},{text})"


def store_masked(ctx: Text, node: UOp) -> str:
    index, value = node.src
    text, kind = _stored(ctx, value), _in_memory(value.dtype)
    ctx.type(kind)
    mask = ctx.as_mask(index.src[2], kind.scalar_type.itemsize)
    ctx.used(node)
    return f"{ctx.functions.masked_store(kind)}({_pointer(ctx, index, kind)},{mask},{text});"


def is_large(node: UOp) -> bool:
    """Whether a tile is too large for the stack."""
    return _nbytes(node) > MAX_STACK


def _nbytes(node: UOp) -> int:
    assert isinstance(node.dtype, PtrDType)
    return node.dtype.size * node.dtype.base.itemsize


def define_in_scratch(ctx: Text, node: UOp) -> str:
    kind, name = local(ctx, node)
    ctx.line(f"{kind}*{ctx.row.restrict} {name} = ({kind}*)(scratch+{ctx.scratch});")
    ctx.scratch += -(-_nbytes(node) // 64) * 64
    return ""


_COMPARISONS, _HALF = tuple(_COMPARE), (dtypes.float16,)


def _takes_lanes(node: UOp) -> bool:
    return is_vector(node) and node.src[0].op is not Ops.CONST


def _has_mask(node: UOp) -> bool:
    """Whether an access has a condition for each lane."""
    condition = node.src[0].src[2:]
    return bool(condition) and condition[0].dtype.count > 1


ROWS = (
    PatternMatcher(
        [
            (UPat((Ops.ADD, Ops.MAX, Ops.OR), name="node"), logic("({0}|{1})"), is_vector),
            (UPat((Ops.MUL, Ops.MIN, Ops.AND), name="node"), logic("({0}&{1})"), is_vector),
            (UPat((Ops.SUB, Ops.XOR, Ops.CMPNE), name="node"), logic("({0}^{1})"), is_vector),
            (UPat(Ops.CMPLT, name="node"), logic("(~{0}&{1})"), is_vector),
            (UPat(Ops.CMPLE, name="node"), logic("(~{0}|{1})"), is_vector),
            (UPat(Ops.CMPEQ, name="node"), logic("(~({0}^{1}))"), is_vector),
            (UPat(Ops.NEG, name="node"), inverted, is_vector),
            (UPat(Ops.WHERE, name="node"), choose_mask, is_vector),
            (UPat((Ops.CAST, Ops.BITCAST), name="node"), of_mask, is_vector),
            (UPat(Ops.VECTORIZE, name="node"), vector_of_bools),
            (
                UPat(Ops.GEP, name="node"),
                lane_of_mask,
                lambda node: _takes_lanes(node) and len(node.arg) == 1,
            ),
            (UPat(Ops.ASSIGN, name="node"), assign_mask, is_vector),
            (
                UPat(Ops.STORE, name="node"),
                store(bytes_to),
                lambda node: is_vector(node) and not _has_mask(node),
            ),
        ],
        on=(dtypes.bool,),
    )
    + PatternMatcher(
        [
            (UPat((Ops.CAST, Ops.BITCAST), dtypes.bool, name="node"), to_mask, is_vector),
            (UPat(Ops.DEFINE_ACC, dtypes.bool, name="node"), define_mask, lambda node: node.dtype.count > 1),
            (UPat(Ops.LOAD, name="node"), load_masked, _has_mask),
            (UPat(Ops.LOAD, dtypes.bool, name="node"), load_bytes, lambda node: node.dtype.count > 1),
            (UPat(Ops.STORE, name="node"), store(past_caches), lambda ctx, node: node in ctx.nontemporal),
            (UPat(Ops.STORE, name="node"), store_masked, _has_mask),
            (UPat(Ops.IF, name="node"), branch_of_any, lambda node: node.src[0].dtype.count > 1),
        ]
    )
    + PatternMatcher(
        [
            (UPat(Ops.ADD, name="node"), halves("({0}+{1})")),
            (UPat(Ops.SUB, name="node"), halves("({0}-{1})")),
            (UPat(Ops.MUL, name="node"), halves("({0}*{1})")),
            (UPat(Ops.FDIV, name="node"), halves("({0}/{1})")),
            (UPat(Ops.NEG, name="node"), halves("-{0}")),
            (UPat(Ops.RECIP, name="node"), halves("1.0f/{0}")),
            (UPat((Ops.MAX, Ops.MIN), name="node"), extremum_of_halves),
            (UPat((Ops.SQRT, Ops.TRUNC), name="node"), function_of_halves),
            (UPat(_COMPARISONS, name="node"), compare_halves),
            (UPat(Ops.CAST, name="node"), from_half, is_more_than_float),
        ],
        on=_HALF,
    )
    + PatternMatcher(
        [
            (UPat(Ops.CAST, dtypes.float16, name="node"), to_half, has_no_half),
            (UPat(_COMPARISONS, name="node"), compare, is_vector),
            (UPat(Ops.WHERE, name="node"), choose, lambda node: node.src[0].dtype.count > 1),
            (UPat(Ops.RECIP, dtypes.floats, name="node"), reciprocal, is_vector),
            (UPat(Ops.BITCAST, name="node"), bitcast, is_vector),
            (UPat(Ops.GEP, name="node"), shuffled, lambda node: _takes_lanes(node) and len(node.arg) > 1),
            (UPat(Ops.DEFINE_LOCAL, name="node"), define_in_scratch, is_large),
            (UPat(Ops.DEFINE_LOCAL, name="node"), define_local(" __attribute__((aligned(64)))")),
        ]
    )
)

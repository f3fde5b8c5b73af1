"""What C has of its own: vectors that compute (the extension of gcc and clang), halves that are only stored.

A lane of a vector bool is a mask, 0 or -1, as wide as what was compared; in memory it is a byte of 0 or 1.
"""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.args import NONTEMPORAL
from ...ir.ops import ANY_ORDER, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ..scratch import MAX_STACK
from .arithmetic import is_vector
from .control import assigned, defined, open_branch
from .memory import define_local, load, loaded, local, other_of, store, value_at
from .text import MASKS, Row, Text

# *** vectors that are masks


def compare(ctx: Text, node: UOp) -> str:
    """Two vectors: the mask is as wide as their lanes."""
    text = beside_number(ctx, node) if has_number(node) else ctx.filled(_COMPARE[node.op], node)
    return _mask(ctx, node, text, node.src[0].dtype.scalar_type.itemsize)


def _mask(ctx: Text, node: UOp, text: str, nbytes: int) -> str:
    ctx.mask[node] = nbytes
    return f"(({ctx.type(MASKS[nbytes].vec(node.dtype.count))}){text})"


_COMPARE = {
    Ops.CMPLT: "({0}<{1})", Ops.CMPLE: "({0}<={1})", Ops.CMPEQ: "({0}=={1})", Ops.CMPNE: "({0}!={1})",
}  # fmt: skip


_SIGNS = {
    Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^",
    Ops.CMPLT: "<", Ops.CMPLE: "<=", Ops.CMPEQ: "==", Ops.CMPNE: "!=",
}  # fmt: skip


def has_number(node: UOp) -> bool:
    """Whether one of two vectors is a number for all lanes, of a type to which C promotes nothing."""
    dtype = node.src[0].dtype
    constants = [s.arg for s in node.src if s.op is Ops.CONST]
    if dtype.count == 1 or len(constants) != 1 or dtype.scalar_type.itemsize < 4:
        return False
    return len({repr(lane) for lane in constants[0]}) == 1


def beside_number(ctx: Text, node: UOp) -> str:
    """A vector and a number, which C repeats in all lanes."""
    first, second = [
        ctx.literal(s.arg[0], s.dtype.scalar_type) if s.op is Ops.CONST else ctx.of(s) for s in node.src
    ]
    return f"({first}{_SIGNS[node.op]}{second})"


def _is_opposite(node: UOp) -> bool:
    """Whether lanes are compared with true."""
    return is_vector(node) and node.src[1].op is Ops.CONST and all(node.src[1].arg)


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
    return ctx.converted(f"({ctx.as_mask(source, min(scalar.itemsize, 8))}&1)", target)


def to_mask(ctx: Text, node: UOp) -> str:
    """Numbers that are not zero."""
    source, value = node.src[0].dtype, ctx.of(node.src[0])
    nbytes = ctx.mask[node] = source.scalar_type.itemsize
    return f"(({ctx.type(MASKS[nbytes].vec(source.count))})({value}!=({ctx.type(source)}){{}}))"


def vector_of_bools(ctx: Text, node: UOp) -> str:
    lanes = [f"-{ctx.of(s)}" for s in node.src]
    ctx.mask[node] = 1
    return ctx.vector(dtypes.int8.vec(node.dtype.count), lanes)


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


# *** memory


def _in_memory(dtype: DType) -> DType:
    return dtypes.int8.vec(dtype.count) if _is_mask(dtype) else dtype


def _is_mask(dtype: DType) -> bool:
    return dtype.scalar_type is dtypes.bool and dtype.count > 1


def _pointer(ctx: Text, index: UOp, kind: DType) -> str:
    return f"({ctx.type(kind.scalar_type)}*){ctx.of(index)}"


def load_bytes(ctx: Text, node: UOp) -> str:
    """Bytes of 0 and 1 become a mask."""
    ctx.mask[node] = 1
    return load(lambda ctx, index, dtype: f"(-{value_at(ctx, index, dtype)})")(ctx, node)


def load_masked(ctx: Text, node: UOp) -> str:
    index, kind = node.src[0], _in_memory(node.dtype)
    if _is_mask(node.dtype):
        ctx.mask[node] = 1
    other = other_of(ctx, node)
    ctx.of(index.src[2])
    mask = ctx.as_mask(index.src[2], kind.scalar_type.itemsize)
    called = f"{ctx.functions.masked_load(kind)}({_pointer(ctx, index, kind)},{mask},"
    return loaded(ctx, node, f"(-{called}(-{other})))" if node in ctx.mask else f"{called}{other})")


def _stored(ctx: Text, value: UOp) -> str:
    """A value as memory holds it."""
    text = ctx.of(value)
    return f"({ctx.as_mask(value, 1)}&1)" if _is_mask(value.dtype) else text


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
    begin, ctx.scratch = ctx.scratch, ctx.scratch + -(-_nbytes(node) // 64) * 64
    return ctx.line(f"{kind}*{ctx.row.restrict} {name} = ({kind}*)(scratch+{begin});")


def in_any_order(ctx: Text, node: UOp) -> str:
    """A sum or product whose order, and whose rounding between the two, are left to the compiler."""
    function = ctx.functions.in_any_order(node.op, node.dtype)
    return f"{function}({ctx.of(node.src[0])},{ctx.of(node.src[1])})"


_COMPARISONS = tuple(_COMPARE)
_WIDE_FLOATS = (dtypes.float32, dtypes.float64)
_WIDE_INTS = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)


def _takes_lanes(node: UOp) -> bool:
    return is_vector(node) and node.src[0].op is not Ops.CONST


def _has_mask(node: UOp) -> bool:
    """Whether an access has a condition for each lane."""
    condition = node.src[0].src[2:]
    return bool(condition) and condition[0].dtype.count > 1


ROWS = (
    PatternMatcher(
        [
            (UPat((Ops.ADD, Ops.MAX, Ops.OR)), logic("({0}|{1})"), is_vector),
            (UPat((Ops.MUL, Ops.MIN, Ops.AND)), logic("({0}&{1})"), is_vector),
            (UPat(Ops.CMPNE), inverted, _is_opposite),
            (UPat((Ops.SUB, Ops.XOR, Ops.CMPNE)), logic("({0}^{1})"), is_vector),
            (UPat(Ops.CMPLT), logic("(~{0}&{1})"), is_vector),
            (UPat(Ops.CMPLE), logic("(~{0}|{1})"), is_vector),
            (UPat(Ops.CMPEQ), logic("(~({0}^{1}))"), is_vector),
            (UPat(Ops.NEG), inverted, is_vector),
            (UPat(Ops.WHERE), choose_mask, is_vector),
            (UPat((Ops.CAST, Ops.BITCAST)), of_mask, is_vector),
            (UPat(Ops.VECTORIZE), vector_of_bools),
            (
                UPat(Ops.GEP),
                lambda ctx, node: f"({ctx.lane(ctx.of(node.src[0]), node.arg[0])}!=0)",
                lambda node: _takes_lanes(node) and len(node.arg) == 1,
            ),
            (UPat(Ops.ASSIGN), assign_mask, is_vector),
        ],
        on=(dtypes.bool,),
    )
    + PatternMatcher(
        [
            (UPat((Ops.CAST, Ops.BITCAST), dtypes.bool), to_mask, is_vector),
            (UPat(Ops.DEFINE_ACC), define_mask, lambda node: _is_mask(node.dtype)),
            (UPat(Ops.LOAD), load_masked, _has_mask),
            (UPat(Ops.LOAD), load_bytes, lambda node: _is_mask(node.dtype)),
            (UPat(Ops.STORE), store(past_caches), lambda node: node.arg == NONTEMPORAL),
            (UPat(Ops.STORE), store_masked, _has_mask),
            (UPat(Ops.STORE), store(bytes_to), lambda node: _is_mask(node.src[1].dtype)),
            (UPat(Ops.IF), branch_of_any, lambda node: node.src[0].dtype.count > 1),
        ]
    )
    + PatternMatcher(
        [
            (UPat((Ops.ADD, Ops.MUL), dtypes.floats, arg=ANY_ORDER), in_any_order),
            (UPat(_COMPARISONS), compare, is_vector),
            (UPat((Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV), _WIDE_FLOATS), beside_number, has_number),
            (UPat((Ops.ADD, Ops.SUB, Ops.MUL), _WIDE_INTS), beside_number, has_number),
            (UPat((Ops.AND, Ops.OR, Ops.XOR), _WIDE_INTS), beside_number, has_number),
            (UPat(Ops.WHERE), choose, lambda node: node.src[0].dtype.count > 1),
            (
                UPat(Ops.RECIP, dtypes.floats),
                lambda ctx, node: (
                    f"({ctx.literal((1.0,) * node.dtype.count, node.dtype)}/{ctx.of(node.src[0])})"
                ),
                is_vector,
            ),
            (
                UPat(Ops.BITCAST),
                lambda ctx, node: f"(({ctx.type(node.dtype)}){ctx.of(node.src[0])})",
                is_vector,
            ),
            (UPat(Ops.GEP), shuffled, lambda node: len(node.arg) > 1 and _takes_lanes(node)),
            (UPat(Ops.DEFINE_LOCAL), define_in_scratch, is_large),
            (UPat(Ops.DEFINE_LOCAL), define_local(" __attribute__((aligned(64)))")),
        ]
    )
)

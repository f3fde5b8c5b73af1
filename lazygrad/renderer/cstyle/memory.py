"""Addresses, loads and stores; memory of a kernel's own.

A vector is read at any element, where the language lets it be.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import DType, PtrDType, dtypes
from ...ir.linear import buffer_name
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ..alignment import alignment_for_packed, multiple_of
from ..texts import variable_name
from .parentheses import of_choice, without_parentheses
from .text import Row, Text

#: Bytes of the widest vector.
VECTOR = 16
#: What an INDEX addresses, as a value of a type; a value into what an INDEX addresses.
Read = Callable[[Text, UOp, DType], str]
Write = Callable[[Text, UOp, UOp], str]


def value_at(ctx: Text, index: UOp, dtype: DType) -> str:
    """What an INDEX addresses, as something to read or assign."""
    pointer = index.src[0].dtype
    assert isinstance(pointer, PtrDType)
    if dtype.count == 1 and dtype.itemsize == pointer.base.itemsize:
        return f"*{ctx.of(index)}"
    space = ctx.row.buffer
    if index.src[0].op is Ops.DEFINE_LOCAL:
        space = ctx.row.local_pointer if pointer.local else ""
    kind = dtypes.int8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype
    return f"*(({space}{ctx.type(kind)}*)({ctx.of(index)}))"


def value_to(ctx: Text, index: UOp, value: UOp) -> str:
    text = ctx.of(value)
    return f"{value_at(ctx, index, value.dtype)} = {text}"


def load(read: Read) -> Row:
    """A LOAD that reads in this way, where it is valid."""

    def text(ctx: Text, node: UOp) -> str:
        index = node.src[0]
        if len(index.src) < 3:
            return loaded(ctx, node, read(ctx, index, node.dtype))
        other = other_of(ctx, node)
        found = read(ctx, index, node.dtype)
        return loaded(ctx, node, f"({of_choice(ctx.of(index.src[2]))}?{found}:{of_choice(other)})")

    return text


def loaded(ctx: Text, node: UOp, text: str) -> str:
    """What is read has a name."""
    ctx.value[node] = text
    ctx.used(node)
    ctx.declare(node, "val")
    return ""


def other_of(ctx: Text, node: UOp) -> str:
    """What a masked-out element is."""
    if len(node.src) > 1:
        other = ctx.of(node.src[1])
        return ctx.as_mask(node.src[1], 1) if node in ctx.mask else other
    if node.dtype.count == 1:
        return ctx.literal(0.0 if dtypes.is_float(node.dtype) else 0, node.dtype)
    return ctx.row.make_vector.format(type=ctx.type_of(node), lanes=",".join(["0"] * node.dtype.count))


def store(write: Write) -> Row:
    """A STORE that writes in this way, where it is valid."""

    def text(ctx: Text, node: UOp) -> str:
        index, value = node.src
        written = f"{write(ctx, index, value)};"
        if len(index.src) > 2:
            written = f"if ({without_parentheses(ctx.of(index.src[2]))}) {{ {written} }}"
        ctx.used(node)
        return written

    return text


# *** other ways


def called(template: str) -> Read:
    """A vector by a function of `{pointer}`."""
    return lambda ctx, index, dtype: template.format(pointer=ctx.of(index), lanes=dtype.count)


def calling(template: str) -> Write:
    """A vector by a function of `{value}` and `{pointer}`."""
    return lambda ctx, index, value: template.format(
        value=ctx.of(value), pointer=ctx.of(index), lanes=value.dtype.count
    )


def is_wide(node: UOp) -> bool:
    """Whether a vector is loaded or stored, or a word of several numbers."""
    dtype = (node.src[1] if node.op is Ops.STORE else node).dtype
    memory = node.src[0].dtype
    return dtype.count > 1 or (isinstance(memory, PtrDType) and dtype.itemsize > memory.base.itemsize)


def is_unaligned(node: UOp) -> bool:
    """Whether it is a vector whose place may be no multiple of its size."""
    buffer, position = node.src[0].src[:2]
    count = (node.src[1] if node.op is Ops.STORE else node).dtype.count
    return count > 1 and (buffer.op is not Ops.DEFINE_GLOBAL or multiple_of(position) % count != 0)


def is_misplaced(node: UOp) -> bool:
    """The same, where memory that a workgroup shares begins at a multiple of every vector's size."""
    buffer, position = node.src[0].src[:2]
    memory = buffer.dtype
    if buffer.op is Ops.DEFINE_LOCAL and isinstance(memory, PtrDType) and memory.local:
        count = (node.src[1] if node.op is Ops.STORE else node).dtype.count
        return count > 1 and multiple_of(position) % count != 0
    return is_unaligned(node)


def lanes_at(ctx: Text, index: UOp, dtype: DType) -> str:
    return ctx.vector(dtype, [f"{ctx.of(index)}[{lane}]" for lane in range(dtype.count)])


def lanes_to(ctx: Text, index: UOp, value: UOp) -> str:
    name = text = ctx.of(value)
    if not text.isidentifier():
        name = ctx.names.fresh("alu")
        ctx.line(f"{ctx.type(value.dtype)} {name} = {text};")
    pointer = ctx.of(index)
    return "; ".join(f"{pointer}[{n}] = {ctx.lane(name, n)}" for n in range(value.dtype.count))


# *** memory


def local(ctx: Text, node: UOp) -> tuple[str, str]:
    """The type of the elements and the name of memory of a kernel's own."""
    assert isinstance(node.dtype, PtrDType)
    name = ctx.value[node] = f"temp{node.arg}" if isinstance(node.arg, int) else ctx.names.fresh("temp")
    return ctx.type(node.dtype.base), name


def define_local(attributes: str = "") -> Row:
    """An array."""

    def text(ctx: Text, node: UOp) -> str:
        assert isinstance(node.dtype, PtrDType)
        kind, name = local(ctx, node)
        qualifier = ctx.row.local_memory if node.dtype.local else ""
        if node.dtype.local and ctx.row.local_aligned:
            vectors = VECTOR if any(_is_wide_in(node, u) for u in ctx.uops) else 0
            alignment = max(vectors, alignment_for_packed(node, ctx.uops))
            qualifier += ctx.row.local_aligned.format(bytes=alignment) if alignment else ""
        return ctx.line(f"{qualifier}{kind} {name}[{node.dtype.size}]{attributes};")

    return text


def _is_wide_in(memory: UOp, node: UOp) -> bool:
    if node.op is Ops.FETCH:
        return node.src[0].src[0] is memory
    if node.op is Ops.WMMA and node.arg.columns:
        return any(factor.src[0] is memory for factor in node.src[node.arg.sums :])
    return node.op in (Ops.LOAD, Ops.STORE) and node.src[0].src[0] is memory and is_wide(node)


ROWS = PatternMatcher(
    [
        (UPat(Ops.INDEX), lambda ctx, node: f"({ctx.of(node.src[0])}+{ctx.of(node.src[1])})"),
        (UPat(Ops.LOAD), load(value_at)),
        (UPat(Ops.STORE), store(value_to)),
        (UPat(Ops.DEFINE_GLOBAL), lambda ctx, node: ctx.named(node, buffer_name(node))),
        (UPat(Ops.DEFINE_VAR), lambda ctx, node: ctx.named(node, variable_name(node.arg[0]))),
        (UPat(Ops.DEFINE_LOCAL), define_local()),
    ]
)

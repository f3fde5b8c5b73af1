"""Addresses, loads and stores, masked ones too; local memory.

A bool is a byte in memory; every access promises the alignment of an element.
"""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.args import NONTEMPORAL
from ...ir.linear import buffer_name
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ..scratch import DONE, MAX_STACK, SYMBOL
from ..texts import variable_name
from .text import Text, is_offset, mangled, memory_type, splat, type_text, zero
from .uniform_values import is_start_elsewhere

#: So many stores past the caches share a test of where their buffer begins: their values wait in registers.
TOGETHER = 8


def address(ctx: Text, node: UOp, index: str | None = None) -> str:
    """The address that an INDEX names. `inbounds` only where it is always valid.

    Places that are a constant apart share an address: LLVM then writes the constants into the accesses.
    """
    buffer, position = node.src[0], node.src[1]
    element, kind = memory_type(buffer.dtype.base), type_text(position.dtype)
    if index is None and is_offset(position):
        base, apart = position.src
        key = (ctx.block, buffer, base)
        if key not in ctx.shared:
            at = f"{kind} {ctx.of(base)}"
            text = f"getelementptr {element}, ptr {ctx.of(buffer)}, {at}"
            ctx.shared[key] = ctx.let("ptr", text)
        return ctx.let("ptr", f"getelementptr {element}, ptr {ctx.shared[key]}, i64 {apart.arg}")
    key = (ctx.block, buffer, position)
    if index is None and key in ctx.shared:
        return ctx.shared[key]
    flags = " inbounds" if len(node.src) < 3 or index is not None else ""
    place = index or ctx.of(position)
    if dtypes.is_unsigned(position.dtype) and position.dtype.itemsize < 8:
        place, kind = ctx.let("alu", f"zext {kind} {place} to i64"), "i64"
    made = ctx.let("ptr", f"getelementptr{flags} {element}, ptr {ctx.of(buffer)}, {kind} {place}")
    return made if index is not None else ctx.shared.setdefault(key, made)


def load_lanes(ctx: Text, node: UOp) -> str:
    """What a mask leaves out is not read."""
    index, dtype = node.src[0], node.dtype
    valid = index.src[2]
    kind, align = memory_type(dtype), dtype.scalar_type.itemsize
    arguments = [
        ("ptr", address(ctx, index)), ("i32", str(align)),
        (type_text(valid.dtype), ctx.of(valid)), (kind, _to_memory(ctx, _other(ctx, node), dtype)),
    ]  # fmt: skip
    value = ctx.call("val", f"llvm.masked.load.{mangled(dtype, memory=True)}.p0", kind, arguments)
    return _from_memory(ctx, value, dtype)


def gather(ctx: Text, node: UOp) -> str:
    """Each lane from an address of its own; what a mask leaves out is not read."""
    (buffer, place, *valid), dtype = node.src[0].src, node.dtype
    kind, addresses = memory_type(dtype), f"<{dtype.count} x ptr>"
    at = f"getelementptr {memory_type(dtype.scalar_type)}, ptr {ctx.of(buffer)}, {ctx.typed(place)}"
    masks = dtypes.bool.vec(dtype.count)
    arguments = [
        (addresses, ctx.let("ptr", at)),
        ("i32", str(dtype.scalar_type.itemsize)),
        (type_text(masks), ctx.of(valid[0]) if valid else splat("true", masks)),
        (kind, _other(ctx, node) if valid else "poison"),
    ]
    lanes = f"v{dtype.count}"
    return ctx.call("val", f"llvm.masked.gather.{mangled(dtype)}.{lanes}p0", kind, arguments)


def load_where_valid(ctx: Text, node: UOp) -> str:
    index, dtype = node.src[0], node.dtype
    memory, position, valid = index.src
    other = _other(ctx, node)
    size = memory.dtype.size if isinstance(memory.dtype, PtrDType) else -1
    if size >= dtype.count:  # the buffer's start can always be read, and that needs no branch
        safe = ctx.of(position)
        if not is_start_elsewhere(position, valid):
            kind = type_text(position.dtype)
            safe = ctx.let("alu", f"select i1 {ctx.of(valid)}, {kind} {safe}, {kind} 0")
        loaded = _load(ctx, dtype, index, safe)
        return ctx.let("val", ctx.select(ctx.of(valid), dtype, loaded, other, False))
    before, inside, after = ctx.block, ctx.names.fresh("load"), ctx.names.fresh("loaded")
    ctx.emit(f"br i1 {ctx.of(valid)}, label %{inside}, label %{after}")
    ctx.label(inside)
    loaded = _load(ctx, dtype, index)
    ctx.emit(f"br label %{after}")
    ctx.label(after)
    return ctx.let("val", f"phi {type_text(dtype)} [ {other}, %{before} ], [ {loaded}, %{inside} ]")


def _other(ctx: Text, node: UOp) -> str:
    """What a masked-out element is."""
    return ctx.of(node.src[1]) if len(node.src) > 1 else zero(node.dtype)


def _load(ctx: Text, dtype: DType, index: UOp, place: str | None = None) -> str:
    pointer, align = address(ctx, index, place), dtype.scalar_type.itemsize
    value = ctx.let("val", f"load {memory_type(dtype)}, ptr {pointer}, align {align}")
    return _from_memory(ctx, value, dtype)


def prefetch(ctx: Text, node: UOp) -> str:
    """Ask for lines behind a place, or of a buffer where loops are."""
    (first, *loops), arg = node.src, node.arg
    if first.op is Ops.INDEX:
        place = address(ctx, first)
        if arg.begin:
            place = ctx.let("ahead", f"getelementptr i8, ptr {place}, i64 {arg.begin}")
    else:
        place = ctx.let("ask", f"getelementptr i8, ptr {ctx.of(first)}, i64 {arg.begin}")
    for loop, step in zip(loops, arg.steps, strict=True):
        turn = ctx.of(loop)
        if loop.dtype.itemsize < 8:
            turn = ctx.let("alu", f"sext {type_text(loop.dtype)} {turn} to i64")
        moved = ctx.let("alu", f"mul nsw i64 {turn}, {step}")
        place = ctx.let("ask", f"getelementptr i8, ptr {place}, i64 {moved}")
    ctx.declare("llvm.prefetch.p0", "void", [("ptr", ""), ("i32", ""), ("i32", ""), ("i32", "")])
    near = 4 - arg.level  # LLVM's locality: 3 is the first cache
    for number in range(arg.lines):
        if number:
            place = ctx.let("ask", f"getelementptr i8, ptr {place}, i64 {ctx.target.memory.line}")
        ctx.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(arg.writes)}, i32 {near}, i32 1)")
    return ""


def _from_memory(ctx: Text, value: str, dtype: DType) -> str:
    if dtype.scalar_type is not dtypes.bool:
        return value
    return ctx.let("val", f"icmp ne {memory_type(dtype)} {value}, zeroinitializer")


def _to_memory(ctx: Text, value: str, dtype: DType) -> str:
    if dtype.scalar_type is not dtypes.bool:
        return value
    return ctx.let("cast", f"zext {type_text(dtype)} {value} to {memory_type(dtype)}")


def _stored(ctx: Text, value: UOp) -> tuple[str, str, int]:
    """A value as memory holds it, its type there, the alignment of an element."""
    dtype = value.dtype
    return _to_memory(ctx, ctx.of(value), dtype), memory_type(dtype), dtype.scalar_type.itemsize


def store(ctx: Text, node: UOp) -> str:
    index, value = node.src
    stored, kind, align = _stored(ctx, value)
    return ctx.emit(f"store {kind} {stored}, ptr {address(ctx, index)}, align {align}")


def store_later(ctx: Text, node: UOp) -> str:
    """Past the caches, together with others."""
    index, value = node.src
    stored, kind, align = _stored(ctx, value)
    buffer = index.src[0]
    if len(ctx.waiting) == TOGETHER or (ctx.waiting and ctx.waiting[0][0] is not buffer):
        store_past_caches(ctx)
    ctx.waiting.append((buffer, f"{kind} {stored}, ptr {address(ctx, index)}", align))
    return ""


def store_one_lane(ctx: Text, node: UOp) -> str:
    """Where a mask leaves one lane.

    LLVM 22 makes a masked store of one lane a store of a scalar, and forgets there that its value was
    truncated: a byte is written as four, three of them beside it. So such a store is written without a mask.
    """
    index, value = node.src
    stored, element, align = _stored(ctx, value)
    lane, kind = _only_lane(index.src[2]), memory_type(value.dtype.scalar_type)
    one = ctx.let("alu", f"extractelement {element} {stored}, i32 {lane}")
    place = ctx.let("ptr", f"getelementptr {kind}, ptr {address(ctx, index)}, i64 {lane}")
    return ctx.emit(f"store {kind} {one}, ptr {place}, align {align}")


def store_lanes(ctx: Text, node: UOp) -> str:
    index, value = node.src
    stored, kind, align = _stored(ctx, value)
    valid = index.src[2]
    arguments = [
        (kind, stored), ("ptr", address(ctx, index)), ("i32", str(align)),
        (type_text(valid.dtype), ctx.of(valid)),
    ]  # fmt: skip
    name = f"llvm.masked.store.{mangled(value.dtype, memory=True)}.p0"
    ctx.declare(name, "void", arguments)
    return ctx.emit(f"call void @{name}({', '.join(f'{t} {v}' for t, v in arguments)})")


def store_where_valid(ctx: Text, node: UOp) -> str:
    index, value = node.src
    stored, kind, align = _stored(ctx, value)
    inside, after = ctx.names.fresh("store"), ctx.names.fresh("stored")
    ctx.emit(f"br i1 {ctx.of(index.src[2])}, label %{inside}, label %{after}")
    ctx.label(inside)
    ctx.emit(f"store {kind} {stored}, ptr {address(ctx, index)}, align {align}")
    ctx.emit(f"br label %{after}")
    return ctx.label(after)


def store_past_caches(ctx: Text) -> None:
    """Write the stores that wait: past the caches if their buffer begins where a line of memory does."""
    if not ctx.waiting:
        return
    buffer, line = ctx.waiting[0][0], ctx.target.past_caches
    past, ordinary, after = (ctx.names.fresh(name) for name in ("past", "ordinary", "stored"))
    ctx.emit(f"br i1 {_begins_with_a_line(ctx, buffer)}, label %{past}, label %{ordinary}")
    ctx.label(past)
    for _, what, _ in ctx.waiting:
        ctx.emit(f"store {what}, align {line}, !nontemporal !0")
    ctx.emit(f"br label %{after}")
    ctx.label(ordinary)
    for _, what, align in ctx.waiting:
        ctx.emit(f"store {what}, align {align}")
    ctx.emit(f"br label %{after}")
    ctx.label(after)
    ctx.waiting.clear()


def _begins_with_a_line(ctx: Text, buffer: UOp) -> str:
    """Whether it does, found out at the kernel's start."""
    name = f"%aligned{buffer.arg}"
    if not any(line.startswith(f"  {name} ") for line in ctx.allocas):
        data, low = ctx.of(buffer), ctx.target.past_caches - 1
        ctx.allocas += [
            f"  %begin{buffer.arg} = ptrtoint ptr {data} to i64",
            f"  %beyond{buffer.arg} = and i64 %begin{buffer.arg}, {low}",
            f"  {name} = icmp eq i64 %beyond{buffer.arg}, 0",
        ]
    return name


def define_local(ctx: Text, node: UOp) -> str:
    assert isinstance(node.dtype, PtrDType)
    base, size = node.dtype.base, node.dtype.size
    name = "%" + ctx.names.fresh("temp")
    if size * base.itemsize > MAX_STACK:  # memory that the calling thread keeps, its next so many bytes
        ctx.scratch.append((name, -(-size * base.itemsize // 64) * 64))
    else:
        ctx.allocas.append(f"  {name} = alloca [{size} x {memory_type(base)}], align 64")
    return name


def scratch_calls(ctx: Text) -> tuple[list[str], list[str]]:
    """What takes the memory of all tiles at once, and what says that the kernel no longer uses it."""
    if not ctx.scratch:
        return [], []
    ctx.declared[f"declare noalias ptr @{SYMBOL}(i64)"] = None
    ctx.declared[f"declare void @{DONE}(ptr)"] = None
    total, begin = sum(nbytes for _, nbytes in ctx.scratch), 0
    taken = [f"  %scratch = call noalias ptr @{SYMBOL}(i64 {total})"]
    for name, nbytes in ctx.scratch:
        taken.append(f"  {name} = getelementptr inbounds i8, ptr %scratch, i64 {begin}")
        begin += nbytes
    return taken, [f"  call void @{DONE}(ptr %scratch)"]


def _only_lane(mask: UOp) -> int | None:
    """The lane of a mask in which alone it holds; None where there are others, or it is no constant."""
    lanes = [n for n, holds in enumerate(mask.arg) if holds] if isinstance(mask.arg, tuple) else []
    return lanes[0] if mask.op is Ops.CONST and len(lanes) == 1 else None


def _is_valid(node: UOp) -> bool:
    """Whether an access has no condition."""
    return len(node.src[0].src) < 3


def _has_mask(node: UOp) -> bool:
    """Whether the condition is one for each lane."""
    return node.src[0].src[2].dtype.count > 1


ROWS = PatternMatcher(
    [
        (UPat(Ops.INDEX), ""),  # written where it is used: a masked load may want another address
        (UPat(Ops.LOAD), gather, lambda node: node.src[0].src[1].dtype.count > 1),
        (UPat(Ops.LOAD), lambda ctx, node: _load(ctx, node.dtype, node.src[0]), _is_valid),
        (UPat(Ops.LOAD), load_lanes, _has_mask),
        (UPat(Ops.LOAD), load_where_valid),
        (UPat(Ops.PREFETCH), prefetch),
        (UPat(Ops.STORE), store_later, lambda node: node.arg == NONTEMPORAL),
        (UPat(Ops.STORE), store, _is_valid),
        (UPat(Ops.STORE), store_one_lane, lambda node: _only_lane(node.src[0].src[2]) is not None),
        (UPat(Ops.STORE), store_lanes, _has_mask),
        (UPat(Ops.STORE), store_where_valid),
        (UPat(Ops.DEFINE_GLOBAL), lambda node: "%" + buffer_name(node)),
        (UPat(Ops.DEFINE_VAR), lambda node: "%" + variable_name(node.arg[0])),
        (UPat(Ops.DEFINE_LOCAL), define_local),
    ]
)

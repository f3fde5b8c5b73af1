"""What each step of a program is in Python."""

from __future__ import annotations

from ...dtype import DType, PtrDType
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ...target import TensorCore
from ..matrices import described
from .function import Function
from .literals import AS_BITS, zero
from .meaning import EXPRESSIONS, function_for


def elementwise(ctx: Function, node: UOp) -> str:
    return in_lanes(ctx, node, function_for(node.op, node.dtype.scalar_type, node.src[-1].dtype.scalar_type))


def in_lanes(ctx: Function, node: UOp, function: str) -> str:
    """A function called in every lane."""
    count = node.dtype.count
    values = ", ".join(ctx.lanes(s, count) for s in node.src)
    return f"{function}({values})" if count == 1 else f"tuple(map({function}, {values}))"


def dot(ctx: Function, node: UOp) -> str:
    word, element, total = (d.scalar_type.name for d in (node.src[0].dtype, node.arg, node.dtype))
    return in_lanes(ctx, node, f"dot_{total}_{word}_{element}")


def vector(ctx: Function, node: UOp) -> str:
    parts = [f"*{ctx.of(s)}" if s.dtype.count > 1 else ctx.of(s) for s in node.src]
    return f"({', '.join(parts)},)"


def some_lanes(ctx: Function, node: UOp) -> str:
    source, lanes = ctx.of(node.src[0]), node.arg if isinstance(node.arg, tuple) else (node.arg,)
    if node.src[0].dtype.count == 1:
        return ctx.lanes(node.src[0], node.dtype.count)
    if node.dtype.count == 1:
        return f"{source}[{lanes[0]}]"
    return f"({', '.join(f'{source}[{lane}]' for lane in lanes)},)"


def loop(ctx: Function, node: UOp) -> str:
    name = ctx.names[node] = ctx.fresh(ctx.loops[node], numbered=False)
    return ctx.open(f"for {name} in range({', '.join(ctx.of(s) for s in node.src)}):")


def launch_index(ctx: Function, node: UOp) -> str:
    """A place in a launch: a loop over all of them."""
    name = ctx.names[node] = ctx.fresh(node.arg[0], numbered=False)
    size = node.arg[1]
    return ctx.open(f"for {name} in range({ctx.of(size) if isinstance(size, UOp) else size}):")


def branch(ctx: Function, node: UOp) -> str:
    condition = ctx.of(node.src[0])
    return ctx.open(f"if {condition}:" if node.src[0].dtype.count == 1 else f"if any({condition}):")


def define_acc(ctx: Function, node: UOp) -> str:
    name = ctx.names[node] = ctx.fresh("acc")
    return ctx.line(f"{name} = {ctx.lanes(node.src[0], node.dtype.count)}")


def assign(ctx: Function, node: UOp) -> str:
    acc, value = node.src
    name = ctx.names[node] = ctx.of(acc)
    return ctx.line(f"{name} = {ctx.lanes(value, acc.dtype.count)}")


def define_local(ctx: Function, node: UOp) -> str:
    assert isinstance(node.dtype, PtrDType)
    name = ctx.names[node] = ctx.fresh("local")
    ctx.line(f"{name} = [{'None' if ctx.shared else zero(node.dtype.base)}] * {node.dtype.size}")
    return ctx.memory(name)


def barrier(ctx: Function, node: UOp) -> str:
    ctx.barriers += 1
    return f"yield (({ctx.barriers}, 'BARRIER'),)"


def shuffle(ctx: Function, node: UOp) -> str:
    """The threads of a warp give what they hold, and get what others do."""
    ctx.barriers += 1
    return f"yield (({ctx.barriers}, 'SHUFFLE'), {node.arg}, {ctx.of(node.src[0])})"


def matrices(ctx: Function, node: UOp) -> str:
    """The threads of a warp give what they hold, or where it lies, and get their sums."""
    ctx.barriers += 1
    sums, factors = node.src[: node.arg.sums], node.src[node.arg.sums :]
    names = ", ".join(map(ctx.of, sums))
    given = ", ".join(_packed_tile(ctx, node.arg, f) if f.op is Ops.INDEX else ctx.of(f) for f in factors)
    return f"{names} = yield (({ctx.barriers}, 'WMMA'), {described(node.arg)}, ({names}), ({given}))"


def _packed_tile(ctx: Function, core: TensorCore, index: UOp) -> str:
    """Where a matrix lies: the memory, the place, whether the memory holds bits."""
    memory, place = index.src
    assert isinstance(memory.dtype, PtrDType)
    return f"({ctx.of(memory)}, {ctx.of(place)}, {memory.dtype.base is not core.element})"


def _access(ctx: Function, index: UOp) -> tuple[str, str, UOp | None, DType, bool]:
    """Of an INDEX: the memory, the place, the validity, the memory's dtype, whether it holds bits."""
    memory = index.src[0]
    dtype = memory.dtype.base
    as_bits = dtype in AS_BITS and memory.op is Ops.DEFINE_GLOBAL
    valid = index.src[2] if len(index.src) > 2 else None
    return ctx.of(memory), ctx.of(index.src[1]), valid, dtype, as_bits


def load(ctx: Function, node: UOp) -> str:
    data, i, valid, dtype, as_bits = _access(ctx, node.src[0])
    count = node.dtype.count
    if node.dtype.scalar_type.itemsize > dtype.itemsize:
        return load_word(ctx, node)
    other = ctx.lanes(node.src[1], count) if len(node.src) > 1 else zero(dtype, count)
    if valid is not None and valid.dtype.count > 1:
        decode = f", decode_{dtype.name}" if as_bits else ""
        return f"load_masked({data}, {i}, {ctx.of(valid)}, {other}, outside_{data}{decode})"
    if count == 1:
        inside, text = f"0 <= {i} < size_{data}", f"{data}[{i}]"
    else:
        inside, text = f"0 <= {i} <= size_{data} - {count}", f"{data}[{i} : {i} + {count}]"
    if as_bits:
        text = f"decode_{dtype.name}({text})" if count == 1 else f"tuple(map(decode_{dtype.name}, {text}))"
    elif count > 1:
        text = f"tuple({text})"
    text = f"{text} if {inside} else outside_{data}({i})"
    return text if valid is None else f"({text}) if {ctx.of(valid)} else {other}"


def gather(ctx: Function, node: UOp) -> str:
    data, places, valid, dtype, as_bits = _access(ctx, node.src[0])
    count = node.dtype.count
    mask = f"(True,) * {count}" if valid is None else ctx.lanes(valid, count)
    other = ctx.lanes(node.src[1], count) if len(node.src) > 1 else zero(dtype, count)
    decode = f", decode_{dtype.name}" if as_bits else ""
    return f"load_gathered({data}, {places}, {mask}, {other}, outside_{data}{decode})"


def load_word(ctx: Function, node: UOp) -> str:
    """The bits of neighbours, the first lowest; a buffer may hold bits already."""
    data, i, _, dtype, as_bits = _access(ctx, node.src[0])
    count = node.dtype.itemsize // dtype.itemsize
    numbers = [
        f"{data}[{i} + {n}]" if as_bits else f"encode_{dtype.name}({data}[{i} + {n}])" for n in range(count)
    ]
    bits = [f"{number} << {8 * dtype.itemsize * n}" for n, number in enumerate(numbers)]
    return f"{' | '.join(bits)} if 0 <= {i} <= size_{data} - {count} else outside_{data}({i})"


def store(ctx: Function, node: UOp) -> str:
    data, i, valid, dtype, as_bits = _access(ctx, node.src[0])
    value = ctx.of(node.src[1])
    encode = f"encode_{dtype.name}" if as_bits else ""
    masked = valid is not None and valid.dtype.count > 1
    if valid is not None and not masked:
        ctx.open(f"if {ctx.of(valid)}:")
    if node.src[1].dtype.count > 1:
        mask = ctx.of(valid) if masked and valid is not None else None
        ctx.line(f"store_lanes({data}, {i}, {value}, {mask}, outside_{data}{encode and ', ' + encode})")
    else:
        ctx.open(f"if not 0 <= {i} < size_{data}:")
        ctx.line(f"outside_{data}({i})")
        ctx.close()
        ctx.line(f"{data}[{i}] = {f'{encode}({value})' if encode else value}")
    if valid is not None and not masked:
        ctx.close()
    return ""


def fetch(ctx: Function, node: UOp) -> str:
    memory, start, *_ = _access(ctx, node.src[0])
    data, begin, valid, dtype, as_bits = _access(ctx, node.src[1])
    decode = f", decode_{dtype.name}" if as_bits else ""
    known = "True" if valid is None else ctx.of(valid)
    outside = f"(outside_{memory}, outside_{data})"
    return f"fetch(fetches, {memory}, {start}, {data}, {begin}, {node.arg}, {known}, {outside}{decode})"


def is_gathered(node: UOp) -> bool:
    """Whether each lane of a LOAD is at a place of its own."""
    return len(node.src[0].src) > 1 and node.src[0].src[1].dtype.count > 1


def is_vector(node: UOp) -> bool:
    return node.dtype.count > 1


_ELEMENTWISE = tuple(ELEMENTWISE)

ROWS = (
    PatternMatcher([(UPat(_ELEMENTWISE), elementwise, is_vector)])
    + EXPRESSIONS
    + PatternMatcher(
        [
            (UPat(_ELEMENTWISE), elementwise),
            (UPat(Ops.DOT), dot),
            (UPat(Ops.VECTORIZE), vector),
            (UPat(Ops.GEP), some_lanes),
            (UPat(Ops.LOAD), gather, is_gathered),
            (UPat(Ops.LOAD), load),
            (UPat(Ops.STORE), store),
            (UPat(Ops.RANGE), loop),
            (UPat(Ops.SPECIAL), launch_index),
            (UPat(Ops.BREAK), "break"),
            (UPat(Ops.IF), branch),
            (UPat((Ops.ENDRANGE, Ops.ENDIF)), lambda ctx: ctx.close()),
            (UPat(Ops.DEFINE_ACC), define_acc),
            (UPat(Ops.ASSIGN), assign),
            (UPat(Ops.DEFINE_LOCAL), define_local),
            (UPat(Ops.BARRIER), barrier),
            (UPat(Ops.FETCH), fetch),
            (UPat(Ops.COMMIT), "commit(fetches)"),
            (UPat(Ops.PREFETCH), ""),
            (UPat(Ops.WAIT), lambda ctx, node: f"wait(fetches, {node.arg})"),
            (UPat(Ops.WMMA), matrices),
            (UPat(Ops.SHUFFLE), shuffle),
            # what these say stands where they are used
            (UPat((Ops.CONST, Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.INDEX, Ops.SINK, Ops.NOOP)), ""),
        ]
    )
)

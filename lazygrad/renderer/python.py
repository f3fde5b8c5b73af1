"""A linear program (form 7) as Python source that means exactly what `ir.ops.execute` says.

It is the language of device PYTHON, the arbiter of what a program means. One statement per step, so that
the text reads like the list; a vector is a tuple; every access is checked against the size of its memory.
An op on a dtype is an expression (`EXPRESSIONS`, where Python can say it) or a function such as `max_float`,
which `meaning` makes of that expression or of the op table. Where a program has BARRIERs, a thread is a
generator that stops at each of them, and the threads of a workgroup run from stop to stop, one by one.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import ALL_DTYPES, DTYPES_BY_NAME, ConstType, DType, PtrDType, dtypes, storage_fmt, truncation
from ..ir.expression import buffer_name
from ..ir.ops import COMPARISONS, ELEMENTWISE, OPS, Ops, execute, from_bits, to_bits
from ..ir.pattern import PatternMatcher, UPat
from ..ir.uop import UOp
from ..target import Dot, Target, TensorCore
from . import Renderer, parameters
from .matrices import described, exchanged, products_of_warps
from .names import loop_names
from .texts import Writer, write

Row = Callable[[Any, UOp], str]

#: Memory that Python's memoryview cannot read as values: bf16, fp8 and, before Python 3.12, half.
_AS_BITS = frozenset(d for d in ALL_DTYPES if d.fmt is None or d.fmt == "e")


def memory_format(dtype: DType) -> str:
    """The memoryview format of a buffer of this type."""
    return {1: "B", 2: "H"}[dtype.itemsize] if dtype in _AS_BITS else storage_fmt(dtype)


# *** what an op means on scalars


def wrapped(template: str) -> Row:
    """Arithmetic on integers, whose result may leave the type."""

    def text(ctx: Writer, node: UOp) -> str:
        dtype, found = node.dtype.scalar_type, ctx.filled(template, node)
        if dtype is dtypes.index:
            return found
        mask, half = (1 << dtype.itemsize * 8) - 1, 1 << (dtype.itemsize * 8 - 1)
        return (
            f"({found}) & {mask}" if dtypes.is_unsigned(dtype) else f"(({found}) + {half} & {mask}) - {half}"
        )

    return text


def rounded(template: str) -> Row:
    """Arithmetic on floats, which Python does in float64."""

    def text(ctx: Writer, node: UOp) -> str:
        dtype, found = node.dtype.scalar_type, ctx.filled(template, node)
        return found if dtype is dtypes.float64 else f"round_{dtype.name}({found})"

    return text


_ARITHMETIC = {Ops.ADD: "{0} + {1}", Ops.SUB: "{0} - {1}", Ops.MUL: "{0} * {1}", Ops.NEG: "-{0}"}

#: What Python says of scalars as execute does.
EXPRESSIONS = (
    PatternMatcher(
        [(UPat(op), wrapped(text)) for op, text in _ARITHMETIC.items()], on=(*dtypes.ints, dtypes.index)
    )
    + PatternMatcher([(UPat(op), rounded(text)) for op, text in _ARITHMETIC.items()], on=dtypes.floats)
    + PatternMatcher(
        [
            (UPat(Ops.AND), "{0} & {1}"),
            (UPat(Ops.OR), "{0} | {1}"),
            (UPat(Ops.XOR), "{0} ^ {1}"),
        ],
        on=(*dtypes.ints, dtypes.index, dtypes.bool),
    )
    + PatternMatcher(
        [
            (UPat(Ops.MAX), "{0} if {0} > {1} else {1}"),
            (UPat(Ops.MIN), "{0} if {0} < {1} else {1}"),
            (UPat(Ops.MULACC), wrapped("{0} * {1} + {2}")),
        ],
        on=(*dtypes.ints, dtypes.index),
    )
    + PatternMatcher(
        [
            (UPat(Ops.CMPLT), "{0} < {1}"),
            (UPat(Ops.CMPLE), "{0} <= {1}"),
            (UPat(Ops.CMPEQ), "{0} == {1}"),
            (UPat(Ops.CMPNE), "{0} != {1}"),
            (UPat(Ops.WHERE), "{1} if {0} else {2}"),
        ]
    )
)


class _Arguments(Writer):
    """For expressions of a, b and c."""

    def filled(self, template: str, node: UOp) -> str:
        return template.format(*"abc")


def function_for(op: Ops, dtype: DType, source: DType) -> str:
    """The name under which `meaning` knows the op."""
    if op in (Ops.CAST, Ops.BITCAST):
        return f"{op.name.lower()}_{dtype.name}_{source.name}"
    return f"{op.name.lower()}_{(source if op in COMPARISONS else dtype).name}"


@functools.cache
def meaning(name: str) -> Callable[..., Any]:
    """What a name in generated text stands for: `round_half`, `decode_half`, `max_float`, ..."""
    if name in _HELPERS:
        return _HELPERS[name]
    verb, *names = name.split("_")
    dtype, source = DTYPES_BY_NAME[names[0]], DTYPES_BY_NAME[names[-1]]
    if verb == "round":
        return truncation(dtype)
    if verb == "decode":
        return functools.lru_cache(1 << 16)(lambda bits: from_bits(bits, dtype))
    if verb == "encode":
        return lambda value: to_bits(value, dtype)
    if verb == "dot":
        return functools.partial(_dot, DTYPES_BY_NAME[names[1]], source, dtype)
    op = Ops[verb.upper()]
    result = dtypes.bool if op in COMPARISONS else dtype
    sources = tuple(UOp(Ops.DEFINE_VAR, source, (), (name, 0, 0)) for name in "abc"[: OPS[op].arity])
    text: Any = EXPRESSIONS.rewrite(UOp(op, result, sources), _Arguments())
    if text is not None:  # the same in every lane of a vector
        scope = {f"round_{dtype.name}": meaning(f"round_{dtype.name}")} if "round_" in text else {}
        function: Callable[..., Any] = eval(f"lambda {', '.join('abc'[: len(sources)])}: {text}", scope)
        return function
    evaluate, cut = OPS[op].evaluate, truncation(result)
    if evaluate is None or op in (Ops.CAST, Ops.BITCAST):
        return lambda *values: execute(op, result, values, source)
    return lambda *values: cut(evaluate(source, *values))  # as `execute` does, which looks both up each time


def _dot(word: DType, element: DType, total: DType, a: int, b: int, c: ConstType) -> ConstType:
    """c and the products of the elements of two words, the last ones first, each added with one rounding."""
    bits = 8 * element.itemsize
    for place in reversed(range(0, 8 * word.itemsize, bits)):
        x, y = (from_bits(value >> place & (1 << bits) - 1, element) for value in (a, b))
        c = execute(Ops.MULACC, total, (x, y, c), total)
    return c


# *** memory


def _load_masked(
    data: Any, start: int, mask: Any, other: Any, refuse: Any, decode: Any = None
) -> tuple[ConstType, ...]:
    """Lanes whose mask is set from memory, the others from `other`."""
    lanes = []
    for i, (inside, value) in enumerate(zip(mask, other, strict=True), start):
        if inside:
            value = data[i] if 0 <= i < len(data) else refuse(i)
            value = decode(value) if decode is not None else value
        lanes.append(value)
    return tuple(lanes)


def _store_lanes(data: Any, start: int, values: Any, mask: Any, refuse: Any, encode: Any = None) -> None:
    """Lanes into memory, where `mask`, unless None, is set."""
    for i, value in enumerate(values, start):
        if mask is None or mask[i - start]:
            if not 0 <= i < len(data):
                refuse(i)
            data[i] = encode(value) if encode is not None else value


def _fetch(
    fetches: Any, memory: Any, start: int, data: Any, begin: int, count: int, valid: bool, outside: Any,
    decode: Any = None,
) -> None:  # fmt: skip
    """A copy is on the way: nobody finds anything where it goes until `_wait`."""
    refuse_to, refuse_from = outside
    if not 0 <= start <= len(memory) - count:
        refuse_to(start)
    if valid and not 0 <= begin <= len(data) - count:
        refuse_from(begin)
    memory[start : start + count] = [None] * count
    fetches[-1].append((memory, start, data, begin, count, valid, decode))


def _wait(fetches: Any, groups: int) -> None:
    """All groups of copies but so many of the last are done, as late as they may be."""
    if groups == 0:
        fetches.append([])
    while len(fetches) > groups + 1:
        for memory, start, data, begin, count, valid, decode in fetches.pop(0):
            found = data[begin : begin + count] if valid else [0] * count
            memory[start : start + count] = map(decode, found) if decode and valid else found


def _outside(kernel: str, argument: str, size: int) -> Callable[[int], Any]:
    def refuse(index: int) -> Any:
        raise IndexError(f"kernel {kernel} accesses {argument}[{index}], and {argument} has {size} elements")

    return refuse


#: Where threads stop → what they get there. They stop with a place, (its number, one of these names).
_ANSWERS: dict[str, Callable[[Sequence[Any], Sequence[int]], list[Any]]] = {
    "BARRIER": lambda stopped, sizes: [None] * len(stopped),
    "SHUFFLE": exchanged,
    "WMMA": products_of_warps,
}


def _run_workgroup(kernel: str, thread: Callable[..., Any], *sizes: int) -> None:
    """Run the threads of a workgroup from where they meet to where they do next. All must come there."""
    places = list(itertools.product(*map(range, sizes)))
    running = [thread(*place) for place in places]
    answers: list[Any] = [None] * len(places)
    while True:
        stopped = [_went_on(each, answer) for each, answer in zip(running, answers, strict=True)]
        if not any(stopped):
            return
        at = [stop[0] if stop else None for stop in stopped]
        if None in at or len(set(at)) > 1:
            place = {which: stop and stop[0] for which, stop in zip(places, at, strict=True)}
            what = " and ".join(sorted({f"{stop[1]}s" for stop in at if stop}))
            raise RuntimeError(
                f"kernel {kernel}: the threads of a workgroup wait at different {what}: {place}"
            )
        answers = _ANSWERS[stopped[0][0][1]](stopped, sizes)


def _went_on(thread: Any, answer: Any) -> Any:
    """Where a thread stops next, given what it stopped for; None at its end."""
    try:
        return thread.send(answer)
    except StopIteration:
        return None


_HELPERS: dict[str, Callable[..., Any]] = {
    "run_workgroup": _run_workgroup,
    "load_masked": _load_masked,
    "store_lanes": _store_lanes,
    "outside": _outside,
    "fetch": _fetch,
    "commit": lambda fetches: fetches.append([]),
    "wait": _wait,
}

# *** the renderer


#: The instructions that the interpreter knows: those of any machine.
DOTS = (
    Dot(dtypes.bfloat16, 2, dtypes.float32),
    Dot(dtypes.int16, 2, dtypes.int32),
)


def target(arch: str = "") -> Target:
    """An interpreter: it has every dtype and op, and short vectors, so that vector code is tested on it."""
    return Target(
        "PYTHON",
        arch,
        vector_bytes=16,
        native_dtypes=frozenset(ALL_DTYPES),
        has_fma=True,
        has_dp4a=True,
        dots=DOTS,
    )


class PythonRenderer(Renderer):
    """Linear program → Python source; every op and every dtype is native."""

    suffix = "py"
    fetches = True
    plain = staticmethod(target)

    def supports(self, op: Ops, dtype: DType) -> bool:
        return True

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return Function(name, uops).text()


_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *_HELPERS, "fetches", "inf", "nan"))
_PREFIX = {Ops.LOAD: "val", Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.VECTORIZE: "vec", Ops.GEP: "gep"}


class Function(Writer):
    """The text of one kernel while it is written: a line for each step with a value or an effect."""

    def __init__(self, name: str, uops: Sequence[UOp]) -> None:
        self.name, self.uops = name, uops
        self.buffers, self.variables = parameters(uops)
        self.taken = {
            *_RESERVED,
            *(f"{what}_{buffer_name(u)}" for u in self.buffers for what in ("size", "outside")),
        }
        self.names: dict[UOp, str] = {}
        for u in self.variables:
            self.names[u] = self.fresh(u.arg[0], numbered=False)
        self.loops = loop_names(uops)
        self.lines: list[str] = []
        self.barriers = 0
        self.shared = any(u.op in (Ops.BARRIER, Ops.WMMA, Ops.SHUFFLE) for u in uops)
        self.blocks: list[int] = []  # of each open loop or branch: the number of lines when it was opened

    def fresh(self, prefix: str, numbered: bool = True) -> str:
        number = 0
        name = f"{prefix}0" if numbered else prefix
        while name in self.taken:
            number += 1
            name = f"{prefix}{number}"
        self.taken.add(name)
        return name

    def line(self, text: str) -> str:
        self.lines.append("    " * (len(self.blocks) + 1) + text)
        return ""

    def open(self, text: str) -> str:
        self.line(text)
        self.blocks.append(len(self.lines))
        return ""

    def close(self) -> str:
        if self.blocks[-1] == len(self.lines):
            self.line("pass")
        self.blocks.pop()
        return ""

    def text(self) -> str:
        for u in self.buffers:
            data = self.names[u] = self.fresh(buffer_name(u), numbered=False)
            self.memory(data)
        if self.shared:
            self._workgroups()
        else:
            self._write(self.uops)
        while self.blocks:  # the loops of SPECIALs have no end in the list
            self.close()
        arguments = ", ".join(self.names[u] for u in (*self.buffers, *self.variables))
        body = self.lines or ["    pass"]
        formats = tuple(memory_format(u.dtype.base) for u in self.buffers)
        return "\n".join([f"def {self.name}({arguments}):", *body, f"{self.name}.formats = {formats!r}", ""])

    def _workgroups(self) -> None:
        """The loops over workgroups, the memory of one, and in a function of its own what a thread does."""
        first = [u for u in self.uops if u.op is Ops.SPECIAL and not u.arg[0].startswith("lidx")]
        threads = [u for u in self.uops if u.op is Ops.SPECIAL and u.arg[0].startswith("lidx")]
        first += [u for u in self.uops if u.op is Ops.DEFINE_LOCAL and u.dtype.local]  # type: ignore[attr-defined]
        self._write(first)
        for u in threads:
            self.names[u] = self.fresh(u.arg[0], numbered=False)
        thread = self.fresh("thread", numbered=False)
        self.open(f"def {thread}({', '.join(self.names[u] for u in threads)}):")
        if any(u.op in (Ops.FETCH, Ops.WAIT) for u in self.uops):
            self.line("fetches = [[]]")
        self._write([u for u in self.uops if u not in first and u not in threads])
        self.close()
        sizes = "".join(f", {u.arg[1]}" for u in threads)
        self.line(f"run_workgroup({self.name!r}, {thread}{sizes})")

    def memory(self, data: str) -> str:
        self.line(f"size_{data} = len({data})")
        return self.line(f"outside_{data} = outside({self.name!r}, {data!r}, size_{data})")

    def _write(self, uops: Sequence[UOp]) -> None:
        write(uops, ROWS, self, "Python")

    def filled(self, template: str, node: UOp) -> str:
        return template.format(*[self.of(s) for s in node.src])

    def keep(self, node: UOp, text: str) -> None:
        """A line, of a step that has a value with its name."""
        if node.dtype is not dtypes.void:
            name = self.names[node] = self.fresh(_PREFIX.get(node.op, "alu"))
            text = f"{name} = {text}"
        self.line(text)

    def of(self, u: UOp) -> str:
        """How the text names a value."""
        return _const(u) if u.op is Ops.CONST else self.names[u]

    def lanes(self, u: UOp, count: int) -> str:
        """A source's text, repeated if a vector of `count` lanes is wanted of a scalar."""
        text = self.of(u)
        return f"({text},) * {count}" if u.dtype.count == 1 and count > 1 else text


# *** steps


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


def place(ctx: Function, node: UOp) -> str:
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
    ctx.line(f"{name} = [{'None' if ctx.shared else _zero(node.dtype.base)}] * {node.dtype.size}")
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
    given = ", ".join(_panels(ctx, node.arg, f) if f.op is Ops.INDEX else ctx.of(f) for f in factors)
    return f"{names} = yield (({ctx.barriers}, 'WMMA'), {described(node.arg)}, ({names}), ({given}))"


def _panels(ctx: Function, core: TensorCore, index: UOp) -> str:
    """Where a matrix lies: the memory, the place, whether the memory holds bits."""
    memory, place = index.src
    assert isinstance(memory.dtype, PtrDType)
    return f"({ctx.of(memory)}, {ctx.of(place)}, {memory.dtype.base is not core.element})"


def _access(ctx: Function, index: UOp) -> tuple[str, str, UOp | None, DType, bool]:
    """Of an INDEX: the memory, the place, the validity, the memory's dtype, whether it holds bits."""
    memory = index.src[0]
    dtype = memory.dtype.base
    as_bits = dtype in _AS_BITS and memory.op is Ops.DEFINE_GLOBAL
    valid = index.src[2] if len(index.src) > 2 else None
    return ctx.of(memory), ctx.of(index.src[1]), valid, dtype, as_bits


def load(ctx: Function, node: UOp) -> str:
    data, i, valid, dtype, as_bits = _access(ctx, node.src[0])
    count = node.dtype.count
    if node.dtype.scalar_type.itemsize > dtype.itemsize:
        return load_word(ctx, node)
    other = ctx.lanes(node.src[1], count) if len(node.src) > 1 else _zero(dtype, count)
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


def _zero(dtype: DType, count: int = 1) -> str:
    text = "0.0" if dtypes.is_float(dtype) else "False" if dtype is dtypes.bool else "0"
    return f"({text},) * {count}" if count > 1 else text


def _const(u: UOp) -> str:
    if u.dtype.count > 1:
        return f"({', '.join(map(_literal, u.arg))},)"
    return _literal(u.arg)


def _literal(value: ConstType) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "(-inf)"
    return f"({value!r})" if value < 0 or str(value).startswith("-") else repr(value)


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
            (UPat(Ops.LOAD), load),
            (UPat(Ops.STORE), store),
            (UPat(Ops.RANGE), loop),
            (UPat(Ops.SPECIAL), place),
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

"""A linear program (form 7) as Python source that means exactly what `ir.ops.execute` says.

It is the language of device PYTHON, the arbiter of what a program means. One statement per step, so that
the text reads like the list; a vector is a tuple; every access is checked against the size of its memory.
An op on a dtype is an expression (`EXPRESSIONS`, where Python can say it) or a function such as `max_float`,
which `meaning` makes from the op table. Where a program has BARRIERs, a thread is a generator that stops at
each of them, and the threads of a workgroup run from stop to stop, one after the other.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import ALL_DTYPES, DTYPES_BY_NAME, ConstType, DType, dtypes, storage_fmt, truncate
from ..ir.expression import buffer_name
from ..ir.ops import COMPARISONS, ELEMENTWISE, Ops, execute, from_bits, to_bits
from ..ir.uop import UOp
from ..target import Dot, Target
from . import Renderer, parameters
from .names import loop_names

#: Memory that Python's memoryview cannot read as values: bf16, fp8 and, before Python 3.12, half.
_AS_BITS = frozenset(d for d in ALL_DTYPES if d.fmt is None or d.fmt == "e")


def memory_format(dtype: DType) -> str:
    """The memoryview format of a buffer of this type."""
    return {1: "B", 2: "H"}[dtype.itemsize] if dtype in _AS_BITS else storage_fmt(dtype)


# *** what an op means on scalars

#: What Python says as execute does, before rounding or wrapping; the columns are bools, integers, floats.
EXPRESSIONS: dict[Ops, tuple[str | None, str | None, str | None]] = {
    Ops.ADD: ("{0} | {1}", "{0} + {1}", "{0} + {1}"),
    Ops.MUL: ("{0} & {1}", "{0} * {1}", "{0} * {1}"),
    Ops.SUB: ("{0} ^ {1}", "{0} - {1}", "{0} - {1}"),
    Ops.NEG: ("not {0}", "-{0}", "-{0}"),
    Ops.AND: ("{0} & {1}", "{0} & {1}", None),
    Ops.OR: ("{0} | {1}", "{0} | {1}", None),
    Ops.XOR: ("{0} ^ {1}", "{0} ^ {1}", None),
    Ops.CMPLT: ("{0} < {1}",) * 3,
    Ops.CMPLE: ("{0} <= {1}",) * 3,
    Ops.CMPEQ: ("{0} == {1}",) * 3,
    Ops.CMPNE: ("{0} != {1}",) * 3,
    Ops.WHERE: ("{1} if {0} else {2}",) * 3,
}
_NEVER_LEAVES = COMPARISONS | {Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE}  # the result is in the type already


def expression(op: Ops, dtype: DType, source: DType) -> str | None:
    """The op on scalars as a template for `str.format`; None where only a function says it."""
    column = 0 if source is dtypes.bool else 1 if dtypes.is_int(source) else 2
    text = EXPRESSIONS.get(op, (None,) * 3)[column]
    if text is None or op in _NEVER_LEAVES or column == 0 or dtype in (dtypes.float64, dtypes.index):
        return text
    if column == 2:
        return f"round_{dtype.name}({text})"
    bits = dtype.itemsize * 8
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    return f"({text}) & {mask}" if dtypes.is_unsigned(dtype) else f"(({text}) + {half} & {mask}) - {half}"


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
        return lambda value: truncate(value, dtype)
    if verb == "decode":
        return functools.lru_cache(1 << 16)(lambda bits: from_bits(bits, dtype))
    if verb == "encode":
        return lambda value: to_bits(value, dtype)
    if verb == "dot":
        return functools.partial(_dot, DTYPES_BY_NAME[names[1]], source, dtype)
    op = Ops[verb.upper()]
    result = dtypes.bool if op in COMPARISONS else dtype
    text = expression(op, result, source)
    if text is not None:  # the same in every lane of a vector
        arguments = "abc"[: 1 + text.count("{1}") + text.count("{2}")]
        scope = {f"round_{dtype.name}": meaning(f"round_{dtype.name}")} if "round_" in text else {}
        function: Callable[..., Any] = eval(
            f"lambda {', '.join(arguments)}: {text.format(*arguments)}", scope
        )
        return function
    return lambda *values: execute(op, result, values, source)


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


def _outside(kernel: str, argument: str, size: int) -> Callable[[int], Any]:
    def refuse(index: int) -> Any:
        raise IndexError(f"kernel {kernel} accesses {argument}[{index}], and {argument} has {size} elements")

    return refuse


def _run_workgroup(kernel: str, thread: Callable[..., Any], *sizes: int) -> None:
    """Run the threads of a workgroup from one BARRIER to the next. All must come to the same ones."""
    places = list(itertools.product(*map(range, sizes)))
    running = [thread(*place) for place in places]
    while True:
        stopped = [next(each, None) for each in running]
        if not any(stopped):
            return
        if None in stopped or len(set(stopped)) > 1:
            place = dict(zip(places, stopped, strict=True))
            raise RuntimeError(
                f"kernel {kernel}: the threads of a workgroup wait at different BARRIERs: {place}"
            )


_HELPERS: dict[str, Callable[..., Any]] = {
    "run_workgroup": _run_workgroup,
    "load_masked": _load_masked,
    "store_lanes": _store_lanes,
    "outside": _outside,
}

# *** the renderer


class PythonRenderer(Renderer):
    """Linear program → Python source; every op and every dtype is native."""

    suffix = "py"

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or _target())

    def supports(self, op: Ops, dtype: DType) -> bool:
        return True

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Function(name, uops).text()


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
        dots=DOTS,
    )


_target = target
_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *_HELPERS, "inf", "nan"))
_PREFIX = {Ops.LOAD: "val", Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.VECTORIZE: "vec", Ops.GEP: "gep"}

#: Steps that write nothing: what they say stands where they are used.
_SILENT = frozenset((Ops.CONST, Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.INDEX, Ops.SINK, Ops.NOOP))


class _Function:
    """The text of one kernel while it is written."""

    def __init__(self, name: str, uops: Sequence[UOp]) -> None:
        self.name, self.uops = name, uops
        self.buffers, self.variables = parameters(uops)
        self.taken = {
            *_RESERVED,
            *(f"{what}_{buffer_name(u)}" for u in self.buffers for what in ("size", "outside")),
        }
        self.names: dict[UOp, str] = {}
        for u in self.variables:
            self.names[u] = self._fresh(u.arg[0], numbered=False)
        self.loops = loop_names(uops)
        self.lines: list[str] = []
        self.barriers = 0
        self.shared = any(u.op is Ops.BARRIER for u in uops)
        self.blocks: list[int] = []  # of each open loop or branch: the number of lines when it was opened

    def _fresh(self, prefix: str, numbered: bool = True) -> str:
        number = 0
        name = f"{prefix}0" if numbered else prefix
        while name in self.taken:
            number += 1
            name = f"{prefix}{number}"
        self.taken.add(name)
        return name

    def _line(self, text: str) -> None:
        self.lines.append("    " * (len(self.blocks) + 1) + text)

    def _open(self, text: str) -> None:
        self._line(text)
        self.blocks.append(len(self.lines))

    def _close(self) -> None:
        if self.blocks[-1] == len(self.lines):
            self._line("pass")
        self.blocks.pop()

    def text(self) -> str:
        for u in self.buffers:
            data = self.names[u] = self._fresh(buffer_name(u), numbered=False)
            self._memory(data)
        if self.shared:
            self._workgroups()
        else:
            for u in self.uops:
                self._step(u)
        while self.blocks:  # the loops of SPECIALs have no end in the list
            self._close()
        arguments = ", ".join(self.names[u] for u in (*self.buffers, *self.variables))
        body = self.lines or ["    pass"]
        formats = tuple(memory_format(u.dtype.base) for u in self.buffers)
        return "\n".join([f"def {self.name}({arguments}):", *body, f"{self.name}.formats = {formats!r}", ""])

    def _workgroups(self) -> None:
        """The loops over workgroups, the memory of one, and in a function of its own what a thread does."""
        first = [u for u in self.uops if u.op is Ops.SPECIAL and not u.arg[0].startswith("lidx")]
        threads = [u for u in self.uops if u.op is Ops.SPECIAL and u.arg[0].startswith("lidx")]
        first += [u for u in self.uops if u.op is Ops.DEFINE_LOCAL and u.dtype.local]  # type: ignore[attr-defined]
        for u in first:
            self._step(u)
        for u in threads:
            self.names[u] = self._fresh(u.arg[0], numbered=False)
        thread = self._fresh("thread", numbered=False)
        self._open(f"def {thread}({', '.join(self.names[u] for u in threads)}):")
        for u in self.uops:
            if u not in first and u not in threads:
                self._step(u)
        self._close()
        sizes = "".join(f", {u.arg[1]}" for u in threads)
        self._line(f"run_workgroup({self.name!r}, {thread}{sizes})")

    def _memory(self, data: str) -> None:
        self._line(f"size_{data} = len({data})")
        self._line(f"outside_{data} = outside({self.name!r}, {data!r}, size_{data})")

    def _step(self, u: UOp) -> None:
        op = u.op
        if op in ELEMENTWISE:
            self._value(u, self._elementwise(u))
        elif op is Ops.LOAD:
            self._value(u, self._load(u))
        elif op is Ops.STORE:
            self._store(u)
        elif op is Ops.RANGE:
            self.names[u] = name = self._fresh(self.loops[u], numbered=False)
            bounds = ", ".join(self._of(s) for s in u.src)
            self._open(f"for {name} in range({bounds}):")
        elif op is Ops.SPECIAL:
            self.names[u] = name = self._fresh(u.arg[0], numbered=False)
            size = u.arg[1]
            self._open(f"for {name} in range({self._of(size) if isinstance(size, UOp) else size}):")
        elif op is Ops.IF:
            condition = self._of(u.src[0])
            self._open(f"if {condition}:" if u.src[0].dtype.count == 1 else f"if any({condition}):")
        elif op in (Ops.ENDRANGE, Ops.ENDIF):
            self._close()
        elif op is Ops.DEFINE_ACC:
            self.names[u] = name = self._fresh("acc")
            self._line(f"{name} = {self._lanes(u.src[0], u.dtype.count)}")
        elif op is Ops.ASSIGN:
            self.names[u] = name = self._of(u.src[0])
            self._line(f"{name} = {self._lanes(u.src[1], u.src[0].dtype.count)}")
        elif op is Ops.VECTORIZE:
            parts = [f"*{self._of(s)}" if s.dtype.count > 1 else self._of(s) for s in u.src]
            self._value(u, f"({', '.join(parts)},)")
        elif op is Ops.DOT:
            word, element, total = (d.scalar_type.name for d in (u.src[0].dtype, u.arg, u.dtype))
            self._value(u, self._in_lanes(u, f"dot_{total}_{word}_{element}"))
        elif op is Ops.GEP:
            self._value(u, self._gep(u))
        elif op is Ops.DEFINE_LOCAL:
            self.names[u] = name = self._fresh("local")
            start = "None" if self.shared else _zero(u.dtype.base)
            self._line(f"{name} = [{start}] * {u.dtype.size}")  # type: ignore[attr-defined]
            self._memory(name)
        elif op is Ops.BARRIER:
            self.barriers += 1
            self._line(f"yield {self.barriers}")
        elif op not in _SILENT:
            raise NotImplementedError(f"device PYTHON does not know {op} in a linear program")

    def _of(self, u: UOp) -> str:
        """How the text names a value."""
        return _const(u) if u.op is Ops.CONST else self.names[u]

    def _value(self, u: UOp, text: str) -> None:
        self.names[u] = name = self._fresh(_PREFIX.get(u.op, "alu"))
        self._line(f"{name} = {text}")

    def _lanes(self, u: UOp, count: int) -> str:
        """A source's text, repeated if a vector of `count` lanes is wanted of a scalar."""
        text = self._of(u)
        return f"({text},) * {count}" if u.dtype.count == 1 and count > 1 else text

    def _elementwise(self, u: UOp) -> str:
        dtype, source, count = u.dtype.scalar_type, u.src[-1].dtype.scalar_type, u.dtype.count
        if count == 1:
            template = expression(u.op, dtype, source)
            if template is not None:
                return template.format(*[self._of(s) for s in u.src])
        return self._in_lanes(u, function_for(u.op, dtype, source))

    def _in_lanes(self, u: UOp, function: str) -> str:
        """A function called in every lane."""
        count = u.dtype.count
        values = ", ".join(self._lanes(s, count) for s in u.src)
        return f"{function}({values})" if count == 1 else f"tuple(map({function}, {values}))"

    def _gep(self, u: UOp) -> str:
        source, lanes = self._of(u.src[0]), u.arg if isinstance(u.arg, tuple) else (u.arg,)
        if u.src[0].dtype.count == 1:
            return source if u.dtype.count == 1 else f"({source},) * {u.dtype.count}"
        if u.dtype.count == 1:
            return f"{source}[{lanes[0]}]"
        return f"({', '.join(f'{source}[{lane}]' for lane in lanes)},)"

    def _access(self, index: UOp) -> tuple[str, str, UOp | None, DType, bool]:
        """Of an INDEX: the memory, the place, the validity, the memory's dtype, whether it holds bits."""
        memory = index.src[0]
        dtype = memory.dtype.base
        as_bits = dtype in _AS_BITS and memory.op is Ops.DEFINE_GLOBAL
        valid = index.src[2] if len(index.src) > 2 else None
        return self._of(memory), self._of(index.src[1]), valid, dtype, as_bits

    def _load(self, u: UOp) -> str:
        data, i, valid, dtype, as_bits = self._access(u.src[0])
        count = u.dtype.count
        other = self._lanes(u.src[1], count) if len(u.src) > 1 else _zero(dtype, count)
        if valid is not None and valid.dtype.count > 1:
            decode = f", decode_{dtype.name}" if as_bits else ""
            return f"load_masked({data}, {i}, {self._of(valid)}, {other}, outside_{data}{decode})"
        if count == 1:
            inside, text = f"0 <= {i} < size_{data}", f"{data}[{i}]"
        else:
            inside, text = f"0 <= {i} <= size_{data} - {count}", f"{data}[{i} : {i} + {count}]"
        if as_bits:
            text = (
                f"decode_{dtype.name}({text})" if count == 1 else f"tuple(map(decode_{dtype.name}, {text}))"
            )
        elif count > 1:
            text = f"tuple({text})"
        text = f"{text} if {inside} else outside_{data}({i})"
        return text if valid is None else f"({text}) if {self._of(valid)} else {other}"

    def _store(self, u: UOp) -> None:
        data, i, valid, dtype, as_bits = self._access(u.src[0])
        value = self._of(u.src[1])
        encode = f"encode_{dtype.name}" if as_bits else ""
        masked = valid is not None and valid.dtype.count > 1
        if valid is not None and not masked:
            self._open(f"if {self._of(valid)}:")
        if u.src[1].dtype.count > 1:
            mask = self._of(valid) if masked and valid is not None else None
            self._line(f"store_lanes({data}, {i}, {value}, {mask}, outside_{data}{encode and ', ' + encode})")
        else:
            self._open(f"if not 0 <= {i} < size_{data}:")
            self._line(f"outside_{data}({i})")
            self._close()
            self._line(f"{data}[{i}] = {f'{encode}({value})' if encode else value}")
        if valid is not None and not masked:
            self._close()


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

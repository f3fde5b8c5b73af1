"""A linear program (form 7) as text in a language that looks like C; dialects.py has a row for each.

A value that is used zero or several times gets a name (`alu0`), so does every LOAD (`val0`) and what nests
deeper than MAX_DEPTH; what is used once is written where it is used. One care is needed: an expression that
reads an accumulator must not slip behind the accumulator's next assignment, so it is named just before.

What ops mean here: exactly what the op table says, on every input, for all that `supports` says yes to; IDIV
and MOD alone are C's truncating division (`legalize` writes them only on what is not negative, by what is not
zero). What C has no expression for is a small function written above the kernel (functions.py). The text of C
counts on FLAGS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..device import Target
from ..dtype import ConstType, DType, PtrDType, dtypes
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.ops import COMPARISONS, ELEMENTWISE, OPS, Ops
from ..ir.text import number_text
from ..ir.uop import UOp
from . import Renderer, dialects, parameters
from .alignment import multiple_of
from .dialects import Dialect
from .functions import Functions
from .names import Names, carried_accumulators, loop_names, variable_name

#: What a C compiler must be told for the text to mean what the ops mean: integers wrap, a*b+c rounds twice,
#: square roots set no errno, and memory is read under any type.
FLAGS = (
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-w",
)
#: Compilers refuse, or crawl, when parentheses nest too deeply (clang stops at 256).
MAX_DEPTH = 32

_MEMORY = frozenset((Ops.LOAD, Ops.STORE, Ops.INDEX, Ops.VECTORIZE, Ops.GEP, Ops.CONST, Ops.DEFINE_ACC))
_ANY = (
    COMPARISONS
    | {Ops.MAX, Ops.MIN, Ops.NEG, Ops.WHERE, Ops.CAST, Ops.BITCAST, Ops.ADD, Ops.SUB, Ops.MUL}
    | _MEMORY
)
_BITS = {Ops.AND, Ops.OR, Ops.XOR}
_INT_OPS = _ANY | _BITS | {Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR}
_FLOAT_OPS = _ANY | {Ops.FDIV, Ops.RECIP, Ops.SQRT, Ops.TRUNC}
_BOOL_OPS = _ANY | _BITS

#: Ops whose result may leave the range of a type narrower than int, to which C promotes.
_GROWING = frozenset((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.SHL, Ops.IDIV))
_SYMBOLS = {
    **{
        op: OPS[op].symbol
        for op in (*COMPARISONS, *_BITS, Ops.ADD, Ops.SUB, Ops.MUL, Ops.MOD, Ops.SHL, Ops.SHR)
    },
    Ops.IDIV: "/",
    Ops.FDIV: "/",
}
#: Arithmetic on bools is logic.
_BOOL_SYMBOLS = {
    Ops.ADD: "|", Ops.MAX: "|", Ops.OR: "|",
    Ops.MUL: "&", Ops.MIN: "&", Ops.AND: "&",
    Ops.SUB: "^", Ops.XOR: "^",
}  # fmt: skip
#: On a processor, local memory lives on the stack up to here; more is memory that the function SCRATCH gives,
#: which the runtime provides when it loads the kernel.
MAX_STACK = 64 << 10
SCRATCH = "lazygrad_scratch"
#: What may leave the range of its type, as an operator.
_OVERFLOWING = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.NEG: "-"}
UNSIGNED = {4: dtypes.uint32, 8: dtypes.uint64}
#: A lane of a vector bool is a mask, 0 or -1, as wide as what was compared.
MASKS = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


class CStyleRenderer(Renderer):
    """Linear program → C for a CPU, in the vector extension of gcc and clang, with the entry for a runtime.

    Its subclasses are other dialects.
    """

    suffix = "c"
    dialect: Dialect = dialects.C

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or dialects.c_target())

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether form 7 may hold `op` on `dtype`, the type that is computed on."""
        scalar, row = dtype.scalar_type, self.dialect
        if scalar not in row.types or scalar not in self.target.native_dtypes | {dtypes.bool}:
            return False
        if dtype.count > 1:
            if dtype.count not in row.vector_lengths or scalar not in row.vector_types:
                return False
            if not row.vectors:
                return op in _MEMORY
        if op is Ops.MULACC:
            return self.target.has_fma and scalar in (dtypes.float32, dtypes.float64)
        if dtypes.is_float(scalar):
            return op in _FLOAT_OPS
        return op in (_BOOL_OPS if scalar is dtypes.bool else _INT_OPS)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Kernel(self.dialect, name, uops).text()


class OpenCLRenderer(CStyleRenderer):
    suffix = "cl"
    dialect = dialects.OPENCL

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or dialects.opencl_target())


class CUDARenderer(CStyleRenderer):
    """CUDA C++ for an architecture: `CUDARenderer("sm_90")`."""

    suffix = "cu"
    dialect = dialects.CUDA

    def __init__(self, target: Target | str) -> None:
        super().__init__(target if isinstance(target, Target) else dialects.cuda_target(target))


class MetalRenderer(CStyleRenderer):
    suffix = "metal"
    dialect = dialects.METAL

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or dialects.metal_target())


class _Kernel:
    """The text of one kernel while it is written."""

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp]) -> None:
        self.row, self.name, self.uops = dialect, name, uops
        self.functions = Functions(dialect)
        self.lines: list[str] = []
        self.scratch = 0  # bytes of tiles too large for the stack
        self.indent = 1
        self.names = Names()
        self.loop_names = loop_names(uops)
        self.carried = carried_accumulators(uops)
        self.uses = _uses(uops)
        #: The text of each value as an operand: a name, or the expression itself.
        self.value: dict[UOp, str] = {}
        self.depth: dict[UOp, int] = {}
        #: Of arithmetic that was done on unsigned numbers: its text, and that without the cast back.
        self.unsigned: dict[UOp, tuple[str, str]] = {}
        #: Expressions not written yet, and the accumulators they read.
        self.waiting: dict[UOp, frozenset[UOp]] = {}
        #: Of each vector bool: the bytes of a lane of its mask.
        self.mask: dict[UOp, int] = {}
        self.buffers, self.variables = parameters(uops)
        self.threaded = any(u.op is Ops.RANGE and u.arg.kind is AxisType.THREAD for u in uops)

    def text(self) -> str:
        for node in self.uops:
            writer = _STATEMENTS.get(node.op)
            if writer is not None:
                writer(self, node)
            else:
                self.expression(node)
        body = [*self._taken_scratch(), *self.lines, "}"]
        head = self._head()
        return "\n".join([*self._preamble(), head, *body, *(self._entry() if self.row.entry else [])])

    def _head(self) -> str:
        row = self.row
        listed = [
            f"{row.buffer}{self.type(b.dtype.base)}*{row.restrict} {self.value[b]}" for b in self.buffers
        ]
        listed += [
            f"{row.variable}{self.type(v.dtype)}{row.reference} {self.value[v]}" for v in self.variables
        ]
        if self.threaded:
            listed += ["int piece", "int pieces"]
        if row.more_parameters:
            listed.append(row.more_parameters)
        group = 1
        for u in self.uops:
            if u.op is Ops.SPECIAL and u.arg[0].startswith("lidx"):
                group *= u.arg[1]
        return row.kernel.format(name=self.name, parameters=", ".join(listed), bounds=group) + " {"

    def _preamble(self) -> list[str]:
        wanted: dict[DType | str, None] = {}
        for u in self.uops:
            wanted[u.dtype.scalar_type] = None
            if u.op is Ops.CONST and dtypes.is_float(u.dtype):
                for value in u.arg if isinstance(u.arg, tuple) else (u.arg,):
                    if value != value:
                        wanted["NAN"] = None
                    elif value in (float("inf"), float("-inf")):
                        wanted["INFINITY"] = None
        if dtypes.bool in wanted and not self._writes_bool():
            del wanted[dtypes.bool]
        lines = [line for key, line in self.row.headers.items() if key in wanted]
        return [*self.row.header, *lines, *self.functions.typedefs, *self.functions.texts.values()]

    def _writes_bool(self) -> bool:
        word = self.row.types[dtypes.bool]
        written = [self._head(), *self.lines, *self.functions.texts.values()]
        return any(word in line for line in written)

    def _entry(self) -> list[str]:
        arguments = [f"({self.type(b.dtype.base)}*)bufs[{place}]" for place, b in enumerate(self.buffers)]
        arguments += [f"({self.type(v.dtype)})vals[{place}]" for place, v in enumerate(self.variables)]
        if self.threaded:
            arguments += ["piece", "pieces"]
        return [
            f"void {self.name}_entry(void** bufs, long long* vals, int piece, int pieces) {{",
            f"  {self.name}({', '.join(arguments)});",
            "}",
        ]

    # *** types, literals, operands

    def type(self, dtype: DType) -> str:
        return self.functions.type(dtype)

    def type_of(self, node: UOp) -> str:
        """The type of the variable that holds a value: a vector bool is a mask."""
        if node in self.mask:
            return self.type(MASKS[self.mask[node]].vec(node.dtype.count))
        return self.type(node.dtype)

    def literal(self, value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
        if isinstance(value, tuple):
            lanes = ",".join(self.literal(lane, dtype.scalar_type) for lane in value)
            return self.row.make_vector.format(type=self.type(dtype), lanes=lanes)
        if dtype is dtypes.bool:
            return str(int(value))
        if dtypes.is_float(dtype):
            text = float_literal(float(value), dtype)
            return f"(({self.type(dtype)}){text})" if dtype is dtypes.float16 else text
        return int_literal(int(value), dtype, self.row.long_suffix)

    def of(self, node: UOp) -> str:
        """The text of a value as an operand; a constant is written again at each use."""
        if node.op is Ops.CONST and node not in self.value:
            if node.dtype.scalar_type is dtypes.bool and node.dtype.count > 1:
                self.mask[node] = 1
                masks = dtypes.int8.vec(node.dtype.count)
                self.value[node] = self.literal(tuple(-int(lane) for lane in node.arg), masks)
            else:
                self.value[node] = self.literal(node.arg, node.dtype)
        return self.value[node]

    def as_mask(self, node: UOp, nbytes: int) -> str:
        """A vector bool as a mask with lanes of that many bytes."""
        text = self.of(node)
        if self.mask[node] == nbytes:
            return text
        return f"__builtin_convertvector({text}, {self.type(MASKS[nbytes].vec(node.dtype.count))})"

    def wide(self, text: str, dtype: DType) -> str:
        """A half as a float, where half is only stored."""
        if dtype.count == 1:
            return f"(float)({text})"
        return f"__builtin_convertvector({text}, {self.type(dtypes.float32.vec(dtype.count))})"

    def narrow(self, text: str, dtype: DType) -> str:
        """A float as a half."""
        if dtype.count == 1:
            return f"((half)({text}))"
        return f"__builtin_convertvector({text}, {self.type(dtype)})"

    # *** naming

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def declare(self, node: UOp, prefix: str) -> None:
        """Write the value's expression into a variable of its own."""
        self.waiting.pop(node, None)
        name = self.names.fresh(prefix)
        self.line(f"{self.type_of(node)} {name} = {self.value[node]};")
        self.value[node], self.depth[node] = name, 0

    def keep(self, node: UOp, text: str, inline: bool = False) -> None:
        """The value's expression is known: name it, or let it wait for its one use."""
        self.value[node] = text
        reads: frozenset[UOp] = frozenset()
        depth = 0
        for s in node.src:
            reads |= self.waiting.pop(s, frozenset()) if not inline else self.waiting.get(s, frozenset())
            if s.op is Ops.DEFINE_ACC:
                reads |= {s}
            depth = max(depth, self.depth.get(s, 0))
        self.depth[node] = depth + 1
        self.waiting[node] = reads
        if not inline and (self.uses.get(node, 0) != 1 or depth >= MAX_DEPTH):
            self.declare(node, _PREFIXES.get(node.op, "alu"))

    def settle(self, changing: Sequence[UOp], hoist: bool = False) -> None:
        """Name what still waits and reads what will change now, or (`hoist`) would be repeated by a loop."""
        for node, reads in list(self.waiting.items()):
            costly = hoist and node.op in ELEMENTWISE and dtypes.is_float(node.dtype)
            if node.op is not Ops.INDEX and (costly or not reads.isdisjoint(changing)):
                self.declare(node, _PREFIXES.get(node.op, "alu"))

    # *** expressions

    def expression(self, node: UOp) -> None:
        writer = _EXPRESSIONS.get(node.op)
        if writer is None:
            raise NotImplementedError(f"C has no {node.op}: legalize leaves only ops that `supports` names")
        text = writer(self, node)
        # An address, and one lane of something named, are short: written at each use.
        self.keep(node, text, inline=node.op is Ops.INDEX or (node.op is Ops.GEP and len(node.arg) == 1))

    def operator(self, node: UOp) -> str:
        op, dtype = node.op, node.src[-1].dtype
        scalar = dtype.scalar_type
        if scalar is dtypes.bool:
            return self._logic(node)
        first, second = (self.of(s) for s in node.src)
        through_float = scalar is dtypes.float16 and self.row.half_is_storage
        if through_float:
            first, second = self.wide(first, dtype), self.wide(second, dtype)
        if op in (Ops.MAX, Ops.MIN):
            computed = dtypes.float32.vec(dtype.count) if through_float else dtype
            text = f"{self.functions.extremum(op, computed)}({first},{second})"
        else:
            text = self._unsigned(node) or f"({first}{_SYMBOLS[op]}{second})"
        if op in COMPARISONS:
            if dtype.count > 1:
                nbytes = 4 if through_float else scalar.itemsize
                self.mask[node] = nbytes
                return f"(({self.type(MASKS[nbytes].vec(dtype.count))}){text})"
            return text
        return self.narrow(text, dtype) if through_float else self._wrapped(node, text)

    def _unsigned(self, node: UOp) -> str:
        """Arithmetic that may overflow, done on unsigned numbers, which wrap; "" where that is not needed."""
        dtype = node.dtype
        wraps = self.row.wraps or dtype.count > 1 or not dtypes.is_int(dtype)
        if wraps or node.op not in _OVERFLOWING or _stays_in(node):
            return ""
        number = UNSIGNED[max(dtype.itemsize, 4)]
        operands = [self._as_unsigned(s, number) for s in node.src]
        if node.op is Ops.NEG:
            operands = ["0", *operands]
        text = f"({_OVERFLOWING[node.op].join(operands)})"
        self.unsigned[node] = (signed := f"(({self.type(dtype)}){text})"), text
        return signed

    def _as_unsigned(self, node: UOp, number: DType) -> str:
        """An operand as an unsigned number; one that was made of such is not brought back between."""
        text = self.of(node)
        if node.op is Ops.CONST:
            return self.literal(node.arg % (1 << 8 * number.itemsize), number)
        signed, found = self.unsigned.get(node, ("", ""))
        return found if text == signed and node.dtype.itemsize >= 4 else f"({self.type(number)}){text}"

    def _wrapped(self, node: UOp, text: str) -> str:
        """C computes narrow integers as int; bring the result back."""
        dtype = node.dtype
        if node.op in _GROWING and dtype.count == 1 and dtypes.is_int(dtype) and dtype.itemsize < 4:
            return f"(({self.type(dtype)}){text})"
        return text

    def _logic(self, node: UOp) -> str:
        """Two bools: 0 or 1, or masks of 0 and -1."""
        op = node.op
        if node.dtype.count == 1:
            first, second = (self.of(s) for s in node.src)
            return f"({first}{_BOOL_SYMBOLS.get(op) or _SYMBOLS[op]}{second})"
        a, b = node.src
        first = self.of(a)
        nbytes = self.mask[node] = self.mask[a]
        second = self.as_mask(b, nbytes) if self.of(b) else ""
        if op in _BOOL_SYMBOLS:
            return f"({first}{_BOOL_SYMBOLS[op]}{second})"
        return {
            Ops.CMPLT: f"(~{first}&{second})", Ops.CMPLE: f"(~{first}|{second})",
            Ops.CMPEQ: f"(~({first}^{second}))", Ops.CMPNE: f"({first}^{second})",
        }[op]  # fmt: skip

    def shift(self, node: UOp) -> str:
        value, amount = node.src
        low, high = bounds(amount)
        if low >= 0 and high < node.dtype.scalar_type.itemsize * 8:
            return self._wrapped(node, f"({self.of(value)}{_SYMBOLS[node.op]}{self.of(amount)})")
        return f"{self.functions.shift(node.op, node.dtype)}({self.of(value)},{self.of(amount)})"

    def negate(self, node: UOp) -> str:
        x, dtype = self.of(node.src[0]), node.dtype
        if dtype.scalar_type is dtypes.bool:
            if dtype.count > 1:
                self.mask[node] = self.mask[node.src[0]]
                return f"(~{x})"
            return f"(!{x})"
        if dtype.scalar_type is dtypes.float16 and self.row.half_is_storage:
            return self.narrow(f"-{self.wide(x, dtype)}", dtype)
        return self._unsigned(node) or self._wrapped(node, f"(-{x})")

    def reciprocal(self, node: UOp) -> str:
        x, dtype = self.of(node.src[0]), node.dtype
        one = "1.0" if dtype.scalar_type is dtypes.float64 else "1.0f"
        if dtype.scalar_type is dtypes.float16 and self.row.half_is_storage:
            return self.narrow(f"1.0f/{self.wide(x, dtype)}", dtype)
        if dtype.count > 1:
            lanes = self.literal((1.0,) * dtype.count, dtype)
            return f"({lanes}/{x})"
        return f"({one}/{x})"

    def function(self, node: UOp) -> str:
        dtype = node.dtype
        values = [self.of(s) for s in node.src]
        through_float = dtype.scalar_type is dtypes.float16 and self.row.half_is_storage
        if through_float:
            values = [self.wide(value, dtype) for value in values]
        computed = dtypes.float32.vec(dtype.count) if through_float else dtype
        text = f"{self.functions.library(node.op, computed)}({','.join(values)})"
        return self.narrow(text, dtype) if through_float else text

    def where(self, node: UOp) -> str:
        condition, yes, no = node.src
        dtype = node.dtype
        if dtype.scalar_type is dtypes.bool and dtype.count > 1:
            self.of(yes)
            nbytes = self.mask[node] = self.mask[yes] if yes.op is not Ops.CONST else 1
            first, second = self.as_mask(yes, nbytes), (self.of(no), self.as_mask(no, nbytes))[1]
            dtype = MASKS[nbytes].vec(dtype.count)
        else:
            nbytes = dtype.scalar_type.itemsize
            first, second = self.of(yes), self.of(no)
        if condition.dtype.count == 1:
            return f"({self.of(condition)}?{first}:{second})"
        self.of(condition)
        return f"{self.functions.where(dtype)}({self.as_mask(condition, nbytes)},{first},{second})"

    # *** casts

    def cast(self, node: UOp) -> str:
        source, target = node.src[0].dtype, node.dtype
        value = self.of(node.src[0])
        a, b = source.scalar_type, target.scalar_type
        count = target.count
        if a is b:
            return value
        if count > 1 and a is dtypes.bool:
            one = f"({self.as_mask(node.src[0], min(b.itemsize, 8))}&1)"
            if b is dtypes.float16:
                wider = f"__builtin_convertvector({one}, {self.type(dtypes.float32.vec(count))})"
                return f"__builtin_convertvector({wider}, {self.type(target)})"
            return f"__builtin_convertvector({one}, {self.type(target)})"
        if count > 1 and b is dtypes.bool:
            if a is dtypes.float16:
                value, a = self.wide(value, source), dtypes.float32
            self.mask[node] = a.itemsize
            return f"(({self.type(MASKS[a.itemsize].vec(count))})({value}!=({self.type(a.vec(count))}){{}}))"
        if a is dtypes.float64 and b is dtypes.float16:
            return self._convert(f"{self.functions.odd_float(count)}({value})", target)
        if a is dtypes.float16 and self.row.half_is_storage and b is not dtypes.float32:
            value, a = self.wide(value, source), dtypes.float32
        if dtypes.is_float(a) and dtypes.is_int(b):
            return f"{self.functions.saturate(a.vec(count), target)}({value})"
        if b is dtypes.float16 and self.row.half_is_storage and a is not dtypes.float32:
            value = self._convert(value, dtypes.float32.vec(count))
        return self._convert(value, target)

    def _convert(self, value: str, target: DType) -> str:
        if target.count > 1:
            return f"__builtin_convertvector({value}, {self.type(target)})"
        return f"(({self.type(target)})({value}))"

    def bitcast(self, node: UOp) -> str:
        source, target = node.src[0].dtype, node.dtype
        value = self.of(node.src[0])
        if dtypes.bool in (source.scalar_type, target.scalar_type):
            return self.cast(node)
        if target.count > 1:
            return f"(({self.type(target)}){value})"
        return self.functions.bitcast(source, target, value)

    # *** vectors

    def vectorize(self, node: UOp) -> str:
        dtype = node.dtype
        lanes = [self.of(s) for s in node.src]
        if dtype.scalar_type is dtypes.bool:
            self.mask[node] = 1
            masks = dtypes.int8.vec(dtype.count)
            return self.row.make_vector.format(
                type=self.type(masks), lanes=",".join(f"-{lane}" for lane in lanes)
            )
        return self.row.make_vector.format(type=self.type(dtype), lanes=",".join(lanes))

    def lanes(self, node: UOp) -> str:
        source = node.src[0]
        if source.dtype.count == 1:
            return self.of(source)
        if source.op is Ops.CONST:
            chosen = tuple(source.arg[lane] for lane in node.arg)
            self.of(node.const_like(chosen[0])) if len(chosen) == 1 else None
            return self.literal(chosen if len(chosen) > 1 else chosen[0], node.dtype)
        vector = self.of(source)
        if len(node.arg) == 1:
            text = self.row.lane.format(vector=vector, lane=node.arg[0], letter="xyzw"[node.arg[0] % 4])
            return f"({text}!=0)" if source in self.mask else text
        if source in self.mask:
            self.mask[node] = self.mask[source]
        if self.row.vectors:
            return f"__builtin_shufflevector({vector}, {vector}, {', '.join(map(str, node.arg))})"
        lanes = [self.row.lane.format(vector=vector, lane=n, letter="xyzw"[n % 4]) for n in node.arg]
        return self.row.make_vector.format(type=self.type(node.dtype), lanes=",".join(lanes))

    # *** memory

    def index(self, node: UOp) -> str:
        buffer, position = node.src[0], node.src[1]
        return f"({self.of(buffer)}+{self.of(position)})"

    def access(self, index: UOp, dtype: DType) -> str:
        """What an INDEX addresses, as something to read or assign."""
        if dtype.count == 1:
            return f"*{self.of(index)}"
        pointer = index.src[0].dtype
        space = self.row.buffer
        if index.src[0].op is Ops.DEFINE_LOCAL:
            space = self.row.local_memory if isinstance(pointer, PtrDType) and pointer.local else ""
        kind = dtypes.int8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype
        return f"*(({space}{self.type(kind)}*)({self.of(index)}))"

    def read(self, index: UOp, dtype: DType) -> str:
        """What an INDEX addresses, as a value."""
        if dtype.count > 1 and self.row.load:
            return self.row.load.format(pointer=self.of(index), lanes=dtype.count)
        if self.in_lanes(index, dtype):
            lanes = ",".join(f"{self.of(index)}[{lane}]" for lane in range(dtype.count))
            return self.row.make_vector.format(type=self.type(dtype), lanes=lanes)
        return self.access(index, dtype)

    def in_lanes(self, index: UOp, dtype: DType) -> bool:
        """Whether a vector is read and written lane by lane: its place may be no multiple of its size."""
        if dtype.count == 1 or not self.row.aligned:
            return False
        return index.src[0].op is not Ops.DEFINE_GLOBAL or multiple_of(index.src[1]) % dtype.count != 0

    def load(self, node: UOp) -> None:
        index, dtype = node.src[0], node.dtype
        flags = dtype.scalar_type is dtypes.bool and dtype.count > 1  # bytes of 0 and 1, to become a mask
        if flags:
            self.mask[node] = 1
        if len(index.src) < 3:
            text = self.read(index, dtype)
            text = f"(-{text})" if flags else text
        else:
            valid = index.src[2]
            other = self._other(node)
            if valid.dtype.count > 1:
                self.of(valid)
                kind = dtypes.int8.vec(dtype.count) if flags else dtype
                mask = self.as_mask(valid, kind.scalar_type.itemsize)
                pointer = f"({self.type(kind.scalar_type)}*){self.of(index)}"
                called = f"{self.functions.masked_load(kind)}({pointer},{mask},"
                text = f"(-{called}(-{other})))" if flags else f"{called}{other})"
            else:
                read = self.read(index, dtype)
                text = f"({self.of(valid)}?{f'(-{read})' if flags else read}:{other})"
        self.value[node] = text
        for s in (*node.src, *index.src):
            self.waiting.pop(s, None)
        self.declare(node, "val")

    def _other(self, node: UOp) -> str:
        """What a masked-out element is."""
        if len(node.src) > 1:
            other = self.of(node.src[1])
            return self.as_mask(node.src[1], 1) if node in self.mask else other
        if node.dtype.count == 1:
            return self.literal(0.0 if dtypes.is_float(node.dtype) else 0, node.dtype)
        return self.row.make_vector.format(type=self.type_of(node), lanes=",".join(["0"] * node.dtype.count))

    def store(self, node: UOp) -> None:
        index, value = node.src
        dtype = value.dtype
        text = self.of(value)
        flags = dtype.scalar_type is dtypes.bool and dtype.count > 1
        if flags:
            text = f"({self.as_mask(value, 1)}&1)"
        if self.in_lanes(index, dtype):
            name = text
            if not text.isidentifier():
                name = self.names.fresh("alu")
                self.line(f"{self.type(dtype)} {name} = {text};")
            lanes = [self.row.lane.format(vector=name, lane=n, letter="xyzw"[n]) for n in range(dtype.count)]
            stored = "; ".join(f"{self.of(index)}[{n}] = {lane}" for n, lane in enumerate(lanes))
        elif dtype.count > 1 and self.row.store:
            stored = self.row.store.format(value=text, pointer=self.of(index), lanes=dtype.count)
        else:
            stored = f"{self.access(index, dtype)} = {text}"
        if len(index.src) < 3:
            self.line(f"{stored};")
        elif index.src[2].dtype.count > 1:
            kind = dtypes.int8.vec(dtype.count) if flags else dtype
            self.of(index.src[2])
            mask = self.as_mask(index.src[2], kind.scalar_type.itemsize)
            name = self.functions.masked_store(kind)
            self.line(f"{name}(({self.type(kind.scalar_type)}*){self.of(index)},{mask},{text});")
        else:
            self.line(f"if ({self.of(index.src[2])}) {{ {stored}; }}")
        for s in (*node.src, *index.src):
            self.waiting.pop(s, None)

    # *** definitions

    def define_global(self, node: UOp) -> None:
        self.value[node] = f"data{node.arg}"

    def define_var(self, node: UOp) -> None:
        self.value[node] = variable_name(node.arg[0])

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        name = f"temp{node.arg}" if isinstance(node.arg, int) else self.names.fresh("temp")
        self.value[node] = name
        kind, nbytes = self.type(node.dtype.base), node.dtype.size * node.dtype.base.itemsize
        if self.row.entry and nbytes > MAX_STACK:
            self.line(f"{kind}*{self.row.restrict} {name} = ({kind}*)(scratch+{self.scratch});")
            self.scratch += -(-nbytes // 64) * 64
            return
        aligned = " __attribute__((aligned(64)))" if self.row.vectors else ""
        qualifier = self.row.local_memory if node.dtype.local else ""
        self.line(f"{qualifier}{kind} {name}[{node.dtype.size}]{aligned};")

    def _taken_scratch(self) -> list[str]:
        """What takes the memory of all large tiles at once; the calling thread keeps it."""
        if not self.scratch:
            return []
        self.functions.texts["scratch"] = f"void* (*{SCRATCH})(unsigned long);"
        return [f"  char* scratch = {SCRATCH}({self.scratch});"]

    def define_acc(self, node: UOp) -> None:
        start = self.of(node.src[0])
        if node.dtype.scalar_type is dtypes.bool and node.dtype.count > 1:
            self.mask[node] = 1
            start = self.as_mask(node.src[0], 1)
        self.waiting.pop(node.src[0], None)
        name = self.names.fresh("acc")
        self.line(f"{self.type_of(node)} {name} = {start};")
        self.value[node] = name

    def assign(self, node: UOp) -> None:
        acc, value = node.src
        text = self.of(value)
        if acc in self.mask:
            text = self.as_mask(value, self.mask[acc])
        self.waiting.pop(value, None)
        self.settle([acc])
        self.line(f"{self.value[acc]} = {text};")
        self.value[node] = self.value[acc]

    def special(self, node: UOp) -> None:
        name, size = node.arg
        number = int(name[4:])
        place = self.row.local_id if name.startswith("lidx") else self.row.global_id
        if not place:
            raise NotImplementedError(f"{name}: a CPU has loops, no grid of threads")
        text = place.format(axis="xyz"[number], number=number)
        self.line(f"{self.type(node.dtype)} {name} = {text}; /* {size} */")
        self.value[node] = name

    def nothing(self, node: UOp) -> None:
        """Constants are written where they are used."""

    def barrier(self, node: UOp) -> None:
        if self.row.barrier:
            self.line(self.row.barrier)

    # *** loops and branches

    def range(self, node: UOp) -> None:
        self.settle(self.carried[node], hoist=True)
        name, kind = self.loop_names[node], self.type(node.dtype)
        start, end = self.of(node.src[0]), self.of(node.src[-1])
        for s in node.src:
            self.waiting.pop(s, None)
        if node.arg.kind is AxisType.THREAD:  # this piece's part
            size = f"(long long){end}"
            start, end = f"({kind})({size}*piece/pieces)", f"({kind})({size}*(piece+1)/pieces)"
        self.line(f"for ({kind} {name} = {start}; {name} < {end}; {name}++) {{")
        self.value[node] = name
        self.indent += 1

    def branch(self, node: UOp) -> None:
        condition = self.of(node.src[0])
        self.waiting.pop(node.src[0], None)
        self.settle(self.carried[node])
        self.line(f"if ({condition}) {{")
        self.indent += 1

    def close(self, node: UOp) -> None:
        self.indent -= 1
        self.line("}")


_PREFIXES = {Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.LOAD: "val"}
_EXPRESSIONS: dict[Ops, Callable[[_Kernel, UOp], str]] = {
    **dict.fromkeys(
        (*COMPARISONS, *_BITS, Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.FDIV), _Kernel.operator
    ),
    **dict.fromkeys((Ops.MAX, Ops.MIN), _Kernel.operator),
    **dict.fromkeys((Ops.SHL, Ops.SHR), _Kernel.shift),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.MULACC), _Kernel.function),
    Ops.NEG: _Kernel.negate,
    Ops.RECIP: _Kernel.reciprocal,
    Ops.WHERE: _Kernel.where,
    Ops.CAST: _Kernel.cast,
    Ops.BITCAST: _Kernel.bitcast,
    Ops.VECTORIZE: _Kernel.vectorize,
    Ops.GEP: _Kernel.lanes,
    Ops.INDEX: _Kernel.index,
}
_STATEMENTS: dict[Ops, Callable[[_Kernel, UOp], None]] = {
    **dict.fromkeys((Ops.CONST, Ops.NOOP, Ops.SINK), _Kernel.nothing),
    Ops.LOAD: _Kernel.load,
    Ops.STORE: _Kernel.store,
    Ops.DEFINE_GLOBAL: _Kernel.define_global,
    Ops.DEFINE_VAR: _Kernel.define_var,
    Ops.DEFINE_LOCAL: _Kernel.define_local,
    Ops.DEFINE_ACC: _Kernel.define_acc,
    Ops.ASSIGN: _Kernel.assign,
    Ops.SPECIAL: _Kernel.special,
    Ops.BARRIER: _Kernel.barrier,
    Ops.RANGE: _Kernel.range,
    Ops.ENDRANGE: _Kernel.close,
    Ops.IF: _Kernel.branch,
    Ops.ENDIF: _Kernel.close,
}


def _uses(uops: Sequence[UOp]) -> dict[UOp, int]:
    """How often each value will be written; what an address or a lane is made of, as often as that is."""
    uses: dict[UOp, int] = {}
    for node in reversed(uops):
        times = uses.get(node, 0) if node.op is Ops.INDEX else 1
        if node.op is Ops.GEP:
            times = 2  # a lane can be taken of a name only
        for s in node.src:
            uses[s] = uses.get(s, 0) + times
    return uses


def _stays_in(node: UOp) -> bool:
    """Whether an integer result is one that C computes: in its type, or in the int that C promotes it to."""
    dtype = node.dtype if node.dtype.itemsize >= 4 else dtypes.int32
    if dtypes.is_unsigned(dtype):
        return True
    corners: list[int] = []
    (low, high), *others = [bounds(s) for s in node.src]
    for x in (low, high):
        if node.op is Ops.NEG:
            corners.append(-x)
            continue
        for y in others[0]:
            corners.append(x + y if node.op is Ops.ADD else x - y if node.op is Ops.SUB else x * y)
    return int(dtypes.min(dtype)) <= min(corners) and max(corners) <= int(dtypes.max(dtype))


def float_literal(value: float, dtype: DType) -> str:
    """The fewest digits that give the value back in its type; negative ones in parentheses."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if dtype is dtypes.float64:
        text = repr(value)
    else:  # a half is written as a float, from which it is converted without rounding
        text = number_text(value, dtypes.float32) + "f"
    return f"({text})" if text.startswith("-") else text


def int_literal(value: int, dtype: DType, long_suffix: str) -> str:
    """An integer of exactly that type; the smallest signed one has no literal of its own."""
    suffix = "u" if dtype in (dtypes.uint32, dtypes.uint64) else ""
    suffix += long_suffix if dtype in (dtypes.int64, dtypes.uint64) else ""
    if value >= 0:
        return f"{value}{suffix}"
    if value == dtypes.min(dtype) and dtype.itemsize >= 4:
        return f"({value + 1}{suffix}-1)"
    return f"({value}{suffix})"

"""A linear program (form 7) as LLVM IR: the language of device CPU.

Two functions come out. `@name` is the kernel as people read it; `@name_entry(ptr bufs, ptr vals, i32 piece,
i32 pieces)` is what a runtime calls: it unpacks addresses and integers from two tables, whatever the kernel
takes.

What ops mean here: exactly what the op table says, on every input, for all that `supports` says yes to:
shifts by the width or more, float to integer, NaN in MAX and MIN, wrapping integers. IDIV and MOD alone are
the machine's truncating division: `legalize` writes them only on what is not negative, by what is not zero.
No fast-math flag is written anywhere.

Loops are written with their test at the end, and accumulators are phi nodes: what LLVM would make of allocas,
made here once, costs its passes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..device import Target
from ..dtype import ConstType, DType, PtrDType, dtypes
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.ops import COMPARISONS, Ops
from ..ir.uop import UOp
from . import Renderer, parameters
from .names import Names, carried_accumulators, loop_names, variable_name

_TYPES = {
    dtypes.bool: "i1", dtypes.int8: "i8", dtypes.uint8: "i8", dtypes.int16: "i16", dtypes.uint16: "i16",
    dtypes.int32: "i32", dtypes.uint32: "i32", dtypes.int64: "i64", dtypes.uint64: "i64",
    dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
#: As intrinsics' names spell a type.
_MANGLED = {"half": "f16", "float": "f32", "double": "f64"}
_MEMORY = frozenset((Ops.LOAD, Ops.STORE, Ops.INDEX, Ops.VECTORIZE, Ops.GEP, Ops.CONST, Ops.DEFINE_ACC))

_FLOAT_OPS = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
_SIGNED_OPS = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.IDIV: "sdiv", Ops.MOD: "srem",
    Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
}  # fmt: skip
_UNSIGNED_OPS = {**_SIGNED_OPS, Ops.IDIV: "udiv", Ops.MOD: "urem"}
#: Of packed numbers of a type: what its sums of products are called, and how their factors are typed.
_DOTS = {
    dtypes.bfloat16: ("llvm.x86.avx512bf16.dpbf16ps", "bfloat"),
    dtypes.int16: ("llvm.x86.avx512.vpdpwssd", "i16"),
}
#: Arithmetic on bools is logic.
_BOOL_OPS = {
    Ops.ADD: "or", Ops.SUB: "xor", Ops.MUL: "and", Ops.MAX: "or", Ops.MIN: "and",
    Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
}  # fmt: skip
_COMPARE_FLOAT = {Ops.CMPLT: "olt", Ops.CMPLE: "ole", Ops.CMPEQ: "oeq", Ops.CMPNE: "une"}
_COMPARE_SIGNED = {Ops.CMPLT: "slt", Ops.CMPLE: "sle", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
_COMPARE_UNSIGNED = {Ops.CMPLT: "ult", Ops.CMPLE: "ule", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}

#: What may be said of a type that is converted before it is computed with.
_CONVERTED = _MEMORY | {Ops.CAST, Ops.BITCAST, Ops.WHERE}
_ANY = COMPARISONS | {Ops.CAST, Ops.BITCAST, Ops.WHERE} | _MEMORY
_INT_SUPPORTED = frozenset(_SIGNED_OPS) | {Ops.MAX, Ops.MIN, Ops.NEG, Ops.SHL, Ops.SHR} | _ANY
_BOOL_SUPPORTED = frozenset(_BOOL_OPS) | {Ops.NEG} | _ANY
_FLOAT_SUPPORTED = frozenset(_FLOAT_OPS) | {Ops.MAX, Ops.MIN, Ops.NEG, Ops.RECIP, Ops.SQRT, Ops.TRUNC} | _ANY

#: Local memory lives on the stack up to here; more is memory that SCRATCH gives, which the runtime provides.
MAX_STACK = 64 << 10
SCRATCH = "lazygrad_scratch"


class LLVMRenderer(Renderer):
    """Linear program → LLVM IR text, with real vectors of any length."""

    suffix = "ll"

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether form 7 may hold `op` on `dtype`, the type that is computed on."""
        scalar = dtype.scalar_type
        if scalar in self.target.converted_dtypes:
            return op in _CONVERTED
        if scalar not in _TYPES or scalar not in self.target.native_dtypes | {dtypes.bool}:
            return False
        if op is Ops.DOT:
            return any(scalar is dot.total for dot in self.target.dots)
        if op is Ops.MULACC:
            return self.target.has_fma and scalar in (dtypes.float32, dtypes.float64)
        if dtypes.is_float(scalar):
            return op in _FLOAT_SUPPORTED
        return op in (_BOOL_SUPPORTED if scalar is dtypes.bool else _INT_SUPPORTED)

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or _target())

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        """The module's text: the kernel, its entry, the intrinsics it declares."""
        return _Function(name, uops).text()


def target(arch: str = "") -> Target:
    """A 64-bit CPU of which nothing more is known; the runtime refines it for the machine it is on."""
    return Target(
        "CPU", arch, vector_bytes=16, vector_registers=16, native_dtypes=frozenset(_TYPES) - {dtypes.float16}
    )


_target = target


@dataclass
class _Loop:
    """An open loop or branch: where it came from, and the accumulators that change inside."""

    carried: list[UOp]
    before: str
    values: list[str]
    head: str = ""
    exit: str = ""
    end: str = ""
    guarded: bool = False
    phis: list[tuple[int, str, str]] = field(default_factory=list)  # line, name, type


class _Function:
    """The text of one kernel while it is written."""

    def __init__(self, name: str, uops: Sequence[UOp]) -> None:
        self.name, self.uops = name, uops
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declared: dict[str, None] = {}
        self.scratch: list[tuple[str, int]] = []  # tiles too large for the stack, and their bytes
        self.names = Names()
        self.loop_names = loop_names(uops)
        self.carried = carried_accumulators(uops)
        self.value: dict[UOp, str] = {}
        self.open: list[_Loop] = []
        self.block = "entry"
        #: Addresses that several accesses of a block count from: (block, buffer, index) → its name.
        self.shared: dict[tuple[str, UOp, UOp], str] = {}
        self.unwritten = _only_in_addresses(uops)
        buffers, variables = parameters(uops)
        self.parameters = buffers + variables
        self.threaded = any(u.op is Ops.RANGE and _kind(u) is AxisType.THREAD for u in uops)

    def text(self) -> str:
        for node in self.uops:
            writer = _WRITERS.get(node.op)
            if writer is None:
                raise NotImplementedError(
                    f"LLVM IR has no {node.op}: legalize leaves only ops that `supports` names"
                )
            writer(self, node)
        parameters = [
            f"ptr noalias %data{p.arg}"
            if p.op is Ops.DEFINE_GLOBAL
            else f"{_type(p.dtype)} %{variable_name(p.arg[0])}"
            for p in self.parameters
        ]
        if self.threaded:
            parameters += ["i32 %piece", "i32 %pieces"]
        body = ["entry:", *self.allocas, *self._taken_scratch(), *self.lines, "  ret void", "}"]
        # Not inlined into its entry: there `noalias` would have to become metadata on every access.
        head = f"define internal void @{self.name}({', '.join(parameters)}) noinline nounwind {{"
        return "\n".join([head, *body, "", *self._entry(), "", *self.declared, ""])

    def _entry(self) -> list[str]:
        lines = [
            f"define void @{self.name}_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {{",
            "entry:",
        ]
        arguments = []
        places = {Ops.DEFINE_GLOBAL: 0, Ops.DEFINE_VAR: 0}
        for p in self.parameters:
            table, loaded = ("bufs", "ptr") if p.op is Ops.DEFINE_GLOBAL else ("vals", "i64")
            place = places[p.op]
            places[p.op] += 1
            name = f"{table}{place}"
            lines.append(f"  %{name}.at = getelementptr inbounds {loaded}, ptr %{table}, i64 {place}")
            lines.append(f"  %{name} = load {loaded}, ptr %{name}.at")
            if loaded == "i64" and _type(p.dtype) != "i64":
                lines.append(f"  %{name}.int = trunc i64 %{name} to {_type(p.dtype)}")
                name = f"{name}.int"
            arguments.append(f"{_type(p.dtype)} %{name}")
        if self.threaded:
            arguments += ["i32 %piece", "i32 %pieces"]
        return [*lines, f"  call void @{self.name}({', '.join(arguments)})", "  ret void", "}"]

    # *** writing

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def let(self, prefix: str, instruction: str) -> str:
        """One instruction with a fresh name."""
        name = "%" + self.names.fresh(prefix)
        self.lines.append(f"  {name} = {instruction}")
        return name

    def of(self, node: UOp) -> str:
        """The text of a value as an operand."""
        return _const(node) if node.op is Ops.CONST else self.value[node]

    def typed(self, node: UOp) -> str:
        return f"{_type(node.dtype)} {self.of(node)}"

    def call(self, prefix: str, intrinsic: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic on (type, value) pairs; it is declared once."""
        self._declare(intrinsic, result, arguments)
        return self.let(prefix, f"call {result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def _declare(self, intrinsic: str, result: str, arguments: Sequence[tuple[str, str]]) -> None:
        self.declared[f"declare {result} @{intrinsic}({', '.join(t for t, _ in arguments)})"] = None

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    # *** arithmetic

    def alu(self, node: UOp) -> None:
        if node in self.unwritten:
            return
        op, dtype = node.op, node.src[-1].dtype
        scalar, kind = dtype.scalar_type, _type(dtype)
        if op in (Ops.MAX, Ops.MIN) and scalar is not dtypes.bool:
            self.value[node] = self._extremum(node)
            return
        first, second = (self.of(s) for s in node.src)
        if op in COMPARISONS:
            if dtypes.is_float(scalar):
                predicate = f"fcmp {_COMPARE_FLOAT[op]}"
            else:
                unsigned = dtypes.is_unsigned(scalar) or scalar is dtypes.bool
                predicate = f"icmp {(_COMPARE_UNSIGNED if unsigned else _COMPARE_SIGNED)[op]}"
            self.value[node] = self.let("alu", f"{predicate} {kind} {first}, {second}")
            return
        table = (
            _FLOAT_OPS if dtypes.is_float(scalar)
            else _BOOL_OPS if scalar is dtypes.bool
            else _UNSIGNED_OPS if dtypes.is_unsigned(scalar)
            else _SIGNED_OPS
        )  # fmt: skip
        if op not in table:
            raise NotImplementedError(f"LLVM IR has no {op} on {dtype!r}: legalize replaces it")
        if op is Ops.FDIV and _has_zero_lanes(node.src[1]):
            rules = [("metadata", '!"round.tonearest"'), ("metadata", '!"fpexcept.ignore"')]
            operands = [(kind, first), (kind, second), *rules]
            name = f"llvm.experimental.constrained.fdiv.{_mangled(dtype)}"
            self.value[node] = self.call("alu", name, kind, operands)
            return
        self.value[node] = self.let("alu", f"{table[op]}{_wraps(node)} {kind} {first}, {second}")

    def _extremum(self, node: UOp) -> str:
        """As the op table: the first of two equals, NaN if either is NaN."""
        dtype = node.dtype
        kind, (first, second) = _type(dtype), (self.of(s) for s in node.src)
        greater = node.op is Ops.MAX
        if not dtypes.is_float(dtype):
            sign = "u" if dtypes.is_unsigned(dtype) else "s"
            name = f"llvm.{sign}{'max' if greater else 'min'}.{_mangled(dtype)}"
            return self.call("alu", name, kind, [(kind, first), (kind, second)])
        better = self.let("alu", f"fcmp {'ogt' if greater else 'olt'} {kind} {second}, {first}")
        choice = self.let("alu", self._select(better, dtype, second, first))
        if node.src[1].op is Ops.CONST and not _has_nan(node.src[1]):
            return choice
        missing = self.let("alu", f"fcmp uno {kind} {second}, {second}")
        return self.let("alu", self._select(missing, dtype, second, choice))

    def _select(self, condition: str, dtype: DType, yes: str, no: str, lanes: bool = True) -> str:
        of_condition = _type(dtypes.bool.vec(dtype.count)) if lanes else "i1"
        return f"select {of_condition} {condition}, {_type(dtype)} {yes}, {_type(dtype)} {no}"

    def shift(self, node: UOp) -> None:
        """By the width or more: 0, or all sign bits for a signed `>>`."""
        value, amount = node.src
        dtype, kind = node.dtype, _type(node.dtype)
        width = dtype.scalar_type.itemsize * 8
        arithmetic = node.op is Ops.SHR and not dtypes.is_unsigned(dtype)
        instruction = "shl" if node.op is Ops.SHL else "ashr" if arithmetic else "lshr"
        by = self.of(amount)
        low, high = bounds(amount)
        if low >= 0 and high < width:
            self.value[node] = self.let("alu", f"{instruction}{_wraps(node)} {kind} {self.of(value)}, {by}")
            return
        limit = _splat(str(width - 1), dtype)
        clamped = self.call("alu", f"llvm.umin.{_mangled(dtype)}", kind, [(kind, by), (kind, limit)])
        shifted = self.let("alu", f"{instruction} {kind} {self.of(value)}, {clamped}")
        if not arithmetic:
            inside = self.let("alu", f"icmp ule {kind} {by}, {limit}")
            shifted = self.let("alu", self._select(inside, dtype, shifted, _splat("0", dtype)))
        self.value[node] = shifted

    def negate(self, node: UOp) -> None:
        dtype, kind, x = node.dtype, _type(node.dtype), self.of(node.src[0])
        if dtypes.is_float(dtype):
            text = f"fneg {kind} {x}"
        elif dtypes.is_bool(dtype):
            text = f"xor {kind} {x}, {_splat('true', dtype)}"
        else:
            text = f"sub {kind} {_splat('0', dtype)}, {x}"
        self.value[node] = self.let("alu", text)

    def reciprocal(self, node: UOp) -> None:
        dtype = node.dtype
        one = _splat("1.0", dtype)
        self.value[node] = self.let("alu", f"fdiv {_type(dtype)} {one}, {self.of(node.src[0])}")

    def function(self, node: UOp) -> None:
        """SQRT, TRUNC, MULACC. Half goes through float32, which holds enough bits to round once."""
        name = {Ops.SQRT: "llvm.sqrt", Ops.TRUNC: "llvm.trunc", Ops.MULACC: "llvm.fma"}[node.op]
        dtype = node.dtype
        if not dtypes.is_float(dtype):
            raise NotImplementedError(f"LLVM IR has no {node.op} on {dtype!r}: legalize replaces it")
        values = [self.of(s) for s in node.src]
        half = dtype.scalar_type is dtypes.float16
        if half:
            dtype = dtypes.float32.vec(dtype.count)
            values = [
                self.let("cast", f"fpext {_type(node.dtype)} {value} to {_type(dtype)}") for value in values
            ]
        kind = _type(dtype)
        result = self.call("alu", f"{name}.{_mangled(dtype)}", kind, [(kind, value) for value in values])
        if half:
            result = self.let("cast", f"fptrunc {kind} {result} to {_type(node.dtype)}")
        self.value[node] = result

    def dot(self, node: UOp) -> None:
        """Sums of products; lanes that are too few for the instruction's registers are filled up."""
        name, element = _DOTS[node.arg]
        total, count = node.dtype.scalar_type, node.dtype.count
        lanes = next(lanes for lanes in (4, 8, 16) if lanes >= count)
        first, second, before = (self._widened(self.of(s), s.dtype, lanes) for s in node.src)
        kind, word = _type(total.vec(lanes)), _type(node.src[0].dtype.scalar_type.vec(lanes))
        packed = f"<{2 * lanes} x {element}>"
        factors = [self.let("cast", f"bitcast {word} {value} to {packed}") for value in (first, second)]
        arguments = [(kind, before), *((packed, factor) for factor in factors)]
        made = self.call("alu", f"{name}.{32 * lanes}", kind, arguments)
        if count == 1:
            made = self.let("alu", f"extractelement {kind} {made}, i32 0")
        elif count < lanes:
            mask = ", ".join(f"i32 {lane}" for lane in range(count))
            made = self.let("alu", f"shufflevector {kind} {made}, {kind} poison, <{count} x i32> <{mask}>")
        self.value[node] = made

    def _widened(self, value: str, dtype: DType, lanes: int) -> str:
        """A value as the first of so many lanes; what is in the others does not matter."""
        if dtype.count == lanes:
            return value
        if dtype.count == 1:
            kind = _type(dtype.vec(lanes))
            return self.let("alu", f"insertelement {kind} poison, {_type(dtype)} {value}, i32 0")
        mask = ", ".join(f"i32 {lane}" if lane < dtype.count else "i32 poison" for lane in range(lanes))
        kind = _type(dtype)
        return self.let("alu", f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{mask}>")

    def where(self, node: UOp) -> None:
        condition, yes, no = node.src
        lanes = condition.dtype.count > 1
        self.value[node] = self.let(
            "alu", self._select(self.of(condition), node.dtype, self.of(yes), self.of(no), lanes)
        )

    # *** casts

    def cast(self, node: UOp) -> None:
        self.value[node] = self._cast(self.of(node.src[0]), node.src[0].dtype, node.dtype)

    def _cast(self, value: str, source: DType, target: DType) -> str:
        a, b = source.scalar_type, target.scalar_type
        count = target.count
        if a is b:
            return value
        from_kind, to_kind = _type(source), _type(target)
        if dtypes.float16 in (a, b) and dtypes.float32 not in (a, b) and dtypes.bool not in (a, b):
            if a is dtypes.float64:
                value = self._round_to_odd(value, count)
            else:  # exact from half; from an integer exact too wherever half does not overflow
                value = self._cast(value, source, dtypes.float32.vec(count))
            return self._cast(value, dtypes.float32.vec(count), target)
        if b is dtypes.bool:
            compare = "fcmp une" if dtypes.is_float(a) else "icmp ne"
            return self.let("cast", f"{compare} {from_kind} {value}, {_zero(source)}")
        if dtypes.is_float(a) and dtypes.is_float(b):
            instruction = "fpext" if b.itemsize > a.itemsize else "fptrunc"
        elif dtypes.is_float(a):
            sign = "u" if dtypes.is_unsigned(b) else "s"
            name = f"llvm.fpto{sign}i.sat.{_mangled(target)}.{_mangled(source)}"
            return self.call("cast", name, to_kind, [(from_kind, value)])
        elif dtypes.is_float(b):
            instruction = "uitofp" if a is dtypes.bool or dtypes.is_unsigned(a) else "sitofp"
        elif a is dtypes.bool:
            instruction = "zext"
        elif b.itemsize == a.itemsize:
            return value  # signed and unsigned of a width are one type here
        elif b.itemsize < a.itemsize:
            instruction = "trunc"
        else:
            instruction = "zext" if dtypes.is_unsigned(a) else "sext"
        return self.let("cast", f"{instruction} {from_kind} {value} to {to_kind}")

    def _round_to_odd(self, value: str, count: int) -> str:
        """float64 → float32 cut off, the last bit set if anything was cut: to half is then one rounding."""
        double, single, word = (
            dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.uint32.vec(count),
        )  # fmt: skip
        f64, f32, i32 = _type(double), _type(single), _type(word)
        i1 = _type(dtypes.bool.vec(count))
        near = self.let("cast", f"fptrunc {f64} {value} to {f32}")
        back = self.let("cast", f"fpext {f32} {near} to {f64}")
        size = self.call("cast", f"llvm.fabs.{_mangled(double)}", f64, [(f64, value)])
        back_size = self.call("cast", f"llvm.fabs.{_mangled(double)}", f64, [(f64, back)])
        above = self.let("cast", f"fcmp ogt {f64} {back_size}, {size}")
        inexact = self.let("cast", f"fcmp one {f64} {back_size}, {size}")
        bits = self.let("cast", f"bitcast {f32} {near} to {i32}")
        step = self.let("cast", f"zext {i1} {above} to {i32}")
        cut = self.let("cast", f"sub {i32} {bits}, {step}")
        sticky = self.let("cast", f"zext {i1} {inexact} to {i32}")
        odd = self.let("cast", f"or {i32} {cut}, {sticky}")
        return self.let("cast", f"bitcast {i32} {odd} to {f32}")

    def bitcast(self, node: UOp) -> None:
        source, target = node.src[0].dtype, node.dtype
        value, from_kind, to_kind = self.of(node.src[0]), _type(source), _type(target)
        if source.scalar_type is dtypes.bool and target.scalar_type is not dtypes.bool:
            value = self.let("cast", f"zext {from_kind} {value} to {to_kind}")
        elif target.scalar_type is dtypes.bool and source.scalar_type is not dtypes.bool:
            value = self.let("cast", f"icmp ne {from_kind} {value}, {_zero(source)}")
        elif from_kind != to_kind:
            value = self.let("cast", f"bitcast {from_kind} {value} to {to_kind}")
        self.value[node] = value

    # *** vectors

    def vectorize(self, node: UOp) -> None:
        kind, scalar = _type(node.dtype), _type(node.dtype.scalar_type)
        if all(s.op is Ops.CONST for s in node.src):
            lanes = tuple(s.arg for s in node.src)
            self.value[node] = _const_text(lanes, node.dtype)
            return
        first = node.src[0]
        if all(s is first for s in node.src):
            single = self.let("alu", f"insertelement {kind} poison, {scalar} {self.of(first)}, i32 0")
            zeros = f"<{node.dtype.count} x i32> zeroinitializer"
            self.value[node] = self.let("alu", f"shufflevector {kind} {single}, {kind} poison, {zeros}")
            return
        value = "poison"
        for lane, s in enumerate(node.src):
            value = self.let("alu", f"insertelement {kind} {value}, {scalar} {self.of(s)}, i32 {lane}")
        self.value[node] = value

    def lanes(self, node: UOp) -> None:
        source = self.typed(node.src[0])
        if node.src[0].dtype.count == 1:
            self.value[node] = self.of(node.src[0])
        elif len(node.arg) == 1:
            self.value[node] = self.let("alu", f"extractelement {source}, i32 {node.arg[0]}")
        else:
            mask = ", ".join(f"i32 {lane}" for lane in node.arg)
            poison = f"{_type(node.src[0].dtype)} poison"
            text = f"shufflevector {source}, {poison}, <{len(node.arg)} x i32> <{mask}>"
            self.value[node] = self.let("alu", text)

    # *** memory

    def address(self, node: UOp, index: str | None = None) -> str:
        """The address that an INDEX names. `inbounds` only where it is always valid.

        Places that are a constant apart share an address: LLVM then writes the constants into the accesses.
        """
        buffer, position = node.src[0], node.src[1]
        element, kind = _memory_type(buffer.dtype.base), _type(position.dtype)
        if index is None and _is_apart(position):
            base, apart = position.src
            key = (self.block, buffer, base)
            if key not in self.shared:
                at = f"{kind} {self.of(base)}"
                text = f"getelementptr {element}, ptr {self.of(buffer)}, {at}"
                self.shared[key] = self.let("ptr", text)
            return self.let("ptr", f"getelementptr {element}, ptr {self.shared[key]}, i64 {apart.arg}")
        key = (self.block, buffer, position)
        if index is None and key in self.shared:
            return self.shared[key]
        flags = " inbounds" if len(node.src) < 3 or index is not None else ""
        place = index or self.of(position)
        if dtypes.is_unsigned(position.dtype) and position.dtype.itemsize < 8:
            place, kind = self.let("alu", f"zext {kind} {place} to i64"), "i64"
        made = self.let("ptr", f"getelementptr{flags} {element}, ptr {self.of(buffer)}, {kind} {place}")
        return made if index is not None else self.shared.setdefault(key, made)

    def index(self, node: UOp) -> None:
        """Written where it is used: a masked load may want another address."""

    def load(self, node: UOp) -> None:
        index, dtype = node.src[0], node.dtype
        if index.op is not Ops.INDEX:
            raise NotImplementedError(f"a LOAD reads an INDEX, not a {index.op}")
        if len(index.src) < 3:
            self.value[node] = self._load(dtype, self.address(index))
            return
        valid = index.src[2]
        other = self.of(node.src[1]) if len(node.src) > 1 else _zero(dtype)
        if valid.dtype.count > 1:
            self.value[node] = self._masked_load(node, other)
            return
        size = index.src[0].dtype.size if isinstance(index.src[0].dtype, PtrDType) else -1
        if size >= dtype.count:  # the buffer's start can always be read, and that needs no branch
            safe = self.of(index.src[1])
            if not _is_start_elsewhere(index.src[1], valid):
                kind = _type(index.src[1].dtype)
                safe = self.let("alu", f"select i1 {self.of(valid)}, {kind} {safe}, {kind} 0")
            loaded = self._load(dtype, self.address(index, safe))
            self.value[node] = self.let("val", self._select(self.of(valid), dtype, loaded, other, False))
            return
        before, inside, after = self.block, self.names.fresh("load"), self.names.fresh("loaded")
        self.emit(f"br i1 {self.of(valid)}, label %{inside}, label %{after}")
        self.label(inside)
        loaded = self._load(dtype, self.address(index))
        self.emit(f"br label %{after}")
        self.label(after)
        self.value[node] = self.let(
            "val", f"phi {_type(dtype)} [ {other}, %{before} ], [ {loaded}, %{inside} ]"
        )

    def _load(self, dtype: DType, address: str) -> str:
        align = dtype.scalar_type.itemsize
        value = self.let("val", f"load {_memory_type(dtype)}, ptr {address}, align {align}")
        return self._from_memory(value, dtype)

    def _from_memory(self, value: str, dtype: DType) -> str:
        if dtype.scalar_type is not dtypes.bool:
            return value
        return self.let("val", f"icmp ne {_memory_type(dtype)} {value}, zeroinitializer")

    def _to_memory(self, value: str, dtype: DType) -> str:
        if dtype.scalar_type is not dtypes.bool:
            return value
        return self.let("cast", f"zext {_type(dtype)} {value} to {_memory_type(dtype)}")

    def _masked_load(self, node: UOp, other: str) -> str:
        index, dtype = node.src[0], node.dtype
        kind, align = _memory_type(dtype), dtype.scalar_type.itemsize
        arguments = [
            ("ptr", self.address(index)), ("i32", str(align)),
            (_type(index.src[2].dtype), self.of(index.src[2])), (kind, self._to_memory(other, dtype)),
        ]  # fmt: skip
        value = self.call("val", f"llvm.masked.load.{_mangled(dtype, memory=True)}.p0", kind, arguments)
        return self._from_memory(value, dtype)

    def store(self, node: UOp) -> None:
        index, value = node.src
        dtype = value.dtype
        kind, align = _memory_type(dtype), dtype.scalar_type.itemsize
        stored = self._to_memory(self.of(value), dtype)
        if len(index.src) < 3:
            self.emit(f"store {kind} {stored}, ptr {self.address(index)}, align {align}")
            return
        valid = index.src[2]
        lane = _only_lane(valid)
        if lane is not None:
            element, kind = kind, _memory_type(dtype.scalar_type)
            one = self.let("alu", f"extractelement {element} {stored}, i32 {lane}")
            place = self.let("ptr", f"getelementptr {kind}, ptr {self.address(index)}, i64 {lane}")
            self.emit(f"store {kind} {one}, ptr {place}, align {align}")
            return
        if valid.dtype.count > 1:
            arguments = [
                (kind, stored), ("ptr", self.address(index)), ("i32", str(align)),
                (_type(valid.dtype), self.of(valid)),
            ]  # fmt: skip
            name = f"llvm.masked.store.{_mangled(dtype, memory=True)}.p0"
            self._declare(name, "void", arguments)
            self.emit(f"call void @{name}({', '.join(f'{t} {v}' for t, v in arguments)})")
            return
        inside, after = self.names.fresh("store"), self.names.fresh("stored")
        self.emit(f"br i1 {self.of(valid)}, label %{inside}, label %{after}")
        self.label(inside)
        self.emit(f"store {kind} {stored}, ptr {self.address(index)}, align {align}")
        self.emit(f"br label %{after}")
        self.label(after)

    # *** definitions

    def define_global(self, node: UOp) -> None:
        self.value[node] = f"%data{node.arg}"

    def define_var(self, node: UOp) -> None:
        self.value[node] = "%" + variable_name(node.arg[0])

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        base, size = node.dtype.base, node.dtype.size
        if size * base.itemsize > MAX_STACK:
            self.value[node] = self._scratch(-(-size * base.itemsize // 64) * 64)
            return
        name = "%" + self.names.fresh("temp")
        self.allocas.append(f"  {name} = alloca [{size} x {_memory_type(base)}], align 64")
        self.value[node] = name

    def _scratch(self, nbytes: int) -> str:
        """Memory that the calling thread keeps, the next so many bytes of it."""
        name = "%" + self.names.fresh("temp")
        self.scratch.append((name, nbytes))
        return name

    def _taken_scratch(self) -> list[str]:
        """What takes the memory of all tiles at once."""
        if not self.scratch:
            return []
        self.declared[f"declare noalias ptr @{SCRATCH}(i64)"] = None
        total, begin = sum(nbytes for _, nbytes in self.scratch), 0
        lines = [f"  %scratch = call noalias ptr @{SCRATCH}(i64 {total})"]
        for name, nbytes in self.scratch:
            lines.append(f"  {name} = getelementptr inbounds i8, ptr %scratch, i64 {begin}")
            begin += nbytes
        return lines

    def define_acc(self, node: UOp) -> None:
        self.value[node] = self.of(node.src[0])

    def assign(self, node: UOp) -> None:
        self.value[node] = self.value[node.src[0]] = self.of(node.src[1])

    def nothing(self, node: UOp) -> None:
        """Constants are written where they are used; one thread needs no barrier."""

    # *** loops and branches

    def _enter(self, node: UOp) -> _Loop:
        carried = self.carried[node]
        loop = _Loop(carried, self.block, [self.value[acc] for acc in carried])
        self.open.append(loop)
        return loop

    def range(self, node: UOp) -> None:
        name, kind = self.loop_names[node], _type(node.dtype)
        start, end = self.of(node.src[0]), self.of(node.src[-1])
        runs = bounds(node.src[0])[1] < bounds(node.src[-1])[0]
        if _kind(node) is AxisType.THREAD:
            start, end = self._share(node, start, end)
            runs = False
        loop = self._enter(node)
        loop.head, loop.exit, loop.guarded = f"{name}.loop", f"{name}.end", not runs
        if runs:
            self.emit(f"br label %{loop.head}")
        else:
            once = self.let("alu", f"icmp slt {kind} {start}, {end}")
            self.emit(f"br i1 {once}, label %{loop.head}, label %{loop.exit}")
        self.label(loop.head)
        self.value[node] = f"%{name}"
        self._phi(loop, f"%{name}", kind)
        for acc in loop.carried:
            self.value[acc] = "%" + self.names.fresh("acc")
            self._phi(loop, self.value[acc], _type(acc.dtype))
        loop.values = [start, *loop.values]
        loop.end = end

    def _phi(self, loop: _Loop, name: str, kind: str) -> None:
        """A phi node whose second half is known at the end of the loop."""
        loop.phis.append((len(self.lines), name, kind))
        self.lines.append("")

    def _share(self, node: UOp, start: str, end: str) -> tuple[str, str]:
        """This piece's part of a range: from n·piece/pieces up to n·(piece+1)/pieces."""
        kind = _type(node.dtype)
        if start != "0":
            raise NotImplementedError("a THREAD range starts at 0")
        size = end if kind == "i64" else self.let("alu", f"sext {kind} {end} to i64")
        piece = self.let("alu", "sext i32 %piece to i64")
        pieces = self.let("alu", "sext i32 %pieces to i64")
        parts = []
        for which in (piece, self.let("alu", f"add nsw i64 {piece}, 1")):
            product = self.let("alu", f"mul nsw i64 {which}, {size}")
            part = self.let("alu", f"sdiv i64 {product}, {pieces}")
            parts.append(part if kind == "i64" else self.let("alu", f"trunc i64 {part} to {kind}"))
        return parts[0], parts[1]

    def end_range(self, node: UOp) -> None:
        loop = self.open.pop()
        _, counter, kind = loop.phis[0]
        following = self.let("alu", f"add nsw {kind} {counter}, 1")
        more = self.let("alu", f"icmp slt {kind} {following}, {loop.end}")
        latch = self.block
        self.emit(f"br i1 {more}, label %{loop.head}, label %{loop.exit}")
        updated = [following, *(self.value[acc] for acc in loop.carried)]
        for (line, name, of), first, later in zip(loop.phis, loop.values, updated, strict=True):
            self.lines[line] = f"  {name} = phi {of} [ {first}, %{loop.before} ], [ {later}, %{latch} ]"
        self.label(loop.exit)
        if loop.guarded:
            self._merge(loop.carried, loop.values[1:], loop.before, latch)

    def _merge(self, accs: Sequence[UOp], values: Sequence[str], before: str, inside: str) -> None:
        """After what may have been skipped: the accumulators as they were, or as they became."""
        for acc, value in zip(accs, values, strict=True):
            self.value[acc] = self.let(
                "acc", f"phi {_type(acc.dtype)} [ {value}, %{before} ], [ {self.value[acc]}, %{inside} ]"
            )

    def branch(self, node: UOp) -> None:
        loop = self._enter(node)
        loop.head = self.names.fresh("if")
        loop.exit = f"{loop.head}.end"
        self.emit(f"br i1 {self.of(node.src[0])}, label %{loop.head}, label %{loop.exit}")
        self.label(loop.head)

    def end_branch(self, node: UOp) -> None:
        loop = self.open.pop()
        inside = self.block
        self.emit(f"br label %{loop.exit}")
        self.label(loop.exit)
        self._merge(loop.carried, loop.values, loop.before, inside)


#: Behind more vectors than this a lane of zero is taken for possible.
_LOOKED_AT = 100


def _has_zero_lanes(divisor: UOp) -> bool:
    """Whether LLVM may know lanes of a divisor to be zero: those that a mask or padding left out.

    LLVM (seen in 22) then takes 0/0 for 0 in such lanes of an `fdiv`, and drops the `select` that keeps
    its NaN away. Of a division that names its rounding it makes no such assumption; the code is the same.
    """
    todo, seen = [divisor], {divisor}
    while todo and len(seen) <= _LOOKED_AT:
        node = todo.pop()
        if node.op is Ops.CONST:
            lanes = node.arg if isinstance(node.arg, tuple) else (node.arg,)
            if node.dtype.count > 1 and dtypes.is_float(node.dtype) and not all(lanes):
                return True
        elif node.op is Ops.VECTORIZE:
            if any(lane.op is Ops.CONST and not lane.arg for lane in node.src):
                return True
        elif node.op is Ops.LOAD:
            if node.dtype.count > 1 and (len(node.src) > 1 or len(node.src[0].src) > 2):
                return True
        else:
            below = [s for s in node.src if s.dtype.count > 1 and s not in seen]
            todo += below
            seen.update(below)
    return len(seen) > _LOOKED_AT


Writer = Callable[[_Function, UOp], None]
_WRITERS: dict[Ops, Writer] = {
    **dict.fromkeys({*_FLOAT_OPS, *_SIGNED_OPS, *COMPARISONS, Ops.MAX, Ops.MIN}, _Function.alu),
    **dict.fromkeys((Ops.SHL, Ops.SHR), _Function.shift),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.MULACC), _Function.function),
    **dict.fromkeys((Ops.CONST, Ops.BARRIER, Ops.NOOP, Ops.SINK), _Function.nothing),
    Ops.NEG: _Function.negate,
    Ops.RECIP: _Function.reciprocal,
    Ops.WHERE: _Function.where,
    Ops.DOT: _Function.dot,
    Ops.CAST: _Function.cast,
    Ops.BITCAST: _Function.bitcast,
    Ops.VECTORIZE: _Function.vectorize,
    Ops.GEP: _Function.lanes,
    Ops.INDEX: _Function.index,
    Ops.LOAD: _Function.load,
    Ops.STORE: _Function.store,
    Ops.DEFINE_GLOBAL: _Function.define_global,
    Ops.DEFINE_VAR: _Function.define_var,
    Ops.DEFINE_LOCAL: _Function.define_local,
    Ops.DEFINE_ACC: _Function.define_acc,
    Ops.ASSIGN: _Function.assign,
    Ops.RANGE: _Function.range,
    Ops.ENDRANGE: _Function.end_range,
    Ops.IF: _Function.branch,
    Ops.ENDIF: _Function.end_branch,
}


# *** types and constants


def _kind(node: UOp) -> AxisType:
    kind: AxisType = node.arg.kind
    return kind


def _type(dtype: DType) -> str:
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = _TYPES.get(dtype.scalar_type)
    if scalar is None:
        raise NotImplementedError(f"LLVM IR has no {dtype!r}: legalize replaces it")
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def _memory_type(dtype: DType) -> str:
    """A bool is a byte in memory."""
    return _type(dtypes.uint8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype)


def _mangled(dtype: DType, memory: bool = False) -> str:
    scalar = (_memory_type if memory else _type)(dtype.scalar_type)
    return (f"v{dtype.count}" if dtype.count > 1 else "") + _MANGLED.get(scalar, scalar)


def _only_lane(mask: UOp) -> int | None:
    """The lane of a mask in which alone it holds; None where there are others, or it is no constant.

    LLVM 22 makes a masked store of one lane a store of a scalar, and forgets there that its value was
    truncated: a byte is written as four, three of them beside it. So such a store is written without a mask.
    """
    lanes = [n for n, holds in enumerate(mask.arg) if holds] if isinstance(mask.arg, tuple) else []
    return lanes[0] if mask.op is Ops.CONST and len(lanes) == 1 else None


def _splat(text: str, dtype: DType) -> str:
    return text if dtype.count == 1 else f"splat ({_type(dtype.scalar_type)} {text})"


def _zero(dtype: DType) -> str:
    if dtype.count > 1:
        return "zeroinitializer"
    return "0.0" if dtypes.is_float(dtype) else "false" if dtype.scalar_type is dtypes.bool else "0"


def _const(node: UOp) -> str:
    return _const_text(node.arg, node.dtype)


def _const_text(value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
    if not isinstance(value, tuple):
        return _splat(_number(value, dtype.scalar_type), dtype)
    lanes = [_number(lane, dtype.scalar_type) for lane in value]
    if len(set(lanes)) == 1:
        return _splat(lanes[0], dtype)
    return "<" + ", ".join(f"{_type(dtype.scalar_type)} {lane}" for lane in lanes) + ">"


def _number(value: ConstType, dtype: DType) -> str:
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if not dtypes.is_float(dtype):
        return str(int(value))
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        if dtype is dtypes.float16:
            return "0xH7E00" if number != number else "0xH7C00" if number > 0 else "0xHFC00"
        return (
            "0x7FF8000000000000" if number != number
            else "0x7FF0000000000000" if number > 0
            else "0xFFF0000000000000"
        )  # fmt: skip
    # A float32 or half is exact as the float64 whose digits these are; LLVM wants a point in the mantissa.
    mantissa, exponent_mark, exponent = repr(number).partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent_mark + exponent


def _has_nan(node: UOp) -> bool:
    values = node.arg if isinstance(node.arg, tuple) else (node.arg,)
    return any(value != value for value in values)


def _wraps(node: UOp) -> str:
    """` nsw` where bounds prove that nothing wraps: LLVM then widens loop counters to addresses."""
    dtype = node.dtype
    if dtype not in (dtypes.int32, dtypes.int64):
        return ""
    (a, b), (c, d) = (bounds(s) for s in node.src)
    if node.op is Ops.ADD:
        reached = (a + c, b + d)
    elif node.op is Ops.SUB:
        reached = (a - d, b - c)
    elif node.op is Ops.MUL:
        reached = (a * c, a * d, b * c, b * d)  # type: ignore[assignment]
    elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
        reached = (a << c, b << c)
    else:
        return ""
    return " nsw" if dtypes.min(dtype) <= min(reached) and max(reached) <= dtypes.max(dtype) else ""


def _is_apart(position: UOp) -> bool:
    """Whether a place is a constant away from another, in numbers that do not wrap."""
    return position.op is Ops.ADD and position.src[1].op is Ops.CONST and _wraps(position) != ""


def _is_start_elsewhere(position: UOp, valid: UOp) -> bool:
    """Whether a place is 0 wherever it is not valid."""
    return (
        position.op is Ops.WHERE
        and position.src[0] is valid
        and position.src[2].op is Ops.CONST
        and position.src[2].arg == 0
    )


def _only_in_addresses(uops: Sequence[UOp]) -> set[UOp]:
    """The sums that nothing asks for but `address`, which writes their parts."""
    found, others = set[UOp](), set[UOp]()
    for node in uops:
        masked_whole = node.op is Ops.INDEX and len(node.src) > 2 and node.src[2].dtype.count == 1
        for place, source in enumerate(node.src):
            if node.op is Ops.INDEX and place == 1 and not masked_whole and _is_apart(source):
                found.add(source)
            else:
                others.add(source)
    return found - others

"""Arithmetic, comparisons, shifts, functions: an instruction or intrinsic for each op."""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.index import bounds
from ...ir.ops import COMPARISONS, Ops
from ...ir.uop import UOp
from .places import wraps
from .text import Text
from .types import has_nan, mangled, splat, type_text

FLOAT_OPS = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
SIGNED_OPS = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.IDIV: "sdiv", Ops.MOD: "srem",
    Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
}  # fmt: skip
_UNSIGNED_OPS = {**SIGNED_OPS, Ops.IDIV: "udiv", Ops.MOD: "urem"}
#: Arithmetic on bools is logic.
BOOL_OPS = {
    Ops.ADD: "or", Ops.SUB: "xor", Ops.MUL: "and", Ops.MAX: "or", Ops.MIN: "and",
    Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
}  # fmt: skip
_COMPARE_FLOAT = {Ops.CMPLT: "olt", Ops.CMPLE: "ole", Ops.CMPEQ: "oeq", Ops.CMPNE: "une"}
_COMPARE_SIGNED = {Ops.CMPLT: "slt", Ops.CMPLE: "sle", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
_COMPARE_UNSIGNED = {Ops.CMPLT: "ult", Ops.CMPLE: "ule", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}


class Arithmetic(Text):
    """What ops mean here is what the op table says, on every input."""

    def alu(self, node: UOp) -> None:
        if node in self.unwritten:
            return
        op, dtype = node.op, node.src[-1].dtype
        scalar, kind = dtype.scalar_type, type_text(dtype)
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
            FLOAT_OPS if dtypes.is_float(scalar)
            else BOOL_OPS if scalar is dtypes.bool
            else _UNSIGNED_OPS if dtypes.is_unsigned(scalar)
            else SIGNED_OPS
        )  # fmt: skip
        if op not in table:
            raise NotImplementedError(f"LLVM IR has no {op} on {dtype!r}: legalize replaces it")
        if op is Ops.FDIV:
            self.value[node] = self.divided(node.src[1], kind, first, second)
            return
        self.value[node] = self.let("alu", f"{table[op]}{wraps(node)} {kind} {first}, {second}")

    def divided(self, divisor: UOp, kind: str, first: str, second: str) -> str:
        """A quotient; `second` is the divisor, or its size."""
        if not _has_zero_lanes(divisor):
            return self.let("alu", f"fdiv {kind} {first}, {second}")
        rules = [("metadata", '!"round.tonearest"'), ("metadata", '!"fpexcept.ignore"')]
        name = f"llvm.experimental.constrained.fdiv.{mangled(divisor.dtype)}"
        return self.call("alu", name, kind, [(kind, first), (kind, second), *rules])

    def _extremum(self, node: UOp) -> str:
        """As the op table: the first of two equals, NaN if either is NaN."""
        dtype = node.dtype
        kind, (first, second) = type_text(dtype), (self.of(s) for s in node.src)
        greater = node.op is Ops.MAX
        if not dtypes.is_float(dtype):
            sign = "u" if dtypes.is_unsigned(dtype) else "s"
            name = f"llvm.{sign}{'max' if greater else 'min'}.{mangled(dtype)}"
            return self.call("alu", name, kind, [(kind, first), (kind, second)])
        better = self.let("alu", f"fcmp {'ogt' if greater else 'olt'} {kind} {second}, {first}")
        choice = self.let("alu", self.select(better, dtype, second, first))
        if node.src[1].op is Ops.CONST and not has_nan(node.src[1]):
            return choice
        missing = self.let("alu", f"fcmp uno {kind} {second}, {second}")
        return self.let("alu", self.select(missing, dtype, second, choice))

    def shift(self, node: UOp) -> None:
        """By the width or more: 0, or all sign bits for a signed `>>`."""
        value, amount = node.src
        dtype, kind = node.dtype, type_text(node.dtype)
        width = dtype.scalar_type.itemsize * 8
        arithmetic = node.op is Ops.SHR and not dtypes.is_unsigned(dtype)
        instruction = "shl" if node.op is Ops.SHL else "ashr" if arithmetic else "lshr"
        by = self.of(amount)
        low, high = bounds(amount)
        if low >= 0 and high < width:
            self.value[node] = self.let("alu", f"{instruction}{wraps(node)} {kind} {self.of(value)}, {by}")
            return
        limit = splat(str(width - 1), dtype)
        clamped = self.call("alu", f"llvm.umin.{mangled(dtype)}", kind, [(kind, by), (kind, limit)])
        shifted = self.let("alu", f"{instruction} {kind} {self.of(value)}, {clamped}")
        if not arithmetic:
            inside = self.let("alu", f"icmp ule {kind} {by}, {limit}")
            shifted = self.let("alu", self.select(inside, dtype, shifted, splat("0", dtype)))
        self.value[node] = shifted

    def negate(self, node: UOp) -> None:
        dtype, kind, x = node.dtype, type_text(node.dtype), self.of(node.src[0])
        if dtypes.is_float(dtype):
            text = f"fneg {kind} {x}"
        elif dtypes.is_bool(dtype):
            text = f"xor {kind} {x}, {splat('true', dtype)}"
        else:
            text = f"sub {kind} {splat('0', dtype)}, {x}"
        self.value[node] = self.let("alu", text)

    def reciprocal(self, node: UOp) -> None:
        dtype = node.dtype
        one = splat("1.0", dtype)
        self.value[node] = self.let("alu", f"fdiv {type_text(dtype)} {one}, {self.of(node.src[0])}")

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
                self.let("cast", f"fpext {type_text(node.dtype)} {value} to {type_text(dtype)}")
                for value in values
            ]
        kind = type_text(dtype)
        result = self.call("alu", f"{name}.{mangled(dtype)}", kind, [(kind, value) for value in values])
        if half:
            result = self.let("cast", f"fptrunc {kind} {result} to {type_text(node.dtype)}")
        self.value[node] = result

    def where(self, node: UOp) -> None:
        condition, yes, no = node.src
        if not self.target.has_masks and _is_place(
            condition
        ):  # LLVM makes it a jump, where it blends vectors
            condition = condition.src[0]
        lanes = condition.dtype.count > 1
        self.value[node] = self.let(
            "alu", self.select(self.of(condition), node.dtype, self.of(yes), self.of(no), lanes)
        )


#: Operations of which a condition on places is made: no data has part in it.
_OF_PLACES = {Ops.CONST, Ops.RANGE, Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL, Ops.CMPLT, Ops.CMPNE, Ops.AND, Ops.OR}
#: Conditions of more of them are not looked at.
_FEW = 40


def _is_place(condition: UOp) -> bool:
    """Whether all lanes share one condition, which only the places in loops decide."""
    if condition.op is not Ops.VECTORIZE or any(lane is not condition.src[0] for lane in condition.src):
        return False
    todo = [condition.src[0]]
    for _ in range(_FEW):
        if not todo:
            return True
        node = todo.pop()
        if node.op not in _OF_PLACES:
            return False
        todo += node.src
    return False


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

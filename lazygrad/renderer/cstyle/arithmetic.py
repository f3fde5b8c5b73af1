"""Arithmetic, comparisons, shifts, functions: an expression for each op."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.index import bounds
from ...ir.ops import COMPARISONS, OPS, Ops
from ...ir.uop import UOp
from .remainder import remainder
from .text import MASKS, Text

BITS = {Ops.AND, Ops.OR, Ops.XOR}
#: Ops whose result may leave the range of a type narrower than int, to which C promotes.
_GROWING = frozenset((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.SHL, Ops.IDIV))
_SYMBOLS = {
    **{
        op: OPS[op].symbol
        for op in (*COMPARISONS, *BITS, Ops.ADD, Ops.SUB, Ops.MUL, Ops.MOD, Ops.SHL, Ops.SHR)
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
#: What may leave the range of its type, as an operator.
_OVERFLOWING = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.NEG: "-"}
UNSIGNED = {4: dtypes.uint32, 8: dtypes.uint64}


class Arithmetic(Text):
    """What ops mean here is what the op table says, on every input."""

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

    def remainder(self, node: UOp) -> str:
        first, second = (self.of(s) for s in node.src)
        return f"{remainder(self.functions, node.dtype)}({first},{second})"

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

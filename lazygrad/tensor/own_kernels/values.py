"""What a kernel's function computes with: indices and elements, as symbols with Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

from ...dtype import DType, default_float, default_int, dtypes, least_upper_dtype, to_dtype
from ...ir.index import as_index
from ...ir.ops import ALU, COMPARISONS, Ops
from ...ir.uop import UOp
from .recording import Block, KernelError, recorder

Number = bool | int | float


class Computed:
    """What can be computed with: a Value, or memory of one element, which gives its value of that moment."""

    def _value(self) -> Value:
        raise NotImplementedError

    # *** arithmetic

    def __add__(self, other: Any) -> Value:
        return binary(Ops.ADD, self, other)

    def __radd__(self, other: Any) -> Value:
        return binary(Ops.ADD, other, self)

    def __sub__(self, other: Any) -> Value:
        return binary(Ops.SUB, self, other)

    def __rsub__(self, other: Any) -> Value:
        return binary(Ops.SUB, other, self)

    def __mul__(self, other: Any) -> Value:
        return binary(Ops.MUL, self, other)

    def __rmul__(self, other: Any) -> Value:
        return binary(Ops.MUL, other, self)

    def __truediv__(self, other: Any) -> Value:
        return divided(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return divided(other, self)

    def __floordiv__(self, other: Any) -> Value:
        return whole_quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Value:
        return whole_quotient(other, self)

    def __mod__(self, other: Any) -> Value:
        return remainder(self, other)

    def __rmod__(self, other: Any) -> Value:
        return remainder(other, self)

    def __pow__(self, other: Any) -> Value:
        return power(self, other)

    def __rpow__(self, other: Any) -> Value:
        return power(other, self)

    def __neg__(self) -> Value:
        return value_of(self).unary(Ops.NEG)

    def __pos__(self) -> Value:
        return value_of(self)

    def __abs__(self) -> Value:
        return self.abs()

    def __and__(self, other: Any) -> Value:
        return binary(Ops.AND, self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Value:
        return binary(Ops.OR, self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Value:
        return binary(Ops.XOR, self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Value:
        value = value_of(self)
        if value.dtype is dtypes.bool:
            return binary(Ops.CMPNE, value, True)
        return binary(Ops.XOR, value, -1)

    def __lshift__(self, other: Any) -> Value:
        return binary(Ops.SHL, self, other)

    def __rshift__(self, other: Any) -> Value:
        return binary(Ops.SHR, self, other)

    # *** comparison

    def __lt__(self, other: Any) -> Value:
        return binary(Ops.CMPLT, self, other)

    def __le__(self, other: Any) -> Value:
        return binary(Ops.CMPLE, self, other)

    def __gt__(self, other: Any) -> Value:
        return binary(Ops.CMPLT, other, self)

    def __ge__(self, other: Any) -> Value:
        return binary(Ops.CMPLE, other, self)

    def __eq__(self, other: Any) -> Value:
        return binary(Ops.CMPEQ, self, other)

    def __ne__(self, other: Any) -> Value:
        return binary(Ops.CMPNE, self, other)

    __hash__ = object.__hash__

    # *** functions

    def cast(self, dtype: DType | str) -> Value:
        """The value in another dtype."""
        wanted = to_dtype(dtype)
        value = value_of(self)
        return value if value.dtype is wanted else value.like(value.node.cast(wanted))

    def exp(self) -> Value:
        return _floats(self).unary(Ops.EXP)

    def exp2(self) -> Value:
        return _floats(self).unary(Ops.EXP2)

    def log(self) -> Value:
        return _floats(self).unary(Ops.LOG)

    def log2(self) -> Value:
        return _floats(self).unary(Ops.LOG2)

    def sqrt(self) -> Value:
        return _floats(self).unary(Ops.SQRT)

    def rsqrt(self) -> Value:
        return 1.0 / self.sqrt()

    def sin(self) -> Value:
        return _floats(self).unary(Ops.SIN)

    def cos(self) -> Value:
        return _floats(self).unary(Ops.COS)

    def tanh(self) -> Value:
        return _floats(self).unary(Ops.TANH)

    def erf(self) -> Value:
        return _floats(self).unary(Ops.ERF)

    def sigmoid(self) -> Value:
        return 1.0 / (1.0 + (-_floats(self)).exp())

    def relu(self) -> Value:
        return self.maximum(0)

    def abs(self) -> Value:
        value = value_of(self)
        return where(value < 0, -value, value + 0 if dtypes.is_float(value.dtype) else value)

    def trunc(self) -> Value:
        value = value_of(self)
        return value.unary(Ops.TRUNC) if dtypes.is_float(value.dtype) else value

    def floor(self) -> Value:
        value, whole = value_of(self), self.trunc()
        return where(value < whole, whole - 1, whole) if dtypes.is_float(value.dtype) else value

    def ceil(self) -> Value:
        return -((-value_of(self)).floor())

    def maximum(self, other: Any) -> Value:
        return binary(Ops.MAX, self, other)

    def minimum(self, other: Any) -> Value:
        return binary(Ops.MIN, self, other)

    def clip(self, least: Any, greatest: Any) -> Value:
        return self.maximum(least).minimum(greatest)

    # *** what Python asks of a number that only the kernel knows

    def __bool__(self) -> bool:
        self._refuse(
            "a condition that only the kernel knows",
            "`with kernel.when(c)`, or kernel.where(c, a, b); `&`, `|`, `~` in place of `and`, `or`, `not`",
        )

    def __index__(self) -> int:
        self._refuse("an index that only the kernel knows", "loop with `for i in kernel.range(n)`")

    def __int__(self) -> int:
        self._refuse("a number that only the kernel knows", "use .cast(dtypes.int32)")

    def __float__(self) -> float:
        self._refuse("a number that only the kernel knows", "use .cast(dtypes.float32)")

    def __iter__(self) -> Any:
        self._refuse("one element", "index an array, and loop with kernel.range")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise KernelError(f"Python cannot take {what} here: {instead}")


class Value(Computed):
    """A number of one place of the kernel: an index, an element, or what is computed of them.

    node   its node: index arithmetic, of dtype `index`, or a value
    block  the innermost loop or branch that it depends on: it is known there only
    """

    __slots__ = ("block", "node")

    def __init__(self, node: UOp, block: Block) -> None:
        self.node, self.block = node, block

    @property
    def dtype(self) -> DType:
        return self.node.dtype

    def _value(self) -> Value:
        return self

    def like(self, node: UOp) -> Self:
        """Another value of the same block."""
        return type(self)(node, self.block)

    def unary(self, op: Ops) -> Self:
        return self.like(checked(self).node.alu(op))

    def __repr__(self) -> str:
        kind = "index" if self.dtype is dtypes.index else repr(self.dtype)
        return f"<{kind} of kernel {recorder().name}>"


def checked(value: Value) -> Value:
    """A value that is known here."""
    if not value.block.open:
        kind = "loop" if value.block.kind is not None else "`when`"
        raise KernelError(
            f"a value of the {kind} at {value.block.line} is used after it has ended: "
            "keep it in `r = kernel.local(0.0)`, set by `r.set(value)` inside"
        )
    return value


def value_of(x: Any, beside: DType | None = None) -> Value:
    """Anything to compute with as a Value; a number takes the dtype of what it stands beside."""
    if isinstance(x, Computed):
        return checked(x._value())
    if isinstance(x, (bool, int, float)):
        return Value(UOp.const(_weak(x, beside), x), recorder().root)
    raise KernelError(
        f"a kernel computes with elements, indices and numbers, not with {type(x).__name__}: {_shown(x)}"
    )


def _shown(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _weak(x: Number, beside: DType | None) -> DType:
    """The dtype of a bare number beside a value."""
    if beside is None:
        return (
            dtypes.bool if isinstance(x, bool) else default_int() if isinstance(x, int) else default_float()
        )
    if isinstance(x, bool):
        return beside
    if isinstance(x, int):
        return default_int() if beside is dtypes.bool else beside
    return beside if dtypes.is_float(beside) else default_float()


def pair(a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands in their common dtype."""
    if isinstance(a, (bool, int, float)):
        right = value_of(b)
        left = value_of(a, right.dtype)
    else:
        left = value_of(a)
        right = value_of(b, left.dtype)
    common = common_dtype(left.dtype, right.dtype)
    return left.like(_as(left.node, common)), right.like(_as(right.node, common))


def common_dtype(a: DType, b: DType) -> DType:
    """The dtype in which two values meet."""
    if a is b:
        return a
    if dtypes.index in (a, b):  # an index beside a whole number is an index
        other = b if a is dtypes.index else a
        return other if dtypes.is_float(other) or other.itemsize == 8 else dtypes.index
    return least_upper_dtype(a, b)


def _as(node: UOp, dtype: DType) -> UOp:
    if node.dtype is dtype:
        return node
    if dtype is dtypes.index:
        return UOp.const(dtype, int(node.arg)) if node.op is Ops.CONST else as_index(node)
    if node.op is Ops.CONST:
        return UOp.const(dtype, node.arg)
    return node.cast(dtype)


#: No array has so many elements along an axis.
FAR = 1 << 40


def index_of(value: Value) -> UOp:
    """A whole number as an index. One of 64 bits that is far outside of any array stays outside."""
    node = value.node
    if node.dtype is dtypes.index or node.dtype.itemsize < 8:
        return as_index(node)
    if dtypes.is_unsigned(node.dtype):
        return as_index(node.minimum(FAR).cast(dtypes.int64))
    return as_index(node.maximum(-FAR).minimum(FAR))


def deeper(*values: Value) -> Block:
    """The innermost of the blocks that values belong to: all are open, so they stand in one another."""
    return max((value.block for value in values), key=lambda block: block.depth)


def made(node: UOp, *of: Value) -> Value:
    """What is computed of values."""
    return Value(node, deeper(*of))


_WHOLE_ONLY = frozenset((Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR))


def binary(op: Ops, a: Any, b: Any) -> Value:
    """`op` of two operands in their common dtype."""
    left, right = pair(a, b)
    if op in _WHOLE_ONLY:
        if dtypes.is_float(left.dtype):
            raise KernelError(f"&, |, ^, << and >> are for whole numbers and bools, not {left.dtype}")
        left, right = _plain(left), _plain(right)
    elif (
        op in ALU
        and op not in COMPARISONS
        and left.dtype is dtypes.bool
        and op in (Ops.SUB, Ops.ADD, Ops.MUL)
    ):
        left, right = left.cast(default_int()), right.cast(default_int())
    return made(left.node.alu(op, right.node), left, right)


def _plain(value: Value) -> Value:
    """An index as a number of int64."""
    return value.like(value.node.cast(dtypes.int64)) if value.dtype is dtypes.index else value


def _floats(x: Any) -> Value:
    value = value_of(x)
    return value if dtypes.is_float(value.dtype) else value.cast(default_float())


def divided(a: Any, b: Any) -> Value:
    left, right = pair(a, b)
    if not dtypes.is_float(left.dtype):
        left, right = left.cast(default_float()), right.cast(default_float())
    return made(left.node.alu(Ops.FDIV, right.node), left, right)


def whole_quotient(a: Any, b: Any) -> Value:
    """Rounded down, as Python's `//`."""
    left, right = pair(a, b)
    if dtypes.is_float(left.dtype):
        return (left / right).floor()
    if left.dtype is dtypes.index and not _is_positive(right.node):
        left, right = _plain(left), _plain(right)
    return made(left.node.alu(Ops.IDIV, right.node), left, right)


def remainder(a: Any, b: Any) -> Value:
    """With the sign of the divisor, as Python's `%`."""
    left, right = pair(a, b)
    if dtypes.is_float(left.dtype):
        rest = made(left.node.alu(Ops.FMOD, right.node), left, right)
        return where((rest != 0) & ((rest < 0) != (right < 0)), rest + right, rest)
    if left.dtype is dtypes.index and not _is_positive(right.node):
        left, right = _plain(left), _plain(right)
    return made(left.node.alu(Ops.MOD, right.node), left, right)


def _is_positive(node: UOp) -> bool:
    return node.op is Ops.CONST and node.arg > 0


def power(a: Any, b: Any) -> Value:
    if isinstance(b, int) and not isinstance(b, bool) and 0 <= b <= 8:
        value = value_of(a)
        result = value_of(1, value.dtype) if b == 0 else value
        for _ in range(b - 1):
            result = result * value
        return result
    left, right = pair(a, b)
    left, right = _floats(left), _floats(right)
    return made(left.node.alu(Ops.POW, right.node), left, right)


def where(condition: Any, yes: Any, no: Any) -> Value:
    """`yes` where the condition holds, else `no`: both are computed; a load outside gives 0."""
    if isinstance(condition, bool):
        return value_of(yes) if condition else value_of(no)
    asked = as_condition(condition)
    left, right = pair(yes, no)
    return made(asked.node.where(left.node, right.node), asked, left, right)


def as_condition(condition: Any) -> Value:
    """A bool; of a number, whether it is not 0."""
    value = value_of(condition)
    return value if value.dtype is dtypes.bool else value != 0


def function(name: str) -> Callable[[Any], Value]:
    """A method of Values as a function, which takes numbers too."""

    def call(x: Any) -> Value:
        found: Value = getattr(value_of(x), name)()
        return found

    call.__name__ = name
    return call

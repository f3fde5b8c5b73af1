"""Mixed expressions: tensors with numbers, arrays and lists in both orders, against PyTorch.

A program begins with a tensor and meets one operand after another, by an operator or by a function of numpy.
What comes out is a Tensor of PyTorch's values and dtype, and has its gradient. Numbers of numpy, and arrays
without axes, are weak as Python's are; PyTorch gets them as such.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lazygrad import Tensor, dtypes
from lazygrad.dtype import DType
from tests.fuzz.harness import fuzzed
from tests.helpers import needs, require

pytestmark = needs("torch")

INTS = ["int8", "int16", "int32", "int64", "uint8"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
EVERY = ["bool", *INTS, *FLOATS]
WIDE = ["uint16", "uint32", "uint64"]  #: of which PyTorch makes none
SCALARS = ["bool_", *INTS, "uint16", "float16", "float32", "float64", "longdouble"]
#: An operator → its name in numpy.
OPERATORS = dict(
    add="add",
    sub="subtract",
    mul="multiply",
    truediv="divide",
    floordiv="floor_divide",
    mod="remainder",
    pow="power",
    matmul="matmul",
    divmod="divmod",
    maximum="maximum",
    minimum="minimum",
    eq="equal",
    ne="not_equal",
    lt="less",
    le="less_equal",
    gt="greater",
    ge="greater_equal",
    and_="bitwise_and",
    or_="bitwise_or",
    xor="bitwise_xor",
    lshift="left_shift",
    rshift="right_shift",
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
JUMPS = (*COMPARISONS, "floordiv", "mod", "divmod", "maximum", "minimum")  # what a last digit may decide
REFUSALS = (TypeError, ValueError, RuntimeError, OverflowError, NotImplementedError)


class Operand:
    """What a tensor meets: a number or a list of Python, a number or an array of numpy, or a Tensor."""

    def __init__(self, kind: str, dtype: str, values: list[Any]) -> None:
        self.kind, self.dtype, self.values = kind, dtype, values

    def __repr__(self) -> str:
        return f"{self.kind}({self.dtype}, {self.values})"

    def mine(self) -> Any:
        number = self.values[0]
        if self.kind == "number":
            return number
        if self.kind == "scalar":
            return getattr(np, self.dtype)(number)
        if self.kind == "array of no axes":
            return np.array(getattr(np, self.dtype)(number))
        if self.kind == "list":
            return self.values
        if self.kind == "array":
            return np.array(self.values, dtype=self.dtype)
        return Tensor(self.values, dtype=self.dtype)

    def theirs(self) -> Any:
        torch = require("torch")
        number = self.values[0]
        if self.kind in ("number", "scalar", "array of no axes"):
            kind = np.dtype(self.dtype).kind if self.kind != "number" else ""
            return {"f": float, "i": int, "u": int, "b": bool, "": lambda value: value}[kind](number)
        if self.kind == "list":
            return torch.tensor(
                self.values,
                dtype=torch.int32 if isinstance(number, int) and not isinstance(number, bool) else None,
            )
        return torch.tensor(self.values, dtype=getattr(torch, self.dtype))


def values_of(draw: Any, dtype: str, count: int) -> list[Any]:
    """Numbers that every type of their kind holds."""
    kind = "b" if dtype.startswith("bool") else "f" if dtype in FLOATS or dtype == "longdouble" else "i"
    if kind == "b":
        return draw(st.lists(st.booleans(), min_size=count, max_size=count))  # type: ignore[no-any-return]
    low = 0 if dtype.startswith("u") else -4
    whole = st.integers(low, 5)
    if kind == "i":
        return draw(st.lists(whole, min_size=count, max_size=count))  # type: ignore[no-any-return]
    return draw(st.lists(whole.map(lambda v: v / 2 + 0.25), min_size=count, max_size=count))  # type: ignore[no-any-return]


@st.composite
def operand(draw: Any) -> Operand:
    kind = draw(
        st.sampled_from(
            ["number", "scalar", "scalar", "array of no axes", "array", "array", "list", "Tensor"]
        )
    )
    if kind == "number":
        dtype = draw(st.sampled_from(["bool", "int32", "float32"]))
        values = values_of(draw, dtype, 1)
        if dtype == "int32" and draw(st.integers(0, 5)) == 0:
            values = [draw(st.sampled_from([300, -1, 2**31, -(2**40), 2**63]))]
        return Operand(kind, dtype, values)
    if kind in ("scalar", "array of no axes"):
        dtype = draw(st.sampled_from(SCALARS))
        values = values_of(draw, dtype, 1)
        if dtype == "int64" and draw(st.integers(0, 3)) == 0:
            values = [draw(st.sampled_from([300, -1, 2**31, -(2**40)]))]
        return Operand(kind, dtype, values)
    dtype = draw(st.sampled_from(["bool", *INTS, "float16", "float32", "float64"]))
    if kind == "Tensor":
        dtype = draw(st.sampled_from(EVERY))
    return Operand(kind, dtype, values_of(draw, dtype, 3))


@st.composite
def program(draw: Any) -> tuple[str, list[Any], bool, list[tuple[str, Operand, bool, bool]]]:
    dtype = draw(st.sampled_from(EVERY))
    wants = dtype in FLOATS and draw(st.booleans())
    count = draw(st.integers(1, 3))
    steps = [
        (draw(st.sampled_from(list(OPERATORS))), draw(operand()), draw(st.booleans()), draw(st.booleans()))
        for _ in range(count)
    ]
    return dtype, values_of(draw, dtype, 3), wants, steps


def applied(op: str, a: Any, b: Any, by_name: bool, numpys: bool) -> Any:
    """One step; for PyTorch, and where numpy's name would not meet a tensor, by the operator."""
    if op in ("maximum", "minimum"):
        if numpys:
            return getattr(np, op)(a, b)
        torch = require("torch")
        a, b = (x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in (a, b))
        return getattr(torch, op)(a, b)
    if op == "divmod":
        if not numpys:
            require("torch")
            return a // b - a % b
        quotient, rest = np.divmod(a, b) if by_name else divmod(a, b)
        return quotient - rest
    if numpys and by_name:
        return getattr(np, OPERATORS[op])(a, b)
    return getattr(operator, op)(a, b)


def undefined(op: str, a: Any, b: Any) -> bool:
    """Where the two do not agree on purpose, and docs/numbers.md says so: division of integers by 0, shifts
    by what is no count, powers of integers that are none, arithmetic of bools."""
    torch = require("torch")
    left, right = (torch.as_tensor(min(x, 2**62) if isinstance(x, int) else x) for x in (a, b))
    if left.dtype == right.dtype == torch.bool and op in ("pow", "floordiv", "mod", "divmod"):
        return True
    if op in ("floordiv", "mod", "divmod", "truediv"):
        return bool((right == 0).any())
    if op in ("lshift", "rshift"):
        return bool(
            (right < 0).any() or (right > 6).any() or left.is_floating_point() or left.dtype == torch.bool
        )
    if op == "pow":
        return bool((right < 0).any() or (left < 0).any() or (left == 0).any())
    return False


def fits(tensor: Tensor, other: Operand) -> bool:
    """Whether an integer that takes the tensor's dtype has a place there."""
    number = other.theirs()
    if isinstance(number, bool) or not isinstance(number, int) or dtypes.is_float(tensor.dtype):
        return True
    kind = tensor.dtype if dtypes.is_int(tensor.dtype) else dtypes.default_int
    return bool(dtypes.min(kind) <= number <= dtypes.max(kind))


def named(dtype: DType) -> str:
    return next(name for name in (*EVERY, *WIDE) if getattr(dtypes, name) is dtype)


def rounding(tensor: Any) -> float:
    """The distance of 1 and the next number of PyTorch's dtype; 0 for whole numbers, which are exact."""
    torch = require("torch")
    return float(torch.finfo(tensor.dtype).eps) if tensor.is_floating_point() else 0.0


def alike(found: Tensor, wanted: Any, weak_int: bool, before: float) -> None:
    """The same values and dtype. `weak_int`: PyTorch's default integer is wider, and its products of matrices
    narrower. `before`: the coarsest rounding on the way, as PyTorch rounds a number over a half twice."""
    theirs = str(wanted.dtype).removeprefix("torch.")
    mine = named(found.dtype)
    if mine != theirs:
        assert weak_int, (mine, theirs)
        assert mine in (*INTS, *WIDE), mine
        assert theirs in INTS, theirs
        found = found.cast(theirs)  # where PyTorch's has wrapped around
    eps = max(rounding(wanted), before) if wanted.is_floating_point() else 0.0
    size = max(1.0, *wanted.detach().double().nan_to_num(0, 0, 0).abs().flatten().tolist())
    np.testing.assert_allclose(
        found.cast("float64").numpy(),
        wanted.detach().double().numpy(),
        rtol=8 * eps,
        atol=8 * eps * size,
        equal_nan=True,
    )


@fuzzed(quick=100, sweep=1200, share=600)
@given(program())
def test_mixed_expressions(made: tuple[str, list[Any], bool, list[tuple[str, Operand, bool, bool]]]) -> None:
    torch = require("torch")
    dtype, values, wants, steps = made
    first = mine = Tensor(values, dtype=dtype, requires_grad=wants or None)
    leaf = theirs = torch.tensor(values, dtype=getattr(torch, dtype), requires_grad=wants)
    weak_int, coarsest = False, rounding(theirs)
    for op, other, on_right, by_name in steps:
        a, b = (mine, other.mine()) if on_right else (other.mine(), mine)
        x, y = (theirs, other.theirs()) if on_right else (other.theirs(), theirs)
        assume(not undefined(op, x, y))
        assume(theirs is leaf or not theirs.requires_grad or op not in JUMPS)
        assume(not theirs.requires_grad or op not in ("floordiv", "divmod"))  # PyTorch has no slope of these
        if op in COMPARISONS and not fits(mine, other):
            x, y = (v.double() if v is theirs else float(v) for v in (x, y))
        try:
            expected = applied(op, x, y, by_name, numpys=False)
        except Exception:
            expected = None
        if expected is None:
            try:
                found = applied(op, a, b, by_name, numpys=True)
            except REFUSALS:
                return
            assert type(found) is Tensor
            return
        if not fits(mine, other) and op not in COMPARISONS:
            with pytest.raises(OverflowError, match="does not fit into"):
                applied(op, a, b, by_name, numpys=True)
            return
        weak_int |= (mine.dtype is dtypes.bool and isinstance(other.theirs(), int)) or op == "matmul"
        found = applied(op, a, b, by_name, numpys=True)
        assert type(found) is Tensor
        assert found.requires_grad == expected.requires_grad
        alike(found, expected, weak_int, coarsest)
        if not found.shape:
            break  # PyTorch's 0-d tensors are weak too
        mine, theirs, coarsest = found, expected, max(coarsest, rounding(expected))
        if not theirs.requires_grad:  # what differs in its last digit would be equal to other numbers
            kept = found.cast("float64").numpy() if dtypes.is_float(found.dtype) else found.numpy()
            theirs = torch.tensor(kept).to(getattr(torch, named(found.dtype)))
            coarsest = rounding(theirs)
    if theirs.requires_grad:
        try:
            (slope,) = torch.autograd.grad(theirs.double().sum(), leaf, allow_unused=True)
        except RuntimeError as error:  # as of the remainder by a bool; of a power of a bool it asserts
            assume("is not implemented" not in str(error) and "INTERNAL ASSERT" not in str(error))
            raise
        found = mine.cast("float64").sum().gradient(first)[0]
        alike(found, torch.zeros_like(leaf) if slope is None else slope, False, coarsest)

"""What `tinygrad.ops` offered for nodes: groups of operations, values, symbolic sizes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ..dtype import ConstType, DType
from ..ir.index import as_index, as_sint, bounds, evaluate, maximum, minimum, sint
from ..ir.ops import ALU, COMMUTATIVE, COMPARISONS, ELEMENTWISE, MOVEMENT, OPS, Ops, execute
from ..ir.spec import LINEAR, verify
from ..ir.text import linear_text
from ..ir.uop import UOp
from ..simplify import fold


def _of_arity(arity: int) -> frozenset[Ops]:
    return frozenset(op for op in ALU if OPS[op].arity == arity)


class GroupOp:
    """Sets of operations: `op in GroupOp.ALU`."""

    Unary = _of_arity(1)
    Binary = _of_arity(2)
    Ternary = _of_arity(3)
    ALU = ALU
    Elementwise = ELEMENTWISE
    Commutative = COMMUTATIVE
    Comparison = COMPARISONS
    Associative = frozenset((Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.MAX, Ops.MIN))
    Idempotent = frozenset((Ops.AND, Ops.OR, Ops.MAX, Ops.MIN))
    Movement = MOVEMENT
    Buffer = frozenset((Ops.LOAD, Ops.STORE, Ops.CONST))
    Irreducible = frozenset((Ops.CONST, Ops.DEFINE_VAR, Ops.SPECIAL, Ops.RANGE))
    All = frozenset(Ops)


def exec_alu(op: Ops, dtype: DType, operands: Sequence[ConstType], truncate_output: bool = True) -> ConstType:
    """The value of an operation on Python numbers, as a type holds it; or before it is rounded to it."""
    if truncate_output:
        return execute(op, dtype, tuple(operands))
    evaluated = OPS[op].evaluate
    if evaluated is None:
        raise TypeError(f"{op} has no meaning on single values")
    value: ConstType = evaluated(dtype, *operands)
    return value


def print_uops(uops: Sequence[UOp]) -> None:
    """Print a linear program as a table."""
    print(linear_text(uops))


def type_verify(uops: UOp | Sequence[UOp]) -> None:
    """Raise (a RuntimeError) unless a linear program is legal."""
    verify(uops, LINEAR)


# *** symbolic sizes


def ssimplify(value: sint) -> sint:
    """A size, as a number where it is one."""
    return as_sint(fold(value)) if isinstance(value, UOp) else value


def resolve(condition: bool | UOp, default: bool = True) -> bool:
    """A condition on symbolic sizes as a bool; `default` where it depends on them."""
    if not isinstance(condition, UOp):
        return bool(condition)
    low, high = bounds(condition)
    return bool(low) if low == high else default


def sym_infer(value: sint, var_vals: Mapping[Any, int]) -> int:
    """A size as a number, from the values of its Variables (by node or by name)."""
    if not isinstance(value, UOp):
        return value
    named = {key.arg[0] if isinstance(key, UOp) else key: number for key, number in var_vals.items()}
    variables = [node for node in value.toposort() if node.op is Ops.DEFINE_VAR]
    return int(evaluate(value, {node: named[node.arg[0]] for node in variables if node.arg[0] in named}))


def smax(*values: Any) -> sint:
    """The greatest of some sizes."""
    return _extreme(maximum, values)


def smin(*values: Any) -> sint:
    """The least of some sizes."""
    return _extreme(minimum, values)


def _extreme(operation: Any, values: Sequence[Any]) -> sint:
    every = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    return as_sint(functools.reduce(operation, map(as_index, every)))

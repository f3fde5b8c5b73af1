"""Checks a rewrite rule by machine: both sides are evaluated on samples that respect its condition.

A sample is a graph that matches the rule, with types, constants and values drawn at random, edge cases often.
The rule itself rewrites it; then both graphs must have the same bits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from lazygrad.dtype import ALL_DTYPES, ConstType, DType, cast_value, const_bits, dtypes
from lazygrad.ir.ops import COMPARISONS, Ops
from lazygrad.ir.pattern import Rule, UPat
from lazygrad.ir.text import expression
from lazygrad.ir.uop import UOp
from tests.scalar_graph import value_of

INTEGER_ONLY = frozenset((Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.DP4A))
FLOAT_ONLY = frozenset((Ops.RECIP, Ops.SQRT, Ops.FDIV, Ops.FMOD, Ops.TRUNC, Ops.LDEXP))
NOT_FLOAT = frozenset((Ops.AND, Ops.OR, Ops.XOR))
#: Of this many tries at least one must fire; a rule that never does is wrong too.
TRIES = 400


class Sample(NamedTuple):
    """A graph, what the rule made of it, and a value for each of its variables."""

    before: UOp
    after: UOp
    values: dict[UOp, ConstType]


class RuleError(AssertionError):
    """A rule that changes a value, or that never applies."""


class _NoFit(Exception):
    """The types drawn so far do not fit the pattern."""


# *** values


def edge_values(dtype: DType) -> list[ConstType]:
    """Values where arithmetic goes wrong first."""
    if dtypes.is_bool(dtype):
        return [False, True]
    small = [0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -3, -4, -8]
    if dtypes.is_float(dtype):
        info = dtypes.finfo(dtype)
        limits = [info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.eps]
        special = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.5, 0.25, 0.1, 1.0 + info.eps, 1e10, 1e-10]
        found: list[ConstType] = [*small, *limits, *special]
    else:
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        found = [*small, low, low + 1, high, high - 1, high // 2, 1 << (dtype.itemsize * 8 - 1)]
    return [cast_value(value, dtype) for value in found]


def random_value(dtype: DType, rng: random.Random) -> ConstType:
    """A value of the type, an edge case half of the time."""
    if dtypes.is_bool(dtype) or rng.random() < 0.5:
        return rng.choice(edge_values(dtype))
    if dtypes.is_float(dtype):
        return cast_value(rng.uniform(-2, 2) * 2.0 ** rng.randint(-20, 20), dtype)
    if rng.random() < 0.5:
        return cast_value(rng.randint(-20, 20), dtype)
    return rng.randint(int(dtypes.min(dtype)), int(dtypes.max(dtype)))


# *** graphs


class _Drawing:
    """One random graph that has the form of a pattern."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.named: dict[str, UOp] = {}
        self.values: dict[UOp, ConstType] = {}

    def choose(self, *sets: frozenset[DType] | None) -> DType:
        found = [d for d in ALL_DTYPES if all(s is None or d in s for s in sets)]
        if not found:
            raise _NoFit
        return self.rng.choice(found)

    def node(self, pattern: UPat, dtype: DType | None, operands: frozenset[DType] | None = None) -> UOp:
        """A node like the pattern, of this type if given; `operands` limits the type of its last source."""
        if pattern.choices:
            pattern = self.rng.choice(pattern.choices)
        known = self.named.get(pattern.name) if pattern.name else None
        if known is None:
            known = self._new_node(pattern, dtype, operands)
            if pattern.name:
                self.named[pattern.name] = known
        if dtype is not None and known.dtype is not dtype:
            raise _NoFit
        if pattern.dtypes is not None and known.dtype not in pattern.dtypes:
            raise _NoFit
        return known

    def _new_node(self, pattern: UPat, dtype: DType | None, operands: frozenset[DType] | None) -> UOp:
        if pattern.src is not None:
            return self._operation(pattern, dtype, operands)
        if pattern.ops is None:
            return self._variable(dtype or self.choose(pattern.dtypes, operands))
        if pattern.ops != (Ops.CONST,):
            raise NotImplementedError(f"no samples of {pattern!r}: give its sources")
        kind = dtype or self.choose(pattern.dtypes, operands)
        if pattern.literal is None:
            return UOp.const(kind, random_value(kind, self.rng))
        constant = UOp.const(kind, cast_value(pattern.literal, kind))
        if pattern.matches(constant) is None:
            raise _NoFit
        return constant

    def _variable(self, dtype: DType) -> UOp:
        """A variable with a value; an integer is sometimes known to be within narrow bounds."""
        value = random_value(dtype, self.rng)
        low, high = dtypes.min(dtype), dtypes.max(dtype)
        if dtypes.is_int(dtype) and self.rng.random() < 0.5:
            low, high = sorted((value, cast_value(int(value) + self.rng.randint(-4, 4), dtype)))
        variable = UOp(Ops.DEFINE_VAR, dtype, (), (f"v{len(self.values)}", low, high))
        self.values[variable] = value
        return variable

    def _operation(self, pattern: UPat, dtype: DType | None, operands: frozenset[DType] | None) -> UOp:
        if pattern.ops is None or pattern.src is None:
            raise NotImplementedError(f"no samples of {pattern!r}: it has no op")
        op = self.rng.choice(pattern.ops)
        sources = list(pattern.src)
        if op in (Ops.CAST, Ops.BITCAST):
            target = dtype or self.choose(pattern.dtypes)
            same_size = frozenset(d for d in ALL_DTYPES if d.itemsize == target.itemsize)
            source = self.node(sources[0], None, same_size if op is Ops.BITCAST else operands)
            if op is Ops.BITCAST and source.dtype not in same_size:
                raise _NoFit
            return UOp(op, target, (source,))
        if op in COMPARISONS:
            if dtype not in (None, dtypes.bool):
                raise _NoFit
            kind = self._type_of_operands(sources, operands)
        else:
            own = op in (Ops.WHERE, Ops.LDEXP)  # the first source has a type of its own
            kind = dtype or self._type_of_operands(sources[1:] if own else sources, operands)
        if not fits(op, kind) or (operands is not None and kind not in operands):
            raise _NoFit
        kinds = [dtypes.bool, kind, kind] if op is Ops.WHERE else [kind] * len(sources)
        if op is Ops.LDEXP:
            kinds[0] = self.choose(frozenset(d for d in dtypes.ints if d.itemsize == kind.itemsize))
        nodes = [self.node(s, k) for s, k in zip(sources, kinds, strict=True)]
        return nodes[0].alu(op, *nodes[1:])

    def _type_of_operands(self, sources: list[UPat], operands: frozenset[DType] | None) -> DType:
        """A type for sources that all have the same one."""
        for source in sources:
            known = self.named.get(source.name) if source.name else None
            if known is not None:
                return known.dtype
        limits = [source.dtypes for source in sources]
        if any(s.ops and s.ops[0] in COMPARISONS for s in sources):
            limits.append(frozenset((dtypes.bool,)))
        return self.choose(operands, *limits)


def fits(op: Ops, dtype: DType) -> bool:
    """Whether the operation is one on this type."""
    if op in INTEGER_ONLY:
        return dtypes.is_int(dtype)
    if op in FLOAT_ONLY:
        return dtypes.is_float(dtype)
    return op not in NOT_FLOAT or not dtypes.is_float(dtype)


def samples(rule: Rule, count: int = 100, seed: int = 0) -> Iterator[Sample]:
    """Up to `count` samples of a rule, the same ones for the same seed."""
    rng = random.Random(seed)
    made = 0
    for _ in range(count * TRIES):
        drawing = _Drawing(rng)
        try:
            before = drawing.node(rule.before, None, rule.on)
        except _NoFit:
            continue
        after = rule(before)
        if after is not None:
            yield Sample(before, after, drawing.values)
            made += 1
            if made == count:
                return


def check_rule(rule: Rule, count: int = 100, seed: int = 0) -> None:
    """Raise RuleError if the rule changes a type or a bit of any sample, or if no sample fires."""
    fired = False
    for before, after, values in samples(rule, count, seed):
        fired = True
        old, new = value_of(before, values), value_of(after, values)
        if after.dtype is not before.dtype or const_bits(old, before.dtype) != const_bits(new, after.dtype):
            told = ", ".join(f"{v.arg[0]} = {value!r} ({v.dtype})" for v, value in values.items())
            raise RuleError(
                f"{rule.file_and_line()}  {rule}\n  {expression(before)} is {old!r} ({before.dtype}), but\n"
                f"  {expression(after)} is {new!r} ({after.dtype})\n  with {told or 'no variables'}"
            )
    if not fired:
        raise RuleError(f"{rule.file_and_line()}  {rule}: it never applies")

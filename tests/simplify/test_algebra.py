"""Every rule keeps every bit; the checker that says so finds wrong rules; folds do what they are for."""

from __future__ import annotations

import math
import time

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import AxisType, Ops, PatternMatcher, RangeArg, UOp, UPat, Variable
from lazygrad.simplify import algebra, fold, shaped
from lazygrad.simplify.algebra import FLOATS, INTS, NUMBERS
from lazygrad.simplify.vectors import vectors
from tests.simplify.sampling import RuleError, check_rule, samples

x, y = UPat.var("x"), UPat.var("y")
c0 = UPat.cvar("c0")
I, J = (UOp(Ops.UNIQUE, dtypes.int, arg=n) for n in range(2))
F, G = (UOp(Ops.UNIQUE, dtypes.float, arg=n) for n in range(2))
P, Q = (UOp(Ops.UNIQUE, dtypes.bool, arg=n) for n in range(2))
LANES = set(vectors.rules)


@pytest.mark.parametrize("rule", [r for r in algebra if r not in LANES], ids=str)
def test_rule_keeps_every_bit(rule):
    check_rule(rule, 150)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [r for r in algebra if r not in LANES], ids=str)
def test_rule_keeps_every_bit_on_many_samples(rule):
    check_rule(rule, 5000, seed=1)


WRONG = {
    "x + 0.0 loses the sign of -0.0": PatternMatcher([(x + 0, x)], on=FLOATS),
    "x * 0 is NaN for an infinity": PatternMatcher([(x * 0, 0)], on=FLOATS),
    "x - x is NaN for an infinity": PatternMatcher([(x - x, 0)], on=FLOATS),
    "not (NaN < y)": PatternMatcher([((x < y).ne(True), y <= x)]),
    "x // x is 0 for 0": PatternMatcher([(x // x, 1)], on=INTS),
    "(x * c) // c overflows": PatternMatcher([((x * c0) // c0, x, lambda c0: c0.arg > 0)], on=INTS),
    "float addition does not associate": PatternMatcher([((x + c0) + y, (x + y) + c0)], on=FLOATS),
    "x / 3 is not x * (1/3)": PatternMatcher(
        [(x / c0, lambda x, c0: x * (1 / c0.arg), lambda c0: c0.arg == 3)], on=FLOATS
    ),
    "max(x, y) - y": PatternMatcher([(x.maximum(y) - y, x - y)], on=NUMBERS),
    "a cast there and back": PatternMatcher([(x.cast(dtypes.int8).cast(dtypes.int32), x.cast(dtypes.int32))]),
    "another type": PatternMatcher([(x + 0, lambda x: x.cast(dtypes.int64))], on=(dtypes.int32,)),
    "it never applies": PatternMatcher([(x + c0, x, lambda c0: False)], on=(dtypes.int32,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_finds_wrong_rules(name):
    with pytest.raises(RuleError, match=r"test_algebra\.py:\d+"):
        check_rule(WRONG[name].rules[0], 20 if name == "it never applies" else 500)


def test_samples_meet_the_edges():
    rule = PatternMatcher([(x + y, y + x)], on=FLOATS).rules[0]
    seen = [value for sample in samples(rule, 1000) for value in sample.values.values()]
    assert any(value != value for value in seen)
    assert math.inf in seen
    assert any(value == 0 and math.copysign(1, value) < 0 for value in seen)
    assert {sample.before.dtype for sample in samples(rule, 300)} == FLOATS


# *** what folding does


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (I * 1 + 0, I),
        ((I + 3) + 4, I + 7),
        (I - 3, I + -3),
        ((I * 3) * 5, I * 15),
        (I * 0, I.const_like(0)),
        (I - I, I.const_like(0)),
        (0 - (0 - I), I),
        (I * 2 + I * 3, I * 5),
        (I + (-J), I - J),
        ((I + J) - J, I),
        (F * 1, F),
        (F + 0.0, F + 0.0),
        (F + -0.0, F),
        (F - 0.0, F),
        (F * 0, F * 0),
        (F - F, F - F),
        ((F + 3) + 4, (F + 3) + 4),
        (F / 4, F * 0.25),
        (F / 3, F / 3),
        (F * -1, -F),
        (F.maximum(F), F),
        (F.maximum(-math.inf), F),
        (P * Q, P & Q),
        (P & P, P),
        (P & True, P),
        (P & False, P.const_like(False)),
        (P.ne(True).ne(True), P),
        (P.ne(True).where(F, G), P.where(G, F)),
        (P.where(F, F), F),
        (P.where(P.where(F, G), F), F),
        ((I < J).ne(True), J <= I),
        ((F < G).ne(True), (F < G).ne(True)),
        (F < F, P.const_like(False)),
        (I.eq(I), P.const_like(True)),
        (F.eq(F), F.eq(F)),
        (P.cast(dtypes.float).ne(0), P),
        (UOp(Ops.CAST, dtypes.int, (I,)), I),
        (I.cast(dtypes.int64).cast(dtypes.int16), I.cast(dtypes.int16)),
        (I.cast(dtypes.float).cast(dtypes.int), I.cast(dtypes.float).cast(dtypes.int)),
        (I.cast(dtypes.double).cast(dtypes.int), I),
        (F.cast(dtypes.double).cast(dtypes.half), F.cast(dtypes.half)),
        (F.cast(dtypes.half).cast(dtypes.float), F.cast(dtypes.half).cast(dtypes.float)),
        (F.bitcast(dtypes.int).bitcast(dtypes.uint), F.bitcast(dtypes.uint)),
    ],
    ids=lambda node: None,
)
def test_folds(before, after):
    assert fold(before) is after


def test_constants_are_computed_where_all_devices_agree():
    two, half = UOp.const(dtypes.float, 2.0), UOp.const(dtypes.half, 0.1)
    assert fold(two + two * two) is UOp.const(dtypes.float, 6.0)
    assert fold(two.sqrt()) is UOp.const(dtypes.float, math.sqrt(2))
    assert fold(two / 0) is UOp.const(dtypes.float, math.inf)
    assert fold(half.cast(dtypes.float)) is UOp.const(dtypes.float, half.arg)
    assert fold(two < 3) is UOp.const(dtypes.bool, True)
    assert fold(two.alu(Ops.EXP2)).op is Ops.EXP2  # a device may be off in the last bit
    vector = UOp.const(dtypes.int.vec(2), (1, 2))
    assert fold(vector + vector) is UOp.const(dtypes.int.vec(2), (2, 4))
    assert fold(vector < 2) is UOp.const(dtypes.bool.vec(2), (True, False))
    assert fold(UOp.const(dtypes.int, -1).bitcast(dtypes.float)).op is Ops.BITCAST  # a NaN with its payload


def test_bounds_decide():
    n = Variable("n", 2, 9)
    data = n.cast(dtypes.int)
    assert fold(data < 10) is UOp.const(dtypes.bool, True)
    assert fold(data % 10) is data
    assert fold(data // 10) is data.const_like(0)
    assert fold(data.cast(dtypes.int8).cast(dtypes.int)) is data


def test_index_arithmetic_is_left_canonical():
    loop = UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 8),), RangeArg(0, AxisType.LOOP))
    index = (loop * 4 + 3) // 2 - loop
    assert fold(index) is index
    assert fold((index < 5).ne(True)) is (index < 5).ne(True)


class View:
    def __init__(self, mask=None):
        self.views, self.mask = (self,), mask


def test_with_shapes_constants_keep_their_place():
    view = UOp(Ops.VIEW, arg=View())
    load = UOp(Ops.LOAD, dtypes.int, (UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(4), arg=0), view))
    one, two = (UOp(Ops.CONST, dtypes.int, (view,), value) for value in (1, 2))
    assert fold((load + one) + two, shaped) is load + UOp(Ops.CONST, dtypes.int, (view,), 3)
    assert fold(load * (two - two), shaped) is UOp(Ops.CONST, dtypes.int, (view,), 0)
    assert fold(load - load, shaped) is load - load
    masked = UOp(Ops.CONST, dtypes.int, (UOp(Ops.VIEW, arg=View(((0, 1),))),), 1)
    assert fold(load * masked, shaped) is load * masked


V = UOp(Ops.UNIQUE, dtypes.float.vec(4))


def gep(vector, *lanes):
    return UOp(Ops.GEP, vector.dtype.scalar().vec(len(lanes)), (vector,), lanes)


def vectorize(*parts):
    return UOp(Ops.VECTORIZE, parts[0].dtype.vec(len(parts)), parts)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (gep(vectorize(F, G), 1), G),
        (gep(vectorize(F, G), 1, 0), vectorize(G, F)),
        (gep(UOp.const(dtypes.float.vec(2), (1.0, 2.0)), 1), UOp.const(dtypes.float, 2.0)),
        (gep(UOp.const(dtypes.int.vec(3), (1, 2, 3)), 2, 0), UOp.const(dtypes.int.vec(2), (3, 1))),
        (gep(gep(V, 2, 3), 1), gep(V, 3)),
        (gep(V, 0, 1, 2, 3), V),
        (vectorize(*(gep(V, n) for n in range(4))), V),
        (vectorize(gep(V, 1), gep(V, 0)), gep(V, 1, 0)),
        (vectorize(UOp.const(dtypes.int, 1), UOp.const(dtypes.int, 2)), UOp.const(dtypes.int.vec(2), (1, 2))),
        (vectorize(F, G), vectorize(F, G)),
    ],
    ids=lambda node: None,
)
def test_lanes(before, after):
    assert fold(before) is after


def test_ten_thousand_nodes_in_a_moment():
    node = I
    for n in range(2_500):
        node = (node * J + n % 5) * 1 + node
    assert len(node.toposort()) > 9_000
    start = time.process_time()
    fold(node)
    assert time.process_time() - start < 10  # 0.2 s on an idle core

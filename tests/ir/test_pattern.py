"""Patterns: what matches, what is captured, what a table of rules makes of a node."""

from __future__ import annotations

import functools
import math

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, PatternMatcher, UOp, UPat, Variable

x, y, z = UPat.var("x"), UPat.var("y"), UPat.var("z")
c0, c1 = UPat.cvar("c0"), UPat.cvar("c1")
A, B, C = (UOp(Ops.UNIQUE, dtypes.int, arg=n) for n in range(3))
F = UOp(Ops.UNIQUE, dtypes.float, arg=0)


def integer(value):
    return UOp.const(dtypes.int, value)


def test_op_and_names():
    assert (x + y).matches(A * B) is None
    assert (x + y).matches(A + B) == {"x": A, "y": B}
    assert UPat(Ops.ADD, name="sum").matches(A + B) == {"sum": A + B}
    assert UPat((Ops.ADD, Ops.MUL)).matches(A * B) == {}
    assert UPat().matches(A) == {}


def test_the_same_name_is_the_same_node():
    assert (x + x).matches(A + B) is None
    assert (x + x).matches(A + A) == {"x": A}
    assert (x * y + x).matches(B + B * C) == {"x": B, "y": C}
    assert (x * y + x).matches(B + C * B) == {"x": B, "y": C}


def test_what_commutes_is_tried_both_ways():
    assert (x + c0).matches(integer(1) + A) == {"x": A, "c0": integer(1)}
    assert (x - c0).matches(integer(1) - A) is None
    assert (c0 - x).matches(integer(1) - A) == {"x": A, "c0": integer(1)}


def test_sources_in_order_in_any_order_and_more():
    node = UOp(Ops.SINK, src=(A, F, B))
    assert UPat(Ops.SINK, src=(x, y, z)).matches(node) == {"x": A, "y": F, "z": B}
    assert UPat(Ops.SINK, src=(x, y)).matches(node) is None
    assert UPat(Ops.SINK, src=(x, ...)).matches(node) == {"x": A}
    floats = UPat.var("f", dtypes.float)
    assert UPat(Ops.SINK, src=(floats, x, y)).matches(node) is None
    assert UPat(Ops.SINK, src=[floats, x, y]).matches(node) == {"f": F, "x": A, "y": B}


def test_dtype_and_arg():
    vector = UOp(Ops.UNIQUE, dtypes.float.vec(4))
    assert UPat(None, dtypes.float).matches(F) == {}
    assert UPat(None, dtypes.float).matches(vector) == {}
    assert UPat(None, (dtypes.int, dtypes.half)).matches(F) is None
    assert UPat(Ops.UNIQUE, arg=2).matches(C) == {}
    assert UPat(Ops.UNIQUE, arg=2).matches(B) is None
    assert UPat(Ops.SINK, arg=None).matches(UOp(Ops.SINK, arg=1)) is None


@pytest.mark.parametrize(
    ("literal", "dtype", "value", "same"),
    [
        (0, dtypes.int, 0, True),
        (0, dtypes.float, 0.0, True),
        (0, dtypes.float, -0.0, False),
        (-0.0, dtypes.float, -0.0, True),
        (-0.0, dtypes.float, 0.0, False),
        (1, dtypes.bool, True, True),
        (True, dtypes.bool, True, True),
        (-1, dtypes.uint8, 255, True),
        (-1, dtypes.bool, True, True),
        (2, dtypes.bool, True, False),
        (300, dtypes.uint8, 44, False),
        (1.5, dtypes.int, 1, False),
        (0.1, dtypes.float64, 0.1, True),
        (math.inf, dtypes.float, math.inf, True),
        (math.inf, dtypes.int, 2**31 - 1, False),
        (math.nan, dtypes.float, math.nan, True),
        (1, dtypes.float.vec(2), (1.0, 1.0), True),
        (1, dtypes.float.vec(2), (1.0, 2.0), False),
    ],
)
def test_literals(literal, dtype, value, same):
    assert (UPat.const(literal).matches(UOp.const(dtype, value)) is not None) == same


def test_constants_behind_a_mask_are_no_constants():
    class Seen:
        def __init__(self, mask):
            self.views = (self,)
            self.mask = mask

    for mask, matches in ((None, True), (((0, 1),), False)):
        const = UOp(Ops.CONST, dtypes.int, (UOp(Ops.VIEW, arg=Seen(mask)),), 1)
        assert (UPat.cvar("c").matches(const) is not None) == matches
        assert (UPat.const(1).matches(const) is not None) == matches
    assert UPat.cvar("c").matches(UOp(Ops.CONST, dtypes.int, (UOp(Ops.DEVICE, arg="CPU"),), 1))


def test_either():
    pattern = UPat.either(x + c0, x - c0, name="step")
    assert pattern.matches(A + 1) == {"x": A, "c0": integer(1), "step": A + 1}
    assert pattern.matches(A - 1) == {"x": A, "c0": integer(1), "step": A - 1}
    assert pattern.matches(A * 2) is None
    both = UPat.either(UPat.cvar("c"), x + 1, name="found")
    assert both.matches(integer(1)) == {"c": integer(1), "found": integer(1)}
    chosen = PatternMatcher([(both, lambda found, c, x: B if c is None else C)])
    assert (chosen.rewrite(A + 1), chosen.rewrite(integer(1))) == (B, C)
    assert (y * pattern).matches((A - 1) * B) == {"x": A, "y": B, "c0": integer(1), "step": A - 1}


# *** rules


def test_after_is_an_expression_a_constant_a_node_or_a_function():
    assert PatternMatcher([(x * (y + z), x * y + x * z)]).rewrite((A + B) * C) is C * A + C * B
    assert PatternMatcher([(x - x, 0)]).rewrite(A - A) is integer(0)
    assert PatternMatcher([(x - x, -0.0)]).rewrite(F - F) is UOp.const(dtypes.float, -0.0)
    assert PatternMatcher([(x - x, B)]).rewrite(A - A) is B
    assert PatternMatcher([(x - y, lambda y, x: y - x)]).rewrite(A - B) is B - A
    assert PatternMatcher([((x < y).where(x, y), x.minimum(y))]).rewrite((A < B).where(A, B)) is A.minimum(B)
    assert PatternMatcher([(x + x, x * 2)]).rewrite(A + A) is A * 2
    assert PatternMatcher([(x.cast(dtypes.half), x.cast(dtypes.float))]).rewrite(A.cast(dtypes.half)) is (
        A.cast(dtypes.float)
    )
    vector = UOp(Ops.UNIQUE, dtypes.int.vec(2))
    assert PatternMatcher([(x * 1, x), (x - x, 0)]).rewrite(vector - vector) is vector.const_like(0)


def test_when_and_ctx():
    matcher = PatternMatcher([(x + c0, lambda x, ctx: ctx[x], lambda c0: c0.arg > 2)])
    assert matcher.rewrite(A + 1, {A: B}) is None
    assert matcher.rewrite(A + 3, {A: B}) is B


def test_a_function_may_decline_and_the_next_rule_is_asked():
    matcher = PatternMatcher([(x + y, lambda x: None), (x + y, y)])
    assert matcher.rewrite(A + B) is B
    assert PatternMatcher([(x + y, lambda x: None)]).rewrite(A + B) is None


def test_functions_of_any_kind():
    class Maker:
        def make(self, x):
            return x * 7

    def helper(x, factor):
        return x * factor

    assert PatternMatcher([(-x, Maker().make)]).rewrite(-A) is A * 7
    # `factor` has a value already
    assert PatternMatcher([(-x, functools.partial(helper, factor=B))]).rewrite(-A) is A * B
    assert PatternMatcher([(-x, lambda x, k=5: x * k)]).rewrite(-A) is A * 5


def test_tables_add_and_the_first_rule_wins():
    first, second = PatternMatcher([(x + y, x)]), PatternMatcher([(x + y, y), (x * y, y)])
    assert (first + second).rewrite(A + B) is A
    assert (second + first).rewrite(A + B) is B
    assert (first + second).rewrite(A * B) is B
    assert (first + second).rewrite(A) is None


def test_tables_for_kinds_of_numbers():
    matcher = PatternMatcher([(x - x, 0), (x < x, 0)], on=(dtypes.int, dtypes.bool))
    assert matcher.rewrite(A - A) is integer(0)
    assert matcher.rewrite(F - F) is None
    assert matcher.rewrite(A < A) is UOp.const(dtypes.bool, False)
    assert matcher.rewrite(F < F) is None


def test_index_arithmetic_stays_canonical():
    n = Variable("n", 0, 9)
    load = UOp(Ops.UNIQUE, dtypes.index)
    after = PatternMatcher([(x.maximum(y), x + y)]).rewrite(UOp(Ops.MAX, dtypes.index, (load, n + 1)))
    assert after is n + load + 1


def test_rules_say_where_they_are():
    rule = next(iter(PatternMatcher([(x + 0, x)])))
    assert rule.file_and_line().split(":")[0].endswith("test_pattern.py")
    assert str(rule).endswith("(x + 0) -> x")
    assert repr((x % c0) * -y) == "((x % c0) * neg(y))"


class Words:
    """Fills in templates."""

    def filled(self, template, node):
        return template.format(*[s.dtype.name if s is A else "other" for s in node.src])


def test_rows_of_text():
    table = PatternMatcher(
        [
            (UPat(Ops.ADD), "first", lambda ctx, node: node.src[1] is B and ctx is words),
            (UPat(Ops.ADD), "{0}+{1}"),
            (UPat(Ops.MUL, src=(UPat.var("x"), UPat.cvar("c"))), "{0}*{1}"),
            (UPat(Ops.MUL), lambda node: node.op.name),
            (UPat(Ops.NEG), ""),
            (UPat(Ops.NEG), "never"),
        ]
    )
    words = Words()
    nodes = [A.alu(Ops.ADD, B), A.alu(Ops.ADD, A), A.alu(Ops.MUL, A.const_like(2)), A * B, A.alu(Ops.NEG)]
    texts = [table.rewrite(node, words) for node in nodes]
    assert texts == ["first", "int+int", "int*other", "MUL", ""]


def test_a_rule_alone_looks_at_the_op():
    (rule,) = PatternMatcher([(UPat(Ops.ADD), lambda node: node.src[0])])
    for _ in range(2):  # before it is compiled, and after
        assert rule(A.alu(Ops.ADD, B)) is A.alu(Ops.ADD, B).src[0]
        assert rule(A * B) is None


def test_unknown_names_are_refused_where_the_rule_is_made():
    with pytest.raises(
        TypeError, match=r"test_pattern.py:\d+ \(x \+ 1\) -> y: y is not captured by the pattern"
    ):
        PatternMatcher([(x + 1, y)])
    with pytest.raises(TypeError, match="c1 is not captured by the pattern; captured: x"):
        PatternMatcher([(x + 1, x, lambda c1: True)])
    with pytest.raises(TypeError, match="a rule is"):
        PatternMatcher([(x + 1, x, None, 3)])


def test_too_many_ways():
    wide = UPat(Ops.SINK, src=[UPat.var(f"v{n}") for n in range(6)])
    with pytest.raises(ValueError, match="can match in 720 ways"):
        wide.matches(UOp(Ops.SINK, src=(A,) * 6))

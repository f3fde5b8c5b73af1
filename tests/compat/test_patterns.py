"""Patterns and rules as older scripts write them."""

from __future__ import annotations

import pytest

from lazygrad import UOp, Variable, dtypes
from lazygrad.compat.patterns import UPat
from lazygrad.ir import Ops, PatternMatcher, graph_rewrite

ONE = UOp.const(dtypes.int, 1)


def test_match_gives_what_was_captured():
    node = ONE + 2
    pattern = UPat(Ops.ADD, src=(UPat.var("x"), UPat.cvar("c", vec=False)), name="sum")
    assert pattern.match(node, {}) == [{"x": ONE, "c": node.src[1], "sum": node}]
    assert pattern.match(node, {"x": node}) == pattern.match(ONE, {}) == []


def test_the_type_of_a_constant_comes_first():
    assert UPat.const(dtypes.int, 1).match(ONE, {})
    assert UPat.const(None, 1).match(ONE, {})
    assert not UPat.const(dtypes.float, 1).match(ONE, {})
    assert UPat(Ops.CONST, arg=1).match(ONE, {})
    assert UPat(Ops.CONST, arg=None).match(ONE, {})


def test_sources():
    node = UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(4), arg=0)
    load = UOp(Ops.LOAD, dtypes.int, (UOp(Ops.INDEX, node.dtype, (node, ONE)),))
    assert UPat(Ops.INDEX, src=(UPat.var("b"),), allow_any_len=True).load(name="l").match(load, {})
    assert UPat.var("b").index(UPat.var("i")).load().match(load, {}) == [{"b": node, "i": ONE}]
    assert UPat.var("a").index(UPat.var("i")).store(UPat.var("v")).ops == (Ops.STORE,)
    with pytest.raises(NotImplementedError, match="a pattern for each source"):
        UPat(Ops.SINK, src=UPat.var("x"))


def test_one_of_several():
    pattern = UPat.any(UPat.cvar("c"), UPat.var("x") + 1).named("found")
    assert pattern.match(ONE, {}) == [{"c": ONE, "found": ONE}]
    x = UOp(Ops.DEFINE_VAR, dtypes.int, arg=("x", 0, 1))
    assert UPat.var("x", dtypes.int).or_casted("y").match(x.cast(dtypes.float), {})[0]["x"] is x


def test_rules():
    """Operators on these patterns are these patterns."""
    x = Variable("x", 0, 4)
    rules = PatternMatcher([((UPat.var("x") * UPat.const(None, 0)).named("m"), lambda m, x: m.const_like(7))])
    node = UOp(Ops.MUL, dtypes.int, (UOp(Ops.DEFINE_VAR, dtypes.int, arg=x.arg), UOp.const(dtypes.int, 0)))
    assert graph_rewrite(node, rules).arg == 7

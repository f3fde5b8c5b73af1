"""Index arithmetic: the canonical form means what was written, bounds hold, equal sums are one object."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.dtype import dtypes
from lazygrad.ir import AxisType, Ops, RangeArg, UOp, Variable, bounds, render
from lazygrad.ir import index as ix
from lazygrad.ir.ops import execute


def loop(number, size):
    size = size if isinstance(size, UOp) else ix.const(size)
    return UOp(Ops.RANGE, dtypes.index, (size,), RangeArg(number, AxisType.LOOP))


N, M = Variable("n", 1, 6), Variable("m", 2, 9)
R = [loop(0, 4), loop(1, 7), loop(2, 12), loop(3, 1)]
S = loop(4, N)  # a loop of symbolic length
ATOMS = [*R, N, M, S]


def assignments(count, seed=0):
    """Values of all atoms, the extreme ones among them."""
    rng = random.Random(seed)
    for number in range(count):
        values = {}
        for atom in ATOMS:
            low, high = bounds(atom)
            if atom is S:
                high = values[N] - 1
            values[atom] = (low, high)[number] if number < 2 else rng.randint(low, high)
        yield values


VALUES = list(assignments(40))


class Expr(NamedTuple):
    """A node, what was written, and its plain meaning."""

    node: UOp
    text: str
    meaning: object


def leaf(atom):
    return Expr(atom, render(atom), lambda v: v[atom])


def number(value):
    return Expr(ix.const(value), str(value), lambda v: value)


def add(a, b):
    return Expr(a.node + b.node, f"({a.text} + {b.text})", lambda v: a.meaning(v) + b.meaning(v))


def sub(a, b):
    return Expr(a.node - b.node, f"({a.text} - {b.text})", lambda v: a.meaning(v) - b.meaning(v))


def mul(a, b):
    return Expr(a.node * b.node, f"({a.text} * {b.text})", lambda v: a.meaning(v) * b.meaning(v))


def div(a, by):
    return Expr(a.node // by.node, f"({a.text} // {by.text})", lambda v: a.meaning(v) // by.meaning(v))


def mod(a, by):
    return Expr(a.node % by.node, f"({a.text} % {by.text})", lambda v: a.meaning(v) % by.meaning(v))


def largest(a, b):
    return Expr(a.node.maximum(b.node), f"max({a.text}, {b.text})", lambda v: max(a.meaning(v), b.meaning(v)))


def least(a, b):
    return Expr(a.node.minimum(b.node), f"min({a.text}, {b.text})", lambda v: min(a.meaning(v), b.meaning(v)))


def choice(a, b):
    return Expr(
        (a.node < b.node).where(a.node, b.node * 2),
        f"({a.text} < {b.text} ? {a.text} : {b.text} * 2)",
        lambda v: a.meaning(v) if a.meaning(v) < b.meaning(v) else b.meaning(v) * 2,
    )


leaves = st.one_of(st.sampled_from(ATOMS).map(leaf), st.integers(-12, 24).map(number))
divisors = st.one_of(
    st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 12, 24, 84]).map(number), st.sampled_from([N, M]).map(leaf)
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(add, inner, inner),
        st.builds(sub, inner, inner),
        st.builds(mul, inner, st.integers(-6, 12).map(number)),
        st.builds(mul, inner, inner),
        st.builds(div, inner, divisors),
        st.builds(mod, inner, divisors),
        st.builds(largest, inner, inner),
        st.builds(least, inner, inner),
        st.builds(choice, inner, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=600)
@given(expressions)
def test_the_canonical_form_means_what_was_written(expr):
    low, high = bounds(expr.node)
    for values in VALUES:
        expected = expr.meaning(values)
        found = ix.evaluate(expr.node, values)
        assert found == expected, f"{expr.text} became {render(expr.node)}"
        assert low <= expected <= high, f"{expr.text}: {expected} is not within {low}..{high}"


@pytest.mark.slow
@settings(max_examples=5_000)
@given(expressions)
def test_the_canonical_form_means_what_was_written_at_length(expr):
    low, high = bounds(expr.node)
    for values in VALUES:
        expected = expr.meaning(values)
        assert ix.evaluate(expr.node, values) == expected, f"{expr.text} became {render(expr.node)}"
        assert low <= expected <= high


@settings(max_examples=300)
@given(expressions, expressions)
def test_conditions_mean_what_was_written(a, b):
    conditions = {
        a.node < b.node: lambda x, y: x < y,
        a.node <= b.node: lambda x, y: x <= y,
        a.node.eq(b.node): lambda x, y: x == y,
        a.node.ne(b.node): lambda x, y: x != y,
        a.node > b.node: lambda x, y: x > y,
        ix.logical_not(a.node < b.node): lambda x, y: x >= y,
        ix.all_of([a.node < b.node, b.node < a.node + 5]): lambda x, y: x < y < x + 5,
    }
    for values in VALUES:
        x, y = a.meaning(values), b.meaning(values)
        for condition, meaning in conditions.items():
            if len(conditions) == 7:  # equal conditions are one key
                assert ix.evaluate(condition, values) == meaning(x, y), (a.text, b.text, render(condition))


@settings(max_examples=300)
@given(st.lists(st.builds(mul, leaves, leaves), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_equal_sums_are_the_same_object(terms, rng):
    first = terms[0]
    for term in terms[1:]:
        first = add(first, term)
    shuffled = list(terms)
    rng.shuffle(shuffled)
    other = shuffled[0].node
    for term in shuffled[1:]:
        other = term.node + other
    assert other is first.node
    assert (first.node - other) is ix.const(0)
    assert (first.node * 3) is first.node + first.node * 2


@settings(max_examples=200)
@given(expressions, st.dictionaries(st.sampled_from(ATOMS[:4]), st.integers(0, 20), max_size=3))
def test_substitution_evaluates_in_part(expr, chosen):
    chosen = {atom: min(value, bounds(atom)[1]) for atom, value in chosen.items()}
    mapping = {atom: ix.const(value) for atom, value in chosen.items()}
    found = ix.substitute((expr.node,), mapping)[expr.node]
    for values in VALUES[:10]:
        assert ix.evaluate(found, values) == expr.meaning({**values, **chosen})
    assert all(
        s.src == s.src and ix.rebuild(s, s.src) is s for s in found.toposort() if s.op in (Ops.ADD, Ops.MUL)
    )


@settings(max_examples=200)
@given(expressions)
def test_rebuilding_changes_nothing(expr):
    for node in expr.node.toposort():
        if node.src and node.dtype is dtypes.index and node.op is not Ops.RANGE:
            again = ix.rebuild(node, node.src)
            for values in VALUES[:8]:
                assert ix.evaluate(again, values) == ix.evaluate(node, values)


# *** what must simplify

a, b, c, d = R
X = UOp(Ops.CAST, dtypes.index, (UOp(Ops.UNIQUE, dtypes.int, arg=0),))  # any number


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (a + 0, a),
        (a * 1, a),
        (a - a, ix.const(0)),
        (a * 0, ix.const(0)),
        (b + a, a + b),
        ((a + 3) + (b - 3), a + b),
        ((a * 7 + b) // 7, a),
        ((a * 7 + b) % 7, b),
        ((a * 84 + c * 7 + b) // 7 % 12, c),
        (c // 4 * 4 + c % 4, c),
        ((c * 6) // 3, c * 2),
        ((c * 4 + 2) // 4, c),
        ((c * 4 + 2) % 4, ix.const(2)),
        (X // 2 // 3, X // 6),
        (X % 12 % 4, X % 4),
        (X % 12 // 4, X // 4 % 3),
        ((X * 2) % 8, X % 4 * 2),
        (a // 4, ix.const(0)),
        (a % 4, a),
        (d, d),
        (d * 5 + a, a + d * 5),
        ((S + N * a) // N, a),
        ((S + N * a) % N, S),
        (N // N, ix.const(1)),
        (N % N, ix.const(0)),
        ((N * M) // M, N),
        (a.maximum(10), ix.const(10)),
        (a.minimum(3), a),
        (a < 4, ix.TRUE),
        (a < 0, ix.FALSE),
        (a * 3 < 7, a < 3),
        (a * -1 < 0, ix.const(0) < a),
        (a.eq(a), ix.TRUE),
        (a.eq(9), ix.FALSE),
        (S < N, ix.TRUE),
        ((a < 9).where(a, b), a),
    ],
    ids=lambda node: render(node) if isinstance(node, UOp) else None,
)
def test_canonical(written, canonical):
    assert written is canonical


def test_the_order_of_terms_is_the_same_in_every_process():
    assert render(c * 3 + a + b * 84 + N + 5) == "(((((gidx1*84)+(gidx2*3))+gidx0)+n)+5)"


def test_what_is_joined_with_itself_again_and_again_is_looked_at_once():
    """Otherwise 60 times would be 2^60 looks."""
    low, high = ix.const(1) < N, N < 4
    joined = UOp(Ops.AND, dtypes.bool, (low, high))
    for _ in range(60):
        joined = UOp(Ops.AND, dtypes.bool, (joined, joined))
    assert ix.conjuncts(joined) == [low, high]
    assert ix.all_of([joined]) is ix.all_of([low, high])
    assert ix.bounds_where(joined, N) == (1, 3)


def test_all_of():
    p, q = a < 2, b < 3
    assert ix.all_of([]) is ix.TRUE
    assert ix.all_of([p, ix.TRUE, p]) is p
    assert ix.all_of([p, ix.FALSE]) is ix.FALSE
    assert ix.all_of([p, q]) is ix.all_of([q, p]) is ix.all_of([ix.all_of([q]), ix.all_of([p, q])])


@pytest.mark.parametrize(("low", "high"), list(itertools.product((-7, -1, 0, 3), (0, 1, 5, 9))))
def test_bounds_of_data(low, high):
    if low > high:
        return
    v = Variable("v", low, high).cast(dtypes.int8)
    w = Variable("w", -3, 4).cast(dtypes.int8)
    for op in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.CMPLT, Ops.CMPLE):
        node = v.alu(op, w)
        least, greatest = bounds(node)
        for x, y in itertools.product(range(low, high + 1), range(-3, 5)):
            from_here = ix.evaluate(node, {v.src[0]: x, w.src[0]: y})
            assert least <= from_here <= greatest, (op, x, y)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 1), (2, 3), (5, 6), (4, 7)])
def test_bounds_of_bits_that_both_have(low, high):
    for least, greatest in [(0, 0), (0, 1), (1, 1), (2, 2), (3, 9)]:
        node = Variable("v", low, high).cast(dtypes.int) & Variable("w", least, greatest).cast(dtypes.int)
        found = [x & y for x in range(low, high + 1) for y in range(least, greatest + 1)]
        assert bounds(node)[0] <= min(found)
        assert max(found) <= bounds(node)[1]
    yes = UOp.const(dtypes.bool, True)
    assert bounds(yes & yes) == (1, 1)


def test_bounds_of_arrays_are_those_of_their_elements():
    x = Tensor([5, -7, 100]).maximum(2).minimum(9)
    for moved in (x.reshape(3, 1).expand(3, 4).T.flip(0)[1:], x.contiguous(), x.detach()):
        assert bounds(moved.uop) == (2, 9)
    assert bounds(x.pad((1, 0)).uop) == (0, 9)
    assert bounds((Tensor.arange(6, dtype=dtypes.int32) * 2 + 1).uop) == (1, 11)


def test_bounds_of_what_may_overflow_are_those_of_the_dtype():
    v = Variable("v", 0, 100).cast(dtypes.int8)
    assert bounds(v + v) == (-128, 127)
    assert bounds(v.cast(dtypes.int) + v.cast(dtypes.int)) == (0, 200)
    assert bounds(Variable("v", 0, 300).cast(dtypes.uint8)) == (0, 255)


def test_bounds_look_only_below_what_has_some():
    """A float has no bounds, so nothing below it is asked: bounds of a program's values take no time."""
    value = UOp(Ops.NOOP, dtypes.float)
    for _ in range(1000):
        value = value * value
    below = value.cast(dtypes.int) + 1
    assert bounds((below.cast(dtypes.float) < 3.0).cast(dtypes.int) * 5) == (0, 5)
    assert "bounds" not in below.facts


def test_sizes():
    assert ix.as_sint(ix.const(4)) == 4
    assert ix.as_sint(N) is N
    assert ix.as_index(3) is ix.const(3)
    assert ix.as_index(UOp.const(dtypes.int, 3)).dtype is dtypes.index


def test_evaluate_asks_for_every_atom():
    with pytest.raises(KeyError, match="no value for"):
        ix.evaluate(a + N, {a: 1})


def test_a_sum_of_a_thousand_terms():
    atoms = [loop(n, 3) for n in range(1000)]
    total = ix.add(*atoms)
    assert bounds(total) == (0, 2000)
    assert ix.add(*reversed(atoms)) is total


@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR])
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int32], ids=str)
def test_bounds_of_shifts(op, dtype):
    """They hold what `execute` gives, also where bits are lost."""
    for low, high in ((0, 3), (-4, 5), (100, 120)):
        for least, most in ((0, 0), (1, 3), (5, 9), (0, 40)):
            x = Variable("x", low, high).cast(dtype)
            amount = Variable("n", least, most).cast(dtype)
            found = [
                execute(op, dtype, (execute(Ops.CAST, dtype, (v,), dtypes.int64), n), dtype)
                for v in range(low, high + 1)
                for n in range(least, most + 1)
            ]
            least_bound, greatest_bound = bounds(UOp(op, dtype, (x, amount)))
            assert least_bound <= min(found)
            assert max(found) <= greatest_bound

"""Numbers and conditions under each other: nothing changes in truth, and numbers only where nobody asks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad.dtype import dtypes
from lazygrad.ir import AxisType, Ops, RangeArg, UOp, Variable, bounds, render
from lazygrad.ir import index as ix
from lazygrad.shape import ShapeTracker
from lazygrad.simplify.validity import beyond, has_division, limits, simplified


def loop(number, size):
    size = size if isinstance(size, UOp) else ix.const(size)
    return UOp(Ops.RANGE, dtypes.index, (size,), RangeArg(number, AxisType.LOOP))


# *** all values at once

MEANING = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.IDIV: np.floor_divide,
    Ops.MOD: np.mod,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.WHERE: np.where,
    Ops.CMPLT: np.less,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.logical_and,
}


def grid(*nodes):
    """Every atom of the nodes → an array of its values: all combinations."""
    atoms = {n: None for root in nodes for n in root.toposort() if n.op in (Ops.RANGE, Ops.DEFINE_VAR)}
    axes = [np.arange(bounds(a)[0], bounds(a)[1] + 1) for a in atoms]
    values = dict(zip(atoms, np.meshgrid(*axes, indexing="ij"), strict=True))
    real = np.bool_(True)  # a loop of symbolic length ends before its size
    for atom in atoms:
        if atom.op is Ops.RANGE:
            real = real & (values[atom] < value(atom.src[0], values))
    return values, real


def value(root, values):
    done = dict(values)
    for node in root.toposort():
        if node not in done:
            sources = [done[s] for s in node.src]
            done[node] = np.asarray(node.arg) if node.op is Ops.CONST else MEANING[node.op](*sources)
    return done[root]


def check(valid, *numbers):
    """The simplified condition and numbers, after a look at every combination of values."""
    found, simpler = simplified(valid, numbers)
    values, real = grid(valid, *numbers, found, *simpler)
    holds = value(valid, values) & real
    text = f"{render(valid)} became {render(found)}"
    assert np.array_equal(holds, value(found, values) & real), text
    for before, after in zip(numbers, simpler, strict=True):
        expected, got = value(before, values), value(after, values)
        assert np.all((expected == got) | ~holds), f"{text}; {render(before)} became {render(after)}"
    return found, simpler


# *** anything

A, B, C, D = loop(0, 4), loop(1, 7), loop(2, 5), loop(3, 3)
N = Variable("n", 1, 4)
S = loop(4, N)


def sums(atoms, least=-3, most=12):
    term = st.tuples(st.sampled_from(atoms), st.sampled_from([1, 1, 1, -1, -1, 2, 3, 4, 5, 6, 7, 12, -4]))
    return st.builds(
        lambda terms, c: ix.add(*[a * k for a, k in terms], ix.const(c)),
        st.lists(term, min_size=1, max_size=3),
        st.integers(least, most),
    )


def numbers(atoms):
    divisors = st.sampled_from([2, 3, 4, 5, 7, 8, 13])
    plain = sums(atoms)
    divided = st.one_of(
        st.builds(lambda x, d: x // d, plain, divisors), st.builds(lambda x, d: x % d, plain, divisors)
    )
    twice = st.one_of(
        st.builds(lambda x, d: x // d, divided, divisors),
        st.builds(lambda x, y, d: (x * 6 + y) % d, divided, plain, divisors),
        st.builds(lambda x, y, k: x * k + y, divided, divided, st.integers(-4, 6)),
    )
    return st.one_of(plain, divided, divided, twice)


def conditions(atoms):
    inner = numbers(atoms)
    return st.one_of(
        st.builds(lambda x, c: x < c, inner, st.integers(-3, 20)),
        st.builds(lambda x, c: ix.logical_not(x < c), inner, st.integers(-3, 20)),
        st.builds(lambda x, m: (x % m) < 1, sums(atoms), st.sampled_from([2, 3, 4])),
        st.builds(lambda x, c: x.eq(c), inner, st.integers(-2, 8)),
        st.builds(lambda x, c: x.ne(c), inner, st.integers(-2, 8)),
        st.builds(lambda x, y: x < y, inner, inner),
    )


def kernels(atoms):
    several = st.lists(conditions(atoms), min_size=1, max_size=5)
    return st.tuples(several, st.lists(numbers(atoms), max_size=3))


@settings(max_examples=400)
@given(kernels([A, B, C, D]))
def test_anything(kernel):
    valid, given_numbers = kernel
    check(ix.all_of(valid), *given_numbers)


@settings(max_examples=100)
@given(kernels([A, B, S, N]))
def test_with_a_symbolic_length(kernel):
    valid, given_numbers = kernel
    check(ix.all_of(valid), *given_numbers)


@pytest.mark.slow
@settings(max_examples=4000)
@given(kernels([A, B, C, D]))
def test_anything_at_length(kernel):
    valid, given_numbers = kernel
    check(ix.all_of(valid), *given_numbers)


@settings(max_examples=200)
@given(st.lists(conditions([A, B, C]), max_size=4), st.lists(conditions([A, B, C]), max_size=3))
def test_beyond_what_is_known(asked, given_before):
    valid, known = ix.all_of(asked), ix.all_of(given_before)
    rest = beyond(valid, known)
    values, _ = grid(valid, known)
    before = value(valid, values) & value(known, values)
    assert np.array_equal(before, value(rest, values) & value(known, values))


@settings(max_examples=200)
@given(st.lists(conditions([A, B, C]), min_size=1, max_size=4))
def test_limits(asked):
    valid = ix.all_of(asked)
    found = limits(valid, [A, B, C])
    values, _ = grid(valid, A, B, C)
    holds = np.broadcast_to(value(valid, values), values[A].shape)
    if found is None:
        assert not holds.any()
        return
    for atom, (low, high) in zip((A, B, C), found, strict=True):
        chosen = values[atom][holds]
        assert np.all((low <= chosen) & (chosen <= high))


# *** what must simplify

R, G = loop(0, 4), loop(1, 12)
X = R * 12 + G  # rows of 12, cut out of rows of 13
ROWS = ix.all_of([X < 39, X % 13 < 10])


def test_a_row_and_a_place_in_it():
    valid, (row, place, both) = check(
        ROWS, X // 13 % 3, X % 13, X // 39 * 360 + X % 13 * 36 + X // 13 % 3 * 12
    )
    assert (row, place, both) == (R, G - R, G * 36 - R * 24)
    assert set(ix.conjuncts(valid)) == {R < 3, G - R < 10, ix.logical_not(G - R < 0)}


def test_what_is_said_plainly_is_used_as_well():
    between = ix.all_of([ix.logical_not(G - R < 0), G - R < 10])
    valid, found = check(between, X // 13, X % 13)
    assert (valid, found) == (between, (R, G - R))


def test_a_narrow_range():
    valid, found = check(ix.all_of([ix.const(0) < R, R < 3]), (R - 1) % 2, (R + 3) // 4)
    assert found == (R - 1, ix.const(1))
    assert len(ix.conjuncts(valid)) == 2


def test_a_condition_that_follows_is_dropped():
    first, second = R * 3 + G < 9, R < 3
    assert check(ix.all_of([first, R < 4, G < 10]))[0] is ix.all_of([first])
    assert check(ix.all_of([second, R < 2]))[0] is (R < 2)
    assert check(ix.all_of([R + G < 20, R + G < 7]))[0] is (R + G < 7)


def test_a_contradiction_is_false():
    assert check(ix.all_of([R < 2, ix.const(4) < R + G, G < 3]))[0] is ix.FALSE
    assert check(ix.all_of([X < 12, ix.const(0) < R]))[0] is ix.FALSE
    assert check(ix.all_of([X % 13 < 3, R.eq(1), G.eq(0)]))[0] is ix.FALSE


def test_a_number_that_is_a_multiple():
    y = R * 14 + G
    valid, found = check(
        ix.all_of([y % 15 < 12, y < 45, y % 15 % 2 < 1]), y % 15 // 2 * 6, y % 15 // 2, y % 15 % 2
    )
    assert found == (G * 3 - R * 3, (G - R) // 2, ix.const(0))
    assert [c for c in ix.conjuncts(valid) if has_division(c)] == [(G - R) % 2 < 1]


def test_nothing_to_do_gives_the_same_back():
    condition = ix.all_of([ix.const(0) < G + R, G + R < 13])
    assert simplified(condition) == (condition, ())
    assert simplified(ix.TRUE, (X // 13,)) == (ix.TRUE, (X // 13,))


def test_what_is_loaded_stays_as_it_is():
    """A LOAD is done whether or not the condition holds: its own index may not assume it."""
    table = UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(4), (), 0)
    inner = (R + 3) % 4
    loaded = UOp(
        Ops.CAST, dtypes.index, (UOp(Ops.LOAD, dtypes.int, (UOp(Ops.INDEX, table.dtype, (table, inner)),)),)
    )
    valid = ix.all_of([ix.const(0) < R, R < 3])
    _, (number,) = simplified(valid, (loaded * 5 + (R + 3) % 4,))
    assert number is loaded * 5 + R - 1


# *** windows: the shapes of convolutions and pools, and their gradients


def windows(tracker, k, s, d):
    """The last axis as (places, k), by the movements of Tensor._pool."""
    n = tracker.shape[-1]
    places = (n - d * (k - 1) - 1) // s + 1
    lead = tracker.shape[:-1]
    repeats = math.ceil(k * (n + d) / n)
    whole = ((0, size) for size in lead)
    whole = tuple(whole)
    tracker = tracker.reshape((*lead, 1, n)).expand((*lead, repeats, n)).reshape((*lead, repeats * n))
    tracker = tracker.shrink((*whole, (0, k * (n + d)))).reshape((*lead, k, n + d))
    tracker = tracker.shrink((*whole, (0, k), (0, places * s if places * s <= n + d else n + d)))
    width = tracker.shape[-1]
    tracker = tracker.pad((*((0, 0) for _ in whole), (0, 0), (0, places * s - width)))
    tracker = tracker.reshape((*lead, k, places, s)).shrink((*whole, (0, k), (0, places), (0, 1)))
    return tracker.reshape((*lead, k, places)).permute((*range(len(lead)), len(lead) + 1, len(lead)))


def scattered(n, k, s, d):
    """Its transpose: places and k, laid out in the rows that the windows were cut from; (repeats, n)."""
    places = (n - d * (k - 1) - 1) // s + 1
    repeats = math.ceil(k * (n + d) / n)
    tracker = ShapeTracker.from_shape((places, k)).permute((1, 0)).reshape((k, places, 1))
    tracker = tracker.pad(((0, 0), (0, 0), (0, s - 1))).reshape((k, places * s))
    if places * s <= n + d:
        tracker = tracker.pad(((0, 0), (0, n + d - places * s)))
    else:
        tracker = tracker.shrink(((0, k), (0, n + d)))
    tracker = tracker.reshape((k * (n + d),)).pad(((0, repeats * n - k * (n + d)),))
    return tracker.reshape((repeats, n))


CASES = [
    (12, 3, 1, 1),
    (14, 3, 1, 1),
    (12, 5, 1, 1),
    (28, 3, 1, 1),
    (14, 3, 2, 1),
    (13, 3, 2, 1),
    (15, 3, 2, 1),
]
CASES += [(9, 2, 1, 1), (11, 3, 1, 2), (12, 2, 3, 2), (16, 5, 2, 1), (7, 7, 1, 1), (17, 4, 3, 1)]


@pytest.mark.parametrize(("n", "k", "s", "d"), CASES)
def test_windows(n, k, s, d):
    tracker = windows(ShapeTracker.from_shape((3, n)), k, s, d)
    number, valid = tracker.to_indexed_uops()
    _, (found,) = check(valid, number)
    assert not has_division(found)


@pytest.mark.parametrize(("n", "k", "s", "d"), CASES)
def test_the_transpose_of_windows(n, k, s, d):
    number, valid = scattered(n, k, s, d).to_indexed_uops()
    found, (simpler,) = check(valid, number)
    divided = [c for c in ix.conjuncts(found) if has_division(c)]
    if s == 1:
        assert not divided
        assert not has_division(simpler)
        assert len(ix.conjuncts(found)) <= 3
    else:  # only every s-th place has an element
        assert len(divided) == 1
        assert sum(n.op in (Ops.IDIV, Ops.MOD) for n in simpler.toposort()) <= 1
        assert len(ix.conjuncts(found)) <= 4

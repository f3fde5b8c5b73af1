"""ShapeTracker: every sequence of movements shows what numpy shows, in as few views as can be seen."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, UOp, Variable
from lazygrad.ir.args import AxisType, RangeArg
from lazygrad.ir.index import evaluate
from lazygrad.ir.text import render
from lazygrad.shape import ShapeTracker, View
from lazygrad.shape.sizes import at_most, mul, prod, quotient
from tests.shape.oracle import (
    Step,
    apply,
    fits_one_view,
    move,
    numbers,
    numbers_at_once,
    steps,
    walk,
)

n, m = Variable("n", 1, 5), Variable("m", 2, 4)


# ---- every sequence of movements on small shapes ----


@pytest.mark.parametrize("shape", [(2, 3), (4,), (2, 2, 2), (1, 3), ()])
def test_every_sequence_of_four_movements(shape: tuple[int, ...]) -> None:
    """Checked by plain arithmetic on the views, and for three movements by the index expressions too."""
    array = 1 + np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    front = [(ShapeTracker.from_shape(shape), array)]
    seen: set[ShapeTracker] = set()
    missed = 0
    for depth in range(4):
        following = []
        for tracker, before in front:
            for step in steps(before.shape):
                after, moved = move(before, step), apply(tracker, step)
                if moved in seen:
                    continue
                seen.add(moved)
                shown = walk(moved)
                assert moved.shape == after.shape, (tracker, step)
                assert (shown + 1 == after).all(), (tracker, step)
                if depth < 3:
                    assert (numbers_at_once(moved) == shown).all(), (tracker, step)
                if depth < 2:
                    assert (numbers(moved) == shown).all(), (tracker, step)
                missed += len(moved.views) > 1 and fits_one_view(shown)
                if after.size <= 48:
                    following.append((moved, after))
        front = following
    assert missed <= max(2, len(seen) // 1000), (
        f"{missed} of {len(seen)} trackers could be one view and are not"
    )


# ---- random sequences on larger shapes ----


@st.composite
def sequences(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Step]]:
    """A shape, and up to 8 movements that fit."""
    start = shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    made: list[Step] = []
    for _ in range(draw(st.integers(1, 8))):
        step = draw(one_movement(shape))
        made.append(step)
        shape = move(np.empty(shape, np.int8), step).shape
    return start, made


@st.composite
def one_movement(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    rank, size = len(shape), int(np.prod(shape, dtype=int))
    kind = draw(st.sampled_from(["reshape", "permute", "expand", "pad", "shrink", "flip"]))
    if kind == "reshape":
        sizes: list[int] = []
        left = size
        while left > 1 and len(sizes) < 4:
            sizes.append(draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0])))
            left //= sizes[-1]
        return kind, (*sizes, *([left] if left != 1 or draw(st.booleans()) else []))
    if kind == "permute":
        return kind, tuple(draw(st.permutations(range(rank))))
    if kind == "expand":
        return kind, tuple(draw(st.integers(0, 3)) if s == 1 and size <= 200 else s for s in shape)
    if kind == "pad":
        most = 2 if size <= 200 else 0
        return kind, tuple((draw(st.integers(0, most)), draw(st.integers(0, most))) for _ in shape)
    if kind == "shrink":
        spans = []
        for s in shape:
            begin = draw(st.integers(0, s))
            spans.append((begin, draw(st.integers(begin, s))) if draw(st.booleans()) else (0, s))
        return kind, tuple(spans)
    return kind, tuple(axis for axis in range(rank) if draw(st.booleans()))


@given(sequences())
@settings(max_examples=400)
def test_random_sequences(case: tuple[tuple[int, ...], list[Step]]) -> None:
    shape, made = case
    array = 1 + np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    tracker = ShapeTracker.from_shape(shape)
    for step in made:
        array, tracker = move(array, step), apply(tracker, step)
    assert tracker.shape == array.shape
    assert (walk(tracker) + 1 == array).all()
    assert (numbers_at_once(tracker) + 1 == array).all()
    if array.size <= 100:
        assert (numbers(tracker) + 1 == array).all()
    assert tracker.real_size() >= array.max(initial=0)
    assert tracker.simplify() == tracker


@given(sequences(), st.data())
@settings(max_examples=300)
def test_a_sum_is_one_after_the_other(case: tuple[tuple[int, ...], list[Step]], data: st.DataObject) -> None:
    """Any cut of a sequence gives two trackers whose sum shows the same."""
    shape, made = case
    cut = data.draw(st.integers(0, len(made)))
    first = whole = ShapeTracker.from_shape(shape)
    for step in made[:cut]:
        first = apply(first, step)
    second = ShapeTracker.from_shape(first.shape)
    for step in made[cut:]:
        second = apply(second, step)
    for step in made:
        whole = apply(whole, step)
    assert (walk(first + second) == walk(whole)).all()
    assert (walk(ShapeTracker(first.views + second.views)) == walk(whole)).all()


@given(sequences())
@settings(max_examples=300)
def test_real_strides_are_what_neighbours_differ_by(case: tuple[tuple[int, ...], list[Step]]) -> None:
    shape, made = case
    tracker = ShapeTracker.from_shape(shape)
    for step in made:
        tracker = apply(tracker, step)
    shown = walk(tracker)
    for axis, stride in enumerate(tracker.real_strides(ignore_valid=True)):
        if stride is None or shown.shape[axis] < 2 or not shown.size:
            continue
        before, after = np.moveaxis(shown, axis, 0)[:-1], np.moveaxis(shown, axis, 0)[1:]
        both = (before >= 0) & (after >= 0)
        assert (after - before == stride)[both].all()
    for axis, stride in enumerate(tracker.real_strides()):
        if stride is not None and shown.size:
            valid = np.moveaxis(shown >= 0, axis, 0)
            assert (valid == valid[:1]).all(), "the axis decides whether there is an element"


# ---- symbolic sizes ----

SYMBOLIC = [
    ("a slice", (10,), [("shrink", ((0, n),))], 1),
    ("repeated", (10,), [("shrink", ((0, n),)), ("reshape", (1, n)), ("expand", (3, n))], 1),
    ("flat", (n, 4), [("reshape", (n * 4,)), ("reshape", (2, n * 2))], 1),
    ("transposed and flat", (n, 4), [("permute", (1, 0)), ("reshape", (n * 4,))], 2),
    ("cut", (n, 4), [("permute", (1, 0)), ("reshape", (n * 4,)), ("reshape", (2, 2, n))], 1),
    ("padded to the maximum", (n,), [("pad", ((0, 5 - n),)), ("reshape", (1, 5)), ("expand", (2, 5))], 1),
    ("padded and flipped", (n,), [("pad", ((2, 1),)), ("flip", (0,))], 1),
    ("padded rows", (n, 3), [("pad", ((0, 0), (1, 1))), ("reshape", (n * 5,))], 2),
    (
        "padding taken away again",
        (n, 3),
        [
            ("pad", ((1, 1), (0, 0))),
            ("reshape", (n * 3 + 6,)),
            ("flip", (0,)),
            ("shrink", ((3, n * 3 + 3),)),
        ],
        1,
    ),
    (
        "three axes",
        (2, n, 3),
        [("flip", (1,)), ("permute", (1, 0, 2)), ("reshape", (n, 6)), ("shrink", ((0, n), (1, 4)))],
        2,
    ),
    (
        "a row at a symbolic place, as a cache writes it",
        (6, 4),
        [
            ("shrink", ((n, n + 1), (0, 4))),
            ("pad", ((n, 5 - n), (0, 0))),
            ("reshape", (24,)),
            ("reshape", (6, 2, 2)),
        ],
        1,
    ),
    (
        "one of two caches, in heads",
        (2, 6, 4),
        [
            ("shrink", ((1, 2), (0, n), (0, 4))),
            ("reshape", (n, 2, 2)),
            ("permute", (1, 0, 2)),
            ("reshape", (2, n * 2)),
        ],
        2,
    ),
    ("two variables", (n, m), [("permute", (1, 0)), ("pad", ((1, 0), (0, 1))), ("flip", (0,))], 1),
    (
        "two variables, flat",
        (n, m, 2),
        [("reshape", (n * m, 2)), ("permute", (1, 0)), ("reshape", (2, n, m))],
        1,
    ),
]


def bound(value: object, values: dict[UOp, int]) -> object:
    """The sizes anywhere in an argument, as ints."""
    if isinstance(value, tuple):
        return tuple(bound(v, values) for v in value)
    if isinstance(value, UOp):
        return evaluate(value, values)
    return value


@pytest.mark.parametrize(("name", "shape", "made", "views"), SYMBOLIC, ids=[case[0] for case in SYMBOLIC])
def test_symbolic_sizes_agree_with_concrete_ones(name, shape, made, views) -> None:
    tracker = ShapeTracker.from_shape(shape)
    for step in made:
        tracker = apply(tracker, step)
    assert len(tracker.views) == views
    for k in range(1, 6):
        for j in (
            range(2, 5) if m in (node for s in shape if isinstance(s, UOp) for node in s.toposort()) else (2,)
        ):
            values = {n: k, m: j}
            concrete = bound(shape, values)
            array = 1 + np.arange(int(np.prod(concrete))).reshape(concrete)
            for kind, arg in made:
                array = move(array, (kind, bound(arg, values)))
            shown = numbers(tracker, values)
            assert shown.shape == array.shape
            assert (shown + 1 == array).all()
            assert tracker.real_size() >= array.max(initial=0)


def random_symbolic_step(choose: random.Random, shape: tuple) -> Step:
    """A movement that fits whatever the Variables are."""
    kind = choose.choice(["reshape", "reshape", "permute", "expand", "pad", "shrink", "shrink", "flip"])
    axes = list(range(len(shape)))
    if kind == "permute":
        return kind, tuple(choose.sample(axes, len(axes)))
    if kind == "flip":
        return kind, tuple(axis for axis in axes if choose.random() < 0.5)
    if kind == "pad":
        return kind, tuple((choose.choice([0, 0, 1, 2, n]), choose.choice([0, 0, 1, 5 - n])) for _ in shape)
    if kind == "expand":
        return kind, tuple(choose.choice([1, 2, n, m]) if size == 1 else size for size in shape)
    if kind == "shrink":
        spans = []
        for size in shape:
            begin, end = (
                choose.choice([0, 0, 1, n, n - 1]),
                choose.choice([size, size, size - 1, n, 2, n + 1]),
            )
            fits = at_most(0, begin) and at_most(begin, end) and at_most(end, size)
            spans.append((begin, end) if fits else (0, size))
        return kind, tuple(spans)
    sizes = list(shape)
    for _ in range(2):
        if len(sizes) > 1 and choose.random() < 0.5:
            at = choose.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [prod(sizes[at : at + 2])]
        elif sizes:
            at, factor = choose.randrange(len(sizes)), choose.choice([1, 2, 3, n, m])
            rest = quotient(sizes[at], factor)
            if mul(rest, factor) == sizes[at]:
                sizes[at : at + 1] = [factor, rest]
    return kind, tuple(sizes)


@pytest.mark.parametrize("seed", range(4))
def test_random_symbolic_sequences(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(200):
        shape = tuple(choose.choice([1, 2, 3, 4, n, m]) for _ in range(choose.randint(1, 3)))
        tracker, made = ShapeTracker.from_shape(shape), []
        for _ in range(choose.randint(1, 6)):
            made.append(random_symbolic_step(choose, tracker.shape))
            tracker = apply(tracker, made[-1])
        for values in ({n: 1, m: 2}, {n: 2, m: 3}, {n: 5, m: 3}, {n: 3, m: 4}):
            concrete = bound(shape, values)
            array = 1 + np.arange(int(np.prod(concrete))).reshape(concrete)
            for kind, arg in made:
                array = move(array, (kind, bound(arg, values)))
            if array.size <= 300:
                assert (numbers(tracker, values) + 1 == array).all(), (shape, made, values)
            assert tracker.real_size() >= array.max(initial=0)


def test_unbind_gives_variables_and_their_values() -> None:
    b = n.bind(3)
    tracker = ShapeTracker.from_shape((b, 4)).permute((1, 0)).pad(((0, 0), (0, 5 - b)))
    free, values = tracker.unbind()
    assert values == {n: 3}
    assert free == ShapeTracker.from_shape((n, 4)).permute((1, 0)).pad(((0, 0), (0, 5 - n)))
    assert free.unbind() == (free, {})
    values.clear()
    assert tracker.unbind()[1] == {n: 3}, "the caller owns the dict"


def test_one_variable_with_two_values_is_refused() -> None:
    with pytest.raises(ValueError, match="Variable n is bound to 2 and to 3 at once"):
        ShapeTracker.from_shape((n.bind(2), n.bind(3))).unbind()


# ---- what is printed, compared and asked ----


def test_printed_as_the_documents_show() -> None:
    assert repr(ShapeTracker.from_shape((1,))) == (
        "ShapeTracker(views=(View(shape=(1,), strides=(0,), offset=0, mask=None, contiguous=True),))"
    )


def test_equal_trackers_hash_equal_and_survive_pickle() -> None:
    a = ShapeTracker.from_shape((2, 3)).permute((1, 0)).reshape((2, 3))
    b = ShapeTracker(a.views)
    assert a == b
    assert hash(a) == hash(b)
    assert a != ShapeTracker.from_shape((2, 3))
    assert pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(ValueError, match="at least one View"):
        ShapeTracker(())


def test_a_permuted_matrix_reshaped_needs_two_views() -> None:
    tracker = ShapeTracker((View.create((2, 3), (1, 2)),)).reshape((3, 2))
    assert len(tracker.views) == 2
    number, valid = tracker.to_indexed_uops()
    assert render(number) == "(((((ridx0*2)+ridx1)%3)*2)+(((ridx0*2)+ridx1)//3))"
    assert render(valid) == "True"


def test_indexed_takes_any_expressions() -> None:
    i = UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 6),), RangeArg(0, AxisType.LOOP))
    tracker = ShapeTracker.from_shape((2, 3))
    number, valid = tracker.indexed((i // 3, i % 3))
    assert number is i
    assert valid is UOp.const(dtypes.bool, True)
    number, _ = tracker.permute((1, 0)).indexed((i % 3, i // 3))
    assert number is i


def test_views_that_are_one_become_one() -> None:
    tracker = ShapeTracker.from_shape((2, 3)).permute((1, 0)).reshape((2, 3))
    assert len(tracker.views) == 2
    assert tracker.reshape((3, 2)) == ShapeTracker.from_shape((2, 3)).permute((1, 0))
    assert len(tracker.shrink(((0, 1), (0, 2))).views) == 1
    stacked = ShapeTracker(
        (View.create((2, 3), (1, 2)), View.create((2, 3)), View.create((2, 3), (-3, 1), 3))
    )
    assert stacked.simplify() == ShapeTracker((View.create((2, 3), (-1, 2), 1),))


@pytest.mark.parametrize(
    ("size", "window", "step", "apart"), [(6, 3, 1, 1), (6, 2, 2, 1), (11, 3, 2, 2), (8, 3, 1, 2)]
)
def test_sliding_windows_are_one_view(size: int, window: int, step: int, apart: int) -> None:
    """Repeat, cut, reshape, cut: what a convolution does to its input."""
    places = (size - apart * (window - 1) - 1) // step + 1
    row = size + apart
    made: list[Step] = [
        ("reshape", (2, 1, size)),
        ("expand", (2, window + 1, size)),
        ("reshape", (2, (window + 1) * size)),
        ("shrink", ((0, 2), (0, window * row))),
        ("reshape", (2, window, row)),
        ("shrink", ((0, 2), (0, window), (0, places * step))),
        ("reshape", (2, window, places, step)),
        ("shrink", ((0, 2), (0, window), (0, places), (0, 1))),
        ("reshape", (2, window, places)),
    ]
    tracker = ShapeTracker.from_shape((2, size))
    for movement in made:
        tracker = apply(tracker, movement)
    assert tracker == ShapeTracker((View.create((2, window, places), (size, apart, step)),))


def test_strides_sizes_and_contiguity() -> None:
    plain = ShapeTracker.from_shape((2, 3))
    assert plain.contiguous
    assert plain.size == 6
    assert plain.real_strides() == (3, 1)
    assert plain.unit_stride_axes() == [1]
    turned = plain.permute((1, 0))
    assert not turned.contiguous
    assert turned.real_strides() == (1, 3)
    assert turned.unit_stride_axes() == [0]
    assert turned.reshape((6,)).real_strides() == (None,)
    padded = plain.pad(((0, 0), (1, 1)))
    assert padded.real_strides() == (3, None)
    assert padded.real_strides(ignore_valid=True) == (3, 1)
    assert padded.unit_stride_axes(ignore_valid=True) == [1]
    assert padded.real_size() == 6
    assert plain.shrink(((0, 1), (0, 2))).real_size() == 2
    assert ShapeTracker.from_shape((n, 3)).real_size() == 15
    assert ShapeTracker.from_shape((n, 3)).permute((1, 0)).reshape((n * 3,)).real_size() == 15
    assert ShapeTracker.from_shape((3, n)).real_strides() == (n, 1)


def test_a_sum_on_a_plain_tracker_is_the_other() -> None:
    other = ShapeTracker.from_shape((6,)).pad(((1, 1),))
    assert ShapeTracker.from_shape((2, 3)) + other is other
    assert ShapeTracker.from_shape((2, 3)).flip((0,)) + ShapeTracker.from_shape((6,)) == (
        ShapeTracker.from_shape((2, 3)).flip((0,)).reshape((6,))
    )

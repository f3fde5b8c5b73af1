"""graph_rewrite: to the fixed point, each node once, no recursion, watched if wanted."""

from __future__ import annotations

import threading
import time

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, PatternMatcher, RewriteError, UOp, UPat, Variable, graph_rewrite, observe
from lazygrad.ir.index import bounds
from lazygrad.ir.rewrite import resolve, same_value, transform

x, y = UPat.var("x"), UPat.var("y")
c0, c1 = UPat.cvar("c0"), UPat.cvar("c1")
A, B = (UOp(Ops.UNIQUE, dtypes.int, arg=n) for n in range(2))
folds = PatternMatcher(
    [
        (x + 0, x),
        (x * 1, x),
        ((x + c0) + c1, x + (c0 + c1)),
        (c0 + c1, lambda c0, c1: c0.const_like(c0.arg + c1.arg)),
    ]
)


def test_to_the_fixed_point():
    assert graph_rewrite(((A * 1 + 3) + 4) * 1 + -7, folds) is A
    assert graph_rewrite(A * B, folds) is A * B


def test_what_a_rule_makes_is_rewritten_too():
    matcher = PatternMatcher([(x - y, x + (-y)), (-x, x * -1), (x * -1, UOp(Ops.XOR, dtypes.int, (A, A)))])
    assert graph_rewrite(B - A, matcher) is B + (A ^ A)


def test_sources_come_first():
    seen = []
    matcher = PatternMatcher([(UPat(name="n"), lambda n: seen.append(n))])
    graph_rewrite((A + B) * A, matcher)
    assert seen == [A, B, A + B, (A + B) * A]


def test_shared_nodes_are_visited_once():
    count = 0

    def note(n):
        nonlocal count
        count += 1

    node = A
    for _ in range(60):
        node = node * node
    graph_rewrite(node, PatternMatcher([(UPat(Ops.MUL, name="n"), note)]))
    assert count == 60


def test_ctx_is_passed():
    matcher = PatternMatcher([(UPat(Ops.UNIQUE, name="u"), lambda u, ctx: ctx.get(u))])
    assert graph_rewrite(A + 1, matcher, ctx={A: B}) is B + 1


def test_index_nodes_are_rebuilt_canonical():
    n, m = Variable("n", 0, 9), Variable("m", 0, 9)
    matcher = PatternMatcher([(UPat(Ops.DEFINE_VAR, name="v"), lambda v: m if v is n else None)])
    assert graph_rewrite((n + m) // 2, matcher) is m


def test_a_long_chain():
    node = A
    for _ in range(20_000):
        node = node + 1
    assert graph_rewrite(node, folds) is A + 20_000


def test_ten_thousand_nodes_in_a_moment():
    node = A
    for n in range(2_500):
        node = (node * B + n % 5) * 1 + node
    assert len(node.toposort()) > 9_000
    start = time.process_time()
    graph_rewrite(node, folds)
    assert time.process_time() - start < 10  # 0.1 s on an idle core


@pytest.mark.parametrize(
    "rows",
    [
        [(x + y, x * y), (x * y, x + y)],
        [(x + y, (x + y) * 1 + y)],
        [(UPat.cvar("c0"), lambda c0: c0.const_like(c0.arg + 1))],
        [(x + y, x + (0 - (0 - y)))],
    ],
    ids=["ping-pong", "grows around itself", "counts", "grows inside"],
)
def test_rules_without_end_are_named(rows):
    with pytest.raises(
        RewriteError,
        match=r"(?s)circles: these rules rewrite each other's results forever.*test_rewrite.py:\d+",
    ):
        graph_rewrite(A + B + 1, PatternMatcher(rows), name="circles")


def test_observe():
    events = []
    with observe(lambda *event: events.append(event)):
        graph_rewrite((A + 0) * 1, folds, name="fold")
    graph_rewrite(B + 0, folds)
    assert [(name, before, after) for name, _, before, after in events] == [
        ("fold", A + 0, A),
        ("fold", A * 1, A),
    ]
    assert all("test_rewrite.py:" in place for _, place, _, _ in events)


def test_observers_nest_and_belong_to_their_thread():
    outer, inner, other = [], [], []

    def elsewhere():
        with observe(lambda *event: other.append(event)):
            graph_rewrite(B * 1 + 0, folds)

    with observe(lambda *event: outer.append(event)):
        with observe(lambda *event: inner.append(event)):
            graph_rewrite(A + 0, folds)
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        graph_rewrite(B + 0, folds)
    assert (len(outer), len(inner), len(other)) == (2, 1, 2)


def test_what_is_kept_is_not_entered():
    assert graph_rewrite((A + 0) * 1, folds, kept=(A + 0,)) is A + 0


def test_a_node_on_sources_of_the_same_values_keeps_its_bounds():
    n = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("n", 0, 9))
    hide = PatternMatcher([(UPat(Ops.DEFINE_VAR), A)])
    everything = int(dtypes.min(dtypes.int)), int(dtypes.max(dtypes.int))
    shown, hidden = n * 3, A * 3
    assert bounds(shown) == (0, 27)
    assert graph_rewrite(shown, hide) is hidden
    assert bounds(hidden) == everything
    graph_rewrite(shown, hide, rebuild=same_value)
    assert bounds(hidden) == (0, 27)  # also where less was known before


# ---- transform ----


def widened(node, src):
    """int becomes int64, which a rule could not do: it never sees ADD and its sources of different types."""
    return UOp(node.op, dtypes.int64, src, node.arg) if node.dtype is dtypes.int else None


def test_a_transformation_sees_each_node_once_with_its_new_sources():
    asked = []

    def change(node, src):
        asked.append(node)
        return widened(node, src)

    made = transform((A + B) * A, change, "widen")
    assert {node.dtype for node in made.toposort()} == {dtypes.int64}
    assert asked == [A, B, A + B, (A + B) * A]
    assert transform(A + B, lambda node, src: None, "nothing") is A + B


def test_the_bounds_of_a_transformed_node_are_those_of_its_new_sources():
    n = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("n", 0, 9))
    unknown = UOp(Ops.UNIQUE, dtypes.int, (), "any number")
    hidden = unknown * 3
    assert bounds(hidden) != (0, 27)
    made = transform(hidden, lambda node, src: n if node is unknown else None, "show")
    assert bounds(made) == (0, 27)


def test_transformations_are_watched():
    seen = []
    with observe(
        lambda name, place, before, after: seen.append((name, place.rsplit(":")[0], before.op, after.dtype))
    ):
        transform(-A, widened, "widen")
    assert seen == [("widen", __file__, Ops.UNIQUE, dtypes.int64), ("widen", __file__, Ops.NEG, dtypes.int64)]


# ---- resolve ----


def test_a_question_is_answered_once_after_those_that_it_raises():
    asked = []

    def answer(n):
        asked.append(n)
        return done[n - 1] + done[n - 2]

    done = {0: 0, 1: 1}
    assert resolve(6, lambda n: (n - 2, n - 1), answer, done) == 8
    assert asked == [2, 3, 4, 5, 6]
    assert resolve(6, lambda n: (), answer, done) == 8
    assert resolve(20_000, lambda n: (n - 1,), lambda n: done[n - 1], done) == 8


def test_a_transformation_starts_from_what_is_known_and_may_be_silent():
    seen = []
    with observe(lambda *rewrite: seen.append(rewrite)):
        done = {A: B}
        assert transform(-A, lambda node, src: None, None, done=done) is -B
        assert transform(-A, widened, None).dtype is dtypes.int64
    assert not seen
    assert done[-A] is -B

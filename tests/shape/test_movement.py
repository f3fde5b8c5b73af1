"""Movement builders: what they build, what they leave out, and what they refuse in which words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, UOp, Variable, index
from lazygrad.ir.index import substitute
from lazygrad.ir.uop import toposort
from lazygrad.shape import (
    ShapeTracker,
    base_and_tracker,
    broadcast_shapes,
    broadcast_to,
    expand,
    flip,
    pad,
    permute,
    reshape,
    resolve_minus_one,
    shape_of,
    shrink,
    vmax,
)
from tests.shape.oracle import move, walk
from tests.shape.test_tracker import sequences

n = Variable("n", 1, 10)
DEVICE = UOp(Ops.DEVICE, arg="CPU")


def buffer(*shape: int) -> UOp:
    """A buffer with its elements in a shape."""
    flat = UOp(Ops.BUFFER, dtypes.float, (DEVICE, UOp(Ops.UNIQUE, arg=0)), int(np.prod(shape, dtype=int)))
    return reshape(flat, shape)


def test_nodes_carry_the_dtype_and_plain_arguments() -> None:
    x = buffer(2, 3)
    assert (x.op, x.dtype, x.arg) == (Ops.RESHAPE, dtypes.float, (2, 3))
    assert pad(x, [[1, 0], [0, 2]]).arg == ((1, 0), (0, 2))
    assert shrink(x, [(0, 1), (1, 3)]).arg == ((0, 1), (1, 3))
    assert permute(x, [1, 0]).arg == (1, 0)
    assert flip(x, [1, 0]).arg == (0, 1)
    assert reshape(x, np.array([3, 2])).arg == (3, 2)
    assert type(reshape(x, np.array([3, 2])).arg[0]) is int


def test_a_movement_that_changes_nothing_is_the_tensor() -> None:
    x = buffer(2, 3)
    assert reshape(x, (2, 3)) is x
    assert expand(x, (2, 3)) is x
    assert permute(x, (0, 1)) is x
    assert pad(x, ((0, 0), (0, 0))) is x
    assert shrink(x, ((0, 2), (0, 3))) is x
    assert flip(x, ()) is x
    assert flip(reshape(x, (6, 1)), (1,)) is reshape(x, (6, 1))
    assert broadcast_to(x, (2, 3)) is x


def test_a_movement_stands_on_the_tensor_it_was_asked_of() -> None:
    x = buffer(2, 3)
    line = reshape(x, (6,))
    assert reshape(line, (2, 3)).src[0] is line
    assert reshape(line, (3, 2)).src[0] is line
    turned = permute(x, (1, 0))
    assert permute(turned, (1, 0)).src[0] is turned
    back = flip(x, (0,))
    assert flip(back, (0,)).src[0] is back
    part = shrink(x, ((0, 2), (1, 3)))
    assert shrink(part, ((1, 2), (1, 2))).src[0] is part
    # what they look at is the same
    assert base_and_tracker(flip(back, (0,))) == base_and_tracker(x)


def test_symbolic_sizes() -> None:
    x = shrink(buffer(10), ((0, n),))
    assert shape_of(x) == (n,)
    y = expand(reshape(x, (1, n)), (3, n))
    assert shape_of(reshape(y, (n * 3,))) == (n * 3,)
    assert shape_of(pad(x, ((0, 10 - n),))) == (10,)
    assert type(shape_of(pad(x, ((0, 10 - n),)))[0]) is int
    assert reshape(x, (n + 1 - 1,)) is x
    b = n.bind(4)
    base, tracker = base_and_tracker(shrink(buffer(10, 2), ((0, b), (0, 2))))
    assert tracker.unbind() == (ShapeTracker.from_shape((10, 2)).shrink(((0, n), (0, 2))), {n: 4})
    assert base.op is Ops.BUFFER


@pytest.mark.parametrize(
    ("shape", "new", "expected"),
    [
        ((2, 3), (3, 2), (3, 2)),
        ((2, 3), (-1,), (6,)),
        ((2, 3), (2, -1, 1), (2, 3, 1)),
        ((), (-1,), (1,)),
        ((0, 3), (-1, 3), (0, 3)),
        ((n, 4), (-1, 2), (n * 2, 2)),
        ((n, 4), (n, -1), (n, 4)),
    ],
)
def test_minus_one_is_worked_out(shape, new, expected) -> None:
    assert resolve_minus_one(shape, new) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reshape(buffer(2, 3), (4, 2)), "cannot reshape (2, 3) into (4, 2): 6 elements into 8"),
        (lambda: reshape(buffer(6), (-2, -3)), "cannot reshape (6,) to (-2, -3): size -2 is negative"),
        (
            lambda: reshape(shrink(buffer(10), ((0, n),)), (2, n)),
            "cannot reshape (n,) into (2, n): n elements into n*2",
        ),
        (lambda: reshape(buffer(6), (2.0, 3)), "a size must be an integer or a Variable, not 2.0"),
        (
            lambda: resolve_minus_one((6,), (-1, -1)),
            "cannot reshape (6,) into (-1, -1): only one size can be -1",
        ),
        (
            lambda: resolve_minus_one((6,), (-1, 4)),
            "cannot reshape (6,) into (-1, 4): 6 elements are no multiple of 4",
        ),
        (
            lambda: resolve_minus_one((0,), (-1, 0)),
            "cannot reshape (0,) into (-1, 0): next to a size of 0, -1 could be anything",
        ),
        (
            lambda: expand(buffer(2, 3), (2, 6)),
            "cannot expand (2, 3) to (2, 6): axis 1 has size 3, and only size 1 expands",
        ),
        (lambda: expand(buffer(3), (2, 3)), "cannot expand (3,) to (2, 3): 1 axes to 2; reshape first"),
        (lambda: expand(buffer(1), (-1,)), "cannot expand (1,) to (-1,): size -1 is negative"),
        (
            lambda: permute(buffer(2, 3), (0, 0)),
            "cannot permute (2, 3) by (0, 0): name each axis of (0, 1) once",
        ),
        (lambda: permute(buffer(2, 3), (1,)), "cannot permute (2, 3) by (1,): name each axis of (0, 1) once"),
        (
            lambda: pad(buffer(3), ((-1, 0),)),
            "cannot pad (3,) by ((-1, 0),): the amounts must not be negative; shrink takes elements away",
        ),
        (lambda: pad(buffer(2, 3), ((1, 0),)), "cannot pad (2, 3) by ((1, 0),): 1 pairs for 2 axes"),
        (
            lambda: shrink(buffer(2, 3), ((0, 2), (1, 4))),
            "cannot shrink (2, 3) to ((0, 2), (1, 4)): axis 1 needs 0 <= 1 <= 4 <= 3",
        ),
        (
            lambda: shrink(buffer(4), ((3, 2),)),
            "cannot shrink (4,) to ((3, 2),): axis 0 needs 0 <= 3 <= 2 <= 4",
        ),
        (
            lambda: shrink(buffer(4), ((0, n),)),
            "cannot shrink (4,) to ((0, n),): "
            "axis 0 needs 0 <= 0 <= n <= 4 whatever the Variables are bound to",
        ),
        (
            lambda: shrink(buffer(11), ((n.bind(10), n.bind(10) + 2),)),
            "cannot shrink (11,) to ((n=10, n=10+2),): axis 0 needs 0 <= n=10 <= n=10+2 <= 11",
        ),
        (
            lambda: shrink(buffer(4), ((n.bind(2), 3),)),  # of other values there is no size
            "cannot shrink (4,) to ((n=2, 3),): "
            "axis 0 needs 0 <= n=2 <= 3 <= 4 whatever the Variables are bound to",
        ),
        (
            lambda: pad(buffer(4), ((0, 3 - n.bind(4)),)),
            "cannot pad (4,) by ((0, n=4*-1+3),): "
            "the amounts must not be negative; shrink takes elements away",
        ),
        (
            lambda: flip(buffer(2, 3), (2,)),
            "cannot flip (2, 3) along (2,): name each axis once, among (0, 1)",
        ),
        (lambda: flip(buffer(2), (0, 0)), "cannot flip (2,) along (0, 0): name each axis once, among (0,)"),
        (
            lambda: broadcast_shapes((2, 3), (4,), (1, 1)),
            "cannot broadcast (2, 3), (4,), (1, 1) together: axis -1 has the sizes 3 and 4, and neither is 1",
        ),
        (
            lambda: broadcast_to(buffer(2, 3), (3,)),
            "cannot broadcast (2, 3) to (3,): from the last axis on, sizes must be equal or 1",
        ),
    ],
)
def test_what_is_refused_and_why(call, message) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as error:
        call()
    assert str(error.value) == message


@given(st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), max_size=4))
def test_shapes_broadcast_as_numpy_does(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="together"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


def test_broadcast_with_symbolic_sizes() -> None:
    assert broadcast_shapes((n, 1), (1, 4), (4,)) == (n, 4)
    assert broadcast_shapes((n,), (n,)) == (n,)
    with pytest.raises(ValueError, match=re.escape("axis -1 has the sizes n and 4")):
        broadcast_shapes((n,), (4,))


def test_broadcast_to() -> None:
    x = broadcast_to(buffer(2, 1), (5, 2, 3))
    assert shape_of(x) == (5, 2, 3)
    _, tracker = base_and_tracker(x)
    assert (walk(tracker) == np.broadcast_to(np.arange(2).reshape(2, 1), (5, 2, 3))).all()


BUILDERS = {
    "reshape": reshape, "permute": permute, "expand": expand, "pad": pad, "shrink": shrink, "flip": flip,
}  # fmt: skip


@given(sequences())
def test_random_chains_show_what_numpy_shows(case) -> None:
    shape, made = case
    array = 1 + np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    x = buffer(*shape)
    for step in made:
        array = move(array, step)
        x = BUILDERS[step[0]](x, step[1])
        assert shape_of(x) == array.shape
    base, tracker = base_and_tracker(x)
    assert base.op is Ops.BUFFER
    assert (walk(tracker) + 1 == array).all()


def test_the_base_is_the_first_node_that_is_no_movement() -> None:
    x = buffer(2, 3)
    total = UOp(Ops.ADD, dtypes.float, (x, x))
    base, tracker = base_and_tracker(flip(permute(total, (1, 0)), (0,)))
    assert base is total
    assert tracker == ShapeTracker.from_shape((2, 3)).permute((1, 0)).flip((0,))
    assert base_and_tracker(total) == (total, ShapeTracker.from_shape((2, 3)))


def test_a_long_chain_needs_no_recursion() -> None:
    x = buffer(2, 3)
    for _ in range(20_000):
        x = flip(permute(x, (1, 0)), (0,))
    base, tracker = base_and_tracker(x)
    assert base.op is Ops.BUFFER
    assert tracker == ShapeTracker.from_shape((2, 3))


# *** ends at Variables


@pytest.mark.parametrize(
    ("span", "size"),
    [
        (lambda v: (v, v + 2), lambda v: 2),
        (lambda v: (v - 2, v), lambda v: 2),
        (lambda v: (0, v), lambda v: v),
        (lambda v: (v - 2, 2 * v), lambda v: v + 2),
        (lambda v: (0, v + 3), lambda v: v + 3),
    ],
)
def test_no_value_of_a_variable_leads_out_of_the_memory(span, size) -> None:
    """What is bound fits, and gives its elements; other values give such a size too, of elements or zeros."""
    length, bound = 5, Variable("v", 0, 9).bind(2)
    part = shrink(buffer(length), (span(bound),))
    tracker = base_and_tracker(part)[1].unbind()[0]
    assert shape_of(part) == (size(bound),)
    for v in range(10):
        number, valid = (
            substitute([each], {variable: index.const(v) for variable in variables_in(each)})[each]
            for each in tracker.to_indexed_uops()
        )
        places = [r for r in toposort((number, valid)) if r.op is Ops.RANGE]
        inside = []
        for place in range(size(v)):
            values = dict.fromkeys(places, place)
            if index.evaluate(valid, values):
                inside.append(index.evaluate(number, values))
        assert all(0 <= each < length for each in inside)
        begin, end = span(v)
        if begin >= 0 and end <= length:
            assert inside == list(range(begin, end))


def variables_in(node: UOp) -> list[UOp]:
    return [each for each in node.toposort() if each.op is Ops.DEFINE_VAR]


def test_a_pad_may_be_negative_for_other_values() -> None:
    padded = pad(buffer(4), ((0, 4 - Variable("v", 0, 9).bind(1)),))
    assert padded.op is Ops.PAD
    assert vmax(shape_of(padded)[0]) == 8


def test_sizes_that_are_plain_numbers_are_seen_at_a_glance():
    node = UOp(Ops.CONST, dtypes.float, (), 1.0)
    for shape in ((1, 1), (5, 1), (5, 7), (0, 7)):
        node_now = expand(reshape(node, (1, 1)), shape)
        assert shape_of(node_now) == shape
    with pytest.raises(ValueError, match=re.escape("a tensor has at most 2**63 - 1 elements")):
        expand(reshape(node, (1, 1)), (1 << 32, 1 << 31))
    with pytest.raises(ValueError, match="size -1 is negative"):
        reshape(reshape(node, (1, 1)), (-1, -1))

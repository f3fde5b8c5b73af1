"""View: its canonical form, its printed form, and what one view can say."""

from __future__ import annotations

import pickle

import pytest

from lazygrad.ir import Variable
from lazygrad.ir.text import render
from lazygrad.shape import ShapeTracker, View
from lazygrad.shape.view import merge_dims
from tests.shape.oracle import numbers

n = Variable("n", 1, 10)


def test_printed_as_the_documents_show() -> None:
    assert repr(View.create((1,))) == "View(shape=(1,), strides=(0,), offset=0, mask=None, contiguous=True)"
    assert repr(View.create((2,))) == "View(shape=(2,), strides=(1,), offset=0, mask=None, contiguous=True)"
    padded = View.create((4,)).pad(((1, 1),))
    assert repr(padded) == "View(shape=(6,), strides=(1,), offset=-1, mask=((1, 5),), contiguous=False)"


def test_strides_of_row_major_order() -> None:
    assert View.create((2, 3, 4)).strides == (12, 4, 1)
    assert View.create((2, 1, 4)).strides == (4, 0, 1)
    assert View.create(()).strides == ()


def test_an_axis_that_never_steps_has_stride_0() -> None:
    assert View.create((1, 4), (7, 1)) == View.create((1, 4))
    assert View.create((1, 4), (7, 1)).contiguous


def test_one_valid_place_steps_nowhere() -> None:
    view = View.create((3, 3), (3, 1), 0, ((1, 2), (0, 2)))
    assert (view.strides, view.offset) == ((0, 1), 3)
    number, valid = view.to_indexed_uops()
    assert render(number) == "(ridx1+3)"
    assert render(valid) == "((((ridx0<1)!=True)&(ridx0<2))&(ridx1<2))"


def test_a_mask_that_hides_nothing_is_none() -> None:
    assert View.create((2, 3), mask=((0, 2), (0, 3))) == View.create((2, 3))
    assert View.create((n, 3), mask=((0, n), (0, 3))) == View.create((n, 3))


def test_a_mask_that_hides_everything_has_one_form() -> None:
    hidden = View.create((4, 4), (4, 1), 3, ((0, 4), (2, 2)))
    assert hidden == View.create((4, 4), (1, 4), 0, ((1, 1), (0, 4)))
    assert hidden.is_hidden
    assert hidden.real_size() == 0
    assert hidden.reshape((2, 8)) == View.create((2, 8), mask=((0, 0), (0, 0)))
    assert hidden.reshape((16, 1)) is not None
    one = View.create((1,), mask=((0, 0),))
    assert one.reshape(()) is None, "a scalar has no axis that could say so"
    assert numbers(ShapeTracker((one,)).reshape(())) == -1
    assert (
        numbers(ShapeTracker((View.create((3,), mask=((0, 2),)), View.create((), offset=2))).simplify()) == -1
    )


def test_equal_views_hash_equal_and_survive_pickle() -> None:
    a, b = View.create((2, 3)).permute((1, 0)), View.create((3, 2), (1, 3))
    assert a == b
    assert hash(a) == hash(b)
    assert a != View.create((3, 2))
    assert pickle.loads(pickle.dumps(a)) == a


def test_index_and_validity_as_text() -> None:
    number, valid = View.create((2, 2), (2, 1)).to_indexed_uops()
    assert (render(number), render(valid)) == ("((ridx0*2)+ridx1)", "True")
    number, valid = View.create((4,)).pad(((1, 1),)).to_indexed_uops()
    assert (render(number), render(valid)) == ("(ridx0+-1)", "(((ridx0<1)!=True)&(ridx0<5))")


def test_shrink_and_flip() -> None:
    view = View.create((4, 4)).shrink(((0, 3), (0, 4))).flip((0,))
    assert (view.shape, view.strides, view.offset) == ((3, 4), (-4, 1), 8)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 2, 2), (4, 2, 1), ((8, 1, 8),)),
        ((2, 2, 2), (0, 0, 1), ((4, 0, 0), (2, 1, 2))),
        ((2, 3), (1, 2), ((2, 1, 2), (3, 2, 3))),
        ((2, 1, 3), (3, 0, 1), ((6, 1, 6),)),
        ((4, n), (n, 1), ((n * 4, 1, n * 4),)),
        ((), (), ()),
    ],
)
def test_axes_that_are_walked_as_one(shape, strides, expected) -> None:
    assert merge_dims(shape, strides) == expected


@pytest.mark.parametrize(
    ("view", "shape", "expected"),
    [
        (View.create((6,)), (2, 3), View.create((2, 3))),
        (View.create((2, 3)), (6,), View.create((6,))),
        (View.create((2, 3), (1, 2)), (3, 2), None),
        (View.create((3, 2), (1, 3)), (2, 3), None),
        (View.create((4, 6), (1, 4)), (2, 2, 3, 2), View.create((2, 2, 3, 2), (2, 1, 8, 4))),
        (View.create((4, 6), (1, 4)), (4, 1, 6, 1), View.create((4, 1, 6, 1), (1, 0, 4, 0))),
        (View.create((2, 4), (0, 0)), (8,), View.create((8,), (0,))),
        # a mask that covers whole rows is cut with them, and joined with what is below
        (View.create((4, 3), mask=((1, 3), (0, 3))), (12,), View.create((12,), mask=((3, 9),))),
        (View.create((12,), mask=((3, 9),)), (4, 3), View.create((4, 3), mask=((1, 3), (0, 3)))),
        (View.create((12,), mask=((4, 6),)), (4, 3), View.create((4, 3), mask=((1, 2), (1, 3)))),
        (View.create((12,), mask=((4, 7),)), (4, 3), None),
        (View.create((4, 3), mask=((0, 4), (1, 3))), (12,), None),
        (View.create((4, 3), mask=((2, 3), (1, 3))), (12,), View.create((12,), mask=((7, 9),))),
        # symbolic sizes
        (View.create((n, 4)), (n * 4,), View.create((n * 4,))),
        (View.create((4, n), (1, 4)), (2, 2, n), View.create((2, 2, n), (2, 1, 4))),
        (View.create((4, n), (1, 4)), (n * 4,), None),
        (View.create((n * 4,), mask=((4, n * 4),)), (n, 4), View.create((n, 4), mask=((1, n), (0, 4)))),
    ],
)
def test_reshape(view, shape, expected) -> None:
    assert view.reshape(shape) == expected


def test_reshape_shows_the_same_elements() -> None:
    view = View.create((4, 3), mask=((2, 3), (1, 3)))
    flat = view.reshape((12,))
    assert flat is not None
    assert (numbers(view).ravel() == numbers(flat)).all()


def test_a_shape_without_elements() -> None:
    empty = View.create((0, 3))
    assert empty.contiguous
    assert empty.real_size() == 0
    assert empty.reshape((3, 0, 5)) == View.create((3, 0, 5))
    assert empty.permute((1, 0)) == View.create((3, 0))
    assert empty.flip((0, 1)) == empty
    assert View.create((2, 3)).shrink(((1, 1), (0, 3))) == View.create((0, 3))
    assert View.create((1, 3)).expand((0, 3)) == empty
    padded = empty.pad(((1, 1), (0, 0)))
    assert padded.shape == (2, 3)
    assert padded.is_hidden


def test_real_size_is_that_of_the_last_element_read() -> None:
    assert View.create((2, 3)).real_size() == 6
    assert View.create((2, 3), (0, 1)).real_size() == 3
    assert View.create((2, 3), (-3, 1), 3).real_size() == 6
    assert View.create((6,), mask=((0, 4),)).real_size() == 4
    assert View.create((n, 3)).real_size() == n * 3


def test_a_flip_by_a_bool_for_each_axis() -> None:
    """A bool is no number of an axis."""
    view = View.create((4, 2))
    assert view.flip((False, True)) == view.flip((1,))
    assert view.flip((False, False)) == view

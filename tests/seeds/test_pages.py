"""SEEDS 17, S148: the examples of the pages that the seeds lead to."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, UOp, Variable, dtypes
from lazygrad.ir import Ops, PatternMatcher, UPat, graph_rewrite, render
from lazygrad.shape.tracker import ShapeTracker
from lazygrad.shape.view import View, merge_dims


def texts(view: View | ShapeTracker) -> tuple[str, str]:
    index, valid = view.to_indexed_uops()
    return render(index), render(valid)


def test_S148_views():
    assert texts(View.create((2, 2), (2, 1))) == ("((ridx0*2)+ridx1)", "True")
    turned = View.create((3, 2)).permute((1, 0))
    assert (turned.shape, turned.strides) == ((2, 3), (1, 2))
    assert turned.reshape((3, 2)) is None
    padded = View.create((4,)).pad(((1, 1),))
    assert (padded.shape, padded.offset, padded.mask) == ((6,), -1, ((1, 5),))
    assert texts(padded) == ("(ridx0+-1)", "(((ridx0<1)!=True)&(ridx0<5))")
    window = View.create((4, 4)).shrink(((0, 3), (0, 4))).flip((0,))
    assert (window.strides, window.offset) == ((-4, 1), 8)


def test_S148_several_views():
    tracker = ShapeTracker.from_shape((3, 2)).permute((1, 0)).reshape((3, 2))
    assert len(tracker.views) == 2
    assert texts(tracker)[0] == "(((((ridx0*2)+ridx1)%3)*2)+(((ridx0*2)+ridx1)//3))"


def test_S148_merging_axes():
    assert merge_dims((2, 2, 2), (4, 2, 1)) == ((8, 1, 8),)
    assert merge_dims((2, 2, 2), (0, 0, 1)) == ((4, 0, 0), (2, 1, 2))


def test_S148_rules():
    x, c = UPat.var("x"), UPat.cvar("c")
    matcher = PatternMatcher([(x + 0, x), (x * c, lambda x, c: x if c.arg == 1 else None)])
    n = UOp(Ops.DEFINE_VAR, dtypes.int, arg=("n", 0, 9))
    assert graph_rewrite((n + 0) * 1, matcher) is n
    assert graph_rewrite(n * 2, matcher) is n * 2


def test_S148_a_matrix_product_is_a_product_and_a_sum():
    a, b = Tensor.arange(8).reshape(2, 4), Tensor.arange(12).reshape(4, 3)
    by_hand = a.reshape(2, 1, 4).expand(2, 3, 4) * b.permute(1, 0).reshape(1, 3, 4).expand(2, 3, 4)
    assert by_hand.sum(2).tolist() == (a @ b).tolist() == [[42, 48, 54], [114, 136, 158]]


def test_S148_convolution():
    image = Tensor.arange(16).reshape(1, 1, 4, 4).float()
    assert image.conv2d(Tensor.ones(1, 1, 3, 3)).tolist() == [[[[45.0, 54.0], [81.0, 90.0]]]]
    assert image._pool((3, 3), 1, 1).shape == (1, 1, 2, 2, 3, 3)
    assert image._pool((2, 2), 2, 1).shape == (1, 1, 2, 2, 2, 2)
    corners = image[:, :, :3, :3]._pool((2, 2), 1, 2)
    assert Tensor.arange(9).reshape(1, 1, 3, 3)._pool((2, 2), 1, 2).flatten().tolist() == [0, 2, 6, 8]
    assert corners.flatten().tolist() == [0.0, 2.0, 8.0, 10.0]


def test_S148_constants_and_breaks():
    """Floats are folded only where that is exact: here they are added one after the other, in one kernel."""
    x = Tensor.empty(4, 4).realize()
    (kernel,) = (x + 4 + 3).kernels(target="metal")
    assert "((val0.x+4.0f)+3.0f)" in kernel.source
    assert len(((x + 4).contiguous() + 3).schedule()) == 2


@pytest.mark.parametrize("length", [5, 8])
def test_S148_symbolic_sizes(length):
    n = Variable("length", 4, 8)
    assert Tensor.ones(10).contiguous().realize()[: n.bind(length)].sum().item() == length
    bound = n.bind(length)
    assert (bound.op, bound.unbind(), bound.val) == (Ops.BIND, (n, length), length)


def test_S148_the_first_page_of_the_front_end():
    t = Tensor([1, 2, 3, 4, 5])
    result = ((t + 1) * 2 * t).relu().log_softmax().numpy()
    assert result.round(4).tolist() == [-56.0, -48.0, -36.0, -20.0, 0.0]
    assert abs(Tensor([1, 2, 3, 4]).var().item() - 5 / 3) < 1e-6

"""Arguments of a wrong kind, unknown, missing or too many: the error names the method and the argument."""

from __future__ import annotations

import pytest

from lazygrad import Context, Tensor
from lazygrad.nn import functional as F
from tests.tensor.wrong import FOUR, INTS, LINE, SCALAR, Row, X, check, ids

ROWS: list[Row] = [
    # of another kind than the annotation says
    ("gather", lambda: LINE.gather(0, 5), TypeError, "gather: index must be a Tensor, not 5"),
    ("conv2d", lambda: X.conv2d(3), TypeError, "conv2d: weight must be a Tensor, not 3"),
    ("cross_entropy", lambda: X.cross_entropy("a"), TypeError, "cross_entropy: Y must be a Tensor, not 'a'"),
    ("backward", lambda: SCALAR.backward("a"), TypeError, "backward: gradient must be a Tensor, not 'a'"),
    (
        "gradient",
        lambda: SCALAR.gradient(SCALAR, "a"),
        TypeError,
        "each of targets must be a Tensor, not 'a'",
    ),
    ("dropout", lambda: LINE.dropout("a"), TypeError, "dropout: p must be a number, not 'a'"),
    ("chunk", lambda: LINE.chunk(2.0), TypeError, "chunk: chunks must be an int, not 2.0"),
    (
        "chunk",
        lambda: LINE.chunk(FOUR),
        TypeError,
        "chunk: chunks must be an int, not a Tensor of shape (4,)",
    ),
    ("rearrange", lambda: LINE.rearrange(3), TypeError, "rearrange: formula must be a string, not 3"),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d("a"),
        TypeError,
        "kernel_size must be an int or a sequence of ints, not 'a'",
    ),
    ("avg_pool2d", lambda: X.avg_pool2d((2, 1.5)), TypeError, "a sequence of ints, not (2, 1.5)"),
    ("sum", lambda: LINE.sum(keepdim="yes"), TypeError, "sum: keepdim must be True or False, not 'yes'"),
    ("sum", lambda: LINE.sum({0}), TypeError, "sum: axis must be an int or a sequence of ints, not {0}"),
    ("gather", lambda: LINE.gather(axis="a", index=LINE), TypeError, "gather: axis must be an int, not 'a'"),
    ("relu", lambda: LINE.dropout(object()), TypeError, "dropout: p must be a number, not <object object>"),
    ("take_along_dim", lambda: LINE.take_along_dim([0], 0), TypeError, "indices must be a Tensor, not [0]"),
    ("scatter", lambda: LINE.scatter(0, [0], 1.0), TypeError, "scatter: index must be a Tensor, not [0]"),
    ("masked_select", lambda: LINE.masked_select([True]), TypeError, "mask must be a Tensor, not [True]"),
    ("trapezoid", lambda: LINE.trapezoid([1.0]), TypeError, "trapezoid: x must be a Tensor, not [1.0]"),
    ("cov", lambda: LINE.cov(aweights=3), TypeError, "cov: aweights must be a Tensor, not 3"),
    ("fftn", lambda: LINE.fftn(4), TypeError, "fftn: s must be a sequence of ints, not 4"),
    ("rearrange", lambda: LINE.rearrange("(a b) -> a b", b="x"), TypeError, "b must be an int, not 'x'"),
    # unknown, with the closest that is known
    ("sum", lambda: LINE.sum(foo=3), TypeError, "sum has no argument 'foo'; it takes axis, keepdim, dtype"),
    ("sum", lambda: LINE.sum(keepdm=True), TypeError, "'keepdm'; did you mean keepdim or keepdims?"),
    (
        "zeros",
        lambda: Tensor.zeros(2, dtyp="int32"),
        TypeError,
        "zeros has no argument 'dtyp'; did you mean dtype?",
    ),
    ("max_pool1d", lambda: X.max_pool1d(2, strid=1), TypeError, "no argument 'strid'; did you mean stride?"),
    (
        "Tensor",
        lambda: Tensor(1, bogus=2),
        TypeError,
        "Tensor has no argument 'bogus'; it takes data, device, dtype",
    ),
    (
        "dropout",
        lambda: F.dropout(LINE, trainin=True),
        TypeError,
        "dropout has no argument 'trainin'; did you mean training?",
    ),
    # missing, or too many
    ("stack", lambda: Tensor.stack(), TypeError, "stack needs a Tensor"),
    ("chunk", lambda: LINE.chunk(), TypeError, "chunk needs chunks"),
    ("threshold", lambda: LINE.threshold(), TypeError, "threshold needs threshold and value"),
    ("gelu", lambda: F.gelu(), TypeError, "gelu needs input"),
    ("relu", lambda: LINE.relu(1), TypeError, "relu takes no arguments; 1 was given in order"),
    (
        "chunk",
        lambda: LINE.chunk(1, 0, 3),
        TypeError,
        "chunk takes chunks, dim in this order; 3 were given in order",
    ),
    (
        "add",
        lambda: LINE.add(1, 2, 3),
        TypeError,
        "add takes other in this order and alpha by name; 3 were given",
    ),
    (
        "chunk",
        lambda: LINE.chunk(2, chunks=3),
        TypeError,
        "chunks is given twice, by its place and by its name",
    ),
    ("sum", lambda: LINE.gather(0, dim=0, index=LINE), TypeError, "dim is given twice"),
    (
        "sum",
        lambda: LINE.softmin(dim=0, axis=0),
        TypeError,
        "softmin: give dim or axis, which are the same, not both",
    ),
    (
        "squeeze",
        lambda: LINE.squeeze(dim=0, axis=0),
        TypeError,
        "give dim or axis, which are the same, not both",
    ),
    # of nothing that is a Tensor
    ("relu", lambda: Tensor.relu(3), TypeError, "relu is a method of Tensors, not of 3"),
    ("relu", lambda: F.relu([1.0]), TypeError, "relu: input must be a Tensor, not [1.0]"),
    ("realize", lambda: Tensor.realize(3), TypeError, "realize is a method of Tensors, not of 3"),
    # where the method itself has to look
    ("arange", lambda: Tensor.arange(LINE), TypeError, "arange takes numbers, not a Tensor of shape (3,)"),
    ("arange", lambda: Tensor.arange(object()), TypeError, "arange takes numbers, not <object object"),
    ("float_power", lambda: LINE.float_power("a"), TypeError, "takes a number or a Tensor, not 'a'"),
    ("tensordot", lambda: X.tensordot(X, None), TypeError, "the axes of both, not None"),
    (
        "sum_to_size",
        lambda: X.sum_to_size("a"),
        TypeError,
        "a size must be an integer or a Variable, not 'a'",
    ),
    ("glorot_uniform", lambda: Tensor.glorot_uniform("a", 2), TypeError, "a size must be an integer"),
    ("index_put", lambda: LINE.index_put(3, LINE), TypeError, "index_put: indices must be a sequence, not 3"),
    ("fftn", lambda: X.fftn(dim=1.5), TypeError, "fftn: dim must be an int or a sequence of ints, not 1.5"),
    ("scatter", lambda: LINE.scatter(0, INTS, "a"), TypeError, "src must be a Tensor or a number, not 'a'"),
    (
        "scatter_reduce",
        lambda: LINE.scatter_reduce(0, INTS, [1.0], "sum"),
        TypeError,
        "scatter_reduce: src must be a Tensor or a number, not [1.0]",
    ),
    ("put_along_dim", lambda: LINE.put_along_dim(INTS, "a", 0), TypeError, "a Tensor or a number, not 'a'"),
    (
        "gaussian_nll_loss",
        lambda: LINE.gaussian_nll_loss(LINE, None),
        TypeError,
        "var must be a Tensor or a num",
    ),
    (
        "upsample",
        lambda: X.upsample(scale_factor="a"),
        TypeError,
        "scale_factor must be a number or a sequence",
    ),
    (
        "is_same_size",
        lambda: LINE.is_same_size((3,)),
        TypeError,
        "is_same_size: other must be a Tensor, not (3,)",
    ),
    (
        "narrow_copy",
        lambda: LINE.narrow_copy(0, 1.5, 1),
        TypeError,
        "narrow_copy: start must be an int, not 1.5",
    ),
    ("repeat", lambda: LINE.repeat(None), TypeError, "a size must be an integer or a Variable, not None"),
    ("tile", lambda: LINE.tile("a"), TypeError, "a size must be an integer or a Variable, not 'a'"),
    (
        "scaled_uniform",
        lambda: Tensor.scaled_uniform("a"),
        TypeError,
        "a size must be an integer or a Variable",
    ),
    (
        "randperm",
        lambda: Tensor.randperm(Tensor(3)),
        TypeError,
        "randperm cannot take n=a Tensor of shape ()",
    ),
    ("size", lambda: LINE.size(5), IndexError, "a tensor of shape (3,) has no axis 5"),
    ("repeat", lambda: LINE.repeat(-1), ValueError, "repeat needs numbers of at least 0, not (-1,)"),
    (
        "repeat_interleave",
        lambda: LINE.repeat_interleave(-1),
        ValueError,
        "needs a number of at least 0",
    ),
    ("normal", lambda: Tensor.normal(3, std=-1), ValueError, "deviation of at least 0, not -1"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_names_the_argument(row: Row) -> None:
    check(row)


def test_what_failed_below_is_kept() -> None:
    with pytest.raises(TypeError) as caught:
        Tensor.randperm(Tensor(3))
    assert isinstance(caught.value.__context__, AttributeError)  # not shown, unless it is asked for
    assert caught.value.__suppress_context__
    with Context(TRACEBACK=1), pytest.raises(TypeError) as caught:
        Tensor.randperm(Tensor(3))
    assert isinstance(caught.value.__cause__, AttributeError)


def test_errors_of_a_user_s_code_pass() -> None:
    def broken(line):
        return line.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        LINE.sequential([broken])
    assert not hasattr(LINE, "no_such_attribute")


def test_numbers_of_other_libraries_are_numbers() -> None:
    import numpy as np

    assert len(LINE.chunk(np.int64(3))) == 3
    assert LINE.sum(np.int32(0), keepdim=np.bool_(True)).shape == (1,)
    assert LINE.softplus(np.float32(1.0)).shape == (3,)
    assert X.avg_pool2d(np.array([2, 2])).shape == (2, 3, 2, 2)
    assert LINE.unsqueeze(Tensor(0)).shape == (1, 3)


def test_diagonals_far_outside() -> None:
    square = Tensor.ones(2, 3)
    assert [square.triu(d).sum().item() for d in (10**12, -(10**12))] == [0, 6]
    assert [square.tril(d).sum().item() for d in (10**12, -(10**12), 2, -2)] == [6, 0, 6, 0]


def test_multinomial_of_weights_that_are_none_gives_an_index() -> None:
    assert Tensor([-0.5, 0.5]).multinomial(1).item() in (0, 1)

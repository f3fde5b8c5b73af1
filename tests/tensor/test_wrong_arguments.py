"""Arguments that are none: the error names the method and the argument, whatever failed below."""

from __future__ import annotations

import pytest

from lazygrad import Tensor

X = Tensor.ones(2, 3, 4, 4).realize()
LINE = Tensor([1.0, 2.0, 3.0])
SCALAR = Tensor([1.0], requires_grad=True).sum()

WRONG = [
    (lambda: LINE.gather(0, 5), TypeError, "gather: index is a Tensor, not 5"),
    (lambda: X.conv2d(3), TypeError, "conv2d: weight is a Tensor, not 3"),
    (lambda: X.cross_entropy("a"), TypeError, "cross_entropy: Y is a Tensor, not 'a'"),
    (lambda: SCALAR.backward("a"), TypeError, "backward: gradient is a Tensor, not 'a'"),
    (lambda: SCALAR.gradient(SCALAR, "a"), TypeError, "gradient: targets is a Tensor, not 'a'"),
    (lambda: LINE.replace(1), TypeError, "replace: other is a Tensor, not 1"),
    (lambda: LINE.dropout("a"), TypeError, "dropout: p is a number, not 'a'"),
    (lambda: LINE.chunk("a"), TypeError, "chunk: chunks is an int, not 'a'"),
    (lambda: LINE.rearrange(3), TypeError, "rearrange: formula is a string, not 3"),
    (lambda: LINE.sum(foo=3), TypeError, r"Tensor\.sum\(\) got an unexpected keyword argument 'foo'"),
    (lambda: Tensor.stack(), TypeError, r"Tensor\.stack\(\) missing 1 required positional argument"),
    (lambda: X.avg_pool2d("a"), TypeError, "avg_pool2d cannot take kernel_size='a': unsupported operand"),
    (lambda: LINE.split("a"), TypeError, "split cannot take sizes='a'"),
    (lambda: LINE.fill_("a"), TypeError, "fill_ cannot take value='a'"),
    (lambda: X.group_norm(0), ValueError, "group_norm cannot take num_groups=0"),
    (lambda: LINE.histogram(1.5), ValueError, r"histogram cannot take bins=1\.5"),
    (lambda: Tensor.arange(LINE), TypeError, r"arange takes numbers, not a Tensor of shape \(3,\)$"),
    (lambda: LINE.index_put(3, LINE), TypeError, r"indices=3, values=a Tensor of shape \(3,\)"),
    (lambda: LINE.realize("a"), TypeError, "only Tensors are computed, not 'a'"),
    (lambda: LINE.schedule("a"), TypeError, "only Tensors are computed, not 'a'"),
    (lambda: LINE.size(5), IndexError, r"a tensor of shape \(3,\) has no axis 5"),
    (lambda: X.triu(0.5), TypeError, r"a diagonal is named by an int, not 0\.5"),
    (lambda: X.tril("a"), TypeError, "a diagonal is named by an int, not 'a'"),
    (lambda: LINE.repeat(-1), ValueError, r"repeat needs numbers that are not negative, not \(-1,\)"),
    (lambda: LINE.repeat_interleave(-1), ValueError, "repeat_interleave needs a number that is not negative"),
    (lambda: Tensor.normal(3, std=-1), ValueError, "deviation that is not negative, not -1"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=range(len(WRONG)))
def test_the_error_names_the_argument(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_what_failed_below_is_kept():
    with pytest.raises(TypeError) as caught:
        LINE.gather(0, 5)
    assert isinstance(caught.value.__cause__, AttributeError)


def test_errors_of_a_user_s_code_pass():
    def broken(line):
        return line.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        LINE.sequential([broken])
    assert not hasattr(LINE, "no_such_attribute")


def test_diagonals_far_outside():
    square = Tensor.ones(2, 3)
    assert [square.triu(d).sum().item() for d in (10**12, -(10**12))] == [0, 6]
    assert [square.tril(d).sum().item() for d in (10**12, -(10**12), 2, -2)] == [6, 0, 6, 0]


def test_multinomial_of_weights_that_are_none_gives_an_index():
    assert Tensor([-0.5, 0.5]).multinomial(1).item() in (0, 1)

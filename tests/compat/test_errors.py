"""Errors of methods, as older scripts catch them."""

from __future__ import annotations

import pickle
import traceback

import pytest

from lazygrad import JitError, Tensor, TinyJit
from lazygrad.compat import errors


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kind", [ValueError, RuntimeError, NotImplementedError, AssertionError])
def test_an_error_is_found_by_each_of_its_classes(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="inner sizes 4 and 1") as raised:
        Tensor.ones(2, 4) @ Tensor.ones(1, 3)
    assert traceback.format_exception_only(raised.value)[0].startswith("ValueError: cannot multiply")
    assert type(pickle.loads(pickle.dumps(raised.value))) is ValueError


@pytest.mark.usefixtures("installed")
def test_the_traceback_is_as_short_as_without() -> None:
    with pytest.raises(ValueError, match="inner sizes") as raised:
        Tensor.ones(2, 4).dot(Tensor.ones(1, 3))
    assert len(traceback.extract_tb(raised.value.__traceback__)) == 2  # this line, and the method


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kind", [JitError, RuntimeError, AssertionError])
def test_an_error_of_a_jit_is_an_assertion_too(kind: type[Exception]) -> None:
    f = TinyJit(lambda x: None)
    f(Tensor([1.0]))
    with pytest.raises(kind, match="didn't JIT anything!"):
        f(Tensor([1.0]))


@pytest.mark.usefixtures("installed")
def test_an_error_of_the_function_itself_leaves_a_jit_as_it_is() -> None:
    error = ValueError("mine")

    def fail(x: Tensor) -> Tensor:
        raise error

    with pytest.raises(ValueError, match="mine") as raised:
        TinyJit(fail)(Tensor([1.0]))
    assert raised.value is error


def test_nothing_of_that_without_compat() -> None:
    errors.install()
    errors.uninstall()
    with pytest.raises(ValueError, match="inner sizes") as raised:
        Tensor.ones(2, 4) @ Tensor.ones(1, 3)
    assert type(raised.value) is ValueError

"""`dim` or `axis`, `keepdim` or `keepdims`: when it runs, and for a type checker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lazygrad import Tensor
from tests.helpers import needs, type_errors

X = [[1.0, 5.0], [4.0, 2.0]]
CALLS: dict[str, tuple[Callable[[Tensor], Tensor], Any]] = {
    "optional": (lambda x: x.amax(axis=0, keepdims=True), [[4.0, 5.0]]),
    "required": (lambda x: x.unsqueeze(axis=0).squeeze(axis=0), X),
    "in the middle": (lambda x: x.narrow(axis=1, start=1, length=1), [[5.0], [2.0]]),
    "flip by axis": (lambda x: x.flip(axis=0), [[4.0, 2.0], [1.0, 5.0]]),
    "flip by dims": (lambda x: x.flip(dims=[0, 1]), [[2.0, 4.0], [5.0, 1.0]]),
    "flip by dim": (lambda x: x.flip(dim=-1), [[5.0, 1.0], [2.0, 4.0]]),
    "flip": (lambda x: x.flip(), [[2.0, 4.0], [5.0, 1.0]]),
}


@pytest.mark.parametrize("name", CALLS)
def test_either_name(name: str) -> None:
    call, expected = CALLS[name]
    assert call(Tensor(X)).tolist() == expected


def test_both_names_at_once() -> None:
    with pytest.raises(TypeError, match="amax: give dim or axis, which are the same, not both"):
        Tensor(X).amax(dim=0, axis=0)
    with pytest.raises(TypeError, match="flip: give the axes once; dims, dim and axis are the same"):
        Tensor(X).flip(0, axis=0)


USER = """
from typing import assert_type

from lazygrad import Tensor

x = Tensor([[1.0, 2.0]])
assert_type(x.sum(axis=0, keepdims=True), Tensor)
assert_type(x.sum(dim=0, keepdim=True), Tensor)
assert_type(x.amax(axis=0, keepdims=True) + x.amax(dim=0, keepdim=True), Tensor)
assert_type(x.unsqueeze(axis=0).squeeze(axis=0).unsqueeze(0).squeeze(dim=0), Tensor)
assert_type(x.gather(axis=1, index=x.argmax(axis=1, keepdims=True)), Tensor)
assert_type(x.gather(1, x.argmax(1, keepdim=True)), Tensor)
assert_type(x.flip(axis=0).flip(dims=[0]).softmax(dim=0).cumsum(axis=1), Tensor)
assert_type(x.chunk(2, axis=1), tuple[Tensor, ...])
assert_type(x.grad, Tensor | None)
assert_type((x == x).where(-x.T[0], 2 * x), Tensor)
assert_type(Tensor.zeros(2).exp_().realize(), Tensor)
assert_type(x.qr().Q, Tensor)
x += 1
x.amax(axes=0)
x.amaxx()
"""


@needs("mypy")
@pytest.mark.slow
def test_a_type_checker_takes_both_names(tmp_path: Path) -> None:
    errors = type_errors(USER, tmp_path)
    wrong = [
        '20: error: Unexpected keyword argument "axes" for "amax" of "Tensor"',
        '21: error: "Tensor" has no attribute "amaxx"',
    ]
    said = [error[: len(text)] for error, text in zip(errors, wrong, strict=False)]
    assert (said, len(errors)) == (wrong, len(wrong))

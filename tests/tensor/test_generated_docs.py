"""docs/tensor.md and docs/coverage.md are what docs/generate.py writes."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from lazygrad import Function, Tensor
from tests.helpers import ROOT, needs


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def test_the_methods_are_those_of_the_code() -> None:
    assert page("tensor.md") == generator().tensor_page(), "run: python docs/generate.py"


def test_type_checkers_know_both_names_of_arguments() -> None:
    stub = (ROOT / "lazygrad" / "tensor" / "spellings.pyi").read_text("utf-8")
    assert stub == generator().spellings_stub(), "run: python docs/generate.py"


def rows(text: str) -> list[str]:
    """The rows of methods, without the tests that call them."""
    return re.findall(r"^\| (\w+ \| [^|]* \| [^|]*) \| [^|]* \|$", text, re.M)


def test_the_coverage_has_every_method() -> None:
    assert [row.split(" ")[0] for row in rows(page("coverage.md"))][1:] == list(generator().methods())


@needs("torch")
@pytest.mark.slow
def test_the_coverage_is_current() -> None:
    assert rows(page("coverage.md")) == rows(generator().coverage_page()), "run: python docs/generate.py"


def test_no_gradient_is_a_wrong_one() -> None:
    assert not re.findall(r"^\| (\w+) \|[^|]*\| wrong \|", page("coverage.md"), re.M)


@pytest.mark.parametrize(("factor", "answer"), [(3.0, "yes"), (2.0, "wrong")])
def test_a_gradient_is_compared_with_differences(
    factor: float, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cube(Function):
        def forward(self, x: Tensor) -> Tensor:
            self.save_for_backward(x)
            return x * x * x

        def backward(self, grad: Tensor) -> Tensor:
            (x,) = self.saved_tensors
            return grad * factor * x * x

    def cubed(self: Tensor) -> Tensor:
        """
        >>> Tensor([1.0, 2.0]).cubed().tolist()
        """
        made: Tensor = Cube.apply(self)
        return made

    monkeypatch.setattr(Tensor, "cubed", cubed, raising=False)
    assert generator().verified(cubed) == answer

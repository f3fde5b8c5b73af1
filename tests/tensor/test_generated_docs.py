"""docs/tensor/ and docs/coverage.md are what docs/generate.py writes; its contents name every method once."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import pytest

from lazygrad import Function, Tensor
from tests.helpers import ROOT, needs


def writer(name: str) -> Any:
    """A file of docs/writers/, which finds its neighbours as under `python docs/generate.py`."""
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(f"writers.{name}")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def test_the_methods_are_those_of_the_code() -> None:
    there = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / "tensor").iterdir()}
    assert there == writer("tensor").tensor_pages(), "run: python docs/generate.py tensor"


def test_the_table_of_dtypes_is_that_of_the_code() -> None:
    assert page("dtypes.md") == writer("mixing").mixing_page(), "run: python docs/generate.py dtypes"


def heads(text: str) -> list[str]:
    """The methods that a page describes."""
    return re.findall(r"^### (\w+)$", text, re.M)


def test_every_method_stands_on_one_page() -> None:
    pages = writer("tensor").tensor_pages()
    described = [name for text in pages.values() for name in heads(text)]
    assert sorted(described) == sorted(writer("methods").methods())


def test_the_contents_lead_to_every_name() -> None:
    """Each public function of Tensor once in the list of names, and the place named there describes it."""
    pages = writer("tensor").tensor_pages()
    families, names = pages["README.md"].split("\n## Every name\n")
    linked = re.findall(r"\[(\w+)\]\((\w+\.md)#([\w-]+)\)", names)
    function_of = writer("methods").function_of
    public = [n for n in dir(Tensor) if not n.startswith("_") and function_of(n) is not None]
    assert sorted(name for name, _, _ in linked) == sorted(public)
    for name, file, place in linked:
        entry = re.search(rf"^##+ {place.replace('-', ' ')}$.*?(?=^##|\Z)", pages[file], re.M | re.S | re.I)
        assert entry, f"{file} has no place {place}"
        assert f"`{name}`" in entry[0] or entry[0].startswith(f"### {name}\n"), f"{file}#{place}: no {name}"
    for file, text in pages.items():
        assert heads(text) == re.findall(rf"\]\({re.escape(file)}#(\w+)\)", families)


def test_pages_are_of_a_length_to_read() -> None:
    pages = writer("tensor").tensor_pages()
    assert len(pages) <= 21
    assert {name: count for name, text in pages.items() if (count := text.count("\n")) > 750} == {}


def test_a_file_of_methods_that_is_on_no_page_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = writer("tensor")
    monkeypatch.setattr(tensor, "FAMILIES", tensor.FAMILIES[1:])
    with pytest.raises(
        ValueError, match=r"has the methods of lazygrad\.tensor\.core, .*exchange, lazygrad\.tensor\.host$"
    ):
        tensor.tensor_pages()


def test_type_checkers_know_what_the_families_define() -> None:
    stub = (ROOT / "lazygrad" / "tensor" / "face.pyi").read_text("utf-8")
    assert stub == writer("face").face_stub(), "run: python docs/generate.py face"


def rows(text: str) -> list[str]:
    """The rows of methods, without the tests that call them."""
    return re.findall(r"^\| (\w+ \| [^|]* \| [^|]*) \| [^|]* \|$", text, re.M)


def test_the_coverage_has_every_method() -> None:
    assert [row.split(" ")[0] for row in rows(page("coverage.md"))][1:] == list(writer("methods").methods())


@needs("torch")
@pytest.mark.slow
def test_the_coverage_is_current() -> None:
    assert rows(page("coverage.md")) == rows(writer("coverage").coverage_page()), (
        "run: python docs/generate.py"
    )


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
    assert writer("coverage").verified(cubed) == answer

"""Tensor is a core and a flat table of families: each stands alone, all are listed, no arrow runs back."""

from __future__ import annotations

import ast
import inspect
import sys

import pytest

from lazygrad import Tensor, tensor
from lazygrad.tensor import FAMILIES
from lazygrad.tensor.assembly import MEMBERS, assemble
from lazygrad.tensor.core import TensorCore
from lazygrad.tensor.names import OTHER_NAMES
from tests.helpers import ROOT
from tests.test_layers import Import, cycle, imports_of, module_name

PACKAGE = ROOT / "lazygrad"
FILES = sorted([*(PACKAGE / "tensor").rglob("*.py"), *(PACKAGE / "tensor").rglob("*.pyi")])


def test_a_family_derives_from_tensor_alone() -> None:
    assert Tensor.__mro__ == (Tensor, TensorCore, object)
    assert {family.__name__: family.__bases__ for family in FAMILIES if family.__bases__ != (Tensor,)} == {}


def test_every_family_is_in_the_table_once() -> None:
    found = {
        member
        for name, module in list(sys.modules.items())
        if name.startswith("lazygrad.tensor.")
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Tensor) and member is not Tensor
    }
    assert found == set(FAMILIES)
    homes = [family.__module__ for family in FAMILIES]
    assert len(FAMILIES) == len(set(FAMILIES)) == len(set(homes)), "a file has one family"


def test_the_table_is_on_one_screen() -> None:
    assert inspect.getsource(tensor).count("\n") < 75


def test_tensor_has_what_families_define() -> None:
    for family in FAMILIES:
        for name, member in vars(family).items():
            if isinstance(member, MEMBERS):
                found = inspect.getattr_static(Tensor, name)
                assert type(found) is type(member)
                if not isinstance(member, property):
                    known = getattr(member, "__func__", member)
                    assert inspect.unwrap(getattr(found, "__func__", found)) is inspect.unwrap(known)
    assert {vars(Tensor)[name].__wrapped__.__name__ for name in OTHER_NAMES} <= set(OTHER_NAMES.values())


def test_what_two_families_define_is_refused() -> None:
    class One:
        def twice(self) -> None: ...

    class Two:
        def twice(self) -> None: ...

    with pytest.raises(TypeError, match=r"^twice is defined by .* and by "):
        assemble(type("Fresh", (), {}), [One, Two])


# ---- imports ----


def tensor_imports() -> list[Import]:
    """What the files of tensor/ import from each other, the stub included."""
    modules = {module_name(path, PACKAGE) for path in FILES}
    found = [one for path in FILES for one in imports_of(path, PACKAGE, modules)]
    return [one for one in found if one.target in modules]


def test_no_file_imports_back_for_a_type() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                inner = [one for one in node.body if isinstance(one, ast.ImportFrom)]
                assert not inner, f"{path}: an import for types alone hides an arrow that runs back"


def test_files_and_folders_form_no_circle() -> None:
    found = tensor_imports()
    assert len(found) > 200
    assert cycle(found, "lazygrad") == []

    def room(module: str) -> str:
        return ".".join(module.split(".")[:3])

    between = [one._replace(module=room(one.module), target=room(one.target)) for one in found]
    assert cycle([one for one in between if one.module != one.target], "lazygrad") == []


def test_the_face_stands_below_the_families() -> None:
    """Its stub names no type that a family's file defines: those are in signatures.py."""
    homes = {family.__module__ for family in FAMILIES}
    assert not homes & {one.target for one in tensor_imports() if one.module == "lazygrad.tensor.face"}

"""Tensor is a core and a flat table of families: each stands alone, and all are listed."""

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


def test_the_face_stands_below_the_families() -> None:
    """Its stub names no type that a family's file defines: those are in signatures.py."""
    stub = ast.parse((ROOT / "lazygrad" / "tensor" / "face.pyi").read_text("utf-8"))
    used = {node.module for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)}
    assert "lazygrad.tensor.signatures" in used
    assert not used & {family.__module__ for family in FAMILIES}

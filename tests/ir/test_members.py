"""Enumerations of our own: what they have of `enum`."""

import copy
import pickle

import pytest

from lazygrad.ir.args import AxisType
from lazygrad.ir.members import IntMember, Member
from lazygrad.ir.ops import Ops


class Size(IntMember):
    SMALL = 1
    LARGE = 3
    BIG = 3


class Colour(Member):
    RED = "red"
    BLUE = "blue"


def test_a_member_is_found_by_name_and_by_value():
    assert Size.LARGE is Size["LARGE"] is Size(3) is Size(Size.LARGE)
    assert (Colour.RED.name, Colour("blue").value) == ("RED", "blue")
    with pytest.raises(ValueError, match="'green' is not a valid Colour"):
        Colour("green")


def test_a_second_name_is_the_same_member():
    assert Size.BIG is Size.LARGE
    assert list(Size) == [Size.SMALL, Size.LARGE]
    assert list(Size.__members__) == ["SMALL", "LARGE", "BIG"]
    assert Size.LARGE in Size
    assert len(Size) == 2


def test_a_member_of_integers_is_one():
    assert Size.LARGE + 1 == 4
    assert hash(Size.LARGE) == hash(3)
    assert Colour.RED != "red"


def test_members_as_text():
    assert (repr(Size.LARGE), str(Size.LARGE), f"{Size.LARGE:>11}") == (
        "<Size.LARGE: 3>",
        "Size.LARGE",
        " Size.LARGE",
    )
    assert (repr(Colour.RED), f"{Colour.RED}") == ("<Colour.RED: 'red'>", "Colour.RED")


@pytest.mark.parametrize("member", [Ops.ADD, AxisType.GLOBAL])
def test_a_copy_of_a_member_is_the_member(member):
    assert pickle.loads(pickle.dumps(member)) is member
    assert copy.copy(member) is copy.deepcopy(member) is member


def test_a_member_stays_what_it_is():
    with pytest.raises(AttributeError, match=r"Size\.SMALL is a member"):
        Size.SMALL = 2


def test_no_two_ops_share_a_number_but_for_the_names_of_older_documents():
    assert {name for name, member in Ops.__members__.items() if member.name != name} == {"SUM", "EMPTY"}

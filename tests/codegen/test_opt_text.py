"""A list of Opts comes back from its printed form, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.codegen.opt.text import parse_opts


@pytest.mark.parametrize(
    "opts",
    [
        [],
        [Opt(OptOps.NOLOCALS)],
        [Opt(OptOps.UPCAST, 0, 8), Opt(OptOps.UNROLL, 1, 0), Opt(OptOps.THREAD, 0, 4)],
        [Opt(OptOps.PADTO, 2, 32), Opt(OptOps.SWAP, 0, 1)],
    ],
    ids=str,
)
def test_a_list_comes_back_from_its_text(opts):
    assert parse_opts(repr(opts)) == opts
    assert parse_opts(repr(tuple(opts))) == opts


def test_one_opt_and_fields_in_their_order():
    assert parse_opts("Opt(OptOps.UPCAST, 0, 4)") == [Opt(OptOps.UPCAST, 0, 4)]
    assert parse_opts(" [Opt(LOCAL, 1, amount=2)] ") == [Opt(OptOps.LOCAL, 1, 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Opt(", "is not a list of Opts: "),
        ("(" * 500, "is not a list of Opts: "),
        (f"Opt({'-' * 900}1, 0)", "is not a list of Opts: "),
        (f"Opt({'9' * 100_000})", "of 100005 characters is not a list of Opts"),
        ("[Opt(OptOps.UPCAST, {[]}, 1)]", "axis of an Opt must be a whole number"),
        ("[open('file')]", r"open\('file'\) is not an Opt: write Opt\("),
        ("[__import__('os').system('ls')]", "is not an Opt: write"),
        ("[Opt(OptOps.UPCST, 0, 4)]", "OptOps.UPCST is not a kind of Opt: did you mean UPCAST?"),
        ("[Opt(OptOps.XYZ, 0, 4)]", "OptOps.XYZ is not a kind of Opt: there are TC, "),
        ("[Opt(OptOps.UPCAST, 0, exit())]", r"amount of an Opt must be a whole number, not exit\(\)"),
        ("[Opt(OptOps.UPCAST, 0, 1.5)]", "amount of an Opt must be a whole number, not 1.5"),
        ("[Opt(OptOps.UPCAST, True, 2)]", "axis of an Opt must be a whole number, not True"),
        ("[Opt(axis=0, amount=4)]", "an Opt has one each of op, axis, amount"),
        ("[Opt(OptOps.UPCAST, 0, 4, 5, 6, 7, 8, 9)]", "an Opt has one each of op, axis, amount"),
        ("[Opt(OptOps.UPCAST, 0, axis=1)]", "an Opt has one each of op, axis, amount"),
        ("[Opt(OptOps.UPCAST, size=4)]", "an Opt has one each of op, axis, amount"),
    ],
)
def test_other_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_opts(text)

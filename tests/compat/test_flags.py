"""Flags that only older scripts have."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, dtypes
from lazygrad.compat import aliases, flags
from lazygrad.config import Context, ContextVar


@pytest.mark.usefixtures("installed")
def test_a_flag_has_the_value_of_what_is_done_here():
    from tinygrad.helpers import BEAM, IMAGE, SPLIT_REDUCEOP, WINO

    assert (IMAGE.value, bool(WINO), SPLIT_REDUCEOP == 1) == (0, False, True)
    assert BEAM is ContextVar.all["BEAM"]
    with Context(WINO=1, SPLIT_REDUCEOP=0, FUSE_ARANGE=1, RING=2, IGNORE_BEAM_CACHE=1):
        assert SPLIT_REDUCEOP.value == 0


@pytest.mark.usefixtures("installed")
def test_what_is_not_there_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="IMAGE=2: lazygrad does not have convolutions on image"):
        Context(IMAGE=2)
    with pytest.raises(ValueError, match="IMAGE must be a whole number, not 'a'"):
        Context(IMAGE="a")


def test_the_environment_is_refused_too(monkeypatch):
    monkeypatch.setenv("FLOAT16", "1")
    with pytest.raises(NotImplementedError, match="FLOAT16=1: lazygrad does not have half-precision image"):
        aliases.install()
    aliases.uninstall()


def test_the_default_float_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("DEFAULT_FLOAT", "HALF")
    aliases.install()
    assert Tensor([1.0]).dtype is dtypes.half
    aliases.uninstall()
    assert dtypes.default_float is dtypes.float
    for name, wrong in (
        ("TYPO", "'typo' is not a dtype"),
        ("INT32", "the default float must be a float type"),
    ):
        monkeypatch.setenv("DEFAULT_FLOAT", name)
        with pytest.raises(TypeError, match=wrong):
            aliases.install()
        aliases.uninstall()


def test_they_are_known_to_older_scripts_only(installed):
    assert ContextVar.all["WINO"] is flags.FLAGS["WINO"]
    aliases.uninstall()
    with pytest.raises(ValueError, match="WINO is not a flag"):
        Context(WINO=0)

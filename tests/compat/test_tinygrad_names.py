"""docs/tinygrad_names.md is what docs/writers/tinygrad_names.py finds; what the newer scripts use works."""

from __future__ import annotations

import gzip
import importlib
import sys
from typing import Any

import pytest

from lazygrad import Device, Tensor
from lazygrad.compat.flags import ABSENT, FLAGS
from lazygrad.config import Context
from tests.helpers import ROOT


def writer() -> Any:
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("writers.tinygrad_names")


def test_the_page_is_what_the_names_are() -> None:
    page = (ROOT / "docs" / "tinygrad_names.md").read_text("utf-8")
    assert writer().page() == page, "run: python docs/generate.py names"


def test_a_reason_for_each_that_is_not_there_and_for_no_other() -> None:
    names = writer()
    assert {name for name, there in names.places().items() if not any(there)} == set(names.ABSENT)


def test_the_usual_device_itself() -> None:
    assert Device.default is Device[Device.DEFAULT]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ABSENT)
def test_a_flag_is_accepted_where_it_means_what_is_done(name: str) -> None:
    value, same, _ = ABSENT[name]
    for accepted in {0, value, *same}:
        with Context(**{name: accepted}):
            assert FLAGS[name].value == accepted
    with pytest.raises(NotImplementedError, match=f"{name}=77"):
        Context(**{name: 77})


@pytest.mark.usefixtures("installed")
def test_state_is_found_below_nn() -> None:
    from tinygrad import nn

    assert callable(nn.state.torch_load)
    assert callable(nn.optim.OptimizerGroup)


@pytest.mark.usefixtures("installed")
def test_fuse_changes_nothing() -> None:
    x = Tensor([1.0, 2.0])
    assert ((x + 1).fuse() * 2).tolist() == [4.0, 6.0]


@pytest.mark.usefixtures("installed")
def test_bytes_of_an_address(tmp_path: Any) -> None:
    plain, packed = tmp_path / "a", tmp_path / "a.gz"
    plain.write_bytes(b"\1\2")
    packed.write_bytes(gzip.compress(b"\3\4"))
    from_url: Any = vars(Tensor)["from_url"]
    assert from_url(str(plain)).tolist() == [1, 2]
    assert from_url(str(packed), gunzip=True).tolist() == [3, 4]


@pytest.mark.usefixtures("installed")
def test_what_unpacks_to_too_much_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lazygrad.compat import patched

    monkeypatch.setattr(patched, "MOST_UNPACKED", 10)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\0" * 11))
    with pytest.raises(ValueError, match="unpacks to more than 10 bytes"):
        patched.from_url(str(tmp_path / "bomb.gz"), gunzip=True)

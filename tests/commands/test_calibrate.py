"""python -m lazygrad calibrate: measures, shows, keeps, and writes what can be contributed."""

from __future__ import annotations

import re

import pytest

from lazygrad import Context
from lazygrad.__main__ import main
from lazygrad.calibration import measure
from lazygrad.commands import calibrate, devices
from lazygrad.device import Device
from lazygrad.runtime import _measured
from lazygrad.runtime._measured import processor_name
from lazygrad.target.measured import Row, shipped_row


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), CPU_TARGET="native", CACHELEVEL=2):
        _measured.forget()
        yield tmp_path / "private" / "measured"
        _measured.forget()


@pytest.fixture
def ships(monkeypatch) -> Row:
    """A row in the place of what would be measured: this takes no time."""
    row = shipped_row("znver3")
    assert row is not None
    monkeypatch.setattr(calibrate, "measure", lambda seconds: row)
    return row


def test_a_machine_is_measured(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(calibrate, "measure", lambda seconds: measure(seconds / 100, far=4 << 20))
    assert main(["calibrate", "--export", str(tmp_path / "row.json")]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^ +measured +varied +data sheet$", out, re.MULTILINE)
    assert "nothing else runs" in err
    text = (tmp_path / "row.json").read_text()
    assert Row.from_text(text).processor == processor_name()
    assert (folder / f"{processor_name()}.json").read_text() == text


def test_devices_shows_what_was_measured(ships, monkeypatch, capsys):
    monkeypatch.setattr(Device, "status", lambda: {"CPU": ""})
    monkeypatch.setattr(devices, "measured_row", lambda target: ships)
    assert main(["devices"]) == 0
    assert "data sheet" not in capsys.readouterr().out
    assert main(["devices", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert ships.machine in out
    assert "data sheet" in out


def test_devices_says_how_to_measure(monkeypatch, capsys):
    monkeypatch.setattr(Device, "status", lambda: {"CPU": ""})
    monkeypatch.setattr(devices, "measured_row", lambda target: None)
    assert main(["devices", "--verbose"]) == 0
    assert "was not measured, nor one like it: `python -m lazygrad calibrate` does" in capsys.readouterr().out


def test_only_the_own_processor_is_measured(ships, folder, capsys):
    with Context(CPU_TARGET="x86-64"):
        assert main(["calibrate"]) == 1
    assert "CPU_TARGET is x86-64: unset it" in capsys.readouterr().err
    assert not folder.exists()


def test_without_a_cache_nothing_is_kept(ships, folder, capsys):
    with Context(CACHELEVEL=0):
        assert main(["calibrate"]) == 0
    assert "not kept, since CACHELEVEL is 0" in capsys.readouterr().out
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_named(ships, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with Context(CACHEDB=str(tmp_path / "file" / "cache.db")):
        assert main(["calibrate"]) == 1
    assert "not kept: " in capsys.readouterr().out


def test_an_export_that_cannot_be_written_is_named(ships, tmp_path, capsys):
    assert main(["calibrate", "--export", str(tmp_path)]) == 1
    assert f"lazygrad calibrate: {tmp_path} cannot be written: Is a directory" in capsys.readouterr().err

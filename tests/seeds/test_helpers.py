"""SEEDS 14: helpers."""

from __future__ import annotations

import io
import pstats
import re
import time

import pytest

from lazygrad import Tensor, helpers
from lazygrad.device import Buffer
from lazygrad.dtype import dtypes

from .support import run_script

BAR = """
    import sys
    from lazygrad import helpers
    it = [n for n in range(10)]
    bar = helpers.tqdm(iterable=it, desc="list iterations", unit='  iterations', unit_scale=True)
    for n in range(6): bar.update(n=1, close=True)
    sys.stderr.flush()
"""


def test_S126_the_line_of_the_seed():
    shown = "list iterations:  60%|███████▏    | 6.00/10.0 [00:00<00:00, 36.4k  iterations/s]"
    bar = helpers.tqdm(
        iterable=list(range(10)),
        desc="list iterations",
        unit="  iterations",
        unit_scale=True,
        ncols=80,
        ascii=False,
        file=io.StringIO(),
    )
    bar.n, bar.start_t, bar._time = 6, 0.0, lambda: 6 / 36400
    assert bar.line() == shown


def test_S126_one_line_per_call():
    out = run_script(BAR.replace("import sys", "import sys; sys.stderr = sys.stdout"), COLUMNS=80)
    lines = [line for line in out.splitlines() if line and "  0%|" not in line]
    assert len(lines) == 6
    rate = r"\[00:00<00:00, +[\d.]+k?M?  iterations/s\]"
    assert re.fullmatch(rf"list iterations:  60%\|.*\| 6.00/10.0 {rate}", lines[5])
    assert {len(line) for line in lines} == {80}


@pytest.mark.parametrize(("number", "text"), [(6, "6.00"), (36400, "36.4k"), (2.5e6, "2.50M")])
def test_S127_short_numbers(number, text):
    assert helpers.SI(number) == text


def test_S127_durations():
    assert helpers.HMS(3 * 3600 + 25 * 60 + 45) == "3:25:45"


def test_S128_other_uses(capsys):
    assert list(helpers.tqdm([1, 2], disable=True)) == [1, 2]
    assert list(helpers.trange(3, disable=True)) == [0, 1, 2]
    with helpers.tqdm(total=2, desc="block") as bar:
        bar.update(2)
    helpers.tqdm.write("a line")
    captured = capsys.readouterr()
    assert captured.out == "a line\n"
    assert "block: 100%" in captured.err


def test_S129_S130_profiling(tmp_path, capsys):
    file = str(tmp_path / "out.proc")
    with helpers.Profiling(enabled=True, fn=file):
        time.sleep(0.01)
    assert re.search(r"n: +1  tm: +\d+\.\d+ms  tot: .*time\.sleep", capsys.readouterr().out)
    pstats.Stats(file).strip_dirs().sort_stats("tottime").print_stats(1)
    assert "time.sleep" in capsys.readouterr().out


NAMES = "diskcache_get diskcache_put Timing getenv fetch temp Context ContextVar colored to_mv"


@pytest.mark.parametrize("name", NAMES.split())
def test_S131_what_lives_in_helpers(name):
    assert callable(getattr(helpers, name))


def test_S131_counters():
    before = helpers.GlobalCounters.kernel_count
    (Tensor([1.0]).realize() + 1).realize()
    assert helpers.GlobalCounters.kernel_count == before + 2


def test_S131_the_disk_cache():
    assert helpers.diskcache_put("seeds", ("key", 1), {"value": 3}) == {"value": 3}
    assert helpers.diskcache_get("seeds", ("key", 1)) == {"value": 3}
    assert helpers.diskcache_get("seeds", ("key", 2)) is None


def test_S131_the_environment(monkeypatch):
    monkeypatch.setenv("SOMETHING", "3")
    assert helpers.getenv("SOMETHING") == 3
    assert helpers.getenv("NOTHING", "text") == "text"


def test_S120_a_byte_of_new_memory():
    buffer = Buffer(device="CLANG", size=1, dtype=dtypes.int8).allocate()
    assert helpers.from_mv(buffer.as_buffer())[0] == b"\x00"


def test_addresses_and_memoryviews():
    memory = bytearray(b"abcd")
    array = helpers.from_mv(memoryview(memory))
    array[0] = b"x"
    assert memory == b"xbcd"
    assert bytes(helpers.to_mv(helpers.mv_address(memoryview(memory)), 4)) == b"xbcd"
    assert helpers.from_mv(memoryview(b"abcd"))[1] == b"b"

"""Progress bars."""

from __future__ import annotations

import io

import pytest

from lazygrad.progress import HMS, SI, tqdm, trange


def drawn(**more):
    """A bar that draws into memory, 60 columns wide."""
    return tqdm(file=io.StringIO(), ascii=False, ncols=60, mininterval=0, **more)


def test_a_bar_is_an_iterator():
    bar = drawn(iterable="abc", desc="letters")
    assert list(bar) == ["a", "b", "c"]
    last = bar.fp.getvalue().split("\r")[-1]
    assert last.startswith("letters: 100%|███")
    assert " 3/3 [" in last
    assert last.endswith("it/s]\n")
    assert len(last) == 61


def test_a_bar_is_a_block():
    with drawn(total=4, unit="step") as bar:
        bar.update(3)
        assert " 75%|" in bar.line()
        assert "step/s]" in bar.line()


def test_update_with_close_prints_a_line_each_time_and_no_more():
    bar = drawn(total=2)
    for _ in range(2):
        bar.update(close=True)
    bar.close()
    bar.close()
    lines = bar.fp.getvalue().split("\n")
    assert len(lines) == 3
    assert lines[0].split("\r")[-1].startswith(" 50%|")
    assert lines[1].split("\r")[-1].startswith("100%|")
    assert lines[2] == ""


def test_a_bar_that_is_disabled_prints_nothing():
    screen = io.StringIO()
    bar = tqdm(range(3), disable=True, file=screen)
    assert list(bar) == [0, 1, 2]
    bar.update(close=True)
    assert screen.getvalue() == ""


def test_trange():
    bar = trange(3, file=io.StringIO())
    assert bar.total == 3
    assert list(bar) == [0, 1, 2]


@pytest.mark.parametrize(
    ("number", "text"), [(6, "6.00"), (10, "10.0"), (36400, "36.4k"), (1.5e6, "1.50M"), (2e9, "2.00G")]
)
def test_short_numbers(number, text):
    assert SI(number) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "00:00"), (61, "01:01"), (3661.5, "1:01:01")])
def test_durations(seconds, text):
    assert HMS(seconds) == text

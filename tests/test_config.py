"""Flags and Context: values nest, come back, and belong to their thread."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from lazygrad.config import DEBUG, DEV, MEMORY_BUDGET, NOOPT, Context, ContextVar, getenv


def test_values_nest_and_come_back():
    before = DEBUG.value
    with Context(DEBUG=2, NOOPT=1):
        assert (DEBUG.value, NOOPT.value) == (2, 1)
        with Context(DEBUG=5):
            assert (DEBUG.value, NOOPT.value) == (5, 1)
        assert DEBUG.value == 2
    assert DEBUG.value == before


def test_values_come_back_after_an_error():
    before = DEBUG.value
    with pytest.raises(KeyError), Context(DEBUG=3):
        raise KeyError
    assert DEBUG.value == before


def test_one_context_may_be_entered_again_inside_itself():
    flags = Context(DEBUG=4)
    with flags:
        with Context(DEBUG=1), flags:
            assert DEBUG.value == 4
        assert DEBUG.value == 4


def test_flags_compare_like_their_values():
    with Context(DEBUG=2, DEV="CLANG"):
        assert DEBUG
        assert DEBUG == 2
        assert DEBUG >= 2
        assert DEBUG > 1
        assert DEBUG <= 2
        assert DEBUG < 3
        assert int(DEBUG) == 2
        assert range(10)[DEBUG] == 2
        assert DEV == "CLANG"
        assert repr(DEBUG) == "DEBUG=2"
    with Context(DEBUG=0):
        assert not DEBUG


def test_a_thread_has_values_of_its_own():
    seen = []

    def other():
        seen.append(DEBUG.value)
        with Context(DEBUG=7):
            entered.set()
            leave.wait()
            seen.append(DEBUG.value)

    entered, leave = threading.Event(), threading.Event()
    with Context(DEBUG=3):
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
        assert DEBUG.value == 3
        leave.set()
        thread.join()
    assert seen == [DEBUG._process, 7]


def test_a_decorated_function_runs_with_its_flags():
    @Context(DEBUG=6)
    def read(depth):
        """Reads."""
        return [DEBUG.value, *(read(depth - 1) if depth else [])]

    before = DEBUG.value
    assert read(2) == [6, 6, 6]
    assert DEBUG.value == before
    assert (read.__name__, read.__doc__) == ("read", "Reads.")


def test_unknown_flags_are_refused_with_the_nearest_name():
    with pytest.raises(
        ValueError,
        match=r"DEBG is not a flag; did you mean DEBUG\?; known: BEAM, BEAM_KEEPS_ORDER, BEAM_TIME",
    ):
        Context(DEBG=1)
    with pytest.raises(ValueError, match="QQQQQQ is not a flag; known: "):
        Context(QQQQQQ=1)


def test_values_of_the_wrong_type_are_refused():
    with pytest.raises(ValueError, match="DEBUG must be a whole number, not '2'"):
        Context(DEBUG="2")
    with pytest.raises(ValueError, match="DEV must be a string, not 1"):
        Context(DEV=1)


def test_defaults_of_the_process():
    DEBUG.set_default(5)  # the fixture of conftest.py puts it back
    assert DEBUG.value == 5
    with Context(DEBUG=1):
        DEBUG.set_default(6)
        assert DEBUG.value == 1
    assert DEBUG.value == 6


def read_in_a_new_process(flag, value):
    code = f"from lazygrad.config import {flag}; print(repr({flag}.value))"
    env = {**os.environ, flag: value}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_flags_come_from_the_environment():
    assert read_in_a_new_process("DEBUG", "3").stdout == "3\n"
    assert read_in_a_new_process("DEBUG", "").stdout == "0\n"
    assert read_in_a_new_process("DEV", "CLANG").stdout == "'CLANG'\n"
    assert "DEBUG must be a whole number, not 'two'" in read_in_a_new_process("DEBUG", "two").stderr


def test_every_flag_says_what_it_does():
    for name, flag in ContextVar.all.items():
        assert name == flag.name == name.upper()
        assert len(flag.doc) > 10


def test_getenv(monkeypatch):
    monkeypatch.setenv("LAZYGRAD_TEST_NUMBER", "12")
    assert getenv("LAZYGRAD_TEST_NUMBER") == 12
    assert getenv("LAZYGRAD_TEST_NUMBER", "x") == "12"
    assert getenv("LAZYGRAD_TEST_NOTHING", 7) == 7
    monkeypatch.setenv("LAZYGRAD_TEST_NUMBER", "twelve")
    with pytest.raises(ValueError, match="LAZYGRAD_TEST_NUMBER must be a int, not 'twelve'"):
        getenv("LAZYGRAD_TEST_NUMBER")


@pytest.mark.parametrize(
    ("given", "size"),
    [(600, 600), ("600MB", 600_000_000), ("2.5GiB", 5 << 29), ("1 kb", 1000), ("64KiB", 65536), ("7", 7)],
)
def test_sizes_have_units(given, size):
    with Context(MEMORY_BUDGET=given):
        assert MEMORY_BUDGET.value == size
    assert MEMORY_BUDGET.value == 0


@pytest.mark.parametrize("wrong", ["600 apples", "MB", "-1MB", -1, 1.5, True])
def test_other_sizes_are_refused(wrong):
    text = (
        f"MEMORY_BUDGET must be a number of bytes, with a unit or without, as 600MB or 2.5GiB, not {wrong!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Context(MEMORY_BUDGET=wrong)


def test_sizes_come_from_the_environment():
    assert read_in_a_new_process("MEMORY_BUDGET", "1.5kB").stdout == "1500\n"
    assert read_in_a_new_process("MEMORY_BUDGET", "").stdout == "0\n"
    assert "or 2.5GiB, not 'much'; the default is 0" in read_in_a_new_process("MEMORY_BUDGET", "much").stderr

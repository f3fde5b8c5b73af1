"""Threads of our own: `lazygrad/locks.py`."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading

import pytest

from lazygrad.locks import NoThread, Working
from tests.helpers import PATIENCE, ROOT


def test_work_is_waited_for():
    done: list[int] = []
    thread = Working(lambda: done.append(threading.get_ident()))
    thread.wait()
    assert not thread.is_alive()
    assert len(done) == 1
    assert done[0] != threading.get_ident()


def test_an_error_that_is_kept_keeps_no_thread():
    errors: list[BaseException] = []

    def fail() -> None:
        try:
            raise ValueError("no")
        except ValueError as error:
            errors.append(error)

    thread = Working(fail)
    thread.wait()
    assert not thread.is_alive()
    assert str(errors) == "[ValueError('no')]"


def test_no_thread_to_be_had(monkeypatch):
    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(NoThread, match="can't start new thread"):
        Working(lambda: None)


def test_a_thread_that_never_begins_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda *args: 1)
    thread = Working(lambda: None)
    thread.wait()
    assert not thread.is_alive()


def test_the_interpreter_ends_after_its_threads():
    code = """
import time
from lazygrad.locks import Working
def work():
    time.sleep(0.2)
    print("done")
Working(work)
print("begun")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout, done.stderr) == ("begun\ndone\n", "")

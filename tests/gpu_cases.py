"""Stages for tests/test_bench_gpu.py that need no GPU: `bench.gpu.player` plays them by the module's name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from bench.gpu.stages import Missing


def _fails() -> Any:
    raise ValueError("three of four numbers are wrong")


def _lacks() -> Any:
    raise Missing("no such library")


def _hangs() -> Any:
    time.sleep(1000)


def _crashes() -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def cases(machine: Any, part: str) -> dict[str, Callable[[], Any]]:
    known = {"fails": _fails, "lacks": _lacks, "hangs": _hangs, "crashes": _crashes}
    return {word: known.get(word, lambda: {"answer": 42}) for word in part.split()}

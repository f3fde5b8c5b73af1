"""Device CUDA on the emulated driver, for the time of a test."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from lazygrad.device import Device
from lazygrad.runtime import _cuda_compiler, _cuda_driver
from tests.helpers import require

from .compiler import EmulatedNVRTC
from .driver import EmulatedDriver


@contextlib.contextmanager
def emulated(**machine: Any) -> Iterator[EmulatedDriver]:
    """Within the block the machine has these GPUs."""
    require("g++")
    nvrtc = EmulatedNVRTC(require("nvrtc"))
    driver = EmulatedDriver(importlib.import_module("cuda.bindings.driver"), **machine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cuda_driver, "bindings", lambda: driver)
        patch.setattr(_cuda_compiler, "bindings", lambda: nvrtc)
        close()
        try:
            yield driver
        finally:
            close()


def close() -> None:
    """Forget the GPUs that are open, and what was loaded there."""
    from lazygrad.programs.runners import clear_programs

    clear_programs()
    for name in [name for name in Device.opened() if name.partition(":")[0] == "CUDA"]:
        del Device._open[name]
    Device._canonical.clear()
    Device._present.clear()
    Device._default = None
    gc.collect()

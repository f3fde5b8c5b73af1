"""`import lazygrad` is light: it opens no device, and loads no library that only some programs need.

How long it takes is measured by `python -m bench compile`.
"""

from __future__ import annotations

import subprocess
import sys

from tests.helpers import ROOT

#: Slow to load, or only there for some devices, files and tools.
LATER = {"numpy", "llvmlite", "safetensors", "tqdm", "platformdirs", "torch", "sklearn", "scipy"}
LATER |= {
    "difflib",
    "sqlite3",
    "subprocess",
    "tempfile",
    "multiprocessing",
    "asyncio",
    "urllib.request",
    "email",
}


def test_import_loads_nothing_heavy_and_opens_no_device():
    script = "import sys; before = set(sys.modules); import lazygrad\n"
    script += "print(*lazygrad.Device.opened()); print(*sys.modules.keys() - before)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    opened, modules = done.stdout.splitlines()
    assert opened == ""
    assert LATER & set(modules.split()) == set()
    assert not [module for module in modules.split() if module.startswith("lazygrad.compat")]


def test_no_thread_runs_after_import():
    script = "import threading, lazygrad; print(threading.active_count())"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"

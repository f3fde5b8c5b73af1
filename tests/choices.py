"""Tests of a choice: those whose outcome is what a prediction answers, as the name of a kernel or its text.

    pytestmark = pytest.mark.choice        # all tests of a file
    @pytest.mark.choice                    # one

Such a test runs with no OPTS, on CPU and CLANG for one processor and so many cores, wherever it runs: what it
expects holds on every machine. Its kernels run there too, as the text of a vector does on every processor,
with all the instructions that this one has; in processes that it starts CPU_TARGET names the processor where
this one can execute it.

All others have to pass whatever is chosen: `OPTS=random:1 python -m pytest` is how to see it. So a test
counts what is meant by it before it is given the mark. `python -m tests.choices` prints the list, which is
kept in tests/choices.txt and only gets shorter (tests/test_choices.py); `--update` writes it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LISTED = ROOT / "tests" / "choices.txt"
#: What tests of a choice are for: a processor of `lazygrad.target.PROCESSORS`, and its cores.
PROCESSOR, CORES = "emeraldrapids", 8


# *** where they run


@contextlib.contextmanager
def pinned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within the block every decision is answered as predicted for PROCESSOR with CORES."""
    from lazygrad.config import CPU_TARGET, OPTS
    from lazygrad.runtime import clang, cpu
    from lazygrad.runtime._native import requested_processor
    from lazygrad.target import PROCESSORS
    from lazygrad.target.processors import refined

    def here(base: Any, arch: str, features: frozenset[str]) -> Any:
        return replace(refined(base, PROCESSOR, PROCESSORS[PROCESSOR].features), threads=CORES)

    monkeypatch.delenv("OPTS", raising=False)
    found = {flag: flag.value for flag in (OPTS, CPU_TARGET)}
    CPU_TARGET.set_default(PROCESSOR)
    with contextlib.suppress(ValueError):
        requested_processor()
        monkeypatch.setenv("CPU_TARGET", PROCESSOR)
    CPU_TARGET.set_default(found[CPU_TARGET])
    OPTS.set_default("")
    monkeypatch.setattr(cpu, "host_target", here)
    if CPU_TARGET.value not in ("", "native", PROCESSOR):  # it may lack what such a kernel converts half with
        monkeypatch.setattr(cpu, "_compilers", [_own_compiler()])
    monkeypatch.setattr(clang, "host_target", here)
    renderers = _forget_targets()
    try:
        yield
    finally:
        OPTS.set_default(found[OPTS])
        monkeypatch.undo()
        _forget_targets(renderers)


@functools.cache
def _own_compiler() -> Any:
    """Of this machine's own processor, whatever CPU_TARGET says."""
    from lazygrad.runtime.cpu import LLVMCompiler

    return LLVMCompiler(None)


def _forget_targets(before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Let the devices of this machine's processor ask for their Target anew, or give them the one that they
    had; what was planned and compiled for another is forgotten.
    """
    from lazygrad.device import Device
    from lazygrad.programs.runners import clear_programs

    clear_programs()
    found = {}
    for name in Device.opened():
        device = Device[name]
        if device.kind in ("CPU", "CLANG"):
            found[name], device._renderer = device._renderer, (before or {}).get(name)
        if device.kind == "CPU":
            vars(device).pop("compiler", None)  # the one that `pinned` names is asked for anew
    return found


# *** which they are


def choices() -> list[str]:
    """The tests with the mark, a line `file::function` each."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [f"{file.relative_to(ROOT).as_posix()}::{name}" for file in files for name in _marked(file)]


def _marked(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    if "mark.choice" not in text:
        return []
    tree = ast.parse(text)
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            if _is_mark(node.value):
                return [test.name for test in tests]
    return [test.name for test in tests if any(map(_is_mark, test.decorator_list))]


def _is_mark(node: ast.expr) -> bool:
    return "pytest.mark.choice" in ast.unparse(node)


if __name__ == "__main__":
    lines = "".join(f"{line}\n" for line in choices())
    if "--update" in sys.argv:
        LISTED.write_text(lines, encoding="utf-8")
    print(lines, end="")

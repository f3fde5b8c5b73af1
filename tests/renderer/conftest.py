"""What runs a hand-made linear program: LLVM, and each C compiler that is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lazygrad.ir import UOp
from lazygrad.renderer.cstyle import FLAGS
from tests.helpers import require

from .support import (
    DEVICES,
    GPU_RENDERERS,
    RENDERERS,
    Arrays,
    Run,
    c_entry,
    call_entry,
    gpu_entry,
    llvm_entry,
    run_on_arm,
    run_on_device,
)


@pytest.fixture(params=list(RENDERERS))
def language(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name in DEVICES:
        require(DEVICES[name].lower())
    elif name in GPU_RENDERERS:
        require("g++")
    elif name != "llvm":
        require({"clang": "clang-itself"}.get(name, name))
    return name


@pytest.fixture
def run(language: str, tmp_path: Path) -> Run:
    """`run(uops, arrays, values, pieces)`: render, compile, and call every piece."""

    def run_program(uops: Sequence[UOp], arrays: Arrays, values: Sequence[int] = (), pieces: int = 1) -> None:
        if language in DEVICES:
            run_on_device(language, uops, arrays, values)
            return
        if language == "aarch64":
            run_on_arm(RENDERERS[language].render("kernel", uops), "kernel", arrays, values, pieces)
            return
        if language in GPU_RENDERERS:
            address = gpu_entry(uops, language, "g++", tmp_path)
        elif language == "llvm":
            address = llvm_entry(RENDERERS[language].render("kernel", uops), "kernel")
        else:
            text = RENDERERS[language].render("kernel", uops)
            address = c_entry(text, "kernel", language, (*FLAGS, "-march=native"), tmp_path)
        for piece in range(pieces):
            call_entry(address, arrays, values, piece, pieces)

    return run_program

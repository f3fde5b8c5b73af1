"""What runs a hand-made linear program: LLVM, and each C compiler that is there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from lazygrad.ir import UOp
from lazygrad.renderer.cstyle import FLAGS
from tests.helpers import require

from .support import RENDERERS, Arrays, Run, c_entry, call_entry, llvm_entry


@pytest.fixture(params=list(RENDERERS))
def language(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name != "llvm" and not shutil.which(name):
        require("clang")
        pytest.skip(f"{name} is missing: apt-get install {name}")
    return name


@pytest.fixture
def run(language: str, tmp_path: Path) -> Run:
    """`run(uops, arrays, values, pieces)`: render, compile, and call every piece."""

    def run_program(uops: Sequence[UOp], arrays: Arrays, values: Sequence[int] = (), pieces: int = 1) -> None:
        text = RENDERERS[language].render("kernel", uops)
        if language == "llvm":
            address = llvm_entry(text, "kernel")
        else:
            address = c_entry(text, "kernel", language, (*FLAGS, "-march=native"), tmp_path)
        for piece in range(pieces):
            call_entry(address, arrays, values, piece, pieces)

    return run_program

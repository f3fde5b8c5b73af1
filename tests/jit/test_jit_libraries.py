"""What libraries ask during a capture is no part of the function: lazygrad's own, and what is installed."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from lazygrad import Tensor, TinyJit
from lazygrad.jit import bytecode
from lazygrad.jit.errors import JitError
from tests.jit.jit_support import captures

SCRIPT = """
from lazygrad import Context, Tensor, TinyJit, nn


w, x = Tensor.rand(8, 8).realize().requires_grad_(), Tensor.rand(1, 8).realize()
optimizer = nn.optim.SGD([w], lr=0.1)


@TinyJit
def step():
    optimizer.zero_grad()
    loss = (x @ w).tanh().sum()
    loss.backward()
    optimizer.step()
    return loss


with Tensor.train():
    step()
    with Context(DEBUG=2):
        step()
print("done")
"""


def test_the_place_of_the_cache_is_asked_in_the_middle_of_a_schedule(tmp_path):
    """By the first row of DEBUG=2: looking at what a library reads then would wait for what runs."""
    environment = {name: value for name, value in os.environ.items() if name != "CACHEDB"}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "CACHELEVEL": "1"}  # nothing asked before
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("done\n"), done.stderr


MODULE = """
rate = 2.0

def scaled(x):
    return x * rate
"""


@pytest.mark.parametrize("name", ["package/__init__.py", "module.py", "own.py"])
def test_what_was_installed_to_any_folder_is_a_library(name, tmp_path):
    """By `pip install --target`, for one: what stands beside it, as a handler in a cloud, is the user's."""
    (tmp_path / "both-1.0.dist-info").mkdir()
    (tmp_path / "both-1.0.dist-info" / "RECORD").write_text("package/__init__.py,,\nmodule.py,sha256=1,40\n")
    scope = {}
    exec(compile(MODULE, tmp_path / name, "exec"), scope)
    scaled = scope["scaled"]
    f = TinyJit(lambda x: scaled(x))
    assert [f(Tensor([1.0])).item() for _ in range(3)] == [2.0] * 3
    scope["rate"] = 3.0
    assert f(Tensor([1.0])).item() == (3.0 if name == "own.py" else 2.0)
    assert captures(f) == (2 if name == "own.py" else 1)


def test_records_are_read_in_the_middle_of_a_capture():
    """Where a file is first met then: what reads the disk is exchanged for what asks whose file it is."""
    for known in (bytecode._is_user_file, bytecode._package_of, bytecode._recorded_in):
        known.cache_clear()
    f = TinyJit(lambda x: x * random.SystemRandom().random())
    with pytest.raises(JitError, match=r"draws a random"):
        [f(Tensor([1.0])) for _ in range(3)]

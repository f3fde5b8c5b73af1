"""What lazygrad itself asks of libraries during a capture is no part of the function."""

from __future__ import annotations

import os
import subprocess
import sys

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

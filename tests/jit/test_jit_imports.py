"""What the import system runs during a capture is no part of the function."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import sys
from lazygrad import Context, Tensor, TinyJit, nn


class Finder:
    def find_spec(self, name, path=None, target=None):
        return None if w is not None else w


w, x = Tensor.rand(8, 8).realize().requires_grad_(), Tensor.rand(1, 8).realize()
sys.meta_path.insert(0, Finder())
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


def test_a_hook_of_imports_does_not_wait_for_what_runs(tmp_path):
    """The first row of DEBUG=2 asks where the cache on disk is, and imports, in the middle of a schedule."""
    environment = {name: value for name, value in os.environ.items() if name != "CACHEDB"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("done\n"), done.stderr

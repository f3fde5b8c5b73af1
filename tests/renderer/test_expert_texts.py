"""What an expert would look at first: products, softmax, convolution, attention, as they are chosen for GPUs.

Nothing is run here: tests/renderer/test_gpu_runs.py and test_gpu_races.py execute such texts. The files show
a change of what is chosen or written, for a reader to judge. They are for devices as every one of a kind is,
whatever drivers are here.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.helpers import PATIENCE, ROOT

TARGETS = ("cuda:sm_90", "metal", "webgpu")
DRIVERS = ("Metal", "cuda.bindings", "wgpu")
WORK = {
    "matmul": "E(1024, 1024) @ E(1024, 1024)",
    "halves": "E(1024, 1024, dtype='half') @ E(1024, 1024, dtype='half')",
    "softmax": "E(1024, 1024).softmax(1)",
    "sums": "E(1024, 1024).sum(1)",
    "convolution": "E(8, 64, 28, 28).conv2d(E(64, 64, 3, 3), padding=1)",
    "attention": "E(1, 8, 256, 64).scaled_dot_product_attention(E(1, 8, 256, 64), E(1, 8, 256, 64))",
    "halves-attention": "(lambda q: q.scaled_dot_product_attention(q, q))(E(1, 8, 256, 64, dtype='half'))",
}
SCRIPT = """
import json, sys
sys.modules |= dict.fromkeys(DRIVERS)  # there are none
from lazygrad import Tensor
E = Tensor.empty
found = {}
for target in sys.argv[1:]:
    for name, work in WORK.items():
        kernels = eval(work).kernels(target=target)
        texts = [f"// {kernel.name}: {list(kernel.applied_opts)}\\n{kernel.source}" for kernel in kernels]
        found[f"{target} {name}"] = "\\n\\n".join(texts)
        lines = found.setdefault(target, [])
        lines += [f"{name}: {kernel.name}: {kernel.prediction}" for kernel in kernels]
print(json.dumps(found))
"""


@functools.cache
def texts() -> dict[str, Any]:
    """All of them, where no device of these kinds is."""
    env = {**os.environ, "DEBUG": "0", "OPTS": ""}
    command = [sys.executable, "-c", f"WORK, DRIVERS = {WORK!r}, {DRIVERS!r}\n{SCRIPT}", *TARGETS]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("work", WORK)
def test_text(work, target, golden):
    assert golden(texts()[f"{target} {work}"])


@pytest.mark.parametrize("target", TARGETS)
def test_predictions(target, golden):
    """What is predicted of each of these texts, with its share of the roofline."""
    assert golden("\n".join(texts()[target]))

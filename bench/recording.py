"""What it costs to record for the viewer: processor time of the same work with and without a Session.

    python -m bench recording [--times 5]

Steps of training of three blocks of layers: the first one of a process, 20 without a jit, 300 with one; and
60 graphs of the same structure that are planned and not run. Each is timed in a process of its own, which
begins with everything on disk, with and without recording in turn; the least of the times counts. What a
recording needs after the script has ended is not in it.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.optim import AdamW
from lazygrad.viz.session import Session

#: What is timed → how often it is done.
CASES = {"first step": 1, "steps": 20, "steps with a jit": 300, "planned graphs": 60}


class Block(nn.Module):
    """A feed-forward layer with its input added."""

    def __init__(self) -> None:
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).gelu())


def work(case: str) -> Callable[[], object]:
    """What is done once."""
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((64, 32)).astype(np.float32)).realize()
    y = Tensor(rng.integers(0, 4, 64)).realize()
    model = nn.Sequential(Block(), Block(), Block(), nn.Linear(32, 4))
    Tensor.realize(*nn.state.get_parameters(model))
    optimizer = AdamW(nn.state.get_parameters(model), lr=0.003)

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = model(x).cross_entropy(y)
            loss.backward()
            optimizer.step()
            return loss.realize()

    if case == "planned graphs":
        return lambda: model(x).cross_entropy(y).schedule()
    return TinyJit(step) if case == "steps with a jit" else step


def timed(case: str, recording: bool) -> float:
    """Seconds of processor time in this process."""
    with Session().recording() if recording else contextlib.nullcontext():
        once = work(case)
        begin = time.process_time()
        for _ in range(CASES[case]):
            once()
        return time.process_time() - begin


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench recording", description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="processes for each number")
    parser.add_argument("--only", nargs=2, metavar=("CASE", "0|1"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only:
        print(timed(options.only[0], options.only[1] == "1"))
        return 0
    print(f"{'':18} {'without':>10} {'recorded':>10} {'times':>6}")
    for case in CASES:
        found: dict[str, list[float]] = {"0": [], "1": []}
        for _ in range(options.times + 1):  # the first one fills the disk
            for recording, times in found.items():
                line = [sys.executable, "-m", "bench", "recording", "--only", case, recording]
                done = subprocess.run(line, capture_output=True, text=True, check=True)
                times.append(float(done.stdout))
        without, recorded = (min(times[1:]) for times in found.values())
        print(f"{case:18} {without * 1e3:>7.1f} ms {recorded * 1e3:>7.1f} ms {recorded / without:>6.2f}")
    return 0

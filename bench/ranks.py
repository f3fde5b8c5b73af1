"""Ranks of MPI: how much faster two train than one, what collectives cost beside Open MPI's own.

    python -m bench ranks training      tokens in a second of a GPT on 1 and 2 ranks, each pinned to a core
    python -m bench ranks calls         what a captured step with 4 all-reduces takes above MPI's own calls
    python -m bench ranks bytes         an all-reduce of 64 MB beside mpi4py's own on buffers of that size

One rank runs on one core, and computes on one thread. The times are the wall's, so all of this needs a
machine that does nothing else. Where two programs are compared, they take turns and the medians are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

#: layers, width, words, tokens of a text: GPT-2 small, and what compiles in seconds.
SIZES = {"small": (12, 768, 50257, 256), "tiny": (2, 128, 512, 64)}
#: Steps that are not counted: they plan, compile and capture.
FIRST = 3
COLLECTIVES = 4


def main(arguments: list[str]) -> int:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m bench ranks", description=about)
    parser.add_argument("what", choices=PROGRAMS, help="what is measured")
    parser.add_argument("--ranks", type=int, nargs="+", help="numbers of ranks")
    parser.add_argument("--size", choices=SIZES, default="small", help="of the GPT")
    parser.add_argument("--texts", type=int, default=1, help="in the batch of each rank")
    parser.add_argument("--zero1", action="store_true", help="the optimizer's memory is divided")
    parser.add_argument("--steps", type=int, default=8, help=f"of which the first {FIRST} do not count")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.steps <= FIRST:
        parser.error(f"--steps must be more than {FIRST}, not {given.steps}")
    if given.rank:
        PROGRAMS[given.what](given)
        return 0
    results = {}
    for ranks in given.ranks or ([1, 2] if given.what == "training" else [2]):
        results[ranks] = found = _launched(ranks, arguments)
        texts = [f"{name} {value:.4g}" for name, value in found.items()]
        print(f"{ranks} ranks: {', '.join(texts)}", flush=True)
    if given.what == "training" and 1 in results:
        for ranks, found in results.items():
            if ranks > 1:
                gain = found["tokens/s"] / results[1]["tokens/s"]
                print(f"{ranks} ranks train {gain:.2f} times as fast as 1")
    return 0


def _launched(ranks: int, arguments: Sequence[str]) -> dict[str, float]:
    """Run this file on so many ranks; what rank 0 says that it has found."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise FileNotFoundError("mpirun was not found: pip install 'lazygrad[mpi]'")
    command = [mpirun, "--bind-to", "core", "-n", str(ranks)]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-run-as-root")
    if ranks > (os.cpu_count() or 1):
        command += ["--oversubscribe", "--bind-to", "none"]
    command += [sys.executable, "-m", "bench", "ranks", *arguments, "--rank"]
    environment = os.environ | {"THREADS": "1"}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


# *** what a rank runs


def _training(given: argparse.Namespace) -> None:
    """Steps of AdamW, data parallel, each with a batch of its own."""
    import numpy as np

    import lazygrad
    from lazygrad import Tensor, distributed, nn
    from lazygrad.nn import parallel

    from .gpt import gpt

    distributed.init(seed=0)
    layers, width, words, tokens = SIZES[given.size]
    model = gpt(nn, layers=layers, width=width, tokens=tokens, vocabulary=words)
    mesh = distributed.world_mesh("data")
    parallel.data_parallel(model, mesh)
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=1e-4)
    if given.zero1:
        parallel.split_optimizer(optimizer, mesh)

    @lazygrad.jit
    def step(text: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(text[:, :-1]).sparse_categorical_crossentropy(text[:, 1:])
        loss.backward()
        optimizer.step()
        return loss

    texts = given.texts * distributed.world_size()
    ids = np.random.default_rng(0).integers(0, words, (texts, tokens + 1)).astype(np.int32)
    batch = Tensor(ids).shard(mesh, {0: "data"}).realize()
    seconds = []
    with Tensor.train():
        for _ in range(given.steps):
            start = time.perf_counter()
            step(batch).item()
            seconds.append(time.perf_counter() - start)
    taken = statistics.median(seconds[FIRST:])
    _tell({"tokens/s": texts * tokens / taken, "seconds of a step": taken})


def _calls(given: argparse.Namespace) -> None:
    """A captured step that sums 4 small tensors over the ranks, beside 4 all-reduces of mpi4py."""
    import numpy as np
    from mpi4py import MPI

    import lazygrad
    from lazygrad import Tensor, distributed

    distributed.init(seed=0)
    mesh = distributed.world_mesh("data")
    world = distributed.world_size()
    x = Tensor(np.ones((world, 64), np.float32)).shard(mesh, {0: "data"}).realize()

    @lazygrad.jit
    def step(x: Tensor) -> Tensor:
        for _ in range(COLLECTIVES):
            x = x * 0.5 + x.sum(0)  # the sum is over the ranks; each follows from the one before
        return x.realize()

    sent, received = np.ones((64,), np.float32), np.empty((64,), np.float32)

    def plain() -> None:
        for _ in range(COLLECTIVES):
            MPI.COMM_WORLD.Allreduce(sent, received)

    ours, theirs = _by_turns([lambda: step(x), plain], 2000)
    _tell({"us ours": ours * 1e6, "us mpi4py": theirs * 1e6, "us above": (ours - theirs) * 1e6})


def _bytes(given: argparse.Namespace) -> None:
    """An all-reduce of 64 MB."""
    import numpy as np
    from mpi4py import MPI

    import lazygrad
    from lazygrad import Tensor, distributed

    distributed.init(seed=0)
    mesh = distributed.world_mesh("data")
    world, count = distributed.world_size(), 16 << 20
    x = Tensor(np.ones((world, count), np.float32)).shard(mesh, {0: "data"}).realize()
    summed = lazygrad.jit(lambda x: x.sum(0).realize())
    sent, received = np.ones((count,), np.float32), np.empty((count,), np.float32)
    ours, theirs = _by_turns([lambda: summed(x), lambda: MPI.COMM_WORLD.Allreduce(sent, received)], 25)
    _tell({"ms ours": ours * 1e3, "ms mpi4py": theirs * 1e3, "ratio": ours / theirs})


def _by_turns(calls: Sequence[Callable[[], Any]], turns: int) -> list[float]:
    """Median seconds of each."""
    for call in calls:
        for _ in range(5):
            call()
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(turns):
        for call, taken in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


def _tell(found: dict[str, float]) -> None:
    from lazygrad import distributed

    distributed.print_main(json.dumps(found), flush=True)


PROGRAMS: dict[str, Callable[[argparse.Namespace], None]] = {
    "training": _training,
    "calls": _calls,
    "bytes": _bytes,
}

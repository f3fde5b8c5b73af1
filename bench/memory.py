"""Memory of training steps: the peaks of processes that train a GPT, and what checkpoints save.

    python -m bench memory [--layers 12] [--width 768] [--tokens 256] [--vocabulary 50257] [--steps 5]
        [--budgets 2GB 1.5GB]

A GPT (the defaults are GPT-2 small, 124 M parameters) with AdamW, the same lines for lazygrad, as a jit and
without, with each MEMORY_BUDGET that is given too, and for PyTorch where it is installed, each in a process
of its own on one thread. The peak is what the system counted (VmHWM, Linux alone), all of Python included;
`buffers` is lazygrad's own count. Then the peaks of forward and gradients of some networks, without and with
a checkpoint around each layer.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .gpt import gpt


def _train(library: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train in this process: the peak, and the seconds of each step."""
    module = importlib.import_module("torch" if library == "PyTorch" else "lazygrad")
    optim = importlib.import_module(f"{module.__name__}.{'' if library == 'PyTorch' else 'nn.'}optim")
    if library == "PyTorch":
        module.set_num_threads(1)
    sizes = {name: getattr(options, name) for name in ("layers", "width", "tokens", "vocabulary")}
    network = gpt(module.nn, **sizes)
    parameters = list(network.parameters())
    optimizer = optim.AdamW(parameters, lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = module.nn.functional.cross_entropy(network(x)[0], y[0])
        loss.backward()
        optimizer.step()
        return loss if library == "PyTorch" else loss.realize()

    run: Callable[[Any, Any], Any] = module.TinyJit(step) if library == "jit" else step
    make: Any = module.tensor if library == "PyTorch" else module.Tensor
    rng, seconds = np.random.default_rng(0), []
    for _ in range(options.steps):
        numbers = rng.integers(0, options.vocabulary, (1, options.tokens + 1))
        start = time.perf_counter()
        loss = float(run(make(numbers[:, :-1].copy()), make(numbers[:, 1:].copy())).item())
        seconds.append(time.perf_counter() - start)
        if not np.isfinite(loss):
            raise AssertionError(f"{library}: the loss is {loss}")
    found: dict[str, Any] = {"peak": _peak_of_process(), "seconds": seconds}
    found["parameters"] = sum(int(np.prod(tuple(p.shape))) for p in parameters)
    if library != "PyTorch":
        found["buffers"] = module.GlobalCounters.mem_peak
    return found


def _peak_of_process() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        (line,) = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


#: Networks of six layers: (shape of the input, what a layer does with a weight, the weight's shape).
LAYERS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "tanh": ((1024, 128), lambda x, w: (x @ w).tanh(), (128, 128)),
    "relu": ((1024, 128), lambda x, w: (x @ w).relu(), (128, 128)),
    "residual gelu": ((512, 128), lambda x, w: x + (x @ w).gelu(), (128, 128)),
    "layer norm": ((512, 128), lambda x, w: x + (x @ w).layernorm().gelu(), (128, 128)),
    "softmax": ((256, 1024), lambda x, w: (x * w).exp().sin().softmax(-1), (1024,)),
    "small batch": ((8, 512), lambda x, w: (x @ w).tanh(), (512, 512)),
    "convolution": ((4, 16, 32, 32), lambda x, w: x.conv2d(w, padding=1).relu(), (16, 16, 3, 3)),
}


def _saved_by_checkpoints(name: str) -> tuple[int, int]:
    """The peaks above what was there: without, and with a checkpoint around each layer."""
    from lazygrad import GlobalCounters, Tensor, checkpoint

    rng = np.random.default_rng(0)
    shape, layer, of_weight = LAYERS[name]
    x = Tensor(rng.normal(size=shape).astype(np.float32)).realize()
    made = [Tensor(rng.normal(size=of_weight).astype(np.float32) * 0.1).realize() for _ in range(6)]
    weights = [w.requires_grad_() for w in made]
    peaks = []
    for kept in (False, True):
        y = x
        for w in weights:
            y = checkpoint(layer, y, w) if kept else layer(y, w)
        gradients = y.square().mean().gradient(*weights)
        gc.collect()
        GlobalCounters.reset()
        before = GlobalCounters.mem_used
        Tensor.realize(*gradients)
        peaks.append(GlobalCounters.mem_peak - before)
        del y, gradients
    return peaks[0], peaks[1]


def main(arguments: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sizes = {"layers": 12, "width": 768, "tokens": 256, "vocabulary": 50257, "steps": 5}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument(
        "--budgets", nargs="*", default=[], metavar="SIZE", help="also with these MEMORY_BUDGETs"
    )
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone:
        print(json.dumps(_train(options.alone, options)))
        return 0
    rows = [
        ("jit", ""),
        ("lazygrad", ""),
        *((library, budget) for budget in options.budgets for library in ("jit", "lazygrad")),
    ]
    if importlib.util.find_spec("torch") is not None:
        rows.append(("PyTorch", ""))
    print(f"{'':16} {'peak MB':>8} {'buffers':>8} {'of weights':>11}  seconds of each step")
    for library, budget in rows:
        given = [word for name in sizes for word in (f"--{name}", str(getattr(options, name)))]
        command = [sys.executable, "-m", "bench", "memory", *given, "--alone", library]
        env = {**os.environ, "THREADS": "1", "MEMORY_BUDGET": budget}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        buffers = f"{found['buffers'] / 1e6:8.0f}" if "buffers" in found else ""
        share = found["peak"] / found["parameters"] / 4
        seconds = " ".join(f"{each:.2f}" for each in found["seconds"])
        name = f"{library} {budget}"
        print(f"{name:16} {found['peak'] / 1e6:8.0f} {buffers:>8} {share:11.2f}  {seconds}")
    print(f"\n{'KB above':14} {'plain':>8} {'checkpoints':>12}")
    for name in LAYERS:
        plain, kept = _saved_by_checkpoints(name)
        print(f"{name:14} {plain / 1e3:8.0f} {kept / 1e3:12.0f}")
    return 0

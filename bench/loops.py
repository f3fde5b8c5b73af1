"""Training steps of layers that loop over time, beside PyTorch's: the first ones, and those that follow.

    python -m bench loops [LAYER ...] [--length 32] [--batch 16] [--input 64] [--hidden 128] [--seconds 4]

Layers are lstm, gru and rnn, of two layers each, and mamba (PyTorch's is a plain loop over the same weights).
A step is a mean square, its gradients and Adam; its loss is read with `item()`. Each layer is measured in a
process of its own, on one thread and with an empty disk cache. `first` to `third` are wall time; `later` is
the least processor time of the steps that follow, PyTorch and lazygrad in turn. First losses are compared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LAYERS = ("lstm", "gru", "rnn", "mamba")
RATE = 1e-3


def _recurrent(library: Any, kind: str, options: argparse.Namespace) -> Any:
    return getattr(library, kind.upper())(options.input, options.hidden, 2)


def _mamba_of_torch(
    torch: Any, weights: dict[str, np.ndarray]
) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Its weights, and what it computes of (length, batch, width): the recurrence is a loop."""
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    functional = torch.nn.functional
    (channels, state), width = weights["A_log"].shape, weights["conv1d.weight"].shape[2]
    rank = weights["dt_proj.weight"].shape[1]

    def forward(x: Any) -> Any:
        u, z = (x @ w["in_proj.weight"].T).permute(1, 2, 0).chunk(2, 1)
        u = functional.pad(u, (width - 1, 0))
        u = functional.silu(functional.conv1d(u, w["conv1d.weight"], w["conv1d.bias"], groups=channels))
        low, b, c = (u.transpose(1, 2) @ w["x_proj.weight"].T).split([rank, state, state], 2)
        step = functional.softplus(low @ w["dt_proj.weight"].T + w["dt_proj.bias"])
        rates = -w["A_log"].exp()
        h, outputs = torch.zeros(x.shape[1], channels, state), []
        for t in range(x.shape[0]):
            now = step[:, t, :, None]
            h = (now * rates).exp() * h + now * b[:, t, None] * u[:, :, t, None]
            outputs.append((h * c[:, t, None]).sum(2) + w["D"] * u[:, :, t])
        y = torch.stack(outputs) * functional.silu(z).permute(2, 0, 1)
        return y @ w["out_proj.weight"].T

    return w, forward


def _steps(kind: str, options: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """A step of PyTorch, one of lazygrad, and the same as a jit; each gives its loss."""
    import torch

    from lazygrad import Tensor, TinyJit, nn
    from lazygrad.nn.state import get_parameters, get_state_dict

    torch.set_num_threads(1)
    rng = np.random.RandomState(0)
    width = options.input if kind == "mamba" else options.hidden
    xs = rng.randn(options.length, options.batch, options.input).astype(np.float32)
    ys = rng.randn(options.length, options.batch, width).astype(np.float32)
    layer: Any = nn.Mamba(options.input) if kind == "mamba" else _recurrent(nn, kind, options)
    Tensor.realize(*get_parameters(layer))
    weights = {name: tensor.numpy() for name, tensor in get_state_dict(layer).items()}
    theirs: Callable[[Any], Any]
    if kind == "mamba":
        held, theirs = _mamba_of_torch(torch, weights)
        parameters = list(held.values())
    else:
        module = _recurrent(torch.nn, kind, options)
        module.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        parameters, theirs = list(module.parameters()), lambda x: module(x)[0]
    their_x, their_y, their_adam = torch.tensor(xs), torch.tensor(ys), torch.optim.Adam(parameters, lr=RATE)
    x, y, adam = Tensor(xs).realize(), Tensor(ys).realize(), nn.optim.Adam(get_parameters(layer), lr=RATE)

    def step_of_torch() -> float:
        their_adam.zero_grad()
        loss = (theirs(their_x) - their_y).square().mean()
        loss.backward()
        their_adam.step()
        return float(loss.item())

    def step() -> Tensor:
        with Tensor.train():
            adam.zero_grad()
            made = layer(x.transpose(0, 1)).transpose(0, 1) if kind == "mamba" else layer(x)[0]
            loss = (made - y).square().mean()
            loss.backward()
            adam.step()
            return loss.realize()

    jitted = TinyJit(step)
    return {
        "PyTorch": step_of_torch,
        "lazygrad": lambda: float(step().item()),
        "jit": lambda: float(jitted().item()),
    }


def _seconds(run: Callable[[], float], clock: Callable[[], float]) -> tuple[float, float]:
    start = clock()
    made = run()
    return clock() - start, made


def _measure(kind: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds: the first three steps of each, and the least of those that follow, of processor time."""
    from lazygrad.engine.realize import observe_kernels

    steps = _steps(kind, options)
    found: dict[str, list[float]] = {}
    losses: dict[str, float] = {}
    for name in ("PyTorch", "lazygrad"):
        first = [_seconds(steps[name], time.perf_counter) for _ in range(3)]
        found[name], losses[name] = [seconds for seconds, _ in first], first[0][1]
    if not math.isclose(losses["PyTorch"], losses["lazygrad"], rel_tol=1e-4):
        raise AssertionError(f"{kind}: a loss of {losses['lazygrad']}, PyTorch's is {losses['PyTorch']}")
    kernels: list[Any] = []
    with observe_kernels(lambda *given: kernels.append(given)):
        steps["lazygrad"]()
    found["jit"] = [_seconds(steps["jit"], time.perf_counter)[0] for _ in range(3)]
    best = dict.fromkeys(steps, math.inf)
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for name, run in steps.items():
            best[name] = min(best[name], _seconds(run, time.process_time)[0])
    for name, seconds in best.items():
        found[name].append(seconds)
    return {**found, "kernels": [float(len(kernels))]}


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench loops",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("layers", nargs="*", metavar="LAYER", default=[])
    for name, size in (("length", 32), ("batch", 16), ("input", 64), ("hidden", 128)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone:
        print(json.dumps(_measure(options.layers[0], options)))
        return 0
    print(f"{'ms':6} {'':9} {'first':>7} {'second':>7} {'third':>7} {'later':>7} {'of PyTorch':>11}  kernels")
    for kind in options.layers or LAYERS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "bench", "loops", kind, *_arguments(options), "--alone"]
            env = {**os.environ, "XDG_CACHE_HOME": folder, "THREADS": "1"}
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        for name in ("PyTorch", "lazygrad", "jit"):
            first, second, third, later = [seconds * 1e3 for seconds in found[name]]
            ratio = f"{found[name][3] / found['PyTorch'][3]:.2f}" if name != "PyTorch" else ""
            kernels = f"{found['kernels'][0]:.0f}" if name == "lazygrad" else ""
            print(
                f"{kind if name == 'PyTorch' else '':6} {name:9} {first:7.1f} {second:7.1f} {third:7.1f} "
                f"{later:7.2f} {ratio:>11}  {kernels}"
            )
    return 0


def _arguments(options: argparse.Namespace) -> list[str]:
    """The options as they were given, for another process."""
    names = ("length", "batch", "input", "hidden", "seconds")
    return [word for name in names for word in (f"--{name}", str(getattr(options, name)))]

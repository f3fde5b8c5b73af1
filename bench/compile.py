"""The compiler's own speed: seconds per stage, from the first Tensor method to the end of the last kernel.

    python -m bench compile                         all cases, on one core
    python -m bench compile --cases kernel,eager    some
    python -m bench compile --json                  the same as JSON, one object
    python -m bench compile --clock cpu             processor time, for a machine that others use too
    python -m bench compile --quick                 small sizes, one repeat: that it runs, not how fast

Every case runs in this process, on one core where the system lets a process choose; the stages are those of
the fastest repeat. `mark` is the time that issue 2 asks for, `goal` that of issue 3.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from lazygrad.config import CACHELEVEL

from .stages import STAGES, Result, Sample, clock_name, forget, measure, use_processor_time

Case = Callable[[bool, int], Iterator[Result]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


# *** processes of their own


def _in_fresh_process(code: str, count: int, folder: str, **flags: str) -> list[list[float]]:
    """The numbers that some code prints, from `count` fresh processes with these flags.

    One process before them leaves compiled Python in the folder, as an installed package has it.
    """
    env = {**os.environ, "CACHELEVEL": "1", **flags, "PYTHONPYCACHEPREFIX": folder}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = []
    for _ in range(count + 1):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        )
        runs.append([float(word) for word in done.stdout.split()])
    return runs[1:]


def _whole(name: str, seconds: list[float], **more: Any) -> Result:
    """A result of which only the total is known."""
    return Result(name, [Sample(s, dict.fromkeys(STAGES, 0.0), 0) for s in seconds], **more)


@case
def process(quick: bool, repeats: int) -> Iterator[Result]:
    """A fresh process: the import, then its first kernel with all that opens on the way."""
    code = (
        f"from time import {clock_name()} as now; start = now(); import lazygrad; imported = now(); "
        "(lazygrad.Tensor([1., 2., 3., 4.]) + 1).realize(); print(imported - start, now() - imported)"
    )
    count = 1 if quick else max(repeats, 5)
    with tempfile.TemporaryDirectory() as folder:
        runs = _in_fresh_process(code, count, folder)
        flags = {"CACHELEVEL": "2", "CACHEDB": os.path.join(folder, "cache.db")}
        warm = _in_fresh_process(code, count, folder, **flags)
    yield _whole("import lazygrad", [run[0] for run in runs], mark=0.15)
    yield _whole(
        "first kernel of a process", [run[1] for run in runs], note="opens CPU, loads numpy and LLVM"
    )
    yield _whole("the same from disk", [run[1] for run in warm], note="an earlier process compiled it")


# *** small things


@case
def kernel(quick: bool, repeats: int) -> Iterator[Result]:
    """A new small kernel cold, everything included: each repeat has shapes that were not seen before."""
    from lazygrad import Tensor

    makes: dict[str, Callable[[Any, Any], Any]] = {
        "new kernel: x * 2 + y": lambda x, y: x * 2 + y,
        "new kernel: sum of rows": lambda x, y: x.sum(1),
        "new kernel: softmax": lambda x, y: x.softmax(),
    }
    (Tensor([1.0, 2.0]) + 1).realize()  # the device is open
    for name, make in makes.items():
        found = Result(name, mark=0.025, goal=0.015)
        for repeat in range(1 if quick else max(repeats, 10)):
            x = Tensor.ones(4 + repeat, 12 + 4 * repeat).contiguous()
            y = Tensor.ones(4 + repeat, 12 + 4 * repeat).contiguous() * 2
            Tensor.realize(x, y)
            forget()
            found.samples.append(measure(functools.partial(_realize, make, x, y)))
        yield found


def _realize(make: Callable[..., Any], *arguments: Any) -> Any:
    return make(*arguments).realize()


@case
def eager(quick: bool, repeats: int) -> Iterator[Result]:
    """Adding 4 floats again and again, each sum realized: everything is in the caches."""
    from lazygrad import Tensor

    count = 10 if quick else 2000
    x, y = Tensor([1.0, 2.0, 3.0, 4.0]).realize(), Tensor([1.0, 2.0, 3.0, 4.0]).realize()

    def work() -> None:
        for _ in range(count):
            (x + y).realize()

    work()
    samples = [measure(work) for _ in range(repeats)]
    yield Result("eager add of 4 floats", samples, per=count, mark=150e-6, goal=80e-6, unit="us")


# *** many nodes


def network(nodes: int) -> Any:
    """About so many nodes as networks have them: linear layers, activations, normalisations."""
    from lazygrad import Tensor

    x = Tensor.ones(8, 16).contiguous().realize()
    weight, bias = Tensor.ones(16, 16).contiguous().realize(), Tensor.ones(16).contiguous().realize()
    while True:
        for _ in range(8):
            x = x + ((x @ weight + bias).relu() * 0.5).layernorm()
        if len(x.uop.toposort()) >= nodes:
            return x


@case
def schedule(quick: bool, repeats: int) -> Iterator[Result]:
    """Planning graphs of growing size, not in the schedule cache; `trace` is building them."""
    sizes = [1000] if quick else [1000, 2000, 5000, 10_000]
    marks = {10_000: (2.5, 1.5)}
    for size in sizes:
        mark, goal = marks.get(size, (None, None))
        found = Result(f"schedule a network of {size:,} nodes", mark=mark, goal=goal)
        for _ in range(repeats):
            x = network(size)
            forget()
            found.samples.append(measure(x.kernelize))
        count = len(network(size).uop.toposort())
        found.note = f"{count:,} nodes, {found.fastest / count * 1e6:.0f} us a node"
        yield found
    for size in sizes:
        found = Result(f"schedule a chain of {size:,} nodes")
        for _ in range(repeats):
            forget()
            x = _chain(size)
            found.samples.append(measure(x.kernelize))
        found.note = f"{found.fastest / size * 1e6:.0f} us a node"
        yield found


def _chain(nodes: int) -> Any:
    from lazygrad import Tensor

    step = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    x = step
    for _ in range(nodes // 2):
        x = x * 0.5 + step
    return x


@case
def chain(quick: bool, repeats: int) -> Iterator[Result]:
    """A chain of 100,000 nodes: built, scheduled, run and freed."""
    size = 5000 if quick else 100_000
    forget()
    held: list[Any] = []

    def free() -> None:
        held.clear()

    def build() -> None:
        held.append(_chain(size))

    yield Result(f"chain of {size:,}: build", [measure(build)])
    yield Result(f"chain of {size:,}: schedule", [measure(lambda: held[0].kernelize())])
    yield Result(f"chain of {size:,}: run", [measure(lambda: held[0].realize())])
    held.append(_chain(size))  # running has let go of the first one's nodes already
    yield Result(f"chain of {size:,}: free", [measure(free)])


# *** layers and steps


def _calls(
    name: str, start: Callable[[], Callable[[], Any]], repeats: int, count: int = 2
) -> Iterator[Result]:
    """The first calls of a step: all caches empty, then what the calls before left in them.

    A training step settles in its third call: in the second, what was begun in the first is written in place.
    """
    results = [Result(f"{name}: {which}") for which in ("first", "second", "third")[:count]]
    for _ in range(repeats):
        step = start()
        forget()
        for found in results:
            found.samples.append(measure(step))
    yield from results


@case
def layers(quick: bool, repeats: int) -> Iterator[Result]:
    """Softmax and layer normalisation of (64, 256)."""
    from lazygrad import Tensor, nn

    def softmax() -> Callable[[], Any]:
        x = Tensor.rand(64, 256).realize()
        return lambda: x.softmax().realize()

    def layernorm() -> Callable[[], Any]:
        x, norm = Tensor.rand(64, 256).realize(), nn.LayerNorm(256)
        Tensor.realize(*nn.state.get_parameters(norm))
        return lambda: norm(x).realize()

    yield from _calls("softmax", softmax, repeats)
    yield from _calls("layernorm", layernorm, repeats)


def _train(
    model: Any, forward: Callable[[Any], Any], shape: tuple[int, ...], classes: int
) -> Callable[[], Any]:
    """One training step with Adam on made-up data."""
    from lazygrad import Tensor, nn

    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)
    x, labels = Tensor.rand(*shape).realize(), (Tensor.arange(shape[0]) % classes).contiguous().realize()
    Tensor.realize(*nn.state.get_parameters(model))

    def step() -> Any:
        with Tensor.train():
            optimizer.zero_grad()
            loss = forward(x).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
            return loss.realize()

    return step


@case
def mlp(quick: bool, repeats: int) -> Iterator[Result]:
    """A training step of 64-128-10 with Adam, batch 32."""
    from lazygrad import nn

    def start() -> Callable[[], Any]:
        model = [nn.Linear(64, 128), nn.Linear(128, 10)]
        return _train(model, lambda x: model[1](model[0](x).relu()), (32, 64), 10)

    yield from _calls("MLP training step", start, repeats, 3)


@case
def convnet(quick: bool, repeats: int) -> Iterator[Result]:
    """A training step of two convolutions, batch normalisation and a linear layer, 8x8 images, batch 32."""
    from lazygrad import nn

    def start() -> Callable[[], Any]:
        width = 4 if quick else 16
        model: list[Any] = [nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm(width)]
        model += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm(width), nn.Linear(width * 4, 10)]

        def forward(x: Any) -> Any:
            x = model[1](model[0](x)).relu().max_pool2d((2, 2))
            x = model[3](model[2](x)).relu().max_pool2d((2, 2))
            return model[4](x.flatten(1))

        return _train(model, forward, (4 if quick else 32, 1, 8, 8), 10)

    yield from _calls("convolutional training step", start, repeats, 3)


@case
def digits(quick: bool, repeats: int) -> Iterator[Result]:
    """The demo's training step: digits drawn, shifted, and shown to a small convolutional network."""
    from lazygrad import Tensor
    from lazygrad.nn import demo
    from lazygrad.nn.optim import AdamW
    from lazygrad.nn.state import get_parameters

    def start() -> Callable[[], Any]:
        images, labels, _, _ = demo.digits()
        batches, network = demo.Batches(images, labels), demo.Network()
        optimizer = AdamW(get_parameters(network), lr=demo.LEARNING_RATE)

        def step() -> Any:
            with Tensor.train():
                return demo.train_step(network, optimizer, batches)

        return step

    yield from _calls("demo step", start, repeats, 3)


@case
def transformer(quick: bool, repeats: int) -> Iterator[Result]:
    """The forward pass of one block: attention of 4 heads and a feed-forward layer over (2, 32, 64)."""
    from lazygrad import Tensor, nn

    batch, length, width, heads = 2, 32, 64, 4

    def start() -> Callable[[], Any]:
        query, key, value, out = (nn.Linear(width, width) for _ in range(4))
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        before, after = nn.LayerNorm(width), nn.LayerNorm(width)
        Tensor.realize(*nn.state.get_parameters([query, key, value, out, up, down, before, after]))
        x = Tensor.rand(batch, length, width).realize()

        def split(y: Any) -> Any:
            return y.reshape(batch, length, heads, width // heads).transpose(1, 2)

        def block() -> Any:
            h = before(x)
            attended = split(query(h)).scaled_dot_product_attention(split(key(h)), split(value(h)))
            y = x + out(attended.transpose(1, 2).reshape(batch, length, width))
            return (y + down(up(after(y)).gelu())).realize()

        return block

    yield from _calls("transformer block", start, repeats)


# *** printing


def number(seconds: float, unit: str) -> str:
    """A time in its unit, three figures."""
    scaled = seconds * {"ms": 1e3, "us": 1e6}[unit]
    return f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"


def table(results: list[Result]) -> str:
    """The results as text: what was asked for beside what was measured, then the stages."""
    rows = [["case", "min", "median", "mark", "goal", "", "kernels", "note"]]
    for found in results:
        asked = [number(s, found.unit) if s is not None else "" for s in (found.mark, found.goal)]
        rows.append(
            [
                found.name,
                number(found.fastest, found.unit),
                number(found.median, found.unit),
                *asked,
                found.unit,
            ]
            + [str(found.best.kernels // found.per) if found.best.kernels else "", found.note]
        )
    staged = [found for found in results if any(found.best.stages.values())]
    shown = [s for s in STAGES if any(number(f.best.stages[s] / f.per, f.unit) != "0.00" for f in staged)]
    stages = [["stages of the fastest repeat", "", *shown]]
    for found in staged:
        stages.append(
            [found.name, found.unit]
            + [number(max(0, found.best.stages[s]) / found.per, found.unit) for s in shown]
        )
    return _aligned(rows) + ("\n\n" + _aligned(stages) if staged else "")


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if cell[:1].isalpha() and column in (0, len(row) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    import llvmlite

    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), model)
    return {
        "date": date.today().isoformat(),
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "llvmlite": llvmlite.__version__,
    }


def busy() -> float:
    """How much longer than its own processor time a short loop takes: 1.0 on an idle machine."""
    ratios = []
    for _ in range(5):
        wall, own = time.perf_counter(), time.process_time()
        sum(range(2_000_000))
        ratios.append((time.perf_counter() - wall) / max(time.process_time() - own, 1e-9))
    return statistics.median(ratios)


def main(arguments: list[str]) -> int:
    """Run the cases that were asked for and print them."""
    parser = argparse.ArgumentParser(prog="python -m bench compile", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES), help=f"which, of {', '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="wall time, or processor time"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one repeat: that it runs, not how fast"
    )
    options = parser.parse_args(arguments)
    chosen = [name for name in options.cases.split(",") if name]
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.clock == "cpu":
        use_processor_time()
    CACHELEVEL.set_default(1)  # what another process left on disk is not measured here
    repeats = 1 if options.quick else options.repeats
    about = {**machine(), "clock": options.clock, "busy": f"{busy():.2f}"}
    if not options.json:
        print(", ".join(f"{key} {value}" for key, value in about.items()) + "\n")
    results: list[Result] = []
    for name in chosen:
        if not options.json:
            print(f"{name}: {CASES[name].__doc__}", file=sys.stderr)
        results += CASES[name](options.quick, repeats)
    if options.json:
        print(json.dumps({**about, "results": [found.as_json() for found in results]}, indent=2))
    else:
        print(table(results))
    return 0

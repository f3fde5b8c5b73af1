"""From the shell to the first training step, in processes of their own: an empty cache, and a filled one.

    python -m bench start [--layers 12] [--width 192] [--tokens 64] [--rounds 3]

Two programs: the digits demo (`python -m lazygrad demo`) until its first step is done, and a GPT with AdamW,
the same lines for lazygrad and for PyTorch, whose process stands beside it where PyTorch is installed. The
first process of lazygrad begins with an empty cache on disk, the others find what it has left. Shown of each
part: the first process, and the least of the others; by the clock, and the processor's time of all threads.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from .gpt import gpt

DEMO_PARTS = ["python, imports", "to the first step"]
GPT_PARTS = ["python, imports", "weights, optimizer", "first step", "second step", "third step"]
#: So many of a GPT's are done when its first step is.
TO_THE_FIRST = 3
HEAD_WIDTH, VOCABULARY = 32, 2000

Marks = list[tuple[float, float]]


def _mark(marks: Marks) -> None:
    marks.append((time.time(), time.process_time()))


# *** what the processes do


def _demo() -> Marks:
    from lazygrad.__main__ import main
    from lazygrad.nn import demo

    marks: Marks = []
    _mark(marks)
    train_step = demo.train_step

    def first(*given: Any) -> None:
        train_step(*given).item()
        _mark(marks)
        raise StopIteration

    demo.train_step = first
    try:
        main(["demo"])
    except StopIteration:
        return marks
    raise AssertionError("the demo has made no step")


def _gpt(name: str, layers: int, width: int, tokens: int) -> Marks:
    marks: Marks = []
    if name == "torch":
        import torch as library
        from torch.optim import AdamW
    else:
        import lazygrad as library  # type: ignore[no-redef]
        from lazygrad.nn.optim import AdamW  # type: ignore[assignment]

    _mark(marks)
    (library if name == "torch" else library.Tensor).manual_seed(0)
    sizes = {"layers": layers, "width": width, "tokens": tokens, "vocabulary": VOCABULARY}
    model = gpt(library.nn, **sizes, head_width=HEAD_WIDTH)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    tensor = library.tensor if name == "torch" else library.Tensor
    ids = tensor([[7 * place % VOCABULARY for place in range(tokens)]])
    _mark(marks)
    for _ in range(3):
        loss = library.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        _mark(marks)
    return marks


# *** the table


def _run(words: list[str], cache: str) -> list[list[float]]:
    """The seconds of each part of a process, by the clock from before it is made, and of work."""
    environment = {**os.environ, "CACHEDB": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a package that is installed is compiled
    begun = time.time()
    done = subprocess.run(
        [sys.executable, "-m", "bench.start", "--one", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    marks = [[begun, 0.0], *json.loads(done.stdout.splitlines()[-1])]
    return [[b - a for a, b in zip(*pair, strict=True)] for pair in itertools.pairwise(marks)]


def _table(name: str, parts: list[str], first: int, columns: dict[str, list[list[list[float]]]]) -> None:
    """A row for each part, and one for all until the first step; each column is the runs of processes."""
    print(f"\n| {name} | {' | '.join(f'{column} | its work' for column in columns)} |")
    print(f"|---|{'---|---|' * len(columns)}")
    for number, part in enumerate([*parts, "all to the first step"]):
        cells = []
        for runs in columns.values():
            for which in (0, 1):
                each = [
                    run[number][which] if number < len(parts) else sum(p[which] for p in run[:first])
                    for run in runs
                ]
                cells.append(f"{min(each):.2f} s")
        print(f"| {part} | {' | '.join(cells)} |")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench start", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=192, help=f"of the GPT, a multiple of {HEAD_WIDTH}")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="how many processes find a filled cache")
    parser.add_argument("--only", choices=["demo", "gpt"])
    parser.add_argument("--one", choices=["demo", "lazygrad", "torch"], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    sizes = [given.layers, given.width, given.tokens]
    if given.one:
        answers, sys.stdout = sys.stdout, sys.stderr
        marks = _demo() if given.one == "demo" else _gpt(given.one, *sizes)
        print(json.dumps(marks), file=answers)
        return 0
    words = [
        word
        for name, size in zip(("layers", "width", "tokens"), sizes, strict=True)
        for word in (f"--{name}", str(size))
    ]
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, "private", "cache.db")
        if given.only != "gpt":
            runs = [_run(["demo"], cache) for _ in range(given.rounds + 1)]
            _table("digits demo", DEMO_PARTS, 2, {"empty cache": runs[:1], "filled": runs[1:]})
        if given.only != "demo":
            runs = [_run(["lazygrad", *words], cache) for _ in range(given.rounds + 1)]
            columns = {"empty cache": runs[:1], "filled": runs[1:]}
            if importlib.util.find_spec("torch") is not None:
                columns["PyTorch"] = [_run(["torch", *words], cache) for _ in range(given.rounds)]
            name = f"GPT of {given.layers} blocks, width {given.width}, {given.tokens} tokens"
            _table(name, GPT_PARTS, TO_THE_FIRST, columns)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

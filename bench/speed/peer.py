"""The process of one library: `python -m bench.speed.peer LIBRARY THREADS`. Lines of JSON ask and answer.

{"case": NAME, "dtype": D, "save": PATH}   makes the case, computes it a few times, saves its first result
{"roofline": true}                         lazygrad only: what the cores can do at most, measured now
{"memory": S}                              lazygrad only: what memory can do, measured for about S seconds
{"case": null}                             lets go of it
{"kernels": S}                             lazygrad only: the kernels of the case, timed for about S seconds
{"seconds": S, "clock": "cpu" or "wall"}   computes it for about S seconds, three times at least
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import CASES

LIBRARIES = {
    "lazygrad": ("with_lazygrad", "make"),
    "numpy": ("with_numpy", "make"),
    "torch": ("with_torch", "make"),
    "torch.compile": ("with_torch", "make_compiled"),
    "jax": ("with_jax", "make"),
}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def serve(library: str, threads: int) -> None:
    """Answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not be taken for an answer
    module_name, maker = LIBRARIES[library]
    module = importlib.import_module(f".peers.{module_name}", __package__)
    module.setup(threads)
    run: Callable[[], Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "roofline" in request:
                answer = {"roofline": module.measured_roofline()}
            elif "memory" in request:
                answer = {"memory": module.measured_memory(request["memory"])}
            elif "case" in request:
                run = None  # the memory of the case before
                run, answer = _prepare(module, maker, request) if request["case"] else (None, {})
            elif "kernels" in request:
                answer = {"kernels": module.kernels_of(run, request["kernels"])}
            else:
                answer = _timed(run, request["seconds"], CLOCKS[request.get("clock", "wall")])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def _prepare(module: Any, maker: str, request: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    case = next(case for case in CASES if case.name == request["case"])
    run = getattr(module, maker)(case, case.arrays(), request["dtype"])
    start = time.perf_counter()
    result = run()
    first = time.perf_counter() - start
    if request["save"]:
        np.save(request["save"], module.numpy_of(result))
    for _ in range(3 if request["warm"] else 0):  # a jit captures on its second call
        run()
    return run, {"first": first}


def _timed(run: Callable[[], Any] | None, budget: float, clock: Callable[[], float]) -> dict[str, float]:
    if run is None:
        raise RuntimeError("no case was prepared")
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return {"fastest": min(times), "median": statistics.median(times)}


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))

"""The process of a tree: lines of JSON ask and answer.

{"case": NAME}      makes the case and plays it until it is warm; with "save", a file for its first result
{"case": null}      lets go of it
{"seconds": S}      plays it for about S seconds, three times at least: the median of a call
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from .cases import cases


def serve() -> None:
    """Answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what is printed must not be taken for an answer
    known = {case.name: case for case in cases()}
    run: Callable[[], Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "case" not in request:
                answer: dict[str, Any] = {"seconds": _median(run, request["seconds"])}
            else:
                run, answer = None, {}
                gc.collect()  # the memory of the case before
                if request["case"] is not None:
                    run = known[request["case"]].start()
                    for _ in range(4):  # a jit captures on its second call
                        run()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def _median(run: Callable[[], Any] | None, budget: float) -> float:
    if run is None:
        raise RuntimeError("no case was made")
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    serve()

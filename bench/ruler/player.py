"""The process of a tree: lines of JSON ask and answer.

{"case": NAME, "as": KEY, "flags": {...}}  makes the case under flags of lazygrad, plays it until it is warm
{"case": null}                             lets go of all of them
{"seconds": S, "of": KEY}                  plays it about S seconds, three times at least: a call's median
{"decisions": NAME}                        what the case asks of the registry of decisions, what else is legal
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .cases import Case, cases

#: Other legal answers of one decision that are played.
FLIPS = 3

Variant = tuple[Callable[[], Any], dict[str, Any]]


def serve() -> None:
    """Answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what is printed must not be taken for an answer
    known = {case.name: case for case in cases()}
    variants: dict[str, Variant] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, Any] = {}
            if "decisions" in request:
                answer = {"asked": _decisions(known[request["decisions"]])}
            elif "case" not in request:
                answer = {"seconds": _median(variants[request.get("of", "")], request["seconds"])}
            elif request["case"] is None:
                variants.clear()
                gc.collect()  # their memory
            else:
                flags = request.get("flags", {})
                variants[request.get("as", "")] = (_warm(known[request["case"]], flags), flags)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def _under(flags: dict[str, Any]) -> AbstractContextManager[Any]:
    from lazygrad import Context

    return Context(**flags)


def _warm(case: Case, flags: dict[str, Any]) -> Callable[[], Any]:
    with _under(flags):
        run = case.start()
        for _ in range(4):  # a jit captures on its second call
            run()
    return run


def _median(variant: Variant, budget: float) -> float:
    run, flags = variant
    times: list[float] = []
    with _under(flags):
        end = time.perf_counter() + budget
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def _decisions(case: Case) -> list[dict[str, Any]]:
    """The decisions of the case but for Opts: name, structure, the answer, and others that are legal."""
    from lazygrad.decisions import Decided, observers, text_of
    from lazygrad.programs.runners import clear_programs

    found: dict[tuple[str, str], dict[str, Any]] = {}

    def see(asked: Decided) -> None:
        if asked.name == "opts":  # those are what a search is for
            return
        others = [text_of(each) for each in asked.others(random.Random(asked.structure))]
        answer = text_of(asked.answer)
        others = [each for each in dict.fromkeys(others) if each != answer][:FLIPS]
        found[asked.name, asked.structure] = {
            "name": asked.name,
            "structure": asked.structure,
            "answer": answer,
            "others": others,
        }

    clear_programs()
    observers.append(see)
    try:
        _warm(case, {"CACHELEVEL": 0})
    finally:
        observers.remove(see)
    return list(found.values())


if __name__ == "__main__":
    serve()

"""`python -m bench NAME ...`: runs one of the measurements; without a NAME, speed."""

from __future__ import annotations

import sys
from types import ModuleType

from . import (
    checks,
    cores,
    first_token,
    growing,
    house,
    latency,
    loops,
    memory,
    models,
    odd,
    pictures,
    predict,
    public_tests,
    ranks,
    recording,
    single_ops,
    start,
    sums,
    torch_compile,
)
from . import compile as compile_times
from .gpu import run as gpu
from .mutants import run as mutants
from .replay import run as replay
from .ruler import guard, regret
from .speed import run as speed

MEASUREMENTS: dict[str, ModuleType] = {
    "speed": speed,
    "compile": compile_times,
    "latency": latency,
    "cores": cores,
    "odd": odd,
    "models": models,
    "first_token": first_token,
    "start": start,
    "growing": growing,
    "loops": loops,
    "memory": memory,
    "replay": replay,
    "predict": predict,
    "sums": sums,
    "house": house,
    "mutants": mutants,
    "guard": guard,
    "gpu": gpu,
    "regret": regret,
    "checks": checks,
    "pictures": pictures,
    "recording": recording,
    "single_ops": single_ops,
    "public_tests": public_tests,
    "ranks": ranks,
    "torch": torch_compile,
}


def main(arguments: list[str]) -> int:
    if arguments not in (["--help"], ["-h"]) and (not arguments or arguments[0].startswith("-")):
        arguments = ["speed", *arguments]
    if arguments[0] not in MEASUREMENTS:
        print("python -m bench [NAME] [--help]; what can be measured, the first if no NAME is given:")
        for name, module in MEASUREMENTS.items():
            print(f"  {name:11} {(module.__doc__ or '').splitlines()[0]}")
        return 0 if arguments in (["--help"], ["-h"]) else 2
    status: int = MEASUREMENTS[arguments[0]].main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

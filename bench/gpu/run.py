"""Ten minutes on an NVIDIA GPU: correctness, speed beside PyTorch, faults, searches, in stages on disk.

    python -m bench gpu --out DIR                      all stages, 9 minutes at most
    python -m bench gpu --out DIR --stages device,ops  some of them
    python -m bench gpu --out DIR --dry-run            without a GPU, two minutes: see below
    python -m bench gpu --out DIR --dry-run --whole    the same, all of it
    python -m bench gpu --list                         what there is

Each stage plays in processes of its own with a time limit, and DIR/STAGE.json is written after it; none stops
the next. A case that fails, hangs or crashes is in the results with its error. A peer that is not installed
is said, and no failure.

`--dry-run` needs no GPU: everything that the stages would run is written in its real size for sm_90 and
compiled with NVRTC; then what the emulator of the tests can run in reasonable time is played in tiny sizes,
peers on the CPU. Nothing is measured then. That takes ten minutes on two cores, and is `--dry-run --whole`;
without that word a share is drawn by FUZZ_SEED, of two minutes, in which networks have two layers. The exit
status is 1 if anything failed.

docs/gpu_hour.md says how to run it on a borrowed machine, and how to read what it finds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lazygrad.device import DeviceError, MissingDeviceError
from lazygrad.runtime import _cuda_driver

from . import driver
from .machine import COMPILE, PLAY, REAL
from .stages import STAGES, WHOLE, Stage, named
from .summary import line_of, summary

#: With fewer seconds until the first measurement nothing is compiled ahead.
AHEAD = 30


def main(arguments: list[str]) -> int:
    asked = _parsed(arguments)
    if asked.list:
        for stage in STAGES:
            print(f"{stage.name:10} {stage.seconds:4.0f} s  {stage.about}")
        return 0
    if not asked.dry_run and (absent := _absent()):
        print(f"{absent}; --dry-run needs none", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    for stage in asked.stages:
        (asked.out / f"{stage.name}.json").unlink(missing_ok=True)
    if asked.dry_run:
        seed = None if asked.whole else int(os.environ.get("FUZZ_SEED", "0"))
        results = dry_run(asked.stages, asked.out.resolve(), seed)
    else:
        results = run(asked.stages, asked.out.resolve(), asked.seconds)
    text = summary(results)
    (asked.out / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    failed = [result for result in results if result["status"] != "done" and not _is_ahead(result, asked)]
    return 1 if failed else 0


def _absent() -> str:
    """Why there is no GPU here; empty where there is one, or a driver that does not work: stages say how."""
    try:
        _cuda_driver.started(_cuda_driver.bindings())
    except MissingDeviceError as error:
        return str(error)
    except DeviceError:
        pass
    return ""


def _is_ahead(result: dict[str, Any], asked: argparse.Namespace) -> bool:
    """What was not compiled ahead is compiled when it is wanted."""
    return result["mode"] == COMPILE and not asked.dry_run


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the results are written")
    parser.add_argument("--dry-run", action="store_true", help="no GPU: compile everything, play what can be")
    parser.add_argument("--whole", action="store_true", help="of a dry run: every case, and all layers")
    parser.add_argument("--stages", default="", help=f"of {', '.join(stage.name for stage in STAGES)}")
    parser.add_argument("--seconds", type=float, default=WHOLE, help="what all may take together")
    parser.add_argument("--list", action="store_true", help="the stages and their limits")
    found = parser.parse_args(arguments)
    try:
        found.stages = named(found.stages)
    except ValueError as error:
        parser.error(str(error))
    if found.out is None and not found.list:
        parser.error("--out DIR is needed: the results are written there")
    return found


def run(stages: Sequence[Stage], folder: Path, seconds: float = WHOLE) -> list[dict[str, Any]]:
    """On the GPU, one after another; what a stage does not need is left to those after it.

    While the first ones play, which measure nothing, the kernels of those that do are compiled beside them.
    """
    end = time.monotonic() + seconds
    first = list(itertools.takewhile(lambda stage: not stage.ahead, stages))
    hidden = min(sum(stage.seconds for stage in first), seconds)
    later = [stage for stage in stages if stage.ahead and hidden > AHEAD]
    results = []
    with ThreadPoolExecutor(max(1, len(later))) as pool:
        patient = [stage._replace(patience=hidden) for stage in later]
        ahead = [pool.submit(_half, stage, COMPILE, folder, hidden) for stage in patient]
        for stage in stages:
            if stage.ahead and ahead:
                results += [each.result() for each in ahead]
                ahead = []
            limit = min(stage.seconds, end - time.monotonic())
            result = driver.play_stage(stage, REAL, folder, limit, driver.processes_of(stage))
            driver.write(folder, result)
            print(line_of(result), flush=True)
            results.append(result)
    return results


def dry_run(stages: Sequence[Stage], folder: Path, seed: int | None) -> list[dict[str, Any]]:
    """Without a GPU: each stage compiled, then played, as many at a time as there are cores."""
    shutil.rmtree(folder / "cache", ignore_errors=True)  # each kernel is compiled, and not found on disk

    def half(job: tuple[Stage, str]) -> dict[str, Any]:
        stage, mode = job
        patient = stage._replace(patience=stage.patience * driver.DRY_PATIENCE)
        return _half(patient, mode, folder, stage.seconds * driver.DRY_PATIENCE, seed)

    jobs = [(stage, mode) for mode in (COMPILE, PLAY) for stage in stages]
    with ThreadPoolExecutor(driver.cores()) as pool:
        return list(pool.map(half, jobs))


def _half(stage: Stage, mode: str, folder: Path, seconds: float, seed: int | None = None) -> dict[str, Any]:
    result = driver.play_stage(stage, mode, folder, seconds, 1, seed)
    driver.write(folder, result)
    print(line_of(result), flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

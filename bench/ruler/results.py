"""What was measured on which processor: `bench/results/PROCESSOR.json`, kept in the repository.

A file has the last results of each measurement, with the date, the commit and the command. Whoever works on
another processor sees there what must not get worse. docs/internals/measurements.md is made of them.
"""

from __future__ import annotations

import json
import platform
from datetime import date
from pathlib import Path
from typing import Any

from lazygrad.runtime._measured import processor_name

from .trees import ROOT, commit_of

FOLDER = ROOT / "bench" / "results"


def processor() -> str:
    """LLVM's name of this processor, such as znver3."""
    return processor_name()


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, Any]:
    """The results of a processor; empty where there are none."""
    path = path_of(name)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(measurement: str, command: list[str], found: dict[str, Any]) -> None:
    """Keep results in the place of the last ones of this measurement on this processor."""
    name = processor()
    entry = {
        "date": date.today().isoformat(),
        "commit": commit_of("HEAD")[:8],
        "command": " ".join(["python -m bench", *command]),
        "python": platform.python_version(),
        **found,
    }
    FOLDER.mkdir(exist_ok=True)
    whole = {**read(name), measurement: entry}
    path_of(name).write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", encoding="utf-8")

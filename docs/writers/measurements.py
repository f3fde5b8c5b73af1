"""docs/internals/measurements.md: what was measured on which processor, from bench/results/."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent.parent / "bench" / "results"

BEGIN = """# Measurements

<!-- written by docs/generate.py measurements from bench/results/: do not edit -->

What was measured on which processor, by its name in LLVM. A figure holds for that processor alone. Who
changes choices sees here what must not get worse where they cannot measure; who works on one of these
processors runs the commands again, which replaces its part. `python -m bench guard --help` and `regret
--help` say how they measure.
"""


def page() -> str:
    """The whole page."""
    parts = [BEGIN]
    for path in sorted(RESULTS.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"\n## {path.stem}\n")
        for name, writer in SECTIONS.items():
            if name in found:
                parts.append("\n".join(writer(found[name])) + "\n")
    return "\n".join(parts)


def _head(title: str, entry: dict[str, Any]) -> Iterator[str]:
    yield f"### {title}\n"
    yield f"`{entry['command']}` of {entry['date']}, commit {entry['commit']}, Python {entry['python']}.\n"


def _guard(entry: dict[str, Any]) -> Iterator[str]:
    """The cases of each suite: how many, and the ratio beside the other commit."""
    yield from _head(f"Beside {entry['beside']}", entry)
    suites: dict[str, list[dict[str, Any]]] = {}
    for row in entry["rows"]:
        suites.setdefault(f"{row['name'].partition(':')[0]}, {row['threads']} threads", []).append(row)
    yield "| suite | figures | ratio, median | the worst | its spread |"
    yield "|---|---:|---:|---|---:|"
    for suite, rows in suites.items():
        ratios = sorted(row["ratio"] for row in rows)
        worst = max(rows, key=lambda row: row["ratio"] / max(row["spread"], 1.0))
        name = worst["name"].partition(": ")[2]
        yield (
            f"| {suite} | {len(rows)} | {ratios[len(ratios) // 2]:.2f} | {name}: {worst['ratio']:.2f} "
            f"| {worst['spread']:.2f} |"
        )


def _regret(entry: dict[str, Any]) -> Iterator[str]:
    """Each case: its time, and that of the default over the best of each kind."""
    yield from _head(f"Choices, beside {entry['beside']} too", entry)
    kinds = [kind for kind in ("search", "same bits", "placement", "commit", "target") if _has(entry, kind)]
    yield f"| case | ms | A/A | {' | '.join(kinds)} |"
    yield f"|---|---:|---:|{'---:|' * len(kinds)}"
    for row in sorted(entry["rows"], key=lambda row: row["name"]):
        cells = [f"{row['seconds'] / row['best'][k][1]:.2f}" if k in row["best"] else "–" for k in kinds]
        yield f"| {row['name']} | {row['seconds'] * 1e3:.3f} | {row['spread']:.2f} | {' | '.join(cells)} |"


def _has(entry: dict[str, Any], kind: str) -> bool:
    return any(kind in row["best"] for row in entry["rows"])


SECTIONS = {"regret": _regret, "guard": _guard}

"""What was found, as text: a line for each stage, each error, and lazygrad's time over that of each peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OURS = "lazygrad"
#: Errors of a stage that are shown; the file has all.
SHOWN = 8
#: Answers of two sides may differ so much, as a part of the largest number.
ALIKE = 2e-2


def line_of(result: dict[str, Any]) -> str:
    """`products   done   12 of 12 cases   31.2 s of 50   ...`."""
    cases = result["cases"]
    errors, missing = (sum(what in case for case in cases.values()) for what in ("error", "missing"))
    parts = [f"{len(cases) - errors - missing} of {len(cases) + len(result['left'])} cases"]
    parts += [f"{errors} failed"] * bool(errors)
    parts += [f"{missing} without what they need"] * bool(missing)
    parts += [f"{len(result['left'])} not reached"] * bool(result["left"])
    parts += [f"{result[what]} kernels {what}" for what in ("compiled", "played") if what in result]
    mode = "" if result["mode"] == "real" else f" {result['mode']}"
    return f"{result['stage'] + mode:18} {result['status']:6} {result['took']:6.1f} s  {', '.join(parts)}"


def summary(results: Sequence[dict[str, Any]]) -> str:
    """All of it: the lines, then what failed, then the ratios."""
    lines = [line_of(result) for result in results]
    for result in results:
        lines += _problems(result)
    table = [row for result in results if result["mode"] == "real" for row in ratios(result)]
    if table:
        lines += ["", f"{'case':44} {'ms':>9}  over peers (below 1: lazygrad is faster)", *table]
    counts = {what: sum(result.get(what, 0) for result in results) for what in ("compiled", "played")}
    if any(counts.values()):
        compiled, played = counts["compiled"], counts["played"]
        lines.append(f"in all {compiled:,} kernels compiled for sm_90, {played:,} played by the emulator")
    return "\n".join(lines)


def _problems(result: dict[str, Any]) -> list[str]:
    failed = [(name, case["error"]) for name, case in result["cases"].items() if "error" in case]
    lines = [
        f"  {result['stage']}: {name}: {error['type']}: {(error['text'].splitlines() or [''])[0][:200]}"
        for name, error in failed[:SHOWN]
    ]
    if len(failed) > SHOWN:
        lines.append(f"  {result['stage']}: {len(failed) - SHOWN} more are in its file")
    missing = {case["missing"]: name for name, case in result["cases"].items() if "missing" in case}
    lines += [
        f"  {result['stage']}: {name} is left out: {what.splitlines()[0]}" for what, name in missing.items()
    ]
    return lines


def ratios(result: dict[str, Any]) -> list[str]:
    """A row for each case that has our time: it, and how many times that of each peer it is."""
    rows = []
    for name, sides in timed(result).items():
        ours = sides.get(OURS)
        if ours is None:
            continue
        others = [
            f"{peer} {ours['seconds'] / other['seconds']:.2f}"
            for peer, other in sides.items()
            if peer != OURS
        ]
        more = [text for text in (ours.get("rate"), *_disagreements(sides)) if text]
        rows.append(f"{name:44} {ours['seconds'] * 1e3:9.3f}  {', '.join([*others, *more])}")
    return rows


def timed(result: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """case → side → what was measured of it. Sides of a network are cases of their own."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, case in result["cases"].items():
        sides = case.get("found", {}).get("sides", {})
        whole = name.partition(", ")[0] if case.get("found", {}).get("alone") else name
        if sides:
            found.setdefault(f"{result['stage']}: {whole}", {}).update(
                {side: values for side, values in sides.items() if "seconds" in values}
            )
    return found


def _disagreements(sides: dict[str, dict[str, Any]]) -> list[str]:
    """Where a peer's answer is another than ours."""
    ours, found = sides[OURS].get("answer"), []
    for peer, other in sides.items():
        theirs = other.get("answer")
        if peer == OURS or not ours or not theirs:
            continue
        largest = max(map(abs, theirs)) or 1.0
        apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / largest
        if not apart <= ALIKE:
            found.append(f"ANSWERS DIFFER from {peer} by {apart:.1e}")
    return found

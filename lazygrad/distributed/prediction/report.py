"""What is printed of a predicted step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...inspection.targets import Target
from .links import Links
from .steps import Step
from .timeline import Entry

#: The timeline is shown in so many lines, of which each is an equal part of the step.
LINES = 20
#: So many of the longest kernels and collectives are listed.
LONGEST = 8


def compared(steps: Sequence[Step]) -> Iterator[str]:
    """A line for each mesh, the fastest marked."""
    best = min(steps, key=lambda step: step.timeline.seconds)
    yield f"{'mesh':<28} {'step':>10} {'kernels':>10} {'sent':>10} {'hidden':>7} {'memory':>9}"
    for step in steps:
        line = step.timeline
        yield (
            f"{mesh_text(step):<28} {_ms(line.seconds)} {_ms(line.kernels)} {_ms(line.sent)} "
            f"{100 * line.hidden:>6.0f}% {_gb(step.resident + step.passing)}"
            f"{'  best' if step is best else ''}"
        )


def details(step: Step, target: Target, links: Links) -> Iterator[str]:
    """All that is known of a step."""
    line = step.timeline
    count = sum(entry.kind == "kernel" for entry in line.entries)
    sends = [entry for entry in line.entries if entry.kind not in ("kernel", "copy", "clear")]
    yield f"{mesh_text(step)} on {target.name}: {line.seconds * 1e3:.2f} ms a step"
    trillions = f"{step.ops / 1e12:.3f} T operations"
    yield f"  {count} kernels take {line.kernels * 1e3:.2f} ms for {trillions} on each device"
    hidden = f"{100 * line.hidden:.0f}% of it behind kernels"
    yield f"  {len(sends)} collectives take {line.sent * 1e3:.2f} ms, {hidden}"
    yield f"  memory {_gb(step.resident).strip()} that stays, {_gb(step.passing).strip()} in between"
    for level, nbytes in zip(links.levels, step.level_bytes, strict=True):
        yield f"  over {level.name} each device receives {_gb(nbytes).strip()}"
    yield "  longest:"
    totals: dict[tuple[str, str], list[float]] = {}
    for entry in line.entries:
        totals.setdefault((entry.kind, entry.name), []).append(entry.end - entry.begin)
    for (kind, name), times in sorted(totals.items(), key=lambda row: -sum(row[1]))[:LONGEST]:
        yield f"  {_ms(sum(times))} in {len(times):>4} x {name if kind == 'kernel' else f'{kind}: {name}'}"
    yield from _drawn(line.entries, line.seconds)


def _drawn(entries: Sequence[Entry], seconds: float) -> Iterator[str]:
    """The timeline: for each part of the step, how much of it kernels and collectives run."""
    yield "  timeline:                 kernels    sending"
    for number in range(LINES):
        begin, end = seconds * number / LINES, seconds * (number + 1) / LINES
        shares = [0.0, 0.0]
        for entry in entries:
            beside = entry.kind not in ("kernel", "copy", "clear")
            shares[beside] += max(0.0, min(end, entry.end) - max(begin, entry.begin))
        bars = [f"{'#' * round(8 * share / (end - begin or 1)):<8}" for share in shares]
        yield f"  {begin * 1e3:>9.2f} ms             {bars[0]}   {bars[1]}".rstrip()


def mesh_text(step: Step) -> str:
    """The sizes of a mesh."""
    return " x ".join(f"{name}={size}" for name, size in step.mesh.items()) or "the mesh of the script"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:>7.2f} ms"


def _gb(nbytes: float) -> str:
    return f"{nbytes / 1e9:>6.2f} GB" if nbytes >= 1e8 else f"{nbytes / 1e6:>6.2f} MB"

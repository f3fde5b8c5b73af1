"""A measured row as a table, beside what the data sheet of the processor says."""

from __future__ import annotations

from ..target import PROCESSORS, Processor, Target
from ..target.measured import GROUPS, Figure, Row, nearest

#: A figure that varied more is marked: the machine did other things, or the processor changed its clock.
NOISY = 0.1


def beside_the_data_sheet(row: Row, target: Target) -> str:
    """Lines of figures, in their units: measured, how far that varied, and the data sheet's where it has one.

    The data sheet counts in cycles: these are taken to be as long as the row's clock says.
    """
    known = PROCESSORS.get(nearest(row.processor, PROCESSORS))
    said = _data_sheet(known, target, row.value("clock", "core") or 1.0) if known else {}
    threads = f"{row.threads} thread{'s' if row.threads > 1 else ''}"
    lines = [
        f"{row.processor}, measured {row.date}, forks and barriers with {threads}",
        row.machine,
        f"{'':30} {'':6} {'measured':>10} {'varied':>8} {'data sheet':>11}",
    ]
    noisy = 0
    for name, group in GROUPS.items():
        lines += [f"{name.replace('_', ' ')}: {group.meaning}"] if name in row.figures else []
        for key, figure in row.figures.get(name, {}).items():
            noisy += figure.spread > NOISY
            sheet = said.get((name, key))
            lines.append(_line(key.replace("_", " "), group.unit, figure, sheet))
    if noisy:
        lines.append(
            f"* {noisy} figures varied by more than {NOISY:.0%}: best measured while nothing else runs here"
        )
    return "\n".join(lines)


def _line(key: str, unit: str, figure: Figure, sheet: float | None) -> str:
    mark = "*" if figure.spread > NOISY else ""
    said = "" if sheet is None else f"{sheet:.4g}"
    varied = f"{figure.spread:.0%}{mark:1}"
    return f"  {key:28} {unit:>6} {f'{figure.value:.4g}':>10} {varied:>8} {said:>11}".rstrip()


def _data_sheet(known: Processor, target: Target, clock: float) -> dict[tuple[str, str], float]:
    """What the row of PROCESSORS says of the same things, at so many cycles a nanosecond."""
    core, memory, width = known.core, known.memory, target.vector_bytes
    said = {
        ("read", "level1"): core.loads * width * clock,
        ("streams", "1"): memory.stream * clock,
        ("fma", str(width)): 2 * core.products * width // 4 * clock,
        ("fma_latency", str(width)): core.multiply_add / clock,
    }
    behind = [f"level{level}" for level in range(2, len(memory.sizes) + 1)] + ["memory"]
    for level, rate in zip(behind, memory.rates[: len(behind)], strict=False):
        said["read", level] = rate * clock
    return said

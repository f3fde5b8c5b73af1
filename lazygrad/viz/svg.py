"""The schedule of a recording as a picture: kernels as boxes, each below what it reads, with their costs."""

from __future__ import annotations

import html
from typing import Any

from ..report.terminal import time_text
from .schedule_text import largest_plan

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 230, 78, 24, 44, 20
#: So many kernels are drawn.
MOST = 400
_NAMES = "http://www.w3.org/2000/svg"
#: Of pictures with this class alone: a notebook's page has others.
_STYLE = """
.lazygrad { font: 12px system-ui, sans-serif; background: #fff; }
.lazygrad rect { fill: #eef3fb; stroke: #4a6fa5; } .lazygrad .copy { fill: #fdf3df; stroke: #a5814a; }
.lazygrad path { fill: none; stroke: #8899aa; }
.lazygrad text { fill: #1a1c1e; } .lazygrad .small { fill: #4a5058; font-size: 11px; }
"""


def schedule_svg(recording: dict[str, Any]) -> str:
    """The largest plan as an SVG document."""
    items = largest_plan(recording)[:MOST]
    writer: dict[int, int] = {}
    edges: list[tuple[int, int, int]] = []
    depth: list[int] = []
    for number, item in enumerate(items):
        below = 0
        for memory, nbytes in item["reads"]:
            if memory in writer:
                edges.append((writer[memory], number, nbytes))
                below = max(below, depth[writer[memory]] + 1)
        depth.append(below)
        writer.update({memory: number for memory, _ in item["writes"]})
    column: dict[int, int] = {}
    places = []
    for below in depth:
        x = MARGIN + column.get(below, 0) * (WIDTH + GAP_X)
        places.append((x, MARGIN + below * (HEIGHT + GAP_Y)))
        column[below] = column.get(below, 0) + 1
    wide = MARGIN * 2 + max(column.values(), default=1) * (WIDTH + GAP_X)
    high = MARGIN * 2 + (max(depth, default=0) + 1) * (HEIGHT + GAP_Y)
    parts = [
        f'<svg class="lazygrad" xmlns="{_NAMES}" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">',
        f"<title>{len(items)} kernels and copies</title><style>{_STYLE}</style>",
    ]
    for begin, end, nbytes in edges:
        (x1, y1), (x2, y2) = places[begin], places[end]
        x1, y1, x2, middle = x1 + WIDTH // 2, y1 + HEIGHT, x2 + WIDTH // 2, (y1 + HEIGHT + y2) // 2
        parts.append(f'<path d="M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}">')
        parts.append(f"<title>{nbytes:,} bytes</title></path>")
    for item, (x, y) in zip(items, places, strict=True):
        parts += _box(recording, item, x, y)
    return "\n".join([*parts, "</svg>", ""])


def _box(recording: dict[str, Any], item: dict[str, Any], x: int, y: int) -> list[str]:
    kernel = recording["kernels"][item["kernel"]]
    calls = [recording["calls"][n] for n in kernel["calls"] if n >= 0]
    reason = item["ends"][0][0] if item["ends"] else ""
    took = f"  {time_text(kernel['best']).strip()}" if kernel["best"] else ""
    written = sum(nbytes for _, nbytes in item["writes"])
    lines = [
        (f"{kernel['name']}  {kernel['shape']}", ""),
        (" ".join(f"{op}×{count}" if count > 1 else op for op, count in kernel["does"]), "small"),
        ("+".join(call[0] for call in reversed(calls[:4])) + took, "small"),
        (f"stores {written:,} bytes: {reason}", "small"),
    ]
    where = f"\n{calls[0][1]}: {calls[0][2]}" if calls and calls[0][1] else ""
    told = _escaped("\n".join(text for text, _ in lines) + where)
    found = [f"<g><title>{told}</title>"]
    found.append(f'<rect class="{kernel["kind"]}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
    for row, (text, kind) in enumerate(lines):
        shown = _escaped(text if len(text) <= 38 else f"{text[:37]}…")
        found.append(f'<text class="{kind}" x="{x + 8}" y="{y + 18 + row * 17}">{shown}</text>')
    return [*found, "</g>"]


def _escaped(text: str) -> str:
    """Text that no reader takes for markup, without characters that XML does not have."""
    plain = "".join(c if c in "\n\t" or ord(c) >= 32 else "�" for c in text)
    return html.escape(plain.encode("utf-8", "replace").decode("utf-8"))

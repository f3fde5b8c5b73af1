"""The printed forms: a node as nested `UOp(...)`, a linear program as a table, a kernel as loops.

`repr` of a node is `uop_text`. All styles are kept in one registry, `STYLES`; DEBUG_STYLE chooses one by
name, and other packages may register theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..config import DEBUG_STYLE
from .expression import arg_text, expression, number_text, render
from .linear import range_names, range_prefix
from .loops_text import loops_text
from .ops import Ops
from .uop import UOp, set_printer

__all__ = [
    "announce_style",
    "arg_text",
    "expression",
    "linear_text",
    "loops_text",
    "number_text",
    "range_names",
    "range_prefix",
    "register_style",
    "render",
    "short_text",
    "styled",
    "uop_text",
]

#: How deep a print goes unless asked for everything, and where its indentation stops growing.
MAX_DEPTH = 200

# *** a node, as nested UOp(...)


def uop_text(root: UOp, full: bool = False) -> str:
    """`UOp(op, dtype, arg=..., src=(...))`, a source per line; a node used twice is `xN:=` and then `xN`.

    N numbers the nodes below the root in the order of first visit. At depth 200 sources become `...`, unless
    `full`.
    """
    visits = _visits(root, full)
    uses: dict[UOp, int] = {}
    for node, _, _ in visits:
        uses[node] = uses.get(node, 0) + 1
    number: dict[UOp, int] = {}
    lines: list[str] = []
    line: list[str] = []
    previous = -1
    for node, depth, cut in visits:
        if depth <= previous:  # close what ended before this node
            line.append("," + "))," * (previous - depth))
        if depth:
            lines.append("".join(line))
            line.clear()
        previous = depth
        indent = "  " * min(depth, MAX_DEPTH)
        if node in number and node is not root:
            line.append(f"{indent} x{number[node]}")
            continue
        number[node] = len(number) - 1
        name = f"x{number[node]}:=" if uses[node] > 1 else ""
        line.append(f"{indent}{name}UOp({node.op}, {node.dtype!r}, arg={arg_text(node)}, src=(")
        if cut:
            line.append("...))")
        elif not node.src:
            line.append("))")
    if previous > 0:
        line.append("," + "))," * (previous - 1) + "))")
    lines.append("".join(line))
    return "\n".join(lines)


#: A graph with more nodes than so many is no text to read in between.
FEW_NODES = 40


def short_text(root: UOp) -> str:
    """`uop_text` of a graph of a few nodes; of another its first line, and how many nodes it has."""
    count = len(root.toposort())
    if count <= FEW_NODES:
        return uop_text(root)
    return f"UOp({root.op}, {root.dtype!r}, arg={arg_text(root)}, src=(... {count} nodes))"


def _visits(root: UOp, full: bool) -> list[tuple[UOp, int, bool]]:
    """(node, depth, whether its sources are left out) in the order of printing."""
    visits: list[tuple[UOp, int, bool]] = []
    visited: set[UOp] = set()
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        cut = not full and depth >= MAX_DEPTH and bool(node.src)
        visits.append((node, depth, cut))
        if node not in visited:
            visited.add(node)
            if not cut:
                stack.extend([(s, depth + 1) for s in reversed(node.src)])
    return visits


# *** a linear program, as a table


def linear_text(uops: Sequence[UOp]) -> str:
    """A row per step: number, op, dtype, the numbers of its inputs (constants by value, in quotes), arg."""
    place = {node: step for step, node in enumerate(uops)}
    rows = []
    for step, node in enumerate(uops):
        inputs = [
            arg_text(s) if s.op is Ops.CONST else place.get(s, f"{s.op}, not in the list") for s in node.src
        ]
        rows.append(f"{step:4d} {node.op!s:20s}: {node.dtype!r:30s} {inputs!s:32s} {arg_text(node)}".rstrip())
    return "\n".join(rows)


# *** styles

Printer = Callable[[Any], str]
#: What can be printed in several styles: a graph of nodes, a linear program, a kernel of form 3, 4 or 5.
GRAPH, LINEAR, LOOPS = "graph", "linear", "loops"
STYLES: dict[str, dict[str, Printer]] = {"": {GRAPH: uop_text, LINEAR: linear_text, LOOPS: loops_text}}
_ANNOUNCED: dict[str, Callable[[], object]] = {}


def register_style(name: str, printers: dict[str, Printer]) -> None:
    """Add a style that DEBUG_STYLE can name; what it does not print itself is printed in the usual style."""
    unknown = set(printers) - set(STYLES[""])
    if unknown:
        raise ValueError(f"a style prints {sorted(STYLES[''])}, not {sorted(unknown)}")
    STYLES[name] = printers


def announce_style(name: str, load: Callable[[], object]) -> None:
    """A style that `load` registers, when DEBUG_STYLE first names it."""
    _ANNOUNCED[name] = load


def styled(kind: str, value: Any) -> str:
    """The text of a graph, a linear program or loops in the style that DEBUG_STYLE names."""
    name = DEBUG_STYLE.value
    if name not in STYLES and name in _ANNOUNCED:
        _ANNOUNCED[name]()
    if name not in STYLES:
        known = ", ".join(repr(style) for style in {**STYLES, **_ANNOUNCED})
        raise ValueError(f"DEBUG_STYLE={name!r} is not a style; known: {known}")
    return STYLES[name].get(kind, STYLES[""][kind])(value)


set_printer(uop_text)

"""Which lines of a kernel's text belong to which of its loops.

The renderer tells of each node of the linear program which lines it has added (`renderer/texts.py`). They are
found again in the text in the same order, so nothing is known here of any language.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen.cost.predict import iterations_of
from ..ir.expression import render
from ..ir.ops import Ops
from ..ir.rewrite import observe
from ..ir.uop import UOp
from ..renderer import ProgramSpec, Renderer
from ..renderer.texts import loop_names


@dataclass
class TextLoop:
    """A loop of a text, or an axis of the launch.

    extent       from where to where it runs       turns   how often at most
    first, last  its lines, counted from 0         around  the loop that it stands in, by number; -1: in none
    number       of the axis that it walks, as the loops under each Opt have it; "" for an axis of the launch
    """

    name: str
    extent: str
    kind: str
    number: str
    around: int
    iterations: int
    first: int
    last: int

    @property
    def is_launch(self) -> bool:
        """Whether all threads run at once what another target runs in turns."""
        return self.kind == "LAUNCH"


def loops_of_text(spec: ProgramSpec, renderer: Renderer) -> list[TextLoop]:
    """The loops of a program's text, outer ones first; none where the text has not been made by rows."""
    labelled: list[tuple[UOp, str]] = []

    def note(by: str, place: str, node: UOp, text: object) -> None:
        if by == "render" and isinstance(text, str):
            labelled.append((node, text))

    with observe(note):
        source = renderer.render(spec.name, spec.uops)
    return (
        _loops(labelled, source.splitlines(), loop_names([node for node, _ in labelled])) if labelled else []
    )


def _loops(told: Sequence[tuple[UOp, str]], lines: Sequence[str], names: dict[UOp, str]) -> list[TextLoop]:
    lines_of: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        lines_of.setdefault(line, []).append(number)
    found: list[TextLoop] = []
    open_loops: list[int] = []
    launch: list[int] = []
    at = 0
    for node, text in told:
        begin = -1
        for line in text.splitlines():
            where = lines_of.get(line, ()) if line.strip() else ()
            next_one = bisect_left(where, at)
            if next_one == len(where):
                continue
            at = where[next_one] + 1
            begin = where[next_one] if begin < 0 else begin
            for number in (*launch, *open_loops):
                found[number].last = at - 1
        if node.op in (Ops.RANGE, Ops.SPECIAL):
            around = (*launch, *open_loops)[-1] if launch or open_loops else -1
            if node.op is Ops.SPECIAL:
                name, size = node.arg[0], node.arg[1]
                extent = f"0..{render(size) if isinstance(size, UOp) else size}"
                turns = size if isinstance(size, int) else 1
                found.append(TextLoop(name, extent, "LAUNCH", "", around, turns, begin, at - 1))
                launch.append(len(found) - 1)
            else:
                extent = f"{render(node.src[0])}..{render(node.src[1])}"
                kind, axis = node.arg.kind.name, str(node.arg.id)
                found.append(
                    TextLoop(names[node], extent, kind, axis, around, iterations_of(node), begin, at - 1)
                )
                open_loops.append(len(found) - 1)
        elif node.op is Ops.ENDRANGE and open_loops:
            open_loops.pop()
    return found

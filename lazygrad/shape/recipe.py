"""How a graph is made of others: recorded once, then made again on other inputs, node by node.

What Python computes of shapes and dtypes on the way to a graph is the same whenever they are. A recipe keeps
what came of it: the list of nodes, each with the places of its sources. The nodes that it makes are those
that the same calls would make, since equal nodes are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import Row, UOp, make_all, toposort
from ..ir.walks import device_of
from ..memo import Memo
from .movement import forward_to
from .rules import shape_or_none

#: What stands for one thing of its own, or keeps tensors: only given as an input.
ONE_OF_A_KIND = frozenset(
    (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.UNIQUE, Ops.MULTI, Ops.KERNEL, Ops.BIND, Ops.DEFINE_VAR)
)
#: Graphs of more nodes are made by the calls, as ever.
MOST_ROWS = 4096
#: What is made again is recorded when it is met so often.
MEETINGS = 3
#: What something follows from (a method and its signature, a graph that is differentiated, an optimizer's
#: step) → what makes it by a recipe; None where there is none. What each begins with tells them apart.
learned: Memo[Any, Any] = Memo(2048, MEETINGS)


class Recipe:
    """Nodes by number: first the inputs, then constants (which are kept), then a row for each that is made.

    checks  the numbers of the CHECKs, which are to be told whose call makes them
    requests  how often nodes were asked for that had been put off (`schedule/calls.py`), since they were not
    """

    __slots__ = ("_functions", "checks", "constants", "requests", "results", "rows")

    def __init__(self, constants: list[UOp], rows: list[Row], results: list[int], checks: list[int]) -> None:
        self.constants, self.rows, self.results, self.checks = constants, rows, results, checks
        self.requests = 0
        #: the numbers of the FUNCTIONs, from the end: their values are those of their first sources
        self._functions = [n - len(rows) for n, row in enumerate(rows) if row[0] is Ops.FUNCTION]

    def values(self, first: int) -> list[int]:
        """The numbers of what is computed for the results, where the rows begin at a number."""
        found = []
        for place in self.results:
            while place >= first and self.rows[place - first][0] is Ops.FUNCTION:
                place = self.rows[place - first][3][0]
            found.append(place)
        return found

    @classmethod
    def of(cls, results: Sequence[UOp], inputs: Sequence[UOp]) -> Recipe | None:
        """How the results are made of the inputs; None where they are made of other memory too, or have
        symbolic sizes.

        inputs  nodes that no call makes: that one of them is met says that it was meant
        """
        given = set(inputs)
        order = [
            n for n in toposort(results, lambda node: () if node in given else node.src) if n not in given
        ]
        if len(order) > MOST_ROWS:
            return None
        constant: set[UOp] = set()
        for node in order:
            if node.op in ONE_OF_A_KIND or (node.op is Ops.DETACH and node.arg is not None):
                return None
            if node.op is Ops.FUNCTION and not node.arg.is_plain:
                return None
            if node.op is Ops.PROGRAM and node.arg.kernel.is_unique:
                return None
            of_numbers = node.op in MOVEMENT and node.src[0] in constant
            if of_numbers or node.op in (Ops.CONST, Ops.DEVICE):
                constant.add(node)
        constants = [node for node in order if node in constant]
        before = [*inputs, *constants]
        place = {node: number for number, node in enumerate(before)}
        rows: list[Row] = []
        checks: list[int] = []
        for node in order:
            if node in constant:
                continue
            shape = shape_or_none(node)
            if shape is None or not all(type(size) is int for size in shape):
                return None
            if node.op is Ops.CHECK:
                checks.append(len(before) + len(rows))
            sources = tuple([place[source] for source in node.src])
            place[node] = len(before) + len(rows)
            rows.append((node.op, node.dtype, node.arg, sources, shape, device_of(node)))
        return cls(constants, rows, [place[node] for node in results], checks)

    def on(self, inputs: Sequence[UOp]) -> list[UOp]:
        """All nodes by number, on other inputs of the same shapes, dtypes and devices."""
        made = [*inputs, *self.constants]
        make_all(self.rows, made)
        for place in self._functions:
            node = made[place]
            if "forwarded_to" not in node.facts:
                forward_to(node, node.src[0])
        return made

    def makes(self, inputs: Sequence[UOp]) -> list[UOp]:
        """The results on these inputs."""
        made = self.on(inputs)
        return [made[place] for place in self.results]

"""What a plan would be without one of its boundaries: planned anew, for who asks what a boundary is for.

Where the rules of placement decided, the value is computed in the kernels that use it. Where the program
decided, what it asked for is taken out of the graph: `contiguous()`, or the value as a result. What remains
are boundaries that no plan can do without, and why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.ops import TRANSFERS, Ops
from ..ir.spec import KERNEL, verify
from ..ir.uop import UOp
from ..ir.walks import of_op
from ..shape.movement import below_movement
from .graph.requested import Request
from .graph.versions import effective
from .kernels.template import Template
from .kernels.writes import Writes
from .place.placement import Placed
from .plan import PLAN, Job, job_for, run
from .rewrite.plain import PlainGraph

#: So many values are not stored for the sake of one; then rules store what is left.
MOST_INLINE = 16
#: Why a boundary stays, whatever is computed where: the reason begins so → what it says of fusing.
_STAYS = {
    "it is assigned": "what is assigned must end in its memory",
    "its target is read elsewhere": "the memory is read before it may be overwritten",
    "the old contents are read": "the memory is read after it was overwritten",
    "copy is asked for": "a copy between memories is no kernel",
    "copy reads it from memory": "a copy takes what is in memory",
    "gather reads it from memory": "which elements are read is known only when it runs, so all must be there",
    "the kernel would pass": "the device has no room for more in one kernel",
    "an index is checked before": "a kernel that finds a bad index must not have overwritten anything",
    "its kernel overwrites memory": "it would read what its kernel has overwritten",
    "it is a statistic": "a kernel in one pass stores it beside its result, and others read it",
    "it is an operand": "a kernel in one pass reads each of its operands many times",
    "this scan": "a scan needs the elements in their order, one after another",
    "its kernel has a scan": "a scan runs in the innermost loop of its kernel",
    "FUSE=0": "with FUSE=0 every value is stored",
}  # fmt: skip
_ALONE = re.compile(r"(sort|custom|loop|routine|scatter|buffer_view|assign)\b.*(asked for|from memory)")


@dataclass(frozen=True)
class Without:
    """A plan without a boundary.

    wanted    what would have to be otherwise
    refused   why it cannot be, or why the value is stored all the same; "" where there is a plan
    template  the plan without it
    """

    wanted: str
    refused: str = ""
    template: Template | None = None


class Planned:
    """A plan whose boundaries know their values."""

    def __init__(self, asked: Request, fuse: bool, budget: int = 0) -> None:
        self.request = asked
        self.job = job_for(asked, fuse, budget)
        forms = _forms(asked, self.job)
        self.graph: PlainGraph = next(form for form in forms if isinstance(form, PlainGraph))
        self.placed: Placed = next(form for form in forms if isinstance(form, Placed))
        self.template: Template = forms[-1]
        writes: Writes = next(form for form in forms if isinstance(form, Writes))
        stores = [store for targets in writes.targets.values() for store in targets]
        targets = {id(store.made.boundary): store.node for store in stores}
        #: for each kernel the values that it stores; passes after the one that builds them keep boundaries
        self.values: list[list[UOp]] = [
            [targets[id(boundary)] for boundary in kernel.boundaries if id(boundary) in targets]
            for kernel in self.template.kernels
        ]

    def stays(self, kernel: int, output: int) -> str:
        """Why a boundary is there in every plan, which is known without another one; "" if it need not be."""
        boundary = self.template.kernels[kernel].boundaries[output]
        if output >= len(self.values[kernel]):
            return "the kernel runs again, to need less memory"
        if not boundary.readers:
            return "no other kernel of this plan reads it"
        said = next((words for begin, words in _STAYS.items() if boundary.reason.startswith(begin)), "")
        if not said and _ALONE.match(boundary.reason):
            said = "it is a program of its own, or reads its operands whole"
        return said

    def without(self, kernel: int, output: int) -> Without:
        """The plan if an output of a kernel were not stored for those that read it."""
        said = self.stays(kernel, output)
        if said:
            return Without("", said)
        boundary = self.template.kernels[kernel].boundaries[output]
        node = self.values[kernel][output]
        if boundary.reason == "it is a result":
            return self._unasked(node)
        if boundary.reason == "contiguous is asked for":
            return self._not_contiguous(node)
        wanted = "if each kernel that reads it computed it itself"
        if boundary.readers == 1:
            wanted = "if the kernel that reads it computed it itself"
        try:
            return Without(wanted, "", self._fused(node))
        except (NotImplementedError, RuntimeError, ValueError) as error:
            return Without(wanted, f"there is no such kernel: {error}")

    def _fused(self, node: UOp) -> Template:
        """The plan in which a value is computed where it is used, and so is what rules would store instead of
        it: what is made of it and was not stored before.
        """
        inline = {node}
        while True:
            forms = _forms(self.graph, self.job._replace(inline=frozenset(inline)), 1)
            placed: Placed = next(form for form in forms if isinstance(form, Placed))
            instead = {
                stored
                for stored in placed.reasons
                if stored not in self.placed.reasons and stored not in inline and node in stored.toposort()
            }
            if not instead or len(inline) >= MOST_INLINE:
                template: Template = forms[-1]
                for kernel in template.kernels:
                    if kernel.ast.op not in TRANSFERS:
                        verify(kernel.ast, KERNEL, "what if")
                return template
            inline |= instead

    def _unasked(self, node: UOp) -> Without:
        """Nobody asks for this result."""
        wanted = (
            "if it were no result: nothing realizes it, and no name holds it when the others are asked for"
        )
        left = [root for root in self.request.roots if self._value(root) is not node]
        if not left or len(left) == len(self.request.roots):
            return Without("", "it is what the plan is for")
        return self._anew(wanted, left, node)

    def _not_contiguous(self, node: UOp) -> Without:
        """Nobody asks for this value to lie in memory of its own."""
        asking = [n for n in of_op(self.request.order, Ops.CONTIGUOUS) if self._value(n) is node]
        if not asking:
            return Without("", "what reads it takes memory that is in order")
        made: dict[UOp, UOp] = {}
        for each in self.request.order:
            src = tuple([made.get(effective(s), s) for s in each.src])
            made[each] = (
                src[0]
                if each in asking
                else each
                if src == each.src
                else UOp(each.op, each.dtype, src, each.arg)
            )
        roots = [made[effective(root)] for root in self.request.roots]
        return self._anew("without contiguous() here", [below_movement(r) for r in roots], node)

    def _anew(self, wanted: str, roots: Sequence[UOp], node: UOp) -> Without:
        asked = Request.of(list(dict.fromkeys(roots)))
        template: Template = _forms(asked, self.job)[-1]
        if asts(template) == asts(self.template):
            return Without(wanted, "it would be stored all the same", template)
        return Without(wanted, "", template)

    def _value(self, node: UOp) -> UOp:
        return below_movement(self.graph.value[effective(node)])


def asts(template: Template) -> list[UOp]:
    """The kernels of a plan in an order that says nothing of when they run."""
    return sorted([kernel.ast for kernel in template.kernels], key=id)


def _forms(form: Any, job: Job, begin: int = 0) -> list[Any]:
    """What each pass of PLAN makes, from one on."""
    made = [form]
    for step in PLAN[begin:]:
        made.append(run([step], made[-1], job))
    return made

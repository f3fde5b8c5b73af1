"""Whether a plan with checkpoints needs less memory than that of the same graph in which nothing is computed
again. If it does not, the latter is taken: a checkpoint never raises the peak.

Nodes of a second computation say what they stand for (`facts["checkpointed"]`): the value that a checkpoint
begins with, or the gradient that it waits for. With these in their places the second computation is the
first one, node by node.
"""

from __future__ import annotations

from dataclasses import replace

from ...config import DEBUG
from ...ir.uop import UOp, keep_origin
from ...target import Target
from ..graph.requested import Request
from ..graph.versions import effective
from ..kernels.template import Template
from .again import operations
from .budget_report import megabytes
from .runs import Runs


def without_checkpoints(asked: Request) -> Request | None:
    """The graph without second computations; None where there are none, or where what is asked for is a value
    of the rest too.
    """
    made: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    for node in asked.order:
        if "checkpointed" in node.facts:
            first = effective(node.facts["checkpointed"])
            made[node] = made.get(first, first)
            continue
        sources = [effective(source) for source in node.src]
        if any(source in made for source in sources):
            src = tuple(made.get(e, source) for e, source in zip(sources, node.src, strict=True))
            new = UOp(node.op, node.dtype, src, node.arg)
            made[node] = effective(new)
            back[new] = node
            keep_origin(new, node)
    if not made:
        return None
    roots = [made.get(root, root) for root in asked.roots]
    changed = {made[root] for root in asked.roots if root in made}
    if len(set(roots)) < len(roots) or not changed.isdisjoint(asked.order):
        return None
    return replace(Request.of(roots), waiting=asked.waiting, stands_for=back)


def needs_less(template: Template, plain: Template) -> bool:
    """Whether checkpoints lessen the memory that a plan needs; said with DEBUG."""
    before, after = (Runs(t, (), Target("")).most_needed() for t in (plain, template))
    if DEBUG >= 1:
        without, total = _operations(plain), _operations(template)
        text = f"CHECKPOINT: peak {megabytes(before)} -> {megabytes(after)} MB; "
        if after < before:
            percent = 100 * (total - without) / max(without, 1)
            text += (
                f"{len(template.kernels) - len(plain.kernels)} kernels and {percent:.0f} % operations more"
            )
        else:
            text += "nothing is computed again, since that saves no memory"
        print(text)
    return after < before


def _operations(template: Template) -> int:
    """The operations of kernels whose sizes are known."""
    return sum([operations(kernel.ast) or 0 for kernel in template.kernels])

"""What `checkpoint` did to a plan, beside the plan of the same graph in which nothing is computed again.

Nodes of a second computation say what they stand for (`facts["checkpointed"]`): the value that a checkpoint
begins with, or the gradient that it waits for. With these in their places the second computation is the
first one, node by node.
"""

from __future__ import annotations

from ..ir.uop import UOp
from ..target import Target
from .again import operations
from .graph import Asked
from .runs import Runs
from .spared import megabytes
from .template import Template
from .versions import effective


def without_checkpoints(asked: Asked) -> Asked | None:
    """The graph without second computations; None where there are none."""
    made: dict[UOp, UOp] = {}
    for node in asked.order:
        if "checkpointed" in node.facts:
            first = effective(node.facts["checkpointed"])
            made[node] = made.get(first, first)
            continue
        sources = [effective(source) for source in node.src]
        if any(source in made for source in sources):
            new = tuple(made.get(e, source) for e, source in zip(sources, node.src, strict=True))
            made[node] = effective(UOp(node.op, node.dtype, new, node.arg))
    if not made:
        return None
    return Asked.of(list(dict.fromkeys(made.get(root, root) for root in asked.roots)))


def tell_checkpoints(plain: Template, template: Template) -> None:
    """Print what checkpoints did to a plan, beside the one without them."""
    before, after = (Runs(t, (), Target("")).most_needed() for t in (plain, template))
    without, total = _work(plain), _work(template)
    print(
        f"CHECKPOINT: peak {megabytes(before)} -> {megabytes(after)} MB; "
        f"{len(template.kernels) - len(plain.kernels)} kernels and "
        f"{100 * (total - without) / max(without, 1):.0f} % operations more"
    )


def _work(template: Template) -> int:
    """The operations of kernels whose sizes are known."""
    return sum([operations(kernel.ast) or 0 for kernel in template.kernels])

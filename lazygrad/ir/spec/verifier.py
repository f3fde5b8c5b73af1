"""Whether a form allows a graph or a linear program: each node by its check, then all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dtype import DType
from ..linear import CLOSES
from ..ops import ALU, Ops
from ..text import linear_text, uop_text
from ..uop import UOp, toposort
from .checks import Spec

#: Whether a target has an operation on a type.
Supports = Callable[[Ops, DType], bool]


class SpecError(RuntimeError):
    """A pass made something that its form does not allow."""


def verify(
    what: UOp | Sequence[UOp], spec: Spec, pass_name: str = "", supports: Supports | None = None
) -> None:
    """Raise SpecError, naming the node and the pass, unless the graph (or the linear program) is legal.

    `supports` says which operations the target has, from form 6 on.
    """
    nodes = toposort((what,)) if isinstance(what, UOp) else what
    made = f"after {pass_name}" if pass_name else "here"
    checks = spec.checks
    for node in nodes:
        check = checks.get(node.op)
        wrong = "it has no place in this form" if check is None else check(node)
        if (
            wrong is None
            and supports is not None
            and node.op in ALU
            and not supports(node.op, node.src[-1].dtype)
        ):
            wrong = f"the target has no {node.op.name} of {node.src[-1].dtype}"
        if wrong is not None:
            raise SpecError(f"{made} ({spec.name}): {node.op}: {wrong}\n{_excerpt(uop_text(node))}")
    if isinstance(what, UOp):
        _verify_ranges(nodes, spec, made)
    else:
        _verify_order(what, made)


def _excerpt(text: str, lines: int = 40) -> str:
    found = text.splitlines()
    return "\n".join(found if len(found) <= lines else [*found[:lines], "..."])


def _verify_ranges(nodes: Sequence[UOp], spec: Spec, made: str) -> None:
    """No two RANGEs of a kernel have the same number."""
    visited: dict[int, UOp] = {}
    for node in nodes:
        if node.op is Ops.RANGE and visited.setdefault(node.arg.id, node) is not node:
            raise SpecError(
                f"{made} ({spec.name}): two RANGEs have the number {node.arg.id}\n"
                f"{visited[node.arg.id]}\n{node}"
            )


def _verify_order(program: Sequence[UOp], made: str) -> None:
    """Every step uses what is computed before it and still open, and what opens closes, innermost first."""
    open_steps: list[UOp] = []
    visible: list[list[UOp]] = [[]]
    known: set[UOp] = set()

    def fail(step: int, wrong: str) -> SpecError:
        row = linear_text(program).splitlines()[step]
        return SpecError(f"{made} (linear program): {program[step].op}: {wrong}\n{row.strip()}")

    for step, node in enumerate(program):
        if node in known and node.op is not Ops.WAIT:  # one may wait several times
            raise fail(step, "it is in the list twice")
        for source in node.src:
            if source not in known and not (node.op is Ops.DEFINE_ACC and source.op is Ops.RANGE):
                raise fail(
                    step, f"it uses {source.op} {source.arg}, which is not computed yet or no more in scope"
                )
        if node.op is Ops.BREAK:
            loops = [step for step in open_steps if step.op is Ops.RANGE]
            if loops[-1] is not node.src[0]:
                raise fail(step, "what it leaves is not the innermost loop")
        if node.op in CLOSES:
            if not open_steps or open_steps[-1] is not node.src[0]:
                raise fail(step, "what it closes is not the innermost that is open")
            open_steps.pop()
            known.difference_update(visible.pop())
            continue
        visible[-1].append(node)
        known.add(node)
        if node.op in CLOSES.values():
            open_steps.append(node)
            visible.append([])
    if open_steps:
        raise fail(
            len(program) - 1, f"the program ends before {open_steps[-1].op} {open_steps[-1].arg} is closed"
        )

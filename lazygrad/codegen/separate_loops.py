"""REDUCEs that share a loop stand in the same loops (forms 5 and 6).

`lower` lets reductions of one size share their ranges where they stand in the same place. Copies made by
`vectorize` and folds made by `legalize` may take one of them out of a loop that the others stay in; it then
needs loops of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import index
from ..ir.args import RangeArg
from ..ir.nest import ranges_of
from ..ir.ops import Ops
from ..ir.uop import UOp
from .opt.loops import substitute_ranges


def separate_loops(sink: UOp) -> UOp:
    """REDUCEs share a loop only where they stand in the same loops; the others get loops of their own.

    A loop that moved takes along what was inside it, which then may need loops of its own: hence again.
    """
    while True:
        changed = _separate_once(sink)
        if changed is sink:
            return sink
        sink = changed


def any_apart(nodes: Iterable[UOp]) -> bool:
    """Whether REDUCEs that stand in different loops share one."""
    around_of: dict[UOp, frozenset[UOp]] = {}
    for node in nodes:
        if node.op is Ops.REDUCE:
            around = ranges_of(node)
            if any(around_of.setdefault(r, around) != around for r in node.src[1:]):
                return True
    return False


def _separate_once(sink: UOp) -> UOp:
    nodes = sink.toposort()
    if not any_apart(nodes):
        return sink
    fresh = 1 + max((node.arg.id for node in nodes if node.op is Ops.RANGE), default=0)
    around_of: dict[UOp, frozenset[UOp]] = {}
    own: dict[tuple[UOp, frozenset[UOp]], UOp] = {}
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[s] for s in node.src])
        made = node if src == node.src else index.rebuild(node, src)
        if node.op is Ops.REDUCE:
            around = ranges_of(made)
            mapping: dict[UOp, UOp] = {}
            for r in made.src[1:]:
                if around_of.setdefault(r, around) == around:
                    continue
                if (r, around) not in own:
                    own[r, around] = r.replace(arg=RangeArg(fresh, r.arg.kind))
                    fresh += 1
                mapping[r] = own[r, around]
            if mapping:
                made = substitute_ranges(made, mapping)
        done[node] = made
    return done[sink]

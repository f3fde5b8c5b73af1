"""REDUCEs that share a loop stand in the same loops, and no two STAGEs share memory (forms 5 and 6).

`lower` lets reductions of one size share their ranges where they stand in the same place. Copies made by
`vectorize` and folds made by `legalize` may take one of them out of a loop that the others stay in; it then
needs loops of its own. Where a STAGE was copied with the loop that reads it, each copy gets memory and loops
of its own: one may be filled before the other is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import index
from ...ir.args import RangeArg
from ...ir.nest import closed_ranges, free_numbers, ranges_of, stage_stores
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ..expressions.ranges import substitute_ranges


def separate_loops(sink: UOp) -> UOp:
    """REDUCEs share a loop only where they stand in the same loops; the others, and STAGEs, get their own.

    A loop that moved takes along what was inside it, which then may need loops of its own: hence again.
    """
    while True:
        changed = _separate_once(sink)
        if changed is sink:
            return sink
        sink = changed


def any_shared(nodes: Iterable[UOp]) -> bool:
    """Whether REDUCEs that stand in different loops share one, or STAGEs their memory."""
    around_of: dict[UOp, frozenset[UOp]] = {}
    memory: set[UOp] = set()
    for node in nodes:
        if node.op is Ops.STAGE:
            if node.src[0] in memory:
                return True
            memory.add(node.src[0])
        elif node.op is Ops.REDUCE:
            around = ranges_of(node)
            if any(around_of.setdefault(r, around) != around for r in node.src[1:]):
                return True
    return False


def _separate_once(sink: UOp) -> UOp:
    nodes = sink.toposort()
    if not any_shared(nodes):
        return sink
    fresh, memory = free_numbers(nodes)
    filled: set[UOp] = set()
    around_of: dict[UOp, frozenset[UOp]] = {}
    own: dict[tuple[UOp, frozenset[UOp]], UOp] = {}

    def separated(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal memory, fresh
        if node.op is Ops.STAGE:
            again = node.src[0] in filled
            filled.add(node.src[0])
            if again:
                made = _filled_separately(node.replace(src=src), memory, fresh)
                memory, fresh = memory + 1, fresh + len(made.src)
                return made
        elif node.op is Ops.REDUCE:
            made = node.replace(src=src)
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
                return substitute_ranges(made, mapping)
        return None

    return transform(sink, separated, "separate loops", rebuild=index.rebuild, order=nodes)


def _filled_separately(stage: UOp, memory: int, fresh: int) -> UOp:
    """The STAGE with another memory, and loops numbered from `fresh` on."""
    mapping: dict[UOp, UOp] = {
        r: r.replace(arg=RangeArg(fresh + k, r.arg.kind)) for k, r in enumerate(closed_ranges(stage))
    }
    moved = substitute_ranges(stage, mapping) if mapping else stage
    own = moved.src[0].replace(arg=memory)
    # what is stored may be added to what stood there before: it reads the other memory too
    done = index.substitute(stage_stores(moved), {moved.src[0]: own})
    stores = [done[store] for store in stage_stores(moved)]
    return moved.replace(src=(own, *stores, *closed_ranges(moved)))

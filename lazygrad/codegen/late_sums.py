"""Which sums of sums are added up half a block later than the others (between nest and list).

Where a tile of sums fills the registers, the totals of their blocks are in memory. If all sums ended their
blocks in one turn, all would begin anew at once, and little could be multiplied and added until their totals
are stored. So half of them end their blocks in the middle of those of the others. A block has two loops then:

    for i in 0..16:                                    acc1 = 0
      acc0 = acc1 = 0                                  for i in 0..16:
      for h in 0..2:  for k in 0..16:                    acc0 = 0
        acc0 += f(i, h, k)                  becomes      for h in 0..2:
        acc1 += g(i, h, k)                                 for k in 0..16:  acc0 += ...; acc1 += ...
      total0 += acc0                                       if h == 0:  total1 += acc1; acc1 = 0
      total1 += acc1                                     total0 += acc0
                                                       total1 += acc1

The same holds for blocks of blocks. Measured with matmuls of 512 on a Zen 3, in blocks of 32 turns: they take
3 % longer than undivided, and 7 to 15 % without this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..ir.index import bounds
from ..ir.nest import Block
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..target import Target
from .nest_sums import fill_registers, is_float_sum

#: Levels of one sum, the innermost first: each is the sum of the one before.
Chain = tuple[UOp, ...]


def late_sums(body: Block, nodes: Sequence[UOp], target: Target) -> list[Chain]:
    """The sums that end their blocks late: half of those of a loop whose sums fill the registers."""
    outer = _sums_of_sums(nodes)
    if not outer:
        return []
    found = []
    for block in body.walk():
        first = [reduce for reduce in block.closes if reduce in outer and reduce.src[0] not in outer]
        chains = [_chain(reduce, outer) for reduce in first]
        if chains and fill_registers(chains[0][0].src[0], len(block.closes), target):
            found += [chain for chain in chains[len(chains) // 2 :] if _has_middles(chain)]
    return found


def _sums_of_sums(nodes: Sequence[UOp]) -> dict[UOp, UOp]:
    """The sum that adds up the results of another, and is all that uses them."""
    sums = [node for node in nodes if node.op is Ops.REDUCE and is_float_sum(node)]
    asked = set(sums)
    uses = Counter(source for node in nodes for source in node.src if source in asked)
    return {
        node.src[0]: node
        for node in sums
        if node.src[0].op is Ops.REDUCE and node.src[0] in asked and uses[node.src[0]] == 1
    }


def _chain(reduce: UOp, outer: dict[UOp, UOp]) -> Chain:
    levels = [reduce]
    while levels[-1] in outer:
        levels.append(outer[levels[-1]])
    return tuple(levels)


def _has_middles(chain: Chain) -> bool:
    """Whether each level has turns before and after its middle, which is outside of the innermost loop."""
    return len(chain[0].src) > 2 and all(bounds(level.src[1].src[0])[1] > 1 for level in chain)

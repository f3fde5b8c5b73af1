"""Factors that the threads of a warp load together from the copies of its workgroup (form 4, a part of
`by_warp_groups`).

    acc += wmma(pack(temp0[40*g + 2*t], ...), ..., pack(temp1[...]), ..., 2*u + v)    words of each thread
becomes
    acc += wmma(pack(temp0[40*r], ...), pack(temp1[...]), 2*u + v)    where a thread's row of 16 bytes begins

PTX's `ldmatrix` loads up to four matrices of 8 rows of 16 bytes: thread 8m + r says where row r of matrix m
begins, and each thread gets the words that `mma` wants of it. The matrices are those of the halves of the
steps and of the rows 8 apart. Rows go along the steps or, of 2 bytes, across them: such are turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import is_shared, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer.alignment import multiple_of
from ...target import TensorCore
from ..expressions.ranges import stride
from .words import first_word

#: Threads of a warp along rows and along steps; rows of a matrix; bytes of one.
ALONG_ROWS, ALONG_STEPS, ROWS, BYTES = 8, 4, 8, 16


def loaded_together(product: UOp) -> UOp | None:
    """The WMMA whose factors are loaded by `ldmatrix`; None where they do not lie in such rows."""
    core, (*words, number) = product.arg, product.src
    if not core.loads or core.columns:
        return None
    rows = 2 * core.halves
    found = [_row(part, own, core) for part, own in ((words[:rows], 2), (words[rows:], 1))]
    if found[0] is None or found[1] is None:
        return None
    made = replace(core, columns=8, turned=(found[0][1], found[1][1]))
    return UOp(Ops.WMMA, product.dtype, (found[0][0], found[1][0], number), made)


def _row(words: Sequence[UOp], own: int, core: TensorCore) -> tuple[UOp, bool] | None:
    """The first word of a thread's row, and whether rows go across the steps."""
    loads = [[*word.src] for word in words]
    if any(load.op is not Ops.LOAD or len(load.src[0].src) > 2 for parts in loads for load in parts):
        return None
    access = loads[0][0].src[0]
    threads = {int(r.src[0].arg): r for r in ranges_of(access.src[1]) if r.arg.kind is AxisType.WARP}
    if not is_shared(access.src[0]) or threads.keys() != {ALONG_ROWS, ALONG_STEPS}:
        return None
    g, t = threads[ALONG_ROWS], threads[ALONG_STEPS]
    place = access.src[1]
    base = index.substitute((place,), {g: index.const(0), t: index.const(0)})[place]
    along_g, along_t = stride(place, g) or 0, stride(place, t) or 0
    if base + g * along_g + t * along_t is not place:
        return None

    def distance(word: int, part: int) -> int | None:
        """How far a number of a word is from the first."""
        if word >= len(loads) or part >= core.packed:
            return 0
        gap = index.sub(loads[word][part].src[0].src[1], place)
        return int(gap.arg) if gap.op is Ops.CONST else None

    steps = along_t // core.packed  # from one step to the next
    neighbours, rows, halves = distance(0, 1), distance(1, 0) if own == 2 else 0, distance(own, 0)
    if along_t != steps * core.packed or neighbours not in (steps, 0) or halves not in (4 * along_t, 0):
        return None
    if rows not in (ROWS * along_g, 0):
        return None
    turned = steps != 1
    if turned and (core.element.itemsize != 2 or along_g != 1):
        return None
    pitch, whole = steps if turned else along_g, BYTES // core.element.itemsize
    if pitch % whole or multiple_of(base) % whole:
        return None
    matrix = index.mod(index.floordiv(g, index.const(2)), index.const(len(words)))
    row = index.mod(g, index.const(2)) * ALONG_STEPS + t
    upper, half = index.mod(matrix, index.const(own)), index.floordiv(matrix, index.const(own))
    begin = base + row * pitch + upper * (ROWS * along_g) + half * (ALONG_STEPS * along_t)
    return first_word(access.replace(src=(access.src[0], begin)), core.element), turned

"""Where values that live at different times may lie in one arena.

lives        a ----      offsets   0: a a a a d d
in time      b   --                   b b     e e
               c ----             n:      c c c c
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence


def arrange(lives: Sequence[tuple[int, int, int]], alignment: int = 64) -> tuple[list[int], int]:
    """(the offset of each value, bytes of the arena) for values given as (first use, last use, bytes).

    Values whose lives touch do not overlap. In the order of first use each takes the smallest gap that is
    large enough, or the end.
    """
    offsets = [0] * len(lives)
    gaps: list[tuple[int, int]] = []  # (begin, end), apart, in order
    ending: list[tuple[int, int, int]] = []  # (last use, begin, end)
    top = 0
    for number in sorted(range(len(lives)), key=lambda n: (lives[n][0], -lives[n][2])):
        first, last, nbytes = lives[number]
        size = -(-max(nbytes, 1) // alignment) * alignment
        while ending and ending[0][0] < first:
            _, begin, end = heapq.heappop(ending)
            _release(gaps, begin, end)
        fitting = min((gap for gap in gaps if gap[1] - gap[0] >= size), key=_length, default=None)
        if fitting is not None:
            begin = fitting[0]
            gaps.remove(fitting)
            if begin + size < fitting[1]:
                bisect.insort(gaps, (begin + size, fitting[1]))
        elif gaps and gaps[-1][1] == top:
            begin = gaps.pop()[0]
        else:
            begin = top
        top = max(top, begin + size)
        offsets[number] = begin
        heapq.heappush(ending, (last, begin, begin + size))
    return offsets, top


def _length(gap: tuple[int, int]) -> int:
    return gap[1] - gap[0]


def _release(gaps: list[tuple[int, int]], begin: int, end: int) -> None:
    """Add a gap, joined with those that it touches."""
    at = bisect.bisect(gaps, (begin, end))
    if at < len(gaps) and gaps[at][0] == end:
        end = gaps.pop(at)[1]
    if at and gaps[at - 1][1] == begin:
        begin = gaps.pop(at - 1)[0]
        at -= 1
    gaps.insert(at, (begin, end))

"""Pieces that keep step: nests of one kernel of which each reads what an earlier one stores, cut for several
cores so that no piece reads what another piece makes.

Nobody waits between nests, and pieces run in any order, also at once. So a kernel in P pieces is right if
each element of such a memory belongs to one piece, and every access of it is in that piece. Let a loop of n
turns be cut into P equal parts, and an access of turn i be at

    c i + rest,   rest = (multiples of M) + (what lies in 0..c),   M = c n

Then i = (place mod M) div c, and the piece is i div (n / P) = (place mod M) div (M / P): a number that
depends on the place alone, and is the same for every access that has this M. Heads of attention are such
pieces: of the scores, of their softmax, and of columns in the memory of keys, where a row was just written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..config import OPTS
from ..dtype import dtypes
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.index.polynomials import terms_of
from ..ir.nest import ranges_of
from ..ir.ops import COMPARISONS, Ops
from ..ir.uop import UOp
from ..ir.walks import of_op
from ..target import Target
from .opt import KernelOptError, Loops, Opt, OptOps, apply_opt, apply_opts
from .opt.heuristic import FEWEST, PIECE
from .opt.moves.actions import MAX_PIECES
from .select_opts import launch_cycles, select_opts


def shared_memory(nests: Sequence[UOp]) -> frozenset[int]:
    """The arguments that one nest stores to, and another one reads or stores to (any form)."""
    found: set[int] = set()
    stored: set[int] = set()
    for nest in nests:
        touched = {node.arg for node in of_op(nest.toposort(), Ops.DEFINE_GLOBAL)}
        found |= stored & touched
        stored |= {memory_of(store) for store in nest.src}
    return frozenset(found)


def memory_of(store: UOp) -> int:
    """The argument that a STORE is to (any form)."""
    node = store.src[0]
    while node.op is not Ops.DEFINE_GLOBAL:
        node = node.src[0]
    number: int = node.arg
    return number


#: Nests that all stay whole alone are cut if two cores take at most this part of the time: as a kernel of
#: FEWEST pieces does, whose other half is FEWEST / 2 times the waking.
FEWEST_SHARE = 1 / 2 + 1 / FEWEST


class Cut(NamedTuple):
    """A loop that may be cut into equal parts: its axis, its turns, and M of each memory that nests share."""

    axis: int
    iterations: int
    spans: dict[int, int]


def aligned_chunks(nests: tuple[UOp, ...], target: Target) -> list[list[Opt]] | None:
    """The Opts of nests (form 3) in pieces that keep step; None where there are none, or where the nests are
    done earlier one by one, each in the pieces that it has alone, if there is a core for each piece.
    """
    return _aligned_chunks(nests, target, OPTS.value)


@functools.lru_cache(256)
def _aligned_chunks(nests: tuple[UOp, ...], target: Target, answers: str) -> list[list[Opt]] | None:
    if target.grid or target.threads < 2:
        return None
    choices = [select_opts(nest, target) for nest in nests]
    plain = [[opt for opt in each.opts if opt.op is not OptOps.THREAD] for each in choices]
    cycles, fork = sum(each.cycles for each in choices), target.launch.fork
    cut = in_chunks(nests, plain, int(cycles / (PIECE * fork)), target)
    if cut is None:
        return None
    alone = [_shares(nest, each.opts, target) for nest, each in zip(nests, choices, strict=True)]
    apart = sum(each.cycles / share for each, share in zip(choices, alone, strict=True))
    apart += fork * sum(share > 1 for share in alone) + launch_cycles(target) * (len(nests) - 1)
    if max(alone) == 1 and cycles / 2 + fork > apart * FEWEST_SHARE:
        return None
    return cut.opts if cycles / cut.shares + fork <= apart else None


class AlignedChunks(NamedTuple):
    """Opts of nests in pieces that keep step, and how many times the longest piece is all of them."""

    opts: list[list[Opt]]
    shares: float


def in_chunks(
    nests: Sequence[UOp], opts: Sequence[Sequence[Opt]], most: int, target: Target
) -> AlignedChunks | None:
    """Nests in at most so many pieces that keep step; None where there are no two.

    The nth parts of loops with equally many turns are the same memory for each n. Those with more turns are
    walked in blocks, so that there are as many; where they cannot be, a part is a whole number of turns of
    all.
    """
    found = cut_aligned(nests, opts, target)
    turns = 1 if found is None else math.gcd(*[cut.iterations for cut in found])
    most = min(most, turns, MAX_PIECES)
    if found is None or most < 2:
        return None
    equal = max(n for n in range(1, most + 1) if turns % n == 0)
    longest = math.ceil(turns / most)
    if turns / longest > equal:
        blocks = [
            [Opt(OptOps.TILE, cut.axis, cut.iterations // turns)] * (cut.iterations > turns) for cut in found
        ]
        walked = [[*own, *block] for own, block in zip(opts, blocks, strict=True)]
        made = _with_thread_chunks(found, walked, math.ceil(turns / longest))
        if all(_walks(nest, own, turns, target) for nest, own in zip(nests, made, strict=True)):
            return AlignedChunks(made, turns / longest)
    return AlignedChunks(_with_thread_chunks(found, opts, equal), equal) if equal > 1 else None


def _with_thread_chunks(cuts: Sequence[Cut], opts: Sequence[Sequence[Opt]], pieces: int) -> list[list[Opt]]:
    return [[*own, Opt(OptOps.THREAD, cut.axis, pieces)] for own, cut in zip(opts, cuts, strict=True)]


def _walks(nest: UOp, opts: Sequence[Opt], turns: int, target: Target) -> bool:
    """Whether the loop that is cut has so many turns: a further block is inside of blocks that it has."""
    try:
        loops = apply_opts(Loops.of(nest), opts, target)
    except KernelOptError:
        return False
    return bounds(_thread(loops.toposort()).src[0]) == (turns, turns)


def _shares(nest: UOp, opts: Sequence[Opt], target: Target) -> float:
    """How many times the longest of a nest's pieces is all of it: five pieces of eight turns are no more than
    four.
    """
    pieces = next((opt.amount for opt in opts if opt.op is OptOps.THREAD), None)
    if pieces is None:
        return 1.0
    turns = bounds(_thread(apply_opts(Loops.of(nest), opts, target).toposort()).src[0])[1]
    return turns / math.ceil(turns / pieces)


def _thread(nodes: Sequence[UOp]) -> UOp:
    """The loop that is cut."""
    (loop,) = [node for node in of_op(nodes, Ops.RANGE) if node.arg.kind is AxisType.THREAD]
    return loop


def cut_aligned(nests: Sequence[UOp], opts: Sequence[Sequence[Opt]], target: Target) -> list[Cut] | None:
    """A loop of each nest, after these Opts, of which equal parts keep step; None where there are none."""
    shared = shared_memory(nests)
    return _aligned(
        [list(_cuts(nest, own, shared, target)) for nest, own in zip(nests, opts, strict=True)], {}
    )


def _aligned(cuts: Sequence[Sequence[Cut]], known: dict[int, int]) -> list[Cut] | None:
    """One cut of each nest, so that M of each memory is the same in all."""
    if not cuts:
        return []
    for cut in cuts[0]:
        if all(known.get(memory, m) == m for memory, m in cut.spans.items()):
            rest = _aligned(cuts[1:], {**known, **cut.spans})
            if rest is not None:
                return [cut, *rest]
    return None


def _cuts(nest: UOp, opts: Sequence[Opt], shared: frozenset[int], target: Target) -> Iterator[Cut]:
    """The loops of a nest that may be cut, whose turns are all alike."""
    loops = Loops.of(nest)
    for each in opts:
        loops = apply_opt(loops, each, target)
    for axis in loops.axes:
        opt = Opt(OptOps.THREAD, axis.number, 2)
        try:
            sink = apply_opt(loops, opt, target).sink
        except KernelOptError:
            continue
        nodes = sink.toposort()
        loop = _thread(nodes)
        if loop.src[0].op is not Ops.CONST or _differs(nodes, loop):
            continue
        spans = _spans(nodes, loop, shared)
        if spans is not None:
            yield Cut(axis.number, loop.src[0].arg, spans)


def _differs(nodes: Sequence[UOp], loop: UOp) -> bool:
    """Whether some turns of a loop may be done apart from the others (`tails.py`), or all pieces would fill a
    row that is kept.
    """
    for node in nodes:
        if node.op in COMPARISONS and node.src[0].dtype is dtypes.index and loop in ranges_of(node):
            return True
        if node.op is Ops.STAGE and loop not in ranges_of(node):
            return True
    return False


def _spans(nodes: Sequence[UOp], loop: UOp, shared: frozenset[int]) -> dict[int, int] | None:
    """M of each shared memory that a nest touches; None where an access of it is in no certain piece."""
    spans: dict[int, int] = {}
    for node in nodes:
        memory = node.src[0] if node.op is Ops.INDEX else None
        if memory is None or memory.op is not Ops.DEFINE_GLOBAL or memory.arg not in shared:
            continue
        span = _span(node.src[1], loop)
        if not span or spans.setdefault(memory.arg, span) != span:
            return None
    return spans


def _span(place: UOp, loop: UOp) -> int:
    """M of an access at a place; 0 where the loop does not say in which piece it is."""
    terms, constant = terms_of(place)
    stride = terms.get((loop,), 0)
    span = stride * loop.src[0].arg
    if span <= 0:
        return 0
    low = high = constant % span
    for monomial, factor in terms.items():
        if monomial == (loop,):
            continue
        if any(loop in ranges_of(atom) for atom in monomial):
            return 0
        if factor % span == 0:
            continue
        least = most = factor
        for a, b in map(bounds, monomial):
            products = (least * a, least * b, most * a, most * b)
            least, most = min(products), max(products)
        low, high = low + least, high + most
    return span if low >= 0 and high < stride else 0

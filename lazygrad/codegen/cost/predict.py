"""How long a kernel will take, roughly: read off its linear program (form 7), for a search to rank by.

What is counted is what runs, in each loop: instructions, chains of additions that wait for each other,
accumulators, and the places that are loaded and stored. `cost_model.py` says how long that takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...dtype import PtrDType, dtypes
from ...ir.args import AxisType
from ...ir.index import bounds
from ...ir.linear import in_loops
from ...ir.ops import ELEMENTWISE, LANEWISE, OPS, Ops, execute
from ...ir.own import MOST_TURNS
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...target import Core, Launch, Target
from ..expressions.ranges import data_dependent
from .cost_model import PRODUCTS, Loop, cycles, guessing, issued

#: Loads and stores that move alike: their loop, their memory, and loop → elements by which it moves them.
Alike = tuple[Loop, UOp, frozenset[tuple[Loop, int]]]
#: What a load, or a store that may, costs more for leaving lanes out.
MASK = 1.5
#: A loop that ends by a BREAK alone turns about so often.
TURNS_OF_A_WHILE = 16


def predict(uops: Sequence[UOp], target: Target) -> float:
    """About how many cycles the program takes."""
    loops = _walk(uops, target)
    if has_op(uops, Ops.SPECIAL):
        return issued(loops, target) * _waves(uops, target.launch)
    return cycles(loops, target)


def _walk(uops: Sequence[UOp], target: Target) -> list[Loop]:
    """Every loop, with what it issues and touches."""
    moves = _Moves(uops)
    top = now = Loop()
    loops, loop_of = [top], dict[UOp, Loop]()
    local = {u.arg[0]: u for u in of_op(uops, Ops.SPECIAL)}
    branches: list[Loop] = []
    by_data = data_dependent(uops)
    streams: dict[Alike, list[tuple[int, int]]] = {}
    halfway: dict[UOp, int] = {}  # what is around a loop is taken to be half-way through when that begins
    for u in uops:
        if u.op is Ops.RANGE:
            begin, end = (
                int(sum(bounds(s)) / 2) if s.dtype is dtypes.index else _size(s, halfway) for s in u.src[:2]
            )
            turns = max(end - begin, 1) if end - begin < MOST_TURNS else TURNS_OF_A_WHILE
            halfway[u] = begin + (turns - 1) // 2
            now = loop_of[u] = Loop(float(turns), now, thread_chunks=u.arg.kind is AxisType.THREAD)
            now.issued += target.core.iteration
            loops.append(now)
        elif u.op is Ops.ENDRANGE:
            now = now.outer or top
        elif _once_in_a_loop(u) and now.outer is not None:
            branches.append(now)
            now = now.outer
        elif u.op is Ops.ENDIF and _once_in_a_loop(u.src[0]) and branches:
            now = branches.pop()
        elif u.op is Ops.ASSIGN:
            now.accumulators += _instructions(u.src[0], target)
            now.waits = max(now.waits, _latency(u.src[1], target.core))
        elif u.op in (Ops.LOAD, Ops.STORE):
            load = u.op is Ops.LOAD
            value = u if load else u.src[1]
            count = _instructions(value, target)
            if len(u.src[0].src) > 2 and value.dtype.count > 1:  # some lanes only
                count *= MASK if target.has_masks or load else target.core.masked
            if load and u.src[0].src[1].dtype.count > 1:  # a gather: each lane by itself
                now.load(u.dtype.count, True)
                now.compute(2.0 * u.dtype.count)
            elif load:
                now.load(count, u.dtype.count == 1)
            else:
                now.store(count)
            place = u.src[0]
            if place.op is Ops.INDEX and isinstance(place.src[0].dtype, PtrDType):
                first, strides = moves.of(place.src[1])
                if local:
                    now.issued += _uncoalesced(strides, local.get("lidx0"), value, target)
                steps = frozenset([(loop_of[r], step) for r, step in strides.items() if r in loop_of])
                base = place.src[0].dtype.base.itemsize
                streams.setdefault((now, place.src[0], steps), []).append(
                    (first * base, value.dtype.itemsize)
                )
        elif u.op in LANEWISE or u.op in (Ops.VECTORIZE, Ops.GEP):
            if u in by_data and u.dtype.count == 1:
                now.lost += guessing(1, target.core)
            count = _price(u, target)
            if _is_scalar(u):
                now.issued += count
            else:
                now.compute(count, u.op in PRODUCTS)
    for (loop, memory, steps), some in streams.items():
        _touch(loop, memory, dict(steps), some, target.memory.line)
    return loops


def _touch(loop: Loop, memory: UOp, steps: dict[Loop, int], places: list[tuple[int, int]], line: int) -> None:
    """What loads and stores that move alike take: for each the byte where it begins, and how many."""
    dtype = memory.dtype
    if not isinstance(dtype, PtrDType):
        raise TypeError(f"a place in {memory.op}, which is no memory")
    nbytes = sum([size for _, size in places])
    lines = sorted({begin // line for begin, _ in places})
    gaps = [b - a for a, b in itertools.pairwise(lines) if b - a > 1]
    spread = math.gcd(*gaps) * line if len(gaps) == len(lines) - 1 else 0
    item = dtype.base.itemsize
    loop.touch(memory, float(dtype.size * item), item, float(nbytes), steps, len(gaps) + 1, spread)


def _is_scalar(u: UOp) -> bool:
    """Whether an operation is done beside those on vectors, as most of addresses and conditions."""
    return u.op in LANEWISE and ((u.dtype.count == 1 and dtypes.is_int(u.dtype)) or u.dtype is dtypes.bool)


def _once_in_a_loop(u: UOp) -> bool:
    """Whether a branch is taken in one turn of a loop: what it holds counts once (`end_late`)."""
    return u.op is Ops.IF and u.src[0].op is Ops.CMPEQ and u.src[0].src[0].op is Ops.RANGE


def iterations_of(loop: UOp) -> int:
    """How often a RANGE of a linear program turns at most; 1 where only the data knows."""
    begin, end = (
        bounds(s)[n] if s.dtype is dtypes.index else _size(s, {}) for n, s in enumerate(loop.src[:2])
    )
    return max(int(end - begin), 1)


def all_iterations(uops: Sequence[UOp]) -> int:
    """How many turns the loops of one thread take together at most, loops inside of others included."""
    loops = [[*around, u] for u, around in in_loops(uops) if u.op is Ops.RANGE]
    return sum(math.prod(map(iterations_of, each)) for each in loops)


def _size(size: UOp, places: dict[UOp, int]) -> int:
    """A place or a number of turns where loops are at these places; others are in their first turn."""
    if size.op is Ops.CONST:
        return int(size.arg) if math.isfinite(size.arg) else 1
    if size.op is Ops.DEFINE_VAR:
        return int(size.arg[2])
    sources = tuple([_size(s, places) for s in size.src])
    if size.op in ELEMENTWISE and sources:
        value = execute(size.op, size.dtype, sources, size.src[-1].dtype)
        return int(value) if math.isfinite(value) else 1
    return places.get(size, 0) if size.op is Ops.RANGE else 1


def _instructions(value: UOp, target: Target) -> float:
    """How many registers' worth a value is."""
    if target.vector_bytes and value.dtype.count > 1:
        return max(1.0, math.ceil(value.dtype.itemsize / target.vector_bytes))
    if value.op is Ops.LOAD and target.load_bytes:
        return max(1.0, math.ceil(value.dtype.itemsize / target.load_bytes))
    return float(value.dtype.count)


def _price(u: UOp, target: Target) -> float:
    if u.op is Ops.VECTORIZE:
        if len(set(u.src)) == 1:
            return 0.0 if u.src[0].op is Ops.LOAD else 1.0  # a load fills all lanes
        return float(len(u.src))
    if u.op is Ops.GEP:
        return 1.0
    if u.op is Ops.BITCAST:
        return 0.0
    if _is_scalar(u):
        return target.core.scalar * OPS[u.op].cost
    return OPS[u.op].cost * _instructions(u, target)


def _latency(total: UOp, core: Core) -> float:
    """Cycles from a sum, a product or the like to the next one that needs it."""
    if total.op in (Ops.MULACC, Ops.DOT, Ops.DP4A):
        return core.multiply_add
    return core.multiply if total.op is Ops.MUL else core.add


# *** places


class _Moves:
    """By how many elements each index moves when a loop turns or the next thread is looked at."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        #: What each whole number is at first; and one place on along each loop and thread that moves it.
        self.values: dict[UOp, int] = {}
        self.moved: dict[UOp, dict[UOp, int]] = {}
        lanes = set[UOp]()  # what the places of gathers are made of: the first lane stands for all
        for u in uops:
            if u.op is Ops.INDEX and u.src[1].dtype.count > 1:
                lanes.update(u.src[1].toposort())
        for u in uops:
            whole = dtypes.is_int(u.dtype) or u.dtype is dtypes.bool
            if (u.dtype.count == 1 and whole) or (u in lanes and dtypes.is_int(u.dtype.scalar_type)):
                self.values[u] = self._value(u, self.values, self.values)
                movers = {mover for s in u.src for mover in self.moved.get(s, ())}
                found = {}
                for mover in movers:
                    there = {s: self.moved[s][mover] for s in u.src if mover in self.moved.get(s, ())}
                    found[mover] = self._value(u, there, self.values)
                if u.op in (Ops.RANGE, Ops.SPECIAL):
                    found[u] = 1
                if found:
                    self.moved[u] = found

    @staticmethod
    def _value(u: UOp, values: dict[UOp, int], others: dict[UOp, int]) -> int:
        """An operation's result, from these values, or the others where none is given."""
        if u.op is Ops.CONST:
            return int(u.arg[0] if isinstance(u.arg, tuple) else u.arg)
        sources = [values.get(s, others.get(s, 0)) for s in u.src]
        if u.op is Ops.VECTORIZE:
            return sources[0]
        if u.op not in ELEMENTWISE:
            return 0
        return int(execute(u.op, u.dtype.scalar_type, tuple(sources), u.src[-1].dtype.scalar_type))

    def of(self, index: UOp) -> tuple[int, dict[UOp, int]]:
        """Where it begins; loop or thread → elements. What does not move it is left out."""
        still = self.values.get(index, 0)
        steps = {mover: there - still for mover, there in self.moved.get(index, {}).items()}
        return still, {mover: step for mover, step in steps.items() if step}


# *** grids


def _uncoalesced(strides: dict[UOp, int], neighbour: UOp | None, value: UOp, target: Target) -> float:
    """What an access costs more because neighbouring threads look at places that are apart."""
    warp, line = target.launch.warp, target.memory.line
    step = abs(strides.get(neighbour, 0)) if neighbour is not None else warp
    own = value.dtype.itemsize
    lines = min(warp * step * value.dtype.base.itemsize, warp * line / 2) / line if step else 1.0
    return max(0.0, lines - warp * own / line) + 2.0


def _waves(uops: Sequence[UOp], launch: Launch) -> float:
    """How many times all threads that can be resident must run."""
    groups = threads = 1.0
    for u in uops:
        if u.op is Ops.SPECIAL:
            size = u.arg[1]
            count = float(bounds(size)[1] if isinstance(size, UOp) else size)
            if u.arg[0].startswith("l"):
                threads *= count
            else:
                groups *= count
    return max(1.0, groups * math.ceil(threads / launch.warp) * launch.warp / launch.resident)

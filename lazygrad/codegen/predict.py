"""How long a kernel will take, roughly: read off its linear program (form 7), for a search to rank by.

What is counted is what runs: every instruction as often as its loops turn, chains of additions that wait for
each other, accumulators beyond the registers, and the lines that each cache must fetch from the next. Only
the order that it puts programs into matters; its unit is about a cycle of one core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dtype import PtrDType, dtypes
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.ops import ELEMENTWISE, LANEWISE, OPS, Ops, execute
from ..ir.uop import UOp
from ..target import Core, Launch, Target

#: Registers that hold no accumulators: what is loaded needs some.
OTHERS = 3
#: Computing and fetching go on together, but for this share of what takes less.
ALONE = 0.3


@dataclass
class _Loop:
    """An open loop: how often it turns, what one turn issues besides inner loops, what waits for the last.

    issued        all instructions; of these arithmetic on vectors, products among that, loads and stores
    accumulators  the registers that each turn adds to
    waits         cycles from one turn's sum to the next one's
    """

    range: UOp | None
    turns: float
    outer: _Loop | None
    issued: float = 0.0
    arithmetic: float = 0.0
    products: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    accumulators: float = 0.0
    waits: float = 0.0
    accesses: list[_Access] = field(default_factory=list)

    def path(self) -> list[_Loop]:
        """This loop and those around it, innermost first."""
        found: list[_Loop] = []
        loop: _Loop | None = self
        while loop is not None:
            found.append(loop)
            loop = loop.outer
        return found


@dataclass
class _Access:
    """Loads or stores of one buffer that move alike: how many bytes they take together, how far they move."""

    home: _Loop
    buffer: UOp
    nbytes: float
    strides: dict[UOp, int]
    count: int = 1

    def footprint(self, inside: Sequence[_Loop], line: int) -> float:
        """Bytes of the lines of memory that it touches while these loops turn."""
        item = self.buffer.dtype.base.itemsize
        places, nearest = 1.0, math.inf
        for loop in inside:
            step = 0 if loop.range is None else abs(self.strides.get(loop.range, 0))
            if step and loop.turns > 1:
                places *= loop.turns
                nearest = min(nearest, step * item)
        apart = self.nbytes / self.count
        waste = 1.0
        if apart < line:
            waste = max(1.0, min(nearest, line) / self.nbytes) if self.nbytes < line else 1.0
        whole = self.buffer.dtype.size * item  # type: ignore[attr-defined]
        return min(self.nbytes * waste * places, max(float(whole), line))


def predict(uops: Sequence[UOp], target: Target) -> float:
    """About how many cycles the program takes."""
    top = _Loop(None, 1.0, None)
    loops = _walk(uops, target, top)
    cycles = sum(_issue(loop, target) * math.prod(o.turns for o in loop.path()) for loop in loops)
    if any(u.op is Ops.SPECIAL for u in uops):
        return cycles * _waves(uops, target.launch)
    fetching = _fetch(loops, target)
    cycles = max(cycles, fetching) + ALONE * min(cycles, fetching)
    pieces = next((loop.turns for loop in loops if _is_thread(loop)), 1.0)
    if pieces > 1 and target.threads > 1:
        return cycles * math.ceil(pieces / target.threads) / pieces + target.launch.fork
    return cycles


def _is_thread(loop: _Loop) -> bool:
    return loop.range is not None and loop.range.arg.kind is AxisType.THREAD


def _walk(uops: Sequence[UOp], target: Target, top: _Loop) -> list[_Loop]:
    """Every loop, with what it issues and touches."""
    moves = _Moves(uops)
    loops, now = [top], top
    local = {u.arg[0]: u for u in uops if u.op is Ops.SPECIAL}
    branches: list[_Loop] = []
    for u in uops:
        if u.op is Ops.RANGE:
            begin, end = (
                bounds(s)[n] if s.dtype is dtypes.index else _at_most(s) for n, s in enumerate(u.src[:2])
            )
            now = _Loop(u, float(max(end - (begin if len(u.src) > 1 else 0), 1)), now)
            now.issued += target.core.turn
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
            value = u if u.op is Ops.LOAD else u.src[1]
            count = _instructions(value, target) * (1.0 if len(u.src) < 3 else 1.5)
            now.issued += count
            if u.op is Ops.LOAD:
                now.loads += count
            else:
                now.stores += count
            place = u.src[0]
            if place.op is Ops.INDEX and isinstance(place.src[0].dtype, PtrDType):
                strides = moves.of(place.src[1])
                if local:
                    now.issued += _uncoalesced(strides, local.get("lidx0"), value, target)
                _note(now, place.src[0], float(value.dtype.itemsize), strides)
        elif u.op in LANEWISE or u.op in (Ops.VECTORIZE, Ops.GEP):
            count = _price(u, target)
            now.issued += count
            if not _is_scalar(u):
                now.arithmetic += count
            if u.op in (Ops.MUL, Ops.MULACC, Ops.DOT):
                now.products += count
    return loops


def _is_scalar(u: UOp) -> bool:
    """Whether an operation is done beside those on vectors, as most of addresses and conditions."""
    return u.op in LANEWISE and ((u.dtype.count == 1 and dtypes.is_int(u.dtype)) or u.dtype is dtypes.bool)


def _once_in_a_loop(u: UOp) -> bool:
    """Whether a branch is taken in one turn of a loop: what it holds counts once (`late_sums.py`)."""
    return u.op is Ops.IF and u.src[0].op is Ops.CMPEQ and u.src[0].src[0].op is Ops.RANGE


def _at_most(size: UOp) -> int:
    if size.op is Ops.CONST:
        return int(size.arg)
    if size.op is Ops.DEFINE_VAR:
        return int(size.arg[2])
    sources = tuple([_at_most(s) for s in size.src])
    if size.op in ELEMENTWISE and sources:
        return int(execute(size.op, size.dtype, sources, size.src[-1].dtype))
    return 0 if size.op is Ops.RANGE else 1  # in its first turn, where most is left


def _instructions(value: UOp, target: Target) -> float:
    """How many registers' worth a value is."""
    if target.vector_bytes and value.dtype.count > 1:
        return max(1.0, math.ceil(value.dtype.itemsize / target.vector_bytes))
    if value.op is Ops.LOAD and target.load_bytes:
        return max(1.0, math.ceil(value.dtype.itemsize / target.load_bytes))
    return float(value.dtype.count)


def _price(u: UOp, target: Target) -> float:
    if u.op is Ops.VECTORIZE:
        return 1.0 if len(set(u.src)) == 1 else float(len(u.src))
    if u.op is Ops.GEP:
        return 1.0
    if _is_scalar(u):
        return target.core.scalar * OPS[u.op].cost
    return OPS[u.op].cost * _instructions(u, target)


def _issue(loop: _Loop, target: Target) -> float:
    """Cycles of one turn, inner loops left out: those of what is busy longest.

    What has no register is stored in each turn, and its next sum waits until it is loaded again.
    """
    core = target.core
    spilled = max(0.0, loop.accumulators - (target.vector_registers - OTHERS)) if target.vector_bytes else 0.0
    busiest = max(
        loop.issued / core.issued,
        loop.arithmetic / core.arithmetic,
        loop.products / core.products,
        loop.loads / core.loads,
        loop.stores / core.stores,
        loop.waits,
    )
    return busiest + spilled / core.stores


def _latency(total: UOp, core: Core) -> float:
    """Cycles from a sum, a product or the like to the next one that needs it."""
    if total.op in (Ops.MULACC, Ops.DOT):
        return core.multiply_add
    return core.multiply if total.op is Ops.MUL else core.add


# *** memory


def _note(loop: _Loop, buffer: UOp, nbytes: float, strides: dict[UOp, int]) -> None:
    for access in loop.accesses:
        if access.buffer is buffer and access.strides == strides:
            access.nbytes += nbytes
            access.count += 1
            return
    loop.accesses.append(_Access(loop, buffer, nbytes, strides))


def _fetch(loops: list[_Loop], target: Target) -> float:
    """Cycles in which the lines come that a cache does not have, of the cache that waits longest."""
    line = target.memory.line
    inner: dict[int, float] = {}  # what a loop touches while it turns
    for loop in loops:
        for access in loop.accesses:
            path = loop.path()
            for depth, around in enumerate(path):
                inner[id(around)] = inner.get(id(around), 0.0) + access.footprint(path[: depth + 1], line)
    longest = 0.0
    for size, rate in zip(target.memory.sizes, target.memory.rates, strict=False):
        if inner.get(id(loops[0]), 0.0) <= size:
            break  # all of it is still there from the run before
        cycles = 0.0
        for loop in loops:
            path = loop.path()
            fitting = 0
            while fitting < len(path) and inner.get(id(path[fitting]), 0.0) <= size:
                fitting += 1
            # Of the next loop one turn fits: what a turn leaves in the cache serves the following one.
            again = math.prod(around.turns for around in path[fitting + 1 :])
            for access in loop.accesses:
                cycles += access.footprint(path[: fitting + 1], line) * again / rate
        longest = max(longest, cycles)
    return longest


class _Moves:
    """By how many elements each index moves when a loop turns or the next thread is looked at."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.movers = [u for u in uops if u.op in (Ops.RANGE, Ops.SPECIAL)]
        self.values: dict[UOp | None, dict[UOp, int]] = {}
        whole = [u for u in uops if u.dtype.count == 1 and (dtypes.is_int(u.dtype) or u.dtype is dtypes.bool)]
        for mover in (None, *self.movers):
            values: dict[UOp, int] = {}
            for u in whole:
                values[u] = self._value(u, mover, values)
            self.values[mover] = values

    @staticmethod
    def _value(u: UOp, mover: UOp | None, values: dict[UOp, int]) -> int:
        if u.op is Ops.CONST:
            return int(u.arg)
        if u.op not in ELEMENTWISE:
            return int(u is mover)
        sources = tuple([values.get(s, 0) for s in u.src])
        return int(execute(u.op, u.dtype, sources, u.src[-1].dtype))

    def of(self, index: UOp) -> dict[UOp, int]:
        """Loop or thread → elements; what does not move it is left out."""
        still = self.values[None].get(index, 0)
        steps = {mover: self.values[mover].get(index, 0) - still for mover in self.movers}
        return {mover: step for mover, step in steps.items() if step}


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

"""Where the steps of a linear program access memory, as canonical index arithmetic again.

In form 7 an index is integers of some width, with shifts and masks; an atom for each loop makes a polynomial
of it, in which one can see how far a loop moves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType, RangeArg
from ...ir.ops import Ops
from ...ir.rewrite import resolve
from ...ir.uop import UOp
from .values import Loop, Read, Unknown, Value, Write

#: Addresses that loops stand at while a copy is filled, for what is read of the copy.
Where = tuple[tuple[UOp, UOp], ...]


class Lane(NamedTuple):
    """One lane of a value, where loops are at these addresses."""

    value: Value
    lane: int
    where: Where = ()


def lane_of(value: Value, lane: int, where: Where = ()) -> Lane:
    """The lane, as one of a value that is not merely put together from lanes of others."""
    while True:
        if value.dtype.count == 1:
            lane = 0
        if value.op is Ops.VECTORIZE:
            if value.src[0].dtype.count != 1:
                raise Unknown("a vector of vectors")
            value, lane = value.src[lane], 0
        elif value.op is Ops.GEP:
            value, lane = value.src[0], value.arg[lane] if isinstance(value.arg, tuple) else value.arg
        else:
            return Lane(value, lane, where)


class Filling(NamedTuple):
    """How a STORE fills a copy: where other loops are, the address of its first turn, and (step, loop) for
    each loop that it does so in, the largest step first.
    """

    outer: Where
    begin: UOp
    steps: list[tuple[int, UOp]]


class Addresses:
    """Index arithmetic of a program's values. `computed` has the lane of each atom that memory decides."""

    def __init__(self) -> None:
        self.known: dict[Lane, UOp] = {}
        self.atoms: dict[Loop, UOp] = {}
        self.computed: dict[UOp, Lane] = {}
        self.filling: dict[Any, Filling] = {}

    def of(self, value: Value, lane: int = 0, where: Where = ()) -> UOp:
        """The address in one lane."""
        return resolve(lane_of(value, lane, where), self._needs, self._answer, self.known)

    def atom(self, loop: Loop) -> UOp:
        """The RANGE of a loop."""
        found = self.atoms.get(loop)
        if found is None:
            size = self.of(loop.size)
            arg = RangeArg(loop.number, AxisType.LOOP)
            found = self.atoms[loop] = UOp(Ops.RANGE, dtypes.index, (size,), arg)
        return found

    def _needs(self, request: Lane) -> list[Lane]:
        value, lane, where = request
        if value.op not in _ARITHMETIC and value.op not in (Ops.CAST, Ops.BITCAST):
            return []
        if not dtypes.is_int(value.src[-1].dtype.scalar_type) and value.src[-1].dtype is not dtypes.bool:
            return []
        return [lane_of(source, lane, where) for source in value.src]

    def _answer(self, request: Lane) -> UOp:
        value, lane, where = request
        if value.op is Ops.CONST:
            number = value.arg[lane] if isinstance(value.arg, tuple) else value.arg
            if value.dtype.scalar_type is dtypes.bool:
                return index.TRUE if number else index.FALSE
            return index.const(number)
        if value.op is Ops.RANGE:
            atom = self.atom(value.arg)
            return dict(where).get(atom, atom)
        if value.op is Ops.DEFINE_VAR:
            return UOp(Ops.DEFINE_VAR, dtypes.index, (), value.arg)
        if value.op is Ops.SPECIAL:
            name, size = value.arg[0], value.arg[1]
            return UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, 0, size - 1))
        src = [self.known[need] for need in self._needs(request)]
        if value.op in (Ops.CAST, Ops.BITCAST) and src and dtypes.is_int(value.dtype.scalar_type):
            number = value.src[0].dtype.scalar_type is not dtypes.bool
            return src[0] if number else index.select(src[0], index.const(1), index.const(0))
        made = _ARITHMETIC[value.op](*src) if src and value.op in _ARITHMETIC else None
        if made is None:
            if value.placed:
                raise Unknown(f"{value.op} of addresses")
            made = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"computed{len(self.computed)}", 0, (1 << 62)))
            self.computed[made] = request
        return made

    # *** copies

    def found_in(self, read: Read, address: UOp, where: Where) -> Lane:
        """What was stored in local memory: the value of the STORE, in the turns that stored it."""
        for write in reversed(read.writes):
            lanes = write.value.dtype.count
            for lane in range(lanes) if write.address.dtype.count > 1 else (0,):
                outer, begin, steps = self._filling(write, lane, read, where)
                left, found = index.sub(address, begin), []
                for step, atom in steps:
                    at = index.floordiv(left, index.const(step)) if step else index.const(0)
                    left = index.sub(left, at * step)
                    low, high = index.bounds(at)
                    if low < 0 or high >= index.bounds(atom.src[0])[1]:
                        break
                    found.append((atom, at))
                else:
                    several = write.address.dtype.count == 1
                    if left.op is Ops.CONST and 0 <= left.arg < (lanes if several else 1):
                        return lane_of(write.value, left.arg if several else lane, (*outer, *found))
        raise Unknown("memory that no one STORE fills")

    def _filling(self, write: Write, lane: int, read: Read, where: Where) -> Filling:
        """How a STORE fills a copy that is read elsewhere."""
        filling = [self.atom(loop) for loop in write.loops if loop not in read.loops]
        outer = tuple([(atom, at) for atom, at in where if atom not in filling])
        known = (write.address, lane, tuple(filling), outer)
        if known not in self.filling:
            begin, steps = self.of(write.address, lane, outer), []
            for atom in filling:
                step = step_along(begin, atom)
                begin = index.sub(begin, atom * step)
                if step <= 0 and atom.src[0] is not index.const(1):
                    raise Unknown("a copy that is filled backwards, or again and again")
                steps.append((step, atom))
            steps.sort(key=lambda each: -each[0])
            self.filling[known] = Filling(outer, begin, steps)
        return self.filling[known]


def step_along(address: UOp, atom: UOp) -> int:
    """By how much an address moves with each turn of a loop. Raises Unknown where that differs."""
    terms, _ = index.terms_of(address)
    step = 0
    for monomial, coefficient in terms.items():
        if monomial == (atom,):
            step = coefficient
        elif any(atom is factor or (factor.src and atom in factor.toposort()) for factor in monomial):
            raise Unknown("a loop that moves an access by different steps")
    return step


def _shifted_left(x: UOp, by: UOp) -> UOp | None:
    return index.mul(x, index.const(1 << by.arg)) if by.op is Ops.CONST else None


def _shifted_right(x: UOp, by: UOp) -> UOp | None:
    return index.floordiv(x, index.const(1 << by.arg)) if by.op is Ops.CONST else None


def _masked(x: UOp, mask: UOp) -> UOp | None:
    if mask.op is Ops.CONST and mask.arg >= 0 and mask.arg & (mask.arg + 1) == 0:
        return index.mod(x, index.const(mask.arg + 1))
    return None


def _unequal(a: UOp, b: UOp) -> UOp | None:
    if a.dtype is not dtypes.bool:
        return index.not_equal(a, b)
    return index.logical_not(a) if b is index.TRUE else None


def _both(a: UOp, b: UOp) -> UOp | None:
    return index.all_of((a, b)) if a.dtype is dtypes.bool else _masked(a, b)


#: Integers that are rounded down and do not overflow, as addresses are.
_ARITHMETIC: dict[Ops, Callable[..., UOp | None]] = {
    Ops.ADD: index.add,
    Ops.SUB: index.sub,
    Ops.MUL: index.mul,
    Ops.NEG: index.neg,
    Ops.SHL: _shifted_left,
    Ops.SHR: _shifted_right,
    Ops.AND: _both,
    Ops.IDIV: index.floordiv,
    Ops.MOD: index.mod,
    Ops.MIN: index.minimum,
    Ops.MAX: index.maximum,
    Ops.CMPLT: index.less,
    Ops.CMPEQ: index.equal,
    Ops.CMPNE: _unequal,
    Ops.WHERE: index.select,
}

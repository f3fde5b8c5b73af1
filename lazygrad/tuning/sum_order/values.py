"""What the steps of a linear program (form 7) compute, as expressions without steps.

Accumulators and local memory are what a list has and an expression has not. A loop that changes accumulators
becomes a `Loop`, with what each one is before it and what one turn makes of it; a load of local memory knows
the stores that may have filled it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...dtype import DType, dtypes
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp


class Unknown(Exception):
    """A step, or a use of memory, that expressions cannot say."""


class Loop:
    """A loop of the program.

    number, size   its address among the loops of the program; how many turns it has
    before, after  accumulator → its value before the loop, and after a turn; of those that turns change
    """

    __slots__ = ("after", "before", "number", "size")

    def __init__(self, number: int, size: Value) -> None:
        self.number, self.size = number, size
        self.before: dict[UOp, Value] = {}
        self.after: dict[UOp, Value] = {}


#: An accumulator at the begin of a turn of a loop.
Carried = tuple[Loop, UOp]


class Value:
    """What a step computes. Values are equal only if they are the same object.

    op, dtype, src  as of the step, but DEFINE_ACC is an accumulator at the begin of a turn, and ENDRANGE one
                    after a loop: their `arg` is the loop and the accumulator
    arg             as of the step; of a RANGE its Loop, of a LOAD a `Read`
    carried         the accumulators at the begin of turns that it depends on
    placed          whether it follows from where in its loops the program is: no memory, no accumulator
    exact           whether it is made of integers and bools alone, and of no accumulator: what it is does not
                    depend on how it is computed
    floats          whether floats are in it
    """

    __slots__ = ("arg", "carried", "dtype", "exact", "floats", "op", "placed", "src")

    def __init__(self, op: Ops, dtype: DType, src: Sequence[Value] = (), arg: Any = None) -> None:
        self.op, self.dtype, self.src, self.arg = op, dtype, tuple(src), arg
        self.placed: bool = op not in (Ops.LOAD, Ops.DEFINE_ACC, Ops.ENDRANGE) and all(s.placed for s in src)
        reduced = op in (Ops.DEFINE_ACC, Ops.ENDRANGE)
        whole = not dtypes.is_float(dtype.scalar_type) and not reduced
        self.exact: bool = whole and all(s.exact for s in src)
        self.floats: bool = dtypes.is_float(dtype.scalar_type) or any(s.floats for s in src)
        self.carried: tuple[Carried, ...] = ()
        if any(s.carried for s in src):
            self.carried = tuple(dict.fromkeys(itertools.chain.from_iterable(s.carried for s in src)))


class Write(NamedTuple):
    """A STORE: where in its buffer, the value, the open loops (outermost first), the conditions for it."""

    buffer: UOp
    address: Value
    value: Value
    loops: tuple[Loop, ...]
    conditions: tuple[Value, ...]


class Read(NamedTuple):
    """The argument of a LOAD's Value, whose sources are the address, then where it has them a condition and
    what is read elsewhere. `writes` may have filled local memory; an input has none.
    """

    buffer: UOp
    conditional: bool
    loops: tuple[Loop, ...]
    writes: tuple[Write, ...]


def stored_values(program: Sequence[UOp]) -> list[Write]:
    """What a linear program stores in its outputs, in order. Raises Unknown."""
    reader = _Reader(_changed(program))
    for step in program:
        reader.read(step)
    return reader.outputs


def _changed(program: Iterable[UOp]) -> list[set[UOp]]:
    """The accumulators that each loop changes, in the order in which loops begin."""
    found: list[set[UOp]] = []
    opened: list[set[UOp]] = []
    for step in program:
        if step.op is Ops.RANGE:
            found.append(set())
            opened.append(found[-1])
        elif step.op is Ops.ENDRANGE:
            opened.pop()
        elif step.op is Ops.ASSIGN:
            for each in opened:
                each.add(step.src[0])
    return found


class _Reader:
    """The program so far. `made` has the value of each step, of accumulators the present one."""

    def __init__(self, changed: Sequence[set[UOp]]) -> None:
        self.changed = changed
        self.made: dict[UOp, Value] = {}
        self.accumulators: list[UOp] = []
        self.loops: list[Loop] = []
        self.conditions: list[Value] = []
        self.outputs: list[Write] = []
        self.filled: dict[UOp, list[Write]] = {}
        self.early: list[set[UOp]] = []  # of each open loop: memory that a turn read before it wrote to it
        self.late: list[set[UOp]] = []  # and memory that the turn wrote to
        self.count = 0

    def value(self, step: UOp) -> Value:
        found = self.made.get(step)
        if found is None:
            raise Unknown(f"{step.op} is read")
        return found

    def read(self, step: UOp) -> None:
        op = step.op
        if op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.INDEX):
            return
        if op in (Ops.CONST, Ops.SPECIAL, Ops.DEFINE_VAR):
            self.made[step] = Value(op, step.dtype, (), step.arg)
        elif op is Ops.RANGE:
            self.open(step)
        elif op is Ops.ENDRANGE:
            self.close()
        elif op is Ops.IF:
            self.conditions.append(self.value(step.src[0]))
        elif op is Ops.ENDIF:
            self.conditions.pop()
        elif op is Ops.DEFINE_ACC:
            self.accumulators.append(step)
            self.made[step] = self.value(step.src[0])
        elif op is Ops.ASSIGN:
            self.assign(step)
        elif op is Ops.LOAD:
            self.made[step] = self.load(step)
        elif op is Ops.STORE:
            self.store(step)
        elif op in ELEMENTWISE or op in (Ops.VECTORIZE, Ops.GEP):
            if op in (Ops.ADD, Ops.MUL) and step.arg is not None:
                raise Unknown("a sum that a compiler may reorder")
            self.made[step] = Value(op, step.dtype, tuple([self.value(s) for s in step.src]), step.arg)
        else:
            raise Unknown(f"{op}")

    def open(self, step: UOp) -> None:
        start, size = (self.value(s) for s in step.src[:2])
        if start.op is not Ops.CONST or start.arg != 0:
            raise Unknown("a loop that does not begin at 0")
        loop = Loop(self.count, size)
        changed = self.changed[self.count]
        self.count += 1
        self.made[step] = Value(Ops.RANGE, step.dtype, (), loop)
        for accumulator in self.accumulators:
            if accumulator not in changed:
                continue
            loop.before[accumulator] = self.made[accumulator]
            carried = Value(Ops.DEFINE_ACC, accumulator.dtype, (), (loop, accumulator))
            carried.carried = ((loop, accumulator),)
            self.made[accumulator] = carried
        self.loops.append(loop)
        self.early.append(set())
        self.late.append(set())

    def close(self) -> None:
        loop = self.loops.pop()
        self.early.pop()
        self.late.pop()
        loop.after = {accumulator: self.made[accumulator] for accumulator in loop.before}
        for accumulator in loop.after:
            value = Value(Ops.ENDRANGE, accumulator.dtype, (), (loop, accumulator))
            together = accumulators_of(loop, accumulator)
            value.floats = any(v[a].floats for a in together for v in (loop.before, loop.after))
            inside = [each for a in together for each in loop.after[a].carried if each[0] is not loop]
            value.carried = tuple(
                dict.fromkeys([c for a in together for c in loop.before[a].carried] + inside)
            )
            self.made[accumulator] = value

    def assign(self, step: UOp) -> None:
        accumulator, value = step.src[0], self.value(step.src[1])
        if accumulator.op is not Ops.DEFINE_ACC:
            raise Unknown("ASSIGN")
        for condition in reversed(self.conditions):
            value = Value(Ops.WHERE, value.dtype, (condition, value, self.made[accumulator]))
        self.made[accumulator] = self.made[step] = value

    def load(self, step: UOp) -> Value:
        buffer, address, *valid = step.src[0].src
        writes: tuple[Write, ...] = ()
        if buffer.op is Ops.DEFINE_LOCAL:
            writes = tuple(self.filled.get(buffer, ()))
            for early, late in zip(self.early, self.late, strict=True):
                if buffer not in late:
                    early.add(buffer)
        read = Read(buffer, bool(valid), tuple(self.loops), writes)
        src = [self.value(s) for s in (address, *valid, *step.src[1:])]
        return Value(Ops.LOAD, step.dtype, src, read)

    def store(self, step: UOp) -> None:
        buffer, address, *valid = step.src[0].src
        if step.arg is not None:
            raise Unknown("a STORE that combines")
        conditions = (*self.conditions, *map(self.value, (*valid, *step.src[2:])))
        write = Write(buffer, self.value(address), self.value(step.src[1]), tuple(self.loops), conditions)
        if buffer.op is not Ops.DEFINE_LOCAL:
            self.outputs.append(write)
            return
        if any(buffer in early for early in self.early):
            raise Unknown("memory that a turn of a loop leaves to the next one")
        for late in self.late:
            late.add(buffer)
        self.filled.setdefault(buffer, []).append(write)


def accumulators_of(loop: Loop, first: UOp) -> list[UOp]:
    """An accumulator and those that its value after a turn of the loop depends on, in the order of that."""
    found = [first]
    for accumulator in found:
        carried = [each[1] for each in loop.after[accumulator].carried if each[0] is loop]
        found += [each for each in dict.fromkeys(carried) if each not in found]
    return found

"""What every program of a kernel in one pass is written with: places, which keys are seen, powers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...ir.index import terms_of
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort
from ...renderer import Renderer
from ..writing import Program
from .expressions import MOST, SHIFTED, SUM, TOTAL, expressions_of
from .lanes import Along, Writer, arguments_in
from .limits import Limit
from .rule import OnePass
from .sizes import size_of


class Ground:
    """A program while it is written, for rows and groups of them, and keys: `places` are those of the ranges
    that are open.

    limits  where something is left out, and each `rest` in ops of the target
    """

    def __init__(
        self, p: Program, rows: tuple[UOp, ...], key: UOp, limits: Sequence[tuple[Limit, UOp]]
    ) -> None:
        self.p, self.writer = p, Writer(p)
        self.row, *groups = rows
        self.group_ranges, self.key, self.limits = tuple(groups), key, limits
        self.groups = math.prod(map(size_of, groups))
        self.indices: dict[int, UOp] = {}

    def _div(self, a: UOp, n: int) -> UOp:
        return self.p.let(UOp(Ops.IDIV, a.dtype, (a, UOp.const(a.dtype, n)))) if n > 1 else a

    def _mod(self, a: UOp, n: int) -> UOp:
        if n == 1:
            return self.p.integer(0)
        return self.p.let(UOp(Ops.MOD, a.dtype, (a, UOp.const(a.dtype, n))))

    def _decoded(self, number: UOp, ranges: tuple[UOp, ...]) -> dict[int, UOp]:
        """Where each range is at a place counted over all of them, the last one fastest."""
        found = {}
        for r in reversed(ranges):
            last = r is ranges[0]
            found[r.arg.id] = number if last else self._mod(number, size_of(r))
            number = number if last else self._div(number, size_of(r))
        return found

    def _least(self, a: UOp, b: UOp) -> UOp:
        return self.p.let((a < b).where(a, b))

    def _most(self, a: UOp, b: UOp) -> UOp:
        return self.p.let((a < b).where(b, a))

    def _limits(self, low: UOp, high: UOp, group: dict[int, UOp] | None) -> tuple[UOp, UOp]:
        """The first and the last key at which x may be more than -inf in rows low to high; -1: there is none.

        group  the places of the group; None: of any
        """
        p, size = self.p, size_of(self.key)
        first, last = p.integer(0), p.integer(size - 1)
        for limit, rest in self.limits:
            terms, _ = terms_of(limit.rest)
            places = dict(self.indices)
            for r in (self.row, *self.group_ranges):
                if any(r in toposort((a,)) for monomial in terms for a in monomial if monomial != (r,)):
                    break  # who knows where it is greatest
                if r is self.row:
                    places[r.arg.id] = p.let(high if terms.get((r,), 0) > 0 else low)
                elif group is not None:
                    places[r.arg.id] = group[r.arg.id]
                else:
                    places[r.arg.id] = p.integer(size_of(r) - 1 if terms.get((r,), 0) > 0 else 0)
            else:
                greatest = p.let(self.writer.write(rest, places).cast(p.index_dtype))
                if limit.slope < 0:
                    last = self._least(last, greatest)
                else:
                    first = self._most(first, p.let(p.integer(0) - greatest))
        return first, self._most(last, p.integer(-1))


class Steps(Ground):
    """The steps of a kernel of one sum."""

    def __init__(self, parts: OnePass, renderer: Renderer) -> None:
        self.pattern = parts
        self.e = e = expressions_of(parts, renderer)
        every = [e.x, e.value, e.access, *e.late, *[s for both in e.sides for s in both], *e.limits]
        every += [v for v in (e.power, e.shift, e.values, e.weights) if v is not None]
        every += [s for store in e.beside for s in store.src]
        self.out, self.index = e.access.src[:2]
        p = Program(arguments_in(every), parts.total.dtype, renderer)
        limits = list(zip(parts.limits, e.limits, strict=True))
        super().__init__(p, (parts.row, *parts.groups), parts.key, limits)

    @contextmanager
    def _each_outer(self) -> Iterator[None]:
        """The places of what is summed over beside the keys."""
        p, places = self.p, self.indices
        with ExitStack() as loops:
            for r in self.pattern.outer:
                at = loops.enter_context(p.loop(0, size_of(r)))
                self.indices = {**self.indices, r.arg.id: at}
            yield
        self.indices = places

    def _power(self, shifted: UOp) -> UOp:
        assert self.e.power is not None
        return self.p.let(self.writer.write(self.e.power, {}, {SHIFTED: shifted}))

    def _greater(self, a: UOp, b: UOp) -> UOp:
        return (a < b).where(b, a)

    def _finite(self, top: UOp) -> UOp:
        """What is subtracted where `top` is the greatest x: 0 where all were -inf."""
        none, zero = (self.p.number(value, top.dtype.count) for value in (-math.inf, 0.0))
        return self.p.let(top.alu(Ops.CMPEQ, none).where(zero, top))

    # *** the results of a row

    def _statistics(self, top: UOp, total: UOp, places: dict[int, UOp], given: dict[int, UOp]) -> UOp | None:
        """The greatest x of a row and the sum of its powers, for `given`; the last correction."""
        p, scale = self.p, None
        given[MOST] = top
        if self.e.shift is not None:
            shift = self.writer.write(self.e.shift, places, given)
            scale = self._power(p.let(self._finite(top) - shift))
            total = p.let(total * scale)
        given[SUM] = total
        return scale

    def _store_beside(self, places: dict[int, UOp], given: dict[int, UOp]) -> None:
        """What of a row is stored beside the result."""
        for store in self.e.beside:
            access, value = store.src
            memory, place = access.src[:2]
            at = self.p.let(self.writer.write(place, places))
            self.p.store(memory, at, self.p.let(self.writer.write(value, places, given)))

    def _finished(
        self,
        value: UOp,
        scale: UOp | None,
        places: dict[int, UOp],
        given: dict[int, UOp],
        along: Along | None = None,
    ) -> UOp:
        """The result of a sum, in as many lanes as it has."""
        p = self.p
        if scale is not None:
            value = value * p.splat(scale, value.dtype.count)
        for factor, late in zip(self.pattern.late, self.e.late, strict=True):
            other = self.writer.write(late, places, given, along)
            value = value / other if factor.divides else value * other
        return p.let(self.writer.write(self.e.value, places, {**given, TOTAL: p.let(value)}, along))

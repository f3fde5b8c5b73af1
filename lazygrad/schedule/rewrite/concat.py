"""A COPY of several values, one after another: what is computed together, what is computed first, what is
only copied.

Parts that are computed alike are computed after they are joined: one kernel over what was copied takes the
place of one for each part. Else what must be computed is written by one kernel for each MAX_CHOICES parts,
which chooses among them for each element, and is copied from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...gradient import MAX_CHOICES, choice
from ...ir.index import sint
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ...ir.walks import device_of
from ...shape.movement import base_and_tracker, expand, reshape, shrink
from ...shape.rules import shape_of
from ...shape.sizes import add, mul, prod
from ..graph.requested import in_order, is_copied_as_it_is, is_materialized, is_number, is_whole

#: Parts that are computed alike are followed through so many operations.
MAX_STEPS = 64


def joined(copy: UOp) -> UOp:
    """A COPY of several plain values: one after another along their first axis, in memory of a device."""
    *parts, device = copy.src
    made = None
    if all(device_of(part) in (None, device.arg) for part in parts):
        made = _SameOperation(device).joined(tuple(parts), MAX_STEPS)
    if made is None:
        return _one_by_one(parts, device)
    base, _ = base_and_tracker(made)
    if is_materialized(base):
        return UOp(Ops.COPY, made.dtype, (in_order(made), device))
    if made is base and made.op is not Ops.CONST:
        return made
    return UOp(Ops.CONTIGUOUS, made.dtype, (made,))


join_rules = PatternMatcher([(UPat(Ops.COPY, src=(UPat(), UPat(), UPat(), ...), name="copy"), joined)])


class _SameOperation:
    """Joins what is computed alike: an operation on joined values is the join of its results."""

    def __init__(self, device: UOp) -> None:
        self.device = device
        self.known: dict[tuple[UOp, ...], UOp | None] = {}

    def joined(self, parts: tuple[UOp, ...], steps: int) -> UOp | None:
        """The parts one after another; None where each must be computed by itself."""
        if parts not in self.known:
            self.known[parts] = self._joined(parts, steps) if steps else None
        return self.known[parts]

    def _joined(self, parts: tuple[UOp, ...], steps: int) -> UOp | None:
        first = parts[0]
        if all(part is first for part in parts):
            return _repeated(first, len(parts))
        if all(map(is_copied_as_it_is, parts)):
            return _copy(parts, self.device)
        bases: list[UOp] = []
        for part in parts:
            base, tracker = base_and_tracker(part)
            if (bases and base.op is not bases[0].op) or not is_whole(base, tracker):
                return None
            bases.append(base)
        like = bases[0]
        if like.op not in ELEMENTWISE:
            return None
        if any(b.arg != like.arg or b.dtype is not like.dtype or len(b.src) != len(like.src) for b in bases):
            return None
        made = []
        for place, source in enumerate(like.src):
            if any(b.src[place].dtype is not source.dtype for b in bases):
                return None
            pairs = zip(bases, parts, strict=True)
            column = tuple([reshape(b.src[place], shape_of(part)) for b, part in pairs])
            below = self.joined(column, steps - 1)
            if below is None:
                return None
            made.append(below)
        return UOp(like.op, like.dtype, tuple(made), like.arg)


def _repeated(part: UOp, times: int) -> UOp:
    size, *rest = shape_of(part)
    turns = expand(reshape(part, (1, size, *rest)), (times, size, *rest))
    return reshape(turns, (mul(times, size), *rest))


def _copy(parts: Sequence[UOp], device: UOp) -> UOp:
    """A COPY of what needs no kernel; parts of one memory that follow each other are one."""
    whole = _merged(parts)
    if whole is not None:
        return whole
    made = []
    for part in parts:
        base, _ = base_and_tracker(part)
        if base.op is Ops.COPY and len(base.src) == 2:  # it would be copied twice
            part = reshape(base.src[0], shape_of(part))
        made.append(part if is_number(part) else in_order(part))
    return UOp(Ops.COPY, parts[0].dtype, (*made, device))


def _merged(parts: Sequence[UOp]) -> UOp | None:
    """Parts of one memory that follow each other, as one part of it."""
    memory, tracker = base_and_tracker(parts[0])
    if not is_materialized(memory) or not isinstance(tracker.views[-1].offset, int):
        return None
    begin: sint = tracker.views[-1].offset
    end = begin
    length: sint = 0
    for part in parts:
        base, tracker = base_and_tracker(part)
        if base is not memory or tracker.views[-1].offset != end:
            return None
        end = add(end, prod(shape_of(part)))
        length = add(length, shape_of(part)[0])
    flat = shrink(reshape(memory, (prod(shape_of(memory)),)), ((begin, end),))
    return reshape(flat, (length, *shape_of(parts[0])[1:]))


def _one_by_one(parts: Sequence[UOp], device: UOp) -> UOp:
    """A COPY of the parts, of which those that must be computed are written by few kernels first."""
    made: list[UOp] = []
    computed: list[UOp] = []
    for part in parts:
        as_it_is = is_copied_as_it_is(part)
        if computed and (as_it_is or len(computed) == MAX_CHOICES):
            made.append(_stored(computed))
            computed = []
        (made if as_it_is else computed).append(part)
    if computed:
        made.append(_stored(computed))
    return _copy(made, device) if len(made) > 1 else made[0]


def _stored(parts: Sequence[UOp]) -> UOp:
    node = choice(parts, 0)
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))

"""Movement of tensors: builders of RESHAPE, EXPAND, PERMUTE, PAD, SHRINK and FLIP, which check what they are given.

A movement that changes nothing is the tensor itself, and two neighbours of one kind are one node.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from .rules import shape_of
from .sizes import (
    Shape,
    add,
    as_size,
    at_most,
    pairs_text,
    prod,
    quotient,
    remainder,
    resolve_equal,
    same_shape,
    shape_text,
    size_text,
    sub,
    vmin,
)
from .tracker import ShapeTracker

Span = tuple[sint, sint]


def reshape(u: UOp, shape: Sequence[sint]) -> UOp:
    """The same elements in row-major order, in another shape."""
    new, old = tuple(map(as_size, shape)), shape_of(u)
    if new == old:
        return u
    _check_sizes("reshape", old, new)
    before, after = prod(old), prod(new)
    if not resolve_equal(before, after):
        raise ValueError(
            f"cannot reshape {shape_text(old)} into {shape_text(new)}: "
            f"{size_text(before)} elements into {size_text(after)}"
        )
    if u.op is Ops.RESHAPE:
        u = u.src[0]
        if shape_of(u) == new:
            return u
    return UOp(Ops.RESHAPE, u.dtype, (u,), new)


def resolve_minus_one(shape: Sequence[sint], new: Sequence[sint]) -> Shape:
    """The new shape, in which one -1 stands for whatever size makes it hold the elements of `shape`."""
    new = tuple(map(as_size, new))
    unknown = [axis for axis, size in enumerate(new) if size == -1]
    if not unknown:
        return new
    if len(unknown) > 1:
        raise ValueError(
            f"cannot reshape {shape_text(shape)} into {shape_text(new)}: only one size can be -1"
        )
    before, rest = prod(shape), prod(size for size in new if size != -1)
    if rest == 0:
        raise ValueError(
            f"cannot reshape {shape_text(shape)} into {shape_text(new)}: with a size of 0, -1 could be anything"
        )
    if remainder(before, rest) != 0:
        raise ValueError(
            f"cannot reshape {shape_text(shape)} into {shape_text(new)}: "
            f"{size_text(before)} elements are no multiple of {size_text(rest)}"
        )
    return (*new[: unknown[0]], quotient(before, rest), *new[unknown[0] + 1 :])


def expand(u: UOp, shape: Sequence[sint]) -> UOp:
    """Axes of size 1 repeat to their new size; the others stay."""
    new, old = tuple(map(as_size, shape)), shape_of(u)
    if new == old:
        return u
    if len(new) != len(old):
        raise ValueError(
            f"cannot expand {shape_text(old)} to {shape_text(new)}: {len(old)} axes to {len(new)}; reshape first"
        )
    _check_sizes("expand", old, new)
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        if before != 1 and not resolve_equal(before, after):
            raise ValueError(
                f"cannot expand {shape_text(old)} to {shape_text(new)}: "
                f"axis {axis} has size {size_text(before)}, and only size 1 expands"
            )
    if u.op is Ops.EXPAND:
        u = u.src[0]
    return UOp(Ops.EXPAND, u.dtype, (u,), new)


def permute(u: UOp, order: Sequence[int]) -> UOp:
    """Axis i of the result is axis `order[i]` of `u`."""
    order, rank = tuple(order), len(shape_of(u))
    if sorted(order) != list(range(rank)):
        raise ValueError(
            f"cannot permute {shape_text(shape_of(u))} by {order}: each of the {rank} axes must be named once"
        )
    if u.op is Ops.PERMUTE:
        order = tuple(u.arg[axis] for axis in order)
        u = u.src[0]
    if order == tuple(range(rank)):
        return u
    return UOp(Ops.PERMUTE, u.dtype, (u,), order)


def pad(u: UOp, amounts: Sequence[Span]) -> UOp:
    """Zeros around each axis: `(before, after)` of them."""
    old = shape_of(u)
    pairs = _pairs("pad", old, amounts)
    for before, after in pairs:
        if vmin(before) < 0 or vmin(after) < 0:
            raise ValueError(
                f"cannot pad {shape_text(old)} by {pairs_text(pairs)}: amounts must not be negative"
            )
    if u.op is Ops.PAD:
        pairs = tuple((add(b0, b1), add(a0, a1)) for (b0, a0), (b1, a1) in zip(u.arg, pairs, strict=True))
        u = u.src[0]
    if all(pair == (0, 0) for pair in pairs):
        return u
    return UOp(Ops.PAD, u.dtype, (u,), pairs)


def shrink(u: UOp, spans: Sequence[Span]) -> UOp:
    """Only the part `[begin, end)` of each axis."""
    old = shape_of(u)
    pairs = _pairs("shrink", old, spans)
    for axis, ((begin, end), size) in enumerate(zip(pairs, old, strict=True)):
        if not (at_most(0, begin) and at_most(begin, end) and at_most(end, size)):
            raise ValueError(
                f"cannot shrink {shape_text(old)} to {pairs_text(pairs)}: on axis {axis} "
                f"0 <= {size_text(begin)} <= {size_text(end)} <= {size_text(size)} does not hold for all values"
                if any(isinstance(x, UOp) for x in (begin, end, size))
                else f"cannot shrink {shape_text(old)} to {pairs_text(pairs)}: "
                f"[{size_text(begin)}, {size_text(end)}) is not inside of axis {axis}, which has size {size_text(size)}"
            )
    if u.op is Ops.SHRINK:
        pairs = tuple((add(b0, b1), add(b0, e1)) for (b0, _), (b1, e1) in zip(u.arg, pairs, strict=True))
        u = u.src[0]
        old = shape_of(u)
    if pairs == tuple((0, size) for size in old):
        return u
    return UOp(Ops.SHRINK, u.dtype, (u,), pairs)


def flip(u: UOp, axes: Sequence[int]) -> UOp:
    """These axes run backwards."""
    rank = len(shape_of(u))
    named = set(axes)
    if len(named) != len(axes) or not named <= set(range(rank)):
        raise ValueError(
            f"cannot flip {shape_text(shape_of(u))} along {tuple(axes)}: name axes from 0 to {rank - 1}, each once"
        )
    if u.op is Ops.FLIP:
        named ^= set(u.arg)
        u = u.src[0]
    shape = shape_of(u)
    order = tuple(axis for axis in sorted(named) if shape[axis] != 1)
    if not order:
        return u
    return UOp(Ops.FLIP, u.dtype, (u,), order)


# *** broadcasting


def broadcast_shapes(*shapes: Sequence[sint]) -> Shape:
    """The shape to which all of these expand: axes are matched from the last, and size 1 fits any size."""
    rank = max(map(len, shapes), default=0)
    result: list[sint] = []
    for axis in range(rank):
        found: sint = 1
        for shape in shapes:
            size = shape[axis - rank + len(shape)] if axis >= rank - len(shape) else 1
            if found == 1:
                found = size
            elif size != 1 and not resolve_equal(found, size):
                names = ", ".join(shape_text(s) for s in shapes)
                raise ValueError(
                    f"cannot broadcast {names} together: sizes {size_text(found)} and {size_text(size)} "
                    f"meet on axis {axis - rank}, and neither is 1"
                )
        result.append(found)
    return tuple(result)


def broadcast_to(u: UOp, shape: Sequence[sint]) -> UOp:
    """`u` with axes of size 1 added in front, then expanded to `shape`."""
    new, old = tuple(map(as_size, shape)), shape_of(u)
    if new == old:
        return u
    missing = len(new) - len(old)
    fits = missing >= 0 and all(
        a == 1 or resolve_equal(a, b) for a, b in zip(old, new[missing:], strict=True)
    )
    if not fits:
        raise ValueError(
            f"cannot broadcast {shape_text(old)} to {shape_text(new)}: sizes must be equal, or 1, from the last axis on"
        )
    return expand(reshape(u, (1,) * missing + old), new)


# *** where a chain of movements ends


def base_and_tracker(u: UOp) -> tuple[UOp, ShapeTracker]:
    """The first node below that is no movement, and how `u` looks at its elements."""
    chain = []
    while (found := u.facts.get("base_and_tracker")) is None and u.op in MOVEMENTS:
        chain.append(u)
        u = u.src[0]
    base, tracker = found if found is not None else (u, ShapeTracker.from_shape(shape_of(u)))
    for node in reversed(chain):
        tracker = MOVEMENTS[node.op](tracker, node.arg)
        node.facts["base_and_tracker"] = base, tracker
    return base, tracker


#: Movement ops, and the movement of a tracker that they are.
MOVEMENTS = {
    Ops.RESHAPE: ShapeTracker.reshape,
    Ops.EXPAND: ShapeTracker.expand,
    Ops.PERMUTE: ShapeTracker.permute,
    Ops.PAD: ShapeTracker.pad,
    Ops.SHRINK: ShapeTracker.shrink,
    Ops.FLIP: ShapeTracker.flip,
}


# *** checks


def _check_sizes(verb: str, old: Shape, new: Shape) -> None:
    for size in new:
        if vmin(size) < 0:
            raise ValueError(
                f"cannot {verb} {shape_text(old)} to {shape_text(new)}: size {size_text(size)} is negative"
            )


def _pairs(verb: str, shape: Shape, given: Sequence[Span]) -> tuple[Span, ...]:
    pairs = tuple((as_size(first), as_size(second)) for first, second in given)
    if len(pairs) != len(shape):
        raise ValueError(
            f"cannot {verb} {shape_text(shape)} by {pairs_text(pairs)}: {len(pairs)} pairs for {len(shape)} axes"
        )
    return pairs

"""Movement of tensors: checked builders of RESHAPE, EXPAND, PERMUTE, PAD, SHRINK and FLIP.

A movement that changes nothing is the tensor itself. Every other is a node on top of the tensor it is asked
of: a gradient is asked for by node, so a movement must not reach past the tensor to what is below it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.index import sint
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp
from ..locks import table_lock
from .rules import shape_of
from .sizes import (
    MOST_ELEMENTS,
    Shape,
    add,
    as_size,
    as_sizes,
    at_most,
    at_most_bound,
    bound_size,
    countable,
    elements,
    is_bound,
    pairs_text,
    prod,
    quotient,
    remainder,
    resolve_equal,
    shape_text,
    size_text,
    smax,
    smin,
    sub,
    vmin,
)
from .tracker import ShapeTracker

Span = tuple[sint, sint]


def reshape(u: UOp, shape: Sequence[sint]) -> UOp:
    """The same elements in row-major order, in another shape: one of as many elements.

    They are counted with the values that Variables are bound to, where it is not certain without.
    """
    new, old = as_sizes(shape), shape_of(u)
    if new == old:
        return u
    if (old, new) in _reshapes or elements(new) == elements(old) is not None:
        node = UOp(Ops.RESHAPE, u.dtype, (u,), new)
        node.facts["shape"] = new
        return node
    _check_sizes("reshape", old, new)
    before, after = prod(old), prod(new)
    if not resolve_equal(before, after) and bound_size(before) != bound_size(after):
        asked = f"reshape {shape_text(old)} into {shape_text(new)}"
        raise _cannot(asked, f"{size_text(before)} elements into {size_text(after)}")
    _note(_reshapes, (old, new))
    return UOp(Ops.RESHAPE, u.dtype, (u,), new)


#: Pairs of shapes of plain integers that were found to fit before: loops ask for the same again and again.
_reshapes: set[tuple[Shape, Shape]] = set()
_expands: set[tuple[Shape, Shape]] = set()
MAX_NOTED = 4096


def _note(fits: set[tuple[Shape, Shape]], pair: tuple[Shape, Shape]) -> None:
    if all(type(size) is int for shape in pair for size in shape):  # else it is asked what is bound
        if len(fits) >= MAX_NOTED:
            fits.clear()
        fits.add(pair)


def resolve_minus_one(shape: Sequence[sint], new: Sequence[sint]) -> Shape:
    """The new shape, in which one -1 stands for whatever size makes it hold the elements of `shape`."""
    new = tuple(map(as_size, new))
    unknown = [axis for axis, size in enumerate(new) if size == -1]
    if not unknown:
        return new
    asked = f"reshape {shape_text(shape)} into {shape_text(new)}"
    if len(unknown) > 1:
        raise _cannot(asked, "only one size can be -1")
    before, rest = prod(shape), prod(size for size in new if size != -1)
    if rest == 0:
        raise _cannot(asked, "next to a size of 0, -1 could be anything")
    if remainder(before, rest) != 0:
        raise _cannot(asked, f"{size_text(before)} elements are no multiple of {size_text(rest)}")
    return (*new[: unknown[0]], quotient(before, rest), *new[unknown[0] + 1 :])


def expand(u: UOp, shape: Sequence[sint]) -> UOp:
    """Axes of size 1 repeat to their new size; the others stay."""
    new, old = as_sizes(shape), shape_of(u)
    if new == old:
        return u
    if (old, new) in _expands or _expands_to(old, new):
        node = UOp(Ops.EXPAND, u.dtype, (u,), new)
        node.facts["shape"] = new
        return node
    if len(new) != len(old):
        asked = f"expand {shape_text(old)} to {shape_text(new)}"
        raise _cannot(asked, f"{len(old)} axes to {len(new)}; reshape first")
    _check_sizes("expand", old, new)
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        if before != 1 and not resolve_equal(before, after):
            asked = f"expand {shape_text(old)} to {shape_text(new)}"
            raise _cannot(asked, f"axis {axis} has size {size_text(before)}, and only size 1 expands")
    new = countable(new)
    _note(_expands, (old, new))
    return UOp(Ops.EXPAND, u.dtype, (u,), new)


def _expands_to(old: Shape, new: Shape) -> bool:
    """Whether a glance tells that axes of plain numbers expand to these."""
    count = elements(new)
    if count is None or count > MOST_ELEMENTS or len(new) != len(old) or elements(old) is None:
        return False
    for before, after in zip(old, new, strict=True):
        if before is not after and before != after and before != 1:
            return False
    return True


def expanded(scalar: UOp, shape: tuple[sint, ...]) -> UOp:
    """A node of shape () repeated to `shape`."""
    return expand(reshape(scalar, (1,) * len(shape)), shape) if shape else scalar


def permute(u: UOp, order: Sequence[int]) -> UOp:
    """Axis i of the result is axis `order[i]` of `u`."""
    order, old = tuple(order), shape_of(u)
    plain = tuple(range(len(old)))
    if tuple(sorted(order)) != plain:
        raise _cannot(f"permute {shape_text(old)} by {order}", f"name each axis of {plain} once")
    if order == plain:
        return u
    node = UOp(Ops.PERMUTE, u.dtype, (u,), order)
    node.facts["shape"] = tuple([old[axis] for axis in order])
    return node


def pad(u: UOp, amounts: Sequence[Span]) -> UOp:
    """Zeros around each axis: `(before, after)` of them.

    An amount at Variables need not be negative for the values that they are bound to.
    """
    pairs = _pairs("pad", shape_of(u), amounts)
    for before, after in pairs:
        if not (at_most_bound(0, before) and at_most_bound(0, after)):
            asked = f"pad {shape_text(shape_of(u))} by {pairs_text(pairs)}"
            raise _cannot(asked, "the amounts must not be negative; shrink takes elements away")
    if all(pair == (0, 0) for pair in pairs):
        return u
    countable([add(size, add(*pair)) for size, pair in zip(shape_of(u), pairs, strict=True)])
    return UOp(Ops.PAD, u.dtype, (u,), pairs)


def shrink(u: UOp, spans: Sequence[Span]) -> UOp:
    """Only the part `[begin, end)` of each axis.

    Ends at Variables must be inside of the axis for the values that these are bound to.
    """
    old = shape_of(u)
    pairs = _pairs("shrink", old, spans)
    reaching = []
    for axis, ((begin, end), size) in enumerate(zip(pairs, old, strict=True)):
        if at_most(begin, end):
            if at_most(0, begin) and at_most(end, size):
                continue
            if at_most_bound(0, begin) and at_most_bound(end, size):
                reaching.append(axis)
                continue
        limits = f"0 <= {size_text(begin)} <= {size_text(end)} <= {size_text(size)}"
        known = at_most(begin, end) and all(map(is_bound, (begin, end, size)))
        symbolic = any(isinstance(limit, UOp) for limit in (begin, end, size))
        always = " whatever the Variables are bound to" if symbolic and not known else ""
        asked = f"shrink {shape_text(old)} to {pairs_text(pairs)}"
        raise _cannot(asked, f"axis {axis} needs {limits}{always}")
    if pairs == tuple((0, size) for size in old):
        return u
    if reaching:
        return _shrink_inside(u, pairs, reaching)
    return UOp(Ops.SHRINK, u.dtype, (u,), pairs)


def _shrink_inside(u: UOp, pairs: Sequence[Span], reaching: Sequence[int]) -> UOp:
    """A shrink that other values of the Variables would have reach out of these axes.

    It is inside for the values that they are bound to, and whoever runs its kernels with others has to look
    (`at_most_bound`). For those that do not, the ends are moved inside, and what is missing is zeros: no
    kernel reads or writes other memory.
    """
    old = shape_of(u)
    spans: list[Span] = list(pairs)
    around: list[Span] = [(0, 0)] * len(pairs)
    for axis in reaching:
        (begin, end), size = pairs[axis], old[axis]
        length = sub(end, begin)
        if at_most(length, size):  # the same number of elements, from as far as there are so many
            first = smin(smax(begin, 0), sub(size, length))
            spans[axis] = first, add(first, length)
        else:
            first = smin(smax(begin, 0), size)
            last = add(first, smax(sub(smin(end, size), first), 0))
            spans[axis], around[axis] = (first, last), (sub(first, begin), sub(end, last))
    node = UOp(Ops.SHRINK, u.dtype, (u,), tuple(spans))
    if all(pair == (0, 0) for pair in around):
        return node
    return UOp(Ops.PAD, u.dtype, (node,), tuple(around))


def flip(u: UOp, axes: Sequence[int]) -> UOp:
    """These axes run backwards."""
    old, named = shape_of(u), set(axes)
    if len(named) != len(axes) or not named <= set(range(len(old))):
        asked = f"flip {shape_text(old)} along {tuple(axes)}"
        raise _cannot(asked, f"name each axis once, among {tuple(range(len(old)))}")
    order = tuple(axis for axis in sorted(named) if old[axis] != 1)
    return UOp(Ops.FLIP, u.dtype, (u,), order) if order else u


# *** broadcasting


def broadcast_shapes(*shapes: Sequence[sint]) -> Shape:
    """The shape to which all of these expand: axes are matched from the last, and size 1 fits any size."""
    if len(shapes) == 2 and not shapes[1]:
        return tuple(shapes[0])
    rank = max(map(len, shapes), default=0)
    result: list[sint] = []
    for axis in range(rank):
        found: sint = 1
        for shape in shapes:
            size = shape[axis - rank + len(shape)] if axis >= rank - len(shape) else 1
            if found == 1:
                found = size
            elif size != 1 and not resolve_equal(found, size):
                asked = f"broadcast {', '.join(map(shape_text, shapes))} together"
                sizes = f"{size_text(found)} and {size_text(size)}"
                raise _cannot(asked, f"axis {axis - rank} has the sizes {sizes}, and neither is 1")
        result.append(found)
    return tuple(result)


def broadcast_to(u: UOp, shape: Sequence[sint]) -> UOp:
    """`u` with axes of size 1 added in front, then expanded to `shape`."""
    new, old = as_sizes(shape), shape_of(u)
    if new == old:
        return u
    missing = len(new) - len(old)
    fitted = (1,) * missing + old if missing else old
    if (fitted, new) in _expands:
        return expand(reshape(u, fitted) if missing else u, new)
    fits = missing >= 0 and all(
        a == 1 or resolve_equal(a, b) for a, b in zip(old, new[missing:], strict=True)
    )
    if not fits:
        asked = f"broadcast {shape_text(old)} to {shape_text(new)}"
        raise _cannot(asked, "from the last axis on, sizes must be equal or 1")
    return expand(reshape(u, fitted), new)


# *** chains of movements


def below_movement(node: UOp, through: frozenset[Ops] = MOVEMENT) -> UOp:
    """The first node below that is no movement."""
    while node.op in through:
        node = node.src[0]
    return node


def forward_to(node: UOp, replacement: UOp) -> None:
    """Record where a node's value is held from now on."""
    base = below_movement(replacement)
    with table_lock:
        node.facts["forwarded_to"] = replacement
        known = base.facts.get("values")
        if known is None:
            base.facts["values"] = [weakref.ref(node)]
        else:
            base.facts["values"] = [*[ref for ref in known if ref() is not None], weakref.ref(node)]


def movements_on(node: UOp, through: frozenset[Ops] = MOVEMENT) -> tuple[list[UOp], UOp]:
    """The movements that a node consists of, the last one first, and the first node below that is none."""
    moves = []
    while node.op in through:
        moves.append(node)
        node = node.src[0]
    return moves, node


def moved(base: UOp, moves: Sequence[UOp]) -> UOp:
    """The same movements, the last one first, on another base."""
    for move in reversed(moves):
        base = move.replace(src=(base,))
    return base


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
MOVEMENTS: dict[Ops, Callable[[ShapeTracker, Any], ShapeTracker]] = {
    Ops.RESHAPE: ShapeTracker.reshape,
    Ops.EXPAND: ShapeTracker.expand,
    Ops.PERMUTE: ShapeTracker.permute,
    Ops.PAD: ShapeTracker.pad,
    Ops.SHRINK: ShapeTracker.shrink,
    Ops.FLIP: ShapeTracker.flip,
}


# *** checks


def _cannot(asked: str, reason: str) -> ValueError:
    return ValueError(f"cannot {asked}: {reason}")


def _check_sizes(verb: str, old: Shape, new: Shape) -> None:
    for size in new:
        if vmin(size) < 0:
            be = "is" if isinstance(size, int) else "can be"
            raise _cannot(
                f"{verb} {shape_text(old)} to {shape_text(new)}", f"size {size_text(size)} {be} negative"
            )


def _pairs(verb: str, shape: Shape, given: Sequence[Span]) -> tuple[Span, ...]:
    pairs = tuple((as_size(first), as_size(second)) for first, second in given)
    if len(pairs) != len(shape):
        asked = f"{verb} {shape_text(shape)} by {pairs_text(pairs)}"
        raise _cannot(asked, f"{len(pairs)} pairs for {len(shape)} axes")
    return pairs

"""The gradient of each op: what of its result's gradient every source gets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ..dtype import dtypes
from ..ir.index import sint
from ..ir.mesh import box_at
from ..ir.ops import COMPARISONS, Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..shape import movement
from ..shape.rules import shape_of
from ..shape.sizes import add, prod
from .joins import condition_of, is_choice_of_two
from .nodes import counter, filled, gather, iota, like, scan, scan_winner, scatter, sum_axes, times

Grads = tuple[UOp | None, ...]
#: (gradient of the node's result, the node) → the gradient of each source; None where there is none.
Rule = Callable[[UOp, UOp], Grads]


def _no_gradient(grad: UOp, node: UOp) -> Grads:
    return (None,) * len(node.src)


#: The op's result does not depend smoothly on any source, or it has none: nothing flows through it.
NO_GRADIENT: Final[Rule] = _no_gradient


# *** arithmetic


def _fdiv(grad: UOp, node: UOp) -> Grads:
    return grad / node.src[1], -(grad * (node / node.src[1]))


def _fmod(grad: UOp, node: UOp) -> Grads:
    """a - q·b, whose whole quotient q has slope 0."""
    a, b = node.src
    quotient = (a - node) / b
    return grad, -(grad * UOp(Ops.DETACH, node.dtype, (quotient,)))


def _pow(grad: UOp, node: UOp) -> Grads:
    base, exponent = node.src
    zero, one = like(base, 0.0), like(base, 1.0)
    # x⁰ is 1 even where x is 0 or NaN: there the slope is 0, though 0·x⁻¹ is not
    flat = exponent.eq(zero) & (base.eq(zero) | base.ne(base))
    slope = exponent * base.alu(Ops.POW, exponent - one)
    # 0ʸ is 0 for every y > 0: its slope in y is 0, though log 0 is not finite
    constant = base.eq(zero) & (zero <= exponent)
    return flat.where(zero, grad * slope), constant.where(zero, grad * (node * base.alu(Ops.LOG)))


def _extremum(below: Callable[[UOp, UOp], UOp]) -> Rule:
    """MAX and MIN: the winner takes the gradient, equals take half each (as PyTorch does)."""

    def rule(grad: UOp, node: UOp) -> Grads:
        a, b = node.src
        zero, tie, half = like(grad, 0.0), a.eq(b), times(grad, 0.5)
        return (
            tie.where(half, below(a, b).where(zero, grad)),
            tie.where(half, below(b, a).where(zero, grad)),
        )

    return rule


def _where(grad: UOp, node: UOp) -> Grads:
    if is_choice_of_two(node):  # each part is cut out of the gradient by its PAD
        return None, grad, grad
    condition, zero = condition_of(node), like(grad, 0.0)
    return None, condition.where(grad, zero), condition.where(zero, grad)


def _cast(grad: UOp, node: UOp) -> Grads:
    source = node.src[0].dtype
    return (grad.cast(source) if dtypes.is_float(source) and dtypes.is_float(node.dtype) else None,)


# *** movement


def _expand(grad: UOp, node: UOp) -> Grads:
    before, after = shape_of(node.src[0]), shape_of(node)
    return (sum_axes(grad, tuple(i for i, size in enumerate(before) if size != after[i])),)


def _permute(grad: UOp, node: UOp) -> Grads:
    order = node.arg
    return (movement.permute(grad, tuple(sorted(range(len(order)), key=order.__getitem__))),)


def _pad(grad: UOp, node: UOp) -> Grads:
    inner = zip(node.arg, shape_of(node.src[0]), strict=True)
    return (movement.shrink(grad, tuple((before, before + size) for (before, _), size in inner)),)


def _shrink(grad: UOp, node: UOp) -> Grads:
    outer = zip(node.arg, shape_of(node.src[0]), strict=True)
    return (movement.pad(grad, tuple((begin, size - end) for (begin, end), size in outer)),)


# *** reductions


def _reduce_axis(grad: UOp, node: UOp) -> Grads:
    source = node.src[0]
    op, axes = node.arg
    shape = shape_of(source)
    if op is Ops.ADD:
        return (movement.expand(grad, shape),)
    if op is Ops.MUL:
        return (movement.expand(grad, shape) * _product_of_others(source, axes),)
    # the greatest, or least: all that reach it share alike (as torch.amax)
    reached = source.eq(movement.expand(node, shape))
    share = grad / sum_axes(reached.cast(grad.dtype), axes)
    return (reached.where(movement.expand(share, shape), like(source, 0.0)),)


def _product_of_others(x: UOp, axes: tuple[int, ...]) -> UOp:
    """For each element the product of all others along `axes`, without a division: right where some are zero.

    It is (product of those before) · (product of those after), two scans.
    """
    shape = shape_of(x)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    order = kept + tuple(axes)
    moved = movement.permute(x, order)
    count = prod(shape[axis] for axis in axes)
    lines = movement.reshape(moved, tuple(shape[i] for i in kept) + (count,))
    last = len(kept)
    backwards = movement.flip(lines, (last,))
    others = _products_before(lines, last) * movement.flip(_products_before(backwards, last), (last,))
    back = movement.reshape(others, tuple(shape[i] for i in order))
    return movement.permute(back, tuple(sorted(range(len(order)), key=order.__getitem__)))


# *** running values


def _products_before(x: UOp, axis: int) -> UOp:
    return _later(scan(x, Ops.MUL, axis), axis, 1.0)


def _later(x: UOp, axis: int, first: float) -> UOp:
    """The elements one place later along an axis; what was last is gone, `first` comes in."""
    shape = shape_of(x)
    everything = tuple((0, size) for size in shape)
    before = (*everything[:axis], (0, shape[axis] - 1), *everything[axis + 1 :])
    padding = tuple((1, 0) if i == axis else (0, 0) for i in range(len(shape)))

    def moved(node: UOp) -> UOp:
        return movement.pad(movement.shrink(node, before), padding)

    if first == 0:
        return moved(x)
    return moved(filled(shape, dtypes.bool, True)).where(moved(x), like(x, first))


def _scan(grad: UOp, node: UOp) -> Grads:
    x, *factors = node.src
    op, (axis,) = node.arg

    def from_the_end(values: UOp, factor: UOp) -> UOp:
        """z[i] = values[i] + factor[i+1]·z[i+1]."""
        late = _later(movement.flip(factor, (axis,)), axis, 0.0)
        return movement.flip(scan(movement.flip(values, (axis,)), Ops.MULACC, axis, late), (axis,))

    if op is Ops.ADD:
        return (movement.flip(scan(movement.flip(grad, (axis,)), Ops.ADD, axis), (axis,)),)
    if op is Ops.MUL:  # without a division: right where some elements are zero
        return (from_the_end(grad, x) * _products_before(x, axis),)
    if op is Ops.MULACC:
        carried = from_the_end(grad, factors[0])
        return carried, carried * _later(node, axis, 0.0)
    # the greatest so far, or least: the last of equals takes all (as torch.cummax)
    shape = shape_of(x)
    flat, step = (prod(shape),), prod(shape[axis + 1 :])
    if not isinstance(step, int):
        raise NotImplementedError(
            "the gradient of a running extreme outside of symbolic axes is not implemented yet"
        )
    place = counter(node, shape, axis)
    behind = (place - scan_winner(node, place)) * filled(shape, place.dtype, step)
    where = counter(node, flat, 0) - movement.reshape(behind, flat)
    nothing = filled(flat, grad.dtype, 0.0)
    return (movement.reshape(scatter(nothing, where, movement.reshape(grad, flat), Ops.ADD), shape),)


# *** computed addresses


def _gather(grad: UOp, node: UOp) -> Grads:
    x, index = node.src
    return scatter(like(x, 0.0), index, grad, Ops.ADD), None


def _scatter(grad: UOp, node: UOp) -> Grads:
    base, index, values = node.src
    if node.arg is Ops.ADD:
        return grad, None, gather(grad, index)
    if node.arg is None:
        return scatter(grad, index, like(values, 0.0), None), None, _stored_last(node, gather(grad, index))
    if node.arg in (Ops.MAX, Ops.MIN):
        # all that reach the result share alike, the old element included
        kept, hit = base.eq(node), values.eq(gather(node, index))
        count = scatter(kept.cast(grad.dtype), index, hit.cast(grad.dtype), Ops.ADD)
        share = grad / count
        zero = like(values, 0.0)
        return kept.where(share, like(base, 0.0)), None, hit.where(gather(share, index), zero)
    if node.arg is Ops.MUL:
        # the product of all others, by a division; where one factor is 0, it is the product of the rest
        zero = like(grad, 0.0)
        no_base, no_value = base.eq(like(base, 0.0)), values.eq(like(values, 0.0))
        one, ones = like(base, 1.0), like(values, 1.0)
        rest = scatter(no_base.where(one, base), index, no_value.where(ones, values), Ops.MUL)
        zeros = scatter(no_base.cast(grad.dtype), index, no_value.cast(grad.dtype), Ops.ADD)
        whole, alone = zeros.eq(zero), zeros.eq(one)
        of_base = no_base.where(alone.where(rest, zero), whole.where(rest / no_base.where(one, base), zero))
        here, count = gather(rest, index), gather(zeros, index)
        nothing = like(values, 0.0)
        of_value = no_value.where(
            count.eq(ones).where(here, nothing),
            count.eq(nothing).where(here / no_value.where(ones, values), nothing),
        )
        return grad * of_base, None, gather(grad, index) * of_value
    raise NotImplementedError(
        f"the gradient of a scatter that combines by {node.arg.name} is not implemented yet"
    )


def _stored_last(node: UOp, grad: UOp) -> UOp:
    """`grad` where a value is the last one stored at its place, so that it is still there; 0 elsewhere."""
    base, index, _ = node.src
    shape = shape_of(index)
    turn = movement.reshape(iota(node, prod(shape)), shape)
    last = gather(scatter(filled(shape_of(base), dtypes.int64, -1), index, turn, None), index)
    return last.eq(turn).where(grad, like(grad, 0.0))


def _copy(grad: UOp, node: UOp) -> Grads:
    """Each source's part of the gradient, on the device that the source is on."""
    *copied, target = node.src
    terms: list[UOp | None] = []
    begin: sint = 0
    for source in copied:
        part = grad
        if len(copied) > 1:
            end = add(begin, shape_of(source)[0])
            part = movement.shrink(grad, ((begin, end), *((0, size) for size in shape_of(source)[1:])))
            begin = end
        device = device_of(source)
        if device not in (None, target.arg):
            part = UOp(Ops.COPY, grad.dtype, (part, UOp(Ops.DEVICE, arg=device)))
        terms.append(part)
    return (*terms, None)


def _collective(grad: UOp, node: UOp) -> Grads:
    raise NotImplementedError(
        f"the gradient of {node.arg.kind}: gradients are asked of tensors on a mesh, not of what ranks send"
    )


def _assign(grad: UOp, node: UOp) -> Grads:
    if node.arg is not None:
        raise NotImplementedError(
            "the gradient through an assignment to a part of a tensor is not implemented yet"
        )
    return None, grad


def _multi(grad: UOp, node: UOp) -> Grads:
    """The gradient of each part, on its device; of copies, which are equal, the first one has it all."""
    arg, shape = node.arg, shape_of(node)
    shards: list[UOp | None] = []
    done = set()
    for place, device in zip(arg.here, arg.local, strict=True):
        box = box_at(arg, shape, place)
        if box in done:
            shards.append(None)
            continue
        done.add(box)
        target = UOp(Ops.DEVICE, arg=device)
        shards.append(UOp(Ops.COPY, grad.dtype, (movement.shrink(grad, box), target)))
    return tuple(shards)


LN2, TWO_BY_SQRT_PI = math.log(2.0), 2.0 / math.sqrt(math.pi)

GRADIENTS: dict[Ops, Rule] = {
    # arithmetic
    Ops.ADD: lambda grad, node: (grad, grad),
    Ops.SUB: lambda grad, node: (grad, -grad),
    Ops.MUL: lambda grad, node: (grad * node.src[1], grad * node.src[0]),
    Ops.MULACC: lambda grad, node: (grad * node.src[1], grad * node.src[0], grad),
    Ops.NEG: lambda grad, node: (-grad,),
    Ops.FDIV: _fdiv,
    Ops.FMOD: _fmod,
    Ops.RECIP: lambda grad, node: (-(grad * (node * node)),),
    Ops.POW: _pow,
    Ops.MAX: _extremum(lambda a, b: a < b),
    Ops.MIN: _extremum(lambda a, b: b < a),
    Ops.WHERE: _where,
    Ops.CAST: _cast,
    # functions
    Ops.SQRT: lambda grad, node: (grad / times(node, 2.0),),
    Ops.EXP: lambda grad, node: (grad * node,),
    Ops.LOG: lambda grad, node: (grad / node.src[0],),
    Ops.EXP2: lambda grad, node: (grad * times(node, LN2),),
    Ops.LOG2: lambda grad, node: (grad / times(node.src[0], LN2),),
    Ops.SIN: lambda grad, node: (grad * node.src[0].alu(Ops.COS),),
    Ops.COS: lambda grad, node: (-(grad * node.src[0].alu(Ops.SIN)),),
    Ops.TANH: lambda grad, node: (grad * (like(node, 1.0) - node * node),),
    Ops.ERF: lambda grad, node: (grad * times((-(node.src[0] * node.src[0])).alu(Ops.EXP), TWO_BY_SQRT_PI),),
    Ops.TRUNC: lambda grad, node: (like(grad, 0.0),),
    # movement
    Ops.RESHAPE: lambda grad, node: (movement.reshape(grad, shape_of(node.src[0])),),
    Ops.EXPAND: _expand,
    Ops.PERMUTE: _permute,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: lambda grad, node: (movement.flip(grad, node.arg),),
    # reductions and computed addresses
    Ops.REDUCE_AXIS: _reduce_axis,
    Ops.GATHER: _gather,
    Ops.SCATTER: _scatter,
    Ops.SCAN: _scan,
    # where data is
    Ops.COPY: _copy,
    Ops.COLLECTIVE: _collective,
    Ops.CONTIGUOUS: lambda grad, node: (grad,),
    Ops.ASSIGN: _assign,
    Ops.MULTI: _multi,
    # the first source is the value; its gradient is what the author of the Function says
    Ops.FUNCTION: lambda grad, node: node.arg.gradients(grad, node),
    # nothing flows through these
    **dict.fromkeys((Ops.DETACH, Ops.BITCAST, Ops.IDIV, Ops.MOD, Ops.DP4A), NO_GRADIENT),
    Ops.PROGRAM: NO_GRADIENT,  # who makes one may say its gradient: then it stands below a FUNCTION
    **dict.fromkeys((Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, *COMPARISONS), NO_GRADIENT),
    Ops.LDEXP: NO_GRADIENT,  # what functions are made of on their target
    Ops.CHECK: NO_GRADIENT,  # its values are indices, or whether they are good
    **dict.fromkeys((Ops.BUFFER, Ops.BUFFER_VIEW, Ops.DEVICE, Ops.UNIQUE, Ops.KERNEL), NO_GRADIENT),
    **dict.fromkeys((Ops.CONST, Ops.IOTA, Ops.BIND, Ops.DEFINE_VAR), NO_GRADIENT),
}

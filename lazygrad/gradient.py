"""The gradient of every operation of the tensor graph: graph in, graph out.

`gradient(root, grad, targets)` walks the graph below `root` once, users first, and returns for each target
the graph of its gradient. That graph is made of the same operations, so it can be differentiated again,
fused, and printed. `GRADIENTS` has a cell for every op that may stand in a tensor graph: a rule, or
NO_GRADIENT.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from .dtype import ConstType, DType, dtypes, sum_acc_dtype
from .ir.args import ReduceArg
from .ir.device import device_of
from .ir.index import sint
from .ir.ops import ELEMENTWISE, MOVEMENT, Ops
from .ir.uop import UOp
from .shape import movement
from .shape.rules import shape_of
from .shape.sizes import add, prod

Grads = tuple[UOp | None, ...]
#: (gradient of the node's result, the node) → the gradient of each source; None where there is none.
Rule = Callable[[UOp, UOp], Grads]


def _no_gradient(grad: UOp, node: UOp) -> Grads:
    return (None,) * len(node.src)


#: The op's result does not depend smoothly on any source, or it has none: nothing flows through it.
NO_GRADIENT: Final[Rule] = _no_gradient


# *** nodes of a given shape


def filled(shape: tuple[sint, ...], dtype: DType, value: ConstType) -> UOp:
    """A constant of this shape, without memory."""
    return expanded(UOp.const(dtype, value), shape)


def expanded(scalar: UOp, shape: tuple[sint, ...]) -> UOp:
    """A node of shape () repeated to `shape`."""
    return movement.expand(movement.reshape(scalar, (1,) * len(shape)), shape) if shape else scalar


def _like(node: UOp, value: ConstType) -> UOp:
    return filled(shape_of(node), node.dtype, value)


def _times(node: UOp, value: ConstType) -> UOp:
    return node * _like(node, value)


def reduce_axes(node: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """Combine along axes, which keep size 1; axes of size 1 have nothing to combine."""
    axes = tuple(a for a in axes if shape_of(node)[a] != 1)
    return UOp(Ops.REDUCE_AXIS, node.dtype, (node,), ReduceArg(op, axes)) if axes else node


def sum_axes(node: UOp, axes: tuple[int, ...]) -> UOp:
    """The sum along axes, which keep size 1, in the node's dtype but accumulated in a dtype wide enough."""
    wide = sum_acc_dtype(node.dtype)
    return reduce_axes(node.cast(wide), Ops.ADD, axes).cast(node.dtype)


def cosine(x: UOp) -> UOp:
    """cos(x) by one SIN: sin(π/2 - |x|) near zero, where the argument is exact, and 1 - 2·sin²(x/2) far away.

    π/2 comes in two parts, so that the zeros at ±π/2 keep their relative accuracy; beyond |x| = 3 the error
    is absolute, two units in the last place of 1 at most.
    """
    low_part = math.pi / 2 - _rounded(math.pi / 2, x.dtype)
    if x.dtype is dtypes.float64:
        low_part = 6.123233995736766e-17  # π/2 minus its float64
    half_pi, rest = _like(x, math.pi / 2), _like(x, low_part)
    positive, negative = (half_pi - x) + rest, (half_pi + x) + rest
    near = (_like(x, -3.0) < x) & (x < _like(x, 3.0))
    sine = near.where((x < _like(x, 0.0)).where(negative, positive), _times(x, 0.5)).alu(Ops.SIN)
    return near.where(sine, _like(x, 1.0) - _times(sine * sine, 2.0))


def _rounded(value: float, dtype: DType) -> float:
    return float(UOp.const(dtype, value).arg)


def _iota(like: UOp, size: sint) -> UOp:
    """0, 1, ... on the device of a node."""
    device = device_of(like)
    return UOp(Ops.IOTA, dtypes.int64, () if device is None else (UOp(Ops.DEVICE, arg=device),), size)


# *** arithmetic


def _fdiv(grad: UOp, node: UOp) -> Grads:
    return grad / node.src[1], -(grad * (node / node.src[1]))


def _pow(grad: UOp, node: UOp) -> Grads:
    base, exponent = node.src
    zero, one = _like(base, 0.0), _like(base, 1.0)
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
        zero, tie, half = _like(grad, 0.0), a.eq(b), _times(grad, 0.5)
        return (
            tie.where(half, below(a, b).where(zero, grad)),
            tie.where(half, below(b, a).where(zero, grad)),
        )

    return rule


def _where(grad: UOp, node: UOp) -> Grads:
    if _is_join(node):  # each part is cut out of the gradient by its PAD
        return None, grad, grad
    condition, zero = node.src[0], _like(grad, 0.0)
    return None, condition.where(grad, zero), condition.where(zero, grad)


def _is_join(node: UOp) -> bool:
    """Whether a WHERE is two values one behind the other: each padded by the size of the other, and True
    padded as the first is.
    """
    condition, first, second = node.src
    if any(source.op is not Ops.PAD for source in node.src) or condition.arg != first.arg:
        return False
    inner, size, other = (shape_of(source.src[0]) for source in node.src)
    whole = condition.src[0]
    while whole.op in MOVEMENT - {Ops.PAD}:
        whole = whole.src[0]
    if whole.op is not Ops.CONST or whole.arg is not True or inner != size:
        return False
    axes = [i for i, amounts in enumerate(first.arg) if amounts != (0, 0)]
    behind = tuple((0, other[i]) if i in axes else (0, 0) for i in range(len(size)))
    front = tuple((size[i], 0) if i in axes else (0, 0) for i in range(len(size)))
    return len(axes) == 1 and first.arg == behind and second.arg == front


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
    return (reached.where(movement.expand(share, shape), _like(source, 0.0)),)


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


def scan(x: UOp, op: Ops, axis: int, *factor: UOp) -> UOp:
    """Along an axis, each element combined with all before it; MULACC: y[i] = y[i-1]·factor[i] + x[i]."""
    if shape_of(x)[axis] == 1:
        return x
    return UOp(Ops.SCAN, x.dtype, (x, *factor), ReduceArg(op, (axis,)))


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
    return moved(filled(shape, dtypes.bool, True)).where(moved(x), _like(x, first))


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
            "the gradient of a running extreme outside of symbolic axes is not there yet"
        )
    place = _counter(node, shape, axis)
    behind = (place - scan_winner(node, place)) * filled(shape, place.dtype, step)
    where = _counter(node, flat, 0) - movement.reshape(behind, flat)
    nothing = filled(flat, grad.dtype, 0.0)
    return (movement.reshape(scatter(nothing, where, movement.reshape(grad, flat), Ops.ADD), shape),)


def scan_winner(node: UOp, place: UOp) -> UOp:
    """Which element a running maximum (or minimum) is, counted by `place`: the last of equals; NaN stays."""
    x, (axis,) = node.src[0], node.arg.axes
    wins = x.eq(node) | x.ne(x) if dtypes.is_float(x.dtype) else x.eq(node)
    return scan(wins.where(place, _like(place, 0)), Ops.MAX, axis)


def _counter(like: UOp, shape: tuple[sint, ...], axis: int) -> UOp:
    """0, 1, ... along one axis of a shape, on the device of a node."""
    counter = _iota(like, shape[axis])
    row = movement.reshape(counter, tuple(size if i == axis else 1 for i, size in enumerate(shape)))
    return movement.expand(row, shape)


# *** computed addresses


def gather(x: UOp, index: UOp) -> UOp:
    return UOp(Ops.GATHER, x.dtype, (x, index))


def scatter(base: UOp, index: UOp, values: UOp, op: Ops | None) -> UOp:
    return UOp(Ops.SCATTER, base.dtype, (base, index, values), op)


def _gather(grad: UOp, node: UOp) -> Grads:
    x, index = node.src
    return scatter(_like(x, 0.0), index, grad, Ops.ADD), None


def _scatter(grad: UOp, node: UOp) -> Grads:
    base, index, values = node.src
    if node.arg is Ops.ADD:
        return grad, None, gather(grad, index)
    if node.arg is None:
        return scatter(grad, index, _like(values, 0.0), None), None, _stored_last(node, gather(grad, index))
    if node.arg in (Ops.MAX, Ops.MIN):
        # all that reach the result share alike, the old element included
        kept, hit = base.eq(node), values.eq(gather(node, index))
        count = scatter(kept.cast(grad.dtype), index, hit.cast(grad.dtype), Ops.ADD)
        share = grad / count
        zero = _like(values, 0.0)
        return kept.where(share, _like(base, 0.0)), None, hit.where(gather(share, index), zero)
    if node.arg is Ops.MUL:
        # the product of all others, by a division; where one factor is 0, it is the product of the rest
        zero = _like(grad, 0.0)
        no_base, no_value = base.eq(_like(base, 0.0)), values.eq(_like(values, 0.0))
        one, ones = _like(base, 1.0), _like(values, 1.0)
        rest = scatter(no_base.where(one, base), index, no_value.where(ones, values), Ops.MUL)
        zeros = scatter(no_base.cast(grad.dtype), index, no_value.cast(grad.dtype), Ops.ADD)
        whole, alone = zeros.eq(zero), zeros.eq(one)
        of_base = no_base.where(alone.where(rest, zero), whole.where(rest / no_base.where(one, base), zero))
        here, count = gather(rest, index), gather(zeros, index)
        nothing = _like(values, 0.0)
        of_value = no_value.where(
            count.eq(ones).where(here, nothing),
            count.eq(nothing).where(here / no_value.where(ones, values), nothing),
        )
        return grad * of_base, None, gather(grad, index) * of_value
    raise NotImplementedError(f"the gradient of a scatter that combines by {node.arg.name} is not there yet")


def _stored_last(node: UOp, grad: UOp) -> UOp:
    """`grad` where a value is the last one stored at its place, so that it is still there; 0 elsewhere."""
    base, index, _ = node.src
    shape = shape_of(index)
    turn = movement.reshape(_iota(node, prod(shape)), shape)
    last = gather(scatter(filled(shape_of(base), dtypes.int64, -1), index, turn, None), index)
    return last.eq(turn).where(grad, _like(grad, 0.0))


def _copy(grad: UOp, node: UOp) -> Grads:
    """Each source's part of the gradient, on the device that the source is on."""
    *copied, target = node.src
    parts: list[UOp | None] = []
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
        parts.append(part)
    return (*parts, None)


def _assign(grad: UOp, node: UOp) -> Grads:
    if node.arg is not None:
        raise NotImplementedError("the gradient through an assignment to a part of a tensor is not there yet")
    return None, grad


def _multi(grad: UOp, node: UOp) -> Grads:
    """The gradient of each part, on its device; of copies, which are equal, the first one has it all."""
    axis, devices = node.arg
    targets = [UOp(Ops.DEVICE, arg=name) for name in devices]
    if axis is None:
        return (UOp(Ops.COPY, grad.dtype, (grad, targets[0])), *[None] * (len(devices) - 1))
    parts: list[UOp | None] = []
    begin: sint = 0
    for part, target in zip(node.src, targets, strict=True):
        end = add(begin, shape_of(part)[axis])
        spans = tuple((begin, end) if i == axis else (0, size) for i, size in enumerate(shape_of(node)))
        parts.append(UOp(Ops.COPY, grad.dtype, (movement.shrink(grad, spans), target)))
        begin = end
    return tuple(parts)


LN2, TWO_BY_SQRT_PI = math.log(2.0), 2.0 / math.sqrt(math.pi)

GRADIENTS: dict[Ops, Rule] = {
    # arithmetic
    Ops.ADD: lambda grad, node: (grad, grad),
    Ops.SUB: lambda grad, node: (grad, -grad),
    Ops.MUL: lambda grad, node: (grad * node.src[1], grad * node.src[0]),
    Ops.MULACC: lambda grad, node: (grad * node.src[1], grad * node.src[0], grad),
    Ops.NEG: lambda grad, node: (-grad,),
    Ops.FDIV: _fdiv,
    Ops.RECIP: lambda grad, node: (-(grad * (node * node)),),
    Ops.POW: _pow,
    Ops.MAX: _extremum(lambda a, b: a < b),
    Ops.MIN: _extremum(lambda a, b: b < a),
    Ops.WHERE: _where,
    Ops.CAST: _cast,
    # functions
    Ops.SQRT: lambda grad, node: (grad / _times(node, 2.0),),
    Ops.EXP: lambda grad, node: (grad * node,),
    Ops.LOG: lambda grad, node: (grad / node.src[0],),
    Ops.EXP2: lambda grad, node: (grad * _times(node, LN2),),
    Ops.LOG2: lambda grad, node: (grad / _times(node.src[0], LN2),),
    Ops.SIN: lambda grad, node: (grad * cosine(node.src[0]),),
    Ops.TANH: lambda grad, node: (grad * (_like(node, 1.0) - node * node),),
    Ops.ERF: lambda grad, node: (grad * _times((-(node.src[0] * node.src[0])).alu(Ops.EXP), TWO_BY_SQRT_PI),),
    Ops.TRUNC: lambda grad, node: (_like(grad, 0.0),),
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
    Ops.CONTIGUOUS: lambda grad, node: (grad,),
    Ops.ASSIGN: _assign,
    Ops.MULTI: _multi,
    # the first source is the value; its gradient is what the author of the Function says
    Ops.FUNCTION: lambda grad, node: node.arg.gradients(grad, node),
    # nothing flows through these
    **dict.fromkeys(
        (Ops.DETACH, Ops.BITCAST, Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR), NO_GRADIENT
    ),
    Ops.SORT: NO_GRADIENT,
    **dict.fromkeys((Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE), NO_GRADIENT),
    **dict.fromkeys(
        (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.CONST, Ops.IOTA, Ops.BIND, Ops.DEFINE_VAR), NO_GRADIENT
    ),
    **dict.fromkeys((Ops.DEVICE, Ops.UNIQUE, Ops.KERNEL), NO_GRADIENT),
}


# *** masks: what `where` did not take must not answer


class _Mask(NamedTuple):
    """Where the gradient of a node may be other than zero.

    `where(x > 0, log(x), 0)` sends a gradient of 0 to log(x) at x = 0, and 0/0 would be NaN. So the
    condition travels with the gradient, and every product on the way is cut with it again. (Comparing the
    gradient with 0 instead would be wrong for second derivatives.) `near` until a reduction is passed:
    products inside a contraction are not cut.
    """

    condition: UOp
    near: bool


def _negated(condition: UOp) -> UOp:
    return condition.ne(filled(shape_of(condition), dtypes.bool, True))


def _both(mask: _Mask | None, condition: UOp) -> _Mask:
    return _Mask(condition, True) if mask is None else _Mask(mask.condition & condition, mask.near)


def _either(a: _Mask | None, b: _Mask | None) -> _Mask | None:
    if a is None or b is None:
        return None
    return a if a.condition is b.condition else _Mask(a.condition | b.condition, a.near and b.near)


def _mask_of_source(mask: _Mask | None, node: UOp, position: int) -> _Mask | None:
    """The mask of the gradient that a node sends to one of its sources."""
    op = node.op
    if op is Ops.WHERE and _is_join(node):
        return mask  # both parts are all there
    if op is Ops.WHERE:
        return _both(mask, node.src[0] if position == 1 else _negated(node.src[0]))
    if mask is None or op in ELEMENTWISE or op is Ops.CONTIGUOUS:
        return mask
    condition, shape = mask.condition, shape_of(node.src[0])
    if op is Ops.REDUCE_AXIS:
        return _Mask(movement.expand(condition, shape), False)
    if op is Ops.EXPAND:
        # only a condition that is itself constant along the axes needs no reduction
        if condition.op is Ops.EXPAND and shape_of(condition.src[0]) == shape:
            return _Mask(condition.src[0], mask.near)
        return None
    if op in MOVEMENT:
        moved = GRADIENTS[op](condition, node)[0]
        return None if moved is None else _Mask(moved, mask.near)
    return None


#: Their slopes may be infinite or NaN where the value is not used.
_PRODUCTS = frozenset(
    (Ops.FDIV, Ops.RECIP, Ops.POW, Ops.SQRT, Ops.EXP, Ops.LOG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.TANH, Ops.ERF)
)


def _must_cut(mask: _Mask | None, node: UOp, position: int) -> bool:
    if mask is None:
        return False
    if node.op in (Ops.MUL, Ops.MULACC):
        return mask.near and position < 2 and not _is_finite_constant(node.src[1 - position])
    if node.op is Ops.FDIV and position == 0 and _is_finite_constant(node.src[1]):
        return False
    return node.op in _PRODUCTS


def _is_finite_constant(node: UOp) -> bool:
    while node.op in MOVEMENT:
        node = node.src[0]
    return node.op is Ops.CONST and math.isfinite(node.arg)


# *** the walk


def gradient(root: UOp, grad: UOp, targets: Iterable[UOp]) -> dict[UOp, UOp]:
    """The gradient of each target that `root` depends on smoothly.

    Target → a graph of the target's shape and dtype.

    root     what is differentiated, of a float dtype
    grad     the gradient of root's elements, of its shape and dtype (ones, for the gradient of its sum)
    targets  nodes below root (or root itself); one that root does not depend on is missing in the answer
    """
    wanted = set(targets)
    order = root.toposort()
    on_path: set[UOp] = set()
    for node in order:
        if dtypes.is_float(node.dtype) and (
            node in wanted
            or (GRADIENTS.get(node.op) is not NO_GRADIENT and any(s in on_path for s in node.src))
        ):
            on_path.add(node)
    if root not in on_path:
        return {}
    grads: dict[UOp, UOp] = {root: grad}
    masks: dict[UOp, _Mask | None] = {root: None}
    found: dict[UOp, UOp] = {}
    for node in reversed(order):
        total = grads.pop(node, None)
        if total is None:
            continue
        if node in wanted:
            found[node] = total
        mask = masks.pop(node)
        if not any(s in on_path for s in node.src):
            continue
        rule = GRADIENTS.get(node.op)
        if rule is None:
            raise NotImplementedError(f"the gradient of {node.op} is not there yet")
        for position, (source, part) in enumerate(zip(node.src, rule(total, node), strict=True)):
            if part is None or source not in on_path:
                continue
            if mask is not None and _must_cut(mask, node, position):
                part = mask.condition.where(part, _like(part, 0.0))
            source_mask = _mask_of_source(mask, node, position)
            if source in grads:
                grads[source] = grads[source] + part
                masks[source] = _either(masks[source], source_mask)
            else:
                grads[source], masks[source] = part, source_mask
    return found

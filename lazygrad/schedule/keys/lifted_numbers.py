"""Numbers that change from step to step are no part of a structure: they become arguments of its kernels.

A learning rate, a counter, the offset of a view: the first plan of a structure has them written in. When
the structure comes again with other numbers, those that differ are *lifted*: a constant becomes the value
of a Variable (its bits, for floats), an offset becomes a Variable; from then on nothing is planned or
compiled for a new number. The lifted kernel computes the same bits as the one with the number written in,
since only exact folds are ever made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...device import Device
from ...dtype import ConstType, DType, const_bits, dtypes
from ...ir.ops import ELEMENTWISE, Ops, execute, to_bits
from ...ir.rewrite import transform
from ...ir.uop import UOp, keep_origin
from ...ir.walks import device_of
from ...shape.rules import shape_of
from ...shape.tracker import ShapeTracker
from ...shape.view import View
from ..graph.requested import Request, constant_below, is_materialized
from ..graph.versions import effective, rebased

#: Constants of these types may be lifted.
_FLOATS = (dtypes.float32, dtypes.float64)
_INTS = (dtypes.int32, dtypes.int64)
#: Integers are lifted out of plain arithmetic only: elsewhere they tell indices and conditions apart.
_INT_USERS = frozenset((Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.MIN, Ops.ASSIGN))
_FLOAT_USERS = (ELEMENTWISE - {Ops.CAST, Ops.BITCAST, Ops.POW}) | {Ops.ASSIGN}


def open_sources(node: UOp) -> tuple[int, ...]:
    """Which sources of a node are constants that may be lifted."""
    known = node.facts.get("open_sources")
    if known is None:
        known = node.facts["open_sources"] = _open_sources(node)
    return known


def _open_sources(node: UOp) -> tuple[int, ...]:
    if node.op not in _FLOAT_USERS:
        return ()
    found = []
    others = node.op is Ops.ASSIGN
    for place, source in enumerate(node.src):
        constant = constant_below(source)
        if constant is None:
            others = True
        elif constant.dtype in _FLOATS or (constant.dtype in _INTS and node.op in _INT_USERS):
            found.append(place)
    return tuple(found) if others else ()


def open_offsets(node: UOp) -> tuple[int, ...]:
    """The offsets in a node's argument that may be lifted, by their numbers among its sizes (`own_sizes`).
    What looks at a file keeps its place: no kernel could bring it from elsewhere.
    """
    if node.op is Ops.ASSIGN:
        return () if simple_view(node) is None else (0,)
    if node.op is not Ops.SHRINK:
        return ()
    device = device_of(node)
    spans, shape = node.arg, shape_of(node.src[0])
    if (device is not None and not Device.runs_kernels(device)) or not all(
        type(begin) is int and type(end) is int for begin, end in spans
    ):
        return ()
    pairs = enumerate(zip(spans, shape, strict=True))
    return tuple([2 * axis for axis, ((begin, end), size) in pairs if end - begin != size])


def simple_view(node: UOp) -> View | None:
    """The view that an ASSIGN writes, if it is one of plain numbers without a mask."""
    if not isinstance(node.arg, ShapeTracker) or len(node.arg.views) > 1:
        return None
    view = node.arg.views[0]
    numbers = (view.offset, *view.shape, *view.strides)
    return view if view.mask is None and all(type(n) is int for n in numbers) else None


def open_value(node: UOp, place: int) -> Any:
    """The number at an open source, as a key: 0.0 and -0.0 differ."""
    constant = constant_below(node.src[place])
    if constant is None:
        raise RuntimeError("an open source is a constant")
    return const_bits(constant.arg, constant.dtype)


def lift(asked: Request, lifted: frozenset[int]) -> Request:
    """The graph with the numbers at these positions lifted.

    Positions count as a `Structure` meets them: for each node its open sources, then its open offsets.
    """
    made: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    position = 0
    for node in asked.order:
        if is_materialized(node) or node.op is Ops.BIND or constant_below(node) is not None:
            continue
        src = [made.get(s, s) for s in (effective(s) if "forwarded_to" in s.facts else s for s in node.src)]
        for place in open_sources(node):
            if position in lifted:
                src[place] = _lifted_constant(node.src[place], position)
            position += 1
        arg = node.arg
        offsets = open_offsets(node)
        if not lifted.isdisjoint(range(position, position + len(offsets))):
            arg = _lifted_offsets(node, position, lifted)
        position += len(offsets)
        new = UOp(node.op, node.dtype, tuple(src), arg)
        if new is not node:
            made[node] = new
            back[new] = node
            keep_origin(new, node)
    opened = Request.of([made.get(root, root) for root in asked.roots])
    before = asked.stands_for
    if before:
        back = {**before, **{new: before.get(old, old) for new, old in back.items()}}
    return replace(opened, waiting=asked.waiting, stands_for=back, grown=asked.grown)


def _lifted_constant(source: UOp, position: int) -> UOp:
    """The same movements on a scalar that is an argument of the kernel."""
    constant = constant_below(source)
    if constant is None:
        raise RuntimeError("an open source is a constant")
    return rebased(source, _scalar(constant.arg, constant.dtype, position))


def _scalar(value: ConstType, dtype: DType, position: int) -> UOp:
    integer = dtype
    number: Any = value
    if dtypes.is_float(dtype):
        integer = dtypes.int32 if dtype.itemsize == 4 else dtypes.int64
        bits = to_bits(value, dtype)
        number = bits - (1 << integer.itemsize * 8) if bits >> (integer.itemsize * 8 - 1) else bits
    low, high = int(dtypes.min(integer)), int(dtypes.max(integer))
    variable = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"{LIFTED}{position}", low, high))
    return UOp(Ops.CAST, integer, (variable.bind(number),)).bitcast(dtype)


#: Names of lifted constants begin with this; in a kernel they are called const0, const1, ... as they are met.
LIFTED = "lifted:"


def argument_name(name: str, taken: Iterable[str]) -> str:
    """What a kernel calls a Variable: names met twice with different values, and lifted constants, are
    numbered.
    """
    known = set(taken)
    first = 1
    if name.startswith(LIFTED):
        name, first = "const", 0
    elif name not in known:
        return name
    return next(text for n in range(first, len(known) + 2) if (text := f"{name}{n}") not in known)


def lifted_values(binds: Iterable[UOp]) -> tuple[tuple[str, int], ...]:
    """The lifted constants among a kernel's bound Variables: (name in the kernel, number)."""
    taken: list[str] = []
    found = []
    for bind in binds:
        variable, number = bind.unbind()
        taken.append(argument_name(variable.arg[0], taken))
        if variable.arg[0].startswith(LIFTED):
            found.append((taken[-1], number))
    return tuple(found)


def with_constants(ast: UOp, numbers: dict[str, int]) -> UOp:
    """A kernel's AST with lifted constants written in again."""
    scalars: dict[UOp, ConstType] = {}

    def with_number(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is Ops.DEFINE_VAR and node.arg[0] in numbers:
            scalars[node] = numbers[node.arg[0]]
        below = scalars.get(node.src[0]) if src else None
        if below is None:
            return None
        if node.op is Ops.VIEW:
            return UOp(Ops.CONST, node.dtype, (UOp(Ops.VIEW, arg=node.arg),), below)
        # the bits of a float, or an integer of the right dtype
        value = scalars[node] = execute(node.op, node.dtype, (below,), node.src[0].dtype)
        return UOp(Ops.CONST, node.dtype, (UOp(Ops.VIEW, arg=ShapeTracker.from_shape(())),), value)

    return transform(ast, with_number, None)


def _lifted_offsets(node: UOp, position: int, lifted: frozenset[int]) -> Any:
    if node.op is Ops.ASSIGN:
        view = node.arg.views[0]
        size = 1 + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
        before: Any = node.src[0]
        while before.op is Ops.ASSIGN:
            before = before.src[0]
        offset = _offset(view.offset, position, shape_of(before)[0] - size)
        return ShapeTracker((View.create(view.shape, view.strides, offset),))
    spans = []
    for (begin, end), size in zip(node.arg, shape_of(node.src[0]), strict=True):
        length = end - begin
        if length == size:
            spans.append((begin, end))
            continue
        at = _offset(begin, position, size - length) if position in lifted else begin
        spans.append((at, at + length))
        position += 1
    return tuple(spans)


def _offset(value: int, position: int, greatest: int) -> UOp:
    variable = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"offset{position}", 0, greatest))
    return variable.bind(value)

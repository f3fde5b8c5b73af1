"""The steps of a loop that was written out: kernels that differ only in where they begin to read are one.

Step 7 of a recurrent network reads part 7 of what was computed for all steps, step 8 part 8. With the places
written in, each is a kernel of its own to compile. Where enough kernels of a plan are otherwise the same, the
places that differ become arguments, and the plan has one kernel that is called with many numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...dtype import dtypes
from ...ir import index
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...shape.tracker import ShapeTracker
from ...shape.view import View
from .template import Template

#: Fewer kernels than this that differ are compiled each for its place: a place that is known is worth more.
LEAST = 4


def share_offsets(template: Template) -> Template:
    """Kernels that differ in places of memory alone are one, called with these."""
    common = shared(dict.fromkeys(kernel.ast for kernel in template.kernels if not kernel.binds))
    if not common:
        return template
    kernels = []
    for kernel in template.kernels:
        if kernel.ast in common and not kernel.binds:
            ast, binds = common[kernel.ast]
            kernel = replace(kernel, ast=ast, binds=list(binds))
        kernels.append(kernel)
    return replace(template, kernels=kernels)


def shared(asts: Iterable[UOp]) -> dict[UOp, tuple[UOp, tuple[UOp, ...]]]:
    """Kernel → (the kernel that several share, its bound Variables), for those that share one."""
    families: dict[Any, dict[UOp, tuple[int, ...]]] = {}
    for ast in asts:
        if ast.op is Ops.SINK:
            key, places = _without_offsets(ast)
            families.setdefault(key, {})[ast] = places
    found = {}
    for family in families.values():
        if len(family) < LEAST:
            continue
        moving = [n for n, places in enumerate(zip(*family.values(), strict=True)) if len(set(places)) > 1]
        if not moving:
            continue
        step = {n: math.gcd(*[places[n] for places in family.values()]) for n in moving}
        for ast, places in family.items():
            found[ast] = _with_arguments(ast, step, places)
    return found


def _offset_view(node: UOp) -> View | None:
    """The view through which memory is read or written, if its beginning is a number that may be another."""
    if node.op not in (Ops.LOAD, Ops.STORE) or len(node.src[1].arg.views) != 1:
        return None
    view: View = node.src[1].arg.views[0]
    plain = view.mask is None and all(type(n) is int for n in (*view.shape, *view.strides, view.offset))
    return view if plain and node.src[0].op is Ops.DEFINE_GLOBAL else None


def _without_offsets(ast: UOp) -> tuple[Any, tuple[int, ...]]:
    """(a kernel's nodes with the beginnings of its views taken out, these)."""
    number: dict[UOp, int] = {}
    rows: list[Any] = []
    offsets: list[int] = []
    for node in ast.toposort():
        if node.op is Ops.VIEW and not node.src:
            continue  # written where it is used
        number[node] = len(number)
        view = _offset_view(node)
        src: list[Any] = [number.get(source, source) for source in node.src]
        if view is not None:
            src[1] = (view.shape, view.strides)
            offsets.append(view.offset)  # type: ignore[arg-type]
        # a constant by its node, which knows 0.0 and -0.0 apart
        rows.append((node.op, node.dtype, node if node.op is Ops.CONST else node.arg, tuple(src)))
    return tuple(rows), tuple(offsets)


def _with_arguments(ast: UOp, step: dict[int, int], places: tuple[int, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    """A kernel whose moving places are Variables, and these bound to what the places were.

    step  position → what all its places are multiples of, such as the length of a row: the Variable counts
          these, so that the kernel knows what it begins at
    """
    binds: list[UOp] = []
    positions = itertools.count()

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        view = _offset_view(node)
        position = None if view is None else next(positions)
        if view is None or position not in step:
            return None
        size = node.src[0].dtype.size  # type: ignore[attr-defined]
        sizes: Any = zip(view.shape, view.strides, strict=True)
        reach = sum((n - 1) * max(s, 0) for n, s in sizes)
        most = (size - 1 - reach) // step[position]
        variable = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"offset{len(binds)}", 0, most))
        begin = index.mul(variable, index.const(step[position]))
        tracker = ShapeTracker((View.create(view.shape, view.strides, begin),))
        binds.append(variable.bind(places[position] // step[position]))
        return node.replace(src=(src[0], UOp(Ops.VIEW, dtypes.void, (), tracker), *src[2:]))

    made = transform(ast, moved, None)
    return made, tuple(binds)

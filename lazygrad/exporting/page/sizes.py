"""Sizes that depend on Variables, as plain data that runtime.js evaluates."""

from __future__ import annotations

from typing import Any

from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp

_SIGNS = {Ops.ADD: "+", Ops.MUL: "*", Ops.IDIV: "/", Ops.MOD: "%", Ops.MAX: "max", Ops.MIN: "min"}


def size_form(size: sint) -> Any:
    """A number; ["name"] of a Variable; [sign, one, other], where / and % round down.

    NotImplementedError for what cannot be said so.
    """
    if not isinstance(size, UOp):
        return int(size)
    if size.op is Ops.CONST:
        return int(size.arg)
    if size.op is Ops.BIND:
        return size_form(size.src[0])
    if size.op is Ops.DEFINE_VAR:
        return [size.arg[0]]
    if size.op in _SIGNS and len(size.src) == 2:
        return [_SIGNS[size.op], *map(size_form, size.src)]
    if size.op is Ops.SUB:
        return ["+", size_form(size.src[0]), ["*", -1, size_form(size.src[1])]]
    if size.op is Ops.CAST:
        return size_form(size.src[0])
    raise NotImplementedError(f"exporting a size of this kind to a page is not supported: {size.op.name}")

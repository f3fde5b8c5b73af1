"""FETCH, COMMIT and WAIT for languages without copies that nobody waits for: loads and stores at once."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import PtrDType, dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp


def without_fetches(uops: Sequence[UOp]) -> list[UOp]:
    """The linear program with a LOAD and a STORE for each element of a FETCH, and nothing to wait for."""
    found: list[UOp] = []
    for step in uops:
        if step.op is Ops.FETCH:
            for place in range(step.arg):
                found += _moved(step, place)
        elif step.op not in (Ops.COMMIT, Ops.WAIT):
            found.append(step)
    return found


def _moved(fetch: UOp, place: int) -> list[UOp]:
    into, source = (_at(access, place) for access in fetch.src)
    memory = source[-1].dtype
    assert isinstance(memory, PtrDType)
    zero = [UOp.const(memory.base, 0)] if len(source[-1].src) > 2 else []
    load = UOp(Ops.LOAD, memory.base, (source[-1], *zero))
    return [*into, *source, *zero, load, UOp(Ops.STORE, dtypes.void, (into[-1], load))]


def _at(access: UOp, place: int) -> list[UOp]:
    """The steps that make an INDEX so many elements on."""
    if place == 0:
        return [access]
    more = UOp.const(access.src[1].dtype, place)
    moved = UOp(Ops.ADD, access.src[1].dtype, (access.src[1], more))
    return [more, moved, access.replace(src=(access.src[0], moved, *access.src[2:]))]

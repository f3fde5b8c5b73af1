"""What has become of a node: the facts that tie graph nodes to buffers. In ir/facts.py they are `becomes`,
`values`, `buffer`, `fresh` and `overwritten`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from ...device import Buffer, Device, Devices
from ...dtype import DType
from ...ir.args import MeshArg, MultiArg
from ...ir.index import sint
from ...ir.ops import MOVEMENT, Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp, one_of_its_own
from ...ir.walks import device_of
from ...locks import table_lock, uninterrupted
from ...shape.movement import below_movement, forward_to, moved, movements_on, reshape, shrink
from ...shape.rules import shape_of
from ...shape.sizes import prod
from .layouts import copied

_unique = itertools.count()


def new_buffer(device: str, size: int, dtype: DType) -> UOp:
    """A BUFFER node that is no other: memory to be of `size` elements, that a kernel will write."""
    place = UOp(Ops.DEVICE, arg=Device.canonicalize(device))
    node = one_of_its_own(Ops.BUFFER, size, dtype, (place, one_of_its_own(Ops.UNIQUE, next(_unique))))
    node.facts["fresh"] = True
    return node


def no_memory(device: str, size: int, dtype: DType, reason: str | Exception) -> UOp:
    """A BUFFER node that is no other and has no contents: who asks for them is told the reason."""
    node = new_buffer(device, size, dtype)
    del node.facts["fresh"]
    node.facts["overwritten"] = reason
    return node


def fail(node: UOp, error: Exception) -> None:
    """Record that a node has no value: who asks for it is given the error.

    One of a symbolic size stays as it is: it is computed once more, and fails.
    """
    size = prod(shape_of(node))
    if not isinstance(size, int):
        return
    device = device_of(node)
    name = device if isinstance(device, str) else Device.DEFAULT
    memory = no_memory(name, size, node.dtype, type(error)(*error.args))
    forward_to(node, in_shape(memory, shape_of(node)))


def reopen(planned: UOp) -> None:
    """Let what a kernel that does not run was to make be open again, for other graphs that have it."""
    with table_lock:
        for ref in planned.facts.pop("values", ()):
            node = ref()
            if node is not None and below_movement(node.facts.get("forwarded_to", node)) is planned:
                del node.facts["forwarded_to"]


def mark_buffer(node: UOp, buffer: Buffer) -> UOp:
    """Give a BUFFER node its Buffer, whose contents it stands for."""
    node.facts["buffer"] = buffer
    node.facts.pop("fresh", None)
    return node


def version_on(place: UOp, buffer: Buffer) -> UOp:
    """A BUFFER node that is no other, for memory that has its contents; `place` is the node of its device."""
    size = buffer.size
    unique = one_of_its_own(Ops.UNIQUE, next(_unique))
    node = one_of_its_own(Ops.BUFFER, size, buffer.dtype, (place, unique))
    facts = node.facts
    facts["buffer"], facts["shape"], facts["device"] = buffer, (size,), place.arg
    return node


def empty_buffer(device: Devices, size: int, dtype: DType) -> UOp:
    """A BUFFER node whose memory reads zeros; it is allocated when it is first read.

    On several devices it is one on each.
    """
    if isinstance(device, tuple):
        arg = copied(MeshArg.of(device))
        return UOp(Ops.MULTI, dtype, tuple([empty_buffer(name, size, dtype) for name in arg.local]), arg)
    return mark_buffer(new_buffer(device, size, dtype), Buffer(device, size, dtype))


def end_version(version: UOp) -> None:
    """Record that the contents of a version are gone; its memory is for the next one."""
    version.facts.pop("buffer", None)
    version.facts["overwritten"] = True


def version_after(before: UOp) -> UOp:
    """Record that a version's memory was written; the next version, on the same memory."""
    after = version_on(before.src[0], before.facts["buffer"])
    end_version(before)
    if "origin" in before.facts:  # of the memory
        after.facts["origin"] = before.facts["origin"]
    return after


def next_version(assign: UOp) -> UOp:
    """Record that the kernel of an ASSIGN has run: the ASSIGN becomes a BUFFER, what it overwrote is gone.

    The BUFFER is that of the ASSIGN where its memory was fresh, else a new node on the same memory.
    """
    with table_lock:
        before = effective(assign.src[0])
        if "fresh" in before.facts:
            del before.facts["fresh"]
            after = before
        else:
            after = version_after(before)
        forward_to(assign, after)
        _let_go(assign, after)  # and with it of the kernel and its inputs
    return after


def rebased(node: UOp, base: UOp) -> UOp:
    """The same movements on another base."""
    return moved(base, movements_on(node)[0])


def buffer_of(node: UOp) -> Buffer:
    """The Buffer (perhaps not allocated yet) behind a BUFFER, a BUFFER_VIEW or a pending ASSIGN."""
    while node.op is Ops.ASSIGN:
        node = effective(node.src[0])
    found: Buffer | None = node.facts.get("buffer")
    if found is None:
        check_alive(node)
        if node.op is Ops.BUFFER_VIEW:
            size, offset = node.arg
            found = Buffer(device_name(node), size, node.dtype, base=buffer_of(node.src[0]), offset=offset)
        else:
            found = Buffer(device_name(node), node.arg, node.dtype)
        node.facts["buffer"] = found
    return found


class OverwrittenError(RuntimeError):
    """A value that is needed was in memory that has been written since."""


def check_alive(node: UOp) -> None:
    """Refuse a version of a buffer whose contents are gone."""
    reason = node.facts.get("overwritten")
    if isinstance(reason, Exception):
        raise type(reason)(*reason.args)
    if isinstance(reason, str):
        raise OverwrittenError(reason)
    if reason is not None:
        raise OverwrittenError(
            "a value that is needed here is gone: its tensor was modified in place "
            "(assign, an optimizer's step) after the value was recorded; "
            "clone() it before the write, or compute it earlier"
        )


def device_name(node: UOp) -> str:
    """The device of a node that is known to be on one."""
    name = device_of(node)
    if not isinstance(name, str):
        raise RuntimeError(f"{node.op} is not on one device but on {name}")
    return name


def placed(node: UOp, device: Devices) -> UOp:
    """A value that is on no device, being made of numbers alone, as one that is on this device."""
    if device_of(node) is not None:
        return node
    place = UOp(Ops.DEVICE, arg=device)

    def on_device(below: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if below.op in (Ops.CONST, Ops.IOTA) and not src:
            return below.replace(src=(place,))
        return below if below.op in _NUMBERS else None

    return transform(node, on_device, None)


#: Their sources are no values: a bound Variable, and what it is bound to.
_NUMBERS = frozenset((Ops.BIND, Ops.DEFINE_VAR))


def multi(parts: Iterable[UOp], arg: MultiArg) -> UOp:
    """The value of which each device that is here has one of these parts."""
    found = tuple([placed(part, device) for part, device in zip(parts, arg.local, strict=True)])
    return UOp(Ops.MULTI, found[0].dtype, found, arg)


def laid_with_order(node: UOp, target: MultiArg, turn: int | None = None) -> UOp:
    """A value that several devices hold, laid as said.

    turn  ranks send what has an earlier turn first, whatever the order of the results in a graph
    """
    made = UOp(Ops.CONTIGUOUS, node.dtype, (node,), target)
    if turn is not None:
        made.facts["send_order"] = turn
    return made


def _let_go(base: UOp, successor: UOp) -> None:
    """Let what has become movements on a base be those on its successor, so that the base can be freed."""
    for ref in base.facts.get("values", ()):
        node = ref()
        if node is not None:
            forward_to(node, rebased(node.facts["forwarded_to"], successor))


def effective(node: UOp) -> UOp:
    """What this very node has become, to the end."""
    while True:
        replacement = node.facts.get("forwarded_to")
        if replacement is None and node.op is Ops.MULTI:
            replacement = renewed(node)
        if replacement is None:
            return node
        node = latest(replacement) if replacement.op in MOVEMENT else replacement


def memory_read(source: UOp) -> UOp:
    """The memory that a source of a kernel is, or that it is a part of, now."""
    memory = effective(source)
    return effective(memory.src[0]) if memory.op is Ops.BUFFER_VIEW else memory


def latest(node: UOp) -> UOp:
    """A node, perhaps movements on a base, with the base replaced by what it has become."""
    while node.op not in LOOKS_OR_PARTS:
        replacement = node.facts.get("forwarded_to")
        if replacement is None:
            return node
        node = replacement
    while True:
        moves, base = movements_on(node, LOOKS)
        replacement = base.facts.get("forwarded_to")
        if replacement is None and base.op is Ops.MULTI:
            replacement = renewed(base)
        if replacement is None:
            return node
        node = moved(replacement, moves)


def renewed(multi: UOp) -> UOp | None:
    """A MULTI of what its parts have become, which it then becomes; None where they have become nothing."""
    parts = tuple([latest(part) for part in multi.src])
    if parts == multi.src:
        return None
    made = multi.replace(src=parts)
    with uninterrupted():
        made.facts.pop("forwarded_to", None)  # its parts are what is there now: a jit's capture may lead back
        forward_to(multi, made)
        _let_go(multi, made)  # and with it of what the parts were computed from
    return made


def has_become(base: UOp) -> bool:
    """Whether a node that is no movement stands for something else by now."""
    if "forwarded_to" in base.facts:
        return True
    return base.op is Ops.MULTI and any(has_become(below_looks(part)) for part in base.src)


def below_looks(node: UOp) -> UOp:
    """The first node below that has elements of its own: neither a movement nor a DETACH."""
    return below_movement(node, LOOKS)


#: What gives a value no elements of its own.
LOOKS = MOVEMENT | {Ops.DETACH}
#: What may have become something without a fact of its own that says so.
LOOKS_OR_PARTS = LOOKS | {Ops.MULTI}


def in_shape(memory: UOp, shape: tuple[sint, ...]) -> UOp:
    """Flat memory seen in a shape; a symbolic shape takes the first part of memory that is for its greatest
    size.
    """
    size = prod(shape)
    if type(size) is int and shape_of(memory) == (size,):
        return reshaped_memory(memory, shape)
    if isinstance(size, UOp) or size != shape_of(memory)[0]:
        memory = shrink(memory, ((0, size),))
    return reshape(memory, shape)


def reshaped_memory(memory: UOp, shape: tuple[sint, ...]) -> UOp:
    """Flat memory seen in a shape of as many elements."""
    if len(shape) == 1:
        return memory
    seen = UOp(Ops.RESHAPE, memory.dtype, (memory,), shape)
    seen.facts["shape"] = shape
    return seen


def peel(node: UOp) -> UOp:
    """The same movements without the DETACH nodes between them."""
    looks, base = movements_on(node, LOOKS)
    moves = [look for look in looks if look.op is not Ops.DETACH]
    return node if len(moves) == len(looks) else moved(base, moves)

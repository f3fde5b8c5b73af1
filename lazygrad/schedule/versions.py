"""What has become of a node: the facts that tie graph nodes to buffers.

node.facts["becomes"]        the node that holds its value now (once planned an ASSIGN, once run a BUFFER)
node.facts["values"]         on a version of a buffer: weak references to the nodes that it is the value of
buffer.facts["buffer"]       on a BUFFER: the Buffer with the memory
buffer.facts["fresh"]        on a BUFFER: nothing has been written yet and nobody may read it
buffer.facts["overwritten"]  on a BUFFER: its contents are gone, a later version took its memory
"""

from __future__ import annotations

import itertools
import weakref

from ..device import Buffer, Device
from ..dtype import DType, dtypes
from ..ir.index import sint
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, new_node
from ..shape.movement import reshape, shrink
from ..shape.rules import shape_of
from ..shape.sizes import prod

_unique = itertools.count()


def new_buffer(device: str, size: int, dtype: DType) -> UOp:
    """A BUFFER node that is no other: memory to be of `size` elements, that a kernel will write."""
    place = UOp(Ops.DEVICE, arg=Device.canonicalize(device))
    unique = new_node(Ops.UNIQUE, dtypes.void, (), next(_unique))
    node = new_node(Ops.BUFFER, dtype, (place, unique), size)
    node.facts["fresh"] = True
    return node


def mark_buffer(node: UOp, buffer: Buffer) -> UOp:
    """Give a BUFFER node its Buffer, whose contents it stands for."""
    node.facts["buffer"] = buffer
    node.facts.pop("fresh", None)
    return node


def version_on(place: UOp, buffer: Buffer) -> UOp:
    """A BUFFER node that is no other, for memory that has its contents; `place` is the node of its device."""
    unique = new_node(Ops.UNIQUE, dtypes.void, (), next(_unique))
    node = new_node(Ops.BUFFER, buffer.dtype, (place, unique), buffer.size)
    node.facts["buffer"] = buffer
    return node


def empty_buffer(device: str, size: int, dtype: DType) -> UOp:
    """A BUFFER node whose memory reads zeros; it is allocated when it is first read."""
    return mark_buffer(new_buffer(device, size, dtype), Buffer(device, size, dtype))


def next_version(assign: UOp) -> UOp:
    """Record that the kernel of an ASSIGN has run: the ASSIGN becomes a BUFFER, what it overwrote is gone.

    The BUFFER is that of the ASSIGN where its memory was fresh, else a new node on the same memory.
    """
    before = effective(assign.src[0])
    if "fresh" in before.facts:
        del before.facts["fresh"]
        after = before
    else:
        after = mark_buffer(
            new_buffer(device_name(before), before.arg, before.dtype), before.facts.pop("buffer")
        )
        before.facts["overwritten"] = True
        if "origin" in before.facts:  # of the memory
            after.facts["origin"] = before.facts["origin"]
    set_becomes(assign, after)
    for ref in assign.facts.get("values", ()):
        node = ref()
        if node is not None:  # let go of the ASSIGN, and with it of the kernel and its inputs
            set_becomes(node, rebased(node.facts["becomes"], after))
    return after


def rebased(node: UOp, base: UOp) -> UOp:
    """The same movements on another base."""
    chain = []
    while node.op in MOVEMENT:
        chain.append(node)
        node = node.src[0]
    for move in reversed(chain):
        base = move.replace(src=(base,))
    return base


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


def check_alive(node: UOp) -> None:
    """Refuse a version of a buffer whose contents are gone."""
    if "overwritten" in node.facts:
        raise RuntimeError(
            "a value that is needed here is gone: its tensor was modified in place "
            "(assign, an optimizer's step) after the value was recorded; "
            "clone() it before the write, or compute it earlier"
        )


def device_name(node: UOp) -> str:
    """The device of a node that is known to have one."""
    name = device_of(node)
    if name is None:
        raise RuntimeError(f"{node.op} has no device")
    return name


def device_of(node: UOp) -> str | None:
    """Where a node's value lives: the device of the first source that has one; None for bare constants."""
    if "device" in node.facts:
        return node.facts["device"]  # type: ignore[no-any-return]
    stack = [node]
    while stack:
        top = stack[-1]
        if "device" in top.facts:
            stack.pop()
        elif top.op is Ops.DEVICE:
            top.facts["device"] = top.arg
            stack.pop()
        elif top.op is Ops.COPY:
            top.facts["device"] = top.src[-1].arg
            stack.pop()
        else:
            answer: str | None = None
            for source in top.src:
                if "device" not in source.facts:
                    stack.append(source)
                    break
                answer = source.facts["device"]
                if answer is not None:
                    break
            else:
                answer = None
            if stack[-1] is top:
                top.facts["device"] = answer
                stack.pop()
    return node.facts["device"]  # type: ignore[no-any-return]


def set_becomes(node: UOp, replacement: UOp) -> None:
    """Record where a node's value is held from now on."""
    node.facts["becomes"] = replacement
    base = replacement
    while base.op in MOVEMENT:
        base = base.src[0]
    alive = [ref for ref in base.facts.get("values", ()) if ref() is not None]
    base.facts["values"] = [*alive, weakref.ref(node)]


def effective(node: UOp) -> UOp:
    """What this very node has become, to the end."""
    while True:
        replacement = node.facts.get("becomes")
        if replacement is None:
            return node
        node = latest(replacement) if replacement.op in MOVEMENT else replacement


def latest(node: UOp) -> UOp:
    """A node, perhaps movements on a base, with the base replaced by what it has become."""
    while True:
        chain = []
        base = node
        while base.op in MOVEMENT or base.op is Ops.DETACH:
            chain.append(base)
            base = base.src[0]
        replacement: UOp | None = base.facts.get("becomes")
        if replacement is None:
            return node
        node = replacement
        for move in reversed(chain):
            node = move.replace(src=(node,))


def in_shape(memory: UOp, shape: tuple[sint, ...]) -> UOp:
    """Flat memory seen in a shape; a symbolic shape takes the first part of memory that is for its greatest
    size.
    """
    size = prod(shape)
    if type(size) is int and shape_of(memory) == (size,):
        return memory if shape == (size,) else UOp(Ops.RESHAPE, memory.dtype, (memory,), shape)
    if isinstance(size, UOp) or size != shape_of(memory)[0]:
        memory = shrink(memory, ((0, size),))
    return reshape(memory, shape)


def peel(node: UOp) -> UOp:
    """The same movements without the DETACH nodes between them."""
    chain = []
    base = node
    found = False
    while base.op in MOVEMENT or base.op is Ops.DETACH:
        if base.op is Ops.DETACH:
            found = True
        else:
            chain.append(base)
        base = base.src[0]
    if not found:
        return node
    for move in reversed(chain):
        base = move.replace(src=(base,))
    return base

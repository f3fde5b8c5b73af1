"""Looking at the tensor graph: what lies in memory, and in which order; what is below a node by now; which
bound Variables are in its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...dtype import dtypes
from ...ir.args import Array, ProgramArg
from ...ir.ops import MOVEMENT, TRANSFERS, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...shape.movement import base_and_tracker, reshape
from ...shape.rules import shape_of
from ...shape.sizes import prod, resolve_equal
from ...shape.tracker import ShapeTracker, unbound
from ...structure import NEAR, structure_of
from .versions import effective

#: Memory that is there, or will be when the kernels planned earlier have run.
HELD = frozenset((Ops.BUFFER, Ops.BUFFER_VIEW, Ops.KERNEL))
#: What is stored once, in order, for everybody who reads it; and PROGRAMs that say so.
STORED_WHOLE = frozenset((Ops.CONTIGUOUS, *TRANSFERS))


def is_materialized(node: UOp) -> bool:
    """Whether a node stands for memory: a buffer, a view of one, or an ASSIGN whose kernel is planned."""
    return node.op in HELD or (node.op is Ops.ASSIGN and node.src[1].op is Ops.KERNEL)


def siblings(node: UOp) -> list[UOp]:
    """All results of the kernel that a PROGRAM is a result of."""
    made = node.arg.kernel.makes([Array(source.dtype, shape_of(source)) for source in node.src])
    return [
        UOp(node.op, array.dtype, node.src, ProgramArg(node.arg.kernel, n)) for n, array in enumerate(made)
    ]


def is_number(node: UOp) -> bool:
    """Whether a node is one number in every place, of a type whose bytes are known without a kernel."""
    base, tracker = base_and_tracker(node)
    plain = base.op is Ops.CONST and base.dtype.fmt is not None
    return plain and all(view.mask is None for view in tracker.views)


def is_copied_as_it_is(node: UOp) -> bool:
    """Whether a COPY of several takes a node without a kernel: a number, or what lies in memory in order."""
    base, tracker = base_and_tracker(node)
    if base.op in STORED_WHOLE:
        return is_whole(base, tracker)
    return is_number(node) or (is_materialized(base) and in_order(node).op is not Ops.CONTIGUOUS)


def in_order(node: UOp) -> UOp:
    """What a COPY or PROGRAM reads: a buffer in order, or a contiguous part of one as a BUFFER_VIEW."""
    base, tracker = base_and_tracker(node)
    stored = base.arg.kernel.is_stored if base.op is Ops.PROGRAM else base.op in STORED_WHOLE
    if (stored or is_materialized(base)) and is_whole(base, tracker):
        return node
    if is_materialized(base) and len(tracker.views) == 1:
        view = tracker.views[0]
        offset, size = view.offset, tracker.size
        packed = view.mask is None and _is_packed(view)
        if packed and isinstance(offset, int) and isinstance(size, int):
            part = UOp(Ops.BUFFER_VIEW, base.dtype, (base,), (size, offset * base.dtype.itemsize))
            return reshape(part, tracker.shape)
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def is_whole(base: UOp, tracker: ShapeTracker) -> bool:
    """Whether a tracker is all of a base, in its order."""
    return tracker.contiguous and resolve_equal(tracker.size, prod(shape_of(base)))


def _is_packed(view: object) -> bool:
    """Whether a view's elements follow each other in memory."""
    expected: object = 1
    shape, strides = view.shape, view.strides  # type: ignore[attr-defined]
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if not isinstance(size, int):
            return False
        if size != 1 and stride != expected:
            return False
        expected = expected * size  # type: ignore[operator]
    return True


# *** what decisions are asked about

#: What is in memory before anything reads it, whether it is computed in this plan or was in another one.
_STORED = frozenset((Ops.CONTIGUOUS, Ops.SCATTER, Ops.PROGRAM, *TRANSFERS))


def near(*values: UOp) -> Callable[[], str]:
    """Gives the structure of values: what they are made of, down to memory, as far as it is near.

    A jit's arguments are in memory when it is called; without a jit they may be copied in the same plan.
    """

    def is_memory(node: UOp) -> bool:
        return is_materialized(node) or (node.op in _STORED and node not in values)

    return lambda: structure_of(values, is_memory, NEAR)


# *** what is requested, and what is below it

#: What a walk does not look below: memory, and what a Variable is bound to, which is no part of the
#: structure.
_LEAVES = HELD | {Ops.BIND, Ops.CONST, Ops.DEVICE, Ops.UNIQUE}


def toposort_effective(roots: Iterable[UOp], done: set[UOp] | None = None, follow: bool = True) -> list[UOp]:
    """Every node below the roots after its sources, seen through `becomes`, and not below what is held
    already.

    done    nodes that were walked before: they and what is below them are left out; the walk adds to it
    follow  False in a plain graph, whose nodes may be equal to nodes that have become something
    """

    def sources(node: UOp) -> Sequence[UOp]:
        if node.op in _LEAVES or (node.op is Ops.ASSIGN and node.src[1].op is Ops.KERNEL):
            return ()
        return [effective(s) if "forwarded_to" in s.facts else s for s in node.src] if follow else node.src

    return toposort([effective(root) if follow else root for root in roots], sources, done)


def constant_below(node: UOp) -> UOp | None:
    """The constant that a node is movements of; None where it is something else."""
    while node.op in MOVEMENT:
        node = node.src[0]
    return node if node.op is Ops.CONST else None


def nameable(order: Iterable[UOp]) -> list[UOp]:
    """The nodes of a walk that a plan may name by their position.

    Not constants, and movements of them: walks of the same structure may have more or fewer of these.
    """
    return [node for node in order if constant_below(node) is None]


@dataclass
class Request:
    """What is to be planned.

    roots       the nodes that are wanted, no movements
    order       every node below them, after its sources
    waiting     versions of memory that a write of the plan ends → the kernels planned earlier that read it
                and have not run
    stands_for  nodes that were made by lifting numbers or sizes → those they stand for
    grown       sizes were lifted
    """

    roots: list[UOp]
    order: list[UOp]
    waiting: dict[UOp, list[UOp]] = field(default_factory=dict)
    stands_for: dict[UOp, UOp] = field(default_factory=dict)
    grown: bool = False

    @classmethod
    def of(cls, roots: list[UOp]) -> Request:
        """Nothing but these roots."""
        return cls(roots, toposort_effective(roots))


def binds_in_args(order: Sequence[UOp]) -> dict[UOp, int]:
    """The bound Variables in the sizes that nodes carry as arguments, numbered by first appearance."""
    found: dict[UOp, int] = {}
    for node in order:
        for bind in arg_binds(node):
            found.setdefault(bind, len(found))
    return found


def arg_binds(node: UOp) -> tuple[UOp, ...]:
    """The bound Variables in a node's argument, cached on it."""
    if node.op not in MOVEMENT and node.op not in (Ops.ASSIGN, Ops.IOTA):
        return ()
    known = node.facts.get("arg_binds")
    if known is None:
        known = node.facts["arg_binds"] = binds_of(node.arg)
    return known


def binds_of(arg: object) -> tuple[UOp, ...]:
    """The bound Variables in sizes, spans or a tracker."""
    return tuple(dict.fromkeys(b for size in sizes_in(arg) for b in of_op(size.toposort(), Ops.BIND)))


def sizes_in(arg: object) -> Iterator[UOp]:
    """The symbolic sizes in an argument."""
    parts = [arg]
    while parts:
        part = parts.pop()
        if isinstance(part, UOp):
            yield part
        elif isinstance(part, tuple):
            parts.extend(part)
        elif isinstance(part, ShapeTracker):
            parts.extend((view.shape, view.strides, view.offset, view.mask) for view in part.views)


def open_arg(node: UOp, binds: dict[UOp, int]) -> object:
    """A node's argument in a structure: which Variables are in it, not what they are bound to."""
    arg = node.arg
    if node.op is Ops.COPY and len(node.src) > 2:  # what is copied as it is begins at a known place
        offsets = [base_and_tracker(source)[1].views[-1].offset for source in node.src[:-1]]
        return tuple([offset if isinstance(offset, int) else None for offset in offsets])
    bound = arg_binds(node)
    if not bound:
        return arg
    return _unbound(arg), tuple(binds[bind] for bind in bound)


def _unbound(arg: object) -> object:
    if isinstance(arg, tuple):
        return tuple(_unbound(part) for part in arg)
    if isinstance(arg, ShapeTracker):
        return arg.unbind()[0]
    return unbound(arg, {}) if isinstance(arg, UOp) else arg


def is_generated(node: UOp) -> bool:
    """Whether a node is made from nothing in memory: constants, counters, bound Variables."""
    return node.op in _GENERATED or node.dtype is dtypes.index


_GENERATED = frozenset((Ops.CONST, Ops.IOTA, Ops.BIND, Ops.DEFINE_VAR))

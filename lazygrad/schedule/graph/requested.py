"""Looking at the tensor graph: what is below a node by now, which bound Variables are in its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...dtype import dtypes
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...shape.movement import base_and_tracker
from ...shape.tracker import ShapeTracker, unbound
from .in_memory import HELD
from .versions import effective

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

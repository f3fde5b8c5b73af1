"""What kernels store (an Output for each), where that goes, and in which order they may run.

Reads of a version of memory come before the write that ends it. Where that cannot be, since the kernels would
wait for each other, what is read is copied first; a value that reads its target elsewhere than it writes is
stored first, and copied over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...device import Device
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import device_of, reached
from ...shape import numel
from ...shape.movement import below_movement
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ...shape.tracker import ShapeTracker
from ..graph.indices import CONTINUES, Indices
from ..graph.requested import is_materialized, nameable
from ..graph.versions import device_name
from ..place.kernel_ast import Group
from ..place.placement import Placed
from .template import Boundary, Leaf, Memory, Output, Part


@dataclass(eq=False, slots=True)
class Store:
    """What a kernel stores: the value of a node, where an ASSIGN says; None: in fresh memory. Once all are
    known, each has its Output.
    """

    kernel: int
    node: UOp
    assign: UOp | None
    made: Output = field(init=False)


#: What is stored in memory of its own, and copied from there to where it is assigned.
_OWN_MEMORY = frozenset((Ops.SCATTER, Ops.PROGRAM, Ops.COLLECTIVE))


class Writes:
    """What each kernel stores, and where. Kernels have the numbers of their groups, copies those behind.

    targets        kernel → its stores
    output         node → the store that its value can be loaded from
    version_output  ASSIGN → the store that makes it
    redirect       (kernel, what it would read) → the copy that it reads
    before         kernel → the kernels that run before it
    readers_of     kernel → the versions of memory that it ends
    order          the kernels in an order in which they may run
    walk           the nodes that a plan can name → their numbers
    """

    def __init__(self, placed: Placed) -> None:
        self.placed, self.graph = placed, placed.graph
        self.assigns: dict[UOp, list[UOp]] = {}
        for assign, value in self.graph.stored.items():
            self.assigns.setdefault(value, []).append(assign)
        self.targets: dict[int, list[Store]] = {}
        self.output: dict[UOp, Store] = {}
        self.version_output: dict[UOp, Store] = {}
        self.redirect: dict[tuple[int, UOp], Store] = {}
        self.before: dict[int, set[int]] = {group.id: set() for group in placed.groups}
        self.readers_of: dict[int, list[UOp]] = {}
        self._choose_targets()
        self._order_by_data()
        self._guard_writes()
        self.order = self._ordered()
        self.walk = {node: number for number, node in enumerate(nameable(self.graph.request.order))}
        # after those that wrote what it goes on to write
        for store in [store for number in self.order for store in self.targets[number]]:
            if store.assign is None and self.group(store.kernel) is None:  # a copy of a whole memory
                version = store.node
                store.made = Output(None, device_name(version), numel(version), version.dtype)
            else:
                store.made = self.output_of(store.node, store.assign)
            store.made.boundary = self._boundary(store)

    def group(self, number: int) -> Group | None:
        """The group that a kernel computes; None of one that copies."""
        groups = self.placed.groups
        return groups[number] if number < len(groups) else None

    # *** where stores go

    def _choose_targets(self) -> None:
        roots = {
            below_movement(self.graph.value[r]) for r in self.graph.request.roots if r.op is not Ops.ASSIGN
        }
        for group in self.placed.groups:
            targets: list[Store] = []
            for node in group.stores:
                assigns = [node] if node.op is Ops.ASSIGN else self.assigns.get(node, [])
                # readers find the value in the first: rather in memory that is not written again
                assigns = sorted(assigns, key=lambda assign: assign in self.graph.ended_by)
                if node.op is not Ops.ASSIGN and self._needs_own_memory(node, group, assigns, roots):
                    targets.append(Store(group.id, node, None))
                    self.output[node] = targets[-1]
                for assign in assigns:
                    targets.append(Store(group.id, node, assign))
                    self.version_output[assign] = targets[-1]
                    self.output.setdefault(node, targets[-1])
            if group.kind == "kernel":
                self.targets[group.id] = targets
                continue
            # each node has one target; others are copied from that
            own = [store for store in targets if store.node.op is Ops.PROGRAM and store.assign is None]
            if group.kind == "one pass":
                own = list({store.node: store for store in reversed(targets)}.values())[::-1]
            self.targets[group.id] = own = own or targets[:1]
            self.output.update({store.node: store for store in own})
            for again in targets:
                if again not in own:
                    self._copy_over(self.output[again.node], again.assign)

    def _needs_own_memory(self, node: UOp, group: Group, assigns: list[UOp], roots: set[UOp]) -> bool:
        """Whether a value must be kept apart from the memory it is assigned to: it was asked for itself, or
        others read it and what it is assigned to is written again."""
        if not assigns or node in roots or node.op in _OWN_MEMORY:
            return True
        readers = any(g is not group for g in self.reads_of(node))
        return readers and all(assign in self.graph.ended_by for assign in assigns)

    def _order_by_data(self) -> None:
        """Producers before consumers, and each write after the one whose version it continues.

        Where that one needs the value itself, or the same kernel stores both, the value is stored first, and
        copied over when its turn comes. Older versions are looked at first, so that a copy is known where the
        version behind it asks whom it has to wait for.
        """
        for node, uses in self.placed.uses.items():
            home = self.placed.home.get(node)
            if home is not None:
                for consumer in uses:
                    if consumer is not home:
                        self.before[consumer.id].add(home.id)
        for assign in [node for node in self.graph.order if node in self.version_output]:
            store, earlier = self.version_output[assign], self.version_output.get(assign.src[0])
            if earlier is None:
                continue
            number = store.kernel
            if earlier.kernel in self.before[number]:
                continue  # it reads of that version, or goes on with it
            # or it stores both
            if self.group(number) is not None and self._comes_before(number, earlier.kernel):
                readers = {consumer.id for consumer in self.placed.uses.get(assign, {})} - {number}
                number = self._store_first(store, assign, readers)
            self.before[number].add(earlier.kernel)

    # *** writing in place

    def _guard_writes(self) -> None:
        """Reads of a version come before the write that ends it; where that cannot be, one of the two is
        copied.
        """
        for number, targets in list(self.targets.items()):  # those that copy what was stored first, too
            group = self.group(number)
            for store in targets:
                assign = store.assign
                if assign is None:
                    continue
                version = assign.src[0]
                if "fresh" in version.facts:
                    continue  # nobody reads it
                reads = {} if version in self.graph.stored else self.reads_of(version)
                if (
                    group is not None
                    and group in reads
                    and not self._reads_where_it_writes(group, store.node, assign, reads[group])
                ):
                    self._store_first(store, assign, self._after(group.id))
                writer = self.version_output[assign].kernel
                for reader in reads:
                    if reader.id != writer:
                        self._order_read(reader.id, writer, version)
                self.readers_of.setdefault(writer, []).append(version)

    def reads_of(self, version: UOp) -> dict[Group, set[Indices]]:
        """The kernels that read a version, and at which indices."""
        found = {g: set(at) - {CONTINUES} for g, at in self.placed.uses.get(version, {}).items()}
        return {group: tuples for group, tuples in found.items() if tuples}

    def _reads_where_it_writes(self, group: Group, node: UOp, assign: UOp, tuples: set[Indices]) -> bool:
        """Whether a kernel reads each element of its target only where it writes it.

        A write along fewer loops than the kernel has (an axis of one element in a loop of n turns) is done in
        one turn, and the others would read what it wrote.
        """
        if len(tuples) != 1 or group.kind != "kernel":
            return False
        shape = shape_of(assign.src[1]) if node.op is Ops.ASSIGN else shape_of(node)
        place = group.views.get(node)
        if place is None and not group.walks_whole(shape):
            return False
        tracker = assign.arg or ShapeTracker.from_shape(shape)
        if place is not None:
            tracker = tracker + place
        written, valid = tracker.indexed(group.ranges)
        ((read,),) = tuples
        return written is read and valid.op is Ops.CONST

    def _store_first(self, store: Store, assign: UOp, followers: Iterable[int]) -> int:
        """Store the value in memory of its own, then copy it over the target; others follow that copy."""
        store.assign = None
        if store.node.op is Ops.ASSIGN:
            del self.output[store.node]  # who reads the new version finds it where the copy puts it
        else:
            self.output[store.node] = store
        copier = self._copy_over(store, assign)
        for number in followers:
            self.before[number].add(copier)
        return copier

    def _copy_over(self, store: Store, assign: UOp | None) -> int:
        """A kernel that copies what a kernel stored over the memory of an ASSIGN."""
        if assign is None:
            raise RuntimeError("a copy needs a target")
        copier = self._new_kernel(store.node, assign)
        self.redirect[copier, assign] = store
        (self.version_output[assign],) = self.targets[copier]
        self.before[copier] = {store.kernel}
        return copier

    def _order_read(self, reader: int, writer: int, version: UOp) -> None:
        """Run a reader before a writer, or let it read a copy of the old contents."""
        if not self._comes_before(writer, reader):
            self.before[writer].add(reader)
            return
        copier = self._new_kernel(version, None)
        (self.redirect[reader, version],) = self.targets[copier]
        made = self.version_output.get(version)
        self.before[copier] = {made.kernel} if made else set()
        self.before[reader].add(copier)
        self.before[writer].add(copier)

    def _after(self, first: int) -> list[int]:
        """The kernels that wait for one."""
        return [number for number, waits in self.before.items() if first in waits]

    def _comes_before(self, first: int, then: int) -> bool:
        return first in reached([then], lambda kernel: tuple(self.before[kernel]))

    def _new_kernel(self, node: UOp, assign: UOp | None) -> int:
        """One that copies."""
        number = len(self.before)
        self.before[number] = set()
        self.targets[number] = [Store(number, node, assign)]
        return number

    def _ordered(self) -> list[int]:
        """A topological order. Groups were placed from the results down, so the highest number that may run
        comes first.
        """
        waiting = {group: set(before) for group, before in self.before.items()}
        followers: dict[int, list[int]] = {}
        for group, before in waiting.items():
            for earlier in before:
                followers.setdefault(earlier, []).append(group)
        ready = sorted(group for group, before in waiting.items() if not before)
        order: list[int] = []
        while ready:
            group = ready.pop()
            order.append(group)
            for follower in sorted(followers.get(group, ())):
                waiting[follower].discard(group)
                if not waiting[follower]:
                    ready.append(follower)
        if len(order) != len(waiting):
            raise RuntimeError(
                "the kernels of this graph wait for each other: a write overwrites what "
                "another one still needs"
            )
        return order

    # *** what is stored

    def output_of(self, node: UOp, assign: UOp | None = None) -> Output:
        """A new Output for the value of a node."""
        if assign is not None:
            version = assign.src[0]
            return Output(self.memory_of(version), device_name(version), flat_size(version), version.dtype)
        begun = None
        if node.op is Ops.SCATTER:
            begun = node.src[0]
        elif node.op is Ops.PROGRAM and node.arg.output in node.arg.kernel.begins:
            begins = node.arg.kernel.begins
            begun = node.src[begins.index(node.arg.output) - len(begins)]
        if begun is not None:  # into the memory that was begun for it
            return Output(self.memory_of(below_movement(begun)), device_name(node), numel(node), node.dtype)
        stored = node.src[1] if node.op is Ops.ASSIGN and not is_materialized(node) else node
        length = prod(shape_of(stored))
        known = length if isinstance(length, UOp) else None
        return Output(None, self.device_of(node), numel(stored), node.dtype, known)

    def device_of(self, node: UOp) -> str:
        """Where a value is stored: numbers, which are on no device, where they are needed."""
        if device_of(node) is not None or node not in self.placed.home:
            return device_name(node)
        return self.placed.home[node].device or Device.DEFAULT

    def memory_of(self, node: UOp, kernel: int = -1) -> Memory:
        """The memory in which a kernel finds a node's value."""
        store = self.redirect.get((kernel, node)) or self.output.get(node) or self.version_output.get(node)
        if store is not None:
            return store.made
        if node in self.walk:
            return Leaf(self.walk[node])
        if node.op is Ops.BUFFER_VIEW:
            size, offset = node.arg
            return Part(self.memory_of(node.src[0], kernel), size, offset, node.dtype)
        raise RuntimeError(f"{node.op} is not in memory")

    def _boundary(self, store: Store) -> Boundary:
        group, node, assign = self.group(store.kernel), store.node, store.assign
        if group is None:
            reason = "its target is read elsewhere, so the value is stored first and copied over"
            if assign is None:
                reason = "the old contents are read after the write that ends them"
            return Boundary(reason, 0, node.facts.get("origin"))
        reason = self.placed.reasons.get(node, "")
        if assign is not None and node is not assign:
            reason = "it is assigned"
        readers = sum(1 for reader in self.reads_of(node) if reader is not group)
        return Boundary(reason, readers, node.facts.get("origin"))


def flat_size(node: UOp) -> int:
    """The number of elements of the memory that a version is of."""
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    size: int = node.arg[0] if node.op is Ops.BUFFER_VIEW else node.arg
    return size

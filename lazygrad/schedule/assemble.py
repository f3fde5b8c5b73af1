"""Groups of a placement → kernel templates: where each STORE goes, what writing in place forbids, the ASTs,
the order.

A template names memory by reference, so that it can be bound to other buffers of the same structure:
    ("leaf", n)      node n of the walk      ("view", r, (size, byte offset), dtype)   a part of what r names
    ("out", k, o)    output o of kernel k    ("bind", n)   the n-th bound Variable in sizes of the walk
    ("value", b)     a bound Variable of the plan's own
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..codegen.price import Prices, prices_for
from ..codegen.sort import WORD, SortPlan
from ..device import Device, DeviceError
from ..dtype import DType, dtypes
from ..ir.device import device_of
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.rules import shape_of
from ..shape.tracker import ShapeTracker
from ..target import Target
from .graph import below_movement, binds_in_args, binds_of, plain, toposort_effective
from .group import Group, numel
from .in_memory import is_held
from .indices import CONTINUES, Indices
from .kernel_ast import AstBuilder
from .lifted_numbers import nameable
from .memory import inner_outputs
from .offsets import shared
from .placement import Placement
from .reports import Reports
from .versions import device_name

Ref = tuple[Any, ...]
#: A store: the node whose value it is, and the ASSIGN that says where (None: fresh memory).
Store = tuple[UOp, "UOp | None"]
Place = tuple[int, int]
#: For so many different lines a kernel of a plan keeps memory for reports.
MAX_REPORTS = 64


@dataclass
class Output:
    """Where one STORE of a kernel goes: fresh memory (into is None), or the next version of memory that is
    there.
    """

    into: Ref | None
    device: str
    size: int
    dtype: DType


class Boundary(NamedTuple):
    """Why a kernel stores an output: the rule of placement, how many kernels read it again, and the user's
    call that made it.
    """

    reason: str
    readers: int
    origin: Any


class Kept(NamedTuple):
    """A value of which a kernel keeps a row, of so many bytes, and the user's call that made it."""

    nbytes: int
    origin: Any


@dataclass
class KernelTemplate:
    """A kernel whose buffers are references. `after`: kernels that must run before it, beyond those it
    reads from. `boundaries`: one for each output. `kept`: what it computes once for several loops. `sites`:
    for each of its CHECKs the node of the walk that says where the index comes from.
    """

    ast: UOp
    outputs: list[Output]
    inputs: list[Ref]
    binds: list[Ref]
    metadata: tuple[Any, ...]
    after: list[int] = field(default_factory=list)
    after_readers_of: list[int] = field(default_factory=list)
    boundaries: tuple[Boundary, ...] = ()
    kept: tuple[Kept, ...] = ()
    sites: tuple[int | None, ...] = ()
    known_reports: dict[tuple[Any, ...], Reports] = field(default_factory=dict)

    def reports_of(self, sites: tuple[Any, ...]) -> Reports:
        """Where the CHECKs report for these sites: the same for the same lines of the user."""
        found = self.known_reports.get(sites)
        if found is None:
            if len(self.known_reports) >= MAX_REPORTS:
                self.known_reports.clear()
            found = self.known_reports[sites] = Reports(sites)
        return found


@dataclass
class Template:
    """The kernels of a structure in an order in which they may run; what nodes of the walk become."""

    kernels: list[KernelTemplate]
    results: list[tuple[int, int, int]]

    @functools.cached_property
    def inner(self) -> dict[Place, int]:
        """The outputs that only these kernels can reach, and how many of them touch each."""
        return inner_outputs(self.kernels, self.results)


def plan(order: Sequence[UOp], roots: Sequence[UOp], fuse: bool) -> Template:
    """Plan the kernels that compute the roots; `order` is the walk below them."""
    return _Assembler(order, roots, fuse).template()


def _target_of(roots: Sequence[UOp]) -> tuple[Target, Prices | None]:
    """What the kernels are for, and what operations cost there."""
    name = next((device_name(root) for root in roots if device_of(root) is not None), Device.DEFAULT)
    try:
        device = Device[name]
        return device.target, None if device.renderer is None else prices_for(device.renderer)
    except DeviceError:
        return Target(name), None  # it only holds data: whatever it cannot do fails when it is compiled


def _share_places(kernels: Sequence[KernelTemplate]) -> None:
    """Let kernels that differ in places of memory alone be one, called with these."""
    common = shared(dict.fromkeys(kernel.ast for kernel in kernels if not kernel.binds))
    for kernel in kernels:
        if kernel.ast in common and not kernel.binds:
            kernel.ast, binds = common[kernel.ast]
            kernel.binds = [("value", bind) for bind in binds]


class _Assembler:
    def __init__(self, order: Sequence[UOp], roots: Sequence[UOp], fuse: bool) -> None:
        self.order, self.roots = nameable(order), roots
        self.walk = {node: number for number, node in enumerate(self.order)}
        self.sizes_bound = binds_in_args(order)
        target, prices = _target_of(roots)
        graph = self.graph = plain(order, roots, target)
        results = dict.fromkeys(graph.stored.values())
        for root in roots:
            node = graph.version[root] if root.op is Ops.ASSIGN else below_movement(graph.value[root])
            if node not in graph.stored and not is_held(node):
                results[node] = None
        walk = toposort_effective([*results, *graph.version.values()], follow=False)
        #: version of memory → the ASSIGN that ends it
        self.killer = {n.src[0]: n for n in walk if n.op is Ops.ASSIGN and not is_held(n)}
        watched = {version for version in self.killer if version not in graph.stored}
        self.plan = Placement(walk, results, graph.stored, watched, target, prices, fuse).run()
        self.assigns: dict[UOp, list[UOp]] = {}
        for assign, value in graph.stored.items():
            self.assigns.setdefault(value, []).append(assign)
        self.targets: dict[int, list[Store]] = {}
        self.place: dict[UOp, Place] = {}  # node → where its value can be loaded from
        self.version_place: dict[UOp, Place] = {}  # ASSIGN → the store that makes it
        #: (kernel, what it would read) → the copy that it reads
        self.redirect: dict[tuple[int, UOp], Place] = {}
        self.before: dict[int, set[int]] = {g.id: set() for g in self.plan.groups}
        self.readers_of: dict[int, list[int]] = {}
        self.site_place: dict[int, int] | None = None

    def template(self) -> Template:
        self._choose_targets()
        self._order_by_data()
        self._guard_writes()
        order = self._ordered()
        self.position = {group: number for number, group in enumerate(order)}
        self.sizes: dict[Ref, int] = {}
        outputs = {group: [self._output(*target) for target in self.targets[group]] for group in order}
        for group, sorting in self._sorts():
            outputs[group].append(self._working_memory(sorting))
        for group, made in outputs.items():
            for number, output in enumerate(made):
                self.sizes["out", self.position[group], number] = output.size
        kernels = [self._kernel(group, outputs[group]) for group in order]
        _share_places(kernels)
        return Template(kernels, self._results())

    def _sorts(self) -> list[tuple[int, UOp]]:
        return [(g.id, self.targets[g.id][0][0]) for g in self.plan.groups if g.kind == "sort"]

    def _working_memory(self, node: UOp) -> Output:
        """What a SORT needs besides its result: one more output, which nobody reads."""
        plan = SortPlan.of(shape_of(node), node.src[0].dtype)  # type: ignore[arg-type]
        return Output(None, self._device_of(node), plan.words, WORD)

    def _results(self) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        for raw, made in self.graph.version.items():
            if made in self.version_place:
                group, output = self.version_place[made]
                found.append((self.walk[raw], self.position[group], output))
        # what is stored on request is stored once, for everybody
        asked = [node for node in self.order if node.op in (Ops.COPY, Ops.CONTIGUOUS)]
        for root in dict.fromkeys([*self.roots, *asked]):
            base = below_movement(self.graph.value[root])
            if root.op is not Ops.ASSIGN and base in self.place:
                group, output = self.place[base]
                if self.targets[group][output][1] is not None:
                    continue  # it lives in the memory it was assigned to, which may be written again
                found.append((self.walk[root], self.position[group], output))
        return found

    # *** where stores go

    def _choose_targets(self) -> None:
        roots = {below_movement(self.graph.value[r]) for r in self.roots if r.op is not Ops.ASSIGN}
        for group in self.plan.groups:
            targets: list[Store] = []
            for node in group.stores:
                assigns = [node] if node.op is Ops.ASSIGN else self.assigns.get(node, [])
                # readers find the value in the first: rather in memory that is not written again
                assigns = sorted(assigns, key=lambda assign: assign in self.killer)
                if node.op is not Ops.ASSIGN and self._needs_own_memory(node, group, assigns, roots):
                    self.place[node] = (group.id, len(targets))
                    targets.append((node, None))
                for assign in assigns:
                    self.version_place[assign] = (group.id, len(targets))
                    self.place.setdefault(node, (group.id, len(targets)))
                    targets.append((node, assign))
            self.targets[group.id] = targets if group.kind == "kernel" else targets[:1]
            if group.kind != "kernel":  # it has one target; others are copied from that
                for again, into in targets[1:]:
                    self._copy_over(group.id, 0, again, into)

    def _needs_own_memory(self, node: UOp, group: Group, assigns: list[UOp], roots: set[UOp]) -> bool:
        """Whether a value must be kept apart from the memory it is assigned to: it was asked for itself, or
        others read it and what it is assigned to is written again."""
        if not assigns or node in roots or node.op in (Ops.SCATTER, Ops.SORT):
            return True
        readers = any(g is not group for g in self._reads_of(node))
        return readers and all(assign in self.killer for assign in assigns)

    def _order_by_data(self) -> None:
        """Producers before consumers, and each write after the one whose version it continues."""
        for node, uses in self.plan.uses.items():
            home = self.plan.home.get(node)
            if home is not None:
                for consumer in uses:
                    if consumer is not home:
                        self.before[consumer.id].add(home.id)
        for assign, (group, _) in list(self.version_place.items()):
            earlier = self.version_place.get(assign.src[0])
            if earlier is not None and earlier[0] != group:
                self.before[group].add(earlier[0])

    # *** writing in place

    def _guard_writes(self) -> None:
        """Reads of a version come before the write that ends it; where that cannot be, one of the two is
        copied.
        """
        for number, targets in list(self.targets.items()):  # those that copy what was stored first, too
            group = self.plan.groups[number] if number < len(self.plan.groups) else None
            for output, (node, assign) in enumerate(list(targets)):
                if assign is None:
                    continue
                version = assign.src[0]
                if "fresh" in version.facts:
                    continue  # nobody reads it
                reads = {} if version in self.graph.stored else self._reads_of(version)
                if (
                    group is not None
                    and group in reads
                    and not self._reads_where_it_writes(group, node, assign, reads[group])
                ):
                    self._store_first(group, output, node, assign)
                writer = self.version_place[assign][0]
                for reader in reads:
                    if reader.id != writer:
                        self._order_read(reader.id, writer, version)
                if version in self.walk:
                    self.readers_of.setdefault(writer, []).append(self.walk[version])

    def _reads_of(self, version: UOp) -> dict[Group, set[Indices]]:
        """The kernels that read a version, and at which indices."""
        found = {g: set(at) - {CONTINUES} for g, at in self.plan.uses.get(version, {}).items()}
        return {group: tuples for group, tuples in found.items() if tuples}

    def _reads_where_it_writes(self, group: Group, node: UOp, assign: UOp, tuples: set[Indices]) -> bool:
        """Whether a kernel reads each element of its target only where it writes it.

        A write along fewer loops than the kernel has (an axis of one element in a loop of n turns) is done in
        one turn, and the others would read what it wrote.
        """
        if len(tuples) != 1 or group.kind != "kernel":
            return False
        shape = shape_of(assign.src[1]) if node.op is Ops.ASSIGN else shape_of(node)
        if not group.walks_whole(shape):
            return False
        tracker = assign.arg or ShapeTracker.from_shape(shape)
        written, valid = tracker.indexed(group.ranges)
        ((read,),) = tuples
        return written is read and valid.op is Ops.CONST

    def _store_first(self, group: Group, output: int, node: UOp, assign: UOp) -> None:
        """Store the value in memory of its own, then copy it over the target."""
        self.targets[group.id][output] = (node, None)
        if node.op is Ops.ASSIGN:
            del self.place[node]  # who reads the new version finds it where the copy puts it
        else:
            self.place[node] = (group.id, output)
        copier = self._copy_over(group.id, output, node, assign)
        for number, waits in self.before.items():  # who came after the write comes after the copy
            if group.id in waits and number != copier:
                waits.add(copier)

    def _copy_over(self, group: int, output: int, node: UOp, assign: UOp | None) -> int:
        """A kernel that copies what a kernel stored over the memory of an ASSIGN."""
        if assign is None:
            raise RuntimeError("a copy needs a target")
        copier = self._new_kernel()
        self.targets[copier] = [(node, assign)]
        self.redirect[copier, assign] = (group, output)
        self.version_place[assign] = (copier, 0)
        self.before[copier] = {group}
        return copier

    def _order_read(self, reader: int, writer: int, version: UOp) -> None:
        """Run a reader before a writer, or let it read a copy of the old contents."""
        if not self._comes_before(writer, reader):
            self.before[writer].add(reader)
            return
        copier = self._new_kernel()
        self.targets[copier] = [(version, None)]
        self.redirect[reader, version] = (copier, 0)
        made = self.version_place.get(version)
        self.before[copier] = {made[0]} if made else set()
        self.before[reader].add(copier)
        self.before[writer].add(copier)

    def _comes_before(self, first: int, then: int) -> bool:
        stack, seen = [then], {then}
        while stack:
            top = stack.pop()
            if top == first:
                return True
            for earlier in self.before[top]:
                if earlier not in seen:
                    seen.add(earlier)
                    stack.append(earlier)
        return False

    def _new_kernel(self) -> int:
        number = len(self.before)
        self.before[number] = set()
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
                "the kernels of this graph wait for each other: writes that end what they need"
            )
        return order

    # *** kernels

    def _output(self, node: UOp, assign: UOp | None) -> Output:
        if assign is not None:
            version = assign.src[0]
            return Output(self._where_is(version), device_name(version), _flat_size(version), version.dtype)
        if node.op is Ops.SCATTER:  # into the memory that was begun for it
            return Output(
                self._where_is(below_movement(node.src[0])), device_name(node), numel(node), node.dtype
            )
        count = numel(node.src[1]) if node.op is Ops.ASSIGN and not is_held(node) else numel(node)
        return Output(None, self._device_of(node), count, node.dtype)

    def _device_of(self, node: UOp) -> str:
        """Where a value is stored: numbers, which are on no device, where they are needed."""
        if device_of(node) is not None:
            return device_name(node)
        return self.plan.home[node].device or Device.DEFAULT

    def _where_is(self, node: UOp, kernel: int = -1) -> Ref:
        """The reference under which a kernel finds a node's value in memory."""
        place = self.redirect.get((kernel, node)) or self.place.get(node) or self.version_place.get(node)
        if place is not None:
            return ("out", self.position[place[0]], place[1])
        if node in self.walk:
            return ("leaf", self.walk[node])
        if node.op is Ops.BUFFER_VIEW:
            part = ("view", self._where_is(node.src[0], kernel), node.arg, node.dtype)
            self.sizes[part] = node.arg[0]
            return part
        raise RuntimeError(f"{node.op} is not in memory")

    def _size_of(self, reference: Ref) -> int:
        return _flat_size(self.order[reference[1]]) if reference[0] == "leaf" else self.sizes[reference]

    def _kernel(self, number: int, outputs: list[Output]) -> KernelTemplate:
        targets = self.targets[number]
        group = self.plan.groups[number] if number < len(self.plan.groups) else None
        if group is None:
            made = self._memory_copy(number, targets[0], outputs[0])
        elif group.kind == "copy":
            made = self._device_copy(group, targets[0][0], outputs)
        elif group.kind == "sort":
            made = self._sort(group, targets[0][0], outputs)
        else:
            made = self._compute(group, targets, outputs)
        made.after = sorted(self.position[earlier] for earlier in self.before[number])
        made.after_readers_of = self.readers_of.get(number, [])
        made.boundaries = tuple([self._boundary(group, *target) for target in targets])
        if group is not None:
            rows = group.rows.really_kept(self.plan.home)
            made.kept = tuple([Kept(size, node.facts.get("origin")) for node, size in rows.items()])
        return made

    def _boundary(self, group: Group | None, node: UOp, assign: UOp | None) -> Boundary:
        if group is None:
            reason = "its target is read elsewhere, so the value is stored first and copied over"
            if assign is None:
                reason = "the old contents are read after the write that ends them"
            return Boundary(reason, 0, node.facts.get("origin"))
        reason = self.plan.reasons.get(node, "")
        if assign is not None and node is not assign:
            reason = "it is assigned"
        readers = sum(1 for reader in self._reads_of(node) if reader is not group)
        return Boundary(reason, readers, node.facts.get("origin"))

    def _compute(self, group: Group, targets: list[Store], outputs: list[Output]) -> KernelTemplate:
        where = functools.partial(self._where_is, kernel=group.id)
        builder = AstBuilder(group, self.plan.home, where, self._size_of, len(outputs))
        stores = [
            builder.store(number, node, assign.arg if assign is not None else None, output.size)
            for number, ((node, assign), output) in enumerate(zip(targets, outputs, strict=True))
        ]
        binds: list[Ref] = [self._bind_reference(bind) for bind in builder.binds]
        metadata = builder.latest_first([node for node, _ in targets])
        made = KernelTemplate(builder.kernel(stores), outputs, list(builder.inputs), binds, metadata)
        made.sites = tuple([self._walked_site(site) for site in builder.sites])
        return made

    def _walked_site(self, site: Any) -> int | None:
        """The node of the walk that remembers this site of a checked index."""
        if site is None:
            return None
        if self.site_place is None:
            self.site_place = {
                id(node.facts["site"]): n for n, node in enumerate(self.order) if "site" in node.facts
            }
        return self.site_place.get(id(site))

    def _bind_reference(self, bind: UOp) -> Ref:
        return ("leaf", self.walk[bind]) if bind in self.walk else ("bind", self.sizes_bound[bind])

    def _device_copy(self, group: Group, node: UOp, outputs: list[Output]) -> KernelTemplate:
        """A copy of whole memories and repeated numbers, one after another."""
        references: list[Ref] = []
        reads, count = [], 0
        for source in node.src[:-1]:
            base = below_movement(source)
            if base.op is Ops.CONST:
                tracker = ShapeTracker.from_shape((numel(source),))
                reads.append(UOp(Ops.CONST, base.dtype, (UOp(Ops.VIEW, arg=tracker),), base.arg))
                count += numel(source)
                continue
            references.append(self._where_is(base, group.id))
            size = self._size_of(references[-1])
            memory = node.dtype.ptr(size)
            reads.append(UOp(Ops.DEFINE_GLOBAL, memory, (), len(outputs) + len(references) - 1))
            count += size
        device = UOp(Ops.DEVICE, arg=outputs[0].device)
        ast = UOp(Ops.COPY, node.dtype, (*reads, device), count)
        origin = node.facts.get("origin")
        return KernelTemplate(ast, outputs, references, [], (origin,) if origin else ())

    def _sort(self, group: Group, node: UOp, outputs: list[Output]) -> KernelTemplate:
        """A kernel that sorts: the order, and its working memory."""
        builder = AstBuilder(
            group, self.plan.home, functools.partial(self._where_is, kernel=group.id), self._size_of, 2
        )
        keys = builder.value(node.src[0])
        stores = []
        for number, (output, words) in enumerate(zip(outputs, (None, outputs[1].size), strict=True)):
            value = UOp(Ops.SORT, output.dtype, (keys,), words)
            memory = UOp(Ops.DEFINE_GLOBAL, output.dtype.ptr(output.size), (), number)
            view = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape(shape_of(value)))
            stores.append(UOp(Ops.STORE, dtypes.void, (memory, view, value)))
        return KernelTemplate(
            UOp.sink(*stores), outputs, list(builder.inputs), [], builder.latest_first([node])
        )

    def _memory_copy(self, number: int, target: Store, output: Output) -> KernelTemplate:
        """A kernel that copies on its device: a value that was stored first, or contents that a write will
        end.
        """
        node, assign = target
        if assign is None:
            reference = self._where_is(node)
            shape = shape_of(node)
        else:
            reference = self._where_is(assign, number)
            shape = shape_of(assign.src[1]) if node.op is Ops.ASSIGN else shape_of(node)
        source = ShapeTracker.from_shape(shape)
        into = assign.arg if assign is not None and assign.arg is not None else source
        read = UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(self._size_of(reference)), (), 1)
        write = UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(output.size), (), 0)
        trackers = (source, into)
        binds = dict.fromkeys(
            b for t in trackers for b in binds_of(t) if b in self.walk or b in self.sizes_bound
        )
        views = [UOp(Ops.VIEW, dtypes.void, (), t.unbind()[0]) for t in trackers]
        load = UOp(Ops.LOAD, node.dtype, (read, views[0]))
        store = UOp(Ops.STORE, dtypes.void, (write, views[1], load))
        references = [self._bind_reference(bind) for bind in binds]
        return KernelTemplate(UOp.sink(store), [output], [reference], references, ())


def _flat_size(node: UOp) -> int:
    """The number of elements of the memory that a version is of."""
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    size: int = node.arg[0] if node.op is Ops.BUFFER_VIEW else node.arg
    return size

"""Groups of a placement and where they store → the graph of a plan: kernels, and the memory between them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...codegen.direct_kernels import direct_kernel
from ...device import Device
from ...dtype import dtypes
from ...ir.args import WORKING, Array, KernelRecord, ProgramArg
from ...ir.device import device_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...shape import numel
from ...shape.movement import below_movement
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ...shape.tracker import ShapeTracker
from ..graph.in_memory import STORED_WHOLE, is_materialized, siblings
from ..graph.requested import binds_in_args, binds_of, nameable
from ..graph.versions import device_name
from ..place.group import Group
from ..place.kernel_ast import AstBuilder
from .checked_once import CheckedOnce
from .template import (
    Binding,
    Boundary,
    BoundSize,
    KernelTemplate,
    Leaf,
    Memory,
    Output,
    Part,
    StagedValue,
    Template,
)
from .writes import Store, Writes


def assemble(writes: Writes, as_planned: Callable[[KernelRecord], KernelRecord]) -> Template:
    """The kernels in the order in which they run, and what nodes of the walk become.

    as_planned  the record in a kernel's AST, of one in the tensor graph: the body of a loop is planned
    """
    return _Assembler(writes, as_planned).template()


class _Assembler:
    def __init__(self, writes: Writes, as_planned: Callable[[KernelRecord], KernelRecord]) -> None:
        self.as_planned = as_planned
        self.writes, self.placed, self.graph = writes, writes.placed, writes.graph
        asked = self.graph.request
        self.order = nameable(asked.order)
        self.walk = {node: number for number, node in enumerate(self.order)}
        self.sizes_bound = binds_in_args(asked.order)
        #: kernel → what it makes
        self.outputs: dict[int, list[Output]] = {}
        self.site_index: dict[int, int] | None = None
        self.checked = CheckedOnce(writes.before) if has_op(self.order, Ops.CHECK) else None

    def template(self) -> Template:
        """All kernels."""
        order = self.writes.order
        for kernel in order:  # after those that wrote what it goes on to write
            self.outputs[kernel] = self._outputs(kernel)
        for group in self.placed.groups:
            if group.kind == "direct":
                self.outputs[group.id] += [self._output(node, None) for node in self._unread(group)]
                self.outputs[group.id] += self._working_memory(group.stores[0])
        return Template([self._kernel(kernel) for kernel in order], self._results())

    def _working_memory(self, node: UOp) -> list[Output]:
        """What a direct kernel needs besides its results: one more output, which nobody reads."""
        working = direct_kernel(node).working
        if working is None:
            return []
        given = [Array(source.dtype, shape_of(source)) for source in node.src]
        made = working(self.as_planned(node.arg.kernel), given)
        return [Output(None, self._device_of(node), made.size, made.dtype)]

    def _unread(self, group: Group) -> list[UOp]:
        """The results that nobody asked for: it stores them all the same."""
        return [node for node in siblings(group.stores[0]) if node not in group.stores]

    def _results(self) -> list[tuple[int, Output]]:
        found: list[tuple[int, Output]] = []
        for raw, made in self.graph.version.items():
            if made in self.writes.version_output:
                group, output = self.writes.version_output[made]
                found.append((self.walk[raw], self.outputs[group][output]))
        # what is stored on request, or takes long, is stored once, for everybody
        asked = [
            node
            for node in of_op(self.order, *STORED_WHOLE, Ops.PROGRAM)
            if (node.arg.kernel.is_stored if node.op is Ops.PROGRAM else node.arg != "passing")
        ]
        for root in dict.fromkeys([*self.graph.request.roots, *asked]):
            base = below_movement(self.graph.value[root])
            if root.op is not Ops.ASSIGN and base in self.writes.output:
                group, output = self.writes.output[base]
                if self.writes.targets[group][output][1] is not None:
                    continue  # it lives in the memory it was assigned to, which may be written again
                found.append((self.walk[root], self.outputs[group][output]))
        return found

    # *** kernels

    def _outputs(self, kernel: int) -> list[Output]:
        ((version, assign), *_) = targets = self.writes.targets[kernel]
        if self.writes.group(kernel) is None and assign is None:  # a copy of all that is in a memory
            return [Output(None, device_name(version), numel(version), version.dtype)]
        return [self._output(*target) for target in targets]

    def _output(self, node: UOp, assign: UOp | None) -> Output:
        if assign is not None:
            version = assign.src[0]
            return Output(self._where_is(version), device_name(version), _flat_size(version), version.dtype)
        if node.op is Ops.SCATTER:  # into the memory that was begun for it
            return Output(
                self._where_is(below_movement(node.src[0])), device_name(node), numel(node), node.dtype
            )
        begins = node.arg.kernel.begins if node.op is Ops.PROGRAM else ()
        if begins and node.arg.output in begins:  # into the memory begun for it
            begun = node.src[begins.index(node.arg.output) - len(begins)]
            return Output(self._where_is(below_movement(begun)), device_name(node), numel(node), node.dtype)
        stored = node.src[1] if node.op is Ops.ASSIGN and not is_materialized(node) else node
        length = prod(shape_of(stored))
        known = length if isinstance(length, UOp) else None
        return Output(None, self._device_of(node), numel(stored), node.dtype, known)

    def _device_of(self, node: UOp) -> str:
        """Where a value is stored: numbers, which are on no device, where they are needed."""
        if device_of(node) is not None or node not in self.placed.home:
            return device_name(node)
        return self.placed.home[node].device or Device.DEFAULT

    def _where_is(self, node: UOp, kernel: int = -1) -> Memory:
        """The memory in which a kernel finds a node's value."""
        writes = self.writes
        place = (
            writes.redirect.get((kernel, node)) or writes.output.get(node) or writes.version_output.get(node)
        )
        if place is not None:
            return self.outputs[place[0]][place[1]]
        if node in self.walk:
            return Leaf(self.walk[node])
        if node.op is Ops.BUFFER_VIEW:
            size, offset = node.arg
            return Part(self._where_is(node.src[0], kernel), size, offset, node.dtype)
        raise RuntimeError(f"{node.op} is not in memory")

    def _size_of(self, memory: Memory) -> int:
        return _flat_size(self.order[memory.number]) if isinstance(memory, Leaf) else memory.size

    def _kernel(self, number: int) -> KernelTemplate:
        outputs = self.outputs[number]
        targets = self.writes.targets[number]
        group = self.writes.group(number)
        if group is None:
            made = self._memory_copy(number, targets[0], outputs[0])
        elif group.kind == "copy":
            made = self._device_copy(group, targets[0][0], outputs)
        elif group.kind == "collective":
            made = self._collective(group, targets[0][0], outputs)
        elif group.kind == "direct":
            made = self._direct(group, [node for node, _ in targets] + self._unread(group), outputs)
        elif group.kind == "one pass":
            made = self._one_pass(group, targets, outputs)
        else:
            made = self._compute(group, targets, outputs)
        made.after = [self.outputs[earlier][0] for earlier in sorted(self.writes.before[number])]
        ended = self.writes.readers_of.get(number, ())
        made.after_readers_of = [self.walk[version] for version in ended if version in self.walk]
        made.boundaries = tuple([self._boundary(group, *target) for target in targets])
        if group is not None and group.rows is not None:
            rows = group.rows.really_staged(self.placed.home)
            made.staged = tuple([StagedValue(size, node.facts.get("origin")) for node, size in rows.items()])
        return made

    def _boundary(self, group: Group | None, node: UOp, assign: UOp | None) -> Boundary:
        if group is None:
            reason = "its target is read elsewhere, so the value is stored first and copied over"
            if assign is None:
                reason = "the old contents are read after the write that ends them"
            return Boundary(reason, 0, node.facts.get("origin"))
        reason = self.placed.reasons.get(node, "")
        if assign is not None and node is not assign:
            reason = "it is assigned"
        readers = sum(1 for reader in self.writes.reads_of(node) if reader is not group)
        return Boundary(reason, readers, node.facts.get("origin"))

    def _compute(self, group: Group, targets: list[Store], outputs: list[Output]) -> KernelTemplate:
        where = functools.partial(self._where_is, kernel=group.id)
        checked = frozenset() if self.checked is None else self.checked.before(group.id)
        builder = AstBuilder(group, self.placed.home, where, self._size_of, len(outputs), checked)
        stores = [
            builder.store(number, node, assign.arg if assign is not None else None, output.size)
            for number, ((node, assign), output) in enumerate(zip(targets, outputs, strict=True))
        ]
        binds: list[Binding] = [self._binding(bind) for bind in builder.binds]
        metadata = builder.latest_first([node for node, _ in targets])
        made = KernelTemplate(builder.kernel(stores), outputs, list(builder.inputs), binds, metadata)
        made.sites = tuple([self._walked_site(node.facts.get("site")) for node in builder.checks])
        if self.checked is not None:
            self.checked.note(group.id, builder.checks, made)
        return made

    def _walked_site(self, site: Any) -> int | None:
        """The node of the walk that remembers this site of a checked index."""
        if site is None:
            return None
        if self.site_index is None:
            self.site_index = {
                id(node.facts["site"]): n for n, node in enumerate(self.order) if "site" in node.facts
            }
        return self.site_index.get(id(site))

    def _binding(self, bind: UOp) -> Binding:
        return Leaf(self.walk[bind]) if bind in self.walk else BoundSize(self.sizes_bound[bind])

    def _device_copy(self, group: Group, node: UOp, outputs: list[Output]) -> KernelTemplate:
        """A copy of whole memories and repeated numbers, one after another."""
        inputs: list[Memory] = []
        reads, count = [], 0
        for source in node.src[:-1]:
            base = below_movement(source)
            if base.op is Ops.CONST:
                tracker = ShapeTracker.from_shape((numel(source),))
                reads.append(UOp(Ops.CONST, base.dtype, (UOp(Ops.VIEW, arg=tracker),), base.arg))
                count += numel(source)
                continue
            inputs.append(self._where_is(base, group.id))
            size = self._size_of(inputs[-1])
            number = len(outputs) + len(inputs) - 1
            reads.append(UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(size), (), number))
            count += size
        device = UOp(Ops.DEVICE, arg=outputs[0].device)
        ast = UOp(Ops.COPY, node.dtype, (*reads, device), count)
        origin = node.facts.get("origin")
        return KernelTemplate(ast, outputs, inputs, [], (origin,) if origin else ())

    def _collective(self, group: Group, node: UOp, outputs: list[Output]) -> KernelTemplate:
        """What a device sends, from memory, and receives; after the collective before it."""
        inputs = [self._where_is(below_movement(source), group.id) for source in node.src]
        reads = [
            UOp(Ops.DEFINE_GLOBAL, source.dtype.ptr(self._size_of(memory)), (), number + 1)
            for number, (source, memory) in enumerate(zip(node.src, inputs, strict=True))
        ]
        ast = UOp(Ops.COLLECTIVE, node.dtype, tuple(reads), node.arg)
        origin = node.facts.get("origin")
        return KernelTemplate(ast, outputs, inputs, [], (origin,) if origin else ())

    def _direct(self, group: Group, nodes: list[UOp], outputs: list[Output]) -> KernelTemplate:
        """A kernel whose program is written at once: a store for each result, and one for its working memory,
        whose node has what the memory is for in the place of a result.
        """
        where = functools.partial(self._where_is, kernel=group.id)
        builder = AstBuilder(group, self.placed.home, where, self._size_of, len(outputs))
        first = nodes[0]
        kernel = self.as_planned(first.arg.kernel)
        inputs = tuple(map(builder.value, first.src[: len(first.src) - len(kernel.begins)]))
        stores = []
        for number, output in enumerate(outputs):
            result = nodes[number] if number < len(nodes) else None
            made = (WORKING, output.size) if result is None else (result.arg.output,)
            arg = ProgramArg(kernel, *made)
            value = UOp(first.op, output.dtype, inputs, arg)
            memory = UOp(Ops.DEFINE_GLOBAL, output.dtype.ptr(output.size), (), number)
            shape = (output.size,) if result is None else shape_of(result)
            view = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape(shape))
            stores.append(UOp(Ops.STORE, dtypes.void, (memory, view, value)))
        metadata = builder.latest_first(nodes)
        return KernelTemplate(UOp.sink(*stores), outputs, list(builder.inputs), [], metadata)

    def _one_pass(self, group: Group, targets: list[Store], outputs: list[Output]) -> KernelTemplate:
        """A kernel whose reductions are done in one pass: its values say so."""
        made = self._compute(group, targets, outputs)
        stores = []
        for store in made.ast.src:
            memory, view, value = store.src
            value = UOp(Ops.ONE_PASS, value.dtype, (value,))
            stores.append(store.replace(src=(memory, view, value)))
        made.ast = UOp.sink(*stores)
        return made

    def _memory_copy(self, number: int, target: Store, output: Output) -> KernelTemplate:
        """A kernel that copies on its device: a value that was stored first, or contents that a write will
        end.
        """
        node, assign = target
        if assign is None:
            memory = self._where_is(node)
            shape = shape_of(node)
        else:
            memory = self._where_is(assign, number)
            shape = shape_of(assign.src[1]) if node.op is Ops.ASSIGN else shape_of(node)
        source = ShapeTracker.from_shape(shape)
        into = assign.arg if assign is not None and assign.arg is not None else source
        read = UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(self._size_of(memory)), (), 1)
        write = UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(output.size), (), 0)
        trackers = (source, into)
        binds = dict.fromkeys(
            b for t in trackers for b in binds_of(t) if b in self.walk or b in self.sizes_bound
        )
        views = [UOp(Ops.VIEW, dtypes.void, (), t.unbind()[0]) for t in trackers]
        load = UOp(Ops.LOAD, node.dtype, (read, views[0]))
        store = UOp(Ops.STORE, dtypes.void, (write, views[1], load))
        bindings = [self._binding(bind) for bind in binds]
        return KernelTemplate(UOp.sink(store), [output], [memory], bindings, ())


def _flat_size(node: UOp) -> int:
    """The number of elements of the memory that a version is of."""
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    size: int = node.arg[0] if node.op is Ops.BUFFER_VIEW else node.arg
    return size

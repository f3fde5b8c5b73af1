"""Groups of a placement and the Outputs that they make (`writes.py`) → the kernels of a plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...codegen.direct_kernels import direct_kernel
from ...dtype import dtypes
from ...ir.args import WORKING, Array, KernelRecord, ProgramArg
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...shape import numel
from ...shape.movement import below_movement
from ...shape.rules import shape_of
from ...shape.tracker import ShapeTracker
from ..graph.requested import STORED_WHOLE, binds_in_args, binds_of, siblings
from ..place.kernel_ast import AstBuilder, Group
from .checked_once import CheckedOnce
from .template import (
    Binding,
    BoundSize,
    KernelTemplate,
    Leaf,
    Memory,
    Output,
    StagedValue,
    Template,
)
from .writes import Store, Writes, flat_size


def assemble(writes: Writes, as_planned: Callable[[KernelRecord], KernelRecord]) -> Template:
    """The kernels in the order in which they run, and what nodes of the walk become.

    as_planned  the record in a kernel's AST, of one in the tensor graph: the body of a loop is planned
    """
    made = _Assembler(writes, as_planned)
    return Template([made.kernel(number) for number in writes.order], made.results())


class _Assembler:
    def __init__(self, writes: Writes, as_planned: Callable[[KernelRecord], KernelRecord]) -> None:
        self.as_planned = as_planned
        self.writes, self.placed, self.graph = writes, writes.placed, writes.graph
        asked = self.graph.request
        self.walk, self.order = writes.walk, list(writes.walk)
        self.sizes_bound = binds_in_args(asked.order)
        self.site_index: dict[int, int] | None = None
        self.checked = CheckedOnce(writes.before) if has_op(self.order, Ops.CHECK) else None

    def _working_memory(self, node: UOp) -> list[Output]:
        """What a direct kernel needs besides its results: one more output, which nobody reads."""
        working = direct_kernel(node).working
        if working is None:
            return []
        given = [Array(source.dtype, shape_of(source)) for source in node.src]
        made = working(self.as_planned(node.arg.kernel), given)
        return [Output(None, self.writes.device_of(node), made.size, made.dtype)]

    def results(self) -> list[tuple[int, Output]]:
        """What nodes of the walk become."""
        found: list[tuple[int, Output]] = []
        for raw, version in self.graph.version.items():
            if version in self.writes.version_output:
                found.append((self.walk[raw], self.writes.version_output[version].made))
        # what is stored on request, or takes long, is stored once, for everybody
        asked = [
            node
            for node in of_op(self.order, *STORED_WHOLE, Ops.PROGRAM)
            if (node.arg.kernel.is_stored if node.op is Ops.PROGRAM else node.arg != "passing")
        ]
        for root in dict.fromkeys([*self.graph.request.roots, *asked]):
            base = below_movement(self.graph.value[root])
            store = self.writes.output.get(base)
            # what lives in the memory it was assigned to may be written again
            if root.op is not Ops.ASSIGN and store is not None and store.assign is None:
                found.append((self.walk[root], store.made))
        return found

    # *** kernels

    def _size_of(self, memory: Memory) -> int:
        return flat_size(self.order[memory.number]) if isinstance(memory, Leaf) else memory.size

    def kernel(self, number: int) -> KernelTemplate:
        """One of those that Writes has numbered."""
        targets = self.writes.targets[number]
        group = self.writes.group(number)
        if group is None:
            made = self._memory_copy(targets[0])
        elif group.kind == "copy":
            made = self._device_copy(group, targets[0])
        elif group.kind == "collective":
            made = self._collective(group, targets[0])
        elif group.kind == "direct":
            made = self._direct(group, targets)
        elif group.kind == "one pass":
            made = self._one_pass(group, targets)
        else:
            made = self._compute(group, targets)
        made.after = [self.writes.targets[earlier][0].made for earlier in sorted(self.writes.before[number])]
        ended = self.writes.readers_of.get(number, ())
        made.after_readers_of = [self.walk[version] for version in ended if version in self.walk]
        if group is not None and group.rows is not None:
            rows = group.rows.really_staged(self.placed.home)
            made.staged = tuple([StagedValue(size, node.facts.get("origin")) for node, size in rows.items()])
        return made

    def _compute(self, group: Group, targets: list[Store]) -> KernelTemplate:
        where = functools.partial(self.writes.memory_of, kernel=group.id)
        checked = frozenset() if self.checked is None else self.checked.before(group.id)
        builder = AstBuilder(group, self.placed.home, where, self._size_of, len(targets), checked)
        if group.rows is not None:
            builder.rows = group.rows.axes(self.placed.home)
        stores = [
            builder.store(number, each.node, None if each.assign is None else each.assign.arg, each.made.size)
            for number, each in enumerate(targets)
        ]
        outputs = [store.made for store in targets]
        binds: list[Binding] = [self._binding(bind) for bind in builder.binds]
        metadata = builder.latest_first([store.node for store in targets])
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

    def _device_copy(self, group: Group, store: Store) -> KernelTemplate:
        """A copy of whole memories and repeated numbers, one after another."""
        node = store.node
        inputs: list[Memory] = []
        reads, count = [], 0
        for source in node.src[:-1]:
            base = below_movement(source)
            if base.op is Ops.CONST:
                tracker = ShapeTracker.from_shape((numel(source),))
                reads.append(UOp(Ops.CONST, base.dtype, (UOp(Ops.VIEW, arg=tracker),), base.arg))
                count += numel(source)
                continue
            inputs.append(self.writes.memory_of(base, group.id))
            size = self._size_of(inputs[-1])
            reads.append(UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(size), (), len(inputs)))
            count += size
        device = UOp(Ops.DEVICE, arg=store.made.device)
        ast = UOp(Ops.COPY, node.dtype, (*reads, device), count)
        origin = node.facts.get("origin")
        return KernelTemplate(ast, [store.made], inputs, [], (origin,) if origin else ())

    def _collective(self, group: Group, store: Store) -> KernelTemplate:
        """What a device sends, from memory, and receives; after the collective before it."""
        node = store.node
        inputs = [self.writes.memory_of(below_movement(source), group.id) for source in node.src]
        reads = [
            UOp(Ops.DEFINE_GLOBAL, source.dtype.ptr(self._size_of(memory)), (), number + 1)
            for number, (source, memory) in enumerate(zip(node.src, inputs, strict=True))
        ]
        ast = UOp(Ops.COLLECTIVE, node.dtype, tuple(reads), node.arg)
        origin = node.facts.get("origin")
        return KernelTemplate(ast, [store.made], inputs, [], (origin,) if origin else ())

    def _direct(self, group: Group, targets: list[Store]) -> KernelTemplate:
        """A kernel whose program is written at once: a store for each result, asked for or not, and one for
        its working memory, whose node has what the memory is for in the place of a result.
        """
        unread = [node for node in siblings(group.stores[0]) if node not in group.stores]
        nodes = [store.node for store in targets] + unread
        outputs = [store.made for store in targets] + [self.writes.output_of(node) for node in unread]
        outputs += self._working_memory(group.stores[0])
        where = functools.partial(self.writes.memory_of, kernel=group.id)
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

    def _one_pass(self, group: Group, targets: list[Store]) -> KernelTemplate:
        """A kernel whose reductions are done in one pass: its values say so."""
        made = self._compute(group, targets)
        stores = []
        for store in made.ast.src:
            memory, view, value = store.src
            value = UOp(Ops.ONE_PASS, value.dtype, (value,))
            stores.append(store.replace(src=(memory, view, value)))
        made.ast = UOp.sink(*stores)
        return made

    def _memory_copy(self, store: Store) -> KernelTemplate:
        """A kernel that copies on its device: a value that was stored first, or contents that a write will
        end.
        """
        node, assign, output = store.node, store.assign, store.made
        if assign is None:
            memory = self.writes.memory_of(node)
            shape = shape_of(node)
        else:
            memory = self.writes.memory_of(assign, store.kernel)
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
        written = UOp(Ops.STORE, dtypes.void, (write, views[1], load))
        bindings = [self._binding(bind) for bind in binds]
        return KernelTemplate(UOp.sink(written), [output], [memory], bindings, ())

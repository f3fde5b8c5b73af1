"""Target code (form 6) becomes a linear program (form 7): a flat list of UOps in the order they are written.

The order and the loops are those of `ir/nest.py`. In the list:

    RANGE(0, end) ... ENDRANGE   a loop; on a device with a grid SPECIAL takes its place (`assign_grid`)
    DEFINE_ACC ... ASSIGN        a REDUCE: its accumulator starts before its loops, is assigned at their end,
                                 and is the reduction's value after them; a SCAN reads it inside of its
                                 loop, where it holds what came before this turn
    IF ... ENDIF                 around stores that are only sometimes valid
    CHECK(good, index)           at the end of the loop in which its value is asked for (`report_checks`)
    LOAD(INDEX, other)           `other` is the value where the INDEX is not valid
    DEFINE_LOCAL                 the memory of a STAGE; the loops that fill it stand before who reads it
    STAGE(memory)                behind these, where a workgroup has filled what it shares (`gpu/`)
    SCAN(acc)                    what a running sum of floats is before this turn (`nest_sums.compensate`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...dtype import DType, PtrDType, dtypes
from ...ir.args import Filled
from ...ir.linear import LinearWriter, is_declared
from ...ir.nest import (
    Block,
    Guard,
    closed_ranges,
    is_pipelined,
    is_shared,
    loop_nest,
    loops_around,
    ranges_of,
    scan_ranges,
    scan_values,
)
from ...ir.ops import ELEMENTWISE, Ops, start_value
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ..legalizing.products import is_of_warps
from ..opt.grids import grids
from .nest_sums import is_float_sum


def linearize(sink: UOp, renderer: Any = None, arguments: Iterable[UOp] = ()) -> list[UOp]:
    """The linear program of a kernel, for a target if there is a `renderer`. Sums are plain (`form_sums`).

    `arguments` are buffers that the kernel takes even if nothing reads them.
    """
    written = _Writer(renderer=renderer)
    nodes = sink.toposort()
    touched = {node.arg for node in of_op(nodes, Ops.DEFINE_GLOBAL)}
    for buffer in arguments:
        if buffer.arg not in touched:
            written.declare(untouched(buffer, renderer))
    loaded = {node.src[0] for node in of_op(nodes, Ops.LOAD)}
    loaded |= {node.src[1] for node in of_op(nodes, Ops.FETCH)}
    loaded |= {place for node in of_op(nodes, Ops.WMMA) for place in node.src}
    if has_op(nodes, Ops.WMMA):
        written.matrices = {node for node in nodes if is_of_warps(node)}
    written.updates = updates_in_branches(nodes)
    written.deferred = {node for update in written.updates.values() for node in update}
    uses = Counter(source for node in nodes for source in node.src if source in loaded)
    written.loaded = loaded - {store.src[0] for store in written.updates if uses[store.src[0]] == 2}
    body = loop_nest(sink)
    if renderer is not None and renderer.target.grid:
        grids().guard(body)
    written.block(body)
    return written.listed()


def untouched(buffer: UOp, renderer: Any) -> UOp:
    """A buffer that nothing reads or writes: bytes, where the target has no name for its type."""
    dtype = buffer.dtype
    if renderer is None or not isinstance(dtype, PtrDType) or renderer.supports(Ops.LOAD, dtype.base):
        return buffer
    return buffer.replace(dtype=dtypes.uint8.ptr(dtype.size * dtype.base.itemsize))


@dataclass(eq=False)
class _Writer(LinearWriter):
    """Writes the items of a loop nest in order.

    made      node of form 6 → what it is in the list
    emitted   all of the body
    loaded    the INDEXes that are read through
    guards    the IFs of the Guards that are open
    matrices  WMMAs, and sums of such: written with what they add to
    updates   STORE → what it changes, and what becomes of that
    deferred  all of these, which are written in the STORE's branch
    running   SCAN that adds floats → its accumulator
    """

    renderer: Any = None
    made: dict[UOp, UOp] = field(default_factory=dict)
    emitted: set[UOp] = field(default_factory=set)
    accumulators: int = 0
    loaded: set[UOp] = field(default_factory=set)
    guards: list[UOp] = field(default_factory=list)
    matrices: set[UOp] = field(default_factory=set)
    updates: dict[UOp, list[UOp]] = field(default_factory=dict)
    deferred: set[UOp] = field(default_factory=set)
    running: dict[UOp, UOp] = field(default_factory=dict)

    # *** writing

    def emit(self, node: UOp) -> UOp:
        """Append a node of the list; declarations that it reads go to the head."""
        for source in node.src:
            if is_declared(source):
                self.declare(source)
        self.add(node)
        self.emitted.add(node)
        return node

    def declare(self, node: UOp) -> UOp:
        if node not in self.head:
            for source in node.src:
                self.declare(source)
            self.head[node] = None
        return node

    def read(self, node: UOp) -> UOp:
        """What the node is in the list."""
        found = self.made.get(node)
        if found is None:
            if not is_declared(node):
                raise RuntimeError(f"{node.op} is read before it is written")
            found = self.made[node] = self.declare(node)
        return found

    def block(self, body: Block) -> None:
        """Write the items of the kernel's body, or of a loop, and of all loops in it."""
        items, position = body.items, 0
        checks: list[UOp] = []
        while position < len(items):
            item = items[position]
            position += 1
            if isinstance(item, Block):
                self.open(item)
                self.block(item)
            elif item.op in (Ops.STORE, Ops.FETCH):
                position = self.stores(items, position - 1)
            elif item.op is Ops.INDEX and item not in self.loaded:
                continue  # written with its STORE
            elif item.op is Ops.CHECK:
                self.made[item] = self.read(item.src[0])
                checks.append(item)
            elif item in self.running:
                self.made[item] = self.emit(UOp(item.op, item.dtype, (self.running[item],)))
            elif item.op in (Ops.REDUCE, Ops.SCAN) or item in self.matrices or item in self.deferred:
                continue  # written with what needs it
            else:
                self.node(item)
        for check in checks:
            good, place = map(self.read, check.src[1:])
            self.emit(UOp(Ops.CHECK, dtypes.void, (good, place), check.arg))
        if body.range is not None:
            self.close(body)
        elif isinstance(body, Guard):
            self.emit(UOp(Ops.ENDIF, dtypes.void, (self.guards.pop(),)))

    def node(self, node: UOp) -> None:
        read = self.read
        if node.op is Ops.STAGE:
            memory = self.made[node] = self.read(node.src[0])
            if is_shared(node):
                self.emit(UOp(Ops.STAGE, dtypes.void, (memory,), Filled(node.arg, is_pipelined(node))))
            return
        turns = loops_around(node) if node.op is Ops.LOAD else ()
        src = tuple([read(s) for s in node.src if s not in turns])
        if node.op is Ops.LOAD and len(src) == 1 and len(src[0].src) > 2:
            src = (*src, self.declare(_same_in_all_lanes(node.dtype, 0)))
        made = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        # An element of a STAGE that was stored before, or what differs in a CHECK alone, its value here.
        self.made[node] = made if made in self.visible and _is_pure(made) else self.emit(made)

    def open(self, block: Block) -> None:
        loop = block.range
        if isinstance(block, Guard):
            self.guards.append(self.emit(UOp(Ops.IF, dtypes.void, (self.read(block.condition),))))
            return
        if loop is None:
            raise RuntimeError("the kernel's body is no loop")
        for reduce in block.opens:
            self.start(reduce)
        self.emit(self.loop(loop))

    def loop(self, loop: UOp) -> UOp:
        made = self.made.get(loop)
        if made is None:
            start = self.declare(UOp(Ops.CONST, loop.dtype, (), 0))
            made = self.made[loop] = UOp(Ops.RANGE, loop.dtype, (start, self.read(loop.src[0])), loop.arg)
        return made

    def start(self, reduce: UOp) -> None:
        """The accumulator of a REDUCE or SCAN, with the value that changes nothing."""
        start = start_value(reduce.arg, reduce.dtype.scalar())
        initial = self.declare(_same_in_all_lanes(reduce.dtype, start))
        closed = closed_ranges(reduce) or scan_ranges(reduce)
        ranges = [self.loop(r) for r in closed if r.src[0] in self.made or is_declared(r.src[0])]
        self.made[reduce] = self.accumulator(initial, ranges)
        if reduce.op is Ops.SCAN and is_float_sum(reduce):
            self.running[reduce] = self.made[reduce]

    def accumulator(self, initial: UOp, ranges: list[UOp]) -> UOp:
        self.accumulators += 1
        return self.emit(UOp(Ops.DEFINE_ACC, initial.dtype, (initial, *ranges), (self.accumulators - 1,)))

    def close(self, block: Block) -> None:
        for reduce in block.closes:
            if reduce.op is Ops.SCAN:
                self.carry(reduce)
                continue
            if is_of_warps(reduce.src[0]):
                continue
            self.assign(self.made[reduce], reduce.arg, self.made[reduce], self.read(reduce.src[0]))
        if self.matrices:
            self.add_matrices([reduce for reduce in block.closes if is_of_warps(reduce.src[0])])
        self.emit(UOp(Ops.ENDRANGE, dtypes.void, (self.made[block.range],)))  # type: ignore[index]

    def add_matrices(self, reduces: list[UOp]) -> None:
        """Each WMMA once, for all the sums of a thread that it adds to."""
        sums: dict[tuple[UOp, ...], dict[int, UOp]] = {}
        for reduce in reduces:
            products = _terms(reduce.src[0])
            without = tuple([product.replace(src=product.src[:-1]) for product in products])
            sums.setdefault(without, {})[int(products[0].src[-1].arg)] = reduce
        for listed, own in sums.items():
            kind = next(iter(own.values())).dtype
            start = self.declare(_same_in_all_lanes(kind, start_value(Ops.ADD, kind)))
            # one that nothing is stored of, as beyond a border, is added to all the same
            accumulators = [
                self.made[own[n]] if n in own else self.accumulator(start, [])
                for n in range(listed[0].arg.sums)
            ]
            for product in listed:
                words = [self.read(word) for word in product.src]
                self.emit(UOp(Ops.WMMA, dtypes.void, (*accumulators, *words), product.arg))

    def carry(self, scan: UOp) -> None:
        """What the next turn of a SCAN begins with."""
        carried = accumulator = self.running.get(scan, self.made[scan])
        value, *factor = [self.read(s) for s in scan_values(scan)]
        if factor:
            carried = UOp(Ops.MUL, scan.dtype, (accumulator, *factor))
            if carried not in self.visible:
                self.emit(carried)
        self.assign(accumulator, Ops.ADD if factor else scan.arg, carried, value)

    def assign(self, accumulator: UOp, op: Ops, *values: UOp) -> None:
        combined = UOp(op, accumulator.dtype, values)
        if combined not in self.visible:  # a SCAN's: most often this turn uses it
            self.emit(combined)
        self.emit(UOp(Ops.ASSIGN, accumulator.dtype, (accumulator, combined)))

    def stores(self, items: list[UOp | Block], position: int) -> int:
        """Write the STOREs from here on that are valid under one condition; the position after them."""
        first = items[position]
        valid = _condition(first)
        end = position
        while end < len(items) and _is_store(items[end]) and _condition(items[end]) is valid:
            end += 1
        stores: list[UOp] = items[position:end]  # type: ignore[assignment]
        places = [self.index_of_store(store.src[0], valid) for store in stores]
        opened = None
        if valid is not None and not (self.guards and self.guards[-1].src[0] is self.read(valid)):
            opened = UOp(Ops.IF, dtypes.void, (self.read(valid),))
            if opened in self.emitted:  # the same condition again, further on: its place tells them apart
                opened = opened.replace(src=(*opened.src, places[0]))
            self.emit(opened)
        for store, place in zip(stores, places, strict=True):
            for node in self.updates.get(store, ()):
                src = (place,) if node.op is Ops.LOAD else tuple(map(self.read, node.src))
                self.made[node] = self.emit(UOp(node.op, node.dtype, src, node.arg))
            src = (place, *map(self.read, store.src[1:]))
            self.emit(UOp(store.op, dtypes.void, src, store.arg if store.op is Ops.FETCH else None))
        if opened is not None:
            self.emit(UOp(Ops.ENDIF, dtypes.void, (opened,)))
        return end

    def index_of_store(self, access: UOp, valid: UOp | None) -> UOp:
        """The INDEX that is stored to, without the condition that an IF states."""
        bare = access if valid is None else UOp(Ops.INDEX, access.dtype, access.src[:2])
        found = self.made.get(bare)
        if found is None:
            src = tuple([self.read(s) for s in bare.src])
            found = self.made[bare] = UOp(Ops.INDEX, bare.dtype, src)
            self.emit(found)
        return found


def updates_in_branches(nodes: list[UOp]) -> dict[UOp, list[UOp]]:
    """STORE → the LOAD of what it overwrites, and what is computed of that for it alone, in order.

    Where the STORE has a condition, all of this stands in its branch. The LOAD needs no condition then, and a
    processor that foresees the branch begins it earlier.
    """
    updated: dict[UOp, UOp] = {
        node.src[0]: node for node in of_op(nodes, Ops.STORE) if _condition(node) is not None
    }
    loads = [node for node in of_op(nodes, Ops.LOAD) if node.src[0] in updated]
    if not loads:
        return {}
    uses = Counter(source for node in nodes for source in node.src)
    found = {}
    for load in loads:
        store = updated[load.src[0]]
        order = store.src[1].toposort()
        alone = {store}
        for node in (store, *reversed(order)):
            if node is store or (node in alone and node.op in ELEMENTWISE and node.op is not Ops.CHECK):
                alone.update([source for source in node.src if uses[source] == 1])
        update: dict[UOp, None] = {}
        for node in order:
            if node in alone and (node is load or any(source in update for source in node.src)):
                update[node] = None
        same_loops = all(ranges_of(node) == ranges_of(store.src[0]) for node in update)
        if update and store.src[1] in update and same_loops:
            found[store] = list(update)
    return found


def _terms(value: UOp) -> list[UOp]:
    """What a sum of WMMAs adds up, in order."""
    return [value] if value.op is Ops.WMMA else [term for source in value.src for term in _terms(source)]


def _is_pure(node: UOp) -> bool:
    """Whether a node gives the same wherever it stands: a load too, of what is there before the kernel."""
    if node.op is Ops.LOAD:
        return node.src[0].src[0].op is Ops.DEFINE_GLOBAL
    return node.op in (Ops.INDEX, Ops.GEP, Ops.VECTORIZE) or node.op in ELEMENTWISE


def _is_store(item: UOp | Block) -> bool:
    return isinstance(item, UOp) and item.op in (Ops.STORE, Ops.FETCH)


def _condition(store: Any) -> UOp | None:
    """The condition of a whole STORE; that of single lanes stays with its INDEX."""
    access = store.src[0]
    return access.src[2] if len(access.src) > 2 and access.src[2].dtype is dtypes.bool else None


def _same_in_all_lanes(dtype: DType, value: Any) -> UOp:
    return UOp(Ops.CONST, dtype, (), value if dtype.count == 1 else (value,) * dtype.count)

"""What computing each node takes, from the leaves up: operations, memory that is read, work for one element.

A value that would make its reader's kernel pass the target's limits must be stored, before any other
decision is taken: so no kernel grows without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...codegen.price import WORST, prices_for
from ...dtype import dtypes
from ...ir.ops import ELEMENTWISE, MOVEMENT, OPS, TRANSFERS, Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from ...shape import numel
from ...shape.movement import base_and_tracker, below_movement
from ...target import Target
from ..graph.requested import is_generated, is_materialized

#: What is computed once for each of its elements, or stored.
ONCE = (Ops.REDUCE_AXIS, Ops.SCAN)
#: What is stored because it is asked for, or is a kernel of its own.
_STORED = frozenset((Ops.CONTIGUOUS, Ops.SCATTER, Ops.ASSIGN, Ops.PROGRAM, *TRANSFERS))
#: What reads memory; a COPY and a GATHER not by all of their sources.
_READS = frozenset((Ops.GATHER, Ops.PROGRAM, *TRANSFERS))
#: So many operations, one on the other, are looked through for what a value is made of.
FEW = 8


class Weights:
    """The weights of all nodes of a plain graph.

    order   its toposort                     stored  whole writes, which are no nodes of their own
    must    nodes that are stored → why: those that would make a kernel pass a limit are added
    fuse    False: every value is stored

    cost    node → the work for one element of it, in simple vector operations
    weight  node → the operations and the memory that a kernel takes which stores it
    """

    def __init__(
        self,
        order: Sequence[UOp],
        stored: dict[UOp, UOp],
        must: dict[UOp, str],
        target: Target,
        renderer: Renderer | None,
        fuse: bool,
    ) -> None:
        self.order, self.stored, self.must = order, stored, must
        self.target, self.fuse = target, fuse
        self.hit = target.memory.hit
        # whatever all nodes in one kernel would become, it may be within the target's limit
        small = WORST * sum([OPS[node.op].cost for node in order]) <= target.max_ops
        self.price = _rough if renderer is None or small else prices_for(renderer)
        self.cost: dict[UOp, int] = {}
        self.weight: dict[UOp, tuple[int, frozenset[UOp]]] = {}
        self._terms: dict[UOp, tuple[int, tuple[UOp, ...]]] = {}
        self._weigh()

    def _weigh(self) -> None:
        size: dict[UOp, int] = {}
        args: dict[UOp, frozenset[UOp]] = {}
        none: frozenset[UOp] = frozenset()
        #: where the walk had come to, in operations, at the first node that would be inlined below
        begin: dict[UOp, int] = {}
        come = 0
        max_ops, max_args = self.target.max_ops, self.target.max_args
        for assign in self.stored:
            size[assign], args[assign], self.cost[assign] = 1, none, self.hit
        for node in self.order:
            if node.op in MOVEMENT:
                source = node.src[0]
                size[node], args[node], self.cost[node] = size[source], args[source], self.cost[source]
                if source in begin:
                    begin[node] = begin[source]
                continue
            if is_materialized(node):
                size[node], args[node], self.cost[node] = 1, frozenset((node,)), self.hit
                continue
            if is_generated(node) or node.op in (Ops.DEVICE, Ops.UNIQUE):
                size[node], args[node], self.cost[node] = 1, none, 0
                continue
            self._mark_sources(node)
            if node.op in TRANSFERS:  # no kernel: however much it copies
                self.weight[node] = (1, none)
                size[node], args[node], self.cost[node] = 1, frozenset((node,)), self.hit
                continue
            while True:
                total, read, cost = self._inline_size(node, size, args)
                first = min((begin[s] for s in node.src if s in begin), default=come)
                if total > max_ops:
                    # what is shared was counted twice; what is inlined lies between first and here
                    total = min(total, come - first + self.price(node))
                if total > max_ops:
                    total = self._exact_size(node, max_ops)
                if total <= max_ops and len(read) <= max_args:
                    break
                largest = max(
                    (b for b in map(below_movement, node.src) if self._may_force(b)),
                    key=lambda b: (
                        (len(args[b]), size[b]) if len(read) > max_args else (size[b], len(args[b]))
                    ),
                    default=None,
                )
                if largest is None:
                    break
                limit = f"{max_args} arguments" if len(read) > max_args else f"{max_ops} operations"
                made_of, between = self._made_of(largest)
                if made_of:
                    largest = max(made_of, key=lambda b: (size[b], len(args[b])))
                self.must[largest] = f"the kernel would pass {limit}"
                forced = 1, frozenset((largest,)), self.hit
                for reader in (*between, node):
                    for below in (largest, *reader.src):
                        base = below_movement(below)
                        if base is largest:
                            size[below], args[below], self.cost[below] = forced
                            begin.pop(below, None)
                        elif base in between:
                            size[below], args[below] = self.weight[base]
                            self.cost[below] = self.cost[base]
                    if reader is not node:
                        size[reader], args[reader], self.cost[reader] = self._inline_size(reader, size, args)
                        self.weight[reader] = size[reader], args[reader]
            self.weight[node] = (total, read)
            if node in self.must:
                size[node], args[node], self.cost[node] = 1, frozenset((node,)), self.hit
            else:
                size[node], args[node], self.cost[node] = total, read, cost
                begin[node] = first
            come += self.price(node)

    def _inline_size(
        self, node: UOp, size: dict[UOp, int], args: dict[UOp, frozenset[UOp]]
    ) -> tuple[int, frozenset[UOp], int]:
        total, cost = self.price(node), OPS[node.op].cost
        read: frozenset[UOp] = frozenset()
        for source in dict.fromkeys(node.src):
            total += size[source]
            cost += self.cost[source]
            if args[source] is not read:
                read = read | args[source] if read else args[source]
        if node.op in ONCE:
            cost = self.hit  # it will be stored, or computed once
        return total, read, min(cost, 100_000)

    def _exact_size(self, node: UOp, limit: int) -> int:
        """The size of what would be inlined here, shared nodes counted once; stops past the limit."""
        return self.together((node,), limit)

    def together(self, nodes: Iterable[UOp], limit: int) -> int:
        """The size of a kernel that stores these nodes, shared ones counted once; stops past the limit."""
        stack = list(nodes)
        seen = set(stack)
        total, must, parts = 0, self.must, self._terms
        while stack and total <= limit:
            top = stack.pop()
            price, made_of = parts.get(top) or self._part(top)
            total += price
            for base in made_of:
                if base not in seen and base not in must:
                    seen.add(base)
                    stack.append(base)
        return total

    def _part(self, node: UOp) -> tuple[int, tuple[UOp, ...]]:
        """What a node alone takes, and what may be inlined in it; kept, as graphs are walked often."""
        bases = dict.fromkeys(map(below_movement, node.src))
        made_of = tuple([base for base in bases if not (is_materialized(base) or is_generated(base))])
        found = self._terms[node] = self.price(node), made_of
        return found

    def exact_cost(self, node: UOp, limit: int) -> int:
        """What computing an element costs with shared nodes counted once (`self.cost` counts them per use);
        stops past the limit. A reduce is one more value to read, since a kernel computes it once, or it is
        stored; one of a row stays in a register.
        """
        known, seen, stack, total = self.cost[node], {node}, [node], 0
        while stack and total < known and total <= limit:
            top = stack.pop()
            read = top in self.must or top.op in ONCE or top.op is Ops.REDUCE_AXIS or is_materialized(top)
            if top is not node and read:
                of_row = top.op is Ops.REDUCE_AXIS and numel(top) != numel(node)
                total += 0 if of_row else self.hit
                continue
            total += OPS[top.op].cost
            for source in top.src:
                base = below_movement(source)
                if base not in seen and not is_generated(base):
                    seen.add(base)
                    stack.append(base)
        return min(total, known)

    def _made_of(self, value: UOp) -> tuple[list[UOp], list[UOp]]:
        """What may be stored instead of a value that is larger than all that it is made of together, as a
        product of two matrices is before its sum; and what computes it from that, sources first.

        Nothing where the value is no larger than that, or more than `FEW` operations above it.
        """
        between: list[UOp] = []
        made_of: dict[UOp, None] = {}
        seen = {value}

        def visit(node: UOp, room: int) -> None:
            for source in dict.fromkeys(map(below_movement, node.src)):
                inside = source.op in ELEMENTWISE and source not in self.must and not is_materialized(source)
                if not inside or is_generated(source) or numel(source) != numel(value) or not room:
                    made_of[source] = None
                elif source not in seen:
                    seen.add(source)
                    visit(source, room - 1)
            between.append(node)

        visit(value, FEW)
        together = sum([0 if is_generated(source) else numel(source) for source in made_of])
        if value.op not in ELEMENTWISE or together >= numel(value):
            return [], []
        return [source for source in made_of if self._may_force(source)], between

    def _may_force(self, base: UOp) -> bool:
        return base not in self.must and (base.op in ELEMENTWISE or base.op in ONCE)

    def _mark_sources(self, node: UOp) -> None:
        """Note what this node's sources must be, whatever else is decided."""
        op = node.op
        if op in _STORED or op is Ops.GATHER:
            name = node.arg.kernel.kind if op is Ops.PROGRAM else op.name.lower()
            if op is not Ops.GATHER:
                self.must.setdefault(node, f"{name} is asked for")
            if op in _READS:
                read = {Ops.COPY: node.src[:-1], Ops.GATHER: node.src[:1]}.get(op, node.src)
                for source in read:
                    base = below_movement(source)
                    if not is_materialized(base) and base.op is not Ops.CONST:
                        self.must.setdefault(base, f"{name} reads it from memory")
        elif not self.fuse and (op in ELEMENTWISE or op in ONCE) and not is_generated(node):
            self.must.setdefault(node, "FUSE=0")


def _rough(node: UOp) -> int:
    return OPS[node.op].cost


# *** questions about single values


def sums_rows(reduce: UOp) -> bool:
    """Whether vectors will walk what is reduced, so that its sums come one by one: rows times a vector.

    That is so where something as large as all that is summed lies contiguous along it.
    """
    whole = numel(reduce.src[0])
    if whole == numel(reduce):
        return False
    seen, todo = set[UOp](), [reduce.src[0]]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in ELEMENTWISE:
            todo += node.src
            continue
        base, tracker = base_and_tracker(node)
        if numel(base) >= whole and len(tracker.views) == 1:
            if tracker.views[0].strides[reduce.arg.axes[-1]] == 1:
                return True
    return False


def operations_on(stored: Iterable[UOp]) -> int:
    """What is computed of what a kernel sums and reads, until it is stored."""
    seen, todo, total = set[UOp](), list(stored), 0
    while todo:
        node = below_movement(todo.pop())
        if node not in seen and node.op in ELEMENTWISE and not is_materialized(node):
            seen.add(node)
            total += OPS[node.op].cost
            todo += node.src
    return total


def widens_memory(node: UOp, target: Target) -> bool:
    """Whether a value is a 16-bit float in memory, made wider: who reads it many times packs it converted.

    A grid reads it as it is, and the products of tensor cores take it so: there what would be stored is it.
    """
    if node.op is not Ops.CAST or not dtypes.is_float(node.src[0].dtype) or not dtypes.is_float(node.dtype):
        return False
    narrow = node.src[0].dtype.itemsize == 2 < node.dtype.itemsize
    return narrow and (target.grid or is_materialized(below_movement(node.src[0])))

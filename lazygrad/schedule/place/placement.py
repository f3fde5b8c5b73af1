"""Where does a value live? INLINE, recomputed where used; STAGE, a row of it kept in the kernel
(`staged_rows.py`); or STORE, written to a buffer: a kernel boundary.

The graph is walked from its results down. Every node comes with the *index tuples* at which its consumers
need it: the same index expressions that lowering will make, so that "how often is this computed" is counted
and not guessed. A node is stored where it must be (results, copies, what a write reads), where a reduce would
be computed more than once, and where recomputing costs more than a trip through memory. A stored node whose
value a kernel computes anyway, once per point of its loops, becomes one more output of that kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...codegen.expressions.ranges import BESIDE
from ...decisions import DEAREST, only_predicted, yes_or_no
from ...dtype import dtypes
from ...ir.args import AxisType, RangeArg
from ...ir.index import as_index, const
from ...ir.ops import ELEMENTWISE, MOVEMENT, TRANSFERS, Ops
from ...ir.uop import UOp
from ...ir.walks import device_of, has_op
from ...renderer import Renderer
from ...shape import numel
from ...shape.movement import base_and_tracker, below_movement
from ...shape.rules import shape_of
from ...shape.sizes import vmax
from ...simplify.validity import has_division
from ...target import Target
from ..extensions import PROPOSERS, Proposals
from ..graph.indices import ANYWHERE, CONTINUES, Indices, are_all, block_of, free_ranges, through
from ..graph.requested import is_generated, is_materialized, near
from ..graph.versions import device_name
from ..rewrite.moments import Moment
from ..rewrite.plain import PlainGraph
from ..rewrite.split_reduce import ENOUGH_ON_A_GRID
from .kernel_ast import Group
from .staged_rows import Rows
from .weights import ONCE, Weights, operations_on, sums_rows, widens_memory

# What recomputing is held against: a trip of each element through memory (`Memory.trip`) and one more kernel
# (`Launch.kernel`), both in operations on elements. What follows are choices, the same for every target.

#: What reads its sources whole, from memory.
_READ_WHOLE = frozenset((Ops.PROGRAM, Ops.COLLECTIVE))
#: A value needed at more different index tuples than this in one kernel is not inlined: code grows with them.
MAX_TUPLES = 4
#: A reduce inside the loop of another stays there up to this much work: the nest hides it from vectorization.
MAX_NESTED_WORK = 1 << 15
#: A kernel with fewer independent outer points than this, and much work, gives a reduce a kernel of its own.
MIN_PARALLEL, SERIAL_WORK = 8, 1 << 20
#: What is computed of sums one by one is worth a kernel of its own from such a share of the reduction on.
LATE_SHARE = 8
#: So many outputs that lie apart have a product's other factor in common: the rows of a tile of registers.
TILE_ROWS = 4
#: In the loop that a scan runs along, a reduce of so few steps does not need a kernel that is made for it.
SHORT_REDUCE = 8
#: A large sum of products runs in tiles, chosen for what it sums, which walk few elements of each row.
#: More memories than these are walked by a kernel of their own, if caches do not hold them, or if the sum
#: takes much longer than that: AdamW of 256 x 256 weights takes 0.08 ms, in tiles 0.3.
FEW_STREAMS = 4
#: OPTS may have values stored that need not be, up to so many bytes or those that the program has anyway.
SMALL = 1 << 20


@dataclass
class Placed:
    """What placement decided: the kernels, who stores what, why, and who needs each node at which indices."""

    graph: PlainGraph
    groups: list[Group]
    home: dict[UOp, Group]
    reasons: dict[UOp, str]
    uses: dict[UOp, dict[Group, dict[Indices, int]]]


class Placement:
    """One run over a plain graph."""

    def __init__(
        self,
        graph: PlainGraph,
        target: Target,
        renderer: Renderer | None,
        fuse: bool,
        beside: bool = False,
        inline: frozenset[UOp] = frozenset(),
        spares: bool = False,
        budget: int = 0,
    ) -> None:
        self.graph, stored = graph, graph.stored
        #: values that are computed where they are used, whatever the rules say
        self.inline = inline
        #: whole writes are no nodes of their own: their values are results
        self.order = [node for node in graph.order if node not in stored]
        self.stored = stored
        self.target = target
        self.fuse, self.beside, self.budget = fuse, beside, budget
        #: bytes of the largest value that OPTS may have stored: what is read and returned; not known yet
        self.room = -1
        #: what has an index that is checked below it; not known yet
        self.checked: set[UOp] | None = None
        self.must: dict[UOp, str] = dict.fromkeys(graph.results, "it is a result")
        self.groups: list[Group] = []
        self.home: dict[UOp, Group] = {}
        self.reasons: dict[UOp, str] = {}
        self.uses: dict[UOp, dict[Group, dict[Indices, int]]] = {}
        #: versions of buffers that a write will end: all reads of them are recorded
        self.watched = watched = {version for version in graph.ended_by if version not in stored}
        #: value → the versions of memory that it is written over
        self.overwritten: dict[UOp, set[UOp]] = {}
        for assign, value in stored.items():
            if assign.src[0] in watched:
                self.overwritten.setdefault(value, set()).add(assign.src[0])
        self.weights = Weights(self.order, stored, self.must, target, renderer, fuse)
        #: family of moments → the kernel that computes them
        self.families: dict[int, Group] = {}
        #: a kernel and a walk through its blocks → the loops of that walk, by axis
        self.walks: dict[tuple[Group, Moment], dict[int, UOp]] = {}
        reduces = fuse and has_op(self.order, Ops.REDUCE_AXIS)
        self.proposed = PROPOSERS[-1](self.order, self.must, target, spares) if reduces else Proposals()
        self.counter = 0

    def run(self) -> Placed:
        """Place every node."""
        for node in reversed(self.order):
            if node.op in MOVEMENT or is_generated(node):
                continue
            if is_materialized(node):
                continue
            if node in self.must and not self._is_spread(node):
                self._store(node, self.must[node])
            elif node in self.uses:
                rows = self._rows(node)
                reason = ""
                if node not in self.inline:
                    reason = self.proposed.why(node) or self._why_store(node, rows)
                    reason = reason or self._why_store_anyway(node)
                if reason and not self._is_spread(node):
                    self._store(node, reason)
                else:
                    for group, tuples in self.uses[node].items():
                        if group in rows:
                            tuples = self._keep(node, group, rows[group], tuples)
                        for indices, times in list(tuples.items()):
                            self._use_sources(node, group, indices, times)
        return Placed(self.graph, self.groups, self.home, self.reasons, self.uses)

    def _is_spread(self, node: UOp) -> bool:
        """Whether a value of numbers alone is needed by kernels of several devices: each computes it."""
        if device_of(node) is not None or not (node.op in ELEMENTWISE or node.op in ONCE):
            return False
        return len({group.device for group in self.uses.get(node, ())}) > 1

    # *** decisions, top-down

    def _why_store(self, node: UOp, rows: dict[Group, int]) -> str:
        """The reason to store a node of which kernels could keep rows; empty where it is inlined."""
        uses = self.uses[node]
        if node.op is Ops.REDUCE_AXIS:
            return self._why_store_reduce(node, uses)
        if node.op is Ops.SCAN:
            return self._why_store_scan(node, uses)
        if node.op is Ops.CHECK and any(map(self._updates, uses)):
            return "an index is checked before memory is overwritten"
        if any(len(tuples) > MAX_TUPLES for tuples in uses.values()):
            return f"it is needed at more than {MAX_TUPLES} different places of one kernel"
        count = numel(node)
        evaluations = 0
        for group, tuples in uses.items():
            evaluations += max(tuples.values()) if group in rows else sum(tuples.values())
        if evaluations <= count or widens_memory(node, self.target):
            return ""
        if self.weights.cost[node] <= self.target.memory.hit and not self.weights.weight[node][1]:
            return ""  # reading it again would cost as much
        evaluations = 0
        for group, tuples in uses.items():
            times = [n // self._shared(group, at, n) for at, n in tuples.items()]
            evaluations += max(times) if group in rows else sum(times)
        if evaluations <= count:
            return ""
        trip = count * self.target.memory.trip + self.target.launch.kernel
        again = evaluations - count
        hit = self.target.memory.hit  # who reads what is stored pays one each time
        extra = again * (self.weights.cost[node] - hit)
        if extra > trip:
            extra = again * (self.weights.exact_cost(node, trip // again + hit) - hit)
        if extra > trip and self._is_stored(node, lambda: self._dearer(node, again, trip)):
            return (
                f"recomputing costs at least {extra:,} operations "
                f"({evaluations / max(count, 1):.3g} times each element), storing {trip:,}"
            )
        return ""

    def _why_store_anyway(self, node: UOp) -> str:
        """The reason to store what is predicted to be faster inlined: OPTS says so."""
        if only_predicted() or node in self.inline:
            return ""
        if not yes_or_no("store", near(node), False, lambda: self._may_store(node)):
            return ""
        for group in self.uses[node]:
            group.more += 1
        return "OPTS says so"

    def _may_store(self, node: UOp) -> bool:
        """Whether a value may be stored that need not be: memory has room for it, kernels an argument, and no
        index is checked then that nobody asks for.
        """
        if self.budget or not self.fuse:
            return False
        if self.checked is None:
            self.checked = set()
            for each in self.order:
                if each.op is Ops.CHECK or not self.checked.isdisjoint(each.src):
                    self.checked.add(each)
        places = (at for tuples in self.uses[node].values() for at in tuples)
        if node in self.checked and not any(are_all(at, shape_of(node)) for at in places):
            return False
        if self.room < 0:
            leaves = {source for each in self.order for source in each.src if is_materialized(source)}
            known = [*(each for each in leaves if each.op is not Ops.KERNEL), *self.graph.results]
            self.room = max(SMALL, sum(numel(each) * each.dtype.itemsize for each in known))
        if numel(node) * node.dtype.itemsize > self.room:
            return False
        most = self.target.max_args
        return all(len(group.reads) + len(group.stores) + group.more + 1 < most for group in self.uses[node])

    def _is_stored(self, node: UOp, dearer: Callable[[], float]) -> bool:
        """Whether a value is stored, as predicted: inlined, it takes so many times as long."""
        if yes_or_no("store", near(node), True, lambda: dearer() <= DEAREST):
            return True
        self.inline |= {node}
        return False

    def _dearer(self, node: UOp, again: int, trip: int) -> float:
        """How many times as long as a trip through memory it takes to compute a value so often again."""
        hit = self.target.memory.hit
        return again * (self.weights.exact_cost(node, int(2 * DEAREST * trip) // again + hit) - hit) / trip

    def _why_store_reduce(self, node: UOp, uses: dict[Group, dict[Indices, int]]) -> str:
        if len(uses) > 1:
            return f"{len(uses)} kernels need this reduce"
        ((group, tuples),) = uses.items()
        if len(tuples) > 1:
            return "this reduce is needed at different indices"
        if node not in self.must and not self.weights.weight[node][1].isdisjoint(self._old(group)):
            return "its kernel overwrites memory that it reads"
        ((indices, times),) = tuples.items()
        count = numel(node)
        free = free_ranges(indices)
        if group.rows is not None and not free.isdisjoint(group.rows.fillings):
            return "a row is kept of what is made of this reduce"
        outputs = frozenset(r for r in group.ranges if r.op is Ops.RANGE)
        work = count * (numel(node.src[0]) // max(count, 1))
        points = math.prod(vmax(r.src[0]) for r in free)
        computed = points if free <= outputs else times  # loops that only some values need go inside
        if computed > count and self._is_stored(node, lambda: computed / max(count, 1)):
            return f"this reduce would be computed {computed / max(count, 1):.3g} times per element"
        if group.kind == "scatter" and (reason := self._why_store_before_scatter(count, work)):
            return reason
        if not free <= outputs:
            if node in self.graph.moments:
                return "it is a sum of blocks: one kernel makes all that are of the same"
            short = work <= SHORT_REDUCE * count and dtypes.is_int(node.dtype)  # unrolled, it is no loop
            lanes = math.inf if self.target.grid else self.target.vector_bytes // 4
            if work > MAX_NESTED_WORK and not short and self._is_stored(node, lambda: lanes):
                return f"a reduce of {work:,} steps inside the loop of another"
            return ""
        if group.scanned in free and (free != outputs or work > SHORT_REDUCE * count):
            return "its kernel has a scan, which runs in its innermost loop"
        if free == outputs:
            if work > MAX_NESTED_WORK:
                if node in self.graph.means or node in self.graph.moments:
                    group.heavy += 1
                    return ""  # what it walks is near when the next one does
                second = group.heavy and not self._is_cached_row(node, count)
                if second and self._is_stored(node, lambda: 2):
                    return "its kernel has a large reduce already"
                divided = _has_conditions(node) and any(map(has_division, indices))
                if divided and self._is_stored(node, lambda: 4):
                    return "places of its windows would be found by divisions"
                trip = count * self.target.memory.trip + self.target.launch.kernel
                walked = self._walked(group)
                spilled = sum(walked) > self.target.memory.second
                in_tiles = below_movement(node.src[0]).op is Ops.MUL
                crowded = len(walked) > FEW_STREAMS and (spilled or work > LATE_SHARE * trip)
                if in_tiles and crowded and self._is_stored(node, lambda: 4):
                    return f"{len(walked)} memories would be walked in the tiles of a large reduce"
                lanes = self.target.vector_bytes // 4
                if lanes > 1 and sums_rows(node):
                    alone = count * operations_on(group.stores) * lanes // 2
                    late = alone > max(trip, work // LATE_SHARE)
                    if late and self._is_stored(node, lambda: 1 + alone / max(trip, work)):
                        return f"{alone:,} operations on its sums one by one, storing {trip:,}"
                group.heavy += 1
            return ""
        if points < MIN_PARALLEL:
            waiting = math.inf if self.target.grid else self.target.threads
            if work > SERIAL_WORK and self._is_stored(node, lambda: waiting):
                return f"only {points} rows of {work // max(points, 1):,} steps: the rest would wait for them"
            long = max(group.order.values(), default=0) > SERIAL_WORK
            if long and self._is_stored(node, lambda: waiting):
                return f"only {points} rows: the pieces of a long kernel would wait for them"
        if self.target.grid and points < ENOUGH_ON_A_GRID and work <= MAX_NESTED_WORK:
            if max(group.order.values(), default=0) > SERIAL_WORK:  # a workgroup would do a whole row
                return f"only {points} rows: the threads of a long kernel would wait for them"
        if not all(free <= other or other <= free for other in group.fused):
            return "its loops do not nest with those of another reduce of the kernel"
        products = below_movement(node.src[0]).op is Ops.MUL
        if (group.heavy or (products and self._has_tiles(group))) and self._is_stored(node, lambda: 2):
            return "its kernel has a large reduce already"
        group.fused.append(free)
        self._reorder(group, free)
        return ""

    def _has_tiles(self, group: Group) -> bool:
        """Whether a kernel computes a large sum of products at each point of its loops.

        A processor runs it in tiles, if no other reduce stands around them.
        """
        if self.target.grid:
            return False
        points = math.prod(vmax(size) for size in group.shape)
        left, seen = [source for node in group.stores for source in node.src], set[UOp]()
        while left:
            node = below_movement(left.pop())
            if node in seen or node in self.home or is_materialized(node):
                continue
            seen.add(node)
            if node.op in ELEMENTWISE:
                left += node.src
            elif node.op is Ops.REDUCE_AXIS and below_movement(node.src[0]).op is Ops.MUL:
                if numel(node) == points and numel(node.src[0]) > SERIAL_WORK:
                    return True
        return False

    def _is_cached_row(self, reduce: UOp, count: int) -> bool:
        """Whether a reduce walks a row of memory that a cache still holds when another one walks it again."""
        nbytes = numel(reduce.src[0]) // max(count, 1) * reduce.src[0].dtype.itemsize
        return nbytes <= self.target.row_bytes and sums_rows(reduce)

    def _why_store_before_scatter(self, count: int, work: int) -> str:
        """The reason to store a reduce of so many steps that a SCATTER's kernel reads.

        Two of its places may be the same, so its loops run one turn after the other: nothing in them is
        computed in lanes, in tiles or by several threads.
        """
        at_once = self.target.launch.resident if self.target.grid else self.target.vector_bytes // 4
        alone = work * (at_once - 1)
        trip = count * self.target.memory.trip + self.target.launch.kernel
        return f"its kernel takes {alone:,} operations longer, storing {trip:,}" if alone > trip else ""

    def _why_store_scan(self, node: UOp, uses: dict[Group, dict[Indices, int]]) -> str:
        """A scan is inlined where the loops of its one user walk it as it is."""
        if len(uses) > 1:
            return f"{len(uses)} kernels need this scan"
        ((group, tuples),) = uses.items()
        if len(tuples) > 1 or group.kind != "kernel":
            return "this scan is needed at different indices"
        ((indices, _),) = tuples.items()
        if not self._walks(group, node, indices):
            return "this scan is not needed in the order in which it runs"
        along = indices[node.arg.axes[0]]
        if along.op is not Ops.RANGE:
            return ""
        if group.scanned not in (None, along):
            return "its kernel has a scan along another axis"
        if group.heavy:
            return "its kernel has a large reduce"
        if any(along in free for free in group.fused):
            return "its kernel has a reduce outside of the loop that the scan runs along"
        return ""

    # *** rows that are kept

    def _rows(self, node: UOp) -> dict[Group, int]:
        """The kernels that would compute a value once and keep a row of it, and along which axis."""
        found: dict[Group, int] = {}
        for group, tuples in self.uses[node].items():
            if len(tuples) > 1 and group.kind == "kernel" and group.scanned is None:
                if group.rows is None:
                    group.rows = Rows(group.ranges, self.target)
                axis = group.rows.axis(node, tuples, self.must)
                if axis is not None and yes_or_no("keep_row", near(node), True, lambda: True):
                    found[group] = axis
        return found

    def _keep(self, node: UOp, group: Group, axis: int, tuples: dict[Indices, int]) -> dict[Indices, int]:
        """Let a kernel keep rows of a value; where, and how often, the loop that fills them computes it."""
        ((at, times), *_) = tuples.items()
        self.counter += 1
        filling = UOp(Ops.RANGE, at[axis].dtype, at[axis].src, RangeArg(-self.counter, AxisType.LOOP))
        group.order[filling] = times
        assert group.rows is not None  # `_rows` has asked it
        return {group.rows.keep(node, at, axis, filling): times}

    def _claim(self, group: Group, along: UOp) -> None:
        """The loop that a scan runs along is the innermost."""
        if along.op is Ops.RANGE and group.scanned is None:
            group.scanned = along
            self._reorder(group, frozenset(r for r in group.ranges if r is not along))

    def _reorder(self, group: Group, outer: frozenset[UOp]) -> None:
        """Put the loops that a fused reduce needs outside of the others."""
        ranges = sorted(
            (r for r in group.order if r in group.ranges), key=lambda r: (r not in outer, r.arg.id)
        )
        group.nest(ranges)

    # *** storing

    def _store(self, node: UOp, reason: str) -> None:
        self.reasons[node] = reason
        uses = self.uses.get(node, {})
        operands = self.proposed.operands(node)
        if self._is_stored_beside(node, uses) or self._is_in_family(node, uses):
            return
        if operands is None and (node.op in ELEMENTWISE or node.op in ONCE):
            groups: Iterable[Group] = uses
            if node in self.graph.means:  # rather than that of the mean itself, which may have come first
                groups = sorted(uses, key=lambda group: -group.heavy)
            for group in groups:
                if self.fuse and self._may_join(node, group, uses):
                    self._join(node, group, uses)
                    return
        shape = shape_of(node)
        kind = "kernel"
        if node.op is Ops.PROGRAM:
            if self._joins_its_kernel(node, uses):
                return
            kind = "direct"
        elif node.op in TRANSFERS:
            kind = node.op.name.lower()
        elif node.op is Ops.SCATTER:
            kind, shape = "scatter", shape_of(node.src[1])
        elif operands is not None:
            kind = "one pass"
        elif node.op is Ops.ASSIGN:
            shape = shape_of(node.src[1])
        device = (
            next((group.device for group in uses), None) if device_of(node) is None else device_name(node)
        )
        if self.fuse and kind == "kernel" and operands is None and node.op in ELEMENTWISE:
            for group in self.groups if self.beside or numel(node) == 1 else ():
                if group.device == device and self._may_stand_beside(node, group, uses):
                    self._take(node, group)
                    self._add_edges(group, uses)
                    self._use_sources(node, group, group.ranges, group.points())
                    return
        group = Group(len(self.groups), shape, kind, device)
        group.nest([r for r in group.ranges if r.op is Ops.RANGE])
        self.groups.append(group)
        self._take(node, group)
        if node in self.graph.moments:
            self.families.setdefault(self.graph.moments[node].family, group)
        for consumer in uses:  # nothing comes before a new group yet
            group.downstream |= consumer.downstream
        if operands is None:
            self._use_sources(node, group, group.ranges, group.points())
            return
        group.inside, group.views = frozenset(operands.inside), operands.views()
        for value in operands.beside:
            self.must.setdefault(value, "it is a statistic of the rows of a kernel in one pass")
        for source in operands.read:
            if not is_materialized(source):
                self.must.setdefault(source, "it is an operand of a kernel in one pass")
            self._use(source, group, None, group.points())

    def _is_stored_beside(self, node: UOp, uses: Iterable[Group]) -> bool:
        """Let a kernel in one pass store this statistic of its rows, if there is one that can run in time."""
        top = self.proposed.made_beside(node)
        group = None if top is None else self.home.get(top)
        if group is None:
            return False
        if any(other.downstream >> group.id & 1 for other in uses):
            del group.views[node]  # something it reads was joined to what reads this
            return False
        self._take(node, group)
        self._add_edges(group, uses)
        return True

    def _is_in_family(self, node: UOp, uses: Iterable[Group]) -> bool:
        """Let the kernel of other moments of the same blocks store this one, if it can run in time."""
        moment = self.graph.moments.get(node)
        group = None if moment is None or not self.fuse else self.families.get(moment.family)
        if group is None or any(user.downstream >> group.id & 1 for user in uses if user is not group):
            return False
        reads = group.reads | self.weights.weight[node][1]
        if len(reads) + len(group.stores) + group.more >= self.target.max_args or not group.walks_whole(
            shape_of(node)
        ):
            return False
        if self._ops_with(group, node) > self.target.max_ops:
            return False
        self._take(node, group)
        self._add_edges(group, [user for user in uses if user is not group])
        self._use_sources(node, group, group.ranges, group.points())
        return True

    def _joins_its_kernel(self, node: UOp, uses: dict[Group, dict[Indices, int]]) -> bool:
        """Whether the kernel that computes this node stores another of its results already.

        Nodes that this kernel reads are placed after all its outputs, so nothing can have come between them.
        """
        for group in self.groups:
            first = group.stores[0]
            if first.op is node.op and first.src == node.src and first.arg.kernel is node.arg.kernel:
                self._take(node, group)
                self._add_edges(group, uses)
                return True
        return False

    def _may_join(self, node: UOp, group: Group, uses: dict[Group, dict[Indices, int]]) -> bool:
        """Whether the kernel computes this node once per point of (some of) its loops, and may store it."""
        tuples = uses[group]
        if group.kind != "kernel" or len(tuples) != 1:
            return False
        if node.op is Ops.CHECK and self._updates(group):
            return False
        if self._ops_with(group, node) > self.target.max_ops:
            return False
        reads = group.reads | self.weights.weight[node][1]
        if len(reads) + len(group.stores) + group.more >= self.target.max_args:
            return False
        ((indices, _),) = tuples.items()
        if self._walks(group, node, indices):
            if not group.walks_whole(shape_of(node)) and not reads.isdisjoint(self.overwritten.get(node, ())):
                return False  # what is read in several turns is not overwritten in one of them
        elif group.permuted_view(shape_of(node), indices) is None:
            return False
        # a kernel that would read what the group stores must not come before the group
        if any(other.downstream >> group.id & 1 for other in uses if other is not group):
            return False
        if not yes_or_no("multi_output", near(node), True, lambda: True):
            return False
        if node.op is Ops.REDUCE_AXIS:  # asked last: a reduce that may stay is counted
            return not self._why_store_reduce(node, {group: tuples})
        return node.op is not Ops.SCAN or not self._why_store_scan(node, {group: tuples})

    def _may_stand_beside(self, node: UOp, group: Group, uses: Iterable[Group]) -> bool:
        """Whether a kernel that does not need this node may store it: in a loop over time one that reads what
        it reads in the same loops, and one number beside another.

        What both are made of, such as the gates of a recurrence, is then computed once; a number, such as a
        count of steps, takes less than a launch.
        """
        if group.kind != "kernel" or group.scanned is not None or set(group.order) - set(group.ranges):
            return False  # a loop of its own, such as that of a reduce, is not for what is beside it
        _, reads = self.weights.weight[node]
        if not (self.beside and not reads.isdisjoint(group.reads)) and not numel(node) == group.points() == 1:
            return False
        if not group.walks_whole(shape_of(node)):
            return False
        reads = group.reads | reads
        if len(reads) + len(group.stores) + group.more >= self.target.max_args:
            return False
        if self._ops_with(group, node) > self.target.max_ops:
            return False
        if any(other.downstream >> group.id & 1 for other in uses):
            return False
        return yes_or_no("sibling_output", near(node, group.stores[0]), True, lambda: True)

    def _ops_with(self, group: Group, node: UOp) -> int:
        """How many operations a kernel has that stores this node too; an upper bound where that is enough."""
        if node not in self.must and group in self.uses.get(node, ()):
            return group.ops  # it computes the node anyway
        ops = group.ops + self.weights.weight[node][0]
        if ops <= self.target.max_ops:
            return ops
        return self.weights.together((*group.stores, node), self.target.max_ops)

    def _old(self, group: Group) -> set[UOp]:
        """The versions of memory that a kernel overwrites."""
        return set().union(*[self.overwritten.get(node, ()) for node in group.stores])

    def _updates(self, group: Group) -> bool:
        """Whether a kernel overwrites memory and stores more, as an update does with its gradient."""
        return len(group.stores) > 1 and bool(self._old(group))

    def _walked(self, group: Group) -> list[int]:
        """The bytes of each memory that a kernel writes, and of what it overwrites, which it reads."""
        return [numel(node) * node.dtype.itemsize for node in (*group.stores, *self._old(group))]

    def _walks(self, group: Group, node: UOp, indices: Indices) -> bool:
        """Whether the kernel's loops, or some of them, walk the node's elements in their order."""
        shape = shape_of(node)
        if not len(shape) == len(indices) == len(group.shape):
            return False
        for size, at, r, whole in zip(shape, indices, group.ranges, group.shape, strict=True):
            if at is not (r if size != 1 else const(0)) or (
                size != 1 and size is not whole and size != whole
            ):
                return False
        return True

    def _take(self, node: UOp, group: Group) -> None:
        group.ops = self._ops_with(group, node)
        group.stores.append(node)
        self.home[node] = group
        group.reads = group.reads | self.weights.weight[node][1]

    def _join(self, node: UOp, group: Group, uses: dict[Group, dict[Indices, int]]) -> None:
        self._take(node, group)
        self._add_edges(group, {g: t for g, t in uses.items() if g is not group})
        ((indices, times),) = uses[group].items()
        if not self._walks(group, node, indices):
            place = group.permuted_view(shape_of(node), indices)
            if place is None:
                raise RuntimeError(f"the loops of a kernel do not walk what joins it: {node.op}")
            group.views[node] = place
        self._use_sources(node, group, indices, times)

    def _add_edges(self, producer: Group, consumers: Iterable[Group]) -> None:
        """The producer runs before its consumers; so does everything that runs before the producer."""
        reach = producer.downstream
        for consumer in consumers:
            reach |= consumer.downstream
        if reach == producer.downstream:
            return
        producer.downstream = reach
        for group in self.groups:
            if group.downstream >> producer.id & 1:
                group.downstream |= reach

    # *** what a node asks of its sources

    def _use_sources(self, node: UOp, group: Group, indices: Indices, times: int) -> None:
        op = node.op
        if op is Ops.COPY:
            for source in node.src[:-1]:
                self._use(source, group, group.ranges if len(node.src) == 2 else None, times)
            return
        if op in _READ_WHOLE:
            for source in dict.fromkeys(node.src):
                self._use(source, group, None, times)
            return
        if op is Ops.REDUCE_AXIS:
            indices, times = self._enter_reduce(node, group, indices)
            self._use(node.src[0], group, indices, times)
            return
        if op is Ops.SCAN:
            self._claim(group, indices[node.arg.axes[0]])
        if op in (Ops.GATHER, Ops.SCATTER):
            memory, *values = node.src
            self._use(memory, group, None, times)
            for value in values:
                self._use(value, group, indices, times)
            return
        if op is Ops.ASSIGN:
            self._use(node.src[1], group, indices, times)
            before = self.stored.get(node.src[0], node.src[0])
            if not is_materialized(before):  # the version that this write continues comes first
                self.uses.setdefault(before, {}).setdefault(group, {})[CONTINUES] = 0
            return
        for source in dict.fromkeys(node.src):
            self._use(source, group, indices, times)

    def _use(self, source: UOp, group: Group, indices: Indices | None, times: int) -> None:
        base, tracker = base_and_tracker(source)
        if base.op is Ops.BUFFER_VIEW:  # a copy reads a part of memory, whichever
            base, indices = base.src[0], None
        if is_generated(base) or base.op in (Ops.DEVICE, Ops.UNIQUE):
            return
        held = is_materialized(base)
        if held and base not in self.watched:
            return
        if indices is None:  # at places that only the data knows
            at: Indices = ANYWHERE
        elif source is base:
            at = indices
        else:
            at = through(tracker, indices, shape_of(base))
            if not held:
                times = min(times, self._times_at(group, at, times))
        tuples = self.uses.setdefault(base, {}).setdefault(group, {})
        if len(tuples) <= MAX_TUPLES or base in self.watched:
            tuples[at] = max(tuples.get(at, 0), times)

    def _times_at(self, group: Group, indices: Indices, times: int) -> int:
        """How often what depends on these indices runs: the product of the loops down to the deepest.

        A loop that is only asked for its blocks of n counts once per block.
        """
        deepest = 1
        for r in free_ranges(indices):
            turns = group.order.get(r, times)
            if turns > deepest:
                deepest = max(deepest, turns // block_of(indices, r))
        return deepest

    def _shared(self, group: Group, indices: Indices, times: int) -> int:
        """How many of these times are one, since places that are computed at once share the value.

        Those of a tile of registers share what they multiply; those along short axes all that is the same.
        """
        free = free_ranges(indices)
        places = math.prod([vmax(r.src[0]) // block_of(indices, r) for r in free])
        again = max(times // max(places, 1), 1)
        short = self._short(group, indices, again)
        if any(r.arg.kind is AxisType.REDUCE for r in free):
            return max(min(TILE_ROWS, again), math.gcd(short, again))
        return math.gcd(short, again)

    def _short(self, group: Group, indices: Indices, times: int) -> int:
        """How many places along short axes, such as channels or the taps of a filter, share a value.

        Short reductions are all written out. Of the short output axes only one is computed at once beside the
        lanes (`opt/cpu/plans.py`), so only the longest one counts.
        """
        if self.target.grid or self.target.vector_bytes == 0:
            return 1
        free = free_ranges(indices)
        others = [r for r in group.order if r.op is Ops.RANGE and r not in free]
        sizes = [(vmax(r.src[0]), r.arg.kind is AxisType.REDUCE) for r in others]
        sizes = [(size, reduced) for size, reduced in sizes if 0 < size <= BESIDE and times % size == 0]
        outputs = [size for size, reduced in sizes if not reduced]
        return max(outputs, default=1) * math.prod([size for size, reduced in sizes if reduced])

    def _enter_reduce(self, node: UOp, group: Group, indices: Indices) -> tuple[Indices, int]:
        """The indices at which a reduce reads its source: fresh ranges on the reduced axes."""
        outer = 1
        for r in free_ranges(indices):
            outer = max(outer, group.order.get(r, 1))
        inside = list(indices)
        moment = self.graph.moments.get(node)
        walk = {} if moment is None else self.walks.setdefault((group, moment), {})
        for axis in node.arg.axes:
            size = shape_of(node.src[0])[axis]
            if size == 1:
                continue
            self.counter += 1
            r = UOp(Ops.RANGE, const(0).dtype, (as_index(size),), RangeArg(-self.counter, AxisType.REDUCE))
            r = walk.setdefault(axis, r)
            outer *= vmax(size)
            group.order[r] = outer
            inside[axis] = r
        return tuple(inside), outer


def _has_conditions(reduce: UOp) -> bool:
    """Whether what a reduction is of, or a factor of that, is padded."""
    base, tracker = base_and_tracker(reduce.src[0])
    factors = base.src if base.op is Ops.MUL else ()
    trackers = (tracker, *(base_and_tracker(factor)[1] for factor in factors))
    return any(view.mask is not None for each in trackers for view in each.views)

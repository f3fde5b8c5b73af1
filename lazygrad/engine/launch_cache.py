"""What was computed twice with the same graph on other memory: from then on its kernels are launched at once.

A loop without a jit builds the same graph in every turn, on other versions of memory. What planning makes of
a graph follows from its structure alone. So what a structure has run is kept as a `Replay`, as a jit keeps
it, whose places are the graph's memory: no kernel is bound to nodes, scheduled or looked up any more. The
*structure* is the graph with its memory numbered: op, dtype, argument and user's call of each node, which
node reads which, and all flags; the value of a bound Variable is not. A value that somebody holds, that is
not computed yet and that reads memory which is written is part of it: it has to be computed first.

Only short lists on devices with a native loop are kept: they run under the lock of planning, so that no other
thread runs what this one has looked at, and Ctrl-C waits for their end.

A graph may be one of *calls* of methods, whose nodes are not made yet (`schedule/calls.py`): the list of the
graph that is made of them is kept for it too (`call_lists.py`), and from then on no node is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..config import CACHELEVEL, CHECK, DEBUG, POISON, Decided, flags_state
from ..device import Buffer, Device
from ..device.reports import ReportBuffer
from ..dtype import const_bits
from ..ir.ops import SIZED, Ops
from ..ir.uop import UOp, keep_origin
from ..locks import table_lock, uninterrupted
from ..memo import Memo
from ..schedule import kernelize
from ..schedule.calls import DEFERRED, Call, plain
from ..schedule.graph.versions import (
    LOOKS_OR_PARTS,
    below_looks,
    buffer_of,
    effective,
    in_shape,
    latest,
    mark_buffer,
    reshaped_memory,
    version_after,
    version_on,
)
from ..schedule.kernels.items import ScheduleItem, create_schedule
from ..schedule.keys.growth import Growth
from ..schedule.keys.structure import may_be_size
from ..schedule.plan import pass_observers
from ..schedule.readers import Pending, open_or_planned
from ..shape.movement import forward_to
from ..shape.rules import shape_of
from ..shape.sizes import prod
from . import growing_lists
from .actions import MemoryUses
from .call_lists import OfCalls, learn_sizes, of_calls
from .growing import latest as latest_growth
from .growing import make_ready
from .realize import allocate_empty, observers, recording, run_item
from .realize import realize as realize_planned
from .replay import Replay

#: A structure is kept at so many meetings.
MEETINGS = 3
#: Longer lists (bytes and operations of all kernels) gain nothing, and would hold the lock for long.
MOST_BYTES, MOST_OPS = 1 << 26, 1 << 28
#: Bytes that a list may keep for what is in between.
MOST_KEPT_BYTES = 1 << 20
#: Bytes of data from outside that a list copies.
MOST_COPIED_BYTES = 1 << 16
#: Graphs of more nodes are planned as ever.
MOST_NODES = 20_000

#: Structure → its list, ready; None: it is planned each time.
_ready: Memo[Any, _Ready | OfCalls | None] = Memo(256, MEETINGS)


def realize(roots: Sequence[UOp], pending: Pending, made_of: _Graph | None = None) -> None:
    """Compute the values of the roots: by a list that is ready, or by planning.

    made_of  the graph of calls that the nodes were made of
    """
    graph = sized = None
    if not (observers or pass_observers or recording.note or is_watched()):
        try:
            with kernelize.planning:
                graph = _Graph.of(roots, pending)
                if graph is not None:
                    if not graph.order:
                        return  # everything is there
                    found = _ready.get(graph.key, _ABSENT)
                    if found is _ABSENT:
                        found = None
                        sized = growing_lists.find(graph)
                        ran = None if sized is None else growing_lists.run_known(graph, *sized)
                        if ran is not None:
                            _keep_for(made_of, graph, ran[2], ran[:2])
                            return
                        if graph.calls:
                            pass  # their nodes are made first
                        elif sized is not None and len(sized[0].met) >= 2:  # this may be the third
                            latest_growth.planned = None
                            kernelize.kernelize(roots, pending, make_ready)
                            below, planned = [latest(root) for root in roots], latest_growth.planned
                            ran = growing_lists.make(graph, *sized, planned, below, run_item, _ready_at_once)
                            if ran is not None:
                                _keep_for(made_of, graph, ran[2], ran[:2])
                                return
                        elif _ready.is_due(graph.key):
                            kernelize.kernelize(roots, pending, make_ready)
                            found = _cached(graph, create_schedule([latest(root) for root in roots]))
                            if found is not None and any(found.early):
                                found = None  # a check may fail, and what is planned would be written twice
                    if found is not None:
                        found.run(graph)
                        _keep_for(made_of, graph, found, None)
                        return
        except _CheckFailed:  # planning tells which, and what else is computed
            graph = sized = None
    if any(type(root) is Call for root in roots):
        realize(plain(roots), pending, graph if graph is not None and graph.calls else None)
        return
    latest_growth.planned = None
    realize_planned(roots, pending)
    if sized is not None and latest_growth.planned is not None:
        with kernelize.planning:
            sized[0].meet(sized[1], latest_growth.planned)


def _keep_for(calls: _Graph | None, graph: _Graph, ready: Any, grown: tuple[Growth, int] | None) -> None:
    """Let the list that has computed the nodes of a graph of calls be for the calls, from now on.

    grown  the growth and the number, if the list is for many sizes
    """
    found = of_calls(calls, graph, ready) if calls is not None and type(ready) is _Ready else None
    if calls is None or found is None:
        return
    if grown is not None:
        sized = growing_lists.find(calls)
        if sized is not None:
            learn_sizes(found, *sized, *grown)
    elif calls.bound == graph.bound:
        _ready.keep(calls.key, found)


#: Whether a flag asks to look at each kernel, or to keep nothing.
is_watched = Decided(lambda: bool(CHECK.value or DEBUG.value or POISON.value or CACHELEVEL.value < 1))


_ABSENT: Any = object()


#: Their memory or order is not told by structure alone, or has places of its own.
_REFUSED = frozenset((Ops.BUFFER_VIEW, Ops.MULTI, Ops.COLLECTIVE, Ops.KERNEL, Ops.DEFINE_VAR))
#: Of these more is asked than of others.
_ASKED = _REFUSED | SIZED | {Ops.DETACH, Ops.CHECK, Ops.COPY, Ops.PROGRAM, DEFERRED}
#: Stands for a number that may be a size.
_SIZE: Any = object()


class _Graph:
    """A graph with its memory numbered.

    order    every node below what is wanted (and what reads memory that is written), each once
    leaves   the places of its BUFFERs in `order`
    writes   its ASSIGNs
    buffers  their memory
    bound    its bound Variables, whose values are no part of the structure
    number   the place of each node in `order`
    calls    how many calls are in it, whose nodes are not made
    roots    how many nodes are wanted: the first
    shape    its structure apart from sizes, and from whose calls its nodes are
    key      its structure: that, and these
    """

    __slots__ = (
        *("bound", "buffers", "calls", "key", "leaves", "number", "order", "roots", "shape", "sizes"),
        "writes",
    )
    shape: tuple[Any, ...]
    key: tuple[tuple[Any, ...], tuple[Any, ...]]

    def __init__(self, wanted: dict[UOp, int]) -> None:
        self.order, self.number = list(wanted), wanted
        self.leaves: list[int] = []
        self.buffers: list[Buffer] = []
        self.bound: list[UOp] = []
        self.writes: list[UOp] = []
        self.sizes: list[Any] = []
        self.roots, self.calls = len(wanted), 0

    @classmethod
    def of(cls, roots: Sequence[UOp], pending: Pending) -> _Graph | None:
        """The graph below the roots, with what has to be computed before its writes; None where it is planned
        as ever.
        """
        wanted: dict[UOp, int] = {}
        for root in roots:
            plain = root.op not in LOOKS_OR_PARTS and "forwarded_to" not in root.facts
            base = root if plain else below_looks(latest(root))
            op = base.op
            if op is Ops.BUFFER:
                if "overwritten" in base.facts:
                    return None
            elif op is not Ops.CONST and base not in wanted:
                wanted[base] = len(wanted)
        graph = cls(wanted)
        if not wanted:
            return graph
        rows: list[Any] = [*_state(), len(wanted)]
        writes = graph._walk(0, rows)
        if writes is None or (graph.calls and graph.writes):
            return None
        if writes:
            order, written = graph.order, set[UOp]()
            others: list[int] = []
            held = dict.fromkeys(base for value in pending() for base in open_or_planned(latest(value)))
            while ended := {effective(node.src[0]) for node in graph.writes} - written:  # what joins may, too
                written, first = written | ended, len(order)
                for base in _reading(ended, held):
                    del held[base]
                    place = wanted.get(base)
                    if place is None:
                        place = wanted[base] = len(order)
                        order.append(base)
                    others.append(place)
                if graph._walk(first, rows) is None:
                    return None
            rows += (len(others), *others)
        if len(graph.buffers) > 1 and len(set(map(id, graph.buffers))) < len(graph.buffers):
            return None
        graph.shape = tuple(rows)
        graph.key = graph.shape, tuple(graph.sizes)
        return graph

    def _walk(self, first: int, rows: list[Any]) -> bool | None:
        """Number what is below the nodes from `first` on, and describe each: whether memory is written that
        was there before; None where the graph has what is planned as ever.
        """
        order, number, leaves, buffers = self.order, self.number, self.leaves, self.buffers
        known, add, describe, size = number.get, order.append, rows.extend, self.sizes.append
        writes = False
        for node in itertools.islice(order, first, None):  # which grows
            op, facts, src = node.op, node.facts, node.src
            if op is Ops.BUFFER:
                buffer = facts.get("buffer") or _memory_to_be(node)
                if buffer is None or buffer._base is not None:
                    return None
                leaves.append(number[node])
                buffers.append(buffer)
                describe((op, node.dtype, buffer.device, "fresh" in facts))
                size(node.arg)
                continue
            if op is Ops.CONST:
                value = node.arg
                if may_be_size(node):
                    size(value)
                    value = _SIZE
                elif type(value) is float:
                    value = const_bits(value, node.dtype)
                describe((op, node.dtype, value, len(src)))
            elif op is Ops.BIND:
                self.bound.append(node)
                describe((op, src[0].arg))
                continue
            else:
                arg = node.arg
                if op in _ASKED:
                    if op in _REFUSED or (op is Ops.COPY and len(src) > 2):
                        return None
                    if op is Ops.PROGRAM and arg.kernel.is_unique:
                        return None
                    if op is DEFERRED:
                        self.calls += 1
                        if self.calls > MOST_NODES:
                            return None
                        arg = node.way.of, node.which, node.site  # type: ignore[attr-defined]
                        size(node.way.n)  # type: ignore[attr-defined]
                    elif op is Ops.DETACH:
                        arg = None  # it says whose leaf the value is, which gradients ask
                    elif op is Ops.CHECK:
                        arg = arg, facts.get("site")
                    elif op in SIZED:
                        size(arg)
                        arg = len(arg) if op is not Ops.IOTA else None
                describe((op, node.dtype, arg, len(src)))
                size(facts.get("origin"))
            for source in src:
                if "forwarded_to" in source.facts:
                    source = effective(source)
                place = known(source)
                if place is None:
                    place = number[source] = len(order)
                    add(source)
                rows.append(place)
            if op is Ops.ASSIGN:
                self.writes.append(node)
                writes = writes or "fresh" not in effective(src[0]).facts
        return writes if len(order) <= MOST_NODES else None


def _reading(ended: set[UOp], held: Iterable[UOp]) -> list[UOp]:
    """The values, held and not computed yet, above any of these versions of memory."""
    above = set(ended)
    roots_only: set[UOp] = set()  # nodes that are above none
    found: list[UOp] = []
    for base in held:
        if base in above or _reaches(base, above, roots_only):
            above.add(base)
            found.append(base)
    return found


def _reaches(base: UOp, wanted: set[UOp], apart: set[UOp]) -> bool:
    """Whether any of the wanted nodes is below this one. What is below no such node joins those `apart`."""
    seen, waiting = {base}, [base]
    while waiting:
        for source in waiting.pop().src:
            if "forwarded_to" in source.facts:
                source = effective(source)
            if source in wanted:
                return True
            if source not in seen and source not in apart:
                seen.add(source)
                waiting.append(source)
    apart |= seen
    return False


def _state() -> tuple[Any, ...]:
    """What planning and lowering look at besides the graph: every flag, and the device of what is on none."""
    overlay, changes = flags_state()
    return (changes, Device.DEFAULT, tuple(overlay.items())) if overlay else (changes, _default_device())


#: It follows from flags and the environment that the process began with.
_default_device = Decided(lambda: Device.DEFAULT)


def _memory_to_be(node: UOp) -> Buffer | None:
    """The memory of a version that nobody asked for yet; None where its contents are gone."""
    return None if "overwritten" in node.facts else buffer_of(node)


class _CheckFailed(Exception):
    """A list has met an index that is out of range; what it has written before is written."""


class _Version(NamedTuple):
    """What one output of a kernel is once the list has run.

    before   the place in the graph of the version that it ends, or the number of an earlier _Version + 1,
             negative; None for new memory
    memory   the number of its memory: of the graph's, then of the list's outputs
    values   places in the graph of the nodes that it is the value of, each with its shape, and whether that
             has as many elements as the memory: a symbolic one may have fewer
    """

    before: int | None
    memory: int
    values: tuple[tuple[int, tuple[Any, ...], bool], ...]
    kernel: int


class _Ready:
    """The kernels of a structure, ready to run on the memory of a graph that has it.

    segments  their lists, one after the other, each with the number of memories that it works on, and which
              bound Variables it takes: first those that check indices, so that one beyond its axis is told
              before anything is written
    early     for each what it and those before it have written in place, where its check fails
    outputs   what memory is made in each run
    versions  what the outputs of its kernels are afterwards, in order
    """

    __slots__ = ("devices", "early", "followed", "only", "outputs", "runners", "segments", "versions")

    def __init__(
        self,
        parts: list[tuple[Replay, int, list[int]]],
        outputs: list[Buffer],
        versions: list[_Version],
        early: list[list[_Version]],
    ) -> None:
        self.segments, self.versions, self.early = parts, versions, early
        #: the state of the flags that the lists follow
        self.followed: int | None = None
        actions = [action for replay, _, _ in parts for batch in replay.batches for action in batch.actions]
        self.runners = [action.runner for action in actions if action.runner is not None]
        #: the list, where there is one and no bound Variable
        self.only = parts[0][0] if len(parts) == 1 and not parts[0][2] else None
        self.outputs = [Buffer(buffer.device, buffer.size, buffer.dtype) for buffer in outputs]
        self.devices = [UOp(Ops.DEVICE, arg=memory.device) for memory in outputs]

    def run(self, graph: _Graph, versions: Sequence[_Version] | None = None) -> None:
        """Run the lists; the graph's nodes become what they computed.

        versions  what the outputs are afterwards, where it is a graph of calls
        """
        memory = graph.buffers
        for place, buffer in zip(graph.leaves, memory, strict=True):
            if buffer._buf is None:
                if "fresh" in graph.order[place].facts and not buffer.is_allocated:
                    buffer.allocate_uncleared()
                else:
                    allocate_empty(buffer)
        outputs, only = self.outputs, self.only
        memory = [*memory, outputs[0].fresh()] if len(outputs) == 1 else memory + [o.fresh() for o in outputs]
        handles = [buffer._buf for buffer in memory]
        overlay, changes = flags_state()
        state = None if overlay else changes
        follow = state is None or self.followed != state
        with uninterrupted():  # what was written in place must not seem not to have been
            begun = 0
            try:
                if only is not None and not follow:
                    only.run(handles, [])
                else:
                    for replay, count, variables in self.segments:
                        begun += 1
                        if follow:
                            replay.follow_flags()
                        replay.run(handles[:count], [graph.bound[n].src[1].arg for n in variables])
                    self.followed = state
            except (IndexError, ValueError) as error:
                with table_lock:
                    self._become(graph, memory, self.early[begun - 1])
                raise _CheckFailed from error
            for runner in self.runners:
                runner.runs += 1
            with table_lock:
                self._become(graph, memory, self.versions if versions is None else versions)

    def _become(self, graph: _Graph, memory: list[Buffer], versions: Sequence[_Version]) -> None:
        order, given = graph.order, len(graph.buffers)
        made: list[UOp] = []
        for before, number, values, _ in versions:
            buffer = memory[number]
            if before is None:
                node = version_on(self.devices[number - given], buffer)
            else:
                old = order[before] if before >= 0 else made[-1 - before]
                for place, _, _ in values:
                    keep_origin(old, order[place])
                if "fresh" in old.facts:
                    node = mark_buffer(old, buffer)
                else:
                    node = version_after(old)
            made.append(node)
            for place, shape, is_whole in values:
                value = order[place]
                if before is None:
                    keep_origin(node, value)
                forward_to(value, reshaped_memory(node, shape) if is_whole else in_shape(node, shape))


def _cached(graph: _Graph, items: Sequence[ScheduleItem]) -> _Ready | None:
    """The list of a graph that is planned and has not run, from now on kept; None, kept too, where it may not
    be.
    """
    made = _ready_for(graph, items)
    _ready.keep(graph.key, made)
    return made


def _ready_for(graph: _Graph, items: Sequence[ScheduleItem]) -> _Ready | None:
    """The list of a graph's items; None where it is planned each time."""
    if not all(map(_has_native_loop, items)):
        return None
    copied = [item.bufs[0].nbytes for item in items if item.ast.op is Ops.COPY]
    if len(copied) == len(items) or sum(copied) > MOST_COPIED_BYTES:
        return None  # planned anew, a copy may take over the memory of a snapshot instead
    arguments = {buffer: number for number, buffer in enumerate(graph.buffers)}
    bound = {(node.src[0].arg[0], node.src[1].arg): place for place, node in enumerate(graph.bound)}

    def source(name: str, value: int) -> int | None:
        return bound.get((name, value))

    found = _outputs_of(graph, items, arguments)
    if found is None:
        return None
    fresh = {output.buffer for output in found if output.before is None}
    divided = _checks_first(items, fresh)
    if divided is None:
        return None
    results = {output.buffer for output in found if output.values}
    segments: list[tuple[Replay, int, list[int]]] = []
    outputs: list[Buffer] = []
    for place, part in enumerate(divided):
        inside = fresh.difference(arguments)
        leaves = results.union(*[item.bufs for later in divided[place + 1 :] for item in later])
        written = dict.fromkeys(buffer for item in part for buffer in item.outputs)
        handed = [buffer for buffer in written if buffer in inside and buffer in leaves]
        numbers = {buffer: number for number, buffer in enumerate(handed)}
        replay = Replay(part, MemoryUses(dict(arguments), numbers, inside), source)
        pages = {reports.base for reports, _ in replay.reports}
        if replay.kernels != len(part) or replay.constants or not pages.issuperset(replay.external):
            return None
        replay.mutated.clear()  # it would hold the memory of this graph
        arguments.update({buffer: len(arguments) + number for buffer, number in numbers.items()})
        outputs += handed
        segments.append(
            (replay, len(arguments), [place for place in replay.sources if isinstance(place, int)])
        )
    replays = [replay for replay, _, _ in segments]
    if sum(r.accessed for r in replays) > MOST_BYTES or sum(r.ops for r in replays) > MOST_OPS:
        return None
    if sum(replay.taken_bytes for replay in replays) > MOST_KEPT_BYTES:
        return None
    versions = _versions(found, arguments)
    early, done = list[list[_Version]](), set[int]()
    number = {id(item): place for place, item in enumerate(items)}
    for part in divided:
        done.update([number[id(item)] for item in part])
        checks = any(type(item.bufs[-1]) is ReportBuffer for item in part)
        early.append(_early(versions, len(graph.buffers), done) if checks else [])
    return _Ready(segments, outputs, versions, early)


def _early(versions: Sequence[_Version], given: int, done: set[int]) -> list[_Version]:
    """The versions, of the memories that are given, that some kernels have written."""
    found = [place for place, v in enumerate(versions) if v.kernel in done and v.memory < given]
    moved = {-1 - place: -1 - now for now, place in enumerate(found)}
    return [v._replace(before=moved.get(v.before, v.before)) for v in map(versions.__getitem__, found)]  # type: ignore[arg-type]


def _ready_at_once(graph: _Graph, items: Sequence[ScheduleItem]) -> _Ready | None:
    """A list that may run in the place of what is planned: where a check fails, it has written nothing."""
    ready = _ready_for(graph, items)
    return None if ready is not None and any(ready.early) else ready


class _Output(NamedTuple):
    """One output of an item; `before` and `values` are those of a _Version, by number in all outputs."""

    before: int | None
    buffer: Buffer
    values: tuple[tuple[int, tuple[Any, ...]], ...]
    kernel: int


def _outputs_of(
    graph: _Graph, items: Sequence[ScheduleItem], arguments: dict[Buffer, int]
) -> list[_Output] | None:
    """What the items write; None where they do not compute all that the graph has become."""
    leaf = {graph.order[place]: place for place in graph.leaves}
    slots: dict[UOp, list[tuple[int, tuple[Any, ...]]]] = {}
    for place, node in enumerate(graph.order):
        if "forwarded_to" in node.facts:
            slots.setdefault(below_looks(node.facts["forwarded_to"]), []).append((place, shape_of(node)))
    planned: dict[UOp, int] = {}
    found: list[_Output] = []
    for number, item in enumerate(items):
        sources = item.kernel.src
        if any(source.op is Ops.BUFFER_VIEW for source in sources):
            return None
        refs = item.kernel.facts["outputs"]
        for ref, target, buffer in zip(refs, sources, item.outputs, strict=False):
            assign, before = ref(), None
            if target in leaf:
                before = leaf[target]
            elif target in planned:
                before = -1 - planned[target]
            elif buffer in arguments:
                return None
            if assign is not None:
                planned[assign] = len(found)
            values = () if assign is None else tuple(slots.pop(assign, ()))
            found.append(_Output(before, buffer, values, number))
    return None if slots else found


def _checks_first(items: Sequence[ScheduleItem], fresh: set[Buffer]) -> list[list[ScheduleItem]] | None:
    """The items in segments, each of which ends with its checks of indices: those that nothing is written
    for, with what they need; then, one by one, those that need what a kernel makes that writes what was
    there; then all that is left. So nothing that is written follows from an index that is yet to be checked.
    None where that takes another order of reads and writes, or a kernel both checks and writes.
    """
    waiting = dict(enumerate(items))
    segments: list[list[ScheduleItem]] = []
    while checks := [n for n, item in waiting.items() if type(item.bufs[-1]) is ReportBuffer]:
        needed = {n: _needed(waiting, n) for n in checks}
        apart = [n for n in checks if all(fresh.issuperset(waiting[m].outputs) for m in needed[n])]
        if not apart and not fresh.issuperset(waiting[checks[0]].outputs):
            return None
        chosen = set[int]().union(*[needed[n] for n in apart or checks[:1]])
        segments.append([waiting.pop(n) for n in sorted(chosen)])
    if waiting:
        segments.append(list(waiting.values()))
    order = {id(item): n for n, item in enumerate(itertools.chain(*segments))}
    last_write: dict[Buffer, int] = {}  # when, in the new order
    last_use: dict[Buffer, int] = {}
    for item in items:
        now = order[id(item)]
        if any(now < last_write.get(buffer, now) for buffer in item.bufs):
            return None
        if any(now < last_use.get(buffer, now) for buffer in item.outputs):
            return None
        last_write.update(dict.fromkeys(item.outputs, now))
        last_use.update({buffer: max(now, last_use.get(buffer, now)) for buffer in item.bufs})
    return segments


def _needed(items: dict[int, ScheduleItem], last: int) -> set[int]:
    """The items of which this one reads what they make, and itself."""
    reads, found = set[Buffer](), set[int]()
    for n in reversed(range(last + 1)):
        item = items.get(n)
        if item is not None and (n == last or not reads.isdisjoint(item.outputs)):
            found.add(n)
            reads.update(item.bufs)
    return found


def _versions(found: Sequence[_Output], memory: dict[Buffer, int]) -> list[_Version]:
    """What outputs are of memory that is not only in between."""
    moved: dict[int, int] = {}
    versions: list[_Version] = []
    for number, (before, buffer, values, kernel) in enumerate(found):
        if buffer in memory:
            moved[number] = len(versions)
            if before is not None and before < 0:
                before = -1 - moved[-1 - before]
            each = tuple([(place, shape, prod(shape) == buffer.size) for place, shape in values])
            versions.append(_Version(before, memory[buffer], each, kernel))
    return versions


def _has_native_loop(item: ScheduleItem) -> bool:
    """Whether a kernel runs in a native loop, or a copy is from this process to a device that has one."""
    where = [Device[buffer.device] for buffer in item.bufs]
    if item.ast.op is Ops.COPY:
        return where[0].replayer() is not None and item.bufs[1].device == "NPY"
    return item.ast.op is not Ops.COLLECTIVE and all(device.replayer() is not None for device in where)

"""The threads of a workgroup where there is but one: between two BARRIERs all of them, one after another.

    for t in threads:  a(t); BARRIER; for k in 0..n: { b(t, k); BARRIER; c(t, k) }
becomes
    for t: a(t)
    for k in 0..n: { for t: b(t, k)   for t: c(t, k) }

What stands between two BARRIERs is a *part*. Memory of one thread becomes an array with a row for each, and
so does what was loaded in one part and is used in another. (This is how OpenCL runs on processors:
P. Jääskeläinen et al., "pocl: A Performance-Portable OpenCL Implementation", 2015.)
"""

from __future__ import annotations

from ..dtype import PtrDType, dtypes
from ..ir import index
from ..ir.args import AxisType, RangeArg
from ..ir.linear import CLOSING, OPENING
from ..ir.nest import free_numbers
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp, toposort


def without_threads(sink: UOp) -> UOp:
    """The steps with loops in place of threads that wait for each other."""
    threads = [s for s in sink.src if s.op is Ops.RANGE and s.arg.kind is AxisType.LOCAL]
    if not threads or not any(s.op is Ops.BARRIER for s in sink.src):
        return sink
    (loop,) = threads
    steps = list(sink.src)
    begin, end = steps.index(loop), steps.index(UOp(Ops.ENDRANGE, dtypes.void, (loop,)))
    body = _Threads(steps, begin, end)
    return UOp.sink(*steps[:begin], *body.loops(), *steps[end + 1 :])


class _Threads:
    """What the threads do: steps `begin` to `end` of a kernel."""

    def __init__(self, steps: list[UOp], begin: int, end: int) -> None:
        self.loop, outside = steps[begin], [*steps[:begin], *steps[end + 1 :]]
        self.count: int = self.loop.src[0].arg
        nodes = toposort(steps)
        self.fresh, self.memory = free_numbers(nodes)
        self.common = {node for node in toposort(outside) if node.op is Ops.DEFINE_LOCAL}
        body = UOp.sink(*steps[begin + 1 : end])
        self.body = transform(body, self._in_rows, None, rebuild=index.rebuild).src
        self.split = self._loops_with_barriers()

    def _in_rows(self, node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        """A place in memory of one thread: in its row."""
        memory = node.src[0] if node.op is Ops.INDEX else None
        if memory is None or memory.op is not Ops.DEFINE_LOCAL or memory in self.common:
            return None
        kind = memory.dtype
        if not isinstance(kind, PtrDType) or kind.local:
            return None
        rows = UOp(Ops.DEFINE_LOCAL, kind.base.ptr(kind.size * self.count), (), memory.arg)
        return UOp(Ops.INDEX, rows.dtype, (rows, src[1] + self.loop * kind.size, *src[2:]))

    def _loops_with_barriers(self) -> set[UOp]:
        found: set[UOp] = set()
        opened: list[UOp] = []
        for step in self.body:
            if step.op in OPENING:
                opened.append(step)
            elif step.op in CLOSING:
                opened.pop()
            elif step.op is Ops.BARRIER:
                found.update(opened)
        return found

    def loops(self) -> list[UOp]:
        """The steps in their new loops."""
        segments: list[list[UOp]] = [[]]
        between: list[
            UOp | None
        ] = []  # what stands behind each part but the last: a split loop's begin or end
        for step in self.body:
            splits = step in self.split or (step.op is Ops.ENDRANGE and step.src[0] in self.split)
            if step.op is Ops.BARRIER or splits:
                between.append(step if splits else None)
                segments.append([])
            else:
                segments[-1].append(step)
        home = {step: n for n, part in enumerate(segments) for step in part if step.op is Ops.LOAD}
        used = [
            {node for node in toposort(part) if home.get(node, n) != n} for n, part in enumerate(segments)
        ]
        replaced: dict[UOp, UOp] = {}
        for load in dict.fromkeys(node for nodes in used for node in sorted(nodes, key=lambda n: n.arg)):
            replaced[load] = UOp(
                Ops.DEFINE_LOCAL, load.dtype.ptr(self.count), (), self.memory + len(replaced)
            )
        made: list[UOp] = []
        for number, part in enumerate(segments):
            made += self._part(part, used[number], replaced)
            if number < len(between) and between[number] is not None:
                made.append(between[number])  # type: ignore[arg-type]
        return made

    def _part(self, part: list[UOp], used: set[UOp], kept: dict[UOp, UOp]) -> list[UOp]:
        """One part for all threads. `used` are loads of other parts, `kept` says where loads are kept."""
        if not part:
            return []
        own = UOp(Ops.RANGE, self.loop.dtype, self.loop.src, RangeArg(self.fresh, AxisType.LOOP))
        self.fresh += 1
        places = {self.loop: own}
        steps = [own]
        for load in sorted(used, key=lambda node: node.arg):
            again = UOp(Ops.LOAD, load.dtype, (_at(kept[load], own),), (load.arg, own.arg.id))
            places[load] = again
            steps.append(again)
        done = index.substitute((UOp.sink(*part),), places)
        for step in part:
            steps.append(done[step])
            if step in kept:
                steps.append(
                    UOp(Ops.STORE, dtypes.void, (_at(kept[step], own), done[step]), ("kept", step.arg))
                )
        return [*steps, UOp(Ops.ENDRANGE, dtypes.void, (own,))]


def _at(memory: UOp, place: UOp) -> UOp:
    return UOp(Ops.INDEX, memory.dtype, (memory, place))

"""Computing tensors: planning their kernels, looking at them, running them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from ..config import Context
from ..device.world import world
from ..engine.launch_cache import realize as realize_nodes
from ..engine.realize import failure_observers
from ..inspection.kernels import InspectedKernel, inspect
from ..inspection.targets import planned_for
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..schedule.graph.versions import OverwrittenError, latest
from ..schedule.kernelize import kernelize as kernelize_nodes
from ..schedule.kernels.items import ScheduleItem, create_schedule
from .face import Tensor
from .failed import note_failure
from .live import alive
from .observer import observing
from .storage import base_of, is_in_memory, overdue, versions_of


class Computing(Tensor):
    """Methods that plan and run."""

    def kernelize(self, *others: Tensor) -> Self:
        """Plan: cut the graph below these tensors into kernels, make unallocated buffers. Runs nothing.

        >>> Tensor([1]).add(1).kernelize().tolist()
        [2]
        """
        tensors: tuple[Tensor, ...] = _all_tensors(self, *others)
        kernelize_nodes([t._needs_memory() for t in tensors], pending_nodes)
        for tensor in tensors:
            tensor._claim_memory()
        return self

    def schedule_with_vars(self, *others: Tensor) -> tuple[list[ScheduleItem], dict[UOp, int]]:
        """The kernels that computing these tensors takes, in order, and the values of their Variables.

        >>> (Tensor([1]) + 1).schedule_with_vars()[1]
        {}
        """
        self.kernelize(*others)
        items = create_schedule([t._value() for t in (self, *others)])
        values: dict[UOp, int] = {}
        for item in items:
            values.update(item.var_vals)
        return items, values

    def schedule(self, *others: Tensor) -> list[ScheduleItem]:
        """The kernels that computing these tensors takes, in order.

        >>> len((Tensor([1]) + 1).schedule())
        2
        """
        return self.schedule_with_vars(*others)[0]

    def kernels(self, *others: Tensor, target: str | None = None) -> list[InspectedKernel]:
        """The kernels that computing these tensors would run, to look at and to run by hand; runs nothing.

        target  the target, which this machine need not have: metal, cuda, cuda:sm_90, cl, c,
                llvm, llvm:aarch64, python, webgpu; None is the device of each. What was not planned yet is
                planned for a GPU that is named, and stays so where it is run here later
        """
        with Context(PLAN_FOR=planned_for(target)):
            items = self.schedule(*others)
        return inspect(items, target)

    def realize(self, *others: Tensor) -> Self:
        """Compute these tensors now, together, and return the first.

        >>> Tensor([1]).realize().is_realized
        True
        """
        tensors: tuple[Tensor, ...] = _all_tensors(self, *others) if others else (self,)
        nodes: list[UOp] = []
        while True:
            before = nodes
            nodes = [tensor._wanted() for tensor in tensors] if others else [self._wanted()]
            try:
                compute(nodes)
                break
            except OverwrittenError:  # by another thread: the tensor stands for a copy made before
                if nodes == before:
                    raise
        for tensor in tensors:  # stand for the memory, and let go of the graph
            tensor._claim_memory()
            if is_copied(tensor._uop):  # another thread is about to write it
                return self.realize(*others)
        return self

    @property
    def is_realized(self) -> bool:
        """Whether its memory holds its values already."""
        base = base_of(self._value())
        return base.op is Ops.CONST or (
            is_in_memory(base) and not any("overwritten" in v.facts for v in versions_of(base))
        )


def is_copied(node: UOp) -> bool:
    """Whether a value is what `keep_old_values` made of one in memory: a copy that is not made yet."""
    if node.op is not Ops.CONTIGUOUS or "forwarded_to" in node.facts:
        return False
    return base_of(node.src[0]).op in (Ops.BUFFER, Ops.MULTI)


def _all_tensors(*given: Any) -> tuple[Tensor, ...]:
    for one in given:
        if not isinstance(one, Tensor):
            raise TypeError(f"only Tensors can be computed, not {one!r}")
    return given


def kernels(tensors: Tensor | Iterable[Tensor], target: str | None = None) -> list[InspectedKernel]:
    """The kernels that a tensor, or several together, would run: `Tensor.kernels` says more."""
    first, *others = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return first.kernels(*others, target=target)


def live_tensors() -> list[Tensor]:
    """Every tensor that exists now."""
    return alive()


def compute(nodes: Sequence[UOp]) -> None:
    """Compute the values of nodes, and the writes in place that are overdue."""
    if observing.by is not None:
        observing.by.runs()
    elif overdue.writes:
        together = world().size > 1 and any(isinstance(device_of(node), tuple) for node in nodes)
        nodes = [*nodes, *overdue.take(together)]
    overdue.computations += 1
    realize_nodes(nodes, pending_nodes)


failure_observers.append(note_failure)


def pending_nodes() -> list[UOp]:
    """The values that somebody holds and that are not computed yet.

    It only looks: they may be tensors of other threads.
    """
    found = []
    for tensor in live_tensors():
        base = base_of(tensor._uop_or_call)
        if base.op is Ops.BUFFER and "forwarded_to" not in base.facts:
            continue  # as nearly all are, the weights of a model: they are looked at in every step
        node = latest(tensor._uop)
        if not is_in_memory(base_of(node)):
            found.append(node)
    return found

"""Copies of a model on several ranks: whether all have the same numbers.

A step of data parallel keeps equal what is equal. Copies that begin apart, since ranks drew their numbers
with different seeds, or that one rank wrote to alone, stay apart, and nothing else would say so.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..device import Buffer
from ..device.world import world
from ..engine.collectives import after_sending
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of, latest
from ..shape import View
from ..shape.movement import base_and_tracker
from ..tensor import Tensor

#: Runs of lists in which ranks send each other something, between two comparisons; a captured step is one.
EVERY = 1000


class _Watch:
    """The tensors that are compared again and again, and how many runs there were."""

    def __init__(self) -> None:
        self.tensors: dict[str, weakref.ref[Tensor]] = {}
        self.models = self.runs = 0

    def add(self, tensors: Mapping[str, Tensor]) -> None:
        if not self.models:
            after_sending.append(self.count)
        self.models += 1
        model = "" if self.models == 1 else f" of model {self.models}"
        self.tensors |= {f"{name!r}{model}": weakref.ref(tensor) for name, tensor in tensors.items()}

    def count(self) -> None:
        """A list has run. All ranks compare after the same one, also those on which a model is gone."""
        self.runs += 1
        if self.runs % EVERY == 0 and world().gather is not None:
            there = {name: tensor for name, ref in self.tensors.items() if (tensor := ref()) is not None}
            _compare(
                there,
                f"after {self.runs} runs in which ranks sent each other something: one rank has written to "
                "its copy alone, or its processor rounds otherwise",
            )


_watch = _Watch()


def check_equal(tensors: Mapping[str, Tensor]) -> None:
    """RuntimeError, on all ranks, if tensors that each of them has whole are not equal; they are computed."""
    if world().gather is not None:
        whole = {name: tensor for name, tensor in tensors.items() if not isinstance(tensor.device, tuple)}
        if whole:
            Tensor.realize(*whole.values())
        _compare(
            {repr(name): tensor for name, tensor in whole.items()},
            "before it is divided: let all ranks make it with the same seed (Tensor.manual_seed, or "
            "distributed.init(seed=...), which gives it to all), or read it from the same file",
        )


def watch(tensors: Mapping[str, Tensor]) -> None:
    """Compare these copies after every EVERY runs, from now on: RuntimeError on all ranks if they differ."""
    if world().gather is not None:
        _watch.add(tensors)


def _compare(tensors: Mapping[str, Tensor], when: str) -> None:
    gather = world().gather
    assert gather is not None  # asked before
    first, *others = gather({name: hashed for name, x in tensors.items() if (hashed := _hash_of(x))})
    for rank, found in enumerate(others, 1):
        differ = [name for name, hashed in found.items() if first.get(name, hashed) != hashed]
        if differ:
            more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
            raise RuntimeError(
                f"the copies of a model are not equal: rank {rank} has other numbers than rank 0 in "
                f"{', '.join(differ[:3])}{more}, {when}"
            )


def _hash_of(tensor: Tensor) -> str:
    """Of the numbers of the copies that are here; "" of what is not in memory, or in parts."""
    node = latest(tensor.uop)
    while node.op is Ops.DETACH:
        node = latest(node.src[0])
    if node.op is Ops.MULTI and node.arg.axes:
        return ""
    found = set(_hashes(node.src if node.op is Ops.MULTI else (node,)))
    return "" if "" in found else " ".join(sorted(found))


def _hashes(parts: Iterable[UOp]) -> Iterator[str]:
    for part in parts:
        base, tracker = base_and_tracker(latest(part))
        buffer = buffer_of(base) if base.op is Ops.BUFFER else None
        view = tracker.views[-1]
        if buffer is None or not buffer.is_allocated or len(tracker.views) > 1 or view.mask is not None:
            yield ""
        else:
            yield hashlib.blake2b(_in_order(buffer, view), digest_size=16).hexdigest()


def _in_order(buffer: Buffer, view: View) -> Any:
    """The elements in their order: each rank has planned for itself how they lie in memory."""
    import numpy

    elements = buffer.numpy()[int(view.offset) :]  # type: ignore[arg-type]
    strides: Any = [stride * elements.itemsize for stride in view.strides]
    shown = numpy.lib.stride_tricks.as_strided(elements, view.shape, strides)  # type: ignore[arg-type]
    return numpy.ascontiguousarray(shown)

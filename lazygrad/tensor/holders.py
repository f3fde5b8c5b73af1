"""What holds memory: a table of the live tensors, largest first, with the calls that made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..device import Buffer, Device, GlobalCounters, allocator
from ..ir.uop import UOp
from ..shape import shape_text
from .computing import live_tensors
from .face import Tensor
from .owners import attributes_of
from .storage import base_of, versions_of

#: How many tensors an error lists.
LISTED = 10


class Holding(NamedTuple):
    """A block of memory that tensors see.

    nbytes, device  of the block             shape, dtype  of the largest tensor that sees it
    tensors         how many of them there are    made_by  the call that made it: its name, and with
                                                           TRACEMETA=2 the user's line
    owned   False for memory that was taken over from an array, which `in_use` does not count
    holder  the attribute that holds such a tensor, as `Network.first.weight`; "" for a local variable, and
            where lazygrad was not shown the model (`memory`)
    line    the user's line that made it, where lines are noted (TRACEMETA=2, DEBUG=2)
    """

    nbytes: int
    device: str
    shape: str
    dtype: str
    tensors: int
    made_by: str
    owned: bool
    holder: str = ""
    line: str = ""

    @property
    def layer(self) -> str:
        """The object that holds it: `Network.first` for the attribute `Network.first.weight`."""
        return self.holder.removesuffix(".grad").rpartition(".")[0]


class Group(NamedTuple):
    """The blocks of one layer, or of one line: how many, and their bytes."""

    name: str
    blocks: int
    nbytes: int


class MemoryReport(NamedTuple):
    """What memory is in use for, in bytes.

    in_use  by all buffers       peak  the most since `GlobalCounters.reset()`
    retained  freed and kept for reuse, over all devices
    tensors the blocks that live tensors see, largest first; the rest of `in_use` belongs to graphs that are
            not computed yet and to captures
    layers  the same by the object that holds the tensors     lines  and by the line that made them
    """

    in_use: int
    peak: int
    retained: int
    tensors: tuple[Holding, ...]

    @property
    def layers(self) -> tuple[Group, ...]:
        return _groups((row.layer, row) for row in self.tensors)

    @property
    def lines(self) -> tuple[Group, ...]:
        return _groups((row.line, row) for row in self.tensors)

    def text(self, most: int = 1 << 30) -> str:
        """The table, with so many rows."""
        seen = sum(row.nbytes for row in self.tensors if row.owned)
        taken = sum(row.nbytes for row in self.tensors) - seen
        lines = [
            f"{_size(self.in_use)} in use (peak {_size(self.peak)}): {_size(seen)} by "
            f"live tensors, {_size(max(self.in_use - seen, 0))} by graphs and captures; "
            f"{_size(self.retained)} kept for reuse, {_size(taken)} taken over from arrays"
        ]
        rows = [
            (
                _size(row.nbytes),
                row.shape,
                row.dtype,
                row.device,
                row.made_by + (f" ({row.tensors} tensors)" if row.tensors > 1 else ""),
            )
            for row in self.tensors[:most]
        ]
        if rows:
            rows.insert(0, ("bytes", "shape", "dtype", "device", "made by"))
            widths = [max(len(row[column]) for row in rows) for column in range(4)]
            lines += [f"  {'  '.join(map(str.rjust, row, widths))}  {row[4]}" for row in rows]
        if len(self.tensors) > most:
            lines.append(f"  and {len(self.tensors) - most} more")
        for what, groups in (("layer", self.layers), ("line", self.lines)):
            lines += _table_of_groups(what, groups, most)
        if rows and not any(" - " in row.made_by for row in self.tensors):
            lines.append("  (TRACEMETA=2 names the lines)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()


def memory(*models: Any) -> MemoryReport:
    """What holds memory now; it prints as a table of the live tensors, largest first.

    models  whose attributes name the layers: any objects. Models whose parameters or state was asked for, and
            optimizers, are known without.
    """
    blocks: dict[int, tuple[UOp, list[Tensor]]] = {}
    for tensor in live_tensors():
        for version in versions_of(base_of(tensor._value())):
            buffer = version.facts.get("buffer")
            if (
                buffer is not None
                and buffer.is_allocated
                and buffer.nbytes
                and not buffer.device.startswith("DISK")
            ):
                blocks.setdefault(id(buffer.base), (version, []))[1].append(tensor)
    found = [_holding(*block) for block in blocks.values()]
    names = attributes_of([tensor for _, tensors in blocks.values() for tensor in tensors], models)
    for place, (_, tensors) in enumerate(blocks.values()):
        held_by = [names[id(tensor)] for tensor in tensors if id(tensor) in names]
        found[place] = found[place]._replace(holder=min(held_by, key=len, default=""))
    rows = sorted(found, key=lambda row: -row.nbytes)
    kept = sum(Device[name].allocator.cached_bytes for name in Device.opened())
    return MemoryReport(GlobalCounters.mem_used, GlobalCounters.mem_peak, kept, tuple(rows))


def _holding(version: UOp, tensors: list[Tensor]) -> Holding:
    """The row of a block that these tensors, or parts of them, see."""
    largest = max(tensors, key=lambda tensor: tensor.nbytes())
    block: Buffer = version.facts["buffer"].base
    name = repr(largest.dtype).removeprefix("dtypes.")
    origin = version.facts.get("origin")
    made_by, line = str(origin or "Tensor"), getattr(origin, "line", "")
    shape = shape_text(largest.shape)
    return Holding(block.nbytes, block.device, shape, name, len(tensors), made_by, block._owned, line=line)


def _groups(named: Iterable[tuple[str, Holding]]) -> tuple[Group, ...]:
    """The blocks by a name, those with most bytes first; without those that have no name."""
    found: dict[str, Group] = {}
    for name, row in named:
        if name:
            known = found.get(name, Group(name, 0, 0))
            found[name] = Group(name, known.blocks + 1, known.nbytes + row.nbytes)
    return tuple(sorted(found.values(), key=lambda group: -group.nbytes))


def _table_of_groups(what: str, groups: Sequence[Group], most: int) -> list[str]:
    if not groups:
        return []
    rows = [("bytes", "blocks", what)]
    rows += [(_size(group.nbytes), str(group.blocks), group.name) for group in groups[:most]]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"  {'  '.join(map(str.rjust, row, widths))}  {row[2]}" for row in rows]
    return lines + ([f"  and {len(groups) - most} more"] if len(groups) > most else [])


def _size(nbytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


allocator.explain = lambda: memory().text(LISTED)

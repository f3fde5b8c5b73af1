"""Checkpoints that all ranks write together, and that any number of ranks reads.

    folder/step-00000010/model-00001-of-00004.safetensors   what rank 0 has
                         ...
                         model.safetensors.index.json       written last: a step without it does not exist

Each rank writes one safetensors file. A tensor that is in one piece has its own name there, and the index is
the one that Hugging Face's tools read: `weight_map`, from names to files. A tensor in parts has an entry for
each part, called `name[0:4,0:8]` after its elements along each axis; under `parts` the index says of it

    {"shape": [8, 8], "dtype": "F32", "pieces": [{"key": "name[0:4,0:8]", "box": [[0, 4], [0, 8]]}, ...]}

`training` has the rest of the run, as in a file of nn.TrainingState, `sizes` the bytes of each file, by which
one that is cut short is known, `checksums` the CRC-32 of each block of them, by which one is known that was
changed since, or is of another checkpoint, and `checksum` that of the rest of the index. A reader takes the
bytes that it needs, wherever they are, and checks the blocks in which they lie: so a run goes on with another
number of ranks, and on another mesh.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import re
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..device import flat_bytes
from ..dtype import DType, numpy_name
from ..nn.formats.safetensors import DTYPES, NAMES, read_header, read_metadata, write_safetensors
from ..nn.formats.source import FileFormatError, Path, Source, shown
from ..nn.formats.writing import atomic_file, is_left, lock
from ..nn.state import TOGETHER
from ..nn.training import TrainingState, checked_content, random_state, set_random_state
from ..shape import shape_text
from ..tensor import Tensor
from .shards import Box, Piece, is_whole, put_together, shards_of
from .starting import agree, broadcast, is_main, rank, world_size

INDEX = "model.safetensors.index.json"
VERSION = 1
#: Bytes of a block that has a checksum.
BLOCK = 1 << 20
#: In the folder of a checkpoint while it is written: locked by rank 0, so that nobody takes it for left.
LOCK = "writing"
#: How the file ends in which a rank says the checksums of its own.
SUMS = ".sums"
#: Bytes that are read at once where the elements that are wanted do not lie together.
AT_ONCE = 4096
_STEP = re.compile(r"step-([0-9]{8,})(\.before)?")
_RANDOM = "lazygrad.random"
#: Which rank writes each piece, by its key.
Plan = dict[str, tuple[int, Piece]]


# ---- which there are ----


def steps(folder: Path) -> list[int]:
    """The steps that are complete in a folder of checkpoints, in order."""
    return sorted(_folders(folder))


def _folders(folder: Path) -> dict[int, pathlib.Path]:
    """The folder of each complete step; one that is being replaced counts until the new one is there."""
    found: dict[int, pathlib.Path] = {}
    place = pathlib.Path(folder)
    for each in sorted(place.iterdir(), reverse=True) if place.is_dir() else ():
        match = _STEP.fullmatch(each.name)  # "...10.before" comes first, and is replaced by "...10"
        if match is not None and _is_complete(each):
            found[int(match[1])] = each
    return found


def _is_complete(place: pathlib.Path) -> bool:
    try:
        sizes = json.loads((place / INDEX).read_bytes())["sizes"]
        return all((place / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


# ---- writing ----


def save(
    state: TrainingState,
    folder: Path,
    step: int,
    keep: int = 2,
    notes: Mapping[str, Any] | None = None,
) -> pathlib.Path:
    """Write a checkpoint; all ranks call this, between two steps. Its folder comes back.

    state   the run: `nn.TrainingState(model=model, optimizer=optimizer, ...)`
    folder  where checkpoints are: one that all ranks see
    step    the number it is known by
    keep    how many complete checkpoints stay, this one among them
    notes   what else it carries along: anything that JSON can say

    Each rank writes the parts that it has; of copies each is written once, and whole tensors that all ranks
    have are divided between them. A checkpoint appears when all of it is on disk. Whatever kills the job
    before that, the last complete one is still there.
    """
    if not isinstance(state, TrainingState):
        raise TypeError(
            f"save takes an nn.TrainingState, not a {type(state).__name__}: TrainingState(model=...)"
        )
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"step must be a whole number of at least 0, not {step!r}")
    if keep < 1:
        raise ValueError(f"keep must be at least 1, not {keep}")
    tensors, content = state.collected(notes)
    Tensor.realize(*tensors.values())
    pieces = {name: shards_of(tensor) for name, tensor in tensors.items()}
    plan = _plan(pieces, tensors)
    token = broadcast(secrets.token_hex(4))
    target = pathlib.Path(folder) / f"step-{step:08}"
    part = target.with_name(f".{target.name}.{token}.part")
    index = _index(tensors, pieces, plan, content, step)
    agree(f"the checkpoint of step {step}", json.dumps([step, index["weight_map"]]).encode())
    with _begun(part) if is_main() else contextlib.nullcontext():
        agree("a checkpoint's folder", b"")
        mine = {
            key: piece.part
            for key, (writer, piece) in plan.items()
            if writer == rank() and piece.part is not None
        }
        own = part / _file(rank())
        write_safetensors(mine, own, {_RANDOM: json.dumps(random_state())})
        own.with_suffix(SUMS).write_text(json.dumps(_checksums(own)), encoding="utf-8")
        agree("a checkpoint's files", b"")
        if is_main():
            _complete(part, target, index)
            _clean(pathlib.Path(folder), keep)
    agree("a complete checkpoint", b"")
    return target


@contextlib.contextmanager
def _begun(part: pathlib.Path) -> Iterator[None]:
    """The folder of a checkpoint while it is written. What killed jobs left makes room for it; what is not
    completed makes room for others.
    """
    for left in part.parent.glob(".step-*"):
        is_open = left.suffix == ".part" and not (left / LOCK).exists()  # of a version without locks
        if is_open or is_left(left / LOCK):
            shutil.rmtree(left, ignore_errors=True)
    try:
        made = part.with_suffix(".new")  # until it is locked
        made.mkdir(parents=True)
        with open(made / LOCK, "xb") as file:
            lock(file)
            made.rename(part)
            yield
    finally:
        shutil.rmtree(part, ignore_errors=True)  # which is no longer there if all went well


def _checksums(file: pathlib.Path) -> list[int]:
    """The CRC-32 of each block of a file."""
    found = []
    with open(file, "rb") as opened:
        while block := opened.read(BLOCK):
            found.append(zlib.crc32(block))
    return found


def _own_checksum(index: Mapping[str, Any]) -> int:
    """The CRC-32 of what an index says, but for this number."""
    said = {name: value for name, value in index.items() if name != "checksum"}
    return zlib.crc32(json.dumps(said, sort_keys=True).encode())


def _file(number: int) -> str:
    return f"model-{number + 1:05}-of-{world_size():05}.safetensors"


def _key(name: str, box: Box) -> str:
    return f"{name}[{','.join(f'{begin}:{end}' for begin, end in box)}]"


def _plan(pieces: Mapping[str, Sequence[Piece]], tensors: Mapping[str, Tensor]) -> Plan:
    """Which rank writes each piece, and its key: of those that have it, the one with the least to write."""
    load = [0] * world_size()
    found = {}
    for name, parts in pieces.items():
        for piece in parts:
            writer = min(piece.ranks, key=lambda number: (load[number], number))
            load[writer] += math.prod(end - begin for begin, end in piece.box) * tensors[name].dtype.itemsize
            key = name if is_whole(piece.box, tensors[name].shape) else _key(name, piece.box)
            found[key] = writer, piece
    return found


def _index(
    tensors: Mapping[str, Tensor],
    pieces: Mapping[str, Sequence[Piece]],
    plan: Plan,
    content: Mapping[str, Any],
    step: int,
) -> dict[str, Any]:
    parts = {}
    for name, tensor in tensors.items():
        found = [piece for piece in pieces[name] if not is_whole(piece.box, tensor.shape)]
        if found:
            entries = [
                {"key": _key(name, piece.box), "box": [list(span) for span in piece.box]} for piece in found
            ]
            parts[name] = {"shape": list(tensor.shape), "dtype": NAMES[tensor.dtype], "pieces": entries}
    total = sum(tensor.nbytes() for tensor in tensors.values())
    return {
        "metadata": {"total_size": total, "step": step, "version": VERSION, "ranks": world_size()},
        "weight_map": {key: _file(writer) for key, (writer, _) in plan.items()},
        "parts": parts,
        "training": content,
    }


def _complete(part: pathlib.Path, target: pathlib.Path, index: dict[str, Any]) -> None:
    """Write the index, and let the checkpoint take its place."""
    sizes, sums = {}, {}
    for number in range(world_size()):
        file = part / _file(number)
        if not file.is_file():
            raise FileNotFoundError(
                f"rank {number} has written {file}, which rank 0 does not see: checkpoints need a folder "
                "that all ranks share"
            )
        sizes[file.name] = file.stat().st_size
        said = file.with_suffix(SUMS)
        sums[file.name] = json.loads(said.read_text(encoding="utf-8"))
        said.unlink()
    index = {**index, "sizes": sizes, "checksums": {"block": BLOCK, "files": sums}}
    with atomic_file(part / INDEX) as written:
        written.write(json.dumps({**index, "checksum": _own_checksum(index)}, indent=1).encode())
    _to_disk(part)
    before = target.with_name(f"{target.name}.before")
    if target.exists():
        if _is_complete(target):
            shutil.rmtree(before, ignore_errors=True)
            os.rename(target, before)
        else:
            shutil.rmtree(target)
    os.rename(part, target)
    (target / LOCK).unlink(missing_ok=True)
    _to_disk(target.parent)
    shutil.rmtree(before, ignore_errors=True)


def _to_disk(folder: pathlib.Path) -> None:
    """Have the names in a folder on disk; not where the system opens no folders."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _clean(folder: pathlib.Path, keep: int) -> None:
    """Take away all complete steps but the last ones."""
    places = _folders(folder)
    for number in sorted(places)[:-keep]:
        shutil.rmtree(places[number], ignore_errors=True)


# ---- reading ----


def load(state: TrainingState, folder: Path, step: int | None = None) -> int | None:
    """Go on from a checkpoint; all ranks call this. The step comes back; None where there is none.

    state  the same parts as were saved, whose tensors may lie on another mesh, on another number of ranks
    step   which one; the last complete one if not given

    Each rank reads what its own parts need. Everything is compared before the first tensor is written:
    ValueError says what does not fit, FileNotFoundError that there is no such step.
    """
    if not isinstance(state, TrainingState):
        raise TypeError(
            f"load takes an nn.TrainingState, not a {type(state).__name__}: TrainingState(model=...)"
        )
    places = _folders(folder)
    chosen = broadcast(max(places, default=None) if step is None else step)
    if chosen is None:
        return None
    if chosen not in places:
        there = ", ".join(map(str, sorted(places))) or "none"
        raise FileNotFoundError(f"{folder} has no complete checkpoint of step {chosen}; there are {there}")
    with Checkpoint(places[chosen]) as checkpoint:
        content = checked_content(json.dumps(checkpoint.index.get("training")), str(checkpoint.path))
        names = {name: name for name in checkpoint.tensors} | content["same"]
        targets = state.targets(str(checkpoint.path), content, names)
        for name, target in targets.items():
            checkpoint.require_fits(names[name], name, target)
        state.set_rest(content)
        wanted = list(targets.items())
        for begin in range(0, len(wanted), TOGETHER):
            some = wanted[begin : begin + TOGETHER]
            for name, target in some:
                target.assign(checkpoint.value(names[name], target))
            Tensor.realize(*[target for _, target in some])
        set_random_state(checkpoint.random() or content["random"])
    agree("a checkpoint that was read", b"")
    return int(chosen)


class _Entry(NamedTuple):
    """A piece in a file: its elements, and where its bytes begin."""

    box: Box
    file: str
    begin: int


class _Stored(NamedTuple):
    """A tensor of a checkpoint."""

    shape: tuple[int, ...]
    dtype: DType
    entries: list[_Entry]


class Checkpoint:
    """A complete checkpoint: its tensors by name, and the bytes of any part of one."""

    def __init__(self, place: Path) -> None:
        self.path = pathlib.Path(place)
        with Source(self.path / INDEX, "index") as source:
            self.index = source.json(0, source.size, "the index")
            files = dict.fromkeys(self._map(source).values())
            self._sums, self._block = self._checksums(source, files)
            self._whole: dict[str, set[int]] = {file: set() for file in files}
            self._files: dict[str, int] = {}
            try:
                for file in files:
                    self._files[file] = os.open(self.path / file, os.O_RDONLY)
                headers = {file: read_header(self.path / file) for file in files}
                for file, (_, base) in headers.items():
                    self._check(file, 0, base)
                self.tensors = self._tensors(source, headers)
            except BaseException:
                self.__exit__()
                raise

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._files.values():
            os.close(opened)

    def _map(self, source: Source) -> dict[str, str]:
        index = self.index
        if type(index) is not dict or type(index.get("weight_map")) is not dict:
            source.refuse("it has no weight_map")
        for file in index["weight_map"].values():
            if type(file) is not str or pathlib.PurePath(file).name != file:
                source.refuse(f"it names the file {shown(str(file))}, which is not in its folder")
        return dict(index["weight_map"])

    def _checksums(self, source: Source, files: Iterable[str]) -> tuple[dict[str, list[int]], int]:
        """Those of each file, and of how many bytes; none in a checkpoint of before there were any."""
        index = self.index
        if "checksums" not in index:
            return {}, BLOCK
        if index.get("checksum") != _own_checksum(index):
            source.refuse("its checksum is another: it was changed after it was written")
        sums = index["checksums"]
        found, block, sizes = sums["files"], sums["block"], index["sizes"]
        if block < 1 or any(len(found.get(file, ())) != -(-sizes[file] // block) for file in files):
            source.refuse("it has no checksums of some of its files")
        return found, block

    def _check(self, file: str, at: int, count: int) -> None:
        """Compare the blocks in which these bytes lie with their checksums, each once."""
        sums, known, block = self._sums.get(file), self._whole[file], self._block
        if sums is None:
            return
        for number in range(at // block, -(-(at + count) // block)):
            if number in known:
                continue
            begin = number * block
            if zlib.crc32(os.pread(self._files[file], block, begin)) != sums[number]:
                raise FileFormatError(
                    f"{self.path / file} is not what was saved: in bytes {begin} to {begin + block} its "
                    "checksum is another. It was changed, or is of another checkpoint; load an older step"
                )
            known.add(number)

    def _tensors(self, source: Source, headers: Mapping[str, Any]) -> dict[str, _Stored]:
        entries: dict[str, tuple[tuple[int, ...], DType, str, int]] = {}
        for key, file in self._map(source).items():
            header, base = headers[file]
            if key not in header:
                source.refuse(f"it says that {shown(key)} is in {shown(file)}, which does not have it")
            entry = header[key]
            dtype = DTYPES.get(entry["dtype"])
            if dtype is None:
                source.refuse(
                    f"{shown(key)} has dtype {shown(str(entry['dtype']))}, which lazygrad does not have"
                )
            entries[key] = tuple(entry["shape"]), dtype, file, base + entry["data_offsets"][0]
        found: dict[str, _Stored] = {}
        for name, about in self.index.get("parts", {}).items():
            shape, dtype = tuple(about["shape"]), DTYPES[about["dtype"]]
            stored = _Stored(shape, dtype, [])
            for piece in about["pieces"]:
                box = tuple([(begin, end) for begin, end in piece["box"]])
                own, kind, file, begin = entries.pop(piece["key"])
                if own != tuple([end - begin for begin, end in box]) or kind is not dtype:
                    source.refuse(f"{shown(piece['key'])} is not what its file says")
                stored.entries.append(_Entry(box, file, begin))
            if sum(math.prod(e - b for b, e in each.box) for each in stored.entries) != math.prod(shape):
                source.refuse(f"the pieces of {shown(name)} are not all of it")
            found[name] = stored
        for key, (shape, dtype, file, begin) in entries.items():
            found[key] = _Stored(shape, dtype, [_Entry(tuple([(0, size) for size in shape]), file, begin)])
        return found

    def require_fits(self, name: str, called: str, target: Tensor) -> None:
        """Raise where a tensor of the run has another shape or dtype than the saved one."""
        stored = self.tensors[name]
        if stored.shape != target.shape or stored.dtype is not target.dtype:
            raise ValueError(
                f"{called}: the run has shape {shape_text(target.shape)} of {target.dtype}, the checkpoint "
                f"{shape_text(stored.shape)} of {stored.dtype}"
            )

    def value(self, name: str, target: Tensor) -> Tensor:
        """A saved tensor, lying as another one does; only what is here of it is read."""
        stored = self.tensors[name]
        return put_together(target, lambda box: self._tensor(stored, box))

    def whole(self, name: str) -> Tensor:
        """All of a saved tensor, on the CPU."""
        stored = self.tensors[name]
        return self._tensor(stored, tuple([(0, size) for size in stored.shape]))

    def _tensor(self, stored: _Stored, box: Box) -> Tensor:
        made = Tensor.from_numpy(self.read(stored, box))
        return made if made.dtype is stored.dtype else made.bitcast(stored.dtype)

    def read(self, stored: _Stored, box: Box) -> Any:
        """The elements of a box, as numpy sees them."""
        import numpy as np

        kind = np.dtype(numpy_name(stored.dtype))
        found = np.empty([end - begin for begin, end in box], kind)
        for entry in stored.entries:
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, entry.box, strict=True)]
            if all(begin < end for begin, end in common) or not box:
                within = tuple(
                    [slice(b - c, e - c) for (b, e), (c, _) in zip(common, entry.box, strict=True)]
                )
                to = tuple([slice(b - c, e - c) for (b, e), (c, _) in zip(common, box, strict=True)])
                found[to] = self._read_part(entry, within, kind)
        return found

    def _read_part(self, entry: _Entry, within: tuple[slice, ...], kind: Any) -> Any:
        """Elements of one piece: those that lie together in the file are read at once."""
        import numpy as np

        shape = [end - begin for begin, end in entry.box]
        # From this axis on all elements are wanted, so they lie together.
        last = len(shape)
        while last and (within[last - 1].start, within[last - 1].stop) == (0, shape[last - 1]):
            last -= 1
        last = max(last - 1, 0)
        inner = math.prod(shape[last + 1 :]) * kind.itemsize
        if last and inner * (within[last].stop - within[last].start) < AT_ONCE:
            # Short runs: read the rows of the first axis whole, and take from them.
            rows = self._read_part(entry, (within[0], *[slice(0, size) for size in shape[1:]]), kind)
            return rows[(slice(None), *within[1:])]
        found = np.empty([each.stop - each.start for each in within], kind)
        for outer in np.ndindex(*found.shape[:last]):
            place = 0
            for size, part, number in zip(shape, within, outer, strict=False):
                place = place * size + part.start + number
            if shape:
                place = place * shape[last] + within[last].start
            run = found[(*outer, ...)]
            if run.nbytes:
                self._fill(entry, flat_bytes(run), entry.begin + place * inner)
        return found

    def _fill(self, entry: _Entry, target: memoryview, at: int) -> None:
        self._check(entry.file, at, len(target))
        while len(target):
            count = os.preadv(self._files[entry.file], [target], at)
            if count == 0:
                raise FileFormatError(f"{self.path / entry.file} ends at byte {at}")
            target, at = target[count:], at + count

    def random(self) -> dict[str, Any] | None:
        """Where the random numbers of this rank were, if there were as many ranks."""
        if self.index["metadata"].get("ranks") != world_size():
            return None
        text = read_metadata(self.path / _file(rank())).get(_RANDOM)
        return None if text is None else json.loads(text)


def read(folder: Path, step: int | None = None) -> dict[str, Tensor]:
    """The tensors of a checkpoint, whole and on the CPU, by name: to look at, or to export."""
    places = _folders(folder)
    chosen = max(places, default=None) if step is None else step
    if chosen not in places:
        raise FileNotFoundError(
            f"{folder} has no complete checkpoint{'' if step is None else f' of step {step}'}"
        )
    with Checkpoint(places[chosen]) as checkpoint:
        return {name: checkpoint.whole(name) for name in checkpoint.tensors}

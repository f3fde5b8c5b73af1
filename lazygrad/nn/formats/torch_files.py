"""What PyTorch's `torch.save` wrote, without PyTorch: zip archives, and the form before PyTorch 1.6.

Both are a pickle, in which a tensor is a storage (some memory, by its key), an offset, a shape and strides,
and the storages' bytes: a member of the archive each, or one behind the other at the file's end. Tensors that
share a storage look at the same bytes. The pickle is read as data (`pickles`).
"""

from __future__ import annotations

import math
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...dtype import DType, dtypes
from ...shape import shape_text
from ...shape.view import strides_of
from ...tensor import Tensor
from ...tensor.sources import MOST_AXES
from .pickles import Calls, Name, Opaque, Value, read_pickle
from .source import Path, Source, shown
from .zip_files import Archive

KIND = "torch"

#: How a file before PyTorch 1.6 begins: this number, pickled, then the version of the format, pickled.
MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
#: More bytes than that pickle has in any protocol.
_MOST_MAGIC = 64


class _Storage(Opaque):
    """Memory that tensors of the file share: `size` elements of a dtype (None: bytes of whichever).

    offset  of its first byte in the file; None while it is not known
    """

    def __init__(self, source: Source, place: int | None, dtype: DType | None, size: int) -> None:
        self.source, self.offset, self.dtype, self.size = source, place, dtype, size


class _Unplaced(Opaque):
    """What will be a tensor once it is known where the storages are."""


#: The classes by which a file names the types of its memory.
_STORAGES: dict[Name, DType | None] = {
    Name("torch", f"{name}Storage"): dtype
    for name, dtype in (
        ("Double", dtypes.float64),
        ("Float", dtypes.float32),
        ("Half", dtypes.float16),
        ("BFloat16", dtypes.bfloat16),
        ("Long", dtypes.int64),
        ("Int", dtypes.int32),
        ("Short", dtypes.int16),
        ("Char", dtypes.int8),
        ("Byte", dtypes.uint8),
        ("Bool", dtypes.bool),
    )
}
_BYTES = (Name("torch.storage", "UntypedStorage"), Name("torch", "UntypedStorage"))
_STORAGES |= dict.fromkeys(_BYTES)

#: The names of dtypes: a tensor may have one beside its storage, or people keep one.
_DTYPES = {
    Name("torch", name): Value(dtype)
    for name, dtype in (
        ("float64", dtypes.float64),
        ("float32", dtypes.float32),
        ("float16", dtypes.float16),
        ("bfloat16", dtypes.bfloat16),
        ("float8_e4m3fn", dtypes.fp8e4m3),
        ("float8_e5m2", dtypes.fp8e5m2),
        ("int64", dtypes.int64),
        ("int32", dtypes.int32),
        ("int16", dtypes.int16),
        ("int8", dtypes.int8),
        ("uint64", dtypes.uint64),
        ("uint32", dtypes.uint32),
        ("uint16", dtypes.uint16),
        ("uint8", dtypes.uint8),
        ("bool", dtypes.bool),
    )
}

#: From its key the first byte of a storage and how many there are; None while that is not known.
Memory = Callable[[str], tuple[int, int] | None]


def _storage(pid: Any, source: Source, memory: Memory, sizes: dict[str, int]) -> _Storage:
    """What ("storage", its class, its key, the device it was on, how many elements, ...) stands for.

    In the older form a sixth entry may say which part of another storage it is: (key, offset, size).
    """
    if type(pid) is not tuple or len(pid) not in (5, 6) or pid[0] != "storage":
        raise ValueError("a persistent id does not describe a storage")
    _, kind, key, _, size, *part = pid
    if type(kind) is not Name or kind not in _STORAGES or type(key) is not str or not _are_sizes((size,)):
        raise ValueError("a persistent id does not describe a storage")
    if part and part[0] is not None:
        raise NotImplementedError("a storage that is a part of another is not read: save it again")
    dtype = _STORAGES[kind]
    nbytes = size * (dtype.itemsize if dtype else 1)
    if sizes.setdefault(key, nbytes) != nbytes:
        raise ValueError(f"storage {shown(key)} has two sizes, {sizes[key]} and {nbytes} bytes")
    found = memory(key)
    if found is None:
        return _Storage(source, None, dtype, size)
    place, there = found
    if nbytes > there:
        what = f"elements of {dtype}" if dtype else "bytes"
        raise ValueError(f"storage {shown(key)} should have {size} {what}, but has {there} bytes")
    return _Storage(source, place, dtype, size)


def _are_sizes(values: Any) -> bool:
    return type(values) is tuple and all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *others: Any) -> Tensor | _Unplaced:
    """Some elements of a storage. The others say whether it requires a gradient, and what hooks it has."""
    if not 2 <= len(others) <= 3:
        raise ValueError("a tensor is not made of a storage")
    return _typed_tensor(storage, offset, shape, strides, *others[:2], None)


def _typed_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, kind: Any, *_: Any
) -> Tensor | _Unplaced:
    """The same with a dtype of its own, as PyTorch writes those that it has had for a few years only."""
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor is not made of a storage")
    if not (_are_sizes((offset,)) and _are_sizes(shape) and _are_sizes(strides)):
        raise ValueError("a tensor's offset, shape or strides are not sizes")
    if len(shape) != len(strides) or len(shape) > MOST_AXES:
        raise ValueError(f"a tensor has {len(shape)} axes and {len(strides)} strides; at most {MOST_AXES}")
    if not isinstance(kind, (DType, type(None))):
        raise ValueError("a tensor has something other than a dtype as its dtype")
    dtype = storage.dtype if kind is None else kind
    if dtype is None:
        raise ValueError("a tensor of bytes has no dtype")
    count = math.prod(shape)
    if count >= 1 << 63:
        raise ValueError(f"a tensor of shape {shape_text(shape)} has too many elements")
    if count == 0:
        return Tensor.empty(*shape, dtype=dtype, device="CPU")
    size = storage.size * (storage.dtype.itemsize if storage.dtype else 1) // dtype.itemsize
    last = offset + sum((axis - 1) * step for axis, step in zip(shape, strides, strict=True))
    if last >= size:
        raise ValueError(f"a tensor of shape {shape_text(shape)} has elements {offset} to {last} of {size}")
    if storage.offset is None:
        return _Unplaced()
    here = tuple(0 if axis == 1 else step for axis, step in zip(shape, strides, strict=True))
    if here == strides_of(shape):
        return storage.source.tensor(storage.offset + offset * dtype.itemsize, shape, dtype, "a tensor")
    elements = storage.source.tensor(storage.offset, (size,), dtype, "a storage").to("CPU")
    return elements.as_strided(shape, strides, offset)


def _parameter(data: Any, *_: Any) -> Any:
    if not isinstance(data, (Tensor, _Unplaced)):
        raise ValueError("a parameter is not made of a tensor")
    return data


def _size(values: Any) -> tuple[int, ...]:
    if not _are_sizes(values):
        raise ValueError("a torch.Size has something other than sizes")
    return values  # type: ignore[no-any-return]


def _device(kind: Any, index: Any = None) -> str:
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise ValueError("a torch.device has something other than a name and a number")
    return kind if index is None else f"{kind}:{index}"


def _encoded(text: Any, encoding: Any) -> bytes:
    """Bytes, as protocol 2 writes them."""
    if type(text) is not str or encoding != "latin1":
        raise ValueError("bytes are not written as a pickler writes them")
    return text.encode("latin1")


#: What a file may name, and what comes of calling it.
_CALLS: Calls = {
    Name("collections", "OrderedDict"): lambda: OrderedDict(),  # of no arguments
    Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Name("torch._utils", "_rebuild_tensor_v3"): _typed_tensor,
    Name("torch._utils", "_rebuild_parameter"): _parameter,
    Name("torch", "Size"): _size,
    Name("torch", "device"): _device,
    Name("_codecs", "encode"): _encoded,
    **dict.fromkeys(_STORAGES),
    **_DTYPES,
}


def read_torch(path: Path | Tensor) -> Any:
    """What `torch.save` wrote, with Tensors in place of PyTorch's; each is read when it is needed.

    Only tensors, numbers, texts and containers are read (NotImplementedError names what else there is), and
    nothing of the file is executed. FileFormatError says what is wrong with a damaged file.
    """
    with Source(path, KIND) as source, source.damage():
        if (place := after_magic(source)) is not None:
            return _read_legacy(source, place)
        if zipfile.is_zipfile(source.file):
            return _read_archive(Archive(source))
        raise NotImplementedError(
            "it is neither a zip file, which torch.save writes since PyTorch 1.6, nor of the form before that"
        )


def after_magic(source: Source) -> int | None:
    """Where the number ends that a file before PyTorch 1.6 begins with; None if it does not."""
    try:
        number, place = read_pickle(source, 0, min(_MOST_MAGIC, source.size), {}, _no_storage)
    except (ValueError, NotImplementedError):
        return None
    return place if number == MAGIC else None


def _read_archive(archive: Archive) -> Any:
    """The object whose pickle and memory are members of an archive."""
    if any(name == "constants.pkl" or name.endswith("/constants.pkl") for name in archive.members):
        raise NotImplementedError("it is a program of TorchScript, which is not run: save its state_dict()")
    for member in archive.members.values():
        if member.packed is not None:
            raise NotImplementedError(f"{shown(member.name)} is compressed, which torch.save does not do")
    indices = [name for name in archive.members if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(indices) != 1:
        raise ValueError(f"it has {len(indices) or 'no'} data.pkl: torch.save did not write it")
    root = indices[0].removesuffix("data.pkl")
    order = archive.members.get(f"{root}byteorder")
    if order is not None and (order.nbytes != 6 or archive.contents(order) != b"little"):
        raise NotImplementedError("its numbers are not little-endian: load it there and save it again")

    def memory(key: str) -> tuple[int, int]:
        member = archive.members.get(f"{root}data/{key}")
        if member is None:
            raise ValueError(f"there is no storage {shown(key)} in the archive")
        return member.begin, member.nbytes

    index = archive.members[indices[0]]
    sizes: dict[str, int] = {}
    found, _ = read_pickle(
        archive.source,
        index.begin,
        index.begin + index.nbytes,
        _CALLS,
        lambda pid: _storage(pid, archive.source, memory, sizes),
    )
    return found


def _read_legacy(source: Source, place: int) -> Any:
    """Five pickles (a number, the version, the machine's kind, the object, the keys of the storages), then
    for each storage how many elements it has, in 8 bytes, and these.
    """

    def plain(begin: int) -> tuple[Any, int]:
        return read_pickle(source, begin, source.size, {}, _no_storage)

    version, place = plain(place)
    if version != _VERSION:
        raise NotImplementedError(f"its form has version {shown(str(version))}; {_VERSION} is read")
    machine, place = plain(place)
    if type(machine) is not dict or machine.get("little_endian") is not True:
        raise NotImplementedError("its numbers are not little-endian: load it there and save it again")
    sizes: dict[str, int] = {}
    widths: dict[str, int] = {}

    def unplaced(pid: Any) -> _Storage:
        made = _storage(pid, source, lambda key: None, sizes)
        widths[pid[2]] = made.dtype.itemsize if made.dtype else 1
        return made

    # Twice: only what follows the object says where the storages are that it is made of.
    begin = place
    _, place = read_pickle(source, begin, source.size, _CALLS, unplaced, opaque=_Unplaced)
    keys, place = plain(place)
    places = _byte_ranges(source, keys, place, sizes, widths)
    found, _ = read_pickle(
        source, begin, source.size, _CALLS, lambda pid: _storage(pid, source, places.__getitem__, {})
    )
    return found


def _no_storage(pid: Any) -> Opaque:
    raise ValueError("a storage occurs where none is allowed")


def _byte_ranges(
    source: Source, keys: Any, place: int, sizes: dict[str, int], widths: dict[str, int]
) -> dict[str, tuple[int, int]]:
    """Where the bytes of each storage of the older form begin, and how many there are; the first's at
    `place`."""
    if type(keys) is not list or not all(type(key) is str for key in keys) or sorted(keys) != sorted(sizes):
        raise ValueError("the listed storages are not those of its tensors")
    found = {}
    for key in keys:
        count = int.from_bytes(source.read(place, 8, f"the size of storage {shown(key)}"), "little")
        if count * widths[key] != sizes[key]:
            raise ValueError(
                f"storage {shown(key)} of {sizes[key]} bytes should have {count} elements (byte {place})"
            )
        found[key] = place + 8, sizes[key]
        place += 8 + sizes[key]
        if place > source.size:
            source.refuse(
                f"storage {shown(key)} should be bytes {found[key][0]} to {place}, "
                f"but there are {source.size}"
            )
    return found

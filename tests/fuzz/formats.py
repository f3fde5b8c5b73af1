"""Files written by hand, so that every field of them can be wrong: zip archives, pickles, torch files."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

# ---- zip ----


@dataclass
class Member:
    """A file of an archive; what is None is as it should be."""

    name: str
    data: bytes = b""
    method: int = 0
    flags: int = 0x800
    packed: int | None = None
    unpacked: int | None = None
    local_name: str | None = None
    local_method: int | None = None
    signature: bytes = b"PK\3\4"
    offset: int | None = None
    extra: bytes = b""
    crc: int | None = None
    raw: bytes | None = field(default=None, repr=False)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zip_file(members: list[Member], count: int | None = None, directory: int | None = None) -> bytes:
    """An archive as PKZIP's APPNOTE describes it: members, their directory, its end."""
    whole, rows = b"", b""
    for each in members:
        raw = each.raw if each.raw is not None else deflated(each.data) if each.method == 8 else each.data
        crc = zlib.crc32(each.data) if each.crc is None else each.crc
        sizes = (
            len(raw) if each.packed is None else each.packed,
            len(each.data) if each.unpacked is None else each.unpacked,
        )
        offset = len(whole) if each.offset is None else each.offset
        local = (each.name if each.local_name is None else each.local_name).encode()
        method = each.method if each.local_method is None else each.local_method
        whole += each.signature + struct.pack("<5H", 20, each.flags, method, 0, 0x21)
        whole += struct.pack("<3I2H", crc, *sizes, len(local), len(each.extra)) + local + each.extra + raw
        name = each.name.encode()
        rows += b"PK\1\2" + struct.pack("<6H", 20, 20, each.flags, each.method, 0, 0x21)
        rows += struct.pack("<3I5H2I", crc, *sizes, len(name), 0, 0, 0, 0, 0, offset) + name
    counted = len(members) if count is None else count
    place = len(whole) if directory is None else directory
    return whole + rows + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, counted, counted, len(rows), place, 0)


# ---- pickles ----

STOP = b"."


def text(value: str) -> bytes:
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def name(module: str, found: str) -> bytes:
    return b"c" + f"{module}\n{found}\n".encode()


def number(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    return b"\x8b" + struct.pack("<I", size) + value.to_bytes(size, "little", signed=True)


def together(*parts: bytes) -> bytes:
    """A tuple."""
    return b"(" + b"".join(parts) + b"t"


def numbers(*values: int) -> bytes:
    return together(*map(number, values))


def mapping(*pairs: bytes) -> bytes:
    """A dict of keys and values in turn."""
    return b"}(" + b"".join(pairs) + b"u"


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + together(*arguments) + b"R"


ORDERED = call(name("collections", "OrderedDict"))
TENSOR = name("torch._utils", "_rebuild_tensor_v2")


def storage(key: str = "0", kind: str = "Float", size: int = 6) -> bytes:
    """What stands for a memory of the file."""
    parts = text("storage"), name("torch", f"{kind}Storage"), text(key), text("cpu"), number(size)
    return together(*parts) + b"Q"


def tensor(
    memory: bytes = b"", offset: int = 0, shape: tuple[int, ...] = (2, 3), strides: tuple[int, ...] = (3, 1)
) -> bytes:
    where = numbers(*shape), numbers(*strides)
    return call(TENSOR, memory or storage(), number(offset), *where, b"\x89", ORDERED)


def torch_file(
    program: bytes, memory: dict[str, bytes] | None = None, others: tuple[Member, ...] = (), **fields: Any
) -> bytes:
    """What torch.save writes: a pickle, which a protocol begins and STOP ends, and the memory of tensors."""
    kept = {"0": struct.pack("<6f", *range(6))} if memory is None else memory
    members = [Member("archive/data.pkl", b"\x80\2" + program + STOP)]
    members += [Member(f"archive/data/{key}", found) for key, found in kept.items()]
    return zip_file([*members, Member("archive/byteorder", b"little"), *others], **fields)


def legacy_file(
    program: bytes,
    memory: dict[str, tuple[int, bytes]] | None = None,
    *,
    version: int = 1001,
    little: bytes = b"\x88",
) -> bytes:
    """What torch.save wrote before PyTorch 1.6; memory is, by its key, how many elements it is said to have,
    and it."""
    kept = memory or {}
    magic = 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
    keys = b"](" + b"".join(map(text, kept)) + b"e"
    pickles = [
        b"\x8a\x0a" + magic,
        number(version),
        mapping(text("protocol_version"), number(version), text("little_endian"), little),
        program,
        keys,
    ]
    whole = b"".join(b"\x80\2" + each + STOP for each in pickles)
    return whole + b"".join(struct.pack("<Q", count) + data for count, data in kept.values())

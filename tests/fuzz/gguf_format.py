"""GGUF files written by hand, so that every field of them can be wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any


@dataclass
class Entry:
    """A tensor of a file; the number of a type is GGUF's. Without an offset it follows the one before it."""

    name: str | bytes
    shape: tuple[int, ...]  # as GGUF has it: the innermost axis first
    kind: int = 0
    data: bytes = b""
    offset: int | None = None


def text(value: str | bytes) -> bytes:
    encoded = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(encoded)) + encoded


CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def value(kind: int, given: Any) -> bytes:
    if isinstance(given, bytes) and kind != 8:
        return given  # as it is
    return text(given) if kind == 8 else struct.pack(f"<{CODES[kind]}", given)


def array(kind: int, items: list[Any], count: int | None = None) -> bytes:
    counted = len(items) if count is None else count
    return struct.pack("<IQ", kind, counted) + b"".join(value(kind, item) for item in items)


def gguf_file(
    entries: list[Entry],
    metadata: list[tuple[str | bytes, int, Any]] = (),
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
    alignment: int = 32,
    tensors: int | None = None,
    keys: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """A file; metadata are (key, type, value)."""
    head = magic + struct.pack("<I", version)
    head += struct.pack(
        "<QQ", len(entries) if tensors is None else tensors, len(metadata) if keys is None else keys
    )
    for key, kind, given in metadata:
        head += text(key) + struct.pack("<I", kind) + value(kind, given)
    data = b""
    for entry in entries:
        offset = len(data) if entry.offset is None else entry.offset
        head += text(entry.name) + struct.pack(f"<I{len(entry.shape)}Q", len(entry.shape), *entry.shape)
        head += struct.pack("<IQ", entry.kind, offset)
        data += entry.data + bytes(-len(entry.data) % alignment)
    return head + bytes(-len(head) % alignment) + data + tail

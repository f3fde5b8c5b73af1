"""Arrays as pictures: which are images, and PNG (W3C Recommendation, third edition) written with zlib."""

from __future__ import annotations

import zlib
from typing import Any

#: An image has at least so many rows and columns; one with more is drawn with every second, third, ... one.
LEAST, MOST = 8, 1024
#: Colour types of PNG by how many numbers a pixel has: grey, red green blue, and the last with opacity.
_COLOURS = {1: 0, 3: 2, 4: 6}


def image_shape(shape: tuple[Any, ...]) -> tuple[int, int, int] | None:
    """(rows, columns, numbers of a pixel) of (H, W), (H, W, 3 or 4), (1 or 3, H, W); None for no image."""
    if len(shape) not in (2, 3) or not all(isinstance(size, int) for size in shape):
        return None
    if len(shape) == 2:
        rows, columns, numbers = *shape, 1
    elif shape[2] in _COLOURS:
        rows, columns, numbers = shape
    elif shape[0] in (1, 3):
        numbers, rows, columns = shape
    else:
        return None
    return (rows, columns, numbers) if min(rows, columns) >= LEAST else None


def pixels(array: Any) -> Any:
    """An array of uint8, or of floats from 0 to 1, as (rows, columns, numbers) of uint8; None: no image."""
    import numpy as np

    found = image_shape(array.shape)
    if found is None:
        return None
    rows, columns, _ = found
    if array.ndim == 3 and array.shape != found:  # channels come first
        array = array.transpose(1, 2, 0)
    step = -(-max(rows, columns) // MOST)
    array = array.reshape(found)[::step, ::step]
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):  # NaN is neither
        return None
    return (array * 255 + 0.5).astype(np.uint8)


def png(image: Any) -> bytes:
    """A PNG file of (rows, columns, 1, 3 or 4) numbers of uint8."""
    rows, columns, numbers = image.shape
    head = columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes((8, _COLOURS[numbers], 0, 0, 0))
    lines = b"".join(b"\0" + image[row].tobytes() for row in range(rows))  # 0: no filter
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + kind + data + check

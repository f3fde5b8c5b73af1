"""Products of quantised weights with activations that are rounded to 8 bits, by sums of integers.

A block of weights is integers, a scale and a minimum (`block_formats.Fields`). If a block of activations is
made signed integers of 8 bits with a scale too, then what is summed over a block is a product of integers,
which is exact, and takes one instruction for four of them (`Ops.DP4A`):

    sum of w*x  =  scale_w * scale_x * (sum of i*j)  +  minimum_w * scale_x * (sum of j)

The only error is that of rounding the activations: at most 1/254 of the largest of 32 of them, each.
"""

from __future__ import annotations

import math

from ..device import Devices
from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from .block_formats import Fields
from .frozen_weights import FrozenWeights, check_indices
from .quantized import QuantizedTensor, known

#: So many activations share a scale.
BLOCK = 32
#: So many rows of weights lie beside each other, a word of four integers from each: the lanes of a vector.
ROWS = 16


class IntegerWeights(FrozenWeights):
    """A matrix of quantised weights, held as words of integers for products with rounded activations.

    weight  a QuantizedTensor (rows, columns), whose columns are whole blocks of 32

    Its memory is laid out anew: of each block of each 16 rows, the first words of all these rows, then the
    second ones. Integers of up to 4 bits stay so; larger ones take 8. Values are those of `weight`.
    """

    def __init__(self, weight: QuantizedTensor) -> None:
        if weight.ndim != 2 or weight.shape[1] % BLOCK or 0 in weight.shape:
            raise ValueError(
                f"activations are rounded in blocks of {BLOCK}, which the columns of a matrix "
                f"{shape_text(weight.shape)} are not made of"
            )
        self.shape, self.name = weight.shape, weight.format.name
        rows, columns = self.shape
        self.rows = math.gcd(rows, ROWS)
        parts = weight.format.fields(weight.planes)
        self.unit = min(known(parts.integers.shape)[-1], BLOCK)
        self.zero, self.packed = _zero(parts), parts.bits <= 4
        integers = _unsigned(parts).reshape(rows, columns // self.unit, self.unit)
        self.words = self._tiled(_words(integers, self.packed))
        exact = weight.format.elements == self.unit and all(
            plane.dtype is dtypes.float16
            for plane in weight.format.planes
            if plane.name in ("scale", "minimum")
        )
        held = dtypes.float16 if exact else dtypes.float32
        self.scale = self._tiled(self._of_units(parts.scale).cast(held))
        self.minimum = (
            None if parts.minimum is None else self._tiled(self._of_units(parts.minimum).cast(held))
        )
        Tensor.realize(*self.memory)

    def _of_units(self, numbers: Tensor) -> Tensor:
        """Numbers of parts (rows, blocks, parts) → of units (rows, units)."""
        rows, columns = self.shape
        flat = numbers.reshape(rows, -1, 1)
        return flat.expand(rows, flat.shape[1], columns // self.unit // flat.shape[1]).reshape(rows, -1)

    def _tiled(self, each: Tensor) -> Tensor:
        """(rows, ...) → (tiles, ..., rows of a tile)."""
        tiles = each.unflatten(0, (-1, self.rows))
        return tiles.permute(0, *range(2, tiles.ndim), 1).contiguous()

    # ---- what it is ----

    @property
    def memory(self) -> list[Tensor]:
        """The tensors that it is held as."""
        return [self.words, self.scale] + ([] if self.minimum is None else [self.minimum])

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(each.nbytes() for each in self.memory)

    @property
    def device(self) -> Devices:
        return self.words.device

    def __repr__(self) -> str:
        return f"<IntegerWeights {self.name} {shape_text(self.shape)} on {self.device}>"

    # ---- what it is worth ----

    def dequantize(self) -> Tensor:
        """All of it, float32 of shape (rows, columns): an expression."""
        return self.take(Tensor.arange(self.shape[0], device=self.words.device))

    def take(self, indices: Tensor) -> Tensor:
        """The rows of these indices, float32 of shape (*indices.shape, columns)."""
        check_indices(indices)
        flat = (indices < 0).where(indices + self.shape[0], indices).flatten()
        tile, row = flat // self.rows, flat % self.rows
        words, scale = (each.transpose(1, -1)[tile, row] for each in (self.words, self.scale))
        words = words.transpose(1, -1)  # (indices, units, words)
        integers = _integers(words, self.packed)
        values = scale.cast(dtypes.float32).unsqueeze(-1) * (integers - self.zero).cast(dtypes.float32)
        if self.minimum is not None:
            minimum = self.minimum.transpose(1, -1)[tile, row]
            values = values + minimum.cast(dtypes.float32).unsqueeze(-1)
        return values.reshape(*indices.shape, self.shape[1])

    def linear(self, x: Tensor) -> Tensor:
        """x @ self.T: (..., columns) → (..., rows), in the dtype of x, of x rounded to 8 bits."""
        self._check_factor(x)
        rows, columns = self.shape
        per_block = BLOCK // self.unit
        units = columns // self.unit
        words, scale = rounded(x.cast(dtypes.float32))
        words = words.reshape(-1, 1, units, self.unit // 4, 1)
        sums = words._filled(0x01010101).dp4a(words).sum(3)  # 1 for each byte
        scale = scale.reshape(-1, 1, columns // BLOCK, 1, 1).expand(-1, 1, columns // BLOCK, per_block, 1)
        scale = scale.reshape(-1, 1, units, 1)
        weights = self.words
        if self.packed:
            shifts = Tensor.arange(2, device=weights.device).cast(dtypes.int32).reshape(2, 1, 1) * 4
            weights = (weights.unsqueeze(2) >> shifts) & 0x0F0F0F0F
            words = words.unflatten(3, (2, -1))
        products = weights.dp4a(words).sum(tuple(range(3, words.ndim - 1)))
        whole = products - sums * self.zero if self.zero else products
        terms = whole.cast(dtypes.float32) * (self.scale.cast(dtypes.float32) * scale)
        if self.minimum is not None:
            terms = terms + self.minimum.cast(dtypes.float32) * (sums.cast(dtypes.float32) * scale)
        return terms.sum(2).reshape(*x.shape[:-1], rows).cast(x.dtype)


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Activations (..., columns), float32, as integers of 8 bits and their scales.

    words  (..., blocks, 8) int32, of four integers each
    scale  (..., blocks, 1) float32, the largest magnitude of a block / 127
    """
    blocks = x.unflatten(-1, (-1, BLOCK))
    scale = blocks.abs().max(-1, keepdim=True) * (1 / 127)
    integers = (blocks * (scale == 0).where(0.0, 1 / scale)).round().cast(dtypes.int8)
    return integers.bitcast(dtypes.int32), scale


def _zero(parts: Fields) -> int:
    return 128 if parts.integers.dtype is dtypes.int8 else parts.zero


def _unsigned(parts: Fields) -> Tensor:
    """The integers as bytes; what is signed is 128 more."""
    if parts.integers.dtype is dtypes.int8:
        return parts.integers.bitcast(dtypes.uint8) ^ 128
    return parts.integers.cast(dtypes.uint8)


def _words(integers: Tensor, packed: bool) -> Tensor:
    """(..., unit) bytes → (..., words) int32: four bytes each, or the first half in the low halves of bytes
    and the second in the high ones.
    """
    if packed:
        halves = integers.unflatten(-1, (2, -1))
        integers = halves[..., 0, :] | (halves[..., 1, :] << 4)
    return integers.contiguous().bitcast(dtypes.int32)


def _integers(words: Tensor, packed: bool) -> Tensor:
    """What `_words` was made of, int32."""
    shifts = Tensor.arange(4, device=words.device).cast(dtypes.int32) * 8
    each = ((words.unsqueeze(-1) >> shifts) & 255).flatten(-2)
    return (each & 15).cat(each >> 4, dim=-1) if packed else each

"""Block formats: weights as blocks of packed integers with a scale each, as GGUF files hold them.

A block is a fixed number of elements in a fixed number of bytes: one or two scales, and an integer of 2 to 8
bits for each element. Here a format is a row of a table: where in a block's bytes each *plane* lies (all
scales of a tensor are one plane, all its packed integers another), and what the elements are worth, as a
graph of ordinary operations on the planes. A kernel then reads each plane with wide loads, which a stride of
18 or 20 bytes would forbid, and the compiler sees nothing but `&`, `>>`, casts and products.

The layouts are those of ggml (its `ggml-common.h` declares the structs); MXFP4 is that of the Open Compute
Project's *Microscaling Formats* 1.0. Values are float32, to the bit those of the `gguf` package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..dtype import DType, dtypes
from ..tensor import Tensor

Planes = Mapping[str, Tensor]


@dataclass(frozen=True)
class Fields:
    """What the elements of blocks are made of: for each part of a block integers, a scale, and a minimum.

    integers  (..., parts, elements), int8, or unsigned and at most 8 bits
    scale     (..., parts), float32
    minimum   (..., parts), float32, which is added; None for none
    zero      the integer that stands for 0; of an int8 it is 0
    bits      how many an unsigned integer has at most
    """

    integers: Tensor
    scale: Tensor
    minimum: Tensor | None = None
    zero: int = 0
    bits: int = 8

    def values(self) -> Tensor:
        """The elements, float32 of shape (..., parts, elements)."""
        integers = self.integers if self.zero == 0 else self.integers.cast(dtypes.int8) - self.zero
        values = self.scale.unsqueeze(-1) * _float(integers)
        return values if self.minimum is None else values + self.minimum.unsqueeze(-1)


@dataclass(frozen=True)
class Plane:
    """Some bytes of every block: `begin` to `end` of them, `count` numbers of a dtype."""

    name: str
    begin: int
    count: int
    dtype: DType = dtypes.uint8

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.begin + self.nbytes


@dataclass(frozen=True)
class BlockFormat:
    """One row of the table.

    name      as ggml calls it: "Q4_1"
    number    which stands for it in a GGUF file
    elements  in a block
    planes    what a block's bytes are, in their order
    fields    what the elements are made of, of shape (..., blocks, parts of a block, elements of a part),
              from planes of shape (..., blocks) where a block has one number there, else
              (..., blocks, count)
    """

    name: str
    number: int
    elements: int
    planes: tuple[Plane, ...]
    fields: Callable[[Planes], Fields]

    def __reduce__(self) -> tuple[Callable[[str], BlockFormat], tuple[str]]:
        """Copies and pickles are the row of the table itself."""
        return format_named, (self.name,)

    @property
    def nbytes(self) -> int:
        """Bytes of a block."""
        return self.planes[-1].end

    def memory_dtype(self, plane: Plane) -> DType:
        """The dtype of a plane in memory. Scales of blocks of 32 are float32 there: a product that converts
        one in each step takes 34 us for 1,536 x 576 numbers of Q4_1, and 24 with four bytes more a block.
        """
        return dtypes.float32 if plane.dtype is dtypes.float16 and self.elements == 32 else plane.dtype

    def split(self, blocks: Tensor) -> dict[str, Tensor]:
        """The planes of blocks (uint8, of shape (..., blocks, bytes)), as views of them where that can be."""
        if blocks.dtype is not dtypes.uint8 or not blocks.shape or blocks.shape[-1] != self.nbytes:
            raise ValueError(
                f"blocks of {self.name} are uint8 of shape (..., {self.nbytes}), not {blocks.dtype} of shape "
                f"{tuple(blocks.shape)}"
            )
        found = {}
        for plane in self.planes:
            part = blocks[..., plane.begin : plane.end].bitcast(plane.dtype)
            found[plane.name] = part.squeeze(-1) if plane.count == 1 else part
        return found

    def dequantize(self, blocks: Tensor) -> Tensor:
        """The elements of blocks: uint8 (..., blocks, bytes) → float32 (..., blocks * elements)."""
        return self.elements_of(self.split(blocks))

    def elements_of(self, planes: Planes) -> Tensor:
        """The elements of planes, float32 of shape (..., blocks * elements)."""
        return self.fields(planes).values().flatten(-3)


# ---- integers out of bytes ----


def _nibbles(packed: Tensor) -> Tensor:
    """(..., n) bytes → (..., 2, n): their low halves, then their high ones."""
    return (packed & 15).stack(packed >> 4, dim=-2)


def _fields(packed: Tensor, bits: int, count: int) -> Tensor:
    """(..., n) integers → (..., count, n): first the lowest `bits` of each, then the next ones."""
    shifts = (Tensor.arange(count, device=packed.device) * bits).cast(packed.dtype).reshape(count, 1)
    return (packed.unsqueeze(-2) >> shifts) & ((1 << bits) - 1)


def _float(integers: Tensor) -> Tensor:
    return integers.cast(dtypes.float32)


def _signed(integers: Tensor, zero: int) -> Tensor:
    """Unsigned integers of at most 7 bits, less the one that stands for zero."""
    return _float(integers.cast(dtypes.int8) - zero)


def _each(scale: Tensor) -> Tensor:
    """A scale per block, for each part of it."""
    return _float(scale).unsqueeze(-1)


def _looked_up(table: Sequence[int], integers: Tensor) -> Tensor:
    """Integers of 4 bits → what 16 signed bytes have there. The bytes are two words, so no memory is read."""
    low, high = (
        int.from_bytes(bytes(value & 255 for value in half), "little") for half in (table[:8], table[8:])
    )
    words = (integers < 8).where(
        *(Tensor(word, dtype=dtypes.uint64, device=integers.device) for word in (low, high))
    )
    shifts = (integers & 7).cast(dtypes.uint64) * 8
    return (words >> shifts).cast(dtypes.uint8).bitcast(dtypes.int8)


# ---- formats of 32 elements ----


def _fifth_bits(high: Tensor) -> Tensor:
    """(...) words → (..., 32): a bit for each element, where it stands above the four of a nibble."""
    return _fields(high.unsqueeze(-1), 1, 32).squeeze(-1).cast(dtypes.uint8) << 4


def _five_bits(planes: Planes) -> Tensor:
    return _nibbles(planes["packed"]).flatten(-2) | _fifth_bits(planes["high"])


def _whole(
    planes: Planes, integers: Tensor, zero: int = 0, bits: int = 8, scale: Tensor | None = None
) -> Fields:
    """Blocks of one part: integers (..., 32) with the scale, and the minimum, of their block."""
    minimum = planes.get("minimum")
    return Fields(
        integers.unsqueeze(-2),
        _each(planes["scale"] if scale is None else scale),
        None if minimum is None else _each(minimum),
        zero,
        bits,
    )


def _four_bits(planes: Planes) -> Tensor:
    return _nibbles(planes["packed"]).flatten(-2)


#: The 16 numbers of IQ4_NL: nearer to each other where weights are frequent.
_IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


#: The floats of 4 bits (E2M1): sign, two bits of exponent, one of mantissa; twice their value, so that they
#: are integers.
_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def _mxfp4(planes: Planes) -> Fields:
    """The scale is a power of two, 2**(byte - 127); half of it, as the table has twice the values."""
    byte = planes["scale"].cast(dtypes.uint32)
    subnormal = (byte + 1) * 0x00200000  # 2**-128 and 2**-127, of 0 and 1
    half = (byte < 2).where(subnormal, (byte.maximum(1) - 1) << 23).bitcast(dtypes.float32)
    return _whole(planes, _looked_up(_E2M1, _four_bits(planes)), scale=half)


# ---- formats of 256 elements, whose parts of 16 or 32 have scales of 4 to 8 bits ----


def _q2_k(planes: Planes) -> Fields:
    scales = planes["scales"]  # of 16 parts: low half the scale's integer, high half the minimum's
    packed = _fields(planes["packed"].unflatten(-1, (2, 32)), 2, 4)  # (..., 2, 4, 32)
    return Fields(
        packed.flatten(-3).unflatten(-1, (16, 16)),
        _each(planes["scale"]) * _float(scales & 15),
        -(_each(planes["minimum"]) * _float(scales >> 4)),
        bits=2,
    )


def _q3_k(planes: Planes) -> Fields:
    low = _nibbles(planes["scales"][..., :8]).flatten(-2)
    high = _fields(planes["scales"][..., 8:], 2, 4).flatten(-2)
    packed = _fields(planes["packed"].unflatten(-1, (2, 32)), 2, 4).flatten(-3)
    # A third bit that is set is worth 4, and what is stored is 4 too much.
    third = _fields(planes["high"], 1, 8).flatten(-2)
    integers = (packed | (third << 2)).unflatten(-1, (16, 16))
    return Fields(integers, _each(planes["scale"]) * _signed(low | (high << 4), 32), zero=4, bits=3)


def _scales_and_minima(packed: Tensor) -> tuple[Tensor, Tensor]:
    """12 bytes → 8 scales and 8 minima of 6 bits each: four of both as they are, whose two upper bits belong
    to the other four, and the lower halves of these."""
    scale, minimum, halves = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    return (
        (scale & 63).cat((halves & 15) | ((scale >> 2) & 48), dim=-1),
        (minimum & 63).cat((halves >> 4) | ((minimum >> 2) & 48), dim=-1),
    )


def _of_eight(planes: Planes, integers: Tensor, bits: int) -> Fields:
    """Q4_K and Q5_K: unsigned integers (..., 8, 32) times the scales of their parts, less the minima."""
    scales, minima = _scales_and_minima(planes["scales"])
    return Fields(
        integers,
        _each(planes["scale"]) * _float(scales),
        -(_each(planes["minimum"]) * _float(minima)),
        bits=bits,
    )


def _q4_k(planes: Planes) -> Fields:
    return _of_eight(planes, _nibbles(planes["packed"].unflatten(-1, (4, 32))).flatten(-3, -2), 4)


def _q5_k(planes: Planes) -> Fields:
    low = _nibbles(planes["packed"].unflatten(-1, (4, 32))).flatten(-3, -2)
    return _of_eight(planes, low | (_fields(planes["high"], 1, 8) << 4), 5)


def _q6_k(planes: Planes) -> Fields:
    low = _nibbles(planes["packed"].unflatten(-1, (2, 64))).flatten(-3)
    high = _fields(planes["high"].unflatten(-1, (2, 32)), 2, 4).flatten(-3)
    integers = (low | (high << 4)).unflatten(-1, (16, 16))
    return Fields(integers, _each(planes["scale"]) * _float(planes["scales"]), zero=32, bits=6)


def _iq4_xs(planes: Planes) -> Fields:
    """8 parts of 32; the scale's integer has four bits in a nibble and two in a word that all parts share."""
    low = _nibbles(planes["scales"]).transpose(-1, -2).flatten(-2)
    high = _fields(planes["high"].unsqueeze(-1), 2, 8).squeeze(-1).cast(dtypes.uint8)
    packed = _nibbles(planes["packed"].unflatten(-1, (8, 16))).flatten(-2)
    scale = _each(planes["scale"]) * _signed(low | (high << 4), 32)
    return Fields(_looked_up(_IQ4_NL, packed), scale)


def _digits(packed: Tensor, count: int) -> Tensor:
    """(..., n) bytes → (..., count * n): 256ths, of which these are the first digits to base 3."""
    # Times 3**place modulo 256: the digits before it are dropped, and it comes first behind the point.
    shifted = [packed * 3**place for place in range(count)]
    digits: Tensor = (shifted[0].stack(*shifted[1:], dim=-2).cast(dtypes.uint16) * 3) >> 8
    return digits.flatten(-2)


def _tq1_0(planes: Planes) -> Fields:
    parts = _digits(planes["packed"][..., :32], 5), _digits(planes["packed"][..., 32:], 5)
    integers = parts[0].cat(parts[1], _digits(planes["high"], 4), dim=-1)
    return _whole(planes, integers, 1, 2)


def _tq2_0(planes: Planes) -> Fields:
    packed = _fields(planes["packed"].unflatten(-1, (2, 32)), 2, 4)
    return _whole(planes, packed.flatten(-3), 1, 2)


# ---- the table ----


def _laid_out(*parts: tuple[str, int, DType]) -> tuple[Plane, ...]:
    """Planes one after the other: (name, how many numbers, dtype)."""
    planes: list[Plane] = []
    for name, count, dtype in parts:
        planes.append(Plane(name, planes[-1].end if planes else 0, count, dtype))
    return tuple(planes)


_SCALE = ("scale", 1, dtypes.float16)
_MINIMUM = ("minimum", 1, dtypes.float16)
_HIGH_WORD = ("high", 1, dtypes.uint32)


def _bytes(name: str, count: int) -> tuple[str, int, DType]:
    return name, count, dtypes.uint8


def _packed(count: int) -> tuple[str, int, DType]:
    return _bytes("packed", count)


FORMATS: dict[str, BlockFormat] = {
    row.name: row
    for row in (
        BlockFormat("Q4_0", 2, 32, _laid_out(_SCALE, _packed(16)), lambda p: _whole(p, _four_bits(p), 8, 4)),
        BlockFormat(
            "Q4_1", 3, 32, _laid_out(_SCALE, _MINIMUM, _packed(16)), lambda p: _whole(p, _four_bits(p), 0, 4)
        ),
        BlockFormat(
            "Q5_0",
            6,
            32,
            _laid_out(_SCALE, _HIGH_WORD, _packed(16)),
            lambda p: _whole(p, _five_bits(p), 16, 5),
        ),
        BlockFormat(
            "Q5_1",
            7,
            32,
            _laid_out(_SCALE, _MINIMUM, _HIGH_WORD, _packed(16)),
            lambda p: _whole(p, _five_bits(p), 0, 5),
        ),
        BlockFormat(
            "Q8_0", 8, 32, _laid_out(_SCALE, ("packed", 32, dtypes.int8)), lambda p: _whole(p, p["packed"])
        ),
        BlockFormat("Q2_K", 10, 256, _laid_out(_bytes("scales", 16), _packed(64), _SCALE, _MINIMUM), _q2_k),
        BlockFormat(
            "Q3_K", 11, 256, _laid_out(_bytes("high", 32), _packed(64), _bytes("scales", 12), _SCALE), _q3_k
        ),
        BlockFormat("Q4_K", 12, 256, _laid_out(_SCALE, _MINIMUM, _bytes("scales", 12), _packed(128)), _q4_k),
        BlockFormat(
            "Q5_K",
            13,
            256,
            _laid_out(_SCALE, _MINIMUM, _bytes("scales", 12), _bytes("high", 32), _packed(128)),
            _q5_k,
        ),
        BlockFormat(
            "Q6_K",
            14,
            256,
            _laid_out(_packed(128), _bytes("high", 64), ("scales", 16, dtypes.int8), _SCALE),
            _q6_k,
        ),
        BlockFormat(
            "IQ4_NL",
            20,
            32,
            _laid_out(_SCALE, _packed(16)),
            lambda p: _whole(p, _looked_up(_IQ4_NL, _four_bits(p))),
        ),
        BlockFormat(
            "IQ4_XS",
            23,
            256,
            _laid_out(_SCALE, ("high", 1, dtypes.uint16), _bytes("scales", 4), _packed(128)),
            _iq4_xs,
        ),
        BlockFormat("TQ1_0", 34, 256, _laid_out(_packed(48), _bytes("high", 4), _SCALE), _tq1_0),
        BlockFormat("TQ2_0", 35, 256, _laid_out(_packed(64), _SCALE), _tq2_0),
        BlockFormat("MXFP4", 39, 32, _laid_out(_bytes("scale", 1), _packed(16)), _mxfp4),
    )
}


def format_named(name: str) -> BlockFormat:
    """The row of a name, in whatever case."""
    if not isinstance(name, str) or name.upper() not in FORMATS:
        raise ValueError(f"there is no block format {name!r}, only {', '.join(FORMATS)}")
    return FORMATS[name.upper()]

"""Every block format gives what the gguf package gives, to the bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.nn.block_formats import FORMATS, format_named
from tests.helpers import needs, require


def same_bits(found, expected):
    """Equal to the bit; of a NaN only that it is one."""
    both_nan = np.isnan(found) & np.isnan(expected)
    return bool(((found.view(np.uint32) == expected.view(np.uint32)) | both_nan).all())


def expected_values(blocks, name):
    gguf = require("gguf")
    from gguf.quants import dequantize

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # inf * 0
        rows = blocks.reshape(-1, blocks.shape[-2] * blocks.shape[-1])
        return dequantize(rows, getattr(gguf.GGMLQuantizationType, name)).reshape(*blocks.shape[:-2], -1)


#: Halves that are not ordinary numbers: 0, -0, the least, the largest, ±inf, NaNs.
ODD = np.array([0, 0x8000, 1, 0x8001, 0x03FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFFFF], dtype="<u2")


def random_blocks(name, shape, seed):
    """Random bytes; every third block has scales that are not ordinary numbers."""
    row, rng = FORMATS[name], np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (*shape, row.nbytes), dtype=np.uint8)
    for plane in row.planes:
        if plane.dtype.itemsize == 2:
            odd = rng.choice(ODD, (*shape, 1)).view(np.uint8)
            third = (rng.integers(0, 3, shape) == 0)[..., None]
            blocks[..., plane.begin : plane.end] = np.where(third, odd, blocks[..., plane.begin : plane.end])
    return blocks


@needs("gguf")
@pytest.mark.parametrize("name", FORMATS)
def test_values_are_those_of_gguf_to_the_bit(name):
    for seed, shape in enumerate([(64, 5), (3, 2, 4)]):
        blocks = random_blocks(name, shape, seed)
        found = FORMATS[name].dequantize(Tensor(blocks))
        assert found.shape == (*shape[:-1], shape[-1] * FORMATS[name].elements)
        assert same_bits(found.numpy(), expected_values(blocks, name))


@needs("gguf")
@pytest.mark.parametrize("name", FORMATS)
def test_every_byte_of_every_integer(name):
    """All 256 bytes at every place of a block, beside a scale of 1: no value is missed by chance."""
    row = FORMATS[name]
    blocks = np.zeros((256, 1, row.nbytes), np.uint8) + np.arange(256, dtype=np.uint8)[:, None, None]
    for plane in row.planes:
        if plane.dtype.itemsize == 2:
            blocks[..., plane.begin : plane.end] = np.array([1], "<f2").view(np.uint8)
    found = row.dequantize(Tensor(blocks)).numpy()
    assert same_bits(found, expected_values(blocks, name))


@needs("gguf")
def test_the_table_is_that_of_gguf():
    gguf = require("gguf")
    for name, row in FORMATS.items():
        kind = getattr(gguf.GGMLQuantizationType, name)
        assert (row.number, row.elements, row.nbytes) == (int(kind), *gguf.GGML_QUANT_SIZES[kind])


def test_planes_fill_a_block():
    for row in FORMATS.values():
        begins = [plane.begin for plane in row.planes]
        assert begins == [0, *(plane.end for plane in row.planes[:-1])]


def test_one_block_by_hand():
    scale, minimum = np.array([0.5, -1.0], "<f2").view(np.uint8).reshape(2, 2)
    packed = np.arange(16, dtype=np.uint8) | 0xF0  # low halves 0 to 15, high ones 15
    block = np.concatenate([scale, minimum, packed])[None]
    found = FORMATS["Q4_1"].dequantize(Tensor(block)).tolist()
    assert found == [place / 2 - 1 for place in range(16)] + [6.5] * 16


def test_what_are_no_blocks():
    with pytest.raises(
        ValueError, match=r"blocks of Q4_0 are uint8 of shape \(\.\.\., 18\), not .* \(2, 17\)"
    ):
        FORMATS["Q4_0"].dequantize(Tensor(np.zeros((2, 17), np.uint8)))
    with pytest.raises(ValueError, match=r"no block format 'Q4', only Q4_0, Q4_1"):
        format_named("Q4")
    assert format_named("q8_0") is FORMATS["Q8_0"]

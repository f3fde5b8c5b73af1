"""Folders and GGUF files: the same model from both, and what is said of damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, models
from lazygrad.models.architectures import ARCHITECTURES, describe
from lazygrad.models.description import Description
from lazygrad.models.gguf_config import INTERLEAVED, MODEL_TYPES, NAMES, config_of
from lazygrad.models.gguf_files import _with_factors
from lazygrad.nn.formats import read_gguf
from lazygrad.nn.quantized import QuantizedTensor
from lazygrad.nn.state import safe_load, safe_save
from tests.helpers import needs, require
from tests.models import tiny_decoder as tiny
from tests.models.test_architectures import made

TOKENS = Tensor([[5, 9, 3, 33, 17, 60, 9]])


def logits(path: Path, **options: Any) -> np.ndarray:
    return models.load(path, **options).forward(TOKENS).numpy()


@pytest.fixture
def folder(tmp_path):
    return tiny.folder(tmp_path / "model")


# ---- folders ----


def test_weights_in_several_files(folder):
    expected = logits(folder)
    state = {
        name: tensor.clone().realize() for name, tensor in safe_load(folder / "model.safetensors").items()
    }
    (folder / "model.safetensors").unlink()
    names = sorted(state)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        safe_save({name: state[name] for name in some}, str(folder / file))
    places = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert np.array_equal(logits(folder), expected)


@pytest.mark.parametrize(
    "rename",
    [lambda name: name.removeprefix("model."), lambda name: "language_model." + name],
    ids=["without the model's name", "as part of a larger model"],
)
def test_names_with_more_or_less_in_front(folder, rename):
    expected = logits(folder)
    state = {
        name: tensor.clone().realize() for name, tensor in safe_load(folder / "model.safetensors").items()
    }
    state = {name if name.startswith("lm_head") else rename(name): tensor for name, tensor in state.items()}
    safe_save(state, str(folder / "model.safetensors"))
    assert np.array_equal(logits(folder), expected)


def test_the_part_of_a_config_that_describes_the_language_model(folder):
    expected = logits(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "sees_too", "text_config": tiny.CONFIG}))
    assert np.array_equal(logits(folder), expected)


@needs("tokenizers", "jinja2")
def test_the_vocabulary_of_a_folder(tmp_path):
    folder = tiny.folder(tmp_path / "model", tokenizer=True)
    said = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>"},
        "chat_template": "{{ bos_token }}{{ messages[0].role }}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    tokenizer = models.load(folder).tokenizer
    assert tokenizer.decode(tokenizer.encode("the a")) == "the a"
    assert (tokenizer.eos_ids, tokenizer.bos_id) == ({2, 7}, 1)
    assert tokenizer.chat([{"role": "user"}]) == "<s>user"
    (folder / "chat_template.jinja").write_text("from a file")
    assert models.load(folder).tokenizer.chat([]) == "from a file"


def test_without_a_vocabulary_there_are_tokens(folder):
    model = models.load(folder)
    assert model.tokenizer is None
    assert list(model.generate([5, 9, 3], max_tokens=2)) == []
    with pytest.raises(ValueError, match="this model has no tokenizer"):
        model.generate("the")


def write(path: Path, text: str) -> None:
    path.write_text(text)


def drop(folder: Path, name: str) -> None:
    state = {key: tensor.clone().realize() for key, tensor in safe_load(folder / "model.safetensors").items()}
    del state[name]
    safe_save(state, str(folder / "model.safetensors"))


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (
            lambda f: (f / "config.json").unlink(),
            FileNotFoundError,
            "has no config.json: is it the folder of a model",
        ),
        (lambda f: write(f / "config.json", "{"), ValueError, "config.json is not JSON"),
        (lambda f: write(f / "config.json", "[1]"), ValueError, "holds a list, not a JSON object"),
        (lambda f: write(f / "config.json", "[" * 100_000), ValueError, "config.json is not JSON"),
        (
            lambda f: (f / "model.safetensors").unlink(),
            FileNotFoundError,
            "has no model.safetensors nor an index",
        ),
        (lambda f: write(f / "model.safetensors", "xx"), ValueError, "is not a safetensors file"),
        (lambda f: drop(f, "lm_head.weight"), None, ""),  # then the embedding is the head
        (lambda f: drop(f, "model.norm.weight"), ValueError, "lack the weight 'model.norm.weight'"),
        (
            lambda f: write(f / "config.json", json.dumps(tiny.CONFIG | {"hidden_size": 32})),
            ValueError,
            r"weight 'model.embed_tokens.weight' has shape \(64, 16\), the config says \(any, 32\)",
        ),
        (
            lambda f: write(
                f / "model.safetensors.index.json", '{"weight_map": {"a": "../../other.safetensors"}}'
            ),
            ValueError,
            "names the file .*, which is not in its folder",
        ),
        (lambda f: write(f / "model.safetensors.index.json", "{}"), ValueError, "has no weight_map"),
        pytest.param(
            lambda f: write(f / "tokenizer.json", "{}"),
            ValueError,
            "tokenizer.json is not a tokenizer",
            marks=needs("tokenizers"),
        ),
    ],
    ids=range(12),
)
def test_damaged_folders(folder, damage, error, message):
    damage(folder)
    if error is None:
        assert models.load(folder).config.layers == 2
        return
    with pytest.raises(error, match=message):
        models.load(folder)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere"):
        models.load(tmp_path / "nowhere")


# ---- GGUF ----

#: Names of a Llama's weights → GGUF's.
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    parts = name.removesuffix(".weight")
    if parts.startswith("model.layers."):
        _, _, layer, part = parts.split(".", 3)
        return f"blk.{layer}.{GGUF_NAMES[part]}.weight"
    return f"{GGUF_NAMES[parts]}.weight"


def neighbours(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows as GGUF has them for Llama: pairs that turn together are neighbours, and not half a head apart."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, architecture: str = "llama", blocks: bool = False, **more: Any) -> Path:
    gguf = require("gguf")
    config = tiny.CONFIG | ({"hidden_size": 64, "intermediate_size": 96} if blocks else {})
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("a small one")
    writer.add_block_count(2)
    writer.add_context_length(300)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(config["hidden_size"] // 4)
    for name, value in more.items():
        getattr(writer, f"add_{name}")(value)
    for name, value in tiny.weights(config).items():
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            value = neighbours(value, 4 if "q_proj" in name else 2)
        if blocks and value.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_name(name), gguf.quantize(value, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(name), value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@needs("gguf")
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_gguf_file_is_the_same_model(folder, tmp_path, architecture):
    model = models.load(write_gguf(tmp_path / "model.gguf", architecture))
    assert (model.name, model.tokenizer) == ("a small one", None)
    assert np.abs(model.forward(TOKENS).numpy() - logits(folder)).max() < 1e-4


@needs("gguf")
def test_weights_in_blocks_stay_in_blocks(tmp_path):
    config = {"hidden_size": 64, "intermediate_size": 96}
    plain = tiny.folder(tmp_path / "plain", **config)
    model = models.load(write_gguf(tmp_path / "model.gguf", blocks=True))
    block = model.decoder.blocks[0]
    weights = [model.decoder.embedding, block.attention.out.weight, block.feed_forward.down.weight]
    assert all(isinstance(weight, QuantizedTensor) for weight in weights)
    expected, got = logits(plain), model.forward(TOKENS).numpy()
    assert 1e-4 < np.abs(got - expected).max() < 0.05 * np.abs(expected).max()  # eight bits


@needs("gguf")
def test_factors_of_a_gguf_file_divide_the_rates(tmp_path):
    weights = read_gguf(write_gguf(tmp_path / "model.gguf"))
    config = config_of(weights.metadata, {name: tensor.shape for name, tensor in weights.items()})
    assert (config["model_type"], config["rope_interleaved"], config["vocab_size"]) == ("llama", True, 64)
    scaled = _with_factors(describe(config), {"rope_freqs.weight": Tensor([1.0, 8.0])})
    plain, divided = describe(config).rotaries[0].rates(1), scaled.rotaries[0].rates(1)
    assert np.allclose(plain / divided, [1, 8])


@pytest.mark.parametrize(
    ("metadata", "shapes", "error", "message"),
    [
        ({}, {}, NotImplementedError, "GGUF files of architecture None are not supported, only llama"),
        ({"general.architecture": "mamba"}, {}, NotImplementedError, "architecture 'mamba'"),
        ({"general.architecture": "llama"}, {}, ValueError, "has no matrix token_embd.weight"),
        (
            {"general.architecture": "llama", "llama.attention.head_count": [4, 2]},
            {},
            NotImplementedError,
            "layers with different num_attention_heads",
        ),
    ],
    ids=range(4),
)
def test_metadata_that_is_refused(metadata, shapes, error, message):
    with pytest.raises(error, match=message):
        config_of(metadata, shapes)


@needs("smollm2", "tokenizers")
def test_smollm2_says_what_pytorch_says():
    """The greedy words of PyTorch on the dequantised weights."""
    model = models.load(require("smollm2"))
    assert repr(model).startswith("<LanguageModel Smollm2 135M 8k")
    words = "".join(model.generate("The capital of France is", max_tokens=24))
    assert words == " Paris.\n\nThe answer is: 2018-01-22 12:1"


@pytest.mark.slow
@needs("smollm2", "tokenizers")
def test_smollm2_with_rounded_activations_says_much_the_same():
    """Of logits whose spread is 1, an error of 0.07; the likeliest token is the same nearly everywhere."""
    path = require("smollm2")
    exact, near = models.load(path), models.load(path, activations="int8")
    assert near.decoder.embedding is near.decoder.head.weight  # one memory for both
    tokens = Tensor([exact.tokenizer.encode("A kernel is a function that runs on many numbers at once.")])
    a, b = (model.forward(tokens).numpy()[0] for model in (exact, near))
    assert 0.001 < np.sqrt(np.mean((a - b) ** 2)) / a.std() < 0.15
    assert np.mean(a.argmax(-1) == b.argmax(-1)) > 0.8
    assert next(near.generate("The capital of France is", max_tokens=1)) == " Paris"


def test_activations_of_plain_weights_are_not_rounded(folder):
    with pytest.raises(ValueError, match="this model has plain numbers"):
        models.load(folder, activations="int8")
    with pytest.raises(ValueError, match="activations must be float32 or int8, not 'int4'"):
        models.load(folder, activations="int4")


@needs("gguf")
def test_names_are_those_of_the_gguf_package():
    """Every tensor that the package lists for an architecture has a name of ours."""
    gguf = require("gguf")
    ours = {name.replace("{}", "{xid}") for name in NAMES.values()}
    numbers = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    # factors of rates are read apart; rotary tables of old files are computed
    apart = {"rope_freqs", "rope_factors_long", "rope_factors_short", "blk.{bid}.attn_rot_embd"}
    for architecture in MODEL_TYPES:
        for tensor in gguf.MODEL_TENSORS[numbers[architecture]]:
            name = gguf.TENSOR_NAMES[tensor]
            assert name in apart or name.replace("blk.{bid}.", "") in ours, (architecture, name)


@pytest.mark.slow
@needs("gguf", "torch", "transformers")
@pytest.mark.parametrize("case", ["gemma", "gpt2", "mixtral", "phi", "phi3", "qwen2_moe", "smollm3"])
def test_each_kind_of_gguf_file_is_the_model_of_its_folder(case, tmp_path):
    """Written as converters write them: Llama's pairs are neighbours, 1 is added to Gemma's norms, experts
    are one tensor, GPT-2's projections the other way round.
    """
    made(case, tmp_path)
    expected = models.load(tmp_path)
    path = converted(tmp_path, expected.config)
    assert np.abs(models.load(path).forward(TOKENS).numpy() - expected.forward(TOKENS).numpy()).max() < 1e-4


def converted(folder: Path, d: Description) -> Path:
    """A GGUF file of a folder's weights and config, without a vocabulary."""
    gguf = require("gguf")
    said = json.loads((folder / "config.json").read_text())
    row = ARCHITECTURES[said["model_type"]]
    kinds = {"mixtral": "llama"} | {theirs: name for name, theirs in MODEL_TYPES.items()}
    architecture = kinds[said["model_type"]]
    state = {name: tensor.numpy() for name, tensor in safe_load(folder / "model.safetensors").items()}
    writer = gguf.GGUFWriter(folder / "model.gguf", architecture)
    writer.add_block_count(d.layers)
    writer.add_context_length(d.context)
    writer.add_embedding_length(d.width)
    writer.add_head_count(d.heads)
    writer.add_head_count_kv(d.kv_heads)
    writer.add_key_length(d.head_dim)
    (writer.add_layer_norm_eps if d.norm == "layer" else writer.add_layer_norm_rms_eps)(d.eps)
    if d.rotaries:
        writer.add_rope_freq_base(d.rotaries[0].base)
        writer.add_rope_dimension_count(d.rotaries[0].dim)
    if d.windows[0]:
        writer.add_sliding_window(d.windows[0])
    if d.score_cap and d.logit_cap:
        writer.add_attn_logit_softcapping(d.score_cap)
        writer.add_final_logit_softcapping(d.logit_cap)
    if d.experts:
        writer.add_expert_count(d.experts.count)
        writer.add_expert_used_count(d.experts.token)
    names = {theirs: ours for ours, theirs in row.names.items() if not ours.startswith("expert")}
    for part, weights in _by_part(state, row.names["layer"]).items():
        front, name, kind = part
        if name not in names:
            continue
        ours = names[name]
        value = weights.T if row.transposed and weights.ndim == 2 and front else weights
        if "norm" in ours or "after" in ours:
            value = value + d.norm_shift
        if architecture in INTERLEAVED and ours in ("q", "k"):
            value = neighbours(value, d.heads if ours == "q" else d.kv_heads)
        value = value[0] if ours == "shared_router" else value
        writer.add_tensor(f"{front}{NAMES[ours]}.{kind}", np.ascontiguousarray(value, np.float32))
    for layer in range(d.layers if d.experts else 0):
        for part in ("gate", "up", "down") if d.sparse[layer] else ():
            theirs = row.names["layer"].format(layer) + row.names[f"expert_{part}"] + ".weight"
            stack = np.stack([state[theirs.format(number)] for number in range(d.experts.count)])
            writer.add_tensor(f"blk.{layer}.{NAMES[f'expert_{part}s']}.weight", stack)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder / "model.gguf"


def _by_part(state: dict[str, np.ndarray], layer: str) -> dict[tuple[str, str, str], np.ndarray]:
    """(GGUF's name of the layer or "", the part's name, "weight" or "bias") → the array."""
    found = {}
    for name, value in state.items():
        bare, _, kind = name.rpartition(".")
        front = ""
        if bare.startswith(layer.split("{}")[0]):
            number = bare.removeprefix(layer.split("{}")[0]).split(".")[0]
            front, bare = f"blk.{number}.", bare.removeprefix(layer.format(number))
        found[front, bare, kind] = value
    return found

"""Folders of models as people have them, with random weights and a few words."""

from __future__ import annotations

import json
import struct

import numpy as np

from lazygrad import Tensor
from lazygrad.nn.state import safe_save
from tests.helpers import require

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "dogs",
    "run",
    "fast",
    ".",
]

BERT = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "hidden_act": "gelu",
    "vocab_size": len(WORDS),
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}


def numbers(seed, *shape, scale=0.3):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def bert_state(config=BERT):
    """The arrays of a BERT of this configuration, by the names of Hugging Face."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], width),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes |= {f"{layer}{name}.weight": (width, width), f"{layer}{name}.bias": (width,)}
        for name, sizes in (
            ("attention.output.dense", (width, width)),
            ("intermediate.dense", (inner, width)),
            ("output.dense", (width, inner)),
        ):
            shapes |= {f"{layer}{name}.weight": sizes, f"{layer}{name}.bias": sizes[:1]}
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    found = {name: numbers(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    for seed, name in enumerate(norms):
        found |= {f"{name}.weight": 1 + numbers(seed, width), f"{name}.bias": numbers(seed + 100, width)}
    return found


def tensors(arrays):
    return {name: Tensor(array) for name, array in arrays.items()}


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def word_tokenizer():
    """A tokenizer of `WORDS`, which stands [CLS] and [SEP] around a text."""
    tokenizers = require("tokenizers")
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    found.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return found


def bert_folder(folder, pooling=("mean",), normalize=True):
    """A folder as sentence-transformers writes it."""
    write_json(folder / "config.json", BERT)
    safe_save(tensors(bert_state()), folder / "model.safetensors")
    tokenizer = word_tokenizer()
    tokenizer.enable_padding(length=12)  # as the file of all-MiniLM-L6-v2 asks for: no matter
    tokenizer.save(str(folder / "tokenizer.json"))
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")] + [("Normalize", "2_Normalize")] * normalize
    write_json(
        folder / "modules.json",
        [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds],
    )
    modes = {
        "cls": "cls_token",
        "max": "max_tokens",
        "mean": "mean_tokens",
        "mean_sqrt_len": "mean_sqrt_len_tokens",
    }
    write_json(
        folder / "1_Pooling" / "config.json",
        {f"pooling_mode_{mode}": name in pooling for name, mode in modes.items()},
    )
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 10})
    return folder


# ---- Whisper ----

LETTERS = list("abcdefghij")
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>"]
SPECIAL += ["<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
TIMES = 51

WHISPER = {
    "model_type": "whisper",
    "num_mel_bins": 8,
    "d_model": 12,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "vocab_size": len(LETTERS) + len(SPECIAL) + TIMES,
    "max_source_positions": 50,
    "max_target_positions": 24,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "activation_function": "gelu",
}


def whisper_state(config=WHISPER):
    """The arrays of a Whisper of this configuration, by the names of Hugging Face."""
    width, inner = config["d_model"], config["encoder_ffn_dim"]
    shapes, norms = {}, []
    for part in ("encoder", "decoder"):
        top = f"model.{part}."
        norms.append(f"{top}layer_norm")
        for i in range(config[f"{part}_layers"]):
            layer = f"{top}layers.{i}."
            for attention in ("self_attn", "encoder_attn")[: 1 + (part == "decoder")]:
                norms.append(f"{layer}{attention}_layer_norm")
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes[f"{layer}{attention}.{name}.weight"] = (width, width)
                    if name != "k_proj":
                        shapes[f"{layer}{attention}.{name}.bias"] = (width,)
            norms.append(f"{layer}final_layer_norm")
            for name, sizes in (("fc1", (inner, width)), ("fc2", (width, inner))):
                shapes |= {f"{layer}{name}.weight": sizes, f"{layer}{name}.bias": sizes[:1]}
    for name, channels in (("conv1", config["num_mel_bins"]), ("conv2", width)):
        shapes |= {
            f"model.encoder.{name}.weight": (width, channels, 3),
            f"model.encoder.{name}.bias": (width,),
        }
    shapes["model.encoder.embed_positions.weight"] = (config["max_source_positions"], width)
    shapes["model.decoder.embed_positions.weight"] = (config["max_target_positions"], width)
    shapes["model.decoder.embed_tokens.weight"] = (config["vocab_size"], width)
    found = {name: numbers(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    for seed, name in enumerate(norms):
        found |= {f"{name}.weight": 1 + numbers(seed, width), f"{name}.bias": numbers(seed + 100, width)}
    # the end is never the likeliest: a text is as long as it may be
    found["model.decoder.embed_tokens.weight"][len(LETTERS) : len(LETTERS) + len(SPECIAL)] = 0
    return found


def whisper_tokenizer():
    """Letters, and what Whisper's tokens mean beside them."""
    tokenizers = require("tokenizers")
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)}
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="a"))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    found.decoder = tokenizers.decoders.Fuse()
    found.add_special_tokens(SPECIAL)
    return found


def whisper_folder(folder):
    """A folder as Hugging Face writes it."""
    write_json(folder / "config.json", WHISPER)
    write_json(
        folder / "generation_config.json",
        {"suppress_tokens": [9], "begin_suppress_tokens": [0], "is_multilingual": True},
    )
    safe_save(tensors(whisper_state()), folder / "model.safetensors")
    whisper_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


# ---- files of CTranslate2 ----

TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "bfloat16": 5}


def text(value):
    data = value.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def variable(name, array, kind=None, shape=None, size=None):
    """A variable of a file; what is given beside the array may be a lie."""
    array = np.asarray(array)
    shape = array.shape if shape is None else shape
    number = TYPES[array.dtype.name] if kind is None else kind
    head = text(name) + struct.pack("<B", len(shape)) + struct.pack(f"<{len(shape)}I", *shape)
    return head + struct.pack("<BI", number, array.nbytes if size is None else size) + array.tobytes()


def model_bin(variables, aliases=(), kind="WhisperSpec", version=6, revision=3):
    """A file of CTranslate2: its variables are bytes, its aliases pairs."""
    parts = [struct.pack("<I", version), text(kind), struct.pack("<II", revision, len(variables)), *variables]
    return b"".join([*parts, struct.pack("<I", len(aliases)), *[text(a) + text(b) for a, b in aliases]])


def whisper_variables(config=WHISPER, dtype=np.float32):
    """The weights of `whisper_state` as CTranslate2 names and joins them."""
    state = {name.removeprefix("model."): array for name, array in whisper_state(config).items()}
    found = {}

    def joined(prefix, names):
        weights = [state[f"{prefix}.{name}.weight"] for name in names]
        zero = np.zeros(weights[0].shape[0], np.float32)
        return np.concatenate(weights), np.concatenate([state.get(f"{prefix}.{n}.bias", zero) for n in names])

    def norm(name, path):
        found[f"{path}/gamma"], found[f"{path}/beta"] = state[f"{name}.weight"], state[f"{name}.bias"]

    for part in ("encoder", "decoder"):
        found[f"{part}/num_heads"] = np.array(config[f"{part}_attention_heads"], np.int16)
        found[f"{part}/position_encodings/encodings"] = state[f"{part}.embed_positions.weight"]
        norm(f"{part}.layer_norm", f"{part}/layer_norm")
        for i in range(config[f"{part}_layers"]):
            old, new = f"{part}.layers.{i}", f"{part}/layer_{i}"
            rows = [("self_attn", ("q_proj", "k_proj", "v_proj"), "self_attention/linear_0")]
            rows += [("self_attn", ("out_proj",), "self_attention/linear_1")]
            norm(f"{old}.self_attn_layer_norm", f"{new}/self_attention/layer_norm")
            if part == "decoder":
                rows += [("encoder_attn", ("q_proj",), "attention/linear_0")]
                rows += [("encoder_attn", ("k_proj", "v_proj"), "attention/linear_1")]
                rows += [("encoder_attn", ("out_proj",), "attention/linear_2")]
                norm(f"{old}.encoder_attn_layer_norm", f"{new}/attention/layer_norm")
            norm(f"{old}.final_layer_norm", f"{new}/ffn/layer_norm")
            for inside, names, path in rows:
                weight, bias = joined(f"{old}.{inside}", names)
                found[f"{new}/{path}/weight"], found[f"{new}/{path}/bias"] = weight, bias
            for name, path in (("fc1", "ffn/linear_0"), ("fc2", "ffn/linear_1")):
                weight, bias = joined(old, (name,))
                found[f"{new}/{path}/weight"], found[f"{new}/{path}/bias"] = weight, bias
    for name in ("conv1", "conv2"):
        found[f"encoder/{name}/weight"] = state[f"encoder.{name}.weight"]
        found[f"encoder/{name}/bias"] = state[f"encoder.{name}.bias"]
    found["decoder/embeddings/weight"] = state["decoder.embed_tokens.weight"]
    return {n: a.astype(dtype) if a.dtype == np.float32 else a for n, a in found.items()}

"""Small models with random weights, written as the folders that people have; no download, no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lazygrad import Tensor
from lazygrad.nn.state import safe_save

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 300,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}


def weights(config: dict[str, Any] = CONFIG, seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights of a Llama, by their names in safetensors."""
    random = np.random.default_rng(seed)
    width, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = width // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (words, width),
        "model.norm.weight": (width,),
    }
    for layer in range(config["num_hidden_layers"]):
        front = f"model.layers.{layer}."
        shapes |= {
            f"{front}input_layernorm.weight": (width,),
            f"{front}self_attn.q_proj.weight": (width, width),
            f"{front}self_attn.k_proj.weight": (kv, width),
            f"{front}self_attn.v_proj.weight": (kv, width),
            f"{front}self_attn.o_proj.weight": (width, width),
            f"{front}post_attention_layernorm.weight": (width,),
            f"{front}mlp.gate_proj.weight": (inner, width),
            f"{front}mlp.up_proj.weight": (inner, width),
            f"{front}mlp.down_proj.weight": (width, inner),
        }
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (words, width)
    made = {name: random.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: value + 1 if value.ndim == 1 else value for name, value in made.items()}


def folder(path: Path, tokenizer: bool = False, seed: int = 0, **changes: Any) -> Path:
    """A Llama's folder: config.json, model.safetensors, and tokenizer.json if asked for."""
    config = CONFIG | changes
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    safe_save(
        {name: Tensor(value) for name, value in weights(config, seed).items()},
        str(path / "model.safetensors"),
    )
    if tokenizer:
        words(config["vocab_size"]).save(str(path / "tokenizer.json"))
    return path


def words(count: int) -> Any:
    """A tokenizer of bytes: <unk>, <s>, </s>, then letters; merges make "th" and "the"."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    letters = "abcdefghijklmnopqrstuvwxyz.,!?Ġ"
    texts = ["<unk>", "<s>", "</s>", *letters, "th", "the", "Ġa"]
    texts += [f"<{number}>" for number in range(len(texts), count)]
    vocabulary = {text: number for number, text in enumerate(texts[:count])}
    inner = tokenizers.Tokenizer(
        models.BPE(vocabulary, [("t", "h"), ("th", "e"), ("Ġ", "a")], unk_token="<unk>")
    )
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<s>", "</s>"])
    return inner


# ---- a plain reference ----


def reference(config: dict[str, Any], state: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """Logits (tokens, vocabulary) of a Llama in float64, position by position and head by head."""
    state = {name: value.astype(np.float64) for name, value in state.items()}
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config["hidden_size"] // heads
    x = state["model.embed_tokens.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        part = {name.split(f"layers.{layer}.")[-1]: value for name, value in state.items()}
        h = _normed(x, part["input_layernorm.weight"], config)
        q, k, v = (h @ part[f"self_attn.{name}_proj.weight"].T for name in "qkv")
        attended = np.zeros_like(q)
        for head in range(heads):
            shared = head // (heads // kv_heads)
            mine, theirs = slice(head * dim, (head + 1) * dim), slice(shared * dim, (shared + 1) * dim)
            queries, keys = _turned(q[:, mine], config), _turned(k[:, theirs], config)
            for at in range(len(tokens)):
                scores = keys[: at + 1] @ queries[at] / dim**0.5
                shares = np.exp(scores - scores.max())
                attended[at, mine] = shares / shares.sum() @ v[: at + 1, theirs]
        x = x + attended @ part["self_attn.o_proj.weight"].T
        h = _normed(x, part["post_attention_layernorm.weight"], config)
        gate = h @ part["mlp.gate_proj.weight"].T
        x = (
            x
            + (gate / (1 + np.exp(-gate)) * (h @ part["mlp.up_proj.weight"].T))
            @ part["mlp.down_proj.weight"].T
        )
    head = state["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    return _normed(x, state["model.norm.weight"], config) @ head.T


def _normed(x: np.ndarray, weight: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weight


def _turned(x: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    half = x.shape[1] // 2
    angle = np.arange(len(x))[:, None] * config["rope_theta"] ** (-np.arange(half) / half)
    turned = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
    return np.concatenate([turned.real, turned.imag], 1)

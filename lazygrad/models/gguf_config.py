"""GGUF's metadata in the words of a Hugging Face config, and GGUF's names of weights.

The keys are those of ggml's `docs/gguf.md`; what that page leaves to the programs (which pairs a rotary
embedding turns, what Gemma's queries are scaled by) is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: `general.architecture` → model_type.
MODEL_TYPES = {
    "llama": "llama",
    "smollm3": "smollm3",
    "qwen2": "qwen2",
    "qwen2moe": "qwen2_moe",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi2": "phi",
    "phi3": "phi3",
    "gpt2": "gpt2",
}
#: Those whose converters order the rows of queries and keys so that pairs are neighbours.
INTERLEAVED = {"llama", "smollm3"}
#: Those whose activation is GELU by tanh; the others' is SiLU.
TANH_GELU = {"phi2", "gpt2", "gemma", "gemma2", "gemma3"}

#: Config → metadata, behind the architecture's name; the first that is there.
KEYS = {
    "num_hidden_layers": ("block_count",),
    "max_position_embeddings": ("context_length",),
    "hidden_size": ("embedding_length",),
    "num_attention_heads": ("attention.head_count",),
    "num_key_value_heads": ("attention.head_count_kv",),
    "rms_norm_eps": ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
    "head_dim": ("attention.key_length",),
    "rope_theta": ("rope.freq_base",),
    "rope_local_base_freq": ("rope.freq_base_swa",),
    "rotary_dim": ("rope.dimension_count",),
    "original_max_position_embeddings": ("rope.scaling.original_context_length",),
    "sliding_window": ("attention.sliding_window",),
    "num_experts": ("expert_count",),
    "num_experts_per_tok": ("expert_used_count",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
}

#: Metadata that change what is computed → what they say in the models that are known; 0 says nothing.
USUAL: dict[str, Any] = {
    "attention.max_alibi_bias": 0,
    "attention.clamp_kqv": 0,
    "attention.causal": True,
    "attention.shared_kv_layers": 0,
    "logit_scale": 1,
    "residual_scale": 1,
    "embedding_scale": 1,
    "router_logit_softcapping": 0,
    "expert_weights_scale": 1,
    "expert_gating_func": 1,  # softmax
    "expert_group_count": 1,
    "rope.scaling.yarn_beta_fast": 32,
    "rope.scaling.yarn_beta_slow": 1,
    "rope.scaling.yarn_log_multiplier": 0,
}

#: Our names of weights → GGUF's, of every architecture.
NAMES = {
    "embedding": "token_embd",
    "positions": "position_embd",
    "norm": "output_norm",
    "head": "output",
    "layer": "blk.{}.",
    "attention_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "qkv": "attn_qkv",
    "out": "attn_output",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "attention_after": "post_attention_norm",
    "feed_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "gate_up": "ffn_up",  # where there is no ffn_gate, as in Phi-3
    "down": "ffn_down",
    "feed_after": "post_ffw_norm",
    "router": "ffn_gate_inp",
    "expert_gate": "ffn_gate.{}",
    "expert_up": "ffn_up.{}",
    "expert_down": "ffn_down.{}",
    "expert_gates": "ffn_gate_exps",
    "expert_ups": "ffn_up_exps",
    "expert_downs": "ffn_down_exps",
    "shared_gate": "ffn_gate_shexp",
    "shared_up": "ffn_up_shexp",
    "shared_down": "ffn_down_shexp",
    "shared_router": "ffn_gate_inp_shexp",
}


def config_of(metadata: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """A config as config.json would say it.

    shapes  of the file's tensors, by GGUF's names: they say how large the vocabulary is, what is tied,
            and which layers have experts
    """
    architecture = metadata.get("general.architecture")
    if architecture not in MODEL_TYPES:
        raise NotImplementedError(
            f"GGUF files of architecture {architecture!r} are not supported, only {', '.join(MODEL_TYPES)}"
        )
    _check_usual(architecture, metadata)
    config: dict[str, Any] = {"model_type": MODEL_TYPES[architecture]}
    for name, keys in KEYS.items():
        found = [metadata[f"{architecture}.{key}"] for key in keys if f"{architecture}.{key}" in metadata]
        if found:
            config[name] = _one(found[0], name)
    embedding = shapes.get("token_embd.weight")
    if embedding is None or len(embedding) != 2:
        raise ValueError("the GGUF file has no matrix token_embd.weight: is it a language model?")
    config["vocab_size"] = embedding[0]
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["rope_interleaved"] = architecture in INTERLEAVED
    config["rope_scaling"] = _scaling(architecture, metadata)
    config["hidden_act"] = "gelu_new" if architecture in TANH_GELU else "silu"
    if architecture == "llama" and config.get("num_experts"):
        config["model_type"] = "mixtral"
    config["norm_topk_prob"] = architecture == "qwen3moe"
    if config.get("num_experts"):
        dense = range(config.get("num_hidden_layers", 0))
        config["mlp_only_layers"] = [i for i in dense if f"blk.{i}.ffn_gate_inp.weight" not in shapes]
    if architecture in ("gemma2", "gemma3"):
        config["query_pre_attn_scalar"] = _gemma_scale(config)
    return config


def _check_usual(architecture: str, metadata: Mapping[str, Any]) -> None:
    """Refuse what would change numbers and is not computed."""
    for key, usual in USUAL.items():
        said = metadata.get(f"{architecture}.{key}", usual)
        if said != usual and (said or usual is True):
            raise NotImplementedError(f"{architecture}.{key}={said!r} is not supported, only {usual!r}")
    keys, values = (metadata.get(f"{architecture}.attention.{part}_length") for part in ("key", "value"))
    if keys is not None and values is not None and keys != values:
        raise NotImplementedError(
            f"{architecture}: heads of {keys} features in keys and {values} in values are not supported"
        )


def _one(value: Any, name: str) -> Any:
    """A number; of a list, one for each layer, the one that all are."""
    if not isinstance(value, list):
        return value
    if not value or any(each != value[0] for each in value):
        raise NotImplementedError(f"layers with different {name} are not supported: {value[:8]}")
    return value[0]


def _scaling(architecture: str, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = metadata.get(f"{architecture}.rope.scaling.type")
    if kind in (None, "none"):
        return None
    said = {"rope_type": kind, "factor": metadata.get(f"{architecture}.rope.scaling.factor")}
    magnitude = metadata.get(f"{architecture}.rope.scaling.attn_factor")
    return said | ({} if magnitude is None else {"attention_factor": magnitude})


def _gemma_scale(config: Mapping[str, Any]) -> int:
    """What queries are divided by the root of: a head's features, but in the 27B models width / heads."""
    largest = {"gemma2": 46, "gemma3_text": 62}[config["model_type"]]
    width, heads = config["hidden_size"], config["num_attention_heads"]
    if config["num_hidden_layers"] == largest:
        return int(width // heads)
    return int(config.get("head_dim", width // heads))

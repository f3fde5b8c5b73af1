"""The table of architectures: what each makes differently, and what it calls its weights.

A row reads a config in Hugging Face's words (`config.json`; GGUF's metadata are put into these words by
`gguf_config.py`) and gives the choices of a Description that differ from what most make alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .description import Description, Experts
from .rotary_config import rotary_of

Config = Mapping[str, Any]
Choices = dict[str, Any]


# ---- what of a config several rows read ----


def windows(config: Config, layers: int, default: Callable[[int], bool]) -> tuple[int | None, ...]:
    """For each layer its sliding window: as `layer_types` says, else where `default` says so of a number."""
    window = config.get("sliding_window")
    if not window:
        return (None,) * layers
    _check_count("sliding_window", window)
    kinds = config.get("layer_types")
    if kinds is None:
        return tuple(window if default(layer) else None for layer in range(layers))
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def _everywhere(config: Config, layers: int) -> Choices:
    return {"windows": windows(config, layers, lambda layer: True)}


def _above(config: Config, layers: int) -> Choices:
    """Qwen's windows: in the layers from `max_window_layers` on, if at all."""
    if not config.get("use_sliding_window"):
        return {}
    return {"windows": windows(config, layers, lambda layer: layer >= config.get("max_window_layers", 0))}


def _experts(config: Config, layers: int, normalised: bool, shared: bool) -> Choices:
    """Layers with experts: all but those that are named, of every `decoder_sparse_step` the last."""
    count = config.get("num_local_experts") or config.get("num_experts")
    if not count:
        raise ValueError("the config names no number of experts (num_local_experts, num_experts)")
    dense, step = config.get("mlp_only_layers") or (), config.get("decoder_sparse_step") or 1
    return {
        "experts": Experts(count, config["num_experts_per_tok"], normalised, shared),
        "sparse": tuple(layer not in dense and (layer + 1) % step == 0 for layer in range(layers)),
    }


def _gemma_head(config: Config) -> Choices:
    """What all Gemmas make: weights of norms are differences from 1, embeddings are scaled."""
    choices: Choices = {"norm_shift": 1.0, "embed_scale": config["hidden_size"] ** 0.5}
    if "hidden_activation" not in config and config.get("hidden_act", "gelu") == "gelu":
        choices["activation"] = "gelu_tanh"  # what old configs mean by "gelu"
    return choices


# ---- the rows' readers ----


def _plain(config: Config, layers: int) -> Choices:
    return {}


def _qwen3(config: Config, layers: int) -> Choices:
    return {"qk_norm": True} | _above(config, layers)


def _qwen2_moe(config: Config, layers: int) -> Choices:
    normalised = bool(config.get("norm_topk_prob", False))
    return _above(config, layers) | _experts(config, layers, normalised, shared=True)


def _qwen3_moe(config: Config, layers: int) -> Choices:
    normalised = bool(config.get("norm_topk_prob", False))
    return _qwen3(config, layers) | _experts(config, layers, normalised, shared=False)


def _mixtral(config: Config, layers: int) -> Choices:
    return _everywhere(config, layers) | _experts(config, layers, normalised=True, shared=False)


def _gemma(config: Config, layers: int) -> Choices:
    return _gemma_head(config)


def _gemma2(config: Config, layers: int) -> Choices:
    return _gemma_head(config) | {
        "norms": "both",
        "windows": windows(config, layers, lambda layer: layer % 2 == 0),
        "query_scale": config.get("query_pre_attn_scalar", 256) ** -0.5,
        "score_cap": config.get("attn_logit_softcapping"),
        "logit_cap": config.get("final_logit_softcapping"),
    }


def _gemma3(config: Config, layers: int) -> Choices:
    if config.get("attn_logit_softcapping"):
        raise NotImplementedError("Gemma 3 with attn_logit_softcapping: no published model has it")
    period = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern") or 6
    found = windows(config, layers, lambda layer: (layer + 1) % period != 0)
    dim, nested = config["head_dim"], config.get("rope_parameters") or {}
    local: Config = {"rope_theta": config.get("rope_local_base_freq") or 10000.0}
    if "sliding_attention" in nested:
        local, config = (
            {"rope_parameters": nested["sliding_attention"]},
            {
                **config,
                "rope_parameters": nested["full_attention"],
            },
        )
    return _gemma2(config, layers) | {
        "windows": found,
        "qk_norm": True,
        "rotaries": (rotary_of(config, dim), rotary_of(local, dim)),
        "rotary_of": tuple(0 if window is None else 1 for window in found),
    }


def _smollm3(config: Config, layers: int) -> Choices:
    period = config.get("no_rope_layer_interval") or 4
    turned = config.get("no_rope_layers") or [(layer + 1) % period != 0 for layer in range(layers)]
    return {"rotary_of": tuple(0 if each else None for each in turned)} | _above(config, layers)


def _phi(config: Config, layers: int) -> Choices:
    if config.get("qk_layernorm"):
        raise NotImplementedError("Phi with qk_layernorm: no published model has it")
    return {"norm": "layer", "parallel": True, "gated": False}


def _gpt2(config: Config, layers: int) -> Choices:
    if config.get("scale_attn_by_inverse_layer_idx"):
        raise NotImplementedError("GPT-2 with scale_attn_by_inverse_layer_idx is not supported")
    choices: Choices = {"norm": "layer", "gated": False, "rotaries": (), "rotary_of": (None,) * layers}
    return choices if config.get("scale_attn_weights", True) else choices | {"query_scale": 1.0}


# ---- names of weights in safetensors, in Hugging Face's words ----

#: Ours → theirs, of most. Parts of a layer stand behind `layer`, which has the number in it.
LLAMA = {
    "embedding": "model.embed_tokens",
    "norm": "model.norm",
    "head": "lm_head",
    "layer": "model.layers.{}.",
    "attention_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "qkv": "self_attn.qkv_proj",
    "out": "self_attn.o_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "feed_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "gate_up": "mlp.gate_up_proj",
    "down": "mlp.down_proj",
    "router": "mlp.gate",
    "expert_gate": "mlp.experts.{}.gate_proj",
    "expert_up": "mlp.experts.{}.up_proj",
    "expert_down": "mlp.experts.{}.down_proj",
    "shared_gate": "mlp.shared_expert.gate_proj",
    "shared_up": "mlp.shared_expert.up_proj",
    "shared_down": "mlp.shared_expert.down_proj",
    "shared_router": "mlp.shared_expert_gate",
}
MIXTRAL = LLAMA | {
    "router": "block_sparse_moe.gate",
    "expert_gate": "block_sparse_moe.experts.{}.w1",
    "expert_up": "block_sparse_moe.experts.{}.w3",
    "expert_down": "block_sparse_moe.experts.{}.w2",
}
GEMMA2 = LLAMA | {
    "attention_after": "post_attention_layernorm",
    "feed_norm": "pre_feedforward_layernorm",
    "feed_after": "post_feedforward_layernorm",
}
PHI = LLAMA | {
    "norm": "model.final_layernorm",
    "out": "self_attn.dense",
    "up": "mlp.fc1",
    "down": "mlp.fc2",
}
GPT2 = {
    "embedding": "transformer.wte",
    "positions": "transformer.wpe",
    "norm": "transformer.ln_f",
    "head": "lm_head",
    "layer": "transformer.h.{}.",
    "attention_norm": "ln_1",
    "qkv": "attn.c_attn",
    "out": "attn.c_proj",
    "feed_norm": "ln_2",
    "up": "mlp.c_fc",
    "down": "mlp.c_proj",
}


@dataclass(frozen=True)
class Architecture:
    """A row of the table.

    read        config, number of layers → the choices that differ
    names       our names of weights → those of safetensors
    transposed  weights of projections are (in, out) in safetensors
    partial     heads may turn a part of their features alone
    defaults    what a config leaves out that says nothing else
    """

    read: Callable[[Config, int], Choices] = _plain
    names: Mapping[str, str] = field(default_factory=lambda: LLAMA)
    transposed: bool = False
    partial: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


_GEMMA3_DEFAULTS = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "hidden_act": "gelu_pytorch_tanh",
}

#: `model_type` of a config → its row.
ARCHITECTURES = {
    "llama": Architecture(),
    "smollm3": Architecture(_smollm3),
    "mistral": Architecture(_everywhere),
    "mixtral": Architecture(_mixtral, MIXTRAL),
    "qwen2": Architecture(_above),
    "qwen2_moe": Architecture(_qwen2_moe),
    "qwen3": Architecture(_qwen3),
    "qwen3_moe": Architecture(_qwen3_moe),
    "gemma": Architecture(_gemma),
    "gemma2": Architecture(_gemma2, GEMMA2),
    "gemma3_text": Architecture(_gemma3, GEMMA2, defaults=_GEMMA3_DEFAULTS),
    "phi": Architecture(_phi, PHI, partial=True),
    "phi3": Architecture(_everywhere, partial=True),
    "gpt2": Architecture(_gpt2, GPT2, transposed=True, defaults={"hidden_act": "gelu_new"}),
}

#: What some configs call a thing → what others do.
OTHER_NAMES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "activation_function": "hidden_act",
    "layer_norm_epsilon": "rms_norm_eps",
    "layer_norm_eps": "rms_norm_eps",
}
#: Activations as configs call them → ours.
ACTIVATION_NAMES = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}


#: What a config says as a whole number from 1 on, and as a number above 0.
COUNTS = {
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_size",
    "vocab_size",
    "max_position_embeddings",
    "original_max_position_embeddings",
    "rotary_dim",
    "num_local_experts",
    "num_experts_per_tok",
}
NUMBERS = {
    "rms_norm_eps",
    "rope_theta",
    "partial_rotary_factor",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "final_logit_softcapping",
}
#: A file that says more lies.
MOST = 1 << 40


def _check_count(name: str, value: Any) -> None:
    most = 10_000 if name == "num_hidden_layers" else MOST
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{name} of a config must be a whole number from 1 to {most}, not {value!r}")


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name} of a config must be a number above 0, not {value!r}")


def architecture_of(config: Config) -> Architecture:
    """The row of a config. NotImplementedError lists those that there are."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise NotImplementedError(
            f"language models of type {kind!r} are not supported, only {', '.join(ARCHITECTURES)}"
        )
    return ARCHITECTURES[kind]


def describe(config: Config) -> Description:
    """What a config says, as a Description. ValueError names what it lacks or says wrongly."""
    row = architecture_of(config)
    renamed = {OTHER_NAMES.get(key, key): value for key, value in config.items() if value is not None}
    config = {**row.defaults, **renamed}
    for name in COUNTS & config.keys():
        _check_count(name, config[name])
    for name in NUMBERS & config.keys():
        _check_number(name, config[name])
    try:
        return _described(row, config)
    except KeyError as error:
        raise ValueError(f"the config of this {config['model_type']} lacks {error}") from None
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"the config of this {config['model_type']} is inconsistent: {error}") from error


def _described(row: Architecture, config: dict[str, Any]) -> Description:
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    config.setdefault("head_dim", config["hidden_size"] // heads)
    if config.get("use_bidirectional_attention"):
        raise NotImplementedError(
            f"use_bidirectional_attention of a {config['model_type']} is not supported: a token sees those "
            "before it"
        )
    said = config.get("rope_parameters") or config.get("rope_scaling") or {}
    share = said.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    if share != 1.0 and not row.partial:
        raise NotImplementedError(
            f"partial_rotary_factor={share!r} of a {config['model_type']} is not supported: its heads turn "
            "all of their features"
        )
    act = config.get("hidden_activation") or config.get("hidden_act", "silu")
    if act not in ACTIVATION_NAMES:
        raise NotImplementedError(f"activation {act!r} is not supported, only {', '.join(ACTIVATION_NAMES)}")
    choices: Choices = {
        "architecture": config["model_type"],
        "vocabulary": config["vocab_size"],
        "width": config["hidden_size"],
        "layers": layers,
        "heads": heads,
        "kv_heads": config.get("num_key_value_heads", heads),
        "head_dim": config["head_dim"],
        "context": config["max_position_embeddings"],
        "eps": float(config["rms_norm_eps"]),
        "rotary_of": (0,) * layers,
        "windows": (None,) * layers,
        "query_scale": config["head_dim"] ** -0.5,
        "activation": ACTIVATION_NAMES[act],
        "tied": bool(config.get("tie_word_embeddings", True)),
    } | row.read(config, layers)
    if "rotaries" not in choices:
        choices["rotaries"] = (rotary_of(config, config["head_dim"]),)
    return Description(**choices)

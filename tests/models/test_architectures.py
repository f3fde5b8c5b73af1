"""Each architecture beside `transformers`: a small model with random weights, whole texts and cached ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, models
from lazygrad.models.architectures import ARCHITECTURES, describe
from lazygrad.models.stepping import Stepper
from tests.helpers import needs, require
from tests.models import tiny_decoder as tiny

BASE: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WINDOW = {"sliding_window": 8}
GEMMA = {"head_dim": 16, "query_pre_attn_scalar": 24}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
GPT2 = {"vocab_size": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}


def rope(kind: str, theta: float = 10000.0, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


def longrope(pairs: int) -> dict[str, Any]:
    short, long = ([1.0 + step * pair for pair in range(pairs)] for step in (0.1, 0.7))
    return rope("longrope", short_factor=short, long_factor=long, original_max_position_embeddings=16) | {
        "original_max_position_embeddings": 16
    }


LLAMA3 = rope(
    "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
)
#: name → the class of its config, and what is said in it. Texts have 23 tokens, so windows hide some.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", BASE),
    "llama with biases, all heads their own": (
        "LlamaConfig",
        BASE
        | {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4, "tie_word_embeddings": True},
    ),
    "llama3": ("LlamaConfig", BASE | LLAMA3),
    "linear": ("LlamaConfig", BASE | rope("linear", factor=3.0)),
    "dynamic": ("LlamaConfig", BASE | rope("dynamic", factor=2.0) | {"max_position_embeddings": 16}),
    "yarn": ("LlamaConfig", BASE | rope("yarn", factor=4.0, original_max_position_embeddings=16)),
    "smollm3": ("SmolLM3Config", BASE | {"num_hidden_layers": 4}),
    "mistral": ("MistralConfig", BASE | WINDOW),
    "mixtral": ("MixtralConfig", BASE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2Config", BASE),
    "qwen2 with windows": (
        "Qwen2Config",
        BASE | WINDOW | {"use_sliding_window": True, "max_window_layers": 1},
    ),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        BASE | MOE | {"shared_expert_intermediate_size": 24, "decoder_sparse_step": 2},
    ),
    "qwen3": ("Qwen3Config", BASE | {"head_dim": 16}),
    "qwen3_moe": ("Qwen3MoeConfig", BASE | MOE | {"head_dim": 16, "norm_topk_prob": True}),
    "gemma": ("GemmaConfig", BASE | {"head_dim": 16}),
    "gemma2": ("Gemma2Config", BASE | GEMMA | WINDOW),
    "gemma3_text": ("Gemma3TextConfig", BASE | GEMMA | WINDOW | {"_sliding_window_pattern": 2}),
    "phi": ("PhiConfig", BASE | {"partial_rotary_factor": 0.5}),
    "phi3": ("Phi3Config", BASE | WINDOW | {"original_max_position_embeddings": 64}),
    "phi3 longrope": ("Phi3Config", BASE | longrope(4)),
    "gpt2": ("GPT2Config", GPT2),
}


def made(case: str, path: Any) -> Any:
    """The model of `transformers`, saved in a folder, with weights wide enough that mistakes show."""
    torch, transformers = require("torch"), require("transformers")
    kind, said = CASES[case]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, kind)(**said), attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(path)
    return model


@pytest.mark.slow
@needs("torch", "transformers")
@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_transformers(case, tmp_path):
    torch = require("torch")
    theirs, ours = made(case, tmp_path), models.load(tmp_path)
    tokens = np.random.default_rng(1).integers(3, 96, size=(2, 23))
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens)).logits.numpy()
    assert np.abs(expected).max() > 0.3
    assert np.abs(ours.forward(Tensor(tokens.astype(np.int32))).numpy() - expected).max() < 1e-4
    if ours.config.rotaries and ours.config.rotaries[0].depends_on_length:
        return  # what was cached keeps the angles of a shorter text
    stepper = Stepper(ours.decoder, slots=2, piece=8)
    for row, text in enumerate(tokens):
        for start in range(0, 22, 8):
            logits = stepper.read(row, text[start : min(start + 8, 22)].tolist(), start)
        assert np.abs(logits - expected[row, 21]).max() < 1e-4
    logits = stepper.decode(tokens[:, 22].tolist(), [22, 22], 23)
    assert np.abs(logits - expected[:, 22]).max() < 1e-4


def test_every_architecture_is_played():
    assert {case.split(" ")[0] for case in CASES} >= set(ARCHITECTURES)


# ---- configs ----


def described(**changes: Any) -> Any:
    return describe({**tiny.CONFIG, **changes})


def test_a_config_becomes_a_description():
    d = described(model_type="mistral", sliding_window=8)
    assert (d.width, d.layers, d.heads, d.kv_heads, d.head_dim, d.vocabulary) == (16, 2, 4, 2, 4, 64)
    assert d.windows == (8, 8)
    assert described(model_type="qwen2", sliding_window=8).windows == (None, None)
    assert described(model_type="gemma").embed_scale == 4.0


def test_activations_of_gemma():
    """In an old config "gelu" is the one by tanh, and a newer word counts more."""
    assert described(model_type="gemma", hidden_act="gelu").activation == "gelu_tanh"
    assert described(model_type="gemma2", hidden_act="relu").activation == "relu"
    assert described(model_type="gemma2", hidden_activation="gelu").activation == "gelu"


def test_a_part_of_a_head_turns_where_the_architecture_says_so():
    assert described(model_type="phi", partial_rotary_factor=0.5).rotaries[0].dim == 2
    with pytest.raises(NotImplementedError, match=r"partial_rotary_factor=0\.5 of a llama is not supported"):
        described(rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5})


def test_older_and_newer_words_for_the_same_rotary_embedding():
    old = described(rope_scaling={"type": "linear", "factor": 2.0}, rope_theta=500.0)
    new = described(
        rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}, rope_theta=None
    )
    assert old.rotaries == new.rotaries


def test_gemma3_has_two_rotary_embeddings():
    d = described(model_type="gemma3_text", num_hidden_layers=7, sliding_window=4, head_dim=4)
    assert d.windows == (4, 4, 4, 4, 4, None, 4)
    assert d.rotary_of == (1, 1, 1, 1, 1, 0, 1)
    assert [rotary.base for rotary in d.rotaries] == [10000.0, 10000.0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"model_type": "mamba"},
            NotImplementedError,
            "language models of type 'mamba' are not supported, only llama, ",
        ),
        ({"hidden_act": "mish"}, NotImplementedError, "activation 'mish' is not supported, only silu"),
        ({"num_hidden_layers": None}, ValueError, "config of this llama lacks 'num_hidden_layers'"),
        (
            {"num_hidden_layers": "two"},
            ValueError,
            "num_hidden_layers of a config must be a whole number from 1 to 10000, not 'two'",
        ),
        (
            {"num_attention_heads": 0},
            ValueError,
            "num_attention_heads of a config must be a whole number from 1 to 1099511627776, not 0",
        ),
        ({"num_key_value_heads": 3}, ValueError, "4 query heads cannot be divided among 3 key heads"),
        ({"hidden_size": 12}, ValueError, "turns pairs of features: dim must be even, not 3"),
        (
            {"rope_scaling": {"type": "newest"}},
            NotImplementedError,
            "rotary scaling 'newest' is not supported, only linear",
        ),
        ({"rope_scaling": {"type": "llama3"}}, ValueError, "lacks 'low_freq_factor'"),
        (
            {"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]}},
            ValueError,
            "1 short factors for 2 pairs",
        ),
        ({"model_type": "mixtral"}, ValueError, "names no number of experts"),
        (
            {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3},
            ValueError,
            "a token takes 3 of 2 experts",
        ),
        ({"model_type": "phi", "qk_layernorm": True}, NotImplementedError, "Phi with qk_layernorm"),
        (
            {"model_type": "gemma3_text", "attn_logit_softcapping": 50.0},
            NotImplementedError,
            "Gemma 3 with attn_logit_softcapping",
        ),
        (
            {"model_type": "gemma3_text", "use_bidirectional_attention": True},
            NotImplementedError,
            "use_bidirectional_attention of a gemma3_text",
        ),
    ],
    ids=range(15),
)
def test_configs_that_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        described(**change)


ODD = [None, "x", -1, 0, 1.5, [], {}, [1], 10**30, True, float("nan"), float("inf"), {"rope_type": "yarn"}]
ODD += [{"rope_type": "linear", "factor": 0}, {"rope_type": "dynamic", "factor": 2}, {"rope_type": [1]}]
ODD += [
    {"rope_type": "yarn", "factor": -1},
    {"rope_type": "longrope", "short_factor": "x"},
    {"sliding_attention": 1},
]
MORE = "rope_scaling rope_parameters sliding_window layer_types head_dim num_experts num_experts_per_tok"
MORE += " rotary_dim partial_rotary_factor query_pre_attn_scalar attn_logit_softcapping max_window_layers"
MORE += (
    " no_rope_layers use_sliding_window mlp_only_layers decoder_sparse_step original_max_position_embeddings"
)
MORE += " sliding_window_pattern rope_local_base_freq"


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_config_is_described_or_refused_whatever_it_says(kind):
    sound = tiny.CONFIG | {"model_type": kind, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 4}
    described = 0
    for name in {*tiny.CONFIG, *MORE.split()}:
        for value in ODD:
            try:
                d = describe(sound | {"use_sliding_window": True, name: value})
            except (ValueError, NotImplementedError):
                continue
            described += 1
            assert all(np.isfinite(rotary.rates(10)).all() for rotary in d.rotaries), (name, value)
    assert described > 100

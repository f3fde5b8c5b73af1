"""A Hugging Face folder: config.json, safetensors (in one file or several), tokenizer.json."""

from __future__ import annotations

import pathlib
from typing import Any

from ..dtype import DType
from ..tensor import Tensor
from .architectures import architecture_of, describe
from .chat import ChatTemplate
from .decoder import Decoder
from .decoder_weights import Weights, build
from .folders import load_folder, read_json
from .tokenizer import Tokenizer

#: In front of the names of a language model that is part of a model of more kinds of data.
PREFIXES = ("language_model.", "model.language_model.", "model.")


def config_of(folder: pathlib.Path) -> dict[str, Any]:
    """config.json; of a model of more kinds of data the part that describes its language model."""
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no config.json: is it the folder of a model?")
    config = read_json(path)
    inner = config.get("text_config")
    if isinstance(inner, dict) and "model_type" in inner:
        fields: dict[str, Any] = {
            key: config[key] for key in ("tie_word_embeddings", "eos_token_id") if key in config
        }
        return fields | inner
    return config


def load_decoder(folder: pathlib.Path, device: Any, dtype: DType | None) -> Decoder:
    """The decoder of a folder."""
    config = config_of(folder)
    row, description = architecture_of(config), describe(config)
    tensors = _bare(load_folder(folder), row.names["embedding"] + ".weight")
    names = dict(row.names)
    fused = f"{names['layer'].format(0)}mlp.experts.gate_up_proj"
    if fused in tensors:
        tensors = tensors | _split_experts(tensors, description.layers, names["layer"])
        names |= {f"expert_{part}s": f"mlp.experts.{part}" for part in ("gate", "up", "down")}
    weights = Weights(tensors, names, device, dtype, row.transposed, description.norm_shift)
    return build(description, weights)


def _bare(tensors: dict[str, Tensor], embedding: str) -> dict[str, Tensor]:
    """Names as the row of the architecture has them: without what a larger model puts in front, and with the
    model's own name where a file leaves that out.
    """
    if embedding in tensors:
        return tensors
    front, _, rest = embedding.partition(".")
    if rest in tensors:
        return {name if name.startswith("lm_head.") else f"{front}.{name}": t for name, t in tensors.items()}
    for prefix in PREFIXES:
        for inner in (embedding, rest):
            if prefix + inner in tensors:
                added = "" if inner == embedding else f"{front}."
                bare = {
                    added + name.removeprefix(prefix): t
                    for name, t in tensors.items()
                    if name.startswith(prefix)
                }
                return bare | {name: t for name, t in tensors.items() if name.startswith("lm_head.")}
    return tensors


def _split_experts(tensors: dict[str, Tensor], layers: int, layer: str) -> dict[str, Tensor]:
    """Experts as one tensor, (experts, out, in), with gate and up behind each other along `out`."""
    found = {}
    for number in range(layers):
        front = f"{layer.format(number)}mlp.experts."
        both, down = tensors.get(f"{front}gate_up_proj"), tensors.get(f"{front}down_proj")
        if both is None or down is None:
            continue
        if both.ndim != 3 or not isinstance(both.shape[1], int) or both.shape[1] % 2:
            raise ValueError(f"weight '{front}gate_up_proj' is not a stack of two matrices for each expert")
        half = both.shape[1] // 2
        found[f"{front}gate.weight"], found[f"{front}up.weight"] = both[:, :half], both[:, half:]
        found[f"{front}down.weight"] = down
    return found


# ---- the vocabulary ----


def load_tokenizer(folder: pathlib.Path, config: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer of a folder, or None where it has no tokenizer.json."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    import tokenizers

    try:
        inner = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ValueError(f"{path} is not a tokenizer: {error}") from error
    said = _optional(folder / "tokenizer_config.json")
    generation = _optional(folder / "generation_config.json")
    special = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: _token_text(said.get(name)) for name in special}
    ends = _ids(generation.get("eos_token_id")) + _ids(config.get("eos_token_id"))
    if tokens["eos_token"]:
        ends += _ids(inner.token_to_id(tokens["eos_token"]))
    bos = inner.token_to_id(tokens["bos_token"]) if tokens["bos_token"] else None
    add_bos = bool(said.get("add_bos_token", False))
    return Tokenizer(inner, ends, bos, add_bos, _template(folder, said, tokens))


def _optional(path: pathlib.Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _ids(value: Any) -> list[int]:
    """A token, a list of tokens, or None, as a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, int) and not isinstance(each, bool)]


def _token_text(value: Any) -> str:
    """The text of a special token, which stands alone or in an object."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _template(folder: pathlib.Path, said: dict[str, Any], tokens: dict[str, str]) -> ChatTemplate | None:
    """The chat template: a file of its own, or in tokenizer_config.json; of several the "default"."""
    path = folder / "chat_template.jinja"
    source = path.read_text(encoding="utf-8") if path.is_file() else said.get("chat_template")
    if source is None:
        source = _optional(folder / "chat_template.json").get("chat_template")
    if isinstance(source, list):
        named = {each.get("name"): each.get("template") for each in source if isinstance(each, dict)}
        source = named.get("default") or next(iter(named.values()), None)
    return ChatTemplate(source, tokens) if isinstance(source, str) else None

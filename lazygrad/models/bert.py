"""Encoders: texts to vectors, by BERT (Devlin et al. 2018) and its kin, from the folders that people have.

    encoder = Encoder.load("all-MiniLM-L6-v2")           # a folder of sentence-transformers or Hugging Face
    vectors = encoder.encode(["a text", "another"])      # (2, 384)

What differs between the kin (names in files and in configurations, first positions) is a row of `FAMILIES`.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..jit import TinyJit
from ..nn.state import Hidden
from ..shape import shape_text
from ..tensor import Tensor
from .encoder_weights import (
    ACTIVATIONS,
    Dense,
    Norm,
    RandomWeights,
    Weights,
    join_heads,
    open_tokenizer,
    split_heads,
    whole_number,
)
from .folders import load_folder, parse_json, read_json

# ---- what the kin differ in ----


class Family(NamedTuple):
    """How one architecture calls things.

    sizes       in config.json: width, heads, layers, width of the feed-forward part, activation
    layers      the list of layers in the file
    names       of a layer: query, key, value, output, the norm behind it; up, down, the norm behind them
    pads_first  positions are counted from pad_token_id + 1 on
    """

    sizes: tuple[str, str, str, str, str]
    layers: str
    names: tuple[str, str, str, str, str, str, str, str]
    pads_first: bool = False


BERT = Family(
    ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "hidden_act"),
    "encoder.layer",
    (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ),
)
ROBERTA = BERT._replace(pads_first=True)
DISTILBERT = Family(
    ("dim", "n_heads", "n_layers", "hidden_dim", "activation"),
    "transformer.layer",
    (
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
    ),
)

#: By `model_type` of config.json.
FAMILIES = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "distilbert": DISTILBERT,
}

#: Lengths that batches are padded to: few, so that few captures are made, and never half as much again.
LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)

POOLINGS = ("cls", "max", "mean", "mean_sqrt_len")

# ---- the network ----


class Layer:
    """Attention, then two products with an activation between; a sum and a norm behind each of the two."""

    def __init__(
        self, weights: Weights, prefix: str, family: Family, config: dict[str, Any], eps: float
    ) -> None:
        width, self.heads, inner = (config[family.sizes[i]] for i in (0, 1, 3))
        self.activation = ACTIVATIONS[config[family.sizes[4]]]
        parts = [f"{prefix}.{part}" for part in family.names]
        self.qkv = _dense(weights, parts[:3], width, width)
        self.out = _dense(weights, parts[3:4], width, width)
        self.up = _dense(weights, parts[5:6], inner, width)
        self.down = _dense(weights, parts[6:7], width, inner)
        self.attention_norm, self.norm = (_norm(weights, parts[i], width, eps) for i in (4, 7))

    def __call__(self, x: Tensor, seen: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        x = self.attention_norm(x + self.out(join_heads(q.scaled_dot_product_attention(k, v, seen))))
        return self.norm(x + self.down(self.activation(self.up(x))))


def _dense(weights: Weights, names: Sequence[str], out: int, width: int) -> Dense:
    weight = weights.take(*[f"{name}.weight" for name in names], shape=(out, width), turned=True)
    return Dense(weight, weights.take(*[f"{name}.bias" for name in names], shape=(out,)))


def _norm(weights: Weights, name: str, width: int, eps: float) -> Norm:
    return Norm(
        weights.take(f"{name}.weight", shape=(width,)), weights.take(f"{name}.bias", shape=(width,)), eps
    )


class Encoder:
    """Texts to vectors. `Encoder.load(folder)` makes one.

    config      as in config.json        tensors  by the names of Hugging Face; None is random weights
    width       of a vector before pooling        most  the greatest number of tokens of a text
    pooling     how the vectors of a text's tokens become one: names of `POOLINGS`, side by side if several
    normalize   whether the result has length 1
    tokenizer   of the library `tokenizers`, or None: then only `__call__` and `pool` work
    """

    def __init__(
        self,
        config: dict[str, Any],
        tensors: dict[str, Tensor] | None,
        tokenizer: Any = None,
        pooling: Sequence[str] = ("mean",),
        normalize: bool = False,
        most: int | None = None,
        origin: object = "the state dict",
    ) -> None:
        kind = config.get("model_type")
        if kind not in FAMILIES:
            raise NotImplementedError(
                f"{origin}: encoders of type {kind!r} are not known; known are {', '.join(FAMILIES)}"
            )
        family = FAMILIES[kind]
        _check(config, family, origin)
        unknown = [name for name in pooling if name not in POOLINGS]
        if unknown or not pooling:
            raise ValueError(
                f"pooling must be some of {', '.join(POOLINGS)}, not {', '.join(unknown) or 'nothing'}"
            )
        self.width = config[family.sizes[0]]
        self.pooling, self.normalize = tuple(pooling), normalize
        eps = config.get("layer_norm_eps", 1e-12)
        prefix = "" if tensors is None else _prefix(tensors, origin)
        weights = RandomWeights() if tensors is None else Weights(tensors, origin)
        table = f"{prefix}embeddings."
        self.words = weights.take(f"{table}word_embeddings.weight", shape=(config["vocab_size"], self.width))
        positions = config["max_position_embeddings"]
        self.first = (config.get("pad_token_id") or 0) + 1 if family.pads_first else 0
        self.positions = weights.take(f"{table}position_embeddings.weight", shape=(positions, self.width))
        self.types: Tensor | None = None
        named = f"{table}token_type_embeddings.weight"
        if config.get("type_vocab_size") and (tensors is None or named in tensors):
            self.types = weights.take(named, shape=(config["type_vocab_size"], self.width))
        self.norm = _norm(weights, f"{table}LayerNorm", self.width, eps)
        self.layers = [
            Layer(weights, f"{prefix}{family.layers}.{i}", family, config, eps)
            for i in range(config[family.sizes[2]])
        ]
        weights.read()
        self.most = min(most or positions, positions - self.first)
        self.tokenizer = tokenizer
        if tokenizer is not None:
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.most)
        self._captures = Captures()

    @staticmethod
    def load(
        folder: str | os.PathLike[str],
        pooling: str | Sequence[str] | None = None,
        normalize: bool | None = None,
    ) -> Encoder:
        """The encoder of a folder of Hugging Face or sentence-transformers, on the default device in float32.

        folder     config.json, model.safetensors, tokenizer.json; modules.json and 1_Pooling/config.json
                   where sentence-transformers wrote it
        pooling    `cls`, `max`, `mean` or `mean_sqrt_len`; what the folder says if not given, or else `mean`
        normalize  likewise; otherwise vectors are as they come

        FileNotFoundError and ValueError say what is missing and what is wrong; NotImplementedError names what
        the folder asks for and lazygrad does not have.
        """
        place = pathlib.Path(folder)
        if not place.is_dir():
            raise FileNotFoundError(f"no folder {place}")
        config = read_json(place / "config.json")
        _check_beside(place)
        said, unit = _modules(place)
        chosen = said if pooling is None else (pooling,) if isinstance(pooling, str) else tuple(pooling)
        return Encoder(
            config,
            load_folder(place),
            open_tokenizer(place / "tokenizer.json"),
            chosen,
            unit if normalize is None else normalize,
            _most_tokens(place),
            place,
        )

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """The vectors of all tokens, (n, length, width).

        ids    (n, length), the numbers of tokens        mask  (n, length) of bool: False is padding
        types  (n, length), the number of the text that a token belongs to; all of the first if not given
        """
        if ids.ndim != 2 or mask.shape != ids.shape:
            raise ValueError(
                f"an encoder takes ids and a mask of one shape (n, length), not {shape_text(ids.shape)} "
                f"and {shape_text(mask.shape)}"
            )
        length = ids.shape[1]
        if length > self.positions.shape[0] - self.first:
            raise ValueError(
                f"{length} tokens; the encoder has positions for {self.positions.shape[0] - self.first}"
            )
        x = ids.embedding(self.words) + self.positions[self.first : self.first + length]
        if self.types is not None:
            x = x + (self.types[0] if types is None else types.embedding(self.types))
        elif types is not None:
            raise ValueError("this encoder has no token types")
        x = self.norm(x)
        seen = mask.cast(dtypes.bool).unsqueeze(1).unsqueeze(1)
        for layer in self.layers:
            x = layer(x, seen)
        return x

    def pool(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """One vector of each text, (n, width): of those of its tokens, (n, length, width)."""
        seen = mask.unsqueeze(-1).cast(vectors.dtype)
        total, number = (vectors * seen).sum(1), seen.sum(1).maximum(1.0)
        ways = {
            "cls": lambda: vectors[:, 0],
            "max": lambda: (seen > 0).where(vectors, -float("inf")).max(1),
            "mean": lambda: total / number,
            "mean_sqrt_len": lambda: total / number.sqrt(),
        }
        parts = [ways[name]() for name in self.pooling]
        pooled = parts[0].cat(*parts[1:], dim=-1) if len(parts) > 1 else parts[0]
        return pooled.normalize(dim=-1) if self.normalize else pooled

    def encode(self, texts: Sequence[str], batch: int = 32) -> Tensor:
        """A vector of each text, (n, width).

        batch  how many texts run together: as many texts of about one length

        Texts are cut at `most` tokens, and padded to one of a few lengths. For each of these and each number
        of texts (a power of two) there is one capture, which the first two such batches make.
        """
        import numpy as np

        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"encode takes a list of texts, not {texts!r:.100}")
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}")
        if self.tokenizer is None:
            raise ValueError("this encoder has no tokenizer; call it with ids, or load it from a folder")
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        width = self.width * len(self.pooling)
        found = np.zeros((len(rows), width), np.float32)
        for begin in range(0, len(rows), batch):
            some = order[begin : begin + batch]
            length = padded_length(max(1, *[len(rows[i]) for i in some]), self.most)
            ids = np.zeros((1 << (len(some) - 1).bit_length(), length), np.int32)
            mask = np.zeros(ids.shape, bool)
            for line, i in enumerate(some):
                ids[line, : len(rows[i])] = rows[i]
                mask[line, : len(rows[i])] = True
            found[some] = self._captures(self._pooled, Tensor(ids), Tensor(mask)).numpy()[: len(some)]
        return Tensor(found)

    def _pooled(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.pool(self(ids, mask), mask)


class Captures(Hidden):
    """A capture of one function for each shape of its first argument."""

    def __init__(self) -> None:
        self.jits: dict[tuple[Any, ...], Any] = {}

    def __call__(self, function: Any, *arguments: Tensor) -> Tensor:
        shape = arguments[0].shape
        if shape not in self.jits:
            self.jits[shape] = TinyJit(function)
        result: Tensor = self.jits[shape](*arguments)
        return result


def padded_length(length: int, most: int) -> int:
    """The first of `LENGTHS` that is not less, and at most `most`; beyond them a multiple of 128."""
    step = next((known for known in LENGTHS if known >= length), -(-length // 128) * 128)
    return max(length, min(step, most))


# ---- what a folder says ----


def _check(config: dict[str, Any], family: Family, origin: object) -> None:
    for key in (*family.sizes[:4], "vocab_size", "max_position_embeddings"):
        whole_number(config, key, origin)
    width, heads, activation = (config[family.sizes[0]], config[family.sizes[1]], config.get(family.sizes[4]))
    if width % heads:
        raise ValueError(f"{origin}: {heads} heads do not divide {family.sizes[0]}={width}")
    if activation not in ACTIVATIONS:
        raise NotImplementedError(
            f"{origin}: the activation {activation!r} is not known; known are {', '.join(ACTIVATIONS)}"
        )
    kind = config.get("position_embedding_type", "absolute")
    if kind != "absolute":
        raise NotImplementedError(f"{origin}: positions of type {kind!r}; only absolute ones are known")
    for key, means in (
        ("is_decoder", "a token sees only those before it"),
        ("add_cross_attention", "it also reads another text"),
    ):
        if config.get(key):
            raise NotImplementedError(
                f"{origin}: {key}={config[key]!r}, so {means}; encoders see a whole text, and no other"
            )


def _prefix(tensors: dict[str, Tensor], origin: object) -> str:
    """What stands before every name: nothing, or the name of the base model in a larger one."""
    end = "embeddings.word_embeddings.weight"
    found = [name.removesuffix(end) for name in tensors if name.endswith(end)]
    if not found:
        raise ValueError(f"{origin} has no tensor ...{end}: this kind of encoder is not supported")
    return min(found, key=len)


def _modules(place: pathlib.Path) -> tuple[tuple[str, ...], bool]:
    """How sentence-transformers pools in this folder, and whether it normalizes: by its modules.json."""
    path = place / "modules.json"
    if not path.is_file():
        return ("mean",), False
    modules = parse_json(path)
    try:
        kinds = [(str(m["type"]).rpartition(".")[2], str(m["path"])) for m in modules]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a list of modules with type and path: {error!r}") from None
    pooling: tuple[str, ...] = ("mean",)
    normalize = False
    for kind, folder in kinds:
        if kind == "Pooling":
            inner = place / folder
            if not inner.resolve().is_relative_to(place.resolve()):
                raise ValueError(f"{path} names {folder!r}, which is outside of its folder")
            pooling = _pooling(inner / "config.json")
        elif kind == "Normalize":
            normalize = True
        elif kind != "Transformer":
            raise NotImplementedError(f"{path}: the module {kind} is not known")
    return pooling, normalize


def _pooling(path: pathlib.Path) -> tuple[str, ...]:
    config = read_json(path)
    known = {
        "cls_token": "cls",
        "max_tokens": "max",
        "mean_tokens": "mean",
        "mean_sqrt_len_tokens": "mean_sqrt_len",
    }
    modes = [
        key.removeprefix("pooling_mode_")
        for key, on in config.items()
        if key.startswith("pooling_mode_") and on
    ]
    unknown = [mode for mode in modes if mode not in known]
    if unknown:
        raise NotImplementedError(f"{path}: pooling by {', '.join(unknown)} is not known")
    # side by side in this order, whatever order the file has them in
    return tuple(name for mode, name in known.items() if mode in modes) or ("mean",)


def _check_beside(place: pathlib.Path) -> None:
    """Refuse what sentence-transformers would do to texts before the tokenizer sees them."""
    for name, key in (
        ("sentence_bert_config.json", "do_lower_case"),
        ("config_sentence_transformers.json", "default_prompt_name"),
    ):
        path = place / name
        said = read_json(path).get(key) if path.is_file() else None
        if said:
            raise NotImplementedError(
                f"{path}: {key}={said!r} changes texts before they are read, which is not known; do that "
                "yourself, and take the line out"
            )


def _most_tokens(place: pathlib.Path) -> int | None:
    """How many tokens a text may have, by the files beside the model."""
    for name, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        if (place / name).is_file():
            value = read_json(place / name).get(key)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31:
                return value
    return None

"""Low-rank adapters: W·x becomes W·x + (alpha / rank)·B·A·x, and only A and B are trained (Hu et al. 2021).

The base may be in any dtype, or quantised: it is read and never written, and gradients flow through it to
what lies below. An adapter is saved by itself, in the files of Hugging Face's PEFT.
"""

from __future__ import annotations

import fnmatch
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor, no_grad
from .formats.source import shown
from .formats.writing import atomic_file
from .module import Module
from .parameters import count, need_tensors, parameter, probability
from .quantized import QuantizedTensor
from .state import get_parameters, load_state_dict, safe_load, safe_save

__all__ = ["LoRA", "LoRALinear", "add", "load"]

#: The files of an adapter, and what stands before a layer's name in them.
WEIGHTS, CONFIG, PREFIX = "adapter_model.safetensors", "adapter_config.json", "base_model.model."
#: Of what a configuration may say, what changes the numbers and is not there: the values that mean nothing.
_WITHOUT: dict[str, tuple[Any, ...]] = {
    "use_dora": (False, None),
    "fan_in_fan_out": (False, None),
    "bias": ("none", None),
    "modules_to_save": (None, []),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "lora_bias": (False, None),
}


class LoRALinear(Module):
    """A linear layer with an adapter.

    base    what has a matrix `weight` (out, in), a Tensor or a QuantizedTensor, and a `bias`
    lora_A  (rank, in), uniform as PyTorch's weights        lora_B  (out, rank), zeros at first
    """

    def __init__(self, base: Any, rank: int, scale: float, dropout: float = 0.0) -> None:
        self.base, self.scale, self.dropout = base, scale, probability("dropout", dropout)
        outs, ins = base.weight.shape
        device = base.weight.device if isinstance(base.weight, Tensor) else None
        bound = 1.0 / math.sqrt(ins)
        self.lora_A = parameter(Tensor.uniform(rank, ins, low=-bound, high=bound, device=device))
        self.lora_B = parameter(Tensor.zeros(outs, rank, device=device))
        #: the weight without the adapter, while they are merged
        self._plain: list[Any] = []

    @property
    def weight(self) -> Any:
        """The base's."""
        return self.base.weight

    @property
    def bias(self) -> Any:
        """The base's."""
        return self.base.bias

    def __call__(self, x: Tensor) -> Tensor:
        need_tensors(self, x)
        weight = self.base.weight
        if isinstance(weight, QuantizedTensor):
            y = weight.linear(x)
            y = y if self.base.bias is None else y + self.base.bias.cast(y.dtype)
        else:
            y = self.base(x)
        if self._plain:
            return y
        seen = x.dropout(self.dropout) if self.dropout else x
        added = seen.cast(self.lora_A.dtype).dot(self.lora_A.T).dot(self.lora_B.T) * self.scale
        return y + added.cast(y.dtype)

    def delta(self) -> Tensor:
        """What the adapter adds to the weight: (out, in)."""
        return self.lora_B.dot(self.lora_A) * self.scale

    def merge(self) -> None:
        """Add the adapter to the weight, which then needs no more time than the base alone."""
        if self._plain:
            return
        weight = self.base.weight
        with no_grad():
            wide = weight.dequantize() if isinstance(weight, QuantizedTensor) else weight
            merged = (wide.cast(dtypes.float32) + self.delta().detach()).cast(wide.dtype)
            self.base.weight = merged.contiguous().realize().requires_grad_(False)
        self._plain.append(weight)

    def unmerge(self) -> None:
        """The base as it was, to the bit, with the adapter beside it."""
        if self._plain:
            self.base.weight = self._plain.pop()


class LoRA:
    """The adapters of a model: `add` makes them, `load` reads them from a folder.

    layers  by name, a LoRALinear each
    """

    def __init__(
        self, model: Any, layers: dict[str, LoRALinear], rank: int, alpha: float, dropout: float, rslora: bool
    ) -> None:
        self._model, self.layers = model, layers
        self.rank, self.alpha, self.dropout, self.rslora = rank, alpha, dropout, rslora

    def __repr__(self) -> str:
        return f"<LoRA of rank {self.rank} on {len(self.layers)} layers, {self.numel():,} numbers>"

    def parameters(self) -> list[Tensor]:
        """What is trained: A and B of each layer."""
        return [each for layer in self.layers.values() for each in (layer.lora_A, layer.lora_B)]

    def numel(self) -> int:
        """How many numbers are trained."""
        return sum(each._static_numel() for each in self.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        """A and B by PEFT's names, without what stands before a layer's name."""
        found = {}
        for name, layer in self.layers.items():
            found[f"{name}.lora_A.weight"] = layer.lora_A
            found[f"{name}.lora_B.weight"] = layer.lora_B
        return found

    def merge(self) -> None:
        """Add all adapters to their weights; a quantised one becomes float32."""
        for layer in self.layers.values():
            layer.merge()

    def unmerge(self) -> None:
        """The weights as they were, to the bit, with the adapters beside them."""
        for layer in self.layers.values():
            layer.unmerge()

    def remove(self) -> None:
        """Give the model its own layers again. Merged first, they keep what was learned."""
        for name, layer in self.layers.items():
            _put(self._model, name, layer.base)

    def save(
        self,
        folder: str | os.PathLike[str],
        base_model: str | None = None,
        rename: Callable[[str], str] = str,
    ) -> None:
        """Write the adapter as PEFT does: adapter_model.safetensors and adapter_config.json.

        base_model  what the configuration says that it is for
        rename      a layer's name here → its name there, where the two differ
        """
        target = pathlib.Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        names = {name: rename(name) for name in self.layers}
        tensors = {}
        for name, tensor in self.state_dict().items():
            layer, kind = name.rsplit(".lora_", 1)
            tensors[f"{PREFIX}{names[layer]}.lora_{kind}"] = tensor
        safe_save(tensors, target / WEIGHTS, {"format": "pt"})
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base_model,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": self.dropout,
            "target_modules": sorted({name.rsplit(".", 1)[-1] for name in names.values()}),
            "use_rslora": self.rslora,
            "bias": "none",
            "fan_in_fan_out": False,
            "inference_mode": True,
        }
        with atomic_file(target / CONFIG) as file:
            file.write((json.dumps(config, indent=2) + "\n").encode())


def add(
    model: Any,
    targets: str | Sequence[str],
    rank: int = 8,
    alpha: float | None = None,
    dropout: float = 0.0,
    rslora: bool = False,
) -> LoRA:
    """Put adapters on linear layers of a model, and let nothing else of it be trained.

    targets  names: the last part of one ("q_proj"), all of it, or a pattern with * ("*.attention.*")
    rank     how many rows A has
    alpha    the adapter counts alpha / rank times (with rslora alpha / √rank); twice the rank if not given
    dropout  the part of the input that the adapter does not see in training

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> adapter = nn.lora.add(model, "layers.*", rank=2)
    >>> adapter, len(nn.state.get_parameters(model))
    (<LoRA of rank 2 on 2 layers, 44 numbers>, 4)
    """
    patterns = [targets] if isinstance(targets, str) else list(targets)
    names = [name for name, _ in _linear_layers(model) if _matches(name, patterns)]
    if not names:
        known = ", ".join(name for name, _ in _linear_layers(model)) or "none"
        raise ValueError(f"no linear layer is named {' or '.join(patterns)}; there are: {_short(known)}")
    return _added(model, names, count("rank", rank), 2 * rank if alpha is None else alpha, dropout, rslora)


def _added(model: Any, names: Sequence[str], rank: int, alpha: float, dropout: float, rslora: bool) -> LoRA:
    for weight in get_parameters(model):
        weight.requires_grad_(False)
    scale = alpha / (math.sqrt(rank) if rslora else rank)
    found = dict(_linear_layers(model))
    layers: dict[str, LoRALinear] = {}
    made: dict[int, LoRALinear] = {}  # a layer that stands in two places has one adapter
    for name in names:
        base = found[name]
        if id(base) not in made:
            made[id(base)] = layers[name] = LoRALinear(base, rank, scale, dropout)
        _put(model, name, made[id(base)])
    return LoRA(model, layers, rank, alpha, dropout, rslora)


def load(model: Any, folder: str | os.PathLike[str], rename: Callable[[str], str] = str) -> LoRA:
    """Put the adapter of a folder that `save`, or PEFT, wrote on a model.

    rename  a layer's name here → its name there, where the two differ
    """
    source = pathlib.Path(folder)
    try:
        config = json.loads((source / CONFIG).read_text(encoding="utf-8"))
        rank, alpha = config["r"], config["lora_alpha"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{source / CONFIG} is not a LoRA configuration: {error!r}") from None
    if config.get("peft_type") != "LORA":
        raise NotImplementedError(f"{source / CONFIG}: adapters of kind {config.get('peft_type')}, not LORA")
    for option, plain in _WITHOUT.items():
        if config.get(option) not in plain:
            raise NotImplementedError(
                f"{source / CONFIG}: LoRA with {option}={config[option]!r} is not supported"
            )
    found = safe_load(source / WEIGHTS).items()
    tensors = {name.removeprefix(PREFIX): each for name, each in found if isinstance(each, Tensor)}
    there = {rename(name): name for name, _ in _linear_layers(model)}
    wanted = list(dict.fromkeys(name.rsplit(".lora_", 1)[0] for name in tensors))
    unknown = [name for name in wanted if name not in there]
    if unknown or not wanted:
        text = f"is for {shown(unknown[0])}, and the model has no such layer" if unknown else "is empty"
        raise ValueError(f"{source / WEIGHTS} {text} (rename= maps the names of layers to those in the file)")
    layers = dict(_linear_layers(model))
    for name, tensor in tensors.items():
        outs, ins = layers[there[name.rsplit(".lora_", 1)[0]]].weight.shape
        shape = (rank, ins) if name.endswith(".lora_A.weight") else (outs, rank)
        if tensor.shape != shape:
            raise ValueError(
                f"{source / WEIGHTS}: {shown(name)} has shape {shape_text(tensor.shape)}, and the model's "
                f"layer needs {shape_text(shape)}"
            )
    dropout, rslora = float(config.get("lora_dropout") or 0.0), bool(config.get("use_rslora"))
    adapter = _added(model, [there[name] for name in wanted], int(rank), float(alpha), dropout, rslora)
    renamed = {
        f"{there[layer]}.lora_{kind}": value.cast(dtypes.float32) if value.dtype != dtypes.float32 else value
        for name, value in _here(tensors, adapter).items()
        for layer, kind in [name.rsplit(".lora_", 1)]
    }
    load_state_dict(adapter.state_dict(), renamed, verbose=False)
    return adapter


def _here(tensors: Mapping[str, Tensor], adapter: LoRA) -> dict[str, Tensor]:
    """The tensors of a file where the adapter is."""
    device = adapter.parameters()[0].device
    return {name: value.to(device) for name, value in tensors.items()}


# *** the layers of a model by name


def _is_linear(value: Any) -> bool:
    weight = getattr(value, "weight", None)
    is_matrix = isinstance(weight, (Tensor, QuantizedTensor)) and len(weight.shape) == 2
    return is_matrix and hasattr(value, "bias") and callable(value) and not isinstance(value, LoRALinear)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(str(n), part) for n, part in enumerate(value)]
    if isinstance(value, (Tensor, QuantizedTensor, type, str, bytes)):
        return []
    return list(getattr(value, "__dict__", {}).items())


def _linear_layers(model: Any) -> Iterator[tuple[str, Any]]:
    """The linear layers of a model, by the path to them."""
    todo: list[tuple[str, Any, frozenset[int]]] = [("", model, frozenset())]
    while todo:
        name, value, outer = todo.pop()
        if id(value) in outer:
            continue
        if _is_linear(value) and name:
            yield name, value
            continue
        inside = outer | {id(value)}
        parts = [(f"{name}.{key}" if name else key, part, inside) for key, part in _attributes(value)]
        todo.extend(reversed(parts))


def _put(model: Any, name: str, layer: Any) -> None:
    """Let another layer stand at a path. A tuple on the way is made anew."""
    holder, _, key = name.rpartition(".")
    value = model
    for part in holder.split(".") if holder else []:
        value = dict(_attributes(value))[part]
    if isinstance(value, tuple):
        _put(model, holder, type(value)([layer if str(n) == key else each for n, each in enumerate(value)]))
    elif isinstance(value, list):
        value[int(key)] = layer
    elif isinstance(value, Mapping):
        own = next(each for each in value if str(each) == key)
        value[own] = layer  # type: ignore[index]
    else:
        setattr(value, key, layer)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(name, each) if "*" in each else name == each or name.endswith(f".{each}")
        for each in patterns
    )


def _short(text: str) -> str:
    return text if len(text) <= 400 else f"{text[:397]}..."

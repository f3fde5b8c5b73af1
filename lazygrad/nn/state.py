"""Weights: the tensors of a model by name; `formats` has the files that they come from.

A model is any object. Its tensors are found through attributes, lists, tuples and dicts; the path to one is
its name: `layers.0.weight`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ..device import Device
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.owners import show_model
from .formats.safetensors import read_metadata, read_safetensors, write_safetensors
from .formats.source import Path, shown
from .quantized import QuantizedTensor

#: How many tensors are loaded between two movements of the progress bar.
TOGETHER = 32

# ---- the tensors of a model ----

#: What has attributes that belong to code and not to a model.
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


def get_state_dict(obj: Any, prefix: str = "") -> dict[str, Tensor]:
    """Every tensor of a model, by name. A tensor that two paths lead to has two names.

    prefix  stands before every name, with a dot between them
    """
    show_model(obj)
    found: dict[str, Tensor] = {}
    # Entries still to look at, the first on top: (name, object, the ids of the objects it lies in).
    todo: list[tuple[str, Any, frozenset[int]]] = [(prefix.strip("."), obj, frozenset())]
    while todo:
        name, value, outer = todo.pop()
        if isinstance(value, Tensor):
            if name in found and found[name] is not value:
                raise ValueError(f"two tensors of the model have the name {name!r}")
            found[name] = value
        elif id(value) not in outer:  # a part may know the whole it belongs to
            inside = outer | {id(value)}
            parts = [(f"{name}.{key}" if name else str(key), part, inside) for key, part in members_of(value)]
            todo.extend(reversed(parts))
    return found


#: The attribute of a Module with the names of its buffers that no file has.
UNSAVED = "_unsaved_buffers"


class Hidden:
    """What a model or an optimizer holds that is no part of its state."""


class Waiting(Hidden):
    """What a layer was made with, as long as it has no weights: its first call makes them."""

    made = False  #: whether there ever was one: else nobody needs to look for them

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs
        Waiting.made = True

    def text(self) -> str:
        """The arguments."""
        return ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())])


def need_weights(obj: Any) -> None:
    """Raise where a layer of a model still waits for its first call, and so has no weights to train."""
    visited: dict[int, Any] = {}
    todo = [obj] if Waiting.made else []
    while todo:
        value = todo.pop()
        if isinstance(value, Waiting):
            raise ValueError(
                f"{value.name}({value.text()}) has no weights before its first call: call the model on an "
                "example, then ask for its parameters"
            )
        if id(value) not in visited and not isinstance(value, Tensor):
            visited[id(value)] = value
            todo.extend(reversed([part for _, part in members_of(value)]))


def members_of(value: Any, unsaved: bool = False) -> Iterator[tuple[Any, Any]]:
    """What an object consists of: (name, part).

    unsaved  also the buffers of a Module that are no part of its state (`register_buffer`)
    """
    if isinstance(value, Hidden):
        return
    if isinstance(value, QuantizedTensor):
        yield from value.planes.items()
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    elif not isinstance(value, _CODE):
        own = getattr(value, "__dict__", {})
        left_out = () if unsaved else own.get(UNSAVED, ())
        yield from (own.items() if not left_out else ((k, v) for k, v in own.items() if k not in left_out))
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot != "__dict__" and hasattr(value, slot):
                    yield slot, getattr(value, slot)


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of a model that are trained: those that require a gradient, each once."""
    need_weights(obj)
    unique = {id(tensor): tensor for tensor in get_state_dict(obj).values() if tensor.requires_grad}
    return list(unique.values())


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
) -> None:
    """Write the values of a state dict into the tensors of a model, in place.

    strict   names that only one of the two has raise; otherwise they stay, and `verbose` prints them
    verbose  show progress on a terminal
    consume  take the tensors out of the state dict, so that their memory is free once they are written

    Everything is checked before the first tensor is written.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"a state dict must be a dict of Tensors by name, not a {type(state_dict).__name__}")
    targets = get_state_dict(model)
    missing = [name for name in targets if name not in state_dict]
    unknown = [name for name in state_dict if name not in targets]
    if missing or unknown:
        text = _difference(missing, unknown)
        if strict:
            raise ValueError(f"{text} (strict=False loads what both have)")
        if verbose:
            print(text, file=sys.stderr)
    names = [name for name in targets if name in state_dict]
    for name in names:
        _check_fits(name, targets[name], state_dict[name])

    from tqdm import tqdm

    for name in names:
        value = state_dict.pop(name) if consume else state_dict[name]
        targets[name].assign(value.detach().shard_like(targets[name]))
    quiet = None if verbose else True  # None: no bar where stderr is no terminal
    with tqdm(total=len(names), desc="loading weights", unit="tensor", leave=False, disable=quiet) as bar:
        for begin in range(0, len(names), TOGETHER):
            some = [targets[name] for name in names[begin : begin + TOGETHER]]
            Tensor.realize(*some)
            bar.update(len(some))


def _difference(missing: list[str], unknown: list[str]) -> str:
    parts = []
    for what, names in (("the state dict lacks", missing), ("the model has no", unknown)):
        if names:
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            parts.append(f"{what} {', '.join(map(shown, names[:8]))}{more}")
    return "; ".join(parts)


def _check_fits(name: str, target: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        how = "value.dequantize()" if isinstance(value, QuantizedTensor) else "Tensor(value.numpy())"
        raise TypeError(f"{name}: a state dict holds Tensors, not {kind}; {how} makes one")
    if value.shape != target.shape:
        raise ValueError(
            f"{name}: the model has shape {shape_text(target.shape)}, "
            f"the state dict {shape_text(value.shape)}"
        )
    if value.dtype is not target.dtype:
        raise TypeError(
            f"{name}: the model has {target.dtype}, the state dict {value.dtype}; cast one of them first"
        )
    if value.device != target.device and Device.runs_kernels(value.device):
        raise ValueError(
            f"{name}: the model is on {target.device}, the state dict on {value.device}; "
            "move one of them with .to()"
        )


# ---- files: their readers are in `formats`, under these names for scripts ----

safe_save = write_safetensors


def safe_load(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name. Each stays on device DISK, and is read when it is used.

    What is computed with one is computed with its copy on the default device (on that of the other tensors
    of a call), which is made once; `.to(device)` makes one that is kept apart.
    """
    return {name: value for name, value in read_safetensors(path).items() if isinstance(value, Tensor)}


def safe_load_metadata(path: Path) -> dict[str, str]:
    """The texts that a safetensors file carries along."""
    return read_metadata(path)

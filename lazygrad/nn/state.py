"""Weights: the tensors of a model by name, and files of them in the safetensors format.

A model is any object. Its tensors are found through attributes, lists, tuples and dicts; the path to one is
its name: `layers.0.weight`.
"""

from __future__ import annotations

import math
import os
import pathlib
import secrets
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ..device import Device
from ..dtype import DType, dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import shape_text
from ..tensor import Tensor
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
            parts = [(f"{name}.{key}" if name else str(key), part, inside) for key, part in _parts(value)]
            todo.extend(reversed(parts))
    return found


class Hidden:
    """What a model or an optimizer holds that is no part of its state."""


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """What an object consists of: (name, part)."""
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
        yield from getattr(value, "__dict__", {}).items()
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot != "__dict__" and hasattr(value, slot):
                    yield slot, getattr(value, slot)


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of a model that are trained: those that require a gradient, each once."""
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
        raise TypeError(f"a state dict is a dict of Tensors by name, not a {type(state_dict).__name__}")
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


def shown(text: str) -> str:
    """A name from a file as it may stand in a message: on one line, not too long, nothing for a terminal."""
    short = text if len(text) <= 100 else f"{text[:97]}..."
    return short if short.isprintable() else ascii(short)


def _check_fits(name: str, target: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise TypeError(f"{name}: a state dict holds Tensors, not {kind}; Tensor(value.numpy()) makes one")
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


# ---- files ----

#: The names of the dtypes in the header of a file, and as the library takes them.
_NAMES: dict[str, tuple[DType, str]] = {
    "BOOL": (dtypes.bool, "bool"),
    "I8": (dtypes.int8, "int8"),
    "U8": (dtypes.uint8, "uint8"),
    "I16": (dtypes.int16, "int16"),
    "U16": (dtypes.uint16, "uint16"),
    "I32": (dtypes.int32, "int32"),
    "U32": (dtypes.uint32, "uint32"),
    "I64": (dtypes.int64, "int64"),
    "U64": (dtypes.uint64, "uint64"),
    "F8_E4M3": (dtypes.fp8e4m3, "float8_e4m3fn"),
    "F8_E5M2": (dtypes.fp8e5m2, "float8_e5m2"),
    "F16": (dtypes.float16, "float16"),
    "BF16": (dtypes.bfloat16, "bfloat16"),
    "F32": (dtypes.float32, "float32"),
    "F64": (dtypes.float64, "float64"),
}
_LIBRARY_NAME = dict(_NAMES.values())
_INTEGERS = {1: dtypes.uint8, 2: dtypes.uint16}


def safe_save(
    tensors: Mapping[str, Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors to a safetensors file. An older file stays until the new one is complete.

    metadata  texts that the file carries along
    """
    import numpy as np
    from safetensors import TensorSpec, serialize_file

    for key, text in (metadata or {}).items():
        if not (isinstance(key, str) and isinstance(text, str)):
            raise TypeError(f"metadata holds texts, not {key!r}: {text!r}")
    target = pathlib.Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no folder {target.parent} to write {target.name} into")
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors are saved by name, from a dict, not from a {type(tensors).__name__}")
    arrays: dict[str, Any] = {}  # held until the file is written: the library reads their memory
    specs: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"tensors are named by strings, not {name!r}")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: only Tensors are saved, not {type(tensor).__name__}")
        array = arrays[name] = np.asarray(_bits(tensor))
        kind = _LIBRARY_NAME[tensor.dtype]
        specs[name] = TensorSpec(
            dtype=kind, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        serialize_file(specs, part, metadata=dict(metadata) if metadata else None)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _bits(tensor: Tensor) -> Tensor:
    """The tensor in a dtype that numpy has, not on disk: bfloat16 and fp8 as the integers of their bits."""
    here = tensor.detach()
    if not Device.runs_kernels(here.device):
        here = here.to("CPU")
    return here if here.dtype.fmt is not None else here.bitcast(_INTEGERS[here.dtype.itemsize])


def safe_load(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name. Each is on device DISK: `.to("CPU")` reads it."""
    file = _existing(path)
    with _opened(file) as opened:
        names = opened.offset_keys()
        slices = [opened.get_slice(name) for name in names]
        shapes = [tuple(piece.get_shape()) for piece in slices]
        kinds = [piece.get_dtype() for piece in slices]
    for name, kind in zip(names, kinds, strict=True):
        if kind not in _NAMES:
            raise NotImplementedError(
                f"{file}: tensor {shown(name)} has dtype {kind}, which lazygrad does not have"
            )
    whole = Tensor(file)
    tensors: dict[str, Tensor] = {}
    # The library has checked that in this order the tensors fill what follows the header.
    with open(file, "rb") as raw:
        offset = 8 + int.from_bytes(raw.read(8), "little")
    for name, shape, kind in zip(names, shapes, kinds, strict=True):
        dtype = _NAMES[kind][0]
        tensors[name] = _part_of(whole, offset, shape, dtype)
        offset += math.prod(shape) * dtype.itemsize
    if offset != whole.numel():
        raise ValueError(f"{file} is no safetensors file: its tensors take {offset} of {whole.numel()} bytes")
    return tensors


def _part_of(whole: Tensor, offset: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Some bytes of a file as a tensor."""
    count = math.prod(shape)
    if count == 0:
        return Tensor.empty(*shape, dtype=dtype, device="CPU")
    return Tensor(UOp(Ops.BUFFER_VIEW, dtype, (whole.uop,), (count, offset))).reshape(shape)


def safe_load_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that a safetensors file carries along."""
    with _opened(_existing(path)) as opened:
        return dict(opened.metadata() or {})


def _existing(path: str | os.PathLike[str]) -> pathlib.Path:
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    return file


def _opened(file: pathlib.Path) -> Any:
    """The file opened by the safetensors library, which checks its header."""
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(file, framework="numpy")
    except SafetensorError as error:
        raise ValueError(f"{file} is no safetensors file, or a damaged one: {error}") from error

"""Writes a page: captures the function for WebGPU, describes it as plain data, and writes the files."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config import Context
from ...dtype import DType, dtypes
from ...engine.index_errors import checks_of
from ...ir.index import sint
from ...ir.reports import WORDS
from ...ir.uop import UOp
from ...jit.captured import Captured
from ...jit.results import OutputPart
from ...jit.specs import BoundSpec
from ...jit.tensor_memory import tensor_on, version_in, whole_memory
from ...jit.tensor_specs import TensorSpec
from ...jit.tinyjit import TinyJit
from ...nn.formats.safetensors import write_safetensors
from ...nn.formats.writing import atomic_file
from ...schedule.graph.versions import in_shape
from ...shape import shape_of
from ...tensor import Tensor
from ...tensor.storage import Storage
from ..capturing import captured_with
from ..signature import OwnResults, identifier, leaves, name_arguments, variables_in, weight_names
from .kernels import Kernels, refused
from .memory import MOST_BYTES, PageBuffer, PageMemory
from .sizes import size_form

#: The files of a page that are the same for all.
SAME = ("page.js", "runtime.js")
#: A description of another layout is another version; runtime.js has the same.
VERSION = 1

_TYPES = {
    dtypes.bool: "bool",
    dtypes.int8: "int8",
    dtypes.uint8: "uint8",
    dtypes.int16: "int16",
    dtypes.uint16: "uint16",
    dtypes.int32: "int32",
    dtypes.uint32: "uint32",
    dtypes.int64: "int64",
    dtypes.uint64: "uint64",
    dtypes.float16: "float16",
    dtypes.bfloat16: "bfloat16",
    dtypes.float32: "float32",
    dtypes.fp8e4m3: "fp8e4m3",
    dtypes.fp8e5m2: "fp8e5m2",
}


def save_page(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], folder: str) -> None:
    """Write index.html, page.js, runtime.js, model.js, kernels.wgsl, and weights.safetensors if there are
    any weights.
    """
    inner = fn.fxn if isinstance(fn, TinyJit) else fn
    wrapped = OwnResults(inner)
    with Context(PLAN_FOR="webgpu"):
        captured, _ = captured_with(wrapped, args, kwargs)
    name_arguments(captured, inner, args)
    page = _Page(captured, wrapped.named, inner)
    os.makedirs(folder, exist_ok=True)
    page.write(Path(folder))


class _Page:
    """What a page is made of."""

    def __init__(self, captured: Captured, results: Sequence[tuple[str, int]], fn: Any) -> None:
        self.captured, self.name = captured, getattr(fn, "__name__", type(fn).__name__)
        replay = captured.replay
        actions = [action for batch in replay.batches for action in batch.actions]
        self._taken: set[str] = set()
        self.inputs, self.variables = self._arguments()
        self.outputs = self._results(results)
        self.memory = PageMemory(replay, actions, self._changing())
        self.kernels = Kernels(self.memory, replay.integers, len(replay.sources))
        for action in actions:
            self.kernels.add(action)
        self._require_room()
        self.weights = self._weights(fn)

    def _require_room(self) -> None:
        sizes = [buffer.nbytes for buffer in self.memory.buffers]
        read = sum(sizes[number] for number in {row["buffer"] for row in self.outputs})
        largest = max([*sizes, self.kernels.copied, read])
        if largest > MOST_BYTES:
            what = "the results together take" if largest == read else "a buffer would take"
            raise refused(f"{what} {largest:,} bytes, and WebGPU gives {MOST_BYTES:,} at once")

    # *** arguments and results

    def _arguments(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        inputs: list[dict[str, Any]] = []
        variables: dict[str, dict[str, Any]] = {}
        slots = {number: place for place, number in enumerate(self.captured.slots)}
        for spec in leaves([*self.captured.args, *self.captured.kwargs.values()]):
            label = re.sub(r"^argument `(\w+)`", r"\1", spec.name)
            if isinstance(spec, TensorSpec) and spec.first is None:
                inputs.append({
                    "name": identifier(spec.name, self._taken),
                    "label": label,
                    "dtype": _type_name(spec.dtype, label),
                    "shape": [size_form(size) for size in spec.shape],
                    "buffer": slots.get(spec.number),
                    "written": spec.changed,
                })  # fmt: skip
                for variable in variables_in(spec.shape):
                    self._variable(variable, variables)
            elif isinstance(spec, BoundSpec):
                self._variable(spec.variable, variables)
        return inputs, list(variables.values())

    def _variable(self, variable: UOp, found: dict[str, dict[str, Any]]) -> None:
        own, low, high = variable.arg
        if own not in found:
            name = identifier(own, self._taken)
            found[own] = {"name": name, "label": own, "variable": own, "low": low, "high": high}

    def _changing(self) -> list[tuple[str, int]]:
        """The kind and bytes of the memory of arguments, then of results."""
        specs = {spec.number: spec for spec in self.captured.specs}
        slots = [specs[number] for number in self.captured.slots]
        outputs = [output.likes[0] for output in self.captured.outputs]
        return [
            *[("argument", spec.size * spec.dtype.itemsize) for spec in slots],
            *[("result", like.nbytes) for like in outputs],
        ]

    def _results(self, results: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
        found = []
        for label, number in results:
            made = self.captured.made[number]
            if not isinstance(made, OutputPart):
                raise refused(f"the function computes no value for {label}")
            output = self.captured.outputs[made.output]
            (like,) = output.likes
            found.append({
                "name": identifier(label, self._taken),
                "label": label,
                "dtype": _type_name(like.dtype, label),
                "shape": [size_form(size) for size in self._shape(made)],
                "buffer": len(self.captured.slots) + made.output,
            })  # fmt: skip
        return found

    def _shape(self, made: OutputPart) -> tuple[sint, ...]:
        output = self.captured.outputs[made.output]
        if not output.symbolic:
            return tuple(output.views[made.index].tracker.shape)
        moves = output.layout_views[made.index][1]
        node = version_in(output.likes[0].fresh())
        for op, argument in moves:
            node = type(node)(op, node.dtype, (node,), argument)
        return shape_of(node)

    # *** weights

    def _weights(self, fn: Any) -> list[tuple[str, int, Tensor]]:
        """(name, buffer, what it begins as) of what does not begin with zeros."""
        named = {}
        for name, tensor in weight_names(fn).values():
            try:
                memory = whole_memory(tensor) if isinstance(tensor.device, str) else None
            except (KeyError, RuntimeError, AttributeError):  # it is not in memory
                continue
            if memory is not None and all(isinstance(size, int) for size in tensor.shape):
                named[memory[0].base] = name, tensor.shape
        found, taken = [], set[str]()
        for number, buffer in enumerate(self.memory.buffers):
            held = buffer.initial
            if held is None:
                continue
            name, shape = named.get(held, (f"memory_{number}", (held.size,)))
            if held.size != _count(shape):
                shape = (held.size,)
            name = name or "weight"
            while name in taken or name == "__metadata__":
                name += "_"
            taken.add(name)
            version = version_in(held)
            found.append((name, number, tensor_on(Tensor, Storage(version), in_shape(version, shape))))
        return found

    # *** the description

    def _sources(self) -> list[dict[str, Any]]:
        """What the integers are that change from call to call."""
        found: list[dict[str, Any]] = []
        for key in self.captured.replay.sources:
            if key == "seed":
                found.append({"kind": "seed"})
            elif key[0] == "base":  # type: ignore[index]
                found.append({"kind": "base", "plus": key[1]})  # type: ignore[index]
            else:
                found.append({"kind": "variable", "name": key[1]})  # type: ignore[index]
        return found

    def _reports(self) -> list[dict[str, Any]]:
        """What kernels check: of each word that may be set, what it says."""
        found = []
        for number, (sites, ast) in self.memory.reports.items():
            checks = checks_of(ast)
            for place, site in enumerate(sites):
                where = "" if site is None else f" (in {site[0]})"
                size, problem = checks[place].size, checks[place].problem
                found.append({
                    "buffer": number,
                    "offset": 8 * WORDS * place,
                    "size": str(size),
                    "problem": problem,
                    "where": where,
                })  # fmt: skip
        return found

    def description(self, header: int, total: int) -> tuple[str, dict[str, Any]]:
        """The text of the kernels, and all else; `header` and `total` are bytes of the weights' file."""
        text, kernels = self.kernels.text()
        draws = self.captured.draws
        return text, {
            "version": VERSION,
            "name": self.name,
            "inputs": self.inputs,
            "variables": self.variables,
            "outputs": self.outputs,
            "buffers": [_buffer_form(buffer) for buffer in self.memory.buffers],
            "copied": self.kernels.copied,
            "weights": {
                "header": header,
                "total": total,
                "tensors": [
                    {"name": name, "buffer": number, "bytes": tensor.nbytes(), "sha256": _digest(tensor)}
                    for name, number, tensor in self.weights
                ],
            },
            "text": kernels[-1]["text"][1] if kernels else 0,
            "kernels": kernels,
            "steps": self.kernels.steps,
            "sources": self._sources(),
            "draws": draws.total if draws.start is not None else None,
            "reports": self._reports(),
        }

    def write(self, folder: Path) -> None:
        weights = folder / "weights.safetensors"
        header = total = 0
        if self.weights:
            write_safetensors({name: tensor for name, _, tensor in self.weights}, weights)
            total = weights.stat().st_size
            with open(weights, "rb") as file:
                header = 8 + int.from_bytes(file.read(8), "little")
        elif weights.exists():  # of what was exported here before
            weights.unlink()
        text, description = self.description(header, total)
        _write(folder / "kernels.wgsl", text)
        _write(folder / "model.js", _model(description))
        here = Path(__file__).parent
        for name in SAME:
            _write(folder / name, (here / name).read_text(encoding="utf-8"))
        page = (here / "index.html").read_text(encoding="utf-8")
        _write(folder / "index.html", page.replace("TITLE", html.escape(self.name)))


def _count(shape: Sequence[Any]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _type_name(dtype: DType, name: str) -> str:
    """What runtime.js calls the type of an argument or a result."""
    if dtype is dtypes.float64:
        raise refused(f"{name} is float64, which WebGPU lacks; cast it to float32")
    if dtype not in _TYPES:
        raise refused(f"{name} is {dtype}")
    return _TYPES[dtype]


def _buffer_form(buffer: PageBuffer) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": buffer.kind, "bytes": buffer.nbytes}
    return {**found, "written": True} if buffer.changed else found


def _digest(tensor: Tensor) -> str:
    (memory,) = whole_memory(tensor) or (None,)
    assert memory is not None  # it was made on memory
    return hashlib.sha256(memory.as_buffer()).hexdigest()


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def _model(description: Mapping[str, Any]) -> str:
    """The module of one model. Names that users chose are texts in JSON, and `<` in them is escaped."""
    rows = []
    for key, value in description.items():
        one_each = isinstance(value, list) and value and isinstance(value[0], dict)
        text = ",\n".join(f"    {_json(each)}" for each in value) if one_each else _json(value)
        rows.append(f"  {_json(key)}: [\n{text}\n  ]" if one_each else f"  {_json(key)}: {text}")
    return _MODEL.replace("DESCRIPTION", "{\n" + ",\n".join(rows) + "\n}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


_MODEL = """\
// Written by lazygrad.export. In another page:
//   import { load } from "./model.js";
//   const model = await load(undefined, { onprogress: ({ loaded, total }) => {} });
//   const outputs = await model.run({ name: typedArray });
import { openModel } from "./runtime.js";

export const description = DESCRIPTION;

// The model, ready to run. `folder` is the URL of the folder that has kernels.wgsl and the weights.
export function load(folder = new URL(".", import.meta.url), options = {}) {
  return openModel(description, folder, options);
}
"""

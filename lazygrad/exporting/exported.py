"""What a file gives: a function that runs the kernels of a capture, without a graph or a compiler."""

from __future__ import annotations

import os
import threading
from typing import Any

from ..device import Buffer
from ..dtype import DTYPES_BY_NAME
from ..jit.captured import Captured
from ..jit.errors import Changed, Mismatch
from ..jit.forms import argument_form, argument_spec, moves_of_rows, moves_rows, result_form, result_of
from ..jit.layout import on_one_device
from ..jit.outputs import Output
from ..jit.results import Argument, ArgumentPart, Constant, Made, OutputPart
from ..jit.specs import Call, Spec
from ..jit.tensor_memory import (
    copied_whole,
    memory_and_moves,
    memory_of,
    settled,
    storage_in_memory,
    tensor_on,
    version_in,
)
from ..jit.tensor_specs import TensorSpec
from ..jit.writable_memory import begin_writes, end_writes, is_watched
from ..locks import uninterrupted
from ..schedule.graph.versions import buffer_of, in_shape
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.random import sampling
from ..tensor.storage import Storage
from .container import Container, FileError, Sections, write_file
from .launches import Launches, launches_form

KIND = "captured function"


def save_captured(captured: Captured, call: Call, name: str, path: str) -> None:
    """Write a capture; `call` is one that fits it."""
    sections = Sections()
    replay = captured.replay
    draws = captured.draws
    description = {
        "kind": KIND,
        "name": name,
        "arguments": [argument_form(spec) for spec in captured.args],
        "keywords": {key: argument_form(spec) for key, spec in captured.kwargs.items()},
        "launches": launches_form(replay, sections),
        "slots": captured.slots,
        "sources": [list(key) if isinstance(key, tuple) else key for key in replay.sources],
        "draws": draws.total if draws.start is not None else None,
        "outputs": [_output_form(output) for output in captured.outputs],
        "made": [_made_form(made, captured, call, sections) for made in captured.made],
        "result": result_form(captured.build, len(captured.made)),
    }
    write_file(path, description, sections)


def _output_form(output: Output) -> dict[str, Any]:
    (like,) = output.likes
    parts = [moves_rows(moves) for _, moves in output.layout_views]
    return {"device": like.device, "size": like.size, "dtype": like.dtype.name, "parts": parts}


def _made_form(made: Made, captured: Captured, call: Call, sections: Sections) -> list[Any]:
    if isinstance(made, Argument):
        return ["argument", made.number]
    if isinstance(made, ArgumentPart):
        return ["part", made.number, made.size, moves_rows(made.moves)]
    if isinstance(made, OutputPart):
        return ["output", made.output, made.index]
    tensor = made(call, [])
    place = memory_and_moves(tensor)
    if place is not None and place[0][0].base in captured.replay.mutated:
        raise NotImplementedError(
            "an exported function cannot return a view of memory that it keeps and writes: return "
            "tensor.clone()"
        )
    if not all(isinstance(size, int) for size in tensor.shape):
        raise NotImplementedError(
            "exporting a function that returns a tensor of symbolic size from outside is not supported"
        )
    _, buffer = memory_of(copied_whole(tensor))
    return ["constant", buffer.device, buffer.dtype.name, list(tensor.shape), sections.add(buffer.tobytes())]


class Exported:
    """A function out of a file: call it with arguments like those that it was exported with.

    A tensor that it gets must have the shape, dtype and device of the example; a bound Variable may have
    another value; everything else must be as it was. What the function keeps (a cache, a counter) is in
    memory of this object, and begins as it was in the file.

    name     what the function was called        kernels  how many kernels a call runs
    """

    def __init__(self, path: str | os.PathLike[str], verify: bool = False) -> None:
        container = Container(os.fspath(path))
        form = container.description
        if form.get("kind") != KIND:
            raise FileError(f"{container.path} holds no captured function, but a {form.get('kind')}")
        self._path, self.name = container.path, str(form["name"])
        self._args = [argument_spec(each) for each in form["arguments"]]
        self._kwargs = {key: argument_spec(each) for key, each in form["keywords"].items()}
        self._launches = Launches(container)
        self._slots: list[int] = form["slots"]
        self._sources = form["sources"]
        self._draws: int | None = form["draws"]
        self._outputs = [_output_of(each) for each in form["outputs"]]
        self._made = [_made_of(each, container) for each in form["made"]]
        self._result = form["result"]
        self._tensors = [spec for spec in self._specs() if isinstance(spec, TensorSpec)]
        self._changed = [spec.number for spec in self._tensors if spec.changed]
        self._lock = threading.RLock()
        self._checked = False
        if verify:
            self._launches.check_contents()

    def _specs(self) -> list[Spec]:
        todo: list[Spec] = [*self._args, *self._kwargs.values()]
        found = []
        while todo:
            spec = todo.pop(0)
            found.append(spec)
            todo[:0] = spec.members()
        return found

    @property
    def kernels(self) -> int:
        count: int = self._launches.kernels
        return count

    def __repr__(self) -> str:
        texts = [
            f"{spec.name.removeprefix('argument ').strip('`')}: {shape_text(spec.shape)} {spec.dtype.name}"
            for spec in self._tensors
            if spec.first is None
        ]
        return f"<{self.name}({', '.join(texts)}), {self.kernels} kernels from {self._path}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if not self._checked:
                self._launches.check_contents()
                self._checked = True
            return self._run(self._read(args, kwargs))

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if len(args) != len(self._args) or kwargs.keys() != self._kwargs.keys():
            names = ", ".join(self._kwargs) or "no keywords"
            raise TypeError(
                f"{self.name} takes {len(self._args)} arguments and {names}, not {len(args)} and "
                f"{', '.join(kwargs) or 'no keywords'}"
            )
        call = Call()
        try:
            for spec, value in zip(self._args, args, strict=True):
                spec.read(value, call)
            for key, spec in self._kwargs.items():
                spec.read(kwargs[key], call)
        except Changed as changed:
            raise TypeError(f"{self.name} was exported for other arguments: {changed}") from None
        except Mismatch as mismatch:
            call.mismatch = mismatch
        if call.mismatch is not None:
            raise ValueError(f"{self.name} was exported for other arguments: {call.mismatch}")
        if self._changed:
            self._require_disjoint(call)
        return call

    def _require_disjoint(self, call: Call) -> None:
        bases = [call.buffers[number].base for number in self._slots]
        for number in self._changed:
            if bases.count(call.buffers[number].base) > 1:
                raise ValueError(
                    f"{self.name} writes to an argument that is in the memory of another one: pass a clone()"
                )

    def _run(self, call: Call) -> Any:
        writes = []
        for number in self._changed:
            storage = storage_in_memory(call.tensors[number])
            if is_watched(storage, call.buffers[number].base):
                writes.append(storage)
        if writes:
            begin_writes(writes)
            for number in self._changed:
                call.buffers[number] = buffer_of(settled(storage_in_memory(call.tensors[number])))
        handles = [call.buffers[number]._buf for number in self._slots]
        made = []
        for output in self._outputs:
            (buffer,), tensors = output.take(call.binds)
            handles.append(buffer._buf)
            made.append(tensors)
        values = self._values(call)
        if writes:
            with uninterrupted():
                try:
                    self._launches.run(handles, values)
                finally:
                    end_writes(writes)
        else:
            self._launches.run(handles, values)
        return result_of(self._result, [each(call, made) for each in self._made])

    def _values(self, call: Call) -> list[int]:
        """The integers that change: of Variables, and where this call's random numbers begin."""
        seed, base = (0, 0) if self._draws is None else sampling.draw(self._draws)
        values = []
        for key in self._sources:
            if key == "seed":
                values.append(seed)
            else:
                values.append(base + key[1] if key[0] == "base" else call.binds[key[1]])
        return values


def _output_of(form: dict[str, Any]) -> Output:
    like = Buffer(form["device"], form["size"], DTYPES_BY_NAME[form["dtype"]])
    parts = [(Tensor, moves_of_rows(rows)) for rows in form["parts"]]
    return Output([like], parts, on_one_device(like.device))


def _made_of(form: list[Any], container: Container) -> Made:
    kind, *rest = form
    if kind == "argument":
        return Argument(*rest)
    if kind == "output":
        return OutputPart(*rest)
    if kind == "part":
        number, size, moves = rest
        return ArgumentPart(Tensor, number, size, moves_of_rows(moves))
    device, dtype, shape, section = rest
    size = 1
    for each in shape:
        size *= each
    buffer = (
        Buffer(device, size, DTYPES_BY_NAME[dtype]).allocate_uncleared().copyin(container.section(section))
    )
    version = version_in(buffer)
    return Constant(tensor_on(Tensor, Storage(version), in_shape(version, tuple(shape))))

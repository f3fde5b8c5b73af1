"""The kernels of a page: their text, what is bound to each, and the numbers that it is given."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...codegen.compile import compile_kernel
from ...codegen.direct_kernels import record_of
from ...dtype import DType, PtrDType
from ...engine.actions import Action
from ...ir.own import OwnKernel
from ...ir.uop import UOp
from ...renderer import ProgramSpec, parameters
from ...renderer.cstyle import WGSLRenderer
from ...renderer.cstyle.wgsl import MOST_GROUPS, folded, numbers_format
from ...renderer.cstyle.wgsl_kernel import entry_name
from .memory import ALIGNED, MOST_BOUND, PageMemory, Part

_RENDERER = WGSLRenderer()
#: Storage buffers of a kernel, as many as every implementation of WebGPU binds.
MOST_BUFFERS = 8


def refused(reason: str) -> NotImplementedError:
    """Why a function is no page."""
    return NotImplementedError(f"exporting to a page is not supported: {reason}")


class Kernel(NamedTuple):
    """A program: `stored` says of each buffer whether it is written, `elements` what it has."""

    spec: ProgramSpec
    text: str
    stored: tuple[bool, ...]
    elements: tuple[DType, ...]


class Kernels:
    """What a page runs, made one action at a time: `texts` of programs, and `steps` that use them."""

    def __init__(self, memory: PageMemory, integers: Sequence[int], changing: int) -> None:
        """integers  those of the replay, of which the first `changing` are other ones in every call"""
        self.memory, self.integers, self.changing = memory, integers, changing
        self.kernels: list[Kernel] = []
        self.steps: list[dict[str, Any]] = []
        #: bytes of the buffer from which reading kernels are given a copy of what they also write
        self.copied = 0
        self._known: dict[UOp, int] = {}

    def add(self, action: Action) -> None:
        """The next thing that runs."""
        parts = [self.memory.part(place, action) for place in action.slots]
        if action.runner is None:
            self.steps.append({"clear": parts[0].buffer})
            return
        number = self._kernel(action)
        kernel = self.kernels[number]
        parts = self._unaliased(kernel, parts, action)
        skips = [self._skip(kernel, n, part, action) for n, part in enumerate(parts)]
        names = [variable.arg[0] for variable in action.runner.vars]
        places = dict(zip(names, action.values, strict=True))
        given = [places[variable.arg[0]] for variable in kernel.spec.vars]
        numbers, changing = self._numbers(kernel, skips, given)
        self.steps.append({
            "kernel": number,
            "groups": list(folded(_groups(kernel.spec, action))),
            "bound": [[part.buffer, part.begin, part.end - part.begin] for part in parts],
            "numbers": numbers,
            "values": changing,
        })  # fmt: skip

    def _numbers(
        self, kernel: Kernel, skips: Sequence[int], given: Sequence[int]
    ) -> tuple[list[int], list[tuple[int, int, int]]]:
        """The words of a launch's numbers; those that change, as (offset in bytes, bytes, which one)."""
        form = numbers_format(len(skips), kernel.spec.vars)
        packed = struct.pack(form, 0, *skips, *[self.integers[n] for n in given])
        packed += bytes(-len(packed) % 16)
        first = len(form) - len(given)
        found = []
        for n, source in enumerate(given):
            if source < self.changing:
                nbytes = struct.calcsize(form[first + n])
                found.append((struct.calcsize(form[: first + n + 1]) - nbytes, nbytes, source))
        return list(struct.unpack(f"{len(packed) // 4}I", packed)), found

    # *** programs

    def _kernel(self, action: Action) -> int:
        ast = action.item.ast
        if ast not in self._known:
            self._known[ast] = len(self.kernels)
            self.kernels.append(self._made(action))
        return self._known[ast]

    def _made(self, action: Action) -> Kernel:
        ast = action.item.ast
        own = record_of(ast, OwnKernel)
        if own is not None and own.steps is None:
            raise refused(f"the kernel {own.name} is given as text; write it with @kernel")
        try:
            spec = compile_kernel(ast, _RENDERER)
        except NotImplementedError as error:
            raise NotImplementedError(
                f"exporting to a page is not supported: {error}{_calls(action)}"
            ) from None
        buffers, _ = parameters(spec.uops)
        if len(buffers) > MOST_BUFFERS:
            raise refused(
                f"{spec.name} takes {len(buffers)} buffers, and WebGPU binds {MOST_BUFFERS}{_calls(action)}; "
                "compute parts of it with realize()"
            )
        stored = tuple([buffer.arg in spec.outs for buffer in buffers])
        text = spec.src
        for number, written in enumerate(stored, 1):
            if not written:  # so that it may be bound to what overlaps with another argument
                head = f"@group(0) @binding({number}) var<storage, read"
                text = text.replace(f"{head}_write>", f"{head}>")
        return Kernel(spec, text, stored, tuple([_element(buffer) for buffer in buffers]))

    # *** what is bound

    def _unaliased(self, kernel: Kernel, parts: Sequence[Part], action: Action) -> list[Part]:
        """The parts as they may be bound: what is read, and lies in a buffer that is written, is copied."""
        written = [part for part, stored in zip(parts, kernel.stored, strict=True) if stored]
        for n, part in enumerate(written):
            if any(part.buffer == other.buffer and part.begin < other.end and other.begin < part.end
                   for other in written[:n]):  # fmt: skip
                raise refused(
                    f"a kernel writes two parts of one memory that lie too close for WebGPU{_calls(action)}; "
                    "compute them one after the other with realize()"
                )
        taken = {part.buffer for part in written}
        end, found = 0, []
        for part, stored in zip(parts, kernel.stored, strict=True):
            if not stored and part.buffer in taken:
                copy = {"copy": [part.buffer, part.begin, part.end - part.begin, end]}
                self.steps.append(copy)
                part = Part(-1, end + part.offset - part.begin, part.nbytes)
                end = -(-part.end // ALIGNED) * ALIGNED
            found.append(part)
        self.copied = max(self.copied, end)
        for part in found:
            if part.end - part.begin > MOST_BOUND:
                raise refused(
                    f"{kernel.spec.name} works on {part.nbytes:,} bytes at once, and WebGPU binds "
                    f"{MOST_BOUND:,}{_calls(action)}"
                )
        return found

    def _skip(self, kernel: Kernel, number: int, part: Part, action: Action) -> int:
        """How many elements come before a part in its binding."""
        itemsize = kernel.elements[number].itemsize
        skip, rest = divmod(part.offset - part.begin, itemsize)
        if rest:
            raise refused(
                f"{kernel.spec.name} reads elements of {itemsize} bytes from between two of them"
                f"{_calls(action)}; copy the bytes first (contiguous())"
            )
        return skip

    # *** texts

    def text(self) -> tuple[str, list[dict[str, Any]]]:
        """All programs as one text, and of each: where it is there, its function, what it is given."""
        found, rows, end = [], [], 0
        for number, kernel in enumerate(self.kernels):
            head = f"// ---- kernel {number}: {kernel.spec.function_name}\n"
            text = kernel.text + "\n"
            end += _units(head)
            rows.append({
                "name": kernel.spec.function_name,
                "entry": entry_name(kernel.spec.function_name),
                "text": [end, end + _units(text)],
                "stored": list(kernel.stored),
            })  # fmt: skip
            end += _units(text)
            found += [head, text]
        return "".join(found), rows


def _element(buffer: UOp) -> DType:
    assert isinstance(buffer.dtype, PtrDType)
    return buffer.dtype.base


def _units(text: str) -> int:
    """How long a text is to JavaScript."""
    return len(text.encode("utf-16-le")) // 2


def _groups(spec: ProgramSpec, action: Action) -> tuple[int, ...]:
    groups = tuple(spec.global_size or (1, 1, 1))
    if math.prod(groups) > MOST_GROUPS**2:
        raise refused(
            f"{spec.name} has {math.prod(groups):,} workgroups, and WebGPU launches {MOST_GROUPS**2:,}"
            f"{_calls(action)}"
        )
    return groups


def _calls(action: Action) -> str:
    """Which of the user's calls a kernel comes from: not the clone() of each result."""
    names = [name for name in dict.fromkeys(map(str, action.item.metadata)) if name != "clone"]
    return f" (in {', '.join(names[:4])})" if names else ""

"""NULL: renders and runs nothing; for looking at what would run, and for timing Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..device import Allocator, BufferSpec, CompiledDevice, Compiler, Program
from ..renderer import ProgramSpec
from ..renderer.cstyle import CStyleRenderer
from ..renderer.cstyle.dialects import c_target


class NullMemory:
    """A size and no bytes."""

    __slots__ = ("address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.address, self.nbytes = 0, nbytes


class NullAllocator(Allocator):
    """Gives out sizes. What is written is lost, what is read is zeros."""

    def _alloc(self, nbytes: int, options: BufferSpec) -> NullMemory:
        return NullMemory(nbytes)

    def _clear(self, handle: NullMemory) -> None:
        pass

    def _adopt(self, opaque: Any, nbytes: int) -> NullMemory:
        return NullMemory(nbytes)

    def _copyin(self, handle: NullMemory, source: memoryview) -> None:
        pass

    def _copyout(self, target: memoryview, handle: NullMemory) -> None:
        target[:] = bytes(len(target))

    def _offset(self, handle: NullMemory, nbytes: int, offset: int) -> NullMemory:
        return NullMemory(nbytes)


class NullDevice(CompiledDevice):
    """Renders C, takes its text as the binary, and its programs do nothing."""

    def __init__(self, name: str) -> None:
        renderer = CStyleRenderer(replace(c_target(), name="NULL"))
        super().__init__(name, NullAllocator(name), renderer, Compiler())

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        def program(handles: tuple[Any, ...], vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
            return 0.0 if wait else None

        return program

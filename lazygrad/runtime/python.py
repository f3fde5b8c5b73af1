"""PYTHON: linear programs as Python functions, slow and exact; it needs nothing."""

from __future__ import annotations

import builtins
import dis
import io
import math
import time
from types import CodeType
from typing import Any

from ..device import CompiledDevice, CompileError, Compiler, Program
from ..renderer import ProgramSpec
from ..renderer.python import PythonRenderer, meaning
from ._host import HostAllocator, Memory


class PythonCompiler(Compiler):
    """Checks the text; the binary is the text itself."""

    def version(self) -> str:
        return "Python"

    def compile(self, source: str) -> bytes:
        _parse(source)
        return source.encode()

    def disassemble(self, source: str) -> str:
        """Python's instructions."""
        out = io.StringIO()
        dis.dis(_parse(source), file=out)
        return out.getvalue()


def _parse(source: str) -> CodeType:
    try:
        return compile(source, "<kernel>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:  # the latter two: nested too deeply
        raise CompileError("Python refuses this kernel", source, str(error)) from None


class PythonDevice(CompiledDevice):
    """Python itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name, HostAllocator(name), PythonRenderer(), PythonCompiler())

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        exec(_parse(lib.decode()), scope)
        function = scope[spec.function_name]
        for name in _names(function.__code__):
            if name not in scope and not hasattr(builtins, name):
                scope[name] = meaning(name)

        def program(
            handles: tuple[Memory, ...], vals: tuple[int, ...] = (), wait: bool = False
        ) -> float | None:
            start = time.perf_counter()
            views = [_elements(handle, fmt) for handle, fmt in zip(handles, function.formats, strict=True)]
            function(*views, *vals)
            return time.perf_counter() - start if wait else None

        return program


def _names(code: CodeType) -> set[str]:
    """The global names that code uses, with those of the functions in it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _elements(handle: Memory, fmt: str) -> memoryview:
    """The memory as elements; bytes that do not fill one are left out."""
    itemsize = memoryview(bytes(8)).cast(fmt).itemsize  # type: ignore[call-overload]
    return handle.bytes[: handle.nbytes // itemsize * itemsize].cast(fmt)  # type: ignore[call-overload, no-any-return]

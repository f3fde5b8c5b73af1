"""CLANG: the processor, through C text and the machine's C compiler: clang, gcc, or what CC names."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..config import CC
from ..device import CompiledDevice, CompileError, Compiler, DeviceError, NativeCopy, NativeLoop, Program
from ..locks import left_to
from ..renderer import ProgramSpec, Renderer
from ..renderer.cstyle import FLAGS as TEXT_FLAGS
from ..renderer.cstyle import CStyleRenderer
from ..renderer.cstyle.dialects import c_target
from . import _replay, _scratch
from ._host import HostAllocator
from ._mappings import check_room
from ._native import (
    host_features,
    host_name,
    host_target,
    native_copy,
    native_program,
    native_replay,
    requested_processor,
)
from .cpu import host_compiler

#: How to compile; TEXT_FLAGS are those without which the text would mean something else.
FLAGS = ("-O2", "-shared", "-fPIC", *TEXT_FLAGS)
TIMEOUT_S = 120


class CCompiler(Compiler):
    """C text → the bytes of a shared library. The compiler is looked for when it is first needed."""

    def __init__(self, march: str = "native") -> None:
        self.flags = (f"-march={march}", *FLAGS)

    def command(self) -> list[str]:
        """The compiler's command, found in CC or on the PATH."""
        asked = CC.value
        for name in [asked] if asked else ["clang", "gcc", "cc"]:
            words = shlex.split(name)
            found = _program(words[0]) if words else None
            if found is not None:
                return [found, *words[1:]]
        install = {"darwin": "xcode-select --install", "win32": "winget install LLVM.LLVM"}
        fix = install.get(sys.platform, "apt install clang (or another C compiler, named by CC)")
        missing = f"{asked} (named by CC)" if asked else "clang, gcc or cc"
        raise DeviceError(f"device CLANG needs a C compiler, and {missing} is not on the PATH: {fix}")

    def version(self) -> str | None:
        """The compiler's file, its words and the processor; None where there is no compiler."""
        try:
            words = self.command()
            file = os.path.realpath(words[0])
            found = os.stat(file)
        except (DeviceError, OSError):
            return None
        features = ",".join(sorted(host_features()))
        return f"{file} {found.st_size} {found.st_mtime_ns} {words[1:]} {self.flags} {host_name()} {features}"

    def compile(self, source: str) -> bytes:
        return self._run(source, *self.flags)

    def disassemble(self, source: str) -> str:
        """The instructions that the compiler makes of the text."""
        flags = [flag for flag in self.flags if flag != "-shared"]
        return self._run(source, *flags, "-S").decode(errors="replace")

    def _run(self, source: str, *flags: str) -> bytes:
        import subprocess
        import tempfile

        command = self.command()
        with tempfile.TemporaryDirectory(prefix="lazygrad-") as folder:
            out = os.path.join(folder, "kernel.out")
            line = [*command, *flags, "-x", "c", "-", "-o", out, "-lm"]
            try:
                done = subprocess.run(
                    line,
                    input=source.encode(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                raise CompileError(
                    f"{command[0]} took more than {TIMEOUT_S} s for this kernel", source
                ) from None
            except OSError as error:
                raise DeviceError(f"{command[0]} does not start: {error}") from error
            if done.returncode != 0:
                raise CompileError(
                    f"{command[0]} refuses this kernel", source, done.stdout.decode(errors="replace")
                )
            with open(out, "rb") as file:
                return file.read()


def _program(name: str) -> str | None:
    """Where a program is: by its path, or in a folder of the PATH. Not in the folder that this process runs
    in, which an empty place in the PATH means, and Windows always.
    """
    if os.path.dirname(name):
        return shutil.which(os.path.abspath(name))
    folders = [
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)
    ]
    return next((path for folder in folders if (path := shutil.which(os.path.join(folder, name)))), None)


class ClangDevice(CompiledDevice):
    """This machine's processor, programmed in C. Opening it needs no compiler."""

    compiler: CCompiler

    def __init__(self, name: str) -> None:
        asked = requested_processor()
        compiler = CCompiler("native" if asked is None else asked[1].march)
        super().__init__(name, HostAllocator(name), compiler=compiler)

    def _make_renderer(self) -> Renderer:
        asked = requested_processor()
        arch, features = ("native", host_features()) if asked is None else (asked[0], asked[1].features)
        return CStyleRenderer(
            replace(host_target(c_target(), arch, features), dots=())
        )  # C has no words for these

    def check(self) -> None:
        self.compiler.command()

    @functools.cache  # noqa: B019  a device lives as long as the process
    def replayer(self) -> Callable[[bytes], None]:
        library = _load_library(self.compiler.compile(_replay.C), _replay.C)
        return native_replay(_address(library, _replay.SYMBOL), library)

    @functools.cache  # noqa: B019  a device lives as long as the process
    def looper(self) -> NativeLoop:
        library = _load_library(self.compiler.compile(_replay.LOOP_C), _replay.LOOP_C)
        return NativeLoop(_address(library, _replay.LOOP), library)

    @functools.cache  # noqa: B019  a device lives as long as the process
    def copier(self) -> NativeCopy:
        library = _load_library(self.compiler.compile(_replay.COPY_C), _replay.COPY_C)
        return native_copy(_address(library, _replay.COPY), library)

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        library = _load_library(lib, spec.src)
        symbol = f"{spec.function_name}_entry"
        try:
            address = _address(library, symbol)
        except ValueError:
            raise CompileError(f"the library has no function {symbol}", spec.src) from None
        wanted = _scratch.bytes_wanted(spec.src)
        if wanted:
            scratch = self.scratch()
            scratch.reserve(wanted)
            for name in (_scratch.SYMBOL, _scratch.DONE):
                ctypes.c_void_p.in_dll(library, name).value = scratch.addresses[name]
        return native_program(spec, address, library, host_compiler)

    @functools.cache  # noqa: B019  a device lives as long as the process
    def scratch(self) -> _scratch.Scratch:
        """The functions that give a thread the memory that it keeps for kernels."""
        library = _load_library(self.compiler.compile(_scratch.C), _scratch.C)
        names = (_scratch.SYMBOL, _scratch.DONE, _scratch.START, _scratch.RESERVE)
        return _scratch.Scratch({name: _address(library, name) for name in names}, library)


#: What unmaps a library; Windows has another way.
_close = None if sys.platform == "win32" else ctypes.CDLL(None).dlclose


#: Libraries that nobody refers to any more, for the next that is loaded to unmap.
_unused: deque[_Library] = deque()


class _Library(ctypes.CDLL):
    """A shared library that is unmapped soon after nobody refers to it any more.

    Its functions are asked for as `library[name]`: as attributes they and it would keep each other.
    """

    __del__ = left_to(_unused)


def _unmap_unused() -> None:
    while _unused and _close is not None:
        try:
            handle = _unused.popleft()._handle
        except IndexError:  # another thread was faster
            return
        if handle:  # 0 where it could not be loaded
            _close(ctypes.c_void_p(handle))


def _address(library: Any, symbol: str) -> int:
    """Where a function of a library is. (A function that ctypes casts to a pointer keeps itself alive.)"""
    return ctypes.addressof(ctypes.c_char.in_dll(library, symbol))


def _load_library(lib: bytes, source: str) -> Any:
    """Map a shared library; its file, in a directory of our own, is gone when this returns."""
    import tempfile

    _unmap_unused()
    check_room()
    with tempfile.TemporaryDirectory(prefix="lazygrad-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "kernel.so")
        with open(path, "wb") as file:
            file.write(lib)
        try:  # every symbol is resolved now: a missing one is an error here, not a crash later
            return _Library(path)
        except OSError as error:
            raise CompileError("the compiled kernel cannot be loaded", source, str(error)) from None

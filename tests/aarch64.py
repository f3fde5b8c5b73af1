"""ARM's 64-bit processors, emulated: kernels that were compiled for them, run under qemu one call at a time.

`ARM64("CPU")` is a device whose memory is this process's. Its code is what `kernels(target="llvm:aarch64")`
makes. One program under qemu (renderer/arm/driver.c) loads each kernel as a library and calls it, with copies
of its buffers.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import functools
import itertools
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lazygrad.device import CompiledDevice, Compiler, Device, Program
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.llvmir import LLVMRenderer, target
from lazygrad.runtime import _pool, _scratch
from lazygrad.runtime._host import HostAllocator
from lazygrad.runtime._llvm import CrossCompiler
from lazygrad.target import PROCESSORS, Target, refined

_GCC, _LD, _QEMU = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-ld", "qemu-aarch64"
#: Where Debian's cross compiler has the C library of its programs.
_ROOT = "/usr/aarch64-linux-gnu"
_DRIVER = Path(__file__).parent / "renderer" / "arm" / "driver.c"


def arm_target(name: str = "aarch64") -> Target:
    """What is known of such a processor. It is taken to have four cores."""
    return replace(refined(target(), name, PROCESSORS[name].features), threads=4)


@functools.cache
def cross_compiler(name: str = "aarch64") -> CrossCompiler:
    return CrossCompiler(PROCESSORS[name])


def _command(*command: Any) -> None:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Emulator:
    """One program under qemu, begun when it is first needed, and again after a kernel ended it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lazygrad-arm-")
        self.folder = Path(self._folder.name)
        self._numbers = itertools.count()
        self._libraries: dict[bytes, Path] = {}
        self._lock = threading.Lock()
        self._worker = concurrent.futures.ThreadPoolExecutor(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._driver = self.folder / "driver"
        texts = (_scratch.LLVM, _pool.text("aarch64"))
        own = [self._written(cross_compiler().compile(text), ".o") for text in texts]
        _command(_GCC, "-O1", "-pthread", "-rdynamic", "-o", self._driver, _DRIVER, *own)
        atexit.register(self.close)

    def _written(self, content: bytes, suffix: str) -> Path:
        path = self.folder / f"{next(self._numbers)}{suffix}"
        path.write_bytes(content)
        return path

    def library(self, code: bytes) -> Path:
        """An object file as a library."""
        found = self._libraries.get(code)
        if found is None:
            written = self._written(code, ".o")
            found = self._libraries[code] = written.with_suffix(".so")
            _command(_LD, "-shared", "-z", "now", "-o", found, written, f"{_ROOT}/lib/libm.so.6")
        return found

    def library_of_c(self, texts: Sequence[str], flags: Sequence[str]) -> Path:
        """C texts, compiled into one library."""
        written = [self._written(text.encode(), ".c") for text in texts]
        library = written[0].with_suffix(".so")
        _command(_GCC, "-shared", "-fPIC", *flags, "-o", library, *written, "-lm")
        return library

    def call(
        self,
        library: Path,
        name: str,
        buffers: Sequence[memoryview],
        outs: Sequence[int],
        values: Sequence[int] = (),
        pieces: int = 1,
    ) -> None:
        """Run an entry, its pieces on the worker pool; what it leaves in `outs` comes back."""
        words = [str(library).encode(), name.encode()]
        parts = [part for word in words for part in (struct.pack("<q", len(word)), word)]
        counts = (len(buffers), len(values), pieces)
        parts.append(struct.pack(f"<{3 + len(values)}q", *counts, *values))
        for number, buffer in enumerate(buffers):
            parts += [struct.pack("<qq", buffer.nbytes, number in outs), bytes(buffer)]
        with self._lock:
            # in a thread of its own: a capture sees who reads from a pipe
            self._worker.submit(self._exchange, name, parts, buffers, outs).result()

    def _exchange(
        self, name: str, parts: list[bytes], buffers: Sequence[memoryview], outs: Sequence[int]
    ) -> None:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(b"".join(parts))
            process.stdin.flush()
        except BrokenPipeError:
            raise self._ended(process, name) from None
        for number in sorted(outs):
            raw = process.stdout.read(buffers[number].nbytes)
            if len(raw) != buffers[number].nbytes or process.poll() is not None:
                raise self._ended(process, name)
            buffers[number].cast("B")[:] = raw

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            self._process = subprocess.Popen([_QEMU, "-L", _ROOT, str(self._driver)], **pipes)
        return self._process

    def _ended(self, process: subprocess.Popen[bytes], name: str) -> AssertionError:
        self._process = None
        _, log = process.communicate()
        return AssertionError(f"{name} ended the emulator ({process.returncode}): {log.decode()}")

    def close(self) -> None:
        self._worker.shutdown()
        process, self._process = self._process, None
        if process is not None:
            process.communicate()
        self._folder.cleanup()


@functools.cache
def emulator() -> Emulator:
    return Emulator()


class ARM64(CompiledDevice):
    """A device of such a processor. Its name is that of a device whose memory is this process's."""

    compiler: Compiler

    def __init__(self, name: str = "CPU", processor: str = "aarch64") -> None:
        renderer = LLVMRenderer(arm_target(processor))
        super().__init__(name, HostAllocator(name), renderer, cross_compiler(processor))

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        library, entry = emulator().library(lib), f"{spec.function_name}_entry"

        def program(handles: tuple[Any, ...], vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
            views = [handle.bytes[: handle.nbytes] for handle in handles]
            emulator().call(library, entry, views, spec.outs, vals, spec.thread_chunks)
            return 0.0 if wait else None

        return program


@contextlib.contextmanager
def registered() -> Iterator[str]:
    """Within the block tensors can be on such a device, by the name that this gives."""
    Device.register("AARCH64", ARM64)
    try:
        yield "AARCH64"
    finally:
        Device.unregister("AARCH64")

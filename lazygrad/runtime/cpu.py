"""CPU: LLVM IR compiled for this machine inside this process, by llvmlite; it needs no compiler.

text → (parse, verify, generate code) → object file → (link) → function.
"""

from __future__ import annotations

import functools
import itertools
import platform
import re
import sys
from collections import deque
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from ..device import CompiledDevice, CompileError, NativeCopy, NativeLoop, Program, lock_across_fork
from ..locks import left_to
from ..renderer import ProgramSpec, Renderer
from ..renderer.llvmir import LLVMRenderer, target
from ..target import Processor
from . import _replay, _scratch
from ._cache import diskcache_get, diskcache_put
from ._host import HostAllocator
from ._llvm import CodeGenerator, host_processor, llvm_lock, llvmlite_binding, on_own_thread, version_of
from ._mappings import check_room, check_space
from ._native import host_target, native_copy, native_program, native_replay, requested_processor

#: Features that LLVM does not list, since every such processor has them.
_ALWAYS = frozenset(("neon", "fma") if platform.machine().lower() in ("arm64", "aarch64") else ())

#: Code that nobody calls any more, for the next who holds the lock to free.
_unused: deque[Any] = deque()


class _Code:
    """Machine code in memory. Its end must not wait for a lock, nor enter LLVM without ours."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded

    __del__ = left_to(_unused)


class LLVMCompiler(CodeGenerator):
    """The one for this processor, which loads what it made."""

    @on_own_thread
    def __init__(self, asked: tuple[str, Processor] | None) -> None:
        """For the processor that is asked for by name, or for this machine's own."""
        check_space("")
        llvm = self.llvm = llvmlite_binding()
        with llvm_lock:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            words = ""
            if asked is None:
                self.name, found = host_processor(llvm)
                self.cpu, words = self.name, found.flatten()
                self.features = frozenset(name for name, there in found.items() if there)
            else:
                self.name, self.cpu, self.features = asked[0], asked[1].cpu, asked[1].features
            #: What the code depends on: the processor's name, its features, LLVM's version.
            self.arch = f"{self.cpu} {','.join(sorted(self.features))} {version_of(llvm)}"
            self.triple = llvm.get_default_triple()
            self.machine = self._machine(words)
            #: Links object files into this process. JITLink takes one block for a file; LLVM's older linker
            #: takes one for each section, and ends the process where they come to lie 2 GB apart. Not on
            #: Windows, whose object files JITLink does not know well.
            self.linker = llvm.create_lljit_compiler(
                self._machine(words),
                use_jit_link=platform.system() != "Windows",
                suppress_errors=True,
            )
        self._libraries = itertools.count()

    def _machine(self, features: str) -> Any:
        """LLVM's code generation at level 2: level 1 saves at most a seventh of the time to compile, level 0
        three quarters, but then softmax takes 1.4 times as long and a matmul 17 times.
        """
        return self.llvm.Target.from_default_triple().create_target_machine(
            cpu=self.cpu, features=features, opt=2, reloc="pic", codemodel="small"
        )

    def version(self) -> str:
        return f"{self.triple} {self.arch}"

    def compile_once(self, source: str) -> bytes:
        """The same for a text that is part of lazygrad: an earlier process has left it on disk."""
        key = [self.version(), source]
        found: bytes | None = diskcache_get("native", key, level=2)
        return diskcache_put("native", key, self.compile(source), level=2) if found is None else found

    @on_own_thread
    def link(self, lib: bytes, symbol: str, source: str) -> tuple[int, Any]:
        """The address of a function of an object file, and what keeps its code in memory."""
        addresses, code = self.link_all(lib, (symbol,), source)
        return addresses[symbol], code

    @on_own_thread
    def link_all(self, lib: bytes, symbols: Sequence[str], source: str) -> tuple[dict[str, int], Any]:
        """The same for several."""
        library = self.llvm.JITLibraryBuilder().add_object_img(lib).add_current_process()
        for symbol in symbols:
            library.export_symbol(symbol)
        wanted = _scratch.bytes_wanted(source)
        if wanted:
            scratch = self.scratch()
            scratch.reserve(wanted)
            for symbol in (_scratch.SYMBOL, _scratch.DONE):
                library.import_symbol(symbol, scratch.addresses[symbol])
        with llvm_lock:
            _unused.clear()
            check_room()
            check_space(source)
            try:
                loaded = library.link(self.linker, f"kernel{next(self._libraries)}")
                return {symbol: loaded[symbol] for symbol in symbols}, _Code(loaded)
            except RuntimeError as error:
                log = str(error)
        declared = re.findall(r"^declare .*@([\w.]+)\(", source, re.M)
        asked = ", ".join(name for name in declared if not name.startswith("llvm."))
        hint = f" (the kernel calls {asked})" if asked else ""
        raise CompileError(f"{', '.join(symbols)} cannot be linked{hint}", source, log)

    @functools.cache  # noqa: B019  a compiler lives as long as the process
    def scratch(self) -> _scratch.Scratch:
        """The functions that give a thread the memory it keeps for kernels."""
        symbols = (_scratch.SYMBOL, _scratch.DONE, _scratch.START, _scratch.RESERVE)
        return _scratch.Scratch(*self.link_all(self.compile_once(_scratch.LLVM), symbols, _scratch.LLVM))


_compiler_lock = lock_across_fork()
_compilers: list[LLVMCompiler] = []


def host_compiler() -> LLVMCompiler:
    """The one of this process: of every device CPU, and of whoever needs native code and no device."""
    with _compiler_lock:
        if not _compilers:
            _compilers.append(LLVMCompiler(requested_processor()))
        return _compilers[0]


class CPUDevice(CompiledDevice):
    """This machine's processor. LLVM starts when a kernel is planned or compiled: memory needs none."""

    def __init__(self, name: str) -> None:
        if "llvmlite" not in sys.modules and find_spec("llvmlite") is None:
            llvmlite_binding()  # says what is missing
        requested_processor()  # a name that is unknown is said now
        super().__init__(name, HostAllocator(name))
        del self.compiler

    @functools.cached_property
    def compiler(self) -> LLVMCompiler:  # type: ignore[override]
        return host_compiler()

    def _make_renderer(self) -> Renderer:
        compiler = self.compiler
        return LLVMRenderer(host_target(target(), compiler.name, compiler.features | _ALWAYS))

    def check(self) -> None:
        self.compiler  # noqa: B018  where LLVM does not start it says why

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        address, loaded = self.compiler.link(lib, f"{spec.function_name}_entry", spec.src)
        return native_program(spec, address, loaded, host_compiler)

    @functools.cache  # noqa: B019  a device lives as long as the process
    def replayer(self) -> Callable[[bytes], None]:
        code = self.compiler.compile_once(_replay.LLVM)
        return native_replay(*self.compiler.link(code, _replay.SYMBOL, _replay.LLVM))

    @functools.cache  # noqa: B019  a device lives as long as the process
    def looper(self) -> NativeLoop:
        code = self.compiler.compile_once(_replay.LOOP_LLVM)
        return NativeLoop(*self.compiler.link(code, _replay.LOOP, _replay.LOOP_LLVM))

    @functools.cache  # noqa: B019  a device lives as long as the process
    def copier(self) -> NativeCopy:
        code = self.compiler.compile_once(_replay.COPY_LLVM)
        return native_copy(*self.compiler.link(code, _replay.COPY, _replay.COPY_LLVM))

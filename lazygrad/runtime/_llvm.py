"""LLVM inside this process, by llvmlite: text → (parse, verify, generate code) → object file, or assembly."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from ..device import CompileError, Compiler, DeviceError, lock_across_fork
from ..locks import NoThread, Working, in_main_thread
from ..renderer.llvmir import UNOPTIMIZED
from ..target import Processor
from ..target.measured import named
from ._mappings import check_space

#: One thread at a time uses LLVM. A fork waits for it: a child must not inherit a compile that never ends.
llvm_lock = lock_across_fork()


def on_own_thread(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same on a thread of its own, when the main thread asks: only that one has signals, and Ctrl-C
    between two steps of llvmlite frees memory twice, or leaves its lock taken for ever. Who asked stops
    waiting at once; the work is done to its end. Where there is no thread to be had it is done here.
    """

    @functools.wraps(work)
    def wait_for(*args: Any) -> Any:
        if not in_main_thread():
            return work(*args)
        outcome: list[Any] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                outcome.append(work(*args))
            except BaseException as error:
                failed.append(error)

        with contextlib.suppress(NoThread):
            Working(run).wait()
        if failed:
            raise failed.pop()
        return outcome.pop() if outcome else work(*args)

    return wait_for


class CodeGenerator(Compiler):
    """LLVM IR text → the bytes of an object file."""

    llvm: Any
    machine: Any

    @on_own_thread
    def compile(self, source: str) -> bytes:
        check_space(source)
        with llvm_lock:
            code: bytes = self.machine.emit_object(self._module(source))
        return code

    @on_own_thread
    def disassemble(self, source: str) -> str:
        """The instructions that LLVM makes of the text."""
        check_space(source)
        with llvm_lock:
            return str(self.machine.emit_assembly(self._module(source)))

    def _module(self, source: str) -> Any:
        module = _parsed(self.llvm, source)
        if source.startswith(UNOPTIMIZED):
            options = self.llvm.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = True
            builder = self.llvm.create_pass_builder(self.machine, options)
            builder.getModulePassManager().run(module, builder)
        return module


class CrossCompiler(CodeGenerator):
    """The one for a processor that need not be here: its object files are not loaded."""

    @on_own_thread
    def __init__(self, processor: Processor) -> None:
        llvm = self.llvm = llvmlite_binding()
        self.processor = processor
        with llvm_lock:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            try:
                kind = llvm.Target.from_triple(processor.triple)
            except RuntimeError as error:
                raise DeviceError(
                    f"this llvmlite ({version_of(llvm)}) writes no code for {processor.triple}: {error}"
                ) from None
            self.machine = kind.create_target_machine(
                cpu=processor.cpu, opt=2, reloc="pic", codemodel="small"
            )

    def version(self) -> str:
        return f"{self.processor.triple} {self.processor.cpu} {version_of(self.llvm)}"


def _parsed(llvm: Any, source: str) -> Any:
    """The module, verified. No pass over LLVM IR runs before code generation, but on what a user wrote.

    Our code comes unrolled, with vectors, with accumulators in registers, invariants outside of loops.
    Measured on sums, softmax, exp, transposes: instcombine and GVN cost 10 to 20 % of compile time, the
    pipelines O1 and O2 up to triple it; none makes a kernel faster, and softmax gets 15 % slower.
    """
    try:
        module = llvm.parse_assembly(source)
        module.verify()
    except RuntimeError as error:
        raise CompileError("LLVM refuses this kernel", source, str(error)) from None
    return module


def host_processor(llvm: Any) -> tuple[str, Any]:
    """This machine's processor as LLVM names those, and its features: name → whether it is there."""
    features = llvm.get_host_cpu_features()
    return named(llvm.get_host_cpu_name(), [name for name, there in features.items() if there]), features


def version_of(llvm: Any) -> str:
    return f"LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def llvmlite_binding() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise DeviceError(f"device CPU needs llvmlite ({error}): pip install llvmlite") from error
    except OSError as error:  # it is there, and its library does not fit into memory, or lacks another
        raise DeviceError(f"device CPU needs llvmlite, which cannot be loaded: {error}") from error
    return llvm

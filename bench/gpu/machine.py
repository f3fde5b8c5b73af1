"""The machine on which a stage plays: the GPU, or one of two that stand in for it where there is none.

real      the GPU of this machine, through its driver
compile   plans and writes every kernel in its real size for an H200, which NVRTC compiles; nothing runs
play      the emulated driver of the tests, which runs kernels on the CPU thread by thread: sizes are tiny

So what a stage does there is the same code in all three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from lazygrad.device import CompiledDevice, Device, DeviceError, Program
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from lazygrad.runtime import _cuda_driver
from lazygrad.runtime._cuda_compiler import CUDACompiler
from lazygrad.runtime.cuda import device_target
from lazygrad.runtime.null import NullAllocator
from lazygrad.target import Target

ARCH = "sm_90"
#: What its driver says where the row of its architecture does not.
LIMITS: dict[str, Any] = {
    "group_threads": 1024,
    "group_sizes": (1024, 1024, 64),
    "grid_sizes": (2**31 - 1, 65535, 65535),
}
REAL, COMPILE, PLAY = MODES = ("real", "compile", "play")

T = TypeVar("T")


def h200() -> Target:
    """What kernels are written for on an H200."""
    base = cuda_target(ARCH)
    return replace(base, launch=replace(base.launch, warp=32), **LIMITS)


def target() -> Target:
    """That of this machine's GPU, so that what is compiled is what will run; an H200's without one."""
    try:
        driver = _cuda_driver.bindings()
        _cuda_driver.started(driver)
    except DeviceError:
        return h200()
    return device_target(_cuda_driver.Connection("CUDA", driver, 0))


class CompilingDevice(CompiledDevice):
    """Plans and writes kernels for an H200, has NVRTC compile each, and runs nothing; what is read is zeros.

    texts  the kernels that were loaded
    """

    def __init__(self, name: str) -> None:
        renderer = CUDARenderer(target())
        super().__init__(name, NullAllocator(name), renderer, CUDACompiler(renderer.target.arch))
        self.texts: set[str] = set()

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        if not lib:
            raise ValueError(f"NVRTC made nothing of {spec.name}")
        self.texts.add(spec.src)

        def program(handles: Any, vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
            return 0.0 if wait else None

        return program


class Machine:
    """Where a stage plays; `with machine.entered()` there is a device CUDA.

    mode     one of MODES
    folder   of the results on disk: a stage may read what others found
    short    whether networks have few layers, which have the kernels of many
    """

    def __init__(self, mode: str, folder: str = "", short: bool = False) -> None:
        self.mode, self.folder, self.short = mode, folder, short
        self._stand_in: Any = None

    @property
    def runs(self) -> bool:
        """Whether kernels give results."""
        return self.mode != COMPILE

    @property
    def is_real(self) -> bool:
        return self.mode == REAL

    @property
    def torch_device(self) -> str:
        """Where PyTorch computes beside us."""
        return "cuda" if self.is_real else "cpu"

    def size(self, real: T, tiny: T) -> T:
        """What is played: the real size, or one that the emulated driver can run."""
        return tiny if self.mode == PLAY else real

    def depth(self, layers: int) -> int:
        """How many layers a network has."""
        return 1 if self.mode == PLAY else min(layers, 2) if self.short else layers

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The device is there, and the default one."""
        from lazygrad import Context

        with contextlib.ExitStack() as stack:
            if self.mode == COMPILE:
                Device.register("CUDA", CompilingDevice)
                stack.callback(Device.unregister, "CUDA")
                self._stand_in = Device["CUDA"]
            elif self.mode == PLAY:
                from tests.runtime.emulated_cuda.fixture import emulated

                driver = stack.enter_context(emulated(capability=(9, 0), memory=1 << 32))
                for device in driver.devices:
                    device.limits["MULTIPROCESSOR_COUNT"] = h200().launch.multiprocessors
                stack.enter_context(_children_play())
            stack.enter_context(Context(DEV="CUDA"))
            yield

    def array(self, *shape: int, seed: int = 0) -> np.ndarray:
        """Random numbers from -0.5 to 0.5, the same in every process; zeros where nothing reads them."""
        if not self.runs:
            return np.zeros(shape, np.float32)
        return np.random.default_rng(seed).random(shape, np.float32) - np.float32(0.5)

    def counts(self) -> dict[str, int]:
        """How many different kernels this process has had compiled or played."""
        if self.mode == COMPILE:
            return {"compiled": len(self._stand_in.texts) if self._stand_in is not None else 0}
        if self.mode == PLAY:
            from tests.runtime.emulated_cuda.machine import counts

            return {"played": counts().get("kernels", 0)}
        return {}

    def is_lost(self) -> bool:
        """Whether a kernel has ended the GPU's context, so that nothing more can be asked of this process."""
        opened = Device._open.get("CUDA")
        return bool(opened is not None and getattr(getattr(opened, "gpu", None), "lost", ""))


@contextlib.contextmanager
def _children_play() -> Iterator[None]:
    """Within the block the processes that time kernels for searches have the emulated driver too."""
    from lazygrad.tuning import trials

    plain = trials.command

    def command(device: str) -> list[str]:
        *words, script, name = plain(device)
        return [*words, script.replace(_STARTED, _EMULATED), name]

    trials.command = command
    try:
        yield
    finally:
        trials.command = plain


_STARTED = "from lazygrad.tuning.time_kernels import main; main()"
_EMULATED = (
    "from bench.gpu.machine import Machine; from lazygrad.tuning.time_kernels import main\n"
    "with Machine('play').entered(): main()"
)

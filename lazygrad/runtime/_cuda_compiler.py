"""CUDA C++ to what a GPU runs, by NVRTC. It needs no GPU."""

from __future__ import annotations

import importlib.metadata
import os
import re
from functools import cache
from typing import Any

from ..device import CompileError, Compiler, DeviceError, MissingDeviceError
from ..target import own_arch

#: a*b+c rounds twice, as everywhere: what is one instruction is written as fma().
_OPTIONS = ("--fmad=false", "--std=c++17")
#: Packages with the headers of CUDA, and who else may have them.
_HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12")
_TOOLKITS = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
_INSTALL = 'pip install "lazygrad[cuda]"'


def bindings() -> Any:
    """The module of NVRTC's functions."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise MissingDeviceError(f"device CUDA needs cuda-bindings: {_INSTALL}") from None
    return nvrtc


@cache
def headers() -> str:
    """The folder of cuda_fp16.h."""
    for package in _HEADERS:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found = next((file for file in files if file.name == "cuda_fp16.h"), None)
        if found is not None:
            return os.path.dirname(str(found.locate()))
    for folder in filter(None, _TOOLKITS):
        if os.path.exists(os.path.join(folder, "include", "cuda_fp16.h")):
            return os.path.join(folder, "include")
    raise DeviceError(f"device CUDA finds no cuda_fp16.h, which kernels of float16 include: {_INSTALL}")


class CUDACompiler(Compiler):
    """For one architecture, as `sm_90`: the GPU's own code where NVRTC knows it, with what it alone has, else
    PTX of the newest before it, which the driver translates.

    DeviceError where NVRTC is missing, or knows nothing so old.
    """

    def __init__(self, arch: str) -> None:
        self.nvrtc = nvrtc = bindings()
        found = re.fullmatch(r"sm_(\d+)([af]?)", arch)
        if found is None:
            raise DeviceError(f"{arch!r} is not an architecture of NVIDIA's: they are named as sm_90")
        try:
            _, *version = nvrtc.nvrtcVersion()
            _, known = nvrtc.nvrtcGetSupportedArchs()
        except RuntimeError:
            raise DeviceError(f"device CUDA finds no NVRTC, which compiles its kernels: {_INSTALL}") from None
        self.name = f"NVRTC {version[0]}.{version[1]}"
        number = int(found[1])
        older = [each for each in known if each <= number]
        if not older:
            names = ", ".join(f"sm_{each}" for each in known)
            raise DeviceError(
                f"{self.name} does not compile for {arch}, it knows {names}: an older nvidia-cuda-nvrtc may"
            )
        self.native = number in known
        self.arch = own_arch(arch) if self.native else f"compute_{max(older)}"
        self.options = (f"--gpu-architecture={self.arch}", *_OPTIONS)

    def version(self) -> str:
        return " | ".join((self.name, *self.options))

    def compile(self, source: str) -> bytes:
        nvrtc = self.nvrtc
        options = [option.encode() for option in self.options]
        if "#include" in source:
            options.append(f"--include-path={headers()}".encode())
        _, handle = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
        try:
            (code,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
            if code:
                raise CompileError(
                    f"{self.name} refuses this kernel for {self.arch}", source, self._log(handle)
                )
            if self.native:
                return self._read(handle, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
            return self._read(handle, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)  # ends with a 0
        finally:
            nvrtc.nvrtcDestroyProgram(handle)

    def _read(self, handle: Any, size: Any, read: Any) -> bytes:
        _, length = size(handle)
        into = bytes(length + 1)  # it is written to, and Python shares all bytes objects of length 1
        read(handle, into)
        return into[:length]

    def _log(self, handle: Any) -> str:
        log = self._read(handle, self.nvrtc.nvrtcGetProgramLogSize, self.nvrtc.nvrtcGetProgramLog)
        return log.decode(errors="replace").strip("\0\n ")

"""NVRTC, which needs no GPU, with each kernel's text behind what it made: the emulated driver runs that."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

MARK = b"\0the text of this kernel\0"


@functools.cache
def _made(nvrtc: Any, source: bytes, options: tuple[bytes, ...]) -> tuple[int, bytes, bytes, bytes]:
    """NVRTC's code, its log, cubin and PTX."""
    _, handle = nvrtc.nvrtcCreateProgram(source, b"kernel.cu", 0, [], [])
    (code,) = nvrtc.nvrtcCompileProgram(handle, len(options), list(options))
    parts = []
    for what in ("ProgramLog", "CUBIN", "PTX"):
        _, size = getattr(nvrtc, f"nvrtcGet{what}Size")(handle)
        into = bytes(size + 1)
        if not code or what == "ProgramLog":
            getattr(nvrtc, f"nvrtcGet{what}")(handle, into)
        parts.append(into[:size])
    nvrtc.nvrtcDestroyProgram(handle)
    return code, *parts


class EmulatedNVRTC:
    """The functions of cuda.bindings.nvrtc; `compiled` counts texts. Its version keeps programs apart."""

    def __init__(self, nvrtc: Any) -> None:
        self.nvrtc = nvrtc
        self.compiled = 0
        self.nvrtcResult = nvrtc.nvrtcResult
        self.nvrtcGetSupportedArchs = nvrtc.nvrtcGetSupportedArchs

    def nvrtcVersion(self) -> Any:
        code, major, minor = self.nvrtc.nvrtcVersion()
        return code, 1000 + major, minor

    def nvrtcCreateProgram(
        self, src: bytes, name: bytes, numHeaders: int, headers: Any, includeNames: Any
    ) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, {"source": src}

    def nvrtcCompileProgram(self, prog: Any, numOptions: int, options: list[bytes]) -> Any:
        assert numOptions == len(options)
        self.compiled += 1
        code, log, cubin, ptx = _made(self.nvrtc, prog["source"], tuple(options))
        behind = MARK + options[0] + MARK + prog["source"]
        prog.update(log=log, cubin=cubin + behind if cubin else b"", ptx=ptx + behind)
        return (code,)

    def nvrtcDestroyProgram(self, prog: Any) -> Any:
        prog.clear()
        return (self.nvrtcResult.NVRTC_SUCCESS,)

    def _size(self, prog: Any, what: str) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, len(prog[what])

    def _read(self, prog: Any, what: str, into: bytes) -> Any:
        content = prog[what]
        assert len(into) >= len(content)
        ctypes.memmove(into, content, len(content))
        return (self.nvrtcResult.NVRTC_SUCCESS,)

    def nvrtcGetProgramLogSize(self, prog: Any) -> Any:
        return self._size(prog, "log")

    def nvrtcGetProgramLog(self, prog: Any, log: bytes) -> Any:
        return self._read(prog, "log", log)

    def nvrtcGetCUBINSize(self, prog: Any) -> Any:
        return self._size(prog, "cubin")

    def nvrtcGetCUBIN(self, prog: Any, cubin: bytes) -> Any:
        return self._read(prog, "cubin", cubin)

    def nvrtcGetPTXSize(self, prog: Any) -> Any:
        return self._size(prog, "ptx")

    def nvrtcGetPTX(self, prog: Any, ptx: bytes) -> Any:
        return self._read(prog, "ptx", ptx)

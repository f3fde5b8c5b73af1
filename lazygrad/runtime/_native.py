"""Machine code made callable, and facts about this machine's processor: shared by CPU and CLANG."""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..config import CPU_TARGET, usable_cores
from ..device import NativeCopy, Program
from ..renderer import ProgramSpec
from ..target import PROCESSORS, Processor, Target, as_measured, refined
from ._measured import measured_row
from ._pool import pool

#: `entry(void **bufs, int64_t *vals, int32_t piece, int32_t pieces)`. Calling it releases Python's lock.
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32)


def native_program(
    spec: ProgramSpec, address: int, keep_alive: Any, llvm: Callable[[], Any] | None = None
) -> Program:
    """The program whose entry is at `address`. `keep_alive` holds the code.

    A kernel of several pieces runs on the worker pool, which `llvm()`, the LLVM of this process, can make;
    `program.region` is then what a native caller needs: the address of `run_region`, the pieces.

    Addresses and integers are packed into two `bytes`, which C reads as its tables: a call takes
    0.7 µs with three buffers, 1.0 through a ctypes array.
    """
    entry: Callable[[bytes, bytes, int, int], None] = _ENTRY(address)
    buffers, values, pieces = spec.globals, len(spec.vars), 1
    if spec.thread_chunks > 1 and llvm is not None and pool.start(llvm):
        entry, pieces = pool.entry(address), spec.thread_chunks
    pack_addresses = struct.Struct(f"{buffers}P").pack
    pack_values = struct.Struct(f"{values}q").pack

    def program(handles: tuple[Any, ...], vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
        addresses = pack_addresses(*[handle.address for handle in handles])
        integers = pack_values(*vals) if values else b""
        if not wait:
            entry(addresses, integers, 0, pieces)
            return None
        start = time.perf_counter()
        entry(addresses, integers, 0, pieces)
        return time.perf_counter() - start

    program.keep_alive = keep_alive  # type: ignore[attr-defined]
    program.address = address  # type: ignore[attr-defined]
    if pieces > 1:
        program.region = (pool.address, pieces)  # type: ignore[attr-defined]
    return program


_REPLAY = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


def native_replay(address: int, keep_alive: Any) -> Callable[[bytes], None]:
    """The loop of _replay.py at `address`: called with its four words as bytes, it runs a list of kernels."""
    replay = _REPLAY(address)
    replay.keep_alive = keep_alive  # type: ignore[attr-defined]
    return replay


#: The address of memmove.
_MOVE = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value


def native_copy(address: int, keep_alive: Any) -> NativeCopy:
    """The entry of _replay.py at `address` that copies, for the native loop."""
    assert _MOVE is not None  # an address
    return NativeCopy(address, _MOVE, keep_alive)


# *** this machine


@functools.cache
def _cpu_facts() -> dict[str, str]:
    """What Linux says of the first core; {} elsewhere."""
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return {}
    rows = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in rows}


def host_features() -> frozenset[str]:
    """What the processor can do, in the names that LLVM and Linux share (`avx2`, `fma`, `neon`)."""
    machine = platform.machine().lower()
    always = {"arm64": ("neon", "fma"), "aarch64": ("neon", "fma"), "x86_64": ("sse2",), "amd64": ("sse2",)}
    facts = _cpu_facts()
    listed = facts.get("flags", facts.get("Features", "")).split()
    return frozenset((*always.get(machine, ()), *listed))


def requested_processor() -> tuple[str, Processor] | None:
    """The processor that CPU_TARGET names, by its name too; None for this machine's own.

    A name that is unknown, or a processor with instructions that this one lacks, raises ValueError.
    """
    name = CPU_TARGET.value
    if name in ("", "native"):
        return None
    if name not in PROCESSORS:
        raise ValueError(f"CPU_TARGET must be native or one of {', '.join(PROCESSORS)}, not {name!r}")
    processor, here = PROCESSORS[name], host_features()
    missing = sorted(processor.features - here)
    if missing and (_cpu_facts() or not here & processor.features):  # else the system says too little
        raise ValueError(f"CPU_TARGET={name}: this processor has no {', '.join(missing)}")
    return name, processor


def host_name() -> str:
    """Which processor this is, as far as the system says."""
    facts = _cpu_facts()
    names = ("model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part", "CPU variant")
    if not facts:
        return f"{platform.machine()} {platform.processor()}"  # which may start another program to ask
    return " ".join([platform.machine(), *(facts.get(name, "") for name in names)])


def host_description() -> str:
    """The same for people: `AMD EPYC (x86_64, family 25, model 1, stepping 1)`."""
    facts = _cpu_facts()
    names = {"cpu family": "family", "CPU implementer": "implementer", "CPU part": "part"}
    said = [
        f"{names.get(name, name)} {facts[name]}"
        for name in ("cpu family", "model", "stepping", *tuple(names)[1:])
        if facts.get(name)
    ]
    return f"{facts.get('model name', platform.system())} ({', '.join([platform.machine(), *said])})"


def host_caches() -> tuple[int, ...]:
    """Bytes of each data cache of the first core, innermost first; () where the system does not say."""
    sizes: dict[int, int] = {}
    for cache in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            if (cache / "type").read_text().strip() != "Instruction":
                size = (cache / "size").read_text().strip()
                unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
                sizes[int((cache / "level").read_text())] = int(size.rstrip("KM")) * unit
        except (OSError, ValueError):
            continue
    return tuple(sizes[level] for level in sorted(sizes))


def host_target(base: Target, arch: str, features: frozenset[str]) -> Target:
    """`base`, refined by what this machine's processor has and was seen to do."""
    native = CPU_TARGET.value in ("", "native")
    found = refined(base, arch, features, shipped=not native)
    row = measured_row(arch) if native else None
    found = found if row is None else as_measured(found, row, base.has_gathers)
    memory = replace(found.memory, caches=host_caches() or found.memory.caches)
    return replace(found, memory=memory, threads=usable_cores())

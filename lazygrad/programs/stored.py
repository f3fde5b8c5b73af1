"""Compiled programs on disk, under a key that is the same in every process.

The key is made of a kernel's structure (not of its text: a second process lowers nothing), the target, what
the compiler says of itself, the flags that change code, and the source of lazygrad.
"""

from __future__ import annotations

from ..codegen.own_source import LEVEL, own_source
from ..codegen.records import record_of, spec_of
from ..config import CACHELEVEL, ContextVar
from ..device import CompiledDevice
from ..ir.uop import UOp
from ..renderer import ProgramSpec
from ..runtime import diskcache_get, diskcache_put
from ..structure import Unlasting, digest, target_text

TABLE = "programs"


def load_program(device: CompiledDevice, ast: UOp) -> tuple[ProgramSpec, bytes] | None:
    """The program and binary of a kernel, if a process left them on disk."""
    key = _key(device, ast)
    record = None if key is None else diskcache_get(TABLE, key, LEVEL)
    return None if record is None else spec_of(record)


def store_program(device: CompiledDevice, ast: UOp, spec: ProgramSpec, lib: bytes) -> None:
    """Leave a program for other processes."""
    key = _key(device, ast)
    if key is not None:
        try:
            diskcache_put(TABLE, key, record_of(spec, lib), LEVEL)
        except Unlasting:
            return


def _key(device: CompiledDevice, ast: UOp) -> str | None:
    """None where the program is not kept: the compiler says so, or the kernel has no lasting description."""
    version = None if device.compiler is None else device.compiler.version()
    if version is None or CACHELEVEL.value < LEVEL:
        return None
    flags = [(flag.name, flag.value) for flag in ContextVar.of_code]
    try:
        target = f"{type(device.renderer).__name__} {target_text(device.target)}"
        return "\n".join((own_source(), version, target, repr(flags), digest(ast)))
    except Unlasting:
        return None

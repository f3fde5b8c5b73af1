"""Object files put into this process without LLVM, which takes 40 ms to start: ELF for x86-64.

What a file says is done as the ELF specification and the x86-64 psABI (section 4.4, relocations) have it, for
the kinds of relocations that position-independent code of the small model has. Functions lie in pages that
are made executable when all is in place, and are then not writable any more; everything else lies behind.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..device import CompileError, OutOfMemoryError
from . import _scratch
from ._mappings import check_room

_READ, _WRITE, _EXECUTE = 1, 2, 4
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_UNWIND = 0x70000001  # how to walk up from a function that may throw: data that nobody asks for
_ALLOC, _EXECINSTR = 2, 4
#: R_X86_64_64, _PC32, _PLT32; those that ask for a place with the address: _GOTPCREL, _GOTPCRELX and REX too.
_ABSOLUTE, _RELATIVE, _CALL, _THROUGH_TABLE = 1, 2, 4, (9, 41, 42)
#: `jmp *0(%rip)` and the address it jumps to: how code reaches a function that is more than 2 GB away.
_JUMP = b"\xff\x25\0\0\0\0"
_JUMP_BYTES = 16


def available() -> bool:
    """Whether this process runs such object files."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


class _Section(NamedTuple):
    """Elf64_Shdr."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Symbol(NamedTuple):
    """Elf64_Sym, with its name."""

    name: str
    info: int
    other: int
    section: int
    value: int
    size: int


class _Object:
    """One file, read."""

    def __init__(self, content: bytes) -> None:
        if content[:7] != b"\x7fELF\x02\x01\x01" or struct.unpack_from("<HH", content, 16) != (1, 62):
            raise ValueError("not an ELF object file for x86-64")
        self.content = content
        (start,) = struct.unpack_from("<Q", content, 0x28)
        size, count = struct.unpack_from("<HH", content, 0x3A)
        self.sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + n * size)) for n in range(count)
        ]
        self.symbols: list[_Symbol] = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                names = self.sections[section.link].offset
                for n in range(section.size // 24):
                    name, *rest = struct.unpack_from("<IBBHQQ", content, section.offset + 24 * n)
                    end = content.index(b"\0", names + name)
                    self.symbols.append(_Symbol(content[names + name : end].decode(), *rest))

    def resident(self) -> list[int]:
        """The numbers of the sections that a process has in memory."""
        return [n for n, each in enumerate(self.sections) if each.flags & _ALLOC and each.size]


class Code:
    """Machine code in memory, for as long as this is held."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory
        self.loaded = memory  # the name that the worker pool knows it by


def link(objects: Sequence[bytes], imports: Mapping[str, int]) -> tuple[list[dict[str, int]], Code]:
    """For each object file the addresses of its functions and variables by name, and what keeps them.

    imports  the addresses of symbols that are neither in the file nor in this process's libraries

    ValueError where a file has what this does not know.
    """
    try:
        return _Linking([_Object(each) for each in objects], imports).done()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a damaged object file: {error}") from None


class _Linking:
    def __init__(self, objects: Sequence[_Object], imports: Mapping[str, int]) -> None:
        self.objects, self.imports = objects, imports
        self.offsets: dict[tuple[int, int], int] = {}  # (object, section) → offset in the memory
        asked = sorted({s.name for o in objects for s in o.symbols if s.section == 0 and s.name})
        self.jumps = {name: n * _JUMP_BYTES for n, name in enumerate(asked)}
        end = self._placed(len(asked) * _JUMP_BYTES, _EXECINSTR)
        self.executable = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        end = self._placed(self.executable, 0)
        table = -(-end // 8) * 8
        names = [(n, s) for n, o in enumerate(objects) for s in range(len(o.symbols))]
        self.table = {each: table + 8 * n for n, each in enumerate(names)}
        check_room()
        try:
            self.memory = mmap.mmap(
                -1, table + 8 * len(names) + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            )
        except OSError as error:
            raise OutOfMemoryError(f"there is no memory for the code of kernels: {error}") from None
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def _placed(self, end: int, wanted: int) -> int:
        for number, each in enumerate(self.objects):
            for index in each.resident():
                section = each.sections[index]
                if section.flags & _EXECINSTR == wanted:
                    alignment = max(section.alignment, 1)
                    self.offsets[number, index] = end = -(-end // alignment) * alignment
                    end += section.size
        return end

    def done(self) -> tuple[list[dict[str, int]], Code]:
        for name, offset in self.jumps.items():
            self.memory[offset : offset + 14] = _JUMP + struct.pack("<Q", self._outside(name))
        for (number, index), offset in self.offsets.items():
            section = self.objects[number].sections[index]
            if section.kind in (_PROGBITS, _UNWIND):
                content = self.objects[number].content[section.offset : section.offset + section.size]
                self.memory[offset : offset + section.size] = content
            elif section.kind != _NOBITS:
                raise ValueError(f"an object file with a section of kind {section.kind}")
        for number, each in enumerate(self.objects):
            for section in each.sections:
                if section.kind == _RELA and (number, section.info) in self.offsets:
                    self._relocate(number, section)
        found = [
            {
                s.name: self.base + self.offsets[number, s.section] + s.value
                for s in each.symbols
                if s.name and (number, s.section) in self.offsets
            }
            for number, each in enumerate(self.objects)
        ]
        system = ctypes.CDLL(None, use_errno=True)
        start, size = ctypes.c_void_p(self.base), ctypes.c_size_t(self.executable)
        if self.executable and system.mprotect(start, size, _READ | _EXECUTE):
            raise ValueError(f"the system lets no memory become code (error {ctypes.get_errno()})")
        return found, Code(self.memory)

    def _outside(self, name: str) -> int:
        if name in self.imports:
            return self.imports[name]
        try:
            function = getattr(_process(), name)
        except AttributeError:
            raise ValueError(f"code that calls {name}, which this process does not have") from None
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def _target(self, number: int, index: int) -> int:
        symbol = self.objects[number].symbols[index]
        if symbol.section == 0:
            return self._outside(symbol.name)
        return self.base + self.offsets[number, symbol.section] + symbol.value

    def _relocate(self, number: int, section: _Section) -> None:
        content, into = self.objects[number].content, self.offsets[number, section.info]
        for n in range(section.size // 24):
            offset, info, addend = struct.unpack_from("<QQq", content, section.offset + 24 * n)
            kind, index, place = info & 0xFFFFFFFF, info >> 32, into + offset
            symbol = self.objects[number].symbols[index]
            if kind == _ABSOLUTE:
                struct.pack_into("<Q", self.memory, place, self._target(number, index) + addend)
                continue
            if kind in _THROUGH_TABLE:
                target = self.base + self.table[number, index]
                struct.pack_into("<Q", self.memory, target - self.base, self._target(number, index))
            elif kind == _CALL and symbol.section == 0:
                target = self.base + self.jumps[symbol.name]
            elif kind in (_RELATIVE, _CALL):
                target = self._target(number, index)
            else:
                raise ValueError(f"an object file with a relocation of kind {kind}")
            struct.pack_into("<i", self.memory, place, target + addend - self.base - place)


@functools.cache
def _process() -> Any:
    """The libraries of this process."""
    return ctypes.CDLL(None)


class ObjectLinker:
    """The part of a compiler that loads, for code that is compiled already: text → object file.

    It takes LLVM's place (runtime/cpu.py) where a kernel's pieces and its memory for tiles are made ready.
    """

    linker = None

    def __init__(self, compiled: Mapping[str, bytes]) -> None:
        self.compiled = compiled

    def compile_once(self, source: str) -> bytes:
        found = self.compiled.get(source)
        if found is None:
            raise CompileError("a file has no code for a part of lazygrad", source)
        return found

    def link_all(self, lib: bytes, symbols: Sequence[str], source: str) -> tuple[dict[str, int], Code]:
        """The addresses of some symbols of an object file, and what keeps its code."""
        (found,), code = self.link([lib], [source])
        return {symbol: found[symbol] for symbol in symbols}, code

    def link(self, libs: Sequence[bytes], sources: Sequence[str]) -> tuple[list[dict[str, int]], Code]:
        """Several object files in one piece of memory."""
        wanted = max((_scratch.bytes_wanted(source) for source in sources), default=0)
        imports = {}
        if wanted:
            scratch = self.scratch()
            scratch.reserve(wanted)
            imports = {name: scratch.addresses[name] for name in (_scratch.SYMBOL, _scratch.DONE)}
        return link(libs, imports)

    @functools.cache  # noqa: B019  there is one for each file that is loaded
    def scratch(self) -> _scratch.Scratch:
        symbols = (_scratch.SYMBOL, _scratch.DONE, _scratch.START, _scratch.RESERVE)
        return _scratch.Scratch(*self.link_all(self.compile_once(_scratch.LLVM), symbols, _scratch.LLVM))

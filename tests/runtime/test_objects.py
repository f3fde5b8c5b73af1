"""Object files that are linked without LLVM compute the same; what is damaged or unknown is refused."""

from __future__ import annotations

import ctypes
import random
import struct

import pytest

from lazygrad.device import CompileError
from lazygrad.runtime import _objects, _replay, _scratch
from lazygrad.runtime.cpu import host_compiler
from tests.helpers import needs

pytestmark = needs("elf-x86-64")

#: Constants in memory, a call inside, one of the system, memory of its own through a table of addresses.
TEXT = """
@kept = global i64 5
@table = internal constant [3 x double] [double 1.5, double 2.5, double 4.5]
declare double @ldexp(double, i32)

define internal double @inner(double %x, i32 %i) noinline {
  %at = getelementptr [3 x double], ptr @table, i32 0, i32 %i
  %value = load double, ptr %at
  %sum = fadd double %x, %value
  ret double %sum
}

define double @compute(double %x, i32 %i) {
  %inside = call double @inner(double %x, i32 %i)
  %scaled = call double @ldexp(double %inside, i32 3)
  ret double %scaled
}

define i64 @count() {
  %old = load i64, ptr @kept
  %new = add i64 %old, 1
  store i64 %new, ptr @kept
  ret i64 %new
}
"""


@pytest.fixture(scope="module")
def lib():
    return host_compiler().compile(TEXT)


def functions(found):
    compute = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int)(found["compute"])
    return compute, ctypes.CFUNCTYPE(ctypes.c_int64)(found["count"])


def test_constants_calls_and_variables(lib):
    (found,), code = _objects.link([lib], {})
    compute, count = functions(found)
    assert [compute(1.0, i) for i in range(3)] == [20.0, 28.0, 44.0]
    assert [count(), count()] == [6, 7]
    assert code.loaded


def test_each_of_several_has_memory_of_its_own(lib):
    found, code = _objects.link([lib, lib], {})
    counts = [functions(each)[1] for each in found]
    assert [counts[0](), counts[0](), counts[1]()] == [6, 7, 6]
    assert code.loaded


def test_a_symbol_may_be_given(lib):
    stand_in = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int)(lambda x, n: x + n)
    (found,), code = _objects.link([lib], {"ldexp": ctypes.cast(stand_in, ctypes.c_void_p).value})
    assert functions(found)[0](1.0, 0) == 5.5
    assert code.loaded


def test_code_cannot_be_written(lib):
    (found,), code = _objects.link([lib], {})
    page = found["compute"]
    with open("/proc/self/maps") as maps:
        rows = [line.split()[:2] for line in maps]
    (rights,) = [
        rights for span, rights in rows if int(span.split("-")[0], 16) <= page < int(span.split("-")[1], 16)
    ]
    assert rights == "r-xp"
    assert code.loaded


def test_a_function_that_nobody_has():
    call = "call void @no_such_function()"
    text = f"declare void @no_such_function()\ndefine void @f() {{\n  {call}\n  ret void\n}}\n"
    lib = host_compiler().compile(text)
    with pytest.raises(
        ValueError, match="code that calls no_such_function, which this process does not have"
    ):
        _objects.link([lib], {})


def test_other_files_are_refused(lib):
    for content in (b"", b"\x7fELF", b"MZ" + bytes(200), b"\x7fELF\x02\x01\x01" + bytes(100), lib[:100]):
        with pytest.raises(ValueError, match="object file"):
            _objects.link([content], {})
    for_another = bytearray(lib)
    struct.pack_into("<H", for_another, 18, 183)  # aarch64
    with pytest.raises(ValueError, match="not an ELF object file for x86-64"):
        _objects.link([bytes(for_another)], {})


def test_files_that_are_cut_off_end_in_an_error(lib):
    for end in random.Random(0).sample(range(64, len(lib) - 64), 40):
        with pytest.raises(ValueError, match="object file"):
            _objects.link([lib[:end]], {})


def test_parts_of_lazygrad_that_a_file_lacks():
    linker = _objects.ObjectLinker({})
    with pytest.raises(CompileError, match="no code for a part of lazygrad"):
        linker.compile_once(_scratch.LLVM)


def test_the_replaying_loop_and_the_memory_of_threads_link():
    compiler = host_compiler()
    linker = _objects.ObjectLinker(
        {text: compiler.compile_once(text) for text in (_replay.LLVM, _scratch.LLVM)}
    )
    found, code = linker.link_all(linker.compile_once(_replay.LLVM), (_replay.SYMBOL,), _replay.LLVM)
    assert found[_replay.SYMBOL]
    linker.scratch().reserve(1 << 20)
    give = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)(linker.scratch().addresses[_scratch.SYMBOL])
    assert give(1000) % 64 == 0
    assert code.loaded

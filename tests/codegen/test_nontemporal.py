"""Stores past the caches: which a program makes, how they are written, that they store the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lazygrad.codegen.linearizing.nontemporal import store_past_caches
from lazygrad.dtype import ALL_DTYPES, dtypes
from lazygrad.ir import UOp
from lazygrad.ir.args import NONTEMPORAL
from lazygrad.renderer.cstyle import FLAGS, CStyleRenderer
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.target import Memory, Target
from tests.helpers import needs
from tests.renderer.support import (
    THREAD,
    add_program,
    at,
    c_entry,
    call_entry,
    const,
    data,
    end,
    listed,
    llvm_entry,
    load,
    loop,
    store,
)

#: Its last cache holds 64 floats.
SMALL = Target(
    "CPU",
    vector_bytes=64,
    memory=Memory((64, 256)),
    past_caches=64,
    native_dtypes=frozenset(ALL_DTYPES),
    has_fma=True,
)


def found(uops: Sequence[UOp], target: Target = SMALL) -> int:
    return sum(node.arg == NONTEMPORAL for node in store_past_caches(list(uops), target))


def marked(size: int) -> list[UOp]:
    return store_past_caches(add_program(size, 16), SMALL)


def doubled(size: int, place: int = 16, begin: int = 0, into: int = 0, valid: bool = False) -> list[UOp]:
    """data0[place*i + begin] = data1[16*i] twice, by vectors of 16; `into` 1 writes over data1."""
    buffers = [data(n, dtypes.float32, 4 * size) for n in range(2)]
    i = loop(0, size // 16)
    value = load(at(buffers[1], i * 16), 16)
    mask = i < const(3) if valid else None
    return listed(*buffers, i, store(at(buffers[into], i * place + begin, mask), value + value), end(i))


def test_a_result_that_no_cache_holds_goes_past_it():
    assert found(add_program(64, 16)) == 1
    assert found(add_program(48, 16)) == 0  # 192 bytes stay in the cache until somebody reads them


def test_what_counts_is_what_is_written_and_not_how_large_the_memory_is():
    assert found(doubled(64)) == 1
    assert found(doubled(32)) == 0  # 128 bytes of a buffer of 512


def test_pieces_write_it_together():
    assert found(add_program(64, 16, THREAD)) == 1


def test_what_a_kernel_reads_is_in_a_cache_already():
    assert found(doubled(64, into=1)) == 0


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_parts_of_a_line_are_gathered_by_the_cache(lanes):
    assert found(add_program(64, lanes)) == 0


def test_a_place_must_be_a_whole_number_of_lines():
    assert found(doubled(64, place=32)) == 1
    assert found(doubled(64, begin=16)) == 1
    assert found(doubled(64, place=17)) == 0
    assert found(doubled(64, begin=1)) == 0


def test_a_store_with_a_condition_is_an_ordinary_one():
    assert found(doubled(64, valid=True)) == 0


@pytest.mark.parametrize("change", [{"past_caches": 0}, {"memory": Memory()}])
def test_a_target_says_whether_it_has_such_stores(change):
    assert found(add_program(64, 16), replace(SMALL, **change)) == 0


def test_llvm_asks_once_where_the_buffer_begins():
    text = LLVMRenderer(SMALL).render("add", marked(64))
    assert text.count("ptrtoint") == 1
    assert re.findall(r"store .*", text) == [
        "store <16 x float> %alu1, ptr %ptr2, align 64, !nontemporal !0",
        "store <16 x float> %alu1, ptr %ptr2, align 4",
    ]
    assert re.search(r"fence seq_cst\n  ret void", text)
    assert text.endswith("!0 = !{i32 1}\n")


def test_an_ordinary_kernel_has_no_fence():
    text = LLVMRenderer(SMALL).render("add", marked(48))
    assert "fence" not in text
    assert "!0" not in text
    assert "fence" not in CStyleRenderer(SMALL).render("add", marked(48))


def test_c_asks_at_each_store():
    text = CStyleRenderer(SMALL).render("add", marked(64))
    assert (
        "if (((unsigned long long)p&63)==0) { __builtin_nontemporal_store(v,(float16_line*)p); return; }"
        in text
    )
    assert re.search(r"^ +nontemporal_store_float16\(\(data0\+.*\),.*\);$", text, re.M)
    assert re.search(r"__atomic_thread_fence\(__ATOMIC_SEQ_CST\);\n}", text)


def _check(entry: int) -> None:
    """Run it on memory that begins at a line, and on memory that does not."""
    values = np.arange(64, dtype=np.float32)
    memory = np.zeros(256, np.float32)
    line = -(memory.ctypes.data // 4) % 16
    for begin in (line, line + 1, line + 8):
        memory[:] = -1
        out = memory[begin : begin + 64]
        call_entry(entry, [out, values, values])
        np.testing.assert_array_equal(out, 2 * values)
        assert (memory[:begin] == -1).all()
        assert (memory[begin + 64 :] == -1).all()


def test_llvm_stores_the_same_wherever_a_buffer_begins():
    _check(llvm_entry(LLVMRenderer(SMALL).render("add", marked(64)), "add"))


@pytest.mark.parametrize(
    "compiler", [pytest.param("clang", marks=needs("clang-itself")), pytest.param("gcc", marks=needs("gcc"))]
)
def test_c_stores_the_same_wherever_a_buffer_begins(compiler, tmp_path: Path):
    text = CStyleRenderer(SMALL).render("add", marked(64))
    _check(c_entry(text, "add", compiler, (*FLAGS, "-march=native"), tmp_path))

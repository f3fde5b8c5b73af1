"""Programs that are written by hand, loaded and called on every device that runs: CPU, CLANG, PYTHON."""

from __future__ import annotations

import builtins
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from lazygrad.config import CC
from lazygrad.device import Buffer, CompileError, Device, DeviceError
from lazygrad.dtype import DType, dtypes, from_numpy_name
from lazygrad.ir import Ops, UOp
from lazygrad.renderer import ProgramSpec
from lazygrad.runtime._llvm import llvmlite_binding
from tests.helpers import PATIENCE, in_threads, needs
from tests.renderer.support import add_program, at, const, data, dot_program, end, listed, load, loop, store

RUNNING = [
    "CPU",
    "PYTHON",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]


def run(device, uops, *arrays, vals=(), name="k") -> list[np.ndarray]:
    """Compile, load and call; the contents of all buffers after it."""
    opened = Device[device]
    spec = ProgramSpec.of(name, opened.renderer, uops)
    program = opened.load(spec, opened.compile(spec))
    buffers = [Buffer(device, a.size, from_numpy_name(a.dtype.name)).allocate().copyin(a) for a in arrays]
    program(tuple(b._buf for b in buffers), vals)
    return [b.numpy() for b in buffers]


@pytest.mark.parametrize("device", RUNNING)
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_add(device, lanes):
    a, b = np.arange(16, dtype=np.float32), np.linspace(-5, 5, 16, dtype=np.float32)
    out, *_ = run(device, add_program(16, lanes), np.zeros(16, np.float32), a, b)
    assert np.array_equal(out, a + b)


@pytest.mark.parametrize("device", RUNNING)
def test_dot(device):
    a, b = np.arange(7, dtype=np.int32), np.arange(7, 14, dtype=np.int32)
    out, *_ = run(device, dot_program(7), np.zeros(1, np.int32), a, b)
    assert out[0] == a @ b


@pytest.mark.parametrize("device", RUNNING)
def test_a_masked_load_touches_nothing_outside(device):
    a, b = data(0, dtypes.float32, 8), data(1, dtypes.float32, 4)
    i = loop(0, 8)
    place = i - 2
    inside = (place < 4) & const(-1).alu(Ops.CMPLT, place)
    value = load(at(b, place, inside), 1, const(0.5, dtypes.float32))
    program = listed(a, b, i, store(at(a, i), value), end(i))
    out, _ = run(device, program, np.zeros(8, np.float32), np.arange(1, 5, dtype=np.float32))
    assert out.tolist() == [0.5, 0.5, 1, 2, 3, 4, 0.5, 0.5]


@pytest.mark.parametrize("device", RUNNING)
def test_a_variable_is_an_argument(device):
    a, b = data(0, dtypes.int32, 8), data(1, dtypes.int32, 8)
    n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 1, 8))
    i = loop(0, n)
    program = listed(a, b, n, i, store(at(a, i), load(at(b, i)) + n), end(i))
    out, _ = run(device, program, np.zeros(8, np.int32), np.arange(8, dtype=np.int32), vals=(5,))
    assert out.tolist() == [5, 6, 7, 8, 9, 0, 0, 0]


@pytest.mark.parametrize("device", RUNNING)
def test_waiting_gives_seconds(device):
    opened = Device[device]
    spec = ProgramSpec.of("k", opened.renderer, add_program())
    program = opened.load(spec, opened.compile(spec))
    buffers = [Buffer(device, 16, dtypes.float32).allocate() for _ in range(3)]
    handles = tuple(buffer._buf for buffer in buffers)
    assert program(handles, ()) is None
    seconds = program(handles, (), wait=True)
    assert isinstance(seconds, float)
    assert 0 <= seconds < 60


@pytest.mark.parametrize("device", RUNNING)
def test_a_program_takes_views(device):
    opened = Device[device]
    spec = ProgramSpec.of("k", opened.renderer, add_program(4))
    program = opened.load(spec, opened.compile(spec))
    base = Buffer(device, 12, dtypes.float32).allocate().copyin(np.arange(12, dtype=np.float32))
    views = [base.view(4, dtypes.float32, 16 * n).ensure_allocated() for n in range(3)]
    program(tuple(v._buf for v in views), ())
    assert base.numpy().tolist() == [12, 14, 16, 18, *range(4, 12)]


@pytest.mark.parametrize("device", RUNNING)
def test_two_kernels_of_one_name(device):
    first, *_ = run(device, add_program(4), *[np.ones(4, np.float32)] * 3, name="same")
    second, *_ = run(device, dot_program(4), *[np.ones(n, np.int32) for n in (1, 4, 4)], name="same")
    assert first.tolist() == [2] * 4
    assert second.tolist() == [4]


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
def test_threads_compile_and_run_at_the_same_time(device):
    def work(number: int) -> None:
        ones = np.ones(number + 1, np.int32)
        out, *_ = run(device, dot_program(number + 1), np.zeros(1, np.int32), ones, ones)
        assert out[0] == number + 1

    in_threads(8, work)


@needs("fork")
def test_a_child_forked_during_a_compile_can_compile():
    stop = threading.Event()
    ones = np.ones(9, np.int32)

    def churn() -> None:
        while not stop.is_set():
            run("CPU", dot_program(9), np.zeros(1, np.int32), ones, ones)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                signal.alarm(300)  # a child that hangs dies, and the test fails
                out, *_ = run("CPU", dot_program(9), np.zeros(1, np.int32), ones, ones)
                os._exit(int(out[0]))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    finally:
        stop.set()
        for t in threads:
            t.join()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system sends no signal to one thread")
def test_ctrl_c_ends_the_wait_for_a_compile_and_not_the_compile(monkeypatch):
    compiler, ended = Device["CPU"].compiler, threading.Event()
    renderer = Device["CPU"].renderer
    source = ProgramSpec.of("k", renderer, add_program()).src

    class Machine:
        def emit_object(self, module):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            ended.wait(0.1)
            ended.set()
            return b""

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "machine", Machine())
        with pytest.raises(KeyboardInterrupt):
            compiler.compile(source)
        assert ended.wait(PATIENCE)
    assert compiler.compile(source)


def test_the_main_thread_never_enters_llvm(monkeypatch):
    """Ctrl-C interrupts only the main thread, and llvmlite bears no interruption."""
    from llvmlite.binding import ffi

    enter, threads = ffi._LLVMLock.__enter__, set()

    def noted(lock):
        threads.add(threading.current_thread())
        return enter(lock)

    opened = Device["CPU"]
    monkeypatch.setattr(ffi._LLVMLock, "__enter__", noted)
    for lanes in (1, 4):
        spec = ProgramSpec.of("k", opened.renderer, add_program(16, lanes))
        opened.load(spec, opened.compile(spec))
    opened.compiler.version()
    opened.compiler.disassemble(spec.src)
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("no llvmlite"), r"device CPU needs llvmlite \(no llvmlite\): pip install llvmlite"),
        (OSError("no room"), "device CPU needs llvmlite, which cannot be loaded: no room"),
    ],
)
def test_what_keeps_llvmlite_from_being_loaded_is_said(error, message, monkeypatch):
    plain = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "llvmlite.binding":
            raise error
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DeviceError, match=message):
        llvmlite_binding()


@pytest.mark.parametrize("device", RUNNING)
def test_it_disassembles(device):
    opened = Device[device]
    spec = ProgramSpec.of("E_16", opened.renderer, add_program())
    assert opened.compiler is not None
    text = opened.compiler.disassemble(spec.src)
    assert "E_16" in text
    assert len(text.splitlines()) > 5


def of_source(device: str, source: str, name: str = "k") -> Any:
    opened = Device[device]
    spec = ProgramSpec(name, source, opened.kind)
    return opened.load(spec, opened.compile(spec))


@pytest.mark.parametrize("device", RUNNING)
def test_a_refused_kernel_shows_its_source_and_the_log(device):
    with pytest.raises(CompileError, match="this is no code") as caught:
        of_source(device, "this is no code\n")
    assert caught.value.source == "this is no code\n"
    assert caught.value.log


def test_llvm_names_a_missing_symbol():
    source = "declare void @no_such_function()\n"
    source += "define void @k_entry(ptr %b, ptr %v, i32 %p, i32 %n) {\n"
    source += "  call void @no_such_function()\n  ret void\n}\n"
    with pytest.raises(CompileError, match=r"k_entry cannot be linked \(the kernel calls no_such_function\)"):
        of_source("CPU", source)


def test_llvm_finds_memset_and_memcpy():
    source = """
    declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define void @k_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) {
      %a = load ptr, ptr %bufs
      %at = getelementptr ptr, ptr %bufs, i64 1
      %b = load ptr, ptr %at
      call void @llvm.memset.p0.i64(ptr %a, i8 7, i64 100000, i1 false)
      call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 100000, i1 false)
      ret void
    }"""
    opened = Device["CPU"]
    spec = ProgramSpec("k", source, "CPU", globals=2)
    buffers = [Buffer("CPU", 100000, dtypes.uint8).allocate() for _ in range(2)]
    opened.load(spec, opened.compile(spec))(tuple(b._buf for b in buffers), ())
    assert (buffers[1].numpy() == 7).all()


@pytest.mark.parametrize("lib", [b"", b"no object file", None])
def test_a_damaged_object_file_is_an_error(lib):
    opened = Device["CPU"]
    spec = ProgramSpec.of("k", opened.renderer, add_program())
    with pytest.raises(CompileError, match="cannot be linked"):
        opened.load(spec, opened.compile(spec)[:300] if lib is None else lib)


@needs("clang")
def test_c_names_a_missing_symbol():
    with pytest.raises(CompileError, match="no_such_function"):
        of_source("CLANG", "void no_such_function(); void k_entry() { no_such_function(); }")


@needs("clang")
def test_a_damaged_library_is_an_error():
    with pytest.raises(CompileError, match="cannot be loaded"):
        Device["CLANG"].load(ProgramSpec("k", "", "CLANG"), b"no library")


def test_clang_opens_without_a_compiler_and_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    CC.set_default("")
    with pytest.raises(
        DeviceError, match=r"needs a C compiler, and clang, gcc or cc is not on the PATH: .*install"
    ):
        of_source("CLANG", "void k_entry() {}")
    CC.set_default("strange-cc -m64")
    with pytest.raises(DeviceError, match=r"strange-cc -m64 .named by CC. is not on the PATH"):
        of_source("CLANG", "void k_entry() {}")


def test_the_target_is_this_machine():
    target = Device["CPU"].target
    assert target.vector_bytes in (16, 32, 64)
    assert target.vector_registers in (16, 32)
    assert target.threads >= 1
    assert target.arch
    assert dtypes.float32 in target.native_dtypes
    assert list(target.memory.caches) == sorted(target.memory.caches)
    clang = Device["CLANG"].target
    assert (clang.vector_bytes, clang.has_fma) == (target.vector_bytes, target.has_fma)


def test_null_runs_nothing_and_has_the_text():
    device = Device["NULL"]
    spec = ProgramSpec.of("E_16", device.renderer, add_program())
    assert "void E_16(float* restrict data0" in spec.src
    program = device.load(spec, device.compile(spec))
    buffer = Buffer("NULL", 1 << 50, dtypes.float32).allocate()
    view = buffer.view(4, dtypes.float32, 1 << 40).ensure_allocated()
    view.copyin(bytes(range(16)))
    assert program((buffer._buf, view._buf, view._buf), ()) is None
    assert view.numpy().tolist() == [0] * 4


DTYPES: list[DType] = [dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.uint64, dtypes.float64]


@pytest.mark.parametrize("device", RUNNING)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_are_copied_as_they_are(device, dtype):
    a, b = data(0, dtype, 4), data(1, dtype, 4)
    i = loop(0, 4)
    rng = np.random.default_rng(0)
    array = np.frombuffer(rng.bytes(4 * dtype.itemsize), np.uint8)
    if dtype is dtypes.bool:
        array = array & 1
    out, _ = run(device, listed(a, b, i, store(at(a, i), load(at(b, i))), end(i)), array * 0, array)
    assert np.array_equal(out, array)

"""Memory that a thread keeps for kernels with large tiles."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import Device
from lazygrad.renderer.scratch import MAX_STACK, SYMBOL
from tests.codegen.kernels import random_contents, run
from tests.codegen.test_opt import matmul
from tests.engine.test_survival import run as run_script
from tests.helpers import in_threads, needs


def test_a_thread_keeps_its_memory_and_has_its_own():
    scratch = Device["CPU"].compiler.scratch()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)(scratch.addresses[SYMBOL])
    first = take(1000)
    assert first % 64 == 0
    assert take(1000) == take(10) == first
    others: list[int] = []
    thread = threading.Thread(target=lambda: others.extend((take(1000), take(1000))))
    thread.start()
    thread.join()
    assert others[0] == others[1] != first
    larger = take(1 << 20)
    ctypes.memset(larger, 1, 1 << 20)
    assert take(1000) == larger


@pytest.mark.choice
def test_large_tiles_come_from_it():
    a, b = (np.random.default_rng(n).standard_normal((512, 512)).astype(np.float32) for n in range(2))
    product = Tensor(a).realize() @ Tensor(b).realize()
    [kernel] = product.kernels()
    staged = kernel.with_opts(
        "[Opt(op=OptOps.TILE, axis=1, amount=64), Opt(op=OptOps.UPCAST, axis=0, amount=4), "
        "Opt(op=OptOps.UPCAST, axis=1, amount=64), Opt(op=OptOps.STAGE, axis=1, amount=2)]"
    )
    assert MAX_STACK < 512 * 64 * 4
    assert "call noalias ptr @lazygrad_scratch(i64 131072)" in staged.source
    assert "alloc" not in staged.source.replace("alloca ", "")
    for _ in range(2):
        np.testing.assert_allclose(staged.run(1).outputs[0].reshape(512, 512), a @ b, rtol=1e-3, atol=1e-3)


@needs("clang")
def test_kernels_in_c_have_theirs():
    """A first kernel, one with larger tiles, and the first again, in two threads: none allocates."""
    there = Device["CLANG"]
    first, larger = matmul(2, 640, 64), matmul(2, 1280, 64)
    opts = [Opt(OptOps.TILE, 1, 32), Opt(OptOps.UPCAST, 1, 32), Opt(OptOps.STAGE, 1, 2)]
    source = compile_kernel(larger, there.renderer, opts).src
    assert "char* scratch = lazygrad_scratch(163840);" in source
    assert "alloc(" not in source

    def check(number: int) -> None:
        for ast in (first, larger, first):
            contents = random_contents(ast)
            _, a, b = (np.array(values) for values in contents)
            product = a.reshape(2, -1) @ b.reshape(-1, 64)
            assert run(ast, "CLANG", contents, opts=opts) == [product.reshape(-1).tolist()]

    check(0)
    in_threads(2, check)


# The address space ends just behind what is in use: no thread gets memory of its own for large tiles.
SHARED = """
    import ctypes, resource, sys, threading
    import numpy as np
    from lazygrad.device import Device, OutOfMemoryError
    from lazygrad.renderer.scratch import DONE, SYMBOL
    device = Device[sys.argv[1]]
    scratch = (device.compiler if sys.argv[1] == "CPU" else device).scratch()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)(scratch.addresses[SYMBOL])
    done = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(scratch.addresses[DONE])
    size = 64 << 20
    scratch.reserve(size)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), -1))
    try:
        scratch.reserve(2 * size)
    except OutOfMemoryError as error:
        print(error)
    inside, most = 0, 0
    def work():
        global inside, most
        for _ in range(50):
            memory = take(size)
            inside += 1
            most = max(most, inside)
            ctypes.memset(memory + size - 64, 1, 64)
            inside -= 1
            done(memory)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(most)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes the address space that Linux gives a process")
@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
def test_threads_share_the_reserve_where_there_is_no_memory(device):
    assert run_script(SHARED, device) == (
        "there is no memory for 134,217,728 bytes of tiles that a kernel keeps\n1"
    )

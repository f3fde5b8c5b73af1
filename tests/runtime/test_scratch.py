"""Memory that a thread keeps for kernels with large tiles."""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import Device
from lazygrad.renderer.scratch import MAX_STACK
from tests.codegen.kernels import random_contents, run
from tests.codegen.test_opt import matmul
from tests.helpers import in_threads, needs


def test_a_thread_keeps_its_memory_and_has_its_own():
    compiler = Device["CPU"].compiler
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)(compiler.scratch_address())
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

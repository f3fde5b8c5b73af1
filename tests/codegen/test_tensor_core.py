"""TC: sums of products by the target's own instructions; what it makes, refuses and computes."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import KernelOptError, Loops, Opt, OptOps, apply_opt, apply_opts, choose
from lazygrad.config import Context
from lazygrad.device import Device
from lazygrad.dtype import dtypes
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.llvmir import LLVMRenderer, target
from lazygrad.renderer.python import DOTS
from lazygrad.runtime._llvm import CrossCompiler
from lazygrad.target import Memory, Processor, Target, refined
from lazygrad.target.processors import dots_of
from tests.helpers import needs

from .kernels import buffers_of, equal, load, opened, plain, random_contents, reduce, run, sink, store
from .test_contraction import product, staged
from .test_opt import convolution, matmul, row_sum
from .test_random_opts import random_opt

CPU = Target(
    "CPU", vector_bytes=64, vector_registers=32, memory=Memory((48 << 10, 1 << 20, 32 << 20)), has_masks=True,
    has_fma=True, dots=DOTS,
)  # fmt: skip
PLAIN = replace(CPU, dots=())
TC = Opt(OptOps.TC, 0, 2)
bf16 = dtypes.bfloat16


def after(ast, *opts, target=CPU):
    return loops_text(apply_opts(lower(ast), opts, target))


# *** what it makes


def test_a_step_is_of_two_products(golden):
    ast = matmul(4, 6, 16, bf16)
    assert golden(f"{after(ast)}\n\n{[TC]}\n\n{after(ast, TC)}")


def test_pairs_are_packed_as_such(golden):
    opts = [TC, Opt(OptOps.TILE, 1, 32), Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 32)]
    opts.append(Opt(OptOps.STAGE, 1, 2))
    assert golden(after(matmul(8, 16, 64, bf16), *opts))


def test_narrower_numbers_are_widened_to_what_the_instruction_takes():
    assert "pack(short(data1[" in after(product(2, 4, 2, dtype=dtypes.int8, summed=dtypes.int), TC)
    assert "pack(bfloat16(data1[" in after(product(2, 4, 2, dtype=dtypes.fp8e4m3), TC)


def test_an_odd_number_of_products_is_padded():
    """Beyond the end both factors are zero."""
    text = after(matmul(2, 5, 2, bf16), Opt(OptOps.PADTO, 2, 2), TC)
    assert "in 0..3" in text
    assert "?" in text


def test_a_reduction_of_one_step_has_no_loop():
    assert "REDUCE" not in after(matmul(2, 2, 2, bf16), TC)


# *** what it refuses


@pytest.mark.parametrize(
    ("ast", "opts", "reason"),
    [
        (row_sum(4, 64), [TC], "TC axis 0 by 2: what is summed is no product of numbers of bfloat16, short"),
        (matmul(4, 6, 8), [TC], "no product of numbers of bfloat16, short"),
        (matmul(4, 6, 8, dtypes.half), [TC], "no product of numbers of bfloat16, short"),
        (matmul(4, 6, 8, bf16), [Opt(OptOps.TC, 0, 3)], "TC axis 0 by 3: the instruction adds 2 products"),
        (matmul(4, 5, 8, bf16), [TC], "2 does not divide 5"),
        (matmul(4, 6, 8, bf16), [TC, TC], "no product of numbers of bfloat16, short"),
        (matmul(4, 2, 8, bf16), [TC, TC], "no loop is left along the axis"),
        (matmul(4, 6, 8, bf16), [Opt(OptOps.STAGE, 0, 2), TC], "no product of numbers of bfloat16, short"),
        (product(4, 6, 8, dtype=dtypes.int, summed=dtypes.int), [TC], "no product of numbers of"),
    ],
)
def test_refusals(ast, opts, reason):
    with pytest.raises(KernelOptError) as error:
        apply_opts(lower(ast), opts, CPU)
    assert reason in str(error.value)


def test_a_maximum_of_products_is_no_sum():
    x = load(1, plain(4, 8), bf16).cast(dtypes.float)
    with pytest.raises(KernelOptError, match="no product of numbers"):
        after(sink(store(0, reduce(x * x, Ops.MAX, 1))), TC)


def test_a_target_without_such_instructions_says_so():
    with pytest.raises(KernelOptError, match="CPU has no instruction for sums of products"):
        after(matmul(4, 6, 8, bf16), TC, target=PLAIN)


@needs("clang")
def test_c_has_no_word_for_them():
    with pytest.raises(KernelOptError, match="CLANG has no instruction for sums of products"):
        run(matmul(4, 6, 8, bf16), "CLANG", random_contents(matmul(4, 6, 8, bf16)), opts=[TC])


# *** which kernels get it


def test_large_contractions_of_what_the_target_multiplies_in_pairs():
    for dtype, summed in ((bf16, dtypes.float), (dtypes.int8, dtypes.int), (dtypes.int16, dtypes.int)):
        ast = product(512, 512, 512, dtype=dtype, summed=summed)
        assert choose(Loops.of(lower(ast)), CPU)[0] == TC
        assert TC not in choose(Loops.of(lower(ast)), PLAIN)
    for ast in (product(512, 512, 512), product(512, 512, 512, dtype=dtypes.half)):
        assert TC not in choose(Loops.of(lower(ast)), CPU)


def test_an_odd_reduction_gets_it_too():
    opts = choose(Loops.of(lower(product(255, 255, 255, dtype=bf16))), CPU)
    assert opts[:2] == [Opt(OptOps.PADTO, 2, 2), TC]


def test_rows_that_lie_in_pairs_are_not_packed():
    assert staged(choose(Loops.of(lower(product(512, 512, 512, dtype=bf16))), CPU)) == [2]
    shorter = product(512, 512, 512, transposed_b=True, dtype=dtypes.int8, summed=dtypes.int)
    assert choose(Loops.of(lower(shorter)), CPU)[0] == TC
    assert staged(choose(Loops.of(lower(shorter)), CPU)) == [2]
    transposed = product(512, 512, 512, transposed_a=True, dtype=bf16)
    assert staged(choose(Loops.of(lower(transposed)), CPU)) == [2, 1]


# *** what it computes

KERNELS = {
    "rows by columns": matmul(6, 8, 16, bf16),
    "rows by rows": product(5, 6, 8, transposed_b=True, dtype=bf16),
    "columns by columns": product(8, 4, 6, transposed_a=True, transposed_b=True, dtype=bf16),
    "bytes": product(4, 8, 12, dtype=dtypes.int8, summed=dtypes.int),
    "bytes without sign": product(4, 6, 12, transposed_a=True, dtype=dtypes.uint8, summed=dtypes.int),
    "8-bit floats": product(4, 6, 8, dtype=dtypes.fp8e4m3),
    "an odd number": matmul(4, 7, 8, bf16),
    "a vector": matmul(1, 32, 1, bf16),
}


def narrow_convolution(*sizes, **more):
    """A convolution of bfloat16 numbers."""
    ast = convolution(*sizes, **more)
    replaced = {}
    for node in ast.toposort():
        src = tuple(replaced[s] for s in node.src)
        if node.op is Ops.DEFINE_GLOBAL and node.arg > 0:
            replaced[node] = UOp(node.op, bf16.ptr(node.dtype.size), (), node.arg)
        elif node.op is Ops.LOAD:
            replaced[node] = UOp(node.op, bf16, src).cast(dtypes.float)
        else:
            replaced[node] = UOp(node.op, node.dtype, src, node.arg)
    return replaced[ast]


KERNELS["a convolution"] = narrow_convolution(1, 4, 5, 3)
KERNELS["a convolution with a border"] = narrow_convolution(1, 2, 4, 3, border=1)


@pytest.fixture(autouse=True)
def every_instruction(monkeypatch):
    """All that this processor has, also those that were measured to be slow."""
    renderer, features = Device["CPU"].renderer, Device["CPU"].compiler.features
    monkeypatch.setattr(renderer, "target", replace(renderer.target, dots=dots_of(features)))


def check_random_opts(name, device, seeds):
    """Compare a kernel under TC and random Opts with the evaluator: sums of small whole numbers are exact."""
    there = opened(device)
    ast = KERNELS[name]
    if not there.renderer.target.dots:
        with pytest.raises(KernelOptError, match="no instruction for sums of products"):
            run(ast, device, random_contents(ast), opts=[TC])
        return
    contents = random_contents(
        ast, 3, low=0 if any(b.dtype.base is dtypes.uint8 for b in buffers_of(ast)) else -4
    )
    expected = evaluate(ast, contents)
    start = [Opt(OptOps.PADTO, 2, 2), TC] if name == "an odd number" else [TC]
    for seed in seeds:
        rng = random.Random(seed)
        opts, loops = [], Loops.of(lower(ast))
        for opt in start:
            loops = apply_opt(loops, opt, there.renderer.target)
            opts.append(opt)
        for _ in range(rng.randint(0, 8)):
            opt = random_opt(loops, rng)
            if opt.op is OptOps.NOLOCALS:
                continue
            try:
                loops = apply_opt(loops, opt, there.renderer.target)
            except KernelOptError:
                continue
            opts.append(opt)
        with Context(CHECK=1):
            found = run(ast, device, contents, opts=opts)
        assert all(equal(a, b) for a, b in zip(found, expected, strict=True)), opts


@pytest.mark.parametrize("device", ["PYTHON", "GRID", "CPU"])
@pytest.mark.parametrize("name", KERNELS)
def test_random_opts_after_it(name, device):
    check_random_opts(name, device, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("device", ["PYTHON", "GRID", "CPU"])
@pytest.mark.parametrize("name", KERNELS)
def test_many_random_opts_after_it(name, device):
    check_random_opts(name, device, range(100, 112))


@pytest.mark.parametrize("size", [(64, 256, 64), (37, 255, 65)])
def test_sums_are_within_the_stated_bound(size):
    """docs/numbers.md: each of n products is added with one rounding."""
    m, k, n = size
    rng = np.random.default_rng(5)
    a, b = (Tensor(rng.standard_normal(shape).astype(np.float32)).bfloat16() for shape in ((m, k), (k, n)))
    x, y = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
    found = a.matmul(b, dtype=dtypes.float).numpy()
    bound = (k + 1) * 2.0**-24 * (np.abs(x) @ np.abs(y)) + k * 2.0**-126
    assert (np.abs(found - x @ y) <= bound).all()


def test_what_is_subnormal_counts_as_it_is_or_as_zero():
    tiny = 2.0**-130
    for left, right in ((tiny, 1.0), (2.0**-70, 2.0**-65)):
        ast = matmul(1, 2, 1, bf16)
        for device in ("PYTHON", "CPU"):
            if opened(device).renderer.target.dots:
                ((found,),) = run(ast, device, [[0.0], [left] * 2, [right] * 2], opts=[TC])
                assert found in (0.0, 2 * left * right), device


def test_infinities_and_nan_come_through():
    ast = matmul(1, 2, 4, bf16)
    inf, nan = float("inf"), float("nan")
    contents = [[0.0] * 4, [1.0, inf], [inf, 1.0, nan, -inf, 1.0, -1.0, 0.0, 0.0]]
    for device in ("PYTHON", "CPU"):
        if opened(device).renderer.target.dots:
            (found,) = run(ast, device, contents, opts=[TC])
            assert equal(found, [inf, -inf, nan, nan]), device
    assert Device["PYTHON"].renderer.target.dots == DOTS


# *** in which instructions


@pytest.mark.choice
@pytest.mark.parametrize(
    ("dtype", "summed", "instruction"),
    [(bf16, dtypes.float, "vdpbf16ps"), (dtypes.int8, dtypes.int, "vpdpwssd")],
)
def test_a_processor_that_need_not_be_here(dtype, summed, instruction):
    """The loop of a tile: panels in vectors, pairs of a row in every lane, and nothing is packed in it."""
    features = frozenset(["sse2", "avx2", "fma", "f16c", "avx512f", "avx512vnni", "avx512bf16"])
    processor = Processor("x86_64-unknown-linux-gnu", "cooperlake", features)
    renderer = LLVMRenderer(refined(target(), "cooperlake", processor.features))
    spec = compile_kernel(product(1024, 512, 1024, dtype=dtype, summed=summed), renderer)
    assert TC in spec.applied_opts
    text = CrossCompiler(processor).disassemble(spec.src)
    hot = max(
        re.findall(r"^\.L\w+:(?:(?!^\.L).)*", text, re.M | re.S), key=lambda block: block.count(instruction)
    )
    tile = [opt.amount for opt in spec.applied_opts if opt.op is OptOps.UPCAST]
    assert hot.count(instruction) == tile[0] * tile[1] // 16
    assert "pmovzx" not in hot
    assert "vpsll" not in hot

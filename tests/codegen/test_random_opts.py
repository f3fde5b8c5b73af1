"""Random kernels under random lists of Opts agree with the evaluator, to the bit, on every device.

Each test prints how many triples of kernel, list and device it tried.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt
from lazygrad.dtype import dtypes
from lazygrad.ir.index import substitute
from lazygrad.ir.ops import ELEMENTWISE, Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from lazygrad.shape import shape_of
from tests.helpers import needs

from .kernels import buffers_of, equal, load, opened, plain, random_contents, reduce, run, sink, store
from .programs import Programs
from .test_opt import add, column_sum, convolution, matmul, row_sum, softmax_rows

AMOUNTS = (0, 2, 2, 3, 4, 4, 5, 8, 16)
#: GRID is the interpreter with workgroups.
DEVICES = [
    "PYTHON",
    "GRID",
    "CPU",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("AARCH64", marks=needs("aarch64")),
    pytest.param("CL", marks=needs("cl")),
    pytest.param("WEBGPU", marks=needs("webgpu")),
]
QUICK = {"PYTHON": 40, "GRID": 40, "CPU": 40, "CLANG": 5, "AARCH64": 20, "CL": 3, "WEBGPU": 3}
SLOW = {"PYTHON": 300, "GRID": 300, "CPU": 500, "CLANG": 60, "AARCH64": 300, "CL": 30, "WEBGPU": 30}


class LongPrograms(Programs):
    """The same kernels over longer axes."""

    SIZES = (1, 2, 3, 5, 8, 12, 16, 20)


def random_opt(loops, rng):
    """Something that may fit: most often a divisor of the axis."""
    op = rng.choice(list(ACTIONS))
    if op is OptOps.NOLOCALS:
        return Opt(op)
    axes = loops.reduce_axes if ACTIONS[op].counts == "reduces" else loops.axes
    number = rng.randrange(len(axes)) if axes else 0
    size = axes[number].size if axes else 1
    if op is OptOps.SWAP:
        return Opt(op, number, rng.randrange(max(len(axes), 1)))
    if op is OptOps.STAGE:
        return Opt(op, number, rng.randint(0, 3))
    divisors = [n for n in range(2, 33) if isinstance(size, int) and size % n == 0]
    amounts = divisors if divisors and rng.random() < 0.7 else AMOUNTS
    return Opt(op, number, rng.choice(amounts))


def random_opts(ast, target, rng):
    """A list of Opts that the kernel takes."""
    loops = Loops.of(lower(ast))
    opts = []
    for _ in range(rng.randint(2, 10)):
        opt = random_opt(loops, rng)
        if opt.op is OptOps.NOLOCALS and rng.random() < 0.8:
            continue
        try:
            loops = apply_opt(loops, opt, target)
        except KernelOptError:
            continue
        opts.append(opt)
    return opts


def with_a_row(ast, rng):
    """The kernel with a row of some value kept, whoever reads it: that changes no result."""
    values = [node for node in ast.toposort() if node.op in ELEMENTWISE and node.dtype is not dtypes.index]
    values = [node for node in values if shape_of(node)]
    if not values:
        return ast
    value = rng.choice(values)
    axis = rng.randrange(len(shape_of(value)))
    return substitute((ast,), {value: UOp(Ops.STAGE, value.dtype, (value,), axis)})[ast]


def check_random_kernels(device, seeds):
    """Compare random kernels under random Opts and the heuristic's with the evaluator; count them."""
    tried = 0
    used = Counter()
    target = opened(device).renderer.target
    real = dtypes.float if device in ("METAL", "WEBGPU") else dtypes.double
    for seed in seeds:
        rng = random.Random(seed)
        ast = (LongPrograms if seed % 2 else Programs)(seed, real).kernel()
        if sum(buffer.dtype.size for buffer in buffers_of(ast)) > 20_000:
            continue
        contents = random_contents(ast, seed)
        expected = evaluate(ast, contents)
        if rng.random() < 0.5:
            ast = with_a_row(ast, rng)
        lists = [random_opts(ast, target, rng) for _ in range(2)]
        for opts in (*lists, None):
            found = run(ast, device, contents, opts=opts)
            tried += 1
            used.update(opt.op for opt in opts or ())
            assert all(equal(a, b) for a, b in zip(found, expected, strict=True)), f"seed {seed}: {opts}"
    print(f"{device}: {tried} triples of kernel, Opts and device; applied", end=" ")
    print(", ".join(f"{op.name} {count}" for op, count in used.most_common()))
    return used


@pytest.mark.parametrize("device", DEVICES)
def test_random_kernels_under_random_opts(device):
    assert check_random_kernels(device, range(QUICK[device]))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_many_random_kernels_under_random_opts(device):
    used = check_random_kernels(device, range(1000, 1000 + SLOW[device]))
    grid = opened(device).target.grid
    wanted = {OptOps.UPCAST, OptOps.UNROLL, OptOps.PADTO, OptOps.SWAP, OptOps.GROUP, OptOps.GROUPTOP}
    wanted |= {OptOps.LOCAL, OptOps.NOLOCALS} if grid else {OptOps.THREAD, OptOps.INLINE}
    wanted.add(OptOps.STAGE)
    if not grid and SLOW[device] >= 300:  # few kernels take it, others on each processor
        wanted.add(OptOps.TILE)
    assert wanted <= set(used)


LONG = {
    "row sums": row_sum(3, 1000),
    "column sums": column_sum(640, 5),
    "sum": row_sum(1, 4096),
    "softmax": softmax_rows(3, 100),
    "softmax of lanes": softmax_rows(2, 128),
    "matmul": matmul(8, 128, 12),
    "convolution": convolution(1, 3, 10, 8),
    "odd": add(101),
}


@pytest.mark.parametrize("device", ["GRID", *DEVICES[-2:]])
def test_what_is_chosen_for_workgroups(device):
    """Sums of small whole numbers are exact in any order; EXP is within a few last places."""
    for name, ast in LONG.items():
        contents = random_contents(ast, 1)
        found, expected = run(ast, device, contents, opts=None), evaluate(ast, contents)
        tolerance = 1e-5 if "softmax" in name else 0.0
        assert all(equal(a, b, tolerance) for a, b in zip(found, expected, strict=True)), name


@pytest.mark.parametrize("op", [OptOps.GROUP, OptOps.GROUPTOP])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.int8, dtypes.bool], ids=str)
@needs("cl", "webgpu")
def test_parts_of_narrow_types(dtype, op):
    """Parts of narrow floats are kept wide: many ones are counted, and only the sum is rounded."""
    ast = sink(store(0, reduce(load(1, plain(2, 512), dtype), Ops.ADD, 1)))
    contents = [[0, 0], [1] * 1024]
    for device in ("GRID", "CL", "WEBGPU"):
        assert run(ast, device, contents, opts=[Opt(op, 0, 64)]) == evaluate(ast, contents)

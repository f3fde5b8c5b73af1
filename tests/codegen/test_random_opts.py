"""Random kernels under random lists of Opts agree with the evaluator, to the bit, on every device.

Each test prints how many triples of kernel, list and device it tried.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lazygrad.codegen.evaluate import evaluate
from lazygrad.codegen.lower import lower
from lazygrad.codegen.opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt
from tests.helpers import needs

from .kernels import buffers_of, equal, opened, random_contents, run
from .programs import Programs

AMOUNTS = (0, 2, 2, 3, 4, 4, 5, 8, 16)
#: GRID is the interpreter with workgroups.
DEVICES = [
    "PYTHON",
    "GRID",
    "CPU",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]
QUICK = {"PYTHON": 60, "GRID": 60, "CPU": 60, "CLANG": 8, "CL": 5}
SLOW = {"PYTHON": 900, "GRID": 900, "CPU": 1500, "CLANG": 150, "CL": 60}


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


def check_random_kernels(device, seeds):
    """Compare random kernels under random Opts and the heuristic's with the evaluator; count them."""
    tried = 0
    used = Counter()
    target = opened(device).renderer.target
    for seed in seeds:
        rng = random.Random(seed)
        ast = (LongPrograms if seed % 2 else Programs)(seed).kernel()
        if sum(buffer.dtype.size for buffer in buffers_of(ast)) > 20_000:
            continue
        contents = random_contents(ast, seed)
        expected = evaluate(ast, contents)
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
    used = check_random_kernels(device, range(QUICK[device]))
    assert len(used) > 3


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_many_random_kernels_under_random_opts(device):
    used = check_random_kernels(device, range(1000, 1000 + SLOW[device]))
    grid = opened(device).target.grid
    wanted = {OptOps.UPCAST, OptOps.UNROLL, OptOps.PADTO, OptOps.SWAP, OptOps.GROUP, OptOps.GROUPTOP}
    wanted |= {OptOps.LOCAL, OptOps.NOLOCALS} if grid else {OptOps.THREAD, OptOps.TILE, OptOps.STAGE}
    assert wanted <= set(used)

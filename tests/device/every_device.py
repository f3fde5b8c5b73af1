"""Small programs, each for every device that runs here, emulated ones too: docs/devices.md has the tables.

A program gives lists of numbers. They are compared with those of device PYTHON, which is slow and exact; a
type that a device has not is refused by name. Kernels under one optimization each are compared with what
their AST means (`oracle/evaluate.py`).
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from lazygrad import Tensor, TinyJit, Variable, dtypes, grad
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps
from lazygrad.device import Device
from lazygrad.dtype import DTYPES_BY_NAME, DType
from lazygrad.ir import UOp
from lazygrad.oracle.evaluate import evaluate
from tests.codegen.kernels import equal, random_contents, run
from tests.codegen.test_contraction import product
from tests.codegen.test_opt import matmul, row_sum, softmax_rows

#: Device → what its tests need (tests/helpers.py).
DEVICES: dict[str, tuple[str, ...]] = {
    "CPU": (),
    "CLANG": ("clang",),
    "PYTHON": (),
    "CL": ("cl",),
    "WEBGPU": ("webgpu",),
    "CUDA": ("g++", "nvrtc"),
    "METAL": ("g++",),
    "AARCH64": ("aarch64",),
}
_INTS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64"
DTYPES = f"{_INTS} fp8e4m3 fp8e5m2 float16 bfloat16 float32 float64".split()

#: A program of a device, and one of two tensors of a type.
Feature = Callable[[str], list[Any]]
Family = Callable[[Tensor, Tensor], Tensor]

#: Names in the table → programs. Values are small and whole, so that every type holds them and their sums.
FAMILIES: dict[str, Family] = {
    "arithmetic": lambda x, y: (x < y).where(x * y + x, y).float() + x.cast(dtypes.int32) + y.bool().float(),
    "functions": lambda x, y: (x + y).exp() + x.sqrt(),
    "sums": lambda x, y: (x + y).sum(1),
    "products": lambda x, y: x @ y.T,
    "indices": lambda x, y: x[:, Tensor([1, 0, 1], dtype="int32", device=x.device)] * y[:, :1],
    "sorts": lambda x, y: x.sort(1)[0],
}
X, Y = [[1, 0], [0, 1], [1, 1]], [[1, 1], [0, 1], [0, 0]]


@contextlib.contextmanager
def on(device: str) -> Iterator[None]:
    """Within the block there is such a device, emulated if need be."""
    emulated = {
        "CUDA": "tests.runtime.emulated_cuda.fixture emulated",
        "METAL": "tests.runtime.emulated_metal emulated",
        "AARCH64": "tests.aarch64 registered",
    }
    if device not in emulated:
        yield
        return
    module, name = emulated[device].split()
    with getattr(importlib.import_module(module), name)():
        yield


# *** types


def is_right(device: str, family: str, dtype: str) -> bool:
    """Whether a program gives what it gives on PYTHON; False where the device says it has no such type."""
    try:
        found = _values(device, family, DTYPES_BY_NAME[_short(dtype)])
    except NotImplementedError as error:
        if dtype not in str(error) and _short(dtype) not in str(error):
            raise
        return False
    expected = _values("PYTHON", family, DTYPES_BY_NAME[_short(dtype)])
    assert _close(found, expected), f"{device}, {family} of {dtype}: {found} instead of {expected}"
    return True


def _short(dtype: str) -> str:
    return str(getattr(dtypes, dtype).name)


def _values(device: str, family: str, dtype: DType) -> list[Any]:
    x, y = (Tensor(rows, dtype=dtype, device=device).realize() for rows in (X, Y))
    found: list[Any] = FAMILIES[family](x, y).flatten().tolist()
    return found


def _close(found: list[Any], expected: list[Any]) -> bool:
    """Functions may differ in the last places of float32; the rest is exact."""
    pairs = zip(found, expected, strict=True)
    return all(a == b or math.isclose(a, b, rel_tol=1e-6) for a, b in pairs)


# *** features


def captured(device: str) -> list[Any]:
    """A function that is replayed, with another tensor and another Variable each time."""
    step = TinyJit(lambda x, n: ((x * 2).contiguous().sum(0) + n).realize())
    found: list[Any] = []
    for n in range(5):
        x = Tensor([[n, 1], [2, 3]], dtype="int32", device=device).realize()
        found += step(x, Variable("n", 0, 9).bind(n)).tolist()
    return found


def looped(device: str) -> list[Any]:
    """A loop over time."""
    x = Tensor([1, 2, 3, 4], dtype="int32", device=device).realize()
    end, sums = Tensor.scan(lambda c, each: (c + each, c * each), x[0] * 0, x)
    return [end.item(), *sums.tolist()]


def random(device: str) -> list[Any]:
    """Random numbers: the same everywhere."""
    Tensor.manual_seed(3)
    return [*Tensor.rand(5, device=device).tolist(), *Tensor.randint(5, high=9, device=device).tolist()]


def gradient(device: str) -> list[Any]:
    """A gradient through a product and a function that takes the larger one."""
    x, w = (Tensor(rows, dtype="float32", device=device) for rows in (X, Y))
    found: list[Any] = grad(lambda w: ((x @ w.T).relu() ** 2).sum())(w).flatten().tolist()
    return found


def sized(device: str) -> list[Any]:
    """A size that is a Variable."""
    n, x = Variable("n", 1, 6), Tensor([3, 1, 4, 1, 5, 9], dtype="int32", device=device).realize()
    return [x[: n.bind(size)].sum().item() for size in (2, 5)]


def reported(device: str) -> list[Any]:
    """An index that is out of range is an error of the user's."""
    x = Tensor([1, 2, 3], dtype="int32", device=device).realize()
    try:
        x[Tensor([0, 7], dtype="int32", device=device).realize()].tolist()
    except IndexError as error:
        return ["index 7" in str(error)]
    return ["nothing was said"]


FEATURES: dict[str, Feature] = {
    "captured functions (`TinyJit`)": captured,
    "loops over time (`scan`)": looped,
    "random numbers, the same as on the CPU": random,
    "gradients": gradient,
    "sizes that are Variables": sized,
    "wrong indices are reported": reported,
}


def has(device: str, feature: str) -> bool:
    """Whether a device does this as PYTHON does."""
    return FEATURES[feature](device) == FEATURES[feature]("PYTHON")


# *** what is asked of the device


def replays_a_list(device: str) -> bool:
    """Whether the runtime takes a captured list of kernels as one."""
    there = Device[device]
    return there.has_graphs or there.replayer() is not None


def shuffles(device: str) -> bool:
    """Whether threads give each other what they hold in registers."""
    return Device[device].renderer.target.shuffles > 0


#: Names in the table → what is asked of the device, and not computed.
ASKED: dict[str, Callable[[str], bool]] = {
    "captured functions are given to the runtime as one list": replays_a_list,
    "threads of a warp exchange partial sums in registers": shuffles,
}


# *** optimizations

_LOCALS = [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 4)]
_HALVES = [dtypes.float16, dtypes.bfloat16]


def _kernels(op: OptOps) -> Iterator[tuple[UOp, list[Opt]]]:
    """Kernels, and Opts that end in one of this kind: a device may take some of them only."""
    square = matmul(16, 16, 16)
    if op is OptOps.TC:
        for ast in [matmul(32, 32, 32, dtype) for dtype in _HALVES]:
            yield from ((ast, [Opt(op, 0, steps)]) for steps in (2, 8, 16))
        yield from (
            (product(32, 32, 32, dtype=dtypes.int8, summed=dtypes.int), [Opt(op, 0, steps)])
            for steps in (2, 4, 16, 32)
        )
    elif op is OptOps.STAGE:
        yield from ((square, [*before, Opt(op, axis, 2)]) for before in ([], _LOCALS) for axis in (1, 2))
    elif op is OptOps.AHEAD:
        yield matmul(8, 64, 8), [*_LOCALS, Opt(OptOps.UNROLL, 0, 4), Opt(OptOps.STAGE, 2, 2), Opt(op, 2, 2)]
    elif op is OptOps.INLINE:
        yield softmax_rows(4, 8, keep=True), [Opt(op, 1)]
    elif op is OptOps.NOLOCALS:
        yield square, [Opt(op)]
    elif op is OptOps.SWAP:
        yield square, [Opt(op, 0, 1)]
    elif op is OptOps.PADTO:
        yield matmul(6, 5, 7), [Opt(op, 0, 4)]
    elif op in (OptOps.GROUP, OptOps.GROUPTOP):
        yield row_sum(4, 64), [Opt(op, 0, 8)]
    else:
        yield square, [Opt(op, 0, 4)]


def takes(device: str, op: OptOps) -> bool:
    """Whether kernels have this optimization on a device, and are right then; False where all are refused."""
    taken = 0
    for ast, opts in _kernels(op):
        contents = random_contents(ast)
        try:
            found = run(ast, device, contents, opts=opts)
        except KernelOptError:
            continue
        taken += 1
        for out, right in zip(found, evaluate(ast, contents), strict=True):
            assert equal(out, right, 1e-6), f"{device}, {opts}: {out} instead of {right}"
    return taken > 0


def multiplies_by_dots(device: str) -> bool:
    """Whether instructions for sums of products (TC) depend on which processor it is."""
    return device in ("CPU", "AARCH64")

"""Stage 2: kernels give on the GPU what they give elsewhere.

kernels    the kernels of tests/renderer/test_gpu_runs.py beside the interpreter, which runs the same linear
           program; and random kernels on small whole numbers beside what their AST means
ops        every row of tests/tensor/table.py, values and gradients, beside device CPU
programs   the programs of `bench replay`, beside device CPU
driver     types, features and optimizations of tests/device, and those tests of tests/runtime that ask
           nothing of the emulated driver
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lazygrad import Context, Device, Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel

from .machine import PLAY, Machine
from .stages import Case, Missing

#: How far values may be from CPU's, as a part of the largest number: sums have another order.
TOLERANCE = 1e-4
#: The emulator compiles each kernel as C++: of so many rows or kernels one is played.
ONE_IN = {"kernels": 8, "ops": 60, "driver": 24}
#: Random kernels in a case.
TOGETHER = 5


def cases(machine: Machine, part: str) -> dict[str, Case]:
    found: dict[str, Case] = {"kernels": kernels, "ops": ops, "programs": programs, "driver": driver}[part](
        machine
    )
    if machine.mode == PLAY and part in ONE_IN:
        found = dict(itertools.islice(found.items(), 0, None, ONE_IN[part]))
    return found


def differing(found: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> float:
    """The largest difference as a part of the largest finite number; ValueError if it is more than allowed,
    or if NaN and infinities are elsewhere.
    """
    if found.shape != expected.shape:
        raise ValueError(f"the shape is {found.shape}, on CPU {expected.shape}")
    if found.dtype != expected.dtype:
        raise ValueError(f"the dtype is {found.dtype}, on CPU {expected.dtype}")
    if not np.issubdtype(found.dtype, np.inexact):
        if not np.array_equal(found, expected):
            raise ValueError(f"{int((found != expected).sum())} of {found.size} numbers differ")
        return 0.0
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        raise ValueError(f"NaN or infinities differ: {found[~finite][:5]} instead of {expected[~finite][:5]}")
    a, b = found[finite].astype(np.complex128), expected[finite].astype(np.complex128)
    largest = float(np.abs(b).max(initial=0.0)) or 1.0
    apart = float(np.abs(a - b).max(initial=0.0)) / max(largest, 1e-30)
    if not apart <= tolerance:
        at = int(np.abs(a - b).argmax())
        raise ValueError(
            f"the largest difference is {apart:.2e} of the largest number: {a[at]}, on CPU {b[at]}"
        )
    return apart


# *** kernels


def kernels(machine: Machine) -> dict[str, Case]:
    from tests.renderer.test_gpu_runs import NAMES

    found = {name: lambda name=name: _known(machine, name) for name in NAMES}
    parts = 8 * 25 // TOGETHER
    return {**found, **{f"random {n}": lambda n=n: _random(machine, n) for n in range(parts)}}


def _known(machine: Machine, name: str) -> dict[str, Any]:
    from tests.renderer import test_gpu_runs as runs
    from tests.renderer.test_kernels import KERNELS, ast_of

    device = Device["CUDA"]
    with Context(DEV="CPU"):  # as the tests plan them
        if name in runs.SHUFFLED:
            spec = runs.shuffled(name, device.renderer, 32)
        else:
            kernel, opts = runs.MEETING.get(name, (name, None))
            spec = compile_kernel(ast_of(kernel), device.renderer, KERNELS[name][2] if opts is None else opts)
    program = device.load(spec, device.compile(spec))
    if not machine.runs:
        return {}
    from lazygrad.device import Buffer

    arrays, values = runs.contents(spec), tuple(5 for _ in spec.vars)
    buffers = [
        Buffer("CUDA", a.nbytes, dtypes.uint8).allocate().copyin(memoryview(a).cast("B")) for a in arrays
    ]
    program([buffer._buf for buffer in buffers], values, wait=True)
    expected = runs.interpreted(spec, arrays, values)
    apart, same = 0.0, True
    for number in spec.outs:
        mine, right = (
            np.frombuffer(each, arrays[number].dtype) for each in (buffers[number].numpy(), expected[number])
        )
        same &= mine.tobytes() == right.tobytes()
        apart = max(apart, differing(mine, right))
    return {"to the bit": same, "difference": apart}


def _random(machine: Machine, number: int) -> dict[str, Any]:
    from lazygrad.oracle.evaluate import evaluate
    from tests.codegen.kernels import equal, random_contents, run

    part, first = divmod(number * TOGETHER, 25)
    device = Device["CUDA"]
    count = TOGETHER if machine.mode != PLAY else 1
    for place, ast in enumerate(_drawn(part, first, count)):
        if not machine.runs:
            spec = compile_kernel(ast, device.renderer)
            device.load(spec, device.compile(spec))
            continue
        contents = random_contents(ast, low=0, high=5)
        names = {v.arg[0]: 5 for v in compile_kernel(ast, device.renderer).vars}
        found, right = run(ast, "CUDA", contents, names, opts=None), evaluate(ast, contents, names)
        for mine, other in zip(found, right, strict=True):
            if not equal(mine, other, 1e-5):
                wrong = sum(not equal([a], [b], 1e-5) for a, b in zip(mine, other, strict=True))
                raise ValueError(
                    f"random kernel {part}/{first + place}: {wrong} of {len(mine)} numbers are wrong"
                )
    return {"kernels": count}


def _drawn(part: int, first: int, count: int) -> Iterator[Any]:
    """The random kernels of `bench replay`."""
    import zlib

    from tests.codegen.programs import Programs

    for number in range(first, first + count):
        yield Programs(zlib.crc32(b"%d %d" % (part, number))).kernel()


# *** ops


def ops(machine: Machine) -> dict[str, Case]:
    from tests.tensor.table import ROWS

    return {name: lambda row=row: _row(machine, row) for name, row in ROWS.items()}


def _row(machine: Machine, row: Any) -> dict[str, Any]:
    if not machine.runs:
        try:
            _results(row, "CUDA", False)
        except ValueError as error:
            raise Missing(f"its shape depends on values, and nothing computes them here: {error}") from None
        return {}
    found = _results(row, "CUDA", True)
    expected = _results(row, "CPU", True)
    scale = max(TOLERANCE, 10 * row.rtol)
    return {"difference": max(differing(a, b, scale) for a, b in zip(found, expected, strict=True))}


def _results(row: Any, device: str, read: bool) -> list[np.ndarray]:
    """The values of a row, and its gradients where PyTorch has them."""
    with Context(DEV=device):
        floats = [np.issubdtype(a.dtype, np.floating) for a in row.arrays]
        given = [Tensor(a, requires_grad=f or None) for a, f in zip(row.arrays, floats, strict=True)]
        result = row.ours(*given)
        results = [result]
        leaves = [each for each, is_float in zip(given, floats, strict=True) if is_float]
        if row.backward and leaves and dtypes.is_float(result.dtype):
            for leaf in leaves:
                try:
                    results += result.sum().gradient(leaf)
                except (RuntimeError, ValueError) as error:  # a constant has no gradient, on no device
                    if "does not depend" not in str(error):
                        raise
        if not read:
            Tensor.realize(*results)
            return []
        return [each.numpy() for each in results]


# *** programs


def programs(machine: Machine) -> dict[str, Case]:
    from bench.replay.corpus import PROGRAMS
    from bench.speed.cases import CASES

    found: dict[str, Case] = {case.name: lambda case=case: _speed(machine, case) for case in CASES}
    for name in ("demo step", "transformer step"):
        found[name] = lambda name=name: _program(machine, PROGRAMS[name])
    if machine.mode == PLAY:  # the rest is too much work for an emulator
        return {name: found[name] for name in ("matmul 127", "inverse 256") if name == "matmul 127"}
    return found


def _speed(machine: Machine, case: Any) -> dict[str, Any]:
    from bench.speed.peers.with_lazygrad import make

    arrays = case.arrays()
    found = make(case, arrays, case.dtype)()
    if not machine.runs:
        return {}
    values = found.float().numpy()
    with Context(DEV="CPU"):
        expected = make(case, arrays, case.dtype)().float().numpy()
    return {"difference": differing(values, expected, max(TOLERANCE, 4 * case.tolerance))}


def _program(machine: Machine, program: Callable[[], Any]) -> dict[str, Any]:
    """One that gives nothing: it runs, and the GPU has done it."""
    Tensor.manual_seed(0)
    program()
    Device["CUDA"].synchronize()
    return {}


# *** the tests of devices


def driver(machine: Machine) -> dict[str, Case]:
    from lazygrad.codegen.opt import OptOps
    from tests.device import every_device as every

    found: dict[str, Case] = {}
    for dtype, family in itertools.product(every.DTYPES, every.FAMILIES):
        found[f"{family} of {dtype}"] = lambda d=dtype, f=family: _holds(
            machine, every.is_right, "CUDA", f, d
        )
    for name in every.FEATURES:
        found[name] = lambda name=name: _holds(machine, every.has, "CUDA", name)
    for op in OptOps:
        found[f"{op.name} Opts"] = lambda op=op: _holds(machine, every.takes, "CUDA", op)
    if machine.runs:
        found |= dict(_tests(machine))
    return found


def _holds(machine: Machine, question: Callable[..., bool], *given: Any) -> dict[str, Any]:
    """A question of tests/device/every_device.py, which raises AssertionError for a wrong value."""
    if machine.runs:
        return {"has it": question(*given)}
    with contextlib.suppress(AssertionError):  # zeros are no right values: what counts is that NVRTC took it
        question(*given)
    return {}


def _tests(machine: Machine) -> Iterator[tuple[str, Case]]:
    """Tests that take the device's name, and those of CUDA that ask nothing of the emulated driver."""
    from tests.runtime import test_cuda, test_drivers

    for name, function in vars(test_drivers).items():
        if name.startswith("test_") and "without_a_gpu" not in name:
            for row in _rows(function):
                if set(inspect.signature(function).parameters) == {"name", *row}:
                    shown = ", ".join(map(str, row.values()))
                    yield (
                        f"{name} {shown}".strip(),
                        lambda f=function, row=row: _passes(f, name="CUDA", **row),
                    )
    for name, function in vars(test_cuda).items():
        if name.startswith("test_") and list(inspect.signature(function).parameters) == ["gpu"]:
            body = inspect.getsource(function).partition(":\n")[2]
            if not re.search(r"\bgpu\b|emulated|monkeypatch|close\(", body) and not hasattr(
                function, "pytestmark"
            ):
                yield f"test_cuda.{name}", lambda f=function: _passes(f, gpu=None)


def _rows(function: Any) -> list[dict[str, Any]]:
    """The arguments of each row of a test's tables."""
    tables = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            values = [each if isinstance(each, tuple) else (each,) for each in mark.args[1]]
            tables.append([dict(zip(names, each, strict=True)) for each in values])
    return [{k: v for each in rows for k, v in each.items()} for rows in itertools.product(*tables)]


def _passes(test: Callable[..., Any], **given: Any) -> dict[str, Any]:
    try:
        test(**given)
    except BaseException as error:
        if type(error).__name__ == "Skipped":
            raise Missing(str(error)) from None
        raise
    return {}

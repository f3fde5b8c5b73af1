"""Functions made of arithmetic are within their bounds, and exact where they have to be."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.legalizing.decompose import decompose
from lazygrad.codegen.legalizing.products import form_multiply_add
from lazygrad.codegen.legalizing.transcendental import BOUNDS, DECOMPOSITIONS
from lazygrad.codegen.passes import legalize
from lazygrad.device import Buffer, Device
from lazygrad.dtype import DType, dtypes
from lazygrad.ir.ops import Ops, execute
from lazygrad.ir.uop import UOp
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.target import Target

from ..fuzz.harness import fuzz_seed, number_of
from .kernels import load, plain, sink, store
from .numpy_graph import evaluate, leaf

UNARY = [op for op in DECOMPOSITIONS if op is not Ops.POW]
FLOATS = [dtypes.float32, dtypes.float64]


class Machine:
    """All but the functions under test; multiply-add, powers of two and float64 if asked for."""

    target = Target("TEST", vector_bytes=16)

    def __init__(self, fused: bool = False, float64: bool = True, scaled: bool = False) -> None:
        self.fused, self.float64, self.scaled = fused, float64, scaled

    def supports(self, op: Ops, dtype: DType) -> bool:
        if op in DECOMPOSITIONS or not {Ops.MULACC: self.fused, Ops.LDEXP: self.scaled}.get(op, True):
            return False
        return self.float64 or dtype is not dtypes.float64


def graph_of(op: Ops, dtype: DType, machine: Machine) -> tuple[UOp, tuple[UOp, ...]]:
    inputs = tuple(leaf(name, dtype) for name in ("xy" if op is Ops.POW else "x"))
    value = decompose(UOp(op, dtype, inputs), machine)
    return form_multiply_add(UOp.sink(value), machine).src[0], inputs


def _erf(x: Any) -> Any:
    """erf in extended precision: a series of positive terms."""
    if x.dtype == np.float64:
        return erf(x)
    a = np.minimum(np.abs(x), 7)
    term = total = a
    for n in range(1, 250):
        term = term * (2 * a * a / (2 * n + 1))
        total = total + term
    pi = np.longdouble(math.pi) + np.longdouble(1.2246467991473532e-16)
    return np.copysign(np.minimum(total * np.exp(-a * a) * 2 / np.sqrt(pi), 1), x)


REFERENCE: dict[Ops, Any] = {
    Ops.EXP: np.exp,
    Ops.EXP2: np.exp2,
    Ops.LOG: np.log,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.COS: np.cos,
    Ops.TANH: np.tanh,
    Ops.ERF: _erf,
    Ops.POW: np.power,
}


def expected(op: Ops, *inputs: np.ndarray) -> Any:
    """The function in a wider type than that of the inputs."""
    wide = np.float64 if inputs[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        return REFERENCE[op](*(i.astype(wide) for i in inputs))


def errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In units in the last place; infinite where NaN, infinity or the sign of zero is wrong."""
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        finite = np.isfinite(exact)
        exponent = np.maximum(np.frexp(np.where(finite, exact, 1))[1] - 1, info.minexp)
        unit = np.ldexp(exact.dtype.type(1), exponent - info.nmant)
        overflows = np.abs(exact) >= exact.dtype.type(info.max) + unit / 2
        error = np.abs(found.astype(exact.dtype) - exact) / unit
        error = np.where(np.isnan(found) & np.isnan(exact), 0, error)
        # Past the greatest number: infinity counts as the next one would.
        last = np.isinf(found) & (np.sign(found) == np.sign(exact))
        beyond = (exact.dtype.type(info.max) - np.abs(exact)) / unit + 1
        error = np.where(last & (overflows | ~finite), 0, np.where(last, beyond, error))
        error = np.where((exact == 0) & (np.signbit(found) != np.signbit(exact)), math.inf, error)
        return np.where(np.isnan(error), math.inf, error)


def check(op: Ops, machine: Machine, *inputs: np.ndarray) -> None:
    dtype = dtypes.float32 if inputs[0].dtype == np.float32 else dtypes.float64
    graph, names = graph_of(op, dtype, machine)
    found = evaluate(graph, dict(zip(names, inputs, strict=True)))
    exact = expected(op, *inputs)
    error = errors(found, exact)
    worst = int(np.argmax(error))
    values = [i[worst] for i in inputs]
    assert error[worst] <= BOUNDS[op][dtype], f"{op} of {values} is {found[worst]}, not {exact[worst]}"


EDGES = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 1e10, 2.0**24 - 1, 2.0**31, math.inf]


def edges(kind: Any) -> np.ndarray:
    info = np.finfo(kind)
    found = [
        *EDGES, info.tiny, info.tiny * (1 - info.eps), info.smallest_subnormal, info.max, 1 - info.epsneg,
        1 + info.eps,
    ]  # fmt: skip
    return np.array([*found, *(-x for x in found), math.nan], kind)


def samples(op: Ops, kind: Any) -> np.ndarray:
    """Every exponent, the range where the function changes, neighbourhoods of its special points."""
    rng = np.random.default_rng(0)
    info = np.finfo(kind)
    word = {4: np.uint32, 8: np.uint64}[np.dtype(kind).itemsize]
    bits = rng.integers(0, 1 << 63, 40000, dtype=np.uint64) << np.uint64(1)
    everywhere = (bits >> np.uint64(64 - info.bits)).astype(word).view(kind)
    centre = rng.standard_normal(20000) * rng.choice([0.1, 1, 10, 100], 20000)
    powers = rng.uniform(-1.01, 1.01, 20000) * (
        info.maxexp - 1 if op is Ops.EXP2 else (info.maxexp - 1) * math.log(2)
    )
    powers = np.where(powers < 0, powers * 1.2, powers)
    near_one = 1 + rng.standard_normal(10000) * rng.choice([1e-1, 1e-3, 1e-6], 10000)
    half_pi = np.rint(rng.uniform(0, 1e6, 10000)) * (math.pi / 2)
    return np.concatenate(
        [everywhere, *(a.astype(kind) for a in (centre, powers, near_one, half_pi)), edges(kind)]
    )


@pytest.mark.parametrize("fused", [False, True], ids=["apart", "fused"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_one_argument(op: Ops, kind: Any, fused: bool) -> None:
    check(op, Machine(fused), samples(op, kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", [Ops.EXP, Ops.EXP2])
def test_exponentials_scaled_by_an_instruction(op: Ops, kind: Any) -> None:
    check(op, Machine(fused=True, scaled=True), samples(op, kind))


@pytest.mark.parametrize("fused", [False, True], ids=["apart", "fused"])
@pytest.mark.parametrize(
    ("kind", "float64"),
    [(np.float32, True), (np.float32, False), (np.float64, True)],
    ids=["single", "pairs", "double"],
)
def test_pow(kind: Any, float64: bool, fused: bool) -> None:
    rng = np.random.default_rng(1)
    info = np.finfo(kind)
    count = 30000
    anything = samples(Ops.SIN, kind)[:count]
    base = np.abs(rng.permutation(anything))
    with np.errstate(all="ignore"):
        reachable = rng.uniform(-1.15, 1.01, count) * info.maxexp / np.log2(base)
    near_one = 1 + rng.standard_normal(count) * 0.01
    pairs = [
        (anything, rng.permutation(anything)),
        (base, reachable),
        (base, rng.standard_normal(count)),
        (near_one, rng.standard_normal(count) * info.maxexp * 20),
        (-base, np.rint(rng.standard_normal(count) * 4)),
        tuple(np.array(list(itertools.product(edges(kind), repeat=2)), kind).T),
    ]
    with np.errstate(over="ignore"):
        x, y = (np.concatenate([pair[i].astype(kind) for pair in pairs]) for i in (0, 1))
    check(Ops.POW, Machine(fused, float64), x, y)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_are_those_of_the_op_table(dtype: DType) -> None:
    kind = {dtypes.float32: np.float32, dtypes.float64: np.float64}[dtype]
    special = edges(kind)
    exactly = {0.0, 1.0, math.inf}  # results with no room for an error
    for op in DECOMPOSITIONS:
        graph, names = graph_of(op, dtype, Machine())
        values = list(itertools.product(special.tolist(), repeat=len(names)))
        found = evaluate(graph, dict(zip(names, np.array(values, kind).T, strict=True)))
        for value, result in zip(values, found.tolist(), strict=True):
            wanted = execute(op, dtype, value)
            if abs(wanted) in exactly or wanted != wanted:
                if op in (Ops.TANH, Ops.ERF) and abs(wanted) == 1:
                    assert abs(result - wanted) <= 2 * np.finfo(kind).epsneg
                    continue
                if wanted == 0 and op in (Ops.EXP, Ops.EXP2, Ops.POW) and value[-1] == -np.finfo(kind).max:
                    assert result == 0
                    continue
                assert (result != result) == (wanted != wanted), (op, value, result, wanted)
                assert wanted != wanted or str(result) == str(wanted), (op, value, result, wanted)


def test_huge_angles() -> None:
    """The float nearest to a multiple of π/2, and the largest finite numbers."""
    for op in (Ops.SIN, Ops.COS):
        check(op, Machine(), np.array([6381956970095103.0 * 2.0**797, 1.7976931348623157e308, 1e22, -1e300]))
        check(op, Machine(), np.array([3.4028235e38, -1.6367e38, 16367173.0 * 2.0**72, 1e20], np.float32))


@pytest.mark.parametrize("op", DECOMPOSITIONS)
def test_every_function_has_bounds_and_a_docstring(op: Ops) -> None:
    assert set(BOUNDS[op]) == set(FLOATS)
    assert max(BOUNDS[op].values()) <= 2
    assert DECOMPOSITIONS[op].__doc__


def test_the_documentation_states_the_bounds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "numbers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    stated = {Ops[name.upper()]: tuple(map(float, bounds)) for name, *bounds in rows}
    assert stated.pop(Ops.SQRT) == (0.5, 0.5)  # an instruction everywhere, correctly rounded
    assert stated == {op: tuple(BOUNDS[op][dtype] for dtype in FLOATS) for op in BOUNDS}


@pytest.mark.parametrize("op", DECOMPOSITIONS)
def test_vectors_are_computed_lane_by_lane(op: Ops) -> None:
    """The graph on vectors is the graph on scalars with other dtypes."""
    scalar = legalize(UOp.sink(UOp(op, dtypes.float32, inputs(op, dtypes.float32))), Machine()).toposort()
    kind = dtypes.float32.vec(8)
    vector = legalize(UOp.sink(UOp(op, kind, inputs(op, kind))), Machine()).toposort()
    assert [u.op for u in scalar] == [u.op for u in vector]
    assert {u.dtype.count for u in vector[:-1]} == {8}


def inputs(op: Ops, dtype: DType) -> tuple[UOp, ...]:
    return tuple(leaf(name, dtype) for name in ("xy" if op is Ops.POW else "x"))


@pytest.mark.parametrize("dtype", [dtypes.half, dtypes.bfloat16, dtypes.fp8e5m2], ids=str)
def test_narrow_types_are_computed_in_float32(dtype: DType) -> None:
    """Correctly rounded, but where the float32 result is next to a tie."""
    x = leaf("x", dtypes.float32)
    graph = legalize(UOp.sink(x.cast(dtype).alu(Ops.EXP).cast(dtypes.float32)), Emulating()).src[0]
    values = np.array(
        [execute(Ops.CAST, dtype, (v,)) for v in np.linspace(-12, 12, 500).tolist()], np.float32
    )
    for value, result in zip(values.tolist(), evaluate(graph, {x: values}).tolist(), strict=True):
        assert result == execute(Ops.EXP, dtype, (value,))


class Emulating(Machine):
    def supports(self, op: Ops, dtype: DType) -> bool:
        return super().supports(op, dtype) and dtype not in (dtypes.half, dtypes.bfloat16, dtypes.fp8e5m2)


@pytest.mark.parametrize(
    ("op", "most"),
    [
        (Ops.EXP, 23), (Ops.EXP2, 21), (Ops.LOG, 39), (Ops.LOG2, 50), (Ops.SIN, 145),
        (Ops.COS, 145), (Ops.TANH, 32), (Ops.ERF, 39), (Ops.POW, 81),
    ],
)  # fmt: skip
def test_they_cost_no_more_operations_than_this(op: Ops, most: int) -> None:
    assert operations(op, Machine(fused=True)) <= most


@pytest.mark.parametrize(("op", "most"), [(Ops.EXP, 17), (Ops.EXP2, 15)])
def test_an_instruction_that_scales_saves_operations(op: Ops, most: int) -> None:
    assert operations(op, Machine(fused=True, scaled=True)) <= most


def operations(op: Ops, machine: Machine) -> int:
    graph, _ = graph_of(op, dtypes.float32, machine)
    return sum(u.op not in (Ops.CONST, Ops.LOAD, Ops.BITCAST) for u in graph.toposort())


#: A chunk and what is computed of it stay in the caches.
CHUNK, PARTS = 1 << 16, 32


def compiled(op: Ops, fused: bool) -> Callable[[np.ndarray], np.ndarray]:
    """The function as a kernel of device CPU, over one chunk."""
    device = Device["CPU"]
    renderer = LLVMRenderer(dataclasses.replace(device.renderer.target, has_fma=fused))
    spec = compile_kernel(sink(store(0, load(1, plain(CHUNK)).alu(op))), renderer)
    program = device.load(spec, device.compile(spec))
    out, buffer = (Buffer("CPU", CHUNK, dtypes.float32).allocate() for _ in range(2))

    def run(values: np.ndarray) -> np.ndarray:
        buffer.copyin(memoryview(values).cast("B"))
        program((out._buf, buffer._buf), (), wait=True)
        return out.numpy()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("fused", [False, True], ids=["apart", "fused"])
@pytest.mark.parametrize("op", UNARY)
def test_every_float32(op: Ops, fused: bool) -> None:
    """Every 32nd of all 2**32 inputs, others for each commit; with EXHAUSTIVE=1 all of them,
    which takes two minutes each."""
    function = compiled(op, fused)
    worst = 0.0
    parts = range(PARTS) if os.environ.get("EXHAUSTIVE") == "1" else [number_of(fuzz_seed()) % PARTS]
    for part, start in itertools.product(parts, range(0, 1 << 32, PARTS * CHUNK)):
        numbers = np.arange(start + part, start + part + PARTS * CHUNK, PARTS, dtype=np.uint64)
        values = numbers.astype(np.uint32).view(np.float32)
        found = function(values)
        error = errors(found, expected(op, values))
        place = int(np.argmax(error))
        worst = max(worst, float(error[place]))
        assert worst <= BOUNDS[op][dtypes.float32], f"{op} of {values[place]!r} is {found[place]!r}"
    print(f"{op} {'fused' if fused else 'apart'}: {worst:.3f}")

"""Every elementwise op × dtype that a renderer supports gives what `ir.ops.execute` gives, bit for bit.

On values chosen to hurt, as scalars and as vectors, through LLVM and through each C compiler that is there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

from lazygrad.dtype import ALL_DTYPES, DType, dtypes, truncate
from lazygrad.ir import Ops, UOp
from lazygrad.ir.ops import ELEMENTWISE, OPS, execute
from lazygrad.renderer import Renderer

from .support import (
    ALL_RENDERERS,
    LOOP,
    RENDERERS,
    Run,
    at,
    data,
    end,
    listed,
    load,
    loop,
    numpy_dtype,
    store,
)

ALL = [d for d in ALL_DTYPES if d.fmt is not None]

# *** values

#: At the seams of the float types, and of what integers they become.
FLOATS = (
    0.0, 0.5, 1.0, 1.5, 2.0, 3.7, 100.25, 127.5, 128.0, 255.5, 32768.0, 65504.0, 65519.0, 65520.0, 1e-7, 6e-8,
    2.0**31, 2.0**31 - 128, 2.0**32, 2.0**53, 2.0**63, 2.0**64, 1e30, 1.00048828125, 1.000488281250001,
    1.0004882812499998, 3.141592653589793, math.inf,
)  # fmt: skip


def edges(dtype: DType) -> list[Any]:
    """Values at the ends and at the seams of a type."""
    if dtype is dtypes.bool:
        return [False, True]
    if dtypes.is_int(dtype):
        low, high, bits = int(dtypes.min(dtype)), int(dtypes.max(dtype)), dtype.itemsize * 8
        found = [0, 1, 2, 3, 7, 55, 100, bits - 1, bits, bits + 1, -1, -2, -7, -bits]
        found += [low, low + 1, high, high - 1, high // 2]
        found += [2**60 + 2**36 + 1, 2**60 + 2**36, -(2**60) - 2**36 - 1]  # by way of float64, rounded twice
        return sorted({v for v in found if low <= v <= high})
    info = dtypes.finfo(dtype)
    more = (info.max, info.tiny, info.smallest_subnormal, 1.0 + info.eps)
    signed = [float(truncate(sign * v, dtype)) for v in (*FLOATS, *more) for sign in (1.0, -1.0)]
    return [*{str(v): v for v in signed}.values(), math.nan]


def bits(array: numpy.ndarray) -> numpy.ndarray:
    """To compare: the bits of each element, every NaN the same."""
    if array.dtype.kind != "f":
        return array
    plain = array.copy()
    plain[numpy.isnan(plain)] = numpy.nan
    return plain.view(f"u{plain.dtype.itemsize}")


def as_array(values: Sequence[Any], dtype: DType, size: int) -> numpy.ndarray:
    """The values, the last one repeated up to `size`."""
    return numpy.array([*values, *[values[-1]] * (size - len(values))], dtype=numpy_dtype(dtype))


# *** programs: one kernel with one output per op


def types_with(op: Ops) -> pytest.MarkDecorator:
    """Each language × each type on which it has the op, as scalars and, on CPUs, as vectors."""
    found = [
        pytest.param(language, dtype, lanes, id=f"{language}-{dtype.name}-{lanes}")
        for language, renderer in ALL_RENDERERS.items()
        for dtype in ALL
        for lanes in ((1, 4) if language in RENDERERS else (1,))
        if renderer.supports(op, dtype)
    ]
    return pytest.mark.parametrize(("language", "dtype", "lanes"), found, indirect=["language"])


def check(
    run: Run,
    sources: list[DType],
    rows: list[list[Any]],
    outputs: dict[str, tuple[DType, Callable[..., UOp], Callable[..., Any]]],
    lanes: int,
) -> None:
    """Run a kernel that computes every output from the same sources, and compare each with its meaning."""
    count = len(rows[0])
    size = -(-count // 8) * 8
    inputs = [as_array(row, dtype, size) for row, dtype in zip(rows, sources, strict=True)]
    results = [numpy.zeros(size, numpy_dtype(dtype)) for dtype, _, _ in outputs.values()]
    i = loop(0, size // lanes, LOOP)
    position = i * lanes if lanes > 1 else i
    first = len(results)
    loads = [load(at(data(first + n, dtype, size), position), lanes) for n, dtype in enumerate(sources)]
    stores = [
        store(at(data(n, dtype, size), position), build(*loads))
        for n, (dtype, build, _) in enumerate(outputs.values())
    ]
    run([*listed(i, *stores), end(i)], [*results, *inputs])
    for (name, (dtype, _, meaning)), got in zip(outputs.items(), results, strict=True):
        expected = as_array([meaning(*values) for values in zip(*rows, strict=True)], dtype, size)[:count]
        wrong = numpy.nonzero(bits(got[:count]) != bits(expected))[0]
        shown = [(*(row[k] for row in rows), "gives", got[k], "not", expected[k]) for k in wrong[:8]]
        assert not len(wrong), f"{name}: {len(wrong)} of {count}: {shown}"


def is_legal(op: Ops, dtype: DType, a: Any, b: Any) -> Any:
    """Form 6 has IDIV and MOD only of what is not negative, by what is positive, and shifts by less than the
    width.
    """
    if op in (Ops.SHL, Ops.SHR):
        return (b >= 0) & (b < dtype.itemsize * 8)
    return (a >= 0) & (b > 0)


@types_with(Ops.CMPEQ)
def test_ops_of_one_and_two_values(language: str, run: Run, dtype: DType, lanes: int) -> None:
    renderer: Renderer = ALL_RENDERERS[language]
    pairs = list(itertools.product(edges(dtype), repeat=2))
    rows = [[a for a, _ in pairs], [b for _, b in pairs]]
    outputs: dict[str, Any] = {}
    safe = UOp.const(dtype.vec(lanes), (1,) * lanes if lanes > 1 else 1)
    for op in sorted(ELEMENTWISE - {Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.MULACC, Ops.LDEXP}):
        if not renderer.supports(op, dtype):
            continue
        unary = OPS[op].arity == 1
        result = dtypes.bool if OPS[op].dtype is dtypes.bool else dtype
        if op in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR):

            def build(a: UOp, b: UOp, op: Ops = op) -> UOp:
                legal = is_legal(op, dtype, a, b)
                return legal.where(a, safe).alu(op, legal.where(b, safe))

            def meaning(a: Any, b: Any, op: Ops = op) -> Any:
                return execute(op, dtype, (a, b) if is_legal(op, dtype, a, b) else (1, 1))
        else:

            def build(a: UOp, b: UOp, op: Ops = op, unary: bool = unary) -> UOp:
                return a.alu(op) if unary else a.alu(op, b)

            def meaning(a: Any, b: Any, op: Ops = op, unary: bool = unary, result: DType = result) -> Any:
                return execute(op, result, (a,) if unary else (a, b), dtype)

        outputs[op.name] = (result, build, meaning)
    assert len(outputs) >= 5
    check(run, [dtype, dtype], rows, outputs, lanes)


@pytest.mark.slow
@types_with(Ops.LOAD)
def test_casts(language: str, run: Run, dtype: DType, lanes: int) -> None:
    values = edges(dtype)
    outputs: dict[str, Any] = {}
    for target in ALL:
        if not ALL_RENDERERS[language].supports(Ops.CAST, target):
            continue
        pair = (target, dtype)
        if target is not dtype and (dtypes.float16 not in pair or dtypes.float32 in pair):
            outputs[f"to {target.name}"] = (
                target,
                lambda a, target=target: a.cast(target),
                lambda a, target=target: execute(Ops.CAST, target, (a,)),
            )
        if target.itemsize == dtype.itemsize and target is not dtype and dtypes.bool not in (target, dtype):
            outputs[f"bits of {target.name}"] = (
                target,
                lambda a, target=target: a.bitcast(target),
                lambda a, target=target: execute(Ops.BITCAST, target, (a,), dtype),
            )
    check(run, [dtype], [values], outputs, lanes)


@pytest.mark.slow
@types_with(Ops.CMPNE)
def test_where_and_mulacc(language: str, run: Run, dtype: DType, lanes: int) -> None:
    values = edges(dtype)[::2]
    rows = [list(row) for row in zip(*itertools.product(values, repeat=3), strict=True)]
    outputs: dict[str, Any] = {
        "where": (dtype, lambda a, b, c: a.ne(b).where(b, c), lambda a, b, c: b if a != b else c),
    }
    if ALL_RENDERERS[language].supports(Ops.MULACC, dtype):
        outputs["mulacc"] = (
            dtype,
            lambda a, b, c: a.alu(Ops.MULACC, b, c),
            lambda a, b, c: execute(Ops.MULACC, dtype, (a, b, c)),
        )
    check(run, [dtype] * 3, rows, outputs, lanes)

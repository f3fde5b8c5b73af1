"""Tensors that a routine computes: factors and solutions, in the memory that the routine leaves.

A routine works on matrices in memory and writes one line of numbers for each: rows that may have gaps between
them, and what else it knows. The functions here say what is where in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...codegen.direct_kernels import routine_of
from ...dtype import dtypes
from ...ir.args import ProgramArg, RoutineRecord, Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import vmax
from ..face import Tensor
from ..indexing.addresses import demanded
from ..observer import is_captured


def routine(
    name: str, sizes: tuple[int, ...], *sources: Tensor, core: tuple[int, ...] | None = None
) -> Tensor:
    """What a routine leaves for each example of its sources, matrices (or with `core` axes each)."""
    core = core or (2,) * len(sources)
    arg = ProgramArg(RoutineRecord(name, (routine_of(name).words(*sizes),), core, sizes))
    node = UOp(Ops.PROGRAM, sources[0].dtype, tuple([source.detach().uop for source in sources]), arg)
    made: Tensor = sources[0]._make(node)
    return made


def part(line: Tensor, begin: int, end: int) -> Tensor:
    """Some of the numbers that a routine left."""
    return line._window(line.ndim - 1, begin, end)


def matrix(line: Tensor, begin: int, count: int, size: int) -> Tensor:
    """So many rows of `size` numbers that begin there."""
    stride = Rows.of(size).stride
    lead = line.shape[:-1]
    wide = part(line, begin, begin + count * stride).reshape((*lead, count, stride))
    return wide._window(wide.ndim - 1, 0, size)


def words(name: str, *sizes: int) -> int:
    """How many numbers a routine leaves."""
    return routine_of(name).words(*sizes)


def or_nan(value: Tensor, failed: Tensor, axes: int, problem: str) -> Tensor:
    """A value, NaN for each example where `failed` is not 0.

    Who computes it outside of a jit's capture gets a ValueError with the user's line instead: a kernel
    reports it, as it reports indices out of range.
    """
    good = failed.eq(0)
    if problem and not is_captured():
        good = good._make(demanded(good.uop, problem))
    return good.reshape((*good.shape, *((1,) * axes))).where(value, math.nan)


class Factors(NamedTuple):
    """L U = the rows of A in another order, as `lu` leaves them.

    packed  L below the diagonal, U from there on
    order   which row of A each row is              pivots  the row that each step took
    sign    of that permutation: 1 or -1
    failed  the number of the first pivot that is 0, from 1 on; or 0
    """

    line: Tensor
    packed: Tensor
    order: Tensor
    pivots: Tensor
    sign: Tensor
    failed: Tensor


def lu_factors(a: Tensor) -> Factors:
    rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
    line = routine("lu", (rows, columns), a)
    begin = rows * Rows.of(columns).stride
    steps = begin + rows + min(rows, columns)
    lead = line.shape[:-1]
    return Factors(
        line,
        matrix(line, 0, rows, columns),
        part(line, begin, begin + rows).cast(dtypes.int32),
        part(line, begin + rows, steps).cast(dtypes.int32),
        part(line, steps, steps + 1).reshape(lead),
        part(line, steps + 1, steps + 2).reshape(lead).cast(dtypes.int32),
    )


def order_of(pivots: Tensor, size: int) -> Tensor:
    """Which of so many rows each is after row k changed places with row `pivots[k]`, one after another."""
    steps = vmax(pivots.shape[-1])
    line = routine("order", (steps, size), pivots.cast(dtypes.float32), core=(1,))
    wrong = ((pivots < 0) | (pivots >= size)).any(-1)
    return or_nan(line, wrong, 1, f"a pivot is a row from 1 to {size}").cast(dtypes.int32)


def lu_inverse(factors: Factors) -> Tensor:
    size = vmax(factors.packed.shape[-1])
    return matrix(routine("lu_inverse", (size,), factors.line, core=(1,)), 0, size, size)


def lu_solution(factors: Factors, b: Tensor) -> Tensor:
    size, count = vmax(b.shape[-2]), vmax(b.shape[-1])
    return matrix(routine("lu_solve", (size, count), factors.line, b, core=(1, 2)), 0, size, count)


def triangular_solution(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    size, count = vmax(b.shape[-2]), vmax(b.shape[-1])
    return matrix(routine("triangular", (size, count, int(upper), int(unit)), a, b), 0, size, count)


def cholesky_factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """(U, upper triangular, from the upper triangle of A; the number of the column that failed, or 0)."""
    size = vmax(a.shape[-1])
    line = routine("cholesky", (size,), a)
    begin = size * Rows.of(size).stride
    failed = part(line, begin, begin + 1).reshape(line.shape[:-1]).cast(dtypes.int32)
    return matrix(line, 0, size, size).triu(), failed


def ldl_factors(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(L and D in one lower triangle, the exchanges from 1 on, the number of the pivot that failed, or 0), of
    the lower triangle of A."""
    size = vmax(a.shape[-1])
    line = routine("ldl", (size,), a.transpose(-2, -1))
    begin = size * Rows.of(size).stride
    failed = part(line, begin + size, begin + size + 1).reshape(line.shape[:-1]).cast(dtypes.int32)
    packed = matrix(line, 0, size, size).triu().transpose(-2, -1)
    return packed, part(line, begin, begin + size).cast(dtypes.int32), failed


def ldl_solution(packed: Tensor, pivots: Tensor, b: Tensor) -> Tensor:
    """The X with A @ X = b, by what `ldl_factors` gives; NaN where the exchanges are none of a matrix."""
    size, count = vmax(b.shape[-2]), vmax(b.shape[-1])
    steps = pivots.cast(b.dtype)
    line = routine("ldl_solve", (size, count), packed.transpose(-2, -1), steps, b, core=(2, 1, 2))
    wrong = ((pivots == 0) | (pivots.abs() > size)).any(-1)
    checked = or_nan(line, wrong, 1, f"a pivot of an LDL factor is a row from 1 to {size}, or minus that")
    return matrix(checked, 0, size, count)


# *** orthogonal factors and spectra


def about_one(a: Tensor) -> tuple[Tensor, Tensor]:
    """(matrices whose greatest number is from 1 to below 2, the powers of two that they are divided by).

    What is computed from sums of squares then neither overflows nor vanishes.
    """
    greatest = a.abs().max((-2, -1), keepdim=True)
    kind, mask = (dtypes.int32, 0x7F800000) if a.dtype.itemsize == 4 else (dtypes.int64, 0x7FF << 52)
    power = (greatest.bitcast(kind) & mask).bitcast(a.dtype)
    power = power.eq(0).where(1.0, power)
    return a / power, power


def qr_factors(a: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """(so many columns of Q, as many rows of R)."""
    rows, width = vmax(a.shape[-2]), vmax(a.shape[-1])
    scaled, power = about_one(a)
    line = routine("qr", (rows, width, columns), scaled.transpose(-2, -1))
    r = matrix(line, 0, width, rows).transpose(-2, -1)
    q = matrix(line, width * Rows.of(rows).stride, columns, rows).transpose(-2, -1)
    return q, r._window(r.ndim - 2, 0, columns).triu() * power


def _flag(line: Tensor, at: int) -> Tensor:
    """Which examples a routine found no result for."""
    return part(line, at, at + 1).reshape(line.shape[:-1])


def eigenpairs(a: Tensor, problem: str) -> tuple[Tensor, Tensor]:
    """(eigenvalues, eigenvectors in columns) of symmetric matrices."""
    size = vmax(a.shape[-1])
    scaled, power = about_one(a)
    line = routine("eigh", (size, size), scaled)
    begin = size * Rows.of(size).stride
    failed = _flag(line, begin + size)
    values = part(line, begin, begin + size) * power.squeeze(-1)
    vectors = matrix(line, 0, size, size).transpose(-2, -1)
    return or_nan(values, failed, 1, problem), or_nan(vectors, failed, 2, problem)


def singular_factors(a: Tensor, columns: int, problem: str) -> tuple[Tensor, Tensor, Tensor]:
    """(so many columns of U, singular values, rows of Vᵀ) of matrices that are not wide."""
    rows, width = vmax(a.shape[-2]), vmax(a.shape[-1])
    scaled, power = about_one(a)
    line = routine("svd", (rows, width, columns), scaled)
    right = columns * Rows.of(rows).stride
    begin = right + width * Rows.of(width).stride
    failed = _flag(line, begin + width)
    u = matrix(line, 0, columns, rows).transpose(-2, -1)
    values = part(line, begin, begin + width) * power.squeeze(-1)
    return (
        or_nan(u, failed, 2, problem),
        or_nan(values, failed, 1, problem),
        or_nan(matrix(line, right, width, width), failed, 2, problem),
    )


def eigenvalues(a: Tensor, problem: str) -> Tensor:
    """The eigenvalues alone."""
    size = vmax(a.shape[-1])
    scaled, power = about_one(a)
    line = routine("eigh", (size, 0), scaled)
    return or_nan(part(line, 0, size) * power.squeeze(-1), _flag(line, size), 1, problem)


def general_eigenpairs(a: Tensor, vectors: bool, problem: str) -> tuple[Tensor, Tensor | None]:
    """(eigenvalues (..., n, 2), eigenvectors in columns (..., n, n, 2), if wanted) of square matrices."""
    size = vmax(a.shape[-1])
    scaled, power = about_one(a)
    count = size if vectors else 0
    line = routine("eig", (size, count), scaled)
    half = count * Rows.of(size).stride
    failed = _flag(line, 2 * half + 2 * size)
    parts = part(line, 2 * half, 2 * half + 2 * size).unflatten(-1, (2, size)) * power
    values = or_nan(parts.transpose(-2, -1), failed, 2, problem)
    if not vectors:
        return values, None
    real, imag = (matrix(line, begin, size, size).transpose(-2, -1) for begin in (0, half))
    return values, or_nan(real.stack(imag, dim=-1), failed, 3, problem)


def singular_values(a: Tensor, problem: str) -> Tensor:
    """The singular values alone."""
    rows, width = vmax(a.shape[-2]), vmax(a.shape[-1])
    scaled, power = about_one(a)
    line = routine("svd", (rows, width, 0), scaled)
    return or_nan(part(line, 0, width) * power.squeeze(-1), _flag(line, width), 1, problem)

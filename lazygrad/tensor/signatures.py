"""Types in the signatures of methods: of axes and sizes, of subscripts, of several tensors as a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..device import Devices
from ..dtype import DTypeSaid
from ..ir.index import sint
from ..ir.uop import UOp

Axis = int | Sequence[int] | None
DTypeLike = DTypeSaid | None  #: None: what the method takes without one
Several = int | Sequence[int]  #: of windows: one for all axes, or one for each
Adaptive = int | Sequence[int | None]  #: of results: None leaves an axis as it is
Pairs = tuple[tuple[int, int], ...]  #: (before, behind) for each axis
T = TypeVar("T")  #: the class of the tensors in a tuple


class Numbers(Protocol):
    """What random numbers are drawn from: a Generator."""

    def take(self, total: int, device: Devices) -> tuple[UOp, UOp]:
        """The key, and the number of the next of `total` numbers, each a uint64 on a device."""


class Parsed(NamedTuple):
    """An index taken apart.

    Spans and steps of the axes, then new axes, dropped axes and tensors at axes of the rest.
    """

    spans: list[tuple[sint, sint]]
    steps: list[int]
    #: for each axis of the result before gathering: the axis of the source, or None for a new one
    retained: list[int | None]
    #: (place in `retained`, index tensor, whether the host has seen that it is in range)
    tensors: list[tuple[int, Any, bool]]


class QR(NamedTuple, Generic[T]):
    """Q with orthonormal columns, R upper triangular."""

    Q: T
    R: T


class SVD(NamedTuple, Generic[T]):
    """Columns of U and rows of Vh are singular vectors, S the singular values from the greatest on."""

    U: T
    S: T
    Vh: T


class Eigh(NamedTuple, Generic[T]):
    """Eigenvalues from the least on, and eigenvectors in columns."""

    eigenvalues: T
    eigenvectors: T


class SignLog(NamedTuple, Generic[T]):
    """The sign of a determinant, and the logarithm of its size."""

    sign: T
    logabsdet: T


class LU(NamedTuple, Generic[T]):
    """P·L·U: a permutation, a lower triangle with ones on its diagonal, an upper triangle."""

    P: T
    L: T
    U: T


class CholeskyEx(NamedTuple, Generic[T]):
    """A Cholesky factor; the number (from 1 on) of the first column that has none, or 0."""

    L: T
    info: T


class InverseEx(NamedTuple, Generic[T]):
    """An inverse; the number (from 1 on) of the first pivot that is 0, or 0."""

    inverse: T
    info: T


class SolveEx(NamedTuple, Generic[T]):
    """A solution; the number (from 1 on) of the first pivot that is 0, or 0."""

    result: T
    info: T


class LUFactor(NamedTuple, Generic[T]):
    """L (without its ones) and U in one matrix; the row, from 1 on, that each row changed places with."""

    LU: T
    pivots: T


class LeastSquares(NamedTuple, Generic[T]):
    """What `lstsq` found: see there."""

    solution: T
    residuals: T
    rank: T
    singular_values: T

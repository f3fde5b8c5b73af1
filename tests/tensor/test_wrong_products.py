"""Products of shapes that do not fit."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import AWAY, FOUR, LINE, SQUARE, M, Row, X, check, ids

ROWS: list[Row] = [
    ("addbmm", lambda: M.addbmm(M, M), ValueError, "bmm needs 3 axes, not shape (2, 3)"),
    (
        "addmm",
        lambda: M.addmm(LINE, M),
        ValueError,
        "cannot multiply matrices of shapes (3,) and (2, 3): the inner sizes 3 and 2",
    ),
    ("addmv", lambda: M.addmv(M, M), ValueError, "mv needs 1 axes, not shape (2, 3)"),
    ("addr", lambda: M.addr(M, LINE), ValueError, "outer needs 1 axes, not shape (2, 3)"),
    ("baddbmm", lambda: M.baddbmm(M, M), ValueError, "bmm needs 3 axes, not shape (2, 3)"),
    ("bmm", lambda: X[0].bmm(M), ValueError, "bmm needs 3 axes, not shape (2, 3)"),
    (
        "bmm",
        lambda: X[0].bmm(X[1].cat(X[1])),
        ValueError,
        "batches of matrices of shapes (3, 4, 4) and (6, 4, 4) do not broadcast: cannot",
    ),
    ("cdist", lambda: M.cdist(FOUR), ValueError, "cdist needs rows of one length, not (2, 3) and (4,)"),
    (
        "cdist",
        lambda: M.cdist(Tensor.ones(2, 4)),
        ValueError,
        "cdist needs rows of one length, not (2, 3) and (2, 4)",
    ),
    ("cdist", lambda: M.cdist(M, p=-1), ValueError, "cdist needs p of at least 0, not -1"),
    (
        "chain_matmul",
        lambda: M.chain_matmul(M),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (2, 3): the inner sizes 3 and 2",
    ),
    (
        "chain_matmul",
        lambda: M.chain_matmul("a"),
        TypeError,
        "chain_matmul: each of others must be a Tensor, not 'a'",
    ),
    ("cross", lambda: LINE.cross(FOUR), ValueError, "cross needs size 3 along axis -1, not (3,) and (4,)"),
    ("cross", lambda: FOUR.cross(FOUR), ValueError, "cross needs size 3 along axis -1, not (4,) and (4,)"),
    (
        "cross",
        lambda: LINE.cross(LINE, 1),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "dist",
        lambda: LINE.dist(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("dist", lambda: LINE.dist(LINE, "a"), TypeError, "dist: p must be a number, not 'a'"),
    (
        "dot",
        lambda: M.dot(Tensor.ones(4, 5)),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (4, 5): the inner sizes 3 and 4",
    ),
    (
        "dot",
        lambda: M.dot(FOUR),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (4,): the inner sizes 3 and 4",
    ),
    (
        "einsum",
        lambda: Tensor.einsum("ij,jk->ik", M),
        ValueError,
        "einsum 'ij,jk->ik' names 2 operands, 1 are given",
    ),
    (
        "einsum",
        lambda: Tensor.einsum("ij->ik", M),
        ValueError,
        "einsum 'ij->ik': the result's letter 'k' must occur in an operand, and once",
    ),
    (
        "einsum",
        lambda: Tensor.einsum("ijk->i", M),
        ValueError,
        "einsum 'ijk->i': 'ijk' does not name the axes of shape (2, 3)",
    ),
    (
        "einsum",
        lambda: Tensor.einsum("ij,jk->ik", M, M),
        ValueError,
        "einsum 'ij,jk->ik': letter j has sizes 3 and 2",
    ),
    ("einsum", lambda: Tensor.einsum(3, M), TypeError, "einsum: formula must be a string, not 3"),
    (
        "einsum",
        lambda: Tensor.einsum("i1->i", M),
        ValueError,
        "einsum 'i1->i': operands must be letters and at most one '...', not 'i1'",
    ),
    (
        "einsum",
        lambda: Tensor.einsum("ij->ii", M),
        ValueError,
        "einsum 'ij->ii': the result's letter 'i' must occur in an operand, and once",
    ),
    ("einsum", lambda: Tensor.einsum("ij,ij->ij", M, 3), TypeError, "einsum takes tensors, not 3"),
    ("einsum", lambda: Tensor.einsum(), TypeError, "einsum needs formula"),
    (
        "inner",
        lambda: LINE.inner(FOUR),
        ValueError,
        "tensordot of shapes (3,) and (4,): axis 0 has size 3, axis 0 has 4",
    ),
    ("kron", lambda: M.kron("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "matmul",
        lambda: M.matmul(FOUR),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (4,): the inner sizes 3 and 4",
    ),
    (
        "matmul",
        lambda: M.matmul(3),
        ValueError,
        "a product of matrices needs at least one axis, not (2, 3) and ()",
    ),
    (
        "matmul",
        lambda: M.matmul(Tensor(1.0)),
        ValueError,
        "a product of matrices needs at least one axis, not (2, 3) and ()",
    ),
    (
        "matmul",
        lambda: M.matmul(AWAY),
        ValueError,
        "matmul: other is on PYTHON, the tensor on CPU; move one with .to('CPU')",
    ),
    ("matrix_exp", lambda: M.matrix_exp(), ValueError, "matrix_exp needs square matrices, not shape (2, 3)"),
    (
        "matrix_power",
        lambda: M.matrix_power(2),
        ValueError,
        "matrix_power needs square matrices, not shape (2, 3)",
    ),
    ("matrix_power", lambda: SQUARE.matrix_power(0.5), TypeError, "matrix_power: n must be an int, not 0.5"),
    ("mm", lambda: LINE.mm(M), ValueError, "mm needs 2 axes, not shape (3,)"),
    (
        "multi_dot",
        lambda: M.multi_dot(M),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (2, 3): the inner sizes 3 and 2",
    ),
    ("mv", lambda: M.mv(M), ValueError, "mv needs 1 axes, not shape (2, 3)"),
    (
        "newton_schulz",
        lambda: M.newton_schulz(10**9),
        ValueError,
        "newton_schulz takes at most 1,024 steps, not 1,000,000,000",
    ),
    (
        "newton_schulz",
        lambda: LINE.newton_schulz(),
        ValueError,
        "newton_schulz needs matrices, not shape (3,)",
    ),
    ("outer", lambda: LINE.outer(M), ValueError, "outer needs 1 axes, not shape (2, 3)"),
    (
        "renorm",
        lambda: LINE.renorm(2, 3, 1),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "tensordot",
        lambda: M.tensordot(M, 1),
        ValueError,
        "tensordot of shapes (2, 3) and (2, 3): axis 1 has size 3, axis 0 has 2",
    ),
    (
        "tensordot",
        lambda: M.tensordot(M, ((0,), (1,))),
        ValueError,
        "tensordot of shapes (2, 3) and (2, 3): axis 0 has size 2, axis 1 has 3",
    ),
    ("tensordot", lambda: M.tensordot(M, "a"), TypeError, "or the axes of both, not 'a'"),
    (
        "tensordot",
        lambda: M.tensordot(M, 10**12),
        ValueError,
        "tensordot over 1000000000000 axes of shapes (2, 3) and (2, 3)",
    ),
    (
        "tensordot",
        lambda: M.tensordot(M, -1),
        ValueError,
        "tensordot over -1 axes of shapes (2, 3) and (2, 3)",
    ),
    (
        "tensordot",
        lambda: LINE.tensordot(M, 2),
        ValueError,
        "tensordot over 2 axes of shapes (3,) and (2, 3)",
    ),
    ("trace", lambda: X.trace(), ValueError, "trace needs 2 axes, not shape (2, 3, 4, 4)"),
    ("trace", lambda: LINE.trace(), ValueError, "trace needs 2 axes, not shape (3,)"),
    ("vdot", lambda: LINE.vdot(M), ValueError, "vdot needs 1 axes, not shape (2, 3)"),
    (
        "vecdot",
        lambda: LINE.vecdot(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "vecdot",
        lambda: LINE.vecdot(LINE, dim=2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "vector_norm",
        lambda: LINE.vector_norm("fro"),
        TypeError,
        "vector_norm: ord must be a number, not 'fro'",
    ),
    (
        "vector_norm",
        lambda: LINE.vector_norm(2, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)

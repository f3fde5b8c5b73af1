"""Decompositions and Fourier transforms of wrong shapes and arguments."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import FOUR, LINE, PAIRS, SQUARE, M, Row, check, ids

ROWS: list[Row] = [
    ("cholesky", lambda: M.cholesky(), ValueError, "cholesky needs square matrices, not shape (2, 3)"),
    (
        "cholesky_inverse",
        lambda: LINE.cholesky_inverse(),
        ValueError,
        "cholesky_inverse needs square matrices, not shape (3,)",
    ),
    (
        "cholesky_solve",
        lambda: M.cholesky_solve(M),
        ValueError,
        "solve_triangular needs square matrices, not shape (2, 3)",
    ),
    (
        "cholesky_solve",
        lambda: LINE.cholesky_solve(SQUARE),
        ValueError,
        "solve_triangular of matrices of shape (2, 2) does not take shape (3,) on the right",
    ),
    ("cholesky_ex", lambda: LINE.cholesky_ex(), ValueError, "cholesky_ex needs square matrices, not"),
    ("inv_ex", lambda: LINE.inv_ex(), ValueError, "inv_ex needs square matrices, not shape (3,)"),
    ("lu_factor", lambda: LINE.lu_factor(), ValueError, "lu_factor needs matrices, not shape (3,)"),
    ("lu_solve", lambda: SQUARE.lu_solve(LINE, LINE), ValueError, "lu_solve needs square matrices, not"),
    ("solve_ex", lambda: LINE.solve_ex(LINE), ValueError, "solve needs square matrices, not shape (3,)"),
    ("cond", lambda: LINE.cond(), ValueError, "cond needs matrices, not shape (3,)"),
    (
        "cond",
        lambda: SQUARE.cond("fo"),
        ValueError,
        "matrix_norm's ord must be 'fro', 'nuc', ±1, ±2 or ±inf, not 'fo'",
    ),
    ("det", lambda: M.det(), ValueError, "det needs square matrices, not shape (2, 3)"),
    ("eigh", lambda: M.eigh(), ValueError, "eigh needs square matrices, not shape (2, 3)"),
    ("eigh", lambda: SQUARE.eigh("Q"), ValueError, "eigh's UPLO must be 'L' or 'U', not 'Q'"),
    ("eigvalsh", lambda: M.eigvalsh(), ValueError, "eigvalsh needs square matrices, not shape (2, 3)"),
    ("eigvalsh", lambda: SQUARE.eigvalsh("Q"), ValueError, "eigh's UPLO must be 'L' or 'U', not 'Q'"),
    (
        "fft",
        lambda: LINE.fft(),
        ValueError,
        "fft takes complex numbers, floats with a trailing axis of 2, not dtypes.float",
    ),
    ("fft", lambda: PAIRS.fft(0), ValueError, "fft needs a positive size, not 0 in shape (4, 2)"),
    (
        "fft",
        lambda: PAIRS.fft(dim=3),
        IndexError,
        "axis 3 is out of range for shape (4,): its axes are from -1 to 0",
    ),
    (
        "fft",
        lambda: PAIRS.fft(norm="orto"),
        ValueError,
        "fft's norm must be one of backward, ortho, forward, not 'orto'",
    ),
    ("fft", lambda: PAIRS.fft(n="a"), TypeError, "fft: n must be an int, not 'a'"),
    (
        "fft",
        lambda: PAIRS.fft(10**12),
        ValueError,
        "fft takes at most 67,108,864 samples along an axis, not 1,000,000,000,000",
    ),
    ("fft2", lambda: LINE.fft2(), IndexError, "axis -2 is out of range for shape (3,): its axes are none"),
    (
        "fft2",
        lambda: PAIRS.fft2(dim=(0, 0)),
        ValueError,
        "fftn: axes (0, 0) name an axis of shape (4, 2) twice",
    ),
    ("fftfreq", lambda: Tensor.fftfreq("a"), TypeError, "fftfreq: n must be an int, not 'a'"),
    ("fftn", lambda: LINE.fftn(), ValueError, "fftn needs an axis, not shape (3,)"),
    (
        "fftn",
        lambda: PAIRS.fftn((2, 2, 2)),
        ValueError,
        "fftn needs a size for each axis, not (2, 2, 2) for (0,)",
    ),
    ("fftshift", lambda: LINE.fftshift("a"), TypeError, "dim must be an int or a sequence of ints, not 'a'"),
    (
        "fftshift",
        lambda: LINE.fftshift(4),
        IndexError,
        "axis 4 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "ifft",
        lambda: LINE.ifft(),
        ValueError,
        "ifft takes complex numbers, floats with a trailing axis of 2, not",
    ),
    ("ifft2", lambda: LINE.ifft2(), IndexError, "axis -2 is out of range for shape (3,): its axes are none"),
    ("ifftn", lambda: LINE.ifftn(), ValueError, "ifftn needs an axis, not shape (3,)"),
    (
        "ifftshift",
        lambda: LINE.ifftshift(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("inv", lambda: M.inv(), ValueError, "inv needs square matrices, not shape (2, 3)"),
    (
        "irfft",
        lambda: LINE.irfft(),
        ValueError,
        "irfft takes complex numbers, floats with a trailing axis of 2, not",
    ),
    ("irfft", lambda: PAIRS.irfft(0), ValueError, "irfft needs a positive size, not 0"),
    (
        "irfft2",
        lambda: LINE.irfft2(),
        IndexError,
        "axis -2 is out of range for shape (3,): its axes are none",
    ),
    ("irfftn", lambda: LINE.irfftn(), ValueError, "irfftn needs an axis, not shape (3,)"),
    ("lstsq", lambda: LINE.lstsq(LINE), ValueError, "lstsq needs matrices, not shape (3,)"),
    ("lstsq", lambda: M.lstsq(FOUR), ValueError, "lstsq of matrices of shape (2, 3) does not take (4,)"),
    ("lu", lambda: LINE.lu(), ValueError, "lu needs matrices, not shape (3,)"),
    ("matrix_norm", lambda: LINE.matrix_norm(), ValueError, "matrix_norm needs matrices, not shape (3,)"),
    (
        "matrix_norm",
        lambda: M.matrix_norm("x"),
        ValueError,
        "matrix_norm's ord must be 'fro', 'nuc', ±1, ±2 or ±inf, not 'x'",
    ),
    ("matrix_rank", lambda: LINE.matrix_rank(), ValueError, "matrix_rank needs matrices, not shape (3,)"),
    ("pinv", lambda: M.pinv("a"), TypeError, "pinv: rtol must be a number or a Tensor, not 'a'"),
    ("pinv", lambda: LINE.pinv(), ValueError, "pinv needs matrices, not shape (3,)"),
    ("qr", lambda: M.qr("most"), ValueError, "qr's mode must be 'reduced', 'complete' or 'r', not 'most'"),
    ("rfft", lambda: LINE.rfft(0), ValueError, "rfft needs a positive size, not 0 in shape (3, 2)"),
    (
        "rfft",
        lambda: LINE.rfft(dim=2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "rfft2",
        lambda: LINE.rfft2(),
        IndexError,
        "axis -2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "rfftfreq",
        lambda: Tensor.rfftfreq(-1),
        ValueError,
        "rfftfreq needs a number of samples of at least 0, not -1",
    ),
    ("rfftfreq", lambda: Tensor.rfftfreq(4, d="a"), TypeError, "rfftfreq: d must be a number, not 'a'"),
    (
        "rfftn",
        lambda: LINE.rfftn((2, 2)),
        ValueError,
        "rfftn needs a size for each axis, not (2, 2) for (0,)",
    ),
    ("slogdet", lambda: M.slogdet(), ValueError, "slogdet needs square matrices, not shape (2, 3)"),
    (
        "solve",
        lambda: SQUARE.solve(FOUR),
        ValueError,
        "solve of matrices of shape (2, 2) does not take shape (4,) on the right",
    ),
    ("solve", lambda: M.solve(LINE), ValueError, "solve needs square matrices, not shape (2, 3)"),
    (
        "solve_triangular",
        lambda: SQUARE.solve_triangular(FOUR, upper=True),
        ValueError,
        "solve_triangular of matrices of shape (2, 2) does not take shape (4,) on the right",
    ),
    (
        "solve_triangular",
        lambda: M.solve_triangular(M, upper=True),
        ValueError,
        "solve_triangular needs square matrices, not shape (2, 3)",
    ),
    ("solve_triangular", lambda: SQUARE.solve_triangular(SQUARE), TypeError, "solve_triangular needs upper"),
    ("svd", lambda: M.svd("no"), TypeError, "svd: full_matrices must be True or False, not 'no'"),
    ("svd", lambda: LINE.svd(), ValueError, "svd needs matrices, not shape (3,)"),
    (
        "triangular_solve",
        lambda: SQUARE.triangular_solve(M),
        ValueError,
        "solve_triangular needs square matrices, not shape (2, 3)",
    ),
    (
        "triangular_solve",
        lambda: LINE.triangular_solve(SQUARE),
        ValueError,
        "solve_triangular of matrices of shape (2, 2) does not take shape (3,) on the right",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)

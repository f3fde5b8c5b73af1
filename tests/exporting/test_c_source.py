"""`lazygrad.export` to C: what a C compiler makes of it computes the same."""

from __future__ import annotations

import ctypes
import subprocess

import pytest

import lazygrad
from lazygrad import Tensor, TinyJit, Variable, nn
from lazygrad.renderer.cstyle import FLAGS
from tests.helpers import needs, require


def built(folder, name="model"):
    """The exported function, compiled and loaded."""
    line = [
        require("clang"),
        "-O1",
        *FLAGS,
        "-Werror",
        "-shared",
        "-fPIC",
        f"{name}.c",
        "-o",
        f"{name}.so",
        "-lm",
    ]
    subprocess.run(line, cwd=folder, check=True)
    return getattr(ctypes.CDLL(str(folder / f"{name}.so")), name)


def exported(folder, fn, *args):
    lazygrad.export(fn, args, folder / "model.c")
    return built(folder)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


@needs("clang")
def test_a_network(tmp_path):
    import numpy as np

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm(4), Tensor.relu, nn.Flatten(), nn.Linear(144, 3))
    x = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    run = exported(tmp_path, lambda x: model(x).softmax(), Tensor(x))
    out = np.empty((2, 3), np.float32)
    assert run(pointer(x), pointer(out)) == 0
    np.testing.assert_allclose(out, model(Tensor(x)).softmax().numpy(), rtol=1e-5)
    header = (tmp_path / "model.h").read_text()
    assert "int model(const float* x, float* result);" in header
    assert "x: (2, 1, 8, 8) float" in header


@needs("clang")
def test_many_weights_are_in_a_file_of_their_own(tmp_path):
    import numpy as np

    w = Tensor.arange(600 * 600).reshape(600, 600).float().realize()
    run = exported(tmp_path, lambda x: x @ w, Tensor.ones(2, 600).contiguous())
    assert (tmp_path / "model.bin").stat().st_size >= 600 * 600 * 4
    x, out = np.ones((2, 600), np.float32), np.empty((2, 600), np.float32)
    assert run(pointer(x), pointer(out)) == 0
    np.testing.assert_allclose(out, x @ w.numpy(), rtol=1e-5)


@needs("clang")
def test_state_and_its_reset(tmp_path):
    import numpy as np

    total = Tensor([10.0, 20.0]).realize()

    @TinyJit
    def add(x):
        total.assign(total + x)
        return total * 1, (total * 2).cast("int32")

    lazygrad.export(add, (Tensor([0.0, 0.0]).realize(),), tmp_path / "model.c")
    run, reset = built(tmp_path), ctypes.CDLL(str(tmp_path / "model.so")).model_reset
    x, first, second = np.array([1, 2], np.float32), np.empty(2, np.float32), np.empty(2, np.int32)
    for expected in ([11.0, 22.0], [12.0, 24.0]):
        run(pointer(x), pointer(first), pointer(second))
        assert first.tolist() == expected
        assert second.tolist() == [2 * n for n in expected]
    reset()
    run(pointer(x), pointer(first), pointer(second))
    assert first.tolist() == [11.0, 22.0]


@needs("clang")
def test_variables_indices_and_narrow_types(tmp_path):
    import numpy as np

    table = Tensor.arange(40).reshape(10, 4).cast("float16").realize()
    count = Variable("count", 1, 64)

    def pick(rows, count, keep):
        return table[rows[:count]].sum(), keep.where(table[rows], 0)

    rows, keep = np.arange(64, dtype=np.int32) % 10, np.arange(64)[:, None] % 3 == 0
    run = exported(tmp_path, pick, Tensor(rows), count.bind(3), Tensor(keep))
    out, kept = np.empty(1, np.float16), np.empty((64, 4), np.float16)
    for n in (1, 3, 64):
        assert run(pointer(rows), ctypes.c_int64(n), pointer(keep), pointer(out), pointer(kept)) == 0
        picked = np.arange(40, dtype=np.float16).reshape(10, 4)[rows]
        assert out[0] == picked[:n].sum()
        assert kept.tolist() == (picked * keep).tolist()
    rows[1] = 10
    assert run(pointer(rows), ctypes.c_int64(3), pointer(keep), pointer(out), pointer(kept)) == 1


@needs("clang")
def test_a_size_that_varies_and_a_name_that_is_taken(tmp_path):
    """The Variable of an argument's shape is a parameter after it; `n` is a tensor there."""
    import numpy as np

    rows, count = Tensor.arange(24).reshape(8, 3).float().realize(), Variable("n", 1, 8)
    run = exported(tmp_path, lambda x, n: (x + n).sum(0), rows[: count.bind(3)], Tensor([1.0]))
    out, one = np.empty(3, np.float32), np.array([10.0], np.float32)
    assert run(pointer(rows.numpy()), ctypes.c_int64(2), pointer(one), pointer(out)) == 0
    assert out.tolist() == [23.0, 25.0, 27.0]


@needs("clang")
def test_results_that_are_the_same(tmp_path):
    import numpy as np

    run = exported(tmp_path, lambda x: (x + 1, x * 2, x + 1), Tensor([1.0, 2.0]))
    x, found = np.array([3.0, 4.0], np.float32), np.zeros((3, 2), np.float32)
    assert run(pointer(x), *map(pointer, found)) == 0
    assert found.tolist() == [[4.0, 5.0], [6.0, 8.0], [4.0, 5.0]]


@needs("clang")
def test_tiles_and_sorting(tmp_path):
    import numpy as np

    x = np.random.default_rng(1).random((300, 300), np.float32)
    run = exported(tmp_path, lambda x: (x @ x).sort(0)[0], Tensor(x))
    out = np.empty_like(x)
    assert run(pointer(x), pointer(out)) == 0
    np.testing.assert_allclose(out, np.sort(x @ x, 0), rtol=1e-5)


@needs("clang")
def test_linear_algebra(tmp_path):
    """Of a batch; a singular matrix gives NaN, as in any capture."""
    import numpy as np

    def numbers(x):
        return x.inv(), (x @ x.mT + Tensor.eye(3)).cholesky(), (x + x.mT).eigh().eigenvalues, x.svd().S

    x = np.random.default_rng(1).random((5, 3, 3), np.float32)
    run = exported(tmp_path, numbers, Tensor(x))
    x[4] = 0
    found = [np.empty(shape, np.float32) for shape in ((5, 3, 3), (5, 3, 3), (5, 3), (5, 3))]
    assert run(pointer(x), *map(pointer, found)) == 0
    assert np.isnan(found[0][4]).all()
    for got, expected in zip(
        (found[0][:4], *found[1:]),
        (
            np.linalg.inv(x[:4]),
            np.linalg.cholesky(x @ x.swapaxes(1, 2) + np.eye(3)),
            np.linalg.eigvalsh(x + x.swapaxes(1, 2)),
            np.linalg.svd(x)[1],
        ),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_what_c_cannot_say(tmp_path):
    x = Tensor([1.0]).realize()
    with pytest.raises(NotImplementedError, match="random numbers to C"):
        lazygrad.export(lambda x: x + Tensor.rand(1), (x,), tmp_path / "model.c")
    with pytest.raises(ValueError, match="'2nd' is not a valid name in C"):
        lazygrad.export(lambda x: x + 1, (x,), tmp_path / "2nd.c")

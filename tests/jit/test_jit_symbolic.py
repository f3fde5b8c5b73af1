"""TinyJit and sizes that change: the third of shapes that differ in one size is captured for all."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.device import Buffer
from tests.jit.jit_support import captures, numbers, runs

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

SIZES = (3, 5, 6, 7, 8, 2, 4, 7, 3, 8)


def check(fxn, *sizes, make=lambda size, call: (numbers(size, 4, seed=call),), exact=False):
    """Each call against the plain function; the jit."""
    f = TinyJit(fxn)
    for call, size in enumerate(sizes):
        args = make(size, call)
        got, expected = f(*args), fxn(*args)
        assert got.shape == expected.shape
        assert all(type(length) is int for length in got.shape)
        close = 0.0 if exact else 1e-5
        np.testing.assert_allclose(got.numpy(), expected.numpy(), close, close, err_msg=f"size {size}")
    return f


def families(f):
    """(the greatest size, whether it is believed) of each capture for many sizes."""
    return [(sized.most, sized.trusted) for sized in captured_for_many(f)]


def captured_for_many(f):
    """What a jit has captured for many sizes."""
    families = f._run.__self__.families._families.values()
    return [sized for family in families for _, sized in family.known if sized is not None]


def test_ten_lengths_are_three_captures(capsys):
    f = TinyJit(lambda x: (print("ran"), x * 2 + 1)[1])
    for call, size in enumerate((3, 5, 6, 7, 8)):  # plain, two captures, a third and a symbolic one, a check
        x = numbers(size, 4, seed=call)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 2 + 1)
    assert runs(capsys) == 1 + 2 + 2 + 1
    for call, size in enumerate((2, 4, 7, 3, 5, 8, 6)):
        x = numbers(size, 4, seed=call)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 2 + 1)
    assert runs(capsys) == 0
    assert captures(f) == 3
    assert families(f) == [(64, True)]


def test_a_length_beyond_the_bound_is_captured_for_the_next_power_of_two():
    f = check(lambda x: x.sum(0), *SIZES, 65, 66, 128, 2, 12, 8)
    assert captures(f) == 4
    assert families(f) == [(128, True)]


def test_sizes_that_are_far_apart_have_a_capture_each():
    """As graphs have a plan each: one for a size alone is the faster one."""
    f = check(lambda x: x.sum(0), 3, 3, 30, 300, 30)
    assert captures(f) == 3
    assert families(f) == []


@pytest.mark.parametrize(
    "fxn",
    [
        lambda x: x.softmax(0),
        lambda x: x.mean(0),
        lambda x: x.std(0),
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.flatten().var(),
        lambda x: x.log_softmax().mean() + x.layernorm().abs().mean(),
        lambda x: x.softmax(0).mean(),
        lambda x: x @ x.T,
        lambda x: (x + 1).T,
        lambda x: x[1:] + x[:-1],
        lambda x: x.cat(x * 2).flip(0),
        lambda x: x.reshape(-1, 2).max(1),
        lambda x: x.cumsum(0),
        lambda x: (x.argmax(0), x * 2)[1].squeeze().pad(((1, 0), (0, 0))),
    ],
)
def test_results_are_those_of_the_plain_function(fxn):
    assert families(check(fxn, *SIZES)) == [(64, True)]


def test_the_size_at_several_places():
    def make(size, call):
        return numbers(size, 3, seed=call), [numbers(2, size, seed=call + 50)]

    f = check(lambda x, y: y[0] @ x, *SIZES, make=make)
    assert families(f) == [(64, True)]
    with pytest.raises(ValueError, match="inner sizes 5 and 6 differ"):
        f(numbers(6, 3), [numbers(2, 5)])


class Pair(NamedTuple):
    """A container, whose items are found and built anew."""

    x: Tensor
    y: Tensor


@dataclass
class Batch:
    """An object: what is in it is another in each call, and stays where it is."""

    x: Tensor


def test_containers_and_objects():
    def make(size, call):
        return (Pair(numbers(size, 4, seed=call), numbers(4, 2, seed=call + 50)),)

    assert families(check(lambda pair: pair.x @ pair.y, *SIZES, make=make)) == [(64, True)]
    f = check(
        lambda batch: batch.x * 2, *SIZES, make=lambda size, call: (Batch(numbers(size, 4, seed=call)),)
    )
    assert families(f) == []
    assert captures(f) == 7


def test_a_model():
    layers = [nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)]
    assert families(check(lambda x: x.sequential(layers).softmax(), *SIZES)) == [(64, True)]


def test_a_part_of_larger_memory():
    data = numbers(20, 4)
    f = check(lambda x: x * 2, *SIZES, make=lambda size, call: (data[call : call + size],), exact=True)
    assert families(f) == [(64, True)]
    check(lambda x: x * 2, *SIZES, make=lambda size, call: (data[:, 1 : 1 + size % 3 + 1],), exact=True)


def test_memory_beyond_the_size_is_not_read(monkeypatch):
    """What lies there is no number."""
    taken = Buffer.allocate_uncleared

    def poisoned(self):
        return taken(self).copyin(b"\xff" * self.nbytes)

    with monkeypatch.context() as patch:
        patch.setattr(Buffer, "allocate_uncleared", poisoned)
        for fxn in (lambda x: x.softmax(0) @ x.T, lambda x: x.max(0) + x.sum(), lambda x: x.cumsum(0)):
            assert families(check(fxn, *SIZES)) == [(64, True)]


# ---- what stays at a capture for each size ----


@pytest.mark.parametrize(
    ("fxn", "why"),
    [
        (lambda x: x / x.shape[0], "Python asks for `shape`"),
        (lambda x: x * 2 if x.shape == (7, 4) else x * 3, "Python asks for `shape`"),
        (lambda x: x.sum() * x.numel(), "Python asks for"),
        (lambda x: x * {6: 2.0}.get(x.size(0), 3.0), "Python asks for"),
        (lambda x: x + float(x.nbytes()), "Python asks for"),
        (lambda x: x * len(str(getattr(x, "sha" + "pe"))), "Python asks for `shape`"),
        (lambda x: x + len(x), "len() of a symbolic size"),
        (lambda x: sum(x) + 0, "Python asks for `__iter__`"),
        (lambda x: x.sort(0)[0], "sorting of symbolic shape"),
    ],
)
def test_python_that_needs_the_size(fxn, why, capsys):
    with Context(DEBUG=1):
        f = check(fxn, *SIZES)
    out = capsys.readouterr().out
    assert families(f) == []
    assert captures(f) == 7
    assert out.count("JIT keeps a capture for each size of <lambda>: ") == 1
    assert why in out


def test_a_library_that_asks_for_the_size():
    """Code that is not the user's is looked at as well."""
    scope = {"__name__": "library"}
    exec(compile("def rows(x): return x.shape[0]", f"{sys.prefix}/lib/library.py", "exec"), scope)
    rows = scope["rows"]
    assert families(check(lambda x: x * (2.0 if rows(x) == 7 else 3.0), *SIZES)) == []


def test_what_has_effects_is_run_once_for_each_capture(capsys):
    state, w = numbers(4), Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)

    def writes(x):
        print("ran")
        state.assign(state + x.sum(0))
        return x * 2

    def gradient(x):
        print("ran")
        w.grad = None
        (x * w).sum().backward()
        return x * 2

    def draws(x):
        print("ran")
        return x + Tensor.rand(4)

    for fxn in (writes, gradient, draws):
        f = TinyJit(fxn)
        for size in (3, 5, 6, 7):
            f(numbers(size, 4))
        assert runs(capsys) == 4
        assert families(f) == []


def test_a_write_adds_once():
    state = Tensor.zeros(4).contiguous().realize()
    f = TinyJit(lambda x: state.assign(state + x.sum(0)) * 1)
    total = np.zeros(4, np.float32)
    for call, size in enumerate(SIZES):
        x = numbers(size, 4, seed=call)
        total += x.numpy().sum(0)
        np.testing.assert_allclose(f(x).numpy(), total, rtol=1e-5, atol=1e-5)


def test_results_that_are_arguments():
    f = TinyJit(lambda x: (x, x[1:], x * 2))
    for size in SIZES:
        x = numbers(size, 4)
        same, part, twice = f(x)
        assert same is x
        part += 1  # and the argument sees it
        np.testing.assert_array_equal(x.numpy()[1:], numbers(size, 4).numpy()[1:] + 1)
        np.testing.assert_array_equal(twice.numpy(), numbers(size, 4).numpy() * 2)


def test_an_argument_that_is_kept():
    held = {}

    def fxn(x):
        held["last"] = x
        return x * 2

    f = TinyJit(fxn)
    for size in (3, 5, 6, 7):
        x = numbers(size, 4, seed=size)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 2)
        assert held["last"].shape == (size, 4)
        np.testing.assert_array_equal(held["last"].numpy(), x.numpy())


def test_state_that_changes():
    scale = 1.0
    f = TinyJit(lambda x: x * scale)
    for call, size in enumerate((*SIZES, *SIZES, *SIZES)):
        scale = 1.0 + call // 10
        x = numbers(size, 4, seed=call)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() * np.float32(scale))


def test_one_row_is_no_size_of_many():
    """An axis of one broadcasts, and squeeze drops it."""
    f = check(lambda x: (x + 1).squeeze(0), *SIZES[:6], 1, 2, 1)
    assert families(f) == [(64, True)]


def test_a_fixed_size_beside_it():
    """Only with one length the two can be added, and no capture hides it."""
    other = numbers(6, 4)
    f = TinyJit(lambda x, y: x + y.sum(0) if y.ndim == 2 else x)
    for size in SIZES:
        np.testing.assert_allclose(
            f(numbers(size, 4), other).numpy(), numbers(size, 4).numpy() + other.numpy().sum(0), rtol=1e-5
        )
    g = TinyJit(lambda x: x + other)
    for _ in range(3):
        g(other)
    for size in (5, 7, 8):
        with pytest.raises(ValueError, match="broadcast"):
            g(numbers(size, 4))


def test_a_wrong_symbolic_capture_is_found_at_the_next_size(monkeypatch, capsys):
    """One that was captured for the same sizes, and works by chance for the first alone."""
    f = TinyJit(lambda x: x * 2)
    for size in (3, 5, 6, 7):
        f(numbers(size, 4))
    (sized,) = captured_for_many(f)
    run = type(sized.captures[0]).results
    with monkeypatch.context() as patch:
        patch.setattr(type(sized.captures[0]), "results", lambda *call: [t + 1 for t in run(*call)])
        with Context(DEBUG=1):
            np.testing.assert_array_equal(f(numbers(8, 4)).numpy(), numbers(8, 4).numpy() * 2)
    assert families(f) == []
    assert "<lambda>: the symbolic capture gives other results for size 8\n" in capsys.readouterr().out
    check(lambda x: f(x), *SIZES, exact=True)


def test_a_variable_of_the_user_beside_it():
    """Sizes that are symbolic already are left to the user."""
    data, n = numbers(8, 4), Variable("n", 1, 8)
    f = TinyJit(lambda x, y: x.sum(0) + y.sum())
    for call, size in enumerate(SIZES):
        y = numbers(2 + call % 5, seed=call)
        expected = data.numpy()[:size].sum(0) + y.numpy().sum()
        np.testing.assert_allclose(f(data[: n.bind(size)], y).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_reset_forgets():
    f = check(lambda x: x * 2, *SIZES)
    f.reset()
    assert families(f) == []
    assert f.captured is None


GUARDED = """
import numpy as np
from lazygrad import Tensor, TinyJit
from tests.guarded import register
register("{device}")
for fxn in (lambda x: x.softmax(0) @ x.T, lambda x: x.cat(x).flip(0).T * 2):
    f = TinyJit(fxn)
    for size in (17, 20, 24, 64, 63, 19, 2):
        x = Tensor(np.ones((size, 20), np.float32))
        np.testing.assert_allclose(f(x).numpy(), fxn(x).numpy(), rtol=1e-5)
    (family,) = f._run.__self__.families._families.values()
    assert family.known[0][1].trusted, "captured for many sizes"
print("done")
"""


@pytest.mark.parametrize("device", ["CPU", "CLANG"])
def test_no_kernel_leaves_its_memory(device):
    program = GUARDED.format(device=device)
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stderr

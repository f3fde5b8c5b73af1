"""CHECK: a kernel that differs from the interpreter, the first NaN, indices out of range are caught."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from lazygrad import Context, Tensor, TinyJit, Variable, dtypes
from lazygrad.config import CHECK
from lazygrad.device import Device
from lazygrad.nn import BatchNorm, Linear
from lazygrad.nn.optim import Adam
from lazygrad.programs import runners
from lazygrad.report.check import Checker, CheckError
from tests.fuzz import writes
from tests.fuzz.harness import fuzzed
from tests.tensor.own_kernels import cholesky, saxpy, steps

HERE = Path(__file__).name


def line(offset: int) -> str:
    """`file:line` of the caller, so many lines further."""
    return f"{HERE}:{inspect.currentframe().f_back.f_lineno + offset}"


@pytest.fixture(autouse=True)
def fresh_programs():
    runners.clear_programs()
    yield
    runners.clear_programs()


@pytest.fixture
def broken(monkeypatch):
    """Replace text in every kernel that CPU compiles."""

    def patch(before: str, after: str) -> None:
        renderer = type(Device["CPU"].renderer)
        render = renderer._render

        def wrong(self, name, uops):
            text = render(self, name, uops)
            return re.sub(before, after, text)

        monkeypatch.setattr(renderer, "_render", wrong)

    return patch


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32), device="CPU").realize()


# ---- the flag


def test_the_flag_is_a_number_or_nan():
    with Context(CHECK="nan"):
        assert CHECK.value == "nan"
        assert CHECK
        assert CHECK != 1
    with Context(CHECK=1):
        assert CHECK == 1
    with pytest.raises(ValueError, match="CHECK must be a whole number or nan, not 'NaN'"):
        Context(CHECK="NaN")
    with pytest.raises(ValueError, match="CHECK must be a whole number or nan, not 'no'"):
        CHECK.set_default("no")


# ---- kernels that are right


def test_correct_kernels_pass():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(16, 33)).astype(np.float32)
    with Context(CHECK=1):
        a = Tensor(x)
        assert np.allclose((a @ a.T).numpy(), x @ x.T, atol=1e-4)
        assert np.allclose(a.softmax(1).numpy().sum(1), 1)
        assert a.argmax(1).tolist() == x.argmax(1).tolist()
        ((a - a.mean(1, keepdim=True)) / a.std(1, keepdim=True)).realize()
        a.cast(dtypes.half).sum(0).realize()
        a.cast(dtypes.bfloat16).exp().realize()
        (a.cast(dtypes.int32) * 7 // 3).realize()
        (a > a.mean()).sum().realize()
        a[Tensor([3, 0, -1])].realize()
        a.sin().sigmoid().tanh().realize()


def test_a_cancelling_sum_is_no_error():
    rng = np.random.default_rng(2)
    x = (rng.normal(size=4096) * 1e6).astype(np.float32)
    with Context(CHECK=1):
        a = Tensor(np.concatenate([x, -x[::-1]])).realize()
        a.sum().realize()
        (a.sum() > 0).realize()  # a bool that rounding decides
        (1 / a.sum()).realize()


def test_rounding_in_a_loop_whose_results_have_several_ranks_is_no_error():
    rng = np.random.default_rng(0)
    w = Tensor(rng.normal(size=(16, 16)).astype(np.float32) * 0.8).realize()
    xs = Tensor(rng.normal(size=(12, 4, 16)).astype(np.float32)).realize()
    with Context(CHECK=1):
        last, sums = Tensor.scan(lambda h, x: ((h @ w).tanh() + x, (h * h).sum()), Tensor.zeros(4, 16), xs)
        Tensor.realize(last, sums)
    h, expected = np.zeros((4, 16), np.float32), []
    for x in xs.numpy():
        expected.append((h * h).sum())
        h = np.tanh(h @ w.numpy()) + x
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-3)


def test_rounding_in_a_kernel_of_the_users_own_is_no_error():
    rng = np.random.default_rng(75)  # where processor and interpreter differ in a last place
    m = rng.normal(size=(3, 6, 6)).astype(np.float32)
    positive = m @ m.transpose(0, 2, 1) + 6 * np.eye(6, dtype=np.float32)
    with Context(CHECK=1):
        np.testing.assert_allclose(
            cholesky(Tensor(positive)).numpy(), np.linalg.cholesky(positive), atol=1e-4
        )


def test_a_wrong_kernel_of_the_users_own_is_named(broken):
    broken("float 2.0", "float 3.0")
    with Context(CHECK=1), pytest.raises(CheckError, match=r"kernel saxpy\w* on CPU computes -?\d"):
        steps(saxpy)(2.0, ones(3), ones(3)).realize()


def test_a_training_step_passes():
    Tensor.manual_seed(3)
    layers = [Linear(6, 8), Linear(8, 3)]
    norm = BatchNorm(8)
    parameters = [layers[0].weight, layers[0].bias, layers[1].weight, layers[1].bias, norm.weight, norm.bias]
    optimizer = Adam(parameters, lr=0.01)
    with Context(CHECK=1), Tensor.train():
        for _ in range(2):
            x, y = Tensor.rand(5, 6), Tensor([0, 1, 2, 1, 0])
            loss = layers[1](norm(layers[0](x)).relu()).sparse_categorical_crossentropy(y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert np.isfinite(loss.item())


@fuzzed(quick=15, sweep=500)
@given(writes.programs(6))
def test_random_programs_pass(program):
    with Context(CHECK=1):
        writes.Player("CPU", program.shapes).play(program)


# ---- kernels that are wrong


@pytest.mark.choice
def test_a_wrong_kernel_is_named(broken):
    a = ones(4, 4)
    broken(r"fadd", "fsub")
    with Context(CHECK=1):
        here = line(1)
        out = a + 2.0
        with pytest.raises(CheckError) as caught:
            out.realize()
    error, text = caught.value, str(caught.value)
    assert text.startswith("kernel E_16 on CPU computes -1.0 where the interpreter computes 3.0\n")
    assert "at element (0, 0) (float, shape (4, 4)); 16 of 16 differ, by 4 at most" in text or (
        "at element (0,) (float, shape (16,)); 16 of 16 differ, by 4 at most" in text
    )
    assert f"__add__ - {__file__}:{here.split(':')[1]}" in text
    assert "for gidx0 in 0.." in text or "data0[" in text
    assert (error.kernel, error.index, error.got, error.expected) == ("E_16", 0, -1.0, 3.0)


def test_one_wrong_element_of_a_long_sum(broken):
    a = Tensor(np.arange(1000, dtype=np.float32), device="CPU").realize()
    broken(r"fadd", "fsub")
    with Context(CHECK=1), pytest.raises(CheckError, match=r"where the interpreter computes 499500\.0"):
        a.sum().realize()


def test_the_first_of_several_kernels_is_named(broken):
    a = ones(8)
    broken(r"fmul", "fadd")
    with Context(CHECK=1), pytest.raises(CheckError, match=r"from contiguous.*, __mul__"):
        ((a + 1).contiguous() * 3).contiguous().sum().realize()


def test_a_kernel_that_failed_has_not_run(broken, monkeypatch):
    a = ones(4)
    with monkeypatch.context() as patch:
        renderer = type(Device["CPU"].renderer)
        render = renderer._render
        patch.setattr(renderer, "_render", lambda *args: render(*args).replace("fadd", "fsub"))
        a.assign(a + 1)
        with Context(CHECK=1), pytest.raises(CheckError):
            a.realize()
    runners.clear_programs()
    assert a.tolist() == [2.0] * 4


@pytest.mark.choice
def test_integers_must_be_equal(broken):
    a = Tensor([1, 2, 3, 4], device="CPU").realize()
    broken(r"add (nsw )?(<\d+ x i32>|i32)", r"sub \2")
    with Context(CHECK=1), pytest.raises(CheckError, match="computes -6 where the interpreter computes 8"):
        (a + 7).realize()


# ---- NaN


def test_the_first_nan_is_named():
    x = Tensor([1.0, 0.0, -1.0]).realize()
    with Context(CHECK="nan"):
        fine = (x + 1).contiguous()
        here = line(1)
        logs = fine.log().contiguous()
        bad = (x * 4).sqrt().contiguous()
        (fine + 1).realize()
        with pytest.raises(CheckError, match=r"makes the first -inf; its inputs were finite") as caught:
            (logs * 2).realize()
        assert f"log - {__file__}:{here.split(':')[1]}" in str(caught.value)
        with pytest.raises(CheckError, match=r"makes the first nan") as caught:
            bad.sum().realize()
    assert caught.value.index == 2
    assert np.isnan(caught.value.got)


def test_equal_kernels_name_their_own_lines():
    x, y = Tensor([-1.0]).realize(), Tensor([-2.0]).realize()
    with Context(CHECK="nan"):
        with pytest.raises(CheckError) as first:
            x.sqrt().realize()
        here = line(2)
        with pytest.raises(CheckError) as second:
            y.sqrt().realize()
    assert str(first.value) != str(second.value)
    assert here.split(":")[1] in str(second.value)


def test_nan_and_infinity_that_were_there_are_no_news():
    with Context(CHECK="nan"):
        (Tensor([float("nan"), 1.0]) * 2).realize()
        (Tensor([float("inf"), 1.0]) * 2).realize()
        Tensor([True, False]).where(float("-inf"), 0.0).realize()
        assert (Tensor([1.0, 2.0]) == 2.0).tolist() == [False, True]
        with pytest.raises(CheckError, match="makes the first nan; its inputs had no NaN"):
            (Tensor([float("inf"), 1.0]) * 0).realize()


# ---- indices


@pytest.mark.choice
def test_an_index_out_of_range_raises():
    x = Tensor([1, 2, 3])
    with Context(CHECK=1):
        here = line(1)
        out = x[Tensor([0, 5])]
        with pytest.raises(IndexError) as caught:
            out.realize()
    text = str(caught.value)
    assert text.startswith("index 5 is out of bounds for an axis of size 3: ")
    assert (
        f"__getitem__ - {__file__}:{here.split(':')[1]} reads with it at (1,) of an index of shape (2,)"
        in text
    )
    with Context(CHECK_INDEX=0):
        assert x[Tensor([0, 5])].tolist() == [1, 0]  # as documented where nobody checks


@pytest.mark.choice
def test_indices_whose_extremes_are_in_range_are_not_evaluated(monkeypatch):
    x, rows = Tensor.arange(12).reshape(4, 3).contiguous().realize(), Tensor([3, 0]).realize()
    evaluated: list[int] = []
    monkeypatch.setattr(Checker, "_evaluate", lambda self, value: evaluated.append(1))
    with Context(CHECK=1):
        assert x[rows].tolist() == [[9, 10, 11], [0, 1, 2]]
        assert x.gather(1, rows.minimum(2).reshape(1, 2)).tolist() == [[2, 0]]
    assert not evaluated


@pytest.mark.choice
def test_negative_indices_and_several_axes():
    x = Tensor.arange(12).reshape(3, 4).contiguous()
    with Context(CHECK=1):
        assert x[Tensor([-1]), Tensor([-4])].tolist() == [8]
        with pytest.raises(
            IndexError, match=r"index -5 is out of bounds for an axis of size 4: .*\(and 1 more\)"
        ):
            x[Tensor([[0], [1]]), Tensor([1, -5])].realize()
        with pytest.raises(IndexError, match=r"index 9 is out of bounds for an axis of size 4: .*gather"):
            x.gather(1, Tensor([[0], [3], [9]])).realize()


@pytest.mark.choice
def test_writes_out_of_range_raise():
    x = Tensor([1, 2, 3]).realize()
    with Context(CHECK=1):
        x[Tensor([7])] = 5
        with pytest.raises(IndexError, match=r"index 7 is out of bounds for an axis of size 3: .*writes"):
            x.realize()


# ---- replays


@pytest.mark.choice
def test_a_replayed_kernel_is_compared(monkeypatch):
    """A kernel that is right at first and wrong in a replay: its result is changed after it ran."""
    x = ones(4)
    state = Tensor.zeros(4).contiguous().realize()
    f = TinyJit(lambda x: (state.assign(state + x), (x * 3).contiguous() - 1)[1])
    with Context(CHECK=1):
        for call in range(3):
            assert f(x).tolist() == [2.0] * 4
            assert state.tolist() == [call + 1.0] * 4
        kernels = [action for batch in f.captured.replay.batches for action in batch.actions]
        runner = kernels[-1].runner
        run = runner.program

        def wrong(handles, values, wait=False):
            run(handles, values, wait)
            handles[0].bytes[:4] = np.float32(7.0).tobytes()

        monkeypatch.setattr(runner, "program", wrong)
        with pytest.raises(CheckError, match=r"computes 7\.0 where the interpreter computes 2\.0"):
            f(x)


@pytest.mark.choice
def test_indices_of_a_replay_are_checked():
    data = Tensor([1.0, 2.0, 3.0]).realize()
    f = TinyJit(lambda at: data[at])
    with Context(CHECK=1):
        for at in (0, 1, 2):
            assert f(Tensor([at])).item() == at + 1
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            f(Tensor([7]))
        assert f(Tensor([1])).item() == 2


def test_the_first_nan_of_a_replay_is_named():
    f = TinyJit(lambda x: x.log())
    with Context(CHECK="nan"):
        for value in (1.0, 2.0, 3.0):
            f(Tensor([value]))
        with pytest.raises(CheckError, match="makes the first nan"):
            f(Tensor([-1.0]))


def test_replays_with_variables_and_random_numbers_pass():
    data = Tensor(np.arange(8, dtype=np.float32), device="CPU").realize()
    f = TinyJit(lambda n: (data[:n].sum(), Tensor.rand(3)))
    n = Variable("n", 1, 8)
    with Context(CHECK=1):
        for size in (2, 3, 5, 8):
            total, drawn = f(n.bind(size))
            assert total.item() == size * (size - 1) / 2
            assert 0 <= drawn.min().item() <= drawn.max().item() < 1

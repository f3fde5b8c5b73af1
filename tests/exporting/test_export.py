"""`lazygrad.export` and `load_exported`: a captured function as one file."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys

import pytest

import lazygrad
from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.exporting import FileError, launches
from lazygrad.exporting.container import HEAD
from tests.helpers import ROOT, needs


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "function.lzg")


def exported(fn, args, path, **kwargs):
    lazygrad.export(fn, args, path, kwargs)
    return lazygrad.load_exported(path)


def weights(*shape):
    return Tensor.arange(64).reshape(*shape).float().realize()


# *** what it computes


def test_a_function_with_weights(path):
    w = weights(8, 8)
    fn = exported(lambda x: (x @ w).relu().sum(1), (Tensor.ones(2, 8),), path)
    x = Tensor.rand(2, 8)
    assert fn(x).tolist() == (x @ w).relu().sum(1).tolist()


def test_a_fresh_process_runs_it_without_a_compiler(path):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), Tensor.relu, nn.Flatten(), nn.Linear(4 * 36, 3))
    x = Tensor.ones(1, 1, 8, 8).contiguous().realize(*nn.state.get_parameters(model))
    expected = model(x).tolist()
    lazygrad.export(model, (x,), path)
    script = (
        "import sys, lazygrad\n"
        "fn = lazygrad.load_exported(sys.argv[1])\n"
        "print(fn(lazygrad.Tensor([1.0] * 64).reshape(1, 1, 8, 8)).tolist())\n"
        "assert not lazygrad.exporting.launches._objects.available() or 'llvmlite' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"{expected}\n", done.stderr


def test_a_tinyjit_that_has_a_capture_is_not_called(path):
    double = TinyJit(lambda x: x * 2)
    x = Tensor([1.0, 2.0])
    for _ in range(3):
        double(x)
    captures = double.captures
    assert exported(double, (x,), path)(Tensor([3.0, 4.0])).tolist() == [6.0, 8.0]
    assert len(captures) == 1
    assert double.captures == captures


def test_results_in_containers(path):
    kept = Tensor([7, 8]).realize()

    def fn(x, scale):
        return {"y": x * scale, "both": (x + 1, [x, kept, x.reshape(2, 1)]), "name": "n", "none": None}

    x = Tensor([1.0, 2.0])
    result = exported(fn, (x, 3), path)(x, 3)
    assert result["y"].tolist() == [3.0, 6.0]
    assert (result["name"], result["none"]) == ("n", None)
    more, (same, constant, column) = result["both"]
    assert (more.tolist(), constant.tolist()) == ([2.0, 3.0], [7, 8])
    assert same is x
    assert column.tolist() == [[1.0], [2.0]]


def test_arguments_in_containers_and_by_name(path):
    def add(pair, *, last):
        return pair[0] + pair[1]["b"] - last

    fn = exported(add, ([Tensor([1.0]), {"b": Tensor([2.0])}],), path, last=Tensor([3.0]))
    assert fn([Tensor([10.0]), {"b": Tensor([20.0])}], last=Tensor([5.0])).tolist() == [25.0]


def test_variables_may_have_other_values(path):
    cache = weights(64)
    size = Variable("size", 1, 64)
    fn = exported(lambda n: (cache[:n].sum(), cache[:n] + 1), (size.bind(4),), path)
    for count in (1, 10, 64):
        total, part = fn(size.bind(count))
        assert total.item() == sum(range(count))
        assert part.shape[0].unbind()[1] == count


def test_random_numbers_go_on(path):
    fn = exported(lambda x: x + Tensor.rand(3), (Tensor.zeros(3).contiguous(),), path)
    x = Tensor.zeros(3).contiguous().realize()
    Tensor.manual_seed(5)
    expected = [Tensor.rand(3).tolist(), Tensor.rand(3).tolist()]
    Tensor.manual_seed(5)
    assert [fn(x).tolist(), fn(x).tolist()] == expected


def test_state_begins_as_it_was_in_the_file(path):
    count = Tensor([0.0]).realize()

    @TinyJit
    def step(x):
        return (count.assign(count + x) * 1).contiguous()

    x = Tensor([1.0]).realize()
    for _ in range(3):
        step(x)
    lazygrad.export(step, (x,), path)
    first, second = lazygrad.load_exported(path), lazygrad.load_exported(path)
    assert [first(x).item(), first(x).item(), second(x).item()] == [4.0, 5.0, 4.0]
    assert count.item() == 3.0


def test_an_argument_is_written(path):
    def fill(x):
        x.assign(x + 1)
        return x.sum()

    fn = exported(fill, (Tensor([1.0, 2.0]).realize(),), path)
    x = Tensor([5.0, 6.0]).realize()
    before = x * 1
    assert fn(x).item() == 13.0
    assert (x.tolist(), before.tolist()) == ([6.0, 7.0], [5.0, 6.0])


def test_a_training_step_with_its_optimizer(path):
    def model_and_step():
        Tensor.manual_seed(0)
        layer = nn.Linear(4, 2)
        optimizer = nn.optim.AdamW([layer.weight, layer.bias], lr=0.1)

        @TinyJit
        def step(x, y):
            with Tensor.train():
                optimizer.zero_grad()
                loss = (layer(x) - y).square().mean().backward()
                optimizer.step()
                return loss

        return step

    x, y = Tensor.ones(3, 4).contiguous().realize(), Tensor.ones(3, 2).contiguous().realize()
    step = model_and_step()
    losses = [step(x, y).item() for _ in range(6)]
    step = model_and_step()
    for _ in range(3):
        step(x, y)
    fn = exported(step, (x, y), path)
    assert [fn(x, y).item() for _ in range(3)] == losses[3:]


def test_kernels_in_pieces_and_with_tiles(path):
    """On the worker pool, and with memory that a thread keeps."""
    w = (Tensor.rand(300, 300) / 10).realize()
    x = Tensor.rand(300, 300).realize()
    fn = exported(lambda x: ((x @ w).exp().log() @ w).sort(0)[0], (x,), path)
    expected = ((x @ w).exp().log() @ w).sort(0)[0]
    assert (fn(x) - expected).abs().max().item() == 0.0


def test_linear_algebra(path):
    fn = exported(lambda x: (x.solve(x.sum(-1)), x.det(), x.qr().R), (Tensor.eye(3).expand(4, 3, 3),), path)
    x = Tensor.rand(4, 3, 3)
    for got, expected in zip(fn(x), (x.solve(x.sum(-1)), x.det(), x.qr().R), strict=True):
        assert got.tolist() == expected.tolist()


def test_an_index_out_of_range_raises(path):
    table = weights(64)
    fn = exported(lambda i: table[i], (Tensor([1, 2]),), path)
    assert fn(Tensor([3, 63])).tolist() == [3.0, 63.0]
    with pytest.raises(IndexError, match="index 64 is out of range for an axis of size 64"):
        fn(Tensor([1, 64]))
    assert fn(Tensor([3, 63])).tolist() == [3.0, 63.0]


@pytest.mark.parametrize(
    "device", [pytest.param("CLANG", marks=needs("clang")), "PYTHON", pytest.param("CL", marks=needs("cl"))]
)
def test_other_devices(path, device):
    w = weights(8, 8).to(device).realize()
    fn = exported(lambda x: x @ w, (Tensor.ones(1, 8, device=device).contiguous(),), path)
    assert fn(Tensor.ones(1, 8, device=device).contiguous()).tolist() == [w.sum(0).tolist()]


# *** another machine


def test_another_processor_compiles_the_text_again(path, monkeypatch):
    w = weights(8, 8)
    lazygrad.export(lambda x: x @ w, (Tensor.ones(1, 8).contiguous(),), path)
    monkeypatch.setattr(launches, "this_machine", lambda: "another")
    fn = lazygrad.load_exported(path)
    assert not fn._launches.is_linked
    assert fn(Tensor.ones(1, 8).contiguous()).tolist() == [w.sum(0).tolist()]


# *** what is refused


def test_arguments_unlike_the_examples(path):
    fn = exported(lambda x, n: x * n, (Tensor([1.0, 2.0]), 2), path)
    with pytest.raises(ValueError, match=r"argument `x`: was \(2,\) float on CPU, now \(3,\)"):
        fn(Tensor([1.0, 2.0, 3.0]), 2)
    with pytest.raises(TypeError, match="argument `n` was 2, now 3"):
        fn(Tensor([1.0, 2.0]), 3)
    with pytest.raises(TypeError, match="argument `x` was a Tensor, now a list"):
        fn([1.0, 2.0], 2)
    with pytest.raises(TypeError, match="takes 2 arguments and no keywords, not 1 and no keywords"):
        fn(Tensor([1.0, 2.0]))


def test_what_a_file_cannot_say(path):
    x, count = Tensor([1.0]).realize(), Tensor([0.0]).realize()
    with pytest.raises(NotImplementedError, match="give n narrower bounds"):
        lazygrad.export(lambda x, n: x[n : n + 1] + 1, (x, Variable("n", 0, 1).bind(0)), path)
    with pytest.raises(NotImplementedError, match="result of type set"):
        lazygrad.export(lambda x: (x + 1, {1}), (x,), path)
    with pytest.raises(NotImplementedError, match="argument `x` cannot be described"):
        lazygrad.export(lambda x: x.weight + 1, (nn.Linear(1, 1),), path)
    with pytest.raises(NotImplementedError, match=r"return tensor.clone\(\)"):
        lazygrad.export(lambda x: count.assign(count + x), (x,), path)
    with pytest.raises(ValueError, match="pass a copy"):
        lazygrad.export(lambda x, y: x + y + 1, (x, x.reshape(1)), path)
    with pytest.raises(TypeError, match=r"write \(x,\)"):
        lazygrad.export(lambda x: x + 1, x, path)
    assert not os.path.exists(path)


@pytest.fixture
def small(path):
    w = weights(8, 8)
    lazygrad.export(lambda x: x @ w, (Tensor.ones(1, 8).contiguous(),), path)
    with open(path, "rb") as file:
        return file.read()


def run(path):
    return lazygrad.load_exported(path)(Tensor.ones(1, 8).contiguous())


def test_a_file_that_ends_early_is_refused(path, small):
    for end in [0, 7, 8, 40, 63, 64, *random.Random(0).sample(range(len(small)), 60), len(small) - 1]:
        with open(path, "wb") as file:
            file.write(small[:end])
        with pytest.raises(FileError, match=r"function\.lzg"):
            run(path)


def test_a_changed_byte_is_refused_before_anything_runs(path, small):
    chances = random.Random(1)
    places = [*range(HEAD.size), *chances.sample(range(len(small)), 200)]
    accepted = 0
    for place in places:
        content = bytearray(small)
        content[place] ^= 1 << chances.randrange(8)
        with open(path, "wb") as file:
            file.write(content)
        try:
            result = run(path).tolist()
        except FileError:
            continue
        accepted += 1  # a byte between two sections, which nobody reads
        assert result == [weights(8, 8).sum(0).tolist()]
    assert accepted < len(places) // 4


def test_weights_are_compared_at_once_where_that_is_asked(path, small):
    at = small.index(struct.pack("<4f", 20, 21, 22, 23))
    with open(path, "wb") as file:
        file.write(small[:at] + b"\1" + small[at + 1 :])
    fn = lazygrad.load_exported(path)
    with pytest.raises(FileError, match="are not what was written"):
        fn(Tensor.ones(1, 8).contiguous())
    with pytest.raises(FileError, match="are not what was written"):
        lazygrad.load_exported(path, verify=True)


def test_other_files_and_versions(path, small):
    with open(path, "wb") as file:
        file.write(small[:8] + struct.pack("<I", 99) + small[12:])
    with pytest.raises(FileError, match="has version 99 of the format, and this lazygrad reads version 1"):
        lazygrad.load_exported(path)
    with open(path, "wb") as file:
        file.write(b"GGUF" + bytes(100))
    with pytest.raises(FileError, match=r"was not written by lazygrad.export"):
        lazygrad.load_exported(path)


def test_load_says_that_it_is_a_program(path, small):
    with pytest.raises(ValueError, match=r"lazygrad\.load_exported runs such files"):
        lazygrad.load(path)


def test_a_file_in_use_is_replaced_and_not_overwritten(path, small):
    fn = lazygrad.load_exported(path)
    lazygrad.export(lambda x: x * 3, (Tensor.ones(1, 8).contiguous(),), path)
    assert fn(Tensor.ones(1, 8).contiguous()).tolist() == [weights(8, 8).sum(0).tolist()]
    assert run(path).tolist() == [[3.0] * 8]
    assert os.listdir(os.path.dirname(path)) == ["function.lzg"]


def test_without_capture_where_the_jit_is_off(path):
    with Context(JIT=0):
        assert exported(lambda x: x * 2, (Tensor([1.0]),), path)(Tensor([4.0])).item() == 8.0

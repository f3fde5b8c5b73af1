"""`from_torch`: PyTorch's models as modules of lazygrad; `custom_op`: functions of lazygrad for PyTorch."""

from __future__ import annotations

import copy
import ctypes
import pickle
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor
from lazygrad.nn.optim import SGD
from tests.exporting.test_c_source import built
from tests.helpers import needs, require
from tests.torch.support import door, nn, torch

pytestmark = needs("torch")


def picture_net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 3)
    )


@pytest.fixture
def picture() -> Any:
    return torch.linspace(-1, 1, 2 * 36).reshape(2, 1, 6, 6)


def test_it_answers_as_the_model_and_has_its_weights(picture):
    model = picture_net().eval()
    ours = door.from_torch(model, (picture,))
    np.testing.assert_allclose(
        ours(Tensor(picture.numpy())).numpy(), model(picture).detach().numpy(), atol=1e-5
    )
    assert set(ours.state_dict()) == set(model.state_dict())
    assert {name for name, _ in ours.named_parameters()} == {name for name, _ in model.named_parameters()}


def test_it_is_a_copy_that_is_captured_and_learns(picture):
    model = picture_net().eval()
    ours, x = door.from_torch(model, (picture,)), Tensor(picture.numpy())
    step = lazygrad.jit(ours)
    for _ in range(3):
        np.testing.assert_allclose(step(x).numpy(), model(picture).detach().numpy(), atol=1e-5)
    optimizer = SGD(ours.parameters(), lr=0.1)
    with Tensor.train():
        before = ours(x).square().mean()
        before.backward()
        optimizer.step()
    assert ours(x).square().mean().item() < before.item()
    np.testing.assert_allclose(model(picture).square().mean().item(), before.item(), rtol=1e-4)


def test_in_training_it_writes_what_the_model_writes(picture):
    model = picture_net().train()
    ours = door.from_torch(model, (picture,))
    found, expected = ours(Tensor(picture.numpy())), model(picture)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(
        ours.state_dict()["1.running_var"].numpy(), model[1].running_var.numpy(), atol=1e-6
    )


@pytest.mark.parametrize(
    "suffix",
    [
        pytest.param(".lzg", marks=pytest.mark.slow),
        pytest.param("/", marks=pytest.mark.slow),
        pytest.param(".onnx", marks=needs("onnx", "onnxruntime")),
    ],
)
def test_it_is_exported(picture, tmp_path, suffix):
    model = picture_net().eval()
    path = f"{tmp_path}/model{suffix}"
    lazygrad.export(door.from_torch(model, (picture,)), (Tensor(picture.numpy()),), path)
    if suffix == "/":  # a page, which tests/exporting shows in a browser
        assert (tmp_path / "model" / "kernels.wgsl").read_text().count("@compute") >= 2
        return
    if suffix == ".onnx":
        session = require("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {session.get_inputs()[0].name: picture.numpy()})
    else:
        found = lazygrad.load_exported(path)(Tensor(picture.numpy())).numpy()
    np.testing.assert_allclose(found, model(picture).detach().numpy(), atol=1e-5)


@needs("clang")
def test_it_is_exported_as_c(picture, tmp_path):
    model = picture_net().eval()
    lazygrad.export(door.from_torch(model, (picture,)), (Tensor(picture.numpy()),), tmp_path / "model.c")
    found = np.empty((2, 3), np.float32)
    run = built(tmp_path)
    assert run(ctypes.c_void_p(picture.data_ptr()), ctypes.c_void_p(found.ctypes.data)) == 0
    np.testing.assert_allclose(found, model(picture).detach().numpy(), atol=1e-5)


def test_its_weights_are_quantised():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 32), nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 2)).eval()
    x = torch.tensor([[1, 4], [0, 2]])
    ours = door.from_torch(model, (x,)).quantize("Q8_0")
    assert {name for name, _ in ours.named_parameters()} == {"1.bias", "3.bias"}
    step = lazygrad.jit(ours)
    for _ in range(3):
        found = step(Tensor(x.numpy())).numpy()
        np.testing.assert_allclose(found, model(x).detach().numpy(), atol=0.02)
    with pytest.raises(ValueError, match="no matrix of floats whose rows are blocks of 32"):
        door.from_torch(nn.Linear(3, 2), (torch.ones(1, 3),)).quantize()


def test_it_runs_on_several_devices(picture):
    devices = ("CPU:1", "CPU:2")
    model = picture_net().eval()
    ours = door.from_torch(model, (picture,))
    weights = ours.state_dict()
    for name, weight in weights.items():
        weight.shard_(devices, 1 if name == "4.weight" else None)
    found = ours(Tensor(picture.numpy()).shard(devices, 0))
    np.testing.assert_allclose(found.numpy(), model(picture).detach().numpy(), atol=1e-5)


def test_nests_come_and_go():
    class Pair(nn.Module):
        def forward(self, x, more):
            return {"sum": x + more["y"], "both": [x, more["y"] * 2]}

    ours = door.from_torch(Pair(), (torch.ones(2), {"y": torch.ones(2)}))
    found = ours(Tensor([1.0, 2.0]), {"y": Tensor([3.0, 4.0])})
    assert found["sum"].tolist() == [4.0, 6.0]
    assert found["both"][1].tolist() == [6.0, 8.0]
    with pytest.raises(TypeError, match=r"exported with the names \['y'\]"):
        ours(Tensor([1.0, 2.0]), {"z": Tensor([3.0, 4.0])})


class Tied(nn.Module if nn else object):
    """A language model of one matrix, with a number that is not saved, and one that a call says."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.out.weight = self.table.weight
        self.register_buffer("shift", torch.ones(4), persistent=False)

    def forward(self, x, times=2):
        return self.out(self.table(x) + self.shift) * times


def test_tied_weights_are_one_tensor_and_constants_are_not_saved():
    model, x = Tied(), torch.tensor([[0, 4]])
    ours = door.from_torch(model, (x,))
    assert list(ours.state_dict()) == list(model.state_dict())
    assert len(list(ours.parameters())) == 1
    model(x).square().sum().backward()
    ours(Tensor(x.numpy())).square().sum().backward()
    np.testing.assert_allclose(ours.state_dict()["table.weight"].grad.numpy(), model.table.weight.grad, 1e-4)


@pytest.mark.slow
def test_a_copy_has_weights_of_its_own_and_pickles_are_refused():
    x = Tensor([[0, 4]], dtype="int64")
    ours = door.from_torch(Tied(), (torch.tensor([[0, 4]]),))
    copied = copy.deepcopy(ours)
    before = ours(x).numpy()
    copied.state_dict()["out.weight"].assign(Tensor.zeros(5, 4))
    assert not copied(x).numpy().any()
    np.testing.assert_array_equal(ours(x).numpy(), before)
    with pytest.raises(TypeError, match=r"is not pickled; of an imported model save the state_dict\(\)"):
        pickle.dumps(ours)


def test_a_call_that_is_not_like_the_example_is_refused():
    ours = door.from_torch(Tied(), (torch.tensor([[0, 4]]),), {"times": 3})
    x = Tensor([[0, 4]])  # whole numbers of any width
    assert ours(x, times=3).shape == (1, 2, 5)
    with pytest.raises(ValueError, match=r"exported with times=3, a constant in it, not with 2"):
        ours(x, times=2)
    with pytest.raises(ValueError, match=r"exported with shape \(1, 2\) of x, not \(2, 2\)"):
        ours(x.expand(2, 2), times=3)
    with pytest.raises(TypeError, match=r"exported with .*long of x, not .*float: cast it first"):
        ours(x.float(), times=3)
    with pytest.raises(TypeError, match=r"takes a Tensor as x, not array"):
        ours(np.array([[0, 4]]), times=3)


@pytest.mark.slow
def test_an_argument_that_the_model_writes_is_written():
    class Step(nn.Module):
        def forward(self, x):
            x[0] = x.half().float()[1]
            return x.add_(1) * 2

    ours, x = door.from_torch(Step(), (torch.zeros(2),)), Tensor([3.0, 4.0]).realize()
    assert ours(x).tolist() == [10.0, 10.0]
    assert x.tolist() == [5.0, 5.0]


def test_an_operation_that_is_lacking_is_named():
    class Wave(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).real

    lacking = r"operations that lazygrad lacks: aten\._fft_r2c\.default \(lazygrad has no complex numbers"
    with pytest.raises(NotImplementedError, match=lacking):
        door.from_torch(Wave(), (torch.ones(4),))


def test_a_function_as_an_operator_with_its_gradient():
    wave = door.custom_op(lambda x, y: (x * y).sin() + x, name="test_wave")
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    expected = (x * y).sin() + x
    torch.testing.assert_close(wave(x, y), expected)
    found = torch.autograd.grad(wave(x, y).square().sum(), (x, y))
    torch.testing.assert_close(found, torch.autograd.grad(expected.square().sum(), (x, y)))
    torch.library.opcheck(torch.ops.lazygrad.test_wave.default, (x, y), test_utils="test_schema")
    torch.library.opcheck(torch.ops.lazygrad.test_wave.default, (x, y), test_utils="test_faketensor")


def test_an_operator_may_give_several_and_hand_on():
    parts = door.custom_op(lambda x: (x, x * 2), name="test_parts")
    x = torch.ones(2)
    same, twice = parts(x)
    assert same.data_ptr() != x.data_ptr()
    torch.testing.assert_close(twice, x * 2)


@pytest.mark.slow
def test_an_operator_in_a_graph_is_fused(recwarn):
    wave = door.custom_op(lambda x, y: (x.sin(), y * 1), name="test_fused")

    def some(x):
        return wave(x * 2, x)[0] + 1

    x = torch.randn(3, requires_grad=True)
    torch._dynamo.reset()
    found = torch.compile(some, backend=door.backend)(x)
    torch.testing.assert_close(found, (x * 2).sin() + 1)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], (x * 2).cos() * 2)
    assert not [each for each in recwarn if "runs in PyTorch" in str(each.message)]

    class Model(nn.Module):
        def forward(self, x):
            return some(x)

    ours = door.from_torch(Model(), (x,))
    np.testing.assert_allclose(ours(Tensor.from_torch(x)).numpy(), found.detach(), 1e-5)


def test_what_no_result_depends_on_has_a_gradient_of_zeros():
    first = door.custom_op(lambda x, y: x * 2, name="test_first")
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    found = torch.autograd.grad(first(x, y).sum(), (x, y))
    torch.testing.assert_close(found, (torch.full((2,), 2.0), torch.zeros(2)))


@pytest.mark.parametrize(
    ("fn", "error", "match"),
    [
        (lambda x: None, TypeError, "gives a tensor or a tuple of them: .* gave None"),
        (lambda x: x * x.sum().item(), RuntimeError, r"\.item\(\) reads a tensor's value"),
        (lambda x: x.assign(x * 2), NotImplementedError, "a function that writes its arguments"),
    ],
    ids=["nothing", "reads", "writes"],
)
def test_what_a_function_must_not_do_is_an_error(fn, error, match):
    x = torch.ones(2)
    with pytest.raises(error, match=match):
        door.custom_op(fn, name="test_refused")(x)
    torch.testing.assert_close(x, torch.ones(2))


def test_an_operator_takes_tensors_only():
    with pytest.raises(ValueError, match=r"cannot be called '<lambda>': give custom_op another name"):
        door.custom_op(lambda x: x)
    with pytest.raises(ValueError, match=r"one or more tensors, without defaults"):
        door.custom_op(lambda x, scale=2.0: x * scale, name="test_scaled")
    with pytest.raises(TypeError, match=r"test_one takes 1 tensors \(x\), not 2"):
        door.custom_op(lambda x: x, name="test_one")(torch.ones(1), torch.ones(1))


def test_an_operator_that_draws_numbers_has_no_gradient():
    noisy = door.custom_op(lambda x: x * Tensor.rand(*x.shape), name="test_noisy")
    with pytest.raises(NotImplementedError, match=r"draws random numbers would be computed with other ones"):
        noisy(torch.ones(2, requires_grad=True)).sum().backward()

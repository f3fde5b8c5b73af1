"""Copies and pickles of tensors and of models: whose memory they have, and what goes along."""

from __future__ import annotations

import copy
import pickle

import pytest

from lazygrad import Device, Tensor, dtypes
from lazygrad.nn import Linear
from lazygrad.nn.optim import Adam
from lazygrad.nn.state import get_parameters


def test_a_deep_copy_has_memory_of_its_own():
    w = Tensor([1.0, 2.0]).realize()
    twin = copy.deepcopy(w)
    twin.assign(twin * 0).realize()
    assert (w.tolist(), twin.tolist()) == ([1.0, 2.0], [0.0, 0.0])
    w.assign(w * 10).realize()
    assert (w.tolist(), twin.tolist()) == ([10.0, 20.0], [0.0, 0.0])


def test_a_copied_model_is_trained_apart():
    model = Linear(2, 2)
    model(Tensor([[1.0, 2.0]])).sum().backward()
    twin = copy.deepcopy(model)
    assert len(get_parameters(twin)) == 2
    assert twin.weight.grad.tolist() == model.weight.grad.tolist()
    twin.weight.assign(twin.weight * 0).realize()
    assert model.weight.abs().sum().item() > 0


def test_a_value_with_a_graph_is_not_copied():
    w = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="computed with gradients"):
        copy.deepcopy(w * 2)


def test_a_shallow_copy_shares_the_memory():
    held = Tensor([1.0, 2.0]).realize()
    value = held + 1
    twins = copy.copy(held), copy.copy(value)
    held.assign(Tensor([5.0, 6.0]))
    assert [twin.tolist() for twin in twins] == [[5.0, 6.0], [2.0, 3.0]]


def test_a_copy_of_a_tensor_on_disk_is_in_memory(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes([1, 2, 3]))
    held = Tensor(path)
    cloned, twin = held.clone().realize(), copy.deepcopy(held)
    assert (held.device.split(":")[0], cloned.device, twin.device) == ("DISK", Device.DEFAULT, Device.DEFAULT)
    cloned.assign(cloned * 2).realize()
    twin.assign(twin * 3).realize()
    assert (cloned.tolist(), twin.tolist(), path.read_bytes()) == ([2, 4, 6], [3, 6, 9], bytes([1, 2, 3]))
    path.write_bytes(bytes([7, 7, 7]))
    assert (cloned.tolist(), twin.tolist()) == ([2, 4, 6], [3, 6, 9])


# *** pickles


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


SQUARE = Tensor([[1, 2], [3, 4]])
PICKLED = [
    *(Tensor([0, 1], dtype=d) for d in ("bool", "uint64", "half", "bfloat16", "fp8e4m3", "double")),
    Tensor([[1.0, 2.0]]).realize(),
    Tensor([1.0]) + 1,
    Tensor(3),
    Tensor.empty(0, 3),
    Tensor.zeros(2),
    Tensor.arange(3),
    Tensor([1]).expand(3),
    SQUARE.T,
    SQUARE.flip(1)[1],
    Tensor([1, 2], device="PYTHON"),
]


@pytest.mark.parametrize("tensor", PICKLED, ids=range(len(PICKLED)))
def test_a_pickle_holds_the_values(tensor):
    twin = pickled(tensor)
    assert (twin.shape, twin.dtype, twin.device) == (tensor.shape, tensor.dtype, tensor.device)
    assert twin.tolist() == tensor.tolist()
    assert twin.assign(twin + twin).tolist() == (tensor + tensor).tolist()


def test_a_pickle_of_a_file_holds_its_bytes(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"abc")
    packed = pickle.dumps(Tensor(path))
    path.unlink()
    twin = pickle.loads(packed)
    assert (twin.device, twin.tolist()) == ("CPU", [97, 98, 99])


def test_gradients_go_along():
    w = Tensor([3.0], requires_grad=True)
    y = (w * w).sum()
    y.backward()
    twin = pickled(w)
    assert (twin.requires_grad, twin.grad.tolist()) == (True, [6.0])
    value = pickled(y)  # what it was computed from does not
    value.backward()
    assert value.grad.tolist() == 1.0
    assert w.grad.tolist() == [6.0]


class Named(Tensor):
    """A tensor with an attribute of its own."""


def test_a_subclass_keeps_its_attributes():
    tensor = Named([1.0])
    tensor.name = "w"
    for twin in (pickled(tensor), copy.copy(tensor)):
        assert (type(twin), twin.name, twin.tolist()) == (Named, "w", [1.0])


def test_training_goes_on_from_a_pickle():
    model = Linear(2, 2)
    optimizer = Adam(get_parameters(model))
    runs = [(model, optimizer)]
    for _ in range(2):
        for net, steps in runs:
            steps.zero_grad()
            net(Tensor([[1.0, 2.0]])).square().sum().backward()
            with Tensor.train():
                steps.step()
        runs = [runs[0], pickled(runs[0])]
    assert runs[1][1].params[0] is runs[1][0].weight
    net, steps = runs[1]
    assert net.weight.dtype is dtypes.float
    assert net.weight.tolist() == model.weight.tolist()


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(
        OverflowError, match=r"1099511627776 does not fit into dtypes\.int; give another dtype="
    ):
        Tensor(2**40)
    assert Tensor(2**40, dtype="long").item() == 2**40


def test_to_takes_what_pytorchs_takes_in_its_order() -> None:
    x = Tensor([1, 2]).realize()
    moved = x.to("CPU", "float16", True, True)
    assert (moved.dtype, moved.tolist()) == (dtypes.float16, [1.0, 2.0])
    same, copied = x.to("CPU", x.dtype, True), x.to("CPU", x.dtype, True, True)
    x.assign([3, 4])
    assert (same.tolist(), copied.tolist()) == ([3, 4], [1, 2])


def test_a_part_of_a_copy_is_copied() -> None:
    assert Tensor([1, 2]).to("CPU:1")[:1].to("CPU").tolist() == [1]


def test_zeros_stay_on_the_device() -> None:
    assert Tensor([1, 2], device="CPU:1").zero_().device == "CPU:1"


def test_gradients_of_an_index_on_another_device() -> None:
    x = Tensor([1.0, 2.0], device="CPU:1", requires_grad=True)
    x[Tensor([0], device="CPU:1")].sum().backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.tolist()) == ("CPU:1", [1.0, 0.0])

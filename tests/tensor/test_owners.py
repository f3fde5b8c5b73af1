"""memory() groups what tensors hold by the layer that has them and by the line that made them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import lazygrad
from lazygrad import Context, Tensor, nn
from lazygrad.tensor.owners import attributes_of


class Net:
    def __init__(self) -> None:
        self.first = nn.Linear(8, 16)
        self.rest = [nn.Linear(16, 16), {"last": nn.Linear(16, 4)}]

    def __call__(self, x: Tensor) -> Tensor:
        return self.rest[1]["last"](self.rest[0](self.first(x)))


def names(*tensors: Tensor, models: Sequence[object] = ()) -> list[str | None]:
    found = attributes_of(tensors, models)
    return [found.get(id(tensor)) for tensor in tensors]


def test_names_of_attributes():
    net = Net()
    last, local = net.rest[1]["last"], Tensor([1.0])
    wanted = ["Net.first.weight", "Net.rest[0].bias", "Net.rest[1]['last'].bias", None]
    assert names(net.first.weight, net.rest[0].bias, last.bias, local, models=[net]) == wanted
    assert names(net.first.weight, models=[[{"a model": net}]]) == wanted[:1]


@pytest.mark.parametrize(
    "ask",
    [
        nn.state.get_parameters,
        lambda net: nn.state.load_state_dict(net, nn.state.get_state_dict(net)),
    ],
    ids=["parameters", "load"],
)
def test_a_model_is_known_once_somebody_asked_for_what_is_in_it(ask):
    net = Net()
    assert names(net.first.weight) == [None]
    ask(net)
    assert names(net.first.weight) == ["Net.first.weight"]


def test_a_module_is_known_once_it_was_moved_and_until_nobody_has_it():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2)

    model = Model()
    model.to(Tensor.ones(1).device)
    first = model.first
    assert names(first.weight) == ["Model.first.weight"]
    del model
    assert names(first.weight) == [None]


def test_what_an_optimizer_remembers_has_a_name_without_the_model():
    opt = nn.optim.SGD([Tensor.ones(3, requires_grad=True)], momentum=0.9)
    assert names(opt.params[0]) == ["SGD.params[0]"]


def test_what_an_optimizer_lists_is_the_layers():
    net = Net()
    opt = nn.optim.SGD(nn.state.get_parameters(net), momentum=0.9)
    assert names(net.first.weight) == ["Net.first.weight"]
    net(Tensor.ones(2, 8)).sum().backward()
    assert names(net.first.weight, net.first.weight.grad)[1] == "Net.first.weight.grad"
    assert opt.params[0] is not None


def test_objects_that_hold_each_other():
    class Knot:
        pass

    one, two = Knot(), Knot()
    one.other, two.other, one.value = two, one, Tensor([1.0])
    (name,) = names(one.value, models=[two])
    assert name.endswith(".value")


class Hidden:
    """An object that raises whatever it is asked."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None


def test_objects_that_answer_nothing_are_left_alone():
    hidden = Hidden()
    net = Net()
    net.hidden = hidden
    assert names(net.first.weight, models=[net, hidden]) == ["Net.first.weight"]


@pytest.mark.usefixtures("undisturbed")
def test_the_report_by_layer_and_line():
    with Context(TRACEMETA=2):
        net = Net()
        for tensor in nn.state.get_parameters(net):
            tensor.realize()
    report = lazygrad.memory()
    layers = {group.name: group for group in report.layers}
    assert layers["Net.first"].nbytes == 4 * (8 * 16 + 16)
    assert layers["Net.rest[0]"].blocks == 2
    assert any("test_owners.py:" in group.name for group in report.lines)
    assert "  layer\n" in str(report)
    assert "  line\n" in str(report)

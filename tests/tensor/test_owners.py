"""memory() groups what tensors hold by the layer that has them and by the line that made them."""

from __future__ import annotations

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


def names(*tensors: Tensor) -> list[str | None]:
    found = attributes_of(tensors)
    return [found.get(id(tensor)) for tensor in tensors]


def test_names_of_attributes():
    net = Net()
    local = Tensor([1.0])
    assert names(net.first.weight, net.rest[0].bias, local) == ["Net.first.weight", "Net.rest[0].bias", None]


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
    (name,) = names(one.value)
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
    assert names(net.first.weight) == ["Net.first.weight"]


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

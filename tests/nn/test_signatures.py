"""What is written once for several functions or classes has a signature and a docstring for each."""

from __future__ import annotations

import inspect

import pytest

from lazygrad import Tensor, nn
from lazygrad.nn import functional, optim


def test_functions_over_axes_have_a_name_a_signature_and_a_docstring_each() -> None:
    for n, last in enumerate(("the last axis", "the last two axes", "the last three axes"), 1):
        function = getattr(functional, f"conv{n}d")
        assert function.__name__ == f"conv{n}d"
        assert list(inspect.signature(function).parameters) == [
            "input", "weight", "bias", "stride", "padding", "dilation", "groups",
        ]  # fmt: skip
        assert inspect.getdoc(function).startswith(f"A convolution over {last}:")


def test_optimizers_that_differ_in_defaults_say_so() -> None:
    def default(kind: type, name: str) -> object:
        return inspect.signature(kind).parameters[name].default

    assert [default(kind, "weight_decay") for kind in (optim.Adam, optim.AdamW)] == [0.0, 0.01]
    assert [default(kind, "lr") for kind in (optim.Adam, optim.Adamax)] == [0.001, 0.002]
    assert [default(kind, "eps") for kind in (optim.Adam, optim.LAMB)] == [1e-8, 1e-6]
    with pytest.raises(TypeError, match="no option 'speed'; besides its own there are maximize"):
        optim.AdamW([Tensor([1.0], requires_grad=True)], speed=1)  # type: ignore[call-arg]


def test_layers_that_share_a_constructor_show_what_they_are_given() -> None:
    assert repr(nn.MaxPool3d(2, padding=1)).startswith("MaxPool3d(kernel_size=2, stride=None, padding=1")
    assert repr(nn.Tanh()) == "Tanh()"
    assert list(inspect.signature(nn.TransformerDecoderLayer).parameters)[:3] == [
        "d_model", "nhead", "dim_feedforward",
    ]  # fmt: skip

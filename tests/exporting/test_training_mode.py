"""What is exported is a function: a model in training mode is refused, whatever kind of file is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, TinyJit, nn
from tests.helpers import needs

KINDS = ["f.lzg", "f.c", "page/", pytest.param("f.onnx", marks=needs("onnx"))]


class Own(nn.Module):
    """A class of the user's, whose layers are in a list."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(3, 3), nn.Dropout(0.5)]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


MODELS: dict[str, Callable[[], Any]] = {
    "Sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
    "a class": Own,
    "Linear": lambda: nn.Linear(3, 3),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "the model": lambda model: model,
    "its forward": lambda model: getattr(model, "forward", model.__call__),
    "a function of it": lambda model: lambda x: model(x) * 2,
    "a jit of it": lambda model: TinyJit(lambda x: model(x) * 2),
}
X = Tensor.ones(2, 3).contiguous().realize()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_trains_is_refused(kind: str, way: str, tmp_path: Any) -> None:
    for make in MODELS.values():
        model = make().train()
        with pytest.raises(ValueError, match=r"in training mode .*call model\.eval\(\) before"):
            lazygrad.export(WAYS[way](model), (X,), f"{tmp_path}/{kind}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_the_mode_of_the_thread(kind: str, tmp_path: Any) -> None:
    with Tensor.train(), pytest.raises(ValueError, match="its dropout is called so"):
        lazygrad.export(lambda x: x.dropout(0.5) + 1, (X,), f"{tmp_path}/{kind}")
    with Tensor.train(), pytest.raises(ValueError, match="in training mode"):
        lazygrad.export(nn.Dropout(0.5), (X,), f"{tmp_path}/{kind}")
    model = Own().eval()
    with Tensor.train():
        lazygrad.export(model, (X,), f"{tmp_path}/{kind}")


def test_a_refused_model_is_as_it_was(tmp_path: Any) -> None:
    model = nn.BatchNorm1d(3).train()
    for kind in ("f.lzg", "f.c"):
        with pytest.raises(ValueError, match="in training mode"):
            lazygrad.export(model, (X,), tmp_path / kind)
    assert model.running_mean.tolist() == [0.0, 0.0, 0.0]


def test_a_training_step_and_a_jit_with_a_capture(tmp_path: Any) -> None:
    layer = nn.Linear(3, 1).train()
    optimizer = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = layer(x).square().mean().backward()
        optimizer.step()
        return loss

    lazygrad.export(step, (X,), tmp_path / "step.lzg")
    before = step(X).item()
    assert lazygrad.load_exported(tmp_path / "step.lzg")(X).item() == pytest.approx(before, rel=1e-5)
    trained = TinyJit(lambda x: layer(x) + 1)
    for _ in range(3):
        trained(X)
    with pytest.raises(ValueError, match="in training mode"):
        lazygrad.export(trained, (X,), tmp_path / "f.lzg")


@pytest.mark.parametrize("name", ["f.tflite", "f.ONNX", "f.C", "f.pt", "f.v2"])
def test_suffixes_that_nothing_is_written_for(name: str, tmp_path: Any) -> None:
    hint = "; did you mean" if name[2:].lower() in ("onnx", "c") else "$"
    with pytest.raises(ValueError, match=rf"a path that ends in /\), not '\.\w+'{hint}"):
        lazygrad.export(lambda x: x + 1, (X,), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_files_without_a_suffix(tmp_path: Any) -> None:
    lazygrad.export(lambda x: x + 1, (X,), tmp_path / "function")
    found = lazygrad.load_exported(tmp_path / "function")(X)
    np.testing.assert_array_equal(found.numpy(), np.full((2, 3), 2.0))

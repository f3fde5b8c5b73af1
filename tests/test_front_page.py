"""Names at the top of the package, as people look for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, dtypes, nn
from lazygrad.device import DeviceError
from tests.helpers import ROOT, needs, require, type_errors


def test_dtypes_and_creation_are_found() -> None:
    assert lazygrad.float32 is dtypes.float32
    assert lazygrad.bool is dtypes.bool
    assert lazygrad.half is dtypes.float16
    assert lazygrad.zeros(2, 3, dtype=lazygrad.int8).dtype is dtypes.int8
    assert lazygrad.arange(3).tolist() == [0, 1, 2]
    assert lazygrad.cat([lazygrad.ones(1), lazygrad.zeros(1)]).tolist() == [1.0, 0.0]
    assert lazygrad.where(Tensor([True, False]), 1, 0).tolist() == [1, 0]
    lazygrad.manual_seed(3)
    first = lazygrad.rand(2).tolist()
    Tensor.manual_seed(3)
    assert Tensor.rand(2).tolist() == first
    assert lazygrad.GlobalCounters.kernel_count >= 0
    assert lazygrad.nn.Linear(2, 2).weight.shape == (2, 2)


def test_tensor_is_pytorchs_function_and_still_the_package() -> None:
    import lazygrad.tensor.core

    made = lazygrad.tensor([1, 2], dtype=np.float32, requires_grad=True)
    assert (made.dtype, made.requires_grad) == (dtypes.float32, True)
    assert lazygrad.tensor.core.TensorCore is Tensor.__mro__[1]  # type: ignore[attr-defined]
    assert lazygrad.as_tensor(np.ones(2)).dtype is dtypes.float64


def test_a_name_that_is_not_there_suggests_others() -> None:
    with pytest.raises(AttributeError, match="no attribute 'zeross'; did you mean zeros"):
        lazygrad.zeross  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'matmull'; did you mean Tensor\.matmul"):
        lazygrad.matmull  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'optim': use nn\.optim"):
        lazygrad.optim  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'mps': x\.to\('METAL'\)"):
        Tensor([1.0]).mps()  # type: ignore[attr-defined]
    assert {"zeros", "float32", "nn", "log", "Generator"} <= set(dir(lazygrad))


def test_devices_are_named_as_in_pytorch() -> None:
    name = lazygrad.device("cpu:1")  # type: ignore[operator]
    assert (name, name.type, name.index) == ("CPU:1", "cpu", 1)
    assert lazygrad.device("mps", 2) == "METAL:2"  # type: ignore[operator]
    assert Tensor([1], device=name).device == nn.Linear(1, 1, device=name).weight.device == name
    with pytest.raises(ValueError, match="has a number already"):
        lazygrad.device("cpu:1", 0)  # type: ignore[operator]


@pytest.mark.parametrize(
    "put",
    [
        lambda: Tensor([1.0]).to("metal:0"),
        lambda: Tensor([1.0], device="metal"),
        lambda: Tensor.zeros(2, device="metal"),
        lambda: Tensor.rand(2, device=lazygrad.device("metal")),  # type: ignore[operator]
        lambda: nn.Linear(1, 1).to("metal"),
        lambda: Tensor.ones(2).shard(("CPU", "metal")),
    ],
)
def test_a_device_that_is_not_here_is_refused_at_once(put: Callable[[], object]) -> None:
    with pytest.raises(
        DeviceError, match=r"device METAL (is for|needs) .* \(devices here: .*CPU.*PYTHON.*\)"
    ):
        put()


def test_random_has_the_streams() -> None:
    assert lazygrad.random.Generator is lazygrad.Generator
    lazygrad.random.manual_seed(4)
    state = lazygrad.random.get_state()
    first = lazygrad.random.rand(2).tolist()
    lazygrad.random.set_state(state)
    assert lazygrad.random.rand(2).tolist() == first


def test_nothing_is_loaded_for_these_names() -> None:
    script = "import sys, lazygrad; lazygrad.float32, lazygrad.zeros; print('lazygrad.nn' in sys.modules)"
    script += "; lazygrad.nn; print('lazygrad.nn' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (float, dtypes.float32),
        (int, dtypes.int32),
        (bool, dtypes.bool),
        (np.float16, dtypes.float16),
        (np.dtype("uint8"), dtypes.uint8),
        (np.bool_, dtypes.bool),
        (np.int64, dtypes.int64),
        ("bfloat16", dtypes.bfloat16),
    ],
)
def test_dtypes_of_python_and_numpy_are_taken(said: Any, meant: Any) -> None:
    x = Tensor([0, 1])
    assert Tensor([0, 1], dtype=said).dtype is meant
    assert x.cast(said).dtype is meant
    assert x.to(said).dtype is meant
    assert x.sum(dtype=said).dtype is meant
    assert Tensor.zeros(2, dtype=said).dtype is meant
    assert x.zeros_like(dtype=said).dtype is meant


@needs("torch", "ml_dtypes")
def test_dtypes_of_pytorch_and_ml_dtypes_are_taken() -> None:
    torch = require("torch")
    ml_dtypes = require("ml_dtypes")
    x = Tensor([0.0])
    assert x.to(torch.bfloat16).dtype is dtypes.bfloat16
    assert x.cast(torch.float8_e5m2).dtype is dtypes.fp8e5m2
    assert x.cast(ml_dtypes.bfloat16).dtype is dtypes.bfloat16
    assert x.cast(np.dtype(ml_dtypes.float8_e4m3fn)).dtype is dtypes.fp8e4m3


@pytest.mark.parametrize("wrong", [object, 3, np.complex64, np.dtype("S3"), "f32", Tensor])
def test_what_is_no_dtype_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match="is not a dtype"):
        Tensor([1.0]).cast(wrong)


USER = """
import lazygrad
from lazygrad import Generator, Tensor, nn


class Network(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.drop = nn.Linear(4, width, dtype=float, device="CPU"), nn.Dropout(0.5)
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.drop(self.hidden(x)))
        return y


network = Network(3).train().to("float32").requires_grad_()
optimizer = nn.optim.Adam(network.parameters(), lr=0.1)
generator = Generator(3)
x = lazygrad.rand(5, 4, generator=generator)
with lazygrad.autocast("bfloat16"), generator:
    loss: Tensor = network(x).square().mean()
for a, b in nn.DataLoader((x, x), batch_size=2, shuffle=True, generator=generator):
    print(a, b)
rounded: Tensor = round(lazygrad.tensor([1.0], dtype=bool), 1).cast(int)
print(nn.summary(network, (2, 4)), lazygrad.int8, sum(p._static_numel() for p in network.parameters()))
lazygrad.log(loss=0.5)
network.trian()
"""


@needs("mypy")
@pytest.mark.slow
def test_a_type_checker_takes_what_users_write(tmp_path: Path) -> None:
    (error,) = type_errors(USER, tmp_path)
    assert '"Network" has no attribute "trian"' in error

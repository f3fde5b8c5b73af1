"""Tensors of files compute: on a copy in memory, made once; movements stay looks at the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.device import GlobalCounters
from lazygrad.nn.state import safe_load, safe_save

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def w(tmp_path: Any) -> Tensor:
    safe_save({"w": Tensor(ARRAY)}, tmp_path / "file.safetensors")
    return safe_load(tmp_path / "file.safetensors")["w"]


@pytest.mark.parametrize(
    ("compute", "wanted"),
    [
        (lambda w: w + 1, ARRAY + 1),
        (lambda w: 1 - w, 1 - ARRAY),
        (lambda w: w.sum(0), ARRAY.sum(0)),
        (lambda w: w.T @ w, ARRAY.T @ ARRAY),
        (lambda w: Tensor.ones(2, 3) * w, ARRAY),
        (lambda w: w.half(), ARRAY),
        (lambda w: w[Tensor([1, 0])], ARRAY[[1, 0]]),
        (lambda w: w[[1]], ARRAY[[1]]),
        (lambda w: w[:, ::2] * 2, ARRAY[:, ::2] * 2),
        (lambda w: w.flip(1), ARRAY[:, ::-1]),
        (lambda w: Tensor.cat(w, w), np.concatenate([ARRAY, ARRAY])),
        (lambda w: Tensor.stack([w, w]), np.stack([ARRAY, ARRAY])),
        (lambda w: (w > 2).where(w, 0), np.where(ARRAY > 2, ARRAY, 0)),
        (lambda w: Tensor.einsum("ij,kj->ik", w, w), ARRAY @ ARRAY.T),
        (lambda w: nn.functional.relu(w - 2), np.maximum(ARRAY - 2, 0)),
        (lambda w: np.exp(w), np.exp(ARRAY)),
        (lambda w: w.zeros_like(), ARRAY * 0),
        (lambda w: Tensor(ARRAY).contiguous().realize().assign(w), ARRAY),
    ],
)
def test_a_tensor_of_a_file_computes(w: Tensor, compute: Any, wanted: Any) -> None:
    found = compute(w)
    assert found.device == "CPU"
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_it_is_read_once_and_stays_where_it_is(w: Tensor, tmp_path: Any) -> None:
    assert (w + 1).tolist() == (ARRAY + 1).tolist()
    (tmp_path / "file.safetensors").unlink()
    assert (w * 2).tolist() == (ARRAY * 2).tolist()
    assert w.device.startswith("DISK:")


def test_movements_read_nothing(w: Tensor) -> None:
    GlobalCounters.reset()
    assert w.reshape(3, 2)[1:].device.startswith("DISK:")
    assert GlobalCounters.kernel_count == 0


def test_it_goes_to_the_device_of_the_others(w: Tensor) -> None:
    found = Tensor(ARRAY, device="PYTHON") + w
    assert found.device == "PYTHON"
    assert found.tolist() == (ARRAY * 2).tolist()


def test_what_is_written_to_the_file_later_is_read(tmp_path: Any) -> None:
    (tmp_path / "raw").write_bytes(bytes(4))
    raw = Tensor(tmp_path / "raw")
    assert (raw + 1).tolist() == [1] * 4
    raw.assign(Tensor([1, 2, 3, 4], dtype="uint8").to(raw.device)).realize()
    assert (raw + 1).tolist() == [2, 3, 4, 5]


def test_what_is_to_be_trained_is_copied(w: Tensor) -> None:
    w.requires_grad_()
    (w * w).sum().backward()
    assert w.device == "CPU"
    assert w.grad is not None
    assert w.grad.tolist() == (2 * ARRAY).tolist()


def test_a_layer_takes_it_as_its_weight(w: Tensor) -> None:
    layer = nn.Linear(3, 2, bias=False)
    layer.weight = w
    assert layer(Tensor.ones(1, 3)).tolist() == ARRAY.sum(1)[None].tolist()

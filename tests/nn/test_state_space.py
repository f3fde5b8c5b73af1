"""State-space layers beside a plain loop, and their gradients beside PyTorch's of the same loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.nn.state import get_state_dict
from tests.helpers import needs, require

BATCH, DIM, STATE, LENGTH = 2, 5, 3, 7
SHAPES = {
    "u": (BATCH, DIM, LENGTH), "delta": (BATCH, DIM, LENGTH), "A": (DIM, STATE),
    "B": (BATCH, STATE, LENGTH), "C": (BATCH, STATE, LENGTH),
    "D": (DIM,), "z": (BATCH, DIM, LENGTH), "delta_bias": (DIM,),
}  # fmt: skip


def arguments() -> dict[str, np.ndarray]:
    rng = np.random.RandomState(0)
    made = {name: rng.randn(*shape).astype(np.float32) for name, shape in SHAPES.items()}
    made["A"] = -np.exp(made["A"])
    return made


def plain_scan(
    u: Any, delta: Any, A: Any, B: Any, C: Any, D: Any, z: Any, delta_bias: Any
) -> tuple[Any, Any]:
    """The recurrence as a loop of PyTorch."""
    torch = require("torch")
    step = torch.nn.functional.softplus(delta + delta_bias[:, None])
    h, outputs = torch.zeros(BATCH, DIM, STATE, dtype=u.dtype), []
    for t in range(LENGTH):
        now = step[:, :, t, None]
        h = (now * A).exp() * h + now * B[:, None, :, t] * u[:, :, t, None]
        outputs.append((h * C[:, None, :, t]).sum(2) + D * u[:, :, t])
    return torch.stack(outputs, 2) * torch.nn.functional.silu(z), h


@needs("torch")
def test_a_selective_scan_is_the_loop_that_it_says() -> None:
    torch = require("torch")
    given = arguments()
    found, last = nn.selective_scan(
        **{k: Tensor(v) for k, v in given.items()}, delta_softplus=True, return_last_state=True
    )
    wanted, end = plain_scan(**{k: torch.tensor(v, dtype=torch.float64) for k, v in given.items()})
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.numpy(), end.numpy(), rtol=1e-5, atol=1e-6)


@needs("torch")
def test_a_selective_scan_has_the_gradients_of_the_loop() -> None:
    torch = require("torch")
    given = arguments()
    ours = {k: Tensor(v, requires_grad=True) for k, v in given.items()}
    theirs = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in given.items()}
    nn.selective_scan(**ours, delta_softplus=True).square().sum().backward()
    plain_scan(**theirs)[0].square().sum().backward()
    for name, tensor in ours.items():
        np.testing.assert_allclose(
            tensor.grad.numpy(), theirs[name].grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name
        )


def test_a_selective_scan_names_the_argument_of_a_wrong_shape() -> None:
    given = {k: Tensor(v) for k, v in arguments().items()}
    given["B"] = Tensor.ones(BATCH, STATE + 1, LENGTH)
    with pytest.raises(ValueError, match=r"needs B of shape \(2, 3, 7\), not \(2, 4, 7\)"):
        nn.selective_scan(**given)


@needs("torch")
def test_a_mamba_block_is_its_parts_in_order_with_their_gradients() -> None:
    torch = require("torch")
    Tensor.manual_seed(1)
    layer = nn.Mamba(4, d_state=STATE, d_conv=3)
    x = np.random.RandomState(1).randn(2, LENGTH, 4).astype(np.float32)
    weights = get_state_dict(layer)
    w = {k: torch.tensor(v.numpy(), dtype=torch.float64, requires_grad=True) for k, v in weights.items()}
    assert list(w) == [
        "in_proj.weight", "conv1d.weight", "conv1d.bias", "x_proj.weight", "dt_proj.weight", "dt_proj.bias",
        "A_log", "D", "out_proj.weight",
    ]  # fmt: skip
    u, z = (torch.tensor(x, dtype=torch.float64) @ w["in_proj.weight"].T).transpose(1, 2).chunk(2, 1)
    u = torch.nn.functional.conv1d(
        torch.nn.functional.pad(u, (2, 0)), w["conv1d.weight"], w["conv1d.bias"], groups=8
    )
    u = torch.nn.functional.silu(u)
    low, B, C = (u.transpose(1, 2) @ w["x_proj.weight"].T).split([1, STATE, STATE], 2)
    step = torch.nn.functional.softplus(low @ w["dt_proj.weight"].T + w["dt_proj.bias"])
    h, outputs = torch.zeros(2, 8, STATE, dtype=torch.float64), []
    for t in range(LENGTH):
        now = step[:, t, :, None]
        h = (now * -w["A_log"].exp()).exp() * h + now * B[:, t, None] * u[:, :, t, None]
        outputs.append((h * C[:, t, None]).sum(2) + w["D"] * u[:, :, t])
    y = torch.stack(outputs, 1) * torch.nn.functional.silu(z.transpose(1, 2))
    wanted = y @ w["out_proj.weight"].T
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-6)
    layer(Tensor(x)).square().sum().backward()
    wanted.square().sum().backward()
    for name, tensor in weights.items():
        grad = w[name].grad.numpy()
        np.testing.assert_allclose(tensor.grad.numpy(), grad, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_step_of_mamba_does_not_see_what_comes_later() -> None:
    layer = nn.Mamba(4)
    Tensor.realize(*layer.parameters())
    x = np.random.RandomState(2).randn(1, 6, 4).astype(np.float32)
    changed = x.copy()
    changed[:, 4:] += 1
    before, after = layer(Tensor(x)).numpy(), layer(Tensor(changed)).numpy()
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).all()


def test_the_steps_of_mamba_begin_between_a_thousandth_and_a_tenth() -> None:
    steps = nn.Mamba(64).dt_proj.bias.softplus().numpy()
    assert 0.99e-3 <= steps.min() < steps.max() / 10
    assert steps.max() <= 1.01e-1


def s4d_loop(w: dict[str, Any], x: Any) -> Any:
    torch = require("torch")
    A = torch.complex(-w["log_A_real"].exp(), w["A_imag"])
    keep = (w["log_dt"].exp()[:, None] * A).exp()
    enter, C = (keep - 1) / A, torch.complex(w["C"][..., 0], w["C"][..., 1])
    h, outputs = torch.zeros(x.shape[0], *A.shape, dtype=torch.complex128), []
    for t in range(x.shape[1]):
        h = keep * h + enter * x[:, t, :, None]
        outputs.append(2 * (C * h).sum(2).real + w["D"] * x[:, t])
    return torch.stack(outputs, 1)


@needs("torch")
def test_s4d_is_a_complex_recurrence_with_its_gradients() -> None:
    torch = require("torch")
    Tensor.manual_seed(3)
    layer = nn.S4D(4, d_state=6)
    x = np.random.RandomState(3).randn(2, LENGTH, 4).astype(np.float32)
    weights = get_state_dict(layer)
    theirs = {k: torch.tensor(v.numpy(), dtype=torch.float64, requires_grad=True) for k, v in weights.items()}
    found, wanted = layer(Tensor(x)), s4d_loop(theirs, torch.tensor(x, dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    layer(Tensor(x)).square().sum().backward()
    wanted.square().sum().backward()
    for name, tensor in weights.items():
        grad = theirs[name].grad.numpy()
        np.testing.assert_allclose(tensor.grad.numpy(), grad, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", [nn.Mamba, nn.S4D])
def test_another_width_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"\(4\) needs shape \(batch, length, 4\), not \(2, 3, 5\)"):
        kind(4)(Tensor.ones(2, 3, 5))


def test_an_odd_state_has_no_pairs() -> None:
    with pytest.raises(ValueError, match="d_state must be even"):
        nn.S4D(4, d_state=5)

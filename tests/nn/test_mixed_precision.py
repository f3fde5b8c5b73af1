"""float16 training with a scaled loss: in a capture, and step for step as PyTorch's scaler goes."""

from __future__ import annotations

import itertools

import numpy as np

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn import optim
from tests.helpers import needs, require

#: What the loss is multiplied by: some overflow float16, one is no number.
FACTORS = [1.0, 1e4, 3e9, 1.0, 1.0, float("nan"), 1.0, 1.0, 1.0, 1e6, 1.0]


def steps(jit, dtype="float16"):
    """(weights, scale) after each step of a model in float16 whose optimizer has float32."""
    weight = Tensor([[1.0, -2.0], [0.5, 0.25]], requires_grad=True)
    x = Tensor([[1.0, 2.0]], dtype=dtype).realize()
    optimizer = optim.SGD([weight], lr=1e-3, momentum=0.9)
    scaler = optim.GradScaler(init_scale=1024.0, growth_interval=2)

    def step(factor):
        optimizer.zero_grad()
        loss = ((x @ weight.cast(dtype)).square().cast("float32") * factor).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        return loss.realize()

    run = TinyJit(step) if jit else step
    seen = []
    with Tensor.train():
        for factor in FACTORS:
            run(Tensor([factor]).realize())
            seen.append((weight.tolist(), scaler.get_scale()))
    return seen


def test_a_captured_step_is_skipped_and_the_scale_moves_without_reading_anything():
    plain, jitted = steps(jit=False), steps(jit=True)
    assert jitted == plain
    pairs = list(itertools.pairwise(plain))
    stays = [before == after for (before, _), (after, _) in pairs]
    falls = [after < before for (_, before), (_, after) in pairs]
    assert stays == falls
    assert sum(falls) == 4
    assert any(after > before for (_, before), (_, after) in pairs)


@needs("torch")
def test_the_scale_is_that_of_pytorch():
    torch = require("torch")
    weight = torch.tensor([[1.0, -2.0], [0.5, 0.25]], requires_grad=True)
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float16)
    optimizer = torch.optim.SGD([weight], lr=1e-3, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    seen = []
    for factor in FACTORS:
        optimizer.zero_grad()
        loss = ((x @ weight.to(torch.float16)).square().float() * factor).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((weight.tolist(), scaler.get_scale()))
    ours = steps(jit=True)
    assert [scale for _, scale in ours] == [scale for _, scale in seen]
    np.testing.assert_allclose([w for w, _ in ours], [w for w, _ in seen], rtol=1e-3)


def test_small_gradients_survive_in_float16_only_when_they_are_scaled():
    weight = Tensor([1.0], requires_grad=True, dtype="float16")

    def gradient(scale):
        weight.grad = None
        ((weight * 1e-4).cast("float32") * 1e-5 * scale).sum().backward()
        return weight.grad.item() / scale

    assert gradient(1.0) == 0.0
    assert abs(gradient(65536.0) - 1e-9) < 2e-11


def test_a_network_in_float16_learns():
    Tensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), Tensor.tanh, nn.Linear(16, 1))
    optimizer, scaler = optim.AdamW(nn.state.get_parameters(model), lr=0.01), optim.GradScaler()
    x = Tensor.randn(64, 4).cast("float16").realize()
    y = x.sum(1, keepdim=True).realize()

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        first, _, second = model
        hidden = (x @ first.weight.cast("float16").T + first.bias.cast("float16")).tanh()
        out = hidden @ second.weight.cast("float16").T + second.bias.cast("float16")
        loss = (out - y).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        return loss.cast("float32").realize()

    with Tensor.train():
        losses = [step(x, y).item() for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]

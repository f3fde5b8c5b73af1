"""What PyTorch puts around a model, compiled: autocast, checkpoints, the encoder's fast path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import door, nn, torch

pytestmark = needs("torch")


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def learnt(model: Any, run: Any, x: Any) -> list[Any]:
    """The answer, and the gradients of its mean square."""
    answer = run(x)
    return [answer, *torch.autograd.grad(answer.float().square().mean(), list(model.parameters()))]


def close(found: Any, expected: Any, far: float = 1e-5) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, atol=far, rtol=far)


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False])
def test_autocast_inside_a_function_and_around_its_call(inside):
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x = torch.randn(4, 6)

    def under(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    run = torch.compile(under if inside else model, backend=door.backend)

    def called(x):
        if inside:
            return run(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return run(x)

    found, expected = learnt(model, called, x), learnt(model, under, x)
    assert found[0].dtype == torch.bfloat16
    close(found, expected, 0.03)  # bfloat16 has 8 bits


def test_a_checkpoint_computes_again_and_gives_the_same_gradients():
    from torch.utils.checkpoint import checkpoint

    block = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    x = torch.randn(3, 4)
    run = torch.compile(lambda x: checkpoint(block, x, use_reentrant=False) * 2, backend=door.backend)
    close(learnt(block, run, x), learnt(block, lambda x: block(x) * 2, x))


@pytest.mark.slow
def test_dropout_in_a_checkpoint_is_drawn_again_by_pytorch():
    from torch.utils.checkpoint import checkpoint

    def drop(x):
        return nn.functional.dropout(x, 0.5).sin()

    x = torch.rand(64).add(0.5).requires_grad_()
    run = torch.compile(lambda x: checkpoint(drop, x, use_reentrant=False), backend=door.backend)

    def answer_and_slope():
        answer = run(x)
        return answer, torch.autograd.grad(answer.sum(), x)[0]

    with pytest.warns(RuntimeWarning, match=r"rng_state.*runs in PyTorch"):
        answer, slope = answer_and_slope()
    kept = answer != 0
    assert 0 < kept.sum() < 64
    close([slope], [torch.where(kept, 2 * (2 * x).cos(), 0.0)])


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True])
def test_the_fast_path_of_an_encoder_in_evaluation(first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=first).eval()
    run = torch.compile(layer, backend=door.backend)
    x = torch.randn(2, 5, 8)
    padding = torch.arange(5) >= torch.tensor([[5], [3]])
    with torch.no_grad():
        for how in ({}, {"src_key_padding_mask": padding}):
            close([run(x, **how)], [layer(x, **how)])


@pytest.mark.slow
def test_attention_with_its_weights_in_evaluation():
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    run = torch.compile(layer, backend=door.backend)
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        for how in ({}, {"average_attn_weights": False}, {"need_weights": False}):
            for found, expected in zip(run(x, x, x, **how), layer(x, x, x, **how), strict=True):
                assert (found is None) == (expected is None)
                if expected is not None:
                    close([found], [expected])

"""Cross entropies of products in one pass: no logits in memory, forward and for the gradients."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.direct.one_pass import is_one_pass
from lazygrad.ir.ops import Ops
from tests.helpers import require

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)
IGNORED = -100


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def labels(rows: int, classes: int) -> np.ndarray:
    """Class numbers, the second of which does not count."""
    made = RNG.integers(0, classes, rows).astype(np.int32)
    made[0], made[1] = classes - 1, IGNORED
    return made


def most_stored(values: list[Tensor]) -> tuple[int, int]:
    """The elements of the largest memory that kernels write, and how many are in one pass."""
    items = [item for item in Tensor.schedule(*values) if item.ast.op is Ops.SINK]
    return max(item.bufs[0].size for item in items), sum(is_one_pass(item.ast) for item in items)


def compare(rows: int, depth: int, classes: int, scale: float = 1.0, **how: str) -> None:
    """The loss and its gradients beside PyTorch's in float64, twice: planned, and computed."""
    torch = require("torch")
    x, w, y = normal(rows, depth, scale=scale), normal(depth, classes), labels(rows, classes)
    wide = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (x, w)]
    loss = torch.nn.functional.cross_entropy(wide[0] @ wide[1], torch.tensor(y).long(), **how)
    loss.sum().backward()

    def made() -> list[Tensor]:
        a, b, named = Tensor(x).realize(), Tensor(w).realize(), Tensor(y).realize()
        got = (a @ b).cross_entropy(named, **how)
        return [got, *got.sum().gradient(a, b)]

    assert most_stored(made()) == (max(x.size, w.size), 3)  # neither rows x classes
    expected = [loss.detach(), *[each.grad for each in wide]]
    for got, right in zip(made(), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), right.numpy(), rtol=2e-5, atol=2e-6 * scale**2)


def test_loss_and_gradients(one_pass_always: None) -> None:
    compare(37, 10, 131)


@pytest.mark.slow
def test_each_loss_of_large_logits(one_pass_always: None) -> None:
    compare(40, 9, 70, 20.0, reduction="none")


def test_the_loss_alone_is_one_pass(one_pass_always: None) -> None:
    x, w, y = Tensor.empty(3, 20, 8).realize(), Tensor.empty(300, 8).realize(), Tensor.zeros(60, dtype="int")
    loss = (x @ w.T).reshape(60, 300).cross_entropy(y.contiguous().realize())
    assert most_stored([loss]) == (60, 1)


def test_logits_that_another_reads_are_stored(one_pass_always: None) -> None:
    x, w = Tensor.empty(40, 8).realize(), Tensor.empty(8, 70).realize()
    logits, y = x @ w, Tensor.zeros(40, dtype="int").contiguous().realize()
    assert most_stored([logits.cross_entropy(y), logits[:, 1:].contiguous()])[1] == 0


def test_a_class_out_of_range_is_reported(one_pass_always: None) -> None:
    loss = (Tensor.ones(20, 8).realize() @ Tensor.ones(8, 70).realize()).cross_entropy(Tensor([70] * 20))
    with pytest.raises(IndexError):
        loss.item()


@pytest.mark.slow
def test_classes_out_of_range_have_no_loss(one_pass_always: None) -> None:
    with Context(CHECK_INDEX=0):
        x, w = Tensor(normal(20, 8)).realize(), Tensor(normal(8, 70)).realize()
        losses = (x @ w).cross_entropy(Tensor([70, -1] + [3] * 18), reduction="none")
    assert (losses.numpy() == 0).tolist() == [True, True] + [False] * 18


def test_what_is_faster_is_chosen() -> None:
    """With 768 steps the product is faster by itself, and its logits are 4 MB."""
    x, w = Tensor.empty(64, 768).realize(), Tensor.empty(768, 16384).realize()
    y = Tensor.zeros(64, dtype="int").contiguous().realize()
    assert most_stored([(x @ w).cross_entropy(y)]) == (64 * 16384, 0)


def test_a_budget_leaves_no_room_for_logits() -> None:
    """Logits of 64 x 4,096 take 1 MB, and their gradient as much; what is asked for 0.26."""
    x, w = Tensor.empty(64, 16).realize(), Tensor.empty(16, 4096).realize()
    y = Tensor.zeros(64, dtype="int").contiguous().realize()
    largest = []
    for budget in (0, "500KB"):
        with Context(MEMORY_BUDGET=budget):
            loss = (x @ w).cross_entropy(y)
            largest.append(most_stored([loss, *loss.gradient(x, w)]))
    assert largest == [(64 * 4096, 0), (16 * 4096, 3)]

"""Kernels run in an order that frees memory early, and after all that they need."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor, checkpoint
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.spec import SpecError
from lazygrad.ir.uop import UOp
from lazygrad.schedule.kernels.order import _most, order_kernels
from lazygrad.schedule.kernels.template import KernelTemplate, Output, Template, verify_order
from tests.helpers import peak_of


def graph(*kernels: tuple[int, list[int]], results: list[int]) -> Template:
    """Kernels as (elements of the output, the kernels whose outputs are read)."""
    made: list[Output] = []
    found = []
    for number, (size, reads) in enumerate(kernels):
        made.append(Output(None, "CPU", size, dtypes.uint8))
        ast = UOp.const(dtypes.int, number)
        found.append(KernelTemplate(ast, [made[-1]], [made[read] for read in reads], [], ()))
    return Template(found, [(n, made[kernel]) for n, kernel in enumerate(results)])


def names(template: Template) -> list[int]:
    return [kernel.ast.arg for kernel in template.kernels]


def most(template: Template) -> int:
    memory = [(sorted(users), output.size) for output, users in template.touching().items()]
    return _most(range(len(template.kernels)), memory)


def test_what_reads_a_value_last_runs_early():
    """Two long values, each summed: one is dropped before the other is made."""
    given_order = graph((100, []), (100, []), (1, [0]), (1, [1]), results=[2, 3])
    ordered = order_kernels(given_order)
    assert names(ordered) == [0, 2, 1, 3]
    assert (most(given_order), most(ordered)) == (200, 100)
    assert ordered.before == [[], [0], [], [2]]
    assert [ordered.maker_of[output] for _, output in ordered.results] == [1, 3]
    touching = {ordered.maker_of[output]: users for output, users in ordered.touching().items()}
    assert touching == {0: {0, 1}, 2: {2, 3}}


def test_an_order_that_nothing_improves_stays():
    template = graph((8, []), (8, [0]), (8, [1]), (8, [2]), results=[3])
    assert order_kernels(template) is template


def test_an_order_that_is_none_is_refused():
    template = graph((8, []), (8, [0]), results=[1])
    verify_order(template, "order kernels")
    with pytest.raises(SpecError, match=r"after order kernels \(plan\): kernel 0 needs what is not made"):
        verify_order(template.ordered([1, 0]), "order kernels")
    with pytest.raises(SpecError, match="nothing makes a result"):
        verify_order(template.ordered([0]), "order kernels")


@given(st.data())
def test_every_order_is_a_possible_one_and_needs_no_more(data):
    kernels = []
    for number in range(data.draw(st.integers(4, 9))):
        reads = data.draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)) if number else []
        kernels.append((data.draw(st.integers(1, 9)), reads))
    results = data.draw(st.lists(st.integers(0, len(kernels) - 1), min_size=1, unique=True))
    template = graph(*kernels, results=results)
    ordered = order_kernels(template)
    order = names(ordered)
    assert sorted(order) == list(range(len(kernels)))
    for place, before in enumerate(ordered.before):
        assert [order[number] for number in before] == kernels[order[place]][1]
        assert all(number < place for number in before)
    assert [order[ordered.maker_of[output]] for _, output in ordered.results] == results
    assert most(ordered) <= most(template)


LAYERS = {
    "tanh": lambda x, w: (x @ w).tanh(),
    "relu": lambda x, w: (x @ w).relu(),
    "linear": lambda x, w: x @ w,
    "attention": lambda x, w: _attention((x @ w).reshape(512, 4, 16).transpose(0, 1)),
    "residual": lambda x, w: x + (x @ w).gelu(),
    "norm": lambda x, w: (x @ w).layernorm().gelu() + x,
    "softmax": lambda x, w: (x @ w).exp().sin().softmax(-1),
    "convolution": lambda x, w: (
        x.reshape(4, 8, 32, 32).conv2d(w[:24, :24].reshape(8, 8, 3, 3), padding=1).relu()
    ),
}


def _attention(y: Tensor) -> Tensor:
    return y.scaled_dot_product_attention(y, y, is_causal=True).transpose(0, 1)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("layer", LAYERS)
def test_a_checkpoint_does_not_raise_the_peak(layer):
    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(512, 64)).astype(np.float32)).realize()
    weights = [
        Tensor(rng.normal(size=(64, 64)).astype(np.float32) * 0.1).realize().requires_grad_()
        for _ in range(5)
    ]

    def gradients(wrap) -> list[Tensor]:
        y = x
        for w in weights:
            y = wrap(LAYERS[layer], y, w).reshape(512, 64)
        found = y.square().mean().gradient(*weights)
        Tensor.realize(*found)
        return found

    plain, kept = [], []
    peaks = [
        peak_of(lambda: plain.append(gradients(lambda f, *given: f(*given)))),
        peak_of(lambda: kept.append(gradients(checkpoint))),
    ]
    assert peaks[1] <= peaks[0]
    for one, other in zip(itertools.chain(*plain), itertools.chain(*kept), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.choice
def test_the_gradient_of_a_weight_comes_before_that_of_the_layer_below():
    """Of a chain of layers, each keeps its input until its weight's gradient, and no gradient waits."""
    x = Tensor.ones(64, 64).contiguous().realize()
    weights = [Tensor.ones(64, 64).contiguous().realize().requires_grad_() for _ in range(6)]
    y = x
    for w in weights:
        y = (y @ w).tanh()
    found = y.sum().gradient(*weights)
    items = found[0].schedule(*found[1:])
    sinks = [item for item in items if item.ast.op is Ops.SINK]
    outputs = [item.outputs[0] for item in sinks]
    users = {out: [n for n, item in enumerate(sinks) if out in item.inputs] for out in outputs}
    living = [
        sum(n <= at <= max(users[out], default=n) for n, out in enumerate(outputs) if users[out])
        for at in range(len(sinks))
    ]
    assert max(living) <= len(weights) + 2

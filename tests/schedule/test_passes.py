"""Each pass of planning on a tiny graph: what comes in, what goes out, as golden texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lazygrad import Context, Tensor
from lazygrad.ir import Ops, UOp
from lazygrad.ir.rewrite import observe
from lazygrad.ir.spec import PLAIN, SpecError, verify
from lazygrad.memo import forget_all
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.kernels.template import Template
from lazygrad.schedule.plan import PASSES, Pass, pass_observers
from lazygrad.schedule.rewrite.plain import STEPS, plain
from lazygrad.schedule.text import asts_text, form_text
from lazygrad.target import Memory, Target

TARGET = Target("", vector_bytes=32, memory=Memory(caches=(48 << 10, 1 << 20)))
GRID = Target("", grid=True)


def memory(*shape: int) -> Tensor:
    return Tensor.empty(*shape, device="PYTHON").realize()


# ---- passes: each with a tensor that is planned, perhaps beside others that are held


def shared_by_two() -> Tensor:
    return memory(4).shard(("PYTHON", "PYTHON:1"), axis=0) * 2


def read_and_written() -> tuple[Tensor, ...]:
    x = memory(4)
    held = x + 1
    return x.assign(memory(4)), held


def another_number() -> Tensor:
    first, second = ((memory(4) * number)[1:3] for number in (2.0, 3.0))
    first.kernelize()
    return second


def shifted() -> Tensor:
    x = memory(4)
    return x[1:].assign(x[:-1])


def written_out() -> Tensor:
    x = memory(6, 4)
    state = x[0]
    for step in range(1, 6):
        state = (state * 0.5 + x[step]).contiguous()
    return state


def exponentials_of_a_product() -> Tensor:
    x = memory(64, 64)
    return x.exp() @ x


def mean_and_distance() -> Tensor:
    x = memory(4, 8)
    return x - x.mean(1, keepdim=True)


def gradients_of_layers() -> tuple[Tensor, ...]:
    y, weights = memory(64, 64), [memory(64, 64).requires_grad_() for _ in range(3)]
    for w in weights:
        y = (y @ w).tanh()
    return tuple(y.sum().gradient(*weights))


def sums_apart() -> tuple[Tensor, ...]:
    return memory(4, 5).sum(1), memory(6) * 2


def gradients_of_attention() -> tuple[Tensor, ...]:
    q, k, v, arriving = (Tensor.empty(64, 32, 16, device="CPU").realize() for _ in range(4))
    result = q.scaled_dot_product_attention(k, v)
    return (result, *result.gradient(q, k, v, gradient=arriving))


def growing() -> Tensor:
    for rows in (2, 3, 4):
        x = (memory(rows, 4) * 2).sum(1).realize()
    return x


PASSED: dict[str, Callable[[], Tensor | tuple[Tensor, ...]]] = {
    "separate devices": shared_by_two,
    "add readers": read_and_written,
    "lift sizes": growing,
    "lift numbers": another_number,
    "make plain": lambda: memory(4, 5, 6).detach().sum(2).sum(0),
    "place": exponentials_of_a_product,
    "choose memory": shifted,
    "build kernels": mean_and_distance,
    "join sums": gradients_of_attention,
    "share kernels": written_out,
    "order kernels": gradients_of_layers,
    "keep to budget": gradients_of_layers,
    "join kernels": sums_apart,
    "find inner memory": exponentials_of_a_product,
}


@contextmanager
def observed() -> Iterator[dict[str, tuple[Pass, Any, Any]]]:
    """The passes that run inside, by name, with what they were given and made last."""
    seen: dict[str, tuple[Pass, Any, Any]] = {}

    def see(step: Pass, before: Any, after: Any) -> None:
        seen[step.name] = (step, before, after)

    pass_observers.append(see)
    try:
        yield seen
    finally:
        pass_observers.remove(see)


@pytest.mark.choice
@pytest.mark.parametrize("name", PASSED)
def test_pass(name, golden, request):
    forget_all()
    if name == "join sums":  # whatever the machine
        request.getfixturevalue("one_pass_always")
    budget = 6 * 64 * 64 * 4 if name == "keep to budget" else 0
    with observed() as seen, Context(CHECK=1, FUSE=1, CHECK_INDEX=1, MEMORY_BUDGET=budget):
        asked_for = PASSED[name]
        asked = asked_for()
        first, *others = asked if isinstance(asked, tuple) else (asked,)
        together = (gradients_of_layers, gradients_of_attention, sums_apart)
        first.kernelize(*(others if asked_for in together else ()))
    step, before, after = seen[name]
    text = f"{step.name}: {step.promise}\n\n{form_text(before)}\n\nbecomes\n\n{form_text(after)}"
    if name == "build kernels":
        text += f"\n\n{asts_text(after)}"
    assert golden(text)


def test_every_pass_is_here():
    assert list(PASSED) == [step.name for step in PASSES]
    assert list(STEPPED) == [step.name for step in STEPS]


# ---- what the walk of "make plain" does to nodes


def joined() -> UOp:
    parts = [memory(2).exp().uop, memory(2).exp().uop, memory(2).exp().uop]
    return UOp(Ops.COPY, parts[0].dtype, (*parts, UOp(Ops.DEVICE, arg="PYTHON")))


def gathered() -> UOp:
    values, index = (memory(4) + 1).detach(), memory(3).cast("int")
    return UOp(Ops.GATHER, values.uop.dtype, (values.uop, index.uop))


def weighed_products() -> UOp:
    p, a, b = memory(4, 5).exp(), memory(4, 3), memory(5, 3)
    return (p @ b + (p * (a @ b.T)).sum(1, keepdim=True)).uop


def two_products() -> UOp:
    a, b, c, d = (memory(8, 64) for _ in range(4))
    products = a.unsqueeze(1) * b.unsqueeze(0) + c.unsqueeze(1) * d.unsqueeze(0)
    return products.sum(2).uop


def chosen_term() -> UOp:
    scores, label = memory(4, 3) @ memory(3, 5), memory(4, 1).cast("int")
    return (Tensor.arange(5, device="PYTHON") == label).where(scores, 0).sum(1).uop


STEPPED: dict[str, Callable[[], UOp]] = {
    "sums of sums": lambda: memory(4, 5, 6).sum(2).T.sum(1).uop,
    "selected terms": chosen_term,
    "moments": lambda: memory(64, 1 << 18).var(1).uop,
    "exchanged sums": weighed_products,
    "broadcasts": lambda: memory(3, 1).expand(3, 5).sum(1).uop,
    "im2col": lambda: memory(1, 2, 3).conv1d(memory(16, 2, 3), padding=1).uop,
    "products": two_products,
    "blocks": lambda: (memory(4, 1 << 17) @ memory(1 << 17, 4)).uop,
    "split reduce": lambda: memory(1 << 22).sum().uop,
    "joins": joined,
    "memory": gathered,
}


@pytest.mark.choice
@pytest.mark.parametrize("name", STEPPED)
def test_step(name, golden):
    asked = Request.of([STEPPED[name]()])
    places = []

    def see(by: str, place: str, before: UOp, after: UOp) -> None:
        places.append((by, place))

    with observe(see):
        made = plain(asked, GRID if name == "products" else TARGET, choose=name == "selected terms")
    verify(UOp.sink(*made.results), PLAIN)
    promise = next(step.promise for step in STEPS if step.name == name)
    assert name in [by for by, _ in places]
    assert all("lazygrad/schedule/" in place.replace("\\", "/") for _, place in places)
    assert golden(f"{name}: {promise}\n\n{form_text(asked)}\n\nbecomes\n\n{form_text(made)}")


def test_check_refuses_what_is_not_plain():
    with pytest.raises(SpecError, match="DETACH"):
        verify(memory(4).exp().detach().uop, PLAIN)


def test_passes_make_what_is_bound():
    with observed() as seen:
        value = memory(4) + 1
        value.kernelize()
    template = seen["find inner memory"][2]
    assert isinstance(template, Template)
    assert template.kernels[0].ast is value.uop.src[1].arg.ast


def test_a_node_meets_a_table_once():
    """A movement to the same shape is what is below it, which was rewritten when it was met."""
    base, index = memory(4), memory(4).cast("int")
    scatter = UOp(Ops.SCATTER, base.uop.dtype, (base.uop, index.uop, base.uop), Ops.ADD)
    same = UOp(Ops.RESHAPE, scatter.dtype, (scatter,), (4,))
    made = plain(Request.of([same + same]), TARGET)
    assert [node.op for node in made.order].count(Ops.CONTIGUOUS) == 1

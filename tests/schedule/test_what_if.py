"""What a plan would be without one of its boundaries: it computes the same, in other kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.cost.estimate import executed
from lazygrad.device import Device
from lazygrad.memo import forget_all
from lazygrad.schedule import kernelize, what_if
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.kernels.template import Template
from lazygrad.schedule.plan import COLLECT, Job, run
from lazygrad.schedule.what_if import Planned, Without, asts

X = np.arange(32, dtype=np.float32).reshape(4, 8) / 8


def planned(*values: Tensor) -> Planned:
    return Planned(run(COLLECT, Request.of([value.uop for value in values]), Job()), fuse=True)


def boundary(plan: Planned, reason: str) -> tuple[int, int] | None:
    """The kernel and output that are stored for this reason; None if there is none."""
    places = [
        (number, output)
        for number, kernel in enumerate(plan.template.kernels)
        for output, end in enumerate(kernel.boundaries)
        if reason in end.reason and end.readers
    ]
    return places[0] if places else None


def without(value: Tensor, reason: str) -> tuple[Planned, Without]:
    plan = planned(value)
    place = boundary(plan, reason)
    assert place is not None
    return plan, plan.without(*place)


def two_products(x: Tensor) -> Tensor:
    up = (Tensor.arange(128).reshape(8, 16).float() / 128).contiguous().realize()
    return x.dot(up).relu().dot(up.transpose())


def several_readers(x: Tensor) -> Tensor:
    up = (Tensor.arange(128).reshape(8, 16).float() / 128).contiguous().realize()
    product = x.dot(up[:, :8].contiguous().realize())
    return product.dot(up).relu().dot(up.transpose()) + product


CASES = [
    (two_products, "this reduce would be computed"),
    (lambda x: x.softmax(0) + x.softmax(1), "reduce"),
    (several_readers, "kernels need this reduce"),
    (lambda x: (x.sin().exp().sin().exp().reshape(4, 8, 1).expand(4, 8, 64) + 1).sum(0), "recomputing"),
]


@pytest.mark.choice
@pytest.mark.parametrize(("make", "reason"), CASES, ids=["product", "two softmaxes", "readers", "elements"])
def test_a_plan_without_a_boundary_computes_the_same(monkeypatch, make, reason):
    x = Tensor(X).realize()
    expected = make(x).numpy()
    plans: list[Without] = []

    def plan_without(asked: Request, budget: int | None = None) -> Template:
        plan = Planned(asked, fuse=True)
        place = boundary(plan, reason)
        if place is None:
            return plan.template
        plans.append(plan.without(*place))
        found = plans[-1].template
        assert found is not None, plans[-1]
        assert asts(found) != asts(plan.template)
        return found

    forget_all()
    monkeypatch.setattr(kernelize, "_planned", lambda asked, key, numbers: plan_without(asked))
    np.testing.assert_allclose(make(x).numpy(), expected, rtol=1e-5)
    forget_all()
    assert len(plans) == 1


def operations(template: Template) -> int:
    """Those of plain loops, without what Opts save."""
    renderer = Device["CPU"].renderer
    return sum(executed(compile_kernel(kernel.ast, renderer, []).uops) for kernel in template.kernels)


@pytest.mark.choice
def test_what_is_computed_again_is_counted():
    x = Tensor(X).realize()
    assert operations(planned(x * 2 + 1).template) == 2 * X.size
    plan, found = without(two_products(x), "this reduce would be computed")
    assert found.template is not None
    assert operations(found.template) > operations(plan.template)


def test_without_contiguous_it_is_as_if_nobody_had_asked_for_it():
    x = Tensor(X).realize()
    _, found = without((x + 1).contiguous().exp().sum(1), "contiguous is asked for")
    assert found.template is not None
    assert asts(found.template) == asts(planned((x + 1).exp().sum(1)).template)
    assert found.wanted == "without contiguous() here"


@pytest.mark.parametrize(
    ("make", "reason", "said"),
    [
        (lambda x: x.to("PYTHON") + 1, "copy is asked for", "a copy between memories is no kernel"),
        (lambda x: x.sort(dim=1)[0] + 1, "sort is asked for", "a program of its own"),
    ],
    ids=["copy", "sort"],
)
def test_some_boundaries_stay(make, reason, said):
    _, found = without(make(Tensor(X).realize()), reason)
    assert said in found.refused
    assert found.template is None


def test_a_result_is_no_boundary_if_nobody_asks_for_it():
    x = Tensor(X).realize()
    first = x * 2 + 1
    plan = planned(first, first.exp().sum())
    place = boundary(plan, "it is a result")
    assert place is not None
    found = plan.without(*place)
    assert "no result" in found.wanted
    assert found.template is not None
    assert sum(len(kernel.outputs) for kernel in found.template.kernels) < sum(
        len(kernel.outputs) for kernel in plan.template.kernels
    )


def test_the_reasons_that_are_told_of_are_reasons_that_are_given():
    """A reason that is worded anew is worded anew here too. (Some begin with an op's name.)"""
    folder = Path(what_if.__file__).parent
    given = "".join(f.read_text("utf-8") for f in folder.rglob("*.py") if f.name != "what_if.py")
    unknown = [r for r in what_if._STAYS if r not in given and r.partition(" ")[2] not in given]
    assert unknown == []

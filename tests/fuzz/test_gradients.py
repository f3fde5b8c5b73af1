"""Gradients of the first and second order, of random programs in float64, against torch.autograd.

What is asked for: which values require a gradient; the gradient of a weighted sum of the roots in every
leaf, and again of a weighted sum of these. Where PyTorch has None, there is a ValueError here. Most values
come from the oracle of tensor graphs in numpy, those of a share of the programs from kernels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given

from lazygrad import Context, Tensor
from tests.fuzz.gradient_programs import LARGEST, Program, Refused, Step, apply, leaf_values, programs
from tests.fuzz.harness import fuzzed, number_of
from tests.helpers import needs, require
from tests.tensor.graph_oracle import evaluate

#: Relative to the largest number of a gradient, and to 1.
TOLERANCE = 1e-8
#: One program in so many is computed by kernels, not by the oracle.
COMPILED = 8
#: What PyTorch raises for programs that are none of its.
NO_PROGRAM = (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError)


class Answer(NamedTuple):
    """The values of a program, whether they require gradients; the gradients, None where there is none."""

    values: list[Any]
    tracked: list[bool]
    first: list[Any]
    second: list[Any]


def weights(shape: Sequence[int], number: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).uniform(0.5, 1.5, shape)


def in_torch(program: Program) -> tuple[list[int], Answer] | None:
    """The steps that count, and the answer; None where PyTorch has none."""
    torch = require("torch")
    leaves = [
        torch.tensor(array, requires_grad=tracked)
        for array, (_, tracked) in zip(leaf_values(program), program.leaves, strict=True)
    ]
    values, counted = list(leaves), []
    for number, step in enumerate(program.steps):
        try:
            made = apply(step, values, guard=True)
        except (Refused, *NO_PROGRAM):
            continue
        if made.numel() > 60 or made.ndim > 4 or not made.numel() or any(made is other for other in values):
            continue
        if not torch.isfinite(made).all() or made.detach().abs().max() > LARGEST:
            continue
        counted.append(number)
        values.append(made)
    targets = [v for v in values if v.is_leaf and v.requires_grad]
    total = weighted(values[-program.roots :], torch.from_numpy, 0)
    first: Any = [None] * len(targets)
    second: Any = [None] * len(targets)
    try:
        if total.requires_grad:
            first = torch.autograd.grad(total, targets, create_graph=True, allow_unused=True)
        again = weighted([g for g in first if g is not None], torch.from_numpy, 10)
        if isinstance(again, torch.Tensor) and again.requires_grad:
            second = torch.autograd.grad(again, targets, allow_unused=True)
    except RuntimeError:  # a value that was needed has been written to
        return None
    arrays = [
        [None if x is None else x.detach().numpy(force=True) for x in xs] for xs in (values, first, second)
    ]
    return counted, Answer(arrays[0], [v.requires_grad for v in values], *arrays[1:])


def weighted(values: Sequence[Any], number: Any, seed: int) -> Any:
    """One number that depends on all elements of all values."""
    return sum((v * number(weights(tuple(v.shape), seed + i))).sum() for i, v in enumerate(values))


def here(program: Program, counted: list[int], wanted: Answer, compiled: bool) -> Answer:
    leaves = [
        Tensor(array, requires_grad=tracked)
        for array, (_, tracked) in zip(leaf_values(program), program.leaves, strict=True)
    ]
    values, targets = list(leaves), [leaf for leaf in leaves if leaf.requires_grad]
    for number in counted:
        values.append(apply(program.steps[number], values))
        if number in program.reads and compiled:
            values[-1].numpy()
        if program.steps[number].name == "new leaf":
            targets.append(values[-1])
    total = weighted(values[-program.roots :], Tensor, 0)
    first = gradients(total, targets, wanted.first)
    again = weighted([g for g in first if g is not None], Tensor, 10)
    second: list[Any] = [None] * len(targets)
    if any(g is not None for g in wanted.second):
        second = [gradient(again, target) for target in targets]

    asked = [values, first, second]
    try:
        arrays = computed(
            asked, (lambda t: t.numpy()) if compiled else (lambda t: np.asarray(evaluate(t.uop)))
        )
    except NotImplementedError:  # memory of which a part was written to, or kernels that are planned already
        arrays = computed(asked, lambda t: t.numpy())
    return Answer(arrays[0], [v.requires_grad for v in values], *arrays[1:])


def computed(asked: list[Any], array: Callable[[Tensor], Any]) -> list[list[Any]]:
    return [[None if tensor is None else array(tensor) for tensor in tensors] for tensors in asked]


def gradients(total: Tensor, targets: list[Tensor], like: list[Any]) -> list[Tensor | None]:
    """Those that PyTorch has; where it has None, there is an error."""
    for target, wanted in zip(targets, like, strict=True):
        if wanted is None:
            with pytest.raises(ValueError, match="does not depend"):
                total.gradient(target)
    there = [target for target, wanted in zip(targets, like, strict=True) if wanted is not None]
    found = iter(total.gradient(*there))
    return [None if wanted is None else next(found) for wanted in like]


def gradient(total: Tensor, target: Tensor) -> Tensor | None:
    """None where there is none: PyTorch's own second derivatives are zeros or None as it happens."""
    try:
        return total.gradient(target)[0]
    except ValueError as error:
        if "does not depend" not in str(error):
            raise
        return None


def near(found: Any, wanted: Any, what: str) -> None:
    """None counts as zeros."""
    scale = 1.0 if wanted is None else max(1.0, float(np.abs(wanted).max(initial=0.0)))
    if found is not None and wanted is not None:
        assert found.shape == wanted.shape, what
    found, wanted = (np.zeros(()) if x is None else x for x in (found, wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * scale, err_msg=what)


def play(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = in_torch(program)
    if answer is None:
        return
    counted, wanted = answer
    with Context(NOOPT=1):
        found = here(program, counted, wanted, number_of(program) % COMPILED == 0)
    assert found.tracked == wanted.tracked, f"{found.tracked}, not {wanted.tracked}"
    for kind in ("values", "first", "second"):
        for number, pair in enumerate(zip(getattr(found, kind), getattr(wanted, kind), strict=True)):
            near(*pair, f"{kind} {number}")


@needs("torch")
@fuzzed(quick=20, sweep=800, share=400)
@given(programs())
def test_gradients(program: Program) -> None:
    play(program)


def steps(*named: tuple[str, tuple[int, int, int]]) -> tuple[Step, ...]:
    return tuple(Step(name, operands, (0, 0)) for name, operands in named)


@needs("torch")
@pytest.mark.parametrize("between", [("outer", (0, 0, 0)), ("scatter", (0, 0, 0))])
def test_what_a_step_on_the_host_has_planned(between: tuple[str, tuple[int, int, int]]) -> None:
    """An inverse needs its matrix now: a write, and what others still want, are planned then."""
    negated = ("neg", (0, 0, 0))
    written = ("assign slice", (0, 0, 0))
    named = [negated] * 5 + [written, between, ("neg", (1, 0, 0)), ("inverse", (0, 0, 0))]
    play(Program(((0, True), (1, False)), seed=0, steps=steps(*named), reads=frozenset(), roots=1))

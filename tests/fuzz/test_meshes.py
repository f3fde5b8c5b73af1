"""Random programs on meshes of two axes: values and gradients are those of one device, on each device.

A program is data (`Program`): matrices of one size that lie in drawn ways, and steps. All of its numbers are
whole and small, so whatever order devices add them in, the sums are equal. The oracle of tensor graphs says
what each device's part is; a share of the programs is played by four ranks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.distributed import Mesh
from lazygrad.ir.mesh import box_at
from lazygrad.sharding.multi import value_of
from tests.distributed.pipes import run_ranks
from tests.fuzz.harness import fuzz_seed, fuzzed, number_of
from tests.tensor.graph_oracle import evaluate

#: What an axis of a mesh does to a matrix: it splits one of its axes, or each device has a copy.
PLACES = (None, 0, 1)
Layout = tuple[int | None, int | None]
LAYOUTS: tuple[Layout, ...] = tuple((first, second) for first in PLACES for second in PLACES)
MESHES = ((2, 2), (2, 3), (3, 2))
#: Above it a float64 is not a whole number any more.
LARGEST = 2.0**50


class Step(NamedTuple):
    """name: of an operation; operands: which values; k: a number for its parameter."""

    name: str
    operands: tuple[int, int]
    k: int


class Program(NamedTuple):
    """Sizes of the mesh; of the matrices; how each lies; steps, of which the last is differentiated."""

    mesh: tuple[int, int]
    size: int
    leaves: tuple[Layout, ...]
    steps: tuple[Step, ...]


def halved(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """A matrix in two pieces along an axis."""
    at = 1 + k % (x.shape[0] - 1)
    return (x[:at], x[at:]) if k % 2 else (x[:, :at], x[:, at:])


def rows(x: Tensor, k: int) -> Tensor:
    """Numbers of rows, where the matrix is."""
    return Tensor([(row * k) % x.shape[0] for row in range(x.shape[0])], device=x.device)


OPS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "neg": lambda x, y, k: -x,
    "scaled": lambda x, y, k: x * (k - 3),
    "transposed": lambda x, y, k: x.T,
    "relu": lambda x, y, k: x.relu(),
    "flipped": lambda x, y, k: x.flip(k % 2),
    "rolled": lambda x, y, k: x.roll(k, k % 2),
    "moved": lambda x, y, k: x.pad(((1, 0), (0, 1)))[:-1, 1:],
    "running sum": lambda x, y, k: x.cumsum(k % 2),
    "in another order": lambda x, y, k: x.reshape(-1).flip(0).reshape(x.shape),
    "in one row": lambda x, y, k: x.reshape(1, -1).sum(0).reshape(x.shape),
    "sums": lambda x, y, k: x.sum(k % 2, keepdim=True).expand(*x.shape),
    "sum": lambda x, y, k: x.sum().expand(*x.shape),
    "greatest": lambda x, y, k: x.max(k % 2, keepdim=True).expand(*x.shape),
    "less the greatest": lambda x, y, k: x - x.max(k % 2, keepdim=True),
    "rows": lambda x, y, k: x[rows(x, k)],
    "halves": lambda x, y, k: Tensor.cat(*halved(x, k)[::-1], dim=1 - k % 2),
    "detached": lambda x, y, k: x.detach() * y,
    "stored": lambda x, y, k: x.contiguous(),
    "add": lambda x, y, k: x + y,
    "sub": lambda x, y, k: x - y,
    "mul": lambda x, y, k: x * y,
    "product": lambda x, y, k: x @ y,
    "product of sums": lambda x, y, k: x.sum(1, keepdim=True) * y.sum(0, keepdim=True),
    "chosen": lambda x, y, k: (x > y).where(x, y),
    "greater": lambda x, y, k: x.maximum(y),
    "scattered": lambda x, y, k: x.scatter_add(k % 2, (y.abs() % x.shape[0]).int(), y),
}
#: Those that read both operands.
TWO = ("add", "sub", "mul", "product", "product of sums", "chosen", "greater", "scattered")


@st.composite
def programs(draw: st.DrawFn, meshes: Sequence[tuple[int, int]] = MESHES) -> Program:
    mesh = draw(st.sampled_from(meshes))
    size = draw(st.integers(mesh[0] * mesh[1], mesh[0] * mesh[1] + 2))
    leaves = draw(st.lists(st.sampled_from(LAYOUTS), min_size=2, max_size=3))
    number = st.integers(0, 11)
    names = st.one_of(st.sampled_from(tuple(OPS)), st.sampled_from(TWO), st.just("product"), st.just("laid"))
    steps = st.lists(st.builds(Step, names, st.tuples(number, number), number), min_size=2, max_size=6)
    return Program(mesh, size, tuple(leaves), tuple(draw(steps)))


def axes_of(layout: Layout) -> dict[int, list[str]]:
    """What `shard` is given for a layout of a matrix."""
    found: dict[int, list[str]] = {}
    for name, place in zip("ab", layout, strict=True):
        if place is not None:
            found.setdefault(place, []).append(name)
    return found


def numbers(program: Program) -> list[np.ndarray[Any, Any]]:
    drawn = np.random.default_rng(number_of(program))
    return [drawn.integers(-2, 3, (program.size, program.size)).astype(np.float64) for _ in program.leaves]


def results(program: Program, mesh: Mesh | None) -> list[Tensor]:
    """The last value, and the gradients of a weighted sum of it in all leaves that it depends on."""
    leaves = [Tensor(array) for array in numbers(program)]
    if mesh is not None:
        leaves = [x.shard(mesh, axes_of(place)) for x, place in zip(leaves, program.leaves, strict=True)]
    values = [leaf.requires_grad_() for leaf in leaves]
    for step in program.steps:
        x, y = (values[-1 - min(choice % 4, choice % len(values))] for choice in step.operands)
        if step.name != "laid":
            values.append(OPS[step.name](x, y, step.k))
        elif mesh is not None:
            values.append(x.shard(mesh, axes_of(LAYOUTS[step.k % len(LAYOUTS)])))
        else:
            values.append(x + 0)
    weights = np.random.default_rng(number_of(program, "weights")).integers(-1, 3, (program.size,) * 2)
    total = (values[-1] * Tensor(weights.astype(np.float64), device=values[-1].device)).sum()
    found = [values[-1]]
    for leaf in leaves:
        try:
            found += total.gradient(leaf)
        except ValueError as error:
            if "does not depend" not in str(error):
                raise
    return found


def wanted(program: Program) -> list[np.ndarray[Any, Any]] | None:
    """The results on one device; None where numbers become so large that they are not exact."""
    found = [np.asarray(evaluate(each.uop)) for each in results(program, None)]
    return found if all(np.abs(each).max() < LARGEST for each in found) else None


def check(program: Program) -> None:
    """Each device's part of each result is that part of what one device computes."""
    expected = wanted(program)
    if expected is None:
        return
    found = results(program, Mesh(program.mesh, ("a", "b")))
    for number, (tensor, array) in enumerate(zip(found, expected, strict=True)):
        value = value_of(tensor.uop)
        for part, place in zip(value.src, value.arg.here, strict=True):
            own = array[tuple([slice(*span) for span in box_at(value.arg, tensor.shape, place)])]
            what = f"result {number} of {program} on device {place}"
            np.testing.assert_allclose(evaluate(part), own, rtol=1e-9, err_msg=what)


@fuzzed(quick=10, sweep=4000, share=1000)
@given(programs())
def test_meshes(program: Program) -> None:
    check(program)


#: How the factors of a product of three lie.
FACTORS = [(x, u, v) for x in LAYOUTS for u in LAYOUTS for v in LAYOUTS]


def chain(layouts: tuple[Layout, ...]) -> Program:
    """(x @ u) @ v, for matrices that lie so."""
    return Program((2, 2), 4, layouts, (Step("product", (2, 1), 0), Step("product", (0, 1), 0)))


def test_products_of_three() -> None:
    check(chain(((None, None), (None, 1), (1, None))))
    for layouts in random.Random(fuzz_seed()).sample(FACTORS, 10):
        check(chain(layouts))


@pytest.mark.slow
@pytest.mark.parametrize("x", LAYOUTS)
def test_products_of_three_in_all_layouts(x: Layout) -> None:
    for layouts in FACTORS:
        if layouts[0] == x:
            check(chain(layouts))


PLAY = """
import numpy as np
from lazygrad.distributed import Mesh
from tests.fuzz.test_meshes import Program, Step, results, wanted
for program in PROGRAMS:
    found = results(program, Mesh(program.mesh, ("a", "b")))
    for tensor, array in zip(found, wanted(program), strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-9, err_msg=f"{program}")
"""


@pytest.mark.slow
def test_meshes_of_four_ranks(tmp_path: Path) -> None:
    drawn: list[Program] = []
    limits = settings(max_examples=40, database=None, phases=(Phase.generate,), deadline=None)

    @seed(number_of(fuzz_seed(), "ranks"))
    @limits
    @given(programs(((2, 2),)))
    def draw(program: Program) -> None:
        drawn.append(program)

    draw()
    exact = [program for program in drawn if wanted(program) is not None]
    assert len(exact) > 20
    run_ranks(tmp_path, 4, f"PROGRAMS = None\n{PLAY}".replace("in PROGRAMS", f"in {exact!r}"))

"""A recipe makes the nodes that were made, on other inputs."""

from __future__ import annotations

from lazygrad.dtype import dtypes
from lazygrad.gradient import filled
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.schedule.graph.versions import new_buffer
from lazygrad.shape.movement import reshape, shrink
from lazygrad.shape.recipe import Recipe


def memory() -> UOp:
    return new_buffer("CPU", 4, dtypes.float32)


def formula(x: UOp, y: UOp) -> UOp:
    return reshape(x * y + filled((4,), dtypes.float32, 2.0), (2, 2))


def test_a_recipe_makes_the_same_node_as_the_calls() -> None:
    a, b, c, d = memory(), memory(), memory(), memory()
    recipe = Recipe.of([formula(a, b)], [a, b])
    assert recipe is not None
    assert len(recipe.rows) == 3
    made = recipe.on([c, d])[recipe.results[0]]
    assert made is formula(c, d)
    assert made.facts["shape"] == (2, 2)
    assert made.facts["device"] == "CPU"


def test_an_input_is_met_as_such_also_where_it_is_made_of_another() -> None:
    a, b = memory(), memory()
    inner = a * b
    recipe = Recipe.of([inner + a], [inner, a])
    assert recipe is not None
    assert [row[0] for row in recipe.rows] == [Ops.ADD]
    assert recipe.on([a, b])[recipe.results[0]] is a + b


def test_one_input_may_be_given_twice() -> None:
    a, b = memory(), memory()
    recipe = Recipe.of([a + a], [a, a])
    assert recipe is not None
    assert recipe.on([b, b])[recipe.results[0]] is b + b


def test_what_reads_other_memory_has_no_recipe() -> None:
    a, b = memory(), memory()
    assert Recipe.of([a + b], [a]) is None


def test_what_has_a_symbolic_size_has_no_recipe() -> None:
    a, n = memory(), Variable("n", 1, 4)
    assert Recipe.of([shrink(a, ((0, n),))], [a]) is None

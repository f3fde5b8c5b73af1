"""Methods whose arguments grow from call to call make their graphs by recipes apart from one size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from lazygrad import Context, Tensor
from lazygrad.dtype import dtypes
from lazygrad.ir.uop import UOp
from lazygrad.memo import forget_all
from lazygrad.schedule.graph.versions import new_buffer
from lazygrad.schedule.keys import growth
from lazygrad.shape.movement import shrink
from lazygrad.shape.recipe import Recipe
from lazygrad.shape.rules import shape_of
from lazygrad.tensor.sized_recipes import NotSized, SizedRecipe
from lazygrad.tensor.storage import marked


@pytest.fixture(autouse=True)
def _no_recipes() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


def data(*shape: int) -> Tensor:
    return Tensor.empty(*shape)


def causal(n: int) -> Tensor:
    q, k, v = (data(1, 4, n, 8) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=True)


#: How each of these methods is called with a size, and a size that is in its other arguments.
METHODS: dict[str, Callable[[int], Tensor]] = {
    "add": lambda n: data(n, 6) + data(6),
    "number": lambda n: data(n, 6) * n,
    "compare": lambda n: data(3) < n,
    "outer": lambda n: data(n, 1) * data(1, n),
    "linear": lambda n: data(1, n, 8).linear(data(8, 6), data(6)),
    "product": lambda n: data(6, n) @ data(n, 6),
    "layernorm": lambda n: data(1, n, 8).layernorm(),
    "gelu": lambda n: data(1, n, 8).gelu(),
    "mean": lambda n: data(4, n).mean(1),
    "variance": lambda n: data(4, n).var(1),
    "greatest": lambda n: data(2, n).argmax(1),
    "softmax": lambda n: data(2, n).softmax(),
    "causal": causal,
    "lookup": lambda n: Tensor.empty(1, n, dtype="int32").embedding(data(9, 4)),
    "convolution": lambda n: data(1, 2, n, 8).conv2d(data(3, 2, 3, 3), padding=1),
    "loss": lambda n: data(n, 4).cross_entropy(Tensor.empty(n, dtype="int32")),
}


def agrees(name: str, sizes: Iterable[int]) -> None:
    """After three sizes a recipe, with the node that the method makes for others."""
    method = METHODS[name]
    for n in (2, 3, 4):
        method(n)
    assert any(family.known for family in growth._families.values())
    for n in sizes:
        with Context(DEBUG=0):  # within it nothing is made by a recipe
            given: list[UOp] = []
            plain = _on_stand_ins(method, n, given)
        assert _on_stand_ins(method, n, given) is plain, n


def _on_stand_ins(method: Callable[[int], Tensor], n: int, given: list[UOp]) -> UOp:
    """What a method makes of the same memory again."""
    kept = list(given)

    def empty(*shape: int, dtype: str = "float32") -> Tensor:
        if kept:
            return Tensor(kept.pop(0))
        made = original(*shape, dtype=dtype)
        given.append(made.uop)
        return made

    original = Tensor.empty
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "empty", empty)
        return method(n).uop


@pytest.mark.parametrize("name", METHODS)
def test_a_recipe_makes_the_node_that_the_method_makes_for_another_size(name: str) -> None:
    agrees(name, (5, 6, 8, 9, 31, 63, 64, 65, 66))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_recipe_makes_the_node_that_the_method_makes_for_every_size(name: str) -> None:
    agrees(name, range(1, 140))


def test_numbers_are_right_when_sizes_grow() -> None:
    for n in range(1, 12):
        x = Tensor([[1.0] * n])
        assert x.mean(1).tolist() == [1.0]
        assert (x * n).sum().item() == n * n


def test_a_size_at_which_a_movement_changes_nothing_is_left_to_the_method() -> None:
    recipe = _of(lambda x: shrink(x, ((0, 40),)))
    assert recipe.at(40) is None
    assert recipe.at(41) is not None


def test_what_is_no_polynomial_of_the_size_has_no_recipe() -> None:
    with pytest.raises(NotSized):
        _of(lambda x: shrink(x, ((0, shape_of(x)[0] // 2),)))


def _of(make: Callable[[UOp], UOp]) -> SizedRecipe:
    numbers, made = (43, 51, 60), []
    for n in numbers:
        x = marked(new_buffer("CPU", n, dtypes.float32))
        recipe = Recipe.of([make(x)], [x])
        assert recipe is not None
        made.append(recipe)
    return SizedRecipe(numbers, made, [tuple((n,) for n in numbers)])

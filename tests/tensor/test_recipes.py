"""Methods that are called again and again make their graphs by recipes: the same ones."""

from __future__ import annotations

import doctest
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lazygrad
from lazygrad import Context, Tensor, nn
from lazygrad.config import TRACEMETA
from lazygrad.ir import uop
from lazygrad.ir.ops import Ops
from lazygrad.memo import forget_all
from lazygrad.nn.optim import Adam
from lazygrad.nn.state import get_parameters
from lazygrad.shape.recipe import MEETINGS, learned

Method = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def _no_recipes() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


def numbers(*shape: int) -> Tensor:
    return (Tensor.rand(*shape) + 0.5).realize()


def classes() -> Tensor:
    return Tensor([2, 0, 1]).realize()


METHODS: dict[str, tuple[Method, Callable[[], tuple[Any, ...]]]] = {
    "add": (lambda x, y: x + y, lambda: (numbers(3, 4), numbers(4))),
    "square": (lambda x: x * x, lambda: (numbers(3, 4),)),
    "divide": (lambda x: 2 / x, lambda: (numbers(3),)),
    "power": (lambda x: x**3, lambda: (numbers(3),)),
    "integers": (lambda x: x / 2, lambda: (classes(),)),
    "relu": (lambda x: x.relu(), lambda: (numbers(3, 4),)),
    "where": (lambda x, y: (x > 1).where(x, y), lambda: (numbers(3), numbers(3))),
    "matmul": (lambda x, y: x @ y, lambda: (numbers(3, 4), numbers(4, 2))),
    "linear": (lambda x, w, b: x.linear(w, b), lambda: (numbers(3, 4), numbers(4, 2), numbers(2))),
    "mean": (lambda x: x.mean(axis=(0, 1), keepdim=True), lambda: (numbers(3, 4),)),
    "argmax": (lambda x: x.argmax(0), lambda: (numbers(3, 4),)),
    "conv2d": (lambda x, w: x.conv2d(w, padding=1), lambda: (numbers(1, 2, 4, 4), numbers(3, 2, 3, 3))),
    "loss": (lambda x, y: x.cross_entropy(y), lambda: (numbers(3, 4), classes())),
    "smooth": (
        lambda x, y: x.sparse_categorical_crossentropy(y, label_smoothing=0.1),
        lambda: (numbers(3, 4), classes()),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_recipe_makes_the_node_that_the_method_makes(name: str) -> None:
    method, arguments = METHODS[name]
    for _ in range(MEETINGS):
        method(*arguments())
    assert any(learned.values())
    given = arguments()
    by_recipe = method(*given)
    forget_all()
    assert by_recipe.uop is method(*given).uop


SAID = {name: getattr(Tensor, name).__doc__ or "" for name in dir(Tensor) if not name.startswith("_")}
EXAMPLES = {name: text for name, text in SAID.items() if ">>>" in text}
NAMES: dict[str, Any] = {name: getattr(lazygrad, name) for name in lazygrad.__all__}
NAMES |= {"Tensor": Tensor, "nn": nn, "lazygrad": lazygrad, "math": math, "inf": math.inf, "nan": math.nan}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_the_same_however_often_it_is_run(name: str) -> None:
    given = set()
    for _ in range(MEETINGS + 2):
        said: list[str] = []
        Tensor.manual_seed(0)
        example = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(NAMES), name, None, None)
        doctest.DocTestRunner(verbose=True).run(example, out=said.append)
        given.add("".join(said))
    assert len(given) == 1


COMMON = """
    hardtanh log1p mish silu sinh asin logaddexp hypot atan2 sign round isnan celu softshrink norm cumsum
    outer cast sort roll
"""


@pytest.mark.parametrize("name", COMMON.split())
def test_what_is_called_often_runs_no_code_of_the_method(name: str) -> None:
    x, y = numbers(4), numbers(4)
    more = {"cast": ("int32",), "roll": (1,), **dict.fromkeys(("logaddexp", "hypot", "atan2", "outer"), (y,))}
    given: tuple[Any, ...] = more.get(name, ())
    for _ in range(8):
        getattr(x, name)(*given)
    assert calls_of(lambda: getattr(x, name)(*given)) <= 30


def test_what_draws_warns_or_reads_is_called_each_time() -> None:
    x = numbers(4) - 0.5
    drawn = {tuple(x.bernoulli().tolist()) for _ in range(30)}
    assert len(drawn) > 3
    for _ in range(8):
        with pytest.warns(UserWarning, match="say dim=0"):
            x.softmax(None)
    with Tensor.train():
        assert len({tuple(x.dropout(0.5).tolist()) for _ in range(30)}) > 3
    assert x.dropout(0.5).tolist() == x.tolist()
    for turn in range(6):
        assert Tensor([turn, 1, turn]).unique().tolist() == sorted({turn, 1})


LISTED: dict[str, Callable[[Tensor], Any]] = {
    "a list of tensors": lambda x: lazygrad.cat([x, x + 1]),
    "an index of tensors": lambda x: x[Tensor([1, 0]).realize()],
    "names": lambda x: x.svd().S,
    "two results": lambda x: x.topk(1)[1],
    "errors": lambda x: x.inverse(),
    "a mask": lambda x: x[x > x.min()],
}


@pytest.mark.parametrize("name", LISTED)
def test_forms_of_arguments_and_results(name: str) -> None:
    for turn in range(6):
        x = Tensor([[1.0 + turn, 2.0], [3.0, 5.0]]).realize()
        again = LISTED[name](x)
        recipes_of_now, learned.due = dict(learned), 1 << 30
        learned.clear()
        assert LISTED[name](x).tolist() == again.tolist()
        learned.due = MEETINGS
        learned.update(recipes_of_now)


def test_a_singular_matrix_is_told_however_often_others_were_inverted() -> None:
    for _ in range(6):
        Tensor([[1.0, 2.0], [3.0, 4.0]]).inverse().realize()
    with pytest.raises(ValueError, match="singular"):
        Tensor([[1.0, 2.0], [2.0, 4.0]]).inverse().tolist()


@pytest.mark.parametrize("generator", [False, True])
def test_numbers_drawn_one_after_another_are_those_drawn_at_once(generator: bool) -> None:
    def drawn(counts: list[int]) -> list[float]:
        Tensor.manual_seed(3)
        source = lazygrad.Generator(5) if generator else None
        found: list[float] = []
        for count in counts:
            found += Tensor.rand(count, generator=source).tolist()
        return found

    assert drawn([4] * 6) == drawn([24])


def test_an_operation_with_a_gradient_of_its_own_has_recipes() -> None:
    x = numbers(4)
    for turn in range(6):
        y = (x + turn).log1p()
        (found,) = y.sum().gradient(x)
        assert found.tolist() == pytest.approx([1 / (1 + turn + each) for each in x.tolist()])


def test_the_two_zeros_are_two_numbers() -> None:
    x = numbers(2)
    for _ in range(5):
        assert [math.copysign(1, n) for n in (x * 0.0).tolist()] == [1, 1]
        assert [math.copysign(1, n) for n in (x * -0.0).tolist()] == [-1, -1]


def test_the_kinds_of_numbers_are_told_apart() -> None:
    x = classes()
    for _ in range(5):
        assert (x + 1).dtype is x.dtype
        assert (x + 1.0).dtype is Tensor([1.0]).dtype


def test_gradients_flow_where_they_did() -> None:
    x, w = numbers(3, 4), numbers(4, 2).requires_grad_()
    for _ in range(5):
        w.grad = None
        made = (x @ w).relu().sum()
        made.backward()
        assert made.requires_grad
        assert w.grad is not None
        assert [row[0] for row in w.grad.tolist()] == pytest.approx(x.sum(0).tolist())
        with Tensor.no_grad():
            assert not (x @ w).requires_grad


def test_a_flag_that_changes_what_a_method_makes_is_seen() -> None:
    scores, beyond = numbers(3, 4), Tensor([9, 0, 1]).realize()
    for _ in range(5):
        with pytest.raises(IndexError, match="axis of size 4"):
            scores.nll_loss(beyond).item()
        with Context(CHECK_INDEX=0):
            assert math.isfinite(scores.nll_loss(beyond).item())


def test_what_is_known_of_one_index_is_not_taken_for_known_of_all() -> None:
    table, beyond = numbers(4, 3), Tensor([9, 0, 1]).realize()
    for _ in range(5):
        Tensor.arange(3).embedding(table)  # in range, which needs no check
    with pytest.raises(IndexError, match="axis of size 4"):
        beyond.embedding(table).tolist()


def test_an_index_error_names_the_line_of_this_call() -> None:
    scores, beyond = numbers(3, 4), Tensor([9, 0, 1]).realize()
    for _ in range(5):
        scores.nll_loss(classes()).item()
    with pytest.raises(IndexError) as told:
        scores.nll_loss(beyond).item()  # here
    number = told.traceback[0].lineno + 1
    assert f"{__file__}:{number}" in str(told.value)


@pytest.fixture
def _lines() -> Iterator[None]:
    before = TRACEMETA.value
    TRACEMETA.set_default(2)
    yield
    TRACEMETA.set_default(before)


@pytest.mark.usefixtures("_lines")
def test_nodes_of_a_recipe_have_the_line_of_their_call() -> None:
    for _ in range(MEETINGS + 1):
        x = numbers(3, 4)
        made = x.linear(numbers(4, 2)).gelu()  # here
    assert any(learned.values())
    line = sys._getframe().f_lineno - 2
    new = [node for node in made.uop.toposort() if node.op in (Ops.REDUCE_AXIS, Ops.ADD, Ops.EXP2)]
    assert {str(node.facts["origin"]) for node in new} == {
        f"linear - {__file__}:{line}",
        f"gelu - {__file__}:{line}",
    }


@pytest.mark.parametrize("sizes", [(4,) * 5, (4, 6, 8, 10, 12)])
def test_a_method_gives_several_results_however_often_it_is_called(sizes: tuple[int, ...]) -> None:
    for n in sizes:
        x = Tensor(list(range(2 * n))).float().reshape(1, 1, 2, n).realize()
        with Tensor.no_grad():
            values, places = x.max_pool2d(2, return_indices=True)
        assert values.tolist() == places.tolist() == [[[[n + 1 + 2 * k for k in range(n // 2)]]]]


def test_a_wrong_argument_is_told_as_ever() -> None:
    for _ in range(5):
        numbers(3, 4) @ numbers(4, 2)
    with pytest.raises(ValueError, match=r"cannot multiply matrices of shapes \(3, 4\) and \(3, 2\)"):
        numbers(3, 4) @ numbers(3, 2)


def test_a_result_is_a_value_of_its_own() -> None:
    x = numbers(2)
    for _ in range(5):
        y = (x + 0).realize()
        y.assign(Tensor([7.0, 7.0])).realize()
        assert x.tolist() != [7.0, 7.0]


# *** what a step costs, in things that can be counted


def calls_of(function: Callable[[], Any]) -> int:
    """How many calls of Python functions a call makes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_what_a_repeated_step_takes_is_bounded() -> None:
    """An MLP's training step made 10,700 calls and 336 nodes before there were recipes, an addition 151."""
    first, second = nn.Linear(64, 128), nn.Linear(128, 10)
    optimizer = Adam(get_parameters([first, second]), lr=1e-3)
    x, y = numbers(32, 64), Tensor([3] * 32).realize()
    a, b = numbers(4), numbers(4)

    def step() -> float:
        optimizer.zero_grad()
        loss = second(first(x).relu()).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        value: float = loss.item()
        return value

    with Tensor.train():
        for _ in range(8):
            step()
        before = next(uop._numbers)
        step()
        nodes = next(uop._numbers) - before - 1
        calls = min(calls_of(step) for _ in range(3))
    assert nodes <= 360  # of which gradients from a recipe make some that a walk would not
    assert calls <= 4300
    for _ in range(8):
        (a + b).realize()
    calls = min(calls_of(lambda: (a + b).realize()) for _ in range(5))
    assert calls <= 75  # 61; 72 once a test has used a file as a device


def test_what_a_recipe_recorded_keeps_its_value_when_memory_is_written() -> None:
    x = numbers(2)
    for turn in range(6):
        x.assign(Tensor([0.0, turn])).realize()
        y = x * 2
        x += 1
        x.realize()
        assert y.tolist() == [0.0, 2.0 * turn]

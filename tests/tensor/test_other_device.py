"""Whatever a call makes stands on the device of its input, also where that is not the default.

Every method and function by its example, every row of the table of PyTorch's functions, and every layer, with
their gradients: on PYTHON, where the default is CPU.
"""

from __future__ import annotations

import ast
import functools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from tests.fuzz.harness import fuzz_seed, number_of
from tests.nn.test_every_module import CASES
from tests.tensor.table import ROWS
from tests.tensor.test_devices import CREATED, examples

HERE = "PYTHON"
#: They move a tensor, or say where it is made.
MOVING = {"cpu", "cuda", "to", "to_", "shard", "shard_", "shard_like", "from_numpy", "from_dlpack"}
#: A row that makes a tensor of its own, on the default device.
OF_ITS_OWN = {"forms cat with an empty line"}


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)


def is_here(made: Any) -> bool:
    """Whether tensors are on this device, and what they are made of can be computed together."""
    every = list(tensors_in(made))
    if every:
        every[0].schedule(*every[1:])
    return all(each.device == HERE for each in every)


class _Moved(ast.NodeTransformer):
    """The tensors that an example makes, on this device."""

    count = 0

    def visit_Call(self, node: ast.Call) -> Any:
        made = self.generic_visit(node)
        if ast.unparse(node.func) not in CREATED:
            return made
        self.count += 1
        return ast.parse(f"{ast.unparse(made)}.to({HERE!r})", mode="eval").body


def answer(text: str) -> Any:
    """What a call gives; None where it raises an error."""
    Tensor.manual_seed(0)
    try:
        return eval(text, {"Tensor": Tensor, "nn": nn, "math": math})
    except Exception:
        return None


@functools.cache
def calls() -> list[tuple[str, str]]:
    """(example, the same on this device), of what gives something."""
    found = []
    for name, text in examples():
        moved = _Moved()
        there = ast.unparse(moved.visit(ast.parse(text, mode="eval")))
        if moved.count and name not in MOVING:
            found.append((text, there))
    return found


@pytest.mark.parametrize("part", range(8))
def test_every_method_stays_where_its_tensors_are(part: int) -> None:
    asked = 0
    for text, there in calls()[part::8]:
        made = answer(there)
        if made is None:
            assert answer(text) is None, there
        else:
            assert is_here(made), there
            asked += 1
    assert asked > 70


def on_this_device(value: Any) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    made = Tensor(np.array(value), device=HERE)
    return made.requires_grad_() if made.is_floating_point() else made


def learns_here(call: Callable[..., Any], given: list[Any], parameters: list[Tensor]) -> bool:
    """Whether results and gradients are on this device."""
    tensors = [on_this_device(each) for each in given]
    made = list(tensors_in(call(*tensors)))
    floats = [each for each in made if each.requires_grad]
    if floats:
        sum(((each * 1.5).sum().float() for each in floats), Tensor(0.0, device=HERE)).backward()
    every = [*tensors_in(tensors), *parameters]
    return is_here([*made, *[each.grad for each in every if each.grad is not None]])


def drawn(names: list[str], count: int) -> list[Any]:
    """Some of the names, drawn by the commit, as parameters of a test; the others are among its slow ones."""
    quick = set(random.Random(number_of(fuzz_seed(), "other device")).sample(names, count))
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", drawn(sorted(ROWS), 30))
def test_a_row_is_computed_where_its_tensors_are(name: str) -> None:
    row = ROWS[name]
    if name not in OF_ITS_OWN:
        assert learns_here(row.ours, row.arrays, [])


@pytest.mark.parametrize("number", drawn(list(map(str, range(len(CASES)))), 15))
def test_a_layer_is_computed_where_its_weights_are(number: str) -> None:
    name, args, options, given = CASES[int(number)]
    made = {key: on_this_device(value) for key, value in options.items()}
    layer = getattr(nn, name)(*map(on_this_device, args), **made)
    if not isinstance(layer, nn.Module):
        assert learns_here(layer, list(given), [])
        return
    layer.to(HERE)
    for training in (True, False):
        layer.train(training)
        assert learns_here(layer, list(given), list(layer.parameters()))


def test_numbers_of_a_loop_are_where_its_tensors_are() -> None:
    xs = Tensor([1.0, 2.0], device=HERE)
    total, sums = Tensor.scan(lambda c, x: (c + x, 1.0), 0.0, xs)
    assert is_here([total, sums])
    assert (total.tolist(), sums.tolist()) == (3.0, [1.0, 1.0])


def test_pools_of_several_devices() -> None:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).realize().shard(("CPU", "CPU:1"), axis=0)
    assert x.adaptive_avg_pool1d(2).tolist() == [[1.5, 2.5], [4.5, 5.5]]

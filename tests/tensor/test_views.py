"""What is a view and what is a new value: told by the method, never by the shape or the amounts."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit
from lazygrad.device import GlobalCounters
from lazygrad.nn import functional
from tests.helpers import needs, require

SHAPES = [(4,), (1,), (2, 3), (1, 3), (1, 1), (3, 3), (1, 1, 2, 2)]

#: What gives new memory in PyTorch, with amounts for which nothing is to be done.
NEW = {
    "roll by 0": lambda x: x.roll(0, 0),
    "roll by the size": lambda x: x.roll(x.shape[0], 0),
    "roll by 1": lambda x: x.roll(1, 0),
    "roll of all": lambda x: x.roll(0),
    "flip": lambda x: x.flip(0),
    "repeat": lambda x: x.repeat((1,) * x.ndim),
    "repeat twice": lambda x: x.repeat((2,) + (1,) * (x.ndim - 1)),
    "tile": lambda x: x.tile(1),
    "repeat_interleave": lambda x: x.repeat_interleave(1, 0),
    "power 1": lambda x: x**1,
    "clone": lambda x: x.clone(),
    "diff 0 times": lambda x: x.diff(0),
    "times 1": lambda x: x * 1,
    "sum of no axis": lambda x: x.unsqueeze(0).sum(0),
    "index_select": lambda x: x.index_select(0, _range(x)),
    "index by a list": lambda x: x[list(range(x.shape[0]))],
    "tril": lambda x: x.unsqueeze(0).tril(9),
    "rot90": lambda x: x.unsqueeze(0).rot90(0),
}
#: What is a view in PyTorch.
VIEWS = {
    "reshape": lambda x: x.reshape(-1),
    "the same shape": lambda x: x.reshape(x.shape),
    "permute": lambda x: x.permute(*range(x.ndim)[::-1]),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(),
    "expand": lambda x: x.expand(x.shape),
    "split": lambda x: x.split(1)[0],
    "chunk": lambda x: x.chunk(2)[0],
    "unbind": lambda x: x.unbind()[0],
    "select": lambda x: x.select(0, 0),
    "narrow": lambda x: x.narrow(0, 0, 1),
    "detach": lambda x: x.detach(),
    "slice": lambda x: x[1:],
    "slice by 2": lambda x: x[::2],
    "slice by 3": lambda x: x.reshape(-1)[::3],
    "unfold": lambda x: x.unfold(0, 1, 2),
    "diagonal": lambda x: x.unsqueeze(0).diagonal(),
    "diagonal of a square": lambda x: (
        x.reshape(-1)[:4].reshape(-1, 2).diagonal() if x.numel() > 3 else x.view(-1)
    ),
    "contiguous": lambda x: x.contiguous(),
    "its own dtype": lambda x: x.to(x.dtype),
}


def _range(x):
    numbers = np.arange(x.shape[0])
    return Tensor(numbers) if isinstance(x, Tensor) else require("torch").tensor(numbers)


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def memory(shape: tuple[int, ...]) -> Tensor:
    return Tensor(numbers(shape)).realize()


@needs("torch")
@pytest.mark.parametrize("name", [*NEW, *VIEWS])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_method_shares_memory_where_pytorchs_does(name, shape):
    make = (NEW | VIEWS)[name]
    x, theirs = memory(shape), require("torch").tensor(numbers(shape))
    shares = make(theirs).untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr()
    assert shares is (name in VIEWS)
    made = make(x)
    assert (made is x or made._memory() is x._memory()) is shares


@pytest.mark.parametrize("realized", [False, True])
@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("shape", [(1,), (1, 3), (3, 3)], ids=str)
def test_a_new_value_and_what_it_is_made_of_are_written_apart(name, shape, realized):
    x = memory(shape)
    made, held = NEW[name](x), NEW[name](x)
    if realized:
        Tensor.realize(made, held)
    before, expected = x.numpy(), held.numpy()
    made += 100
    made[0] = 7
    assert x.numpy().tolist() == before.tolist()
    x += 1
    x[0] = 9
    assert held.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_sees_the_write_and_writes_through(name):
    x, theirs = memory((3, 3)), numbers((3, 3))
    view = VIEWS[name](x)
    x += 1
    assert view.numpy().tolist() == VIEWS[name](Tensor(theirs + 1)).numpy().tolist()
    view.fill_(-7)
    assert (x.numpy() == -7).sum() == view.numel()


# ---- methods beyond PyTorch's Tensor, and those that take several

JOINS = {
    "cat of one": lambda x: x.cat(dim=0),
    "cat of a list": lambda x: Tensor.cat([x]),
    "cat with nothing": lambda x: x.cat(x[:, :0], dim=1),
    "stack of one": lambda x: x.stack()[0],
    "hstack": lambda x: Tensor.hstack(x),
    "vstack": lambda x: Tensor.vstack(x),
    "block_diag": lambda x: Tensor.block_diag(x),
    "pad by 0": lambda x: x.pad((0, 0)),
    "pad by reflection": lambda x: x.pad((0, 0), mode="reflect"),
    "functional pad": lambda x: functional.pad(x, (0, 0)),
    "dropout": lambda x: x.dropout(0.0, training=True),
    "dropout in evaluation": lambda x: x.dropout(0.5, training=False),
    "functional dropout": lambda x: functional.dropout(x, 0.5, False),
    "interpolate": lambda x: x.reshape(1, 1, 3, 3).interpolate((3, 3)).reshape(3, 3),
    "pixel_shuffle": lambda x: x.reshape(1, 1, 3, 3).pixel_shuffle(1).reshape(3, 3),
    "im2col": lambda x: x.reshape(1, 1, 3, 3).im2col(1).reshape(3, 3),
    "matrix_power": lambda x: x.matrix_power(1),
    "where": lambda x: (x == x).where(x, x),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_and_layers_give_new_values(name):
    x = memory((3, 3))
    made = JOINS[name](x)
    made += 1
    assert x.numpy().tolist() == numbers((3, 3)).tolist()
    held = JOINS[name](x)
    x += 1
    assert held.numpy().tolist() == numbers((3, 3)).tolist()


def test_a_value_that_is_not_computed_yet_is_not_given_back_as_it_is():
    x = memory((3,)) + 1
    power = x**1
    power += 100
    assert x.tolist() == [2, 3, 4]


def test_a_new_value_that_is_a_list_of_one_memory_is_written_when_it_is_realized():
    x = memory((1, 2))
    twice = x.repeat(2, 1).realize()
    first = twice[0]
    twice[1] = 9
    twice += 1
    assert (twice.tolist(), first.tolist(), x.tolist()) == ([[2, 3], [10, 10]], [2, 3], [[1, 2]])


# ---- what it costs, and who looks


def test_a_new_value_runs_no_kernel_before_a_write():
    x = memory((3, 3))
    made = [x.roll(0, 0), x.flip(1), x**1, x.cat(), x.stack()[0], x.pad((0, 0))]
    GlobalCounters.reset()
    Tensor.realize(*made)
    assert GlobalCounters.kernel_count == 0
    made[0].assign(made[0] + 1).realize()
    assert GlobalCounters.kernel_count == 1


def test_arrays_on_a_new_value_keep_what_they_hold():
    x = memory((3,))
    look = np.asarray(x.roll(0, 0))
    x += 1
    assert (x.tolist(), look.tolist()) == ([2, 3, 4], [1, 2, 3])


@needs("torch")
def test_a_write_through_dlpack_reaches_its_own_tensor_alone():
    torch = require("torch")
    x = memory((3,))
    copy = x.roll(0, 0)
    torch.from_dlpack(copy).add_(100)
    assert (x.tolist(), copy.tolist()) == ([1, 2, 3], [101, 102, 103])


def test_a_result_of_the_jit_is_apart_from_the_state_that_it_copies():
    state = memory((3,))

    @TinyJit
    def count(x):
        x += 1
        return x.roll(0, 0)

    results = [count(state) for _ in range(4)]
    assert [result.tolist() for result in results] == [[n + 1, n + 2, n + 3] for n in range(1, 5)]
    results[-1].fill_(0)
    assert state.tolist() == [5, 6, 7]


def test_gradients_flow_through_a_new_value():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x.flip(0) * x.roll(0, 0) * Tensor([3.0, 5.0])).sum().backward()
    assert x.grad.tolist() == [16.0, 8.0]


def test_a_leaf_made_of_a_new_value_has_a_gradient_of_its_own():
    x = memory((2,))
    copy = x.roll(0, 0).requires_grad_()
    x.requires_grad_()
    (x * 2 + copy * 3).sum().backward()
    assert (x.grad.tolist(), copy.grad.tolist()) == ([2.0, 2.0], [3.0, 3.0])


def test_a_write_to_a_part_of_what_is_not_in_memory_warns():
    x = Tensor.zeros(2, 2).contiguous()
    with pytest.warns(RuntimeWarning, match=r"a part of a tensor of shape \(2, 2\) does not reach it"):
        x[0].assign(Tensor.ones(2))
    row = x.T[0]
    row += 1  # what is added to is the point
    Tensor.zeros(2, 2).flatten().fill_(1)  # nobody has the rest
    x.realize()[1].assign(Tensor.ones(2))
    assert (row.tolist(), x.tolist()) == ([1, 1], [[0, 0], [1, 1]])


def write_an_element(x: Tensor) -> None:
    x[0] = 9


def write_by_index(x: Tensor) -> None:
    x[Tensor([0])] = 9


def write_where(x: Tensor) -> None:
    x[x < 5] = 9


@pytest.mark.parametrize(
    "write",
    [
        write_an_element,
        write_by_index,
        write_where,
        lambda x: x.fill_(9),
        lambda x: x.assign(9),
        Tensor.zero_,
    ],
)
def test_a_write_to_what_parts_were_taken_of_warns(write):
    x = Tensor([1, 2, 3, 4]) + 1
    part = x[:2]
    with pytest.warns(
        RuntimeWarning, match=r"shape \(4,\) does not reach the part of shape \(2,\) that was tak"
    ):
        write(x)
    assert part.tolist() == [2, 3]


def test_a_write_to_an_element_of_a_part_warns():
    x = Tensor.zeros(2, 2).contiguous()
    row = x[0]
    with pytest.warns(RuntimeWarning, match=r"a part of a tensor of shape \(2, 2\) does not reach it"):
        row[0] = 1
    assert (row.tolist(), x.tolist()) == ([1, 0], [[0, 0], [0, 0]])


@pytest.mark.filterwarnings("error")
def test_a_write_that_no_part_would_see_does_not_warn():
    x = Tensor.zeros(3, 4).contiguous()
    rows, columns = [x[0], x[1]], x[:, 1::2]
    x[2, ::2] = 5  # neither these rows nor these columns
    assert (rows[1].tolist(), columns[2].tolist()) == ([0] * 4, [0] * 2)
    y = Tensor([1, 2, 3, 4]) + 0
    y[1:] = y[:-1]  # what is written is no reader of what is written
    y += y[0]
    assert y.tolist() == [2, 2, 3, 4]
    z = Tensor([1, 2]) + 0
    gone = z[0]
    del gone
    z[0] = 5
    assert z.tolist() == [5, 2]

"""Tensors in parts and in copies on several devices: the same values, and how they lie. Random programs of
them are in tests/fuzz/test_writes.py, training in tests/nn/test_sharded_training.py.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, jvp, memory, vmap
from lazygrad.device import Device
from lazygrad.schedule.graph.versions import buffer_of
from lazygrad.shape.movement import below_movement
from lazygrad.sharding.multi import value_of
from tests.helpers import needs

TWO, THREE = ("CPU", "CPU:1"), ("CPU:1", "CPU:2", "CPU:3")
X = np.arange(24, dtype=np.float32).reshape(6, 4) * 0.25 - 2
AXES = [0, 1, None]

Place = Callable[..., Tensor]


def parts(tensor: Tensor) -> list[Any]:
    """What each device holds."""
    return [Tensor._make(part).tolist() for part in value_of(tensor.realize().uop).src]


# *** how a tensor lies


def test_parts_are_even_and_the_first_are_larger() -> None:
    assert parts(Tensor([1, 2, 3, 4, 5]).shard(TWO, 0)) == [[1, 2, 3], [4, 5]]
    assert parts(Tensor([1, 2, 3, 4, 5, 6, 7]).shard(THREE, 0)) == [[1, 2, 3], [4, 5], [6, 7]]
    assert parts(Tensor([[1, 2, 3]]).shard(TWO, -1)) == [[[1, 2]], [[3]]]


def test_without_an_axis_each_device_has_a_copy() -> None:
    assert parts(Tensor([1, 2]).shard(TWO)) == [[1, 2], [1, 2]]
    assert parts(Tensor([1, 2], device=TWO)) == [[1, 2], [1, 2]]
    assert parts(Tensor([1, 2]).to(TWO)) == [[1, 2], [1, 2]]


def test_each_part_is_memory_of_its_device() -> None:
    x = Tensor([1, 2, 3]).shard(THREE, 0).realize()
    assert [buffer_of(below_movement(part)).device for part in x.uop.src] == list(THREE)


def test_device_names_all_and_shard_axis_the_axis() -> None:
    x = Tensor(X).shard(["cpu:0", "cpu:1"], axis=1)
    assert (x.device, x.shape, x.shard_axis, x.T.shard_axis) == (TWO, (6, 4), 1, 0)
    assert (x.sum(0).shard_axis, x.sum(1).shard_axis, Tensor([1]).shard_axis) == (0, None, None)


def test_shard_like() -> None:
    x = Tensor(X).shard(TWO, 1)
    y = Tensor(X).shard_like(x)
    assert (y.device, y.shard_axis) == (TWO, 1)
    assert y.shard_like(y) is y
    assert y.shard_like(Tensor([1])).device == "CPU"


def test_shard_in_place_keeps_a_parameter() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    assert x.shard_(TWO, 0) is x
    x.square().sum().backward()
    assert x.grad is not None
    assert (x.device, x.grad.device, x.grad.tolist()) == (TWO, TWO, [2.0, 4.0])


def test_printing_says_where_and_along_which_axis() -> None:
    text = "<Tensor <UOp ('CPU', 'CPU:1') (2,) int (<Ops.MULTI: 16>, axis=0)> on ('CPU', 'CPU:1')"
    assert repr(Tensor([1, 2]).shard(TWO, 0)).startswith(text)


@pytest.mark.parametrize("axis", AXES)
def test_to_gathers_and_lays_anew(axis: int | None) -> None:
    x = Tensor(X).shard(TWO, axis)
    assert x.to("CPU:2").device == "CPU:2"
    assert np.array_equal(x.to("CPU:2").numpy(), X)
    for other in AXES:
        again = x.shard(THREE, other)
        assert (again.shard_axis, again.device) == (other, THREE)
        assert np.array_equal(again.numpy(), X)


@pytest.mark.parametrize("device", ["PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_devices_of_different_kinds(device: str) -> None:
    x = Tensor(X).shard(("CPU", device), 0)
    np.testing.assert_allclose((x.exp().sum(0) + x).numpy(), np.exp(X).sum(0) + X, rtol=1e-6)


# *** operations


PROGRAMS: dict[str, tuple[Callable[[Place], Tensor], list[Any]]] = {
    # the program, and the shard axis of its result for X sharded along 0, along 1, copied
    "elementwise": (lambda s: s(X) * s(X) + 1, [0, 1, None]),
    "beside a copy": (lambda s: s(X, axis=None) - s(X), [0, 1, None]),
    "beside other axes": (lambda s: s(X) + s(X.T).T, [0, 1, None]),
    "where": (lambda s: (s(X) > 0).where(s(X), 5.0), [0, 1, None]),
    "sum": (lambda s: s(X).sum(0), [None, 0, None]),
    "max": (lambda s: s(X).max(1), [0, None, None]),
    "product": (lambda s: s(X[:, :3]).prod(), [None, None, None]),
    "mean and deviation": (lambda s: s(X).std(0), [None, 0, None]),
    "softmax": (lambda s: s(X).softmax(1), [0, 1, None]),
    "layer norm": (lambda s: s(X).layernorm(), [0, 1, None]),
    "argmax": (lambda s: s(X).argmax(0), [None, 0, None]),
    "matmul": (lambda s: s(X) @ s(X, axis=None).T, [0, None, None]),
    "permute": (lambda s: s(X).permute(1, 0), [1, 0, None]),
    "reshape": (lambda s: s(X).reshape(2, 3, 4), [0, 2, None]),
    "reshape of rows": (lambda s: s(X).reshape(6, 2, 2), [0, 1, None]),
    "flatten": (lambda s: s(X).flatten(), [0, None, None]),
    "expand": (lambda s: s(X).unsqueeze(0).expand(2, 6, 4), [1, 2, None]),
    "pad": (lambda s: s(X).pad(((1, 2), (0, 0))), [0, 1, None]),
    "shrink": (lambda s: s(X)[1:5], [0, 1, None]),
    "a row": (lambda s: s(X)[2], [None, 0, None]),
    "flip": (lambda s: s(X).flip(0), [0, 1, None]),
    "every other": (lambda s: s(X)[::2], [None, 1, None]),
    "cat": (lambda s: s(X).cat(s(X) + 1), [0, 1, None]),
    "stack": (lambda s: s(X).stack(s(X), dim=1), [0, 2, None]),
    "many joined": (lambda s: Tensor.cat(*[s(X) + i for i in range(33)], dim=1), [0, None, None]),
    "indexed": (lambda s: s(X)[s([4, 0, 5], axis=None)], [None, None, None]),
    "gathered": (lambda s: s(X).gather(1, s([[0, 3], [1, 1], [2, 0], [3, 3], [0, 1], [2, 2]], axis=0)), None),
    "scattered sums": (lambda s: s(X[:3], axis=None).index_add(0, s([0, 2, 1, 1, 0, 2]), s(X)), None),
    "scan": (lambda s: s(X).cumsum(0), [None, 1, None]),
    "sort": (lambda s: s(-X).sort(1)[0], None),
    "bits": (lambda s: s(X).bitcast("int32"), [0, 1, None]),
    "convolution": (lambda s: s(X.reshape(6, 1, 2, 2)).conv2d(s(X[:2].reshape(2, 1, 2, 2), axis=None)), None),
    "pooling": (lambda s: s(X.reshape(6, 1, 2, 2)).max_pool2d(2), None),
    "counters": (lambda s: s(X) + s(X)._make(s(X).arange(4, device=s(X).device).uop), [0, 1, None]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_do_not_depend_on_how_they_lie(name: str) -> None:
    program, axes = PROGRAMS[name]
    expected = program(lambda data, axis=0: Tensor(data)).numpy()
    for number, wanted in enumerate(AXES):

        def place(data: Any, axis: int | None = wanted) -> Tensor:
            tensor = Tensor(data)
            if axis is not None and (axis >= tensor.ndim or tensor.shape[axis] < 2):
                axis = 0
            return tensor.shard(TWO, axis)

        result = program(place)
        assert result.device == TWO
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
        if axes is not None:
            assert result.shard_axis == axes[number]


@pytest.mark.parametrize("axis", AXES)
def test_random_numbers_do_not_depend_on_it(axis: int | None) -> None:
    def draw(x: Tensor) -> list[Any]:
        Tensor.manual_seed(4)
        with Tensor.train():
            return [x.rand_like().tolist(), x.dropout(0.5).tolist()]

    assert draw(Tensor(X).shard(TWO, axis)) == draw(Tensor(X))


@pytest.mark.parametrize("axis", AXES)
def test_random_numbers_like_a_tensor_lie_as_it_does(axis: int | None) -> None:
    x = Tensor(X).shard(TWO, axis)
    drawn = (x + 1).rand_like(requires_grad=True)
    assert (drawn.device, drawn.shard_axis) == (TWO, axis)
    drawn.square().sum().backward()
    assert drawn.grad is not None
    assert drawn.grad.shard_axis == axis
    uneven = Tensor([1.0, 2.0, 3.0, 4.0, 5.0]).shard(TWO, 0)
    assert list(map(len, parts(uneven.randn_like()))) == [3, 2]
    assert x.rand_like(device="CPU").device == "CPU"


# *** gradients


@pytest.mark.parametrize("axis", AXES)
def test_gradients_lie_where_the_tensor_is(axis: int | None) -> None:
    x = Tensor(X).shard(TWO, axis).requires_grad_()
    (x @ x.T).softmax(0).square().sum().backward()
    y = Tensor(X, requires_grad=True)
    (y @ y.T).softmax(0).square().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.device == TWO
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("axis", AXES)
def test_gradients_flow_back_to_the_one_device(axis: int | None) -> None:
    x = Tensor(X, requires_grad=True)
    (x.shard(TWO, axis) * x.shard(TWO)).sum().backward()
    assert x.grad is not None
    assert x.grad.device == "CPU"
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)


# *** writing


@pytest.mark.parametrize("axis", AXES)
def test_writes_keep_how_it_lies_and_what_was_read(axis: int | None) -> None:
    x, expected = Tensor(X).shard(TWO, axis).realize(), X.copy()
    before, view = x + 1, x[:2]
    x[1:5, 1:3] = 7
    expected[1:5, 1:3] = 7
    assert np.array_equal(x.numpy(), expected)
    assert np.array_equal(before.numpy(), X + 1)
    assert np.array_equal(view.numpy(), expected[:2])
    x.assign(x.flip(0) * 2)
    assert np.array_equal(x.numpy(), expected[::-1] * 2)
    assert x.shard_axis == axis


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_write_is_planned_once_whoever_is_read_first(first: int) -> None:
    x = Tensor([[1, 2], [3, 4]]).shard(TWO, 1).realize()
    y = x - x.sum(1, keepdim=True)
    x.assign(y)
    held = [y, y.to("NPY").to(TWO) + 0, x]
    for tensor in held[first:] + held[:first]:
        assert tensor.tolist() == [[-2, -1], [-4, -3]]


@pytest.mark.parametrize("axis", AXES)
def test_what_is_not_computed_yet_keeps_how_it_lies(axis: int | None) -> None:
    x = Tensor(X).shard(TWO, axis)
    x.assign(Tensor(X + 1).shard(TWO))
    assert x.shard_axis == axis
    assert np.array_equal(x.numpy(), X + 1)
    assert x.zero_().tolist() == np.zeros_like(X).tolist()
    assert x.shard_axis == axis


@pytest.mark.parametrize("axis", AXES)
def test_no_memory_is_shared_with_where_it_came_from(axis: int | None) -> None:
    x = Tensor(X).realize()
    sharded = x.shard(TWO, axis).realize()
    gathered = sharded.to("CPU").realize()
    sharded.assign(0.0).realize()
    assert np.array_equal(x.numpy(), X)
    assert np.array_equal(gathered.numpy(), X)


@pytest.mark.parametrize("axis", AXES)
def test_copies_and_pickles_lie_as_it_does(axis: int | None) -> None:
    x = Tensor(X).shard(TWO, axis).realize()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.empty_like().assign(x), x.clone()):
        assert (other.device, other.shard_axis) == (TWO, axis)
        assert np.array_equal(other.numpy(), X)


def test_an_all_reduce_gives_every_device_the_same_bits() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)).shard(THREE, 0)
    first, *others = parts((x * x).sum(0))
    assert others == [first, first]


def test_what_was_expanded_is_sent_before_it_is_expanded() -> None:
    x, w = Tensor.ones(8, 1).contiguous(), Tensor.ones(1, 64).contiguous()
    made = x.shard(TWO, 0) * w.shard(TWO, 1)
    copies = [item.bufs[0].size for item in made.schedule() if item.ast.op.name == "COPY"]
    assert max(copies) <= 64


def test_memory_lists_the_part_on_each_device() -> None:
    x = Tensor(np.ones((501, 3), np.float32)).shard(TWO, 0).realize()
    found = [(row.device, row.nbytes) for row in memory().tensors if row.shape == "(501, 3)"]
    assert found == [("CPU", 251 * 12), ("CPU:1", 250 * 12)]
    del x


def test_functional_transforms() -> None:
    x = Tensor(X).shard(TWO, 0)
    assert np.allclose(vmap(lambda row: row.exp().sum())(x).numpy(), np.exp(X).sum(1), rtol=1e-5)
    _, slope = jvp(lambda value: value.sin(), (x,), (x.ones_like(),))
    assert np.allclose(slope.numpy(), np.cos(X), rtol=1e-5, atol=1e-6)


# *** errors


def sharded(data: Any, axis: int | None = 0) -> Tensor:
    return Tensor(data).shard(TWO, axis)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "beside one device": (
        lambda: sharded([1, 2]) + Tensor([1, 2]),
        ValueError,
        r"tensors on \(CPU, CPU:1\) and CPU cannot be combined; shard the one on CPU with "
        r"\.shard_like\(other\), or gather the other with \.to\('CPU'\)",
    ),
    "beside other devices": (
        lambda: sharded([1, 2, 3]) + Tensor([1, 2, 3]).shard(THREE, 0),
        ValueError,
        r"\(CPU, CPU:1\) and \(CPU:1, CPU:2, CPU:3\) cannot be combined; shard both over the same "
        "devices in the",
    ),
    "assign": (
        lambda: sharded([1, 2]).assign(Tensor([1, 2])),
        ValueError,
        r"assign needs a value on \(CPU, CPU:1\), not on CPU; shard the one on CPU with \.shard_like",
    ),
    "cat": (
        lambda: sharded([1, 2]).cat(Tensor([1, 2])),
        ValueError,
        r"cat of tensors on different devices: \(CPU, CPU:1\), CPU; shard the one on CPU",
    ),
    "an index": (
        lambda: sharded([1, 2])[Tensor([1])],
        ValueError,
        r"an index on CPU for a tensor on \(CPU, CPU:1\); shard the one on CPU with \.shard_like\(other\)",
    ),
    "no such axis": (
        lambda: sharded([1, 2], 1),
        IndexError,
        r"shard along axis 1: a tensor of shape \(2,\) has none; its axes are from -1 to 0",
    ),
    "no axis": (lambda: sharded(1, 0), IndexError, r"of shape \(\) has none; leave out the axis"),
    "what is no axis": (lambda: sharded([1], "x"), TypeError, "shard: axis must be an int, not 'x'"),
    "too few elements": (
        lambda: sharded([1]),
        ValueError,
        r"shard along axis 0 of shape \(1,\): 1 elements for 2 devices; name fewer devices, another axis, or",
    ),
    "one twice": (
        lambda: Tensor([1, 2]).shard(("CPU", "CPU:0"), 0),
        ValueError,
        "CPU, CPU names CPU twice; a device holds one part of a tensor",
    ),
    "none": (
        lambda: Tensor([1]).shard(()),
        ValueError,
        r"a tensor must be on at least one device, not on \(\)",
    ),
    "data only": (
        lambda: Tensor([1, 2]).shard(("CPU", "NPY")),
        ValueError,
        "NPY holds data and runs no kernels: it cannot hold a part of a tensor",
    ),
    "no names": (
        lambda: Tensor([1]).shard(3),
        TypeError,
        "shard: devices must be a string, a sequence of strings or a Mesh, not 3",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


def test_a_jit_that_shards_inside_is_replayed() -> None:
    total = TinyJit(lambda x: (x.shard(TWO, 0) * x.shard(TWO)).sum().to("CPU").realize())
    assert [total(Tensor([1.0, 2.0, i])).item() for i in range(4)] == [5.0, 6.0, 9.0, 14.0]
    assert total.captured is not None


def test_shard_over_one_device_is_to() -> None:
    assert Tensor([1, 2]).shard(("CPU",), axis=0).to("PYTHON").shard("PYTHON").device == "PYTHON"


def test_canonicalize_takes_several() -> None:
    assert Device.canonicalize(("cpu:0", "cpu:2")) == ("CPU", "CPU:2")
    assert Device.canonicalize(("cpu:2",)) == "CPU:2"

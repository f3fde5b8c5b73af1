"""Order and running values against PyTorch: dtypes, axes, special values, views, gradients of both orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.helpers import GlobalCounters
from tests.helpers import require
from tests.tensor.support import data, like_torch, value

torch = require("torch")
Array = np.ndarray[Any, Any]
SHAPES = [(7,), (3, 5), (2, 1, 3), (1,), (0,), (3, 0), (2, 70)]
DTYPES = [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_]


def special(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Few different values, so that many are equal; among floats NaN, infinities and both zeros."""
    found = np.round(np.random.default_rng(seed).standard_normal(shape) * 2).astype(dtype)
    if np.issubdtype(dtype, np.floating) and found.size > 4:
        line = found.reshape(-1)
        line[[0, 1, 2, -1, -2]] = (np.nan, np.inf, -np.inf, -0.0, 0.0)
    return found


def equal(ours: Tensor, theirs: Any) -> None:
    found, wanted = value(ours), theirs.numpy()
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


# *** order


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype: Any) -> None:
    for shape in SHAPES:
        array = special(shape, dtype)
        for axis in range(-1, len(shape)):
            for descending in (False, True):
                values, places = Tensor(array).sort(axis, descending)
                wanted, where = torch.sort(torch.tensor(array), dim=axis, descending=descending, stable=True)
                assert values.dtype is Tensor(array).dtype
                equal(values, wanted)
                equal(places, where)


def test_sort_of_other_dtypes() -> None:
    for dtype in (
        dtypes.bfloat16,
        dtypes.fp8e4m3,
        dtypes.fp8e5m2,
        dtypes.uint16,
        dtypes.uint32,
        dtypes.uint64,
    ):
        x = Tensor([3.0, 0.5, 7.0, 0.5, 1.0]).cast(dtype)
        values, _ = x.sort()
        assert values.dtype is dtype
        assert values.cast(dtypes.float).tolist() == sorted(x.cast(dtypes.float).tolist())


def test_a_scalar() -> None:
    for found in (Tensor(3.0).sort(), Tensor(3.0).topk(1), Tensor(3.0).kthvalue(1), Tensor(3.0).median(0)):
        assert [t.item() for t in found] == [3.0, 0]
        assert found[0].shape == ()
    with pytest.raises(IndexError):
        Tensor(3.0).sort(1)


def test_longer_rows() -> None:
    for shape, axis in (((2, 3000), 1), ((3000, 2), 0), ((70000,), 0)):
        array = data(*shape).astype(np.float32)
        found = Tensor(array).argsort(axis).numpy()
        np.testing.assert_array_equal(found, np.argsort(array, axis, kind="stable"))


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest: bool) -> None:
    array = np.random.default_rng(0).permutation(60).reshape(3, 4, 5).astype(np.float32)
    for axis, k in ((0, 2), (1, 4), (2, 0), (-1, 1)):
        values, places = Tensor(array).topk(k, axis, largest)
        wanted, where = torch.topk(torch.tensor(array), k, axis, largest)
        equal(values, wanted)
        equal(places, where)


@pytest.mark.parametrize("values", [3, 1000, math.nan])
@pytest.mark.parametrize(("shape", "axis", "k"), [((1000,), 0, 3), ((2, 1801), 1, 7), ((500, 2), 0, 1)])
def test_few_of_many_are_the_first_of_all(shape: tuple[int, ...], axis: int, k: int, values: float) -> None:
    # By the keys of blocks; many equal values, NaN and a last block that is not full are told apart by order.
    rng = np.random.default_rng(0)
    array = rng.integers(0, 3 if math.isnan(values) else values, shape).astype(np.float32)
    array[array == 0] = values
    for largest in (True, False):
        for dtype in (dtypes.float32, dtypes.int16) if values != 3 else (dtypes.uint8, dtypes.bool):
            x = (
                Tensor(np.nan_to_num(array)).cast(dtype)
                if dtype is dtypes.int16
                else Tensor(array).cast(dtype)
            )
            order = x.argsort(axis, largest).narrow(axis, 0, k)
            found, places = x.topk(k, axis, largest)
            assert places.tolist() == order.tolist()
            np.testing.assert_array_equal(found.numpy(), x.gather(axis, order).numpy())
            if not largest:
                assert x.kthvalue(k, axis)[1].tolist() == order.narrow(axis, k - 1, 1).squeeze(axis).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_middle(dtype: Any) -> None:
    for shape in ((7,), (3, 4)):
        array = special(shape, dtype)
        theirs = torch.tensor(array)
        for axis in range(len(shape)):
            for keep in (True, False):
                equal(Tensor(array).median(axis, keep)[0], theirs.median(axis, keep)[0])
                equal(Tensor(array).kthvalue(2, axis, keep)[0], theirs.kthvalue(2, axis, keep)[0])
        equal(Tensor(array).median(), theirs.median())


def test_views_and_what_is_around() -> None:
    x, array = Tensor(data(6, 5)), data(6, 5)
    for found, wanted in (
        (x.T.sort(0)[0], np.sort(array.T, 0)),
        (x.flip(0).sort(1)[0], np.sort(array[::-1], 1)),
        (x[1:4, ::2].sort(0)[0], np.sort(array[1:4, ::2], 0)),
        (x.pad(((1, 1), (0, 2))).sort(1)[0], np.sort(np.pad(array, ((1, 1), (0, 2))), 1)),
        ((x * 2 + 1).sort(1)[0] * 3, np.sort(array * 2 + 1, 1) * 3),
        (x.sum(0, keepdim=True).expand(6, 5).sort(1)[0], np.sort(np.broadcast_to(array.sum(0), (6, 5)), 1)),
    ):
        np.testing.assert_allclose(value(found), wanted, rtol=1e-5)


def test_order_may_be_assigned() -> None:
    x = Tensor([3.0, 1.0, 2.0])
    target = Tensor([9, 9, 9], dtype=dtypes.int32).realize()
    target.assign(x.argsort().cast(dtypes.int32)).realize()
    assert target.tolist() == [1, 2, 0]
    x.assign(x.sort()[0]).realize()
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_random_orders() -> None:
    order = Tensor.randperm(1000).numpy()
    assert sorted(order.tolist()) == list(range(1000))
    assert (order != np.arange(1000)).mean() > 0.9
    assert Tensor.randperm(0).shape == (0,)
    drawn = Tensor([0.0, 1.0, 2.0, 0.0, 5.0]).multinomial(3).tolist()
    assert sorted(drawn) == [1, 2, 4]
    with pytest.raises(ValueError, match="cannot draw 6"):
        Tensor.ones(5).multinomial(6)


# *** running values

RUNNING: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any, int], Any]]] = {
    "cumsum": (lambda x, d: x.cumsum(d), lambda x, d: x.cumsum(d)),
    "cumprod": (lambda x, d: x.cumprod(d), lambda x, d: x.cumprod(d)),
    "cummax": (lambda x, d: x.cummax(d), lambda x, d: x.cummax(d)[0]),
    "cummin": (lambda x, d: x.cummin(d), lambda x, d: x.cummin(d)[0]),
    "logcumsumexp": (lambda x, d: x.logcumsumexp(d), lambda x, d: x.logcumsumexp(d)),
}


@pytest.mark.parametrize("name", RUNNING)
def test_running_values(name: str) -> None:
    ours, theirs = RUNNING[name]
    for shape in SHAPES:
        array = data(*shape)
        if not array.size and name in ("cummax", "cummin"):
            continue
        for axis in range(-1, len(shape)):
            found, wanted = ours(Tensor(array), axis).numpy(), theirs(torch.tensor(array), axis).numpy()
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", RUNNING)
def test_running_values_of_special_ones(name: str) -> None:
    ours, theirs = RUNNING[name]
    for dtype in (np.float32, np.float64):
        array = special((3, 8), dtype)
        array[1] = -np.inf
        for axis in (0, 1):
            found, wanted = value(ours(Tensor(array), axis)), theirs(torch.tensor(array), axis).numpy()
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.bool_])
def test_running_integers(dtype: Any) -> None:
    array = special((3, 40), dtype)
    for axis in (0, 1):
        for name in ("cumsum", "cumprod", "cummax", "cummin"):
            ours, theirs = RUNNING[name]
            if dtype is np.bool_ and name in ("cummax", "cummin"):
                continue
            np.testing.assert_array_equal(
                value(ours(Tensor(array), axis)).astype(np.int64) & 0xFF,
                theirs(torch.tensor(array), axis).numpy().astype(np.int64) & 0xFF,
            )
    assert Tensor(array.astype(np.int8)).cumsum(0).dtype is dtypes.int32
    assert Tensor(array.astype(np.int8)).cumsum(0, dtype=dtypes.int64).dtype is dtypes.int64


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_where_the_extreme_was(name: str) -> None:
    array = special((4, 9), np.float32)
    for axis in (0, 1):
        found = getattr(Tensor(array), name + "_indices")(axis)
        np.testing.assert_array_equal(value(found), getattr(torch.tensor(array), name)(axis)[1].numpy())


def test_a_scalar_runs() -> None:
    assert Tensor(3.0).cumsum(0).item() == 3.0
    assert Tensor(3.0).cummax_indices(-1).item() == 0
    with pytest.raises(IndexError):
        Tensor(3.0).cumsum(1)


def test_a_long_running_sum_is_accurate() -> None:
    """A million ones, exactly; random numbers as well as one sum after the other is rounded."""
    found = Tensor.ones(1_000_000).contiguous().cumsum(0).numpy()
    np.testing.assert_array_equal(found, np.arange(1, 1_000_001, dtype=np.float32))
    array = np.random.default_rng(0).random(1_000_000).astype(np.float32)
    np.testing.assert_allclose(
        Tensor(array).cumsum(0).numpy(), array.astype(np.float64).cumsum(), rtol=4e-5, atol=1e-3
    )


@pytest.mark.choice
def test_running_values_are_one_kernel() -> None:
    x = Tensor(data(8, 16)).realize()
    assert len((x * 2).cumsum(1).relu().schedule()) == 1
    assert len(x.softmax(1).cumsum(1).schedule()) == 1
    assert len(x.cumsum(1).cumprod(1).schedule()) == 1
    assert len(x.cummax_indices(0).schedule()) == 1
    assert len(x.cumsum(0).cumsum(1).schedule()) == 2
    assert len((x @ x.T).cumsum(1).schedule()) == 2
    assert len(x.cumsum(1).sum(1).schedule()) == 2


# *** gradients

SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sort": (lambda x: x.sort(1)[0], lambda x: x.sort(1)[0]),
    "sort down": (lambda x: x.sort(0, True)[0], lambda x: x.sort(0, True)[0]),
    "topk": (lambda x: x.topk(2, 1)[0], lambda x: x.topk(2, 1)[0]),
    "median": (lambda x: x.median(1)[0], lambda x: x.median(1)[0]),
    **{f"{name} {axis}": (lambda x, f=f, a=axis: f(x, a), lambda x, g=g, a=axis: g(x, a))
       for name, (f, g) in RUNNING.items() for axis in (0, 1)},
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    ours, theirs = SMOOTH[name]
    like_torch(ours, theirs, [data(4, 6)])


@pytest.mark.parametrize("name", [name for name in SMOOTH if "cum" in name and "log" not in name])
def test_gradients_with_zeros_and_ties(name: str) -> None:
    ours, theirs = SMOOTH[name]
    like_torch(ours, theirs, [np.round(data(4, 6))])


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("zeros", [False, True])
def test_second_gradients(name: str, zeros: bool) -> None:
    ours, theirs = SMOOTH[name]
    array = np.round(data(4, 6)) if zeros and ("prod" in name or "sum" in name) else data(4, 6)
    weight = data(*theirs(torch.tensor(array)).shape, seed=1)
    t = torch.tensor(array, requires_grad=True)
    (first,) = torch.autograd.grad((theirs(t) ** 3 * torch.tensor(weight)).sum(), t, create_graph=True)
    (wanted,) = torch.autograd.grad((first**2).sum(), t)
    x = Tensor(array, requires_grad=True)
    found = ((ours(x) ** 3 * Tensor(weight)).sum().gradient(x)[0] ** 2).sum().gradient(x)[0]
    wide = np.abs(wanted.numpy()).max()
    np.testing.assert_allclose(found.numpy() / wide, wanted.numpy() / wide, rtol=1e-3, atol=1e-4)


ALONG_AN_AXIS = ["cumsum", "cumprod", "cummax", "cummin"]
MOST_KERNELS: dict[str, tuple[Callable[[Tensor], Any], int]] = {
    "sort": (lambda x: x.sort(0)[0], 3),
    "argsort": (lambda x: x.argsort(1), 3),
    "topk": (lambda x: x.topk(3)[0], 3),
    "topk of many": (lambda x: x.flatten().topk(3)[0], 10),
    "median": (lambda x: x.median(0)[0], 3),
    # one is the copy of how many there are, from a device with memory of its own
    "unique": (lambda x: x.unique(), 11),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), 2),
    **{
        f"{name} {axis}": (lambda x, n=name, a=axis: getattr(x, n)(a), 1)
        for name in ALONG_AN_AXIS
        for axis in (0, 1)
    },
}


@pytest.mark.choice
@pytest.mark.parametrize("name", MOST_KERNELS)
def test_kernels_do_not_grow_with_the_size(name: str) -> None:
    call, most = MOST_KERNELS[name]
    counts = []
    for size in (20, 300):
        x = Tensor(data(size, size)).realize()
        before = GlobalCounters.kernel_count
        call(x).realize()
        counts.append(GlobalCounters.kernel_count - before)
    assert counts[1] <= most
    assert counts[0] <= most


def test_uint64_is_found_among_signed_integers_exactly() -> None:
    """Their mix is float32, in which 2⁶³ - 1 and 2⁶³ are one number."""
    sorted_ = Tensor(np.array([1, 2**63 - 1], np.int64))
    wanted = Tensor(np.array([2**63, 5, 0], np.uint64))
    assert sorted_.searchsorted(wanted).tolist() == [2, 1, 0]
    assert wanted[:1].bucketize(sorted_).tolist() == [2]


@pytest.mark.parametrize("side", ["left", "right"])
def test_nan_stand_at_the_end_of_an_order(side: Any) -> None:
    ordered = np.array([-math.inf, 1.0, 2.0, 2.0, math.nan, math.nan], np.float32)
    wanted = np.array([-math.inf, 0.5, 1.0, 2.0, 3.0, math.inf, math.nan], np.float32)
    expected = np.searchsorted(ordered, wanted, side).tolist()
    assert Tensor(ordered).searchsorted(Tensor(wanted), side=side).tolist() == expected
    assert Tensor(wanted).bucketize(Tensor(ordered), right=side == "right").tolist() == expected


def test_what_is_in_many_of_which_some_are_nan() -> None:
    many = Tensor([math.nan, *range(100), math.nan])
    assert Tensor([5.0, 200.0, math.nan]).isin(many).tolist() == [True, False, False]

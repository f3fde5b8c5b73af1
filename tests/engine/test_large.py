"""Memory of more than 2**31 elements: indices are wide where they must be, on a device that runs nothing
(NULL), in a file with holes (DISK), and by kernels that read such a file as memory (CPU)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lazygrad import Device, Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Buffer

COUNT = 5_000_000_000
AT = 4_500_000_000


@pytest.fixture
def holes(tmp_path):
    """A file of 5 GB that takes next to no room: 1, 2, 3, 4 at AT, zeros elsewhere."""
    path = tmp_path / "holes"
    with open(path, "wb") as file:
        file.truncate(COUNT)
        file.seek(AT)
        file.write(bytes([1, 2, 3, 4]))
    return path


def source(value: Tensor) -> str:
    """The C text of the kernels of a value."""
    renderer = Device["CLANG"].renderer
    items = value.schedule()
    return "\n".join(compile_kernel(item.ast, renderer).src for item in items if item.ast.op.name == "SINK")


def empty() -> Tensor:
    return Tensor.empty(COUNT, dtype=dtypes.uint8, device="NULL")


def test_a_part_behind_2_to_the_31():
    assert "4000000000ll" in source((empty()[4_000_000_000:AT] + 1).contiguous())


@pytest.mark.choice
def test_positions_that_grow_past_2_to_the_31():
    text = source((empty().reshape(50_000, 100_000).T + 1).contiguous())
    assert re.search(r"\(\(long long\)gidx\d\)\*\d+00000ll", text), text


def test_a_reduce_over_more_than_2_to_the_31():
    value = empty().cast(dtypes.float32).sum()
    assert "(long long)" in source(value)
    assert value.realize().shape == ()


def test_a_gather_from_more_than_2_to_the_31():
    assert "5000000000ll" in source(empty()[Tensor([COUNT - 1, 3], dtype=dtypes.int64, device="NULL")])


@pytest.mark.choice
def test_small_memory_has_narrow_indices():
    small = Tensor.empty(50, 10, dtype=dtypes.uint8, device="NULL")
    assert "(long long)" not in source((small.T + 1).contiguous())


def test_a_file_with_holes(holes):
    on_disk = Tensor(holes)
    assert on_disk.shape == (COUNT,)
    assert on_disk[AT : AT + 4].to("CPU").tolist() == [1, 2, 3, 4]
    assert on_disk[AT + 2 :][:4].to("CPU").tolist() == [3, 4, 0, 0]


def test_writing_behind_2_to_the_31_of_a_file(holes):
    whole = Buffer(f"DISK:{holes}", COUNT, dtypes.uint8).allocate()
    whole.view(2, dtypes.uint8, AT + 1).ensure_allocated().copyin(bytes([7, 8]))
    assert Tensor(holes)[AT : AT + 5].to("CPU").tolist() == [1, 7, 8, 4, 0]


def test_kernels_read_behind_2_to_the_31(holes):
    x = Tensor.from_numpy(np.memmap(holes, np.uint8, "r+"))
    assert (x[AT : AT + 4] + 1).tolist() == [2, 3, 4, 5]
    assert x[Tensor([AT + 3, 5, AT], dtype=dtypes.int64)].tolist() == [4, 0, 1]
    assert x.reshape(10, COUNT // 10)[:, :4].sum(1).tolist() == [0] * 9 + [10]


# *** places among more than 2**31 elements

MANY = (1 << 31) + 5


def wide_bools() -> Tensor:
    return Tensor.empty(MANY, dtype=dtypes.bool, device="NULL")


@pytest.mark.parametrize(
    "places",
    [
        lambda: empty().argmax(),
        lambda: empty().argmin(0),
        lambda: empty().reshape(2, COUNT // 2).argmax(1),
        lambda: empty().cummax_indices(),
        lambda: empty().searchsorted(empty()[:3]),
        lambda: wide_bools().sum(),
        lambda: wide_bools().cumsum(),
        lambda: wide_bools().count_nonzero(),
        lambda: empty().count_nonzero(0),
        lambda: Tensor.arange(MANY, device="NULL"),
        lambda: empty().reshape(1, 1, 50_000, 100_000).max_pool2d(2, return_indices=True)[1],
    ],
)
def test_places_are_wide_where_they_must_be(places):
    made = places()
    assert made.dtype is dtypes.int64
    made.schedule()


def test_places_in_less_are_the_default_int():
    few = Tensor.empty((1 << 31) - 1, dtype=dtypes.uint8, device="NULL")
    for places in (
        few.argmax(),
        few.bool().sum(),
        few.bool().cumsum(),
        few.count_nonzero(),
        few.searchsorted(few),
    ):
        assert places.dtype is dtypes.int32


def test_values_at_the_end_of_what_is_counted():
    """Ends alone are computed: a slice needs no other elements."""
    assert Tensor.linspace(0, 1, MANY + 1, dtype=dtypes.float64)[MANY - 1 :].tolist() == [1 - 1 / MANY, 1.0]
    assert Tensor.eye(MANY)[MANY - 1 :, MANY - 2 :].tolist() == [[0, 1]]
    assert Tensor.ones(2, MANY).tril(MANY - 2)[:, MANY - 2 :].tolist() == [[1, 0], [1, 1]]


def test_indices_in_a_list(holes):
    x = Tensor.from_numpy(np.memmap(holes, np.uint8, "r"))
    assert x[[AT + 3, 5, AT]].tolist() == [4, 0, 1]


def test_too_many_to_be_put_in_order():
    with pytest.raises(NotImplementedError, match=r"randperm of more than 2\*\*31 - 1 elements: 2147483653"):
        Tensor.randperm(MANY)
    with pytest.raises(NotImplementedError, match=r"sorting of more than 2\*\*31 - 1 elements"):
        empty().sort()


@pytest.mark.slow
def test_argmax_behind_2_to_the_31(holes):
    x = Tensor.from_numpy(np.memmap(holes, np.uint8, "r"))[: AT + 2]
    assert x.argmax().item() == AT + 1
    assert (x != 0).sum().item() == 2

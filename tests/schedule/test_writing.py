"""The rules of writing (docs/internals/writing.md): what was recorded before a write reads old contents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lazygrad import Context, Tensor, dtypes
from lazygrad.device import GlobalCounters
from lazygrad.tensor import computing
from tests.helpers import needs
from tests.schedule.writing_support import kernels, memory

# ---- values keep what they read, views see the write


@pytest.mark.parametrize("first", ["value", "written"])
def test_a_value_recorded_before_a_write_reads_the_old_version(first):
    a = memory([1, 2, 3])
    doubled = a * 2
    a.assign(a + 10)
    order = [doubled, a] if first == "value" else [a, doubled]
    for tensor in order:
        tensor.realize()
    assert doubled.tolist() == [2, 4, 6]
    assert a.tolist() == [11, 12, 13]


def test_a_value_recorded_between_writes_reads_the_version_between():
    a = memory([1, 2])
    before = a + 0
    a.assign(a * 10)
    between = a + 0
    a.assign(a + 1)
    assert a.tolist() == [11, 21]
    assert between.tolist() == [10, 20]
    assert before.tolist() == [1, 2]


def test_views_of_memory_see_the_write():
    a = memory([[1, 2], [3, 4]])
    row, turned, flat, flipped = a[1], a.permute(1, 0), a.reshape(4), a[::-1]
    a.assign(a * 10)
    assert row.tolist() == [30, 40]
    assert turned.tolist() == [[10, 30], [20, 40]]
    assert flat.tolist() == [10, 20, 30, 40]
    assert flipped.tolist() == [[30, 40], [10, 20]]


def test_a_write_through_a_view_is_seen_by_the_whole():
    a = memory([[1, 2], [3, 4]])
    a.permute(1, 0)[0].assign(Tensor([7, 8]))
    assert a.tolist() == [[7, 2], [8, 4]]
    a[:, ::-1][0] = Tensor([5, 6])
    assert a.tolist() == [[6, 5], [8, 4]]


def test_movements_of_a_lazy_value_are_values():
    a = Tensor([1, 2, 3, 4]) + 0
    part = a[1:3]
    a.assign(Tensor([9, 9, 9, 9]))
    assert part.tolist() == [2, 3]
    assert a.tolist() == [9, 9, 9, 9]


def test_padding_is_a_value():
    a = memory([1, 2])
    padded = a.pad(((1, 1),))
    a.assign(a + 5)
    assert padded.tolist() == [0, 1, 2, 0]


def test_a_view_taken_after_kernelize_is_a_view():
    a = (Tensor([1, 2, 3]) + 1).kernelize()
    last = a[2]
    a.assign(a * 2)
    assert last.item() == 8
    assert a.tolist() == [4, 6, 8]


# ---- reading and writing the same memory


def test_shifting_in_place():
    a = memory(list(range(8)))
    a[1:] = a[:-1]
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    a[:-1] = a[1:]
    assert a.tolist() == [0, 1, 2, 3, 4, 5, 6, 6]


def test_transposing_in_place():
    values = np.arange(9, dtype=np.int32).reshape(3, 3)
    a = memory(values)
    a.assign(a.T)
    assert a.tolist() == values.T.tolist()


def test_reversing_in_place():
    a = memory([1, 2, 3, 4, 5])
    a.assign(a.flip(0))
    assert a.tolist() == [5, 4, 3, 2, 1]


def test_a_sum_of_the_whole_written_to_each_element():
    a = memory([1.0, 2.0, 3.0])
    a.assign(a - a.mean())
    assert a.tolist() == [-1.0, 0.0, 1.0]


def test_elementwise_updates_take_no_copy():
    a = memory([1, 2, 3])
    assert kernels(lambda: a.assign(a * 2 + 1).realize()) == 1
    assert a.tolist() == [3, 5, 7]


def test_swap_of_two_tensors():
    a, b = memory([1, 2]), memory([3, 4])
    old_a, old_b = a + 0, b + 0
    a.assign(old_b)
    b.assign(old_a)
    Tensor.realize(a, b)
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])


def test_swap_without_values_between_reads_as_two_assignments():
    a, b = memory([1, 2]), memory([3, 4])
    a.assign(b)
    b.assign(a)
    assert (a.tolist(), b.tolist()) == ([3, 4], [3, 4])


def test_rotation_of_three_tensors():
    a, b, c = memory([1]), memory([2]), memory([3])
    values = [t + 0 for t in (a, b, c)]
    for tensor, value in zip((b, c, a), values, strict=True):
        tensor.assign(value)
    assert [t.item() for t in (a, b, c)] == [3, 1, 2]


def test_halves_swapped_in_place():
    a = memory([1, 2, 3, 4])
    low, high = a[:2] + 0, a[2:] + 0
    a[:2] = high
    a[2:] = low
    assert a.tolist() == [3, 4, 1, 2]


# ---- several writes


def test_several_assigns_before_a_realize():
    a = memory([1, 2, 3])
    for _ in range(5):
        a.assign(a + 1)
    assert kernels(a.realize) <= 5
    assert a.tolist() == [6, 7, 8]


def test_the_last_of_several_whole_writes_counts():
    a = memory([0, 0])
    a.assign(Tensor([1, 1]))
    a.assign(Tensor([2, 2]))
    assert a.tolist() == [2, 2]


@pytest.mark.parametrize("others", [0, 4])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_two_writes_of_one_memory_are_not_done_by_one_kernel(order, others):
    """One number is stored beside another; and the second write comes after the first."""
    a, b, x = memory([5]), memory([2]), memory([0])
    x.assign(a)
    b.add_(8)
    z = a * 2 - b
    x[:] = b
    first, *rest = [(z, x, b)[place] for place in order]
    first.realize(*rest, *(memory([n]) @ memory([[n]]) for n in range(others)))
    assert (z.tolist(), x.tolist(), b.tolist()) == ([0], [10], [10])


def test_partial_writes_before_a_realize():
    a = memory([0] * 6)
    a[0] = 1
    a[2:4] = 7
    a[3] = a[0] + 1
    a[::5] = Tensor([8, 9])
    assert a.tolist() == [8, 0, 7, 2, 0, 9]


def test_partial_write_to_a_lazy_value():
    a = Tensor([1, 2, 3]) * 2
    kept = a + 0
    a[1] = 0
    assert a.tolist() == [2, 0, 6]
    assert kept.tolist() == [2, 4, 6]


def test_partial_writes_in_two_axes():
    a = memory(np.zeros((4, 4), np.int32))
    expected = np.zeros((4, 4), np.int32)
    for target in (a, expected):
        target[1:3, 1:3] = 1
        target[:, 0] = 2
        target[3] = 3
        target[::2, ::2] = 4
    assert a.tolist() == expected.tolist()


def test_an_accumulator_in_a_loop():
    total = memory([0.0])
    for step in range(4):
        total.assign(total + step)
        if step % 2:
            total.realize()
    assert total.item() == 6.0


def test_written_values_are_read_by_what_comes_later():
    a = memory([1, 2])
    a.assign(a * 3)
    later = a + 1
    assert later.tolist() == [4, 7]


# ---- a write along fewer loops than its kernel has


def one_row(size: int = 4) -> Tensor:
    """A row that was written, and is read by several."""
    row = Tensor.zeros(1, size).contiguous().realize()
    row += 1
    return row


SPREAD = {
    "a sum": lambda x: x + memory(np.zeros((3, 4), np.float32)),
    "expand": lambda x: x.expand(3, 4).contiguous(),
    "repeat": lambda x: x.repeat(3, 1).contiguous(),
    "cat": lambda x: x.cat(x, x),
    "pad": lambda x: x.pad(((1, 1), (0, 0)), value=1.0),
    "a product with its old value": lambda x: (x * 2 - 1) * memory(np.ones((3, 4), np.float32)),
}


@pytest.mark.parametrize("flags", [{}, {"FUSE": 0}, {"NOOPT": 1}, {"THREADS": 1}], ids=str)
@pytest.mark.parametrize("how", SPREAD)
def test_a_write_happens_once_where_its_value_is_spread(how, flags):
    with Context(**flags):
        row = one_row()
        wide = SPREAD[how](row)
        assert (wide.tolist(), row.tolist()) == ([[1.0] * 4] * 3, [[1.0] * 4])


@pytest.mark.parametrize("device", ["PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_a_write_happens_once_on_any_device(device):
    row = memory(np.zeros((1, 4), np.float32), device=device)
    row += 1
    assert (row + memory(np.zeros((3, 4), np.float32), device=device)).tolist() == [[1.0] * 4] * 3


def test_a_write_that_is_spread_is_a_kernel_of_its_own():
    row, zeros = one_row(), memory(np.zeros((3, 4), np.float32))
    assert kernels(lambda: (row + zeros).realize()) == 2


@pytest.mark.choice
def test_a_write_beside_a_value_of_its_size_is_in_its_kernel():
    a, b = memory([1.0, 2.0]), memory([3.0, 4.0])
    a += 1
    both = a + b
    assert kernels(lambda: both.realize(a)) == 1
    assert (both.tolist(), a.tolist()) == ([5.0, 7.0], [2.0, 3.0])


def test_a_running_average_of_rows_is_written_once():
    x = memory(np.arange(12, dtype=np.float32).reshape(3, 4))
    running = memory(np.zeros((3, 1), np.float32))
    running.assign(running * 0.5 + x.mean(1, keepdim=True))
    assert (x - running).tolist() == [[-1.5, -0.5, 0.5, 1.5]] * 3
    assert running.tolist() == [[1.5], [5.5], [9.5]]


def test_a_write_read_spread_in_its_old_and_its_new_version():
    row, ones = memory(np.zeros((1, 4), np.float32)), memory(np.ones((3, 4), np.float32))
    old = row * ones
    row += 1
    both = old + row * 10
    Tensor.realize(both, row)
    assert (both.tolist(), row.tolist()) == ([[10.0] * 4] * 3, [[1.0] * 4])


def test_a_part_that_is_written_is_spread_once():
    a = memory(np.zeros((2, 4), np.float32))
    a[:1] += 1
    wide = a[:1] + memory(np.zeros((3, 4), np.float32))
    assert (wide.tolist(), a.tolist()) == ([[1.0] * 4] * 3, [[1.0] * 4, [0.0] * 4])


# ---- a write that is stored first, then copied over


@pytest.mark.parametrize("order", [0, 1])
def test_what_reads_the_old_values_comes_before_the_copy_over_them(order):
    a = memory([1, 2, 3])
    total, copy = a.sum(), a.clone()
    a.index_add_(0, Tensor([0]), Tensor([10]))
    Tensor.realize(*((a, total, copy) if order else (copy, total, a)))
    assert (a.tolist(), total.item(), copy.tolist()) == ([11, 2, 3], 6, [1, 2, 3])


def test_what_reads_the_old_values_is_there_after_the_copy_over_them():
    a = memory([1, 2, 3])
    copy = a.clone()
    a.index_copy_(0, Tensor([0]), Tensor([10]))
    assert (a.tolist(), copy.tolist()) == ([10, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("fuse", [0, 1])
def test_values_that_are_assigned_to_one_memory_by_turns(fuse):
    """Each of three kernels stores two versions of `b`: between them those of the others come."""
    a, b = memory(np.full((4, 4), 3.0, np.float32)), memory(np.zeros((4, 4), np.float32))
    twice = a * 2
    more = (twice + a).sqrt()
    with Context(FUSE=fuse):
        for value in (more, twice):
            b.assign(value)
            b[1:3] = a[:2] * 2
        b.assign(more)
        found = ((a * 1) @ more).sin() + more
        assert b.tolist() == [[3.0] * 4] * 4
        np.testing.assert_allclose(found.numpy(), np.full((4, 4), np.sin(36.0) + 3), rtol=1e-4)


# ---- what is gone, and what is refused


def test_a_graph_whose_memory_was_overwritten_refuses():
    """Autograd keeps the graph; a value in it that was overwritten cannot be computed again."""
    a = memory([1.0, 2.0])
    old = a.uop
    a.assign(a * 2).realize()
    with pytest.raises(RuntimeError, match="modified in place"):
        Tensor(old).tolist()
    with pytest.raises(RuntimeError, match="modified in place"):
        (Tensor(old) + 1).realize()


def test_assign_checks_shape_dtype_and_device():
    a = memory([1.0, 2.0])
    with pytest.raises(ValueError, match=r"assign needs shape \(2,\), not \(3,\)"):
        a.assign(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"assign needs a value of dtypes\.float, not dtypes\.int"):
        a.assign(Tensor([1, 2]))
    with pytest.raises(
        ValueError, match=r"assign needs a value on CPU, not on PYTHON; move it with \.to\('CPU'\)"
    ):
        a.assign(Tensor([1.0, 2.0], device="PYTHON"))
    assert a.tolist() == [1.0, 2.0]


def test_assign_broadcasts_and_takes_numbers():
    a = memory([[1.0, 2.0], [3.0, 4.0]])
    a.assign(Tensor([5.0, 6.0]))
    assert a.tolist() == [[5.0, 6.0]] * 2
    a.assign(0)
    assert a.tolist() == [[0.0, 0.0]] * 2


def test_setitem_casts_numbers_and_refuses_floats_in_integers():
    a = memory([1, 2, 3])
    a[0] = 7.9
    assert a.tolist() == [7, 2, 3]
    with pytest.raises(TypeError, match="cast them first"):
        a[0] = Tensor(1.5)


def test_a_part_of_a_repeated_value_has_memory_of_its_own():
    """Looks at memory, as far as one sees, in which elements are several times: to the user they are new."""
    x = Tensor([[1, 2]]).realize()
    rows = x.repeat((3, 1))
    part = rows.unsqueeze(0)[0].realize()
    part += 1
    assert part.tolist() == [[2, 3]] * 3
    assert (rows.tolist(), x.tolist()) == ([[1, 2]] * 3, [[1, 2]])


def test_what_a_look_itself_repeats_stays_one_place_of_memory():
    wide = (Tensor([[1, 2]]) + 1).expand(3, 2).realize()
    with pytest.raises(ValueError, match="several elements share memory"):
        wide += 1


def test_an_expanded_tensor_is_not_written():
    a = memory([[1], [2]])
    with pytest.raises(ValueError, match="several elements share memory"):
        a.expand(2, 3).assign(Tensor.ones(2, 3, dtype=dtypes.int))


def test_copies_between_devices_are_values():
    a = memory([1, 2])
    there = a.to("PYTHON")
    a.assign(a * 2)
    back = there.to("CPU")
    assert there.tolist() == [1, 2]
    assert back.tolist() == [1, 2]
    assert a.tolist() == [2, 4]


def test_data_from_lists_and_arrays_is_a_snapshot():
    array = np.array([1, 2], np.int32)
    a = Tensor(array)
    array[0] = 9
    assert a.tolist() == [1, 2]
    a.realize()
    array[1] = 9
    assert a.tolist() == [1, 2]


@pytest.mark.usefixtures("undisturbed")
def test_a_write_does_not_keep_its_old_values_alive():
    a = memory([0.0] * 256)
    before = GlobalCounters.mem_used
    for _ in range(50):
        a.assign(a + 1).realize()
    assert GlobalCounters.mem_used == before


def test_a_graph_without_detach_that_equals_one_that_was_computed():
    w = Tensor([1.0, 2.0], requires_grad=True).realize()
    x = Tensor([3.0, 4.0]).realize()
    computed = (w * x).realize()  # its graph is kept for gradients
    assert (w.detach() * x + 1).tolist() == [4.0, 9.0]
    assert computed.tolist() == [3.0, 8.0]


def test_a_part_of_memory_that_is_planned_is_copied_after_it_was_computed():
    x = Tensor([1, 2, 3, 4])
    x.kernelize()
    assert x[1:].to("NPY").to(x.device).tolist() == [2, 3, 4]


def test_the_first_part_of_a_computed_value_is_written_alone():
    x = memory([1])
    x.assign((memory([5, 6]) * 2)[:1])
    *_, kernel = x.schedule()
    _, view, _ = kernel.ast.src[0].src
    assert view.arg.shape == (1,)
    assert x.tolist() == [10]


def test_another_thread_writes_what_was_about_to_be_realized(monkeypatch):
    x, y = Tensor.zeros(8).contiguous(), Tensor.zeros(8).contiguous()  # one node
    x.realize()
    realize_nodes = computing.realize_nodes

    def written_first(nodes, pending):
        monkeypatch.setattr(computing, "realize_nodes", realize_nodes)
        x.assign(x + 1).realize()
        realize_nodes(nodes, pending)

    monkeypatch.setattr(computing, "realize_nodes", written_first)
    assert y.realize().tolist() == [0.0] * 8
    assert x.tolist() == [1.0] * 8


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_a_write_to_data_that_was_not_read_yet_leaves_what_was_recorded_before(part):
    x = Tensor([1, 2, 3])
    more = x + 1
    x[part] = 0
    assert x.tolist() == [1 if part.start else 0, 0, 0]
    assert more.tolist() == [2, 3, 4]  # the copy in x's memory is gone, so the data is copied once more


def test_a_part_is_copied_before_a_write_ends_it():
    x = memory([1, 2, 3, 4])
    there = x[2:].to("NPY")
    x += 1
    assert x.tolist() == [2, 3, 4, 5]
    assert there.tolist() == [3, 4]


def test_a_part_of_memory_crosses_to_another_device_before_it_is_written():
    x = Tensor([[1, 2, 3, 4]]).shard(("CPU", "CPU:1"), 1).realize()
    x[:, 1:] = x[:, :-1]
    assert x.tolist() == [[1, 1, 2, 3]]


@pytest.mark.parametrize("write", ["assign", "copy_"])
def test_what_a_broadcast_value_was_written_to_is_written_again(write):
    x, row = Tensor([[0, 0], [0, 0]]), memory([[1, 2]])
    getattr(x, write)(row)
    x.realize()
    x += 1
    assert (x.tolist(), row.tolist()) == ([[2, 3], [2, 3]], [[1, 2]])


def test_numbers_that_are_arguments_are_written_on_each_device():
    with Context(FUSE=0):
        for number in (0, 5, 6):  # from the second on an argument of the kernel
            x = Tensor([1, 2]).shard(("CPU", "CPU:1"), 0).realize()
            x[:] = number
            assert x.tolist() == [number] * 2


@pytest.mark.parametrize("order", ["xys", "xsy", "yxs", "syx"])
def test_a_value_in_two_memories_is_read_where_it_is_not_written_again(order):
    x, y = memory([1, 2]), memory([0, 0])
    x += x
    total = x.sum(0, keepdim=True)
    y.copy_(x)
    x[:] = 0
    tensors = {"x": (x, [0, 0]), "y": (y, [2, 4]), "s": (total, [6])}
    for name in order:
        tensor, expected = tensors[name]
        assert tensor.tolist() == expected


@pytest.mark.parametrize(
    "value",
    [
        lambda: (Tensor([1.0, 2.0]).realize() + 1).contiguous(),
        lambda: (Tensor([2.0, 1.0]).realize() + 1).sort()[0],
        lambda: Tensor([1.0, 2.0]).realize().to("CPU:1"),
        lambda: Tensor([1.0, 2.0]).shard(("CPU:0", "CPU:1"), 0),
    ],
    ids=["computed", "sorted", "copied", "sharded"],
)
def test_memory_ends_as_the_value_that_it_began_from(value):
    """What is written last is read to make what is written over: it waits in memory of its own."""
    x = value()
    y = x * 2
    y[:] = 0
    y.copy_(x)
    assert y.tolist() == x.tolist() == sorted(x.tolist())


def test_old_contents_that_a_part_was_written_to_are_copied_whole():
    """What reads the memory as it was after its part was written runs after the next write."""
    x = Tensor(np.arange(16, dtype=np.int32).reshape(4, 4), device="PYTHON").realize()
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    y, b = x * 2 + x, a * 3
    x[1:3], a[1:3] = y[:2], b[:2]
    z, c = y + x, b + a
    x[1:3], a[1:3] = z[:2], c[:2]
    end = (x @ z) @ y
    del y, z
    assert np.array_equal(end.numpy(), (a @ c) @ b)


@pytest.mark.parametrize("values", [(7, 7), (7, 9, 7)])
def test_what_writes_the_same_to_the_same_memory_again_does_not_join(values):
    """One node of the graph would stand for both stores, and be in the program twice."""
    with Context(CHECK=1):
        x = Tensor([1, 2, 3, 4]).contiguous().realize()
        for value in values:
            x[::2] = value
        y = x.cat(x)
        Tensor.realize(x, y)
    assert (x.tolist(), y.tolist()) == ([7, 2, 7, 4], [7, 2, 7, 4] * 2)

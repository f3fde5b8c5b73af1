"""Indices that only the data knows: one that is out of range raises when a result is read."""

from __future__ import annotations

import inspect
import re
import threading

import numpy as np
import pytest

from lazygrad import Context, Device, Tensor, TinyJit, Variable, dtypes, nn, vmap
from lazygrad.codegen.compile import stages
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from tests.helpers import needs

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
LINE = np.arange(5, dtype=np.float32)


def ints(*values):
    return np.array(values, np.int64)


def line(offset):
    """The caller's line, so many further."""
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno + offset}"


#: what is called, on arrays and an index, here and in PyTorch; an index in range; indices out of range
TABLE = {
    "x[i]": (lambda x, i: x[i], LINE, ints(0, 4, -5), [ints(0, 5), ints(-6)]),
    "x[i, j]": (lambda x, i: x[i, i], ROWS, ints(0, 2, -3), [ints(1, 3), ints(-4)]),
    "x[:, i]": (lambda x, i: x[:, i], ROWS, ints(2, -3), [ints(3)]),
    "gather": (lambda x, i: x.gather(1, i), ROWS, ints([0, 2]), [ints([0, 3])]),
    "take": (lambda x, i: x.take(i), ROWS, ints(11, -12), [ints(12), ints(-13)]),
    "take_along_dim": (lambda x, i: x.take_along_dim(i, 0), ROWS, ints([3, 1, 0]), []),
    "index_select": (lambda x, i: x.index_select(0, i), ROWS, ints(3, 0), [ints(4)]),
    "index_add": (lambda x, i: x.index_add(0, i, x[0:1]), LINE, ints(4), [ints(5)]),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[0:1]), LINE, ints(4), [ints(5)]),
    "index_fill": (lambda x, i: x.index_fill(0, i, 9), LINE, ints(4, -5), [ints(5), ints(-6)]),
    "index_put": (lambda x, i: x.index_put((i,), x[0]), LINE, ints(4), [ints(5), ints(-6)]),
    "put": (lambda x, i: x.put(i, x[0:1]), LINE, ints(4), [ints(5), ints(-6)]),
    "scatter": (lambda x, i: x.scatter(0, i, x), LINE, ints(4, 0), [ints(5, 0)]),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, x), LINE, ints(4, 4), [ints(5, 0)]),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i, x, "amax"), LINE, ints(4, 4), [ints(5, 0)]),
    "searchsorted": (lambda x, i: _searchsorted(x, i), LINE, ints(0, 1, 2, 3, 4), [ints(0, 1, 2, 3, 5)]),
    "embedding": (lambda x, i: _functional(i).embedding(i, x), ROWS, ints(3, 0), [ints(4), ints(0, -1)]),
    "embedding_bag": (
        lambda x, i: _functional(i).embedding_bag(i, x),
        ROWS,
        ints([3, 0]),
        [ints([4, 0]), ints([0, -1])],
    ),
    "one_hot": (lambda x, i: _functional(i).one_hot(i, 5), LINE, ints(0, 4), [ints(5), ints(-1)]),
    "cross_entropy": (
        lambda x, i: _functional(i).cross_entropy(x, i),
        ROWS,
        ints(0, 2, 1, -100),
        [ints(0, 3, 1, 2), ints(0, -1, 1, 2)],
    ),
    "nll_loss": (
        lambda x, i: _functional(i).nll_loss(x, i, ignore_index=7),
        ROWS,
        ints(0, 2, 1, 7),
        [ints(0, 3, 1, 2), ints(0, -100, 1, 2)],
    ),
    "multi_margin_loss": (
        lambda x, i: _functional(i).multi_margin_loss(x, i),
        ROWS,
        ints(0, 2, 1, 1),
        [ints(0, 3, 1, 2), ints(0, -1, 1, 2)],
    ),
    "multilabel_margin_loss": (
        lambda x, i: _functional(i).multilabel_margin_loss(x, i),
        ROWS[:1],
        ints([1, -1, 0]),
        [ints([3, -1, 0])],
    ),
}


def _functional(tensor):
    if isinstance(tensor, Tensor):
        return nn.functional
    import torch

    return torch.nn.functional


def _searchsorted(x, sorter):
    if isinstance(x, Tensor):
        return x.searchsorted(x, sorter=sorter)
    import torch

    return torch.searchsorted(x, x, sorter=sorter)


@needs("torch")
@pytest.mark.parametrize("name", TABLE)
def test_like_torch(name):
    import torch

    function, x, good, wrong = TABLE[name]
    expected = function(torch.tensor(x), torch.tensor(good)).numpy()
    found = function(Tensor(x), Tensor(good)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for bad in wrong:
        with pytest.raises((IndexError, RuntimeError)):
            function(torch.tensor(x), torch.tensor(bad))
        with pytest.raises(IndexError, match=r"index -?\d+ is out of range for an axis of size \d+ \("):
            function(Tensor(x), Tensor(bad)).numpy()
        with Context(CHECK_INDEX=0):
            function(Tensor(x), Tensor(bad)).numpy()


def fails(result, match="index"):
    with pytest.raises(IndexError, match=match) as caught:
        result()
    return str(caught.value)


# ---- the message


def test_the_message_names_the_call_the_index_and_the_line_that_reads():
    logits, labels = Tensor.zeros(2, 5), Tensor([1, 7])
    here = line(1)
    loss = logits.cross_entropy(labels)
    read = line(2)
    with pytest.raises(IndexError) as caught:
        loss.item()
    assert str(caught.value) == (
        f"index 7 is out of range for an axis of size 5 (cross_entropy, {here}); "
        f"found by item() at {read}; CHECK_INDEX=0 switches these checks off"
    )


def test_a_negative_index_is_named_as_it_was_given():
    assert fails(lambda: Tensor(LINE)[Tensor([-6])].tolist()).startswith("index -6 is out of range")


def test_each_call_of_one_kernel_is_named():
    x = Tensor(ROWS).realize()
    text = fails(lambda: x[Tensor([0, 1]), Tensor([1, 3])].sum().item())
    assert "index 3 is out of range for an axis of size 3 (x[...]" in text
    text = fails(lambda: (x[Tensor([0])] + x.gather(0, Tensor([[9, 0, 0]]))).tolist())
    assert "index 9 is out of range for an axis of size 4 (gather" in text


def test_two_lines_with_one_kernel_are_told_apart():
    x = Tensor(LINE).realize()
    for bad in (5, 6):
        first = x[Tensor([bad])]
        one = line(-1)
        second = x[Tensor([bad + 2])]
        other = line(-1)
        assert one in fails(first.tolist)
        assert other in fails(second.tolist)


# ---- what is checked


@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
@pytest.mark.parametrize("size", [1, 3, 8, 37, 256])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.int16])
def test_every_lane_of_every_kernel(device, size, dtype):
    x = Tensor(ROWS, device=device).realize()
    places = np.arange(size) % 4
    for at in {0, size // 2, size - 1}:
        wrong = places.copy()
        wrong[at] = 100
        index = Tensor(wrong, dtype=dtype, device=device).realize()
        assert fails(lambda: x[index].tolist()).startswith("index 100 ")  # noqa: B023
        assert fails(lambda: x[:, 0][index].sum().item()).startswith("index 100 ")  # noqa: B023
    good = Tensor(places, dtype=dtype, device=device).realize()
    assert x[good].tolist() == ROWS[places].tolist()


@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
@pytest.mark.parametrize("size", [3, 13, 37, 324, 1003])
def test_lanes_beyond_an_axis_ask_for_no_index(device, size):
    table = Tensor(np.arange(size, dtype=np.float32), device=device).realize()
    places = Tensor.arange(size, device=device)  # computed: lanes beyond the end count on
    assert table[places].tolist() == list(range(size))
    assert (table[places // 2] * 2).sum().item() == sum(n // 2 * 2 for n in range(size))
    fails(lambda: table[places + 1].tolist(), f"^index {size} is out of range for an axis of size {size} ")


@needs("cl")
def test_a_device_that_the_host_does_not_see():
    x, index = Tensor(LINE, device="CL").realize(), Tensor([0, 9], device="CL").realize()
    picked = x[index].realize()
    assert fails(picked.tolist).startswith("index 9 ")
    assert picked.tolist() == [0.0, 0.0]  # what was found out is said once
    x[index].realize()
    assert fails(Device["CL"].synchronize).startswith("index 9 ")
    Device["CL"].synchronize()


def test_constants_and_counters_are_indices_too():
    x = Tensor(LINE).realize()
    assert x[Tensor.full((2,), 4)].tolist() == [4.0, 4.0]
    fails(lambda: x[Tensor.full((2,), 5)].tolist(), "index 5")
    fails(lambda: x[Tensor.arange(6)].tolist(), "index 5")
    fails(lambda: x.scatter(0, Tensor.full((2,), 5), 1.0).tolist(), "index 5")
    with Context(OPTS="random:1"):  # the index is stored first
        fails(lambda: x.scatter(0, Tensor.full((2,), 5), 1.0).tolist(), "index 5")
    table = Tensor.arange(100).reshape(20, 5).contiguous().realize()
    fails(lambda: table[Tensor.arange(3), Tensor.arange(3) + 4].tolist(), "for an axis of size 5")


#: what takes class numbers, with 3 classes, of which -1 is none
CLASSES = {
    "Embedding": lambda i: nn.Embedding(3, 2)(i),
    "Embedding, max_norm": lambda i: nn.Embedding(3, 2, padding_idx=0, max_norm=1.0)(i),
    "EmbeddingBag": lambda i: nn.EmbeddingBag(3, 2)(i.unsqueeze(0)),
    "embedding_bag of offsets": lambda i: i.embedding_bag(Tensor.ones(3, 2), Tensor([0])),
    "one_hot": lambda i: i.one_hot(3),
    "CrossEntropyLoss": lambda i: nn.CrossEntropyLoss()(Tensor.ones(2, 3), i),
    "label_smoothing": lambda i: nn.CrossEntropyLoss(label_smoothing=0.1)(Tensor.ones(2, 3), i),
    "NLLLoss": lambda i: nn.NLLLoss(weight=Tensor.ones(3))(Tensor.ones(2, 3), i),
    "sparse_categorical_crossentropy": lambda i: Tensor.ones(2, 3).sparse_categorical_crossentropy(i, -100),
    "MultiMarginLoss": lambda i: nn.MultiMarginLoss()(Tensor.ones(2, 3), i),
    "CTCLoss": lambda i: nn.CTCLoss()(Tensor.ones(4, 1, 3), i.unsqueeze(0), [4], [2]),
    "AdaptiveLogSoftmaxWithLoss": lambda i: (
        nn.AdaptiveLogSoftmaxWithLoss(4, 3, [1])(Tensor.ones(2, 4), i).loss
    ),
    "Perplexity": lambda i: _perplexity(i),
}


def _perplexity(classes):
    metric = nn.metrics.Perplexity()
    metric.update(Tensor.ones(2, 3), classes)
    return metric.mean.total


@pytest.mark.parametrize("name", CLASSES)
def test_a_missing_class_is_not_the_last_one(name):
    result = CLASSES[name]
    assert np.isfinite(result(Tensor([0, 2])).numpy()).all()
    with pytest.raises((IndexError, ValueError), match=r"index -1 is out of range|a class is not"):
        result(Tensor([0, -1])).numpy()


def test_rows_from_the_end_are_asked_for():
    table = Tensor(ROWS)
    assert Tensor([0, -1]).embedding(table, wrap=True).tolist() == ROWS[[0, -1]].tolist()
    assert nn.functional.embedding(Tensor([-4]), table, wrap=True).tolist() == ROWS[[0]].tolist()
    bags = nn.functional.embedding_bag(Tensor([[0, -1, -2]]), table, mode="sum", padding_idx=2, wrap=True)
    assert bags.tolist() == [(ROWS[0] + ROWS[3]).tolist()]
    layer = nn.Embedding(4, 3, padding_idx=3, max_norm=1.0, wrap=True)
    layer.weight.assign(table)
    norms = layer(Tensor([-1, 1])).norm(dim=1)
    assert all(abs(norm - 1) < 1e-5 for norm in norms.tolist())
    slope = layer(Tensor([-1, 1])).sum().gradient(layer.weight)[0].tolist()
    assert slope == [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    fails(lambda: Tensor([-5]).embedding(table, wrap=True).tolist(), "index -5")


@pytest.mark.choice
def test_classes_are_checked_by_the_kernel_that_looks_them_up():
    layer, classes = nn.Embedding(3, 2), Tensor([0, 2]).realize()
    layer.weight.realize()
    before = GlobalCounters.kernel_count
    layer(classes).realize()
    assert GlobalCounters.kernel_count == before + 1


def test_an_axis_without_elements():
    fails(lambda: Tensor(LINE)[0:0][Tensor([0])], "for an axis of size 0")
    assert Tensor(LINE)[0:0][Tensor(np.zeros(0, np.int32))].tolist() == []


def test_what_is_not_asked_for_is_not_checked():
    x = Tensor(LINE).realize()
    index = Tensor([7, 1, 2, 7]).realize()
    assert x[index[1:3]].pad((1, 1)).tolist() == [0.0, 1.0, 2.0, 0.0]
    assert x[index][1:3].tolist() == [1.0, 2.0]
    safe = (index < 5).where(index, 0)
    assert (index < 5).where(x[safe], -1).tolist() == [-1.0, 1.0, 2.0, -1.0]


def test_what_is_out_of_range_on_purpose():
    x = Tensor([0.0, 1.0, 1.5, 4.0, 9.0])
    assert x.histc(4, 0, 4).tolist() == [1.0, 2.0, 0.0, 1.0]
    assert Tensor([3, 1, 3]).unique().tolist() == [1, 3]
    assert Tensor([1, 1, 2]).unique_consecutive().tolist() == [1, 2]
    assert Tensor([1, 3, 1]).bincount().tolist() == [0, 2, 0, 1]
    assert x[x > 1].tolist() == [1.5, 4.0, 9.0]
    assert x.masked_scatter(x > 1, Tensor([7.0, 8.0, 9.0])).tolist() == [0.0, 1.0, 7.0, 8.0, 9.0]
    fails(lambda: x.masked_scatter(x > 1, Tensor([7.0, 8.0])).tolist(), "index 2 .*masked_scatter")
    logs = Tensor.zeros(4, 1, 3).log_softmax(-1)
    short = logs.ctc_loss(Tensor([[1, 99]]), [4], [1]).item()
    assert short == logs.ctc_loss(Tensor([[1]]), [4], [1]).item()
    fails(lambda: logs.ctc_loss(Tensor([[1, 99]]), [4], [2]).item(), "index 99 .*ctc_loss")


@pytest.mark.parametrize("lengths", [([5], [1]), ([-1], [1]), ([4], [3]), ([4], [1 << 32])])
def test_lengths_of_ctc_loss(lengths):
    ends, sizes = (Tensor(length, dtype="int64") for length in lengths)
    loss = Tensor.randn(4, 1, 3).log_softmax().ctc_loss(Tensor([[1, 2]]), ends, sizes)
    with pytest.raises(
        ValueError, match=r"ctc_loss: (input|target)_lengths are numbers from 0 to [24] .ctc_loss"
    ):
        loss.item()


def test_what_the_host_knows_costs_nothing():
    x = Tensor(LINE).realize()
    for key in ([0, 4], np.array([1, -1]), np.array([True, False, True, False, False])):
        assert not any(n.op is Ops.CHECK for n in x[key].uop.toposort())
    assert not any(n.op is Ops.CHECK for n in Tensor.zeros(256)[Tensor([3]).cast("uint8")].uop.toposort())


def test_gradients_check_too():
    table = Tensor(ROWS, requires_grad=True)
    table[Tensor([0, 9])].sum().backward()
    fails(table.grad.tolist, "index 9")


# ---- when, and what then


def test_a_kernel_that_failed_has_not_run():
    x = Tensor(LINE).realize()
    picked = x[Tensor([0, 9])]
    for _ in range(3):
        fails(picked.tolist, "index 9")
    assert not picked.is_realized
    assert x[Tensor([0, 1])].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("level", [1, 2])
def test_replays(level):
    with Context(JIT=level):
        x = Tensor(LINE).realize()
        f = TinyJit(lambda i: (x[i] * 2).sum())
        for at in range(3):
            assert f(Tensor([at, 0])).item() == 2.0 * at
        text = fails(lambda: f(Tensor([1, 6])).item())
        assert re.match(r"index 6 is out of range .*; found by the call of a TinyJit at ", text)
        assert f(Tensor([4, 0])).item() == 8.0


def test_a_jit_captures_anew_without_checks():
    x = Tensor(LINE).realize()
    f = TinyJit(lambda i: x[i])
    for at in range(3):
        assert f(Tensor([at])).item() == at
    with Context(CHECK_INDEX=0):
        for _ in range(3):
            assert f(Tensor([9])).item() == 0.0


def test_parts_on_several_devices():
    devices = ("CPU:1", "CPU:2")
    logits = Tensor.zeros(4, 3).shard(devices, 0).realize()
    good = Tensor([0, 1, 2, 0]).shard(devices, 0).realize()
    bad = Tensor([0, 1, 2, 3]).shard(devices, 0).realize()
    assert abs(logits.cross_entropy(good).item() - np.log(3)) < 1e-6
    fails(lambda: logits.cross_entropy(bad).item(), r"index 3 .*\(cross_entropy, ")
    table = Tensor(ROWS).shard(devices, 0).realize()
    fails(lambda: table[Tensor([4, 0]).shard(devices)].tolist(), "index 4")


def test_vmap():
    x = Tensor(ROWS).realize()
    pick = vmap(lambda row, i: row[i])
    assert pick(x, Tensor([0, 1, 2, 0])).tolist() == [0.0, 4.0, 8.0, 9.0]
    fails(lambda: pick(x, Tensor([0, 1, 3, 0])).tolist(), "index 3 .* size 3")


#: What reads memory of another place than the table, and what writes it.
AGAIN = {
    "gather": lambda x, i: x[i],
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "index_add, summed": lambda x, i: x.index_add(0, i, Tensor([1.0])).sum() + 1,
    "a copy is written": lambda x, i: x.clone().index_put_((i,), Tensor(5.0)) * 2,
}


@pytest.mark.parametrize("name", AGAIN)
def test_each_read_fails(name):
    x, i = Tensor(LINE).realize(), Tensor([5]).realize()
    result = AGAIN[name](x, i)
    for _ in range(3):
        fails(result.tolist, "index 5")
        fails(AGAIN[name](x, i).tolist, "index 5")
    assert x.tolist() == LINE.tolist()


def test_a_write_that_fails_never_happened():
    x = Tensor(LINE).realize()
    view, sums = x[1:3], x.sum()
    x[Tensor([1, 9])] = 7
    x += 1
    fails(x.tolist, r"index 9 .*\(x\[\.\.\.\] =")
    assert sums.item() == LINE.sum()
    assert (x.tolist(), view.tolist()) == (LINE.tolist(), LINE[1:3].tolist())
    x += 1
    assert view.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("kind", [nn.optim.SGD, nn.optim.Adam])
@pytest.mark.parametrize("flags", [{}, {"OPTS": "random:3"}])  # which plans the counts of Adam with the loss
def test_a_step_whose_loss_fails_never_happened(kind, flags):
    layer = nn.Linear(3, 2)
    optimizer = kind(layer.parameters(), lr=0.1)
    seen = [layer.weight.tolist()]
    with Tensor.train(), Context(**flags):
        for target in (1, 5, 1):
            optimizer.zero_grad()
            loss = layer(Tensor([[1.0, 2.0, 3.0]])).cross_entropy(Tensor([target]))
            loss.backward()
            if target == 5:
                fails(optimizer.step, "index 5")
                fails(loss.item, "index 5")
            else:
                optimizer.step()
            seen.append(layer.weight.tolist())
    assert seen[0] != seen[1] == seen[2] != seen[3]


def test_what_does_not_need_a_failed_value_is_computed():
    x = Tensor(LINE).realize()
    with Context(FUSE=0):
        bad, good = (x[Tensor([9])] + 1).contiguous() * 2, x * 2
        fails(lambda: bad.realize(good), "index 9")
    assert good.is_realized
    assert good.tolist() == [2 * value for value in LINE]
    fails(bad.tolist, "index 9")


def test_each_thread_finds_its_own():
    x = Tensor(LINE).realize()
    found = {}

    def work(number):
        index = Tensor([number]).realize()
        outcomes = []
        for _ in range(20):
            try:
                outcomes.append(x[index].item())
            except IndexError as error:
                outcomes.append(str(error)[:8])
        found[number] = set(outcomes)

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 3, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {2: {2.0}, 3: {3.0}, 5: {"index 5 "}, 6: {"index 6 "}}


def test_checked_like_the_interpreter():
    x = Tensor(LINE).realize()
    with Context(CHECK=1):
        assert x[Tensor([1, -1])].tolist() == [1.0, 4.0]
        assert Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1])).item() > 0.69
        fails(lambda: x[Tensor([9])].tolist(), "index 9")
        fails(lambda: Tensor([[0.0, 0.0]]).cross_entropy(Tensor([2])).item(), "index 2")


def test_loops_without_turns_ask_for_no_index():
    x = Tensor(LINE).realize()
    for size in (0, 2):
        n = Variable("n", 0, 4).bind(size)
        wrong, ones = Tensor.full((4,), 9)[:n], Tensor.ones(4)[:n]
        for result in (lambda: x[wrong].sum().item(), lambda: x.index_add(0, wrong, ones).tolist()):  # noqa: B023
            if size:
                fails(result, "index 9")
            else:
                assert result() in (0.0, LINE.tolist())


def test_a_symbolic_size_is_named():
    n = Variable("n", 1, 4).bind(2)
    x = Tensor(ROWS).realize()[:n]
    assert x[Tensor([1])].tolist() == [[3.0, 4.0, 5.0]]
    fails(lambda: x[Tensor([2])].tolist(), "index 2 is out of range for an axis of size n")


# ---- the kernel


def _checks(tensor, form):
    kernel = tensor.kernels()[-1]
    forms = dict(stages(kernel.ast, Device["CPU"].renderer, None))
    return kernel, forms[form]


@pytest.mark.choice
def test_a_checked_load_has_no_other_condition():
    x = Tensor(ROWS).realize()
    kernel, program = _checks(x[Tensor([1, 2]).realize()], "linearize")
    assert not any(u.op is Ops.INDEX and len(u.src) > 2 for u in program)
    assert kernel.arguments[-1].name == "bad3"
    assert [a.name for a in kernel.arguments[:-1]] == ["data0", "data1", "data2"]


@pytest.mark.choice
def test_what_is_in_range_by_its_bounds_is_not_checked():
    """Nor is a stored number asked again: neighbours along the row are one load."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    x, rows = Tensor(table).realize(), Tensor([0, 5, -3]).realize()
    picked = x[(rows * 3).maximum(0).minimum(2).contiguous()]
    _, program = _checks(picked, "linearize")
    assert not any(u.op is Ops.CHECK or (u.op is Ops.INDEX and len(u.src) > 2) for u in program)
    np.testing.assert_array_equal(picked.numpy(), table[[0, 2, 0]])


@pytest.mark.choice
def test_the_same_opts_as_without():
    labels = Tensor([1] * 512).realize()
    checked = labels.one_hot(64).kernels()[-1].applied_opts
    with Context(CHECK_INDEX=0):
        assert labels.one_hot(64).kernels()[-1].applied_opts == checked


@pytest.mark.choice
def test_a_row_is_checked_once():
    table = Tensor.ones(16, 64).contiguous().realize()
    _, program = _checks(table[Tensor([1, 2, 3]).realize()], "linearize")
    text = [u.op for u in program]
    inner = text.index(Ops.RANGE, text.index(Ops.RANGE) + 1)
    assert Ops.IF not in text[inner : text.index(Ops.ENDRANGE)]


@pytest.mark.choice
def test_nothing_more_runs():
    x, index = Tensor(LINE).realize(), Tensor([1, 2]).realize()
    x[index].realize()
    before = GlobalCounters.kernel_count
    x[index].tolist()
    assert GlobalCounters.kernel_count == before + 1


def test_lanes_of_two_gathers_at_one_index_are_taken_once():
    x, at = Tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]).realize(), Tensor([2, 0], dtype="int32")
    chosen = x[at]
    with Context(CHECK=1):  # which refuses a node that is in a program twice
        assert chosen.cat(chosen, dim=1).tolist() == [[9, 10, 11, 12] * 2, [1, 2, 3, 4] * 2]


def test_a_gather_in_two_loops_reports_in_each():
    x = Tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]).realize()
    chosen = x[Tensor([0, 2], dtype="int32")]
    with Context(CHECK=1):  # which refuses what is no more in scope
        assert (chosen - chosen.sum(0)).tolist() == [[-9, -10, -11, -12], [-1, -2, -3, -4]]


def test_what_two_checks_of_one_index_load_is_loaded_once():
    x = Tensor([[[1, 2, 3, 4]], [[5, 6, 7, 8]]]).realize()
    chosen = x[Tensor([0, 1], dtype="int32")]
    with Context(CHECK=1):
        assert chosen.cat(chosen, chosen, dim=1).tolist() == [[[1, 2, 3, 4]] * 3, [[5, 6, 7, 8]] * 3]

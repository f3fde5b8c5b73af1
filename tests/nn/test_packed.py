"""Packed sequences beside PyTorch's: what is packed, and what recurrent layers make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.utils import rnn
from tests.helpers import needs, require

RNG = np.random.default_rng(0)
FALLING, ANY = [4, 3, 3, 1], [2, 5, 1, 5]


def padded(lengths: list[int], batch_first: bool, *rest: int) -> Any:
    lead = (len(lengths), max(lengths)) if batch_first else (max(lengths), len(lengths))
    return RNG.standard_normal((*lead, *rest)).astype(np.float32)


def same(ours: Any, theirs: Any) -> None:
    for mine, its in zip(ours, theirs, strict=True):
        assert (mine is None) == (its is None)
        if mine is not None:
            assert mine.tolist() == its.tolist()


@needs("torch")
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [FALLING, ANY, [3]])
@pytest.mark.parametrize("rest", [(), (2,), (2, 3)])
def test_packed_and_padded_as_in_torch(lengths: list[int], batch_first: bool, rest: tuple[int, ...]) -> None:
    torch = require("torch")
    x, given = padded(lengths, batch_first, *rest), lengths is FALLING
    theirs = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(x), torch.tensor(lengths), batch_first, given
    )
    ours = rnn.pack_padded_sequence(Tensor(x), Tensor(lengths), batch_first, given)
    same(ours, theirs)
    for options in ({}, {"total_length": 7, "padding_value": -1.0}):
        expected = torch.nn.utils.rnn.pad_packed_sequence(theirs, batch_first, **options)
        same(rnn.pad_packed_sequence(ours, batch_first, **options), expected)
        bare = rnn.PackedSequence(*ours)  # which knows no lengths on the host
        same(rnn.pad_packed_sequence(bare, batch_first, **options), expected)
    several = rnn.unpack_sequence(ours)
    same(several, torch.nn.utils.rnn.unpack_sequence(theirs))
    same(
        rnn.pack_sequence(several, given),
        torch.nn.utils.rnn.pack_sequence([torch.tensor(t.numpy()) for t in several], given),
    )


LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "RNN": ("RNN", {}),
    "RNN relu": ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
    "GRU": ("GRU", {"num_layers": 2, "bidirectional": True}),
    "LSTM": ("LSTM", {"bidirectional": True, "batch_first": True}),
    "LSTM projected": ("LSTM", {"num_layers": 2, "proj_size": 2}),
}


@needs("torch")
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("lengths", [FALLING, ANY])
@pytest.mark.parametrize("begin", [False, True])
def test_recurrent_layers_as_in_torch(name: str, lengths: list[int], begin: bool) -> None:
    torch = require("torch")
    kind, options = LAYERS[name]
    theirs, ours = getattr(torch.nn, kind)(3, 4, **options), getattr(nn, kind)(3, 4, **options)
    ours.load_state_dict({k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x, given = padded(lengths, True, 3), lengths is FALLING
    inputs, mine = torch.tensor(x, requires_grad=True), Tensor(x, requires_grad=True)
    there, here = None, None
    if begin:
        number = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
        widths = [options.get("proj_size", 4), 4] if kind == "LSTM" else [4]
        states = [RNG.standard_normal((number, 4, w)).astype(np.float32) for w in widths]
        there, here = (tuple(map(make, states)) for make in (torch.tensor, Tensor))
        there, here = (there, here) if kind == "LSTM" else (there[0], here[0])
    expected, last = theirs(torch.nn.utils.rnn.pack_padded_sequence(inputs, lengths, True, given), there)
    found, end = ours(rnn.pack_padded_sequence(mine, lengths, True, given), here)
    same(found[1:], expected[1:])
    ends, lasts = (end, last) if kind == "LSTM" else ([end], [last])
    for a, b in zip([found.data, *ends], [expected.data, *lasts], strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)
    (expected.data.square().sum() + sum((n + 1) * t.square().sum() for n, t in enumerate(lasts))).backward()
    loss = found.data.square().sum() + sum((n + 1) * t.square().sum() for n, t in enumerate(ends))
    parameters = dict(ours.named_parameters())
    wanted = [("input", inputs.grad), *((k, p.grad) for k, p in theirs.named_parameters())]
    slopes = loss.gradient(mine, *(parameters[k] for k, _ in wanted[1:]))
    for slope, (key, grad) in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(slope.numpy(), grad.numpy(), rtol=1e-3, atol=1e-5, err_msg=key)


def test_in_a_jit() -> None:
    layer = nn.GRU(3, 4)

    def last(x: Tensor) -> Tensor:
        packed = rnn.pack_padded_sequence(x, ANY, enforce_sorted=False)
        return rnn.pad_packed_sequence(layer(packed)[0])[0].realize()

    step = TinyJit(last)
    for _ in range(3):
        x = Tensor(padded(ANY, False, 3)).realize()
        np.testing.assert_allclose(step(x).numpy(), last(x).numpy(), rtol=1e-5, atol=1e-6)


def test_padding_has_no_say() -> None:
    layer, x = nn.LSTM(3, 4, bidirectional=True), padded(ANY, True, 3)
    Tensor.realize(*layer.parameters())  # else drawing them is a part of the first plan alone
    spoiled = np.where(np.arange(5)[None, :, None] < np.array(ANY)[:, None, None], x, np.nan)
    clean, other = (
        layer(rnn.pack_padded_sequence(Tensor(a), ANY, True, False)) for a in (x, spoiled.astype(np.float32))
    )
    assert clean[0].data.tolist() == other[0].data.tolist()
    assert clean[1][0].tolist() == other[1][0].tolist()


def test_casts_keep_the_order() -> None:
    packed = rnn.pack_sequence([Tensor([1.0]), Tensor([2.0, 3.0])], enforce_sorted=False)
    assert packed.half().data.dtype.name == "half"
    assert packed.to("float64").double().data.dtype.name == "double"
    assert [t.tolist() for t in rnn.unpack_sequence(packed.int())] == [[1], [2, 3]]


X = Tensor.ones(3, 2, 4)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (
            lambda: rnn.pack_padded_sequence(X, [1, 3]),
            ValueError,
            r"lengths \[1, 3\] are not in falling order; pass",
        ),
        (
            lambda: rnn.pack_padded_sequence(X, [3, 0]),
            ValueError,
            "lengths are from 1 to 3, the time axis, not 0",
        ),
        (lambda: rnn.pack_padded_sequence(X, [4, 1]), ValueError, "from 1 to 3, the time axis, not 4"),
        (lambda: rnn.pack_padded_sequence(X, [3]), ValueError, "1 lengths for a batch of 2"),
        (
            lambda: rnn.pack_padded_sequence(Tensor.ones(3), [3]),
            ValueError,
            r"takes \(time, batch, \*\), not shape \(3,\)",
        ),
        (lambda: rnn.pad_packed_sequence(X), TypeError, "takes a PackedSequence, not Tensor"),
        (lambda: rnn.PackedSequence(X), TypeError, "pack_sequence makes one"),
        (
            lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(X, [3, 1]), total_length=2),
            ValueError,
            "total_length is 2, the longest sequence 3",
        ),
        (
            lambda: nn.GRU(3, 4)(rnn.pack_padded_sequence(X, [3, 1])),
            ValueError,
            r"GRU\(3, 4\) needs packed data of shape \(steps, 3\), not \(4, 4\)",
        ),
        (
            lambda: nn.GRU(4, 4)(rnn.pack_padded_sequence(X, [3, 1]), Tensor.ones(1, 3, 4)),
            ValueError,
            r"GRU needs a state of shape \(1, 2, 4\), not \(1, 3, 4\)",
        ),
    ],
)
def test_wrong_calls(wrong: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        wrong()

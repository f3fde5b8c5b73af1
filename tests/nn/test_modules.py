"""Layers have PyTorch's weights under PyTorch's names, and compute what PyTorch's do, both ways."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.nn.state import get_parameters, get_state_dict, load_state_dict
from tests.helpers import needs, require
from tests.tensor.support import data

LINE, IMAGE, VOLUME = data(2, 4, 9), data(2, 4, 6, 5), data(1, 2, 4, 5, 3)
SEQUENCE = data(5, 2, 3, seed=4)
QUERY, MEMORY = data(4, 2, 8, seed=1), data(6, 2, 8, seed=2)


def case(name: str, *args: Any, given: Any, call: dict[str, Any] | None = None, **options: Any) -> Any:
    said = ", ".join([*map(str, args), *(f"{k}={v}" for k, v in options.items()), *(call or {})])
    return pytest.param(name, args, options, given, call or {}, id=f"{name}({said})")


CASES = [
    case("Bilinear", 3, 2, 4, given=[data(5, 3), data(5, 2)]),
    case("Embedding", 5, 3, padding_idx=2, given=[np.array([[1, 2], [4, 4]])]),
    case("EmbeddingBag", 5, 3, mode="sum", given=[np.array([[1, 2], [4, 4]])]),
    case("Conv1d", 4, 6, 3, padding=2, padding_mode="circular", given=[LINE]),
    case("Conv2d", 4, 6, 3, padding=(1, 2), padding_mode="reflect", groups=2, given=[IMAGE]),
    case("Conv2d", 4, 2, (2, 3), padding="same", padding_mode="replicate", given=[IMAGE]),
    case("Conv3d", 2, 3, (2, 3, 1), stride=(1, 2, 1), given=[VOLUME]),
    case("ConvTranspose1d", 4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, given=[LINE]),
    case("ConvTranspose2d", 4, 3, (3, 2), stride=(2, 1), dilation=(1, 2), given=[IMAGE]),
    case("ConvTranspose3d", 2, 2, 2, stride=2, bias=False, given=[VOLUME]),
    case("GroupNorm", 2, 4, given=[IMAGE]),
    case("InstanceNorm2d", 4, affine=True, track_running_stats=True, given=[IMAGE]),
    case("InstanceNorm1d", 4, given=[LINE]),
    case("RMSNorm", (6, 5), given=[IMAGE]),
    case("RMSNorm", 9, eps=0.1, elementwise_affine=False, given=[LINE]),
    case("LocalResponseNorm", 3, alpha=0.5, given=[IMAGE]),
    case("PReLU", 4, given=[LINE]),
    case("Softplus", 2.0, 5.0, given=[LINE * 4]),
    case("MaxPool2d", 3, 2, 1, given=[IMAGE]),
    case("AvgPool2d", 3, 2, 1, True, False, given=[IMAGE]),
    case("AdaptiveAvgPool2d", (2, None), given=[IMAGE]),
    case("Upsample", None, 2, "bilinear", given=[IMAGE]),
    case("RNNCell", 3, 4, nonlinearity="relu", given=[data(2, 3)]),
    case("GRUCell", 3, 4, given=[data(2, 3), data(2, 4)]),
    case("LSTMCell", 3, 4, given=[data(2, 3), (data(2, 4), data(2, 4, seed=5))]),
    case("RNN", 3, 4, 2, given=[SEQUENCE]),
    case("LSTM", 3, 4, 2, bidirectional=True, given=[SEQUENCE[:2]]),
    case("LSTM", 3, 4, proj_size=2, batch_first=True, bias=False, given=[SEQUENCE]),
    case("GRU", 3, 4, bidirectional=True, given=[SEQUENCE[:3], data(2, 2, 4)]),
    case("GRU", 3, 4, given=[SEQUENCE[:, 0]]),
    case("MultiheadAttention", 8, 2, given=[QUERY, MEMORY, MEMORY]),
    case(
        "MultiheadAttention", 8, 2, batch_first=True, kdim=4, vdim=6,
        given=[QUERY, QUERY[..., :4], QUERY[..., :6]],
    ),
    case(
        "MultiheadAttention", 8, 4, add_bias_kv=True, add_zero_attn=True, given=[QUERY, MEMORY, MEMORY],
        call={
            "key_padding_mask": np.array([[False] * 6, [False] * 4 + [True] * 2]),
            "attn_mask": np.triu(np.ones((4, 6), bool), 2), "average_attn_weights": False,
        },
    ),
    case("TransformerEncoderLayer", 8, 2, 6, 0.0, given=[QUERY]),
    case(
        "TransformerEncoderLayer", 8, 2, 6, 0.0, "gelu", norm_first=True, batch_first=True, given=[QUERY],
        call={"src_key_padding_mask": np.array([[False, True]] * 4)},
    ),
    case("TransformerDecoderLayer", 8, 2, 6, 0.0, given=[QUERY, MEMORY]),
    case("TransformerDecoderLayer", 8, 4, 6, 0.0, norm_first=True, bias=False, given=[QUERY, MEMORY]),
    case(
        "Transformer", 8, 2, 1, 2, 6, 0.0, given=[MEMORY, QUERY],
        call={"tgt_mask": np.triu(np.ones((4, 4), bool), 1)},
    ),
    case("Embedding", 5, 3, None, 1.0, given=[np.array([[0, 3], [3, 1]])]),
    case("Embedding", 5, 3, 2, 0.5, 1.0, given=[np.array([2, 2, 4])]),
]  # fmt: skip


def flat(result: Any) -> list[Any]:
    """The tensors of a result, those in tuples too."""
    if isinstance(result, tuple):
        return [t for part in result for t in flat(part)]
    return [] if result is None else [result]


def made(make: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(made(make, v) for v in value)
    return make(value) if isinstance(value, np.ndarray) else value


@needs("torch")
@pytest.mark.parametrize(("name", "args", "options", "given", "call"), CASES)
def test_a_layer_is_pytorchs(name: str, args: Any, options: Any, given: Any, call: Any) -> None:
    torch = require("torch")
    theirs, ours = getattr(torch.nn, name)(*args, **options), getattr(nn, name)(*args, **options)
    state = get_state_dict(ours)
    assert {k: v.shape for k, v in state.items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    for number, value in enumerate(theirs.state_dict().values()):
        if value.is_floating_point():  # no symmetries, nothing that begins as zero
            value.copy_(torch.tensor(data(*value.shape, seed=number, low=0.1, high=0.9)))
    load_state_dict(ours, {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()}, verbose=False)
    inputs = made(torch.tensor, tuple(given))
    for tensor in flat(inputs):
        tensor.requires_grad_(tensor.is_floating_point())
    wanted = flat(theirs(*inputs, **{k: made(torch.tensor, v) for k, v in call.items()}))
    with Tensor.train():
        mine = made(Tensor, tuple(given))
        for tensor in flat(mine):
            if "int" not in str(tensor.dtype) and "long" not in str(tensor.dtype):
                tensor.requires_grad_()
        found = flat(ours(*mine, **{k: made(Tensor, v) for k, v in call.items()}))
    assert len(found) == len(wanted)
    sum((t * (i + 1)).square().sum() for i, t in enumerate(wanted)).backward()
    loss: Any = sum((t * (i + 1)).square().sum() for i, t in enumerate(found))
    pairs = {k: v.grad for k, v in theirs.named_parameters() if v.grad is not None}
    inputs_with = [(m, t) for m, t in zip(flat(mine), flat(inputs), strict=True) if t.requires_grad]
    targets = [state[k] for k in pairs] + [m for m, _ in inputs_with]
    grads = loss.gradient(*targets)
    Tensor.realize(*found, *grads)
    for t, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(t.numpy(), w.detach().numpy(), rtol=1e-4, atol=1e-5)
    expected = list(pairs.items()) + [("input", t.grad) for _, t in inputs_with]
    for grad, (key, w) in zip(grads, expected, strict=True):
        near = 1e-5 * max(1.0, float(w.abs().max()))  # sums that cancel
        np.testing.assert_allclose(grad.numpy(), w.numpy(), rtol=1e-3, atol=near, err_msg=key)
    for key, buffered in theirs.named_buffers():
        np.testing.assert_allclose(state[key].numpy(), buffered.numpy(), rtol=1e-5, err_msg=key)


LOSSES = [
    ("MSELoss", {"reduction": "sum"}, 2), ("L1Loss", {}, 2), ("SmoothL1Loss", {"beta": 0.5}, 2),
    ("HuberLoss", {"delta": 0.5}, 2), ("KLDivLoss", {"log_target": True}, 2), ("PoissonNLLLoss", {}, 2),
    ("SoftMarginLoss", {}, 2), ("HingeEmbeddingLoss", {"margin": 0.5}, 2), ("MarginRankingLoss", {}, 3),
    ("TripletMarginLoss", {"p": 1.0}, 3), ("MultiLabelSoftMarginLoss", {}, 2), ("CosineSimilarity", {}, 2),
    ("PairwiseDistance", {}, 2), ("BCEWithLogitsLoss", {}, 2),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, 2),
]  # fmt: skip


@needs("torch")
@pytest.mark.parametrize(("name", "options", "number"), LOSSES, ids=[row[0] for row in LOSSES])
def test_a_loss_is_pytorchs(name: str, options: dict[str, Any], number: int) -> None:
    torch = require("torch")
    arrays = [data(3, 4, seed=i) for i in range(number)]
    found = getattr(nn, name)(**options)(*map(Tensor, arrays))
    wanted = getattr(torch.nn, name)(**options)(*map(torch.tensor, arrays))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


@needs("torch")
@pytest.mark.parametrize(("reduction", "joined"), [("none", False), ("mean", True)])
def test_ctc_is_pytorchs(reduction: str, joined: bool) -> None:
    torch = require("torch")
    logits, sizes, ends = data(5, 4, 5), [3, 2, 0, 4], [5, 3, 4, 4]
    texts = np.array([[1, 1, 2, 0], [3, 4, 0, 0], [0, 0, 0, 0], [1, 2, 3, 3]])
    targets = np.concatenate([t[:n] for t, n in zip(texts, sizes, strict=True)]) if joined else texts
    theirs = torch.tensor(logits, requires_grad=True)
    wanted = torch.nn.functional.ctc_loss(
        theirs.log_softmax(-1), torch.tensor(targets), torch.tensor(ends), torch.tensor(sizes),
        reduction=reduction, zero_infinity=True,
    )  # fmt: skip
    wanted.sum().backward()
    x = Tensor(logits, requires_grad=True)
    found = nn.functional.ctc_loss(
        x.log_softmax(-1), Tensor(targets), ends, sizes, reduction=reduction, zero_infinity=True
    )
    (grad,) = found.sum().gradient(x)
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-4)
    np.testing.assert_allclose(grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=1e-5)


def test_a_text_that_does_not_fit_costs_infinity() -> None:
    logs = Tensor(data(2, 1, 3)).log_softmax(-1)
    assert logs.ctc_loss(Tensor([[1, 1]]), [2], [2]).item() == np.inf


def test_maxima_go_back_where_they_were() -> None:
    x = Tensor(data(1, 2, 4, 4))
    best, places = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(best, places).numpy()
    assert np.count_nonzero(back) == 8
    np.testing.assert_array_equal(back[back != 0], x.numpy()[back != 0])


@needs("torch")
def test_places_of_maxima_are_pytorchs() -> None:
    torch = require("torch")
    x = np.round(data(2, 3, 7, 6) * 2)  # with equals
    for ours, theirs in (
        (nn.MaxPool2d(3, 2, 1, return_indices=True), torch.nn.MaxPool2d(3, 2, 1, return_indices=True)),
        (nn.AdaptiveMaxPool2d((3, 4), True), torch.nn.AdaptiveMaxPool2d((3, 4), True)),
    ):
        _, found = ours(Tensor(x))
        np.testing.assert_array_equal(found.numpy(), theirs(torch.tensor(x))[1].numpy())


def test_rotary_positions_turn_pairs_and_keep_products_of_equal_distances() -> None:
    rope = nn.RotaryEmbedding(6)
    q, k = Tensor(data(1, 6)), Tensor(data(1, 6, seed=1))
    at = [(rope(q, a) * rope(k, b)).sum().item() for a, b in ((3, 1), (7, 5), (2, 0))]
    np.testing.assert_allclose(at, at[0], rtol=1e-4)
    both = nn.RotaryEmbedding(6, interleaved=True)
    mixed = rope(Tensor(data(4, 6)).reshape(4, 3, 2).transpose(1, 2).reshape(4, 6))
    plain = both(Tensor(data(4, 6)))
    np.testing.assert_allclose(
        plain.numpy(), mixed.reshape(4, 2, 3).transpose(1, 2).reshape(4, 6).numpy(), rtol=1e-5
    )


def test_copies_of_a_layer_are_trained_apart() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, nn.LayerNorm(4))
    assert encoder(Tensor(data(3, 1, 4))).shape == (3, 1, 4)
    names = get_state_dict(encoder)
    assert "layers.1.self_attn.in_proj_weight" in names
    assert len(get_parameters(encoder)) == len(names)


def test_an_embedding_limits_the_lines_that_are_asked_for_in_place() -> None:
    layer = nn.Embedding(3, 2, max_norm=1.0)
    layer.weight.assign(Tensor([[3.0, 4.0], [0.0, 0.5], [6.0, 8.0]]))
    np.testing.assert_allclose(layer(Tensor([0, 1])).numpy(), [[0.6, 0.8], [0.0, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(layer.weight.numpy(), [[0.6, 0.8], [0.0, 0.5], [6.0, 8.0]], rtol=1e-6)


def test_dropout_keeps_what_the_mode_says() -> None:
    x = Tensor.ones(64, 8, 4)
    assert nn.Dropout1d(0.5)(x).sum().item() == x.numel()
    with Tensor.train():
        kept = nn.Dropout1d(0.5)(x).numpy()
        moments = nn.AlphaDropout(0.3)(Tensor.randn(4096)).numpy()
    assert set(np.unique(kept)) == {0.0, 2.0}
    assert (kept == kept[:, :, :1]).all()
    assert abs(moments.mean()) < 0.1
    assert abs(moments.std() - 1) < 0.1


MISTAKES = [
    (lambda: nn.Conv2d(4, 6, 3, padding_mode="mirror"), "padding_mode must be one of zeros, reflect"),
    (lambda: nn.ConvTranspose2d(4, 6, 3, groups=4), "4 groups do not divide out_channels=6"),
    (lambda: nn.ConvTranspose2d(4, 6, 3)(Tensor.ones(1, 3, 4, 4)), r"needs shape \(batch, 4, h"),
    (lambda: nn.ConvTranspose1d(1, 1, 3, 2)(Tensor.ones(1, 1, 3), (9,)), "axis 0 has a size from 7 to 8"),
    (lambda: nn.GroupNorm(3, 4), "3 groups do not divide num_channels=4"),
    (lambda: nn.GroupNorm(2, 4)(Tensor.ones(1, 3)), r"GroupNorm\(2, 4\) needs shape \(batch, 4, ...\)"),
    (lambda: nn.InstanceNorm2d(4)(Tensor.ones(1, 3, 2)), r"InstanceNorm\(4\) needs shape"),
    (lambda: nn.RMSNorm(3)(Tensor.ones(2)), r"rms_norm over \(3,\) needs shape \(..., 3\), not \(2,\)"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx must be one of 3 symbols, not 3"),
    (lambda: nn.Dropout2d(1.5), r"p must be a probability, in \[0, 1\], not 1.5"),
    (lambda: nn.RNN(3, 4, nonlinearity="gelu"), "nonlinearity must be tanh or relu, not 'gelu'"),
    (lambda: nn.LSTM(3, 4)(Tensor.ones(5, 2, 4)), r"needs shape \(length, batch, 3\), not \(5, 2, 4\)"),
    (lambda: nn.GRU(3, 4)(Tensor.ones(5, 2, 3), Tensor.ones(1, 1, 4)), r"needs a state of shape \(1, 2, 4\)"),
    (lambda: nn.GRU(3, 4, proj_size=2), "proj_size is for LSTM"),
    (lambda: nn.LSTMCell(3, 4)(Tensor.ones(2, 4)), r"needs shape \(batch, 3\), not \(2, 4\)"),
    (lambda: nn.MultiheadAttention(8, 3), "3 heads do not divide embed_dim=8"),
    (lambda: nn.MultiheadAttention(8, 2)(*[Tensor.ones(2, 7)] * 3), r"needs queries of shape"),
    (lambda: nn.MultiheadAttention(8, 2, dropout=2.0), r"dropout must be a probability, in \[0, 1\], not 2"),
    (
        lambda: nn.MultiheadAttention(8, 2)(Tensor(QUERY), Tensor(MEMORY[..., :6]), Tensor(MEMORY)),
        r"needs keys of shape \(..., ..., 8\), not \(6, 2, 6\)",
    ),
    (
        lambda: nn.MultiheadAttention(8, 2)(Tensor(QUERY), Tensor(MEMORY), Tensor(QUERY)),
        r"a value for each key, in one batch with the queries, not shapes \(4, 2, 8\), \(6, 2, 8\) and",
    ),
    (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor(QUERY)] * 3, attn_mask=Tensor.ones(5, 4)),
        r"attn_mask has shape \(4, 4\) or \(4, 4, 4\), not \(5, 4\)",
    ),
    (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor(QUERY)] * 3, key_padding_mask=Tensor.ones(4, 2)),
        r"key_padding_mask has shape \(2, 4\), not \(4, 2\)",
    ),
    (lambda: nn.GRUCell(3, 4)(Tensor.ones(2, 3), Tensor.ones(3, 4)), r"state of shape \(2, 4\), not"),
    (lambda: nn.Conv2d(1, 1, 3, padding=-1), "padding must be at least 0, not -1"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="cos"), "activation must be relu, gelu or"),
    (lambda: nn.Transformer(4, 2, 1, 1, 8)(*[Tensor.ones(2, 5)] * 2), r"needs src of shape \(..., ..., 4\)"),
    (
        lambda: nn.Transformer(4, 2, 1, 1, 8)(Tensor.ones(2, 3, 4), Tensor.ones(2, 1, 4)),
        r"of one batch size, not shapes \(2, 3, 4\) and \(2, 1, 4\)",
    ),
    (lambda: nn.RotaryEmbedding(5), "dim must be even, not 5"),
    (lambda: nn.MaxPool2d(2, padding=2)(Tensor.ones(1, 4, 4)), "the padding of a pool is at most half"),
    (lambda: nn.ZeroPad2d((1, 2)), r"padding must be one number or 4 of them, not \(1, 2\)"),
    (lambda: nn.Conv2d(1, 1, 3, padding=(1, 1, 1)), r"must be one number or 2 of them, not \(1, 1, 1\)"),
    (lambda: nn.Fold(4, 3)(Tensor.ones(1, 9, 5)), r"fold to \(4, 4\) has 4 windows, not the 5"),
    (lambda: nn.AdaptiveAvgPool2d(2)(Tensor.ones(4, 4)), r"takes \(batch, channels\) and 2 axes"),
    (lambda: nn.PixelShuffle(2)(Tensor.ones(3, 2, 2)), "with channels that 4 divides"),
    (lambda: nn.Upsample(4, mode="cubic")(Tensor.ones(1, 1, 2)), "interpolate's mode must be one of nearest"),
    (lambda: nn.GLU()(Tensor.ones(3)), r"axis 0 of shape \(3,\) has size 3"),
    (lambda: nn.PReLU(3)(Tensor.ones(2, 4)), "takes 4 weights, one for each channel, not 3"),
    (lambda: nn.HuberLoss(delta=0)(Tensor.ones(2), Tensor.ones(2)), "a positive delta, not 0"),
    (lambda: nn.MSELoss("avg"), "reduction must be one of mean, sum, none, not 'avg'"),
    (lambda: nn.CTCLoss(reduction="batchmean"), "reduction must be one of mean, sum, none, not 'batchmean'"),
    (lambda: nn.CTCLoss(9)(Tensor.ones(2, 1, 3), Tensor([[1]]), [2], [1]), "blank must be one of 3 classes"),
    (lambda: nn.MultiMarginLoss(3)(Tensor.ones(2, 3), Tensor([1, 0])), "takes p = 1 or 2, not 3"),
    (lambda: nn.MultiMarginLoss()(Tensor.ones(2, 3), Tensor([1])), r"\(2,\) is needed"),
    (lambda: Tensor.ones(1, 1, 2, 2).grid_sample(Tensor.ones(2, 1, 1, 2)), "2 grids for a batch of 1"),
    (lambda: Tensor.ones(1, 1, 4).interpolate(), "takes size or scale_factor, one of the two"),
    (lambda: Tensor([0]).embedding_bag(Tensor.ones(2, 2)), "or a 1-d tensor with offsets"),
]  # fmt: skip


@pytest.mark.parametrize(
    "number", range(len(MISTAKES)), ids=lambda i: re.sub(r"\W+", " ", MISTAKES[i][1])[:40]
)
def test_mistakes_are_named(number: int) -> None:
    make, message = MISTAKES[number]
    with pytest.raises(ValueError, match=message):
        make()


def test_layers_in_a_row_are_a_list_and_one_layer() -> None:
    row = nn.Sequential(nn.Linear(3, 2), Tensor.relu)
    row.append(nn.Linear(2, 1))
    assert list(get_state_dict(row)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert row(Tensor.ones(4, 3)).shape == (4, 1)
    with pytest.raises(TypeError, match="one after another; number 0 is 3"):
        nn.Sequential(3)  # type: ignore[arg-type]


def test_a_layer_that_is_not_there_says_what_is() -> None:
    with pytest.raises(AttributeError, match="nn has no DataParallel: share the inputs among devices"):
        nn.DataParallel  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="nn has no 'Conv2D'; did you mean Conv2d"):
        nn.Conv2D  # type: ignore[attr-defined]


def test_functions_take_their_arguments_by_pytorchs_names() -> None:
    functional = nn.functional
    assert functional.mse_loss(input=Tensor([3.0]), target=Tensor([1.0])).item() == 4.0  # type: ignore[call-arg]
    assert functional.pad(Tensor([[1.0]]), pad=(0, 1)).tolist() == [[1.0, 0.0]]  # type: ignore[call-arg]
    x = Tensor([-1.0, 2.0])
    assert functional.leaky_relu(x, 0.5, inplace=True).tolist() == [-0.5, 2.0]
    assert x.tolist() == [-1.0, 2.0]

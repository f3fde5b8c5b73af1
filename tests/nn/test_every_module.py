"""Every layer that PyTorch has too, with arguments that are not the defaults, in training and in use."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from lazygrad import Generator, Tensor, dtypes, nn
from lazygrad.nn.state import get_state_dict, load_state_dict
from tests.helpers import needs, require
from tests.nn import test_modules
from tests.tensor.support import data

LINE, IMAGE, VOLUME, FLAT = data(2, 4, 9), data(2, 4, 6, 5), data(1, 2, 4, 5, 3), data(3, 4)
OTHER, PROBABILITIES = data(3, 4, seed=9), np.random.RandomState(0).dirichlet(np.ones(4), 3)
PROBABILITIES = PROBABILITIES.astype(np.float32)
SIGNS, CLASSES = np.sign(OTHER), np.array([3, 0, 1])
WEIGHT = np.array([0.2, 0.5, 1.0, 2.0], np.float32)
PIXELS = np.random.RandomState(1).randint(0, 4, (2, 3, 2))
SETS = np.array([[1, 2, -1, 0], [3, -1, 0, 0], [0, 1, 2, 3]])
QUERY, MEMORY, SHORT = data(4, 2, 8, seed=1), data(6, 2, 8, seed=2), data(3, 2, 4)

CASES: list[Any] = []


def case(name: str, *args: Any, given: Any = (LINE,), **options: Any) -> None:
    CASES.append((name, args, options, given))


for _name in ("ReLU6", "Sigmoid", "Hardsigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Hardswish", "SiLU"):
    case(_name)
for _name in ("Mish", "SELU", "Softsign", "Softplus"):
    case(_name)
for _name in ("Dropout", "Dropout1d", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"):
    case(_name, 0.0)
case("ReLU", True)
case("Dropout3d", 0.0, True, given=[VOLUME])
case("Hardtanh", -0.5, 0.7)
case("GELU", "tanh")
case("ELU", 0.5, True)
case("CELU", 0.5)
case("LeakyReLU", 0.3, True)
case("RReLU", 0.25, 0.25)
case("GLU", 1)
case("Hardshrink", 0.7)
case("Softshrink", 0.7)
case("Threshold", 0.3, -2.0)
case("Softmax", 1)
case("Softmin", 1)
case("LogSoftmax", 1)
case("PReLU", 1)
case("Flatten", 1, 2, given=[IMAGE])
case("Unflatten", 1, (2, 2), given=[IMAGE])
case("Identity", 3)
case("MaxPool1d", 3, 2, 1)
case("MaxPool1d", 2, None, 0, 2, False, True)
case("MaxPool2d", (3, 2), 2, ceil_mode=True, given=[IMAGE])
case("MaxPool3d", 2, 1, given=[VOLUME])
case("AvgPool1d", 4, 3, 2)
case("AvgPool2d", 2, divisor_override=3, given=[IMAGE])
case("AvgPool3d", (2, 3, 1), 1, (1, 1, 0), given=[VOLUME])
case("LPPool1d", 3.0, 2, given=[abs(LINE)])
case("LPPool2d", 2.0, 2, 1, given=[IMAGE])
case("LPPool3d", 3.0, 2, given=[abs(VOLUME)])
case("AdaptiveAvgPool1d", 4)
case("AdaptiveAvgPool2d", (3, None), given=[IMAGE])
case("AdaptiveAvgPool3d", (3, 2, 2), given=[VOLUME])
case("AdaptiveMaxPool1d", 4)
case("AdaptiveMaxPool2d", (4, 3), given=[IMAGE])
case("AdaptiveMaxPool3d", 2, given=[VOLUME])
for _n, _given in ((1, LINE), (2, IMAGE), (3, VOLUME)):
    _ends = tuple(range(2 * _n))[::-1] if _n < 3 else (1, 2, 0, 1, 2, 0)
    for _kind in ("Zero", "Reflection", "Replication", "Circular"):
        case(f"{_kind}Pad{_n}d", _ends, given=[_given])
        case(f"{_kind}Pad{_n}d", 1, given=[_given])
    case(f"ConstantPad{_n}d", _ends, 0.7, given=[_given])
SAMPLES = np.random.RandomState(2).rand(2, 4, 2).astype(np.float32)
case("FractionalMaxPool2d", 2, 3, _random_samples=SAMPLES, given=[IMAGE])
case("FractionalMaxPool2d", (3, 2), None, (0.5, 0.7), True, _random_samples=SAMPLES, given=[IMAGE])
case("FractionalMaxPool3d", 2, (2, 3, 1), _random_samples=data(1, 2, 3) % 1, given=[VOLUME])
case("MaxUnpool1d", 2, given=[data(1, 1, 2), np.array([[[1, 2]]])])
case("MaxUnpool2d", 2, given=[data(1, 1, 1, 2), np.array([[[[1, 2]]]])])
case("MaxUnpool3d", 2, given=[data(1, 1, 1, 1, 2), np.array([[[[[1, 2]]]]])])
case("Unfold", (3, 2), 2, 1, 2, given=[IMAGE])
case("Fold", (6, 5), (3, 2), 2, (1, 0), given=[data(2, 12, 12)])
case("PixelShuffle", 2, given=[IMAGE])
case("PixelUnshuffle", 2, given=[data(2, 3, 4, 6)])
case("ChannelShuffle", 2, given=[IMAGE])
case("Upsample", None, 1.7, "bilinear", True, given=[IMAGE])
case("Upsample", (9, 4), given=[IMAGE])
case("UpsamplingNearest2d", scale_factor=2, given=[IMAGE])
case("UpsamplingNearest2d", (9, 4), given=[IMAGE])
case("UpsamplingBilinear2d", None, 1.7, given=[IMAGE])
case("Softmax2d", given=[IMAGE])
case("Linear", 9, 3, bias=False)
case("Bilinear", 4, 4, 3, bias=False, given=[FLAT, OTHER])
case("BatchNorm1d", 4, 1e-3, 0.3)
case("BatchNorm1d", 4, track_running_stats=False, given=[FLAT])
case("BatchNorm2d", 4, momentum=None, given=[IMAGE])
case("BatchNorm3d", 2, affine=False, given=[VOLUME])
case("InstanceNorm1d", 4, track_running_stats=True, momentum=0.4)
case("InstanceNorm2d", 4, given=[IMAGE])
case("InstanceNorm3d", 2, affine=True, given=[VOLUME])
case("LayerNorm", 9, elementwise_affine=False)
case("LayerNorm", (4, 9), bias=False)
case("GroupNorm", 4, 4, affine=False)
case("RMSNorm", 9, 1e-2)
case("LocalResponseNorm", 2, 0.3, 0.5, 2.0, given=[IMAGE])
case("Conv1d", 4, 6, 3, 2, 1, 2, 2)
case("Conv1d", 4, 2, 4, padding="same", padding_mode="circular")
case("Conv2d", 4, 6, 3, padding="valid", given=[IMAGE])
case("Conv2d", 4, 2, 3, padding=(2, 1), padding_mode="replicate", given=[IMAGE[0]])
case("Conv3d", 2, 4, 2, padding=1, groups=2, bias=False, given=[VOLUME])
case("ConvTranspose1d", 4, 2, 3, 2, 1, 1)
case("ConvTranspose2d", 4, 2, 3, 2, 1, 1, given=[IMAGE[0]])
case("ConvTranspose3d", 2, 2, 2, 2, 0, 1, 2, given=[VOLUME])
for _name in ("RNNCell", "GRUCell", "LSTMCell"):
    case(_name, 4, 3, bias=False, given=[FLAT])
case("RNN", 4, 3, 1, "relu", False, True, given=[SHORT])
case("GRU", 4, 3, 2, bias=False, batch_first=True, given=[SHORT])
case("LSTM", 4, 3, 2, bidirectional=True, proj_size=2, given=[SHORT])
case("Embedding", 5, 3, -1, given=[np.array([1, 4, 0])])
case("EmbeddingBag", 5, 3, mode="max", given=[np.array([[1, 2], [4, 4]])])
case(
    "EmbeddingBag", 5, 3, mode="mean", padding_idx=1, include_last_offset=True,
    given=[np.array([1, 2, 4, 4]), np.array([0, 2, 4])],
)  # fmt: skip
case("MultiheadAttention", 8, 2, bias=False, given=[QUERY, MEMORY, MEMORY])
case("MultiheadAttention", 8, 2, given=[QUERY[:, 0], MEMORY[:, 0], MEMORY[:, 0]])
case("TransformerEncoderLayer", 8, 2, 6, 0.0, "gelu", 1e-3, True, True, False, given=[QUERY])
case("TransformerDecoderLayer", 8, 2, 6, 0.0, "gelu", 1e-3, True, given=[QUERY, QUERY])
case("Transformer", 8, 2, 1, 1, 6, 0.0, "gelu", norm_first=True, given=[MEMORY, QUERY])
case("CosineSimilarity", 2, given=[IMAGE, data(2, 4, 6, 5, seed=2)])
case("PairwiseDistance", 1.0, 1e-3, True, given=[FLAT, OTHER])
for _r in ("mean", "sum", "none"):
    case("MSELoss", reduction=_r, given=[FLAT, OTHER])
    case("L1Loss", reduction=_r, given=[FLAT, OTHER])
    case("SmoothL1Loss", reduction=_r, beta=0.3, given=[FLAT, OTHER])
    case("HuberLoss", reduction=_r, delta=0.4, given=[FLAT, OTHER])
    for _target in (CLASSES, PROBABILITIES):
        case("CrossEntropyLoss", weight=WEIGHT, reduction=_r, label_smoothing=0.2, given=[FLAT, _target])
    case("CrossEntropyLoss", ignore_index=1, reduction=_r, given=[data(2, 4, 3, 2), PIXELS])
    case("NLLLoss", weight=WEIGHT, ignore_index=0, reduction=_r, given=[FLAT, CLASSES])
    case("BCELoss", weight=WEIGHT, reduction=_r, given=[PROBABILITIES, 1 - PROBABILITIES])
    case("BCEWithLogitsLoss", weight=WEIGHT, pos_weight=WEIGHT * 2, reduction=_r, given=[FLAT, PROBABILITIES])
    case("KLDivLoss", reduction=_r, given=[FLAT, PROBABILITIES])
    case("PoissonNLLLoss", False, True, eps=1e-3, reduction=_r, given=[abs(FLAT), abs(OTHER) * 3])
    case("PoissonNLLLoss", full=True, reduction=_r, given=[FLAT, abs(OTHER) * 3])
    case("GaussianNLLLoss", full=True, eps=1e-2, reduction=_r, given=[FLAT, OTHER, PROBABILITIES])
    case("SoftMarginLoss", reduction=_r, given=[FLAT, SIGNS])
    case("HingeEmbeddingLoss", 0.4, reduction=_r, given=[FLAT, SIGNS])
    case("MarginRankingLoss", 0.3, reduction=_r, given=[FLAT, OTHER, SIGNS])
    case("CosineEmbeddingLoss", 0.2, reduction=_r, given=[FLAT, OTHER, np.array([1, -1, 1])])
    case("TripletMarginLoss", 2.0, 1.0, swap=True, reduction=_r, given=[FLAT, OTHER, PROBABILITIES])
    case("TripletMarginWithDistanceLoss", margin=2.0, reduction=_r, given=[FLAT, OTHER, PROBABILITIES])
    case("MultiMarginLoss", 2, 0.7, weight=WEIGHT, reduction=_r, given=[FLAT, CLASSES])
    case("MultiLabelMarginLoss", reduction=_r, given=[FLAT, SETS])
    case(
        "MultiLabelSoftMarginLoss", weight=WEIGHT, reduction=_r, given=[FLAT, (OTHER > 0).astype(np.float32)]
    )
case("KLDivLoss", reduction="batchmean", log_target=True, given=[FLAT, OTHER])

#: Tested where they stand, or nothing to compare.
ELSEWHERE = {
    "AdaptiveLogSoftmaxWithLoss",
    "CTCLoss",
    "Module",
    "Sequential",
    "TransformerEncoder",
    "TransformerDecoder",
}
ELSEWHERE |= {name for name in nn.__all__ if name.startswith("Lazy")}  # test_lazy
ELSEWHERE |= {"ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList"}  # test_containers


@needs("torch")
def test_no_layer_is_left_out() -> None:
    torch = require("torch")
    known = {row[0] for row in CASES} | {row.values[0] for row in test_modules.CASES} | ELSEWHERE
    ours = [name for name in nn.__all__ if inspect.isclass(getattr(nn, name)) and hasattr(torch.nn, name)]
    assert [name for name in ours if name not in known] == []


def made(make: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {key: make(v) if isinstance(v, np.ndarray) else v for key, v in options.items()}


def flat(result: Any) -> list[Any]:
    return [t for part in result for t in flat(part)] if isinstance(result, tuple) else [result]


@pytest.mark.slow
@needs("torch")
@pytest.mark.parametrize("training", [True, False], ids=["training", "using"])
@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row[0]}{row[1]}")
def test_a_layer_is_pytorchs_both_ways(row: Any, training: bool) -> None:
    torch = require("torch")
    name, args, options, given = row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn, name)(*args, **made(torch.tensor, options)).train(training)
    ours = getattr(nn, name)(*args, **made(Tensor, options))
    state = get_state_dict(ours)
    begin = {
        k: data(*v.shape, seed=i, low=0.1, high=0.9) for i, (k, v) in enumerate(theirs.state_dict().items())
    }
    with torch.no_grad():
        for key, value in theirs.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.tensor(begin[key]))
    load_state_dict(ours, {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()}, verbose=False)
    inputs, mine = [torch.tensor(x) for x in given], [Tensor(x) for x in given]
    if inputs[0].is_floating_point():
        inputs[0].requires_grad_()
        mine[0].requires_grad_()
    wanted = flat(theirs(*(t.clone() for t in inputs)))
    with Tensor.train(training):
        found = flat(ours(*mine))
    sloped = [(m, t) for m, t in zip(found, wanted, strict=True) if t.requires_grad]
    grads: list[Tensor] = []
    expected = []
    if sloped:
        torch.stack([(t * t).sum() * (i + 1) for i, (_, t) in enumerate(sloped)]).sum().backward()
        loss: Any = sum((m * m).sum() * (i + 1) for i, (m, _) in enumerate(sloped))
        pairs = [(k, state[k], p.grad) for k, p in theirs.named_parameters() if p.grad is not None]
        pairs += [("input", mine[0], inputs[0].grad)] if inputs[0].requires_grad else []
        grads, expected = loss.gradient(*(m for _, m, _ in pairs)), [(k, g) for k, _, g in pairs]
    Tensor.realize(*found, *grads)
    for m, t in zip(found, wanted, strict=True):
        assert (m.dtype is dtypes.float32) == (t.dtype is torch.float32)
        np.testing.assert_allclose(m.numpy(), t.detach().numpy(), rtol=1e-3, atol=1e-4)
    for grad, (key, g) in zip(grads, expected, strict=True):
        near = 1e-4 * max(1.0, float(g.abs().max()))
        np.testing.assert_allclose(grad.numpy(), g.numpy(), rtol=2e-3, atol=near, err_msg=key)
    for key, buffered in theirs.named_buffers():
        np.testing.assert_allclose(state[key].numpy(), buffered.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)


GENERATED: list[Any] = [
    lambda **made: nn.Linear(3, 2, **made),
    lambda **made: nn.Bilinear(3, 2, 2, **made),
    lambda **made: nn.Conv2d(2, 3, 2, **made),
    lambda **made: nn.ConvTranspose1d(2, 3, 2, **made),
    lambda **made: nn.Embedding(4, 3, **made),
    lambda **made: nn.EmbeddingBag(4, 3, **made),
    lambda **made: nn.GRUCell(2, 3, **made),
    lambda **made: nn.RNNCell(2, 3, **made),
    lambda **made: nn.LSTM(2, 3, num_layers=2, **made),
    lambda **made: nn.RNN(2, 3, **made),
    lambda **made: nn.MultiheadAttention(4, 2, add_bias_kv=True, **made),
    lambda **made: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, **made),
    lambda **made: nn.TransformerEncoderLayer(4, 2, 8, **made),
    lambda **made: nn.Transformer(4, 2, 1, 1, 8, **made),
]


@pytest.mark.parametrize("made", GENERATED, ids=lambda made: type(made()).__name__)
def test_first_weights_are_drawn_from_a_generator(made):
    def weights(**more: Any) -> list[Any]:
        return [value.tolist() for value in made(**more).parameters()]

    Tensor.manual_seed(1)
    begun = Tensor.rand(2).tolist()
    Tensor.manual_seed(1)
    first = weights(generator=Generator(7))
    assert Tensor.rand(2).tolist() == begun, "the default stream did not move"
    assert weights(generator=Generator(7)) == first
    assert weights(generator=Generator(8)) != first


def test_copies_of_a_layer_draw_other_numbers_from_its_generator():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, generator=Generator(3))
    encoder = nn.TransformerEncoder(layer, 2)
    assert all(copied.generator is layer.generator for copied in encoder.layers)


def test_dropout_between_recurrent_layers_draws_from_the_generator():
    def outputs(seed: int) -> Any:
        return nn.GRU(2, 8, num_layers=2, dropout=0.5, generator=Generator(seed))(Tensor.ones(3, 1, 2))[
            0
        ].tolist()

    with Tensor.train():
        assert outputs(1) == outputs(1)

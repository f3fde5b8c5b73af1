"""nn.Module: what it finds, its mode, what it does to all of a model, how it is printed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, dtypes, nn
from lazygrad.jit.tinyjit import argument_names
from lazygrad.nn.state import get_parameters, get_state_dict
from tests.helpers import needs, require


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(3, 4), nn.BatchNorm(4), Tensor.relu]
        self.heads = {"a": nn.Linear(4, 2)}
        self.register_buffer("mask", Tensor([1.0, 0.0]))
        self.register_buffer("scratch", Tensor([5.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.heads["a"](x.sequential(self.layers)) * self.mask


class Plain:
    def __init__(self) -> None:
        self.linear, self.drop = nn.Linear(2, 2), nn.Dropout(0.5)

    def __call__(self, x: Tensor) -> Tensor:
        return self.drop(self.linear(x))


def test_parameters_and_buffers_are_found_by_walking() -> None:
    network = Network()
    assert [name for name, _ in network.named_parameters()] == [
        *("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"),
        *("heads.a.weight", "heads.a.bias"),
    ]
    running = ["running_mean", "running_var", "num_batches_tracked"]
    buffers = [name for name, _ in network.named_buffers()]
    assert buffers == [*(f"layers.1.{name}" for name in running), "mask", "scratch"]
    assert [name for name, _ in network.named_buffers(recurse=False)] == ["mask", "scratch"]
    assert list(network.parameters(recurse=False)) == []
    assert next(network.parameters()) is network.layers[0].weight  # an iterator, as PyTorch's
    assert set(network.state_dict()) == {*dict(network.named_parameters()), *buffers} - {"scratch"}
    assert network.get_parameter("heads.a.bias") is network.heads["a"].bias


def test_modules_are_found_through_lists_and_dicts_each_once() -> None:
    network = Network()
    network.again = network.heads["a"]  # type: ignore[attr-defined]
    assert [name for name, _ in network.named_modules()] == ["", "layers.0", "layers.1", "heads.a"]
    assert list(network.children()) == [*network.layers[:2], network.heads["a"]]
    nested = nn.Sequential(nn.Sequential(nn.ReLU()), Plain())
    assert [name for name, _ in nested.named_children()] == ["0", "1"]
    assert [name for name, _ in nested.named_modules()] == ["", "0", "0.0", "1", "1.linear", "1.drop"]
    assert nested.get_submodule("1.linear") is nested[1].linear  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"Sequential has no '1\.none': 'none' is not there"):
        nested.get_submodule("1.none")


def test_frozen_parameters_are_parameters_still() -> None:
    layer = nn.Linear(2, 2).requires_grad_(False)
    assert len(list(layer.parameters())) == 2
    assert get_parameters(layer) == []
    layer.requires_grad_()
    assert len(get_parameters(layer)) == 2
    other = nn.Linear(2, 2)
    other.weight.requires_grad = False  # by hand
    assert [name for name, _ in other.named_parameters()] == ["weight", "bias"]


@pytest.mark.parametrize("own", [True, False, None])
@pytest.mark.parametrize("around", [True, False])
def test_a_modules_own_mode_counts_before_what_is_said_around_it(own: bool | None, around: bool) -> None:
    wanted = around if own is None else own
    seen = []

    class Spy(nn.Module):
        def __call__(self, x: Tensor) -> Tensor:
            seen.append(Tensor.training)
            return x.dropout(0.5)

    class Outer:  # a plain class follows who calls it
        def __init__(self) -> None:
            self.spy = Spy()

        def __call__(self, x: Tensor) -> Tensor:
            return self.spy(x)

    model = nn.Sequential(Outer(), lambda x: (seen.append(Tensor.training), x)[1]).train(own)
    with Tensor.train(around):
        zeros = (model(Tensor.ones(200)) == 0).sum().item()
        assert Tensor.training is around
        assert model.training is wanted
    assert seen == [wanted, wanted]
    assert (zeros > 0) is wanted


def test_an_inner_modules_mode_counts_before_the_outer_ones() -> None:
    model = nn.Sequential(nn.BatchNorm(2), nn.Dropout(0.5)).train()
    model[0].eval()  # type: ignore[attr-defined]
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    model(x).realize()
    assert model[0].running_mean.tolist() == [0.0, 0.0]  # type: ignore[attr-defined]
    assert (model.training, model[0].training, model[1].training) == (True, False, True)  # type: ignore[attr-defined]


def test_the_mode_is_put_back_after_an_error() -> None:
    layer = nn.Linear(2, 2).train()
    with pytest.raises(ValueError, match="needs 2 elements"):
        layer(Tensor.ones(3))
    assert Tensor.training is False


def test_a_jit_notices_that_a_mode_changed() -> None:
    model = nn.Sequential(nn.Dropout(0.5)).train()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (model(x) + 1).realize()

    x = Tensor.ones(100).contiguous().realize()
    zeros = []
    for mode in (True, True, True, False, False, False, True):
        model.train(mode)
        zeros.append((step(x) == 1).sum().item() > 0)
    assert zeros == [True, True, True, False, False, False, True]


def test_a_jit_of_a_module_knows_its_arguments_and_what_it_reads() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.linear, self.scale = nn.Linear(2, 2), 1.0

        def forward(self, features: Tensor) -> Tensor:
            return (self.linear(features) * self.scale).realize()

    model = Scaled()
    step, x = TinyJit(model), Tensor.ones(1, 2).contiguous().realize()
    plain = model(x).numpy()
    for scale in (1.0, 1.0, 1.0, 2.0, 2.0, 3.0):
        model.scale = scale
        assert np.allclose(step(x).numpy(), plain * scale)
    names = [argument_names(layer, (x,)) for layer in (model, nn.Linear(2, 2))]
    assert names == [["argument `features`"], ["argument `x`"]]


def test_optimizers_step_once_a_module_was_told_to_train() -> None:
    layer = nn.Linear(2, 1, bias=False).train()
    optimizer = nn.optim.SGD(layer.parameters(), lr=1.0)  # type: ignore[arg-type]
    before = layer.weight.numpy()
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    assert np.allclose(before - layer.weight.numpy(), [[1.0, 2.0]])


def test_load_state_dict_tells_what_was_left_out() -> None:
    source, target = nn.Linear(2, 3), nn.Linear(2, 3)
    found = target.load_state_dict(source.state_dict())
    assert found == ([], [])
    assert target.weight.tolist() == source.weight.tolist()
    found = target.load_state_dict({"bias": Tensor.ones(3), "more": Tensor.ones(1)}, strict=False)
    assert found.missing_keys == ["weight"]
    assert found.unexpected_keys == ["more"]
    assert target.bias is not None
    assert target.bias.tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="the state dict lacks weight"):
        target.load_state_dict({"bias": Tensor.ones(3)})


def test_to_moves_and_casts_in_place() -> None:
    network, x = Network(), Tensor.ones(2, 3)
    weight = network.layers[0].weight
    values = weight.numpy()
    assert network.to("float64") is network
    assert (weight.dtype, network.layers[1].num_batches_tracked.dtype) == (dtypes.float64, dtypes.int64)
    assert weight.requires_grad
    assert np.array_equal(weight.numpy(), values.astype(np.float64))
    network(x.double()).sum().backward()
    assert weight.grad.dtype is dtypes.float64
    network.to("PYTHON")
    assert {t.device for t in network.state_dict().values()} == {"PYTHON"}
    assert weight.grad.device == "PYTHON"
    network.to(Tensor([1.0], device="CPU"))
    assert (weight.device, weight.dtype) == ("CPU", dtypes.float32)
    with pytest.raises(TypeError, match=r"cast to a float dtype, not to dtypes\.int"):
        network.to(dtypes.int32)


def test_to_leaves_the_planes_of_quantised_weights() -> None:
    layer = nn.Linear(32, 2)
    before = nn.quantized.quantize(layer.weight, "Q8_0")
    layer.weight = before  # type: ignore[assignment]
    kinds = {name: plane.dtype for name, plane in before.planes.items()}
    layer.half()
    assert {name: plane.dtype for name, plane in before.planes.items()} == kinds
    assert layer.bias is not None
    assert layer.bias.dtype is dtypes.float16


def test_apply_calls_the_innermost_first() -> None:
    seen: list[str] = []
    Network().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm", "Linear", "Network"]


def test_modules_copy_and_pickle() -> None:
    layer = nn.Linear(2, 2).eval()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.weight.tolist() == layer.weight.tolist()
        assert other.training is False


def test_zero_grad_forgets() -> None:
    layer = nn.Linear(2, 1)
    layer(Tensor.ones(1, 2)).sum().backward()
    layer.zero_grad()
    assert layer.weight.grad is None


def test_mistakes_are_named() -> None:
    class Nothing(nn.Module): ...

    with pytest.raises(
        NotImplementedError, match="Nothing cannot be called: it has neither forward nor __call__"
    ):
        Nothing()(1)
    with pytest.raises(TypeError, match="mode of a module must be True, False or None, not 1"):
        Nothing().train(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the buffer 'x' must be a Tensor or None, not int"):
        Nothing().register_buffer("x", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"without dots, not 'a\.b'"):
        Nothing().register_buffer("a.b", None)
    with pytest.raises(AttributeError, match="Nothing has no parameter 'x'"):
        Nothing().get_parameter("x")


def test_modules_print_nested_with_their_counts() -> None:
    network = Network()
    network.me = network  # type: ignore[attr-defined]
    assert repr(network) == (
        "Network(\n"
        "  (layers): list(\n"
        "    (0): Linear(in_features=3, out_features=4)  # 16 parameters\n"
        "    (1): BatchNorm(num_features=4)  # 8 parameters\n"
        "    (2): relu\n"
        "  )\n"
        "  (heads): dict(\n"
        "    (a): Linear(in_features=4, out_features=2)  # 10 parameters\n"
        "  )\n"
        "  (me): ...\n"
        ")  # 34 parameters"
    )
    conv = nn.Conv2d(1, 8, 3, padding=1, bias=False)
    shown = "in_channels=1, out_channels=8, kernel_size=(3, 3), padding=(1, 1), bias=False"
    assert repr(conv) == f"Conv2d({shown})  # 72 parameters"
    assert repr(nn.Sequential(Plain())).splitlines()[1:3] == [
        "  (0): Plain(",
        "    (linear): Linear(in_features=2, out_features=2)  # 6 parameters",
    ]
    assert repr(nn.Dropout(0.1)) == "Dropout(p=0.1, inplace=False)"


def test_all_layers_are_modules_and_print() -> None:
    made = [nn.GRU(2, 3), nn.Embedding(5, 2), nn.LayerNorm(3), nn.MaxPool2d(2), nn.CrossEntropyLoss()]
    made += [nn.Unflatten(1, (2, 3)), nn.RotaryEmbedding(4), nn.TransformerEncoderLayer(4, 2, 8)]  # type: ignore[list-item]
    for layer in made:
        assert isinstance(layer, nn.Module)
        assert repr(layer).startswith(type(layer).__name__ + "(")


def test_summary_counts_parameters_operations_and_bytes() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.conv, self.head = nn.Conv2d(1, 2, 3), nn.Linear(2 * 4 * 4, 3).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.conv(x).relu().flatten(1))

    found = nn.summary(Model(), (5, 1, 6, 6))
    root, conv, head = found.rows
    assert (root.shape, conv.shape, head.shape) == ("(5, 3)", "(5, 2, 4, 4)", "(5, 3)")
    assert (conv.parameters, head.parameters, root.parameters) == (20, 99, 119)
    assert found.trained == 20
    products = 2 * 5 * 2 * 16 * 9, 2 * 5 * 3 * 32
    assert conv.operations == products[0] + 5 * 2 * 16
    assert head.operations == products[1] + 5 * 3
    assert root.operations == conv.operations + head.operations + 5 * 2 * 16  # relu
    assert (found.nbytes, found.result_bytes) == (119 * 4, (160 + 15) * 4)
    assert repr(found).splitlines()[-2] == "119 parameters, of which 99 are frozen"


def test_summary_of_a_plain_class_and_of_several_inputs() -> None:
    found = nn.summary(Plain(), Tensor.ones(3, 2))
    assert [(row.name, row.kind, row.shape) for row in found.rows] == [
        ("", "Plain", "(3, 2)"),
        ("linear", "Linear", "(3, 2)"),
        ("drop", "Dropout", "(3, 2)"),
    ]
    attention = nn.summary(nn.MultiheadAttention(4, 2), (3, 1, 4), (3, 1, 4), (3, 1, 4))
    assert attention.rows[0].shape == "(3, 1, 4), (1, 3, 3)"


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: nn.Linear(2, 3, **how),
        lambda **how: nn.Bilinear(2, 3, 2, **how),
        lambda **how: nn.Conv2d(2, 4, 3, **how),
        lambda **how: nn.ConvTranspose1d(2, 4, 3, **how),
        lambda **how: nn.BatchNorm(3, **how),
        lambda **how: nn.InstanceNorm(3, affine=True, track_running_stats=True, **how),
        lambda **how: nn.LayerNorm(3, **how),
        lambda **how: nn.RMSNorm(3, **how),
        lambda **how: nn.GroupNorm(1, 3, **how),
        lambda **how: nn.Embedding(5, 2, padding_idx=1, **how),
        lambda **how: nn.EmbeddingBag(5, 2, **how),
        lambda **how: nn.PReLU(**how),
        lambda **how: nn.LSTM(2, 3, bidirectional=True, **how),
        lambda **how: nn.RNN(2, 3, **how),
        lambda **how: nn.RNNCell(2, 3, **how),
        lambda **how: nn.GRUCell(2, 3, **how),
        lambda **how: nn.MultiheadAttention(4, 2, add_bias_kv=True, kdim=3, **how),
        lambda **how: nn.Transformer(4, 2, 1, 1, 8, **how),
    ],
)
def test_layers_are_made_in_a_dtype_on_a_device(make) -> None:  # type: ignore[no-untyped-def]
    layer = make(dtype="float16", device="PYTHON")
    for name, tensor in get_state_dict(layer).items():
        assert tensor.device == "PYTHON", name
        assert tensor.dtype is (dtypes.int64 if name.endswith("tracked") else dtypes.float16), name
    assert make().state_dict().keys() == layer.state_dict().keys()


@needs("torch")
def test_names_of_modules_are_pytorchs() -> None:
    torch = require("torch")
    ours = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4), nn.ReLU()), nn.Linear(4, 2))
    t = torch.nn
    theirs = t.Sequential(t.Linear(3, 4), t.Sequential(t.BatchNorm1d(4), t.ReLU()), t.Linear(4, 2))
    for what in ("named_modules", "named_children", "named_parameters", "named_buffers"):
        assert [n for n, _ in getattr(ours, what)()] == [n for n, _ in getattr(theirs, what)()], what
    order: list[list[str]] = [[], []]
    ours.apply(lambda m: order[0].append(type(m).__name__.replace("BatchNorm1d", "BatchNorm")))
    theirs.apply(lambda m: order[1].append(type(m).__name__.replace("BatchNorm1d", "BatchNorm")))
    assert order[0] == order[1]

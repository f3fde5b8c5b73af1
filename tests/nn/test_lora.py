"""`nn.lora`: adapters beside frozen, perhaps quantised weights; merged, saved and read as PEFT does."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn import lora
from lazygrad.nn.quantized import quantize
from lazygrad.nn.state import get_parameters, safe_load, safe_save
from tests.helpers import needs, require


class Model:
    """A tuple, a list and a dict to find layers in, a norm and an embedding that are none."""

    def __init__(self):
        Tensor.manual_seed(0)
        self.embedding = nn.Embedding(10, 32)
        self.attention = {"projections": (nn.Linear(32, 32), nn.Linear(32, 32, bias=False))}
        self.norm = nn.LayerNorm(32)
        self.layers = [nn.Linear(32, 8), Tensor.relu, nn.Linear(8, 4)]

    def __call__(self, tokens):
        x = self.embedding(tokens)
        q, v = self.attention["projections"]
        return self.norm(q(x) * v(x)).sequential(self.layers)


tokens = Tensor([[1, 2, 3], [4, 5, 6]]).realize()


def learned(adapter):
    """The adapter with a B that is not zero."""
    for layer in adapter.layers.values():
        layer.lora_B.assign(Tensor.arange(layer.lora_B.numel()).reshape(layer.lora_B.shape) / 1000).realize()
    return adapter


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ("0", ["attention.projections.0", "layers.0"]),
        ("attention.projections.1", ["attention.projections.1"]),
        (["layers.*"], ["layers.0", "layers.2"]),
        ("*", ["attention.projections.0", "attention.projections.1", "layers.0", "layers.2"]),
    ],
)
def test_layers_are_found_by_name(targets, names):
    model = Model()
    adapter = lora.add(model, targets, rank=2)
    assert list(adapter.layers) == names
    assert isinstance(model.attention["projections"], tuple)
    assert len(get_parameters(model)) == 2 * len(names)


def test_names_that_are_not_there():
    with pytest.raises(
        ValueError, match=r"no linear layer is named q_proj; there are: attention.projections.0,"
    ):
        lora.add(Model(), "q_proj")


def test_at_first_nothing_changes_and_then_the_formula_holds():
    model = Model()
    before = model(tokens).numpy()
    adapter = lora.add(model, "*", rank=3, alpha=6)
    np.testing.assert_allclose(model(tokens).numpy(), before, rtol=1e-5, atol=1e-6)
    learned(adapter)
    layer = adapter.layers["layers.2"]
    x = Tensor.rand(5, 8)
    expected = x.numpy() @ (layer.weight.numpy() + 2 * layer.lora_B.numpy() @ layer.lora_A.numpy()).T
    np.testing.assert_allclose(layer(x).numpy(), expected + layer.bias.numpy(), rtol=1e-4, atol=1e-5)


def test_merged_and_back_to_the_bit():
    model = Model()
    weights = model.layers[0].weight.numpy()
    adapter = learned(lora.add(model, "*", rank=4))
    beside = model(tokens).numpy()
    adapter.merge()
    adapter.merge()
    np.testing.assert_allclose(model(tokens).numpy(), beside, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(model.layers[0].weight.numpy(), weights)
    adapter.unmerge()
    np.testing.assert_array_equal(model.layers[0].weight.numpy(), weights)
    np.testing.assert_allclose(model(tokens).numpy(), beside, rtol=1e-5, atol=1e-6)
    adapter.merge()
    adapter.remove()
    assert type(model.layers[0]) is nn.Linear
    np.testing.assert_allclose(model(tokens).numpy(), beside, rtol=1e-4, atol=1e-5)


class Quantised:
    """A linear layer whose weight is a QuantizedTensor, as lazygrad.models has them."""

    def __init__(self, weight, bias=None):
        self.weight, self.bias = weight, bias

    def __call__(self, x):
        y = self.weight.linear(x) if not isinstance(self.weight, Tensor) else x @ self.weight.T
        return y if self.bias is None else y + self.bias


@pytest.mark.parametrize("format", ["Q4_1", "Q8_0"])
def test_on_a_quantised_base(format):
    Tensor.manual_seed(1)
    first = quantize(Tensor.randn(64, 32), format)
    model = {
        "first": Quantised(first, Tensor.ones(64)),
        "second": Quantised(quantize(Tensor.randn(8, 64), format)),
    }
    x = Tensor.randn(5, 32).realize()
    adapter = learned(lora.add(model, ["first", "second"], rank=2))

    def run(x):
        return model["second"](model["first"](x).relu()).square().sum()

    run(x).backward()
    parameters = {name: each.numpy() for name, each in adapter.state_dict().items()}
    grads = {name: each.grad.numpy() for name, each in adapter.state_dict().items()}
    # the same with the weights that the blocks stand for, by hand
    wide = {name: layer.base.weight.dequantize().numpy() for name, layer in adapter.layers.items()}
    torch_free = {
        name: wide[name] + 2 * parameters[f"{name}.lora_B.weight"] @ parameters[f"{name}.lora_A.weight"]
        for name in wide
    }
    hidden = np.maximum(x.numpy() @ torch_free["first"].T + 1, 0)
    out = hidden @ torch_free["second"].T
    slope_out = 2 * out
    slope_hidden = slope_out @ torch_free["second"] * (hidden > 0)
    for name, slope, value in (("second", slope_out, hidden), ("first", slope_hidden, x.numpy())):
        whole = 2 * slope.T @ value  # of alpha / rank · B · A
        wanted = whole @ parameters[f"{name}.lora_A.weight"].T
        np.testing.assert_allclose(grads[f"{name}.lora_B.weight"], wanted, rtol=2e-3, atol=1e-2)
        wanted = parameters[f"{name}.lora_B.weight"].T @ whole
        np.testing.assert_allclose(grads[f"{name}.lora_A.weight"], wanted, rtol=2e-3, atol=1e-2)
    beside = run(x).item()
    adapter.merge()
    assert isinstance(model["first"].weight, Tensor)
    assert run(x).item() == pytest.approx(beside, rel=1e-4)
    adapter.unmerge()
    assert model["first"].weight is first
    assert run(x).item() == beside


def test_only_the_adapter_learns_under_capture():
    model = Model()
    adapter = lora.add(model, "*", rank=4)
    frozen = model.embedding.weight.tolist(), model.layers[2].base.weight.tolist()
    optimizer = nn.optim.AdamW(adapter.parameters(), lr=0.02)
    classes = Tensor([[0, 1, 2], [3, 0, 1]]).realize()

    @TinyJit
    def step(tokens):
        optimizer.zero_grad()
        loss = model(tokens).reshape(-1, 4).cross_entropy(classes.flatten()).backward()
        return loss.realize(*optimizer.schedule_step())

    with Tensor.train():
        losses = [step(tokens).item() for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
    assert (model.embedding.weight.tolist(), model.layers[2].base.weight.tolist()) == frozen


def test_saved_and_read(tmp_path):
    model = Model()
    adapter = learned(lora.add(model, "layers.*", rank=2, alpha=8, dropout=0.1, rslora=True))
    expected = model(tokens).numpy()
    adapter.save(tmp_path / "adapter", base_model="some/model", rename=lambda name: f"model.{name}")
    assert sorted(safe_load(tmp_path / "adapter" / lora.WEIGHTS)) == [
        f"base_model.model.model.layers.{n}.lora_{part}.weight" for n in (0, 2) for part in "AB"
    ]
    config = json.loads((tmp_path / "adapter" / lora.CONFIG).read_text())
    assert (config["r"], config["lora_alpha"], config["target_modules"]) == (2, 8, ["0", "2"])
    again = Model()
    loaded = lora.load(again, tmp_path / "adapter", rename=lambda name: f"model.{name}")
    np.testing.assert_array_equal(again(tokens).numpy(), expected)
    assert (loaded.dropout, loaded.rslora) == (0.1, True)


@needs("torch")
def test_the_numbers_are_those_of_pytorch():
    """LoRA's formula on torch's own Linear, with what PEFT's file would hold."""
    torch = require("torch")
    model = Model()
    adapter = learned(lora.add(model, "layers.0", rank=4, alpha=2))
    layer, x = adapter.layers["layers.0"], Tensor.rand(6, 32)
    base = torch.nn.Linear(32, 8)
    with torch.no_grad():
        base.weight.copy_(torch.tensor(layer.weight.numpy()))
        base.bias.copy_(torch.tensor(layer.bias.numpy()))
        a, b = torch.tensor(layer.lora_A.numpy()), torch.tensor(layer.lora_B.numpy())
        given = torch.tensor(x.numpy())
        expected = base(given) + (given @ a.T @ b.T) * (2 / 4)
    np.testing.assert_allclose(layer(x).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_adapters_that_do_not_fit(tmp_path):
    adapter = lora.add(Model(), "layers.0", rank=2)
    adapter.save(tmp_path)
    config = json.loads((tmp_path / lora.CONFIG).read_text())

    def written(**changes):
        (tmp_path / lora.CONFIG).write_text(json.dumps({**config, **changes}))

    written(use_dora=True)
    with pytest.raises(NotImplementedError, match="LoRA with use_dora=True"):
        lora.load(Model(), tmp_path)
    written(peft_type="IA3")
    with pytest.raises(NotImplementedError, match="adapters of kind IA3"):
        lora.load(Model(), tmp_path)
    written(r=3)
    with pytest.raises(ValueError, match=r"has shape \(2, 32\), and the model's layer needs \(3, 32\)"):
        lora.load(Model(), tmp_path)
    written()
    with pytest.raises(ValueError, match=r"is for layers.0, and the model has no such layer"):
        lora.load({"other": nn.Linear(2, 2)}, tmp_path)
    safe_save({}, tmp_path / lora.WEIGHTS)
    with pytest.raises(ValueError, match="is empty"):
        lora.load(Model(), tmp_path)
    (tmp_path / lora.CONFIG).write_text("{")
    with pytest.raises(ValueError, match="is not a LoRA configuration"):
        lora.load(Model(), tmp_path)

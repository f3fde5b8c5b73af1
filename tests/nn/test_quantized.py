"""Tensors that stay quantised: products, rows, slices, devices, quantising."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, jit
from lazygrad.nn import quantized
from lazygrad.nn.block_formats import FORMATS
from lazygrad.nn.quantized import QuantizedTensor, quantize
from lazygrad.nn.state import get_parameters, get_state_dict, load_state_dict
from tests.helpers import needs, require


def random_weights(name="Q4_1", shape=(6, 2), seed=0):
    """A QuantizedTensor of random blocks with scales of at most 1."""
    row, rng = FORMATS[name], np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (*shape, row.nbytes), dtype=np.uint8)
    for plane in row.planes:
        if plane.dtype.itemsize == 2:
            numbers = rng.uniform(-1, 1, (*shape, 1)).astype("<f2")
            blocks[..., plane.begin : plane.end] = numbers.view(np.uint8)
    return blocks, QuantizedTensor(Tensor(blocks), name)


def test_what_it_says_of_itself():
    _, weights = random_weights("Q4_1", (6, 2))
    assert (weights.shape, weights.ndim, weights.dtype, len(weights)) == ((6, 64), 2, dtypes.float32, 6)
    assert (weights.nbytes, weights.numel(), weights.requires_grad) == (6 * 2 * 20, 6 * 64, False)
    assert repr(weights).startswith("<QuantizedTensor Q4_1 (6, 64) on ")


@pytest.mark.parametrize("name", FORMATS)
def test_linear_multiplies_by_what_dequantizing_gives(name):
    _, weights = random_weights(name, (6, 2))
    x = np.random.default_rng(1).standard_normal((3, weights.shape[1])).astype(np.float32)
    full = weights.numpy()
    found = weights.linear(Tensor(x)).numpy()
    np.testing.assert_allclose(found, x @ full.T, rtol=1e-4, atol=1e-4 * np.abs(full).max())


def test_linear_gives_the_dtype_of_x():
    weights = quantize(Tensor.ones(4, 32), "Q8_0")
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
        found = weights.linear(Tensor.ones(2, 3, 32, dtype=dtype))
        assert (found.shape, found.dtype) == ((2, 3, 4), dtype)
        np.testing.assert_allclose(found.float().numpy(), 32, rtol=1e-2)


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_taken(name):
    _, weights = random_weights(name, (6, 2))
    full = weights.numpy()
    places = Tensor([[5, 0, 5], [-1, 2, 3]])
    np.testing.assert_array_equal(weights.take(places).numpy(), full[places.numpy()])


def test_experts_are_taken_and_sliced():
    _, weights = random_weights("Q8_0", (4, 6, 2))
    full = weights.numpy()
    np.testing.assert_array_equal(weights.take(Tensor([3, 1])).numpy(), full[[3, 1]])
    np.testing.assert_array_equal(weights[2].numpy(), full[2])
    np.testing.assert_array_equal(weights[1:3, ::2].numpy(), full[1:3, ::2])
    assert weights[2].shape == (6, 64)


def test_slices_of_rows_stay_quantised():
    _, weights = random_weights("Q6_K", (6, 1))
    full = weights.numpy()
    for key in (slice(2, 5), slice(None, None, -2), slice(4, 100), slice(-2, None)):
        part = weights[key]
        assert isinstance(part, QuantizedTensor)
        np.testing.assert_array_equal(part.numpy(), full[key])
    np.testing.assert_array_equal(weights[-1].numpy(), full[-1])
    with pytest.raises(IndexError, match=r"last axis of shape \(6, 256\) is in blocks"):
        weights[0, 3]


def test_devices():
    _, weights = random_weights("Q5_1")
    there = weights.to("PYTHON")
    assert there.device == "PYTHON"
    assert all(plane.device == "PYTHON" for plane in there.planes.values())
    np.testing.assert_array_equal(there.to(None).numpy(), weights.numpy())


@pytest.mark.parametrize(
    ("name", "axis"), [*((name, 0) for name in FORMATS), ("Q4_1", None), ("Q4_1", -1), ("Q6_K", -1)]
)
def test_on_two_devices(name, axis):
    _, weights = random_weights(name, (6, 2))
    parts = weights.shard(("CPU", "CPU:1"), axis)
    x = Tensor(np.random.default_rng(1).standard_normal((3, weights.shape[1])).astype(np.float32))
    there = x.shard(("CPU", "CPU:1"), -1 if axis == -1 else None)
    assert parts.device == ("CPU", "CPU:1")
    full, most = weights.numpy(), np.abs(weights.numpy()).max()
    np.testing.assert_array_equal(parts.dequantize().to("CPU").numpy(), full)
    found = parts.linear(there).to("CPU").numpy()
    np.testing.assert_allclose(found, x.numpy() @ full.T, rtol=1e-4, atol=1e-4 * most)
    indices = Tensor([4, 0]).shard(("CPU", "CPU:1"))
    np.testing.assert_array_equal(parts.take(indices).to("CPU").numpy(), full[[4, 0]])


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_come_back(name):
    blocks, weights = random_weights(name)
    weights.realize()
    np.testing.assert_array_equal(weights.blocks.numpy(), blocks)


def test_from_a_file_the_blocks_are_read_when_they_are_needed(tmp_path):
    blocks, _ = random_weights("Q4_0", (6, 2))
    path = tmp_path / "blocks"
    path.write_bytes(bytes(3) + blocks.tobytes())
    in_file = Tensor(path)[3:].reshape(6, 2, 18)
    weights = QuantizedTensor(in_file, "Q4_0")
    rows = weights[2:4]
    assert weights.device == rows.device == f"DISK:{path}"
    full = FORMATS["Q4_0"].dequantize(Tensor(blocks)).numpy()
    np.testing.assert_array_equal(rows.to("CPU").numpy(), full[2:4])
    np.testing.assert_array_equal(weights[4].numpy(), full[4])
    np.testing.assert_array_equal(weights[::2].numpy(), full[::2])
    weights.realize()
    path.unlink()  # all is read
    np.testing.assert_array_equal(weights.numpy(), full)


@pytest.mark.parametrize("name", ["Q4_1", "Q8_0", "Q6_K"])
def test_pieces_of_a_file_give_what_the_whole_gives(name, tmp_path, monkeypatch):
    format = FORMATS[name]
    blocks = np.random.default_rng(0).integers(0, 60, (5, 7, format.nbytes), dtype=np.uint8)
    (tmp_path / "blocks").write_bytes(bytes(8) + blocks.tobytes())
    whole = Tensor(tmp_path / "blocks")[8:].reshape(blocks.shape)
    monkeypatch.setattr(quantized, "PIECE", 3 * format.nbytes + 1)
    monkeypatch.setattr(quantized, "_scratch", quantized._Scratch())
    found = QuantizedTensor(whole, format).planes
    for plane, wanted in QuantizedTensor(Tensor(blocks), format).planes.items():
        np.testing.assert_array_equal(found[plane].numpy(), wanted.numpy())


def test_planes_that_are_read_one_after_another_share_no_memory():
    room = quantized._Room()
    parts = [room.take(nbytes) for nbytes in (100, 1, quantized.ROOM, 64, quantized.ROOM // 2, 200)]
    for number, part in enumerate(parts):
        part[...] = number
        assert part.ctypes.data % 64 == 0
    assert [sorted(set(part.tolist())) for part in parts] == [[n] for n in range(len(parts))]


def test_in_a_model_and_under_jit():
    class Layer:
        def __init__(self):
            self.weight = random_weights("Q4_1", (6, 2))[1]

        def __call__(self, x):
            return self.weight.linear(x)

    layer = Layer()
    names = ["weight.scale", "weight.minimum", "weight.packed"]
    assert list(get_state_dict(layer)) == names
    assert get_parameters(layer) == []
    run = jit(lambda x: layer(x))
    for step in range(4):
        x = Tensor(np.full((1, 64), step, np.float32))
        np.testing.assert_allclose(run(x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-5)


def test_into_an_ordinary_model():
    _, weights = random_weights("Q8_0", (6, 2))
    model = {"weight": Tensor.zeros(6, 64).contiguous()}
    with pytest.raises(TypeError, match=r"not lazygrad.*QuantizedTensor; value\.dequantize\(\) makes one"):
        load_state_dict(model, {"weight": weights})
    load_state_dict(model, {"weight": weights.dequantize()})
    np.testing.assert_array_equal(model["weight"].numpy(), weights.numpy())


def test_copies():
    _, weights = random_weights("Q4_1")
    for copied in (copy.deepcopy(weights), pickle.loads(pickle.dumps(weights.realize()))):
        assert copied.format is weights.format
        np.testing.assert_array_equal(copied.numpy(), weights.numpy())


def test_as_an_argument_of_a_jit():
    run = jit(lambda x, weights: weights.linear(x))
    both = [random_weights("Q4_1", seed=seed)[1] for seed in (0, 1)]
    for step in range(5):
        x = Tensor(np.full((1, 64), step, np.float32))
        np.testing.assert_array_equal(run(x, both[step % 2]).numpy(), both[step % 2].linear(x).numpy())


def test_gradients_reach_what_is_multiplied():
    _, weights = random_weights("Q8_0", (6, 2))
    x = Tensor.ones(1, 64).requires_grad_()
    weights.linear(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[0], weights.numpy().sum(0), rtol=1e-4, atol=1e-3)


# ---- quantising ----


@needs("gguf")
@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_quantising_is_that_of_gguf(name):
    gguf = require("gguf")
    from gguf.quants import quantize as reference

    rng = np.random.default_rng(0)
    values = rng.standard_normal((16, 128)).astype(np.float32)
    values[3] = 0
    values[4] = 1.5
    values[5, :32] = np.linspace(-1, 1, 32)
    expected = reference(values, getattr(gguf.GGMLQuantizationType, name))
    found = quantize(Tensor(values), name).blocks.numpy().reshape(16, -1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "error"),
    [("Q8_0", 1 / 254), ("Q4_0", 1 / 8), ("Q4_1", 1 / 15), ("Q5_0", 1 / 16), ("Q5_1", 1 / 31)],
)
def test_quantising_is_near(name, error):
    """Half a step, or a whole one at the end that Q4_0 lacks; and what rounding scale and minimum to halves
    adds."""
    values = np.random.default_rng(0).uniform(-1, 1, (8, 64)).astype(np.float32)
    found = quantize(Tensor(values), name).numpy()
    assert np.abs(found - values).max() <= error + 2**-10


def test_what_is_refused():
    _, weights = random_weights("Q4_1", (6, 2))
    with pytest.raises(
        ValueError, match=r"last axis of x must be 64, the columns of the weights, not \(1, 63\)"
    ):
        weights.linear(Tensor.ones(1, 63))
    with pytest.raises(TypeError, match=r"linear multiplies a Tensor of floats, not dtypes\.int"):
        weights.linear(Tensor([1, 2]))
    with pytest.raises(TypeError, match=r"take needs a Tensor of integers, not list"):
        weights.take([1, 2])
    with pytest.raises(TypeError, match=r"chosen by numbers and slices, not <Tensor"):
        weights[Tensor([1])]
    with pytest.raises(
        ValueError, match=r"blocks of Q4_1 are uint8 of shape \(\.\.\., blocks, 20\), not .*19"
    ):
        QuantizedTensor(Tensor(np.zeros((2, 2, 19), np.uint8)), "Q4_1")
    with pytest.raises(ValueError, match=r"plane packed of Q8_0 beside scale .* is .*\(2, 3, 32\), not"):
        QuantizedTensor.of_planes(
            {"scale": Tensor.ones(2, 3, dtype=dtypes.float16), "packed": Tensor.ones(2, 3, 31).cast("int8")},
            "Q8_0",
        )
    with pytest.raises(IndexError, match=r"shape \(6, 64\) has no axis 2"):
        weights.shard(("CPU", "CPU:1"), 2)
    with pytest.raises(ValueError, match=r"32 elements, which the last axis of shape \(2, 33\)"):
        quantize(Tensor.ones(2, 33), "Q8_0")
    with pytest.raises(NotImplementedError, match="quantising to Q6_K is not supported, only to Q4_0"):
        quantize(Tensor.ones(2, 256), "Q6_K")
    with pytest.raises(TypeError, match=r"quantize needs a Tensor of floats, not dtypes.int"):
        quantize(Tensor([[1] * 32]), "Q8_0")

"""`lazygrad.export` to ONNX: the checker accepts it, and ONNX Runtime computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, Variable, nn
from lazygrad.ir.ops import OPS, Kind
from lazygrad.ir.spec.tensor import TENSOR
from tests.helpers import needs, require

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def kinds(path):
    """The nodes of a file by their kinds."""
    return [node.op_type for node in require("onnx").load(path).graph.node]


def both(fn, path, *arrays, tolerance=1e-5):
    """Export; then what we compute and what ONNX Runtime computes must be equal."""
    args = [Tensor(array) for array in arrays]
    lazygrad.export(fn, args, path)
    result = fn(*args)
    ours = [t.numpy() for t in (result if isinstance(result, (list, tuple)) else [result])]
    session = require("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=True)}
    theirs = session.run(None, given)
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert (own.shape, own.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=tolerance)
    return session


pytestmark = [needs("onnx"), needs("onnxruntime")]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "graph.onnx")


# *** models


def test_a_convolutional_network(path):
    convolutions = [nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm(6), Tensor.relu, nn.MaxPool2d(2)]
    convolutions += [nn.Conv2d(6, 4, 2, stride=2), Tensor.gelu]
    model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(64, 10), Tensor.log_softmax)
    session = both(model, path, floats(2, 3, 16, 16))
    assert [value.name for value in session.get_inputs()] == ["x"]
    names = [each.name for each in require("onnx").load(path).graph.initializer]
    assert {"0.weight", "7.bias"} <= set(names)
    assert kinds(path).count("Einsum") == 3


def test_a_transformer(path):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    both(lambda x: layer(x), path, floats(2, 5, 16), tolerance=3e-5)


def test_a_recurrent_network(path):
    lstm = nn.LSTM(4, 6, batch_first=True)
    both(lambda x: lstm(x)[0], path, floats(2, 5, 4))


def test_an_embedding(path):
    embedding, head = nn.Embedding(20, 8), nn.Linear(8, 3)
    both(lambda tokens: head(embedding(tokens)).softmax(), path, np.array([[1, 19, 0], [3, 3, 7]], np.int32))


def test_a_matrix_product_is_one_node(path):
    w = Tensor(floats(6, 3)).realize()
    both(lambda x: x @ w, path, floats(4, 6))
    assert kinds(path).count("Einsum") == 1
    assert not {"Mul", "ReduceSum", "Expand"} & set(kinds(path))
    graph = require("onnx").load(path).graph
    assert {each.name for each in graph.initializer} <= {name for node in graph.node for name in node.input}


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda a, b: a @ b, [(2, 3, 4), (2, 4, 5)]),
        (lambda a, b: a @ b, [(7, 1, 3, 4), (5, 4, 2)]),
        (lambda a, b: a @ b.transpose(-1, -2), [(3, 4), (5, 4)]),
        (lambda a, b: (a * b).sum(), [(3, 4), (3, 4)]),
        (lambda a, b: a.dot(b), [(1, 4), (4, 1)]),
        (lambda a, b: Tensor.einsum("bij,kj->bki", a, b), [(2, 3, 4), (5, 4)]),
        (lambda a, b: a.reshape(3, 1) * b.reshape(1, 4), [(3,), (4,)]),
        (lambda a, b: a.scaled_dot_product_attention(b, b, is_causal=True), [(2, 2, 5, 4), (2, 2, 5, 4)]),
    ],
)
def test_products(path, fn, shapes):
    both(fn, path, *[floats(*shape) for shape in shapes])


# *** operations

FLOATS = {
    "exp": lambda x: x.exp(),
    "log": lambda x: (x.abs() + 0.1).log(),
    "exp2, log2": lambda x: (x.exp2(), (x.abs() + 0.1).log2()),
    "sin, cos, tanh": lambda x: (x.sin(), x.cos(), x.tanh()),
    "sqrt, reciprocal": lambda x: (x.abs().sqrt(), (x + 10).reciprocal(), (x * x + 1).rsqrt()),
    "erf, gelu": lambda x: (x.erf(), x.gelu("none"), x.sigmoid()),
    "round": lambda x: ((x * 3).trunc(), (x * 3).floor(), (x * 3).ceil(), (x * 3).round()),
    "compare": lambda x: (x > 0, x >= 0.5, x == x, x != 0.1, (x < 0.5) & (x > -0.5), (x < 0) | (x > 1)),
    "where, clip": lambda x: ((x > 0).where(x, -1.5), x.clamp(-0.5, 0.5), x.maximum(0.2), x.minimum(0.1)),
    "power": lambda x: (x.abs() ** 1.7, x**3),
    "divide": lambda x: (x / 3, 1 / (x + 10), x.fmod(0.7), x.remainder(0.7)),
    "reduce": lambda x: (x.sum(0), x.max(1), x.min(), x.mean(-1, keepdim=True), x.prod(2), x.var(1)),
    "any, all": lambda x: ((x > 3).any(0), (x < 3).all(1)),
    "arg": lambda x: (x.argmax(1), x.argmin(), x.cumsum(1)),
    "move": lambda x: (x.permute(2, 0, 1), x.flip((0, 2)), x.reshape(4, -1), x.expand(2, *x.shape)),
    "slice": lambda x: (x[1:, ::2], x[:, -1], x[::-1, 1:3]),
    "pad": lambda x: (x.pad((1, 2, 0, 1)), x.pad((1, 1), value=2.0), x.roll(1, 0), x.tril()),
    "join": lambda x: (x.cat(x * 2, dim=1), Tensor.stack(x, x + 1), x.repeat(2, 1, 1), *x.chunk(2, 1)),
    "cast": lambda x: ((x * 10).cast("int32"), x.double(), x.half(), (x > 0).float(), x.bool()),
    "constants": lambda x: (x + Tensor.arange(4), x * Tensor.eye(4), Tensor.ones(2, 2) + x.sum()),
    "pool": lambda x: (x.unsqueeze(0).max_pool2d(2), x.unsqueeze(0).avg_pool2d((2, 2), stride=1)),
    "norm": lambda x: (x.layernorm(), x.softmax(1), x.log_softmax(), x.logsumexp(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_floats(path, name):
    both(FLOATS[name], path, floats(3, 4, 4))


INTEGERS = {
    "divide": lambda x, y: (x // y, x % y, x // 3, x % -3),
    "arithmetic": lambda x, y: (x + y, x * y, x - y, -x, x.abs(), x.maximum(y)),
    "compare": lambda x, y: (x < y, x == y, x.sum(0), x.max()),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(path, name, dtype):
    x, y = rng.integers(-90, 90, (2, 4, 5)).astype(dtype)
    y[0, 0] = 0
    both(INTEGERS[name], path, x, y)


def test_bits(path):
    x = rng.integers(0, 1 << 30, (5,)).astype(np.uint32)
    both(lambda x: (x & 12, x | 3, x ^ 0xFF, x << 3, x >> 2), path, x)
    both(lambda x: (x & 12, x << 3, x >> 2, ~x), path, x.astype(np.int32))
    both(lambda x: (x & x, ~x, x ^ (x | x)), path, x > 1 << 29)


def test_gather_and_scatter(path):
    table = Tensor(floats(6, 3)).realize()
    index = np.array([[0, 5], [2, -1]], np.int64)
    both(
        lambda i: (table[i], table.gather(0, i % 3), Tensor.zeros(6).scatter(0, i.flatten() % 6, 1.5)),
        path,
        index,
    )
    both(lambda x: x.scatter_add(0, Tensor([[0, 0, 1]]), Tensor([[1.0, 2.0, 4.0]])), path, floats(4, 3))


def test_several_arguments_in_containers_and_results(path):
    def fn(pair, last):
        return [pair[0] + pair["b"] if isinstance(pair, dict) else pair[0] + pair[1], last * 2]

    x, y, z = (Tensor(floats(2)) for _ in range(3))
    lazygrad.export(fn, ([x, y], z), path)
    session = require("onnxruntime").InferenceSession(path)
    assert [value.name for value in session.get_inputs()] == ["pair_0", "pair_1", "last"]
    first, second = session.run(None, {"pair_0": x.numpy(), "pair_1": y.numpy(), "last": z.numpy()})
    np.testing.assert_allclose(first, (x + y).numpy())
    np.testing.assert_allclose(second, (z * 2).numpy())


# *** what is refused


def test_what_onnx_cannot_say(path):
    x, n = Tensor([1.0, 2.0]).realize(), Variable("n", 1, 2)
    with pytest.raises(NotImplementedError, match="exporting BITCAST of"):
        lazygrad.export(lambda x: x.bitcast("int32"), (x,), path)
    with pytest.raises(NotImplementedError, match="a function of Variables"):
        lazygrad.export(lambda x, n: x[:n], (x, n.bind(1)), path)
    with pytest.raises(NotImplementedError, match=r"must not compute values on the way"):
        lazygrad.export(lambda x: (x + 1).realize() * 2, (x,), path)
    with pytest.raises(
        NotImplementedError,
        match=r"linear algebra cannot be exported to ONNX.* the routines eigh, lu, lu_inverse ",
    ):
        lazygrad.export(lambda x: x.inv() + x.eigh().eigenvectors, (Tensor.eye(3).realize(),), path)
    with pytest.raises(TypeError, match="returns no tensor"):
        lazygrad.export(lambda x: 3, (x,), path)


def test_every_op_of_a_graph_has_a_row_or_is_known_to_have_none():
    from lazygrad.exporting.onnx_nodes import ROWS

    kinds = (Kind.ELEMENTWISE, Kind.MOVEMENT, Kind.REDUCE)
    of_graphs = {op.name for op, row in OPS.items() if row.kind in kinds and op in TENSOR.checks}
    assert of_graphs - {op.name for op in ROWS} == {
        "BITCAST",
        "DP4A",
        "MULACC",
        "LDEXP",
    }  # two are for kernels

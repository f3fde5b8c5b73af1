"""com.microsoft: each operation beside onnxruntime's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.helpers import needs, require

pytestmark = needs("onnx", "onnxruntime")


def rand(*shape):
    return np.random.default_rng(math.prod(shape) + len(shape)).standard_normal(shape).astype(np.float32)


def small(kind, *shape):
    """Integers of a type, all of its range."""
    info = np.iinfo(kind)
    return np.random.default_rng(math.prod(shape)).integers(info.min, info.max + 1, shape).astype(kind)


def seven_bits(*shape):
    """Weights of 7 bits: without VNNI, onnxruntime adds pairs of products in int16, which saturates for more
    ("reduce_range" in its documentation of quantization).
    """
    return small(np.int8, *shape) // np.int8(2)


def both(op, inputs, outputs=1, domain="com.microsoft", **attributes):
    """What onnxruntime and OnnxRunner make of one node; None among the inputs is one that is left out."""
    onnx, ort = require("onnx"), require("onnxruntime")
    from lazygrad.nn.onnx import OnnxRunner

    helper = onnx.helper
    names = [f"i{number}" if value is not None else "" for number, value in enumerate(inputs)]
    given = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if name}
    results = [f"o{number}" for number in range(outputs)] if isinstance(outputs, int) else outputs
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    shown = [helper.make_empty_tensor_value_info(name) for name in results if name]
    graph = helper.make_graph([node], "graph", infos, shown)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    got = OnnxRunner(model)(given)
    return list(zip([tensor.numpy() for tensor in got.values()], expected, strict=True))


S = np.float32
QUANTIZED = (small(np.uint8, 2, 8), S(0.1), np.uint8(120))
QUANTIZED_B = (small(np.uint8, 8), S(0.2), np.uint8(100))
TO = (S(0.3), np.uint8(128))
IMAGE_Q = (small(np.uint8, 1, 2, 6, 6), S(0.1), np.uint8(120))
HIDDEN = 16  # of 4 heads
X = rand(2, 5, HIDDEN)
GQA = {"num_heads": 4, "kv_num_heads": 2}
CACHE = (rand(8, 4), rand(8, 4) * 0.5)

CASES = {
    "Gelu": ("Gelu", [X]),
    "BiasGelu": ("BiasGelu", [X, rand(HIDDEN)]),
    "FastGelu": ("FastGelu", [X, rand(HIDDEN)]),
    "QuickGelu": ("QuickGelu", [X]),
    "FusedMatMul": ("FusedMatMul", [rand(2, 3, 4), rand(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    "FusedMatMul left": ("FusedMatMul", [rand(4, 3), rand(4, 5)], {"transA": 1}),
    "FusedGemm": ("FusedGemm", [rand(3, 4), rand(4, 5), rand(5)], {"activation": "Relu"}),
    "FusedConv": ("FusedConv", [rand(1, 2, 5, 5), rand(3, 2, 3, 3), rand(3)], {"activation": "Relu"}),
    "FusedConv sum": (
        "FusedConv",
        [rand(1, 2, 5, 5), rand(3, 2, 3, 3), rand(3), rand(1, 3, 3, 3)],
        {"activation": "Relu"},
    ),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        [X, X * 2, rand(HIDDEN), rand(HIDDEN), rand(HIDDEN)],
    ),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", [X, X + 1, rand(HIDDEN)]),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", [X, rand(HIDDEN)], {"domain": ""}),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        [
            np.array([[1, 2, 0], [3, 1, 1]], np.int32),
            np.array([[0, 1, 1], [0, 0, 1]], np.int32),
            *(rand(4, 8), rand(5, 8), rand(2, 8), rand(8), rand(8)),
            np.array([[1, 1, 0], [1, 1, 1]], np.int32),
        ],
        {"outputs": 2},
    ),
    "QLinearAdd": ("QLinearAdd", [*QUANTIZED, *QUANTIZED_B, *TO]),
    "QLinearMul": ("QLinearMul", [*QUANTIZED, *QUANTIZED_B, *TO]),
    "QLinearSigmoid": ("QLinearSigmoid", [*QUANTIZED, S(1 / 256), np.uint8(0)]),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", [*QUANTIZED, *TO], {"alpha": 0.5}),
    "QLinearSoftmax": ("QLinearSoftmax", [*QUANTIZED, S(1 / 256), np.uint8(0)], {"opset": 13, "axis": -1}),
    "QLinearAveragePool": ("QLinearAveragePool", [*IMAGE_Q, *TO], {"kernel_shape": [2, 2]}),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", [*IMAGE_Q, *TO]),
    "QLinearConcat": ("QLinearConcat", [*TO, *QUANTIZED, *QUANTIZED], {"axis": 1}),
    "QGemm": (
        "QGemm",
        [*QUANTIZED, small(np.uint8, 8, 3), S(0.2), np.uint8(99), small(np.int8, 3).astype(np.int32)],
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        [*(small(np.uint8, 3, 8), seven_bits(8, 4), S(0.1), S(0.2)), np.uint8(120), np.int8(3), rand(4)],
    ),
    "DynamicQuantizeMatMul": (
        "DynamicQuantizeMatMul",
        [rand(3, 8), seven_bits(8, 4), S(0.2), np.int8(3), rand(4)],
    ),
    "MatMulNBits": (
        "MatMulNBits",
        [rand(3, 40), small(np.uint8, 6, 3, 8), rand(6, 3)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
    ),
    "MatMulNBits zeros": (
        "MatMulNBits",
        [rand(3, 40), small(np.uint8, 6, 3, 8), rand(6, 3), small(np.uint8, 6, 2)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
    ),
    "MatMulNBits 8": (
        "MatMulNBits",
        [rand(3, 32), small(np.uint8, 6, 2, 16), rand(6, 2)],
        {"K": 32, "N": 6, "bits": 8, "block_size": 16},
    ),
    "GatherBlockQuantized": (
        "GatherBlockQuantized",
        [small(np.uint8, 5, 16), np.array([[1, 4]]), rand(5, 2)],
        {"bits": 4, "block_size": 16, "quantize_axis": 1},
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        [rand(2, 3, 16), np.array([[0, 1, 2], [3, 4, 5]]), *CACHE],
        {"num_heads": 2},
    ),
    "RotaryEmbedding of 4 axes": (
        "RotaryEmbedding",
        [rand(2, 2, 3, 8), np.array([2]), *CACHE],
        {"interleaved": 1},
    ),
    "Attention": ("Attention", [X, rand(HIDDEN, 48), rand(48)], {"num_heads": 4}),
    "Attention lengths": (
        "Attention",
        [X, rand(HIDDEN, 48), rand(48), np.array([5, 3], np.int32)],
        {"num_heads": 4},
    ),
    "Attention causal": ("Attention", [X, rand(HIDDEN, 48), rand(48)], {"num_heads": 4, "unidirectional": 1}),
    "Attention past": (
        "Attention",
        [X, rand(HIDDEN, 48), rand(48), np.ones((2, 8), np.int32), rand(2, 2, 4, 3, 4)],
        {"num_heads": 4, "outputs": 2},
    ),
    "QAttention": (
        "QAttention",
        [
            *(small(np.uint8, 2, 5, HIDDEN), seven_bits(HIDDEN, 48), rand(48), S(0.01), S(0.01)),
            *(np.array([5, 4], np.int32), np.uint8(128), np.int8(1)),
        ],
        {"num_heads": 4},
    ),
    "MultiHeadAttention": (
        "MultiHeadAttention",
        [X, rand(2, 7, HIDDEN), rand(2, 7, HIDDEN) + 1, rand(48)],
        {"num_heads": 4},
    ),
    "MultiHeadAttention past": (
        "MultiHeadAttention",
        [X, X * 2, X + 1, None, None, None, rand(2, 4, 3, 4), rand(2, 4, 3, 4) * 2],
        {"num_heads": 4, "outputs": 3},
    ),
    "GroupQueryAttention prompt": (
        "GroupQueryAttention",
        [
            *(rand(2, 5, 64), rand(2, 5, 32), rand(2, 5, 32) * 2),
            *(np.zeros((2, 2, 0, 16), np.float32), np.zeros((2, 2, 0, 16), np.float32)),
            *(np.array([4, 4], np.int32), np.int32(5)),
        ],
        {**GQA, "outputs": 3},
    ),
    "GroupQueryAttention step": (
        "GroupQueryAttention",
        [
            *(rand(2, 1, 64), rand(2, 1, 32), rand(2, 1, 32) * 2, rand(2, 2, 6, 16), rand(2, 2, 6, 16) * 2),
            *(np.array([6, 4], np.int32), np.int32(7), rand(8, 8), rand(8, 8) * 2),
        ],
        {**GQA, "outputs": 3, "do_rotary": 1},
    ),
    "GroupQueryAttention window": (
        "GroupQueryAttention",
        [
            *(rand(2, 1, 64), rand(2, 1, 32), rand(2, 1, 32) * 2, rand(2, 2, 6, 16), rand(2, 2, 6, 16) * 2),
            *(np.array([6, 6], np.int32), np.int32(7)),
        ],
        {**GQA, "outputs": 3, "local_window_size": 3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_gives_what_onnxruntime_gives(name):
    op, inputs, *more = CASES[name]
    for got, expected in both(op, inputs, **(more[0] if more else {})):
        assert got.dtype == expected.dtype
        if expected.dtype.kind in "iu":  # a result that lies between two numbers may be rounded either way
            np.testing.assert_allclose(got.astype(int), expected.astype(int), atol=1)
        else:
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-5)


def test_max_roi_pool_which_the_formats_own_cases_leave_out():
    regions = np.array([[0, 0, 0, 7, 7], [1, 1, 2, 5, 4], [0, 6, 6, 12, 9]], np.float32)
    inputs = [rand(2, 3, 8, 8), regions]
    for scale in (1.0, 0.5):
        ((got, expected),) = both("MaxRoiPool", inputs, domain="", pooled_shape=[2, 3], spatial_scale=scale)
        np.testing.assert_allclose(got, expected)

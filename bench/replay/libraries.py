"""Programs of the record that other libraries describe: PyTorch's compiled graphs, ONNX files."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np


class Missing(Exception):
    """The package without which a program cannot be recorded."""


def _need(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise Missing(package)


# *** PyTorch


def _torch(make: Callable[[Any], tuple[Any, tuple[Any, ...]]], learns: bool) -> Callable[[], Any]:
    """The graphs that PyTorch makes of a module, on memory of the default device; its own sees zeros."""

    def run() -> None:
        _need("torch")
        import torch
        from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
        from torch._dynamo.backends.common import aot_autograd

        from lazygrad.torch.dynamo import decompositions

        torch.manual_seed(0)
        torch._dynamo.reset()
        model, given = make(torch)
        backend = aot_autograd(
            fw_compiler=lambda module, _: make_boxed_func(_graph(module)),
            decompositions=decompositions(),
            partition_fn=min_cut_rematerialization_partition,
        )
        compiled = torch.compile(model, backend=backend, dynamic=False)
        try:
            with torch.set_grad_enabled(learns):
                found = compiled(*given)
                if learns:
                    found.square().mean().backward()
        finally:
            torch._dynamo.reset()

    return run


def _graph(module: Any) -> Callable[..., Any]:
    """A graph of PyTorch, computed by lazygrad on zeros of the default device; PyTorch gets zeros."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    from lazygrad import Tensor
    from lazygrad.torch.dtypes import from_torch_dtype
    from lazygrad.torch.graph import GraphFunction
    from lazygrad.torch.memory import laid, lying, viewed

    [results] = next(node.args for node in module.graph.nodes if node.op == "output")
    said = [getattr(result, "meta", {}).get("val") for result in results]
    with unset_fake_temporarily():  # a graph may hold tensors, which are real
        function = GraphFunction(module)

    def call(*given: Any) -> list[Any]:
        values = list(given)
        for number, value in enumerate(given):
            if isinstance(value, torch.Tensor):
                memory = Tensor.zeros(value.numel(), dtype=from_torch_dtype(value.dtype))
                values[number] = viewed(memory.contiguous().realize(), lying(value.shape, value.stride()))
        found = zip(function(values), said, strict=True)
        made = [
            laid(value, lying(like.shape, like.stride())).contiguous()
            for value, like in found
            if isinstance(value, Tensor)
        ]
        Tensor.realize(*made)
        return [
            torch.empty_strided(like.shape, like.stride(), dtype=like.dtype).zero_()
            if isinstance(like, torch.Tensor)
            else like
            for like in said
        ]

    return call


def _convolutions(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    nn = torch.nn
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 16, 3, groups=16), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16, 10)), (torch.zeros(2, 3, 32, 32),)


def _encoder(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True)
    return layer, (torch.zeros(2, 24, 64),)


# *** ONNX


def _onnx(
    nodes: Callable[[Any], list[Any]], shape: tuple[int, ...], constants: dict[str, tuple[int, ...]]
) -> Callable[[], Any]:
    """A graph of ONNX from x to y, with constants of these shapes."""

    def run() -> None:
        _need("onnx")
        import onnx

        from lazygrad import Tensor
        from lazygrad.nn.onnx import OnnxRunner

        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        rng = np.random.default_rng(0)
        given = [
            onnx.numpy_helper.from_array(rng.standard_normal(of, np.float32), name)
            for name, of in constants.items()
        ]
        ends = [
            [helper.make_tensor_value_info(name, kind, of)] for name, of in (("x", list(shape)), ("y", None))
        ]
        graph = helper.make_graph(nodes(helper.make_node), "graph", *ends, given)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        OnnxRunner(model)({"x": Tensor.zeros(*shape).contiguous()})["y"].realize()

    return run


def _picture(node: Callable[..., Any]) -> list[Any]:
    return [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "v"], ["y"], transB=1),
    ]


def _recurrent(node: Callable[..., Any]) -> list[Any]:
    return [
        node("LSTM", ["x", "w", "r"], ["", "h", ""], hidden_size=16),
        node("LayerNormalization", ["h", "scale"], ["n"]),
        node("Softmax", ["n"], ["y"], axis=-1),
    ]


LIBRARIES: dict[str, Callable[[], Any]] = {
    "PyTorch: convolutions": _torch(_convolutions, False),
    "PyTorch: convolutions, gradients": _torch(_convolutions, True),
    "PyTorch: encoder": _torch(_encoder, False),
    "PyTorch: encoder, gradients": _torch(_encoder, True),
    "ONNX: convolutions": _onnx(_picture, (1, 3, 24, 24), {"w": (8, 3, 3, 3), "b": (8,), "v": (5, 8)}),
    "ONNX: recurrent": _onnx(_recurrent, (10, 2, 12), {"w": (1, 64, 12), "r": (1, 64, 16), "scale": (16,)}),
}

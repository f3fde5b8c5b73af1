"""An ONNX graph that is being written: nodes, constants and their names. It needs the package `onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import DeviceError
from ..dtype import ConstType, DType, dtypes

#: Bytes of weights from which on they lie in a file beside the graph: protobuf has at most 2 GiB.
MOST_INSIDE = 1 << 30


def onnx_package() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise DeviceError(f'writing ONNX needs onnx ({error}): pip install "lazygrad[onnx]"') from error
    return onnx


class Writer:
    """Nodes in order, and initialisers by name. Equal nodes are written once."""

    def __init__(self) -> None:
        self.onnx = onnx_package()
        self.nodes: list[Any] = []
        self.initialisers: dict[str, Any] = {}
        self.types = {
            dtypes.bool: "BOOL",
            dtypes.int8: "INT8",
            dtypes.uint8: "UINT8",
            dtypes.int16: "INT16",
            dtypes.uint16: "UINT16",
            dtypes.int32: "INT32",
            dtypes.uint32: "UINT32",
            dtypes.int64: "INT64",
            dtypes.uint64: "UINT64",
            dtypes.float16: "FLOAT16",
            dtypes.bfloat16: "BFLOAT16",
            dtypes.float32: "FLOAT",
            dtypes.float64: "DOUBLE",
            dtypes.fp8e4m3: "FLOAT8E4M3FN",
            dtypes.fp8e5m2: "FLOAT8E5M2",
        }
        #: the dtype of a value, by its name
        self.dtype: dict[str, DType] = {}
        self._known: dict[Any, str] = {}

    def type_of(self, dtype: DType) -> int:
        """The number of a type in ONNX."""
        if dtype not in self.types:
            raise NotImplementedError(f"exporting {dtype} to ONNX is not supported")
        return int(getattr(self.onnx.TensorProto, self.types[dtype]))

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """The name of the value of a node."""
        key = kind, tuple(inputs), repr(sorted(attributes.items()))
        if key not in self._known:
            name = self._known[key] = f"{kind.lower()}_{len(self.nodes)}"
            self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return self._known[key]

    def cast(self, name: str, dtype: DType) -> str:
        """A value in another type; itself, where it has that type."""
        if self.dtype.get(name) is dtype:
            return name
        found = self.add("Cast", [name], to=self.type_of(dtype))
        self.dtype[found] = dtype
        return found

    def constant(self, values: Sequence[ConstType], dtype: DType, shape: Sequence[int]) -> str:
        """A few numbers, by their values."""
        key = "constant", repr(tuple(values)), dtype, tuple(shape)
        if key not in self._known:
            name = self._known[key] = f"constant_{len(self.initialisers)}"
            made = self.onnx.helper.make_tensor(name, self.type_of(dtype), list(shape), list(values))
            self.initialisers[name] = made
            self.dtype[name] = dtype
        return self._known[key]

    def scalar(self, value: ConstType, dtype: DType) -> str:
        return self.constant([value], dtype, ())

    def integers(self, values: Sequence[int]) -> str:
        """A row of int64: a shape, axes."""
        return self.constant([int(value) for value in values], dtypes.int64, (len(values),))

    def weights(self, name: str, array: Any, dtype: DType) -> str:
        """A large constant; bfloat16 and float8 come as the integers of their bits."""
        while name in self.initialisers:
            name += "_"
        made = self.onnx.TensorProto(
            name=name, data_type=self.type_of(dtype), dims=list(array.shape), raw_data=array.tobytes()
        )
        self.initialisers[name] = made
        self.dtype[name] = dtype
        return name

    def drop_unused(self, results: Sequence[str]) -> None:
        """Keep what these values need: a node that became part of another is not written."""
        wanted = set(results)
        kept = []
        for node in reversed(self.nodes):
            if wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initialisers = {name: each for name, each in self.initialisers.items() if name in wanted}

    def information(self, name: str, dtype: DType, shape: Sequence[int]) -> Any:
        """What a graph says of an input or a result."""
        return self.onnx.helper.make_tensor_value_info(name, self.type_of(dtype), list(shape))

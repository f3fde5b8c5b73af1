"""Numbers of the other byte order: copied they are the same numbers; their memory is never shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, array_api, functional, onnx
from tests.helpers import needs, require

KINDS = ["f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"]


def turned(values: Any, kind: str) -> Any:
    return np.array(values, np.dtype(kind).newbyteorder())


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_the_same_numbers(kind: str) -> None:
    array = turned([[1, 2], [3, 250]], kind)
    x = Tensor.zeros(2, 2).contiguous().assign(array)
    made = [Tensor(array), Tensor(memoryview(array)), Tensor([array[0], array[1]]), x + 0]
    made += [functional.as_tensor(array), functional.asarray(array), array_api.asarray(array)]
    assert [each.tolist() for each in made] == [array.tolist()] * len(made)
    assert Tensor(array).numpy().dtype == np.dtype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_not_shared(kind: str) -> None:
    array = turned([1, 2], kind)
    for function in (Tensor.from_numpy, functional.from_numpy, lazygrad.from_numpy):
        with pytest.raises(TypeError, match=r"of the other byte order .* or array\.astype\("):
            function(array)
    with pytest.raises(TypeError, match="only supports native byte order"):
        Tensor.from_dlpack(array)
    assert array.tolist() == [1, 2]


def test_bytes_are_not_read_as_numbers_of_the_other_order() -> None:
    array = turned([1.0, 2.0], "f4")
    for function in (
        lambda: functional.frombuffer(array.tobytes(), dtype=array.dtype),
        lambda: functional.frombuffer(array, dtype="float32"),
        lambda: Tensor(array.view("u1")).bitcast(array.dtype),
    ):
        with pytest.raises(TypeError, match="of the other byte order"):
            function()
    assert functional.frombuffer(turned([1, 2], "u1"), dtype="uint8").tolist() == [1, 2]
    assert Tensor([1.5]).cast(array.dtype).tolist() == [1.5]


def test_whole_indices_and_bits_of_narrow_floats() -> None:
    assert Tensor([5, 6, 7])[turned([2, 0], "i8")].tolist() == [7, 5]
    narrow = np.dtype(require("ml_dtypes").bfloat16)
    array = np.array([1.5, -2.0], narrow).astype(narrow.newbyteorder())
    assert Tensor(array).tolist() == [1.5, -2.0]


@needs("onnx")
def test_inputs_of_an_onnx_model() -> None:
    file = require("onnx")
    helper, kind = file.helper, file.TensorProto.INT32
    ends = [helper.make_tensor_value_info(name, kind, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", ends[:1], ends[1:])
    runner = onnx.OnnxRunner(helper.make_model(graph))
    with pytest.raises(ValueError, match=r"of the other byte order .* is no value of ONNX"):
        runner({"x": turned([300, 2], "i4")})

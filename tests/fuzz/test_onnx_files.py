"""ONNX files that are damaged: each is opened, or refused by a ValueError or NotImplementedError, in bounded
time and memory. What one that was opened computes is not looked at: it is another model.
"""

from __future__ import annotations

import resource

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.files import MOST_GROWTH, changed, in_time
from tests.fuzz.harness import fuzzed
from tests.helpers import needs, require
from tests.nn.onnx.test_runner import chained, model, nested_branches, runner, twice

pytestmark = needs("onnx")

FILES: list[bytes] = []


@pytest.fixture(scope="module", autouse=True)
def files():
    """Models with weights, attributes, functions, graphs in graphs and sparse tensors."""
    onnx = require("onnx")
    picture = {"x": ("FLOAT", [1, 1, 4, 4])}, {"z": ("FLOAT", ["a", "b", "c", "d"])}
    pool = [("Conv", "x w", "y", {"pads": [1, 1, 1, 1]}), ("MaxPool", "y", "z", {"kernel_shape": [2, 2]})]
    reshape = [("Add", "x w", "y", {}), ("Reshape", "y s", "z", {}), ("Cast", "z", "o", {"to": 7})]
    flat = {"x": ("FLOAT", [2, 3])}, {"o": ("INT64", [6])}
    body = nested_branches(onnx.helper, onnx.helper.make_node("Neg", ["x"], ["b"]), "b", 2)
    branching = model([("Neg", "x", "y", {})], {"x": ("FLOAT", [2])}, {"y": ("FLOAT", [2])})
    branching.graph.ClearField("node")
    yes = onnx.numpy_helper.from_array(np.array(True))
    branching.graph.node.append(onnx.helper.make_node("Constant", [], ["yes"], value=yes))
    branching.graph.node.append(
        onnx.helper.make_node("If", ["yes"], ["y"], then_branch=body, else_branch=body)
    )
    made = [
        model(pool, *picture, {"w": np.ones((1, 1, 3, 3), np.float32)}),
        model(reshape, *flat, {"w": np.ones((2, 3), np.float32), "s": np.array([6])}),
        chained(3, twice),
        branching,
    ]
    sparse = made[0].graph.sparse_initializer.add(dims=[4, 4])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.ones(1, np.float32), "v"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.zeros(1, np.int64), "i"))
    FILES[:] = [each.SerializeToString() for each in made]
    for each in FILES:
        runner(each)


def opened(data: bytes) -> str:
    try:
        runner(data)
    except (ValueError, NotImplementedError) as error:
        return str(error)
    return "opened"


@fuzzed(quick=60, sweep=5000)
@given(st.integers(0, 3).flatmap(lambda number: changed(FILES[number])))
def test_onnx_files(data):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with in_time():
        assert opened(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_GROWTH

"""`Loop` and `Scan` that never run their body: what they gather has no elements, and the right shape."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import needs, require
from tests.nn.onnx.test_runner import model, runner

pytestmark = needs("onnx")

#: What a body computes of `s`, and what the file says of the shapes of `s` and of that.
BODIES = {
    "said": ([("Add", "s s", "part", {})], [2, 3], [2, 3], (0, 2, 3)),
    "not said": ([("Add", "s s", "part", {})], None, None, (0, 2, 3)),
    "of the state": ([("ReduceMax", "s", "part", {"keepdims": 0})], None, None, (0,)),
    "said in part": ([("Transpose", "s", "part", {})], ["a", "b"], ["b", "a"], (0, 3, 2)),
    "of a row": ([("Gather", "s i", "part", {})], None, [3], (0, 3)),
}


def looping(nodes, shape, result):
    body = model(
        [*nodes, ("Identity", "c", "go", {}), ("Identity", "s", "state", {})],
        {"i": ("INT64", []), "c": ("BOOL", []), "s": ("FLOAT", shape)},
        {"go": ("BOOL", []), "state": ("FLOAT", shape), "part": ("FLOAT", result)},
    ).graph
    nodes = [("Loop", "n c x", "last parts", {"body": body})]
    inputs = {"n": ("INT64", []), "c": ("BOOL", []), "x": ("FLOAT", None)}
    return model(nodes, inputs, {"last": ("FLOAT", None), "parts": ("FLOAT", None)})


@pytest.mark.parametrize("name", BODIES)
def test_a_loop_of_no_turns_gathers_nothing_of_a_shape(name):
    *body, expected = BODIES[name]
    run, x = runner(looping(*body)), np.ones((2, 3), np.float32)
    for _ in range(3):
        found = run(n=0, c=True, x=x)
        assert (found["last"].shape, found["parts"].shape) == ((2, 3), expected)
        assert run(n=2, c=True, x=x)["parts"].shape == (2, *expected[1:])


def test_a_loop_over_no_rows():
    nodes, shape, result, _ = BODIES["of a row"]
    run = runner(looping(nodes, shape, result))
    assert run(n=0, c=True, x=np.ones((0, 3), np.float32))["parts"].shape == (0, 3)


def test_shapes_of_a_loop_of_no_turns_are_those_of_onnxruntime():
    ort = require("onnxruntime")
    x = np.ones((2, 3), np.float32)
    for name in ("said", "not said", "of a row"):
        *body, _ = BODIES[name]
        made = looping(body[0], body[1] or [2, 3], body[2])
        made.ir_version = 8
        session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        given = {"n": np.array(0), "c": np.array(True), "x": x}
        expected = [each.shape for each in session.run(None, given)]
        assert [each.shape for each in runner(made)(given).values()] == expected


@pytest.mark.parametrize(("axis", "expected"), [(0, (0, 3)), (1, (3, 0)), (-1, (3, 0))])
@pytest.mark.parametrize("said", [[3], None])
def test_a_scan_of_nothing(axis, expected, said):
    body = model(
        [("Add", "s p", "state", {}), ("Mul", "p p", "part", {})],
        {"s": ("FLOAT", said), "p": ("FLOAT", said)},
        {"state": ("FLOAT", said), "part": ("FLOAT", said)},
    ).graph
    attributes = {"body": body, "num_scan_inputs": 1, "scan_output_axes": [axis]}
    made = model(
        [("Scan", "s x", "last parts", attributes)],
        {"s": ("FLOAT", [3]), "x": ("FLOAT", ["n", 3])},
        {"last": ("FLOAT", None), "parts": ("FLOAT", None)},
    )
    found = runner(made)(s=[1.0, 2.0, 3.0], x=np.ones((0, 3), np.float32))
    assert found["last"].tolist() == [1.0, 2.0, 3.0]
    assert found["parts"].shape == expected

"""Models as people have them, beside onnxruntime: plainly, captured, and replayed."""

from __future__ import annotations

import numpy as np
import pytest

from bench.onnx_models import MODELS, Model
from tests.helpers import needs, require

pytestmark = needs("onnx", "onnxruntime")


def driver_of(model: Model) -> str:
    """Packages are required by the names that pip has for them."""
    return model.package.replace("_", "-")


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [pytest.param(model, id=model.name, marks=needs(driver_of(model))) for model in MODELS]
)
def test_a_model_gives_what_onnxruntime_gives(model):
    from lazygrad.nn.onnx import OnnxRunner

    path = model.path()
    options = require("onnxruntime").SessionOptions()
    options.log_severity_level = 3
    session = require("onnxruntime").InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = model.inputs()
    expected = session.run(None, inputs)
    run = OnnxRunner(path)
    for _ in range(4):
        results = run(inputs)
        for result, wanted in zip(results.values(), expected, strict=True):
            np.testing.assert_allclose(result.numpy(), wanted, atol=1e-3)
    captures = [
        c
        for part in run._segments[frozenset()].segments
        if hasattr(part, "_captures")
        for c in part._captures.values()
    ]
    assert captures
    if (
        model.name != "speech, 40 phonemes"
    ):  # whose length the data decide: some of its parts move memory only
        assert all(captured._jit is not None and captured._jit.captured is not None for captured in captures)


@needs("silero-vad")
def test_state_goes_from_call_to_call():
    """silero keeps a state: 20 pieces of sound one after the other."""
    from lazygrad.nn.onnx import OnnxRunner

    model = next(model for model in MODELS if model.name == "silero")
    path = model.path()
    session = require("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    run = OnnxRunner(path)
    ours = theirs = model.inputs()
    for number in range(20):
        sound = np.sin(np.arange(576, dtype=np.float32) * (0.01 + 0.02 * number)).reshape(1, -1)
        out = run({**ours, "input": sound})
        expected, state = session.run(None, {**theirs, "input": sound})
        np.testing.assert_allclose(out["output"].numpy(), expected, atol=1e-4)
        ours, theirs = {**ours, "state": out["stateN"]}, {**theirs, "state": state}

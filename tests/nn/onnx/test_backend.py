"""The format's own cases, which the `onnx` package brings: each numeric one is equal, or has a reason."""

from __future__ import annotations

import pytest

from tests.helpers import needs
from tests.nn.onnx import backend

pytestmark = needs("onnx")

#: What the small models need that is no operation on numbers.
NO_NUMBERS = {"StringNormalizer", "ai.onnx.preview.training.Gradient"}


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator"])
def test_small_models(kind):
    failed, _, _ = backend.failures(backend.file_cases(kind))
    failed = {name: why for name, why in failed.items() if why.split()[-1] not in NO_NUMBERS}
    assert not failed


@pytest.mark.slow
def test_models_converted_from_pytorch():
    failed, _, _ = backend.failures(backend.file_cases("pytorch-converted"))
    assert not failed


@pytest.mark.slow
def test_every_operation():
    """At least 98 % of the numeric cases are equal; the others are those of the table, no more, no less."""
    cases = (case for case in backend.node_cases() if backend.is_numeric(case))
    failed, all_of, good = backend.failures(cases)
    assert failed.keys() - backend.KNOWN.keys() == set(), failed
    assert backend.KNOWN.keys() - failed.keys() == set(), "these are equal by now: take them off the table"
    assert good.total() >= 0.98 * all_of.total()


@pytest.mark.slow
def test_operations_written_as_others():
    failed, _, _ = backend.failures(backend.node_cases(expanded=True))
    failed = {
        name: why for name, why in failed.items() if name.removesuffix("_expanded") not in backend.KNOWN
    }
    assert not {name: why for name, why in failed.items() if not name.startswith("test_training_dropout")}

"""The tables of docs/devices.md are what programs on every device say: each cell is a test (or several, one
for each family of operations), of which a share runs by default.
"""

from __future__ import annotations

from typing import Any

import pytest

from lazygrad.codegen.opt import OptOps
from tests.codegen.kernels import opened
from tests.helpers import needs
from tests.tensor.test_generated_docs import writer

from .every_device import (
    ASKED,
    DEVICES,
    DTYPES,
    FAMILIES,
    FEATURES,
    has,
    is_right,
    multiplies_by_dots,
    on,
    takes,
)


def on_each() -> list[Any]:
    marks = {name: [needs(*drivers)] if drivers else [] for name, drivers in DEVICES.items()}
    return [pytest.param(name, marks=own) for name, own in marks.items()]


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str], str]:
    devices = writer("devices")
    return devices.written(devices.PAGE.read_text("utf-8"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", on_each())
def test_a_type(device: str, dtype: str, family: str, cells: dict[tuple[str, str], str]) -> None:
    said = cells[dtype, device]
    with on(device):
        assert is_right(device, family, dtype) == (said == "yes" or family in said.split(", "))


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("device", on_each())
def test_a_feature(device: str, feature: str, cells: dict[tuple[str, str], str]) -> None:
    with on(device):
        assert has(device, feature) == (cells[feature, device] == "yes")


@pytest.mark.parametrize("device", on_each())
def test_what_is_asked(device: str, cells: dict[tuple[str, str], str]) -> None:
    with on(device):
        for question, answer in ASKED.items():
            assert answer(device) == (cells[question, device] == "yes")


@pytest.mark.parametrize("op", OptOps, ids=lambda op: op.name)
@pytest.mark.parametrize("device", on_each())
def test_an_optimization(device: str, op: OptOps, cells: dict[tuple[str, str], str]) -> None:
    with on(device):
        if op is OptOps.TC and multiplies_by_dots(device):
            assert cells[op.name, device] == "if the processor has it"
            assert takes(device, op) == bool(opened(device).target.dots)
        else:
            assert takes(device, op) == (cells[op.name, device] == "yes")


def test_every_cell_is_there(cells: dict[tuple[str, str], str]) -> None:
    """And no other: each is tested."""
    rows = [*DTYPES, *FEATURES, *(op.name for op in OptOps), *ASKED]
    assert sorted(cells) == sorted((row, name) for row in rows for name in DEVICES)

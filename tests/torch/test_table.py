"""The table of ATen operations: what of the core set has a row."""

from __future__ import annotations

import pytest

from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = needs("torch")

#: Of the core set: complex numbers, results whose sizes depend on values, sums in bags.
NONE_OF = {"_embedding_bag", "_fft_c2r", "_fft_r2c", "_local_scalar_dense", "nonzero"}
#: What is said of a tensor's size is Python's, and what was in place is a result by now.
NO_VALUES = ("sym_", "_native_batch_norm_legit.default")


def core() -> list[object]:
    found = []
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            op = getattr(packet, overload)
            if torch.Tag.core in op.tags and not op._schema.is_mutable:
                found.append(op)
    return found


def test_the_core_set_has_rows():
    names = [(str(op).removeprefix("aten."), op) for op in core()]
    lacking = {
        name.split(".")[0]
        for name, op in names
        if not name.startswith(NO_VALUES) and not door.table.row_of(op)
    }
    assert lacking == NONE_OF
    assert len(names) > 180


def test_what_has_a_row_is_not_decomposed():
    assert torch.ops.aten.native_layer_norm.default not in door.dynamo.decompositions()
    assert torch.ops.aten.silu.default in door.dynamo.decompositions()


def test_a_name_has_one_row():
    with pytest.raises(ValueError, match=r"the table has two rows of add"):
        door.table.aten("add")(lambda x: x)

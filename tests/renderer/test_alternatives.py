"""A branch with the opposite condition of the one before it is its `else`."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Device


@pytest.mark.choice
@pytest.mark.parametrize("index", [[0, 2, 2, -1], [0, 5, 2, -1]], ids=["in range", "out of range"])
def test_a_failed_check_is_the_other_branch_of_a_scatter(index):
    added = Tensor.zeros(4).scatter_add(0, Tensor(index).realize(), Tensor([1.0, 2.0, 3.0, 4.0]).realize())
    kernel = added.schedule()[-1]
    text = compile_kernel(kernel.ast, Device["CPU"].renderer).src
    assert text.count("br i1 ") == 2  # of the condition, and of the loop
    assert "label %if0, label %if0.else" in text
    if 5 in index:
        with pytest.raises(IndexError, match="5"):
            added.tolist()
    else:
        assert added.tolist() == [1, 0, 5, 4]

"""`get_rng_state` and its kin."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, functional


def test_the_state_is_kept_and_gone_back_to() -> None:
    functional.manual_seed(5)
    assert functional.initial_seed() == 5
    Tensor.rand(3).realize()
    state = functional.get_rng_state()
    first = functional.rand(4).tolist()
    functional.set_rng_state(state)
    assert functional.rand(4).tolist() == first
    with pytest.raises(ValueError, match=r"what get_rng_state gave, two numbers, not shape \(3,\)"):
        functional.set_rng_state(Tensor([1, 2, 3]))

"""Where the random numbers of the process stand, under PyTorch's names."""

from __future__ import annotations

from ..tensor import Tensor
from ..tensor.random.sampling import get_state, set_state


def get_rng_state() -> Tensor:
    """Where the random numbers stand: what `set_rng_state` takes, and files keep.

    >>> state = functional.get_rng_state()
    >>> first = Tensor.rand(3).tolist()
    >>> functional.set_rng_state(state)
    >>> Tensor.rand(3).tolist() == first
    True
    """
    return Tensor(list(get_state()), dtype="int64", device="CPU").realize()


def set_rng_state(new_state: Tensor) -> None:
    """Let random numbers go on from where `get_rng_state` was called."""
    if not isinstance(new_state, Tensor) or new_state.shape != (2,):
        found = f"shape {new_state.shape}" if isinstance(new_state, Tensor) else repr(new_state)
        raise ValueError(f"set_rng_state takes what get_rng_state gave, two numbers, not {found}")
    seed, drawn = new_state.tolist()
    set_state((int(seed), int(drawn)))


def initial_seed() -> int:
    """The seed that the random numbers began with, in 32 bits.

    >>> Tensor.manual_seed(7)
    >>> functional.initial_seed()
    7
    """
    return get_state()[0]

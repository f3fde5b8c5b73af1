"""Streams of random numbers as objects: `Generator`.

A generator is a key and a counter in memory: number i of the stream is Threefry of both (sampling.py), so it
does not depend on where, when or in how many pieces numbers are drawn. A draw writes the counter as any
tensor is written, which is why a captured function goes on where it was, and a file of weights can hold it.
"""

from __future__ import annotations

import os
from typing import Self

from ...device import Devices
from ...dtype import dtypes
from ...ir.uop import UOp
from ...locks import lock_across_fork
from ...shape.movement import reshape
from ..face import Tensor
from ..modes import mode
from ..observer import observing
from .sampling import BASE_LIMIT, words

_drawing = lock_across_fork()
_WORD = (1 << 64) - 1


class Generator:
    """A stream of random numbers of its own, for `generator=` of random functions and of `nn.init`.

    seed    another seed is another stream; one from the operating system if not given. A seed below 2**32
            gives the numbers that `Tensor.manual_seed(seed)` gives
    device  where key and counter lie; numbers may be drawn on any

    Within `with generator:` whatever draws and is given no generator draws from it: layers that are made, for
    example. It moves by as many numbers as are drawn, also where a jit replays what it has captured. It has
    the tensors `key` and `counter`: `nn.state` and `nn.TrainingState` find them.

    >>> generator = lazygrad.Generator(42)
    >>> first = Tensor.rand(3, generator=generator).tolist()
    >>> Tensor.rand(3, generator=generator.manual_seed(42)).tolist() == first
    True
    """

    def __init__(self, seed: int | None = None, device: Devices | None = None) -> None:
        self.key = Tensor.empty(1, dtype=dtypes.uint64, device=device)
        self.counter = Tensor.empty(1, dtype=dtypes.uint64, device=device)
        self._seed: int | None = None
        self.manual_seed(_fresh_seed() if seed is None else seed)

    def manual_seed(self, seed: int) -> Self:
        """Begin the stream that belongs to a seed; returns the generator."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"a seed must be an int, not {seed!r}")
        self._write(seed & _WORD, 0)
        self._seed = seed
        return self

    def seed(self) -> int:
        """Begin a stream that nobody can guess, and return its seed."""
        seed = _fresh_seed()
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the stream began with; of a part that `split` gave, its key."""
        return int(self.key.item()) if self._seed is None else self._seed

    def get_state(self) -> Tensor:
        """Where the stream is: its key and how many numbers were drawn, as a tensor of two uint64."""
        return self.key.detach().cat(self.counter.detach()).contiguous().realize()

    def set_state(self, state: Tensor) -> Self:
        """Go on from where a stream was that gave this state; returns the generator."""
        if not isinstance(state, Tensor) or state.dtype is not dtypes.uint64 or state.shape != (2,):
            raise TypeError("a generator's state is what get_state gives: a tensor of two uint64")
        key, counter = state.tolist()
        if counter >= BASE_LIMIT:
            raise ValueError(f"not a state of a generator: {counter} numbers are more than it has")
        self._write(key, counter)
        self._seed = None
        return self

    def split(self, num: int = 2) -> list[Generator]:
        """So many generators, whose streams have nothing to do with each other or with this one.

        Their keys are drawn from this stream, which moves on: two calls give different ones.

        >>> one, other = lazygrad.Generator(0).split()
        >>> Tensor.rand(2, generator=one).tolist() == Tensor.rand(2, generator=other).tolist()
        False
        """
        if isinstance(num, bool) or not isinstance(num, int) or num < 1:
            raise ValueError(f"a generator is split into a number of generators, at least 1, not {num!r}")
        place = self.key.device
        high, low = (Tensor._make(word).cast(dtypes.uint64) for word in words(num, place, self))
        keys = (high * (1 << 32)) + low
        made = [Generator(0, place) for _ in range(num)]
        for i, generator in enumerate(made):
            generator.key.assign(keys[i : i + 1])
            generator._seed = None
        return made

    def _write(self, key: int, counter: int) -> None:
        place = self.key.device
        self.key.assign(Tensor([key], dtype=dtypes.uint64, device=place))
        self.counter.assign(Tensor([counter], dtype=dtypes.uint64, device=place))

    def take(self, total: int, device: Devices) -> tuple[UOp, UOp]:
        """The key, and the number of the next of `total` numbers, as nodes of a uint64 on a device."""
        with _drawing:
            if observing.by is None and not self.counter.is_realized:
                # Nobody asked for the last write. Done now, a long loop makes no endless graph.
                Tensor.realize(self.key, self.counter)
            key, start = (reshape(t.detach()._on(device).uop, ()) for t in (self.key, self.counter))
            self.counter.assign(self.counter + total)
        return key, start

    def __enter__(self) -> Self:
        mode.generators = (*mode.generators, self)
        return self

    def __exit__(self, *exc: object) -> None:
        mode.generators = mode.generators[:-1]

    def __repr__(self) -> str:
        seed = "split from another" if self._seed is None else f"seed {self._seed}"
        return f"<Generator of {seed} on {self.key.device}>"


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")

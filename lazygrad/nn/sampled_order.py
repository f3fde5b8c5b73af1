"""The order that a sampler says: for a `DataLoader` that is given one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class SampledOrder:
    """Batches of the numbers that a sampler gives, in each epoch those of a new walk through it.

    sampler     numbers of examples, or, where `batch_size` is None, lists of them: the batches

    A run that goes on skips as many numbers as were given out: it is the same run, where the sampler gives
    the same numbers again.
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int | None, drop_last: bool) -> None:
        if not hasattr(sampler, "__iter__") or isinstance(sampler, Iterator):
            raise TypeError(
                f"a sampler is iterated anew in each epoch, which a {type(sampler).__name__} cannot be"
            )
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last
        self.epoch = self.position = 0

    def __len__(self) -> int:
        length: int = len(self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """What is left of this epoch: an array of numbers for each batch."""
        import numpy as np

        skipped = 0
        for batch in self._batches():
            if skipped < self.position:
                skipped += len(batch)
            else:
                yield np.asarray([int(number) for number in batch], np.int64)

    def _batches(self) -> Iterator[list[Any]]:
        numbers = iter(self.sampler)
        if self.batch_size is None:
            yield from map(list, numbers)
            return
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another order of the same sampler was."""
        self.epoch, self.position = int(state_dict["epoch"]), int(state_dict["position"])

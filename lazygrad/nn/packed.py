"""Sequences of different lengths without the padding: the steps of all of them, one time after another.

`nn.utils.rnn` has these names. What is where follows from the lengths, which are known on the host: packing
and padding are look-ups of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..shape import shape_text, vmax
from ..tensor import Tensor
from ..tensor.indexing.addresses import trusted


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences from the longest to the shortest: all first elements, then all second ones, ...

    data              (steps of all sequences, *)
    batch_sizes       at each time, how many sequences are that long
    sorted_indices    which of the sequences that were packed each is; None: they were in this order
    unsorted_indices  the inverse of that

    `pack_sequence` and `pack_padded_sequence` make it, `nn.RNN`, `nn.GRU` and `nn.LSTM` take it and give it.
    `to`, `float`, `half` and the other casts are those of `data`.
    """

    _order: Order | None = None

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (tuple, list)) and len(data) == 2):
                raise TypeError(
                    "PackedSequence takes data and batch_sizes; pack_sequence makes one of sequences"
                )
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def order(self) -> Order:
        """Lengths and places, read once."""
        if self._order is None:
            given = None if self.sorted_indices is None else self.sorted_indices.tolist()
            self._order = Order.of_sizes(self.batch_sizes.tolist(), given)
        return self._order

    def of(self, data: Tensor) -> PackedSequence:
        """Other data of the same lengths."""
        made = PackedSequence(data, *self[1:])
        made._order = self.order
        return made

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.of(self.data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        return self.of(self.data.cpu())

    def cuda(self) -> PackedSequence:
        return self.of(self.data.cuda())

    def double(self) -> PackedSequence:
        return self.of(self.data.double())

    def float(self) -> PackedSequence:
        return self.of(self.data.float())

    def half(self) -> PackedSequence:
        return self.of(self.data.half())

    def long(self) -> PackedSequence:
        return self.of(self.data.long())

    def int(self) -> PackedSequence:
        return self.of(self.data.int())


class Order(NamedTuple):
    """Where the steps of packed sequences are.

    lengths  of the sequences, as they were packed
    ranks    the place of each sequence among them from the longest on
    sizes    at each time, how many sequences are that long
    """

    lengths: list[int]
    ranks: list[int]
    sizes: list[int]

    @staticmethod
    def of_lengths(lengths: Sequence[int], given: bool) -> Order:
        """Of sequences of these lengths; `given`: they are from the longest on already."""
        order = list(range(len(lengths)))
        if not given:
            order.sort(key=lambda number: -lengths[number])
        ranks = sorted(order, key=order.__getitem__)
        return Order(list(lengths), ranks, [sum(n > time for n in lengths) for time in range(max(lengths))])

    @staticmethod
    def of_sizes(sizes: Sequence[int], order: Sequence[int] | None) -> Order:
        ranks = list(range(sizes[0]))
        if order is not None:
            ranks.sort(key=order.__getitem__)
        return Order([sum(size > rank for size in sizes) for rank in ranks], ranks, list(sizes))

    def sequences(self) -> list[int]:
        """The number of the sequence of each rank."""
        return sorted(range(len(self.ranks)), key=self.ranks.__getitem__)

    def packed(self, padded: Tensor, batch_first: bool) -> Tensor:
        """The steps of (time, batch, *), or (batch, time, *)."""
        rows, of_rank = padded.flatten(0, 1), self.sequences()
        first, second = map(vmax, padded.shape[:2])
        times, batch = (second, first) if batch_first else (first, second)
        places = [
            of_rank[rank] * times + time if batch_first else time * batch + of_rank[rank]
            for time, size in enumerate(self.sizes)
            for rank in range(size)
        ]
        return _rows(rows, places)

    def padded(self, data: Tensor, length: int) -> Tensor:
        """(time, batch, *); what is behind the sequences is any of their steps."""
        begins = [0]
        for size in self.sizes:
            begins.append(begins[-1] + size)
        places = [
            begins[time] + rank if time < own else 0
            for time in range(length)
            for rank, own in zip(self.ranks, self.lengths, strict=True)
        ]
        return _rows(data, places).unflatten(0, (length, len(self.lengths)))

    def inside(self, length: int, like: Tensor) -> Tensor:
        """(time, batch): whether the sequence is that long."""
        ends = Tensor(self.lengths, dtype=dtypes.int32, device=like.device)
        return Tensor.arange(length, dtype=dtypes.int32, device=like.device).unsqueeze(1) < ends


def _rows(data: Tensor, places: list[int]) -> Tensor:
    with trusted():  # they are counted here
        return data[Tensor(places, dtype=dtypes.int32, device=data.device)]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The places of 0, 1, 2, ... in a permutation of them; None of None.

    >>> nn.utils.rnn.invert_permutation(Tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else permutation.argsort().cast(permutation.dtype)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The first `lengths[i]` steps of each sequence i, packed. The lengths are read.

    input           (time, batch, *), or (batch, time, *) with `batch_first`
    enforce_sorted  sequences are given from the longest to the shortest; else they are sorted

    >>> packed = nn.utils.rnn.pack_padded_sequence(Tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    known = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if input.ndim < 2:
        raise ValueError(f"pack_padded_sequence takes (time, batch, *), not shape {shape_text(input.shape)}")
    times, batch = (vmax(input.shape[1 if batch_first else 0]), vmax(input.shape[0 if batch_first else 1]))
    if len(known) != batch or not known:
        raise ValueError(f"pack_padded_sequence: {len(known)} lengths for a batch of {batch}")
    if min(known) < 1 or max(known) > times:
        wrong = next(n for n in known if not 1 <= n <= times)
        raise ValueError(f"pack_padded_sequence: lengths are from 1 to {times}, the time axis, not {wrong}")
    if enforce_sorted and any(a < b for a, b in pairwise(known)):
        raise ValueError(
            f"pack_padded_sequence: lengths {known} are not in falling order; pass "
            "enforce_sorted=False, which sorts the sequences"
        )
    order = Order.of_lengths(known, enforce_sorted)
    sizes = Tensor(order.sizes, dtype=dtypes.int64)
    data = order.packed(input, batch_first)
    made = PackedSequence(data, sizes)
    if not enforce_sorted:
        way, back = (
            Tensor(w, dtype=dtypes.int64, device=input.device) for w in (order.sequences(), order.ranks)
        )
        made = PackedSequence(data, sizes, way, back)
    made._order = order
    return made


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(the sequences as they were before they were packed, their lengths).

    The first is (time, batch, *), or (batch, time, *) with `batch_first`.

    padding_value  what is behind the shorter ones
    total_length   how long the axis of time is made; if not given as the longest sequence

    >>> packed = nn.utils.rnn.pack_sequence([Tensor([1]), Tensor([2, 3])], enforce_sorted=False)
    >>> [t.tolist() for t in nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)]
    [[[1, 0], [2, 3]], [1, 2]]
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"pad_packed_sequence takes a PackedSequence, not {type(sequence).__name__}")
    order = sequence.order
    length = len(order.sizes) if total_length is None else total_length
    if length < len(order.sizes):
        raise ValueError(
            f"pad_packed_sequence: total_length is {total_length}, the longest sequence {len(order.sizes)}"
        )
    made = order.padded(sequence.data, length)
    inside = order.inside(length, made)
    made = inside.reshape(*inside.shape, *(1,) * (made.ndim - 2)).where(made, padding_value)
    return made.transpose(0, 1) if batch_first else made, Tensor(order.lengths, dtype=dtypes.int64)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` was given.

    >>> packed = nn.utils.rnn.pack_sequence([Tensor([1, 2]), Tensor([3])])
    >>> [t.tolist() for t in nn.utils.rnn.unpack_sequence(packed)]
    [[1, 2], [3]]
    """
    padded, _ = pad_packed_sequence(packed_sequences, batch_first=True)
    return [padded[number, :length] for number, length in enumerate(packed_sequences.order.lengths)]

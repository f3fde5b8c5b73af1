"""Sequences of different lengths in one tensor: padded, or packed without padding; and back."""

from __future__ import annotations

from collections.abc import Sequence

from ...shape import shape_text, vmax
from ...tensor import Tensor
from ..packed import PackedSequence as PackedSequence
from ..packed import invert_permutation as invert_permutation
from ..packed import pack_padded_sequence as pack_padded_sequence
from ..packed import pad_packed_sequence as pad_packed_sequence
from ..packed import unpack_sequence as unpack_sequence


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, *) as one tensor (longest, batch, *), or (batch, longest, *) with `batch_first`.

    padding_side  where `padding_value` stands in the shorter ones: "right", behind, or "left", before

    >>> nn.utils.rnn.pad_sequence([Tensor([1, 2]), Tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    several = list(sequences)
    if not several:
        raise ValueError("pad_sequence takes one sequence at least")
    if padding_side not in ("right", "left"):
        raise ValueError(f"padding_side must be 'right' or 'left', not {padding_side!r}")
    for number, each in enumerate(several):
        if not isinstance(each, Tensor) or each.ndim < 1 or each.shape[1:] != several[0].shape[1:]:
            found = shape_text(each.shape) if isinstance(each, Tensor) else repr(each)
            raise ValueError(
                f"pad_sequence takes tensors that differ in their first axis alone; number 0 has shape "
                f"{shape_text(several[0].shape)}, number {number} {found}"
            )
    longest = max(vmax(each.shape[0]) for each in several)
    padded = []
    for each in several:
        free = longest - vmax(each.shape[0])
        around = (free, 0) if padding_side == "left" else (0, free)
        padded.append(each.pad((0, 0) * (each.ndim - 1) + around, value=padding_value))
    return padded[0].stack(*padded[1:], dim=0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` was given, from their lengths, which are read.

    >>> [t.tolist() for t in nn.utils.rnn.unpad_sequence(Tensor([[1, 3], [2, 0]]), Tensor([2, 1]))]
    [[1, 2], [3]]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    known = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(known) != rows.shape[0]:
        raise ValueError(f"unpad_sequence: {len(known)} lengths for a batch of {rows.shape[0]}")
    return [rows[number, :length] for number, length in enumerate(known)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (length, *) packed, the longest first; see `pack_padded_sequence`.

    >>> nn.utils.rnn.pack_sequence([Tensor([1, 2]), Tensor([3])]).data.tolist()
    [1, 3, 2]
    """
    several = list(sequences)
    padded = pad_sequence(several)
    return pack_padded_sequence(padded, [vmax(each.shape[0]) for each in several], False, enforce_sorted)

"""Sequences: lists of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tensor import Tensor
from ..execution import Body, Run
from ..table import op
from ..values import Value, ints, scalar, shape_of, tensor_of


@op("SequenceConstruct", raw=True)
def sequence_construct(*values: Value) -> Any:
    return [*values]


@op("SequenceEmpty", raw=True)
def sequence_empty(*, dtype: int = 1) -> Any:
    return []


def _index(position: Value, run: Run, size: int) -> int:
    place = int(scalar(run.on_host(position, run.input_name(1))))
    return place + size if place < 0 else place


@op("SequenceAt", raw=True)
def sequence_at(sequence: Value, position: Value, *, run: Run) -> Any:
    place = _index(position, run, len(sequence))
    if not 0 <= place < len(sequence):
        raise IndexError(f"place {place} of a sequence of {len(sequence)}")
    return sequence[place]


@op("SequenceInsert", raw=True)
def sequence_insert(sequence: Value, value: Value, position: Value = None, *, run: Run) -> Any:
    place = len(sequence) if position is None else int(scalar(run.on_host(position, run.input_name(2))))
    place = place + len(sequence) if place < 0 else place
    return [*sequence[:place], value, *sequence[place:]]


@op("SequenceErase", raw=True)
def sequence_erase(sequence: Value, position: Value = None, *, run: Run) -> Any:
    place = len(sequence) - 1 if position is None else _index(position, run, len(sequence))
    return [*sequence[:place], *sequence[place + 1 :]]


@op("SequenceLength", raw=True)
def sequence_length(sequence: Value) -> Any:
    return np.array(len(sequence), np.int64)


@op("SplitToSequence", raw=True)
def split_to_sequence(x: Value, split: Value = None, *, axis: int = 0, keepdims: int = 1, run: Run) -> Any:
    """Parts of these sizes (one number: each so large), or single slices, whose axis may be dropped."""
    size = shape_of(x)[axis]
    if split is None:
        sizes = [1] * size
    else:
        given = run.on_host(split, run.input_name(1))
        sizes = ints(given)
        if given.ndim == 0:
            sizes = [min(sizes[0], size - begin) for begin in range(0, size, sizes[0])]
    if isinstance(x, np.ndarray):
        chunks: list[Any] = np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []
        return [np.squeeze(part, axis) for part in chunks] if split is None and not keepdims else [*chunks]
    cut = list(x.split(sizes, axis))
    return [part.squeeze(axis) for part in cut] if split is None and not keepdims else cut


@op("ConcatFromSequence", raw=True)
def concat_from_sequence(sequence: Value, *, axis: int, new_axis: int = 0) -> Any:
    if not sequence:
        raise ValueError("an empty sequence has nothing to concatenate")
    if all(isinstance(value, np.ndarray) for value in sequence):
        return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)
    tensors = [tensor_of(value) for value in sequence]
    if new_axis:
        return Tensor.stack(*tensors, dim=axis % (tensors[0].ndim + 1))
    return tensors[0].cat(*tensors[1:], dim=axis) if len(tensors) > 1 else tensors[0]


@op("SequenceMap", raw=True)
def sequence_map(sequence: Value, *others: Value, body: Body, run: Run) -> Any:
    """The body of each value; what is no sequence is given to every call."""
    rows = []
    for number, value in enumerate(sequence):
        rows.append(body(value, *(other[number] if isinstance(other, list) else other for other in others)))
    return tuple(
        [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in body.graph.outputs]
    )

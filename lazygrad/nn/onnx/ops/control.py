"""`If`, `Loop` and `Scan`: graphs inside of a node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ....tensor import Tensor
from ..execution import Body, Run
from ..table import op
from ..values import Array, Value, elem_type_of, numpy_dtype, scalar, shape_of, tensor_of


@op("If", raw=True)
def if_(cond: Value, *, then_branch: Body, else_branch: Body, run: Run) -> Any:
    """The branch that the condition chooses; the other one is not run."""
    return tuple((then_branch if run.on_host(cond, run.input_name(0)).reshape(-1)[0] else else_branch)())


@op("Loop", raw=True)
def loop(trip_count: Value = None, cond: Value = None, *carried: Value, body: Body, run: Run) -> Any:
    """The body, called (turn, condition, *carried) → (condition, *carried, *gathered), until one of both
    ends it.
    """
    count = None if trip_count is None else scalar(run.on_host(trip_count, run.input_name(0)))
    if count is None and cond is None:
        raise ValueError("the loop has neither a number of iterations nor a condition: it would never end")
    # The body's own condition counts only where the loop has one.
    go = True if cond is None else bool(scalar(run.on_host(cond, run.input_name(1))))
    state = list(carried)
    gathered: list[list[Value]] = [[] for _ in body.graph.outputs[1 + len(state) :]]
    turn = 0
    while go and (count is None or turn < count):
        results = body(np.array(turn, np.int64), np.array(True), *state)
        state = results[1 : 1 + len(state)]
        for line, value in zip(gathered, results[1 + len(state) :], strict=True):
            line.append(value)
        turn += 1
        if cond is not None:
            go = bool(scalar(run.on_host(results[0])))
    if not turn:
        return *state, *_of_no_iterations(
            body, [np.array(0, np.int64), np.array(True), *state], [0] * len(gathered)
        )
    return *state, *(_stacked(line, 0) for line in gathered)


def _of_no_iterations(body: Body, values: list[Value], axes: list[int]) -> list[Value]:
    """What is gathered, along these axes, when the body is never run: no elements, of the shape that the file
    says, or else that the body would give for these values. Nothing is computed for that.
    """
    first = len(body.graph.outputs) - len(axes)
    said, found = body.graph.results[first:], list[Value]()
    if None in said:
        try:
            found = body.alone()(*values)[first:]
        except Exception:  # there is nothing to take a part of, or a value is needed that is not known yet
            found = []
    return [_empty(kind, value, axis) for kind, value, axis in zip_longest(said, found, axes)]


def _empty(said: tuple[int, tuple[int, ...]] | None, value: Value, axis: int) -> Array:
    """A size of 0 at an axis of what a file says, else of what such a value is; else one line of nothing."""
    if said is not None:
        kind, shape = said
        dtype = numpy_dtype(kind)
    elif isinstance(value, (Tensor, np.ndarray)):
        shape, dtype = shape_of(value), numpy_dtype(elem_type_of(value))
    else:
        shape, dtype = (), np.dtype(np.float32)
    place = axis % (len(shape) + 1)
    return np.zeros((*shape[:place], 0, *shape[place:]), dtype)


def _stacked(values: list[Value], axis: int) -> Value:
    if all(isinstance(value, np.ndarray) for value in values):
        return np.stack(values, axis)
    tensors = [tensor_of(value) for value in values]
    return Tensor.stack(*tensors, dim=axis % (tensors[0].ndim + 1))


@op("Scan", raw=True, since=9)
def scan(
    *values: Value,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Any = None,
    scan_input_directions: Any = None,
    scan_output_axes: Any = None,
    scan_output_directions: Any = None,
    run: Run,
) -> Any:
    """The body for each place along an axis of the scanned inputs, called (*state, *parts) → (*state,
    *parts).
    """
    state = list(values[: len(values) - num_scan_inputs])
    scanned = [run.weights.tensor(value) for value in values[len(state) :]]
    axes = scan_input_axes or [0] * num_scan_inputs
    backwards = scan_input_directions or [0] * num_scan_inputs
    lines = []
    for tensor, axis, back in zip(scanned, axes, backwards, strict=True):
        parts = [tensor.select(axis % tensor.ndim, place) for place in range(tensor.shape[axis])]
        lines.append(parts[::-1] if back else parts)
    count = len(body.graph.outputs) - len(state)
    gathered: list[list[Value]] = [[] for _ in range(count)]
    for now in zip(*lines, strict=True):
        results = body(*state, *now)
        state = results[: len(state)]
        for line, value in zip(gathered, results[len(state) :], strict=True):
            line.append(value)
    out_axes = scan_output_axes or [0] * count
    if 0 in map(len, lines):
        parts = [
            Tensor.zeros(*_without(t.shape, axis), dtype=t.dtype)
            for t, axis in zip(scanned, axes, strict=True)
        ]
        return *state, *_of_no_iterations(body, [*state, *parts], list(out_axes))
    out_backwards = scan_output_directions or [0] * count
    outputs = []
    for line, axis, back in zip(gathered, out_axes, out_backwards, strict=True):
        outputs.append(_stacked(line[::-1] if back else line, axis))
    return *state, *outputs


def _without(shape: Sequence[Any], axis: int) -> tuple[Any, ...]:
    """A shape without an axis."""
    place = axis % len(shape)
    return (*shape[:place], *shape[place + 1 :])


@op("Scan", raw=True, since=8)
def scan_of_batches(
    sequence_lens: Value, *values: Value, body: Body, num_scan_inputs: int, directions: Any = None, run: Run
) -> Any:
    """Version 8: for each example of a batch, along axis 1."""
    if sequence_lens is not None:
        raise NotImplementedError("Scan of opset 8 with the lengths of sequences is not supported")
    tensors = [run.weights.tensor(value) for value in values]

    def of(*inner: Tensor) -> Any:
        return scan(
            *inner, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions, run=run
        )

    rows = [of(*[t.select(0, number) for t in tensors]) for number in range(shape_of(tensors[0])[0])]
    if not rows:
        row = of(*[Tensor.zeros(*tensor.shape[1:], dtype=tensor.dtype) for tensor in tensors])
        return tuple(_empty(None, value, 0) for value in row)
    return tuple(_stacked(list(column), 0) for column in zip(*rows, strict=True))

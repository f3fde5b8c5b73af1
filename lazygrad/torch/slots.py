"""Arguments of a graph's operations, with numbers in place of what other operations give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import fx


class Slot(NamedTuple):
    """What operation `number` gave."""

    number: int


def with_slots(value: Any, number: Callable[[fx.Node], int]) -> Any:
    """Arguments in Python's own containers, with Slots for nodes."""
    if isinstance(value, fx.Node):
        return Slot(number(value))
    if isinstance(value, (list, tuple)):
        return [with_slots(each, number) for each in value]
    if isinstance(value, Mapping):
        return {key: with_slots(each, number) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(with_slots(each, number) for each in (value.start, value.stop, value.step)))
    return value


def filled(value: Any, made: Mapping[int, Any] | Sequence[Any]) -> Any:
    """Arguments with what operations gave."""
    if type(value) is Slot:
        return made[value.number]
    if type(value) is list:
        return [filled(each, made) for each in value]
    if type(value) is dict:
        return {key: filled(each, made) for key, each in value.items()}
    return value

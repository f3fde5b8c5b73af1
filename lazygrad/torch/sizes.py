"""Sizes that change from call to call: Variables stand in their place, and one capture serves many sizes.

PyTorch says of every tensor how its shape follows from symbols. What a symbol is in a call is a number among
the graph's inputs, or the size of a tensor among them. Those symbols that differed between calls become
Variables; the others stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..ir.uop import Variable

#: The least bound of a Variable; a larger size gets the next power of two.
LEAST_BOUND = 64


class Source(NamedTuple):
    """Where a call says what a symbol is: input `position`, or its size along an axis, is so much `more`."""

    position: int
    axis: int | None
    more: int

    def read(self, values: Sequence[Any]) -> int:
        """What the symbol is in a call."""
        value = values[self.position]
        number: int = value if self.axis is None else value.shape[self.axis]
        return number - self.more


class SymbolSizes:
    """What the symbols were in the calls that no capture was for.

    Symbols that were equal in each of them are one Variable: PyTorch has one for the length of every tensor
    of keys and of values, and an operation may need them to be equal.
    """

    def __init__(self, sources: Mapping[Any, Source]) -> None:
        self.sources = sources
        self._numbers: dict[Any, tuple[int, ...]] = dict.fromkeys(sources, ())

    def note(self, values: Sequence[Any]) -> None:
        """Another such call."""
        for symbol, source in self.sources.items():
            before, number = self._numbers[symbol], source.read(values)
            self._numbers[symbol] = (*before, number)

    def groups(self) -> list[list[Any]]:
        """The symbols that differed between calls, those together that never did from each other."""
        found: dict[tuple[int, ...], list[Any]] = {}
        for symbol, numbers in self._numbers.items():
            if len(set(numbers)) > 1:
                found.setdefault(numbers, []).append(symbol)
        return list(found.values())


def sources_of(given: Sequence[Any]) -> dict[Any, Source]:
    """Where calls say what each symbol is: numbers among the inputs first. A part of a graph may be given
    tensors with symbolic sizes, and not the numbers that these are.
    """
    numbers = [(place, None, said) for place, said in enumerate(given)]
    axes = [
        (place, axis, size)
        for place, said in enumerate(given)
        if isinstance(said, torch.Tensor)
        for axis, size in enumerate(said.shape)
    ]
    found: dict[Any, Source] = {}
    for place, axis, said in (*numbers, *axes):
        if isinstance(said, torch.SymInt) and (symbol := _symbol_and_more(said.node.expr)):
            found.setdefault(symbol[0], Source(place, axis, symbol[1]))
    return found


class Sizes:
    """Variables for some of the symbols that sizes follow from.

    given   what PyTorch says of each input: a tensor, perhaps with symbolic sizes, or a symbolic number
    groups  the symbols that become Variables, one for each group: its symbols are equal
    values  what the inputs are in this call

    Raises NotImplementedError where a shape follows from the symbols in a way that is not known here.
    """

    def __init__(self, given: Sequence[Any], groups: Sequence[Sequence[Any]], values: Sequence[Any]) -> None:
        self.given, self.groups = given, groups
        self.sources = sources_of(given)
        varying = {symbol for group in groups for symbol in group}
        self.fixed = {s: source.read(values) for s, source in self.sources.items() if s not in varying}
        now, most = dict[Any, Any](self.fixed), dict[Any, Any](self.fixed)
        self.bound: dict[str, Any] = {}
        #: for each group the least and the greatest number that its Variable may be
        self.limits: list[tuple[int, int]] = []
        for group in groups:
            source, number = self.sources[group[0]], self.sources[group[0]].read(values)
            mores = [self.sources[symbol].more for symbol in group]
            least, greatest = 1 - min(0, *mores), max(LEAST_BOUND, 1 << (number - 1).bit_length())
            self.limits.append((least, greatest))  # no size is 0
            name = _name(source)
            self.bound[name] = Variable(name, least, greatest).bind(number)
            now |= dict.fromkeys(group, self.bound[name])
            most |= dict.fromkeys(group, greatest)
        #: what numbers among the inputs are, and shapes of the inputs, with Variables; their elements at most
        self.numbers: dict[int, Any] = {}
        self.shapes: dict[int, tuple[Any, ...]] = {}
        self.elements: dict[int, int] = {}
        #: numbers that follow from no symbol: a capture is for these alone
        self.others: dict[int, str] = {}
        for place, (said, value) in enumerate(zip(given, values, strict=True)):
            if isinstance(value, torch.Tensor):
                self.shapes[place] = self.shape_of(said, now)
                self.elements[place] = math.prod(self.shape_of(said, most))
            elif isinstance(said, torch.SymInt):
                self.numbers[place] = self.number_of(said, now)
            else:
                self.others[place] = repr(value)

    def varies(self, place: int) -> bool:
        """Whether the shape of an input changes."""
        return not all(isinstance(size, int) for size in self.shapes[place])

    def hold(self, values: Sequence[Any]) -> bool:
        """Whether a call's sizes fit the Variables, and what is fixed is as it was."""
        known = self.known(values)
        return (
            all(known[symbol] == number for symbol, number in self.fixed.items())
            and all(
                least <= known[group[0]] <= most and all(known[symbol] == known[group[0]] for symbol in group)
                for group, (least, most) in zip(self.groups, self.limits, strict=True)
            )
            and all(repr(values[place]) == text for place, text in self.others.items())
        )

    def binds(self, values: Sequence[Any]) -> dict[str, int]:
        """The values of the Variables in a call."""
        firsts = [self.sources[group[0]] for group in self.groups]
        return {_name(source): source.read(values) for source in firsts}

    def known(self, values: Sequence[Any]) -> dict[Any, int]:
        """What the symbols are in a call."""
        return {symbol: source.read(values) for symbol, source in self.sources.items()}

    def shape_of(self, said: torch.Tensor, known: Mapping[Any, Any]) -> tuple[Any, ...]:
        """A shape, given what symbols are."""
        return tuple([self.number_of(size, known) for size in said.shape])

    def number_of(self, said: Any, known: Mapping[Any, Any]) -> Any:
        """A size, or a number that is none, given what symbols are."""
        return _evaluated(said.node.expr, known) if isinstance(said, torch.SymInt) else said


def _name(source: Source) -> str:
    """That of a Variable in the place of a symbol."""
    return f"size{source.position}" if source.axis is None else f"size{source.position}_{source.axis}"


def _symbol_and_more(expr: Any) -> tuple[Any, int] | None:
    """The symbol and the integer whose sum an expression of sympy is. None: it is something else. PyTorch
    says so of an input when it has found that its size is that of another one, and so much more.
    """
    if expr.is_Symbol:
        return expr, 0
    if expr.is_Add and len(expr.args) == 2 and expr.args[0].is_Integer and expr.args[1].is_Symbol:
        return expr.args[1], int(expr.args[0])
    return None


def _evaluated(expr: Any, known: Mapping[Any, Any]) -> Any:
    """What an expression of sympy is, on numbers or on Variables."""
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        if expr not in known:
            raise NotImplementedError(f"{expr} is no size of an input")
        return known[expr]
    parts = [_evaluated(each, known) for each in expr.args]
    if expr.is_Add:
        return sum(parts[1:], parts[0])
    if expr.is_Mul:
        return math.prod(parts[1:], start=parts[0])
    if type(expr).__name__ in ("FloorDiv", "CleanDiv"):
        return parts[0] // parts[1]
    if type(expr).__name__ in ("Mod", "PythonMod"):
        return parts[0] % parts[1]
    raise NotImplementedError(f"a size that is {expr}")

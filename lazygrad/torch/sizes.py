"""Sizes that change from call to call: Variables stand in their place, and one capture serves many sizes.

PyTorch gives a graph its symbolic sizes as numbers among the inputs, and says of every tensor how its shape
follows from them. Those numbers that differed between calls become Variables; the others stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..ir.uop import Variable

#: The least bound of a Variable; a larger size gets the next power of two.
LEAST_BOUND = 64


class Sizes:
    """Variables for some of the numbers among a graph's inputs.

    given    what PyTorch says of each input: a tensor, perhaps with symbolic sizes, or a symbolic number
    varying  the places of the inputs that become Variables
    values   what the inputs are in this call

    Raises NotImplementedError where a shape follows from the numbers in a way that is not known here.
    """

    def __init__(self, given: Sequence[Any], varying: Iterable[int], values: Sequence[Any]) -> None:
        self.given = given
        #: the symbols that inputs are, or are more than → the places of these inputs, and how much more
        self.places: dict[Any, tuple[int, int]] = {}
        for place, said in enumerate(given):
            if isinstance(said, torch.SymInt) and (found := _symbol_and_more(said.node.expr)):
                symbol, more = found
                self.places.setdefault(symbol, (place, more))
        more_of = dict(self.places.values())
        own = set(more_of)
        self.names = {place: f"size{place}" for place in sorted(varying) if place in own}
        self.least = {place: 1 + max(0, more_of[place]) for place in self.names}  # so that no size is 0
        self.bounds = {place: max(LEAST_BOUND, 1 << (values[place] - 1).bit_length()) for place in self.names}
        self.fixed = {place: values[place] for place in own if place not in self.names}
        self.bound = {
            place: Variable(name, self.least[place], self.bounds[place]).bind(values[place])
            for place, name in self.names.items()
        }
        #: what numbers among the inputs are, and shapes of the inputs, with Variables; their elements at most
        now, most = {**self.fixed, **self.bound}, {**self.fixed, **self.bounds}
        self.numbers: dict[int, Any] = {}
        self.shapes: dict[int, tuple[Any, ...]] = {}
        self.most: dict[int, int] = {}
        for place, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                self.shapes[place] = self.shape_of(given[place], now)
                self.most[place] = math.prod(self.shape_of(given[place], most))
            elif isinstance(given[place], torch.SymInt):
                self.numbers[place] = self.number_of(given[place], now)

    def varies(self, place: int) -> bool:
        """Whether the shape of an input changes."""
        return not all(isinstance(size, int) for size in self.shapes[place])

    def hold(self, values: Sequence[Any]) -> bool:
        """Whether a call's numbers fit the Variables, and those that are fixed are as they were."""
        return all(values[n] == x for n, x in self.fixed.items()) and all(
            self.least[place] <= values[place] <= most for place, most in self.bounds.items()
        )

    def binds(self, values: Sequence[Any]) -> dict[str, int]:
        """The values of the Variables in a call."""
        return {name: values[place] for place, name in self.names.items()}

    def shape_of(self, said: torch.Tensor, numbers: Mapping[int, Any]) -> tuple[Any, ...]:
        """A shape, given the numbers among the inputs."""
        return tuple([self.number_of(size, numbers) for size in said.shape])

    def number_of(self, said: Any, numbers: Mapping[int, Any]) -> Any:
        """A size, or a number that is none, given the numbers among the inputs."""
        if not isinstance(said, torch.SymInt):
            return said
        known = {symbol: numbers[place] - more for symbol, (place, more) in self.places.items()}
        return _evaluated(said.node.expr, known)


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
            raise NotImplementedError(f"{expr} is none of the inputs")
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

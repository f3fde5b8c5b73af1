"""Captures of a jit for many sizes: of calls whose arguments differ in one size, the third is captured so.

Calls whose arguments have one structure are a family (`schedule/keys/growth.py`), as graphs are. Where one
number alone grows, at one or several places of their shapes, there is beside the capture of its third value
one with a Variable in these places, from 2 on (an axis of one element broadcasts, and `squeeze` drops it).
Where anything is written, or a gradient or a random number is involved, this is not tried. What a capture for
many sizes computes is believed when it was right twice: in the capture, against that of the one size, and at
the first other size, against the plain function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..config import DEBUG
from ..ir.uop import Variable
from ..memo import Memo
from ..report.terminal import show
from ..schedule.keys.growth import LINE, Family, Growth, Sizes
from ..tensor import Tensor
from .captured import Captured
from .errors import Changed, Mismatch
from .nest import Nest
from .outputs import View
from .specs import Call
from .symbolic_tensors import agree, stand_for, with_number_size, with_variable_size

#: The least size that a Variable stands for, and the name of the Variable.
LEAST, NAME = 2, "jit_size"
#: So many captures of one growth are kept, for different values of what else the function reads.
MAX_CAPTURES = 4
#: So many structures of arguments are known to one jit.
MOST_FAMILIES = 64


class Sized:
    """Captures of calls that differ in the size at `growing_axes` (number of a tensor, axis) only.

    sizes    those of its captures, which say nothing new        trusted  whether they were right for another
    """

    def __init__(self, signature: Sequence[Any], growth: Growth) -> None:
        axes = [(number, axis) for number, (shape, *_) in enumerate(signature) for axis in range(len(shape))]
        pairs = zip(axes, growth.polynomials, strict=True)
        self.growing_axes = [place for place, polynomial in pairs if polynomial == LINE]
        self.most, self.variable = growth.most, Variable(NAME, LEAST, growth.most)
        self.captures: list[Captured] = []
        self.trusted = False
        self.sizes: set[int] = set()
        self._known: dict[Any, View] = {}

    def arguments(self, tensors: Sequence[Tensor], size: int) -> list[Tensor]:
        """The tensors of a call with the Variable in their shapes."""
        bind = self.variable.bind(size)
        return [
            with_variable_size(tensor, axes, bind, self.most, self._known)
            if (axes := [axis for n, axis in self.growing_axes if n == number])
            else tensor
            for number, tensor in enumerate(tensors)
        ]


class Families:
    """What one jit has captured for many sizes; `name` is that of its function."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: by what arguments have in common; None of a growth for which the function does something else
        self._families: Memo[Any, Family[Sized | None]] = Memo(MOST_FAMILIES)

    # *** replays

    def replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], plain: Callable[..., Any]
    ) -> tuple[Captured, Any] | None:
        """The capture for many sizes and its results, where there is one of this call; `plain` runs the
        function.
        """
        if not self._families:
            return None
        nest = Nest((args, kwargs), _always)
        if nest.has_objects or any(tensor.requires_grad for tensor in nest.tensors):
            return None
        key, sizes = _split([(tensor.shape, tensor.dtype, tensor.device) for tensor in nest.tensors])
        family = self._families.get(key)
        found = None if family is None else family.find(sizes)
        if family is None or found is None:
            return None
        growth, size, sized = found
        if sized is None or size < LEAST or (size in sized.sizes and not sized.trusted):
            return None
        given, named = nest.build(sized.arguments(nest.tensors, size))
        for captured in sized.captures:
            call = Call()
            try:
                captured.match(given, named, call)
            except (Changed, Mismatch):
                continue
            result = None if sized.trusted else plain(args, kwargs)
            try:
                made = captured.results(call, NAME)
            except Exception as error:  # whatever it is: the capture of this size says it, if it is true
                self._refuse(family, growth, f"size {size} raised {type(error).__name__}: {error}")
                return (captured, result) if not sized.trusted else None
            if sized.trusted:
                return captured, captured.build(made)
            if _agree(made, result):
                sized.trusted = True
            else:
                self._refuse(family, growth, f"the symbolic capture gives other results for size {size}")
            return captured, result
        return None

    def _refuse(self, family: Family[Sized | None], growth: Growth, why: str) -> None:
        """One capture for each size of a growth, from here on."""
        family.keep(growth, None)
        if DEBUG >= 1:
            show(f"JIT keeps a capture for each size of {self.name}: {why.splitlines()[0]}")

    # *** captures

    def consider(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        captured: Captured,
        others: Sequence[Captured],
        result: Any,
        capture: Callable[..., Any],
    ) -> None:
        """After a capture: where it is the third of a family, capture the family.

        others   the captures that differ from it in the arguments' tensors only     result  what it gave
        capture  captures the function for arguments with a Variable: gives the results, and the capture
        """
        if not captured.is_sizeable() or any(spec.symbolic or spec.count > 1 for spec in captured.specs):
            return
        nest = Nest((args, kwargs), _always)
        if nest.has_objects or len(nest.tensors) != len(captured.specs):
            return
        key, sizes = _split(captured.signature)
        alike = [split[1] for other in others if (split := _split(other.signature))[0] == key]
        family = self._families.get(key) or self._families.keep(key, Family())
        if family.find(sizes) is None:
            _learn(family, captured.signature, sizes, alike)
        found = family.find(sizes)
        if found is None:
            return
        growth, size, sized = found
        if sized is None or size < LEAST or len(sized.captures) == MAX_CAPTURES:
            return
        if sum(growth.number(other) is not None for other in alike) < 2:  # with what else it reads
            return
        try:
            captured.match(args, kwargs, Call())
        except (Changed, Mismatch):  # it changes what it reads: running it once more is not for us to do
            return
        try:
            results, made = _captured(sized, nest, size, capture)
        except Exception as error:  # whatever the function cannot do with a symbolic size
            self._refuse(family, growth, str(error) or type(error).__name__)
            return
        if made is None or not made.is_sizeable() or made.reads_value(NAME):
            self._refuse(family, growth, "it does something else for another size")
        elif not _agree(results, result):
            self._refuse(family, growth, "the symbolic capture gives other results")
        else:
            sized.captures.append(made)
            sized.sizes.add(size)
            sized.trusted = False
            if DEBUG >= 1:
                number, axis = sized.growing_axes[0]
                sizes_text = f"sizes from {LEAST} to {sized.most} in axis {axis}"
                show(f"JIT captured {self.name} for {captured.specs[number].name} of {sizes_text}")


def _captured(
    sized: Sized, nest: Nest, size: int, capture: Callable[..., Any]
) -> tuple[list[Tensor], Captured | None]:
    """The results of a call with the Variable in the place of its size, and their capture."""
    arguments = sized.arguments(nest.tensors, size)
    pairs = zip(nest.tensors, arguments, strict=True)
    instead = [(tensor, weakref.ref(other)) for tensor, other in pairs if other is not tensor]
    given = nest.build(arguments)
    del arguments, pairs  # what the function keeps of them is told by their references
    try:
        got, made = capture(*given)
        return [with_number_size(tensor, NAME, size) for tensor in Nest(got, _never).tensors], made
    finally:
        del given
        for tensor, ref in instead:
            held = ref()
            if held is not None:  # the function put its argument somewhere
                stand_for(held, tensor)


def _never(tensor: Tensor) -> bool:
    return False


def _always(tensor: Tensor) -> bool:
    return True


def _agree(made: list[Tensor], result: Any) -> bool:
    expected = Nest(result, _never).tensors
    return len(made) == len(expected) and all(map(agree, made, expected))


def _split(signature: Sequence[Any]) -> tuple[Any, Sizes]:
    """What tensors (shape, dtype, device) have in common with those of other sizes, and their sizes."""
    key = [
        (tuple([None if type(size) is int else size for size in shape]), *rest) for shape, *rest in signature
    ]
    return tuple(key), tuple([size for shape, *_ in signature for size in shape if type(size) is int])


def _learn(family: Family[Sized | None], signature: Any, sizes: Sizes, alike: Sequence[Sizes]) -> None:
    """Learn how sizes grow that are alike; where that is otherwise than one number does, it is left alone."""
    for other in reversed(alike):
        family.meet(other)
    growth = family.learn(sizes)
    if growth is None or not all(
        p == LINE or (p is not None and p[:2] == (0, 0)) for p in growth.polynomials
    ):
        return
    refused = any(made is None and each.polynomials == growth.polynomials for each, made in family.known)
    family.keep(growth, None if refused else Sized(signature, growth))

"""Captures of a jit for many sizes: of calls whose arguments differ in one size, the third is captured so.

A family is calls with arguments of one structure whose shapes are equal but for one number, which may stand
at several places. Beside the capture of its third number there is one with a Variable in these places, from
2 (an axis of one element broadcasts, and `squeeze` drops it) to the next power of two. Where anything is
written, or a gradient or a random number is involved, this is not tried. What a family computes is believed
when it was right twice: in the capture, against that of the one size, and at the first other size, against
the plain function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..config import DEBUG
from ..ir.uop import Variable
from ..report.terminal import show
from ..tensor import Tensor
from .captured import Captured
from .errors import Changed, Mismatch
from .nest import Nest
from .outputs import View
from .specs import Call
from .symbolic_tensors import agree, stand_for, with_number_size, with_variable_size

#: The least size that a Variable stands for, and the name of the Variable.
LEAST, NAME = 2, "jit_size"
#: So many captures of one family are kept, for different values of what else the function reads.
MAX_CAPTURES = 4

#: (shape, dtype, device) of each tensor among the arguments
Signature = tuple[tuple[tuple[Any, ...], Any, Any], ...]
#: (number of a tensor, axis)
Places = tuple[tuple[int, int], ...]


class Family:
    """Calls that differ in the size at `places` only; elsewhere they are like `signature`."""

    def __init__(self, signature: Signature, places: Places, most: int) -> None:
        self.signature, self.growing_axes, self.most = signature, places, most
        self.variable = Variable(NAME, LEAST, most)
        self.captures: list[Captured] = []
        self.trusted = False
        self._known: dict[Any, View] = {}
        #: the sizes of its captures, which say nothing new
        self.sizes: set[int] = set()

    def size_of(self, arguments: Sequence[Tensor]) -> int | None:
        """The size of a call, where it is one of the family."""
        if len(arguments) != len(self.signature):
            return None
        size: Any = None
        for (number, tensor), (shape, dtype, device) in zip(
            enumerate(arguments), self.signature, strict=True
        ):
            now = tensor.shape
            if (
                tensor.requires_grad
                or len(now) != len(shape)
                or tensor.dtype is not dtype
                or tensor.device != device
            ):
                return None
            for axis, (was, length) in enumerate(zip(shape, now, strict=True)):
                if (number, axis) not in self.growing_axes:
                    if length is not was and length != was:
                        return None
                elif size is None:
                    size = length
                elif length != size:
                    return None
        return size if type(size) is int and LEAST <= size <= self.most else None

    def sized(self, arguments: Sequence[Tensor], size: int) -> list[Tensor]:
        """The call's tensors with the Variable in their shapes."""
        bind = self.variable.bind(size)
        return [
            with_variable_size(tensor, axes, bind, self.most, self._known)
            if (axes := [axis for n, axis in self.growing_axes if n == number])
            else tensor
            for number, tensor in enumerate(arguments)
        ]


class Families:
    """The families of one jit; `name` is that of its function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._families: list[Family] = []
        self._refused: set[tuple[Any, Places]] = set()

    # *** replays

    def replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], plain: Callable[..., Any]
    ) -> tuple[Captured, Any] | None:
        """The capture of a family and its results, where one is of this call; `plain` runs the function."""
        if not self._families:
            return None
        nest = Nest((args, kwargs), _always)
        if nest.has_objects:
            return None
        for family in self._families[:]:
            size = family.size_of(nest.tensors)
            if size is None or (size in family.sizes and not family.trusted):
                continue
            given, named = nest.build(family.sized(nest.tensors, size))
            for captured in family.captures:
                call = Call()
                try:
                    captured.match(given, named, call)
                except (Changed, Mismatch):
                    continue
                result = None if family.trusted else plain(args, kwargs)
                made = self._run(family, captured, call, size)
                if family.trusted:
                    if made is None:
                        break
                    return captured, captured.build(made)
                if made is not None:
                    self._judge(family, made, result, size)
                return captured, result
        return None

    def _run(self, family: Family, captured: Captured, call: Call, size: int) -> list[Tensor] | None:
        try:
            return captured.results(call, NAME)
        except Exception as error:  # whatever it is: the capture of this size says it, if it is true
            self._drop(family, f"size {size} raised {type(error).__name__}: {error}")
            return None

    def _judge(self, family: Family, made: list[Tensor], result: Any, size: int) -> None:
        """Compare the family with the plain results of the first other size."""
        if _agree(made, result):
            family.trusted = True
        else:
            self._drop(family, f"the symbolic capture gives other results for size {size}")

    def _drop(self, family: Family, why: str) -> None:
        """One capture for each size, from here on."""
        if family in self._families:
            self._families.remove(family)
        self._refused.add((_fixed(family.signature, family.growing_axes), family.growing_axes))
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
        found: dict[Places, set[int]] = {}
        for other in others:
            where = _one_size(other.signature, captured.signature)
            if where is not None:
                found.setdefault(where[0], set()).add(where[1])
        for places, sizes in found.items():
            number, axis = places[0]
            size: Any = captured.signature[number][0][axis]
            key = _fixed(captured.signature, places), places
            if len(sizes) < 2 or size < LEAST or key in self._refused:
                continue
            family = next(
                (
                    f
                    for f in self._families
                    if f.growing_axes == places and f.size_of(nest.tensors) is not None
                ),
                None,
            )
            if family is None:
                most = 1 << (max(size, *sizes) - 1).bit_length()
                family = Family(captured.signature, places, most)
            if len(family.captures) < MAX_CAPTURES:
                self._capture_family(family, args, kwargs, nest, captured, size, result, capture)
            return

    def _capture_family(
        self,
        family: Family,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        nest: Nest,
        captured: Captured,
        size: int,
        result: Any,
        capture: Callable[..., Any],
    ) -> None:
        try:
            captured.match(args, kwargs, Call())
        except (Changed, Mismatch):  # it changes what it reads: running it once more is not for us to do
            return
        instead: list[tuple[Tensor, weakref.ref[Tensor]]] = []
        try:
            got, made = _captured(family, nest, size, instead, capture)
            results = [with_number_size(tensor, NAME, size) for tensor in Nest(got, _never).tensors]
        except Exception as error:  # whatever the function cannot do with a symbolic size
            self._drop(family, str(error) or type(error).__name__)
            return
        finally:
            for tensor, ref in instead:
                kept = ref()
                if kept is not None:  # the function put its argument somewhere
                    stand_for(kept, tensor)
        if made is None or not made.is_sizeable() or made.reads_value(NAME):
            self._drop(family, "it does something else for another size")
        elif not _agree(results, result):
            self._drop(family, "the symbolic capture gives other results")
        else:
            if not family.captures:
                self._families.append(family)
            family.captures.append(made)
            family.sizes.add(size)
            family.trusted = False
            if DEBUG >= 1:
                name = captured.specs[family.growing_axes[0][0]].name
                show(
                    f"JIT captured {self.name} for {name} of sizes from {LEAST} to {family.most} "
                    f"in axis {family.growing_axes[0][1]}"
                )


def _captured(
    family: Family,
    nest: Nest,
    size: int,
    instead: list[tuple[Tensor, weakref.ref[Tensor]]],
    capture: Callable[..., Any],
) -> tuple[Any, Captured | None]:
    """The results and the capture of a family; `instead` gets what stood for the tensors of the call."""
    sized = family.sized(nest.tensors, size)
    pairs = zip(nest.tensors, sized, strict=True)
    instead += [(tensor, weakref.ref(other)) for tensor, other in pairs if other is not tensor]
    return capture(*nest.build(sized))  # type: ignore[no-any-return]


def _never(tensor: Tensor) -> bool:
    return False


def _always(tensor: Tensor) -> bool:
    return True


def _agree(made: list[Tensor], result: Any) -> bool:
    expected = Nest(result, _never).tensors
    return len(made) == len(expected) and all(map(agree, made, expected))


def _one_size(one: Signature, other: Signature) -> tuple[Places, int] | None:
    """Where two signatures differ, and the size of the first there; None where not in one size alone."""
    if len(one) != len(other):
        return None
    axes_that_grow: list[tuple[int, int]] = []
    pairs: set[tuple[Any, Any]] = set()
    for number, ((shape, *rest), (shape_now, *rest_now)) in enumerate(zip(one, other, strict=True)):
        if len(shape) != len(shape_now) or rest != rest_now:
            return None
        for axis, sizes in enumerate(zip(shape, shape_now, strict=True)):
            if sizes[0] is not sizes[1] and sizes[0] != sizes[1]:
                axes_that_grow.append((number, axis))
                pairs.add(sizes)
    if len(pairs) != 1:
        return None
    was, now = pairs.pop()
    return (tuple(axes_that_grow), was) if type(was) is int and type(now) is int else None


def _fixed(signature: Signature, places: Places) -> Any:
    """A signature without what changes in a family."""
    return tuple(
        (tuple(None if (number, axis) in places else size for axis, size in enumerate(shape)), dtype, device)
        for number, (shape, dtype, device) in enumerate(signature)
    )

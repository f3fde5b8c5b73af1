"""Methods whose graphs follow from what they are given: from a `Recipe`, once they have been called often.

A method computes shapes, dtypes and broadcasts in Python, and makes a tensor for each of its steps. What
comes of it follows from its *signature*: the shapes, dtypes and devices of tensors, the other arguments, and
the modes and flags. A signature that was met a few times gets a recipe, and from then on the method's
Python code does not run. The recipe is recorded on tensors that stand for the arguments, whose nodes nobody
else makes, and it must make the very node that the method has made; else the signature has none. Nor has a
method that reads values, draws random numbers, writes in place or warns: it is refused while it is recorded.

Nodes are not even made until somebody asks for them (`schedule/calls.py`): a loop that computes the same
again and again, and only reads what comes of it, never does.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..config import flags_state
from ..device import Device
from ..dtype import DType, defaults, dtypes
from ..ir.index import bounds
from ..ir.ops import Ops
from ..ir.uop import UOp, origin
from ..memo import Memo
from ..schedule import calls
from ..schedule.calls import DEFERRED, Call, Way, plain
from ..schedule.graph.reports import Site
from ..schedule.graph.versions import device_name, new_buffer
from ..shape.movement import reshape
from ..shape.recipe import Recipe, learned
from ..shape.rules import shape_of
from . import sized_recipes
from .indexing.addresses import with_origin
from .live import note_deferred
from .modes import mode
from .observer import Observer, is_captured, observing
from .sized_recipes import Recorded
from .storage import as_new, base_of, gives_views, marked
from .trace import user_line
from .tracebacks import wraps_only

#: They give a tensor itself where it is so already, else a value.
_ITSELF_NAMES = "bfloat16 bool byte cast char double float half int long short type_as"
_ITSELF = frozenset(_ITSELF_NAMES.split())
#: What a method that may have a recipe is said to give.
_TENSORS = re.compile(r"Tensor|Any|tuple\[Tensor(, Tensor|, \.\.\.)*\]|[A-Z]\w+\[Tensor\]")

#: They give other looks at a tensor: at its memory, where it is in memory.
_LOOK_NAMES = """
    reshape permute transpose swapaxes flatten unflatten squeeze unsqueeze expand __getitem__
    atleast_1d atleast_2d atleast_3d expand_as movedim reshape_as t
    chunk diagonal dsplit hsplit narrow select shrink split tensor_split unbind unfold vsplit
"""
LOOK_NAMES = frozenset(_LOOK_NAMES.split())
#: Those that are called on memory with other numbers again and again.
_CUTTING_NAMES = """
    __getitem__ chunk diagonal dsplit hsplit narrow select shrink split tensor_split unbind unfold vsplit
"""
_CUTTING = frozenset(_CUTTING_NAMES.split())

BUFFER, RESHAPE = Ops.BUFFER, Ops.RESHAPE  # plain names: every argument asks for them


def by_recipe(compute: Callable[..., Any], tensor: type) -> Callable[..., Any] | None:
    """The method, whose results come from recipes where its signature has one. None for a method that gives
    no tensors, or the tensor that it changes.
    """
    name = compute.__name__
    if name in LOOK_NAMES:
        return _looking(compute, tensor)
    makes_new = not gives_views(name)
    gives_tensors = _TENSORS.fullmatch(compute.__annotations__.get("return", ""))
    if not gives_tensors or not (makes_new or name in _ITSELF):
        return None
    return _valued(compute, tensor, makes_new)


def _valued(compute: Callable[..., Any], tensor: type, makes_new: bool) -> Callable[..., Any]:
    """A method that gives values. `makes_new`: they are none of its arguments, nor looks at them."""
    name = compute.__name__

    @functools.wraps(compute)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nodes: list[UOp] = []
        signature = _signature(name, args, kwargs, tensor, nodes)
        way = learned.get(signature, _ABSENT)
        if not way:
            new = signature if way is _ABSENT else None
            way = sized_recipes.find(new) if new is not None and _first.get(name, _ABSENT) is None else None
            if way is None:
                result = compute(*args, **kwargs)
                if new is not None:
                    _learn(_Method(compute, args, kwargs, tensor, nodes, makes_new), new, result)
                if makes_new:
                    return as_new(result, tensor, (*args, *kwargs.values()) if kwargs else args)
                return result
        if way.several is not None:
            return _several(way, nodes, tensor)
        result = _result(way, 0, nodes, tensor)
        if result is None:
            (result,) = _made(way, nodes, tensor)
        result._own = makes_new
        return result

    wraps_only(wrapper)  # type: ignore[arg-type]
    return wrapper


def _looking(compute: Callable[..., Any], tensor: type) -> Callable[..., Any]:
    """A method that gives other looks at its first argument: put off where that is, too."""
    name = compute.__name__
    by_indices = _valued(compute, tensor, False)

    @functools.wraps(compute)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not args or type(args[0]) is not tensor:
            return compute(*args, **kwargs)
        looked_at: Any = args[0]
        if Device.uses_files and not Device.runs_kernels(looked_at.device):
            return compute(*args, **kwargs)
        is_value = looked_at._storage is None  # and no memory
        if name in _CUTTING and not is_value:
            index = args[1] if len(args) > 1 else None
            parts = index if type(index) is tuple else (index,)
            by = by_indices if any(type(part) is tensor for part in parts) else compute
            return by(*args, **kwargs)
        nodes: list[UOp] = []
        signature = _signature(name, args, kwargs, tensor, nodes)
        if len(nodes) > 1:
            return by_indices(*args, **kwargs)
        way = learned.get(signature, _ABSENT)
        if not way:
            new = signature if way is _ABSENT else None
            if is_value and new is not None and _first.get(name, _ABSENT) is None:
                way = sized_recipes.find(new)
            else:
                way = None
            if way is None:
                result = compute(*args, **kwargs)
                if new is not None:
                    _learn(_Method(compute, args, kwargs, tensor, nodes, True), new, result, is_value)
                return result
        if nodes[0].op is DEFERRED:
            results = [_result(way, which, nodes, tensor) for which in range(len(way.results))]
        else:
            results = [_view(node, way.tracks, args[0]) for node in way.recipe().makes(nodes)]
        if any(result is None for result in results):
            return compute(*args, **kwargs)
        if is_value:
            for result in results:
                result._note_whole(looked_at)
        return results[0] if way.several is None else way.several(results)

    wraps_only(wrapper)  # type: ignore[arg-type]
    return wrapper


_deferred = itertools.count(1)
#: So many calls are told of at once.
_TOLD_AT = 64


def _result(way: Way, which: int, nodes: list[UOp], tensor: Any) -> Any:
    """A result whose node is put off; None where it has to be made."""
    below = way.results[which].below
    if below is not None and (below < 0 or nodes[below].op is not DEFERRED):
        return None
    if way.of.requests >= calls.MOST_ASKED or (way.tracks and mode.training):
        return None  # somebody is to ask for the node
    current = origin.current
    site = None
    if way.checks:
        site = Site("an index" if current is None else current.name, user_line())
    if not next(_deferred) % _TOLD_AT:
        note_deferred(_TOLD_AT)
    result = object.__new__(tensor)
    result._setup(Call(way, which, nodes, site), way.tracks, False)
    return result


def _view(node: UOp, tracks: bool | None, parent: Any) -> Any:
    """Another look at a tensor, which is not put off."""
    result = object.__new__(type(parent))
    result._setup(node, tracks, False)
    result._alias(parent)
    return result


def _several(way: Way, nodes: list[UOp], tensor: Any) -> Any:
    """The results of a method that gives a tuple of new values."""
    results = [_result(way, which, nodes, tensor) for which in range(len(way.results))]
    if any(result is None for result in results):
        results = _made(way, nodes, tensor)
    for result in results:
        result._own = True
    return way.several(results)  # type: ignore[misc]


def _made(way: Way, nodes: list[UOp], tensor: Any) -> list[Any]:
    """The results, whose nodes are made at once."""
    recipe = way.recipe()
    made = recipe.on(plain(nodes))
    for place in recipe.checks:
        with_origin(made[place])
    return [tensor._computed(made[place], way.tracks) for place in recipe.results]


#: What is not known, as true as no recipe.
_ABSENT: Any = ()


#: Arguments that are compared by value.
_PLAIN = frozenset((int, bool, str, type(None), DType))


def _signature(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: Any, nodes: list[UOp]
) -> tuple[Any, ...] | None:
    """What the result follows from, and the nodes of the tensors; None where that is not known."""
    overlay, changes = flags_state()
    if overlay or mode.examples or mode.trusted or mode.generators:
        return None
    modes = mode.grad, mode.training, mode.autocast, is_captured()
    key: list[Any] = [name, changes, str(modes), defaults["float"], defaults["int"]]
    for value in args:
        kind = type(value)
        if kind in _PLAIN:  # as `describe` has it
            key += (kind, value)
            continue
        if kind is tensor:
            node = value._uop_or_call
            facts = node.facts
            if node.op is DEFERRED and node.is_open:
                same = nodes.index(node) if node in nodes else None
                nodes.append(node)
                key += ((facts["shape"], node.dtype, facts["device"]), value._requires_grad, same)
                continue
            base = node.src[0] if node.op is RESHAPE else node
            if (
                "form" in facts and base.op is BUFFER and "forwarded_to" not in base.facts
            ):  # as `_describe_tensor` finds
                if value._storage is not None:
                    value._storage.known = True
                same = nodes.index(node) if node in nodes else None
                nodes.append(node)
                key += (facts["form"], value._requires_grad, same)
                continue
            if not _describe_tensor(tensor, key, nodes, value):
                return None
        elif not describe(value, key, partial(_describe_tensor, tensor, key, nodes)):
            return None
    for word, value in kwargs.items():
        key.append(word)
        if not describe(value, key, partial(_describe_tensor, tensor, key, nodes)):
            return None
    return tuple(key) if nodes else None


def describe(value: Any, parts: list[Any], of_tensor: Callable[[Any], bool]) -> bool:
    """Add what a plain value is: numbers, names, slices, and lists of these and of tensors, which `of_tensor`
    adds. False for anything else.
    """
    kind = type(value)
    if kind in _PLAIN:
        parts += (kind, value)
    elif kind is float:
        parts += (kind, value or str(value))  # two zeros are equal
    elif kind is tuple or kind is list:
        parts.append(kind)
        if all(type(part) is int for part in value):
            parts += (len(value), *value)
            return True
        parts.append(str(len(value)))
        return all(describe(part, parts, of_tensor) for part in value)
    elif kind is slice:
        parts += (slice, value.start, value.stop, value.step)
        return all(part is None or type(part) is int for part in parts[-3:])
    elif value is Ellipsis:
        parts.append(value)
    else:
        return of_tensor(value)
    return True


def _describe_tensor(tensor: Any, parts: list[Any], nodes: list[UOp], value: Any) -> bool:
    if type(value) is not tensor:
        return False
    node = value._deferred()
    if node is None:
        node = value.uop
    facts = node.facts
    shape, device = facts.get("shape"), facts.get("device")
    if shape is None or type(device) is not str:
        if not value._device_known():
            return False
        shape, device = shape_of(node), facts["device"]
    if type(device) is not str:
        return False
    for size in shape:
        if type(size) is not int:
            return False
    same = nodes.index(node) if node in nodes else None
    nodes.append(node)
    form = shape, node.dtype, device
    if node.op is BUFFER or (node.op is RESHAPE and node.src[0].op is BUFFER):
        facts["form"] = form
    parts += (form, value._requires_grad, same)
    known = _bounds(node)
    if known is not None:
        parts += known
    return True


def _bounds(node: UOp) -> tuple[int, int] | None:
    """The least and the greatest number of an integer tensor that is not in memory, which methods ask for;
    None where they are those of its dtype.
    """
    dtype = node.dtype
    if node.op is DEFERRED or not dtypes.is_int(dtype) or base_of(node).op in _OF_ANY_NUMBERS:
        return None
    least, most = bounds(node)
    return None if least <= dtypes.min(dtype) and most >= dtypes.max(dtype) else (least, most)


#: What holds numbers of which nothing is known.
_OF_ANY_NUMBERS = frozenset((Ops.BUFFER, Ops.COPY))


class NotRecorded(Exception):
    """A method does more than make nodes."""


class _OnlyNodes(Observer):
    """Refuses all that a recipe does not do."""

    def __init__(self, captures: bool) -> None:
        self.captures = captures

    def _refuse(self, *_: Any, **named: Any) -> None:
        raise NotRecorded

    wrote = value_is_read = spares_a_read = runs = warns = _refuse
    drew = random_state_is_read = random_state_is_set = is_trained = makes_gradients = _refuse


#: By whether what is recorded is part of a capture.
_ONLY_NODES = _OnlyNodes(False), _OnlyNodes(True)


class _Method(NamedTuple):
    """A call of a method.

    tensor  the class of tensors
    nodes   of those among its arguments, in order, as its signature was made of them
    looks   whether its results may be looks at them: other ones, or the values that these show
    """

    compute: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensor: Any
    nodes: list[UOp]
    looks: bool

    def recorded(self, numbers: Sequence[int] | None = None) -> Recorded | None:
        """The call on stand-ins for its tensors; None where what comes of it does not follow from its
        signature.

        numbers  other ones for the sizes of its tensors and its whole numbers, in the order of the signature
        """
        stand_ins: list[UOp] = []
        others = None if numbers is None else iter(numbers)

        args = [self._standing_in(value, others, stand_ins) for value in self.args]
        named = {key: self._standing_in(value, others, stand_ins) for key, value in self.kwargs.items()}
        outer = observing.by
        observing.by = _ONLY_NODES[is_captured()]
        try:
            again = self.compute(*args, **named)
        except NotRecorded:
            return None
        finally:
            observing.by = outer
        results = self.values(again)
        if results is None:
            return None
        made = [result._uop for result in results]
        recipe = Recipe.of(made, stand_ins)
        if recipe is None:
            return None
        several = type(again) if isinstance(again, tuple) else None
        makes = several if several in (None, tuple) else several._make  # type: ignore[attr-defined]
        return Recorded(recipe, stand_ins, made, results[0]._requires_grad, makes)

    def _standing_in(self, value: Any, others: Iterator[int] | None, stand_ins: list[UOp]) -> Any:
        """What stands for an argument; nodes of tensors join the stand-ins."""
        if type(value) is self.tensor:
            node = self.nodes[len(stand_ins)]
            shape: tuple[Any, ...] = shape_of(node)
            if others is not None:
                shape = tuple([next(others) for _ in shape])
                if node in self.nodes[: len(stand_ins)]:
                    next(others)  # says which of the tensors before it is
            # memory, of which nothing more is known
            memory = new_buffer(device_name(node), math.prod(shape), node.dtype)
            stand_ins.append(marked(reshape(memory, shape)))
            known = _bounds(node)
            if known is not None:
                stand_ins[-1].facts["bounds"] = known if others is None else (next(others), next(others))
            return self.tensor._computed(stand_ins[-1], value._requires_grad)
        if type(value) in (tuple, list):
            if others is not None and all(type(part) is int for part in value):
                next(others)  # how many there are
            return type(value)([self._standing_in(part, others, stand_ins) for part in value])
        if others is None:
            return value
        if type(value) is int:
            return next(others)
        if type(value) is slice:
            parts = value.start, value.stop, value.step
            return slice(*[self._standing_in(part, others, stand_ins) for part in parts])
        return value

    def values(self, result: Any) -> Sequence[Any] | None:
        """The tensors that it gave, if they are values, with gradients alike; else None."""
        results = result if isinstance(result, tuple) else (result,)
        for each in results:
            if type(each) is not self.tensor or (each._storage is not None and not self.looks):
                return None
            if each._leaf or not each._device_known():
                return None
            if each._requires_grad is not results[0]._requires_grad or any(each is arg for arg in self.args):
                return None
        return results or None


#: Method → the signature that it was first called with; None once it had another one. How its sizes grow is
#: asked from then on.
_first: Memo[str, tuple[Any, ...] | None] = Memo(1024)


def _is_first(signature: tuple[Any, ...]) -> bool:
    """Whether a method was called with no other signature yet."""
    name = signature[0]
    first = _first.get(name, _ABSENT)
    if first == _ABSENT:
        first = _first.keep(name, signature)
    if first is None or first == signature:
        return first is not None
    sized_recipes.visit(first)
    _first[name] = None
    return False


def _learn(method: _Method, signature: tuple[Any, ...], result: Any, sized: bool = True) -> None:
    """A call gave this result, and there was no recipe. `sized`: it may be one of those that grow."""
    due = learned.is_due(signature)
    results = method.values(result)
    if results is None:
        if due:
            learned.keep(signature, None)
        return
    if sized and not due and _is_first(signature):
        return
    made, nodes = [each._uop for each in results], plain(method.nodes)
    if due:
        recorded = method.recorded()
        is_same = recorded is not None and recorded.recipe.makes(nodes) == made
        learned.keep(signature, recorded.way() if recorded is not None and is_same else None)
    elif sized:
        sized_recipes.note(signature, nodes, made, method.recorded)

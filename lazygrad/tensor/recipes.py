"""Methods whose graphs follow from what they are given: from a `Recipe`, once they have been called often.

A method computes shapes, dtypes and broadcasts in Python, and makes a tensor for each of its steps. What
comes of it follows from its *signature*: the shapes, dtypes and devices of tensors, the other arguments, and
the modes and flags. A signature that was met a few times gets a recipe, and from then on the method's
Python code does not run. The recipe is recorded on tensors that stand for the arguments, whose nodes nobody
else makes, and it must make the very node that the method has made; else the signature has none.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..config import flags_state
from ..dtype import DType, defaults
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.versions import device_name, new_buffer
from ..shape.movement import reshape
from ..shape.recipe import Meetings, Recipe
from ..shape.rules import shape_of
from . import sized_recipes
from .indexing.addresses import told
from .modes import mode
from .sized_recipes import Recorded
from .storage import marked
from .tracebacks import wraps_only
from .views import as_new

#: They give new values that follow from their arguments' forms; those without a name here may read values,
#: draw random numbers, write, or give views.
_NAMES = """
    add sub mul div neg maximum minimum square sqrt rsqrt exp exp2 log log2 sin cos tanh abs reciprocal
    sigmoid clamp relu relu6 leaky_relu elu gelu silu swish softplus where
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __neg__ __pow__
    __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __invert__ __and__ __or__ __xor__
    sum mean max min var std logsumexp argmax argmin
    matmul dot linear mm bmm __matmul__ conv2d max_pool2d avg_pool2d layernorm rms_norm
    softmax log_softmax embedding scaled_dot_product_attention
    sparse_categorical_crossentropy cross_entropy nll_loss mse_loss l1_loss huber_loss binary_crossentropy
    binary_crossentropy_logits
"""
NAMES = frozenset(_NAMES.split())

#: Whether a call of these draws no random numbers, and warns of nothing.
_PLAINLY: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], bool]] = {
    "scaled_dot_product_attention": lambda args, kwargs: not (args[4:5] or [kwargs.get("dropout_p")])[0],
    "softmax": lambda args, kwargs: all(value is not None for value in (*args, *kwargs.values())),
    "log_softmax": lambda args, kwargs: all(value is not None for value in (*args, *kwargs.values())),
}

#: A signature gets its recipe when it is met so often; so many have one.
MEETINGS, MOST_KEPT = 3, 1024

#: Signature → (its recipe, whether gradients flow to its result); None where it has none.
_kept: dict[Any, tuple[Recipe, bool | None] | None] = {}
_met = Meetings(MEETINGS)

BUFFER = Ops.BUFFER  # a plain name: every argument asks for it


def forget() -> None:
    """Forget every recipe."""
    _kept.clear()
    _met.clear()
    sized_recipes.forget()


def by_recipe(compute: Callable[..., Any], tensor: type) -> Callable[..., Any] | None:
    """The method, whose results, new values, come from recipes where its signature has one. None for a
    method that has no recipes.
    """
    name = compute.__name__
    if name not in NAMES:
        return None
    computed = tensor._computed  # type: ignore[attr-defined]
    plainly = _PLAINLY.get(name)

    @functools.wraps(compute)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if plainly is not None and not plainly(args, kwargs):
            return as_new(compute(*args, **kwargs), tensor, (*args, *kwargs.values()))
        nodes: list[UOp] = []
        signature = _signature(name, args, kwargs, tensor, nodes)
        found = _kept.get(signature, _ABSENT)
        if not found:
            new = signature if found is _ABSENT else None
            found = None if new is None else sized_recipes.find(new)
            if found is None:
                result = compute(*args, **kwargs)
                if new is not None:
                    _learn(_Call(compute, args, kwargs, tensor), new, nodes, result)
                return as_new(result, tensor, (*args, *kwargs.values()) if kwargs else args)
        recipe, tracks = found
        made = recipe.on(nodes)
        for place in recipe.checks:
            told(made[place])
        result = computed(made[recipe.results[0]], tracks)
        result._own = True
        return result

    wraps_only(wrapper)  # type: ignore[arg-type]
    return wrapper


#: What is not known, as true as no recipe.
_ABSENT: Any = ()


def _keep(signature: Any, recipe: tuple[Recipe, bool | None] | None) -> None:
    if len(_kept) >= MOST_KEPT:
        for old in list(itertools.islice(_kept, MOST_KEPT // 2)):
            _kept.pop(old, None)
    _kept[signature] = recipe


#: Arguments that are compared by value.
_PLAIN = frozenset((int, bool, str, type(None), DType))


def _signature(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: Any, nodes: list[UOp]
) -> tuple[Any, ...] | None:
    """What the result follows from, and the nodes of the tensors; None where that is not known."""
    overlay, changes = flags_state()
    if overlay or mode.autocast is not None or mode.examples or mode.trusted:
        return None
    parts: list[Any] = [name, changes, mode.grad, defaults["float"], defaults["int"]]
    for value in args:
        if type(value) is tensor:
            node = value._uop
            facts = node.facts
            if node.op is BUFFER and "form" in facts and "becomes" not in facts:  # as `_describe` would find
                if value._storage is not None:
                    value._storage.known = True
                same = nodes.index(node) if node in nodes else None
                nodes.append(node)
                parts += (facts["form"], value._requires_grad, same)
                continue
        if not _describe(value, tensor, parts, nodes):
            return None
    for key, value in kwargs.items():
        parts.append(key)
        if not _describe(value, tensor, parts, nodes):
            return None
    return tuple(parts) if nodes else None


def _describe(value: Any, tensor: type, parts: list[Any], nodes: list[UOp]) -> bool:
    kind = type(value)
    if kind is tensor:
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
        if node.op is BUFFER:
            facts["form"] = form
        parts += (form, value._requires_grad, same)
        return True
    parts.append(kind)
    if kind is float:
        parts.append(value if value else str(value))  # two zeros are equal
    elif kind in _PLAIN:
        parts.append(value)
    elif kind is tuple or kind is list:
        parts += (len(value), *value)
        return all(type(part) is int for part in value)
    else:
        return False
    return True


class _Call(NamedTuple):
    """A call of a method."""

    compute: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensor: Any  #: the class of tensors

    def recorded(self, numbers: Sequence[int] | None = None) -> Recorded | None:
        """The call on stand-ins for its tensors; None where what comes of it does not follow from its
        signature.

        numbers  other ones for the sizes of its tensors and its whole numbers, in the order of the signature
        """
        stand_ins: list[UOp] = []
        others = None if numbers is None else iter(numbers)

        def standing_in(value: Any) -> Any:
            if type(value) is self.tensor:
                node = value._uop
                shape: tuple[Any, ...] = shape_of(node)
                if others is not None:
                    shape = tuple([next(others) for _ in shape])
                    if node in seen:
                        next(others)  # says which of the tensors before it is
                    seen.add(node)
                # memory, whose numbers nobody knows: how great a counter's are is known
                memory = new_buffer(device_name(node), math.prod(shape), node.dtype)
                stand_ins.append(marked(reshape(memory, shape)))
                return self.tensor._computed(stand_ins[-1], value._requires_grad)
            if others is None:
                return value
            if type(value) is int:
                return next(others)
            if type(value) in (tuple, list):
                next(others)  # how many there are
                return type(value)([next(others) for _ in value])
            return value

        seen: set[UOp] = set()
        args = [standing_in(value) for value in self.args]
        again = self.compute(*args, **{key: standing_in(value) for key, value in self.kwargs.items()})
        if type(again) is not self.tensor or again._storage is not None:
            return None
        recipe = Recipe.of([again._uop], stand_ins)
        return None if recipe is None else Recorded(recipe, stand_ins, again._uop, again._requires_grad)


def _learn(call: _Call, signature: tuple[Any, ...], nodes: list[UOp], result: Any) -> None:
    """A call gave this result, and there was no recipe."""
    due = _met.is_due(signature)
    if type(result) is not call.tensor or result._storage is not None:
        if due:
            _keep(signature, None)
        return
    if due:
        recorded = call.recorded()
        is_same = recorded is not None and _makes(recorded.recipe, nodes) is result._uop
        _keep(signature, (recorded.recipe, result._requires_grad) if recorded and is_same else None)
    else:
        sized_recipes.note(signature, nodes, result._uop, call.recorded)


def _makes(recipe: Recipe, nodes: list[UOp]) -> UOp:
    return recipe.on(nodes)[recipe.results[0]]

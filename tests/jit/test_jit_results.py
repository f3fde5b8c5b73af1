"""What a captured function returns: containers of every kind, with the tensors of each call."""

from __future__ import annotations

import collections
import functools
import operator
import types
import weakref

import numpy as np
import pytest

from lazygrad import JitError, Tensor, TinyJit


class List(list):
    pass


class Tuple(tuple):
    pass


class Dict(dict):
    pass


class Ordered(collections.OrderedDict):
    pass


class Set(set):
    pass


class Frozen(frozenset):
    pass


class Deque(collections.deque):
    pass


class Users(collections.UserList):
    pass


DERIVED = (List, Tuple, Dict, Ordered, Set, Frozen, Deque, Users)
PLAIN = (list, tuple, dict, collections.OrderedDict, set, frozenset, collections.deque)


def holding(kind, tensor):
    return kind({"a": tensor}) if issubclass(kind, dict) else kind([tensor])


def only(value):
    (item,) = value.values() if isinstance(value, dict) else value
    return item


@pytest.mark.parametrize("kind", [*PLAIN, *DERIVED])
def test_a_container_holds_the_tensors_of_its_call(kind):
    f = TinyJit(lambda x: holding(kind, x * 2))
    for number in range(4):
        result = f(Tensor([float(number)]))
        assert type(result) is kind
        assert only(result).item() == number * 2


@pytest.mark.parametrize("kind", DERIVED)
def test_attributes_of_a_derived_container(kind):
    @TinyJit
    def f(x):
        made = holding(kind, x * 2)
        made.more = [x * 3]
        return made

    for number in range(4):
        assert f(Tensor([float(number)])).more[0].item() == number * 3


@pytest.mark.parametrize("kind", DERIVED)
def test_attributes_of_an_argument_that_is_a_derived_container_are_compared(kind):
    def argument(scale):
        made = holding(kind, 1.0)
        made.scale = scale
        return made

    f = TinyJit(lambda x, held: x * held.scale + only(held))
    assert [f(Tensor([1.0]), argument(s)).item() for s in (2.0, 2.0, 2.0, 3.0)] == [3.0, 3.0, 3.0, 4.0]


def test_a_deque_keeps_its_length():
    f = TinyJit(lambda x: collections.deque([x + 1], maxlen=3))
    assert [f(Tensor([1.0])).maxlen for _ in range(3)] == [3, 3, 3]


HIDING = {
    "function": lambda y: lambda: y,
    "partial": lambda y: functools.partial(Tensor.sum, y),
    "method": lambda y: y.sum,
    "mappingproxy": lambda y: types.MappingProxyType({"a": y}),
    "dict_values": lambda y: {"a": y}.values(),
    "ValueError": lambda y: ValueError([y]),
    "type": lambda y: type("Made", (), {"a": y}),
    "slice": lambda y: slice(y, None),
    "builtin_function_or_method": lambda y: [y].append,
    "method-wrapper": lambda y: [y].__iter__,
    "itemgetter": lambda y: operator.itemgetter(0, (y,)),
    "methodcaller": lambda y: operator.methodcaller("add", y),
    "property": lambda y: property(lambda self: y),
    "classmethod": lambda y: classmethod(lambda kind: y),
    "cell": lambda y: (lambda: y).__closure__[0],
    "_lru_cache_wrapper": lambda y: functools.lru_cache(lambda: y),
    "ReferenceType": lambda y: weakref.ref(Tensor, lambda reference: y),
    "coroutine": lambda y: waits_for(y),
    "dict_items": lambda y: {"a": y}.items(),
    "traceback": lambda y: raised(y).__traceback__,
    "KeyError": lambda y: raised(y),
    "TypeError": lambda y: TypeError(raised(y)),
}


async def waits_for(y):
    return y


def raised(y):
    """An error that knows a tensor by the locals of what raised it alone."""
    try:
        raise KeyError
    except KeyError as error:
        return error


#: Objects between a function and the tensor that it knows.
BETWEEN = {
    "a derived dict": lambda y: type("Own", (dict,), {})(a=y),
    "a defaultdict": lambda y: collections.defaultdict(lambda: y),
    "a deque": lambda y: collections.deque([y]),
    "a set": lambda y: {y},
    "a slot": lambda y: Slotted(y),
    "an attribute": lambda y: types.SimpleNamespace(a=y),
    "an array of objects": lambda y: np.array([None, [y]], dtype=object),
    "a function's attribute": lambda y: with_attribute(y),
    "a default": lambda y: lambda value=y: value,
    "a default by name": lambda y: lambda *, value=y: value,
}


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def with_attribute(y):
    def made():
        pass

    made.y = y
    return made


@pytest.mark.parametrize("way", BETWEEN)
def test_a_function_that_knows_a_tensor_by_way_of_an_object_is_refused(way):
    def call(x):
        between = BETWEEN[way](x * 2)
        return lambda: between

    f = TinyJit(call)
    f(Tensor([1.0]))
    with pytest.raises(JitError, match="returns a function that holds a tensor that it computed"):
        f(Tensor([1.0]))


@pytest.mark.filterwarnings("ignore:coroutine 'waits_for' was never awaited")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", HIDING)
def test_a_tensor_where_no_other_can_be_put_is_refused(kind):
    f = TinyJit(lambda x: HIDING[kind](x * 2))
    f(Tensor([1.0]))
    with pytest.raises(JitError, match=f"returns a {kind} that holds a tensor that it computed"):
        f(Tensor([1.0]))


@pytest.mark.parametrize(
    "make", [iter, lambda items: (each for each in items), lambda items: zip(items, items, strict=False)]
)
def test_what_gives_its_items_once_is_refused(make):
    f = TinyJit(lambda x: make([x * 2]))
    f(Tensor([1.0]))
    with pytest.raises(JitError, match="gives its items once"):
        f(Tensor([1.0]))


def test_what_holds_older_tensors_only_is_returned_as_it_is():
    w = Tensor([3.0]).realize()
    f = TinyJit(lambda x: (x * w, lambda y: y * w))
    for _ in range(4):
        product, function = f(Tensor([2.0]))
        assert (product.item(), function(Tensor([5.0])).item()) == (6.0, 15.0)

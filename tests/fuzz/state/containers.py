"""Containers of numbers, those of the standard library and arrays."""

from __future__ import annotations

import array
import collections
import types

import numpy as np

from lazygrad import Tensor
from tests.fuzz.state.kinds import kind, state


@kind
def a_list():
    held = [1.0, 2.0]

    def read():
        total = 0.0
        for each in held:
            total += each
        return total

    return state(
        read,
        held.append,
        lambda n: held.__setitem__(0, n),
        lambda n: held.reverse(),
        lambda n: held.__setitem__(0, int(n)),
    )


@kind
def a_long_list():
    held = [float(n) for n in range(300)]
    return state(lambda: held[150] + len(held), lambda n: held.__setitem__(150, n), held.append)


@kind
def a_long_dict():
    held = {n: float(n) for n in range(300)}
    return state(
        lambda: held[150] + len(held),
        lambda n: held.__setitem__(150, n),
        lambda n: held.__setitem__(int(n) + 1000, n),
    )


@kind
def a_deque():
    held = collections.deque([1.0, 2.0], maxlen=4)
    return state(lambda: held[0] * 2 + sum(held), held.append, held.appendleft, lambda n: held.rotate(1))


@kind
def a_dict():
    held = {"a": 1.0, "b": 2.0}
    return state(
        lambda: held["a"] + held.get("c", 0.0) + len(held),
        lambda n: held.__setitem__("a", n),
        lambda n: held.__setitem__("c", n),
        lambda n: held.pop("c", None),
        lambda n: held.update({"b": n}),
    )


@kind
def a_dict_by_its_views():
    held = {"a": 1.0, "b": 2.0}
    values, items = held.values(), held.items()
    return state(
        lambda: sum(values) + next(value for key, value in items if key == "a"),
        lambda n: held.__setitem__("a", n),
        lambda n: held.__setitem__("c", n),
    )


@kind
def a_dict_by_a_bound_method():
    held = {"a": 1.0}
    get = held.get
    return state(lambda: get("a"), lambda n: held.__setitem__("a", n))


@kind
def other_dicts():
    default = collections.defaultdict(float, a=1.0)
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    counter = collections.Counter(a=1)
    chain = collections.ChainMap({"a": 1.0}, {"b": 2.0})
    proxy = types.MappingProxyType(default)

    def read():
        first = next(iter(ordered.values()))
        return default["a"] + first + counter["a"] + counter["missing"] + chain["a"] * chain["b"] + proxy["a"]

    return state(
        read,
        lambda n: default.__setitem__("a", n),
        lambda n: ordered.move_to_end("a"),
        lambda n: counter.update(["a", "missing"]),
        lambda n: chain.__setitem__("a", n),
        lambda n: chain.maps[1].__setitem__("b", n),
        lambda n: chain.maps.insert(0, {"b": n}),
    )


@kind
def sets():
    held, frozen = {1.0, 2.0}, frozenset([1.0])

    def change(number):
        nonlocal frozen
        frozen = frozenset([number])

    return state(
        lambda: sum(sorted(held)) + max(frozen) + (5.0 in held), held.add, lambda n: held.discard(2.0), change
    )


Pair = collections.namedtuple("Pair", ["a", "b"])


@kind
def a_namedtuple():
    held = Pair(1.0, [2.0])

    def change(number):
        nonlocal held
        held = held._replace(a=number)

    return state(lambda: held.a + held[1][0], change, lambda n: held.b.__setitem__(0, n))


@kind
def nested_containers():
    held = {"a": [{"b": (1.0, [2.0])}, collections.deque([3.0])]}

    def read():
        first, second = held["a"]
        _, inner = first["b"]
        return inner[-1] + second[0]

    return state(
        read,
        lambda n: held["a"][0]["b"][1].append(n),
        lambda n: held["a"][1].appendleft(n),
        lambda n: held["a"][0].__setitem__("b", (n, [n])),
    )


@kind
def bytes_in_memory():
    raw, numbers, view = bytearray(b"\x01\x02"), array.array("d", [1.0, 2.0]), memoryview(bytearray(b"\x05"))
    return state(
        lambda: raw[0] + numbers[0] + view[0],
        lambda n: raw.__setitem__(0, int(n)),
        lambda n: numbers.__setitem__(0, n),
        lambda n: view.__setitem__(0, int(n)),
        numbers.append,
    )


@kind
def a_slice_and_a_range():
    part, steps = slice(0, 2), range(3)
    values = (1.0, 2.0, 4.0, 8.0, 16.0)

    def change(number):
        nonlocal part, steps
        part, steps = slice(0, 1 + int(number) % 4), range(int(number))

    return state(lambda: sum(values[part]) + len(steps), change)


@kind
def a_small_array():
    held = np.arange(8.0)
    return state(
        lambda: float(held[3]),
        lambda n: held.__setitem__(3, n),
        lambda n: held.sort(),
        lambda n: held.fill(n),
    )


@kind
def a_larger_array():
    held = np.arange(5000.0)
    view = held[::2]
    return state(
        lambda: float(held[2345]) + float(view.sum()),
        lambda n: held.__setitem__(2345, n),
        lambda n: held.__setitem__(slice(None), n),
    )


@kind
def an_array_as_a_tensor():
    held = np.ones((2, 100), np.float32)
    return state(lambda: Tensor(held).sum(), lambda n: held.__setitem__((1, 7), n))

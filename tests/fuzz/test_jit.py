"""TinyJit and Python state of every kind: after any change each call gives what the plain function gives.

A program is a function that reads one or two pieces of state, each of some standard kind and by some way of
reading it, and calls with changes of the state between them: a value changes, a container grows, an object
is replaced, a tensor is written or replaced, an argument has another shape. Every call of the jit is compared
with the plain function. What cannot be captured is refused by a JitError that names the cause.
"""

from __future__ import annotations

import abc
import array
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import itertools
import operator
import os
import random
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import JitError, Tensor, TinyJit
from tests.fuzz.harness import fuzzed

Read = Callable[[], Any]


class State:
    """One piece of state. `read` gives a number or a tensor from it, each change makes it another.

    Changes that leave the value as it is are part of it: nothing may depend on a change being one.
    """

    read: Read
    changes: list[Callable[[float], None]]


def state(read: Read, *changes: Callable[[float], None]) -> State:
    made = State()
    made.read, made.changes = read, list(changes)
    return made


KINDS: dict[str, Callable[[], State]] = {}


def kind(make: Callable[[], State]) -> Callable[[], State]:
    KINDS[make.__name__] = make
    return make


# ---- names ----


@kind
def a_cell():
    value = 1.0

    def change(number):
        nonlocal value
        value = number

    return state(lambda: value, change)


@kind
def a_cell_that_changes_its_type():
    value: Any = 1

    def change(number):
        nonlocal value
        value = type(number) is float and int(number)

    def other(number):
        nonlocal value
        value = None if value is False else False

    return state(lambda: float(value or 0), change, other)


@kind
def a_closure_of_closures():
    value = 1.0

    def outer():
        def inner():
            return value

        return inner

    reads = outer()

    def change(number):
        nonlocal value
        value = number

    return state(lambda: reads() + outer()(), change)


GLOBAL = 1.0


@kind
def a_global():
    def change(number):
        global GLOBAL
        GLOBAL = number

    change(1.0)
    return state(lambda: GLOBAL, change)


@kind
def a_global_by_globals():
    state_of_global = a_global()
    return state(lambda: globals()["GLOBAL"], *state_of_global.changes)


@kind
def a_module_attribute():
    module = types.ModuleType("fuzzed_module")
    module.rate = 1.0
    sys.modules["fuzzed_module"] = module

    def read():
        import fuzzed_module

        return fuzzed_module.rate + module.rate

    return state(read, lambda n: setattr(module, "rate", n))


@kind
def a_module_attribute_by_import_from():
    module = types.ModuleType("fuzzed_module")
    module.rate = 1.0
    sys.modules["fuzzed_module"] = module

    def read():
        from fuzzed_module import rate

        return rate

    return state(read, lambda n: setattr(module, "rate", n))


@kind
def an_environment_variable():
    def change(number):
        os.environ["FUZZED_RATE"] = str(number)

    change(1.0)
    ways = [lambda: float(os.environ["FUZZED_RATE"]), lambda: float(os.getenv("FUZZED_RATE", "0"))]
    environ = os.environ
    ways += [lambda: float(environ.get("FUZZED_RATE", 2.0)), lambda: float(os.environ.copy()["FUZZED_RATE"])]
    return state(lambda: sum(way() for way in ways), change, lambda n: os.environ.pop("FUZZED_OTHER", None))


# ---- containers ----


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


# ---- objects ----


class Config:
    rate = 1.0

    def __init__(self):
        self.scale, self.inner = 1.0, types.SimpleNamespace(depth=1.0, more={})

    @property
    def twice(self):
        return self.scale * 2

    @functools.cached_property
    def once(self):
        return self.scale * 3

    @classmethod
    def of_class(cls):
        return cls.rate

    @staticmethod
    def of_nobody():
        return Config.rate

    def method(self):
        return self.scale


@kind
def an_attribute():
    held = Config()

    def read():
        alias = held
        inner = alias.inner
        return alias.scale + inner.depth + held.twice + held.method()

    def change(number):
        held.inner = types.SimpleNamespace(depth=number)

    def replace(number):
        nonlocal held
        held = Config()
        held.scale = number

    return state(
        read,
        lambda n: setattr(held, "scale", n),
        lambda n: setattr(held.inner, "depth", n),
        change,
        replace,
    )


@kind
def an_attribute_by_name():
    held = Config()
    name = "scale"
    get = operator.attrgetter("scale")

    def read():
        here = getattr(held, "scale") + getattr(held, "added", 0.0)  # noqa: B009
        here += 1.0 if hasattr(held, "other") else 0.0
        return here + getattr(held, name) + get(held) + object.__getattribute__(held, "scale")

    def change(number):
        nonlocal name
        name = "rate" if name == "scale" else "scale"

    return state(
        read,
        lambda n: setattr(held, "scale", n),
        lambda n: setattr(held, "added", n),
        lambda n: setattr(held, "other", n),
        change,
    )


@kind
def attributes_by_their_dict():
    held, other = Config(), Config()

    def read():
        alias = other
        total = vars(held)["scale"] + alias.__dict__["scale"]
        for value in vars(alias).values():
            total += value if isinstance(value, float) else 0.0
        return total

    return state(
        read,
        lambda n: setattr(held, "scale", n),
        lambda n: setattr(other, "scale", n),
        lambda n: setattr(other, "added", n),
    )


@kind
def attributes_of_a_class():
    class Local(Config):
        pass

    held = Local()

    def read():
        return held.rate + Local.rate + type(held).rate + held.of_class() + held.of_nobody() + held.once

    def change(number):
        Config.rate = number

    def forget(number):
        held.__dict__.pop("once", None)
        held.scale = number

    Config.rate = 1.0
    return state(
        read,
        change,
        forget,
        lambda n: setattr(Local, "rate", n),
        lambda n: setattr(held, "rate", n),
    )


class Asked:
    """Its attributes are asked for."""

    def __init__(self):
        self._values = {"rate": 1.0}

    def __getattr__(self, name):
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


class Everything:
    def __init__(self):
        object.__setattr__(self, "hidden", 1.0)

    def __getattribute__(self, name):
        return (
            object.__getattribute__(self, "hidden") if name == "rate" else object.__getattribute__(self, name)
        )


class Dict(dict):
    __getattr__ = dict.__getitem__


@kind
def a_custom_getattr():
    held, every, both = Asked(), Everything(), Dict(rate=1.0)
    return state(
        lambda: held.rate + every.rate + both.rate,
        lambda n: held._values.__setitem__("rate", n),
        lambda n: object.__setattr__(every, "hidden", n),
        lambda n: both.__setitem__("rate", n),
        lambda n: setattr(held, "rate", n),
    )


class Slots:
    __slots__ = ("rate",)

    def __init__(self, rate=1.0):
        self.rate = rate


@kind
def slots():
    held = Slots()
    return state(lambda: held.rate, lambda n: setattr(held, "rate", n))


@dataclasses.dataclass
class Options:
    rate: float = 1.0
    parts: list[Any] = dataclasses.field(default_factory=lambda: [1.0])


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    rate: float = 1.0


@kind
def dataclasses_of_each_kind():
    held, fixed = Options(), Fixed()

    def change(number):
        nonlocal fixed
        fixed = dataclasses.replace(fixed, rate=number)

    def read():
        whole = dataclasses.asdict(held)
        match held:
            case Options(rate, parts=parts):
                return rate + parts[0] + whole["rate"] + fixed.rate + (fixed == Fixed(1.0))
        return 0.0

    return state(
        read,
        change,
        lambda n: setattr(held, "rate", n),
        lambda n: held.parts.__setitem__(0, n),
        lambda n: setattr(held, "parts", [n]),
    )


class Mode(enum.Enum):
    ADD = "add"
    MULTIPLY = "multiply"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@kind
def enumerations():
    mode, level = Mode.ADD, Level.LOW

    def change(number):
        nonlocal mode
        mode = Mode.MULTIPLY if mode is Mode.ADD else Mode.ADD

    def other(number):
        nonlocal level
        level = Level.HIGH if level is Level.LOW else Level.LOW

    return state(lambda: (2.0 if mode is Mode.ADD else 3.0) * level + len(mode.value), change, other)


class Descriptor:
    def __init__(self):
        self.values = weakref.WeakKeyDictionary()

    def __get__(self, owner, kind=None):
        return self.values.get(owner, 1.0)

    def __set__(self, owner, value):
        self.values[owner] = value


class Base(abc.ABC):
    @abc.abstractmethod
    def value(self): ...


class Derived(Base):
    rate = Descriptor()
    shared: list[float] = [1.0]

    def value(self):
        return self.rate + self.shared[0]


@kind
def a_descriptor():
    held = Derived()
    Derived.shared[0] = 1.0
    return state(held.value, lambda n: setattr(held, "rate", n), lambda n: Derived.shared.__setitem__(0, n))


@kind
def objects_in_containers():
    held = [Config(), Config()]
    table = {"a": Slots(), "b": [Slots()]}

    def read():
        total = held[0].scale + table["b"][-1].rate
        for each in held:
            total += each.scale
        return total + sum(each.inner.depth for each in held) + table["a"].rate

    return state(
        read,
        lambda n: setattr(held[1], "scale", n),
        lambda n: setattr(held[0].inner, "depth", n),
        lambda n: held.append(Config()),
        lambda n: held.reverse(),
        lambda n: setattr(table["a"], "rate", n),
        lambda n: table["b"].append(Slots(n)),
    )


REGISTRY: dict[str, Any] = {}


def registered(name):
    return REGISTRY[name]


@kind
def an_object_that_a_function_gives():
    REGISTRY["config"] = Config()

    def change(number):
        REGISTRY["config"] = Config()
        REGISTRY["config"].scale = number

    return state(
        lambda: registered("config").scale + registered("config").inner.depth,
        change,
        lambda n: setattr(REGISTRY["config"], "scale", n),
        lambda n: setattr(REGISTRY["config"].inner, "depth", n),
    )


@kind
def references():
    held = Config()
    weak, proxy = weakref.ref(held), weakref.proxy(held)
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("fuzzed", default=1.0)
    local = threading.local()
    local.rate = 1.0

    def read():
        return weak().scale + proxy.scale + variable.get() + local.rate

    return state(
        read,
        lambda n: setattr(held, "scale", n),
        lambda n: setattr(local, "rate", n),
        variable.set,
    )


@kind
def objects_of_the_standard_library():
    user, event = collections.UserDict(a=1.0), threading.Event()
    return state(
        lambda: user["a"] + (1.0 if event.is_set() else 0.0),
        lambda n: user.__setitem__("a", n),
        lambda n: event.set(),
        lambda n: event.clear(),
    )


# ---- functions ----


@kind
def default_arguments():
    held = [1.0]

    def inner(x=held, *, more={"a": 1.0}):  # noqa: B006
        return x[0] + more["a"]

    return state(
        lambda: inner(),
        lambda n: held.__setitem__(0, n),
        lambda n: inner.__kwdefaults__["more"].__setitem__("a", n),
    )


@kind
def a_partial():
    held = [1.0]
    made = functools.partial(lambda a, b, c: a[0] + b + c, held, b=1.0)
    scaled = functools.partial(operator.mul, 2.0)

    def change(number):
        nonlocal scaled
        scaled = functools.partial(operator.mul, number)

    return state(
        lambda: made(c=1.0) + scaled(3.0),
        change,
        lambda n: held.__setitem__(0, n),
        lambda n: made.keywords.__setitem__("b", n),
    )


@kind
def a_cached_function():
    value = 1.0

    @functools.lru_cache
    def cached(name):
        return value + len(name)

    def change(number):
        nonlocal value
        value = number
        cached.cache_clear()

    return state(lambda: cached("a"), change)


@kind
def an_attribute_of_a_function():
    def inner():
        return inner.rate

    inner.rate = 1.0
    return state(lambda: inner() + inner.rate, lambda n: setattr(inner, "rate", n))


@kind
def a_method_of_a_class_with_a_closure():
    value = 1.0

    class Local:
        def __call__(self):
            return value

        def __getitem__(self, key):
            return value * key

    held = [Local()]

    def change(number):
        nonlocal value
        value = number

    return state(lambda: held[0]() + held[0][2], change)


@kind
def a_function_that_is_replaced():
    table = {"f": lambda: 1.0}
    config = Config()

    def change(number):
        table["f"] = lambda: number

    return state(
        lambda: table["f"]() + config.method(), change, lambda n: setattr(config, "method", lambda: n)
    )


@kind
def a_generator_function():
    held = [1.0, 2.0]

    def each():
        for value in held:
            yield value * 2

    return state(lambda: sum(each()) + max(v for v in each()), held.append, lambda n: held.__setitem__(0, n))


@kind
def copies():
    held = Config()

    def read():
        shallow, deep = copy.copy(held), copy.deepcopy(held.inner)
        return shallow.scale + deep.depth

    return state(read, lambda n: setattr(held, "scale", n), lambda n: setattr(held.inner, "depth", n))


# ---- tensors ----


def small(number: float) -> Tensor:
    return Tensor([number, 2.0]).realize()


@kind
def a_tensor():
    held = small(1.0)

    def replace(number):
        nonlocal held
        held = small(number)

    return state(
        lambda: held.sum(),
        replace,
        lambda n: held.assign(small(n)),
        lambda n: held.replace(small(n)),
        lambda n: held.__setitem__(0, n),
        lambda n: held.assign(small(n)).realize(),
    )


@kind
def tensors_in_containers():
    held: Any = {"a": [small(1.0)], "b": collections.deque([small(1.0)]), "c": (small(1.0),)}
    config = Config()
    config.inner.more["t"] = small(1.0)

    def read():
        more = config.inner.more
        return held["a"][-1].sum() + held["b"][0].sum() + held["c"][0].sum() + more["t"].sum()

    return state(
        read,
        lambda n: held["a"].append(small(n)),
        lambda n: held["b"].appendleft(small(n)),
        lambda n: held["c"][0].assign(small(n)),
        lambda n: held["b"].__setitem__(0, small(n)),
        lambda n: held.__setitem__("c", (small(n),)),
        lambda n: config.inner.more.__setitem__("t", small(n)),
    )


@kind
def a_tensor_and_what_is_said_of_it():
    held = small(1.0)

    def read():
        scale = 2.0 if held.requires_grad else 3.0
        gradient = 0.0 if held.grad is None else held.grad.sum()
        return held.detach().sum() * scale + gradient

    def gradient(number):
        held.grad = small(number)

    return state(
        read,
        gradient,
        lambda n: setattr(held, "grad", None),
        lambda n: held.requires_grad_(not held.requires_grad),
    )


@kind
def a_tensor_of_another_shape():
    held = small(1.0)

    def replace(number):
        nonlocal held
        held = Tensor([number] * (1 + int(number) % 4)).realize()

    return state(lambda: held.sum() * held.shape[0], replace)


@kind
def a_tensor_by_weak_reference():
    tensors = [small(1.0)]
    weak = [weakref.ref(tensors[0])]

    def change(number):
        tensors[0] = small(number)
        weak[0] = weakref.ref(tensors[0])

    return state(lambda: weak[0]().sum(), change, lambda n: tensors[0].assign(small(n)))


# ---- what is refused ----

REFUSED: dict[str, Callable[[], Read]] = {}


def refused(make: Callable[[], Read]) -> Callable[[], Read]:
    REFUSED[make.__name__] = make
    return make


@refused
def a_random_number():
    return lambda: random.uniform(0, 1)


@refused
def a_random_number_by_another_name():
    draw = random.random
    return lambda: draw()


@refused
def a_random_choice():
    return lambda: random.choice([1.0, 2.0])


@refused
def random_bytes():
    return lambda: float(os.urandom(1)[0])


@refused
def a_random_number_of_an_object():
    held = Config()
    held.source = random.Random(3)
    return lambda: held.source.random()


@refused
def a_random_number_of_numpy():
    return lambda: float(np.random.rand())


@refused
def a_random_number_of_numpys_generator():
    held = Config()
    held.source = np.random.default_rng(3)
    return lambda: held.source.normal()


@refused
def a_new_generator_of_numpy():
    return lambda: float(np.random.default_rng().normal())


@refused
def an_iterator():
    held = iter([1.0] * 100)
    return lambda: next(held)


@refused
def an_iterator_of_an_object():
    config = Config()
    config.source = [itertools.count()]

    def read():
        total = 0.0
        for each in config.source[0]:
            total += each
            break
        return total

    return read


@refused
def a_generator():
    held = {"g": (float(n) for n in range(100))}
    return lambda: next(held["g"])


@refused
def a_clock():
    return lambda: time.time() % 1.0


@refused
def a_clock_by_another_name():
    clock = time.perf_counter
    return lambda: clock() % 1.0


@refused
def a_file():
    return lambda: float(len(open(__file__).read()))


@refused
def a_file_by_its_path():
    import pathlib

    path = pathlib.Path(__file__)
    return lambda: float(len(path.read_text()) + path.stat().st_size)


@refused
def a_file_that_is_open():
    held = open(__file__)  # noqa: SIM115
    return lambda: float(len(held.readline()))


@refused
def a_large_array():
    held = np.ones(1 << 19, np.float64)
    return lambda: float(held[7])


@refused
def a_very_long_list():
    held = [1.0] * 10_000
    return lambda: held[7]


# ---- programs ----


WAYS: dict[str, Callable[[list[Read]], Callable[[Tensor], Tensor]]] = {
    "a function": lambda reads: lambda x: functools.reduce(lambda y, read: y * 0.5 + read(), reads, x),
    "a method": lambda reads: Model(reads).forward,
    "an object": lambda reads: Model(reads),
    "a branch": lambda reads: lambda x: branched(x, reads),
}


class Model:
    def __init__(self, reads):
        self.reads = reads

    def forward(self, x):
        for read in self.reads:
            x = x * 0.5 + read()
        return x

    __call__ = forward


def branched(x, reads):
    for read in reads:
        value = read()
        if isinstance(value, Tensor):
            x = x + value
        elif value > 2.0:
            x = x * value
        else:
            x = x - value
    return x


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(1, 6), st.integers(0, 6), st.booleans()),
    min_size=3,
    max_size=9,
)


@fuzzed(quick=40, sweep=1000, share=125)
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2), st.sampled_from(sorted(WAYS)), STEPS)
def test_no_state_is_stale(kinds, way, steps):
    states = [KINDS[name]() for name in kinds]
    function = WAYS[way]([each.read for each in states])
    jitted = TinyJit(function)
    x = Tensor([1.0, -2.0, 0.5]).realize()
    for _ in range(3):
        check(jitted, function, x, "at first")
    for number, (which, change, value, shape, rests) in enumerate(steps):
        changed = states[which % len(states)]
        if not rests:
            changed.changes[change % len(changed.changes)](float(value))
        x = Tensor(np.arange(float(shape + 1), dtype=np.float32)).realize() if shape else x
        check(jitted, function, x, f"call {number + 4}")


def check(jitted: Any, function: Any, x: Tensor, where: str) -> None:
    expected = function(x).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what changes too often runs without captures
        got = jitted(x).numpy()
    assert got.dtype == expected.dtype, where
    np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=where)


@pytest.mark.parametrize(("name", "way"), zip(sorted(REFUSED), itertools.cycle(sorted(WAYS)), strict=False))
def test_what_cannot_be_captured_is_refused(name, way):
    read = REFUSED[name]()
    jitted = TinyJit(WAYS[way]([read]))
    x = Tensor([1.0, 2.0]).realize()
    jitted(x)
    with pytest.raises(JitError, match=r"every later call would use|more than each call would compare"):
        jitted(x)

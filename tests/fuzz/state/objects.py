"""Objects: attributes, classes, descriptors, enumerations, dataclasses."""

from __future__ import annotations

import abc
import collections
import contextvars
import dataclasses
import enum
import operator
import threading
import types
import weakref
from typing import Any

from tests.fuzz.state.kinds import Config, kind, state


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

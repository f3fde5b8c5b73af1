"""What Python values are to the jit: compared by contents, looked into, asked, or impossible to compare."""

from __future__ import annotations

import contextvars
import functools
import io
import math
import numbers
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: Above so many items a container of numbers is compared as a whole, and not item by item.
MAX_ITEMS = 64
_OWN = __package__.partition(".")[0] + "."
MISSING = type("Missing", (), {"__repr__": lambda self: "nothing"})()
PLAIN = (bool, int, float, str, bytes, complex, type(None))


def is_array(value: Any) -> bool:
    """Whether it is a numpy array or number; numpy itself is not imported for that."""
    kind = type(value)
    if not hasattr(kind, "tobytes") or not hasattr(kind, "shape"):
        return False
    return any(base.__module__ == "numpy" for base in kind.__mro__)


def bytes_and_form(array: Any) -> tuple[Any, ...]:
    """What equal arrays have in common. Copying and comparing the bytes takes 0.05 us for each KiB."""
    return (type(array), array.dtype, array.shape, array.tobytes())


def same_plain(a: Any, b: Any) -> bool:
    """Equal and of one type, and so is what they hold; NaN equals itself, 0.0 and -0.0 differ."""
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if kind is complex:
        return same_plain(a.real, b.real) and same_plain(a.imag, b.imag)
    if kind in (tuple, frozenset):  # of equal sets, one may give its items in another order
        return len(a) == len(b) and all(map(_is_or_same, a, b))
    if kind in (slice, range):
        return all(map(_is_or_same, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
    return is_true(a == b)


def _is_or_same(a: Any, b: Any) -> bool:
    return a is b or same_plain(a, b)


class Exactly:
    """Items in their order, to be compared with those of later calls.

    Equality of lists looks at the items' identity first: a nanosecond for each that is the same object. What
    it takes for equal and we do not, 1 and 1.0 or 0.0 and -0.0, is looked at besides.
    """

    __slots__ = ("items", "types", "watched")

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)
        self.types = list(map(type, self.items))
        zero = [type(item) is float and not item for item in self.items]
        self.watched = [n for n, kind in enumerate(self.types) if zero[n] or kind in _HOLDING]

    def fits(self, now: list[Any]) -> bool:
        """Whether these are the same."""
        if now != self.items or list(map(type, now)) != self.types:
            return False
        return all(_is_or_same(now[n], self.items[n]) for n in self.watched)


#: Equal ones of these may hold what is not the same.
_HOLDING = (complex, tuple, frozenset)


def is_true(value: Any) -> bool:
    """Whether a comparison said a plain True."""
    return value is True


def is_fixed(value: Any) -> bool:
    """Whether another object that is equal stands for a value, since neither can change."""
    kind = type(value)
    own = next(base for base in kind.__mro__ if "__eq__" in vars(base)) is not object
    if not own or kind.__hash__ is None or isinstance(value, (tuple, frozenset)):
        return False
    if not is_instance(value):
        return True
    parameters = getattr(kind, "__dataclass_params__", None)
    frozen = parameters is not None and parameters.frozen
    return frozen and all(type(part) in PLAIN for _, part in fields_of(value))


def same_fixed(a: Any, b: Any) -> bool:
    """Whether two values of one type, of which one `is_fixed`, are the same: equal, and so are the types and
    signs of the numbers in them.
    """
    if not is_true(a == b):
        return False
    if is_instance(a):
        fields = dict(fields_of(b))
        return all(same_plain(part, fields.get(name)) for name, part in fields_of(a))
    return not isinstance(a, numbers.Number) or repr(a) == repr(b)  # Decimal("1.0") and Decimal("1")


#: How a value of a class derived from one of these becomes one of these, whatever methods its class has.
_AS_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
}


def plain_part(value: Any) -> Any:
    """The number or text that an instance of a derived class is; None where it is none."""
    return next((plain(value) for kind, plain in _AS_PLAIN.items() if isinstance(value, kind)), None)


# *** instances


def is_instance(value: Any) -> bool:
    """Whether a value is an instance that holds attributes, of a class whose instances are looked into."""
    kind = type(value)
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return False
    return _is_looked_into(kind)


def _is_looked_into(kind: type) -> bool:
    if kind is types.SimpleNamespace:
        return True
    made_by_a_class_statement = kind.__flags__ & (1 << 9)  # Py_TPFLAGS_HEAPTYPE
    if not made_by_a_class_statement or issubclass(kind, type):
        return False
    holds = kind.__dictoffset__ != 0 or any(vars(base).get("__slots__") for base in kind.__mro__)
    if kind.__module__.startswith(_OWN):
        return kind.__module__.startswith(f"{_OWN}nn")
    return holds and kind.__module__.partition(".")[0] not in _CLOSED


#: Instances of classes of these are not looked into: they do not change, or not in a way that counts.
_CLOSED = frozenset(("builtins", "numpy", "torch", "re", "pathlib", "functools", "typing", "logging"))


def is_closed_inside(kind: type) -> bool:
    """Whether methods of a library read attributes of its instances: then all that they hold is compared."""
    return any(_is_of_a_library(base.__module__) for base in kind.__mro__)


@functools.lru_cache(4096)
def _is_of_a_library(module: str) -> bool:
    if module.startswith(_OWN):
        return True
    first = module.partition(".")[0]
    return first in sys.stdlib_module_names - _ONLY_FORMS


#: Their classes are bases of the user's, and hold nothing; `types` and `argparse` have bags of attributes.
_ONLY_FORMS = frozenset(("__main__", "builtins", "abc", "typing", "enum", "_collections_abc"))
_ONLY_FORMS |= {"contextlib", "types", "argparse", "dataclasses", "string", "numbers"}


def fields_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What an instance holds: its attributes and its slots."""
    yield from list(getattr(value, "__dict__", {}).items())
    for name in slots_of(type(value)):
        if hasattr(value, name):
            yield name, getattr(value, name)


def slots_of(kind: type) -> tuple[str, ...]:
    """The names of the slots of a class and its bases."""
    found = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            if not slot.startswith("__"):
                found.append(slot)
    return tuple(found)


def is_library(value: Any) -> bool:
    """Whether an instance's class is one of lazygrad's own, or made from one."""
    return any(base.__module__.startswith(_OWN) for base in type(value).__mro__)


def kind_text(value: Any) -> str:
    """A value as an error says it."""
    if type(value) in PLAIN:
        return repr(value)
    return "nothing" if value is MISSING else f"a {type(value).__name__}"


@functools.lru_cache(4096)
def is_closed_module(name: str) -> bool:
    """Whether a module is lazygrad's, the standard library's or numpy's: its contents do not change."""
    first = name.partition(".")[0]
    return first in (
        "numpy",
        "llvmlite",
        __package__.partition(".")[0],
    ) or first in sys.stdlib_module_names - {"__main__"}


# *** objects that hold others


def how_to_ask(value: Any) -> Callable[[Any], Any] | None:
    """What says what an object that is the same holds now; None where nothing needs to be asked."""
    if isinstance(value, weakref.ref):
        return lambda reference: reference()
    if isinstance(value, contextvars.ContextVar):
        return lambda variable: variable.get(MISSING)
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return lambda partial: (partial.func, partial.args, partial.keywords)
    if isinstance(value, (io.BytesIO, io.StringIO)) and not value.closed:
        return lambda memory: (memory.tell(), memory.getvalue())
    if isinstance(value, types.BuiltinMethodType):
        owner = value.__self__
        held = owner is not None and not isinstance(owner, (types.ModuleType, type))
        return (lambda method: method.__self__) if held else None
    if type(value) in (weakref.ProxyType, weakref.CallableProxyType):
        return _behind_proxy
    return (lambda memory: memoryview(memory).tobytes()) if _has_bytes(value) else None


def _behind_proxy(proxy: Any) -> Any:
    try:
        return proxy.__repr__.__self__  # a method of the object itself
    except ReferenceError:
        return MISSING


def _has_bytes(value: Any) -> bool:
    """Whether a value is memory: a bytearray, an array.array, a ctypes structure, a mapped file."""
    if isinstance(value, type) or type(value) in PLAIN:
        return False
    try:
        memoryview(value).release()
    except (TypeError, ValueError, BufferError, RuntimeError):
        return False
    return True


# *** what cannot be compared


def why_not_compared(value: Any) -> str | None:
    """Why no later call could be told from the captured one, and what to do instead; None where it can."""
    kind = type(value)
    if hasattr(kind, "__next__") and not _is_python_code(kind, "__next__"):
        if hasattr(kind, "readable"):
            if value.closed or not value.readable() or value.writable():
                return None
            return (
                f"is a file (a {kind.__name__}), and every later call would use what was read from it "
                "in the capture; read it outside and pass what it gives as an argument"
            )
        return (
            f"is an iterator (a {kind.__name__}), and every later call would use what it gave in the "
            "capture; call next() outside and pass what it gives as an argument"
        )
    if hasattr(kind, "data_ptr") and any(
        base.__module__.partition(".")[0] == "torch" for base in kind.__mro__
    ):
        return "is a tensor of torch, which later calls could not compare; make it a lazygrad Tensor"
    return None


def _is_python_code(kind: type, name: str) -> bool:
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return isinstance(found, types.FunctionType)

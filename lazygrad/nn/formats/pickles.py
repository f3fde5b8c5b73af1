"""Pickles read as data: numbers, texts, containers of them, and what the reader lists by name.

A pickle is a program. Python's own reader imports what it names, calls it, and sets attributes of any object
it can reach, types of the whole process among them. This one runs on a stack of plain data: a name is a
`Name`, which is no class; called is only what `calls` lists, and it checks what it gets; the one attribute
that is set is that of an OrderedDict. Whatever else an opcode could do is refused.

The opcodes are those that Python's picklers write from protocol 2 on (`pickletools.opcodes` describes them).
Memory and time are in proportion to the pickle.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .source import Source, Window, shown

_NOT_READ = "which is not read: save a state dict of tensors"


class Name(NamedTuple):
    """What a pickle calls a class or a function; nothing was imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return shown(f"{self.module}.{self.name}")


class Opaque:
    """What a call or a persistent id gave that is no data by itself, such as the memory of tensors."""


class Value(NamedTuple):
    """What a name stands for, where that is data: a dtype."""

    value: Any


#: What may be named. What is called takes the call's arguments, raising ValueError where they are not as they
#: should be; None is only named.
Calls = Mapping[Name, Callable[..., Any] | Value | None]

#: Hashes of texts differ from process to process; those of tuples can be chosen to be equal, and a dict of
#: such takes quadratic time.
MOST_TUPLE_KEYS = 10_000
#: Nor may that be done with integers: below this number each is its own hash.
MOST_INT_KEY = (1 << 61) - 1


def read_pickle(
    source: Source,
    begin: int,
    end: int,
    calls: Calls,
    persistent: Callable[[Any], Opaque],
    opaque: type[Opaque] | None = None,
) -> tuple[Any, int]:
    """The object that a pickle between two bytes of a file holds, and where the pickle ends.

    persistent  what stands for a persistent id
    opaque      what may be left in the object though it is no data

    ValueError says at which byte a pickle is damaged, NotImplementedError what of it is not read.
    """
    reader = _Reader(Window(source, begin, end), calls, persistent)
    try:
        found = reader.run()
        _check_is_data(found, opaque)
    except (NotImplementedError, ValueError) as error:
        kind = NotImplementedError if isinstance(error, NotImplementedError) else ValueError
        raise kind(f"{error} (byte {reader.begin} of the pickle at byte {begin})") from None
    return found, begin + reader.bytes.offset


class _Reader:
    """The machine: a stack, the places of its marks, the memo."""

    def __init__(self, window: Window, calls: Calls, persistent: Callable[[Any], Opaque]) -> None:
        self.bytes, self.calls, self.persistent = window, calls, persistent
        self.begin = 0  #: of the opcode
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.tuple_keys = 0

    def run(self) -> Any:
        while True:
            self.begin = self.bytes.offset
            code = self.take(1)[0]
            if code == _STOP:
                break
            step = _STEPS.get(code)
            if step is None:
                raise NotImplementedError(f"opcode {bytes([code])!r}, which no data needs, is not read")
            step(self)
        found = self.pop()
        if self.stack or self.marks:
            raise ValueError("it ends with more than one object")
        return found

    # *** the bytes

    def take(self, count: int) -> bytes:
        window = self.bytes
        begin, end = window.offset, window.offset + count
        if end > len(window.data) and (missing := window.missing(count)):
            raise ValueError(f"it ends {missing} bytes too early")
        window.offset = end
        return window.data[begin:end]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        window = self.bytes
        while (end := window.data.find(b"\n", window.offset)) < 0:
            if window.missing(len(window.data) + 1 - window.offset):
                raise ValueError("a line does not end")
        found = window.data[window.offset : end]
        window.offset = end + 1
        return _text(found)

    # *** the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise ValueError("the stack is empty")
        return self.stack.pop()

    def top(self, kind: type, what: str) -> Any:
        found = self.stack[-1] if len(self.stack) > (self.marks[-1] if self.marks else 0) else None
        if type(found) is not kind:
            an = "an" if kind is OrderedDict else "a"
            raise ValueError(f"{what} needs {an} {kind.__name__}, not a {type(found).__name__}")
        return found

    def since_mark(self) -> list[Any]:
        if not self.marks:
            raise ValueError("there is no mark")
        place = self.marks.pop()
        found = self.stack[place:]
        del self.stack[place:]
        return found

    # *** memory of what was made

    def put(self, number: int) -> None:
        if not self.stack:
            raise ValueError("the stack is empty")
        self.memo[number] = self.stack[-1]

    def get(self, number: int) -> None:
        if number not in self.memo:
            raise ValueError(f"there is no object {number}")
        self.push(self.memo[number])

    # *** containers

    def extend(self, items: list[Any]) -> None:
        self.top(list, "APPEND").extend(items)

    def set_items(self, target: dict[Any, Any], pairs: list[Any]) -> None:
        if len(pairs) % 2:
            raise ValueError("a key has no value")
        for place in range(0, len(pairs), 2):
            target[self.key(pairs[place])] = pairs[place + 1]

    def set_on_top(self, pairs: list[Any]) -> None:
        found = self.stack[-1] if self.stack else None
        self.set_items(self.top(OrderedDict if type(found) is OrderedDict else dict, "SETITEMS"), pairs)

    def key(self, value: Any) -> Any:
        """A value that may be a key or in a set."""
        if type(value) is tuple:
            self.tuple_keys += 1
            if self.tuple_keys > MOST_TUPLE_KEYS:
                raise NotImplementedError(f"more than {MOST_TUPLE_KEYS} tuples as keys are not read")
            members: tuple[Any, ...] = value
        else:
            members = (value,)
        for part in members:
            if type(part) not in _KEYS:
                raise NotImplementedError(
                    f"a {type(value).__name__} as a key is not read, only texts, bytes, numbers, and tuples "
                    "of them"
                )
            if type(part) is int and abs(part) >= MOST_INT_KEY:
                raise NotImplementedError("an integer of 61 bits or more as a key is not read")
        return value

    # *** what is called

    def call(self) -> None:
        given, name = self.pop(), self.pop()
        if type(name) is not Name or type(given) is not tuple:
            raise ValueError("REDUCE needs a name and a tuple of arguments")
        function = self.calls[name]
        if function is None or isinstance(function, Value):
            raise ValueError(f"{name} is not called")
        try:
            made = function(*given)
        except TypeError as error:
            raise ValueError(f"{name} does not take these arguments: {error}") from None
        self.push(made)

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name consists of two texts")
        found = Name(module, name)
        if found not in self.calls:
            raise NotImplementedError(f"the file holds a {found}, {_NOT_READ}")
        what = self.calls[found]
        self.push(what.value if isinstance(what, Value) else found)

    def build(self) -> None:
        """The state of an object: of an OrderedDict, which PyTorch gives the versions of its layers."""
        state = self.pop()
        target: Any = self.top(OrderedDict, "BUILD")
        if type(state) is not dict or not state.keys() <= {"_metadata"}:
            raise NotImplementedError("the state of an OrderedDict is not read, but for its _metadata")
        for value in state.values():
            target._metadata = value


def _text(found: bytes) -> str:
    try:
        return found.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"a text is not UTF-8: {error.reason}") from None


def _version(reader: _Reader) -> None:
    version = reader.number(1)
    if version > 5:
        raise NotImplementedError(f"protocol {version} is not read, only those to 5")


def _frame(reader: _Reader) -> None:
    size = reader.number(8)
    if size > reader.bytes.size - reader.bytes.offset:
        raise ValueError(f"a frame of {size} bytes is longer than the pickle")


def _long(reader: _Reader, size: int) -> None:
    reader.push(int.from_bytes(reader.take(size), "little", signed=True))


def _tuple(count: int) -> Callable[[_Reader], None]:
    def step(reader: _Reader) -> None:
        place = len(reader.stack) - count
        if place < (reader.marks[-1] if reader.marks else 0):
            raise ValueError("the stack is empty")
        parts = tuple(reader.stack[place:])
        del reader.stack[place:]
        reader.push(parts)

    return step


def _dict(reader: _Reader) -> None:
    made: dict[Any, Any] = {}
    reader.set_items(made, reader.since_mark())
    reader.push(made)


def _set_item(reader: _Reader) -> None:
    value, key = reader.pop(), reader.pop()
    reader.set_on_top([key, value])


def _drop(reader: _Reader) -> None:
    """The object on top, or the mark, if that is what is there."""
    if reader.marks and reader.marks[-1] == len(reader.stack):
        reader.marks.pop()
    else:
        reader.pop()


def _stack_name(reader: _Reader) -> None:
    name, module = reader.pop(), reader.pop()
    reader.name(module, name)


def _add_items(reader: _Reader) -> None:
    items = [reader.key(item) for item in reader.since_mark()]
    reader.top(set, "ADDITEMS").update(items)


_KEYS = frozenset((str, bytes, int, float, bool, type(None)))
_STOP = ord(".")
_STEPS: dict[int, Callable[[_Reader], None]] = {
    0x80: _version,
    0x95: _frame,
    # numbers, texts
    ord("N"): lambda r: r.push(None),
    0x88: lambda r: r.push(True),
    0x89: lambda r: r.push(False),
    ord("J"): lambda r: _long(r, 4),
    ord("K"): lambda r: r.push(r.number(1)),
    ord("M"): lambda r: r.push(r.number(2)),
    0x8A: lambda r: _long(r, r.number(1)),
    0x8B: lambda r: _long(r, r.number(4)),
    ord("G"): lambda r: r.push(struct.unpack(">d", r.take(8))[0]),
    0x8C: lambda r: r.push(_text(r.take(r.number(1)))),
    ord("X"): lambda r: r.push(_text(r.take(r.number(4)))),
    0x8D: lambda r: r.push(_text(r.take(r.number(8)))),
    ord("C"): lambda r: r.push(r.take(r.number(1))),
    ord("B"): lambda r: r.push(r.take(r.number(4))),
    0x8E: lambda r: r.push(r.take(r.number(8))),
    # the stack, the memo
    ord("("): lambda r: r.marks.append(len(r.stack)),
    ord("0"): _drop,
    ord("1"): lambda r: r.since_mark().clear(),
    ord("q"): lambda r: r.put(r.number(1)),
    ord("r"): lambda r: r.put(r.number(4)),
    0x94: lambda r: r.put(len(r.memo)),
    ord("h"): lambda r: r.get(r.number(1)),
    ord("j"): lambda r: r.get(r.number(4)),
    # containers
    ord("]"): lambda r: r.push([]),
    ord("l"): lambda r: r.push(r.since_mark()),
    ord("a"): lambda r: r.extend([r.pop()]),
    ord("e"): lambda r: r.extend(r.since_mark()),
    ord(")"): lambda r: r.push(()),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("t"): lambda r: r.push(tuple(r.since_mark())),
    ord("}"): lambda r: r.push({}),
    ord("d"): _dict,
    ord("s"): _set_item,
    ord("u"): lambda r: r.set_on_top(r.since_mark()),
    0x8F: lambda r: r.push(set()),
    0x90: _add_items,
    0x91: lambda r: r.push(frozenset([r.key(item) for item in r.since_mark()])),
    # names
    ord("c"): lambda r: r.name(r.line(), r.line()),
    0x93: _stack_name,
    ord("R"): lambda r: r.call(),
    ord("b"): lambda r: r.build(),
    ord("Q"): lambda r: r.push(r.persistent(r.pop())),
}


def _check_is_data(found: Any, opaque: type[Opaque] | None) -> None:
    """No name and nothing opaque is left in what was read."""
    todo, seen = [found], set()
    while todo:
        value = todo.pop()
        if isinstance(value, (Name, Opaque)) and not (opaque and isinstance(value, opaque)):
            what = str(value) if isinstance(value, Name) else "memory that is no tensor"
            raise NotImplementedError(f"the file holds {what}, {_NOT_READ}")
        if type(value) in (list, tuple, set, frozenset, dict, OrderedDict) and id(value) not in seen:
            seen.add(id(value))
            todo.extend(value.values() if isinstance(value, dict) else value)
            todo.append(getattr(value, "_metadata", None))

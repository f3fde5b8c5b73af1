"""What a chat template may compute: bounds on numbers, lengths, depth, memory and time.

A template is somebody else's program, and a single operation of Python's can go on for hours or fill the
memory (`9**9**9`, `'x' * 10**10`, texts that double in a loop). So an operation whose result may be larger
than what it takes is priced before it runs, and every result is weighed after it. Then all values are small,
operations with them take milliseconds, and what takes longer is a loop, which is interrupted between two
operations.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: How long a template may take; those of known models take milliseconds.
SECONDS = 5.0
#: Bits of a whole number, levels of lists in lists, digits that are rounded to, columns of an indent.
BITS, DEPTH, DIGITS, INDENT = 256, 100, 64, 64
#: Bytes of one value: so many, and so many times what the template was given.
LEAST, TIMES = 1 << 20, 16
#: All values that are made in one run may have so many times the bytes of one: more than may be held at once.
VALUES = 32
#: Bytes that any object takes.
OBJECT = 64
#: The most steps of comparing two texts, where that is not linear.
STEPS = 1 << 30
#: Characters of an error's text.
SHOWN = 500


class TemplateRefused(ValueError):
    """A chat template that cannot be used, or that refuses the messages."""


class Limits:
    """What is left of the bounds of one run.

    value  bytes that one value may have        left  bytes that may still be made
    """

    def __init__(self, *given: Any) -> None:
        self.value = LEAST + TIMES * sum(weight(each, sys.maxsize) for each in given)
        self.left = VALUES * self.value

    def price(self, size: int) -> None:
        """Refuse a result that would be this large."""
        if size > self.value:
            raise TemplateRefused(
                f"the model's chat template makes a value of {size} bytes; "
                f"what it was given allows {self.value}"
            )

    def charge(self, size: int) -> None:
        """Count what was made."""
        self.left -= size
        if self.left < 0:
            raise TemplateRefused(
                f"the model's chat template makes more than {VALUES * self.value} bytes of values"
            )


_limits: ContextVar[Limits] = ContextVar("limits of the template that runs")


@contextmanager
def limited(*given: Any) -> Iterator[Limits]:
    """Bounds for what a template does in this block. TemplateRefused where it is stopped."""
    limits = Limits(*given)
    token = _limits.set(limits)
    try:
        with _deadline(SECONDS):
            yield limits
    finally:
        _limits.reset(token)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Within the block, Python code that is called is interrupted after some seconds of this thread's.

    Only loops need that: whoever traces this thread already, a debugger, is not disturbed.
    """
    outer, end, own_end = sys.gettrace(), time.monotonic() + seconds, time.thread_time() + seconds

    def trace(frame: types.FrameType, event: str, arg: Any) -> Any:
        if time.monotonic() > end and time.thread_time() > own_end:  # the first is the cheaper one
            raise TemplateRefused(f"the model's chat template does not end within {seconds:g} seconds")
        # The loops of a template, and of what jinja2 does for it; others are short, or begin new frames.
        file = frame.f_code.co_filename
        return trace if file == "<template>" or "jinja2" in file else None

    if outer is None:
        sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(outer)


# ---- how large values are ----


def weight(value: Any, most: int) -> int:
    """About the bytes of a value when it is written out: what stands in it twice counts twice.

    TemplateRefused where that is more than `most`, where it is nested too deeply, or a number is too long.
    """
    total = 0
    todo = [(value, 0)]
    while todo:
        each, depth = todo.pop()
        total += OBJECT
        if isinstance(each, str):
            total += text_size(each)
        elif isinstance(each, int):
            if each.bit_length() > BITS:
                raise TemplateRefused(f"the model's chat template makes a number of more than {BITS} bits")
        elif isinstance(each, _HOLDING):
            if depth >= DEPTH:
                raise TemplateRefused(f"the model's chat template nests values more than {DEPTH} levels deep")
            if total + OBJECT * len(each) > most:
                total = most + 1
            elif isinstance(each, Mapping):
                todo += zip((*each.keys(), *each.values()), itertools.repeat(depth + 1))
            else:
                todo += zip(each, itertools.repeat(depth + 1))
        if total > most:
            raise TemplateRefused(f"the model's chat template makes a value of more than {most} bytes")
    return total


_HOLDING = (list, tuple, dict, Mapping, Set, ValuesView)


def text_size(text: str) -> int:
    """The bytes of a text in memory, at most."""
    return len(text) * (1 if text.isascii() else 4)


def _size(value: Any) -> int:
    """About the bytes of a value itself; its elements were counted when they were made."""
    if isinstance(value, str):
        return OBJECT + text_size(value)
    return OBJECT * (1 + (len(value) if isinstance(value, _HOLDING) else 0))


def made(value: Any) -> Any:
    """A value that an operation of a template gave, weighed and counted."""
    limits = _limits.get()
    weight(value, limits.value)
    limits.charge(_size(value))
    return value


def joined(pieces: Any) -> str:
    """Texts, and what is written as one, in a row."""
    limits = _limits.get()
    found, total = [], 0
    for piece in pieces:
        found.append(piece if isinstance(piece, str) else str(piece))
        total += text_size(found[-1])
        limits.price(total)
    limits.charge(total)
    return "".join(found)


def rendered(value: Any) -> Any:
    """A value as `{{ value }}` writes it."""
    text = value if isinstance(value, str) else str(value)
    _limits.get().charge(_size(text))
    return text


# ---- what operations would make, before they do ----


def price_binary(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation of two values whose result would be too large."""
    limits = _limits.get()
    if operator == "**" and isinstance(left, int) and isinstance(right, int):
        if abs(left) > 1 and right > 0 and (left.bit_length() - 1) * right > BITS:
            raise TemplateRefused(f"the model's chat template makes a number of more than {BITS} bits")
    elif operator == "*":
        for times, value in ((left, right), (right, left)):
            if isinstance(times, int) and isinstance(value, (str, list, tuple)):
                limits.price((_size(value) - OBJECT) * max(times, 0))
    elif operator == "%" and isinstance(left, str):
        _price_format(left, "%", right if isinstance(right, tuple) else (right,))


def _price_format(form: str, mark: str, values: Any) -> None:
    limits = _limits.get()
    widest = max((int(digits) for digits in re.findall(r"\d{1,20}", form)), default=0)
    for value in values:
        widest = max(widest, abs(value) if isinstance(value, int) else 0, weight(value, limits.value))
    limits.price(text_size(form) + form.count(mark) * widest)


def _price_replace(text: str, old: Any = "", new: Any = "", count: Any = -1) -> None:
    if isinstance(old, str) and isinstance(new, str):
        _limits.get().price(text_size(text) + text.count(old) * text_size(new))


def _price_join(text: str, values: Any = ()) -> None:
    limits = _limits.get()
    limits.price(text_size(text) * (len(values) if hasattr(values, "__len__") else limits.value // OBJECT))


def _price_width(text: str, width: Any = 0, *_: Any) -> None:
    _limits.get().price(text_size(text) + (width if isinstance(width, int) else 0))


def _price_tabs(text: str, tabsize: Any = 8) -> None:
    _limits.get().price(
        text_size(text) + text.count("\t") * max(tabsize, 0) if isinstance(tabsize, int) else 0
    )


def _price_split(text: str, sep: Any = None, *_: Any, **__: Any) -> None:
    if isinstance(sep, str) and sep:
        _limits.get().price(text_size(text) + OBJECT * text.count(sep))
        _price_steps(text, sep)


def _price_steps(text: str, *others: Any) -> None:
    """Where each character of a text is compared with all of another."""
    if len(text) * sum(len(other) for other in others if isinstance(other, str)) > STEPS:
        raise TemplateRefused("the model's chat template compares texts that are too long")


def _price_formatted(text: str, *values: Any, **named: Any) -> None:
    _price_format(text, "{", (*values, *named.values()))


Price = Callable[..., None] | None

#: Methods of texts whose results are no larger than these.
_PLAIN_METHODS = (
    "capitalize", "casefold", "lower", "swapcase", "title", "upper", "count", "find", "index",
    "startswith", "endswith", "partition", "removeprefix", "removesuffix", "isalnum", "isalpha",
    "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper",
    "splitlines",
)  # fmt: skip
#: Methods of texts that a template may call, and what they would make; None: no more than there is.
_TEXT_METHODS: dict[str, Price] = {
    **dict.fromkeys(_PLAIN_METHODS),
    **dict.fromkeys(["strip", "lstrip", "rstrip", "rfind", "rindex", "rpartition"], _price_steps),
    **dict.fromkeys(("split", "rsplit"), _price_split),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _price_width),
    "replace": _price_replace,
    "join": _price_join,
    "expandtabs": _price_tabs,
    "format": _price_formatted,
    "format_map": _price_formatted,
}
#: The same of other types of Python's.
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (dict, frozenset(("copy", "get", "items", "keys", "values"))),
    (list, frozenset(("copy", "count", "index"))),
    (tuple, frozenset(("count", "index"))),
    (float, frozenset(("is_integer",))),
)


def price_call(called: Any, values: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse a call of a method that templates have no use for, or whose result would be too large."""
    called = getattr(called, "__wrapped__", called)  # str.format has a wrapper of jinja2's
    named = {
        name: value for name, value in named.items() if not name.startswith("_")
    }  # those are jinja2's own
    if not isinstance(called, (types.BuiltinMethodType, types.MethodType, types.MethodWrapperType)):
        return
    owner, name = called.__self__, called.__name__
    if isinstance(owner, str):
        if name not in _TEXT_METHODS:
            raise TemplateRefused(f"the model's chat template calls {name} of a text")
        price = _TEXT_METHODS[name]
        if price is not None:
            price(owner, *values, **named)
    elif type(owner).__module__ == "builtins" and not isinstance(owner, types.ModuleType):
        if not any(isinstance(owner, kind) and name in names for kind, names in _METHODS):
            raise TemplateRefused(f"the model's chat template calls {name} of a {type(owner).__name__}")


def _price_indent(text: Any, width: Any = 4, *_: Any, **__: Any) -> None:
    wide = len(width) if isinstance(width, str) else width
    _limits.get().price(len(str(text)) + (str(text).count("\n") + 1) * wide)


def _price_number(value: Any, number: Any = 0, *_: Any, **__: Any) -> None:
    if isinstance(number, int):
        _limits.get().price(OBJECT * abs(number))


def _price_round(value: Any, precision: Any = 0, *_: Any, **__: Any) -> None:
    if isinstance(precision, int) and abs(precision) > DIGITS:
        raise TemplateRefused(f"the model's chat template rounds to {precision} digits")


def _price_json(value: Any, indent: Any = None, separators: Any = None, **_: Any) -> None:
    wide = [len(each) if isinstance(each, str) else each for each in (indent, *(separators or ()))]
    if any(isinstance(each, int) and each > INDENT for each in wide):
        raise TemplateRefused(f"the model's chat template indents by more than {INDENT} columns")


def _price_joining(values: Any, d: Any = "", attribute: Any = None) -> None:
    _price_join(str(d), values)


def _price_sum(values: Any, attribute: Any = None, start: Any = 0) -> None:
    """Of lists each addition copies all that came before."""
    if weight(values, _limits.get().value) * len(values) > STEPS:
        raise TemplateRefused("the model's chat template adds up too much")


#: Filters whose results are no larger than what they take.
_PLAIN_FILTERS = (
    "abs", "attr", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first",
    "float", "forceescape", "groupby", "int", "items", "last", "length", "list", "lower", "map",
    "max", "min", "reject", "rejectattr", "reverse", "safe", "select", "selectattr", "sort",
    "string", "title", "truncate", "unique", "upper", "wordcount",
)  # fmt: skip
#: Filters that a template may use. What the others do is for web pages, and takes long for some texts.
_FILTERS: dict[str, Price] = {
    **dict.fromkeys(_PLAIN_FILTERS),
    **dict.fromkeys(("batch", "slice"), _price_number),
    "center": lambda value, width=80: _price_width(str(value), width),
    "format": lambda form, *values, **named: _price_format(str(form), "%", (*values, *named.values())),
    "indent": _price_indent,
    "join": _price_joining,
    "replace": lambda text, *values, **named: _price_replace(str(text), *values),
    "round": _price_round,
    "sum": _price_sum,
    "tojson": _price_json,
    "trim": lambda text, chars=None: _price_steps(str(text), chars),
}
#: Those of them whose price needs all elements.
_OF_ALL = ("join", "sum")


def limited_filter(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is priced and weighed; one that no chat template needs is refused when it is used."""
    own = 1 if hasattr(run, "jinja_pass_arg") else 0  # a context, which comes first

    @functools.wraps(run)
    def limited_run(*values: Any, **named: Any) -> Any:
        if name not in _FILTERS:
            raise TemplateRefused(f"the model's chat template uses the filter {name}, which is not there")
        if name in _OF_ALL:
            values = (*values[:own], list(values[own]), *values[own + 1 :])
        price = _FILTERS[name]
        if price is not None:
            price(*values[own:], **named)
        return made(run(*values, **named))

    return limited_run

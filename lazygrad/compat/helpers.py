"""The small functions that scripts took from `tinygrad.helpers`: nothing of lazygrad needs them."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..report import terminal
from ..runtime._cache import diskcache_get, diskcache_put

T = TypeVar("T")

# *** sequences


def all_int(values: Sequence[Any]) -> bool:
    """Whether every size is a number, and none symbolic."""
    return all(isinstance(value, int) for value in values)


def all_same(values: Sequence[Any]) -> bool:
    """Whether all are equal."""
    return all(value == values[0] for value in values)


def argfix(*values: Any) -> tuple[Any, ...]:
    """`f(1, 2)` and `f((1, 2))` alike."""
    return tuple(values[0]) if values and isinstance(values[0], (tuple, list)) else values


def argsort(values: Sequence[Any]) -> list[int]:
    """The places of the elements in rising order."""
    return sorted(range(len(values)), key=values.__getitem__)


def dedup(values: Iterable[T]) -> list[T]:
    """Each once, in the order of first appearance."""
    return list(dict.fromkeys(values))


def get_single_element(values: Sequence[T]) -> T:
    """The only value of a list."""
    if len(values) != 1:
        raise AssertionError(f"one value is expected, not {len(values)}")
    return values[0]


def flatten(lists: Iterable[Iterable[T]]) -> list[T]:
    """One list of all."""
    return [value for values in lists for value in values]


def fully_flatten(values: Any) -> list[Any]:
    """One list of all that is in lists and tuples of any depth."""
    if not isinstance(values, (list, tuple)):
        return [values]
    return flatten(map(fully_flatten, values))


def partition(values: Iterable[T], holds: Callable[[T], Any]) -> tuple[list[T], list[T]]:
    """Those for which it holds, and the others."""
    every = list(values)
    return [v for v in every if holds(v)], [v for v in every if not holds(v)]


def make_tuple(value: Any, count: int) -> tuple[Any, ...]:
    """A number `count` times; a sequence as it is."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def merge_dicts(dicts: Iterable[Mapping[Any, Any]]) -> dict[Any, Any]:
    """All entries together; a key with two values raises."""
    merged: dict[Any, Any] = {}
    for entries in dicts:
        for key, value in entries.items():
            if merged.setdefault(key, value) != value:
                raise AssertionError(f"{key!r} is both {merged[key]!r} and {value!r}")
    return merged


def get_shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists; one whose parts differ raises ValueError."""
    if isinstance(value, str) or getattr(value, "shape", None) == () or not hasattr(value, "__len__"):
        return ()
    shapes = [get_shape(part) for part in value]
    if not all_same(shapes):
        raise ValueError(f"inhomogeneous shape from {value}")
    return (len(shapes), *(shapes[0] if shapes else ()))


def get_contraction(old: Sequence[Any], new: Sequence[Any]) -> list[list[int]] | None:
    """Which axes of `old` each axis of `new` is made of; None where `new` splits an axis."""
    groups: list[list[int]] = []
    axis = 0
    for size in new:
        group: list[int] = []
        product = 1
        while product != size and axis < len(old):
            product *= old[axis]
            group.append(axis)
            axis += 1
        if product != size:
            return None
        groups.append(group)
    rest = list(range(axis, len(old)))
    if any(old[place] != 1 for place in rest):
        return None
    if groups:
        groups[-1] += rest  # axes of one element at the end
    return groups


def get_child(value: Any, path: str) -> Any:
    """What a path leads to: `layers.0.weight`."""
    for name in path.split("."):
        if name.isdigit():
            value = value[int(name)]
        else:
            value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    return value


def unwrap(value: T | None) -> T:
    """The value, which is not None."""
    if value is None:
        raise AssertionError("unwrap of None")
    return value


# *** numbers


def round_up(number: int, amount: int) -> int:
    """The next multiple of `amount`."""
    return -(-number // amount) * amount


def round_down(number: int, amount: int) -> int:
    """The last multiple of `amount` before it."""
    return number // amount * amount


def ceildiv(number: Any, divisor: Any) -> Any:
    """Division, rounded up."""
    return -(-number // divisor)


def cdiv(number: int, divisor: int) -> int:
    """Division as C does it, rounded to zero; by 0 it is 0."""
    if divisor == 0:
        return 0
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def cmod(number: int, divisor: int) -> int:
    """What C's division leaves."""
    return number - cdiv(number, divisor) * divisor


def polyN(x: Any, coefficients: Sequence[Any]) -> Any:
    """A polynomial, by Horner's rule; the coefficient of the highest power first."""
    return functools.reduce(lambda total, each: total * x + each, coefficients, 0.0)


def lo32(value: Any) -> Any:
    """The low 32 bits."""
    return value & 0xFFFFFFFF


def hi32(value: Any) -> Any:
    """What is above the low 32 bits."""
    return value >> 32


def data64(value: Any) -> tuple[Any, Any]:
    """Both halves of 64 bits, the high one first."""
    return hi32(value), lo32(value)


def data64_le(value: Any) -> tuple[Any, Any]:
    """Both halves of 64 bits, the low one first."""
    return lo32(value), hi32(value)


def getbits(value: int, start: int, end: int) -> int:
    """Bits `start` to `end`, both included."""
    return (value >> start) & ((1 << (end - start + 1)) - 1)


def i2u(bits: int, value: int) -> int:
    """The unsigned number with the bits of a signed one."""
    return value % (1 << bits)


# *** text


def strip_parens(text: str) -> str:
    """Without the parentheses around all of it, where there are some."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]


def ansistrip(text: str) -> str:
    """Without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def ansilen(text: str) -> int:
    """How many columns it takes, colours not counted."""
    return terminal.visible_width(text)


def time_to_str(seconds: float, w: int = 8) -> str:
    """A duration in us, ms or s; its number takes `w` columns."""
    text = terminal.time_text(seconds).strip()
    unit = text.lstrip("0123456789.-")
    return f"{float(text.removesuffix(unit)):{w}.2f}{unit:2s}"


def size_to_str(size: float, prefix: str = "B") -> str:
    """A number of bytes in B, KB, MB or GB of 1024 each."""
    for unit, scale in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}{prefix}"
    return f"{size} {prefix}"


def pluralize(word: str, count: int) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def word_wrap(text: str, wrap: int = 80) -> str:
    """Lines of at most so many columns, colours not counted."""
    lines = []
    for line in text.split("\n"):
        made, width = "", 0
        for piece in re.findall(r"\x1b\[[0-9;]*m|.", line):
            if len(piece) == 1:
                if width == wrap:
                    made, width = made + "\n", 0
                width += 1
            made += piece
        lines.append(made)
    return "\n".join(lines)


# *** the rest


def diskcache(function: Callable[..., T]) -> Callable[..., T]:
    """A decorator: the results are kept on disk, by the arguments."""

    @functools.wraps(function)
    def cached(*args: Any, **kwargs: Any) -> T:
        table, key = f"cache_{function.__name__}", repr((args, sorted(kwargs.items())))
        found: T | None = diskcache_get(table, key)
        if found is None:
            found = function(*args, **kwargs)
            diskcache_put(table, key, found)
        return found

    return cached


def cpu_time_execution(run: Callable[[], Any], enable: bool) -> float | None:
    """Run it; how many seconds that took, where it is asked for."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start if enable else None

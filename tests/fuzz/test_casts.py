"""Casts of every dtype to every other: values, arithmetic, constants, creation, bits, on every device.

The expected value is worked out from all values that a narrow float has (their bits read by ml_dtypes or
numpy) as the nearest, ties to the even one: rounded once, whatever the source. ml_dtypes itself rounds
float64 and wide integers twice on their way to bfloat16, so it is asked for bits, and casts of float32.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Context, Tensor, dtypes
from lazygrad.dtype import DType
from tests.fuzz.harness import fuzzed
from tests.helpers import DRIVERS, needs

NARROW: dict[str, Any] = {
    "fp8e4m3": ml_dtypes.float8_e4m3fn,
    "fp8e5m2": ml_dtypes.float8_e5m2,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
FLOATS = [*NARROW, "float32", "float64"]
INTS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
EVERY = ["bool", *INTS, *FLOATS]
SMALL = ["bool", "int8", "uint8", "int16", "uint16", *NARROW]
DEVICES = ["CPU", "CLANG", "PYTHON", pytest.param("CL", marks=needs("cl"))]
Number = bool | int | float


def array_type(name: str) -> Any:
    """numpy's type of the elements; that of ml_dtypes where numpy has none."""
    return NARROW.get(name) or np.dtype(name).type


# *** what a cast gives


@functools.cache
def magnitudes(name: str) -> list[float]:
    """All finite values of a narrow float from 0 on, in the order of their bits."""
    word = np.uint8 if np.dtype(NARROW[name]).itemsize == 1 else np.uint16
    bits = np.arange(np.iinfo(word).max // 2 + 1).astype(word)
    values = bits.view(NARROW[name])
    return [v for v in doubles(values) if math.isfinite(v)]


def nearest(value: Number, name: str) -> float:
    """The value of a narrow float that is nearest to a number, ties to even bits."""
    beyond = math.nan if name == "fp8e4m3" else math.inf
    if value != value:
        return math.nan
    sign, size = (
        math.copysign(1.0, value if isinstance(value, float) else (-1 if value < 0 else 1)),
        abs(value),
    )
    values = magnitudes(name)
    place = bisect.bisect_left(values, size)
    if place < len(values) and values[place] == size:
        return sign * values[place]
    low = values[place - 1]
    high = (
        values[place] if place < len(values) else 2 * low - values[place - 2]
    )  # where the next one would be
    if size == math.inf:
        return sign * beyond
    below, above = exact(size) - exact(low), exact(high) - exact(size)
    up = above < below or (above == below and (place % 2 == 0))
    if up and place == len(values):
        return sign * beyond
    return sign * (high if up else low)


def exact(value: Number) -> int:
    """A number as a whole number of the smallest unit of float64."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (1 << 1074) // denominator


def rounded(value: Number, name: str) -> float:
    """A number in a float type."""
    if name in NARROW:
        return nearest(value, name)
    if isinstance(value, int) and abs(value) >= 1 << 53:
        cut = abs(value).bit_length() - (24 if name == "float32" else 53)
        whole, rest = divmod(abs(value), 1 << cut)
        half = 1 << (cut - 1)
        whole += rest > half or (rest == half and whole & 1)
        value = float(whole << cut) * (-1 if value < 0 else 1)
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if name == "float32" else float(value)


def wanted(value: Number, name: str) -> Number:
    """What CAST makes of a number, as docs/numbers.md says."""
    if name == "bool":
        return value != 0
    if name in FLOATS:
        return rounded(int(value) if isinstance(value, bool) else value, name)
    info = np.iinfo(name)
    if isinstance(value, float):
        if value != value:
            return 0
        if math.isinf(value):
            return int(info.max if value > 0 else info.min)
        return min(max(int(value), int(info.min)), int(info.max))
    return int(value) & ((1 << info.bits) - 1) if info.min == 0 else wrapped(int(value), info.bits)


def wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def same(found: Any, expected: Any) -> bool:
    if found != found or expected != expected:
        return bool(found != found and expected != expected)
    if isinstance(expected, float):
        return bool(found == expected and math.copysign(1, found) == math.copysign(1, expected))
    return bool(found == expected)


def check(found: list[Any], expected: list[Any], sources: list[Any]) -> None:
    assert len(found) == len(expected)
    wrong = [row for row in zip(sources, found, expected, strict=True) if not same(row[1], row[2])]
    assert not wrong, f"{len(wrong)} wrong; first (source, found, expected): {wrong[:3]}"


# *** tensors of given values


def stored(values: list[Any], name: str, device: str) -> Tensor:
    """A tensor whose memory holds these values of a type, put there bit by bit."""
    array = np.array(values, dtype=array_type(name))
    if name in NARROW and name != "float16":
        bits = array.view(np.uint8 if array.itemsize == 1 else np.uint16)
        return Tensor(bits, device=device).realize().bitcast(name)
    return Tensor(array, device=device).realize()


def values_of(name: str) -> list[Any]:
    """Every value of an 8- or 16-bit type."""
    if name == "bool":
        return [False, True]
    kind = np.dtype(array_type(name))
    bits = np.arange(1 << (8 * kind.itemsize)).astype(np.uint8 if kind.itemsize == 1 else np.uint16)
    values = bits.view(kind)
    return doubles(values) if name in FLOATS else values.tolist()


def doubles(array: Any) -> list[float]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is a value like others
        return array.astype(np.float64).tolist()  # type: ignore[no-any-return]


def read(tensor: Tensor) -> list[Any]:
    """The elements, by way of their bits."""
    name = named(tensor.dtype)
    if name in NARROW and name != "float16":
        bits = tensor.bitcast("uint8" if tensor.dtype.itemsize == 1 else "uint16").numpy()
        return doubles(bits.view(NARROW[name]))
    return tensor.numpy().tolist()


def named(dtype: DType) -> str:
    return next(name for name in EVERY if getattr(dtypes, name) is dtype)


# *** every value of the small types


#: (source, device, of how many values one is taken): a part of them by default, all in the slow sweep
EXHAUSTIVE: list[Any] = [
    (source, "CPU", 1 if np.dtype(array_type(source)).itemsize == 1 else 97) for source in SMALL
]
EXHAUSTIVE += [("int16", "CLANG", 499), ("bfloat16", "PYTHON", 4999)]
for _device in DEVICES:
    _name, _marks = (_device, []) if isinstance(_device, str) else (_device.values[0], list(_device.marks))
    _step = 13 if _name == "PYTHON" else 1
    EXHAUSTIVE += [pytest.param(source, _name, _step, marks=[*_marks, pytest.mark.slow]) for source in SMALL]


@pytest.mark.parametrize(("source", "device", "step"), EXHAUSTIVE)
def test_values_of_the_small_types(source: str, device: str, step: int) -> None:
    values = values_of(source)
    values = values[::step] if step > 1 else values
    tensor = stored(values, source, device)
    for target in EVERY:
        check(read(tensor.cast(target)), [wanted(value, target) for value in values], values)
    if source in NARROW:
        check(tensor.numpy().tolist(), values, values)
        check(tensor.tolist(), values, values)


@pytest.mark.parametrize("source", NARROW)
def test_the_oracle_rounds_as_ml_dtypes_does(source: str) -> None:
    values = [
        v * factor
        for v in magnitudes(source)[:: 1 if len(magnitudes(source)) < 200 else 37]
        for factor in (1, 1.03, 0.5)
    ]
    with np.errstate(over="ignore"):
        singles = np.array(values, np.float32)
        theirs = singles.astype(NARROW[source]).astype(np.float64)
    check([nearest(float(v), source) for v in singles], theirs.tolist(), values)


@pytest.mark.parametrize(
    "names", [("int8", "uint8", "fp8e4m3", "fp8e5m2"), ("int16", "uint16", "float16", "bfloat16")]
)
def test_bits_survive(names: tuple[str, ...]) -> None:
    for source, target in itertools.permutations(names, 2):
        values = [v for v in values_of(source) if v == v]
        there = np.array(values, dtype=array_type(source)).view(array_type(target))
        expected = doubles(there) if target in FLOATS else there.tolist()
        check(read(stored(values, source, "CPU").bitcast(target)), expected, values)


# *** what the generator draws

LIMITS = [int(np.iinfo(n).max) for n in INTS] + [int(np.iinfo(n).min) for n in INTS]
WHOLE = [n + d for n in [0, 1 << 11, 1 << 24, 1 << 53, 1 << 60, *LIMITS] for d in (-1, 0, 1)]
BROKEN = [0.0, -0.0, 0.5, -0.5, 1.5, math.inf, -math.inf, math.nan, 448.0, 464.0, 465.0, 57344.0, 61440.0]
BROKEN += [65504.0, 65520.0, 65519.99, 2.0**-24, 2.0**-25, 2.0**-17, 2.0**-10, 2.0**-133, 2.0**-149, 5e-324]
BROKEN += [3.4e38, 3.4028235677973366e38, 1.7976931348623157e308, 1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-30]
BROKEN += [float(n) for n in LIMITS] + [float(np.nextafter(n, 0)) for n in LIMITS]


@st.composite
def tie(draw: Any) -> float:
    """A number in the middle of two values of a narrow float, or hardly beside it."""
    values = magnitudes(draw(st.sampled_from(list(NARROW))))
    place = draw(st.integers(0, len(values) - 2))
    middle = (values[place] + values[place + 1]) / 2
    beside = draw(st.sampled_from([0, 0, 1, -1])) * 2.0 ** -draw(st.integers(20, 50))
    return middle * (1 + beside) * draw(st.sampled_from([1, -1]))


def numbers(name: str) -> st.SearchStrategy[Any]:
    """Values of a type: the ends of others, ties, and any."""
    if name == "bool":
        return st.booleans()
    whole = st.one_of(
        st.sampled_from(WHOLE), st.integers(-(2**70), 2**70), st.integers(-300, 300), long_ints()
    )
    if name in INTS:
        info = np.iinfo(name)
        return whole.map(lambda v: min(max(v, int(info.min)), int(info.max)))
    any_float = st.floats(width=64)
    return st.one_of(st.sampled_from(BROKEN), tie(), any_float, whole.map(float)).map(
        lambda v: rounded(v, name)
    )


def long_ints() -> st.SearchStrategy[int]:
    """Integers of few digits with one far behind: where rounding twice goes wrong."""
    parts = st.tuples(st.integers(0, 63), st.integers(1, 30), st.integers(1, 62), st.sampled_from([1, -1]))
    return parts.map(lambda p: p[3] * ((1 << p[0]) + ((1 << p[0]) >> p[1]) + ((1 << p[0]) >> p[2])))


OPS: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "mul": operator.mul, "sub": operator.sub}


def computed(op: str, a: Any, b: Any, name: str) -> Any:
    """An operation in a type, rounded or wrapped once."""
    if name in FLOATS:
        with np.errstate(all="ignore"):
            if name == "float64":
                return float(OPS[op](np.float64(a), np.float64(b)))
            if name == "float32":
                return float(OPS[op](np.float32(a), np.float32(b)))
            return nearest(float(OPS[op](np.float64(a), np.float64(b))), name)  # exact, or far from a tie
    return wanted(OPS[op](int(a), int(b)), name)


class Step:
    """A cast, and then an operation with a number, which is weak, or none."""

    def __init__(self, target: str, op: str | None, number: Any, contiguous: bool) -> None:
        self.target, self.op, self.number, self.contiguous = target, op, number, contiguous

    def __repr__(self) -> str:
        then = f".{self.op}({self.number!r})" if self.op else ""
        return f"cast({self.target}){then}{'.contiguous()' if self.contiguous else ''}"

    def on(self, value: Any) -> Any:
        value = wanted(value, self.target)
        return computed(self.op, value, wanted(self.number, self.target), self.target) if self.op else value

    def made(self, tensor: Tensor) -> Tensor:
        made = tensor.cast(self.target)
        made = getattr(made, self.op)(self.number) if self.op else made
        return made.contiguous() if self.contiguous else made


@st.composite
def step(draw: Any) -> Step:
    target = draw(st.sampled_from(EVERY))
    op = draw(st.sampled_from([None, None, *OPS])) if target != "bool" else None
    number = draw(numbers(target)) if op else None
    if op and target in NARROW and draw(st.booleans()):
        number = draw(st.sampled_from([65504.0 * 2, 0.1, 1e-9, 1e39]))
    return Step(target, op, number, draw(st.integers(0, 3)) == 0)


@functools.cache
def usable_devices() -> list[str]:
    """CPU more often than the others, which take longer to compile."""
    return [
        "CPU",
        "CPU",
        "PYTHON",
        *[name for name, driver in (("CLANG", "clang"), ("CL", "cl")) if DRIVERS[driver].find()],
    ]


@st.composite
def chain(draw: Any) -> tuple[str, list[Any], list[Step], str, bool]:
    source = draw(st.sampled_from(EVERY))
    values = draw(st.lists(numbers(source), min_size=1, max_size=6))
    steps = draw(st.lists(step(), min_size=1, max_size=3))
    for one, then in itertools.pairwise(steps):
        if one.op == "mul" and then.op in ("add", "sub"):  # they would be one operation, and round once
            one.contiguous = True
    return (
        source,
        values,
        steps,
        draw(st.sampled_from(usable_devices())),
        draw(st.booleans()),
    )


@fuzzed(quick=60, sweep=1200, share=400)
@given(chain())
def test_chains(program: tuple[str, list[Any], list[Step], str, bool]) -> None:
    source, values, steps, device, plain = program
    tensor, expected = stored(values, source, device), list(values)
    check(read(tensor), values, values)
    for one in steps:
        tensor, expected = one.made(tensor), [one.on(value) for value in expected]
    with Context(NOOPT=int(plain)):
        check(read(tensor), expected, values)


@fuzzed(quick=60, sweep=800, share=400)
@given(chain())
def test_constants(program: tuple[str, list[Any], list[Step], str, bool]) -> None:
    """Of a number, and not of memory: folded when the graph is made or simplified."""
    source, values, steps, device, whole = program
    for value in values[:2]:
        tensor = Tensor.full((3,) if whole else (), value, dtype=source, device=device)
        expected = value
        for one in steps:
            tensor, expected = one.made(tensor), one.on(expected)
        found = read(tensor.reshape(-1))
        check(found, [expected] * len(found), [value] * len(found))
        check([tensor.flatten()[0].item()], [expected], [value])


@st.composite
def creation(draw: Any) -> tuple[str, list[Any], str]:
    return (
        name := draw(st.sampled_from(EVERY)),
        draw(st.lists(numbers(name), max_size=5)),
        draw(st.sampled_from(EVERY)),
    )


@fuzzed(quick=60, sweep=1500, share=750)
@given(creation())
def test_creation(program: tuple[str, list[Any], str]) -> None:
    """From lists of Python numbers, numbers, and arrays of numpy and ml_dtypes, in each dtype."""
    source, values, target = program
    expected = [wanted(value, target) for value in values]
    check(Tensor(np.array(values, dtype=array_type(source)), dtype=target).tolist(), expected, values)
    whole = target in INTS
    listed = not whole or all(np.iinfo(target).min <= value <= np.iinfo(target).max for value in values)
    fits = source in FLOATS or not whole or expected == values
    makers = [(listed, lambda: Tensor(values, dtype=target).tolist())]
    makers += [(fits, lambda: [Tensor(value, dtype=target).item() for value in values])]
    makers += [(fits, lambda: [Tensor.full((2,), value, dtype=target)[1].item() for value in values])]
    for allowed, make in makers:
        if allowed:
            check(make(), expected, values)
        else:
            with pytest.raises(OverflowError):
                make()

"""No arithmetic edge kills the process, and each gives the defined result.

Integers wrap; x // 0 = x % 0 = 0; shifts by the width or more give 0 (-1 for negative `>>`); float → int
saturates, and NaN becomes 0. All in a process of its own, since a CPU that divides by zero ends it.
"""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from tests.fuzz.harness import fuzz_seed, number_of
from tests.helpers import PATIENCE, ROOT, needs

INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


def _truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# name: (on tensors, on Python's exact integers, for a number of bits)
OPERATIONS = {
    "+": (lambda x, y: x + y, lambda a, b, bits: a + b),
    "-": (lambda x, y: x - y, lambda a, b, bits: a - b),
    "*": (lambda x, y: x * y, lambda a, b, bits: a * b),
    "//": (lambda x, y: x // y, lambda a, b, bits: 0 if b == 0 else a // b),
    "%": (lambda x, y: x % y, lambda a, b, bits: 0 if b == 0 else a % b),
    "trunc": (lambda x, y: x.div(y, rounding_mode="trunc"), lambda a, b, bits: _truncated(a, b)),
    "<<": (lambda x, y: x << y, lambda a, b, bits: a << b if 0 <= b < bits else 0),
    ">>": (lambda x, y: x >> y, lambda a, b, bits: a >> b if 0 <= b < bits else -(a < 0)),
    "max": (lambda x, y: x.maximum(y), lambda a, b, bits: max(a, b)),
    "min": (lambda x, y: x.minimum(y), lambda a, b, bits: min(a, b)),
}
ONE_SIDED = {
    "neg": (lambda x: -x, lambda a: -a),
    "abs": (lambda x: x.abs(), abs),
    "invert": (lambda x: ~x, lambda a: ~a),
    "sign": (lambda x: x.sign(), lambda a: (a > 0) - (a < 0)),
}


def edges(name: str) -> list[int]:
    info = np.iinfo(name)
    near = {-1, 0, 1, 2, 3, 7, info.bits - 1, info.bits, info.bits + 1}
    return sorted({v for v in near if info.min <= v} | {info.min, info.min + 1, info.max - 1, info.max})


def wrapped(value: int, name: str) -> int:
    info = np.iinfo(name)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


def check_integers(name: str, device: str, constants: bool) -> None:
    values, bits = edges(name), np.iinfo(name).bits
    pairs = [(a, b) for a in values for b in values]
    x, y = (Tensor(np.array(side, name), device=device).realize() for side in zip(*pairs, strict=True))
    results = {op: on(x, y) for op, (on, _) in OPERATIONS.items()}
    single = {op: on(x) for op, (on, _) in ONE_SIDED.items()}
    Tensor.realize(*results.values(), *single.values())
    for op, (_, exact) in OPERATIONS.items():
        expected = [wrapped(exact(a, b, bits), name) for a, b in pairs]
        assert results[op].tolist() == expected, f"{op} of {name} on {device}"
    for op, (_, exact_one) in ONE_SIDED.items():
        expected = [wrapped(exact_one(a), name) for a, _ in pairs]
        assert single[op].tolist() == expected, f"{op} of {name} on {device}"
    if constants:
        check_constants(name, device)


def check_constants(name: str, device: str) -> None:
    """The same with one side known when the kernel is compiled, where other rules simplify."""
    values, bits = edges(name), np.iinfo(name).bits
    x = Tensor(np.array(values, name), device=device).realize()
    for op, (on, exact) in OPERATIONS.items():
        for c in values:
            constant = Tensor(c, dtype=name, device=device)
            right, left = on(x, constant), on(constant, x)
            Tensor.realize(right, left)
            assert right.tolist() == [wrapped(exact(a, c, bits), name) for a in values], f"x {op} {c}, {name}"
            assert left.tolist() == [wrapped(exact(c, a, bits), name) for a in values], f"{c} {op} x, {name}"


def check_floats(source: str, device: str) -> None:
    known = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 2.0**31, 2.0**32, 2.0**63, 2.0**64]
    known += [-(2.0**31), -(2.0**63), -1.5, 1.5, 0.99, -0.99, 127.5, 128.0, 255.9, 256.0, -128.9, -129.0]
    x = Tensor(known, dtype="float64", device=device).cast(source).realize()
    held = x.cast("float64").tolist()
    casts = {name: x.cast(name) for name in INTS}
    Tensor.realize(*casts.values())
    for name, cast in casts.items():
        low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
        expected = [0 if v != v else low if v <= low else high if v >= high else int(v) for v in held]
        assert cast.tolist() == expected, f"{source} -> {name} on {device}"


def in_a_process(
    device: str, ints: tuple[str, ...], floats: tuple[str, ...], constants: tuple[str, ...] = ()
) -> None:
    """Check all of it in a new process; a signal that ends it shows as a negative exit code.

    constants  the types that are checked with one side known to the compiler, a kernel for each
    """
    script = f"""
from tests.tensor import test_edges as edges
for name in {ints}:
    edges.check_integers(name, {device!r}, name in {constants})
for name in {floats}:
    edges.check_floats(name, {device!r})
print("all of it")
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout.strip()) == (0, "all of it"), done.stderr[-3000:]


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_edges(device):
    in_a_process(device, INTS, FLOATS)


@pytest.mark.slow
@needs("clang")
def test_edges_in_c():
    in_a_process("CLANG", ("int8", "int32", "uint64"), ("float32",))


@needs("cl")
def test_edges_in_opencl():
    in_a_process("CL", ("int8",), ("bfloat16",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "types"),
    [
        ("CPU", len(INTS)),
        ("PYTHON", len(INTS)),
        pytest.param("CLANG", 2, marks=needs("clang")),
        pytest.param("CL", 1, marks=needs("cl")),
    ],
)
def test_edges_with_constants(device, types):
    """All types where a kernel is compiled quickly, else some of them, others for each commit."""
    first = number_of(fuzz_seed()) % len(INTS)
    in_a_process(device, INTS, FLOATS, constants=(INTS * 2)[first : first + types])


def test_constants_of_32_bits_on_the_cpu():
    check_constants("int32", "CPU")


def test_a_strip_of_bytes_is_no_wider_than_a_kernel_takes() -> None:
    x = np.zeros((24, 20_000), np.bool_)
    x[3, ::7] = True
    np.testing.assert_array_equal(Tensor(x).any(0).numpy(), x.any(0))


@Context(CHECK_INDEX=0)
def test_numbers_that_are_no_class_do_not_count_where_none_is_checked() -> None:
    logits = Tensor([[0.0, 0.0], [1.0, 0.0]])
    (known,) = logits[1:].cross_entropy(Tensor([1]), "none").tolist()
    for wrong in (2, -1, 99):
        classes = Tensor([wrong, 1])
        assert logits.cross_entropy(classes, "none").tolist() == [0.0, known]
        assert logits.cross_entropy(classes).item() == known
        assert logits.log_softmax(1).nll_loss(classes, reduction="none").tolist() == [0.0, known]
        assert logits.sparse_categorical_crossentropy(classes, ignore_index=7).item() == known
        assert classes.one_hot(2).tolist() == [[0, 0], [0, 1]]


@Context(CHECK_INDEX=0)
def test_symbols_without_a_line_give_zeros_where_none_is_checked() -> None:
    table = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert Tensor([2, -1, 1]).embedding(table).tolist() == [[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]
    assert Tensor([2, -1, -3]).embedding(table, wrap=True).tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    assert Tensor([[0, 9]]).embedding_bag(table, mode="sum").tolist() == [[1.0, 2.0]]
    assert Tensor([[0, 9]]).embedding_bag(table, mode="mean").tolist() == [[0.5, 1.0]]


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge])
@pytest.mark.parametrize("signed", ["int8", "int64"])
def test_uint64_is_compared_with_signed_integers_exactly(op: Any, signed: str) -> None:
    """Their mix is float32, in which 2⁶³ - 1 and 2⁶³ are one number."""
    limits = np.iinfo(signed)
    one = np.array([0, 1, limits.max, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)[:, None]
    two = np.array([limits.min, -1, 0, 1, limits.max], signed)[None]
    for left, right in ((one, two), (two, one)):
        expected = op(left.astype(object), right.astype(object)).astype(bool)
        np.testing.assert_array_equal(op(Tensor(left), Tensor(right)).numpy(), expected)

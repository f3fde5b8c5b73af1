"""Random functions compiled by `torch.compile(backend="lazygrad")` do what they do in eager PyTorch.

Compared are the results, what was written to the arguments, which of them share memory, and the gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from tests.fuzz.harness import fuzzed
from tests.fuzz.torch_programs import (
    DTYPES,
    KINDS,
    NAMES,
    Argument,
    Program,
    Step,
    arguments,
    programs,
    text_of,
)
from tests.helpers import needs
from tests.torch.support import door, torch

#: (n, seed): the second call replays what the first one captured.
CALLS = ((4, 0), (4, 1))
#: With symbolic sizes.
SIZED_CALLS = ((4, 0), (6, 1), (5, 0), (6, 2))
#: Of the largest number of a tensor.
TOLERANCE = {"torch.float64": 1e-6, "torch.float32": 1e-4, "torch.bfloat16": 3e-2}


def answer(function: Callable[..., Any], given: list[Any]) -> dict[str, Any]:
    """Results, arguments afterwards, which of all share memory; and the gradients, if PyTorch has them."""
    results = function(*given)
    every = [x for x in (*given, *results) if x.numel()]
    places = [x.untyped_storage().data_ptr() for x in every]
    floats = [x for x in results if x.requires_grad]
    wanted = [x for x in given if x.requires_grad and x.is_leaf]
    slopes: Any = None
    if floats and wanted:
        try:
            total = sum((x * _weights(x)).sum() for x in floats)
            slopes = torch.autograd.grad(total, wanted, allow_unused=True)
        except RuntimeError:  # a value that was needed has been written to
            slopes = None
        else:
            slopes = [torch.zeros_like(x) if s is None else s for x, s in zip(wanted, slopes, strict=True)]
    return {
        "results": [x.detach().clone() for x in results],
        "arguments": [x.detach().clone() for x in given],
        "shared": [places.index(each) for each in places],
        "strides": [_strides(x) for x in every],
        "tracked": [x.requires_grad for x in results],
        "slopes": slopes,
    }


def _strides(x: Any) -> Any:
    """How a tensor lies. What leaves holes lies in another way here: only what is seen is computed."""
    if door.memory.lying(x.shape, x.stride()) is None:
        return None
    return [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1]


def _weights(x: Any) -> Any:
    return (torch.arange(x.numel()) % 5 + 1).reshape(x.shape).to(x.dtype)


def compare(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for what in ("shared", "tracked"):
        assert found[what] == expected[what], f"{what}: {found[what]}, not {expected[what]}"
    for one, other in zip(found["strides"], expected["strides"], strict=True):
        assert other is None or one == other, f"strides: {one}, not {other}"
    for what in ("results", "arguments", "slopes"):
        if expected[what] is not None:
            for number, pair in enumerate(zip(found[what], expected[what], strict=True)):
                near(*pair, f"{what} {number}")


def near(found: Any, expected: Any, what: str) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    scale = max(1.0, expected.double().abs().max().item()) if expected.numel() else 1.0
    far = (found.double() - expected.double()).abs()
    within = TOLERANCE.get(str(expected.dtype), 0.0) * scale
    assert (far <= within).all(), f"{what}: {found}, not {expected}"


def play(program: Program) -> None:
    calls = SIZED_CALLS if program.symbolic else CALLS
    text = text_of(program, calls)
    space = dict(NAMES)
    exec(text, space)
    function = space["function"]
    try:
        differ(function, program, door.backend)
    except Exception as error:
        error.add_note(text)
        if not _is_of_pytorch(function, program):
            raise


def _is_of_pytorch(function: Callable[..., Any], program: Program) -> bool:
    """Whether what PyTorch makes of the function, run by PyTorch itself, is another one than the function."""
    try:
        differ(function, program, "aot_eager")
    except Exception:
        return True
    return False


def differ(function: Callable[..., Any], program: Program, backend: Any) -> None:
    """Raises an error where a compiled function does not do what it does in eager PyTorch."""
    torch._dynamo.reset()
    run = torch.compile(function, backend=backend, dynamic=True if program.symbolic else None)
    kept = []
    for call in SIZED_CALLS if program.symbolic else CALLS:
        expected = answer(function, arguments(program, *call))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = arguments(program, *call)
            found = answer(run, given)
        compare(found, expected)
        kept.append((found, expected))


@needs("torch")
@pytest.mark.slow
@fuzzed(quick=3, sweep=12, share=12)
@given(programs())
def test_torch(program: Program) -> None:
    play(program)


@needs("torch")
@fuzzed(quick=2, sweep=240, share=12)
@given(programs(("scatters", "scatters", "writes")))
def test_values_that_are_written_and_returned_with_copies(program: Program) -> None:
    play(program)


@needs("torch")
def test_no_program_asks_what_a_negative_float_is_as_uint8():
    step = Step("writes", KINDS["writes"].texts.index("x.copy_(y)"), (0, 1, 0), (0, 0))
    for first, lines in (("float32", 0), ("int64", 1)):
        given = tuple(Argument(0, DTYPES.index(dtype), 0, False) for dtype in (first, "uint8"))
        assert text_of(Program(given, (step,), 1, False), CALLS).count("copy_") == lines

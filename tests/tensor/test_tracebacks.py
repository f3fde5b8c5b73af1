"""A traceback shows the user's lines, and of lazygrad the method that was called."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from lazygrad import Context, Tensor, TinyJit, nn
from lazygrad.device import DeviceError


def frames(call) -> list[str]:
    """The functions in the traceback of what a call raises, without this one; ours with their file."""
    try:
        call()
    except Exception as error:
        found = traceback.extract_tb(error.__traceback__)[1:]
        return [f.name if f.filename == __file__ else f"{Path(f.filename).name}:{f.name}" for f in found]
    raise AssertionError("nothing was raised")


def adds() -> Tensor:
    return Tensor.ones(2, 3) + Tensor.ones(4)


def reshapes() -> Tensor:
    return Tensor.ones(2, 3).reshape(7)


@TinyJit
def jitted(x: Tensor) -> Tensor:
    return x.reshape(7)


@TinyJit
def reads(x: Tensor) -> Tensor:
    return x * x.sum().item()


def reads_in_a_capture() -> None:
    for _ in range(2):
        reads(Tensor([1.0, 2.0]))


def calls_back() -> Tensor:
    return Tensor.ones(2, 3).sequential([lambda x: x.reshape(7)])


def unknown_argument() -> Tensor:
    return Tensor([1], nonsense=3)


def wrong_index() -> Tensor:
    with Context(CHECK_INDEX=1):
        return Tensor([1, 2, 3])[Tensor([5])].realize()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (adds, ["adds", "arithmetic.py:<lambda>"]),
        (reshapes, ["reshapes", "movement.py:reshape"]),
        (lambda: jitted(Tensor([1.0])), ["<lambda>", "jitted", "movement.py:reshape"]),
        (reads_in_a_capture, ["reads_in_a_capture", "reads", "host.py:item"]),
        (calls_back, ["calls_back", "<lambda>", "movement.py:reshape"]),
        (unknown_argument, ["unknown_argument"]),
        (wrong_index, ["wrong_index", "computing.py:realize"]),
        (lambda: Tensor.ones(2).item(), ["<lambda>", "host.py:item"]),
        (
            lambda: nn.functional.cross_entropy(Tensor.ones(2, 3), Tensor.ones(4, 5)),
            ["<lambda>", "losses.py:cross_entropy"],
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_left(call, expected):
    assert frames(call) == expected


@pytest.mark.parametrize("flag", [{"TRACEBACK": 1}, {"DEBUG": 1}], ids=str)
def test_all_frames_when_asked_for(flag):
    with Context(**flag):
        shown = frames(reshapes)
    assert shown[0] == "reshapes"
    assert shown[-1] == "movement.py:reshape"
    assert "trace.py:wrapper" in shown
    assert len(shown) > 3


def test_the_cause_of_an_explained_error_when_asked_for():
    with pytest.raises(TypeError, match="no argument 'nonsense'") as caught:
        unknown_argument()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with Context(TRACEBACK=1), pytest.raises(TypeError) as caught:
        unknown_argument()
    assert isinstance(caught.value.__cause__, TypeError)


def test_an_error_of_the_users_own_function_keeps_its_lines():
    def fails(x: Tensor) -> Tensor:
        raise RuntimeError("mine")

    assert frames(lambda: Tensor.ones(2).sequential([fails])) == ["<lambda>", "fails"]
    assert frames(lambda: TinyJit(fails)(Tensor.ones(2))) == ["<lambda>", "fails"]


def test_an_error_of_a_kernel_says_what_it_was_to_compute():
    y = Tensor.ones(4).contiguous().realize()
    with Context(TRACEMETA=2):
        big = y.reshape(4, 1).expand(4, 1 << 60).reshape(4 << 60).contiguous()
    with pytest.raises(DeviceError) as caught:
        big.realize()
    (note,) = caught.value.__notes__
    assert note.startswith("while computing contiguous at ")
    assert "test_tracebacks.py:" in note

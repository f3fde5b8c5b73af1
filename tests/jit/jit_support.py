"""What the tests of TinyJit share: the same program with and without it, compared call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lazygrad import Context, Tensor, TinyJit
from lazygrad.nn.optim import Optimizer


def arrays(value: Any) -> Any:
    """A returned value with its tensors as arrays."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: arrays(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [arrays(part) for part in value]
    return value


def check_equal(got: Any, expected: Any, where: str = "", rtol: float = 0.0) -> None:
    """The same structure, and the same bits (or nearly, with rtol)."""
    if isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key in expected:
            check_equal(got[key], expected[key], f"{where}[{key!r}]", rtol)
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for number, (a, b) in enumerate(zip(got, expected, strict=True)):
            check_equal(a, b, f"{where}[{number}]", rtol)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(got, expected, rtol, rtol, err_msg=where)
    else:
        assert got == expected, where


def as_eager(
    make: Callable[[], Callable[..., Any]], calls: Iterable[Callable[[], tuple[Any, ...]]], seed: int = 7
) -> TinyJit[..., Any]:
    """Run `make()` on each call's arguments, plainly and as a TinyJit, and compare the results at the end.

    make  makes the function, with state of its own if it has any      calls  make the arguments of each call
    """
    made: list[Any] = []
    for flag in (0, 1):
        Tensor.manual_seed(seed)
        fxn = TinyJit(make())
        with Context(JIT=flag):
            results = [fxn(*call()) for call in calls]
        made.append([arrays(result) for result in results])
    check_equal(made[1], made[0])
    return fxn


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """A realized tensor of random numbers."""
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).realize()


def training_step(optimizer: Optimizer, loss_of: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A step of training by the loss of its arguments; gives the loss."""

    def step(*batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def captures(fxn: Any) -> int:
    """How many captures a TinyJit keeps."""
    return len(fxn._run.__self__.captures)


def runs(capsys: Any) -> int:
    """How often Python inside ran, where it prints `ran`: a counter would be state that it reads."""
    return int(capsys.readouterr().out.count("ran\n"))

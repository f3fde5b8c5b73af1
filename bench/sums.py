"""Errors of long sums of one sign beside numpy's and PyTorch's, in half units in the last place.

    python -m bench sums                    all
    python -m bench sums --cases mean var   those with one of these words in their names
    python -m bench sums --long             up to 100,000,000 terms

The terms are 0.1, every seventh 0.1001: errors of equal terms point in one direction. What is shown is the
greatest error of all results, and beside it what docs/numbers.md allows, 4 + log2(n). A library that is not
installed has no column.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Context, Tensor
from lazygrad.config import NOOPT

Function = Callable[[Any], Any]


class Sum(NamedTuple):
    """A computation of the terms in an array of this shape, `terms` of which are added for each result.

    exact   computes it with numpy, of numbers in float64
    numpy, torch, lazygrad   compute it in float32; numpy's is `exact` where nothing else is said
    """

    name: str
    shape: tuple[int, ...]
    terms: int
    exact: Function
    torch: Function
    lazygrad: Function


def pattern(shape: tuple[int, ...]) -> np.ndarray:
    """0.1 and every seventh 0.1001."""
    terms = np.full(shape, 0.1, np.float32)
    terms.reshape(-1)[::7] = 0.1001
    return terms


def half_units(found: Any, exact: Any) -> float:
    """The greatest error, in half units in the last place of the exact result in float32."""
    found, exact = np.asarray(found, np.float64), np.asarray(exact, np.float64)
    half = 2.0 ** (np.floor(np.log2(np.abs(exact))) - 24)
    return float(np.max(np.abs(found - exact) / half))


def _without_opts(x: Tensor) -> Tensor:
    with Context(NOOPT=1):
        return x.sum().realize()


def _bias_gradient(x: Any, zeros: Any) -> Any:
    bias = zeros
    bias.requires_grad = True
    (bias.expand(*x.shape) * x).sum().backward()
    return bias.grad


def _plain(name: str, *shape: int, axis: Any = None, torch_axis: Any = None) -> Sum:
    terms = math.prod(shape) if axis is None else math.prod(np.atleast_1d(np.array(shape)[np.array(axis)]))

    def both(x: Any) -> Any:
        return getattr(x, name)() if axis is None else getattr(x, name)(axis)

    of = f"{name} of {'x'.join(map(str, shape))}" + ("" if axis is None else f" along {axis}")
    return Sum(of, shape, int(terms), both, both, both)


def cases(long: bool) -> Iterator[Sum]:
    """What is measured."""
    for size in (1000, 4096, 100_000, 2**20 - 1, 10_000_000, *((100_000_000,) if long else ())):
        yield _plain("sum", size)
    size = 1_000_000
    yield Sum(f"sum of {size}, NOOPT", (size,), size, np.sum, lambda x: x.sum(), _without_opts)
    yield _plain("sum", 2**20, 8, axis=0)
    yield _plain("sum", 16, 65_537, axis=1)
    yield _plain("sum", 16, 4099, 32, axis=1)
    yield _plain("mean", 10_000_000)
    yield _plain("mean", 64, 8, 56, 56, axis=(0, 2, 3))
    for size in (100_000, 2**20 - 1):
        yield Sum(
            f"var of {size}",
            (size,),
            size,
            np.var,
            lambda x: x.var(correction=0),
            lambda x: x.var(correction=0),
        )
    yield Sum(f"cumsum of {size}", (size,), size, np.cumsum, lambda x: x.cumsum(0), lambda x: x.cumsum(0))
    yield Sum(
        f"norm of {size}",
        (size,),
        size,
        lambda x: np.sqrt(np.sum(x * x)),
        lambda x: x.norm(),
        lambda x: x.norm(),
    )
    yield Sum(f"dot of {size}", (size,), size, lambda x: np.dot(x, x), lambda x: x.dot(x), lambda x: x.dot(x))
    yield Sum(
        f"logsumexp of {size}", (size,), size, lambda x: np.log(np.sum(np.exp(x))),
        lambda x: x.logsumexp(0), lambda x: x.logsumexp(0),
    )  # fmt: skip
    for shape in ((4, 65_536), (64, 1024), (256, 4096)):
        name = f"matmul {shape[0]}x{shape[1]}x{shape[0]}"
        yield Sum(name, shape, shape[1], lambda x: x @ x.T, lambda x: x @ x.T, lambda x: x @ x.T)
    shape = (2**18, 16)
    yield Sum(
        "gradient of a bias, 262144x16", shape, shape[0], lambda x: np.sum(x, 0),
        lambda x: _bias_gradient(x, _torch().zeros(16)), lambda x: _bias_gradient(x, Tensor.zeros(16)),
    )  # fmt: skip


def _torch() -> Any:
    import torch

    return torch


def measured(case: Sum) -> dict[str, float]:
    """The error of each library."""
    terms = pattern(case.shape)
    exact = case.exact(terms.astype(np.float64))
    found = {"lazygrad": half_units(case.lazygrad(Tensor(terms)).numpy(), exact)}
    found["numpy"] = half_units(case.exact(terms), exact)
    if importlib.util.find_spec("torch") is not None:
        found["torch"] = half_units(case.torch(_torch().from_numpy(terms)).detach().numpy(), exact)
    return found


def main(arguments: list[str]) -> int:
    assert __doc__ is not None
    about, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench sums", description=about, epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--cases", nargs="*", default=[], help="words: sums with one of them in their names")
    parser.add_argument("--long", action="store_true", help="up to 100,000,000 terms")
    options = parser.parse_args(arguments)
    if NOOPT:
        print("NOOPT is set: no sum has Opts")
    print(f"{'half units in the last place':34} {'allowed':>8} {'lazygrad':>9} {'numpy':>9} {'torch':>9}")
    beyond = 0
    for case in cases(options.long):
        if options.cases and not any(word in case.name for word in options.cases):
            continue
        errors, allowed = measured(case), 4 + math.log2(case.terms)
        columns = " ".join(
            f"{errors[name]:9.1f}" if name in errors else " " * 9 for name in ("lazygrad", "numpy", "torch")
        )
        beyond += errors["lazygrad"] > allowed
        print(f"{case.name:34} {allowed:8.1f} {columns}", flush=True)
    return int(beyond > 0)

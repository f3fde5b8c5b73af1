"""Random programs that are played in PyTorch and here, for tests/fuzz/test_gradients.py.

A program is data: leaves, steps, roots. A step names an operation and has small numbers that choose its
operands and parameters among what fits, so that whatever numbers a shrinking hypothesis tries make a
program. PyTorch goes first and says which steps count: what it refuses, what leaves the range in which
errors are small, and what comes near a place without a slope (ties of a maximum, whole numbers under
`floor`) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

SHAPES = ((3,), (2, 3), (3, 2), (), (1, 3), (2, 1, 3), (2, 2))
#: Values beyond these lose digits, or are no challenge.
LARGEST, NEAREST = 50.0, 2e-3


class Step(NamedTuple):
    """name: of an operation; operands: which values; k: numbers for its parameters."""

    name: str
    operands: tuple[int, int, int]
    k: tuple[int, int]


class Program(NamedTuple):
    """Leaves (the number of a shape, whether it wants a gradient), and what is computed of them.

    seed     of the leaves' values
    roots    how many values, the last ones, are differentiated
    reads    after these steps the value is read, which runs kernels here
    """

    leaves: tuple[tuple[int, bool], ...]
    seed: int
    steps: tuple[Step, ...]
    reads: frozenset[int]
    roots: int


class Refused(Exception):
    """A step that does not count: some slope is not defined near its operands."""


def apart(*values: Any) -> None:
    """No two of all these numbers are near each other."""
    numbers = np.sort(np.concatenate([np.ravel(v.detach().numpy()) for v in values]))
    if len(numbers) > 1 and np.diff(numbers).min() < NEAREST:
        raise Refused


def away(x: Any, *points: float) -> None:
    """No number is near any of the points."""
    for point in points:
        if (x.detach() - point).abs().lt(NEAREST).any():
            raise Refused


def no_whole(x: Any) -> None:
    """No number is near a whole one, or half way between two."""
    away(x.detach() * 2 - (x.detach() * 2).round(), 0.0)


def above(x: Any, least: float) -> None:
    if not (x.detach() > least).all():
        raise Refused


def within(x: Any, size: float) -> None:
    if not (x.detach().abs() < size).all():
        raise Refused


def alike(x: Any, y: Any) -> None:
    """Of one shape: what does not broadcast here."""
    if x.shape != y.shape:
        raise Refused


def no_more_rows(x: Any, y: Any, k: Sequence[int]) -> None:
    """Else two values would be stored at one place."""
    if y.shape[0] > x.shape[0]:
        raise Refused


def positive(x: Any) -> Any:
    return x * x + 0.2


# *** operations: (values, k) → a value; beside it what PyTorch's values are asked first

Operation = Callable[..., Any]
ONE: dict[str, tuple[Operation, Callable[..., None] | None]] = {
    "neg": (lambda x, k: -x, None),
    "square": (lambda x, k: x * x, None),
    "add number": (lambda x, k: x + (k[0] - 2) * 0.5, None),
    "mul number": (lambda x, k: x * (k[0] - 2), None),
    "rsub": (lambda x, k: 1.5 - x, None),
    "rdiv": (lambda x, k: (k[0] - 1) / x, lambda x, k: away(x, 0.0)),
    "rpow": (lambda x, k: (1.0, 2.0, 0.5, 3)[k[0] % 4] ** x, None),
    "pow": (
        lambda x, k: x ** (0, 1, 2, 3, -1, -2, 0.0, 4)[k[0] % 8],
        lambda x, k: away(x, 0.0) if k[0] % 8 in (4, 5) else None,
    ),
    "real pow": (lambda x, k: positive(x) ** (0.5, -0.5, 1.7, 20)[k[0] % 4], None),
    "exp": (lambda x, k: x.exp(), None),
    "exp2": (lambda x, k: x.exp2(), None),
    "expm1": (lambda x, k: x.expm1(), None),
    "log": (lambda x, k: positive(x).log(), None),
    "log2": (lambda x, k: positive(x).log2(), None),
    "log1p": (lambda x, k: positive(x).log1p(), None),
    "sqrt": (lambda x, k: positive(x).sqrt(), None),
    "rsqrt": (lambda x, k: positive(x).rsqrt(), None),
    "reciprocal": (lambda x, k: x.reciprocal(), lambda x, k: away(x, 0.0)),
    "sin": (lambda x, k: x.sin(), None),
    "cos": (lambda x, k: x.cos(), None),
    "tan": (lambda x, k: (x.tanh() * 0.9).tan(), None),
    "tanh": (lambda x, k: x.tanh(), None),
    "atan": (lambda x, k: x.atan(), None),
    "asin": (lambda x, k: (x.tanh() * 0.9).asin(), None),
    "acos": (lambda x, k: (x.tanh() * 0.9).acos(), None),
    "sinh": (lambda x, k: x.sinh(), lambda x, k: within(x, 4)),
    "cosh": (lambda x, k: x.cosh(), lambda x, k: within(x, 4)),
    "asinh": (lambda x, k: x.asinh(), None),
    "atanh": (lambda x, k: (x.tanh() * 0.9).atanh(), None),
    "erf": (lambda x, k: x.erf(), None),
    "sigmoid": (lambda x, k: x.sigmoid(), None),
    "relu": (lambda x, k: x.relu(), lambda x, k: away(x, 0.0)),
    "abs": (lambda x, k: x.abs(), lambda x, k: away(x, 0.0)),
    "sign": (lambda x, k: x.sign(), lambda x, k: away(x, 0.0)),
    "floor": (lambda x, k: x.floor(), lambda x, k: no_whole(x)),
    "ceil": (lambda x, k: x.ceil(), lambda x, k: no_whole(x)),
    "round": (lambda x, k: x.round(), lambda x, k: no_whole(x)),
    "trunc": (lambda x, k: x.trunc(), lambda x, k: no_whole(x)),
    "frac": (lambda x, k: x.frac(), lambda x, k: no_whole(x)),
    "clamp": (lambda x, k: x.clamp(-0.7 + k[0] * 0.1, 0.9), lambda x, k: away(x, -0.7 + k[0] * 0.1, 0.9)),
    "mod number": (lambda x, k: x % (k[0] + 0.7), lambda x, k: no_whole(x / (k[0] + 0.7))),
    "fmod number": (lambda x, k: x.fmod(k[0] + 0.7), lambda x, k: no_whole(x / (k[0] + 0.7))),
    "floor quotient": (
        lambda x, k: x.div(k[0] + 0.7, rounding_mode="floor"),
        lambda x, k: no_whole(x / (k[0] + 0.7)),
    ),
    "detach": (lambda x, k: x.detach(), None),
    "new leaf": (lambda x, k: x.detach().requires_grad_(), None),
    "whether positive": (lambda x, k: (x > 0.1).double(), lambda x, k: away(x, 0.1)),
    "as integers": (lambda x, k: x.long().double(), lambda x, k: no_whole(x)),
    "clone": (lambda x, k: x.clone(), None),
    "sum": (lambda x, k: x.sum(), None),
    "mean": (lambda x, k: x.mean(), None),
    "sum axis": (lambda x, k: x.sum(k[0] % x.ndim), None),
    "sum axis kept": (lambda x, k: x.sum(k[0] % x.ndim, keepdim=True), None),
    "mean axis": (lambda x, k: x.mean(k[0] % x.ndim), None),
    "prod": (lambda x, k: x.prod(), None),
    "prod axis": (lambda x, k: x.prod(k[0] % x.ndim), None),
    "max": (lambda x, k: x.max(), lambda x, k: apart(x)),
    "amax": (lambda x, k: x.amax(k[0] % x.ndim), lambda x, k: apart(x)),
    "amin": (lambda x, k: x.amin(k[0] % x.ndim, keepdim=True), lambda x, k: apart(x)),
    "var": (lambda x, k: x.var(k[0] % x.ndim), lambda x, k: above(x.var(k[0] % x.ndim), 0.01)),
    "std": (lambda x, k: x.std(k[0] % x.ndim), lambda x, k: above(x.var(k[0] % x.ndim), 0.01)),
    "logsumexp": (lambda x, k: x.logsumexp(k[0] % x.ndim), None),
    "softmax": (lambda x, k: x.softmax(k[0] % x.ndim), None),
    "log_softmax": (lambda x, k: x.log_softmax(k[0] % x.ndim), None),
    "norm": (lambda x, k: x.norm(), lambda x, k: above(x.abs().sum(), 0.1)),
    "cumsum": (lambda x, k: x.cumsum(k[0] % x.ndim), None),
    "cumprod": (lambda x, k: x.cumprod(k[0] % x.ndim), None),
    "cummax": (lambda x, k: values_of(x.cummax(k[0] % x.ndim)), lambda x, k: apart(x)),
    "logcumsumexp": (lambda x, k: x.logcumsumexp(k[0] % x.ndim), None),
    "sort": (lambda x, k: x.sort(k[0] % x.ndim, descending=bool(k[1] % 2))[0], lambda x, k: apart(x)),
    "topk": (lambda x, k: x.topk(1 + k[1] % x.shape[-1])[0], lambda x, k: apart(x)),
    "median": (lambda x, k: x.median(), lambda x, k: apart(x)),
    "argmax": (lambda x, k: x.argmax().double(), lambda x, k: apart(x)),
    "transpose": (lambda x, k: x.transpose(0, -1), None),
    "flatten": (lambda x, k: x.flatten(), None),
    "unsqueeze": (lambda x, k: x.unsqueeze(k[0] % (x.ndim + 1)), None),
    "squeeze": (lambda x, k: x.squeeze(), None),
    "expand": (lambda x, k: x.unsqueeze(0).expand(2, *x.shape), None),
    "repeat": (lambda x, k: x.repeat(*([2] + [1] * (x.ndim - 1))), None),
    "flip": (lambda x, k: x.flip(k[0] % x.ndim), None),
    "roll": (lambda x, k: x.roll(k[1], k[0] % x.ndim), None),
    "narrow": (lambda x, k: x.narrow(k[0] % x.ndim, 0, 1), None),
    "slice": (lambda x, k: x[..., k[0] % 2 :: 1 + k[1] % 2], None),
    "select": (lambda x, k: x[k[0] % x.shape[0]], None),
    "by a list": (lambda x, k: x[[k[0] % x.shape[0], k[1] % x.shape[0], 0]], None),
    "unfold": (lambda x, k: x.unfold(-1, 2, 1), None),
    "zero a row": (lambda x, k: x.index_fill(0, integers(x, [k[0] % x.shape[0]]), 0.0), None),
    "gelu": (lambda x, k: functional(x, "gelu", approximate=("tanh", "none")[k[0] % 2]), None),
    "silu": (lambda x, k: functional(x, "silu"), None),
    "softplus": (lambda x, k: functional(x, "softplus"), lambda x, k: within(x, 15)),
    "elu": (lambda x, k: functional(x, "elu"), lambda x, k: away(x, 0.0)),
    "leaky_relu": (lambda x, k: functional(x, "leaky_relu"), lambda x, k: away(x, 0.0)),
    "mish": (lambda x, k: functional(x, "mish"), None),
    "selu": (lambda x, k: functional(x, "selu"), lambda x, k: away(x, 0.0)),
    "hardswish": (lambda x, k: functional(x, "hardswish"), lambda x, k: away(x, -3.0, 0.0, 3.0)),
    "logsigmoid": (lambda x, k: functional(x, "logsigmoid"), None),
    "softsign": (lambda x, k: functional(x, "softsign"), lambda x, k: away(x, 0.0)),
    "lgamma": (lambda x, k: positive(x).lgamma(), None),
    "erfc": (lambda x, k: x.erfc(), None),
    "erfinv": (lambda x, k: (x.tanh() * 0.9).erfinv(), None),
    "logit": (lambda x, k: (x.sigmoid() * 0.8 + 0.1).logit(), None),
    "sinc": (lambda x, k: x.sinc(), lambda x, k: away(x, 0.0)),
    "xlogy": (lambda x, k: x.xlogy(x * x + 1), None),
    "diff": (lambda x, k: x.diff(), None),
    "cummin": (lambda x, k: values_of(x.cummin(k[0] % x.ndim)), lambda x, k: apart(x)),
    "trace": (lambda x, k: x.trace(), None),
    "diag": (lambda x, k: x.diag(), None),
    "diag_embed": (lambda x, k: x.diag_embed(), None),
    "rot90": (lambda x, k: x.rot90(k[0]), None),
    "movedim": (lambda x, k: x.movedim(0, -1), None),
    "repeat_interleave": (lambda x, k: x.repeat_interleave(2, k[0] % x.ndim), None),
    "tile": (lambda x, k: x.tile(2), None),
    "second part": (lambda x, k: x.split(1, k[0] % x.ndim)[-1], None),
    "unbind": (lambda x, k: x.unbind(k[0] % x.ndim)[-1], None),
    "take": (lambda x, k: x.take(integers(x, [[k[0] % x.numel(), 0], [k[1] % x.numel(), 0]])), None),
    "layer_norm": (
        lambda x, k: functional(x, "layer_norm", (x.shape[-1],)),
        lambda x, k: above(x.var(-1), 0.01),
    ),
    "normalize": (lambda x, k: functional(x, "normalize", dim=-1), lambda x, k: above((x * x).sum(-1), 0.1)),
    "gram": (lambda x, k: x @ x.transpose(-1, -2), None),
    "inverse": (lambda x, k: (x @ x.transpose(-1, -2) + unit(x)).inverse(), None),
    "det": (lambda x, k: (x @ x.transpose(-1, -2) + unit(x)).det(), None),
    "cholesky": (lambda x, k: cholesky(x @ x.transpose(-1, -2) + unit(x)), None),
    "einsum": (lambda x, k: library_of(x).einsum("ij,kj->ik", x, x * x), None),
    "std of all": (lambda x, k: x.std(), lambda x, k: above(x.var(), 0.01)),
    "var of n": (lambda x, k: x.var(k[0] % x.ndim, correction=0), None),
    "nan_to_num": (lambda x, k: x.nan_to_num(), None),
    "tril": (lambda x, k: x.tril(k[0] - 2), None),
    "diagonal": (lambda x, k: x.diagonal(), None),
    "masked_fill": (lambda x, k: x.masked_fill(x > 0.1, 0.3 * k[0]), lambda x, k: away(x, 0.1)),
}  # fmt: skip
TWO: dict[str, tuple[Operation, Callable[..., None] | None]] = {
    "add": (lambda x, y, k: x + y, None),
    "sub": (lambda x, y, k: x - y, None),
    "mul": (lambda x, y, k: x * y, None),
    "div": (lambda x, y, k: x / y, lambda x, y, k: away(y, *np.linspace(-0.2, 0.2, 101))),
    "power": (lambda x, y, k: positive(x) ** y, None),
    "maximum": (lambda x, y, k: x.maximum(y), lambda x, y, k: away(x - y, 0.0)),
    "minimum": (lambda x, y, k: x.minimum(y), lambda x, y, k: away(x - y, 0.0)),
    "fmod": (lambda x, y, k: x.fmod(y), lambda x, y, k: (away(y, 0.0), no_whole(x / y), within(x / y, 20))),
    "remainder": (
        lambda x, y, k: x.remainder(y),
        lambda x, y, k: (away(y, 0.0), no_whole(x / y), within(x / y, 20)),
    ),
    "atan2": (lambda x, y, k: x.atan2(y), lambda x, y, k: away(x * x + y * y, 0.0)),
    "hypot": (lambda x, y, k: x.hypot(y), lambda x, y, k: away(x * x + y * y, 0.0)),
    "logaddexp": (lambda x, y, k: x.logaddexp(y), None),
    "lerp": (lambda x, y, k: x.lerp(y, 0.3), None),
    "copysign": (lambda x, y, k: x.copysign(y), lambda x, y, k: (away(x, 0.0), away(y, 0.0))),
    "where": (lambda x, y, k: chosen(x > y, x * 2, y), lambda x, y, k: away(x - y, 0.0)),
    "where expensive": (lambda x, y, k: chosen(x > 0.1, x.log(), y), lambda x, y, k: away(x, 0.0, 0.1)),
    "times whether": (lambda x, y, k: (x > y) * x, lambda x, y, k: away(x - y, 0.0)),
    "matmul": (lambda x, y, k: x @ y, None),
    "outer": (lambda x, y, k: x.flatten().unsqueeze(1) * y.flatten().unsqueeze(0), None),
    "gather": (lambda x, y, k: x.gather(0, places(x, y, k)), None),
    "scatter": (lambda x, y, k: x.scatter(0, places(x, y, k, once=True), y), None),
    "scatter_add": (lambda x, y, k: x.scatter_add(0, places(x, y, k), y), None),
    "index_select": (lambda x, y, k: x.index_select(0, places(x, y.flatten(), k).flatten()), None),
    "index_add": (lambda x, y, k: x.index_add(0, row_places(x, y, k), y), None),
    "index by values": (lambda x, y, k: x[y.flatten().argsort() % x.shape[0]], lambda x, y, k: apart(y)),
    "scatter products": (
        lambda x, y, k: x.scatter_reduce(0, places(x, y, k), y, "prod"),
        lambda x, y, k: (away(x, 0.0), away(y, 0.0)),
    ),
    "scatter greatest": (
        lambda x, y, k: x.scatter_reduce(0, places(x, y, k), y, "amax"),
        lambda x, y, k: apart(x, y),
    ),
    "scatter mean": (lambda x, y, k: x.scatter_reduce(0, places(x, y, k), y, "mean"), None),
    "index_copy": (lambda x, y, k: x.index_copy(0, row_places(x, y, (k[0], 0)), y), no_more_rows),
    "index_put": (lambda x, y, k: x.index_put((row_places(x, y, k),), y, accumulate=True), None),
    "take_along_dim": (lambda x, y, k: x.take_along_dim(places(x, y, k), 0), None),
    "masked_scatter": (lambda x, y, k: x.masked_scatter(x > 0.1, y), lambda x, y, k: away(x, 0.1)),
    "kron": (lambda x, y, k: x.kron(y), None),
    "xlogy of both": (lambda x, y, k: x.xlogy(y), lambda x, y, k: above(y, 0.1)),
    "mse_loss": (lambda x, y, k: functional(x, "mse_loss", y), lambda x, y, k: alike(x, y)),
    "huber_loss": (
        lambda x, y, k: functional(x, "huber_loss", y),
        lambda x, y, k: (alike(x, y), away(x - y, -1.0, 0.0, 1.0)),
    ),
    "kl_div": (lambda x, y, k: functional(x.log_softmax(-1), "kl_div", y.softmax(-1), reduction="sum"), None),
    "cosine_similarity": (
        lambda x, y, k: functional(x, "cosine_similarity", y, dim=-1),
        lambda x, y, k: (above((x * x).sum(-1), 0.1), above((y * y).sum(-1), 0.1)),
    ),
    "linear": (lambda x, y, k: functional(x, "linear", y), None),
    "dist": (lambda x, y, k: (x - y).norm(3), lambda x, y, k: away(x - y, 0.0)),
    "solve": (lambda x, y, k: solved(x @ x.transpose(-1, -2) + unit(x), y), None),
    "masked_select sum": (lambda x, y, k: x.masked_select(y > 0.1).sum(), lambda x, y, k: away(y, 0.1)),
}  # fmt: skip
#: Writes into a copy of the first operand.
WRITES: dict[str, tuple[Operation, Callable[..., None] | None]] = {
    "assign row": (lambda x, y, k: _set(x, k[0] % x.shape[0], y), None),
    "assign slice": (lambda x, y, k: _set(x, (Ellipsis, slice(k[0] % 2, None)), y), None),
    "assign rows": (lambda x, y, k: _set(x, [k[0] % x.shape[0]], y), None),
    "assign all": (lambda x, y, k: _set(x, slice(None), y), None),
    "assign where": (lambda x, y, k: _set(x, x > 0.1, 0.5 * k[0]), lambda x, y, k: away(x, 0.1)),
    "add_": (lambda x, y, k: x.add_(y), None),
    "mul_": (lambda x, y, k: x.mul_(y), None),
    "sub row": (lambda x, y, k: _subtract_row(x, y, k), None),
    "fill_": (lambda x, y, k: x.fill_(0.5), None),
    "zero_": (lambda x, y, k: x.zero_(), None),
    "copy_": (lambda x, y, k: x.copy_(y), None),
    "clamp_": (lambda x, y, k: x.clamp_(-0.6, 0.6), lambda x, y, k: away(x, -0.6, 0.6)),
    "index_add_": (lambda x, y, k: x.index_add_(0, row_places(x, y, k), y), None),
}
JOINS: dict[str, Operation] = {
    "cat": lambda library, values, k: library.cat(list(values), 0),
    "cat last": lambda library, values, k: library.cat(list(values), -1),
    "stack": lambda library, values, k: library.stack(list(values), 0),
}


def functional(x: Any, name: str, *args: Any, **options: Any) -> Any:
    """A function of torch.nn.functional and lazygrad.nn.functional."""
    if type(x).__module__.startswith("torch"):
        import torch

        return getattr(torch.nn.functional, name)(x, *args, **options)
    from lazygrad.nn import functional

    return getattr(functional, name)(x, *args, **options)


def unit(x: Any) -> Any:
    """A matrix on whose diagonal is 2, as large as x has rows."""
    array = 2 * np.eye(x.shape[-2])
    library = library_of(x)
    return library(array, device=x.device) if isinstance(library, type) else library.from_numpy(array)


def solved(a: Any, b: Any) -> Any:
    library = library_of(a)
    return a.solve(b) if isinstance(library, type) else library.linalg.solve(a, b)


def values_of(found: Any) -> Any:
    """Without the indices that PyTorch gives with them."""
    return found[0] if isinstance(found, tuple) else found


def chosen(condition: Any, yes: Any, no: Any) -> Any:
    return library_of(yes).where(condition, yes, no)


def cholesky(x: Any) -> Any:
    """The Cholesky factor, which PyTorch has in torch.linalg alone since 2.14."""
    library = library_of(x)
    return x.cholesky() if library is type(x) else library.linalg.cholesky(x)


def library_of(x: Any) -> Any:
    """torch, or lazygrad's class Tensor, whose functions of several tensors have the same names."""
    if type(x).__module__.startswith("torch"):
        import torch

        return torch
    return type(x)


def integers(x: Any, values: Any) -> Any:
    """An integer tensor of x's library."""
    library = library_of(x)
    array = np.array(values, np.int64)
    return library(array, device=x.device) if isinstance(library, type) else library.from_numpy(array)


def places(x: Any, y: Any, k: Sequence[int], once: bool = False) -> Any:
    """Places along x's first axis, of y's shape; no two the same along that axis, if `once`."""
    shape = tuple(y.shape)
    if once and shape and shape[0] > x.shape[0]:
        raise Refused
    row = (np.arange(shape[0]) + k[0]) % x.shape[0]
    if not once:
        row = (row * (1 + k[1])) % x.shape[0]
    return integers(x, np.broadcast_to(row.reshape(-1, *[1] * (len(shape) - 1)), shape).copy())


def row_places(x: Any, y: Any, k: Sequence[int]) -> Any:
    return integers(x, (np.arange(y.shape[0]) * (1 + k[1]) + k[0]) % x.shape[0])


def _set(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _subtract_row(x: Any, y: Any, k: Sequence[int]) -> Any:
    x[k[0] % x.shape[0]] -= y
    return x


# *** programs

NAMES = [*ONE, *TWO, *WRITES, *JOINS]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    number, small = st.integers(0, 30), st.integers(0, 5)
    leaves = draw(st.lists(st.tuples(st.integers(0, len(SHAPES) - 1), st.booleans()), min_size=1, max_size=3))
    step = st.builds(
        Step,
        st.one_of(*(st.sampled_from(list(names)) for names in (ONE, TWO, WRITES, JOINS, TWO, ONE))),
        st.tuples(number, number, number),
        st.tuples(small, small),
    )
    steps = draw(st.lists(step, min_size=2, max_size=12))
    return Program(
        ((leaves[0][0], True), *leaves[1:]),
        draw(st.integers(0, 1000)),
        tuple(steps),
        draw(st.frozensets(st.integers(0, 12), max_size=2)),
        draw(st.integers(1, 2)),
    )


def operand(values: Sequence[Any], choice: int) -> Any:
    """A value: one of the last, more often than not."""
    return values[-1 - min(choice % 7, choice % len(values)) % len(values)]


def leaf_values(program: Program) -> list[np.ndarray[Any, Any]]:
    """Numbers of which no two are near each other."""
    rng = np.random.default_rng(program.seed)
    sizes = [int(np.prod(SHAPES[shape])) for shape, _ in program.leaves]
    numbers = np.linspace(-1.9, 2.1, sum(sizes)) + rng.uniform(-0.01, 0.01, sum(sizes))
    rng.shuffle(numbers)
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    return [part.reshape(SHAPES[shape]) for part, (shape, _) in zip(parts, program.leaves, strict=True)]


def apply(step: Step, values: Sequence[Any], guard: bool = False) -> Any:
    """The step's result; `guard`: first make sure that the slopes are defined."""
    x, y, z = (operand(values, choice) for choice in step.operands)
    if step.name in ONE:
        operation, check = ONE[step.name]
        if guard and check is not None:
            check(x, step.k)
        return operation(x, step.k)
    if step.name in TWO:
        operation, check = TWO[step.name]
        if guard and check is not None:
            check(x, y, step.k)
        return operation(x, y, step.k)
    if step.name in WRITES:
        operation, check = WRITES[step.name]
        if guard and check is not None:
            check(x, y, step.k)
        return operation(x.clone(), y, step.k)
    return JOINS[step.name](library_of(x), (x, y, z)[: 2 + step.k[0] % 2], step.k)

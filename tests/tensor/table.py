"""The table of PyTorch's functions and of what is called as they are: one row each.

A row is a call, written once for both libraries where they spell it alike, and the arrays that it gets.
It is read by

    test_torch.py           values of kernels and of the oracle, and gradients, of every row
    test_second_order.py    gradients of gradients, of every row
    test_special_values.py  infinities, NaN and the ends of floats: rows that are also "special"
    test_method_edges.py    tensors of no axis and of no element, other dtypes, other devices
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Tensor
from lazygrad.nn import functional
from tests.helpers import require
from tests.tensor.support import data


class _Torch:
    """PyTorch, imported where a row runs: `torch.special.i0e` is a function that looks it up when called."""

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path

    def __getattr__(self, name: str) -> _Torch:
        return _Torch((*self.path, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = require("torch")
        for name in self.path:
            found = getattr(found, name)
        return found(*args, **kwargs)


class _Methods:
    """PyTorch's tensor, with the functions of a module as its methods: `x.pad(...)` is `F.pad(x, ...)`."""

    def __init__(self, of: _Torch, tensor: Any) -> None:
        self.of, self.tensor = of, tensor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **options: Any) -> Any:
            given = [a.tensor if isinstance(a, _Methods) else a for a in args]
            options = {k: v.tensor if isinstance(v, _Methods) else v for k, v in options.items()}
            return getattr(self.of, name)(self.tensor, *given, **options)

        return method


class Row(NamedTuple):
    """A call of lazygrad, PyTorch's, what they get, and what holds of them.

    also        words: "special", "edges" and "far out" are tests of it at such numbers
    rtol, atol  how near the values are, and the gradients
    backward    False where there is no gradient to compare: PyTorch has none, or the result is constant
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arrays: list[Any]
    also: str = ""
    rtol: float = 1e-4
    atol: float = 1e-5
    backward: bool = True


def row(
    call: Callable[..., Any],
    *arrays: Any,
    theirs: Callable[..., Any] | None = None,
    of: _Torch | None = None,
    **more: Any,
) -> Row:
    """The call is PyTorch's too, or `theirs` is, or what are methods here are functions `of` a module."""

    def as_functions(*tensors: Any) -> Any:
        return call(*[_Methods(of, tensor) for tensor in tensors])

    return Row(call, theirs or (as_functions if of else call), list(arrays), **more)


def both(ours: Any, theirs: Any, call: Callable[..., Any], *arrays: Any) -> Row:
    """The call is of a function: it gets first the module or class, of either library, that has it."""
    return row(lambda *x: call(ours, *x), *arrays, theirs=lambda *x: call(theirs, *x))


def named(of: _Torch, also: str, arrays: dict[str, Any], backward: bool = True) -> dict[str, Row]:
    """A row for each function that is called with nothing but tensors, by its name."""

    def call(name: str) -> Callable[..., Any]:
        return lambda x, *more: getattr(x, name)(*more)

    given = {name: x if isinstance(x, tuple) else (x,) for name, x in arrays.items()}
    return {name: row(call(name), *x, of=of, also=also, backward=backward) for name, x in given.items()}


def line(*values: Any) -> Any:
    return np.array(values, np.float32)


torch = _Torch()
F = torch.nn.functional
INF, NAN = np.inf, np.nan
X, Y, T = data(3, 4, seed=1), data(3, 4, seed=2), data(2, 3, 4, seed=6)
ROW, A, B = data(4, seed=3), data(3, 5, seed=7), data(5, 4, seed=8)
POSITIVE = data(3, 4, seed=4, low=0.1, high=3.0)
BELOW_1 = data(3, 4, seed=5, low=-0.95, high=0.95)
UNIT = data(3, 4, seed=5, low=0.05, high=0.95)
INTS = np.array([[-7, -1, 0, 1], [2, 3, 5, 8], [100, -100, 9, 4]], np.int32)
TURNED = INTS.T.reshape(3, 4)
EDGES = line(-INF, -1e30, -2.0, -0.0, 0.0, 1e-6, 3.0, 1e30, INF, NAN)
OTHER = EDGES[[9, 0, 1, 4, 3, 8, 6, 5, 8, 2]]
ENDS = line(-INF, -1e30, -100.0, -20.0, -0.0, 0.0, 1e-6, 20.0, 100.0, 1e30, INF, NAN)
WITH_NAN = np.where(data(3, 5, seed=8) > 0.7, NAN, data(3, 5, seed=9)).astype(np.float32)
TIES = line([3, 1, 3, 2, 1], [2, 2, 2, 1, 1], [5, 4, 3, 2, 1])
NEGATIVE_STRIDE = data(4, 3, seed=10)[::-1]
MASK = data(3, 4, seed=11) > 0
INDEX = np.array([2, 0, 2])
INDICES = np.array([[0, 1, 0, 0], [0, 0, 2, 0]])
Q = line(0.0, 0.25, 0.6, 1.0)
SORTED = np.sort(data(2, 9, seed=12), 1)
SQUARES = data(2, 3, 3, seed=14)
LOGITS, CLASSES = data(6, 5, seed=15), np.array([0, 4, 2, 2, 1, 3])
SCALAR, ZERO = np.array(1.5, np.float32), np.array([0])
LINE, ZEROS, ZERO_ROW = line(1, 3, 3, 2, 3), line(0, 0, 2, -1, 0), line([0, 0, 0], [1, 0, 2])
EMPTY = np.zeros((0, 3), np.float32)
FIRST_COLUMN = line([1, 0, 0], [1, 0, 0]) > 0
WEIGHTS = data(5, low=0.1)
THREE = (data(2, 3, 4), data(2, 3, 5), data(2, 5, 4))
#: Few different values, as behind a relu.
EQUALS = np.random.RandomState(0).randint(0, 3, (8, 8)).astype(np.float32)

FUNCTIONS = {
    **named(torch, "special edges", {
        "abs": X, "ceil": X * 3, "erf": X, "exp": X, "floor": X * 3, "log": POSITIVE,
        "log1p": BELOW_1, "round": X * 3, "sign": X, "sqrt": POSITIVE, "tanh": X, "trunc": X * 3,
    }),
    **named(torch, "edges", {"relu": X, "sigmoid": X * 4}),
    **named(torch, "special", {
        "acos": BELOW_1, "acosh": POSITIVE + 1, "asin": BELOW_1, "asinh": X * 9, "atan": X * 4,
        "atanh": BELOW_1, "cos": X * 4, "cosh": X, "deg2rad": X, "digamma": X * 3, "erfc": X * 2,
        "erfinv": UNIT, "exp2": X, "expm1": X, "frac": X * 3, "i0": X * 6, "isfinite": ENDS,
        "isinf": ENDS, "isnan": ENDS, "isneginf": EDGES, "isposinf": EDGES, "lgamma": X * 3,
        "log10": POSITIVE, "log2": POSITIVE, "nan_to_num": EDGES, "neg": X, "positive": X,
        "rad2deg": X, "reciprocal": POSITIVE, "rsqrt": POSITIVE, "sgn": X, "signbit": EDGES,
        "sin": X * 4, "sinh": X, "square": X, "tan": BELOW_1,
    }),
    **named(torch.special, "special", {
        "entr": POSITIVE, "erfcx": X * 2, "i0e": X * 6, "i1": X * 6, "i1e": X * 6, "log_ndtr": X * 4,
        "ndtri": UNIT,
    }),
    **named(F, "special far out", {"elu": X, "mish": X, "softplus": X, "softsign": X}),
    **named(F, "special", {
        "celu": X, "hardshrink": X, "hardsigmoid": X * 4, "hardswish": X * 4, "hardtanh": X,
        "leaky_relu": X, "relu6": X * 4, "selu": X, "tanhshrink": X,
    }),
    **named(F, "far out", {"logsigmoid": X, "silu": X}),
    **named(torch, "", {"logit": UNIT, "sinc": np.append(X, line(0.0, 1.0, 0.01))}),
    **named(torch.special, "", {"ndtr": X * 2, "xlog1py": (UNIT, POSITIVE)}),
    **named(torch, "special", {"fmax": (EDGES, OTHER), "fmin": (EDGES, OTHER)}, backward=False),
    **named(torch, "special", {
        "atan2": (X, Y), "copysign": (X, Y), "eq": (INTS, TURNED), "fmod": (X * 5, POSITIVE),
        "ge": (X, Y), "gt": (X, Y), "hypot": (X, ROW), "isclose": (EDGES, OTHER),
        "ldexp": (X, INTS % 5), "le": (X, Y),
        "logaddexp": (X * 30, Y * 30), "logaddexp2": (X * 30, Y), "lt": (X, Y), "ne": (INTS, TURNED),
        "nextafter": (EDGES, OTHER), "pow": (POSITIVE, X), "remainder": (X * 5, POSITIVE),
    }),
    **named(torch, "special", {
        "floor_divide": (X * 5, POSITIVE), "heaviside": (EDGES[:-1], OTHER[1:]),
    }, backward=False),
    **named(torch, "", {
        "gcd": (INTS, TURNED * 6), "lcm": (INTS, TURNED), "maximum": (X, Y), "minimum": (X, Y),
        "xlogy": (line(0, 0, 1, 2, 0), line(0.5, 2, 3, 0.1, 1)),
    }),
}  # fmt: skip

ACTIVATIONS = {
    "gelu tanh": row(lambda x: x.gelu(), X, theirs=lambda x: F.gelu(x, approximate="tanh"), also="far out"),
    "gelu": row(lambda x: x.gelu("none"), X, theirs=F.gelu),
    "softplus beta": row(lambda x: x.softplus(beta=3.0), X, of=F),
    "elu 0.7": row(lambda x: x.elu(0.7), X, of=F),
    "celu 0.7": row(lambda x: x.celu(0.7), X, of=F),
    "leaky_relu 0.1": row(lambda x: x.leaky_relu(0.1), X, of=F),
    "softmin": row(lambda x: x.softmin(-1), X, of=F),
}

ELEMENTWISE = {
    "add": row(lambda a, b: a + b, X, ROW),
    "add number": row(lambda a: 1.5 + a + 2, X),
    "sub": row(lambda a, b: a - b, X, ROW),
    "number - tensor": row(lambda a: 2 - a, X),
    "mul": row(lambda a, b: a * b, X[:, :1], ROW),
    "div": row(lambda a, b: a / b, X, POSITIVE),
    "rdiv": row(lambda a: 2 / a, POSITIVE),
    "int div": row(lambda a: a / 3, INTS),
    "floordiv": row(lambda a, b: a // b, X * 5, POSITIVE, backward=False),
    "floordiv int": row(lambda a: a // 3, INTS),
    "mod": row(lambda a, b: a % b, X * 5, POSITIVE),
    "mod int": row(lambda a: a % -3, INTS),
    "fmod number": row(lambda a: a.fmod(1.5), X * 5),
    "idiv": row(lambda a: a.idiv(3), INTS, theirs=lambda a: torch.div(a, 3, rounding_mode="trunc")),
    "pow 2": row(lambda a: a**2, X),
    "pow 3": row(lambda a: a**3, X),
    "pow -2": row(lambda a: a**-2, POSITIVE),
    "pow 0.5": row(lambda a: a**0.5, POSITIVE),
    "pow 2.5": row(lambda a: a**2.5, POSITIVE),
    "pow int": row(lambda a: a**3, INTS),
    "pow tensors": row(lambda a, b: a**b, POSITIVE, X),
    "rpow": row(lambda a: 3.0**a, X),
    "rpow 2": row(lambda a: 2**a, X),
    "where": row(lambda a, b: (a > 0).where(a, b), X, Y, theirs=lambda a, b: torch.where(a > 0, a, b)),
    "where torch": row(lambda a, b: a.where(a > 0, b), X, Y),
    "where numbers": row(lambda a: (a > 0).where(1.0, 0.0), X, theirs=lambda a: (a > 0).float()),
    "clamp": row(lambda a: a.clamp(-1, 0.5), X),
    "clamp tensor": row(lambda a, b: a.clamp(min=b), X, ROW),
    "lerp": row(lambda a, b: a.lerp(b, 0.3), X, Y),
    "masked_fill": row(lambda a, b: a.masked_fill(b > 0, -9), X, Y),
    "compare": row(lambda a, b: (a < b) | (a >= 1), X, Y),
    "equal": row(lambda a: (a == 3) ^ (a != 0), INTS),
    "bits": row(lambda a: ((a & 6) | 1) ^ ~a, INTS),
    "shift": row(lambda a: (a << 2) + (a >> 1), INTS),
    "isclose rtol": row(lambda a, b: a.isclose(b, rtol=0.5), X, Y),
    "nan checks": row(lambda a: a.isnan() | a.isinf(), ENDS),
    "logical": row(lambda a, b: a.logical_and(b).logical_xor(b.logical_not()), INTS, TURNED),
    "logit eps": row(lambda a: a.logit(0.2), UNIT),
    "polygamma": row(lambda a: a.polygamma(2), POSITIVE),
    "trigamma": row(lambda a: a.polygamma(1), X),
    "mvlgamma": row(lambda a: a.mvlgamma(2), POSITIVE + 1),
    "nan_to_num numbers": row(lambda a: a.nan_to_num(1.0, 2.0, 3.0), EDGES),
    "ldexp detached": row(lambda a, b: a.ldexp(b.detach()), X, np.array([[1], [-3], [9]], np.float32)),
    "frexp": row(lambda a: a.frexp()[0] * 8 + a.frexp()[1], X * 9, of=torch),
    "deg2rad and rad2deg": row(lambda a: a.deg2rad().rad2deg() + a.deg2rad(), X),
    "float_power": row(lambda a: a.float_power(2.5), POSITIVE),
    "addcmul": row(lambda a, b, c: a.addcmul(b, c, value=0.5), X, Y, ROW),
    "addcdiv": row(lambda a, b, c: a.addcdiv(b, c, value=2), X, Y, POSITIVE),
    "clamp_min": row(lambda a: a.clamp_min(0.5) + a.clamp_max(1.0), X),
    "rsub": row(lambda a, b: a.rsub(b, alpha=2), X, ROW, of=torch),
    "isposinf or isneginf": row(lambda a: a.isposinf() | a.isneginf(), EDGES),
    "names": row(lambda a, b: a.absolute().subtract(b).multiply(a).true_divide(2).arctan(), X, Y),
    "comparison names": row(lambda a, b: a.greater(b) | a.less_equal(b).logical_not(), X, Y),
}

REDUCTIONS = {
    "sum": row(lambda a: a.sum(), T),
    "sum axis": row(lambda a: a.sum(1), T),
    "sum axes": row(lambda a: a.sum((0, -1), keepdim=True), T),
    "sum dim": row(lambda a: a.sum(dim=2, keepdims=True), T, theirs=lambda a: a.sum(dim=2, keepdim=True)),
    "sum int": row(lambda a: a.sum(0), INTS),
    "sum bool": row(lambda a: (a > 0).sum(), T),
    "prod": row(lambda a: a.prod(2), T),
    "max": row(lambda a: a.max(1), T, theirs=lambda a: a.amax(1)),
    "min": row(lambda a: a.min((0, 1)), T, theirs=lambda a: a.amin((0, 1))),
    "max int": row(lambda a: a.max(), INTS),
    "mean": row(lambda a: a.mean(1), T),
    "mean int": row(lambda a: a.mean(), INTS, theirs=lambda a: a.float().mean()),
    "var": row(lambda a: a.var(2), T),
    "var biased": row(lambda a: a.var(2, correction=0), T),
    "std": row(lambda a: a.std((0, 2), keepdim=True), T),
    "any": row(lambda a: (a > 1.5).any(1), T),
    "all": row(lambda a: (a > -1.5).all(0), T),
    "argmax": row(lambda a: a.argmax(1), T),
    "argmax all": row(lambda a: a.argmax(), T),
    "argmin": row(lambda a: a.argmin(-1, keepdim=True), T),
    "softmax": row(lambda a: a.softmax(), T, theirs=lambda a: a.softmax(-1)),
    "softmax dim": row(lambda a: a.softmax(dim=1), T * 50, theirs=lambda a: a.softmax(1)),
    "log_softmax": row(lambda a: a.log_softmax(1), T),
    "logsumexp": row(lambda a: a.logsumexp((0, 1)), T * 50),
    "cumsum": row(lambda a: a.cumsum(1), T),
    "cumprod": row(lambda a: a.cumprod(2), T),
    "cummax": row(lambda a: a.cummax(2), T, theirs=lambda a: a.cummax(2)[0]),
    "norm": row(lambda a: a.norm(axis=1), T, theirs=lambda a: a.norm(dim=1)),
    "norm 1": row(lambda a: a.norm(1, 2), T),
    "norm 3": row(lambda a: a.norm(3, 2), T),
    "norm inf": row(lambda a: a.norm(INF), T),
    "scalar": row(
        lambda a: a.sum(0) * a.max(-1), np.float32(3.0).reshape(()), theirs=lambda a: a.sum(0) * a.amax(-1)
    ),
    "nansum": row(lambda a: a.nansum(1), WITH_NAN),
    "nanmean": row(lambda a: a.nanmean(0, True), WITH_NAN),
    "count_nonzero": row(lambda a: a.count_nonzero(1), INTS),
    "aminmax": row(lambda a: a.aminmax(dim=1)[1] - a.aminmax(dim=1)[0], TIES),
    "nanmedian": row(lambda a: a.nanmedian(1)[0], WITH_NAN),
    "nanmedian all": row(lambda a: a.nanmedian(), WITH_NAN),
    "mode": row(lambda a: a.mode(1)[0], TIES),
    "mode places": row(lambda a: a.mode(1)[1], TIES),
    "mode columns": row(lambda a: a.mode(0, True)[0], TIES),
    "quantile": row(lambda a: a.quantile(0.3), X),
    "quantile several": row(lambda a, q: a.quantile(q.detach(), 1), X, Q),
    "quantile keepdim": row(lambda a, q: a.quantile(q.detach(), 0, True), T, Q),
    "nanquantile": row(lambda a, q: a.nanquantile(q.detach(), 1), WITH_NAN, Q),
    **{
        f"quantile {i}": row(lambda a, i=i: a.quantile(0.4, 1, interpolation=i), X)
        for i in ("lower", "higher", "midpoint", "nearest")
    },
    "diff": row(lambda a: a.diff(), X),
    "diff 2": row(lambda a, b: a.diff(2, 0, prepend=b), X, Y[:1]),
    "diff bool": row(lambda a: a.diff(), MASK),
    "trapezoid": row(lambda a: a.trapezoid(dx=0.5), X, of=torch),
    "trapezoid x": row(lambda a, x: a.trapezoid(x), X, ROW, of=torch),
    "cumulative_trapezoid": row(lambda a, x: a.cumulative_trapezoid(x, dim=0), X, ROW[:3], of=torch),
    "cov": row(lambda a: a.cov(), X),
    "cov weights": row(
        lambda a, f, w: a.cov(correction=0, fweights=f, aweights=w.detach()),
        X,
        np.array([1, 2, 3, 1]),
        POSITIVE[0],
    ),
    "corrcoef": row(lambda a: a.corrcoef(), X),
    "std_mean": row(lambda a: a.std_mean(1)[0] + a.std_mean(1)[1], X, of=torch),
    "var_mean": row(lambda a: a.var_mean(1)[0] * a.var_mean(1)[1], X, of=torch),
}

MOVEMENT = {
    "reshape": row(lambda a: a.reshape(6, -1), T),
    "permute": row(lambda a: a.permute(2, 0, 1), T),
    "transpose": row(lambda a: a.transpose(-1, 0), T),
    "T": row(lambda a: a.T, X),
    "movedim": row(lambda a: a.movedim(0, -1), T),
    "expand": row(lambda a: a.expand(5, -1, 4), X[:, :1]),
    "flip": row(lambda a: a.flip(0, -1), T),
    "squeeze": row(lambda a: a.unsqueeze(1).squeeze(1).unsqueeze(-1), T, theirs=lambda a: a.unsqueeze(-1)),
    "flatten": row(lambda a: a.flatten(1), T),
    "unflatten": row(lambda a: a.unflatten(-1, (2, -1)), T),
    "pad": row(lambda a: a.pad((1, 2, 0, 1), value=3.0), T, of=F),
    "pad cut": row(lambda a: a.pad((-1, 2)), T, of=F),
    "pad reflect": row(lambda a: a.pad((2, 1), mode="reflect"), T, of=F),
    "pad replicate": row(lambda a: a.pad((2, 1), mode="replicate"), T, of=F),
    "pad circular": row(lambda a: a.pad((2, 1), mode="circular"), T, of=F),
    "cat": row(lambda a, b: a.cat(b, dim=1), X, Y, theirs=lambda a, b: torch.cat([a, b], 1)),
    "cat many": both(Tensor, torch, lambda f, a, b: f.cat([a, b, a * 2, b, b], 0), X, Y),
    "stack": row(lambda a, b: Tensor.stack(a, b, dim=-1), X, Y, theirs=lambda a, b: torch.stack([a, b], -1)),
    "split": row(lambda a: a.split(3, 2)[1] * a.split([1, 3], 2)[0], T),
    "chunk": row(lambda a: a.chunk(2, 1)[1], T),
    "repeat": row(lambda a: a.repeat(2, 1, 3), X),
    "repeat_interleave": row(lambda a: a.repeat_interleave(3, 1), X),
    "roll": row(lambda a: a.roll(1, 2) + a.roll((-1, 3), (0, 1)), T),
    "roll flat": row(lambda a: a.roll(5), T),
    "unfold": row(lambda a: a.unfold(2, 2, 1), T),
    "unfold step": row(lambda a: a.unfold(0, 3, 2), data(9, 2)),
    "diagonal": row(lambda a: a.diagonal(1, 1, 2), T),
    "diag": row(lambda a: a.diag(1), ROW),
    "tril": row(lambda a: a.tril(1), T),
    "triu": row(lambda a: a.triu(), T),
    "meshgrid": row(
        lambda a, b: a.meshgrid(b)[0] * a.meshgrid(b)[1],
        ROW,
        data(3),
        theirs=lambda a, b: torch.meshgrid(a, b, indexing="ij")[0] * torch.meshgrid(a, b, indexing="ij")[1],
    ),
    "hstack": row(lambda a, b: Tensor.hstack(a, b), X, Y, theirs=lambda a, b: torch.hstack([a, b])),
    "hstack lines": both(Tensor, torch, lambda f, a, b: f.hstack([a, b]), ROW, ROW * 2),
    "vstack": row(lambda a, b: a.vstack(b), X, ROW, theirs=lambda a, b: torch.vstack([a, b])),
    "dstack": row(lambda a, b: Tensor.dstack(a, b), X, Y, theirs=lambda a, b: torch.dstack([a, b])),
    "column_stack": row(
        lambda a, b: Tensor.column_stack(a, b), ROW, X.T, theirs=lambda a, b: torch.column_stack([a, b])
    ),
    "block_diag": row(lambda a, b: a.block_diag(b), X, ROW, of=torch),
    "tensor_split": row(lambda a: a.tensor_split(3, 1)[0], X),
    "tensor_split at": row(lambda a: a.tensor_split((1, 3), 1)[1], X),
    "hsplit": row(lambda a: a.hsplit(2)[1] + a.hsplit([2])[0], X),
    "vsplit": row(lambda a: a.vsplit(3)[1], X),
    "dsplit": row(lambda a: a.dsplit(2)[1], T),
    "rot90": row(lambda a: a.rot90(), X),
    "rot90 back": row(lambda a: a.rot90(-1, (2, 0)) + a.rot90(3, (2, 0)), T),
    "rot180": row(lambda a: a.rot90(2), X),
    "fliplr": row(lambda a: a.fliplr() + a.flipud(), X),
    "negative stride": row(lambda a: a.fliplr().t() * 2, NEGATIVE_STRIDE),
    "diag_embed": row(lambda a: a.diag_embed(1, 0, 2), X),
    "diagflat": row(lambda a: a.diagflat(-1), X),
    "cartesian_prod": row(lambda a, b: a.cartesian_prod(b), ROW, ROW[:2], of=torch),
    "combinations": row(lambda a: a.combinations(2, True), ROW, of=torch),
    "vander": row(lambda a: a.vander(3, increasing=True), ROW, of=torch, backward=False),
    "as_strided": row(lambda a: a.as_strided((2, 3), (4, 2), 1), X),
    "as_strided overlap": row(lambda a: a.as_strided((3, 3), (1, 1)), ROW.repeat(2)),
    "sum_to_size": row(lambda a: a.sum_to_size(3, 1), T),
    "atleast": row(lambda a: a.atleast_3d() * 2, X, of=torch),
    "broadcast_to": row(lambda a: a.broadcast_to((2, 3, 4)), X),
    "select": row(lambda a: a.select(1, -1) + a.narrow(1, 1, 1).squeeze(1), X),
    "swapaxes": row(lambda a: a.unflatten(1, (2, 2)).swapaxes(0, 2), X),
}

PRODUCTS = {
    "matrices": row(lambda a, b: a @ b, A, B),
    "line line": row(lambda a, b: a.dot(b), ROW, data(4, seed=9)),
    "line matrix": row(lambda a, b: a @ b, data(5), B),
    "matrix line": row(lambda a, b: a @ b, A, data(5)),
    "batch": row(lambda a, b: a @ b, data(2, 1, 3, 5), data(4, 5, 2)),
    "batch line": row(lambda a, b: a @ b, data(2, 3, 5), data(5)),
    "int": row(lambda a: a @ a.T, INTS),
    "outer": row(lambda a, b: a.outer(b), ROW, data(3)),
    "einsum ij,jk": both(Tensor, torch, lambda f, a, b: f.einsum("ij,jk->ik", a, b), A, B),
    "einsum trace": both(Tensor, torch, lambda f, a: f.einsum("ii", a), data(4, 4)),
    "einsum diagonal": both(Tensor, torch, lambda f, a: f.einsum("ii->i", a), data(4, 4)),
    "einsum sum": both(Tensor, torch, lambda f, a: f.einsum("ijk->k", a), T),
    "einsum dots": both(Tensor, torch, lambda f, a, b: f.einsum("...ij,kj->...ik", a, b), T, data(5, 4)),
    "einsum three": both(Tensor, torch, lambda f, a, b, c: f.einsum("ij,jk,k->i", a, b, c), A, B, ROW),
    "einsum implicit": both(Tensor, torch, lambda f, a, b: f.einsum("ij,jk", a, b), A, B),
    "tensordot": row(lambda a, b: a.tensordot(b, ([2, 0], [0, 1])), T, data(4, 2, 5), of=torch),
    "trace": row(lambda a: a.trace(), data(4, 4)),
    "addmm": row(lambda c, a, b: c.addmm(a, b, beta=0.5, alpha=2), data(3, 4), A, B),
    "baddbmm": row(lambda c, a, b: c.baddbmm(a, b, beta=0.5, alpha=2), *THREE),
    "addbmm": row(lambda c, a, b: c.addbmm(a, b), data(3, 4), *THREE[1:]),
    "addmv": row(lambda c, a, b: c.addmv(a, b), data(3), A, data(5)),
    "addr": row(lambda c, a, b: c.addr(a, b, alpha=3), data(3, 4), data(3), ROW),
    "vecdot": row(lambda a, b: a.vecdot(b), X, ROW, of=torch.linalg),
    "kron": row(lambda a, b: a.kron(b), data(2, 3), X),
    "kron ranks": row(lambda a, b: a.kron(b), T, ROW),
    "cross": row(lambda a, b: a.cross(b, 0), X, Y, theirs=lambda a, b: torch.linalg.cross(a, b, dim=0)),
    "chain_matmul": row(
        lambda a, b, c: a.chain_matmul(b, c),
        A,
        B,
        data(4, 2),
        theirs=lambda a, b, c: torch.linalg.multi_dot([a, b, c]),
    ),
    "dist": row(lambda a, b: a.dist(b, 3), X, Y),
    "cdist": row(lambda a, b: a.cdist(b), X, Y, of=torch),
    "cdist zero": row(lambda a: a.cdist(a), X, of=torch),
    "cdist 1": row(lambda a, b: a.cdist(b, 1.0), T, data(2, 5, 4), of=torch),
    "cdist 3": row(lambda a, b: a.cdist(b, 3.0), X, Y, of=torch),
    "renorm": row(lambda a: a.renorm(2, 0, 1.5), X),
    "norm of zeros": row(lambda a: (a * 0).norm(dim=1) + a.norm(dim=1), X),
    "matrix_power": row(lambda a: a.matrix_power(5), SQUARES),
    "matrix_power 0": row(lambda a: a.matrix_power(0), SQUARES),
    "matrix_power inverse": row(lambda a: a.matrix_power(-2), SQUARES),
    "matrix_exp": row(lambda a: a.matrix_exp(), SQUARES * 3),
}

WRITING = {
    "index_add": row(lambda a, i, b: a.index_add(0, i, b, alpha=2), X, INDEX, Y),
    "index_add columns": row(lambda a, i, b: a.index_add(1, i, b), X, INDEX, Y[:, :3]),
    "index_copy": row(lambda a, i, b: a.index_copy(0, i, b), X, INDEX[:2], Y[:2]),
    "index_fill": row(lambda a, i: a.index_fill(1, i, 7.0), X, INDEX),
    "index_reduce": row(lambda a, i, b: a.index_reduce(0, i, b, "amax"), X, INDEX, Y),
    "index_put": row(lambda a, i, b: a.index_put((i,), b), X, INDEX[:2], Y[:2]),
    "index_put add": row(lambda a, i, b: a.index_put((i, i), b, accumulate=True), X, INDEX, ROW[:3]),
    "put": row(lambda a, i, b: a.put(i, b), X, np.array([11, 0, 5]), ROW[:3]),
    "put add": row(lambda a, i, b: a.put(i, b, True), X, INDEX, ROW[:3]),
    "put_along_dim": row(
        lambda a, i, b: a.put_along_dim(i, b, 1),
        X,
        np.array([[1], [0], [3]]),
        Y[:, :1],
        theirs=lambda a, i, b: a.scatter(1, i, b),
    ),
    "take_along_dim": row(lambda a, i: a.take_along_dim(i, 1), X, np.array([[1, 1], [0, 3], [3, 0]])),
    "masked_scatter": row(lambda a, m, b: a.masked_scatter(m, b), X, MASK, Y),
    "select_scatter": row(lambda a, b: a.select_scatter(b, 1, 2), X, ROW[:3]),
    "slice_scatter": row(lambda a, b: a.slice_scatter(b, 1, 0, 4, 2), X, Y[:, :2]),
    "diagonal_scatter": row(lambda a, b: a.diagonal_scatter(b, 1), X, ROW[:3]),
    "scatter_reduce prod": row(lambda a, i, b: a.scatter_reduce(0, i, b, "prod"), X, INDICES, Y[:2]),
    "scatter_reduce mean": row(
        lambda a, i, b: a.scatter_reduce(0, i, b, "mean", include_self=False), X, INDICES, Y[:2]
    ),
    "argwhere": row(lambda a: a.argwhere(), INTS),
}

SEARCHING = {
    "searchsorted": row(lambda a, v: a.searchsorted(v), SORTED[0], X, of=torch),
    "searchsorted right": row(
        lambda a, v: a.searchsorted(v, right=True), np.array([1, 1, 2, 2, 5]), INTS, of=torch
    ),
    "searchsorted rows": row(lambda a, v: a.searchsorted(v, side="left"), SORTED, X[:2], of=torch),
    "searchsorted nan": row(lambda a, v: a.searchsorted(v), SORTED[0], EDGES, of=torch),
    "searchsorted empty": row(lambda a, v: a.searchsorted(v), SORTED[0, :0], X, of=torch),
    "bucketize": row(lambda a, b: a.bucketize(b, right=True), INTS, np.array([0, 2, 9]), of=torch),
    "isin": row(lambda a, b: a.isin(b), INTS, np.array([2, 9, -100]), of=torch),
    "isin many": row(lambda a, b: a.isin(b, invert=True), INTS, np.arange(4, 99), of=torch),
    "unique": row(lambda a: a.unique(), TIES),
    "unique inverse": row(lambda a: a.unique(return_inverse=True)[1], TIES),
    "unique counts": row(lambda a: a.unique(return_counts=True)[1], TIES),
    "unique rows": row(lambda a: a.unique(dim=0), INTS[[0, 2, 0, 1]]),
    "unique_consecutive": row(lambda a: a.unique_consecutive(), TIES),
    "unique_consecutive counts": row(lambda a: a.unique_consecutive(True, True)[2], TIES),
    "unique_consecutive rows": row(lambda a: a.unique_consecutive(dim=0), INTS[[0, 0, 1, 0]]),
    "bincount": row(lambda a: a.bincount(minlength=7), np.array([1, 4, 1, 0])),
    "bincount weights": row(lambda a, w: a.bincount(w), np.array([1, 4, 1, 0]), ROW),
    "histc": row(lambda a: a.histc(5, -1, 1), X),
    "histc all": row(lambda a: a.histc(4), X),
    "histogram": row(lambda a: a.histogram(4, range=(-1.0, 1.5))[0], X),
    "histogram edges": row(
        lambda a, b: a.histogram(b)[0],
        X,
        SORTED[0],
        theirs=lambda a, b: torch.histogram(a.detach(), b.detach())[0],
    ),
}

LOSSES = {
    "cross_entropy": row(lambda x, y: x.cross_entropy(y), LOGITS, CLASSES, of=F),
    "smoothing": row(lambda x, y: x.cross_entropy(y, label_smoothing=0.1), LOGITS, CLASSES, of=F),
    "sum": row(
        lambda x, y: x.cross_entropy(y, "sum"),
        LOGITS,
        CLASSES,
        theirs=lambda x, y: F.cross_entropy(x, y, reduction="sum"),
    ),
    "none": row(
        lambda x, y: x.cross_entropy(y, "none"),
        LOGITS,
        CLASSES,
        theirs=lambda x, y: F.cross_entropy(x, y, reduction="none"),
    ),
    "ignore": row(lambda x, y: x.cross_entropy(y, ignore_index=2), LOGITS, CLASSES, of=F),
    "weight": row(
        lambda x, y, w: x.cross_entropy(y, weight=w.detach()),
        LOGITS,
        CLASSES,
        WEIGHTS,
        theirs=lambda x, y, w: F.cross_entropy(x, y, weight=w.detach()),
    ),
    "weight smoothing": row(
        lambda x, y, w: x.cross_entropy(y, weight=w.detach(), label_smoothing=0.2, ignore_index=2),
        LOGITS,
        CLASSES,
        WEIGHTS,
        theirs=lambda x, y, w: F.cross_entropy(x, y, weight=w.detach(), label_smoothing=0.2, ignore_index=2),
    ),
    "images": row(
        lambda x, y: x.cross_entropy(y),
        data(2, 5, 3, 2),
        CLASSES.reshape(2, 3)[:, :, None].repeat(2, 2),
        of=F,
    ),
    "probabilities": row(
        lambda x, y: x.cross_entropy(y.softmax(1).detach()),
        LOGITS,
        data(6, 5),
        theirs=lambda x, y: F.cross_entropy(x, y.softmax(1).detach()),
    ),
    "nll": row(
        lambda x, y: x.log_softmax(1).nll_loss(y),
        LOGITS,
        CLASSES,
        theirs=lambda x, y: F.nll_loss(x.log_softmax(1), y),
    ),
    "sparse": row(lambda x, y: x.sparse_categorical_crossentropy(y), LOGITS, CLASSES, theirs=F.cross_entropy),
    "sparse ignore": row(
        lambda x, y: x.sparse_categorical_crossentropy(y - 1),
        LOGITS,
        CLASSES,
        theirs=lambda x, y: F.cross_entropy(x, y - 1, ignore_index=-1),
    ),
    "mse": row(lambda x, y: x.mse_loss(y), X, Y, of=F),
    "l1": row(lambda x, y: x.l1_loss(y, "sum"), X, Y, theirs=lambda x, y: F.l1_loss(x, y, reduction="sum")),
    "bce": row(
        lambda x, y: x.sigmoid().binary_crossentropy(y.sigmoid().detach()),
        X,
        Y,
        theirs=lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach()),
    ),
    "bce logits": row(
        lambda x, y: x.binary_crossentropy_logits(y.sigmoid().detach()),
        X * 20,
        Y,
        theirs=lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid().detach()),
    ),
}

FORMS = {
    "var, biased": row(lambda x: x.var(False), X),
    "std, unbiased": row(lambda x: x.std(True), X),
    "var, no correction given": row(lambda x: x.var(1, correction=None), X),
    "max of two": row(lambda x, y: x.max(y), X, Y),
    "min of two": row(lambda x, y: x.min(y), X, Y),
    "norm, nuclear": row(lambda x: x.norm("nuc"), X),
    "norm, none": row(lambda x: x.norm(None), X),
    "gather of a number": row(lambda x, i: x.gather(0, i), SCALAR, ZERO),
    "index_select of a number": row(lambda x, i: x.index_select(0, i), SCALAR, ZERO),
    "index_fill of a number": row(lambda x, i: x.index_fill(0, i, 2.0), SCALAR, ZERO),
    "index_copy of a number": row(lambda x, i, y: x.index_copy(0, i, y), SCALAR, ZERO, SCALAR * 2),
    "index_add of a number": row(lambda x, i, y: x.index_add(0, i, y, alpha=3), SCALAR, ZERO, SCALAR * 2),
    "diff, none": row(lambda x: x.diff(n=0), X),
    "cov of one variable": row(lambda x: x.cov(), X[:1]),
    "corrcoef of one variable": row(lambda x: x.corrcoef(), X[:1]),
    "cumprod of nothing": row(lambda x: x.cumprod(1), np.zeros((2, 0), np.float32)),
    "repeat_interleave, the size known": row(
        lambda x, n: x.repeat_interleave(n, dim=0, output_size=4), X, np.array([0, 3, 1])
    ),
    "matrix_norm of other axes": row(lambda x: x.matrix_norm("nuc", (0, 2), True), T, of=torch.linalg),
    "multi_dot of a list": both(Tensor, torch.linalg, lambda f, x, y: f.multi_dot([x, y]), X, Y.T.copy()),
    "cat with an empty line": row(
        lambda x: Tensor.cat([Tensor([]), x], dim=1),
        X,
        theirs=lambda x: torch.cat([torch.tensor([]), x], dim=1),
    ),
    "cdist, how it is computed": row(lambda x, y: x.cdist(y, 2.0, "use_mm_for_euclid_dist"), X, Y, of=torch),
    "cosine_similarity along an axis that broadcasts": both(
        functional, F, lambda f, x, y: f.cosine_similarity(x, y, dim=-2), T[:1], T[:, :1]
    ),
    "multi_margin_loss of a number": both(
        functional, F, lambda f, x, y: f.multi_margin_loss(x, y), SCALAR, ZERO[0]
    ),
    "multilabel_margin_loss of a number": both(
        functional, F, lambda f, x, y: f.multilabel_margin_loss(x, y), SCALAR, ZERO[0]
    ),
    "group_norm of no samples": both(
        functional, F, lambda f, x: f.group_norm(x, 2), np.zeros((0, 4), np.float32)
    ),
    **{
        f"polygamma {n} below 0": row(lambda x, n=n: x.polygamma(n), np.array([-0.3, -1.6, -4.2, 2.5]))
        for n in (1, 3, 4)
    },
}

CORNERS = {
    "maximum ties": row(lambda x, y: x.maximum(y), LINE, line(3, 3, 1, 2, 3)),
    "prod of zeros": row(lambda x: x.prod(0), ZEROS),
    "prod of one zero": row(lambda x: x.prod(0), line(0, 2, 3)),
    "cumprod of zeros": row(lambda x: x.cumprod(0), ZEROS),
    "norm of zeros": row(lambda x: x.norm(dim=1), ZERO_ROW),
    "norm of zeros 3": row(lambda x: x.norm(3, dim=1), ZERO_ROW),
    "norm inf": row(lambda x: x.norm(INF), LINE),
    "norm 1/2": row(lambda x: x.norm(0.5), ZEROS),
    "std of equals": row(lambda x: x.std(0), line(1, 1, 1)),
    "abs": row(lambda x: x.abs(), ZEROS),
    "sqrt": row(lambda x: x.sqrt(), line(0, 4)),
    "pow": row(lambda x, y: x**y, line(0, 0, 2, 0), line(0, 2, 3, 1)),
    "softmax of masked rows": row(lambda x, m: x.masked_fill(m, -INF).softmax(-1), ZERO_ROW, FIRST_COLUMN),
    "sort ties": row(lambda x: x.sort()[0] * x.detach(), LINE),
    "topk": row(lambda x: x.topk(2)[0], line(1, 5, 3)),
    "repeated index": row(lambda x: x[[0, 0, 2]], LINE),
    "clamp": row(  # as since PyTorch 2.14
        lambda x: x.clamp(0, 2),
        line(0, 2, 3, -1, 1),
        theirs=lambda x: torch.where((x > 0) & (x < 2), x, x.detach().clamp(0, 2)),
    ),
    "atan2 on the axes": row(lambda y, x: y.atan2(x), line(0, 1, -1, 0), line(1, 0, -1, -2)),
    "xlogy at 0": row(lambda x, y: x.xlogy(y), line(0, 0, 1), line(2, 1, 3)),
    "relu at 0": row(lambda x: x.relu(), ZEROS),
    "sum of nothing": row(lambda x: x.sum(0) + 1, EMPTY),
    "prod of nothing": row(lambda x: x.prod(0), EMPTY),
    "mean of nothing": row(lambda x: x.mean(0), EMPTY),
    "logsumexp of nothing": row(lambda x: x.logsumexp(0), EMPTY),
    "logsumexp of -inf": row(lambda x: x.logsumexp(0), line(-INF, 1)),
    "logaddexp of infinities": row(lambda x, y: x.logaddexp(y), line(INF, 1), line(1, 1)),
    "log1p at -1": row(lambda x: x.log1p(), line(1e-08, -1, 5)),
    "expm1": row(lambda x: x.expm1(), line(1e-08, -30, 5)),
    "asin at 1": row(lambda x: x.asin(), line(1, 0.5, -1)),
    "acos at 1": row(lambda x: x.acos(), line(1, 0.5, -1)),
    "acosh at 1": row(lambda x: x.acosh(), line(1, 2)),
    "atanh at 1": row(lambda x: x.atanh(), line(0.5, -0.5)),
    "fmax ties": row(  # as until PyTorch 2.13: both have half of it since, and all where one is NaN
        lambda x, y: x.fmax(y),
        LINE,
        line(3, 3, NAN, 2, 3),
        theirs=lambda x, y: torch.where((x >= y) | y.isnan(), x, y),
    ),
    "fmin ties": row(
        lambda x, y: x.fmin(y),
        LINE,
        line(3, 3, NAN, 2, 3),
        theirs=lambda x, y: torch.where((x <= y) | y.isnan(), x, y),
    ),
    "nanmean": row(lambda x: x.nanmean(0), line(1, NAN, 3)),
    "quantile of ties": row(lambda x: x.quantile(0.5), LINE),
    "max of equals": row(lambda x: x.max(), EQUALS),
    "min of equals": row(lambda x: x.min(), EQUALS),
    "amax of equals": row(lambda x: x.amax(1), EQUALS),
    "amin of equals": row(lambda x: x.amin((0, 1)), EQUALS),
    "max of an axis of equals": row(lambda x: x.max(1), EQUALS, theirs=lambda x: x.amax(1)),
    "min of an axis of equals": row(
        lambda x: x.min(0, keepdim=True), EQUALS, theirs=lambda x: x.amin(0, keepdim=True)
    ),
    "cummax of equals": row(lambda x: x.cummax(1), EQUALS, theirs=lambda x: x.cummax(1).values),
    "cummin of equals": row(lambda x: x.cummin(1), EQUALS, theirs=lambda x: x.cummin(1).values),
    "sort of equals": row(lambda x: x.sort()[0], EQUALS, theirs=lambda x: torch.sort(x, stable=True).values),
    "median of equals": row(lambda x: x.median(), EQUALS),
    "median of an axis of equals": row(lambda x: x.median(1)[0], EQUALS, theirs=lambda x: x.median(1).values),
    "nanmedian of equals": row(lambda x: x.nanmedian(), EQUALS),
    "mode of equals": row(lambda x: x.mode(1)[0], EQUALS, theirs=lambda x: x.mode(1).values),
    "argmax of equals": row(lambda x: x.argmax(1), EQUALS),
    "argmin of equals": row(lambda x: x.argmin(1), EQUALS),
}

#: family → its rows
FAMILIES: dict[str, dict[str, Row]] = {
    "elementwise": FUNCTIONS | ACTIVATIONS | ELEMENTWISE,
    "reductions": REDUCTIONS,
    "movement": MOVEMENT,
    "products": PRODUCTS,
    "writing": WRITING,
    "searching": {name: row._replace(backward=False) for name, row in SEARCHING.items()},
    "losses": LOSSES,
    "forms": FORMS,
    "corners": {name: row._replace(rtol=1e-5, atol=1e-6) for name, row in CORNERS.items()},
}
#: "family name" → row
ROWS = {f"{family} {name}": row for family, rows in FAMILIES.items() for name, row in rows.items()}

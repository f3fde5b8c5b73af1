"""What the ruler plays in a process: the cases of `bench speed`, `odd`, `single_ops`, and families.

A case is a TinyJit around what a user writes; playing it is one call, waited for. The families are kinds of
programs of which some were slow on one processor and not on another. Each has several sizes, so that no
choice can be fitted to one of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Arrays = Sequence[np.ndarray]


class Case(NamedTuple):
    """A program: `start` makes its inputs, and gives what is called again and again."""

    name: str
    suite: str
    start: Callable[[], Callable[[], Any]]


def played(name: str, arrays: Callable[[np.random.Generator], Arrays], function: Callable[..., Any]) -> Case:
    """A case whose inputs are arrays; its suite is the part of the name before the colon."""

    def start() -> Callable[[], Any]:
        from lazygrad import Device, Tensor, TinyJit

        rng = np.random.default_rng(zlib.crc32(name.encode()))
        inputs = [Tensor(array).contiguous().realize() for array in arrays(rng)]

        def run(*given: Any) -> Any:
            result = function(*given)
            return Tensor.realize(*result) if isinstance(result, list | tuple) else result.realize()

        jitted, device = TinyJit(run), Device[Device.DEFAULT]

        def call() -> None:
            jitted(*inputs)
            device.synchronize()

        return call

    return Case(name, name.partition(":")[0], start)


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


# *** the other measurements' cases


def _speed() -> Iterator[Case]:
    from ..speed.cases import CASES

    for case in CASES:

        def start(case: Any = case) -> Callable[[], Any]:
            from ..speed.peers.with_lazygrad import make

            return make(case, case.arrays(), case.dtype)

        yield Case(f"speed: {case.name}", "speed", start)


def _odd() -> Iterator[Case]:
    from ..odd import groups

    for group in groups():
        for size in (group.round, *group.odd):
            yield played(f"odd: {group.name} {size.name}", normal(*size.shapes), group.function)


def _single_ops() -> Iterator[Case]:
    from .. import single_ops

    for case in single_ops.cases():
        yield played(f"single_ops: {case.name}", case.arrays, case.ours)


# *** families


def _few_rows() -> Iterator[Case]:
    for rows in (1, 2, 3, 4, 6, 7, 8):
        yield played(
            f"few rows: {rows} x (1024, 1536)", normal((rows, 1024), (1024, 1536)), lambda x, w: x @ w
        )
        yield played(
            f"few rows: {rows} x (1536, 1024).T", normal((rows, 1024), (1536, 1024)), lambda x, w: x @ w.T
        )
    for rows in (1, 4, 5):
        yield played(f"few rows: {rows} x (512, 2048)", normal((rows, 512), (512, 2048)), lambda x, w: x @ w)


def _columns() -> Iterator[Case]:
    for shape in ((4096, 4096), (1024, 4096), (8192, 1000), (512, 65536)):
        name = "x".join(map(str, shape))
        yield played(f"columns: sum {name}", normal(shape), lambda x: x.sum(0))
        yield played(f"columns: mean and variance {name}", normal(shape), lambda x: x.var(0))
    yield played("columns: sum of the middle 64x512x512", normal((64, 512, 512)), lambda x: x.sum(1))
    yield played("columns: maximum 4096x4096", normal((4096, 4096)), lambda x: x.max(0))
    yield played("columns: vector x matrix 4096", normal((4096,), (4096, 4096)), lambda x, w: x @ w)
    yield played("columns: running sum 1024x4096", normal((1024, 4096)), lambda x: x.cumsum(0))


def _lookups(count: int, rows: int, width: int, each: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.standard_normal((rows, width), np.float32), rng.integers(0, rows, (count, each))]


def _gathers() -> Iterator[Case]:
    for width in (16, 32, 100):
        of = _lookups(5000, 10_000, width, 20)
        yield played(f"gathers: mean of 20 rows of {width}", of, lambda w, i: w[i].mean(1))
        yield played(f"gathers: greatest of 20 rows of {width}", of, lambda w, i: w[i].max(1))
        flat = _lookups(100_000, 10_000, width, 1)
        yield played(f"gathers: 100,000 rows of {width}", flat, lambda w, i: w[i[:, 0]])
        yield played(f"gathers: sum of 100,000 rows of {width}", flat, lambda w, i: w[i[:, 0]].sum(0))
    source = _lookups(4000, 2000, 256, 1)
    yield played("gathers: of a product", source, lambda x, i: (x @ x[:256])[i[:, 0]])
    picture = normal((1, 32, 32, 32), (32, 32, 3, 3))
    enlarged = {"scale_factor": 2, "mode": "nearest"}
    yield played(
        "gathers: enlarged convolution", picture, lambda x, w: x.conv2d(w, padding=1).interpolate(**enlarged)
    )
    yield played(
        "gathers: convolution of an enlargement",
        picture,
        lambda x, w: x.interpolate(**enlarged).conv2d(w, padding=1),
    )


def _edges(edges: int, nodes: int, width: int) -> Callable[[np.random.Generator], Arrays]:
    def made(rng: np.random.Generator) -> Arrays:
        ends = np.sort(rng.integers(0, nodes, (edges,))), rng.integers(0, nodes, (edges,))
        return [rng.standard_normal((nodes, width), np.float32), *ends]

    return made


def _segments() -> Iterator[Case]:
    def add(x: Any, into: Any, source: Any) -> Any:
        return (x * 0).index_add(0, into, x[source])

    def message(x: Any, into: Any, source: Any) -> Any:
        return (x * 0).index_add(0, into, (x[source] @ x[: x.shape[1]]).relu())

    def softmax(x: Any, into: Any, source: Any) -> Any:
        powers = (x[source] - x.max()).exp()
        return powers / (x * 0).index_add(0, into, powers)[into]

    for width in (4, 32):
        of = _edges(100_000, 10_000, width)
        yield played(f"segments: rows of {width} added", of, add)
        yield played(f"segments: softmax of {width}", of, softmax)
    yield played("segments: message passing", _edges(100_000, 10_000, 32), message)


def _stencils() -> Iterator[Case]:
    def heat(x: Any, steps: int) -> Any:
        for _ in range(steps):
            around = x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1)
            x = x + 0.1 * (around - 4 * x)
        return x

    def line(x: Any) -> Any:
        for _ in range(100):
            x = x + 0.1 * (x.roll(1) + x.roll(-1) - 2 * x)
        return x

    def life(x: Any) -> Any:
        alive = (x > 0).float()
        offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
        count = sum(alive.roll(offset, (0, 1)) for offset in offsets)
        return ((count == 3) | ((count == 2) & (alive > 0))).float()

    yield played("stencils: one heat step 1024", normal((1024, 1024)), lambda x: heat(x, 1))
    yield played("stencils: eight heat steps 1024", normal((1024, 1024)), lambda x: heat(x, 8))
    yield played("stencils: 100 steps of a line", normal((65536,)), line)
    yield played("stencils: life 1024", normal((1024, 1024)), life)
    yield played(
        "stencils: interior of heat 1024",
        normal((1024, 1024)),
        lambda x: (
            x[1:-1, 1:-1]
            + 0.1 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1])
        ),
    )


def _joins() -> Iterator[Case]:
    shapes = ((1, 128, 64, 64), (1, 64, 64, 64))
    yield played(
        "joins: cat and pad of a UNet", normal(*shapes), lambda a, b: a.cat(b, dim=1).pad((1, 1, 1, 1))
    )
    yield played("joins: cat of rows", normal((1000, 513), (1000, 511)), lambda a, b: a.cat(b, dim=1) * 2)
    yield played(
        "joins: roll, flip, pad", normal((2048, 2048)), lambda x: x.roll(5, 0).flip(1).pad((1, 1, 1, 1))
    )


def _windows() -> Iterator[Case]:
    def block(x: Any, expand: Any, depth: Any) -> Any:
        wide = x.conv2d(expand)
        wide = wide * (wide + 3).clamp(0, 6) / 6
        return wide.conv2d(depth, padding=1, groups=depth.shape[0])

    yield played(
        "windows: activation, then depthwise", normal((1, 16, 56, 56), (64, 16, 1, 1), (64, 1, 3, 3)), block
    )
    yield played(
        "windows: greatest 3 x 3, step 2", normal((8, 64, 112, 112)), lambda x: x.max_pool2d(3, 2, padding=1)
    )
    yield played("windows: overlap and add", normal((200, 1024)), _overlap_add)


def _overlap_add(frames: Any) -> Any:
    """The sum of frames of 1,024 that begin 256 apart."""
    return frames.T.reshape(1, 1024, 200).fold((1, 199 * 256 + 1024), (1, 1024), stride=(1, 256))


def _decoding() -> Iterator[Case]:
    for batch in (1, 4):
        shapes = ((batch, 16, 1, 64), (batch, 4, 1024, 64), (batch, 4, 1024, 64))
        yield played(
            f"decoding: grouped attention, batch {batch}",
            normal(*shapes),
            lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
        )


def _training() -> Iterator[Case]:
    yield played(
        "training: gradient of layer norm",
        normal((2048, 1024), (1024,)),
        lambda x, w: (x.layernorm() * w).square().sum().gradient(x, w),
    )
    yield played(
        "training: gradient of softmax",
        normal((2048, 1024)),
        lambda x: x.softmax(-1).square().sum().gradient(x)[0],
    )
    yield played(
        "training: gradient of attention",
        normal(*[(4, 512, 64)] * 3),
        lambda q, k, v: q.scaled_dot_product_attention(k, v).square().sum().gradient(q, k, v),
    )


FAMILIES = [_few_rows, _columns, _gathers, _segments, _stencils, _joins, _windows, _decoding, _training]


def cases() -> list[Case]:
    """All of them; the names are the same in every process."""
    sources = [_speed, _odd, _single_ops, *FAMILIES]
    return [case for source in sources for case in source()]


def named(words: Sequence[str]) -> list[Case]:
    """Those that have one of the words in their names; all for no words."""
    found = [
        case for case in cases() if not words or any(word.lower() in case.name.lower() for word in words)
    ]
    if not found:
        raise ValueError(f"no case has {' or '.join(map(repr, words))} in its name: `--list` shows them")
    return found

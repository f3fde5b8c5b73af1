"""Programs that read and write at computed indices, and what they mean in numpy.

An index is an expression over counters, numbers from memory and constants. The table that it is for has just
the size that it needs, so that an index which nobody asks for, one lane or turn further, is out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from lazygrad import Tensor

Array = np.ndarray[Any, Any]


class Index(NamedTuple):
    """An expression: what is done, to which expressions, with which constants."""

    op: str
    of: tuple[Index, ...] = ()
    numbers: tuple[int, ...] = ()


class Program(NamedTuple):
    """What is done at the places of an index of shape (rows,) or (rows, columns).

    extra   how much larger the table is than it needs to be     width   of the rows that are read or written
    back    whether indices count from the end                   after   what becomes of the result
    """

    rows: int
    columns: int
    index: Index
    dtype: str
    use: str
    width: int
    extra: int
    back: bool
    after: str
    seed: int


# *** indices


@st.composite
def indices(draw: st.DrawFn, depth: int = 3) -> Index:
    kind = draw(st.sampled_from((*LEAVES, *LEAVES, *ONE, *TWO) if depth else tuple(LEAVES)))
    count = 0 if kind in LEAVES else 1 if kind in ONE else 2
    of = tuple([draw(indices(depth - 1)) for _ in range(count)])
    return Index(kind, of, (draw(st.integers(1, 7)), draw(st.sampled_from((*range(10), 60)))))


def counter(axis: int, program: Program, library: Any) -> Any:
    size = (program.rows, program.columns)[axis]
    line = Tensor.arange(size) if library is Tensor else np.arange(size, dtype=np.int32)
    if not program.columns:
        return line
    return line.reshape((size, 1) if axis == 0 else (1, size))


def counted(program: Program, library: Any) -> Any:
    """The number of each place: over a block, or over all of them, it becomes the same along loops."""
    number = counter(0, program, library)
    return number * program.columns + counter(1, program, library) if program.columns else number


def loaded(program: Program, seed: int, library: Any) -> Any:
    shape = (program.rows, program.columns) if program.columns else (program.rows,)
    numbers = np.random.default_rng(program.seed + seed).integers(0, 7, shape, dtype=np.int32)
    return Tensor(numbers).realize() if library is Tensor else numbers


def rounded(program: Program, a: int, b: int, library: Any) -> Any:
    """Even steps from 0 on, rounded: halves to the even one, and no step is near one by accident."""
    steps = np.rint(np.arange(program.rows) * (0.25 * a)).astype(np.int32)
    line: Any = steps
    if library is Tensor:
        line = (Tensor.arange(program.rows) * (0.25 * a)).round().cast("int32")
    return line.reshape((program.rows, 1)) if program.columns else line


def chosen(a: Any, b: Any, library: Any) -> Any:
    return (a < b).where(a, b * 2) if library is Tensor else np.where(a < b, a, b * 2)


def least(a: Any, b: Any, library: Any) -> Any:
    return a.minimum(b) if library is Tensor else np.minimum(a, b)


def limited(a: Any, most: int, library: Any) -> Any:
    return a.clamp(0, most) if library is Tensor else a.clip(0, most)


LEAVES: dict[str, Callable[..., Any]] = {
    "row": lambda p, a, b, lib: counter(0, p, lib),
    "column": lambda p, a, b, lib: counter(1 if p.columns else 0, p, lib),
    "counted": lambda p, a, b, lib: counted(p, lib),
    "loaded": lambda p, a, b, lib: loaded(p, a, lib),
    "rounded": rounded,
}
ONE: dict[str, Callable[..., Any]] = {
    "times": lambda x, a, b, lib: x * a + b,
    "divided": lambda x, a, b, lib: x // (a + 1),
    "block": lambda x, a, b, lib: x // (a + b),
    "rest": lambda x, a, b, lib: x % (a + 1),
    "xor": lambda x, a, b, lib: x ^ a,
    "magnitude": lambda x, a, b, lib: (x - b).abs() if lib is Tensor else np.abs(x - b),
    "back": lambda x, a, b, lib: b - x,
    "limited": lambda x, a, b, lib: limited(x, b, lib),
}
TWO: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y, a, b, lib: x * a + y,
    "apart": lambda x, y, a, b, lib: (x - y).abs() if lib is Tensor else np.abs(x - y),
    "least": lambda x, y, a, b, lib: least(x, y, lib),
    "chosen": lambda x, y, a, b, lib: chosen(x, y, lib),
}


def value(program: Program, index: Index, library: Any) -> Any:
    a, b = index.numbers
    below = [value(program, each, library) for each in index.of]
    if index.op in LEAVES:
        return LEAVES[index.op](program, a, b, library)
    return (ONE[index.op] if len(below) == 1 else TWO[index.op])(*below, a, b, library)


def shape_of(program: Program) -> tuple[int, ...]:
    return (program.rows, program.columns) if program.columns else (program.rows,)


class Places(NamedTuple):
    """The index here and in numpy, and the size of the table that it is for."""

    here: Any
    there: Array
    size: int


def places(program: Program) -> Places:
    there = np.broadcast_to(value(program, program.index, np), shape_of(program)).astype(np.int64)
    first = int(there.min())
    size = int(there.max()) - first + 1 + program.extra
    moved = first + (size if program.back else 0)
    here = value(program, program.index, Tensor) - moved
    if here.shape != shape_of(program):
        here = here.expand(shape_of(program))
    return Places(here.cast(program.dtype), there - moved, size)


# *** what is done with them

MOST = 400  # elements in a table


def numbers(program: Program, shape: tuple[int, ...], salt: int) -> Array:
    """Small whole numbers, so that sums are exact in any order; none is 0, so that nothing is lost unseen."""
    found = np.random.default_rng([program.seed, salt]).integers(1, 4, shape)
    return found.astype(np.float32)


def read(program: Program) -> tuple[Tensor, Array]:
    """Rows or numbers picked from a table, or the gradient of the table."""
    index, there, size = places(program)
    along = program.use in ("columns", "gather", "gradient of gather")
    if program.use in ("gather", "gradient of gather"):
        shape: tuple[int, ...] = (program.rows, size) if program.columns else (size,)
    else:
        shape = (program.width, size) if along else (size, program.width) if program.width else (size,)
    array = numbers(program, shape, 1)
    table = Tensor(array, requires_grad=program.use.startswith("gradient")).realize()
    if program.use in ("gather", "gradient of gather"):
        axis = 1 if program.columns else 0
        picked, wanted = table.gather(axis, index), np.take_along_axis(array, there, axis)
    elif program.use == "columns":
        picked, wanted = table[:, index], array[:, there]
    elif program.use == "take":
        picked, wanted = table.take(index), array.take(there, mode="wrap")
    elif program.use == "embedding" and program.width:
        picked, wanted = index.embedding(table, wrap=True), array[there]
    else:
        picked, wanted = table[index], array[there]
    if not program.use.startswith("gradient"):
        return picked, wanted
    slopes = numbers(program, wanted.shape, 2)
    slope: Array = np.zeros_like(array)
    if program.use == "gradient of gather":
        rows = np.indices(there.shape)
        key = (rows[0], there % size) if program.columns else (there % size,)
        np.add.at(slope, key, slopes)
    else:
        np.add.at(slope, there, slopes)
    return (picked * Tensor(slopes)).sum().gradient(table)[0], slope


def write(program: Program) -> tuple[Tensor, Array]:
    """Values stored, added or combined at places of a table, or the gradient of the values."""
    index, there, size = places(program)
    flat, at = index.reshape(-1), there.reshape(-1)
    shape = (size, program.width) if program.width else (size,)
    base, given = numbers(program, shape, 1), numbers(program, (len(at), *shape[1:]), 2)
    if program.seed % 3 == 0:
        given = np.ones_like(given)
    whole = flat.unsqueeze(1).expand(given.shape) if program.width else flat
    table, values = Tensor(base).contiguous().realize(), Tensor(given).realize()
    if program.seed % 3 == 0:
        values = Tensor.ones(*given.shape)
    wanted = base.copy()
    if program.use == "gradient of values":
        values = values.detach().contiguous().realize().requires_grad_()
        slopes = numbers(program, shape, 3)
        made = table.index_add(0, flat, values)
        return (made * Tensor(slopes)).sum().gradient(values)[0], slopes[at]
    if program.use in ("amax", "amin", "prod", "sum", "mean"):
        made = table.scatter_reduce(0, whole, values, program.use)
        return made, reduced(program.use, base, at, given)
    if program.use == "index_add":
        np.add.at(wanted, at, given)
        return table.index_add(0, flat, values), wanted
    if program.use == "index_put":
        np.add.at(wanted, at, given)
        return table.index_put((flat,), values, True), wanted
    wanted[at] = given
    if program.use == "scatter":
        return table.scatter(0, whole, values), wanted
    table[flat] = values
    return table, wanted


def reduced(op: str, base: Array, at: Array, given: Array) -> Array:
    found = base.astype(np.float64)
    function: Any = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}.get(op, np.add)
    function.at(found, at, given)
    if op == "mean":
        count = np.ones_like(found)
        np.add.at(count, at, np.ones_like(given))
        found = found / count
    return found


AFTER: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "nothing": lambda x, y: (x, y),
    "doubled": lambda x, y: (x * 2, y * 2),
    "summed": lambda x, y: (x.sum(-1), y.sum(-1)),
    "summed up": lambda x, y: (x.sum(0), y.sum(0)),
    "largest": lambda x, y: (x.max(-1), y.max(-1)),
    "padded": lambda x, y: (x.pad((1, 2)), np.pad(y, [*((0, 0) for _ in y.shape[1:]), (1, 2)])),
    "turned": lambda x, y: (x.flip(0), y[::-1]),
    "part": lambda x, y: (x[1:], y[1:]),
    "running": lambda x, y: (x.cumsum(-1), y.cumsum(-1)),
}
READS = ("x[i]", "columns", "take", "gather", "embedding", "gradient of x[i]", "gradient of gather")
WRITES = ("index_add", "index_put", "scatter", "x[i] =", "sum", "prod", "amax", "amin", "mean")
WRITES += ("gradient of values",)
#: Those whose indices may not be negative.
FORWARD = (*READS[3:4], READS[6], "index_add", "scatter", "sum", "prod", "amax", "amin", "mean")
FORWARD += ("gradient of values",)


@st.composite
def programs(draw: st.DrawFn, uses: tuple[str, ...] = READS + WRITES) -> Program:
    use = draw(st.sampled_from(uses))
    program = Program(
        rows=draw(st.integers(1, 23)),
        columns=draw(st.sampled_from((0, 0, 1, 3, 4, 7))),
        index=draw(indices()),
        dtype=draw(st.sampled_from(("int32", "int32", "int64", "int16"))),
        use=use,
        width=draw(st.sampled_from((0, 0, 1, 3, 8))) or int(use == "columns"),
        extra=draw(st.sampled_from((0, 0, 0, 2))),
        back=use not in FORWARD and draw(st.integers(0, 4)) == 0,
        after=draw(st.sampled_from(tuple(AFTER))),
        seed=draw(st.integers(0, 99)),
    )
    there = value(program, program.index, np)
    if int(there.max()) - int(there.min()) > MOST:
        return program._replace(index=Index("row", (), (1, 0)))
    if use == "prod":  # a product of many numbers is no float32
        return program._replace(rows=min(program.rows, 9), columns=min(program.columns, 1))
    return program


def made(program: Program) -> tuple[Tensor, Array]:
    """The result here, not computed yet, and in numpy."""
    here, there = (read if program.use in READS else write)(program)
    return AFTER[program.after](here, there)

"""Programs that write in place, as data; how they run on tensors; and what they mean, said without graphs.

A program is (the shapes it begins with, its steps, the order in which all is read at the end). A step is a
name of `STEPS` and three small numbers that choose among what there is: so every list of steps is a program,
and a shorter one is too.

The model knows memory as a flat numpy array, and a tensor as the places in it that its elements are at. What
is not in memory yet (a value that nobody realized) has an array that no other tensor knows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from lazygrad import Tensor, TinyJit
from lazygrad.jit import JitError

#: Few shapes, so that most kernels of a program are known already: what goes wrong does so at axes of one
#: element, of none, and of several.
SHAPES = [(3, 4), (1, 4), (3, 1), (1, 1), (4,), (1,), (1, 3, 4), (3, 1, 4), (0, 4), (2, 1, 1)]
MOST_ELEMENTS, MOST_TENSORS, MOST_AXES = 36, 10, 4


class Program(NamedTuple):
    """shapes   what it begins with: numbers of SHAPES, all in memory
    steps    (name, i, j, k)
    order    how what there is at the end is read: from the first, from the last, or realized together first
    """

    shapes: tuple[int, ...]
    steps: tuple[tuple[str, int, int, int], ...]
    order: int


def programs(most: int, names: Sequence[str] = ()) -> st.SearchStrategy[Program]:
    """Programs of so many steps at most."""
    number = st.integers(0, 7)
    step = st.tuples(st.sampled_from(list(names) or list(STEPS)), number, number, number)
    return st.builds(
        Program,
        st.lists(st.integers(0, len(SHAPES) - 1), min_size=1, max_size=3).map(tuple),
        st.lists(step, min_size=1, max_size=most).map(tuple),
        st.integers(0, 2),
    )


@dataclass
class Model:
    """A tensor: the places of its elements in an array, which others look at too where it is memory."""

    places: np.ndarray
    array: np.ndarray
    in_memory: bool = False

    @classmethod
    def of(cls, values: np.ndarray, in_memory: bool = False) -> Model:
        return cls(np.arange(values.size).reshape(values.shape), values.reshape(-1).copy(), in_memory)

    @property
    def values(self) -> np.ndarray:
        return self.array[self.places]

    @property
    def is_writable(self) -> bool:
        """Whether no two elements are at one place."""
        return np.unique(self.places).size == self.places.size

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> Model:
        """A view where this is in memory, else a value."""
        array = self.array if self.in_memory else self.array.copy()
        return Model(move(self.places).copy(), array, self.in_memory)

    def write(self, values: Any, at: Any = ...) -> None:
        """In memory the places change, for all who look; a value is another from now on."""
        written = np.array(self.values)
        written[at] = values
        if self.in_memory:
            self.array[self.places] = written
        else:
            self.places, self.array = Model.of(written).places, written.reshape(-1).copy()


@dataclass(eq=False)
class Entry:
    tensor: Tensor
    model: Model
    new: bool = True  #: an operation that gives a new value made it


class Player:
    """Runs a program on a device, and on the model."""

    def __init__(
        self, device: Any, shapes: Sequence[int], shard: Callable[[Tensor, int], Tensor] | None = None
    ):
        self.device, self.shard = device, shard
        self.pool: list[Entry] = []
        #: arrays that were handed out, and what they hold for good
        self.looks: list[tuple[np.ndarray, np.ndarray]] = []
        self.made = 0
        for number in shapes:
            self.add_memory(SHAPES[number], number)

    # *** the pool

    def add_memory(self, shape: tuple[int, ...], axis: int, realized: bool = True) -> None:
        values = (np.arange(np.prod(shape, dtype=int), dtype=np.int32) * 7 + self.made * 3) % 11 - 4
        values = values.astype(np.int32).reshape(shape)
        self.made += 1
        tensor = self.beside(values, axis)
        self.pool.append(Entry(tensor.realize() if realized else tensor, Model.of(values, realized)))

    def beside(self, values: np.ndarray, axis: int) -> Tensor:
        """A tensor where those of the program are."""
        return Tensor(values, device=self.device) if self.shard is None else self.shard(Tensor(values), axis)

    def add(self, tensor: Tensor, model: Model, new: bool = True) -> None:
        assert tensor.shape == model.places.shape, f"{tensor.shape} for {model.places.shape}"
        if (
            model.places.size <= MOST_ELEMENTS
            and model.places.ndim <= MOST_AXES
            and len(self.pool) < MOST_TENSORS
        ):
            self.pool.append(Entry(tensor, model, new))

    def value(self, tensor: Tensor, values: np.ndarray) -> None:
        """A value that was computed."""
        self.add(tensor, Model.of(values.astype(np.int32)))

    def pick(self, number: int) -> Entry:
        return self.pool[number % len(self.pool)]

    def pair(self, i: int, j: int) -> tuple[Entry, Entry]:
        """Two that broadcast to something that is not too large."""
        one = self.pick(i)
        for other in [*self.pool[j % len(self.pool) :], *self.pool]:
            try:
                shape = np.broadcast_shapes(one.model.places.shape, other.model.places.shape)
            except ValueError:
                continue
            if np.prod(shape) <= MOST_ELEMENTS:
                return one, other
        return one, one

    def settle(self, entry: Entry) -> None:
        """Be in memory from now on, as after `realize`."""
        if not entry.model.in_memory:
            if entry.new and not entry.model.is_writable:
                entry.model = Model.of(entry.model.values)
            entry.model.in_memory = True

    # *** a program

    def play(self, program: Program) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "a write to a .* does not reach ")
            self._play(program)

    def _play(self, program: Program) -> None:
        for name, i, j, k in program.steps:
            STEPS[name](self, i, j, k)
        if program.order == 2 and self.pool:
            first, *others = [entry.tensor for entry in self.pool]
            first.realize(*others)
        for entry in self.pool[:: -1 if program.order == 1 else 1]:
            got = entry.tensor.numpy()
            assert got.shape == entry.model.places.shape
            assert got.tolist() == entry.model.values.tolist()
        for array, values in self.looks:
            assert array.tolist() == values.tolist(), "an array that was handed out has changed"


Step = Callable[[Player, int, int, int], None]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__] = function
    return function


def axis_of(entry: Entry, number: int) -> int:
    return number % entry.model.places.ndim if entry.model.places.ndim else 0


# *** new values


@step
def new(p: Player, i: int, j: int, k: int) -> None:
    if len(p.pool) < MOST_TENSORS:
        p.add_memory(SHAPES[(i + 8 * (j & 1)) % len(SHAPES)], j, realized=k % 4 != 0)


@step
def compute(p: Player, i: int, j: int, k: int) -> None:
    a, b = p.pair(i, j)
    x, y, m, n = a.tensor, b.tensor, a.model.values, b.model.values
    made: list[tuple[Callable[[], Tensor], np.ndarray]] = [
        (lambda: x + y, m + n),
        (lambda: x * 2 - y, m * 2 - n),
        (lambda: x.maximum(y), np.maximum(m, n)),
        (lambda: x + 1, m + 1),
    ]
    make, values = made[k % len(made)]
    p.value(make(), values)


@step
def broadcast(p: Player, i: int, j: int, k: int) -> None:
    """A value along an axis that has one element."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model.values
    if 1 not in m.shape:
        return
    axes = [axis for axis, size in enumerate(m.shape) if size == 1]
    axis = axes[j % len(axes)]
    shape = tuple(3 if a == axis else size for a, size in enumerate(m.shape))
    wide = np.broadcast_to(m, shape)
    if k % 4 == 0:
        p.value(x.expand(shape).contiguous(), wide)
    elif k % 4 == 1:
        p.value(x.cat(x, x, dim=axis), wide)
    elif k % 4 == 2:
        p.value(x.repeat(tuple(3 if a == axis else 1 for a in range(m.ndim))), wide)
    else:
        zeros = Tensor.zeros(*shape, dtype="int32", device=x.device)
        p.value(x + (zeros if p.shard else zeros.contiguous()), wide)


@step
def reduce(p: Player, i: int, j: int, k: int) -> None:
    entry = p.pick(i)
    x, m = entry.tensor, entry.model.values
    if m.ndim == 0 or 0 in m.shape:
        return
    axis = axis_of(entry, j)
    if k % 4 == 0:
        p.value(x.sum(axis, keepdim=True), m.sum(axis, keepdims=True, dtype=np.int32))
    elif k % 4 == 1:
        p.value(x.max(axis), m.max(axis))
    elif k % 4 == 2:
        p.value(x - x.sum(axis, keepdim=True), m - m.sum(axis, keepdims=True, dtype=np.int32))
    else:
        p.value(x.cumsum(axis), m.cumsum(axis, dtype=np.int32))


@step
def copy(p: Player, i: int, j: int, k: int) -> None:
    """What computes nothing, or nearly, and is a new value all the same."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model.values
    axis, ones = axis_of(entry, j), (1,) * m.ndim
    made: list[tuple[Callable[[], Tensor], Callable[[], np.ndarray]]] = [
        (lambda: x.clone(), lambda: m),
        (lambda: x**1, lambda: m),
        (lambda: x.repeat(ones), lambda: m),
        (lambda: x.stack()[0], lambda: m),
    ]
    if m.ndim:
        made += [
            (lambda: x.roll(j, axis), lambda: np.roll(m, j, axis)),
            (lambda: x.flip(axis), lambda: np.flip(m, axis)),
            (lambda: x.cat(dim=axis), lambda: m),
            (lambda: x.pad((j % 2, 0)), lambda: np.pad(m, [(0, 0)] * (m.ndim - 1) + [(j % 2, 0)])),
        ]
    make, values = made[k % len(made)]
    p.value(make(), values())


@step
def select(p: Player, i: int, j: int, k: int) -> None:
    """Elements at places that lie in a tensor."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model.values
    if m.ndim == 0 or m.shape[0] == 0:
        return
    index = np.array([j % m.shape[0], k % m.shape[0]], np.int32)
    p.value(x[p.beside(index, k)], m[index])


@step
def join(p: Player, i: int, j: int, k: int) -> None:
    a, b = p.pick(i), p.pick(j)
    if a.model.places.shape != b.model.places.shape or a.model.places.ndim == 0:
        return
    axis = axis_of(a, k)
    p.value(a.tensor.cat(b.tensor, dim=axis), np.concatenate([a.model.values, b.model.values], axis))


@step
def transfer(p: Player, i: int, j: int, k: int) -> None:
    """To other memory and back, or in other parts over the devices."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model.values
    if p.shard is None:
        p.value(x.to("NPY").to(p.device), m)
    elif j % 2:
        p.value(p.shard(x.to("CPU"), k), m)
    else:
        p.value(p.shard(x, k) + 0, m)


# *** views


@step
def view(p: Player, i: int, j: int, k: int) -> None:
    entry = p.pick(i)
    x, m = entry.tensor, entry.model
    shape, ndim, axis = m.places.shape, m.places.ndim, axis_of(entry, j)
    if ndim == 0:
        return

    def show(tensor: Tensor, move: Callable[[np.ndarray], np.ndarray]) -> None:
        if tensor is not x:
            p.add(tensor, m.moved(move), new=False)

    def part(cut: Any) -> tuple[Any, ...]:
        return (slice(None),) * axis + (cut,)

    last = shape[axis] - 1
    kind = k % 8
    if kind == 0:
        show(x.flatten(), lambda a: a.reshape(-1))
    elif kind == 1:
        order = tuple(range(ndim))[::-1]
        show(x.permute(order), lambda a: a.transpose(order))
    elif kind == 2:
        cut = slice(1, None) if j & 4 else slice(None, None, 2)
        show(x[part(cut)], lambda a: a[part(cut)])
    elif kind == 3:
        show(x[part(slice(None, None, -1))], lambda a: a[part(slice(None, None, -1))])
    elif kind == 4 and last >= 0:
        place = min(j >> 1, last)
        show(x[part(place)], lambda a: a[part(place)])
    elif kind == 5:
        show(x.unsqueeze(axis), lambda a: np.expand_dims(a, axis))
    elif kind == 6 and last == 0:
        wide = (*shape[:axis], 3, *shape[axis + 1 :])
        show(x.expand(wide), lambda a: np.broadcast_to(a, wide))
    elif kind == 7 and ndim > 1:
        if p.shard is None:
            show(x.diagonal(0, 0, 1), lambda a: a.diagonal(0, 0, 1))
    else:
        show(x.detach(), lambda a: a)


# *** writes


@step
def add_in_place(p: Player, i: int, j: int, k: int) -> None:
    entry = p.pick(i)
    if not entry.model.is_writable:
        return
    if k % 3 == 0:
        entry.tensor += k + 1
    elif k % 3 == 1:
        entry.tensor.add_(k + 1)
    else:
        entry.tensor *= 2
    m = entry.model.values
    entry.model.write(m * 2 if k % 3 == 2 else m + k + 1)


def fits(entry: Entry, other: Entry) -> bool:
    """Whether the other broadcasts to the shape of the one."""
    try:
        return (
            np.broadcast_shapes(entry.model.places.shape, other.model.places.shape)
            == entry.model.places.shape
        )
    except ValueError:
        return False


@step
def combine_in_place(p: Player, i: int, j: int, k: int) -> None:
    """A write of what the target and another tensor are."""
    entry, other = p.pair(i, j)
    if not entry.model.is_writable or not fits(entry, other):
        return
    x, y, m, n = entry.tensor, other.tensor, entry.model.values, other.model.values
    if k % 4 == 0:
        x += y
        entry.model.write(m + n)
    elif k % 4 == 1:
        x.sub_(y)
        entry.model.write(m - n)
    elif k % 4 == 2:
        x.assign(x * 3 + y)
        entry.model.write(m * 3 + n)
    else:
        x.clamp_(max=y)
        entry.model.write(np.minimum(m, n))


@step
def overwrite(p: Player, i: int, j: int, k: int) -> None:
    entry, other = p.pair(i, j)
    if not entry.model.is_writable or not fits(entry, other) or entry is other:
        return
    values = other.model.values
    if k % 4 == 0:
        entry.tensor.copy_(other.tensor)
    elif k % 4 == 1:
        entry.tensor.assign(other.tensor)
    elif k % 4 == 2:
        entry.tensor.assign(other.tensor + 2)
        values = values + 2
    else:
        entry.tensor.fill_(k)
        values = np.full_like(values, k)
    entry.model.write(values)


@step
def set_part(p: Player, i: int, j: int, k: int) -> None:
    """x[part] = a number, another part of x, or a value of another."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model
    if not m.is_writable or m.places.ndim == 0:
        return
    axis = axis_of(entry, j)
    size = m.places.shape[axis]
    lead: tuple[Any, ...] = (slice(None),) * axis
    cuts: list[Any] = [slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1)]
    if size:
        cuts.append(k % size)
    at = (*lead, cuts[k % len(cuts)])
    if j < 3:
        x[at] = k
        p.settle(entry)
        entry.model.write(k, at)
    elif j < 5 and size > 1:
        x[(*lead, slice(1, None))] = x[(*lead, slice(None, -1))]
        values = m.values[(*lead, slice(None, -1))]
        p.settle(entry)
        entry.model.write(values, (*lead, slice(1, None)))
    else:
        other = p.pick(k)
        values = other.model.values
        try:
            fitting = np.broadcast_shapes(m.places[at].shape, values.shape) == m.places[at].shape
        except ValueError:
            return
        if fitting:
            x[at] = other.tensor
            p.settle(entry)
            entry.model.write(values, at)


@step
def scatter_in_place(p: Player, i: int, j: int, k: int) -> None:
    """The writes whose places lie in a tensor, or a mask tells."""
    entry = p.pick(i)
    x, m = entry.tensor, entry.model
    if not m.is_writable or m.places.ndim == 0 or m.places.shape[0] == 0:
        return
    values = m.values
    rows = np.array([j % values.shape[0], (j + 1) % values.shape[0]], np.int32)
    index = p.beside(rows, k)
    source = values[rows] * 2
    if k % 5 == 0:
        x.index_add_(0, index, x[index] * 2)
        np.add.at(values, rows, source)
    elif k % 5 == 1:
        x.index_copy_(0, index, x[index] * 2)
        for row, line in zip(rows, source, strict=True):
            values[row] = line
    elif k % 5 == 2:
        x.index_fill_(0, index, k)
        values[rows] = k
    elif k % 5 == 3:
        x.masked_fill_(x > j, k)
        values[values > j] = k
    else:
        x[index] = k
        values[rows] = k
    m.write(values)


# *** what runs, and what holds on


@step
def run(p: Player, i: int, j: int, k: int) -> None:
    entry = p.pick(i)
    if k % 3 == 0:
        entry.tensor.realize()
        p.settle(entry)
    elif k % 3 == 1:
        entry.tensor.kernelize()
        p.settle(entry)
    else:
        assert entry.tensor.numpy().tolist() == entry.model.values.tolist()


@step
def run_together(p: Player, i: int, j: int, k: int) -> None:
    """Several at once: what is pending is planned together."""
    chosen = [entry for number, entry in enumerate(p.pool) if (i * 64 + j * 8 + k) >> number & 1]
    if chosen:
        chosen[0].tensor.realize(*[entry.tensor for entry in chosen[1:]])
        for entry in chosen:
            p.settle(entry)


@step
def forget(p: Player, i: int, j: int, k: int) -> None:
    if len(p.pool) > 1:
        p.pool.pop(i % len(p.pool))


@step
def hand_out(p: Player, i: int, j: int, k: int) -> None:
    """An array on a tensor's memory: a write must not change it."""
    entry = p.pick(i)
    if p.shard is None and len(p.looks) < 3:
        p.looks.append((np.asarray(entry.tensor), entry.model.values))


def _count(x: Tensor) -> Tensor:
    x += 1
    return x * 2


def _count_and_spread(x: Tensor) -> Tensor:
    x.add_(1)
    return x.unsqueeze(0).expand(3, *x.shape) + Tensor.zeros(3, *x.shape, dtype="int32", device=x.device)


def _shift(x: Tensor) -> Tensor:
    before = x + 0
    x.assign(x.flip(0))
    return before


def _look(x: Tensor) -> Tensor:
    x += 1
    return x.roll(0, 0)


@step
def jit(p: Player, i: int, j: int, k: int) -> None:
    """A captured function that writes its argument, called until it is replayed."""
    entry = p.pick(i)
    m = entry.model
    whole = m.places.size and np.array_equal(m.places.reshape(-1), np.arange(m.array.size))
    if not whole or m.places.ndim == 0 or p.shard is not None:  # a part that is written is refused
        return
    function = (_count, _count_and_spread, _shift, _look)[j % 4]
    jitted = TinyJit(function)
    p.settle(entry)
    result: Any = None
    for _ in range(3 + k % 2):
        before = entry.model.values
        try:
            result = jitted(entry.tensor)
        except JitError:  # memory that is seen in another order: refused, and as it was
            return
        m.write(np.flip(before, 0) if function is _shift else before + 1)
        after = m.values
        if function is _count:
            values = after * 2
        elif function is _count_and_spread:
            values = np.broadcast_to(after, (3, *after.shape))
        else:
            values = before if function is _shift else after
    p.add(result, Model.of(values, in_memory=True))

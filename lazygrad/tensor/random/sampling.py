"""Random tensors by counting: element i of a call is a function of (seed, base + i) and of nothing else.

The function is Threefry-2x32 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC
2011), twenty rounds of additions, rotations and xors. Each call takes the next numbers: its base is fixed
when it is called, so the values do not depend on when, in which order, on which device or in how many
pieces they are computed. Seed and base reach the kernel as bound Variables, so that a new call compiles
nothing new.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...device import Device, Devices
from ...dtype import DType, default_float, default_int, dtypes, to_dtype, wide_float
from ...gradient import filled
from ...ir.args import SORT
from ...ir.ops import Ops
from ...ir.uop import UOp, Variable
from ...locks import lock_across_fork
from ...shape import prod, shape_of, shape_text, vmax
from ...shape.movement import expanded
from ...shape.recipe import Recipe, learned
from ..creation import checked_shape, index_dtype, iota, sizes_of, with_grad
from ..face import Tensor
from ..modes import mode
from ..observer import observing
from ..signatures import DTypeLike, Numbers
from ..transforms.constant import Flat

Word = TypeVar("Word")
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
SEED_LIMIT, BASE_LIMIT = (1 << 32) - 1, 1 << 62


def threefry(
    counter: tuple[Word, Word],
    key: tuple[Word, Word],
    add: Callable[[Word, Any], Word],
    rotate: Callable[[Word, int], Word],
    xor: Callable[[Word, Any], Word],
) -> tuple[Word, Word]:
    """Threefry-2x32 with 20 rounds on any kind of 32-bit words."""
    x0, x1 = counter
    keys = (key[0], key[1], xor(xor(key[0], key[1]), PARITY))
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for group in range(5):
        for r in ROTATIONS[4 * (group % 2) : 4 * (group % 2) + 4]:
            x0 = add(x0, x1)
            x1 = xor(rotate(x1, r), x0)
        x0 = add(x0, keys[(group + 1) % 3])
        x1 = add(x1, add(keys[(group + 2) % 3], group + 1))
    return x0, x1


class _Stream:
    """Which numbers are taken already: a seed, and how many were drawn since it was set."""

    def __init__(self, seed: int, base: int, lock: Any) -> None:
        self.seed, self.base, self.lock = seed, base, lock

    def take(self, count: int) -> tuple[int, int]:
        """(seed, base) of the next `count` numbers."""
        with self.lock:
            seed, base = self.seed, self.base
            if observing.by is not None:
                observing.by.drew(seed, base, count)
            self.base = (base + count) % BASE_LIMIT
        return seed, base


class _Here(threading.local):
    """The stream that this thread draws from."""

    stream = _Stream(int.from_bytes(os.urandom(4), "little"), 0, lock_across_fork())  #: of all threads


_here = _Here()


def get_state() -> tuple[int, int]:
    """(seed, numbers drawn): what `set_state` takes."""
    stream = _here.stream
    with stream.lock:
        seed, base = stream.seed, stream.base
    if observing.by is not None:
        observing.by.random_state_is_read(seed, base)
    return seed, base


def set_state(state: tuple[int, int]) -> None:
    """Go on from a state that `get_state` gave."""
    seed, base = state
    if not (0 <= seed <= SEED_LIMIT and 0 <= base <= BASE_LIMIT):
        raise ValueError(f"not a state of the random numbers: {state!r}")
    stream = _here.stream
    with stream.lock:
        stream.seed, stream.base = seed, base
    if observing.by is not None:
        observing.by.random_state_is_set(seed, base)


def draw(count: int) -> tuple[int, int]:
    """(seed, base) of the next `count` numbers, for a jit that replays their kernels."""
    return _here.stream.take(count)


def drawn() -> int:
    """How many numbers were drawn since the seed was set, for who asks only whether some were between."""
    return _here.stream.base


@contextlib.contextmanager
def fork_random() -> Iterator[None]:
    """Numbers drawn inside, and seeds set there, do not count outside, nor for other threads."""
    seed, base = get_state()
    outer, _here.stream = _here.stream, _Stream(seed, base, contextlib.nullcontext())
    try:
        yield
    finally:
        _here.stream = outer
        if observing.by is not None:
            observing.by.random_state_is_set(seed, base)


def words(count: Any, device: Devices, generator: Numbers | None = None) -> tuple[UOp, UOp]:
    """Two random uint32 words for each of the next `count` numbers, of a generator or of Tensor's stream."""
    u32, u64 = dtypes.uint32, dtypes.uint64
    before, total = _before_example(count, device) if mode.examples else (None, vmax(count))
    if generator is None and mode.generators:
        generator = mode.generators[-1]
    more: list[UOp] = []
    if generator is not None:
        key_node, first = generator.take(total, device)
        seed_word = key_node.cast(u32)
        more.append(key_node.alu(Ops.SHR, UOp.const(u64, 32)).cast(u32))
        first = first if before is None else first + before
        low_start, high_start = first.cast(u32), first.alu(Ops.SHR, UOp.const(u64, 32)).cast(u32)
    else:
        seed_word, low_start, high_start = _next_of_stream(total, before)
    if vmax(count) > 1 << 32:
        raise NotImplementedError(f"one call of more than 2**32 random numbers: {count}")
    given = [seed_word, low_start, high_start, *more]
    kind = _words_of, count, device, len(given)
    recipe = learned.get(kind)
    if recipe is not None:
        high, low = recipe.makes(given)
        return high, low
    made = _words_of(count, device, *given)
    if type(count) is int and len(set(given)) == len(given) and learned.is_due(kind):
        learned.keep(kind, Recipe.of(made, given))
    return made


def _words_of(
    count: Any,
    device: Devices,
    seed_word: UOp,
    low_start: UOp,
    high_start: UOp,
    second_word: UOp | None = None,
) -> tuple[UOp, UOp]:
    """Two words for each number, from a first one on that has two words, under a key of one or two."""
    shape, u32 = (count,), dtypes.uint32
    low = iota(count, u32, device) + expanded(low_start, shape)
    carry = (low < expanded(low_start, shape)).cast(u32)
    high = carry + expanded(high_start, shape)

    constants: dict[int, UOp] = {}

    def operand(word: UOp | int) -> UOp:
        if isinstance(word, UOp):
            return word
        if word not in constants:
            constants[word] = filled(shape, u32, word)
        return constants[word]

    second = operand(0) if second_word is None else expanded(second_word, shape)
    return threefry(
        (low, high),
        (expanded(seed_word, shape), second),
        add=lambda a, b: a.alu(Ops.ADD, operand(b)),
        rotate=lambda a, r: a.alu(Ops.SHL, operand(r)).alu(Ops.OR, a.alu(Ops.SHR, operand(32 - r))),
        xor=lambda a, b: a.alu(Ops.XOR, operand(b)),
    )


def _next_of_stream(total: int, before: UOp | None) -> tuple[UOp, UOp, UOp]:
    """The key and the two words of the next number of the stream that belongs to Tensor."""
    u32, u64 = dtypes.uint32, dtypes.uint64
    seed, base = _here.stream.take(total)
    seed_word = UOp(Ops.CAST, u32, (Variable("seed", 0, SEED_LIMIT).bind(seed),))
    start = Variable("base", 0, BASE_LIMIT).bind(base)
    first = UOp(Ops.CAST, u64, (start,)) if before is None else UOp(Ops.CAST, u64, (start,)) + before
    low_start = UOp(Ops.CAST, u32, (start,)) if before is None else first.cast(u32)
    return seed_word, low_start, first.alu(Ops.SHR, UOp.const(u64, 32)).cast(u32)


def _before_example(count: Any, device: Devices) -> tuple[UOp | None, int]:
    """How many of the numbers of a call in `vmap` belong to earlier examples, and how many all draw together.

    The examples draw one after another, as one call for all of them would: `vmap` of `rand(n)` over b
    examples gives the numbers of `rand(b, n)`.
    """
    before: UOp | None = None
    total = vmax(count)
    u64 = dtypes.uint64
    for examples in reversed(mode.examples):
        if examples.randomness == "error":
            raise RuntimeError(
                "the function draws random numbers, and vmap was called with randomness='error'; "
                "'different' draws for each example, 'same' once for all"
            )
        if examples.randomness == "different":
            part = examples.number(device).alu(Ops.MUL, UOp.const(u64, total))
            before = part if before is None else before + part
            total *= vmax(examples.size)
    return before, total


def _fraction(word: UOp, dtype: DType, bits: int) -> UOp:
    """The first `bits` bits of a word as a number in [0, 1): a whole multiple of 2^-bits."""
    shape = shape_of(word)
    whole = (word >> filled(shape, dtypes.uint32, 32 - bits)).cast(dtype)
    return whole * filled(shape, dtype, 2.0**-bits)


def _uniform(count: Any, dtype: DType, device: Devices, generator: Numbers | None) -> UOp:
    """Numbers in [0, 1), each a multiple of 2^-(bits of the mantissa)."""
    high, low = words(count, device, generator)
    bits = dtypes.finfo(dtype).mantissa_bits + 1
    if bits <= 24:
        return _fraction(high, wide_float(dtype), bits).cast(dtype)
    shape = (count,)
    rest = (low >> filled(shape, dtypes.uint32, 11)).cast(dtype) * filled(shape, dtype, 2.0**-53)
    return _fraction(high, dtype, 32) + rest


class Sampling(Tensor):
    """Random tensors. All take `dtype`, `device`, `requires_grad` and a `generator` (generator.py)."""

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Set the seed of the random numbers.

        >>> Tensor.manual_seed(0)
        """
        if not isinstance(seed, int):
            raise TypeError(f"a seed must be an int, not {seed!r}")
        wide = seed & ((1 << 64) - 1)
        set_state(((wide ^ (wide >> 32)) & SEED_LIMIT, 0))

    @classmethod
    def rand(
        cls,
        *shape: Any,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
        generator: Numbers | None = None,
    ) -> Tensor:
        """Uniform numbers in [0, 1).

        >>> Tensor.rand(2, 3).shape
        (2, 3)
        """
        sizes, chosen = checked_shape(sizes_of(shape)), _float_dtype("rand", dtype)
        flat = cls._created(_uniform(prod(sizes), chosen, Device.present(device), generator), None)
        return with_grad(flat.reshape(sizes), requires_grad)

    @classmethod
    def randn(
        cls,
        *shape: Any,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
        generator: Numbers | None = None,
    ) -> Tensor:
        """Normally distributed numbers, mean 0 and variance 1 (Box and Muller 1958).

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        sizes, chosen = checked_shape(sizes_of(shape)), _float_dtype("randn", dtype)
        work = wide_float(chosen)
        bits = 32 if work is dtypes.float64 else 24
        first, second = (
            _fraction(w, work, bits) for w in words(prod(sizes), Device.present(device), generator)
        )
        # 1 - u is in (0, 1]: its logarithm is finite
        radius = (cls._make(first) * -1.0 + 1.0).log() * -2.0
        angle = (cls._make(second) - 0.5) * (2.0 * math.pi)
        return with_grad((radius.sqrt() * angle.sin()).cast(chosen).reshape(sizes), requires_grad)

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
        generator: Numbers | None = None,
    ) -> Tensor:
        """Whole numbers from low to high, which is not included, equally likely, to 2^-32 of the range.

        >>> Tensor.randint(2, low=3, high=4).tolist()
        [3, 3]
        """
        if not (isinstance(low, int) and isinstance(high, int)):
            raise TypeError(f"randint takes integer bounds, not {low!r} and {high!r}")
        if low >= high:
            raise ValueError(f"randint needs low < high, not {low} and {high}")
        chosen = default_int() if dtype is None else to_dtype(dtype)
        if not dtypes.is_int(chosen):
            raise TypeError(f"randint makes integers, not {chosen}")
        if low < dtypes.min(chosen) or high - 1 > dtypes.max(chosen):
            raise ValueError(f"randint from {low} to {high} does not fit into {chosen}; give another dtype=")
        sizes = checked_shape(sizes_of(shape))
        both = words(prod(sizes), Device.present(device), generator)
        word = cls._make(both[0]).cast(dtypes.uint64)
        if high - low > 1 << 32:
            # Modulo 2**64: the sum wraps to the number.
            whole = (word << 32) | cls._make(both[1]).cast(dtypes.uint64)
            place = whole if high - low == 1 << 64 else whole % (high - low)
            drawn = place + Tensor(low % (1 << 64), dtype=dtypes.uint64, device=device)
        else:
            drawn = ((word * (high - low)) >> 32).cast(dtypes.int64) + low
        return with_grad(drawn.cast(chosen).reshape(sizes), requires_grad)

    @classmethod
    def uniform(
        cls, *shape: Any, low: float = 0.0, high: float = 1.0, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Uniform numbers in [low, high); of a dtype of integers cut towards zero.

        >>> Tensor.uniform(2, low=3.0, high=3.0).tolist()
        [3.0, 3.0]
        """
        wanted = more.get("dtype")
        whole = wanted is not None and dtypes.is_int(chosen := to_dtype(wanted))
        drawn = cls.rand(*shape, **{**more, "dtype": None} if whole else more) * (high - low) + low
        return with_grad(drawn.cast(chosen) if whole else drawn, requires_grad)

    @classmethod
    def normal(
        cls, *shape: Any, mean: float = 0.0, std: float = 1.0, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Normally distributed numbers of this mean and standard deviation.

        >>> Tensor.normal(2, mean=5.0, std=0.0).tolist()
        [5.0, 5.0]
        """
        if isinstance(std, (int, float)) and std < 0:
            raise ValueError(f"normal needs a standard deviation of at least 0, not {std}")
        return with_grad(cls.randn(*shape, **more) * std + mean, requires_grad)

    @classmethod
    def scaled_uniform(cls, *shape: Any, requires_grad: bool | None = None, **more: Any) -> Tensor:
        """Uniform in [-1, 1), divided by the root of the number of elements.

        >>> Tensor.scaled_uniform(2, 3).shape
        (2, 3)
        """
        sizes: Any = checked_shape(sizes_of(shape))
        bound = math.prod(sizes) ** -0.5 if math.prod(sizes) else 0.0
        return cls.uniform(*sizes, low=-bound, high=bound, requires_grad=requires_grad, **more)

    @classmethod
    def glorot_uniform(cls, *shape: Any, requires_grad: bool | None = None, **more: Any) -> Tensor:
        """Uniform in ±sqrt(6 / (fan in + fan out)), for weights (out, in, ...) (Glorot, Bengio 2010).

        >>> Tensor.glorot_uniform(2, 3).shape
        (2, 3)
        """
        sizes = _weight_sizes("glorot_uniform", shape)
        bound = math.sqrt(6.0 / (sizes[0] + math.prod(sizes[1:])))
        return cls.uniform(*sizes, low=-bound, high=bound, requires_grad=requires_grad, **more)

    @classmethod
    def kaiming_uniform(
        cls, *shape: Any, a: float = 0.01, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Uniform weights (out, in, ...) that keep the variance through a leaky relu of slope a (He et al.

        2015).

        >>> Tensor.kaiming_uniform(2, 3).shape
        (2, 3)
        """
        sizes = _weight_sizes("kaiming_uniform", shape)
        bound = math.sqrt(6.0 / ((1.0 + a * a) * math.prod(sizes[1:])))
        return cls.uniform(*sizes, low=-bound, high=bound, requires_grad=requires_grad, **more)

    @classmethod
    def kaiming_normal(
        cls, *shape: Any, a: float = 0.01, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Normal weights (out, in, ...) that keep the variance through a leaky relu of slope a (He et al.

        2015).

        >>> Tensor.kaiming_normal(2, 3).shape
        (2, 3)
        """
        sizes = _weight_sizes("kaiming_normal", shape)
        std = math.sqrt(2.0 / ((1.0 + a * a) * math.prod(sizes[1:])))
        return cls.normal(*sizes, std=std, requires_grad=requires_grad, **more)

    def rand_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor:
        """Uniform numbers, with the shape, dtype and device of this tensor.

        >>> Tensor([1.0, 2.0]).rand_like().shape
        (2,)
        """
        made = self.rand(*self.shape, **self._like(dtype, device), **more)
        return made if device is not None else made._laid_as(self)

    def randn_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor:
        """Normally distributed numbers, with the shape, dtype and device of this tensor.

        >>> Tensor([1.0, 2.0]).randn_like().shape
        (2,)
        """
        made = self.randn(*self.shape, **self._like(dtype, device), **more)
        return made if device is not None else made._laid_as(self)

    def bernoulli(self, *, generator: Numbers | None = None) -> Tensor:
        """1 with the probability that an element gives, else 0.

        >>> Tensor([0.0, 1.0]).bernoulli().tolist()
        [0.0, 1.0]
        """
        x = self._float()
        drawn: Tensor = Flat.apply(x, (x.rand_like(generator=generator) < x.detach()).cast(x.dtype))
        return drawn

    def multinomial(
        self, num_samples: int = 1, replacement: bool = False, *, generator: Numbers | None = None
    ) -> Tensor:
        """Indices drawn by weight: of a 1-d tensor, or of each row of a matrix.

        >>> Tensor([0.0, 1.0]).multinomial().tolist()
        [1]
        """
        if self.ndim not in (1, 2):
            raise ValueError(
                f"multinomial takes one or two axes of weights, not shape {shape_text(self.shape)}"
            )
        if num_samples < 1:
            raise ValueError(f"multinomial needs a positive number of samples, not {num_samples}")
        weights = (self if self.ndim == 2 else self.unsqueeze(0)).detach()._float()
        if num_samples > 1 and not replacement:
            if num_samples > vmax(weights.shape[1]):
                raise ValueError(
                    f"multinomial cannot draw {num_samples} different indices of {weights.shape[1]}"
                )
            # who comes first, each at a random time with its weight as rate (Efraimidis and Spirakis)
            times = -(1.0 - weights.rand_like(generator=generator)).log() / weights
            drawn = times.topk(num_samples, 1, largest=False)[1]
            return drawn if self.ndim == 2 else drawn.reshape((num_samples,))
        reached = weights.cumsum(1)
        total = reached._window(1, reached.shape[1] - 1, reached.shape[1])
        how: dict[str, Any] = {"dtype": weights.dtype, "device": self.device, "generator": generator}
        drawn = self.rand(weights.shape[0], num_samples, **how) * total
        places = (reached.unsqueeze(1) <= drawn.unsqueeze(2)).sum(2).cast(index_dtype(weights.shape[1]))
        places = places.minimum(weights.shape[1] - 1)  # weights that are none give an index all the same
        return places if self.ndim == 2 else places.reshape((num_samples,))

    @classmethod
    def randperm(
        cls,
        n: int,
        *,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        generator: Numbers | None = None,
        **more: Any,
    ) -> Tensor:
        """A random order of 0 ... n - 1: the order of as many random keys.

        >>> sorted(Tensor.randperm(3).tolist())
        [0, 1, 2]
        """
        if n < 0:
            raise ValueError(f"randperm takes a count of elements, not {n}")
        wanted = index_dtype(n) if dtype is None else to_dtype(dtype)
        if n > dtypes.max(dtypes.int32):
            raise NotImplementedError(f"randperm of more than 2**31 - 1 elements: {n}")
        if n == 0:
            return cls.zeros(0, dtype=wanted, device=device, **more)
        key, _ = words(n, Device.present(device), generator)
        return cls._created(
            UOp(Ops.PROGRAM, dtypes.int32, (key,), SORT).cast(wanted),
            more.get("requires_grad"),
        )


def _float_dtype(name: str, dtype: DTypeLike) -> DType:
    chosen = default_float() if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(chosen):
        raise TypeError(f"{name} makes floats, not {chosen}")
    return chosen


def _weight_sizes(name: str, shape: Any) -> tuple[int, ...]:
    sizes: Any = checked_shape(sizes_of(shape))
    if len(sizes) < 2:
        raise ValueError(f"{name} is for weights of shape (out, in, ...), not {sizes}")
    return sizes  # type: ignore[no-any-return]

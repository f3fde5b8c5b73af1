"""Arithmetic on sizes: a size is an int, or an index expression over Variables.

An expression that turns out constant becomes an int again, so that sizes compare with `==` (canonical index
expressions that are equal are the same object).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from ..dtype import dtypes
from ..ir import index
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.text import expression
from ..ir.uop import UOp, readers

Shape = tuple[sint, ...]


def as_size(value: object) -> sint:
    """A number that a user gave, as a size: any integer type, or an index expression."""
    if type(value) is int:
        return value
    if isinstance(value, UOp):
        if value.dtype is not dtypes.index:
            raise TypeError(f"a size must be an integer or a Variable, not an expression of {value.dtype}")
        return index.as_sint(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a size must be an integer or a Variable, not {value!r}") from None


_INT = frozenset((int,))


def as_sizes(shape: Iterable[object]) -> Shape:
    """The sizes of a shape that a user gave."""
    if type(shape) is tuple and _INT.issuperset(map(type, shape)):
        return shape
    return tuple(map(as_size, shape))


def elements(shape: Shape) -> int | None:
    """How many elements a shape of plain numbers has; None for another, and where one is negative."""
    count = 1
    for size in shape:
        if type(size) is not int or size < 0:
            return None
        count *= size
    return count


#: What a count of elements, a signed integer of 64 bits, can be at most.
MOST_ELEMENTS = (1 << 63) - 1


def countable(shape: Sequence[sint]) -> Shape:
    """A shape whose elements can be counted; ValueError where they are too many."""
    count = 1
    for size in shape:
        count *= vmax(size)
    if count > MOST_ELEMENTS:
        raise ValueError(f"a tensor has at most 2**63 - 1 elements, not those of shape {shape_text(shape)}")
    return tuple(shape)


def add(a: sint, b: sint) -> sint:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return index.as_sint(index.add(index.as_index(a), index.as_index(b)))


def sub(a: sint, b: sint) -> sint:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return index.as_sint(index.sub(index.as_index(a), index.as_index(b)))


def mul(a: sint, b: sint) -> sint:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return index.as_sint(index.mul(index.as_index(a), index.as_index(b)))


def quotient(a: sint, b: sint) -> sint:
    """`a // b` rounded down; 0 where b is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    return index.as_sint(index.floordiv(index.as_index(a), index.as_index(b)))


def remainder(a: sint, b: sint) -> sint:
    """`a % b`; 0 where b is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return index.as_sint(index.mod(index.as_index(a), index.as_index(b)))


def prod(sizes: Iterable[sint]) -> sint:
    """The product of sizes; 1 where there are none."""
    result: sint = 1
    for size in sizes:
        result = mul(result, size)
    return result


def smax(a: sint, b: sint) -> sint:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return index.as_sint(index.maximum(index.as_index(a), index.as_index(b)))


def smin(a: sint, b: sint) -> sint:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return index.as_sint(index.minimum(index.as_index(a), index.as_index(b)))


def vmin(value: sint) -> int:
    """The least value it can take."""
    return value if isinstance(value, int) else index.bounds(value)[0]


def vmax(value: sint) -> int:
    """The greatest value it can take: memory is for the maximum."""
    return value if isinstance(value, int) else index.bounds(value)[1]


def at_most(a: sint, b: sint) -> bool:
    """Whether `a <= b` is certain, whatever values the Variables take."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return vmin(sub(b, a)) >= 0


def resolve_equal(a: sint, b: sint) -> bool:
    """Whether the two are equal whatever values the Variables take."""
    if a is b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    difference = sub(a, b)
    return vmin(difference) == 0 == vmax(difference)


def bound_size(value: sint) -> sint:
    """A size with the values that its Variables are bound to; a number, where all are.

    For decisions: the capture of a jit that asks holds for these values only.
    """
    if isinstance(value, int):
        return value
    if readers.note is not None:
        for node in _binds(value):
            readers.note(node, decides=True)
    return _with_values(value)


def at_most_bound(a: sint, b: sint) -> bool:
    """Whether `a <= b` is certain, or is so with the values that the Variables are bound to.

    The capture of a jit that asks holds for all values with which it is so; where it is not, for these only.
    """
    if at_most(a, b):
        return True
    room = sub(b, a)
    if isinstance(room, int):
        return False
    now = _with_values(room)
    if not isinstance(now, int):
        return False
    if now < 0:
        bound_size(room)
        return False
    if readers.limit is not None:
        readers.limit(room)
    return True


def is_bound(value: sint) -> bool:
    """Whether a size is a number, or one with the values that its Variables are bound to."""
    return isinstance(value, int) or isinstance(_with_values(value), int)


def _binds(value: UOp) -> list[UOp]:
    return [node for node in value.toposort() if node.op is Ops.BIND]


def _with_values(value: UOp) -> sint:
    return index.as_sint(index.substitute((value,), {node: node.src[1] for node in _binds(value)})[value])


# *** text, for error messages


def size_text(value: sint) -> str:
    """A size as a person writes it: `4`, `n`, `n*2`."""
    return str(value) if isinstance(value, int) else expression(value)


def shape_text(shape: Iterable[sint]) -> str:
    """A shape as a person writes it: `(2, n)`, `(3,)`."""
    texts = [size_text(size) for size in shape]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def pairs_text(pairs: Iterable[tuple[sint, sint]]) -> str:
    """Pairs of sizes, one for each axis: `((0, 1), (n, 2))`."""
    texts = [shape_text(pair) for pair in pairs]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

"""Sums that compute the same terms, in one kernel: each tile of these is computed once, for all of the sums.

    a(i, c) = Σⱼ s(i, j)·v(j, c),   b(j, c) = Σᵢ t(i, j)·w(i, c),   ...

where s and t are made of the same sums of products of rows i and keys j. Whoever has a tile of s and t adds
to the rows of a that it has, and to those of b: for sums over keys as well as for sums over rows. So a loop
over blocks of keys and, inside, over blocks of rows computes each term once. The sums of a block of keys are
done when all rows were there; those of rows wait for all keys, in memory of the kernel. No term depends on a
sum over i or j (`rule.py`), so nothing is corrected.

In the gradient of attention, dq is a sum over keys, dk and dv are sums over rows: five products of matrices
and one exponential for each pair, where separate kernels take eight and three.

In: the parts of kernels of one sum each (`rule.py`). Out: their parts together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...codegen.expressions.ranges import make_range, substitute_ranges
from ...dtype import DType
from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...target import Target
from .expressions import PRODUCTS, TOTAL
from .lanes import depends, number_of_placeholder, placeholder
from .limits import Limit, limits_of_zero
from .rule import OnePass, Product, is_same
from .sizes import BESIDE, KEYS, Sizes, size_of, tile_of

#: Tiles of rows whose terms are in memory at once: so many terms are added up for each load and store of a
#: sum of keys.
TILES = 4


class Sum(NamedTuple):
    """One of the sums: `store` says where it goes and what it is made into, with TOTAL in its place.

    column  the range of its columns        values  factors of the summed range and the column
    term    which of the terms these are multiplied by
    """

    store: UOp
    column: UOp
    values: tuple[UOp, ...]
    term: int


class Joined(NamedTuple):
    """Sums over rows and over keys of the same terms.

    batch, groups, row, key   as of OnePass; sums over rows are over all groups
    products   what terms are made of      terms  with PRODUCTS in their places
    limits     where all terms are 0
    of_rows    the sums that rows have, over keys       of_keys  those that keys have, over rows: at least one
    """

    batch: tuple[UOp, ...]
    groups: tuple[UOp, ...]
    row: UOp
    key: UOp
    products: tuple[Product, ...]
    terms: tuple[UOp, ...]
    limits: tuple[Limit, ...]
    of_rows: tuple[Sum, ...]
    of_keys: tuple[Sum, ...]

    def batches(self) -> int:
        return math.prod(map(size_of, self.batch))

    @property
    def dtype(self) -> DType:
        return self.products[0].total.dtype

    def sums(self) -> tuple[Sum, ...]:
        return (*self.of_rows, *self.of_keys)

    def expressions(self) -> list[UOp]:
        """What is computed: terms, what they are made of, what they are multiplied by, and where sums go."""
        sides = [side for product in self.products for side in (product.left, product.right)]
        values = [value for each in self.sums() for value in each.values]
        stored = [source for each in self.sums() for source in each.store.src]
        return [*self.terms, *sides, *values, *stored]

    def columns(self) -> list[UOp]:
        return [each.column for each in self.sums()]


def together(every: Sequence[OnePass]) -> Joined | None:
    """The parts of kernels together; None where they are not sums of the same terms.

    The numbers of their memory are those of one kernel.
    """
    if len(every) < 2 or any(parts.power is not None or parts.beside or parts.late for parts in every):
        return None
    first = max(every, key=lambda parts: (not parts.outer, len(parts.groups), len(parts.products)))
    ways = [each for each in (first, _turned(first)) if not each.outer]
    found = [made for each in ways if (made := _joined(every, each)) is not None and made.of_keys]
    return found[0] if found else None


def _joined(every: Sequence[OnePass], first: OnePass) -> Joined | None:
    """The parts together, with the rows and keys of one of them."""
    key = first.key
    terms: list[UOp] = []
    limits: list[list[Limit]] = []
    sums: tuple[list[Sum], list[Sum]] = ([], [])
    newest = max(node.arg.id for node in first.store.toposort() if node.op is Ops.RANGE)
    for parts in every:
        newest += 1
        found = _renamed(parts, first, make_range(size_of(parts.column), newest, AxisType.GLOBAL))
        if found is None:
            return None
        term, each, is_of_keys = found
        if term not in terms:
            terms.append(term)
            limits.append(list(limits_of_zero(term, key)))
        sums[is_of_keys].append(each._replace(term=terms.index(term)))
    common = [limit for limit in limits[0] if all(limit in other for other in limits)]
    return Joined(
        first.batch, first.groups, first.row, key, first.products, tuple(terms),
        tuple(dict.fromkeys(common)), tuple(sums[0]), tuple(sums[1]),
    )  # fmt: skip


def _turned(parts: OnePass) -> OnePass:
    """The same terms, with what is summed over as rows, and the rows as keys.

    Where they have groups, these are summed over keys for each: such a kernel has `outer` ranges then.
    """
    products = tuple([each._replace(left=each.right, right=each.left) for each in parts.products])
    return parts._replace(
        groups=parts.outer, row=parts.key, key=parts.row, outer=parts.groups, products=products
    )


def _renamed(parts: OnePass, first: OnePass, column: UOp) -> tuple[UOp, Sum, bool] | None:
    """The terms of a kernel and its sum, in the ranges of the first one; whether keys have it."""
    for names, is_of_keys in _names(parts, first):
        known = dict[UOp, UOp]({**names, parts.column: column})
        for product in parts.products:
            number = _number_of(product.total, first, names)
            if number is None:
                break
            known[product.total] = placeholder(PRODUCTS + number, parts.total)
        else:
            known[parts.total] = placeholder(TOTAL, parts.total)
            made = substitute_ranges(UOp.sink(parts.x, parts.store, *parts.values), known).src
            x, store, *values = made
            x = _divided_by_rows(x, first.key.arg.id)
            return x, Sum(store, column, tuple(values), 0), is_of_keys
    return None


def _divided_by_rows(term: UOp, key: int) -> UOp:
    """A term with x / l as x·(1/l) where l is of rows: the inverse of a row is computed once."""

    def inverse(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.FDIV or not is_of_rows(src[1], key):
            return None
        one = UOp.const(node.dtype, 1.0)
        return UOp(Ops.MUL, node.dtype, (src[0], UOp(Ops.FDIV, node.dtype, (one, src[1]))))

    return transform(term, inverse, None)


def is_of_rows(value: UOp, key: int) -> bool:
    """Whether a value of a term depends on rows alone: not on the range of keys, nor on sums of products."""
    return not depends(value, key) and all(number_of_placeholder(n) is None for n in value.toposort())


def _number_of(total: UOp, first: OnePass, names: dict[UOp, UOp]) -> int | None:
    """Which of the first kernel's sums of products one is."""
    for number, product in enumerate(first.products):
        if is_same(total, product.total, dict(names)):
            return number
    return None


def _names(parts: OnePass, first: OnePass) -> Iterator[tuple[dict[UOp, UOp], bool]]:
    """The ways in which the ranges of a kernel may be those of the first one: its rows are rows, or keys."""
    rows = (*first.groups, first.row)
    for is_of_keys, mine, key in (
        (False, (*parts.groups, parts.row), (parts.key,)),
        (True, (*parts.outer, parts.key), (*parts.groups, parts.row)),
    ):
        if len(key) != 1 or (parts.outer and not is_of_keys):
            continue  # keys are one range, and sums over keys are over nothing else
        for batch in _pairings(parts.batch, first.batch):
            for pairs in _pairings(mine, rows):
                if size_of(key[0]) == size_of(first.key):
                    yield {**batch, **pairs, key[0]: first.key}, is_of_keys


def _pairings(some: Sequence[UOp], others: Sequence[UOp]) -> Iterator[dict[UOp, UOp]]:
    if len(some) == len(others):
        for order in itertools.permutations(others):
            if all(size_of(one) == size_of(other) for one, other in zip(some, order, strict=True)):
                yield dict(zip(some, order, strict=True))


# *** how large its blocks are: from its sizes and the target alone


def joined_sizes(parts: Joined, target: Target) -> Sizes:
    """Blocks that fit the second cache; `rows` are those of a block, of each group. None depends on how many
    cores there are."""
    itemsize = parts.products[0].total.dtype.itemsize
    lanes = target.vector_bytes // itemsize
    tile = tile_of(target)
    rows = TILES * tile
    depth = sum(size_of(product.depth) for product in parts.products)
    room = target.memory.second * KEYS / itemsize / (depth + len(parts.terms) * rows)
    keys = BESIDE * lanes
    while keys * 2 <= min(room, size_of(parts.key)):
        keys *= 2
    return Sizes(lanes, BESIDE * lanes, tile, rows, keys, 0)


def chunks_of(parts: Joined, sizes: Sizes) -> int:
    """How many blocks of keys are units of their own: none are where rows have sums over all of them."""
    return 1 if parts.of_rows else -(-size_of(parts.key) // sizes.keys)


def units_of(parts: Joined, target: Target) -> int:
    """What cores share."""
    return parts.batches() * chunks_of(parts, joined_sizes(parts, target))

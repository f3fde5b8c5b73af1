"""Sums of powers of distances from a mean: one walk through memory for the mean and for them.

    sum over j of (xⱼ - m)²,   m = (sum over j of xⱼ)/n

asks for each x twice, and where x outgrows the caches both times from memory. But any number c may be taken
out of the distances, xⱼ - m = (xⱼ - c) + (c - m), and a sum of them over places j of a block is

    Σ w·(xⱼ - m)^p  =  Σ over t ≤ p of  binomial(p, t) · D^(p - t) · Σ w·(xⱼ - c)^t,    D = c - m

by the binomial theorem: c and m do not depend on j. For p = 2 that is M₂ + 2·D·M₁ + n·D², with the moments Mₜ
of the block about c. So each block is summed about its own mean, which is known once the block was read, and
is read again from the nearest cache; its moments are corrected when m is known. (Chan, Golub, LeVeque, 1979,
"Updating formulae and a pairwise algorithm for computing sample variances", with p = 2 and M₁ = 0.) Distances
from several means are multiplied in the same way, which makes covariances, and p = 3 and 4 skew and kurtosis.

c is the rounded mean of a block, so that M₁ is not 0. It is summed too: otherwise the rounding of c, some
u·|c|, would count in 2·D·(c - mean), where in a sum about m it only counts as its square. docs/numbers.md has
the bound.

Elements may have a weight, or a condition, WHERE(condition, .., 0). Where the mean is that of the elements
with a condition, so is c.

In: a sum, as it is met in the walk of `plain.py`. Out: a sum over blocks; or, where a row stays near in its
kernel, the same sum, whose mean is then computed in its kernel (`means`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...decisions import yes_or_no
from ...gradient import filled
from ...ir.args import ReduceArg
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import expand, numel, reshape, shape_of, shrink
from ...shape.sizes import Shape
from ...target import Target
from ..graph.requested import near
from ..graph.versions import effective
from .distances import Condition, Terms, is_sum, masked, terms_of
from .reduces_of_broadcasts import repeated_axes
from .split_reduce import STRIP, Blocks, beside, chunks_of, cut_into, over_blocks, within_blocks

#: The share of the second cache that a row may take which is walked twice, and of the first one that is for a
#: block; of the second for a block of columns, which are read in strips.
ROW, BLOCK, COLUMNS = 1 / 2, 1 / 2, 1 / 4
#: A run of so many elements that lie together is a block of its own, where others of its row lie elsewhere.
SHORTEST = 256
#: Blocks are multiples of so many elements where more of them are left, so that vectors fill them.
WHOLE = 64
#: So many numbers of blocks are compared by what they leave.
TRIED = 2048


class Known(NamedTuple):
    """A sum in blocks: those of each block, how many elements each is of (at least 1), and the number of its
    family.
    """

    partials: UOp
    counts: UOp
    blocks: Blocks
    family: int


class Moment(NamedTuple):
    """Which sums of blocks a kernel computes together (`family`), and in which walk through a block."""

    family: int
    walk: int


class Moments:
    """The sums of a walk that are of distances from others.

    sums     such a sum → its terms              cuts   the sum of a mean → its blocks; none: it stays whole
    moments  sums of blocks in the plain graph
    means    sums that stay whole and are computed in the kernel of what depends on them
    """

    def __init__(self, order: Sequence[UOp], target: Target) -> None:
        self.sums: dict[UOp, Terms] = {}
        self.cuts: dict[UOp, Blocks] = {}
        self.known: dict[UOp, Known] = {}
        self.moments: dict[UOp, Moment] = {}
        self.means: set[UOp] = set()
        sums = [node for node in order if is_sum(node)]
        for node in sums if len(sums) > 1 else ():
            terms = terms_of(node)
            if terms is None:
                continue
            means = {shift.mean for shift in terms.powers}
            blocks = blocks_of(node, target)
            if blocks is not None and means.isdisjoint(self.sums):
                self.sums[node] = terms
                self.cuts.update(dict.fromkeys(means, blocks))

    def rewritten(self, made: UOp, node: UOp, value: Mapping[UOp, UOp]) -> UOp | None:
        """A plain sum in blocks; None where it stays as it is.

        node   what it was in the graph that was asked for: what a mean is made of is not known of plain nodes
        value  what other nodes became
        """
        terms = self.sums.get(node)
        if terms is not None:
            return self._of_distances(made, terms, value)
        blocks = self.cuts.get(node)
        if blocks == {}:
            self.means.add(made)
        return self._of_values(made, node, blocks, value) if blocks else None

    def _of_values(self, made: UOp, node: UOp, blocks: Blocks, value: Mapping[UOp, UOp]) -> UOp:
        """The sum of a mean."""
        parts = within_blocks(made, blocks)
        family = len(self.known)
        condition = masked(node)[1]
        if condition is None:
            count = filled(shape_of(parts), made.dtype, float(_length(parts)))
        else:
            ones = filled(shape_of(made.src[0]), made.dtype, 1.0)
            seen = within_blocks(made.replace(src=(_where(ones, condition, value),)), blocks)
            self.moments[seen] = Moment(family, 0)
            count = UOp(Ops.MAX, made.dtype, (seen, filled(shape_of(parts), made.dtype, 1.0)))
        self.moments[parts] = Moment(family, 0)
        self.known[node] = Known(parts, count, blocks, family)
        return _with_rest(made, over_blocks(made, parts, blocks), blocks)

    def _of_distances(self, made: UOp, terms: Terms, value: Mapping[UOp, UOp]) -> UOp | None:
        """A sum of powers of distances."""
        shifts = list(terms.powers)
        known = [self.known.get(shift.mean) for shift in shifts]
        found = [each for each in known if each is not None]
        if len(found) != len(shifts):
            return None
        blocks, shape = found[0].blocks, shape_of(found[0].partials)
        apart, corrections = [], []  # x - c, and c - m
        for shift, each in zip(shifts, found, strict=True):
            centre = UOp(Ops.FDIV, made.dtype, (each.partials, each.counts))
            cut = cut_into(_plain(shift.value, value), blocks)
            apart.append(UOp(Ops.SUB, made.dtype, (cut, expand(centre, shape_of(cut)))))
            mean = _repeated(_plain(shift.centre, value), made, shape)
            corrections.append(UOp(Ops.SUB, made.dtype, (centre, mean)))
        total: UOp | None = None
        exponents = [range(power + 1) for power in terms.powers.values()]
        for taken in itertools.product(*exponents):
            term = self._moment(made, apart, taken, terms, value, found[0])
            for shift, correction, t in zip(shifts, corrections, taken, strict=True):
                power = terms.powers[shift]
                if math.comb(power, t) > 1:
                    term = _times(term, filled(shape, made.dtype, float(math.comb(power, t))))
                for _ in range(power - t):
                    term = _times(term, correction)
            total = term if total is None else UOp(Ops.ADD, made.dtype, (total, term))
        assert total is not None  # an exponent of 0 is one
        result = over_blocks(made, total, blocks)
        for factor, divides in terms.late:
            kept = _repeated(_plain(factor, value), made, shape_of(result))
            result = UOp(Ops.FDIV if divides else Ops.MUL, made.dtype, (result, kept))
        return _with_rest(made, result, blocks)

    def _moment(
        self,
        made: UOp,
        apart: Sequence[UOp],
        taken: Sequence[int],
        terms: Terms,
        value: Mapping[UOp, UOp],
        known: Known,
    ) -> UOp:
        """The sum within blocks of powers of the distances from their own means."""
        if not any(taken) and not terms.weights and not terms.conditions:
            return filled(shape_of(known.partials), made.dtype, float(_length(known.partials)))
        factors = [each for each, power in zip(apart, taken, strict=True) for _ in range(power)]
        factors += [cut_into(_plain(weight, value), known.blocks) for weight in terms.weights]
        product = factors[0] if factors else filled(shape_of(apart[0]), made.dtype, 1.0)
        for factor in factors[1:]:
            product = _times(product, factor)
        for condition in terms.conditions:
            product = _where(product, condition, value, known.blocks)
        axes = tuple(len(shape_of(apart[0])) - len(shape_of(made)) + axis for axis in made.arg.axes)
        moment = UOp(Ops.REDUCE_AXIS, made.dtype, (product,), ReduceArg(Ops.ADD, axes))
        self.moments[moment] = Moment(known.family, 1)
        return moment


# *** in which blocks


def blocks_of(node: UOp, target: Target) -> Blocks | None:
    """The blocks in which such a sum is computed; none where its rows stay whole, and are near for a second
    walk; None where it is left as it is.
    """
    shape = shape_of(node.src[0])
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape) or 0 in sizes or not _takes(target):
        return None
    axes = [axis for axis in node.arg.axes if sizes[axis] > 1]
    if not axes or not repeated_axes(node.src[0]).isdisjoint(axes):
        return None  # what only repeats takes no loop
    predicted = pays(math.prod(sizes) * node.dtype.itemsize, target)
    if not yes_or_no("moments", near(node), predicted, lambda: True):
        return None
    strip = min(beside(sizes, node.arg.axes), STRIP)
    row, most = _room(strip, node.dtype.itemsize, target)
    apart = [axis for axis, size in enumerate(sizes) if size > 1 and axis not in axes]
    run = math.prod(sizes[axis] for axis in axes if axis > max(apart, default=0))
    is_run = SHORTEST <= run < math.prod(sizes[axis] for axis in axes)
    if math.prod(sizes[axis] for axis in axes) <= row and chunks_of(node, target) < 2 and not is_run:
        return {}
    if is_run:
        most = min(most, run)
    return _cut([(axis, sizes[axis]) for axis in axes], most)


def pays(nbytes: int, target: Target) -> bool:
    """Whether one walk through so many bytes less is predicted to save more than one more kernel takes.

    A grid has a kernel for each reduction otherwise: it needs no more of them than that.
    """
    if target.grid:
        return True
    memory = target.memory
    if nbytes <= memory.second:
        return False
    far = memory.rates[1] if nbytes <= max(memory.sizes) else min(memory.rates[2], memory.stream)
    lanes = target.vector_bytes // 4
    kernel = target.launch.kernel / (lanes * target.core.arithmetic)
    return nbytes / far - nbytes / memory.rates[0] > kernel


def _takes(target: Target) -> bool:
    if target.grid:
        return target.has_local
    return target.vector_bytes > 0 and len(target.memory.sizes) >= 2


def _room(strip: int, itemsize: int, target: Target) -> tuple[int, int]:
    """The elements of a row that is near for a second walk, and of a block, of each of so many results."""
    if target.grid:
        multiprocessor, _ = target.launch.machine
        return multiprocessor.local_bytes // itemsize, max(target.local_bytes // itemsize, 1)
    memory = target.memory
    block = memory.sizes[0] * BLOCK if strip == 1 else memory.second * COLUMNS
    return int(memory.second * ROW) // (strip * itemsize), max(int(block) // (strip * itemsize), 1)


def _cut(axes: Sequence[tuple[int, int]], most: int) -> Blocks | None:
    """Blocks of at most so many elements: the slowest axes are cut into single places as long as the rest has
    too many, and the next one into parts.
    """
    blocks: dict[int, tuple[int, int]] = {}
    for place, (axis, size) in enumerate(axes):
        inner = math.prod(size for _, size in axes[place + 1 :])
        if size * inner <= most:
            break
        if inner >= most:
            blocks[axis] = (size, 1)
            continue
        blocks[axis] = _blocks(size, max(most // inner, 1))
        break
    return blocks if math.prod(number for number, _ in blocks.values()) > 1 else None


def _blocks(size: int, most: int) -> tuple[int, int]:
    """How many parts of an axis, and how long, with little or nothing left over."""
    least = -(-size // most)

    def length(number: int) -> int:
        return size // number // WHOLE * WHOLE or size // number

    number = min(range(least, least + min(least, TRIED)), key=lambda number: size - number * length(number))
    return number, length(number)


def _with_rest(made: UOp, total: UOp, blocks: Blocks) -> UOp:
    """The total of the blocks, and what they leave at the end of an axis."""
    shape = shape_of(made.src[0])
    for axis, (number, length) in blocks.items():
        if number * length < shape[axis]:
            spans = [(0, size) for size in shape]
            spans[axis] = (number * length, shape[axis])
            rest = made.replace(src=(shrink(made.src[0], tuple(spans)),))
            return UOp(Ops.ADD, made.dtype, (total, rest))
    return total


# *** plain nodes


def _plain(node: UOp, value: Mapping[UOp, UOp]) -> UOp:
    return value[effective(node)]


def _length(parts: UOp) -> int:
    """How many elements each sum of blocks is of."""
    return numel(parts.src[0]) // numel(parts)


def _times(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.MUL, a.dtype, (a, b))


def _repeated(value: UOp, made: UOp, shape: Shape) -> UOp:
    """A value that repeats along the axes of a sum, once along these, for each block."""
    once = shrink(value, tuple([(0, 1 if a in made.arg.axes else n) for a, n in enumerate(shape_of(value))]))
    return expand(reshape(once, (1,) * (len(shape) - len(shape_of(once))) + shape_of(once)), shape)


def _where(product: UOp, condition: Condition, value: Mapping[UOp, UOp], blocks: Blocks | None = None) -> UOp:
    """A product where a condition holds, and 0 elsewhere."""
    holds = _plain(condition.value, value)
    holds = holds if blocks is None else cut_into(holds, blocks)
    zero = filled(shape_of(product), product.dtype, 0.0)
    yes, no = (zero, product) if condition.inverted else (product, zero)
    return UOp(Ops.WHERE, product.dtype, (holds, yes, no))

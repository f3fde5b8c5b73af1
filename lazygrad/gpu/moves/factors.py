"""A STAGE of what a tensor core multiplies: the matrix as it lies in memory, once, and not word by word.

A thread's words are the same value at places that are constants apart: neighbours in a word, halves of the
steps, rows 8 apart (`warp_matrices.py`). They are one value again here, over ranges for those constants;
ranges along which it goes on in memory are one loop then, and the copy has a row for each of the others:

    for row in 0..64: for column in 0..32:  temp0[40*row + column] = data1[1024*row + column + 32*k]

Rows are an odd number of vectors of 16 bytes apart. Where a word holds neighbours of a row, the 8 rows and 4
words that the threads of a warp read lie in all 32 banks. For instructions that read the copies themselves,
these are panels (`target/packed_tiles.py`), if the matrix fits in some.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...codegen.expressions.ranges import make_range, stride, substitute_ranges
from ...codegen.opt.moves.windows import Windows, index_of
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import free_numbers, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort
from ...target import PackedTile, Target, TensorCore
from ...target.packed_tiles import LINES, MODES
from .warp_matrices import OWN

#: Bytes by which rows are kept apart that would lie in the same banks: a vector, so that they stay aligned.
APART = 16
#: Values by where they are: the half, which of a thread's rows, the place in the word.
Lanes = Mapping[tuple[int, ...], UOp]


def stage_factors(sink: UOp, number: int, inside: frozenset[UOp], target: Target) -> UOp:
    """The kernel where factors made of data`number` are copied as matrices, in each turn of these loops.

    Factors that are not as above stay: `staged_by_workgroup` copies their words.
    """
    for node in [node for node in sink.toposort() if node.op is Ops.WMMA]:
        core, words = node.arg, node.src[:-1]
        rows, panels = OWN * core.halves, list(core.tiles)
        for which, (own, part) in enumerate(((OWN, words[:rows]), (1, words[rows:]))):
            lanes: Lanes = {
                (*divmod(k, own), n): lane
                for k, word in enumerate(part)
                for n, lane in enumerate(word.src if word.op in (Ops.PACK, Ops.BITCAST) else ())
            }
            places = [n for lane in lanes.values() for n in toposort((lane,)) if n.op is Ops.INDEX]
            of_input = [n for n in places if n.src[0].op is Ops.DEFINE_GLOBAL and n.src[0].arg == number]
            if lanes and len(places) == len(of_input) == len(lanes):
                copied = _staged(sink, lanes, inside, core, target)
                if copied is not None:
                    sink, panels[which] = substitute_ranges(sink, copied[0]), copied[1]
        if core.tiles != tuple(panels):
            sink = _in_packed_tiles(sink, replace(core, tiles=(panels[0], panels[1])))
    return sink


def _in_packed_tiles(sink: UOp, core: TensorCore) -> UOp:
    """The kernel whose product of matrices knows how these lie."""
    (product,) = [node for node in sink.toposort() if node.op is Ops.WMMA]
    return index.substitute((sink,), {product: product.replace(arg=core)})[sink]


def _staged(
    sink: UOp, lanes: Lanes, inside: frozenset[UOp], core: TensorCore, target: Target
) -> tuple[dict[UOp, UOp], PackedTile | None] | None:
    """Of each value what is read from one copy of all, and its panels if there are any; None where they are
    no matrix in memory.
    """
    fresh, number = free_numbers(sink.toposort())
    ranges = [
        make_range(1 + max(at[k] for at in lanes), fresh + k, AxisType.LOOP)
        for k in range(len(next(iter(lanes))))
    ]
    value = _over(lanes, ranges)
    if value is None:
        return None
    apart = _along_steps(value, ranges, inside, core) if core.warps > 1 else frozenset()
    found = _in_rows(value, ranges_of(value) - inside, apart, fresh + len(ranges))
    if found is None:
        return None
    source = found.value
    place = index_of(source).src[1]
    loops = sorted(set(ranges_of(source)) - inside, key=lambda r: -(stride(place, r) or 0))
    itemsize = value.dtype.itemsize
    first = fresh + len(ranges) + len(found.index)
    own, filling = filling_loops(loops, place, first, target.load_bytes // itemsize)
    panel = (
        _packed_tile(loops, ranges[0] in ranges_of(found.index[loops[-1]]), core.steps, itemsize)
        if core.warps > 1
        else None
    )
    strides, size = (
        _layout(loops, itemsize) if panel is None else ({}, math.prod(r.src[0].arg for r in loops))
    )
    memory = UOp(Ops.DEFINE_LOCAL, value.dtype.ptr(size, local=True), (), number)
    there, here = (
        _sum(at[r] * step for r, step in strides.items())
        if panel is None
        else panel.index(*(at[r] for r in loops))
        for at in (own, found.index)
    )
    store = UOp(
        Ops.STORE,
        dtypes.void,
        (UOp(Ops.INDEX, memory.dtype, (memory, there)), substitute_ranges(source, dict(own))),
    )
    stage = UOp(Ops.STAGE, memory.dtype, (memory, store, *filling))
    read: dict[UOp, UOp] = {}
    for at, lane in lanes.items():
        constants = {r: index.const(n) for r, n in zip(ranges, at, strict=True)}
        own_place = substitute_ranges(here, constants)
        read[lane] = UOp(Ops.LOAD, lane.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, own_place)),))
    return read, panel


def _packed_tile(loops: Sequence[UOp], along_steps: bool, steps: int, itemsize: int) -> PackedTile | None:
    """Panels for a matrix that these loops walk, the last one along its lines; `steps` of a product.

    Lines along the steps hold those of one product; others are as long as can be, and there are such of 2
    bytes only ("Strides", PTX ISA: the operand imm-trans).
    """
    if len(loops) != 2 or not (along_steps or itemsize == 2):
        return None
    lines, width = (r.src[0].arg for r in loops)
    fits = [nbytes for nbytes in MODES if width % (nbytes // itemsize) == 0]
    line = steps if along_steps else max(fits, default=0) // itemsize
    if line == 0 or lines % LINES or width % line:
        return None
    return PackedTile(along_steps, line, lines, itemsize)


def _over(lanes: Lanes, ranges: Sequence[UOp]) -> UOp | None:
    """One value over these ranges that is each of the values at its place; None where there is none."""
    zero = (0,) * len(ranges)
    along = [r for r in ranges if r.src[0].arg > 1]
    steps = [tuple(int(r is other) for other in ranges) for r in along]

    def met(node: UOp, others: tuple[UOp, ...]) -> UOp | None:
        if all(other is node for other in others):
            return node
        if node.dtype is dtypes.index:
            terms, constant = index.terms_of(node)
            for r, other in zip(along, others, strict=True):
                more, there = index.terms_of(other)
                if more != terms:
                    return None
                node = node + r * (there - constant)
            return node
        if any(o.op is not node.op or o.arg != node.arg or len(o.src) != len(node.src) for o in others):
            return None
        src = [met(s, tuple([o.src[k] for o in others])) for k, s in enumerate(node.src)]
        found = [s for s in src if s is not None]
        return index.rebuild(node, tuple(found)) if len(found) == len(src) else None

    value = met(lanes[zero], tuple([lanes[step] for step in steps]))
    if value is None:
        return None
    for at in itertools.product(*(range(r.src[0].arg) for r in ranges)):
        constants = {r: index.const(n) for r, n in zip(ranges, at, strict=True)}
        if substitute_ranges(value, constants) is not lanes[at]:
            return None
    return value


def _along_steps(
    value: UOp, ranges: Sequence[UOp], inside: frozenset[UOp], core: TensorCore
) -> frozenset[UOp]:
    """The ranges of the steps of a sum: those of a thread's words, of the threads, and what is unrolled."""
    place = index_of(value).src[1]
    neighbours = (stride(place, ranges[0]) or 0) // 4  # the words of threads that are neighbours
    own = {ranges[0], ranges[-1]}
    for r in ranges_of(value) - inside:
        if r.arg.kind is AxisType.UNROLL or (r.arg.kind is AxisType.WARP and stride(place, r) == neighbours):
            own.add(r)
    return frozenset(own)


def _in_rows(value: UOp, closed: frozenset[UOp], apart: frozenset[UOp], fresh: int) -> Windows | None:
    """The value with one loop for all ranges along which it goes on in memory; None without neighbours.

    Ranges of `apart` and others are no one loop.
    """
    place = index_of(value).src[1]
    steps = {r: stride(place, r) or 0 for r in closed if r.src[0].op is Ops.CONST}
    if len(steps) < len(closed) or any(step <= 0 for step in steps.values()):
        return None
    chains: list[list[UOp]] = []
    end = 0
    for r in sorted(steps, key=lambda r: (steps[r], r.arg.id)):
        if chains and steps[r] == end and (chains[-1][0] in apart) == (r in apart):
            chains[-1].append(r)
        else:
            chains.append([r])
        end = steps[r] * r.src[0].arg
    if not chains or steps[chains[0][0]] != 1:
        return None
    forth: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    for number, chain in enumerate(chains):
        joint = make_range(math.prod(r.src[0].arg for r in chain), fresh + number, AxisType.LOOP)
        forth |= {r: joint if r is chain[0] else index.const(0) for r in chain}
        back[joint] = _sum(r * (steps[r] // steps[chain[0]]) for r in chain)
    joined = substitute_ranges(value, forth)
    return Windows(joined, back) if substitute_ranges(joined, back) is value else None


def _layout(rows: Sequence[UOp], itemsize: int) -> tuple[dict[UOp, int], int]:
    """How far apart the places on each axis are, the last one densest, and the size of all."""
    strides: dict[UOp, int] = {}
    size = 1
    for r in reversed(rows):
        strides[r] = size
        size *= r.src[0].arg
        if len(strides) == 1 and size * itemsize % (2 * APART) == 0:
            size += APART // itemsize
    return strides, size


def _sum(terms: Iterable[UOp]) -> UOp:
    total = index.const(0)
    for term in terms:
        total = total + term
    return total


# *** the loops that fill a copy


def filling_loops(filling: list[UOp], place: UOp, fresh: int, width: int) -> tuple[dict[UOp, UOp], list[UOp]]:
    """The place on each axis of a copy, and the loops that walk them, the outermost first.

    Where whole vectors lie side by side in the source, a thread takes one.
    """
    own: dict[UOp, UOp] = {}
    loops: list[UOp] = []
    for r in filling:
        size = r.src[0].arg
        whole = _vector(place, r, width) if r is filling[-1] else 1
        if whole > 1:
            lanes = make_range(whole, fresh + 1, AxisType.UPCAST)
            turns = make_range(size // whole, fresh, AxisType.LOOP)
            own[r] = turns * whole + lanes if size > whole else lanes
            loops += [turns, lanes] if size > whole else [lanes]
        else:
            own[r] = make_range(size, fresh, AxisType.LOOP)
            loops.append(own[r])
        fresh += 2
    return own, loops


def _vector(place: UOp, r: UOp, width: int) -> int:
    """How many neighbours along `r` are a vector wherever one begins; at most `width`."""
    while width > 1 and (r.src[0].arg % width or not _is_aligned(place, r, width)):
        width //= 2
    return width


def _is_aligned(place: UOp, r: UOp, width: int) -> bool:
    """Whether the source is contiguous along `r`, and begins at multiples of a width elsewhere."""
    terms, constant = index.terms_of(place)
    others = [coefficient for monomial, coefficient in terms.items() if monomial != (r,)]
    return terms.get((r,)) == 1 and all(n % width == 0 for n in (constant, *others))

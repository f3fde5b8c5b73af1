"""Products of matrices that a group of warps reads from its workgroup's copies (form 4, before `vectorize`).

    acc += wmma(pack(temp0[32*g + 2*t], ...), ..., pack(temp1[...]), ..., 2*u + v)    words of each thread
becomes
    acc += wmma(pack(temp0[0], ...), pack(temp1[0], ...), 4*c + 2*u + v)    the first word of each matrix

where both factors lie in packed tiles (`target/packed_tiles.py`), and the product begins where lines are not
swapped. PTX's `wgmma` takes 64 rows and up to 256 columns: those along one UPCAST range, c above, are one
product. `with_indices` puts indices in the stead of the words, and a renderer makes descriptors of these.

Elsewhere the words stay, and each warp multiplies its own (`mma`).

Factors elsewhere in the copies of a workgroup are loaded by the threads of a warp together:

    acc += wmma(pack(temp0[40*g + 2*t], ...), ..., pack(temp1[...]), ..., 2*u + v)    words of each thread
becomes
    acc += wmma(pack(temp0[40*r], ...), pack(temp1[...]), 2*u + v)    where a thread's row of 16 bytes begins

PTX's `ldmatrix` loads up to four matrices of 8 rows of 16 bytes: thread 8m + r says where row r of matrix m
begins, and each thread gets the words that `mma` wants of it. The matrices are those of the halves of the
steps and of the rows 8 apart. Rows go along the steps or, of 2 bytes, across them: such are turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...codegen.expressions.ranges import stride
from ...codegen.legalizing.words import first_word
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import is_shared, ranges_of
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...renderer.alignment import multiple_of
from ...target import TensorCore

#: Columns of a matrix of sums, and of the widest product.
COLUMNS, WIDEST = 8, 256


def by_warp_groups(sink: UOp) -> UOp:
    """The kernel whose products are read from panels, where there are such."""
    found: dict[UOp, UOp] = {}
    for product in [node for node in sink.toposort() if node.op is Ops.WMMA]:
        made = _read_from_packed(product) if None not in product.arg.tiles else loaded_together(product)
        found |= {product: made} if made is not None else {}
    return index.substitute((sink,), found)[sink] if found else sink


def are_alone(sink: UOp) -> bool:
    """Whether warps that could multiply together do not, since their factors do not lie as they have to."""
    products = [node.arg for node in by_warp_groups(sink).toposort() if node.op is Ops.WMMA]
    return any(core.warps > 1 and not core.columns for core in products)


def _read_from_packed(product: UOp) -> UOp | None:
    """The WMMA of the first words; None where the product does not begin where one may."""
    core, (*words, number) = product.arg, product.src
    rows, columns = (_first_index(word) for word in (words[0], words[2 * core.halves]))
    wide = _columns(columns, core)
    if wide is not None:
        columns = index.substitute((columns,), {wide: index.const(0)})[columns]
        number = wide * 4 + number
    for access, panel in zip((rows, columns), core.tiles, strict=True):
        if len(access.src) > 2 or multiple_of(access.src[1]) % panel.alignment:
            return None
    count = 1 if wide is None else int(wide.src[0].arg)
    made = replace(core, columns=COLUMNS * count)
    return UOp(
        Ops.WMMA,
        product.dtype,
        (first_word(rows, core.element), first_word(columns, core.element), number),
        made,
    )


def _first_index(word: UOp) -> UOp:
    """Where the first thread of a warp group begins to read."""
    access = word.src[0].src[0]  # a PACK or BITCAST of what is loaded from a panel
    threads = {r: index.const(0) for r in ranges_of(access.src[1]) if r.arg.kind is AxisType.WARP}
    place = index.substitute((access.src[1],), threads)[access.src[1]]
    return access.replace(src=(access.src[0], place, *access.src[2:]))


def _columns(access: UOp, core: TensorCore) -> UOp | None:
    """The range of the columns of one product: one that moves the place as columns of these panels lie."""
    panel = core.tiles[1]
    assert panel is not None  # who asks has seen both
    for r in sorted(ranges_of(access.src[1]), key=lambda r: r.arg.id):
        if r.arg.kind is not AxisType.UPCAST or r.src[0].op is not Ops.CONST:
            continue
        places = [
            index.substitute((access.src[1],), {r: index.const(n)})[access.src[1]]
            for n in range(r.src[0].arg)
        ]
        moved = [index.sub(place, places[0]) for place in places]
        wanted = [panel.element(COLUMNS * n, 0) for n in range(len(moved))]
        if len(moved) * COLUMNS <= WIDEST and moved == [index.const(n) for n in wanted]:
            return r
    return None


def with_indices(sink: UOp) -> UOp:
    """The kernel in target code in which such products have the places that their words are loaded from."""

    def placed(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.WMMA or not node.arg.columns:
            return None
        loads = [word.src[0] if word.op is Ops.BITCAST else word for word in src[:-1]]
        return node.replace(src=(*(load.src[0] for load in loads), src[-1]))

    return transform(sink, placed, "place matrices")


# *** loaded together

#: Threads of a warp along rows and along steps; rows of a matrix; bytes of one.
ALONG_ROWS, ALONG_STEPS, ROWS, BYTES = 8, 4, 8, 16


def loaded_together(product: UOp) -> UOp | None:
    """The WMMA whose factors are loaded by `ldmatrix`; None where they do not lie in such rows."""
    core, (*words, number) = product.arg, product.src
    if not core.loads or core.columns:
        return None
    rows = 2 * core.halves
    found = [_row(part, own, core) for part, own in ((words[:rows], 2), (words[rows:], 1))]
    if found[0] is None or found[1] is None:
        return None
    made = replace(core, columns=8, turned=(found[0][1], found[1][1]))
    return UOp(Ops.WMMA, product.dtype, (found[0][0], found[1][0], number), made)


def _row(words: Sequence[UOp], own: int, core: TensorCore) -> tuple[UOp, bool] | None:
    """The first word of a thread's row, and whether rows go across the steps."""
    loads = [[*word.src] for word in words]
    if any(load.op is not Ops.LOAD or len(load.src[0].src) > 2 for parts in loads for load in parts):
        return None
    access = loads[0][0].src[0]
    threads = {int(r.src[0].arg): r for r in ranges_of(access.src[1]) if r.arg.kind is AxisType.WARP}
    if not is_shared(access.src[0]) or threads.keys() != {ALONG_ROWS, ALONG_STEPS}:
        return None
    g, t = threads[ALONG_ROWS], threads[ALONG_STEPS]
    place = access.src[1]
    base = index.substitute((place,), {g: index.const(0), t: index.const(0)})[place]
    along_g, along_t = stride(place, g) or 0, stride(place, t) or 0
    if base + g * along_g + t * along_t is not place:
        return None

    def distance(word: int, part: int) -> int | None:
        """How far a number of a word is from the first."""
        if word >= len(loads) or part >= core.packed:
            return 0
        gap = index.sub(loads[word][part].src[0].src[1], place)
        return int(gap.arg) if gap.op is Ops.CONST else None

    steps = along_t // core.packed  # from one step to the next
    neighbours, rows, halves = distance(0, 1), distance(1, 0) if own == 2 else 0, distance(own, 0)
    if along_t != steps * core.packed or neighbours not in (steps, 0) or halves not in (4 * along_t, 0):
        return None
    if rows not in (ROWS * along_g, 0):
        return None
    turned = steps != 1
    if turned and (core.element.itemsize != 2 or along_g != 1):
        return None
    pitch, whole = steps if turned else along_g, BYTES // core.element.itemsize
    if pitch % whole or multiple_of(base) % whole:
        return None
    matrix = index.mod(index.floordiv(g, index.const(2)), index.const(len(words)))
    row = index.mod(g, index.const(2)) * ALONG_STEPS + t
    upper, half = index.mod(matrix, index.const(own)), index.floordiv(matrix, index.const(own))
    begin = base + row * pitch + upper * (ROWS * along_g) + half * (ALONG_STEPS * along_t)
    return first_word(access.replace(src=(access.src[0], begin)), core.element), turned

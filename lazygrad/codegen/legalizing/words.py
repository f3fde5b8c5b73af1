"""PACK becomes what it does to bits; neighbours that are packed in a word are loaded as that word.

    pack(temp0[i], temp0[i+1])     with i a multiple of 2
becomes
    a LOAD of uint32 at i, from the memory of the narrow numbers

Only from memory that a workgroup shares: it is the kernel's own, and begins where words may.
"""

from __future__ import annotations

import functools
import operator

from ...dtype import DType, dtypes
from ...ir.nest import is_shared
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.rewrite import graph_rewrite, transform
from ...ir.uop import UOp
from ...renderer.alignment import multiple_of
from ..expressions.constants import lane_of


def pack_bits(sink: UOp) -> UOp:
    """The kernel without PACK: a LOAD of a word where its parts are neighbours, else shifts."""
    return graph_rewrite(transform(sink, _loaded, "load words"), packs, name="pack bits")


def packed(n: UOp) -> UOp:
    """PACK as what it does to the bits of its sources: each shifted to its place."""
    parts, dtype = n.src, n.dtype
    nbytes = parts[0].dtype.scalar_type.itemsize
    narrow = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32}[nbytes].vec(dtype.count)
    words = [part.bitcast(narrow).cast(dtype) << 8 * nbytes * i for i, part in enumerate(parts)]
    return functools.reduce(operator.or_, words)


packs = PatternMatcher([(UPat(Ops.PACK, name="n"), packed)])


def _loaded(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    if node.op is not Ops.PACK:
        return None
    lanes = [
        [lane_of(s, lane) if node.dtype.count > 1 else s for s in src] for lane in range(node.dtype.count)
    ]
    words = [_word(node, parts) for parts in lanes]
    found = [word for word in words if word is not None]
    if len(found) < len(words):
        return None
    return found[0] if node.dtype.count == 1 else UOp(Ops.VECTORIZE, node.dtype, tuple(found))


def _word(pack: UOp, parts: list[UOp]) -> UOp | None:
    """What loads the word; None where its parts are no neighbours."""
    accesses = [part.src[0] for part in parts if part.op is Ops.LOAD and len(part.src) == 1]
    if len(accesses) < len(parts) or any(len(access.src) > 2 for access in accesses):
        return None
    memory, first = accesses[0].src
    base, begin = _split(first)
    for n, access in enumerate(accesses):
        if access.src[0] is not memory or _split(access.src[1]) != (base, begin + n):
            return None
    if not is_shared(memory) or multiple_of(first) % len(parts):
        return None
    return UOp(Ops.LOAD, pack.dtype.scalar_type, (accesses[0],))


def first_word(access: UOp, element: DType) -> UOp:
    """What lies at a place, as a word of 4 bytes."""
    places = [access.replace(src=(access.src[0], access.src[1] + n)) for n in range(4 // element.itemsize)]
    loads = tuple([UOp(Ops.LOAD, element, (place,)) for place in places])
    return UOp(Ops.PACK, dtypes.uint32, loads) if len(loads) > 1 else loads[0].bitcast(dtypes.uint32)


def split_index(place: UOp) -> tuple[UOp, int]:
    """A place as another one and a constant beyond it."""
    if place.op is Ops.ADD and place.src[1].op is Ops.CONST:
        return place.src[0], int(place.src[1].arg)
    return place, 0


def _split(place: UOp) -> tuple[UOp | None, int]:
    """The same, and of a constant nothing but that."""
    return (None, int(place.arg)) if place.op is Ops.CONST else split_index(place)


def is_word(load: UOp) -> bool:
    """Whether a LOAD reads several numbers of its memory as one word."""
    memory = load.src[0].dtype.base.scalar_type
    return load.dtype.scalar_type.itemsize > memory.itemsize

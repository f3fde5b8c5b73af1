"""In which order a program adds up its float sums: a key, for which the program runs on hashes.

    program   acc += x[r] * y[r]                      out = sqrt(acc)
    hashed    acc = H(acc, M(h(1, r), h(2, r)))       out = S(acc)

Each float, and whatever is computed from floats, becomes the hash of the expression that it is, in 32 bits:
what is loaded from an input is a hash of its place, and arithmetic hashes its operands. So results tell how
each of them was computed, whatever was written out, copied, kept in memory for a while or done by another
thread. Programs of one kernel that leave the same hashes compute the same bits, but for one chance in 2**32
for each result.

The operands of a sum and of a product have no order, as those of floats have none, and the terms of a maximum
none at all. To add zero is nothing and a product with zero is zero, so that what lanes and rounds leave out
does not count. MULACC rounds once: it is another expression than a product that is added. What integers in
memory choose of two values has both in its hash: a zero that these integers choose here would hide what it is
multiplied with, and others choose the other value.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DTYPES_BY_NAME, DType, PtrDType, dtypes
from ..ir.args import NONTEMPORAL
from ..ir.linear import CLOSING, OPENING
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..renderer import ProgramSpec, Renderer

WORD = dtypes.uint32
#: (dtype, size) of each buffer
Memory = Sequence[tuple[str, int]]
#: (program, memory) → what it leaves in the buffers that it writes.
Run = Callable[[ProgramSpec, list[tuple[str, int]]], list[bytes]]

_HEAD = (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.SPECIAL, Ops.CONST)
_IN_LANES = ELEMENTWISE | {Ops.GEP, Ops.VECTORIZE, Ops.SHUFFLE}
#: Shifts and multipliers of a hash of 32 bits (C. Wellons, "Prospecting for Hash Functions", 2018).
_SCRAMBLING = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1))


class Unknown(Exception):
    """A step that no step on hashes stands for."""


def order_key(spec: ProgramSpec, renderer: Renderer, memory: Memory, run: Run) -> str:
    """The key of a program's float sums: programs of one kernel with equal keys compute equal bits.

    What hashes cannot say has the program's text as its key.
    """
    try:
        uops = hashed(spec.uops)
    except Unknown:
        return "text " + hashlib.sha256(spec.src.encode()).hexdigest()
    words = [(WORD.name if dtypes.is_float(DTYPES_BY_NAME[name]) else name, size) for name, size in memory]
    made = ProgramSpec.of(spec.name, renderer, uops, spec.applied_opts)
    return hashlib.sha256(b"".join(run(made, words))).hexdigest()


def hashed(program: Sequence[UOp]) -> list[UOp]:
    """The linear program (form 7) on hashes in the place of floats. Raises Unknown."""
    writer = _Writer(program)
    for step in program:
        writer.made[step] = writer.write(step)
    return [*writer.head, *writer.body]


def _tag(*what: Any) -> int:
    return zlib.crc32(repr(what).encode())


def _is_float(node: UOp) -> bool:
    dtype = node.dtype.base if isinstance(node.dtype, PtrDType) else node.dtype
    return dtypes.is_float(dtype.scalar_type)


def _from_floats(program: Sequence[UOp]) -> set[UOp]:
    """The steps that compute or hold floats, or what is computed from them."""
    found = {step for step in program if _is_float(step)}
    while True:
        more = set[UOp]()
        for step in program:
            if step.op in _IN_LANES or step.op is Ops.ASSIGN:
                if not found.isdisjoint(step.src):
                    more.update((step, step.src[0]) if step.op is Ops.ASSIGN else (step,))
            elif step.op is Ops.STORE and step.src[1] in found:
                more.update(n for n in (step.src[0].src[0],) if n.op is Ops.DEFINE_LOCAL)
            elif step.op is Ops.LOAD and step.src[0].src[0].op is Ops.DEFINE_LOCAL:
                more.update((step,) if step.src[0].src[0] in found else ())
        if more <= found:
            return found
        found |= more


def _from_loads(program: Sequence[UOp]) -> set[UOp]:
    """The steps that follow from what is loaded: which of two values they choose, memory decides."""
    found = set[UOp]()
    for _ in range(2):  # an accumulator is read before it is assigned
        for step in program:
            if step.op is Ops.LOAD or not found.isdisjoint(step.src):
                found.add(step)
                if step.op is Ops.ASSIGN:
                    found.add(step.src[0])
    return found


class _Writer:
    """The program so far. `made` has what stands for each step; for those without hashes, they themselves."""

    def __init__(self, program: Sequence[UOp]) -> None:
        self.hashes, self.loaded = _from_floats(program), _from_loads(program)
        self.stored = {s.src[0].src[0] for s in program if s.op is Ops.STORE}
        self.made: dict[UOp, UOp] = {}
        self.head: dict[UOp, None] = {}
        self.body: list[UOp] = []
        self.scopes: list[set[UOp]] = [set()]
        self.accumulators: dict[UOp, frozenset[UOp]] = {}  # that a step depends on
        self.changed: dict[UOp, int] = {}  # step or accumulator → where in the list it was written last

    # *** steps

    def write(self, step: UOp) -> UOp:
        op, is_hash = step.op, step in self.hashes
        if op in (Ops.FETCH, Ops.WMMA, Ops.DOT, Ops.PACK) or (
            op is Ops.STORE and step.arg not in (None, NONTEMPORAL)
        ):
            raise Unknown(f"{op} {step.arg}")
        if op in _HEAD:
            return self.declared(self.declaration(step) if is_hash else step)
        if op in (Ops.INDEX, Ops.PREFETCH, Ops.NOOP):
            return step  # an INDEX is written with what needs it
        if op is Ops.LOAD:
            return self.load(step)
        if op is Ops.STORE:
            return self.store(step)
        if is_hash and op in ELEMENTWISE:
            return self.arithmetic(step)
        if is_hash:  # what moves hashes
            return self.emit(op, self.dtype(step), *map(self.word, step.src), arg=step.arg)
        return self.emit(op, step.dtype, *map(self.plain, step.src), arg=step.arg)

    def dtype(self, step: UOp) -> DType:
        return WORD.vec(step.dtype.count) if step.dtype.count > 1 else WORD

    def declaration(self, step: UOp) -> UOp:
        if isinstance(step.dtype, PtrDType):
            return step.replace(dtype=WORD.ptr(step.dtype.size, step.dtype.local, step.dtype.role))
        several = isinstance(step.arg, tuple)
        words = tuple([_tag(number) if number else 0 for number in (step.arg if several else (step.arg,))])
        return UOp(Ops.CONST, self.dtype(step), (), words if several else words[0])

    def plain(self, step: UOp) -> UOp:
        """What stands for an integer or a bool that decides what the program does."""
        if step.op is Ops.RANGE:
            return step  # of which an accumulator tells before it is there
        if step in self.hashes and step.op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
            raise Unknown("floats say what is done")
        return self.made[step]

    def word(self, step: UOp) -> UOp:
        """The hash that stands for a value; an integer or a bool for itself."""
        if step in self.hashes or step.op is Ops.RANGE:
            return self.made.get(step, step)
        found = self.made[step]
        return found if found.dtype is self.dtype(step) else self.emit(Ops.CAST, self.dtype(step), found)

    def index(self, step: UOp) -> UOp:
        buffer, place, *valid = step.src
        made = self.made[buffer]
        return self.emit(
            Ops.INDEX, made.dtype, made, self.plain(place), *map(self.plain, valid), arg=step.arg
        )

    def store(self, step: UOp) -> UOp:
        index, value, *conditions = step.src
        made = self.made[value]
        if value in self.hashes and index.src[0] not in self.hashes:
            made = self.emit(Ops.CAST, value.dtype, made)
        return self.emit(Ops.STORE, step.dtype, self.index(index), made, *map(self.plain, conditions))

    def load(self, step: UOp) -> UOp:
        """Of an input the hash of the place, without memory; of what is written too, of what is there too."""
        index, *others = step.src
        buffer, place, *valid = index.src
        if step not in self.hashes:
            others = [self.plain(other) for other in others]
            return self.emit(Ops.LOAD, step.dtype, self.index(index), *others, arg=step.arg)
        dtype, others = self.dtype(step), [self.word(other) for other in others]
        there = None
        if buffer.op is Ops.DEFINE_LOCAL or buffer in self.stored:
            there = self.emit(Ops.LOAD, dtype, self.index(index), *others, arg=step.arg)
            if buffer.op is Ops.DEFINE_LOCAL:
                return there
        found = self.mixed(
            _tag("input", buffer.arg), [self.addresses(place, dtype), *([there] if there else [])]
        )
        if not valid:
            return found
        if valid[0] in self.loaded:
            return self.either(found, *others)
        condition = self.plain(valid[0])
        if condition.dtype.count != dtype.count:
            condition = self.emit(Ops.VECTORIZE, dtypes.bool.vec(dtype.count), *(condition,) * dtype.count)
        return self.emit(Ops.WHERE, dtype, condition, found, *others)

    def addresses(self, place: UOp, dtype: DType) -> UOp:
        """The addresses of a vector's lanes, as words."""
        place, count = self.plain(place), dtype.count
        if place.dtype.count != count:
            lanes = self.emit(Ops.VECTORIZE, place.dtype.vec(count), *(place,) * count)
            steps = self.declared(UOp(Ops.CONST, lanes.dtype, (), tuple(range(count))))
            place = self.emit(Ops.ADD, lanes.dtype, lanes, steps)
        return self.emit(Ops.CAST, dtype, place)

    # *** arithmetic

    def arithmetic(self, step: UOp) -> UOp:
        op, dtype = step.op, self.dtype(step)
        if op is Ops.WHERE and step.src[0] not in self.hashes:
            if step.src[0] in self.loaded:
                return self.either(*map(self.word, step.src[1:]))
            return self.emit(op, dtype, self.plain(step.src[0]), *map(self.word, step.src[1:]))
        src = [self.word(source) for source in step.src]
        if op is Ops.BITCAST:
            return src[0]
        if op is Ops.CAST:
            rounded = self.mixed(_tag(repr(step.dtype.scalar_type)), src)
            return self.emit(Ops.WHERE, dtype, self.equals(src[0], 0), src[0], rounded)
        if op not in _FLOATS or not _is_float(step):
            return self.mixed(_tag(op.name), src)
        if step.arg is not None:
            raise Unknown(f"{op} {step.arg}")
        return _FLOATS[op](self, *src)

    def either(self, *values: UOp) -> UOp:
        """What is chosen by what memory holds."""
        return self.mixed(_tag("either"), values)

    def negative(self, x: UOp) -> UOp:
        return self.emit(Ops.SUB, x.dtype, self.number(0, x.dtype), x)

    def difference(self, a: UOp, b: UOp) -> UOp:
        return self.sum(a, self.negative(b))

    def sum(self, a: UOp, b: UOp) -> UOp:
        both = self.mixed(_tag("sum"), [self.emit(Ops.ADD, a.dtype, a, b)])
        found = self.emit(Ops.WHERE, a.dtype, self.equals(b, 0), a, both)
        return self.emit(Ops.WHERE, a.dtype, self.equals(a, 0), b, found)

    def product(self, a: UOp, b: UOp) -> UOp:
        both = self.mixed(_tag("product"), [self.emit(Ops.ADD, a.dtype, a, b)])
        found = self.emit(Ops.WHERE, a.dtype, self.equals(b, 0), b, both)
        return self.emit(Ops.WHERE, a.dtype, self.equals(a, 0), a, found)

    def product_added(self, a: UOp, b: UOp, c: UOp) -> UOp:
        product = self.product(a, b)
        found = self.mixed(_tag("product added"), [product, c])
        found = self.emit(Ops.WHERE, a.dtype, self.equals(c, 0), product, found)
        return self.emit(Ops.WHERE, a.dtype, self.equals(product, 0), c, found)

    def greatest(self, a: UOp, b: UOp) -> UOp:
        return self.extreme(a, b, _tag(-math.inf))

    def least(self, a: UOp, b: UOp) -> UOp:
        return self.extreme(a, b, _tag(math.inf))

    def extreme(self, a: UOp, b: UOp, neutral: int) -> UOp:
        """The sum of words stands for one of them that is chosen: whichever comes first."""
        found = self.emit(Ops.ADD, a.dtype, a, b)
        found = self.emit(Ops.WHERE, a.dtype, self.equals(b, neutral), a, found)
        return self.emit(Ops.WHERE, a.dtype, self.equals(a, neutral), b, found)

    def mixed(self, tag: int, words: Sequence[UOp]) -> UOp:
        """The hash of words in their order."""
        found = self.number(tag, words[0].dtype)
        for word in words:
            found = self.emit(Ops.ADD, word.dtype, found, word)
            for shift, factor in _SCRAMBLING:
                high = self.emit(Ops.SHR, word.dtype, found, self.number(shift, word.dtype))
                found = self.emit(Ops.XOR, word.dtype, found, high)
                if factor != 1:
                    found = self.emit(Ops.MUL, word.dtype, found, self.number(factor, word.dtype))
        return found

    def equals(self, x: UOp, number: int) -> UOp:
        dtype = dtypes.bool.vec(x.dtype.count) if x.dtype.count > 1 else dtypes.bool
        return self.emit(Ops.CMPEQ, dtype, x, self.number(number, x.dtype))

    # *** the list

    def number(self, value: int, dtype: DType) -> UOp:
        arg = value if dtype.count == 1 else (value,) * dtype.count
        return self.declared(UOp(Ops.CONST, dtype, (), arg))

    def declared(self, node: UOp) -> UOp:
        self.head[node] = None
        return node

    def emit(self, op: Ops, dtype: DType, *src: UOp, arg: Any = None) -> UOp:
        """A step of the list, if it is not there yet."""
        node = UOp(op, dtype, src, arg)
        if any(node in scope for scope in self.scopes):
            if any(self.changed[each] > self.changed[node] for each in self.accumulators[node]):
                raise Unknown("what an accumulator was, again")
            return node
        self.changed[src[0] if op is Ops.ASSIGN else node] = len(self.body)
        if op in CLOSING:
            self.scopes.pop()
        elif op in _IN_LANES or op in (Ops.DEFINE_ACC, Ops.INDEX):
            self.scopes[-1].add(node)
            own = (node,) if op is Ops.DEFINE_ACC else ()
            self.accumulators[node] = frozenset(own).union(*(self.accumulators.get(s, ()) for s in src))
        self.body.append(node)
        if op in OPENING:
            self.scopes.append(set())
        return node


_FLOATS: dict[Ops, Callable[..., UOp]] = {
    Ops.ADD: _Writer.sum,
    Ops.SUB: _Writer.difference,
    Ops.MUL: _Writer.product,
    Ops.MULACC: _Writer.product_added,
    Ops.NEG: _Writer.negative,
    Ops.MAX: _Writer.greatest,
    Ops.MIN: _Writer.least,
}

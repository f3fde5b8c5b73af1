"""Vectors made and taken apart, and instructions that add up products of their lanes."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from .text import Text
from .types import constant_text, type_text

#: Of packed numbers of a type: what its sums of products are called, and how their factors are typed.
_DOTS = {
    dtypes.bfloat16: ("llvm.x86.avx512bf16.dpbf16ps", "bfloat"),
    dtypes.int16: ("llvm.x86.avx512.vpdpwssd", "i16"),
}


class Vectors(Text):
    """Lanes of any number; an instruction for sums of products has 4, 8 or 16."""

    def vectorize(self, node: UOp) -> None:
        kind, scalar = type_text(node.dtype), type_text(node.dtype.scalar_type)
        if all(s.op is Ops.CONST for s in node.src):
            lanes = tuple(s.arg for s in node.src)
            self.value[node] = constant_text(lanes, node.dtype)
            return
        first = node.src[0]
        if all(s is first for s in node.src):
            single = self.let("alu", f"insertelement {kind} poison, {scalar} {self.of(first)}, i32 0")
            zeros = f"<{node.dtype.count} x i32> zeroinitializer"
            self.value[node] = self.let("alu", f"shufflevector {kind} {single}, {kind} poison, {zeros}")
            return
        value = "poison"
        for lane, s in enumerate(node.src):
            value = self.let("alu", f"insertelement {kind} {value}, {scalar} {self.of(s)}, i32 {lane}")
        self.value[node] = value

    def lanes(self, node: UOp) -> None:
        source = self.typed(node.src[0])
        if node.src[0].dtype.count == 1:
            self.value[node] = self.of(node.src[0])
        elif len(node.arg) == 1:
            self.value[node] = self.let("alu", f"extractelement {source}, i32 {node.arg[0]}")
        else:
            mask = ", ".join(f"i32 {lane}" for lane in node.arg)
            poison = f"{type_text(node.src[0].dtype)} poison"
            text = f"shufflevector {source}, {poison}, <{len(node.arg)} x i32> <{mask}>"
            self.value[node] = self.let("alu", text)

    def dot(self, node: UOp) -> None:
        """Sums of products; lanes that are too few for the instruction's registers are filled up."""
        name, element = _DOTS[node.arg]
        total, count = node.dtype.scalar_type, node.dtype.count
        lanes = next(lanes for lanes in (4, 8, 16) if lanes >= count)
        first, second, before = (self._widened(self.of(s), s.dtype, lanes) for s in node.src)
        kind, word = type_text(total.vec(lanes)), type_text(node.src[0].dtype.scalar_type.vec(lanes))
        packed = f"<{2 * lanes} x {element}>"
        factors = [self.let("cast", f"bitcast {word} {value} to {packed}") for value in (first, second)]
        arguments = [(kind, before), *((packed, factor) for factor in factors)]
        made = self.call("alu", f"{name}.{32 * lanes}", kind, arguments)
        if count == 1:
            made = self.let("alu", f"extractelement {kind} {made}, i32 0")
        elif count < lanes:
            mask = ", ".join(f"i32 {lane}" for lane in range(count))
            made = self.let("alu", f"shufflevector {kind} {made}, {kind} poison, <{count} x i32> <{mask}>")
        self.value[node] = made

    def _widened(self, value: str, dtype: DType, lanes: int) -> str:
        """A value as the first of so many lanes; what is in the others does not matter."""
        if dtype.count == lanes:
            return value
        if dtype.count == 1:
            kind = type_text(dtype.vec(lanes))
            return self.let("alu", f"insertelement {kind} poison, {type_text(dtype)} {value}, i32 0")
        mask = ", ".join(f"i32 {lane}" if lane < dtype.count else "i32 poison" for lane in range(lanes))
        kind = type_text(dtype)
        return self.let("alu", f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{mask}>")

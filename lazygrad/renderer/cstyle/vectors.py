"""Conversions between types, vectors made and taken apart."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from .text import MASKS, Text


class Vectors(Text):
    """Floats to integers saturate; a vector bool is a mask."""

    def cast(self, node: UOp) -> str:
        source, target = node.src[0].dtype, node.dtype
        value = self.of(node.src[0])
        a, b = source.scalar_type, target.scalar_type
        count = target.count
        if a is b:
            return value
        if count > 1 and a is dtypes.bool:
            one = f"({self.as_mask(node.src[0], min(b.itemsize, 8))}&1)"
            if b is dtypes.float16:
                wider = f"__builtin_convertvector({one}, {self.type(dtypes.float32.vec(count))})"
                return f"__builtin_convertvector({wider}, {self.type(target)})"
            return f"__builtin_convertvector({one}, {self.type(target)})"
        if count > 1 and b is dtypes.bool:
            if a is dtypes.float16:
                value, a = self.wide(value, source), dtypes.float32
            self.mask[node] = a.itemsize
            return f"(({self.type(MASKS[a.itemsize].vec(count))})({value}!=({self.type(a.vec(count))}){{}}))"
        if a is dtypes.float64 and b is dtypes.float16:
            return self._convert(f"{self.functions.odd_float(count)}({value})", target)
        if a is dtypes.float16 and self.row.half_is_storage and b is not dtypes.float32:
            value, a = self.wide(value, source), dtypes.float32
        if dtypes.is_float(a) and dtypes.is_int(b):
            return f"{self.functions.saturate(a.vec(count), target)}({value})"
        if b is dtypes.float16 and self.row.half_is_storage and a is not dtypes.float32:
            value = self._convert(value, dtypes.float32.vec(count))
        return self._convert(value, target)

    def _convert(self, value: str, target: DType) -> str:
        if target.count > 1:
            return f"__builtin_convertvector({value}, {self.type(target)})"
        return f"(({self.type(target)})({value}))"

    def bitcast(self, node: UOp) -> str:
        source, target = node.src[0].dtype, node.dtype
        value = self.of(node.src[0])
        if dtypes.bool in (source.scalar_type, target.scalar_type):
            return self.cast(node)
        if target.count > 1:
            return f"(({self.type(target)}){value})"
        return self.functions.bitcast(source, target, value)

    def vectorize(self, node: UOp) -> str:
        dtype = node.dtype
        lanes = [self.of(s) for s in node.src]
        if dtype.scalar_type is dtypes.bool:
            self.mask[node] = 1
            masks = dtypes.int8.vec(dtype.count)
            return self.row.make_vector.format(
                type=self.type(masks), lanes=",".join(f"-{lane}" for lane in lanes)
            )
        return self.row.make_vector.format(type=self.type(dtype), lanes=",".join(lanes))

    def lanes(self, node: UOp) -> str:
        source = node.src[0]
        if source.dtype.count == 1:
            return self.of(source)
        if source.op is Ops.CONST:
            chosen = tuple(source.arg[lane] for lane in node.arg)
            self.of(node.const_like(chosen[0])) if len(chosen) == 1 else None
            return self.literal(chosen if len(chosen) > 1 else chosen[0], node.dtype)
        vector = self.of(source)
        if len(node.arg) == 1:
            text = self.row.lane.format(vector=vector, lane=node.arg[0], letter="xyzw"[node.arg[0] % 4])
            return f"({text}!=0)" if source in self.mask else text
        if source in self.mask:
            self.mask[node] = self.mask[source]
        if self.row.vectors:
            return f"__builtin_shufflevector({vector}, {vector}, {', '.join(map(str, node.arg))})"
        lanes = [self.row.lane.format(vector=vector, lane=n, letter="xyzw"[n % 4]) for n in node.arg]
        return self.row.make_vector.format(type=self.type(node.dtype), lanes=",".join(lanes))

"""Addresses, loads and stores, masked ones too; memory of a kernel's own."""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.expression import buffer_name
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..alignment import multiple_of
from ..names import variable_name
from ..scratch import DONE, MAX_STACK, SYMBOL
from .text import Text


class Memory(Text):
    """A vector is read at any element, where the language lets it be."""

    def index(self, node: UOp) -> str:
        buffer, position = node.src[0], node.src[1]
        return f"({self.of(buffer)}+{self.of(position)})"

    def access(self, index: UOp, dtype: DType) -> str:
        """What an INDEX addresses, as something to read or assign."""
        if dtype.count == 1:
            return f"*{self.of(index)}"
        pointer = index.src[0].dtype
        space = self.row.buffer
        if index.src[0].op is Ops.DEFINE_LOCAL:
            space = self.row.local_memory if isinstance(pointer, PtrDType) and pointer.local else ""
        kind = dtypes.int8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype
        return f"*(({space}{self.type(kind)}*)({self.of(index)}))"

    def read(self, index: UOp, dtype: DType) -> str:
        """What an INDEX addresses, as a value."""
        if dtype.count > 1 and self.row.load:
            return self.row.load.format(pointer=self.of(index), lanes=dtype.count)
        if self.in_lanes(index, dtype):
            lanes = ",".join(f"{self.of(index)}[{lane}]" for lane in range(dtype.count))
            return self.row.make_vector.format(type=self.type(dtype), lanes=lanes)
        return self.access(index, dtype)

    def in_lanes(self, index: UOp, dtype: DType) -> bool:
        """Whether a vector is read and written lane by lane: its place may be no multiple of its size."""
        if dtype.count == 1 or not self.row.aligned:
            return False
        return index.src[0].op is not Ops.DEFINE_GLOBAL or multiple_of(index.src[1]) % dtype.count != 0

    def load(self, node: UOp) -> None:
        index, dtype = node.src[0], node.dtype
        flags = dtype.scalar_type is dtypes.bool and dtype.count > 1  # bytes of 0 and 1, to become a mask
        if flags:
            self.mask[node] = 1
        if len(index.src) < 3:
            text = self.read(index, dtype)
            text = f"(-{text})" if flags else text
        else:
            valid = index.src[2]
            other = self._other(node)
            if valid.dtype.count > 1:
                self.of(valid)
                kind = dtypes.int8.vec(dtype.count) if flags else dtype
                mask = self.as_mask(valid, kind.scalar_type.itemsize)
                pointer = f"({self.type(kind.scalar_type)}*){self.of(index)}"
                called = f"{self.functions.masked_load(kind)}({pointer},{mask},"
                text = f"(-{called}(-{other})))" if flags else f"{called}{other})"
            else:
                read = self.read(index, dtype)
                text = f"({self.of(valid)}?{f'(-{read})' if flags else read}:{other})"
        self.value[node] = text
        for s in (*node.src, *index.src):
            self.waiting.pop(s, None)
        self.declare(node, "val")

    def _other(self, node: UOp) -> str:
        """What a masked-out element is."""
        if len(node.src) > 1:
            other = self.of(node.src[1])
            return self.as_mask(node.src[1], 1) if node in self.mask else other
        if node.dtype.count == 1:
            return self.literal(0.0 if dtypes.is_float(node.dtype) else 0, node.dtype)
        return self.row.make_vector.format(type=self.type_of(node), lanes=",".join(["0"] * node.dtype.count))

    def store(self, node: UOp) -> None:
        index, value = node.src
        dtype = value.dtype
        text = self.of(value)
        flags = dtype.scalar_type is dtypes.bool and dtype.count > 1
        if flags:
            text = f"({self.as_mask(value, 1)}&1)"
        if self.in_lanes(index, dtype):
            name = text
            if not text.isidentifier():
                name = self.names.fresh("alu")
                self.line(f"{self.type(dtype)} {name} = {text};")
            lanes = [self.row.lane.format(vector=name, lane=n, letter="xyzw"[n]) for n in range(dtype.count)]
            stored = "; ".join(f"{self.of(index)}[{n}] = {lane}" for n, lane in enumerate(lanes))
        elif node in self.nontemporal:
            kind = dtypes.int8.vec(dtype.count) if flags else dtype
            name = self.functions.nontemporal_store(kind, self.target.past_caches)
            stored = f"{name}({self.of(index)},{text})"
        elif dtype.count > 1 and self.row.store:
            stored = self.row.store.format(value=text, pointer=self.of(index), lanes=dtype.count)
        else:
            stored = f"{self.access(index, dtype)} = {text}"
        if len(index.src) < 3:
            self.line(f"{stored};")
        elif index.src[2].dtype.count > 1:
            kind = dtypes.int8.vec(dtype.count) if flags else dtype
            self.of(index.src[2])
            mask = self.as_mask(index.src[2], kind.scalar_type.itemsize)
            name = self.functions.masked_store(kind)
            self.line(f"{name}(({self.type(kind.scalar_type)}*){self.of(index)},{mask},{text});")
        else:
            self.line(f"if ({self.of(index.src[2])}) {{ {stored}; }}")
        for s in (*node.src, *index.src):
            self.waiting.pop(s, None)

    def define_global(self, node: UOp) -> None:
        self.value[node] = buffer_name(node)

    def define_var(self, node: UOp) -> None:
        self.value[node] = variable_name(node.arg[0])

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        name = f"temp{node.arg}" if isinstance(node.arg, int) else self.names.fresh("temp")
        self.value[node] = name
        kind, nbytes = self.type(node.dtype.base), node.dtype.size * node.dtype.base.itemsize
        if self.row.entry and nbytes > MAX_STACK:
            self.line(f"{kind}*{self.row.restrict} {name} = ({kind}*)(scratch+{self.scratch});")
            self.scratch += -(-nbytes // 64) * 64
            return
        aligned = " __attribute__((aligned(64)))" if self.row.vectors else ""
        qualifier = self.row.local_memory if node.dtype.local else ""
        self.line(f"{qualifier}{kind} {name}[{node.dtype.size}]{aligned};")

    def taken_scratch(self) -> list[str]:
        """What takes the memory of all large tiles at once; the calling thread keeps it."""
        if not self.scratch:
            return []
        self.functions.texts["scratch"] = f"void* (*{SYMBOL})(unsigned long);\nvoid (*{DONE})(void*);"
        return [f"  char* scratch = {SYMBOL}({self.scratch});"]

    def given_scratch(self) -> list[str]:
        """What says that the kernel no longer uses it."""
        return [f"  {DONE}(scratch);"] if self.scratch else []

"""Addresses, loads and stores, masked ones too; local memory."""

from __future__ import annotations

from ...dtype import DType, PtrDType, dtypes
from ...ir.expression import buffer_name
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..names import variable_name
from ..scratch import DONE, MAX_STACK, SYMBOL
from .places import is_apart, is_start_elsewhere
from .text import Text
from .types import mangled, memory_type, type_text, zero

#: So many stores past the caches share a test of where their buffer begins: their values wait in registers.
TOGETHER = 8


class Memory(Text):
    """A bool is a byte in memory; every access promises the alignment of an element."""

    def address(self, node: UOp, index: str | None = None) -> str:
        """The address that an INDEX names. `inbounds` only where it is always valid.

        Places that are a constant apart share an address: LLVM then writes the constants into the accesses.
        """
        buffer, position = node.src[0], node.src[1]
        element, kind = memory_type(buffer.dtype.base), type_text(position.dtype)
        if index is None and is_apart(position):
            base, apart = position.src
            key = (self.block, buffer, base)
            if key not in self.shared:
                at = f"{kind} {self.of(base)}"
                text = f"getelementptr {element}, ptr {self.of(buffer)}, {at}"
                self.shared[key] = self.let("ptr", text)
            return self.let("ptr", f"getelementptr {element}, ptr {self.shared[key]}, i64 {apart.arg}")
        key = (self.block, buffer, position)
        if index is None and key in self.shared:
            return self.shared[key]
        flags = " inbounds" if len(node.src) < 3 or index is not None else ""
        place = index or self.of(position)
        if dtypes.is_unsigned(position.dtype) and position.dtype.itemsize < 8:
            place, kind = self.let("alu", f"zext {kind} {place} to i64"), "i64"
        made = self.let("ptr", f"getelementptr{flags} {element}, ptr {self.of(buffer)}, {kind} {place}")
        return made if index is not None else self.shared.setdefault(key, made)

    def index(self, node: UOp) -> None:
        """Written where it is used: a masked load may want another address."""

    def load(self, node: UOp) -> None:
        index, dtype = node.src[0], node.dtype
        if index.op is not Ops.INDEX:
            raise NotImplementedError(f"a LOAD reads an INDEX, not a {index.op}")
        if len(index.src) < 3:
            self.value[node] = self._load(dtype, self.address(index))
            return
        valid = index.src[2]
        other = self.of(node.src[1]) if len(node.src) > 1 else zero(dtype)
        if valid.dtype.count > 1:
            self.value[node] = self._masked_load(node, other)
            return
        size = index.src[0].dtype.size if isinstance(index.src[0].dtype, PtrDType) else -1
        if size >= dtype.count:  # the buffer's start can always be read, and that needs no branch
            safe = self.of(index.src[1])
            if not is_start_elsewhere(index.src[1], valid):
                kind = type_text(index.src[1].dtype)
                safe = self.let("alu", f"select i1 {self.of(valid)}, {kind} {safe}, {kind} 0")
            loaded = self._load(dtype, self.address(index, safe))
            self.value[node] = self.let("val", self.select(self.of(valid), dtype, loaded, other, False))
            return
        before, inside, after = self.block, self.names.fresh("load"), self.names.fresh("loaded")
        self.emit(f"br i1 {self.of(valid)}, label %{inside}, label %{after}")
        self.label(inside)
        loaded = self._load(dtype, self.address(index))
        self.emit(f"br label %{after}")
        self.label(after)
        self.value[node] = self.let(
            "val", f"phi {type_text(dtype)} [ {other}, %{before} ], [ {loaded}, %{inside} ]"
        )

    def _load(self, dtype: DType, address: str) -> str:
        align = dtype.scalar_type.itemsize
        value = self.let("val", f"load {memory_type(dtype)}, ptr {address}, align {align}")
        return self._from_memory(value, dtype)

    def _from_memory(self, value: str, dtype: DType) -> str:
        if dtype.scalar_type is not dtypes.bool:
            return value
        return self.let("val", f"icmp ne {memory_type(dtype)} {value}, zeroinitializer")

    def _to_memory(self, value: str, dtype: DType) -> str:
        if dtype.scalar_type is not dtypes.bool:
            return value
        return self.let("cast", f"zext {type_text(dtype)} {value} to {memory_type(dtype)}")

    def _masked_load(self, node: UOp, other: str) -> str:
        index, dtype = node.src[0], node.dtype
        kind, align = memory_type(dtype), dtype.scalar_type.itemsize
        arguments = [
            ("ptr", self.address(index)), ("i32", str(align)),
            (type_text(index.src[2].dtype), self.of(index.src[2])), (kind, self._to_memory(other, dtype)),
        ]  # fmt: skip
        value = self.call("val", f"llvm.masked.load.{mangled(dtype, memory=True)}.p0", kind, arguments)
        return self._from_memory(value, dtype)

    def store(self, node: UOp) -> None:
        index, value = node.src
        dtype = value.dtype
        kind, align = memory_type(dtype), dtype.scalar_type.itemsize
        stored = self._to_memory(self.of(value), dtype)
        if node in self.nontemporal:
            buffer = index.src[0]
            if len(self.waiting) == TOGETHER or (self.waiting and self.waiting[0][0] is not buffer):
                self.store_past_caches()
            self.waiting.append((buffer, f"{kind} {stored}, ptr {self.address(index)}", align))
            return
        if len(index.src) < 3:
            self.emit(f"store {kind} {stored}, ptr {self.address(index)}, align {align}")
            return
        valid = index.src[2]
        lane = _only_lane(valid)
        if lane is not None:
            element, kind = kind, memory_type(dtype.scalar_type)
            one = self.let("alu", f"extractelement {element} {stored}, i32 {lane}")
            place = self.let("ptr", f"getelementptr {kind}, ptr {self.address(index)}, i64 {lane}")
            self.emit(f"store {kind} {one}, ptr {place}, align {align}")
            return
        if valid.dtype.count > 1:
            arguments = [
                (kind, stored), ("ptr", self.address(index)), ("i32", str(align)),
                (type_text(valid.dtype), self.of(valid)),
            ]  # fmt: skip
            name = f"llvm.masked.store.{mangled(dtype, memory=True)}.p0"
            self.declare(name, "void", arguments)
            self.emit(f"call void @{name}({', '.join(f'{t} {v}' for t, v in arguments)})")
            return
        inside, after = self.names.fresh("store"), self.names.fresh("stored")
        self.emit(f"br i1 {self.of(valid)}, label %{inside}, label %{after}")
        self.label(inside)
        self.emit(f"store {kind} {stored}, ptr {self.address(index)}, align {align}")
        self.emit(f"br label %{after}")
        self.label(after)

    def store_past_caches(self) -> None:
        """Write the stores that wait: past the caches if their buffer begins where a line of memory does."""
        if not self.waiting:
            return
        buffer, line = self.waiting[0][0], self.target.past_caches
        past, ordinary, after = (self.names.fresh(name) for name in ("past", "ordinary", "stored"))
        self.emit(f"br i1 {self._begins_with_a_line(buffer)}, label %{past}, label %{ordinary}")
        self.label(past)
        for _, what, _ in self.waiting:
            self.emit(f"store {what}, align {line}, !nontemporal !0")
        self.emit(f"br label %{after}")
        self.label(ordinary)
        for _, what, align in self.waiting:
            self.emit(f"store {what}, align {align}")
        self.emit(f"br label %{after}")
        self.label(after)
        self.waiting.clear()

    def _begins_with_a_line(self, buffer: UOp) -> str:
        """Whether it does, found out at the kernel's start."""
        name = f"%aligned{buffer.arg}"
        if not any(line.startswith(f"  {name} ") for line in self.allocas):
            data, low = self.of(buffer), self.target.past_caches - 1
            self.allocas += [
                f"  %begin{buffer.arg} = ptrtoint ptr {data} to i64",
                f"  %beyond{buffer.arg} = and i64 %begin{buffer.arg}, {low}",
                f"  {name} = icmp eq i64 %beyond{buffer.arg}, 0",
            ]
        return name

    def metadata(self) -> list[str]:
        """What `!nontemporal` names."""
        return ["!0 = !{i32 1}"] if self.nontemporal else []

    def define_global(self, node: UOp) -> None:
        self.value[node] = "%" + buffer_name(node)

    def define_var(self, node: UOp) -> None:
        self.value[node] = "%" + variable_name(node.arg[0])

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        base, size = node.dtype.base, node.dtype.size
        if size * base.itemsize > MAX_STACK:
            self.value[node] = self._scratch(-(-size * base.itemsize // 64) * 64)
            return
        name = "%" + self.names.fresh("temp")
        self.allocas.append(f"  {name} = alloca [{size} x {memory_type(base)}], align 64")
        self.value[node] = name

    def _scratch(self, nbytes: int) -> str:
        """Memory that the calling thread keeps, the next so many bytes of it."""
        name = "%" + self.names.fresh("temp")
        self.scratch.append((name, nbytes))
        return name

    def taken_scratch(self) -> list[str]:
        """What takes the memory of all tiles at once."""
        if not self.scratch:
            return []
        self.declared[f"declare noalias ptr @{SYMBOL}(i64)"] = None
        total, begin = sum(nbytes for _, nbytes in self.scratch), 0
        lines = [f"  %scratch = call noalias ptr @{SYMBOL}(i64 {total})"]
        for name, nbytes in self.scratch:
            lines.append(f"  {name} = getelementptr inbounds i8, ptr %scratch, i64 {begin}")
            begin += nbytes
        return lines

    def given_scratch(self) -> list[str]:
        """What says that the kernel no longer uses it."""
        if not self.scratch:
            return []
        self.declared[f"declare void @{DONE}(ptr)"] = None
        return [f"  call void @{DONE}(ptr %scratch)"]


def _only_lane(mask: UOp) -> int | None:
    """The lane of a mask in which alone it holds; None where there are others, or it is no constant.

    LLVM 22 makes a masked store of one lane a store of a scalar, and forgets there that its value was
    truncated: a byte is written as four, three of them beside it. So such a store is written without a mask.
    """
    lanes = [n for n, holds in enumerate(mask.arg) if holds] if isinstance(mask.arg, tuple) else []
    return lanes[0] if mask.op is Ops.CONST and len(lanes) == 1 else None

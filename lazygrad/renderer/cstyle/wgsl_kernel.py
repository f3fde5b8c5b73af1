"""One kernel as a module of WGSL: what it is given, the functions it calls, and the function itself."""

from __future__ import annotations

from ...dtype import ConstType, DType, PtrDType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..texts import variable_name, write
from . import wgsl_wide
from .text import Text
from .wgsl import IN_WORDS, TYPES, groups_of, in_range, literal


class Module(Text):
    """Binding 0 has the arguments that are numbers, the buffers follow.

    All buffers are bound to be written: one that is read may be part of one that is stored, and WebGPU has
    a buffer in one role at a time.
    """

    def literal(self, value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
        assert not isinstance(value, tuple)
        return wgsl_wide.literal(value) if wgsl_wide.is_pair(self, dtype) else literal(value, dtype)

    def type(self, dtype: DType) -> str:
        if dtype not in self.target.native_dtypes:
            raise NotImplementedError(
                f"{self.name}: {dtype.name} on a device that has none ({self.target.name}); compute on CPU"
            )
        return super().type(dtype)

    def text(self) -> str:
        write(self.uops, self.row.rows, self, "WGSL")
        stored = {u.src[0].src[0] for u in self.uops if u.op is Ops.STORE}
        loaded = {u.src[0].src[0] for u in self.uops if u.op is Ops.LOAD}
        members = ["ZERO: u32", *(f"SKIP{n}: u32" for n in range(len(self.buffers)))]
        members += [f"{variable_name(v.arg[0])}: {self.type(v.dtype)}" for v in self.variables]
        lines = [
            f"struct Arguments {{ {', '.join(members)} }}",
            "@group(0) @binding(0) var<uniform> at: Arguments;",
        ]
        functions: list[str] = []
        for number, buffer in enumerate(self.buffers, 1):
            element, name = _element(buffer), self.value[buffer]
            shared = element in IN_WORDS
            held = "u32" if shared else self.type(element)
            held = "atomic<u32>" if shared and buffer in stored else held
            lines.append(
                f"@group(0) @binding({number}) var<storage, read_write> {name}: array<{held}>; "
                f"/* {element.itemsize} */"
            )
            if shared and buffer in loaded:
                functions.append(_load(name, element, buffer in stored))
            if shared and buffer in stored:
                functions.append(_store(name, element))
        threads = ", ".join(map(str, groups_of(self.uops, "lidx")))
        head = [
            f"@compute @workgroup_size({threads}) fn {entry_name(self.name)}(",
            "    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {",
        ]
        own = [*self.functions.typedefs, *self.functions.texts.values()]
        return "\n".join([*lines, *own, *functions, *head, *self.lines, "}"])


def entry_name(name: str) -> str:
    """What a kernel's function is called: a name that means something in the text gets an underscore."""
    return variable_name(name) if name.islower() else name


def _element(buffer: UOp) -> DType:
    assert isinstance(buffer.dtype, PtrDType)
    return buffer.dtype.base


def _word_and_shift(element: DType) -> tuple[str, str]:
    """In which word an element is, and at which of its bits."""
    if element.itemsize == 1:
        return "place>>2u", "(place&3u)<<3u"
    return "place>>1u", "(place&1u)<<4u"


def _load(name: str, element: DType, atomic: bool) -> str:
    word, bit = _word_and_shift(element)
    held = f"atomicLoad(&{name}[{word}])" if atomic else f"{name}[{word}]"
    bits = f"({held}>>({bit}))"
    if element is dtypes.bool:
        found = f"({bits}&255u)!=0u"
    elif dtypes.is_unsigned(element):
        found = in_range(bits, element)
    else:
        found = in_range(f"bitcast<i32>({bits})", element)
    return f"fn load_{name}(place: u32) -> {TYPES[element]} {{ return {found}; }}"


def _store(name: str, element: DType) -> str:
    """Others may store to the same word meanwhile: then again."""
    word, bit = _word_and_shift(element)
    return "\n".join([
        f"fn store_{name}(place: u32, value: {TYPES[element]}) {{",
        "  loop {",
        f"    let old = atomicLoad(&{name}[{word}]);",
        f"    let changed = insertBits(old, u32(value), {bit}, {8 * element.itemsize}u);",
        f"    if (atomicCompareExchangeWeak(&{name}[{word}], old, changed).exchanged) {{ break; }}",
        "  }",
        "}",
    ])  # fmt: skip

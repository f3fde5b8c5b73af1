"""Products of matrices in CUDA, by functions of their own: PTX's `mma` by the threads of a warp, and `wgmma`
by those of four warps, which reads both factors from shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.uop import UOp
from ...target import PackedTile, Target, TensorCore
from ..alignment import reads_packed
from .dialect import Dialect
from .kernel import Kernel
from .parentheses import without_parentheses
from .text import Text

#: The type of the factors → its name in PTX.
_NAMES = {
    dtypes.float32: "tf32", dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.fp8e4m3: "e4m3",
    dtypes.fp8e5m2: "e5m2", dtypes.int8: "s8", dtypes.uint8: "u8",
}  # fmt: skip


class CUDAKernel(Kernel):
    """A kernel whose threads may load matrices together.

    loaded    (where a thread's row begins, how) → the names of the words it got
    """

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp], target: Target) -> None:
        super().__init__(dialect, name, uops, target)
        self.loaded: dict[tuple[UOp, int, bool], list[str]] = {}

    def load(self, place: UOp, count: int, turned: bool) -> list[str]:
        """The words of so many matrices, each loaded once until threads may have written others there."""
        key = (place, count, turned)
        if key not in self.loaded:
            name = f"ldmatrix_{count}{'_turned' if turned else ''}"
            kind, words = self.type(dtypes.uint32), [f"w{n}" for n in range(count)]
            lists = ",".join(f"%{n}" for n in range(count))
            text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if turned else ''}.shared.b16"
            outputs = ",".join(f'"=r"({word})' for word in words)
            address = '"r"((unsigned int)__cvta_generic_to_shared(at))'
            body = f'asm volatile("{text} {{{lists}}},[%{count}];" : {outputs} : {address} : "memory");'
            parameters = ", ".join([*(f"{kind}& {word}" for word in words), "const void* at"])
            self.functions.texts.setdefault(
                name, f"{self.row.function} void {name}({parameters}) {{ {body} }}"
            )
            names = self.loaded[key] = [self.names.fresh("val") for _ in words]
            self.line(f"{kind} {','.join(names)};")
            self.line(f"{name}({','.join(names)},{without_parentheses(self.of(place))});")
        return self.loaded[key]


def forgets(ctx: CUDAKernel, node: UOp) -> None:
    """At a barrier, loop or branch nothing is taken for loaded: the memory may hold something else there."""
    ctx.loaded.clear()


def matrices(ctx: CUDAKernel, node: UOp) -> str:
    """Calls that add to the sums of this thread."""
    core: TensorCore = node.arg
    sums, factors = node.src[: core.sums], node.src[core.sums :]
    panels = [panel for panel in core.tiles if panel is not None] if core.columns else []
    given = [_matrix(ctx, *each) for each in zip(factors, panels, strict=False)]
    words = [ctx.of(word) for word in factors]
    if core.turned is not None:
        counts = (2 * core.halves, core.halves)
        found = [ctx.load(*each) for each in zip(factors, counts, core.turned, strict=True)]
        words = [word for part in found for word in part]
    for factor in factors:
        for part in (factor, *factor.src) if core.columns else (factor,):
            ctx.waiting.pop(part, None)
    ctx.settle(sums)
    own = [ctx.of(acc) for acc in sums]
    if core.columns and core.turned is None:
        return f"{_group_function(ctx, core)}({','.join([*own, *given])});"
    calls = []
    rows, columns = words[: 2 * core.halves], words[2 * core.halves :]
    halves = core.at_once // (4 * core.packed)  # of one instruction
    for half in range(0, core.halves, halves):
        now = rows[2 * half : 2 * (half + halves)] + columns[half : half + halves]
        calls.append(f"{_function(ctx, core)}({','.join([*own, *now])});")
    return " ".join(calls)


def _function(ctx: Text, core: TensorCore) -> str:
    """The name of the function of one instruction of a warp."""
    name = f"mma_{core.element.name.replace(' ', '_')}_{core.at_once}"
    if name in ctx.functions.texts:
        return name
    halves = core.at_once // (4 * core.packed)
    kind, total = _NAMES[core.element], "s32" if dtypes.is_int(core.total) else "f32"
    rows, columns = 2 * halves, halves
    words = [f"a{n}" for n in range(rows)] + [f"b{n}" for n in range(columns)]
    numbers = [f"%{n}" for n in range(4 + len(words))]
    sums, left, right = numbers[:4], numbers[4 : 4 + rows], numbers[4 + rows :]
    lists = ",".join("{" + ",".join(part) + "}" for part in (sums, left, right, sums))
    shape = f"m16n8k{core.at_once}.row.col.{total}.{kind}.{kind}.{total}"
    letter = "r" if dtypes.is_int(core.total) else "f"
    outputs = ",".join(f'"+{letter}"(c{n})' for n in range(4))
    inputs = ",".join(f'"r"({word})' for word in words)
    parameters = [f"{ctx.type(core.total)}& c{n}" for n in range(4)]
    parameters += [f"{ctx.type(dtypes.uint32)} {word}" for word in words]
    body = f'asm volatile("mma.sync.aligned.{shape} {lists};" : {outputs} : {inputs});'
    ctx.functions.texts[name] = f"{ctx.row.function} void {name}({', '.join(parameters)}) {{ {body} }}"
    return name


# *** of four warps


def meet(ctx: CUDAKernel, node: UOp) -> str:
    """A barrier. `wgmma` goes to memory by another proxy: before it reads what threads have stored, they say
    that it may ("Async proxy", PTX ISA).
    """
    forgets(ctx, node)
    if any(map(reads_packed, ctx.uops)):
        body = 'asm volatile("fence.proxy.async.shared::cta;" : : : "memory");'
        ctx.functions.texts["wgmma_shared"] = f"{ctx.row.function} void wgmma_shared() {{ {body} }}"
        ctx.line("wgmma_shared();")
    return "__syncthreads();"


def _matrix(ctx: Text, place: UOp, panel: PackedTile) -> str:
    """A descriptor ("Matrix Descriptor", PTX ISA): where a matrix begins, and the form of its panels."""
    address = "((unsigned long long)__cvta_generic_to_shared(at)&0x3ffff)>>4"
    ctx.functions.texts["matrix_at"] = (
        f"{ctx.row.function} unsigned long long matrix_at(const void* at, unsigned long long form) "
        f"{{ return form|({address}); }}"
    )
    return f"matrix_at({without_parentheses(ctx.of(place))},{panel.form:#x}ull)"


def _group_function(ctx: Text, core: TensorCore) -> str:
    """The name of the function that multiplies all steps of a turn, and waits for the sums."""
    panels = [panel for panel in core.tiles if panel is not None]
    turned = [not panel.along_steps for panel in panels]
    orders = "".join("t" if each else "n" for each in turned)
    name = f"wgmma_{core.element.name.replace(' ', '_')}_{core.steps}_{core.columns}_{orders}"
    if name in ctx.functions.texts:
        return name
    whole = dtypes.is_int(core.total)
    kind, total = _NAMES[core.element], "s32" if whole else "f32"
    sums = [f"c{n}" for n in range(core.sums)]
    numbers = ",".join(f"%{n}" for n in range(core.sums))
    outputs = ",".join(f'"+{"r" if whole else "f"}"({each})' for each in sums)
    scales = "" if whole else ",1,1"  # of both factors
    orders = "".join(f",{int(each)}" for each in turned) if core.element.itemsize == 2 else ""
    shape = f"m64n{core.columns}k{core.at_once}.{total}.{kind}.{kind}"
    given = f"%{core.sums},%{core.sums + 1},p{scales}{orders}"  # p: it adds to the sums
    product = f"wgmma.mma_async.sync.aligned.{shape} {{{numbers}}},{given};"
    text = f"{{.reg .pred p; setp.eq.b32 p,1,1; {product}}}"
    lines = ['asm volatile("wgmma.fence.sync.aligned;" : : : "memory");']
    for step in range(0, core.steps, core.at_once):
        places = [
            f'"l"({side}{f"+{panel.after(step) // 16}" if step else ""})'
            for side, panel in zip("ab", panels, strict=True)
        ]
        lines.append(f'asm volatile("{text}" : {outputs} : {",".join(places)} : "memory");')
    lines.append('asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");')
    lines.append(f'asm volatile("wgmma.wait_group.sync.aligned 0;" : {outputs} : : "memory");')
    parameters = [f"{ctx.type(core.total)}& {each}" for each in sums]
    parameters += [f"unsigned long long {side}" for side in "ab"]
    body = "\n  ".join(lines)
    ctx.functions.texts[name] = f"{ctx.row.function} void {name}({', '.join(parameters)}) {{\n  {body}\n}}"
    return name

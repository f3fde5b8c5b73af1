"""Products of matrices by the threads of a warp, in CUDA: PTX's `mma` in a function of its own."""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.uop import UOp
from ...target import TensorCore
from .text import Text

#: The type of the factors → its name in PTX.
_NAMES = {
    dtypes.float32: "tf32", dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.fp8e4m3: "e4m3",
    dtypes.fp8e5m2: "e5m2", dtypes.int8: "s8", dtypes.uint8: "u8",
}  # fmt: skip


def matrices(ctx: Text, node: UOp) -> str:
    """A call that adds to the four sums of this thread."""
    core: TensorCore = node.arg
    name = f"mma_{core.element.name.replace(' ', '_')}_{core.steps}"
    if name not in ctx.functions.texts:
        ctx.functions.texts[name] = _function(ctx, name, core)
    arguments = ",".join(ctx.of(source) for source in node.src)
    for word in node.src[node.arg.sums :]:
        ctx.waiting.pop(word, None)
    ctx.settle(node.src[: node.arg.sums])
    return f"{name}({arguments});"


def _function(ctx: Text, name: str, core: TensorCore) -> str:
    kind, total = _NAMES[core.element], "s32" if dtypes.is_int(core.total) else "f32"
    rows, columns = 2 * core.halves, core.halves
    words = [f"a{n}" for n in range(rows)] + [f"b{n}" for n in range(columns)]
    numbers = [f"%{n}" for n in range(4 + len(words))]
    sums, left, right = numbers[:4], numbers[4 : 4 + rows], numbers[4 + rows :]
    lists = ",".join("{" + ",".join(part) + "}" for part in (sums, left, right, sums))
    shape = f"m16n8k{core.steps}.row.col.{total}.{kind}.{kind}.{total}"
    letter = "r" if dtypes.is_int(core.total) else "f"
    outputs = ",".join(f'"+{letter}"(c{n})' for n in range(4))
    inputs = ",".join(f'"r"({word})' for word in words)
    parameters = [f"{ctx.type(core.total)}& c{n}" for n in range(4)]
    parameters += [f"{ctx.type(dtypes.uint32)} {word}" for word in words]
    body = f'asm volatile("mma.sync.aligned.{shape} {lists};" : {outputs} : {inputs});'
    return f"{ctx.row.function} void {name}({', '.join(parameters)}) {{ {body} }}"

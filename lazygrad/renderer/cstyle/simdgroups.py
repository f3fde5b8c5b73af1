"""Products of matrices by the threads of a SIMD-group, in Metal ("SIMD-Group Matrix Functions", Apple's
"Metal Shading Language Specification").

Which thread holds which element of such a matrix, Metal does not say. So what threads hold (as
`gpu/moves/warp_matrices.py` tells) goes through local memory: each factor once where it is loaded,
sums once, after the last loop that adds to them. In between they are matrices of 8 x 8.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.linear import CLOSING, OPENING
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target, TensorCore
from .dialect import Dialect
from .kernel import Kernel

_WARP, _SIDE = 32, 8
_MEET = "simdgroup_barrier(mem_flags::mem_threadgroup);"
#: The sums of a thread that a WMMA adds to: two of the first matrix, two of the second.
Sums = tuple[UOp, ...]


class MetalKernel(Kernel):
    """A kernel that may multiply matrices.

    sums_of   accumulator → the sums that it is one of
    matrices  sums → the names of the two matrices
    ends      the node after which threads take sums out of matrices → those sums
    loaded    words of a factor → its matrix, as long as the loop or branch is the same
    """

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp], target: Target) -> None:
        super().__init__(dialect, name, uops, target)
        self.ends = _ends(uops)
        self.sums_of = {acc: sums for listed in self.ends.values() for sums in listed for acc in sums}
        self.matrices: dict[Sums, tuple[str, str]] = {}
        self.loaded: dict[tuple[Sequence[UOp], bool], str] = {}

    def opening(self) -> list[str]:
        """The memory of the SIMD-groups, and a thread's place among them."""
        if not self.ends:
            return super().opening()
        sizes = {u.arg[0]: u.arg[1] for u in self.uops if u.op is Ops.SPECIAL}
        x, y, z = (sizes.get(f"lidx{n}", 1) for n in range(3))
        elements = _SIDE * _SIDE * (x * y * z // _WARP)
        kinds = {self.type(u.arg.element) for u in self.uops if u.op is Ops.WMMA} | {
            self.type(dtypes.float32)
        }
        lines = [f"uint simd_thread = lid.x+{x}u*lid.y+{x * y}u*lid.z, simd_lane = simd_thread%{_WARP}u;"]
        for kind in sorted(kinds):
            lines.append(f"threadgroup {kind} simd_{kind}_memory[{elements}];")
            own = f"simd_{kind}_memory+{_SIDE * _SIDE}u*(simd_thread/{_WARP}u)"
            lines.append(f"threadgroup {kind}* simd_{kind} = {own};")
        return ["  " + line for line in lines] + super().opening()

    def factor(self, core: TensorCore, words: Sequence[UOp], columns: bool) -> str:
        """The matrix of the words that the threads hold; of columns, each has its steps in a row."""
        key = (tuple(words), columns)
        if key not in self.loaded:
            kind = self.type(core.element)
            self.functions.texts.setdefault(f"simd_{kind}", _loads(kind, core))
            given = ", ".join(self.of(word) for word in words)
            for word in words:
                self.waiting.pop(word, None)
            name = self.loaded[key] = self.names.fresh("simd_factor")
            call = f"simd_matrix(simd_{kind}, simd_lane, {given}, {str(columns).lower()})"
            self.line(f"simdgroup_{kind}8x8 {name} = {call};")
        return self.loaded[key]

    def take(self, node: UOp) -> None:
        """Have the threads take what is complete after a node."""
        for sums in self.ends.get(node, ()):
            self.functions.texts.setdefault("simd_sums", _SUMS)
            names = [self.value[acc] for acc in sums]
            self.line(f"float {', '.join(names)};")
            for matrix, first in zip(self.matrices[sums], (0, 2), strict=True):
                self.line(f"simd_sums(simd_float, simd_lane, {matrix}, {names[first]}, {names[first + 1]});")


def _ends(uops: Sequence[UOp]) -> dict[UOp, list[Sums]]:
    """After which node all has been added to sums: the last WMMA, or the end of the loops around it."""
    places = {node: place for place, node in enumerate(uops)}
    closing = {node.src[0]: node for node in uops if node.op in CLOSING}
    inside: list[UOp] = []
    last: dict[Sums, UOp] = {}
    for node in uops:
        if node.op in OPENING:
            inside.append(node)
        elif node.op in CLOSING:
            inside.pop()
        elif node.op is Ops.WMMA:
            sums = node.src[: node.arg.sums]
            begun = min(places[acc] for acc in sums)
            around = next((each for each in inside if places[each] > begun), None)
            last[sums] = node if around is None else closing[around]
    for node in uops:
        for sums, end in last.items():
            if node.op is not Ops.WMMA and places[node] < places[end] and not set(sums).isdisjoint(node.src):
                raise NotImplementedError(f"Metal: {node.op} reads sums of matrices that are added to")
    found: dict[UOp, list[Sums]] = {}
    for sums, end in last.items():
        found.setdefault(end, []).append(sums)
    return found


def _loads(kind: str, core: TensorCore) -> str:
    """The function from words to a matrix: a thread has the places `packed` * (lane % 4) on of row lane / 4,
    and those half-way on.
    """
    place = "lane/4u*8u+" + ("lane%4u" if core.packed == 1 else f"{core.packed}u*(lane%4u)")
    words = [f"word{n}" for n in range(core.halves)]
    lines = []
    for half, word in enumerate(words):
        for n in range(core.packed):
            step = 4 * core.packed * half + n
            at = place + f"+{step}u" * (step > 0)
            value = f"as_type<{kind}>({word})"
            if core.packed > 1:
                value = f"as_type<{kind}{core.packed}>({word}).{'xyzw'[n]}"
            lines.append(f"shared[{at}] = {value};")
    matrix = f"simdgroup_{kind}8x8"
    parameters = f"threadgroup {kind}* shared, uint lane, {', '.join(f'uint {word}' for word in words)}"
    return (
        f"inline {matrix} simd_matrix({parameters}, bool columns) {{\n"
        f"  {_MEET}\n  {' '.join(lines)}\n  {_MEET}\n"
        f"  {matrix} matrix;\n  simdgroup_load(matrix, shared, {_SIDE}, ulong2(0, 0), columns);\n"
        "  return matrix;\n}"
    )


#: A thread's two sums: those of row lane / 4 from column 2 * (lane % 4) on.
_SUMS = (
    "inline void simd_sums(threadgroup float* shared, uint lane, simdgroup_float8x8 sums, "
    "thread float& c0, thread float& c1) {\n"
    f"  {_MEET}\n  simdgroup_store(sums, shared, {_SIDE});\n  {_MEET}\n"
    "  c0 = shared[2u*lane]; c1 = shared[2u*lane+1u];\n}"
)


# *** rows


def begun(ctx: MetalKernel, node: UOp) -> str | None:
    """An accumulator of matrices; others are as everywhere."""
    sums = ctx.sums_of.get(node)
    if sums is None:
        return None
    ctx.waiting.pop(node.src[0], None)
    ctx.value[node] = ctx.names.fresh("acc")
    if sums not in ctx.matrices:
        ctx.matrices[sums] = first, second = ctx.names.fresh("simd_sum"), ctx.names.fresh("simd_sum")
        zeros = "make_filled_simdgroup_matrix<float, 8, 8>(0.0f)"
        ctx.line(f"simdgroup_float8x8 {first} = {zeros}, {second} = {zeros};")
    return ""


def multiplied(ctx: MetalKernel, node: UOp) -> str:
    """16 rows and 8 columns: two products of 8 x 8 for each 8 steps."""
    core: TensorCore = node.arg
    sums, words, halves = node.src[: node.arg.sums], node.src[node.arg.sums :], core.halves
    rows = [ctx.factor(core, words[u : 2 * halves : 2], False) for u in range(2)]
    columns = ctx.factor(core, words[2 * halves :], True)
    for matrix, row in zip(ctx.matrices[sums], rows, strict=True):
        ctx.line(f"simdgroup_multiply_accumulate({matrix}, {row}, {columns}, {matrix});")
    ctx.take(node)
    return ""


def entered(ctx: MetalKernel, node: UOp) -> None:
    """What is loaded before a loop or branch is not looked for inside: its words may change there."""
    ctx.loaded.clear()


def left(ctx: MetalKernel, node: UOp) -> str | None:
    """The end of a loop or branch, and what is complete then."""
    ctx.loaded.clear()
    if node not in ctx.ends:
        return None
    ctx.indent -= 1
    ctx.line("}")
    ctx.take(node)
    return ""

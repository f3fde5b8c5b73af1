"""The printed forms of early 2024: a kernel's AST as a tree, a linear program as a numbered table in which
loops are LOOP and ENDLOOP, arithmetic is ALU, and what an accumulator becomes is a PHI.

DEBUG_STYLE=classic chooses them (ir/text.py keeps the registry of styles).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..dtype import DType, PtrDType, dtypes
from ..ir.linear import buffer_name
from ..ir.ops import COMMUTATIVE, ELEMENTWISE, OPS, Ops
from ..ir.text import GRAPH, LINEAR, arg_text, register_style
from ..ir.uop import UOp
from ..shape.tracker import ShapeTracker


class MemBuffer(NamedTuple):
    """What a LOAD or STORE of a kernel touches: its buffer's number (0 is the output), and how it is seen."""

    idx: int
    dtype: DType
    st: ShapeTracker


class ConstBuffer(NamedTuple):
    """A constant of a kernel, and the shape in which it is seen."""

    val: Any
    dtype: DType
    st: ShapeTracker


# *** names

#: Operations that had another name.
_OLD_NAMES = {
    Ops.RANGE: "LOOP",
    Ops.ENDRANGE: "ENDLOOP",
    Ops.ASSIGN: "PHI",
    Ops.FDIV: "DIV",
}
#: Reductions by what they combine with.
_REDUCTIONS = {Ops.ADD: "SUM", Ops.MUL: "PROD", Ops.MAX: "MAX", Ops.MIN: "MIN"}
_GROUPS = {1: "UnaryOps", 2: "BinaryOps", 3: "TernaryOps"}
_CASTS = (Ops.CAST, Ops.BITCAST)


def classic_name(op: Ops) -> str:
    """What an operation was called."""
    return _OLD_NAMES.get(op, op.name)


def alu_name(op: Ops) -> str:
    """An arithmetic operation as the argument of an ALU: `BinaryOps.MUL`."""
    return f"{_GROUPS[OPS[op].arity or 2]}.{classic_name(op)}"


# *** a graph, as a tree


def tree_text(root: UOp) -> str:
    """A line per node, its sources below it, under numbers; a subtree that was shown already is `goto N`."""
    lines: list[str] = []
    shown: dict[UOp, int] = {}
    tops = root.src if root.op is Ops.SINK else (root,)
    #: what is to be shown: the node, the bars before it, and its own branch
    stack = [(top, "", "") for top in reversed(tops)]
    while stack:
        node, bars, branch = stack.pop()
        if node.op is Ops.STAGE:  # where a value is kept was not said
            node = node.src[0]
        name, sources = _described(node)
        number = f"{len(lines):3d} "
        if sources and node in shown:
            lines.append(f"{number}{bars}{branch}━⬆ goto {shown[node]}: {name.split()[0]}")
            continue
        shown[node] = len(lines)
        lines.append(f"{number}{bars}{branch}{'━┳' if sources else '━━'} {name}")
        below = bars + {"": " ", "┣": "┃ ", "┗": "  "}[branch]
        for place in reversed(range(len(sources))):
            stack.append((sources[place], below, "┗" if place == len(sources) - 1 else "┣"))
    return "\n".join(lines)


def print_tree(root: UOp) -> None:
    """Print `tree_text`."""
    print(tree_text(root))


def _described(node: UOp) -> tuple[str, tuple[UOp, ...]]:
    """The name and argument of a node of the tree, and the sources that stand below it."""
    op, src = node.op, node.src
    if op in (Ops.LOAD, Ops.STORE) and len(src) > 1 and src[0].op is Ops.DEFINE_GLOBAL:
        memory = MemBuffer(src[0].arg, src[0].dtype.base, src[1].arg)
        return f"{op.name} {memory}", src[2:]
    if op is Ops.CONST and src and src[0].op is Ops.VIEW:
        return f"CONST {ConstBuffer(node.arg, node.dtype, src[0].arg)}", ()
    if op is Ops.REDUCE_AXIS:
        return f"{_REDUCTIONS[node.arg.op]} {node.arg.axes}", src
    if op in _CASTS:
        return f"CAST {(node.dtype, op is Ops.BITCAST)}", src
    return f"{classic_name(op)} {'' if node.arg is None else arg_text(node)}", src


# *** a linear program, as a table

HEADER = "step  Op_name               type                      input                           arg"


class Row(NamedTuple):
    """A line of the table: the operation's name, its dtype, the numbers of its inputs, its argument."""

    name: str
    dtype: str
    inputs: list[Any]
    arg: str


def table_text(uops: Sequence[UOp]) -> str:
    """The table: an INDEX is part of its LOAD or STORE, constants have rows, the arg of ALU says what."""
    rows = table(uops)
    lines = [
        f"{step:4d} UOps.{row.name:15s}: {row.dtype:25s} {row.inputs!s:32s} {row.arg}".rstrip()
        for step, row in enumerate(rows)
    ]
    return "\n".join([HEADER, *lines])


def table(uops: Sequence[UOp]) -> list[Row]:
    """The rows."""
    written = {_memory(u).arg for u in uops if u.op is Ops.STORE}
    order = _in_order([u for u in uops if u.op is not Ops.INDEX])
    place = {node: step for step, node in enumerate(order)}
    loops: list[UOp] = []  # that are open
    rows = []
    for node in order:
        if node.op is Ops.RANGE:
            loops.append(node)
        rows.append(_row(node, place, written, loops))
        if node.op is Ops.ENDRANGE:
            loops.pop()
        elif node.op is Ops.ASSIGN:  # from here on the accumulator is what it became
            place[node.src[0]] = place[node]
    return rows


def _in_order(uops: Sequence[UOp]) -> list[UOp]:
    """Accumulators before the constants that stand just before them."""
    order: list[UOp] = []
    for node in uops:
        at = len(order)
        if node.op is Ops.DEFINE_ACC:
            while at and order[at - 1].op is Ops.CONST:
                at -= 1
        order.insert(at, node)
    return order


def _row(node: UOp, place: dict[UOp, int], written: set[Any], loops: Sequence[UOp]) -> Row:
    op = node.op

    def inputs(*sources: UOp) -> list[Any]:
        return [place[s] if s in place else arg_text(s) for s in sources]

    dtype = "" if node.dtype is dtypes.void else _dtype_text(node.dtype)
    if op is Ops.DEFINE_GLOBAL:
        return Row(op.name, dtype, [], str((node.arg, buffer_name(node), node.arg in written)))
    if op is Ops.DEFINE_ACC:
        return Row(op.name, dtype, [], arg_text(node.src[0]))
    if op is Ops.SPECIAL:
        return Row(op.name, dtype, [], str((int(node.arg[0][-1]), *node.arg)))
    if op in (Ops.LOAD, Ops.STORE):
        return Row(op.name, dtype, inputs(*_address(node.src[0]), *node.src[1:]), "None")
    if op is Ops.RANGE:
        return Row("LOOP", dtype, inputs(*node.src), "None")
    if op is Ops.ENDRANGE:
        return Row("ENDLOOP", dtype, inputs(*node.src), "None")
    if op is Ops.ASSIGN:
        return Row("PHI", dtype, inputs(*node.src, *loops[-1:]), "None")
    if op in ELEMENTWISE and op not in _CASTS:
        sources = node.src
        if op in COMMUTATIVE and sources[0].op is Ops.DEFINE_ACC:
            sources = sources[::-1]
        return Row("ALU", dtype, inputs(*sources), alu_name(op))
    return Row(classic_name(op), dtype, inputs(*node.src), arg_text(node))


def _address(index: UOp) -> tuple[UOp, ...]:
    """The buffer and the offset, and where it is valid."""
    return index.src if index.op is Ops.INDEX else (index,)


def _memory(store: UOp) -> UOp:
    return _address(store.src[0])[0]


def _dtype_text(dtype: DType) -> str:
    if isinstance(dtype, PtrDType):
        return f"ptr.{dtype.base!r}"
    return repr(dtypes.int if dtype is dtypes.index else dtype)


register_style("classic", {GRAPH: tree_text, LINEAR: table_text})

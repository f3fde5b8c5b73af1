"""What renderers ask of a linear program before they write: names, and which accumulators a loop changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..ir.args import AxisType
from ..ir.ops import Ops
from ..ir.text import range_names
from ..ir.uop import UOp

#: Loops over outputs; they are numbered by axis, the others as they appear.
_OUTPUT_KINDS = (AxisType.GLOBAL, AxisType.THREAD, AxisType.TILE, AxisType.LOOP)


class Names:
    """Fresh names: a prefix and a number counted per prefix."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def fresh(self, prefix: str) -> str:
        number = self.counts.get(prefix, 0)
        self.counts[prefix] = number + 1
        return f"{prefix}{number}"


def loop_names(uops: Sequence[UOp]) -> dict[UOp, str]:
    """`gidx0`, `lidx0`, `ridx0` ... for the RANGEs of a linear program, after those of its SPECIALs."""
    ranges = [u for u in uops if u.op is Ops.RANGE]
    taken = Counter(u.arg[0].rstrip("0123456789") for u in uops if u.op is Ops.SPECIAL)
    outputs = [u for u in ranges if u.arg.kind in _OUTPUT_KINDS]
    outputs.sort(key=lambda u: int(u.arg.id))
    return range_names(outputs + [u for u in ranges if u.arg.kind not in _OUTPUT_KINDS], taken)


def carried_accumulators(uops: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """For each RANGE and IF: the accumulators defined before it and assigned inside it, in order."""
    defined: dict[UOp, int] = {}
    changed: dict[UOp, set[UOp]] = {}
    opened: dict[UOp, int] = {}
    inside: list[UOp] = []
    for place, node in enumerate(uops):
        if node.op is Ops.DEFINE_ACC:
            defined[node] = place
        elif node.op in (Ops.RANGE, Ops.IF):
            inside.append(node)
            opened[node] = place
            changed[node] = set()
        elif node.op in (Ops.ENDRANGE, Ops.ENDIF):
            if not inside or inside.pop() is not node.src[0]:
                raise ValueError(f"{node.op} at step {place} does not close the innermost loop or branch")
        elif node.op is Ops.ASSIGN:
            acc = node.src[0]
            for around in inside:
                if defined[acc] < opened[around]:
                    changed[around].add(acc)
    if inside:
        raise ValueError(f"{inside[-1].op} is never closed")
    return {around: sorted(accs, key=defined.__getitem__) for around, accs in changed.items()}


_OURS = re.compile(r"(data|[glr]idx|acc|val|alu|cast|temp|ptr|load|loaded|store|stored|if|bufs|vals)\d+$")
_WORDS = frozenset((
    "auto", "bool", "break", "case", "char", "const", "constant", "continue", "default", "device", "do",
    "double", "else", "enum", "extern", "float", "for", "global", "goto", "half", "if", "inline", "int",
    "kernel", "lid", "gid", "local", "long", "main", "piece", "pieces", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "thread", "threadgroup",
    "typedef", "uchar", "uint", "ulong", "union", "unsigned", "ushort", "void", "volatile", "while",
))  # fmt: skip


def variable_name(name: str) -> str:
    """A Variable's name as a parameter: what a renderer or a language uses itself gets an underscore."""
    return name + "_" if name in _WORDS or _OURS.match(name) else name

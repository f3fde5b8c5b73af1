"""What all renderers share: the names in a program, tables of texts, and the walk that asks them.

A row of a table is `(pattern, text)` or `(pattern, text, when)`: what a node of form 7 is in the language.
The text is a template, which `Writer.filled` fills in, or a function of `ctx` (the Writer) and the nodes that
the pattern names. Of the rows that match, the first decides; what a dialect does in a way of its own stands
before what it has in common with others.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..dtype import DType
from ..ir.args import AxisType
from ..ir.linear import CLOSING, OPENING, range_names
from ..ir.ops import Ops
from ..ir.pattern import Matched, PatternMatcher, Rule
from ..ir.rewrite import tell, watched
from ..ir.uop import UOp


class Writer:
    """The text of a kernel while it is written; each language has its own."""

    lines: list[str]

    def filled(self, template: str, node: UOp) -> str:
        """What a row's template says of a node; the texts of its sources are `{0}`, `{1}`, ..."""
        raise NotImplementedError

    def keep(self, node: UOp, text: str) -> None:
        """Take the text that a row gave. Of "" there is nothing to keep: a row may write lines itself."""
        raise NotImplementedError


def write(nodes: Iterable[UOp], rows: PatternMatcher, ctx: Writer, language: str) -> None:
    """Each node in order as the first row that matches says. Who watches is told of the row and its text:
    the lines that the node added, or what stands where its value is used.
    """
    asked = watched()
    for node in nodes:
        before = len(ctx.lines)
        for matched, row in _fitting(rows, node.op, (node.src[-1] if node.src else node).dtype.scalar_type):
            text = matched(node, ctx)
            if text is not None:
                if text:
                    ctx.keep(node, text)
                if asked:
                    tell("render", row.file_and_line(), node, "\n".join(ctx.lines[before:]) or text)
                break
        else:
            what = f"{node.op} of {node.dtype!r}" + ("" if node.arg is None else f" ({node.arg!r})")
            raise NotImplementedError(f"{language} has no {what}: legalize leaves only what `supports` names")


@functools.cache
def _fitting(rows: PatternMatcher, op: Ops, dtype: DType) -> tuple[tuple[Matched, Rule], ...]:
    """The rows that an op on this type of number may match."""
    return tuple([(matched, row) for matched, row in rows.rules_for(op) if row.on is None or dtype in row.on])


@functools.cache
def ops_on(rows: PatternMatcher, dtype: DType) -> frozenset[Ops]:
    """The ops for which a table has a row on this type of number."""
    return frozenset(
        op
        for row in rows
        if all(types is None or dtype in types for types in (row.on, row.before.dtypes))
        for op in row.before.ops or ()
    )


# *** names, and which accumulators a loop changes

#: Loops over outputs; they are numbered by axis, the others as they appear.
_OUTPUT_KINDS = (AxisType.GLOBAL, AxisType.THREAD, AxisType.TILE, AxisType.LOOP)


@dataclass(eq=False)
class Names:
    """Fresh names: a prefix and a number counted per prefix."""

    counts: dict[str, int] = field(default_factory=dict)

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
        elif node.op in OPENING:
            inside.append(node)
            opened[node] = place
            changed[node] = set()
        elif node.op in CLOSING:
            if not inside or inside.pop() is not node.src[0]:
                raise ValueError(f"{node.op} at step {place} does not close the innermost loop or branch")
        elif node.op in (Ops.ASSIGN, Ops.WMMA):
            for acc in node.src[: 1 if node.op is Ops.ASSIGN else node.arg.sums]:
                for around in inside:
                    if defined[acc] < opened[around]:
                        changed[around].add(acc)
    if inside:
        raise ValueError(f"{inside[-1].op} is never closed")
    return {around: sorted(accs, key=defined.__getitem__) for around, accs in changed.items()}


def totals_of_sums(uops: Sequence[UOp]) -> set[UOp]:
    """The accumulators to which those of inner loops are added: seldom used, so no registers are for them."""
    assigned = [u for u in uops if u.op is Ops.ASSIGN]
    return {
        u.src[0] for u in assigned if any(s.op is Ops.DEFINE_ACC for s in u.src[1].src if s is not u.src[0])
    }


#: What means something else in the text of a kernel, in one language or another: names that renderers give,
_OURS = re.compile(
    r"(data|bad|[glr]idx|acc|val|alu|cast|temp|ptr|load|loaded|store|stored|past|ordinary|if|left|bufs|vals)\d"
)
#: types, families of functions, macros and what else has a capital letter,
_TYPES = re.compile(
    r"(u?char|u?short|u?int|u?long|longlong|half|float|double|bool|bfloat|nv_bfloat|vec|mat)\d"
)
_FAMILIES = re.compile(
    r"(vload|vstore|as_|convert_|get_|native_|atomic|atom_|make_|thread|work_|sub_|cl_|intel_|simd)"
)
_CAPITAL = re.compile(r"[A-Z]..|.+[A-Z]")
#: and words: of C and C++, of the dialects for GPUs and WGSL, functions, macros and labels.
_TEXT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const
    constant constexpr constinit consteval continue co_await co_return co_yield decltype default delete device
    discard do double dynamic_cast else elif enum explicit export extern false fallthrough float fn fold for
    friend global goto half if import include inline int kernel let local long loop main mutable namespace new
    noexcept not not_eq nullptr operator or or_eq override piece pieces private program protected ptr public
    read_only read_write reflexpr register reinterpret_cast requires restrict return sampler scratch shared
    short signed sizeof static static_assert static_cast struct storage switch template this throw true try
    typedef typeid typename typeof uchar uint ulong uniform union unsigned ushort using var virtual void
    volatile wchar_t while workgroup write_only xor xor_eq override vertex fragment compute texture image
    abs acos add_sat all any asin atan atan2 barrier bitselect cbrt ceil clamp clz copysign cos cosh cross
    degrees distance dot erf erfc event exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fract frexp
    gamma hypot ilogb isfinite isinf isnan isnormal ldexp length2 lgamma log log10 log1p log2 logb mad mad24
    max mem_fence metal min mix mod modf mul24 mul_hi nan nextafter normalize ordered popcount pow pown powr
    printf radians remainder remquo rhadd rint rootn rotate round rsqrt select shuffle sign signbit sin sincos
    sinh size_t smoothstep sqrt step tan tanh tgamma trap trunc upsample vote warp entry start bufs vals lid
    gid linux unix i386 inf free malloc memcpy memset aligned_alloc simdgroup quad pipe ptrdiff_t intptr_t
    uintptr_t block grid tid stdin stdout stderr errno assert offsetof half_t at exact number said
"""
_WORDS = frozenset(_TEXT.split())


def variable_name(name: str) -> str:
    """A Variable's name as a parameter: what means something else gets an underscore, and so does a name that
    has one already. (No word of a language ends with one and begins with a letter.)
    """
    shapes = (_OURS, _TYPES, _FAMILIES, _CAPITAL)
    means_more = name.endswith("_") or name in _WORDS or any(shape.match(name) for shape in shapes)
    return name + "_" if means_more else name

"""What all renderers share: tables of texts, and the walk through a linear program that asks them.

A row of a table is `(pattern, text)` or `(pattern, text, when)`: what a node of form 7 is in the language.
The text is a template, which `Writer.filled` fills in, or a function of `ctx` (the Writer) and the nodes that
the pattern names. Of the rows that match, the first decides; what a dialect does in a way of its own stands
before what it has in common with others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ..dtype import DType
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

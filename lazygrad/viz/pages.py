"""A Recording as pages of text: one for each form and one for each rewrite, what changed marked.

A page's lines begin with a mark: `-` what was there before, `+` what is there now, a space what stayed.
Parts of a graph that a rewrite did not touch, or that an earlier one told, are collapsed to one line each;
equal rewrites (the same rule on the same text) are told once, with their count. Of more than LIMIT lines the
middle is left out, of more than STEPS rewrites the rest, unless everything is asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..ir.expression import arg_text, expression
from ..ir.ops import Ops
from ..ir.text import GRAPH, LINEAR, LOOPS, styled
from ..ir.uop import UOp
from .record import Form, Recording, Rewrite

#: Lines of one page, rewrites looked at for one form, characters of a collapsed part.
LIMIT, STEPS, WIDTH = 80, 300, 70
#: What is told in brief: lines of a form and of the last one, characters of a line.
BRIEF, BRIEF_LAST, WIDE = 5, 20, 110
#: Lines around one that has changed, and lines of a form that is folded.
AROUND, FOLDED = 2, 300


class Page(NamedTuple):
    """One step: a heading, lines of (mark, text), and which form it is or leads to; of a rewrite its rule,
    and where that is written.
    """

    heading: str
    lines: tuple[tuple[str, str], ...]
    form: int
    rule: str = ""
    location: str = ""


def pages(recording: Recording, full: bool = False, fold: bool = False) -> list[Page]:
    """Every step, in order: the rewrites that led to a form, then the form.

    fold  of a form, only what has changed is shown, with what stands around it
    """
    found: list[Page] = []
    before: tuple[list[str], tuple[str, ...]] = [], ()
    kind = ""
    for number, form in enumerate(recording.forms):
        heading = f"form {form.number}, after {form.name}: {form.promise}"
        told = _grouped(form.rewrites if full else form.rewrites[:STEPS])
        for place, (lines, step, times) in enumerate(told, 1):
            again = f", {times} times" if times > 1 else ""
            where = f"{form.name}, rewrite {place} of {len(told)}{again}"
            rule = f"{step.rule}   ({step.location})" if step.location else step.rule
            found.append(Page(f"{where}: {rule}", _cut(lines, full), number, step.rule, step.location))
        if len(form.rewrites) > STEPS and not full:
            heading += f" (and {len(form.rewrites) - STEPS} more rewrites: --full shows them)"
        now, shape = form_text(form), _kind(form)
        marked = _marked(before[0], now, before[1], form.keys) if shape == kind else _unmarked(now)
        found.append(Page(heading, _folded(marked) if fold else _cut(marked, full), number))
        before, kind = (now, form.keys), shape
    return found


def page_rows(recording: Recording, steps: Sequence[Page]) -> list[dict[str, Any]]:
    """Steps as plain values, with the number of the form that each is or leads to."""
    return [
        {
            "form": recording.forms[page.form].number,
            "heading": page.heading,
            "rule": page.rule,
            "place": page.location,
            "lines": [list(line) for line in page.lines],
        }
        for page in steps
    ]


def plain(recording: Recording, full: bool = False) -> Iterator[str]:
    """The pages one below the other."""
    steps = pages(recording, full)
    yield f"kernel {recording.name} for {recording.target}: {len(recording.forms)} forms, {len(steps)} steps"
    for page in steps:
        yield ""
        yield f"== {page.heading}"
        for mark, text in page.lines:
            yield f"{mark} {text}".rstrip()


def brief(recording: Recording) -> Iterator[str]:
    """The forms alone, each by its first lines: what fits a screen or two."""
    count = sum(len(form.rewrites) for form in recording.forms)
    yield f"kernel {recording.name} for {recording.target}: {len(recording.forms)} forms, {count} rewrites"
    before: list[str] = []
    for form in recording.forms:
        rewrites = f" ({len(form.rewrites)} rewrites)" if form.rewrites else ""
        now = form_text(form)
        yield ""
        yield f"== form {form.number}, after {form.name}{rewrites}: {form.promise}"
        if now == before:
            yield "  reads as before"
            continue
        most = BRIEF_LAST if form is recording.forms[-1] else BRIEF
        yield from (f"  {line}" if len(line) < WIDE else f"  {line[: WIDE - 1]}…" for line in now[:most])
        if len(now) > most:
            yield f"  ... {len(now) - most} more lines"
        before = now


# *** a form


def form_text(form: Form) -> list[str]:
    """The lines of a form."""
    if isinstance(form.value, str):
        return form.value.rstrip().splitlines()
    if isinstance(form.value, tuple):
        return styled(LINEAR, form.value).splitlines()
    if _kind(form) == LOOPS:
        return styled(LOOPS, form.value).splitlines()
    return styled(GRAPH, form.value).splitlines()


def _kind(form: Form) -> str:
    if isinstance(form.value, UOp):
        return GRAPH if form.number <= 2 else LOOPS
    return LINEAR if isinstance(form.value, tuple) else form.kind


def _unmarked(now: Sequence[str]) -> list[tuple[str, str]]:
    return [(" ", line) for line in now]


def _marked(
    before: Sequence[str], now: Sequence[str], old: Sequence[str] = (), new: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The lines with what went and what came; `old` and `new` are by what they are compared, if not as they
    are.
    """
    if len(old) != len(before) or len(new) != len(now):
        old, new = before, now
    lines: list[tuple[str, str]] = []
    for change, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change == "equal":
            lines += [(" ", line) for line in now[c:d]]
        else:
            lines += [("-", line) for line in before[a:b]] + [("+", line) for line in now[c:d]]
    return lines


def _folded(lines: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What has changed with the lines around it; everything where nothing has. At most FOLDED lines."""
    changed = [n for n, (mark, _) in enumerate(lines) if mark != " "]
    shown = set(range(len(lines)))
    if changed:
        shown &= {n + by for n in changed for by in range(-AROUND, AROUND + 1)}
    kept = sorted(shown)[:FOLDED]
    found: list[tuple[str, str]] = []
    at = 0
    for number in [*kept, len(lines)]:
        if number > at:
            found.append((" ", f"... {number - at} more lines"))
        if number < len(lines):
            found.append(lines[number])
        at = number + 1
    return tuple(found)


def _cut(lines: Sequence[tuple[str, str]], full: bool) -> tuple[tuple[str, str], ...]:
    if full or len(lines) <= LIMIT:
        return tuple(lines)
    half = LIMIT // 2
    left_out = len(lines) - 2 * half
    return (*lines[:half], (" ", f"... {left_out} more lines (--full shows them)"), *lines[-half:])


# *** a rewrite


def _grouped(rewrites: Sequence[Rewrite]) -> list[tuple[list[tuple[str, str]], Rewrite, int]]:
    """(lines, rewrite, how often), each different one once, in the order of its first time."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Rewrite, int]] = {}
    known: set[UOp] = set()
    texts: dict[UOp, str] = {}
    for step in rewrites:
        key = (step.rule, tuple(rewrite_lines(step, known, texts)))
        first, times = found.get(key, (step, 0))
        found[key] = (first, times + 1)
        known |= {step.before, step.after}
    return [(list(lines), step, times) for (_, lines), (step, times) in found.items()]


def rewrite_lines(
    step: Rewrite, known: Collection[UOp] = (), texts: dict[UOp, str] | None = None
) -> list[tuple[str, str]]:
    """A rewrite: the tree before, with what goes marked, and the tree after, with what is new marked.

    known  what an earlier rewrite was about: as a part of this one it is a line
    texts  the lines of parts that were written before, to which those of this one are added
    """
    if step.whole:
        return _marked(styled(LOOPS, step.before).splitlines(), styled(LOOPS, step.after).splitlines())
    old, new = set(step.before.toposort()), set(step.after.toposort())
    lines = {} if texts is None else texts
    return [*_tree(step.before, new, known, lines, "-"), *_tree(step.after, old, known, lines, "+")]


def _tree(
    root: UOp, unchanged: set[UOp], known: Collection[UOp], texts: dict[UOp, str], mark: str
) -> list[tuple[str, str]]:
    """A node per line. What is unchanged or known is one line, what is met again is not told again."""
    lines: list[tuple[str, str]] = []
    met: set[UOp] = set()
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        indent = "  " * min(depth, 20)
        if node in unchanged or node.op is Ops.CONST or (depth and node in known):
            if node not in texts:
                texts[node] = _one_line(node)
            lines.append((" " if lines and node in unchanged else mark, f"{indent}{texts[node]}"))
        elif node in met:
            lines.append((mark, f"{indent}{node.op}, as above"))
        else:
            met.add(node)
            lines.append((mark, f"{indent}{node.op} {node.dtype!r}{_arg(node)}"))
            stack.extend([(source, depth + 1) for source in reversed(node.src)])
    return lines


def _arg(node: UOp) -> str:
    if node.arg is None:
        return ""
    if node.op is Ops.VIEW:
        views = [f"{view.shape} strides {view.strides}" for view in node.arg.views]
        return f" {', then '.join(views)}"
    return f" {arg_text(node)[:WIDTH]}"


def _one_line(node: UOp) -> str:
    """A part of a graph on one line."""
    below = node.src[0] if node.op is Ops.VIEW and node.src else node
    if below.op in _UNWRITTEN or any(source.op in _UNWRITTEN for source in below.src):
        return f"{node.op} {node.dtype!r}{_arg(node)}"
    text = expression(node)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 4]} ..."


#: What has no text as an expression.
_UNWRITTEN = (Ops.VIEW, Ops.SINK, Ops.STORE)

"""What happened while a kernel was compiled: every form it took, and every rewrite between two forms."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..codegen.compile import compile_kernel, prediction_of, stages
from ..codegen.direct_kernels import direct_value
from ..codegen.nests import has_nests
from ..codegen.opt import Loops, Opt, apply_opt
from ..codegen.opt.moves.actions import action_of
from ..codegen.passes import DIRECT_PASSES, PASSES
from ..ir.rewrite import observe
from ..ir.uop import UOp
from ..renderer import Renderer
from ..schedule.kernelize import plan_observers
from ..schedule.plan import Pass, pass_observers
from ..schedule.text import form_text, kind_of, line_keys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Rewrite(NamedTuple):
    """One replacement: by which pass, by which rule (its first line of source), where that is written.

    `whole` says that before and after are whole kernels, not parts of one.
    """

    by: str
    rule: str
    location: str
    before: UOp
    after: UOp
    whole: bool = False


@dataclass(frozen=True)
class Form:
    """A form of the kernel, the pass that made it with its promise, and the rewrites that led to it.

    value   a graph, a linear program (a tuple of nodes), or text
    kind    of a text: what changed since the form before is marked where that is of the same kind
    keys    of a text by what its lines are compared, if not as they are
    """

    number: int
    name: str
    promise: str
    value: UOp | tuple[UOp, ...] | str
    rewrites: tuple[Rewrite, ...] = ()
    kind: str = "text"
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """All forms of one kernel, in order."""

    name: str
    target: str
    forms: tuple[Form, ...]


def record(
    ast: UOp,
    renderer: Renderer,
    opts: Sequence[Opt] | None = None,
    asked: Sequence[UOp] = (),
    planning: Sequence[Form] = (),
) -> Recording:
    """Compile a kernel AST and keep what happens.

    requested  the tensor graph that the kernel was cut from, if it is known
    planning  what the passes made that cut it (`PlanningRecorder`)
    """
    forms = []
    if asked:
        forms.append(Form(1, "tensor graph", "what was asked for", UOp.sink(*asked)))
    forms += planning
    forms.append(Form(2, "schedule", "one kernel: loads, one expression, stores", ast))
    promises = {step.name: step for step in (DIRECT_PASSES if direct_value(ast) is not None else PASSES)}
    recorded: list[Rewrite] = []
    applied: list[Opt] = []
    before: Any = ast
    with observe(noting(recorded)):
        for name, value in stages(ast, renderer, opts, applied):
            if name == "apply opts" and not has_nests(ast):
                recorded.extend(_each_opt(before, applied, renderer))
            if value is not before:
                promise = promises[name]
                made = tuple(value) if isinstance(value, list) else value
                forms.append(Form(promise.spec.form, name, promise.promise, made, tuple(recorded)))
            before = value
            recorded.clear()
    spec = compile_kernel(ast, renderer, applied)
    predicted = prediction_of(ast, renderer.target, applied)
    said = "text for a compiler" + ("" if predicted is None else f"; {predicted}")
    forms.append(Form(8, "render", said, spec.src))
    return Recording(spec.name, repr(renderer), tuple(forms))


class PlanningRecorder:
    """Keeps what each pass of the latest plan made, where it changed something.

    `forms` are what was made, `requested` the nodes that were asked for.
    """

    def __init__(self) -> None:
        self.requested: tuple[UOp, ...] = ()
        self.forms: list[Form] = []
        self._rewrites: list[Rewrite] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record the plans of this block."""
        plan_observers.append(self._begin)
        pass_observers.append(self._passed)
        try:
            with observe(noting(self._rewrites)):
                yield
        finally:
            plan_observers.remove(self._begin)
            pass_observers.remove(self._passed)

    def _begin(self, wanted: Sequence[UOp]) -> None:
        self.requested = tuple(wanted)
        self.forms.clear()
        self._rewrites.clear()

    def _passed(self, step: Pass, before: Any, after: Any) -> None:
        own = {each.name for each in step.steps}
        rewrites = tuple([rewrite for rewrite in self._rewrites if rewrite.by in own])
        self._rewrites.clear()
        if after is before:
            return
        text = form_text(after)
        if rewrites or text != form_text(before):
            form = Form(1, step.name, step.promise, text, rewrites, kind_of(after), line_keys(after))
            self.forms.append(form)


def noting(seen: list[Rewrite]) -> Callable[[str, str, UOp, Any], None]:
    """An observer that adds rewrites of graphs to a list."""

    def note(by: str, place: str, before: UOp, after: Any) -> None:
        if before is not after and isinstance(after, UOp):
            seen.append(Rewrite(by, _source_line(place), _short(place), before, after))

    return note


def _each_opt(sink: UOp, applied: Sequence[Opt], renderer: Renderer) -> list[Rewrite]:
    """The kernel before and after each Opt."""
    found = []
    loops = Loops.of(sink)
    for opt in applied:
        after = apply_opt(loops, opt, renderer.target)
        action = type(action_of(opt.op, renderer.target))
        line = inspect.getsourcelines(action)[1]
        place = _short(f"{inspect.getsourcefile(action)}:{line}")
        found.append(Rewrite("apply opts", repr(opt), place, loops.finished(), after.finished(), True))
        loops = after
    return found


def _source_line(place: str) -> str:
    """The rule at a `file:line`: the name of a function, or the row of a table as it is written."""
    file, _, number = place.rpartition(":")
    line = int(number) if number.isdecimal() else 0
    text = linecache.getline(file, line).strip()
    while text.startswith("@"):
        line += 1
        text = linecache.getline(file, line).strip()
    function = re.match(r"def (\w+)", text)
    return function[1] if function else text.rstrip(",")


def _short(place: str) -> str:
    """A place within the project, from its root on."""
    return place[len(_ROOT) + 1 :].replace(os.sep, "/") if place.startswith(_ROOT + os.sep) else place

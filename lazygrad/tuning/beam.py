"""BEAM=n: the Opts of a kernel found by timing them on the device, and kept on disk.

`codegen/opt/search.py` says what to try, `codegen/cost/predict.py` ranks it, a child process times it
(`trials.py`), and the best that is found must compute what the plain loops of the kernel compute. Every time
that was measured is kept too: a search that was interrupted goes on where it was. A search that keeps the
order of sums tries only programs with the order key of the heuristic's (`order_key.py`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..codegen.compile import compile_kernel, stages
from ..codegen.cost.predict import predict
from ..codegen.direct_kernels import direct_kernel, direct_value
from ..codegen.nests import has_nests
from ..codegen.opt import Loops, Opt, choose
from ..codegen.opt.search import Found, Opts, Space, rank, search
from ..codegen.opt.text import parse_opts
from ..config import BEAM, BEAM_KEEPS_ORDER, BEAM_TIMEOUT_SEC, DEBUG, THREADS
from ..device import Buffer, CompiledDevice
from ..dtype import DTYPES_BY_NAME
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..oracle.differences import differing, values_of
from ..oracle.intervals import roundings
from ..programs.runners import SEARCHES
from ..renderer import ProgramSpec
from ..runtime import diskcache_get, diskcache_put
from ..structure import Unlasting, digest, target_text
from .order_key import order_key
from .trials import TrialError, Trials, trials_on

#: The note of a search that had no more time.
CUT_SHORT = "ended early"
#: Of what is stored; another version finds nothing of the old.
VERSION = 1
#: The fastest so many are timed again, in turn with the heuristic's, before one is chosen.
FINALISTS, AGAIN = 3, 3
#: What is found must be this much faster than what the heuristic chose.
WORTHWHILE = 0.98
#: Candidates are timed only if they are predicted to take at most so many times what the heuristic's takes.
PROMISING = 4.0
#: Rounding may differ more on random numbers, whose sums cancel, than CHECK allows at first sight.
SLACK = 16.0


@dataclass(frozen=True)
class Tuned:
    """What a search found for a kernel.

    opts, seconds          the best list of Opts, and its time
    usual, usual_seconds   what the heuristic chose, and its time
    tried                  how many lists were timed
    note                   why nothing was searched, or that a search ended early (CUT_SHORT), or ""
    """

    name: str
    opts: Opts
    seconds: float
    usual: Opts
    usual_seconds: float
    tried: int = 0
    note: str = ""


def searched(device: CompiledDevice, ast: UOp) -> Sequence[Opt] | None:
    """The Opts that a search of BEAM's width finds; None where a kernel has no loops to change."""
    found = tune(device, ast, BEAM.value, keep_order=bool(BEAM_KEEPS_ORDER))
    if found.note and DEBUG >= 2:
        print(f"{found.name}: {found.note}")
    return None if direct_value(ast) is not None or has_nests(ast) else found.opts


SEARCHES.append(searched)


def tune(
    device: CompiledDevice, ast: UOp, width: int, until: float | None = None, *, keep_order: bool = False
) -> Tuned:
    """Search, or give what an earlier search of this width found. Else it is what the heuristic chose.

    until       a time of the monotonic clock at which the search ends with the best that it has found; what
                it measured is kept, and the next search goes on from there
    keep_order  try only lists with which each float sum is added up as with the heuristic's: no bit changes
    """
    direct = direct_value(ast)
    if direct is not None:
        made = direct_kernel(direct)
        return Tuned(made.name(ast), (), 0.0, (), 0.0, note=f"{made.kind} has no loops to change")
    if has_nests(ast):
        name = dict(_until(stages(ast, device.renderer, ()), "lower"))["lower"].arg.name
        return Tuned(name, (), 0.0, (), 0.0, note="each of its nests of loops has the Opts of a short kernel")
    searcher = _Search(device, ast, width, until, keep_order)
    found = searcher.stored()
    if found is not None:
        return found
    try:
        return searcher.run()
    except TrialError as problem:  # even the heuristic's own program
        usual = searcher.usual
        return Tuned(searcher.name, usual, 0.0, usual, 0.0, note=f"not searched: {problem}")


class _Program(NamedTuple):
    spec: ProgramSpec
    predicted: float


class _Search:
    """One kernel on one device."""

    def __init__(
        self,
        device: CompiledDevice,
        ast: UOp,
        width: int,
        until: float | None = None,
        keep_order: bool = False,
    ) -> None:
        self.device, self.ast, self.width, self.until = device, ast, width, until
        self.order: str | None = None  # that all candidates must have, once the heuristic's program is there
        self.keep_order = keep_order
        self.record = f"width {width}, order kept" if keep_order else f"width {width}"
        self.cut_short = False
        self.target = device.target
        self.loops = Loops.of(dict(_until(stages(ast, device.renderer, ()), "lower"))["lower"])
        self.usual = tuple(choose(self.loops, self.target))
        self.name = self.loops.finished().arg.name
        self.trials = trials_on(device.name)
        self.hashing = Trials(device.name)  # of another kind of memory
        self.key = self._key()
        self.times: dict[str, float | None] = self._recall("times") or {}
        self.programs: dict[Opts, _Program | None] = {}
        self.best: float | None = None

    # *** the disk

    def _key(self) -> str | None:
        compiler = self.device.compiler
        version = None if compiler is None else compiler.version()
        with contextlib.suppress(Unlasting):
            target = f"{type(self.device.renderer).__name__} {target_text(self.target)}"
            return f"{VERSION}\n{version}\n{target}\n{THREADS.value} threads\n{digest(self.ast)}"
        return None

    def _recall(self, what: str) -> Any:
        return None if self.key is None else diskcache_get(f"search {what}", self.key)

    def _keep(self, what: str, value: Any) -> None:
        if self.key is not None:
            diskcache_put(f"search {what}", self.key, value)

    def stored(self) -> Tuned | None:
        """What an earlier search found, if its Opts still fit."""
        found = self._recall(self.record)
        if found is None:
            return None
        try:
            opts, usual = (tuple(parse_opts(found[n])) for n in ("opts", "usual"))
        except (ValueError, KeyError):
            return None
        # the actions or the heuristic may have changed since
        if usual != self.usual or Space(self.loops, self.target).after(opts) is None:
            return None
        return Tuned(self.name, opts, found["seconds"], usual, found["usual_seconds"], found["tried"])

    # *** the search

    def run(self) -> Tuned:
        begin = time.perf_counter()
        self.progress = _progress(self.name)
        try:
            base = self._program(self.usual)
            if base is None:
                raise TrialError("the heuristic's own Opts do not compile")
            self.limit = PROMISING * base.predicted
            self._timed(base.spec)  # raises where not even this one has an answer
            if self.keep_order:
                self.order = self._order(base.spec)
            start: list[Opts] = [self.usual]
            plain = self._program(())
            if plain is not None and plain.predicted <= self.limit and self._keeps_order(plain):
                start.append(())

            def on_round(number: int, tried: int, beam: Sequence[Found]) -> None:
                self._keep("times", self.times)
                if DEBUG >= 2 and beam:
                    took = time.perf_counter() - begin
                    print(f"{took:7.2f}s: from {tried:4d} -> {len(beam):3d} actions {list(beam[0].opts)}")

            found = search(
                self.loops, self.target, start, self.width, self._predicted, self._measured, on_round
            )
            made = self._choose(found)
        finally:
            self.progress.close()
            self.hashing.close()
            self._keep("times", self.times)
        if self.cut_short:
            return replace(made, note=CUT_SHORT)
        self._keep(
            self.record,
            {
                "opts": repr(list(made.opts)),
                "usual": repr(list(made.usual)),
                "seconds": made.seconds,
                "usual_seconds": made.usual_seconds,
                "tried": made.tried,
            },
        )
        return made

    def _program(self, opts: Opts) -> _Program | None:
        if opts not in self.programs:
            try:
                spec = compile_kernel(self.ast, self.device.renderer, opts)
                self.programs[opts] = _Program(spec, predict(spec.uops, self.target))
            except Exception as error:  # a list that nobody tried before must not end the user's run
                self.programs[opts] = None
                if DEBUG >= 2:
                    print(f"{list(opts)}: {type(error).__name__}: {error}".splitlines()[0])
        return self.programs[opts]

    def _is_late(self) -> bool:
        if self.until is not None and time.monotonic() > self.until:
            self.cut_short = True
        return self.cut_short

    def _predicted(self, opts: Opts) -> float | None:
        if self._is_late():
            return None
        program = self._program(opts)
        if program is None or program.predicted > self.limit or len(program.spec.uops) > self.target.max_ops:
            return None  # too slow, or too long for a compiler to be quick about it
        return program.predicted if self._keeps_order(program) else None

    def _keeps_order(self, program: _Program) -> bool:
        if self.order is None:
            return True
        with contextlib.suppress(TrialError):
            return self._order(program.spec) == self.order
        return False

    def _order(self, spec: ProgramSpec) -> str:
        def run(made: ProgramSpec, memory: list[tuple[str, int]]) -> list[bytes]:
            return self.hashing.outputs(made, memory, self._values(made), _limit())

        return order_key(spec, self.device.renderer, self._memory(), run)

    def _measured(self, opts: Opts) -> float | None:
        text = repr(list(opts))
        if text not in self.times:
            if self._is_late():
                return None
            self.times[text] = self._time(opts)
        seconds = self.times[text]
        if seconds is not None and (self.best is None or seconds < self.best):
            self.best = seconds
        self.progress.update(1)
        if self.best is not None:
            self.progress.set_postfix_str(f"best {self.best * 1e6:.1f} us")
        return seconds

    def _time(self, opts: Opts) -> float | None:
        program = self._program(opts)
        try:
            return None if program is None else self._timed(program.spec)
        except TrialError:
            return None

    def _timed(self, spec: ProgramSpec) -> float:
        try:
            return self.trials.time(spec, self._memory(), self._values(spec), _limit(), self.best)
        except Unlasting as what:
            raise TrialError(f"{what} cannot be told to another process") from None

    def _memory(self) -> list[tuple[str, int]]:
        found = {n.arg: n.dtype for n in self.ast.toposort() if n.op is Ops.DEFINE_GLOBAL}
        return [(found[number].base.name, found[number].size) for number in sorted(found)]  # type: ignore[attr-defined]

    def _values(self, spec: ProgramSpec) -> tuple[int, ...]:
        """A size is as large as it may be; any other integer is 1.0, as the bits of a float may be one."""
        return tuple([v.arg[2] if v.arg[2] < 1 << 31 else 0x3F800000 for v in spec.vars])

    # *** the winner

    def _choose(self, found: Sequence[Found]) -> Tuned:
        """The fastest that computes what the plain loops compute, if it gains enough over the heuristic's."""
        finalists = [each.opts for each in found if each.opts != self.usual][:FINALISTS]
        again: dict[Opts, float] = {}
        for _ in range(AGAIN):  # in turn, so that a busy moment hits all alike
            for opts in (self.usual, *finalists):
                seconds = self._time(opts)
                if seconds is not None:
                    again[opts] = min(seconds, again.get(opts, seconds))
        usual_seconds = again.get(self.usual, found[0].seconds if found else 0.0)
        tried = len(self.times)
        for opts in sorted(again, key=lambda opts: rank(opts, again[opts])):
            if opts == self.usual or again[opts] > WORTHWHILE * usual_seconds:
                break
            if self._is_right(opts):
                return Tuned(self.name, opts, again[opts], self.usual, usual_seconds, tried)
            self.times[repr(list(opts))] = None
        return Tuned(self.name, self.usual, usual_seconds, self.usual, usual_seconds, tried)

    def _is_right(self, opts: Opts) -> bool:
        """Whether the results are those of the plain loops; of the heuristic's, where these take too long."""
        expected = self._outputs(()) or self._outputs(self.usual)
        got = self._outputs(opts)
        if expected is None or got is None:
            return False
        memory = self._memory()
        program = self._program(opts)
        assert program is not None  # it was timed
        allowed = SLACK * roundings(self.ast)
        for number, here, there in zip(program.spec.outs, got, expected, strict=True):
            name, size = memory[number]
            first, second = (_elements(name, size, contents) for contents in (here, there))
            if differing(first, second, DTYPES_BY_NAME[name], allowed).any():
                return False
        return True

    def _outputs(self, opts: Opts) -> list[bytes] | None:
        program = self._program(opts)
        if program is None:
            return None
        try:
            return self.trials.outputs(program.spec, self._memory(), self._values(program.spec), _limit())
        except (TrialError, Unlasting):
            return None


def _limit() -> float:
    return float(max(BEAM_TIMEOUT_SEC.value, 1))


def _until(forms: Iterator[tuple[str, Any]], last: str) -> Iterator[tuple[str, Any]]:
    for name, form in forms:
        yield name, form
        if name == last:
            return


def _elements(name: str, size: int, contents: bytes) -> Any:
    buffer = Buffer("PYTHON", size, DTYPES_BY_NAME[name]).allocate_uncleared()
    return values_of(buffer.copyin(contents))


def _progress(name: str) -> Any:
    """How many lists were timed, on a terminal; nothing in a pipe."""
    from tqdm import tqdm

    return tqdm(desc=f"search {name}", unit=" kernels", leave=False, disable=None)

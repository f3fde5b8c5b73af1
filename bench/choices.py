"""Whether the Opts that are chosen are the best: a fixed set of kernels, each with all its candidates, timed.

    python -m bench choices                            every kernel of the set
    python -m bench choices --programs softmax,matmul  only kernels of programs with one of these words
    python -m bench choices --candidates 8             fewer candidates for each

The kernels are of `bench replay`'s programs, on one core: of each program some that are predicted to take
longest. Candidates are what the choice was made from and neighbours of what was chosen: another side, other
lanes, one Opt more or less. All are compiled and timed in turns in processor time, the least of each is
taken, and the chosen one's is shown beside the best's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from lazygrad import Device
from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.codegen.nests import has_nests
from lazygrad.codegen.opt import KernelOptError, Loops, Opt, OptOps
from lazygrad.codegen.opt.contraction import candidates as contractions
from lazygrad.codegen.opt.facts import Facts
from lazygrad.codegen.opt.inline import all_inline
from lazygrad.codegen.opt.search import Opts, Space
from lazygrad.codegen.predict import predict
from lazygrad.codegen.written import is_written
from lazygrad.ir.uop import UOp
from lazygrad.renderer import ProgramSpec, Renderer

from .predict import MOST_BYTES, kernels, loaded, memory, nbytes, seconds_of, together

#: Kernels of one program, and cycles that those of the set are predicted to take.
OF_PROGRAM, LEAST, MOST = 4, 20e3, 300e6
#: Candidates beside what was chosen; half are predicted to be best, half are taken evenly from the others.
CANDIDATES = 16
#: What takes so many times as long as the best is timed no more; rounds, and seconds of them for a kernel.
HOPELESS, ROUNDS, BUDGET = 1.5, 60, 4.0
#: The chosen one is right if it takes at most so many times what the best takes.
RIGHT = 1.08
#: The Opts that a neighbour may have more.
MORE = (OptOps.UPCAST, OptOps.UNROLL)

_T = TypeVar("_T")


class Row(NamedTuple):
    """A kernel: how long it takes with the Opts that are chosen, and with the best of some candidates."""

    name: str
    candidates: int
    chosen: float
    best: float
    opts: Opts

    @property
    def ratio(self) -> float:
        return self.chosen / self.best


# *** the set


def fixed_set(words: Sequence[str], renderer: Renderer) -> list[tuple[str, UOp, ProgramSpec]]:
    """The kernels, with the program in which each is met first and what was chosen for it."""
    found: dict[str, list[tuple[float, UOp, ProgramSpec]]] = {}
    for ast, program in kernels(words).items():
        if not is_written(ast) and not has_nests(ast):
            spec = compile_kernel(ast, renderer)
            cycles = predict(spec.uops, renderer.target)
            if LEAST <= cycles <= MOST and nbytes(spec) <= MOST_BYTES:
                found.setdefault(program, []).append((cycles, ast, spec))
    chosen = []
    for program, some in found.items():
        some.sort(key=lambda each: -each[0])
        chosen += [(program, ast, spec) for _, ast, spec in some[:OF_PROGRAM]]
    return chosen


def neighbours(space: Space, opts: Opts) -> Iterator[Opts]:
    """The lists one Opt apart, of those that no candidate of a contraction stands for."""
    for each in space.neighbours(opts):
        if len(each) <= len(opts) or each[-1].op in MORE:
            yield each


def compiled(ast: UOp, chosen: Opts, renderer: Renderer, count: int) -> list[ProgramSpec]:
    """The programs of the candidates, as many as are asked for."""
    target = renderer.target
    lowered = next(form for name, form in stages(ast, renderer, ()) if name == "lower")
    loops = Loops.of(lowered)
    space = Space(loops, target)
    space.is_new(chosen)
    plain, inline = all_inline(loops)
    tiles = [(*inline, *opts) for opts in contractions(Facts.of(plain), target)]
    found = []
    for some in (tiles, neighbours(space, chosen)):
        programs = []
        for opts in _some([opts for opts in some if space.is_new(opts)], 4 * count):
            try:
                spec = compile_kernel(ast, renderer, opts)
            except (KernelOptError, NotImplementedError):
                continue
            programs.append((predict(spec.uops, target), spec))
        programs.sort(key=lambda each: each[0])
        found.append([spec for _, spec in programs])
    room = [count if not found[1 - number] else count // 2 for number in range(2)]
    return [spec for some, most in zip(found, room, strict=True) for spec in _some(some, most)]


def _some(ranked: list[_T], count: int) -> list[_T]:
    """The first ones, and as many taken evenly from the others."""
    return [*ranked[: count // 2], *_thinned(ranked[count // 2 :], count - count // 2)]


def _thinned(found: list[_T], count: int) -> list[_T]:
    return found if len(found) <= count else [found[n * len(found) // count] for n in range(count)]


# *** timing


def shortest(specs: Sequence[ProgramSpec]) -> list[float]:
    """Seconds of processor time that one run of each takes, timed in turns."""
    runs, buffers = [loaded(spec) for spec in specs], memory(specs[0])
    least = [float("inf")] * len(runs)
    begin, rounds = time.perf_counter(), 0
    while rounds < 3 or (rounds < ROUNDS and time.perf_counter() - begin < BUDGET):
        for number, run in enumerate(runs):
            if rounds < 2 or least[number] <= HOPELESS * min(least):
                times = together(least[number]) if rounds else 1
                least[number] = min(least[number], seconds_of(run, buffers, times))
        rounds += 1
    return least


def rows(words: Sequence[str], count: int) -> Iterator[Row]:
    renderer = Device["CPU"].renderer
    alone = type(renderer)(replace(renderer.target, threads=1))
    for program, ast, spec in fixed_set(words, alone):
        chosen: list[Opt] = list(spec.applied_opts)
        specs = [spec, *compiled(ast, tuple(chosen), alone, count)]
        times = shortest(specs)
        best = min(range(len(specs)), key=times.__getitem__)
        yield Row(
            f"{program}: {spec.function_name}",
            len(specs),
            times[0],
            times[best],
            tuple(specs[best].applied_opts),
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench choices", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--programs", default="", help="words, of which one is in a program's name")
    parser.add_argument("--candidates", type=int, default=CANDIDATES, help="how many beside the chosen one")
    asked = parser.parse_args(arguments)
    words = [word.strip().lower() for word in asked.programs.split(",") if word.strip()]
    print(f"{'chosen':>12} {'best':>12} {'by':>6} {'of':>4}")
    found = []
    for row in rows(words, asked.candidates):
        found.append(row)
        times = f"{row.chosen * 1e6:9.1f} us {row.best * 1e6:9.1f} us {row.ratio:6.2f}"
        better = "" if row.ratio <= RIGHT else f"  {list(row.opts)}"
        print(f"{times} {row.candidates:4}  {row.name}{better}", flush=True)
    right = sum(row.ratio <= RIGHT for row in found)
    print(
        f"{right} of {len(found)} kernels take at most {RIGHT} times what the best of their candidates takes"
    )
    return 0

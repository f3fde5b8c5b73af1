"""Every kernel of a fixed corpus on five targets: recorded, then compared with what a change makes of it.

    python -m bench replay record DIR      write down, for each program and target, its kernels
    python -m bench replay compare DIR     make them anew, show what differs; exits with 1 if anything does
    --programs matmul,demo                 only programs with one of these words in their names
    --targets znver5,cuda                  only these targets

A record holds each kernel's AST (so that the schedule is compared too), Opts, linear program and text. A
commit that only moves code has an empty comparison. Nothing is computed, and no device has to be here.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lazygrad import Context, Device, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import Ops
from lazygrad.ir.text import linear_text
from lazygrad.ir.uop import UOp
from lazygrad.programs.runners import clear_programs
from lazygrad.renderer import Renderer
from lazygrad.schedule.items import ScheduleItem
from lazygrad.schedule.kernelize import clear_templates

from .corpus import PROGRAMS, random_kernels
from .targets import TARGETS, ReplayDevice

#: The parts of a kernel's record, in the order of compiling: the first that differs is the cause.
PARTS = ("ast", "opts", "linear", "text")
#: Lines of a difference that are shown.
SHOWN = 12


class Kernel(NamedTuple):
    """One kernel or copy of a program, as text."""

    name: str
    parts: dict[str, str]


Record = list[Kernel]


# *** recording


def _kernel(ast: UOp, renderer: Renderer) -> Kernel:
    spec = compile_kernel(ast, renderer)
    linear = linear_text(list(spec.uops))
    parts = (str(ast), str(list(spec.applied_opts)), linear, spec.src)
    return Kernel(spec.function_name, dict(zip(PARTS, parts, strict=True)))


def _copy(item: ScheduleItem) -> Kernel:
    return Kernel("copy", {"ast": f"{item.bufs[0].nbytes} bytes from {len(item.bufs) - 1}"})


def records(program: str, renderer: Renderer) -> Record:
    """The kernels of a program for a target, in the order in which they run."""
    if program not in PROGRAMS:
        return [_kernel(ast, renderer) for ast in random_kernels()[program]]
    return [
        _copy(item) if item.ast.op is Ops.COPY else _kernel(item.ast, renderer)
        for item in items(program, renderer)
    ]


def items(program: str, renderer: Renderer) -> list[ScheduleItem]:
    """What a program runs where kernels are chosen for a target: its kernels and copies, in their order."""
    found: list[ScheduleItem] = []

    def see(item: ScheduleItem, name: str, seconds: float | None, ops: int, nbytes: int) -> None:
        found.append(item)

    Device.register("REPLAY", lambda name: ReplayDevice(name, renderer))
    clear_templates()
    clear_programs()
    try:
        with Context(DEV="REPLAY", CACHELEVEL=0), observe_kernels(see):
            Tensor.manual_seed(0)
            PROGRAMS[program]()
    finally:
        Device.unregister("REPLAY")
    return found


# *** files


def path_of(folder: Path, target: str, program: str) -> Path:
    return folder / target / (re.sub(r"\W+", "-", program) + ".txt")


def written(record: Record) -> str:
    """The record as text: a line `==== name` for each kernel, a line `---- part` for each of its parts."""
    lines = []
    for kernel in record:
        lines.append(f"==== {kernel.name}")
        for part, text in kernel.parts.items():
            lines += [f"---- {part}", text]
    return "\n".join(lines) + "\n"


def read(text: str) -> Record:
    """What `written` wrote."""
    record = []
    for kernel in re.split(r"^==== ", text, flags=re.M)[1:]:
        name, _, rest = kernel.partition("\n")
        found = re.split(r"^---- (\w+)\n", rest, flags=re.M)[1:]
        record.append(
            Kernel(name, {k: v.removesuffix("\n") for k, v in zip(found[::2], found[1::2], strict=True)})
        )
    return record


# *** comparing


class Difference(NamedTuple):
    """A kernel that is another: its number in the program, and the first part that differs."""

    number: int
    name: str
    part: str
    lines: Sequence[str]


def differences(before: Record, after: Record) -> Iterator[Difference]:
    """The kernels of two records of a program that differ; first of all, in how many there are."""
    if len(before) != len(after):
        names = [[kernel.name for kernel in record] for record in (before, after)]
        yield Difference(0, f"{len(before)} kernels, now {len(after)}", "schedule", _lines(*names))
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        for part in PARTS:
            texts = [kernel.parts.get(part, "") for kernel in (old, new)]
            if texts[0] != texts[1]:
                yield Difference(number, new.name, part, _lines(*(text.splitlines() for text in texts)))
                break


def _lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if line[:3] not in ("---", "+++")
    ]


# *** the command


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench replay", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the record is")
    parser.add_argument("--programs", default="", help="words, of which one is in a program's name")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--shown", type=int, default=SHOWN, help="lines shown of each difference")
    found = parser.parse_args(arguments)
    found.targets = [name for name in found.targets.split(",") if name]
    if unknown := [name for name in found.targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    words = [word.strip().lower() for word in found.programs.split(",") if word.strip()]
    names = [*PROGRAMS, *random_kernels()]
    found.programs = [name for name in names if not words or any(word in name.lower() for word in words)]
    if not found.programs:
        parser.error(f"no program has {' or '.join(words)} in its name; there are {', '.join(names)}")
    return found


def main(arguments: list[str]) -> int:
    asked = _parsed(arguments)
    count, found = 0, Counter[str]()
    for target in asked.targets:
        renderer = TARGETS[target]()
        for program in asked.programs:
            path, record = path_of(asked.folder, target, program), records(program, renderer)
            count += len(record)
            if asked.action == "record":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(written(record))
                continue
            if not path.exists():
                print(f"{path} is not there: record it first, with the commit before", file=sys.stderr)
                return 2
            for other in differences(read(path.read_text()), read(written(record))):
                found[other.part] += 1
                print(
                    f"{target}, {program}: kernel {other.number} ({other.name}) differs in its {other.part}"
                )
                print("".join(f"    {line}\n" for line in other.lines[: asked.shown]), end="")
                if len(other.lines) > asked.shown:
                    print(f"    ... {len(other.lines) - asked.shown} more lines")
    print(f"{count} kernels of {len(asked.programs)} programs on {len(asked.targets)} targets", end="")
    if asked.action == "record":
        print(f" are in {asked.folder}")
        return 0
    what = ", ".join(f"{number} in {part}" for part, number in found.items())
    print(f": {f'{found.total()} differ ({what})' if found else 'nothing differs'}")
    return 1 if found else 0

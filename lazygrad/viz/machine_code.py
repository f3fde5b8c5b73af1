"""The loops of machine code as an assembler writes it, and the hot one: where most instructions are executed.

Labels and jumps give blocks, blocks a graph of control, and its back edges the natural loops (Aho, Lam, Sethi
and Ullman, Compilers, 9.6). Where these nest as the loops of the program do, each has the turns of its loop;
a compiler that unrolls or merges loops breaks that, and then nobody knows how often they run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .program_lines import TextLoop

_LABEL = re.compile(r"^([.$\w]+):")
_WORD = re.compile(r"[.$\w]+")
#: Jumps that are always taken, and what leaves a function: nothing falls through to the line below.
_ALWAYS = frozenset(("jmp", "jmpq", "b", "j"))
_LEAVES = ("ret", "ud2", "brk", "trap")
_CALLS = ("call", "bl", "jal")


@dataclass
class MachineLoop:
    """A natural loop.

    lines    of its instructions, those of inner loops too     own     those of it alone
    around   the loop that it is in, by number; -1: in none    loop    the loop of the program; -1: not known
    """

    lines: list[int]
    around: int = -1
    own: list[int] = field(default_factory=list)
    loop: int = -1


@dataclass
class _Block:
    first: int
    instructions: list[int] = field(default_factory=list)
    next: list[int] = field(default_factory=list)


def machine_loops(lines: Sequence[str], loops: Sequence[TextLoop] = ()) -> list[MachineLoop]:
    """The loops of machine code, outer ones first, with those of the program where they nest alike."""
    blocks = _blocks(lines)
    found = []
    for members in _natural_loops(blocks):
        numbers = sorted([line for block in members for line in blocks[block].instructions])
        found.append(MachineLoop(numbers))
    found.sort(key=lambda loop: (-len(loop.lines), loop.lines[:1]))
    for number, loop in enumerate(found):
        inside = set(loop.lines)
        for other in range(number):
            if inside < set(found[other].lines):
                loop.around = other  # the last one is the smallest
        loop.own = sorted(inside.difference(*[set(o.lines) for o in found if set(o.lines) < inside]))
    _match(found, -1, loops, -1)
    return found


def hot_loop(
    lines: Sequence[str], found: Sequence[MachineLoop], loops: Sequence[TextLoop]
) -> dict[str, Any] | None:
    """The innermost loop with the most executed instructions; None where there is no loop.

    "lines"         of its instructions            "loop"   the loop of the program, by number; -1: not known
    "instructions"  in one turn                    "turns"  how often each loop around runs, the outermost
    "executed"      about how many of these are             first; None where that is not known
                    executed in all, and how many by the whole program; None where that is not known
    """
    inner = [n for n in range(len(found)) if not any(other.around == n for other in found)]
    if not inner:
        return None
    times = [_times(found, number, loops) for number in range(len(found))]
    executed = None
    if all(each is not None for each in times):
        counts = [len(found[n].own) * _product(times[n]) for n in range(len(found))]
        best = max(inner, key=lambda n: (counts[n], -n))
        outside = set(_instructions(lines)).difference(*[set(loop.lines) for loop in found])
        executed = [counts[best], sum(counts) + len(outside)]
    else:
        best = max(inner, key=lambda n: (_depth(found, n), len(found[n].own), -n))
    loop = found[best]
    return {
        "lines": loop.lines,
        "instructions": len(loop.own),
        "loop": loop.loop,
        "turns": times[best] if executed else None,
        "executed": executed,
    }


def _product(turns: Sequence[int] | None) -> int:
    product = 1
    for each in turns or ():
        product *= each
    return product


def _times(found: Sequence[MachineLoop], number: int, loops: Sequence[TextLoop]) -> list[int] | None:
    iterations: list[int] = []
    while number >= 0:
        if found[number].loop < 0:
            return None
        iterations.insert(0, loops[found[number].loop].iterations)
        number = found[number].around
    return iterations


def _depth(found: Sequence[MachineLoop], number: int) -> int:
    depth = 0
    while number >= 0:
        depth, number = depth + 1, found[number].around
    return depth


def _match(found: Sequence[MachineLoop], around: int, loops: Sequence[TextLoop], outer: int) -> None:
    """Give the loops inside of one those of the program, if there are as many; then those inside of them."""
    mine = sorted([n for n, loop in enumerate(found) if loop.around == around], key=lambda n: found[n].lines)
    theirs = [n for n, loop in enumerate(loops) if not loop.is_launch and _outer(loops, n) == outer]
    if len(mine) == len(theirs):
        for machine, loop in zip(mine, theirs, strict=True):
            found[machine].loop = loop
            _match(found, machine, loops, loop)


def _outer(loops: Sequence[TextLoop], number: int) -> int:
    around = loops[number].around
    return -1 if around < 0 or loops[around].is_launch else around


# *** blocks


def _words(line: str) -> tuple[str, list[str]]:
    """The mnemonic and the words of the operands; "" where a line is no instruction."""
    text = re.split(r"[#;]|//", line, maxsplit=1)[0].strip()
    if not text or text.startswith(".") or _LABEL.match(text) or not line[:1].isspace():
        return "", []
    mnemonic, _, operands = text.partition("\t") if "\t" in text else text.partition(" ")
    return mnemonic, _WORD.findall(operands)


def _instructions(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if _words(line)[0]]


def _blocks(lines: Sequence[str]) -> list[_Block]:
    labels = {found[1] for line in lines if (found := _LABEL.match(line))}
    blocks = [_Block(0)]
    at: dict[str, int] = {}
    jumps: list[tuple[int, str]] = []
    falls = [True]
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label:
            if blocks[-1].instructions or not falls[-1]:
                blocks.append(_Block(number))
                falls.append(True)
            at[label[1]] = len(blocks) - 1
            continue
        mnemonic, operands = _words(line)
        if not mnemonic:
            continue
        if not falls[-1]:  # behind a jump: nobody comes here
            blocks.append(_Block(number))
            falls.append(True)
        blocks[-1].instructions.append(number)
        leaves = mnemonic.startswith(_LEAVES)
        target = operands[-1] if operands and operands[-1] in labels else ""
        if leaves or (target and not mnemonic.startswith(_CALLS)):
            if target:
                jumps.append((len(blocks) - 1, target))
            falls[-1] = not (leaves or mnemonic in _ALWAYS)
            if falls[-1]:
                blocks.append(_Block(number + 1))
                falls.append(True)
    for number, target in jumps:
        blocks[number].next.append(at[target])
    for number in range(len(blocks) - 1):
        if falls[number]:
            blocks[number].next.append(number + 1)
    return blocks


def _natural_loops(blocks: Sequence[_Block]) -> list[set[int]]:
    """The blocks of each loop: all that reach a back edge without passing the head that it leads to."""
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for after in block.next:
            before[after].append(number)
    everywhere = set(range(len(blocks)))
    above = [everywhere if before[n] and n else {n} for n in range(len(blocks))]
    changed = True
    while changed:
        changed = False
        for number in range(1, len(blocks)):
            if before[number]:
                made = set.intersection(*[above[b] for b in before[number]]) | {number}
                if made != above[number]:
                    above[number], changed = made, True
    loops: dict[int, set[int]] = {}
    for number, block in enumerate(blocks):
        for head in block.next:
            if head in above[number]:
                members, todo = loops.setdefault(head, {head}), [number]
                while todo:
                    inside = todo.pop()
                    if inside not in members:
                        members.add(inside)
                        todo += before[inside]
    return list(loops.values())

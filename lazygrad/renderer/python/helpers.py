"""What the text calls: accesses of memory by lanes, copies on the way, and the threads of a workgroup."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import ConstType
from ..matrices import exchanged, products_of_warps


def _load_masked(
    data: Any, start: int, mask: Any, other: Any, refuse: Any, decode: Any = None
) -> tuple[ConstType, ...]:
    """Lanes whose mask is set from memory, the others from `other`."""
    return _load_gathered(data, range(start, start + len(other)), mask, other, refuse, decode)


def _load_gathered(
    data: Any, places: Any, mask: Any, other: Any, refuse: Any, decode: Any = None
) -> tuple[ConstType, ...]:
    """The same, each lane at a place of its own."""
    lanes = []
    for i, inside, value in zip(places, mask, other, strict=True):
        if inside:
            value = data[i] if 0 <= i < len(data) else refuse(i)
            value = decode(value) if decode is not None else value
        lanes.append(value)
    return tuple(lanes)


def _store_lanes(data: Any, start: int, values: Any, mask: Any, refuse: Any, encode: Any = None) -> None:
    """Lanes into memory, where `mask`, unless None, is set."""
    for i, value in enumerate(values, start):
        if mask is None or mask[i - start]:
            if not 0 <= i < len(data):
                refuse(i)
            data[i] = encode(value) if encode is not None else value


def _fetch(
    fetches: Any, memory: Any, start: int, data: Any, begin: int, count: int, valid: bool, outside: Any,
    decode: Any = None,
) -> None:  # fmt: skip
    """A copy is on the way: nobody finds anything where it goes until `_wait`."""
    refuse_to, refuse_from = outside
    if not 0 <= start <= len(memory) - count:
        refuse_to(start)
    if valid and not 0 <= begin <= len(data) - count:
        refuse_from(begin)
    memory[start : start + count] = [None] * count
    fetches[-1].append((memory, start, data, begin, count, valid, decode))


def _wait(fetches: Any, groups: int) -> None:
    """All groups of copies but so many of the last are done, as late as they may be."""
    if groups == 0:
        fetches.append([])
    while len(fetches) > groups + 1:
        for memory, start, data, begin, count, valid, decode in fetches.pop(0):
            found = data[begin : begin + count] if valid else [0] * count
            memory[start : start + count] = map(decode, found) if decode and valid else found


def _outside(kernel: str, argument: str, size: int) -> Callable[[int], Any]:
    def refuse(index: int) -> Any:
        raise IndexError(f"kernel {kernel} accesses {argument}[{index}], and {argument} has {size} elements")

    return refuse


#: Where threads stop → what they get there. They stop with a place, (its number, one of these names).
_ANSWERS: dict[str, Callable[[Sequence[Any], Sequence[int]], list[Any]]] = {
    "BARRIER": lambda stopped, sizes: [None] * len(stopped),
    "SHUFFLE": exchanged,
    "WMMA": products_of_warps,
}


def _run_workgroup(kernel: str, thread: Callable[..., Any], *sizes: int) -> None:
    """Run the threads of a workgroup from where they meet to where they do next. All must come there."""
    places = list(itertools.product(*map(range, sizes)))
    running = [thread(*place) for place in places]
    answers: list[Any] = [None] * len(places)
    while True:
        stopped = [_went_on(each, answer) for each, answer in zip(running, answers, strict=True)]
        if not any(stopped):
            return
        at = [stop[0] if stop else None for stop in stopped]
        if None in at or len(set(at)) > 1:
            place = {which: stop and stop[0] for which, stop in zip(places, at, strict=True)}
            what = " and ".join(sorted({f"{stop[1]}s" for stop in at if stop}))
            raise RuntimeError(
                f"kernel {kernel}: the threads of a workgroup wait at different {what}: {place}"
            )
        answers = _ANSWERS[stopped[0][0][1]](stopped, sizes)


def _went_on(thread: Any, answer: Any) -> Any:
    """Where a thread stops next, given what it stopped for; None at its end."""
    try:
        return thread.send(answer)
    except StopIteration:
        return None


HELPERS: dict[str, Callable[..., Any]] = {
    "run_workgroup": _run_workgroup,
    "load_masked": _load_masked,
    "load_gathered": _load_gathered,
    "store_lanes": _store_lanes,
    "outside": _outside,
    "fetch": _fetch,
    "commit": lambda fetches: fetches.append([]),
    "wait": _wait,
}

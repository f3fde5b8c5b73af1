"""The fields of a recording, and what each may be: the format, and the check of a file that somebody sent.

What refers to a row of another list by number is checked against its length, so that whoever shows a
recording looks nothing up in vain. -1 stands for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: The lengths of the lists that others refer to.
Lengths = Mapping[str, int]
Check = Callable[[Any, Lengths], None]
#: The largest number, of either sign.
MOST = 1 << 64
#: How deep loops may be in loops.
DEEPEST = 64


class FieldError(ValueError):
    """A value that its field may not have; `path` leads to it, the innermost step first."""

    def __init__(self, wanted: str, value: Any) -> None:
        shown = repr(value)
        super().__init__(f"is {shown[:40]}{'...' * (len(shown) > 40)}, not {wanted}")
        self.path: list[str | int] = []

    @classmethod
    def of_fields(cls, what: str, names: Sequence[str]) -> FieldError:
        """Of an object that has other fields."""
        found = cls("", None)
        found.args = (f"{what} {', '.join(names)[:200]}",)
        return found

    def __str__(self) -> str:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self.path))
        return f"{path.lstrip('.') or 'it'} {self.args[0]}"


# ---- kinds of values ----


def text(value: Any, lengths: Lengths) -> None:
    if type(value) is not str:
        raise FieldError("a text", value)


def number(value: Any, lengths: Lengths) -> None:
    if type(value) not in (int, float) or not (math.isfinite(value) and -MOST <= value <= MOST):
        raise FieldError("a number", value)


def whole(value: Any, lengths: Lengths) -> None:
    if type(value) is not int or not -MOST <= value <= MOST:
        raise FieldError("a whole number", value)


def count(value: Any, lengths: Lengths) -> None:
    if type(value) is not int or not 0 <= value <= MOST:
        raise FieldError("a count", value)


def row_in(name: str, least: int = -1) -> Check:
    """The number of a row of the list of this name; -1 is none."""

    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not int or not least <= value < lengths[name]:
            raise FieldError(f"a number from {least} to {lengths[name] - 1}, of {name}", value)

    return check


def kernel_or(name: str, first: int) -> Check:
    """The number of a kernel; from `first` downwards those of another list."""

    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not int or not first - lengths[name] < value < lengths["kernels"]:
            raise FieldError(f"the number of a kernel, or {first} minus that of {name}", value)

    return check


def null_or(inner: Check) -> Check:
    def check(value: Any, lengths: Lengths) -> None:
        if value is not None:
            inner(value, lengths)

    return check


def many(inner: Check) -> Check:
    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not list:
            raise FieldError("a list", value)
        at = 0
        try:
            for at, each in enumerate(value):  # noqa: B007 - the place of what is wrong
                inner(each, lengths)
        except FieldError as error:
            error.path.append(at)
            raise

    return check


def row(*inner: Check, last: Check | None = None) -> Check:
    """A list of values that have their places; `last` may be missing."""

    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not list or len(value) - len(inner) not in ((0, 1) if last else (0,)):
            raise FieldError(f"a list of {len(inner)}", value)
        at = 0
        try:
            for at, (kind, each) in enumerate(zip(inner, value, strict=False)):  # noqa: B007
                kind(each, lengths)
            if last is not None and len(value) > len(inner):
                at = len(inner)
                last(value[at], lengths)
        except FieldError as error:
            error.path.append(at)
            raise

    return check


def names_to(inner: Check) -> Check:
    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not dict:
            raise FieldError("an object", value)
        for name, each in value.items():
            try:
                inner(each, lengths)
            except FieldError as error:
                error.path.append(name)
                raise

    return check


def fields(wanted: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """An object of these fields and no others."""
    known = wanted | (optional or {})

    def check(value: Any, lengths: Lengths) -> None:
        if type(value) is not dict:
            raise FieldError("an object", value)
        missing = [name for name in wanted if name not in value]
        unknown = [name for name in value if name not in known]
        if missing or unknown:
            raise FieldError.of_fields("has no" if missing else "has the unknown", missing or unknown)
        for name, each in value.items():
            try:
                known[name](each, lengths)
            except FieldError as error:
                error.path.append(name)
                raise

    return check


# ---- the format ----

call, name, kernel = row_in("calls"), row_in("names"), row_in("kernels")
pair = row(number, number)
memory = many(row(whole, count))  # [number of the memory, bytes]
#: A page of a Recording (`pages.py`): the lines are [mark, text].
STEPS: dict[str, Check] = {
    "steps": many(
        fields({"form": whole, "heading": text, "rule": text, "place": text, "lines": many(row(text, text))})
    ),
    "steps_left_out": count,
}


def loops(value: Any, lengths: Lengths, depth: int = 0) -> None:
    """The loops of a kernel, in each of which there are others."""
    if depth > DEEPEST:
        raise FieldError(f"loops of at most {DEEPEST} levels", value)
    inside = fields(
        {
            **dict.fromkeys(("name", "size", "kind", "number"), text),
            "inside": lambda each, lengths: loops(each, lengths, depth + 1),
        }
    )
    many(inside)(value, lengths)


def text_loops(value: Any, lengths: Lengths) -> None:
    """Loops of a text: [name, extent, kind, number, the loop around (-1), first line, last line]."""
    there = {"loops": len(value) if type(value) is list else 0}
    many(row(text, text, text, text, row_in("loops"), whole, whole))(value, {**lengths, **there})


def graph(value: Any, lengths: Lengths) -> None:
    """What a graph was when it was planned (`graphs.py`); a node reads some that stand before it."""
    nodes = value.get("nodes") if type(value) is dict else None
    there = {**lengths, "nodes": len(nodes) if type(nodes) is list else 0}
    fields({"at": number, "nodes": many(NODE), "roots": many(row_in("nodes", 0)), "left_out": count})(
        value, there
    )
    for at, each in enumerate(value["nodes"]):
        if any(source >= at for source in each[8]):
            error = FieldError(f"numbers of nodes before {at}", each[8])
            error.path += [8, at, "nodes"]
            raise error


#: [op, dtype, shape, bytes, device, argument, call, layer, what it reads]
NODE = row(text, text, text, null_or(number), text, text, call, name, many(row_in("nodes", 0)))
#: What there is to see of a kernel (`details.py`).
DETAILS = fields(
    {
        **STEPS,
        "opts": many(fields({"opt": text, "text": text, "loops": loops})),
        "sources": names_to(text),
        "text_loops": names_to(text_loops),
        "assembly": text,
        "machine_loops": many(row(whole, many(pair))),
        "hot": null_or(
            fields(
                {
                    "lines": many(pair),
                    "instructions": count,
                    "loop": whole,
                    "turns": null_or(many(count)),
                    "executed": null_or(row(count, count)),
                }
            )
        ),
        "cycles": null_or(number),
        "launch": null_or(row(text, text)),
    }
)
RECORDING = fields(
    {
        "format": text,
        "version": whole,
        # when: it began, in seconds since 1970; wall: seconds; rank: its number among processes of a launcher
        "made": fields(
            {
                **dict.fromkeys(("script", "python", "machine", "device"), text),
                "when": number,
                "wall": number,
                "rank": null_or(whole),
            }
        ),
        # what there was too much of → how much of it is not here
        "left_out": names_to(count),
        # texts that others refer to by number: devices, layers, labels
        "names": many(text),
        "threads": many(text),
        # [method, file:line, the line's text] of calls of the user; method "": a line
        "calls": many(row(text, text, text)),
        "graphs": many(graph),
        # what ran, each once; "does": [operation, how often]; "details" not for all
        "kernels": many(
            fields(
                {
                    "number": row_in("kernels", 0),
                    **dict.fromkeys(("name", "kind", "device", "shape"), text),
                    "calls": many(call),
                    "runs": count,
                    **dict.fromkeys(("seconds", "best", "ops", "accessed"), number),
                    "does": many(row(text, count)),
                },
                {"details": DETAILS},
            )
        ),
        # kernels where they stand in plans; "ends" says why each output is stored: [reason, kernels that read
        # it again, call]; "place" is the kernel's number in its plan, "without" the rows of its ends (-1: not
        # looked at)
        "items": many(
            fields(
                {
                    "plan": whole,
                    "place": whole,
                    "kernel": row_in("kernels", 0),
                    "writes": memory,
                    "reads": memory,
                    "sizes": many(row(count, text, count)),
                    "ends": many(row(text, whole, call)),
                    "kept": many(row(count, call)),
                },
                {"without": many(row_in("without"))},
            )
        ),
        # [kind, begin, duration, thread, device, what] in microseconds; what: the number of a kernel, or -1
        # minus that of a name; of a capture and of a replay a seventh: the capture's number
        "events": many(
            row(
                text, number, number, row_in("threads", 0), row_in("names", 0), kernel_or("names", -1),
                last=row_in("captures"),
            )
        ),
        # [begin, end (null: not freed), bytes, device, kernel that wrote it first, call, what it is (a name),
        # the line that took it (a call), when it was last used (null: never), what used it last (a kernel,
        # -1: unknown, or -2 minus the number of a capture), the attribute of a module that holds it (a name)]
        "allocations": many(
            row(
                number, null_or(number), count, row_in("names", 0), kernel, call, row_in("names", 0),
                call, null_or(number), kernel_or("captures", -2), name,
            )
        ),
        # memory that values in between share; steps: the kernels in order; values: [first step, last step,
        # offset, bytes, call]; "times": how often an arena was divided like that
        "arenas": many(
            fields(
                {
                    "at": number,
                    "what": text,
                    "device": row_in("names", 0),
                    "bytes": count,
                    "times": count,
                    "steps": many(kernel),
                    "values": many(row(count, count, count, count, call)),
                }
            )
        ),
        # of jits, steps as in arenas
        "captures": many(
            fields({"name": text, "steps": many(kernel), "replays": count, "seconds": number, "best": number})
        ),
    },
    {
        # how graphs became kernels
        "plans": many(
            fields({"graph": row_in("graphs", 0), "plans": many(whole), "kernels": count, **STEPS})
        ),
        # what plans would be without a boundary (`planning.py`); of numbers those now and those then
        "without": many(
            fields(
                {"wanted": text, "refused": text},
                dict.fromkeys(("kernels", "cycles", "operations", "bytes", "seconds"), pair),
            )
        ),
        # device → the most that it was measured to do in a second; caches: [bytes, bytes in a second]
        "rooflines": names_to(
            null_or(fields({"ops": number, "caches": many(pair), "memory": number}))
        ),
        # of recordings that lie side by side: which threads and events are whose
        "ranks": many(fields({"name": text, "threads": row(count, count), "events": row(count, count)})),
    },
)  # fmt: skip
#: The lists that others refer to.
REFERRED = ("names", "threads", "calls", "graphs", "kernels", "captures", "without")


def check_recording(found: Any) -> None:
    """FieldError for a value that is not what its field may be."""
    values = found if type(found) is dict else {}
    lengths = {each: len(values[each]) if type(values.get(each)) is list else 0 for each in REFERRED}
    RECORDING(found, lengths)
    last = 0
    for at, each in enumerate(found.get("ranks", ())):
        first, end = each["threads"]
        if first != last or end < first or end > lengths["threads"]:
            raise _of_rank(at, "threads", each)
        begin, behind = each["events"]
        if not begin <= behind <= len(found["events"]):
            raise _of_rank(at, "events", each)
        last = end
    if "ranks" in found and last != lengths["threads"]:
        error = FieldError(f"the ranks of all {lengths['threads']} threads", found["ranks"])
        error.path.append("ranks")
        raise error


def _of_rank(at: int, what: str, each: dict[str, Any]) -> FieldError:
    error = FieldError(f"the first and the last of its {what}", each[what])
    error.path += [what, at, "ranks"]
    return error

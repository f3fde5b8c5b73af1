"""What joins devices, and how long a collective takes on it.

A network has levels: within a group of so many devices each pair has a fast link; between groups there are
slower ones, of which each device has one of its own. A collective over devices of several groups runs in
steps, within the groups and between devices that have the same place in them (the hierarchical algorithms of
NCCL and of MPI libraries; Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
operations in MPICH").

Of n bytes, with p devices, bandwidth B and latency a, on one level:

    all-reduce                         2 n (p-1)/p / B + 2 a log2 p
    reduce-scatter, all-gather           n (p-1)/p / B +   a log2 p
    all-to-all                           n (p-1)/p / B +   a log2 p
    broadcast                          (n / B + a) log2 p
    send                                 n / B + a

A broadcast goes down a binomial tree (runtime/_mpi.py), a send straight from one device to another, over the
links of the pair that is furthest apart. For a reduce-scatter n is what a device gives, for an all-gather
what it has in the end.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...ir.args import CollectiveArg
from ...sharding.between_ranks import messages_between

#: What of a link's bandwidth a collective reaches: a choice, between the 0.7 and 0.95 that are reported of
#: large all-reduces on NVLink and InfiniBand (NCCL's tests).
REACHED = 0.8


class Link(NamedTuple):
    """One level of a network.

    name       as it was asked for        group  how many devices it joins; 0 = all
    bandwidth  bytes that a device sends in a second, and receives as well
    latency    seconds for a message of no bytes, its start included
    """

    name: str
    group: int
    bandwidth: float
    latency: float


class Phase(NamedTuple):
    """What a device does on one level of links in a collective.

    nbytes    that it receives, one after another; of a broadcast, all that the tree sends one after another
    messages  that come one after another
    """

    level: int
    nbytes: float
    messages: float


#: GPU architecture → bytes a second in each direction of a GPU's NVLinks together (NVIDIA's data sheets: 600,
#: 900 and 1800 GB/s in both directions of A100, H100 and B200).
_NVLINK = {"sm_80": 300e9, "sm_90": 450e9, "sm_100": 900e9}
#: Seconds for an empty message: choices, of the size that is reported for NVLink (a few microseconds with the
#: start of the kernel that sends), InfiniBand with GPUDirect, Ethernet with TCP, and processes of one host.
_LATENCY = {"nvlink": 3e-6, "ib": 8e-6, "eth": 30e-6, "host": 2e-6}
#: Bytes a second between two processes of one host, which copy through its memory: a choice.
_HOST = 4e9


class Links:
    """The levels of a network, the innermost first.

    >>> Links.of("nvlink8,ib400", "sm_90").levels[1].bandwidth
    50000000000.0
    """

    def __init__(self, levels: Sequence[Link]) -> None:
        self.levels = tuple(levels)

    @classmethod
    def of(cls, text: str, arch: str) -> Links:
        """The network that a text such as "nvlink8,ib400" says: 8 devices of a host joined by NVLink, hosts
        by InfiniBand with 400 Gbit/s for each device. `host` are processes of one machine, `eth25` Ethernet.

        arch  of the devices: NVLink's bandwidth depends on it

        ValueError names what is not known.
        """
        levels = [_level(word.strip(), arch) for word in text.lower().split(",")]
        for inner, outer in pairwise(levels):
            if not inner.group:
                raise ValueError(
                    f"{inner.name} joins all devices, so {outer.name} has nothing to join; say how many a "
                    f"group has, as in nvlink8"
                )
        return cls(levels)

    def seconds(self, arg: CollectiveArg, itemsize: int, places: Sequence[int]) -> float:
        """How long a collective takes.

        itemsize  bytes of an element     places  of the group's devices among all
        """
        if arg.kind == "send":
            return self._sent(arg, itemsize, places)
        return self.time(arg.kind, *_given_and_taken(arg, itemsize), places)

    def time(self, kind: str, given: float, taken: float, places: Sequence[int]) -> float:
        """How long a collective takes in which each device gives and gets so many bytes.

        given   what one of the others gets, or all of them where they get the same
        """
        total = 0.0
        for phase in self._phases(kind, given, taken, places):
            link = self.levels[phase.level]
            total += phase.nbytes / (link.bandwidth * REACHED) + link.latency * phase.messages
        return total

    def received(self, arg: CollectiveArg, itemsize: int, places: Sequence[int]) -> list[float]:
        """The bytes that the device of a collective receives over each level of links; what `seconds` is
        given.
        """
        found = [0.0] * len(self.levels)
        own = places[arg.position]
        if arg.kind == "broadcast":  # down a tree: from the nearest of those that have it before
            level = min((self.level_of((other, own)) for other in places[: arg.position]), default=0)
            found[level] = float(sum(arg.receives) * itemsize)
        elif arg.kind == "send":
            for sender, receiver, nbytes in _messages(arg, itemsize):
                if receiver == arg.position:
                    found[self.level_of((places[sender], own))] += nbytes
        else:
            for phase in self._phases(arg.kind, *_given_and_taken(arg, itemsize), places):
                found[phase.level] += phase.nbytes
        return found

    def _sent(self, arg: CollectiveArg, itemsize: int, places: Sequence[int]) -> float:
        """The longest of the messages of pairs, which are on their way at the same time."""
        longest = 0.0
        for sender, receiver, nbytes in _messages(arg, itemsize):
            link = self.levels[self.level_of((places[sender], places[receiver]))]
            longest = max(longest, nbytes / (link.bandwidth * REACHED) + link.latency)
        return longest

    def level_of(self, places: Sequence[int]) -> int:
        """The outermost level that a group of devices needs."""
        return max((n for n, level in enumerate(self.levels) if self._is_split(places, n, level)), default=0)

    def _is_split(self, places: Sequence[int], number: int, level: Link) -> bool:
        inner = self.levels[number - 1].group if number else 1
        return len({place // inner for place in places}) > 1

    def _phases(self, kind: str, given: float, taken: float, places: Sequence[int]) -> list[Phase]:
        """A collective within groups and between them: each level works on what the one within leaves."""
        found = []
        nbytes = {"all_reduce": given, "reduce_scatter": taken * len(places)}.get(kind, taken)
        within = 1
        for level, count in self._joined(places):
            hops, part = math.log2(count), (count - 1) / count
            if kind == "all_reduce":  # a reduce-scatter and an all-gather
                found.append(Phase(level, 2 * nbytes * part, 2 * hops))
                nbytes /= count
            elif kind in ("reduce_scatter", "all_gather"):
                found.append(Phase(level, nbytes * part, hops))
                nbytes /= count
            elif kind == "broadcast":
                found.append(Phase(level, max(given, taken) * hops, hops))
            else:  # of an all-to-all, what goes to devices of other groups goes over the link between them
                found.append(Phase(level, nbytes * within * (count - 1) / len(places), hops))
            within *= count
        return found

    def _joined(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """Each level that a group uses, and how many of its devices, or groups of them, it joins."""
        found, inner = [], 1
        for number, level in enumerate(self.levels):
            units = {place // inner for place in places}
            size = level.group // inner  # units that a group has; 0 = all are one group
            groups = Counter(unit // size if size else 0 for unit in units)
            joined = max(groups.values())
            if joined > 1:
                found.append((number, joined))
            inner = level.group or inner
        reached = math.prod(count for _, count in found)
        if reached < len(set(places)) and self.levels[-1].group:
            last = self.levels[-1]
            raise ValueError(
                f"{last.name} joins {last.group} devices, and a collective has {len(places)}; say what joins "
                "more, as in nvlink8,ib400"
            )
        return found


def _given_and_taken(arg: CollectiveArg, itemsize: int) -> tuple[int, int]:
    """The bytes that a device gives, and gets, of what `Links.time` is given."""
    given = max((end - begin for begin, end in arg.sends), default=0)
    return given * itemsize, sum(arg.receives) * itemsize


def _messages(arg: CollectiveArg, itemsize: int) -> Iterator[tuple[int, int, int]]:
    """Which of a group sends to which other one, and how many bytes."""
    spans, wanted = arg.spans
    row = math.prod(arg.shape[1:]) * itemsize
    for sender, receiver, count in messages_between(spans, wanted):
        yield sender, receiver, count * row


def _level(word: str, arch: str) -> Link:
    found = re.fullmatch(r"(nvlink|ib|eth|host)(\d*)", word)
    if found is None:
        raise ValueError(
            f"{word!r} is no link; there are nvlink8 (so many devices joined), ib400 and eth25 (Gbit/s for "
            "each device), and host"
        )
    kind, number = found[1], int(found[2] or 0)
    if kind == "host":
        return Link(word, number, _HOST, _LATENCY[kind])
    if not number:
        raise ValueError(f"{word!r}: a number comes after {kind}, as in nvlink8 and ib400")
    if kind == "nvlink":
        bandwidth = _NVLINK.get(arch.rstrip("af"))
        if bandwidth is None:
            known = ", ".join(_NVLINK)
            raise ValueError(f"nothing is known of NVLink on {arch or 'this target'}; known are {known}")
        return Link(word, number, bandwidth, _LATENCY[kind])
    return Link(word, 0, number * 1e9 / 8, _LATENCY[kind])

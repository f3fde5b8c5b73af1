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
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ...ir.args import CollectiveArg
from ...schedule.between_ranks import messages_between

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
        given = max((end - begin for begin, end in arg.sends), default=0) * itemsize
        taken = sum(arg.receives) * itemsize
        return self.time(arg.kind, given, taken, places)

    def time(self, kind: str, given: float, taken: float, places: Sequence[int]) -> float:
        """How long a collective takes in which each device gives and gets so many bytes.

        given   what one of the others gets, or all of them where they get the same
        """
        steps = self._steps(places)
        if not steps:
            return 0.0
        if kind == "all_reduce":
            return 2 * _halved(steps, given)
        if kind == "reduce_scatter":
            return _halved(steps, taken * len(places))
        if kind == "all_gather":
            return _halved(steps, taken)
        if kind == "broadcast":
            nbytes = max(given, taken)
            return sum(
                math.log2(n) * (nbytes / (link.bandwidth * REACHED) + link.latency) for link, n in steps
            )
        return _exchanged(steps, taken, len(places))

    def _sent(self, arg: CollectiveArg, itemsize: int, places: Sequence[int]) -> float:
        """The longest of the messages of pairs, which are on their way at the same time."""
        spans, wanted = arg.spans
        row, longest = math.prod(arg.shape[1:]) * itemsize, 0.0
        for sender, receiver, count in messages_between(spans, wanted):
            pair = (places[sender], places[receiver])
            link = self.levels[self.level_of(pair)]
            longest = max(longest, count * row / (link.bandwidth * REACHED) + link.latency)
        return longest

    def level_of(self, places: Sequence[int]) -> int:
        """The outermost level that a group of devices needs."""
        return max((n for n, level in enumerate(self.levels) if self._is_split(places, n, level)), default=0)

    def _is_split(self, places: Sequence[int], number: int, level: Link) -> bool:
        inner = self.levels[number - 1].group if number else 1
        return len({place // inner for place in places}) > 1

    def _steps(self, places: Sequence[int]) -> list[tuple[Link, int]]:
        """Each level that a group uses, and how many of its devices, or groups of them, it joins."""
        found, inner = [], 1
        for level in self.levels:
            units = {place // inner for place in places}
            size = level.group // inner  # units that a group has; 0 = all are one group
            groups = Counter(unit // size if size else 0 for unit in units)
            joined = max(groups.values())
            if joined > 1:
                found.append((level, joined))
            inner = level.group or inner
        reached = math.prod(count for _, count in found)
        if reached < len(set(places)) and self.levels[-1].group:
            last = self.levels[-1]
            raise ValueError(
                f"{last.name} joins {last.group} devices, and a collective has {len(places)}; say what joins "
                "more, as in nvlink8,ib400"
            )
        return found


def _halved(steps: Sequence[tuple[Link, int]], nbytes: float) -> float:
    """A reduce-scatter of so many bytes, or an all-gather: each level works on what the one within leaves."""
    total = 0.0
    for link, count in steps:
        total += nbytes * (count - 1) / count / (link.bandwidth * REACHED) + link.latency * math.log2(count)
        nbytes /= count
    return total


def _exchanged(steps: Sequence[tuple[Link, int]], nbytes: float, devices: int) -> float:
    """An all-to-all: what goes to devices of other groups goes over the link between them."""
    total, within = 0.0, 1
    for link, count in steps:
        beyond = within * (count - 1) / devices
        total += nbytes * beyond / (link.bandwidth * REACHED) + link.latency * math.log2(count)
        within *= count
    return total


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

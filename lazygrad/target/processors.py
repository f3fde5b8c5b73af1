"""Kinds of processors: what vector units have, by their features; and a row for each that is known by name.

A row says what its source says; where that is silent, it is as for others (`facts.py`). The sources, by the
words that rows are headed with:

amd    AMD's "Software Optimization Guide" for family 17h models 30h and later (publication 56305), for family
       19h (56665), for the Zen 4 (57647) and the Zen 5 microarchitecture (58455)
intel  Intel's "64 and IA-32 Architectures Optimization Reference Manual" (248966)
arm    Arm's "Neoverse N1", "Neoverse V1" and "Neoverse V2 Core Software Optimization Guide"; their second
       caches are the largest that Arm's technical reference manuals allow
apple  caches as `sysctl hw.perflevel0` says; the latencies of M1 as D. Johnson measured them
       (dougallj.github.io/applecpu)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..dtype import dtypes
from .facts import Core, Dot, Memory, Target
from .measured import GROUPS, SHIPPED, Row, nearest, shipped_row

#: Instructions for sums of products, by the names that LLVM and Linux have for them.
DOTS = {
    frozenset(("avx512bf16", "avx512_bf16")): Dot(dtypes.bfloat16, 2, dtypes.float32),
    frozenset(("avx512vnni", "avx512_vnni")): Dot(dtypes.int16, 2, dtypes.int32),
}
#: What has `vpdpbusd`.
_DP4A = frozenset(("avx512vnni", "avx512_vnni", "avxvnni", "avx_vnni"))
_NEON = frozenset(("neon", "asimd"))
#: So many walks go on as if alone as bring this share of what the best number of them does.
AS_MUCH = 0.95


def refined(base: Target, arch: str, features: frozenset[str], shipped: bool = True) -> Target:
    """`base` with the facts of a processor that has these features, in the names that LLVM and Linux share.

    A vector register has 64 bytes with avx512f, 32 with avx2, else 16; there are 32 with avx512f and on ARM,
    else 16. Half is converted by instructions with f16c and on ARM, in whole vectors.
    A vector of avx512f is a line of memory, which it writes past the caches (`vmovntps`). How fast it is, the
    row named `arch` says, or that of the nearest of its family.

    shipped  whether the measured row that ships counts before the data sheet
    """
    stands = nearest(arch, KNOWN)
    known = PROCESSORS.get(stands)
    vector_bytes = 64 if "avx512f" in features else 32 if "avx2" in features else 16
    arm = bool(features & _NEON)
    halves = arm or "f16c" in features
    said = replace(
        base,
        arch=arch,
        vector_bytes=vector_bytes,
        vector_registers=32 if vector_bytes == 64 or arm else 16,
        load_bytes=vector_bytes,
        past_caches=64 if vector_bytes == 64 else 0,
        has_masks="avx512f" in features,
        has_fma=arm or "fma" in features,
        converted_dtypes=frozenset((dtypes.float16,)) if halves else frozenset(),
        has_dp4a=bool(features & _DP4A),
        has_ldexp="avx512vl" in features,
        saturates=arm,
        has_gathers=base.has_gathers and known is not None and known.gathers,
        dots=dots_of(features),
        core=known.core if known else base.core,
        memory=known.memory if known else base.memory,
    )
    row = shipped_row(nearest(stands, SHIPPED)) if shipped and stands not in _LEVELS else None
    if row is None:
        return said
    measured = as_measured(said, row, base.has_gathers)
    if row.processor == stands:
        return measured
    # how prefetchers go on is much the same in a family
    return replace(said, memory=replace(said.memory, overrun=said.memory.overrun or measured.memory.overrun))


def dots_of(features: frozenset[str]) -> tuple[Dot, ...]:
    """The instructions for sums of products that a processor with these features has."""
    return tuple([dot for names, dot in DOTS.items() if features & names])


_PLAIN, _UNKNOWN = Core(), Memory()


@dataclass(frozen=True)
class Processor:
    """One that code can be made for, here or not.

    triple, cpu    LLVM's words for what the code may use: of a microarchitecture, the level that it has
    features       those of `refined`
    gathers        whether a vector's gather is as fast as loads one by one: measured, or false
    core, memory   how fast it is
    """

    triple: str
    cpu: str
    features: frozenset[str]
    core: Core = _PLAIN
    memory: Memory = _UNKNOWN
    gathers: bool = False

    @property
    def march(self) -> str:
        """What C compilers call it."""
        return "armv8-a" if self.triple.startswith("aarch64") else self.cpu


_LEVELS = {
    "x86-64": "sse2",
    "x86-64-v3": "sse2 avx2 fma f16c",
    "x86-64-v4": "sse2 avx2 fma f16c avx512f avx512vl",
}
_K, _M = 1 << 10, 1 << 20
#: Golden Cove, with vectors of 32 bytes.
_GOLDEN_COVE = Core(loads=3, lane_loads=3, add=3)
#: A product is begun before the sum that it is added to is there.
_NEOVERSE_V = Core(arithmetic=4, products=4, loads=3, lane_loads=3, add=2, multiply=3, multiply_add=2)

#: Measured: sums of 16 and of 64 MB; products of 56 MB of rows of 1,152 bytes, one row or four at a time (an
#: end takes 100 cycles); products of 60 matrices in blocks of 4 bits, asked for 0.5 to 64 KB ahead.
_ZEN_5 = Memory(rates=(64, 24, 12), stream=12, overrun=((1152, 1200),), adjoining=False, prefetched=16 * _K)
#: Measured: gradients of products of 34 and 64 rows with weights of 768 and 256 x 3,072, stored in strips of
#: 128 bytes to 2 KB and in whole rows: 90 to 220 cycles a row. GELU, sigmoid, softmax and normalisations that
#: ask 0.5 to 8 KB ahead.
_EMERALD_RAPIDS = Memory(row=120, computing=4 * _K, prefetches_tile=True)


def _x86(level: str, core: Core = _PLAIN, *caches: int, memory: Memory = _UNKNOWN) -> Processor:
    features = frozenset(_LEVELS[level].split())
    return Processor("x86_64-unknown-linux-gnu", level, features, core, replace(memory, caches=caches))


def _arm(core: Core = _PLAIN, *caches: int) -> Processor:
    return Processor("aarch64-unknown-linux-gnu", "generic", _NEON, core, Memory(caches))


#: name → what it is: ARM's 64-bit processors from the first on, the levels of the x86-64 psABI, and
#: microarchitectures by the names that LLVM has for them. A cache that cores share is left out where its size
#: is a product's own.
PROCESSORS = {
    "aarch64": _arm(),
    "x86-64": _x86("x86-64"),
    "x86-64-v3": _x86("x86-64-v3"),
    "x86-64-v4": _x86("x86-64-v4"),
    # amd: Zen 4 takes two cycles for vectors of 64 bytes; Zen 5's second cache gives 64 bytes a cycle
    "znver2": _x86("x86-64-v3", Core(add=3, multiply=3, multiply_add=5), 32 * _K, 512 * _K, 16 * _M),
    "znver3": _x86("x86-64-v3", Core(add=3, multiply=3), 32 * _K, 512 * _K, 32 * _M),
    "znver4": _x86("x86-64-v4", Core(products=1, loads=1, add=3, multiply=3), 32 * _K, 1 * _M, 32 * _M),
    "znver5": replace(_x86("x86-64-v4", _PLAIN, 48 * _K, 1 * _M, 32 * _M, memory=_ZEN_5), gathers=True),
    # intel
    "skylake": _x86("x86-64-v3", _PLAIN, 32 * _K, 256 * _K),
    "skylake-avx512": _x86("x86-64-v4", _PLAIN, 32 * _K, 1 * _M),
    "icelake-client": _x86("x86-64-v4", Core(products=1), 48 * _K, 512 * _K),
    "icelake-server": _x86("x86-64-v4", _PLAIN, 48 * _K, 1280 * _K),
    "alderlake": _x86("x86-64-v3", _GOLDEN_COVE, 48 * _K, 1280 * _K),
    "sapphirerapids": _x86("x86-64-v4", replace(_GOLDEN_COVE, loads=2), 48 * _K, 2 * _M),
    **dict.fromkeys(
        ("emeraldrapids", "graniterapids"),
        _x86("x86-64-v4", replace(_GOLDEN_COVE, loads=2), 48 * _K, 2 * _M, memory=_EMERALD_RAPIDS),
    ),
    # arm
    "neoverse-n1": _arm(Core(add=2, multiply=3, multiply_add=2), 64 * _K, 1 * _M),
    "neoverse-v1": _arm(_NEOVERSE_V, 64 * _K, 1 * _M),
    "neoverse-v2": _arm(_NEOVERSE_V, 64 * _K, 2 * _M),
    # apple: the faster of their two kinds of cores
    "apple-m1": _arm(Core(arithmetic=4, products=4, loads=3, lane_loads=3, add=3), 128 * _K, 12 * _M),
    "apple-m2": _arm(_PLAIN, 128 * _K, 16 * _M),
    "apple-m3": _arm(_PLAIN, 128 * _K, 16 * _M),
    "apple-m4": _arm(_PLAIN, 128 * _K, 16 * _M),
}
#: Those of which anything is known: a data sheet's row, or a measured one.
KNOWN = frozenset((*PROCESSORS, *SHIPPED))


# *** what they were seen to do


def as_measured(target: Target, row: Row, gathers: bool) -> Target:
    """`target` with what the row says; of what it lacks, the facts stay as they are.

    gathers  whether code for the target can have them

    A row counts in nanoseconds and gigabytes a second, a target in the cycles that the row's clock says.
    Numbers are rounded, as figures vary: to two digits, and the units of a core to halves.
    """
    clock, core, memory, launch = row.value("clock", "core") or 1.0, target.core, target.memory, target.launch
    found: dict[str, dict[str, float]] = {name: {} for name in GROUPS}
    for name, figures in row.figures.items():
        for key, (value, _) in figures.items():
            in_cycles = value * clock if GROUPS[name].unit == "ns" else value / clock
            found[name][key] = float(f"{in_cycles:.2g}")
    # the latencies beyond the second cache are those of random pages, which no tile walks
    read, latency, streams, fork = found["read"], found["latency"], found["streams"], found["fork"]
    width = str(target.vector_bytes)
    if width in found["fma"]:
        core = replace(core, products=max(0.5, round(found["fma"][width] / target.vector_bytes * 4) / 2))
    if width in found["fma_latency"]:
        core = replace(core, multiply_add=round(2 * found["fma_latency"][width]) / 2)
    if "level1" in read and target.vector_bytes:
        core = replace(core, loads=max(0.5, round(2 * read["level1"] / target.vector_bytes) / 2))
    if "1" in streams:
        best = max(streams.values())
        behind = [read.get("level2", best), read.get("level3", best)]
        memory = replace(
            memory,
            rates=(behind[0], behind[1], best),
            stream=streams["1"],
            walks=min(int(key) for key in streams if streams[key] >= AS_MUCH * best),
            overrun=tuple(
                [
                    (int(width), float(f"{int(width) * max(0.0, streams['1'] / rate - 1):.2g}"))
                    for width, rate in sorted(found["columns"].items(), key=lambda each: int(each[0]))
                ]
            ),
            waits=(latency.get("level2", memory.waits[0]), memory.waits[1]),
        )
    if "awake" in fork and "asleep" in fork:  # a kernel finds the other cores in either state
        launch = replace(launch, fork=float(f"{math.sqrt(fork['awake'] * fork['asleep']):.2g}"))
    # what each lane takes includes its index, so it is no `Core.gathered`; the two can be compared
    one_by_one, together = found["gather"].get("level1"), found["gather_instruction"].get("level1")
    pays = together < one_by_one if one_by_one and together else target.has_gathers
    # products of bfloat16 can be had as those of float32 too
    slow = found["dot"].get("bfloat16", math.inf) < found["fma"].get(width, 0.0)
    dots = tuple([dot for dot in target.dots if not (slow and dot.element is dtypes.bfloat16)])
    return replace(target, core=core, memory=memory, launch=launch, has_gathers=gathers and pays, dots=dots)

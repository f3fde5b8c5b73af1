"""A row for each known architecture of GPUs: how many threads of a grid run at once, which choices ask.

How many a multiprocessor holds is the architecture's: NVIDIA's "CUDA C++ Programming Guide", the table of
technical specifications per compute capability. How many multiprocessors there are is a product's; a row has
those of the largest that is sold for computing, as NVIDIA's whitepaper on the architecture says (of
Blackwell, as the driver does):

sm_75  Turing: Quadro RTX 8000      sm_86  Ampere: RTX A6000            sm_90   Hopper: H100 SXM
sm_80  Ampere: A100                 sm_89  Ada: RTX 6000 Ada            sm_100  Blackwell: B200

What a multiprocessor holds and does in a cycle (threads, workgroups, shared memory, multiply-adds on float32)
stands in the same guide: its tables of technical specifications and of the throughput of arithmetic
instructions. What tensor cores do stands in the whitepapers; Blackwell is taken to do what Hopper does, with
these instructions. Clocks (the highest that the product runs at) and bytes a second of memory are the
whitepapers' too, of the A100 with 80 GB; Blackwell's clock is what its peak divided by its units gives. That
of the shared cache, and how long memory takes, are what is commonly measured (64
bytes a cycle, 500 cycles), as are the cycles of a shuffle (20 to 25); nothing here was measured by us. What a
workgroup takes of local memory beside its own stands in the guide (compute capability 8.x and later), what
caches give at once and fetch together in the "CUDA C++ Best Practices Guide" (coalesced access).

What else the choices ask is the same for all of these, and stands where targets are made: warps of 32,
workgroups of 1024, 48 KB of local memory as kernels declare it, loads of 16 bytes, halves. So it is for those
GPUs of Apple's that run macOS (Apple's "Metal Feature Set Tables", families Apple7 and later: 32 threads,
1024, 32 KB); how many threads run on them at once Apple does not say.
"""

from __future__ import annotations

from dataclasses import replace

from ..dtype import dtypes
from .facts import Launch, Multiprocessor, TensorCore

_K = 1024


def _nvidia(
    multiprocessors: int,
    threads: int,
    groups: int,
    local_bytes: int,
    products: int,
    matrix_products: int,
    megahertz: int,
    gigabytes: int,
) -> Launch:
    each = Multiprocessor(threads, groups, local_bytes, products, matrix_products)
    return Launch(
        resident=multiprocessors * threads,
        multiprocessor=each,
        multiprocessors=multiprocessors,
        clock=megahertz * 1e6,
        bandwidth=gigabytes * 1e9,
    )


#: architecture → how it starts work, and what runs it.
GPUS = {
    "sm_75": _nvidia(72, 1024, 16, 64 * _K, 64, 512, 1770, 672),
    "sm_80": _nvidia(108, 2048, 32, 164 * _K, 64, 1024, 1410, 2039),
    "sm_86": _nvidia(84, 1536, 16, 100 * _K, 128, 512, 1800, 768),
    "sm_89": _nvidia(142, 1536, 24, 100 * _K, 128, 512, 2505, 960),
    "sm_90": _nvidia(132, 2048, 32, 228 * _K, 128, 2048, 1830, 3350),
    "sm_100": _nvidia(148, 2048, 32, 228 * _K, 128, 2048, 1850, 8000),
}


#: The architecture that kernels are written for, where no GPU and nobody says which.
CUDA_ARCH = "sm_80"


def launch_of(arch: str) -> Launch:
    """How an architecture starts work, `sm_90a` as `sm_90`; of one that is not known, as common ones do."""
    return GPUS.get(arch.rstrip("af"), Launch())


#: The first architecture that has them → instructions of tensor cores ("Warp Level Matrix Multiply-Accumulate
#: Instructions", PTX ISA). `ldmatrix`, which loads what they multiply, is there from sm_75 on.
_TENSOR_CORES = {
    75: (TensorCore(dtypes.float16, 8, dtypes.float32),),
    80: (
        TensorCore(dtypes.float16, 16, dtypes.float32),
        TensorCore(dtypes.bfloat16, 16, dtypes.float32),
        TensorCore(dtypes.int8, 32, dtypes.int32),
        TensorCore(dtypes.uint8, 32, dtypes.int32),
        TensorCore(dtypes.float32, 8, dtypes.float32, unread=13),  # tf32
    ),
    89: (
        TensorCore(dtypes.fp8e4m3, 32, dtypes.float32),
        TensorCore(dtypes.fp8e5m2, 32, dtypes.float32),
    ),
}

#: The warps of a warpgroup, and the bytes of a row that it multiplies in one go, by instructions of 32 bytes
#: ("Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", PTX ISA): there on sm_90 alone.
_GROUP, _GROUP_BYTES = 4, (64, 128)
#: Types that are left to single warps: a warpgroup keeps some 14 bits of sums of fp8 ("DeepSeek-V3 Technical
#: Report", 3.3.2), and not those of float32.
_INEXACT = (dtypes.fp8e4m3, dtypes.fp8e5m2)
#: What the others reach there, of what a warpgroup does: 62.9 % on the average (Luo et al., "Benchmarking and
#: Dissecting the Nvidia Hopper GPU Architecture through Microbenchmarking", 2024; not measured by us).
_ALONE = 0.63
_HOPPER = 90

#: What SIMD-groups of Apple's GPUs multiply, from family Apple7 on ("Metal Feature Set Tables"): two matrices
#: of 8 x 8 at once. The factors, and sums of float32, go through local memory.
SIMDGROUPS = (
    TensorCore(dtypes.float16, 8, dtypes.float32, warp_bytes=64 * 2 + 64 * 4),
    TensorCore(dtypes.float32, 8, dtypes.float32, warp_bytes=64 * 4),
)


def tensor_cores_of(arch: str) -> tuple[TensorCore, ...]:
    """What the tensor cores of an architecture do, the most steps first; () before sm_75."""
    number = _number(arch)
    found = [
        replace(core, loads=True)
        for first, cores in _TENSOR_CORES.items()
        if first <= number
        for core in cores
    ]
    if number == _HOPPER:
        found = [replace(core, share=_ALONE) for core in found] + [
            replace(core, steps=size // core.element.itemsize, warps=_GROUP, loads=False)
            for core in found
            for size in _GROUP_BYTES
            if core.steps == 32 // core.element.itemsize and core.element not in _INEXACT
        ]
    return tuple(sorted(found, key=lambda core: -core.steps))


def own_arch(arch: str) -> str:
    """The architecture with what it alone has, as compilers name it: only `sm_90a` has `wgmma`."""
    return f"{arch}a" if arch == f"sm_{_HOPPER}" else arch


def has_async_copies(arch: str) -> bool:
    """Whether threads go on while copies into shared memory are on the way ("cp.async", PTX ISA)."""
    return _number(arch) >= 80


def _number(arch: str) -> int:
    """80 of `sm_80`; 0 of what is no architecture."""
    digits = arch.removeprefix("sm_").rstrip("af")
    return int(digits) if digits.isdigit() else 0

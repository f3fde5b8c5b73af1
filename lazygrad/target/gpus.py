"""A row for each known architecture of GPUs: how many threads of a grid run at once, which choices ask.

How many a multiprocessor holds is the architecture's: NVIDIA's "CUDA C++ Programming Guide", the table of
technical specifications per compute capability. How many multiprocessors there are is a product's; a row has
those of the largest that is sold for computing, as NVIDIA's whitepaper on the architecture says (of
Blackwell, as the driver does):

sm_75  Turing: Quadro RTX 8000      sm_86  Ampere: RTX A6000            sm_90   Hopper: H100 SXM
sm_80  Ampere: A100                 sm_89  Ada: RTX 6000 Ada            sm_100  Blackwell: B200

What a multiprocessor holds and does in a cycle (threads, workgroups, shared memory, multiply-adds on float32)
stands in the same guide: its tables of technical specifications and of the throughput of arithmetic
instructions. That of the shared cache, and how long memory takes, are what is commonly measured on these (64
bytes a cycle, 500 cycles); nothing here was measured by us.

What else the choices ask is the same for all of these, and stands where targets are made: warps of 32,
workgroups of 1024, 48 KB of local memory as kernels declare it, loads of 16 bytes, halves. So it is for those
GPUs of Apple's that run macOS (Apple's "Metal Feature Set Tables", families Apple7 and later: 32 threads,
1024, 32 KB); how many threads run on them at once Apple does not say.
"""

from __future__ import annotations

from .facts import Launch, Multiprocessor

_K = 1024


def _nvidia(multiprocessors: int, threads: int, groups: int, local_bytes: int, products: int) -> Launch:
    each = Multiprocessor(threads, groups, local_bytes, products)
    return Launch(resident=multiprocessors * threads, multiprocessor=each, multiprocessors=multiprocessors)


#: architecture → how it starts work, and what runs it.
GPUS = {
    "sm_75": _nvidia(72, 1024, 16, 64 * _K, 64),
    "sm_80": _nvidia(108, 2048, 32, 164 * _K, 64),
    "sm_86": _nvidia(84, 1536, 16, 100 * _K, 128),
    "sm_89": _nvidia(142, 1536, 24, 100 * _K, 128),
    "sm_90": _nvidia(132, 2048, 32, 228 * _K, 128),
    "sm_100": _nvidia(148, 2048, 32, 228 * _K, 128),
}


def launch_of(arch: str) -> Launch:
    """How an architecture starts work, `sm_90a` as `sm_90`; of one that is not known, as common ones do."""
    return GPUS.get(arch.rstrip("af"), Launch())

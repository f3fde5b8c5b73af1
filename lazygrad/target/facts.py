"""`Target`: what a machine has and how fast it is. The compiler asks this, and never a device's name."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtype import DType, dtypes

#: Bytes that are kept of a row where the sizes of caches are not known.
MOST_KEPT = 32 << 10


@dataclass(frozen=True)
class Dot:
    """An instruction for sums of products: to each sum it adds a few of narrow numbers, in every lane.

    element  the type of the factors, which are packed side by side in unsigned integers: its `word`
    count    how many products it adds to a sum
    total    the type of the sums
    """

    element: DType
    count: int
    total: DType

    @property
    def word(self) -> DType:
        """The integer that holds `count` elements."""
        return {2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[self.element.itemsize * self.count]


@dataclass(frozen=True)
class Target:
    """What a device has. The compiler asks these facts and never a device's name.

    vector_bytes      width of the vector unit; 0 where lanes are scalars (GPUs)
    vector_registers  how many such registers there are
    load_bytes        the widest load or store; 0 = vector_bytes
    has_masks         whether any lanes of a vector may be left out at no cost
    grid              whether a launch runs a grid of threads (GLOBAL and LOCAL axes are not loops)
    has_local         whether threads of a workgroup share memory
    local_bytes       how much of it
    group_threads     the most threads of a workgroup, and along x, y and z: group_sizes
    grid_sizes        the most workgroups along x, y and z
    caches            bytes of each data cache, innermost first; () = unknown
    line_bytes        of a line of memory that a store writes past the caches; 0 = there is no such store
    threads           how many pieces of a kernel can run at once (1 on a GPU: the grid does that)
    max_ops, max_args how large one kernel should get
    native_dtypes     the types it computes in; the others are emulated by `legalize`
    converted_dtypes  the types that it only converts, from float32 and back, by instructions
    has_fma           whether MULACC is one instruction
    dots              its instructions for sums of products of narrow numbers
    """

    name: str
    arch: str = ""
    vector_bytes: int = 0
    vector_registers: int = 16
    load_bytes: int = 0
    has_masks: bool = False
    grid: bool = False
    has_local: bool = False
    local_bytes: int = 0
    group_threads: int = 1024
    group_sizes: tuple[int, ...] = (1024, 1024, 64)
    grid_sizes: tuple[int, ...] = (2**31 - 1, 65535, 65535)
    caches: tuple[int, ...] = ()
    line_bytes: int = 0
    threads: int = 1
    max_ops: int = 2000
    max_args: int = 1000
    native_dtypes: frozenset[DType] = frozenset()
    converted_dtypes: frozenset[DType] = frozenset()
    has_fma: bool = False
    dots: tuple[Dot, ...] = ()

    @property
    def row_bytes(self) -> int:
        """How much of a row a kernel may keep in memory of its own between two loops along it; 0 = none.

        Half of the second cache. A grid keeps none: its threads share no row, and have no room for one.
        """
        if self.grid or self.vector_bytes == 0:
            return 0
        return self.caches[1] // 2 if len(self.caches) > 1 else MOST_KEPT

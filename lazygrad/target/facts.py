"""`Target`: what a machine has and how fast it is. The compiler asks this, and never a device's name."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtype import DType, dtypes
from .packed_tiles import PackedTile


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
class TensorCore:
    """An instruction of a warp, 32 threads, that adds a product of matrices, 16 x `steps` times `steps` x 8,
    to a third one. Each thread holds a part of each ("Matrix Fragments for mma", PTX ISA).

    Or, with several `warps`, instructions that these begin together (PTX: a warpgroup), on 16 rows for each
    and up to 256 columns, and that read both factors from the memory of the workgroup, where they lie in
    `tiles`. Where they do not, each warp multiplies what its threads hold, as one warp would.

    element, steps   the type of the factors, and how many products each sum gets
    total            the type of the sums
    warp_bytes       local memory in which the threads of a warp exchange what they hold
    unread           so many last bits of a factor are not read: such an instruction is taken on request only
    warps            how many take part, neighbours in the launch
    share            which part of `matrix_products` it reaches at most
    loads            whether the threads of a warp load matrices together, rows of 16 bytes from the memory of
                     the workgroup
    panels           how the rows and the columns lie where a kernel has copied them; None = otherwise
    columns          of a kernel's product whose factors are read from there; 0 = of what the threads hold
    turned           of such of a warp, whose threads name rows of 16 bytes: whether those of either factor go
                     across the steps
    """

    element: DType
    steps: int
    total: DType
    warp_bytes: int = 0
    unread: int = 0
    warps: int = 1
    share: float = 1.0
    loads: bool = False
    tiles: tuple[PackedTile | None, PackedTile | None] = (None, None)
    columns: int = 0
    turned: tuple[bool, bool] | None = None

    @property
    def packed(self) -> int:
        """How many factors a word of 4 bytes holds."""
        return 4 // self.element.itemsize

    @property
    def halves(self) -> int:
        """How many words of the steps a thread has: each holds neighbours, the second those half-way on."""
        return self.steps // (4 * self.packed)

    @property
    def at_once(self) -> int:
        """The steps of one of its instructions: all of them, or of several, 32 bytes of each row."""
        return min(self.steps, 8 * self.packed)

    @property
    def sums(self) -> int:
        """How many sums a thread has: 4 of each 8 columns."""
        return 4 * max(1, self.columns // 8)


#: What a processor is taken to have that does not say what its caches hold: as much as most have at least.
COMMON_CACHES = (32 << 10, 512 << 10, 16 << 20)


@dataclass(frozen=True)
class Core:
    """How fast one core computes; where nothing is said, as kernels were seen to run on Zen 3 and Zen 5.

    issued     instructions of any kind that start in a cycle
    arithmetic, products, loads, stores   of these, on whole vectors: any arithmetic, multiplications and
               multiply-adds, loads, stores
    lane_loads  loads of one element: where whole vectors are loaded by halves, more than of these
    add, multiply, multiply_add   cycles until the result of one, on floats, can be added to, or multiplied

    What follows is in instructions on vectors, as long as whole ones take:

    scalar     one on scalar integers, as addresses are made of: most of it runs beside the rest
    iteration  a loop's counting, comparing and jumping
    gathered   a lane's load from an address of its own with its place in the vector; its store likewise
    combined   combining the lanes of a vector
    masked     a store of some lanes only, where the target has no masks

    missed     cycles that are lost where a branch was guessed wrong
    guessed_wrong  the share of the branches on data of which that is so
    """

    issued: float = 4.0
    arithmetic: float = 2.0
    products: float = 2.0
    loads: float = 2.0
    lane_loads: float = 2.0
    stores: float = 1.0
    add: float = 4.0
    multiply: float = 4.0
    multiply_add: float = 4.0
    scalar: float = 0.3
    iteration: float = 1.5
    gathered: float = 3.0
    combined: float = 12.0
    missed: float = 16.0
    guessed_wrong: float = 1 / 3
    masked: float = 16.0

    @property
    def chains(self) -> int:
        """How many independent sums of products keep the units busy: the others hide one's latency."""
        return round(self.multiply_add * self.products)


@dataclass(frozen=True)
class Memory:
    """The caches and the memory behind them, as one core finds them.

    caches     bytes of each data cache, innermost first; () = unknown
    line       bytes of a line, which is what moves between them
    aliasing   addresses so many bytes apart share a set of the first cache
    rates      bytes a cycle that come from beyond the first, the second, the third cache (on Zen 3, beside
               what `python -m bench predict` measures)
    stream     bytes a cycle that one walk through memory brings at most
    walks      through memory that go on side by side, each as fast as alone: what prefetchers follow at least
    run        bytes for which a walk goes on at least, to be as fast as a long one: more than the page behind
               which prefetchers do not look (Zen 3: with 4,096 a column sum takes 7.4 ms, with 8,192 4.4)
    page       a walk that goes on so far away, or farther, is a new one to prefetchers
    overrun    bytes of such walks, the shortest first → bytes that could have come in the time that is lost
               by its end: mostly those that prefetchers bring of what lies behind it; between two of them in
               proportion; () = nobody measured
    adjoining  whether the same holds of walks side by side: those that are nearer, or end where another has
               begun, are one (on Granite Rapids rows of 1,152 and 4,096 bytes take as long by fours)
    row        cycles lost for each row of a tile of sums that is stored to memory which the second cache does
               not hold, unless the next tile goes on in that row; 0 = nobody measured
    prefetched  how many bytes ahead of a walk lines are asked for, by a kernel that multiplies rows and
               computes much of each line; 0 = never
    computing  the same, by a kernel that computes much of each line that it reads once, or walks rows again
    prefetches_tile  whether the packed tile of a product that comes next is asked for while one is multiplied
               with
    waits      cycles until a line is there that shares a set with others, from the second cache and from
               beyond it
    waited     the share of such a wait that is left: several lines are under way
    alone      computing and fetching go on together, but for this share of what takes less, where lines come
               from beyond the first, the second, the third cache (measured with tiles of a matmul of 512, and
               with the kernels of `python -m bench predict`)
    own, gone  the share of the last of three caches that a kernel finds for itself: other cores and programs
               use it too. Of what is `gone` times as large as that nothing is left when its turn comes again,
               of less a part is
    hit, trip  in operations on elements: reading one that is in a cache; writing one to memory and reading it
               again (8 bytes at some 20 GB/s, beside 32 to 64 operations a nanosecond)
    """

    caches: tuple[int, ...] = ()
    line: int = 64
    aliasing: int = 4096
    rates: tuple[float, float, float] = (40.0, 24.0, 9.0)
    stream: float = 7.0
    walks: int = 8
    run: int = 8192
    page: int = 4096
    overrun: tuple[tuple[int, float], ...] = ()
    adjoining: bool = True
    row: float = 0.0
    prefetched: int = 0
    prefetches_tile: bool = False
    computing: int = 0
    waits: tuple[float, float] = (12.0, 40.0)
    waited: float = 0.5
    alone: tuple[float, float, float] = (0.1, 0.2, 0.3)
    own: float = 0.5
    gone: float = 3.0
    hit: int = 4
    trip: int = 24

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each data cache, as far as known: those of a common processor where nothing is."""
        return self.caches or COMMON_CACHES

    @property
    def second(self) -> int:
        """Bytes of the second cache, or of the only one."""
        return self.sizes[:2][-1]


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor of a GPU has, and what it does in a cycle.

    threads, groups   how many threads and workgroups it holds at most
    registers         of 4 bytes, which its threads share; one thread has at most `thread_registers`
    local_bytes       memory for its workgroups
    warps             instructions that start in a cycle, each for the threads of a warp
    products          multiply-adds on float32
    matrix_products   those of its tensor cores, on factors of 2 bytes
    banks             words of 4 bytes that its local memory gives
    sectors, sector   that its own cache gives, of so many bytes each
    cached, fetched   bytes that come from the cache which all share, and that come together
    waits             cycles until what is loaded from memory is there
    start, reserved   cycles that a workgroup takes to start; bytes of local memory that each takes beside its
                      own
    meeting, part     cycles of a barrier with what is stored before it; of each part of a sum that is added
    exchange          cycles until there is what another thread of a warp holds
    """

    threads: int
    groups: int
    local_bytes: int
    products: int
    matrix_products: int
    registers: int = 65_536
    thread_registers: int = 255
    warps: int = 4
    banks: int = 32
    sectors: int = 4
    sector: int = 32
    cached: int = 64
    fetched: int = 64
    waits: int = 500
    start: int = 300
    reserved: int = 1024
    meeting: int = 60
    part: int = 8
    exchange: int = 20


#: What a GPU is taken to have of which nothing is known: as much as most that are sold for computing.
COMMON_MULTIPROCESSOR = Multiprocessor(2048, 32, 64 << 10, 128, 0)


@dataclass(frozen=True)
class Launch:
    """What it takes to start work.

    kernel     one more kernel, in operations on elements
    fork       cycles to wake other cores for a kernel in pieces, and to wait for them
    resident   threads of a grid that run at once
    warp       threads of a grid that share an instruction
    multiprocessor, multiprocessors   what runs them, where that is known, and how many there are
    clock, bandwidth   cycles of a multiprocessor in a second; bytes that memory moves in one
    begun      seconds until a kernel of a grid has begun
    """

    kernel: int = 20_000
    fork: float = 6_000.0
    resident: int = 131_072
    warp: int = 32
    multiprocessor: Multiprocessor | None = None
    multiprocessors: int = 0
    clock: float = 1.5e9
    bandwidth: float = 0.5e12
    begun: float = 3e-6

    @property
    def machine(self) -> tuple[Multiprocessor, int]:
        """A multiprocessor and how many there are; of a GPU that is not known, those of a common one."""
        if self.multiprocessor is not None:
            return self.multiprocessor, self.multiprocessors
        return COMMON_MULTIPROCESSOR, max(1, self.resident // COMMON_MULTIPROCESSOR.threads)


@dataclass(frozen=True)
class Target:
    """What a machine has; how fast it is, is said in `core`, `memory` and `launch`.

    vector_bytes      width of the vector unit; 0 where lanes are scalars (GPUs)
    vector_registers  how many such registers there are
    load_bytes        the widest load or store; 0 = vector_bytes
    has_masks         whether any lanes of a vector may be left out at no cost
    grid              whether a launch runs a grid of threads (GLOBAL and LOCAL axes are not loops)
    has_local         whether threads of a workgroup share memory
    local_bytes       how much of it
    copy_sizes        bytes that one step may copy from memory into that of a workgroup; () = there is none
    async_copies      whether threads go on while such a copy is on the way
    shuffles          so many threads of a workgroup that follow each other, along x first, exchange what they
                      hold in registers (SHUFFLE), as those of a warp do; 0 = none do
    group_threads     the most threads of a workgroup, and along x, y and z: group_sizes
    grid_sizes        the most workgroups along x, y and z
    loop_iterations   the most turns that all loops of a thread may take together; 0 = as many as there are
    past_caches       bytes that one store writes past the caches, a whole line; 0 = there is no such store
    threads           how many pieces of a kernel can run at once (1 on a GPU: the grid does that)
    max_ops, max_args how large one kernel should get
    native_dtypes     the types it computes in; the others are emulated by `legalize`
    converted_dtypes  the types that it only converts, from float32 and back, by instructions
    has_fma           whether MULACC is one instruction
    has_dp4a          whether DP4A is one instruction
    has_ldexp         whether LDEXP is, but for the conversion of its power to a float
    saturates         whether its conversions of floats to integers saturate, and make NaN 0
    flushes           whether float32's subnormal numbers may count as 0
    has_gathers       whether one instruction loads lanes of 4 and 8 bytes from addresses of their own, as
                      fast as loads one by one
    dots              its instructions for sums of products of narrow numbers
    tensor_cores      those of a warp for products of matrices
    core, memory, launch   how fast it computes, fetches and starts
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
    copy_sizes: tuple[int, ...] = ()
    async_copies: bool = False
    shuffles: int = 0
    group_threads: int = 1024
    group_sizes: tuple[int, ...] = (1024, 1024, 64)
    grid_sizes: tuple[int, ...] = (2**31 - 1, 65535, 65535)
    loop_iterations: int = 0
    past_caches: int = 0
    threads: int = 1
    max_ops: int = 2000
    max_args: int = 1000
    native_dtypes: frozenset[DType] = frozenset()
    converted_dtypes: frozenset[DType] = frozenset()
    has_fma: bool = False
    has_dp4a: bool = False
    has_ldexp: bool = False
    saturates: bool = False
    flushes: bool = False
    has_gathers: bool = False
    dots: tuple[Dot, ...] = ()
    tensor_cores: tuple[TensorCore, ...] = ()
    core: Core = Core()
    memory: Memory = Memory()
    launch: Launch = Launch()

    @property
    def row_bytes(self) -> int:
        """How much of a row a kernel may keep in memory of its own between two loops along it; 0 = none.

        Half of the second cache. A grid keeps none: its threads share no row, and have no room for one.
        """
        if self.grid or self.vector_bytes == 0:
            return 0
        return self.memory.second // 2

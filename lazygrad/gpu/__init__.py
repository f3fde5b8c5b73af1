"""Kernels on a grid of threads: workgroups, blocks and warps, how long they take, and places in a launch.

No part of the compiler. When it is imported it enters what it knows into the compiler's tables: Opts
(`moves/`), passes, and who chooses and predicts.
"""

from operator import attrgetter

from ..codegen.opt.grids import GRIDS, Grids
from ..codegen.passes import Pass, insert_pass
from ..ir.ops import Ops
from ..ir.spec import LINEAR, SCHEDULED, TARGET, VECTORS
from .grid_time import predict_on_grid
from .moves import multi_buffer, shared, warp_matrices, workgroup
from .passes.assign_grid import assign_grid
from .passes.barriers import synchronize, without_repeated_barriers
from .passes.leader_thread import guard_leader_thread
from .passes.warp_groups import by_warp_groups, with_indices
from .workgroups import choose

__all__ = ["multi_buffer", "shared", "warp_matrices", "workgroup"]

GRIDS.append(Grids(choose, predict_on_grid, guard_leader_thread))
# fmt: off
insert_pass(
    Pass("read matrices", lambda sink, job: by_warp_groups(sink), SCHEDULED,
         "on a grid, WMMAs whose factors lie so read them together", shapes=True,
         asks=frozenset((Ops.WMMA,)), targets=attrgetter("grid")),
    before="vectorize")
insert_pass(
    Pass("assign grid", lambda sink, job: assign_grid(sink, job.renderer.target), VECTORS,
         "on a grid, SPECIALs stand for GLOBAL, LOCAL and GROUP ranges", shapes=True,
         targets=attrgetter("grid")),
    before="nest sums")
insert_pass(
    Pass("place matrices", lambda sink, job: with_indices(sink), TARGET,
         "on a grid, WMMAs say where matrices lie", native=True,
         asks=frozenset((Ops.WMMA,)), targets=attrgetter("grid")),
    before="separate loops")
insert_pass(
    Pass("synchronize", lambda uops, job: synchronize(uops), LINEAR,
         "on a grid, threads wait for each other where they share memory",
         shapes=True, asks=frozenset((Ops.STAGE,)), targets=attrgetter("grid")),
    before="report checks")
insert_pass(
    Pass("drop barriers", lambda uops, job: without_repeated_barriers(uops), LINEAR,
         "on a grid, no BARRIER follows another with nothing shared read in between",
         native=True, shapes=True, asks=frozenset((Ops.BARRIER,)), targets=attrgetter("grid")),
    before="store past caches")
# fmt: on

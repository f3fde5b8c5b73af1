"""One program in several processes: `mpirun -n 4 python train.py`, in which `init()` comes first.

Each process, a rank, has a device of its own, and runs the same code. Tensors that are spread over a mesh of
all devices are computed together; the numbers are those of one process.
"""

from ..device.mesh import Mesh
from .checkpoints import load, read, save, steps
from .starting import (
    agree,
    barrier,
    broadcast,
    host,
    init,
    is_main,
    local_rank,
    print_main,
    rank,
    world_size,
)
from .world_mesh import world_mesh

__all__ = [
    "Mesh",
    "agree",
    "barrier",
    "broadcast",
    "host",
    "init",
    "is_main",
    "load",
    "local_rank",
    "print_main",
    "rank",
    "read",
    "save",
    "steps",
    "world_mesh",
    "world_size",
]

"""A program of which one rank, mostly the last, does not do what the others do: `faults.py KIND SECONDS`.

SECONDS is the time limit of `distributed.init`.
"""

import os
import signal
import sys
import time
from pathlib import Path

from lazygrad import Tensor, distributed

kind = sys.argv[1]
distributed.init(seed=1, timeout=float(sys.argv[2]))
mesh = distributed.Mesh(distributed.world_size(), "data")
odd = distributed.rank() == distributed.world_size() - 1


def total(count=4):
    return Tensor.ones(count, 3).contiguous().shard(mesh, {0: "data"}).sum(0).tolist()


assert total() == [4, 4, 4]
if (distributed.rank() == 0) if kind == "was rank 0" else odd:
    Path(os.environ["FAULT_NOTE"]).write_text(str(time.monotonic()))
if odd and kind == "raises":
    raise KeyError("lost")
if odd and kind == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if distributed.rank() == 0 and kind == "was rank 0":
    os.kill(os.getpid(), signal.SIGKILL)
if odd and kind == "is stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
if odd and kind == "sleeps":
    time.sleep(1000)
if odd and kind == "ends":
    sys.exit(0)
if kind == "has another plan":
    distributed.agree("the batch size", b"8" if odd else b"4")
if kind == "begins another":
    distributed.barrier() if odd else total()
total()
time.sleep(1000)

"""`init` makes the world: which ranks there are, their devices and seeds, what ends the job on a fault."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import signal
import socket
import sys
import threading
import time
import traceback
import types
from typing import Any

from ..config import THREADS, usable_cores
from ..device import Device, GlobalCounters
from ..device.world import World, set_world
from ..locks import in_main_thread
from ..runtime._measured import go_by, own_row, processor_name
from ..runtime._mpi import Transport
from ..runtime._side_channel import SideChannel
from ..target.measured import Row
from ..tensor import Tensor

#: What launchers of MPI tell the processes that they start: Open MPI and PRRTE, MPICH and Intel MPI, Slurm.
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "MPI_LOCALNRANKS")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Started:
    """What `init` has made; of a world of one process, nothing."""

    done = False
    rank, size, local_rank = 0, 1, 0
    transport: Transport | None = None
    channel: SideChannel | None = None


def init(seed: int | None = None, timeout: float = 60.0, devices: int = 1) -> None:
    """Make the world of all processes that mpirun has started; without mpirun, a world of this one.

    seed     of the random numbers, the same on all ranks; if not given, rank 0 draws one for all
    timeout  seconds after which a rank ends the job if it is not heard of, or does nothing (runs no kernel,
             imports nothing) while others wait for it
    devices  that each rank has, the same number on all: with two, rank 1 has CPU:2 and CPU:3

    Call it before anything is computed: each rank gets a device of its own as the default one (`CPU:2` on
    rank 2). ImportError says how to install mpi4py where it is missing; RuntimeError where this was called
    before, or tensors were made on a default device that would be another one now; ValueError where ranks
    have different numbers of devices.

    From then on a rank that raises, dies, hangs or does other things than the others ends the job on all
    ranks within about `timeout` seconds. Rank 0 says on stderr which one it was, on which host, and in what.
    """
    if _Started.done:
        raise RuntimeError(f"init() was called before; this is rank {_Started.rank} of {_Started.size}")
    if timeout <= 0:
        raise ValueError(f"timeout must be more than 0 seconds, not {timeout}")
    if isinstance(devices, bool) or not isinstance(devices, int):
        raise TypeError(f"devices is how many each rank has, a whole number, not {devices!r}")
    if devices < 1:
        raise ValueError(f"each rank has at least one device, not {devices}")
    launched = any(name in os.environ for name in _LAUNCHED)
    if launched:
        _need_mpi4py()
        if GlobalCounters.kernel_count or GlobalCounters.mem_used:
            raise RuntimeError(
                "init() comes before the first tensor is computed: "
                f"{GlobalCounters.kernel_count} kernels have run on {Device.DEFAULT}, which all ranks have"
            )
        transport = Transport()
        if transport.size > 1:
            _begin(transport, timeout, devices)
            _go_by_one_row()
    if _Started.size == 1:
        set_world(World(each=devices))
    _Started.done = True
    Tensor.manual_seed(broadcast(secrets.randbits(32) if seed is None else seed))


def _need_mpi4py() -> None:
    try:
        import mpi4py.MPI  # noqa: F401  starts MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"the processes that mpirun starts talk by mpi4py, which cannot be used here: {error} "
            '(pip install "lazygrad[mpi]")'
        ) from None


def _begin(transport: Transport, timeout: float, devices: int) -> None:
    """Be a rank of several, with so many devices."""
    _Started.rank, _Started.size, _Started.transport = transport.rank, transport.size, transport
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    beside = transport.comm.allgather((socket.gethostname(), cores, transport.rank, devices))
    for *_, other, count in beside:
        if count != devices:
            raise ValueError(
                f"all ranks have as many devices: rank {transport.rank} asks for {devices}, rank {other} for "
                f"{count}"
            )
    own = [each for each in beside if each[0] == socket.gethostname()]
    _Started.local_rank = [each[2] for each in own].index(transport.rank)
    sharing = sum(each[1] == cores for each in own)
    if sharing > 1 and THREADS.value > 1:  # they would take turns on the same cores
        THREADS.set_default(max(1, min(THREADS.value, usable_cores() // sharing)))
    kind = Device.DEFAULT.partition(":")[0]
    first = transport.rank * devices
    Device.DEFAULT = f"{kind}:{first}" if first else kind
    _Started.channel = SideChannel(transport, timeout, _life, _end)
    agree, local = _Started.channel.agree, _Started.local_rank
    set_world(World(transport.rank, transport.size, transport, agree, local, devices, transport.gather))
    sys.excepthook = _excepthook
    if in_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    atexit.register(_close)


def _go_by_one_row() -> None:
    """Predictions must not differ between ranks: all take what was measured of rank 0's processor."""
    found = own_row(processor_name()) if _Started.rank == 0 else None
    text = broadcast("" if found is None else found.to_text())
    go_by(Row.from_text(text) if text else None)


# ---- faults ----

_main = threading.main_thread().ident


def _life() -> list[Any]:
    """What changes while this rank does something: kernels, imports, and work inside lazygrad."""
    transport = _Started.transport
    if transport is None or transport.waiting is not None:
        return []
    frame = sys._current_frames().get(_main or 0)
    while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    busy = round(time.process_time(), 1) if frame is not None else 0
    return [GlobalCounters.kernel_count, len(sys.modules), busy]


def _end() -> None:
    """End all processes of the world, this one at once."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    # Abort tells the launcher, which ends the others; where it does not come back, this process still ends.
    killer = threading.Timer(2.0, os._exit, (1,))
    killer.daemon = True
    killer.start()
    if _Started.transport is not None:
        _Started.transport.comm.Abort(1)
    os._exit(1)


def _excepthook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    """Say what a rank raised, and end the others, which may wait for it."""
    text = "".join(traceback.format_exception(kind, error, trace))
    where = f"[rank {_Started.rank} of {_Started.size}, host {socket.gethostname()}]"
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    print(f"{where}\n{text}", end="", file=sys.stderr, flush=True)
    channel = _Started.channel
    if channel is not None:
        if kind.__module__.startswith("mpi4py"):  # a message failed: if a rank has died, that is the reason
            time.sleep(0.5)
        what = f"{kind.__name__}: {error}".strip().partition("\n")[0]
        channel.fail(f"raised {what}")


def _terminated(*_: Any) -> None:
    """The launcher ends this rank: leave a moment to say why, if rank 0 knows."""
    if _Started.channel is not None:
        _Started.channel.leaving = True
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        time.sleep(0.05)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(128 + signal.SIGTERM)


def _close() -> None:
    if _Started.transport is not None and _Started.channel is not None:
        _Started.transport.finish()
        _Started.channel.close()


# ---- what a program asks ----


def rank() -> int:
    """Which of the processes this is, from 0 on."""
    return _Started.rank


def world_size() -> int:
    """How many processes run this program."""
    return _Started.size


def local_rank() -> int:
    """Which of the processes on this host this is."""
    return _Started.local_rank


def host() -> str:
    """The name of the machine that this process runs on."""
    return socket.gethostname()


def is_main() -> bool:
    """Whether this is rank 0: the one that prints, and writes what is written once."""
    return _Started.rank == 0


def print_main(*values: Any, **options: Any) -> None:
    """`print` on rank 0, and nothing on the others."""
    if is_main():
        print(*values, **{"flush": True, **options})


def barrier() -> None:
    """Return when all ranks have called this."""
    agree("a barrier", b"")


def broadcast(value: Any) -> Any:
    """What rank 0 was given, on all ranks: a Python value that can be pickled. Tensors have meshes."""
    return value if _Started.transport is None else _Started.transport.broadcast(value)


def agree(what: str, digest: bytes) -> None:
    """Return when all ranks have called this with the same digest; else the job ends, and says what differs.

    what    in words, for the message: "the configuration"
    digest  bytes that are the same where everything is; long ones are hashed

    >>> distributed.agree("the learning rate", b"0.1")
    """
    if not isinstance(what, str) or not isinstance(digest, bytes):
        raise TypeError(
            f"agree takes a text and bytes, not {type(what).__name__} and {type(digest).__name__}"
        )
    if _Started.channel is not None:
        short = digest if len(digest) <= 32 else hashlib.sha256(digest).digest()
        _Started.channel.agree(what, short)

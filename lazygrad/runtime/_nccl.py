"""Collectives on the memory of NVIDIA's GPUs: NCCL's, through nccl4py, on a stream of their own.

What is begun comes after all kernels that the GPU was given before, and kernels that are given later run
beside it. Waiting for it is an order between streams: the host goes on. MPI (_mpi.py) carries what NCCL needs
to begin with, the unique id of a group of ranks, and tells rank 0 what is under way.

Names and signatures are those of NVIDIA, "NCCL User Guide", and of nccl4py's module `nccl.bindings.nccl`.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..device import DeviceError
from ..dtype import DType, dtypes
from ._cuda_driver import Connection
from ._mpi import Transport
from ._regions import Region

#: NCCL's name of each dtype whose values it can combine.
_DTYPES = {
    dtypes.int8: "Int8", dtypes.uint8: "Uint8", dtypes.int32: "Int32", dtypes.uint32: "Uint32",
    dtypes.int64: "Int64", dtypes.uint64: "Uint64", dtypes.float16: "Float16", dtypes.bfloat16: "Bfloat16",
    dtypes.float32: "Float32", dtypes.float64: "Float64", dtypes.fp8e4m3: "Float8e4m3",
    dtypes.fp8e5m2: "Float8e5m2",
}  # fmt: skip
_OPS = {"ADD": "Sum", "MUL": "Prod", "MAX": "Max", "MIN": "Min"}
#: Of bools, which are bytes 0 and 1, the sum is "or", the product "and".
_OPS_OF_BOOLS = {"ADD": "Max", "MUL": "Min", "MAX": "Max", "MIN": "Min", "OR": "Max", "AND": "Min"}
_UNIQUE_ID = 128  #: bytes of ncclUniqueId


def bindings() -> Any:
    """The module of NCCL's functions."""
    try:
        from nccl.bindings import nccl

        nccl.get_version()
    except (ImportError, RuntimeError) as error:  # the second: nccl4py is there, and finds no libnccl
        raise NotImplementedError(
            f"memory of CUDA goes from rank to rank by NCCL only, which cannot be used here: {error} (pip "
            'install "lazygrad[nccl]")'
        ) from None
    return nccl


class Sent:
    """A collective that was begun. Kernels that are given to the GPU after `wait` come after it."""

    __slots__ = ("_blocks", "_event", "_gpu", "label")

    def __init__(self, gpu: Connection, label: str, event: Any, blocks: list[Any]) -> None:
        self._gpu, self.label, self._event, self._blocks = gpu, label, event, blocks

    def test(self) -> bool:
        """Whether it is done."""
        return _is_done(self._gpu, self._event)

    def wait(self) -> None:
        """Have what is given to the GPU from now on come after it."""
        gpu = self._gpu
        with gpu.entered():
            gpu.checked("wait", gpu.driver.cuStreamWaitEvent(gpu.stream, self._event, 0))
            for block in self._blocks:
                gpu.used(block)


class Nccl:
    """The collectives of this rank's GPU. It is used as `_mpi.Transport` is, with memory of the GPU.

    All ranks begin the collectives that concern them in one order: those of a GPU are on one stream, so that
    those of different groups of ranks cannot wait for each other.
    """

    def __init__(self, gpu: Connection, meeting: Transport) -> None:
        self.gpu, self.meeting, self.nccl = gpu, meeting, bindings()
        with gpu.entered():
            apart = gpu.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self.stream = gpu.checked("open a stream", gpu.driver.cuStreamCreate(int(apart)))
            self.before = gpu.event()
        self._communicators: dict[tuple[int, ...], Any] = {}
        self._under_way: deque[tuple[str, Any]] = deque()
        meeting.waits_elsewhere = self.oldest

    def start(
        self,
        kind: str,
        ranks: tuple[int, ...],
        op: str | None,
        sends: Sequence[Region],
        receives: Sequence[Region],
        dtype: DType,
    ) -> Sent:
        """Begin a collective of `ranks`.

        Sums are made in an order that NCCL chooses, in the dtype itself. NotImplementedError for what NCCL
        cannot combine; DeviceError where NCCL fails.
        """
        begin = _COLLECTIVES.get(kind)
        if begin is None:
            raise NotImplementedError(
                f"there is no {kind!r} between GPUs; there are {', '.join(_COLLECTIVES)}"
            )
        operation, element, size = _names(op, dtype)
        gpu, nccl = self.gpu, self.nccl
        with gpu.entered():
            communicator = self._communicators.get(ranks)
            if communicator is None:
                communicator = self._communicators[ranks] = self._meet(ranks)
            nbytes = max(sum(each.nbytes for each in each_way) for each_way in (sends, receives))
            label = self.meeting.note(kind, ranks, op, dtype, nbytes)
            driver = gpu.driver
            gpu.checked("mark", driver.cuEventRecord(self.before, gpu.stream))
            gpu.checked("wait", driver.cuStreamWaitEvent(self.stream, self.before, 0))
            call = _Call(
                nccl, ranks.index(self.meeting.rank), size, int(getattr(nccl.DataType, element)),
                None if operation is None else int(getattr(nccl.RedOp, operation)),
                (communicator, int(self.stream)),
            )  # fmt: skip
            with self._named_errors(label):
                begin(call, sends, receives)
            event = self._event()
            gpu.checked("mark", driver.cuEventRecord(event, self.stream))
        self._under_way.append((label, event))
        return Sent(gpu, label, event, [each.buffer for each in (*sends, *receives)])

    def prepare(self, *of: Any) -> Callable[[], Sent]:
        """What begins such a collective, as often as it is called."""
        return functools.partial(self.start, *of)

    def _meet(self, ranks: tuple[int, ...]) -> Any:
        """NCCL's communicator of these ranks; all of them have to come here."""
        nccl, meeting = self.nccl, self.meeting
        word = memoryview(bytearray(_UNIQUE_ID))
        first = ranks[0] == meeting.rank
        with self._named_errors("making the id of a group of ranks"):
            if first:
                word[:] = bytes(nccl.get_unique_id())
        sends, receives = ([word], []) if first else ([], [word])
        meeting.start("broadcast", ranks, None, sends, receives, dtypes.uint8).wait()
        meeting.waiting = f"the start of NCCL between ranks {', '.join(map(str, ranks))}"
        try:
            with self._named_errors(meeting.waiting):
                unique = nccl.UniqueId.from_buffer(bytes(word))
                return nccl.comm_init_rank(len(ranks), unique, ranks.index(meeting.rank))
        finally:
            meeting.waiting = None

    def oldest(self) -> str | None:
        """What the GPU waits in: the first collective that is not done. Other threads may ask."""
        gpu = self.gpu
        if not self._under_way or gpu.lost:
            return None
        gpu.driver.cuCtxSetCurrent(gpu.context)  # of this thread: the GPU's lock may be held for long
        return next((label for label, event in list(self._under_way) if not _is_done(gpu, event)), None)

    def _event(self) -> Any:
        """An event that nobody waits for any more, or a new one."""
        if self._under_way and _is_done(self.gpu, self._under_way[0][1]):
            return self._under_way.popleft()[1]
        return self.gpu.event()

    @contextlib.contextmanager
    def _named_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except self.nccl.NCCLError as error:
            raise DeviceError(
                f"{self.gpu.name}: NCCL fails in {what}: {error} (NCCL_DEBUG=WARN says more)"
            ) from None


def _is_done(gpu: Connection, event: Any) -> bool:
    (code,) = gpu.driver.cuEventQuery(event)
    if code and code.name != "CUDA_ERROR_NOT_READY":
        raise gpu.problem("look at a collective", code)
    return not code


# *** the kinds


class _Call(NamedTuple):
    """What NCCL's functions take besides memory.

    me   this rank's place in the group       type, op  numbers of NCCL's
    size bytes of an element                  end       the communicator and the stream
    """

    nccl: Any
    me: int
    size: int
    type: int
    op: int | None
    end: tuple[Any, int]

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Calls that run as one: each alone would wait for the others."""
        self.nccl.group_start()
        try:
            yield
        finally:
            self.nccl.group_end()

    def count(self, part: Region) -> int:
        return part.nbytes // self.size


def _names(op: str | None, dtype: DType) -> tuple[str | None, str, int]:
    """NCCL's operation and type, and the bytes of an element; what is not combined goes as bytes."""
    if op is None:
        return None, "Uint8", 1
    if dtype is dtypes.bool and op in _OPS_OF_BOOLS:
        return _OPS_OF_BOOLS[op], "Uint8", 1
    if op not in _OPS or dtype not in _DTYPES:
        raise NotImplementedError(
            f"NCCL does not combine {dtype.name} by {op}: it has {', '.join(_OPS)} of "
            f"{', '.join(each.name for each in _DTYPES)}; cast first"
        )
    return _OPS[op], _DTYPES[dtype], dtype.itemsize


def _at(part: Region) -> int:
    return int(part.buffer.address + part.offset)


def _in_a_row(parts: Sequence[Region]) -> bool:
    """Whether parts are equally long, and each begins where the one before it ends."""
    first, size = _at(parts[0]), parts[0].nbytes
    return all(each.nbytes == size and _at(each) == first + n * size for n, each in enumerate(parts))


def _all_reduce(call: _Call, sends: Sequence[Region], receives: Sequence[Region]) -> None:
    (read,), (into,) = sends, receives
    call.nccl.all_reduce(_at(read), _at(into), call.count(read), call.type, call.op, *call.end)


def _reduce_scatter(call: _Call, sends: Sequence[Region], receives: Sequence[Region]) -> None:
    (into,) = receives
    if _in_a_row(sends):
        call.nccl.reduce_scatter(_at(sends[0]), _at(into), call.count(into), call.type, call.op, *call.end)
        return
    with call.together():
        for place, part in enumerate(sends):
            if part.nbytes:
                target = _at(into) if place == call.me else 0
                call.nccl.reduce(_at(part), target, call.count(part), call.type, call.op, place, *call.end)


def _all_gather(call: _Call, sends: Sequence[Region], receives: Sequence[Region]) -> None:
    (read,) = sends
    if _in_a_row(receives):
        call.nccl.all_gather(_at(read), _at(receives[0]), call.count(read), call.type, *call.end)
        return
    with call.together():
        for place, part in enumerate(receives):
            if part.nbytes:
                source = _at(read) if place == call.me else _at(part)
                call.nccl.broadcast(source, _at(part), call.count(part), call.type, place, *call.end)


def _all_to_all(call: _Call, sends: Sequence[Region], receives: Sequence[Region]) -> None:
    with call.together():
        for place, (read, into) in enumerate(zip(sends, receives, strict=True)):
            if read.nbytes:
                call.nccl.send(_at(read), call.count(read), call.type, place, *call.end)
            if into.nbytes:
                call.nccl.recv(_at(into), call.count(into), call.type, place, *call.end)


def _broadcast(call: _Call, sends: Sequence[Region], receives: Sequence[Region]) -> None:
    parts = [*sends, *receives]
    call.nccl.broadcast(_at(parts[0]), _at(parts[-1]), call.count(parts[0]), call.type, 0, *call.end)


_COLLECTIVES: dict[str, Callable[[_Call, Sequence[Region], Sequence[Region]], None]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "send": _all_to_all,
}

"""The functions of nccl.bindings.nccl that the runtime uses, on the emulated driver's memory and streams.

What is called is written down. It is done late, as all that a stream does, and as if all ranks had the values
of this one.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .driver import EmulatedDriver

#: numpy's dtypes, by NCCL's number.
KINDS = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}


class NCCLError(Exception):
    """What the functions raise."""


class UniqueId:
    """What a group of ranks begins with."""

    def __init__(self, word: bytes = b"") -> None:
        self.word = word

    def __bytes__(self) -> bytes:
        return self.word

    @staticmethod
    def from_buffer(buffer: bytes) -> UniqueId:
        return UniqueId(bytes(buffer))


class DataType(enum.IntEnum):
    """NVIDIA, "NCCL User Guide", ncclDataType_t."""

    Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16, Float8e4m3, Float8e5m2 = (
        range(12)
    )


class RedOp(enum.IntEnum):
    """NVIDIA, "NCCL User Guide", ncclRedOp_t."""

    Sum, Prod, Max, Min = range(4)


class Comm:
    """A group of ranks, of which this one has a place."""

    def __init__(self, size: int, place: int) -> None:
        self.size, self.place = size, place


class RecordedNCCL:
    """The module.

    calls   the functions that were called, and their arguments
    names   an address → what it is called there
    failing what the next call raises
    """

    NCCLError, UniqueId, DataType, RedOp, Comm = NCCLError, UniqueId, DataType, RedOp, Comm

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver, self.calls, self.names = driver, [], {0: "0"}  # type: ignore[var-annotated]
        self.ids = itertools.count(1)
        self.failing = ""

    def _note(self, name: str, *arguments: Any) -> None:
        if self.failing:
            raise NCCLError(self.failing)
        self.calls.append(f"{name}({', '.join(map(str, arguments))})")

    def _late(self, stream: int, work: Callable[[], None]) -> None:
        of = [each for device in self.driver.devices if device.context for each in device.context.streams]
        next(each for each in of if int(each) == stream).add(work)

    def _named(self, address: int) -> str:
        return self.names.get(address, "?")

    # *** the functions

    def get_version(self) -> int:
        return 23203

    def get_unique_id(self) -> UniqueId:
        self._note("get_unique_id")
        return UniqueId(bytes([next(self.ids)] * 128))

    def comm_init_rank(self, nranks: int, comm_id: UniqueId, rank: int) -> Comm:
        self._note("comm_init_rank", nranks, bytes(comm_id)[:1].hex(), rank)
        return Comm(nranks, rank)

    def group_start(self) -> None:
        self._note("group_start")

    def group_end(self) -> None:
        self._note("group_end")

    def all_reduce(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, comm: Comm, stream: int
    ) -> None:
        names = self._named(sendbuff), self._named(recvbuff)
        self._note("all_reduce", *names, count, DataType(datatype).name, RedOp(op).name)
        self._late(stream, lambda: _combined(sendbuff, recvbuff, count, datatype, op, comm.size))

    def reduce_scatter(
        self, sendbuff: int, recvbuff: int, recvcount: int, datatype: int, op: int, comm: Comm, stream: int
    ) -> None:
        names = self._named(sendbuff), self._named(recvbuff)
        self._note("reduce_scatter", *names, recvcount, DataType(datatype).name, RedOp(op).name)
        own = sendbuff + comm.place * recvcount * _size(datatype)
        self._late(stream, lambda: _combined(own, recvbuff, recvcount, datatype, op, comm.size))

    def reduce(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, root: int, comm: Comm,
        stream: int,
    ) -> None:  # fmt: skip
        names = self._named(sendbuff), self._named(recvbuff)
        self._note("reduce", *names, count, DataType(datatype).name, RedOp(op).name, root)
        if root == comm.place:
            self._late(stream, lambda: _combined(sendbuff, recvbuff, count, datatype, op, comm.size))

    def all_gather(
        self, sendbuff: int, recvbuff: int, sendcount: int, datatype: int, comm: Comm, stream: int
    ) -> None:
        names = self._named(sendbuff), self._named(recvbuff)
        self._note("all_gather", *names, sendcount, DataType(datatype).name)
        size = sendcount * _size(datatype)
        for place in range(comm.size):
            self._late(stream, lambda at=recvbuff + place * size: ctypes.memmove(at, sendbuff, size))  # type: ignore[misc]

    def broadcast(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, comm: Comm, stream: int
    ) -> None:
        names = self._named(sendbuff), self._named(recvbuff)
        self._note("broadcast", *names, count, DataType(datatype).name, root)

    def send(self, sendbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
        self._note("send", self._named(sendbuff), count, DataType(datatype).name, peer)

    def recv(self, recvbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
        self._note("recv", self._named(recvbuff), count, DataType(datatype).name, peer)


def _size(datatype: int) -> int:
    return np.dtype(KINDS[datatype]).itemsize


def _combined(read: int, into: int, count: int, datatype: int, op: int, ranks: int) -> None:
    """So many times the same values, combined."""
    size = count * _size(datatype)
    values = np.frombuffer((ctypes.c_char * size).from_address(read), KINDS[datatype])
    total = values * ranks if op == RedOp.Sum else values**ranks if op == RedOp.Prod else values
    ctypes.memmove(into, total.tobytes(), size)

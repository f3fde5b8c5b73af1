"""Collectives between GPUs: what NCCL is asked, in which order with kernels, on an emulated driver."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, dtypes
from lazygrad.device import Device, DeviceError
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.runtime import _nccl
from lazygrad.runtime._nccl import Nccl
from lazygrad.runtime._regions import Region
from tests.helpers import needs, require
from tests.runtime.emulated_cuda.fixture import emulated
from tests.runtime.emulated_cuda.nccl import DataType, RecordedNCCL, RedOp


class Meeting:
    """MPI's part: what ranks tell each other first, here the unique id that another rank has made."""

    rank, size = 1, 3

    def __init__(self) -> None:
        self.waiting: str | None = None
        self.told: list[tuple[Any, ...]] = []

    def start(self, kind: str, ranks: Any, op: Any, sends: Any, receives: Any, dtype: Any) -> Meeting:
        self.told.append((kind, ranks, [len(each) for each in sends], [len(each) for each in receives]))
        for each in receives:
            each[:] = b"\7" * len(each)
        return self

    def wait(self) -> None:
        """Nothing is on the way."""

    def note(self, kind: str, ranks: Any, op: Any, dtype: Any, nbytes: int) -> str:
        return f"{kind} of {nbytes} bytes"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedNCCL]:
    """NCCL on an emulated GPU."""
    with emulated() as driver:
        found = RecordedNCCL(driver)
        monkeypatch.setattr(_nccl, "bindings", lambda: found)
        yield found


def parts(library: RecordedNCCL, name: str, sizes: Sequence[int], apart: int = 0) -> list[Region]:
    """Parts of a GPU's memory of so many bytes, called name, name+4 ..."""
    whole = Device["CUDA"].allocator.alloc(64)
    library.names |= {whole.buffer.address + at: f"{name}+{at}" if at else name for at in range(64)}
    begins = np.cumsum([0, *[size + apart for size in sizes]]).tolist()
    return [Region(whole.buffer, size, at) for size, at in zip(sizes, begins, strict=False)]


F = dtypes.float32


@needs("g++", "nvrtc")
@pytest.mark.parametrize(
    ("kind", "op", "dtype", "sends", "receives", "expected"),
    [
        ("all_reduce", "ADD", F, [8], [8], "all_reduce(s, r, 2, Float32, Sum)"),
        ("all_reduce", "MAX", dtypes.bfloat16, [8], [8], "all_reduce(s, r, 4, Bfloat16, Max)"),
        ("all_reduce", "ADD", dtypes.bool, [8], [8], "all_reduce(s, r, 8, Uint8, Max)"),
        ("reduce_scatter", "ADD", F, [8, 8, 8], [8], "reduce_scatter(s, r, 2, Float32, Sum)"),
        (
            "reduce_scatter", "MIN", F, [8, 4, 0], [4],
            "group_start() reduce(s, 0, 2, Float32, Min, 0) reduce(s+8, r, 1, Float32, Min, 1) group_end()",
        ),
        ("all_gather", None, dtypes.int16, [8], [8, 8, 8], "all_gather(s, r, 8, Uint8)"),
        (
            "all_gather", None, F, [4], [8, 4, 0],
            "group_start() broadcast(r, r, 8, Uint8, 0) broadcast(s, r+8, 4, Uint8, 1) group_end()",
        ),
        (
            "all_to_all", None, F, [8, 4, 0], [4, 4, 4],
            "group_start() send(s, 8, Uint8, 0) recv(r, 4, Uint8, 0) send(s+8, 4, Uint8, 1) "
            "recv(r+4, 4, Uint8, 1) recv(r+8, 4, Uint8, 2) group_end()",
        ),
        ("broadcast", None, F, [], [8], "broadcast(r, r, 8, Uint8, 0)"),
        (
            "send", None, F, [0, 0, 8], [4, 0, 0],
            "group_start() recv(r, 4, Uint8, 0) send(s, 8, Uint8, 2) group_end()",
        ),
    ],
)  # fmt: skip
def test_what_nccl_is_asked(
    library: RecordedNCCL, kind: str, op: Any, dtype: Any, sends: Any, receives: Any, expected: str
) -> None:
    """By rank 1 of three."""
    nccl = Nccl(Device["CUDA"].gpu, Meeting())  # type: ignore[attr-defined, arg-type]
    nccl.start(kind, (0, 1, 2), op, parts(library, "s", sends), parts(library, "r", receives), dtype)
    assert " ".join(library.calls) == f"comm_init_rank(3, 07, 1) {expected}"


@needs("g++", "nvrtc")
def test_groups_of_two_of_the_ranks(library: RecordedNCCL) -> None:
    """The first one of a group makes its id; the root is told by its place in the group."""
    meeting = Meeting()
    nccl = Nccl(Device["CUDA"].gpu, meeting)  # type: ignore[attr-defined, arg-type]
    (part,) = parts(library, "s", [8])
    nccl.start("broadcast", (1, 2), None, [part], [], F)
    nccl.start("broadcast", (2, 1), None, [], [part], F)
    nccl.start("broadcast", (1, 2), None, [part], [], F)
    assert library.calls == [
        "get_unique_id()", "comm_init_rank(2, 01, 0)", "broadcast(s, s, 8, Uint8, 0)",
        "comm_init_rank(2, 07, 1)", "broadcast(s, s, 8, Uint8, 0)", "broadcast(s, s, 8, Uint8, 0)",
    ]  # fmt: skip
    assert meeting.told == [("broadcast", (1, 2), [128], []), ("broadcast", (2, 1), [], [128])]


@needs("g++", "nvrtc")
def test_what_nccl_does_not_have_is_named(library: RecordedNCCL) -> None:
    nccl = Nccl(Device["CUDA"].gpu, Meeting())  # type: ignore[attr-defined, arg-type]
    part = parts(library, "s", [8])
    with pytest.raises(NotImplementedError, match="does not combine int by XOR"):
        nccl.start("all_reduce", (0, 1), "XOR", part, part, dtypes.int32)
    with pytest.raises(NotImplementedError, match="does not combine short by ADD"):
        nccl.start("all_reduce", (0, 1), "ADD", part, part, dtypes.int16)
    library.failing = "unhandled system error"
    with pytest.raises(DeviceError, match=r"CUDA: NCCL fails in the start of NCCL .*unhandled system error"):
        nccl.start("all_reduce", (0, 1), "ADD", part, part, F)


@needs("g++", "nvrtc")
def test_what_a_gpu_waits_in_is_seen_until_it_is_done(library: RecordedNCCL) -> None:
    meeting = Meeting()
    nccl = Nccl(Device["CUDA"].gpu, meeting)  # type: ignore[attr-defined, arg-type]
    part = parts(library, "s", [8])
    first = nccl.start("all_reduce", (0, 1), "ADD", part, part, F)
    second = nccl.start("all_gather", (0, 1), None, [part[0]], [*part, *part], F)
    assert nccl.oldest() == "all_reduce of 8 bytes"
    first.wait()
    second.wait()
    Device["CUDA"].synchronize()
    assert nccl.oldest() is None
    assert first.test()
    assert second.test()


@pytest.mark.slow
@needs("g++", "nvrtc")
def test_a_program_of_two_gpus_runs_in_the_order_of_its_streams(library: RecordedNCCL) -> None:
    """The other rank is taken to have the same values; what is not waited for has not happened."""
    rows = np.arange(12).reshape(4, 3).astype(np.float32)
    meeting = Meeting()
    meeting.rank, meeting.size = 0, 2
    before = set_world(World(0, 2, meeting))  # type: ignore[arg-type]
    try:
        mesh = Mesh(2, "data", ("CUDA", "CUDA:1"))
        x = Tensor(np.concatenate([rows, rows]), device="CUDA").shard(mesh, {0: "data"}).realize()

        @TinyJit
        def step(x: Tensor) -> Tensor:
            return ((x * 2).sum(0) + 1).max()

        library.calls.clear()
        found = [step(x).item() for _ in range(4)]
    finally:
        set_world(before)
    assert found == [(rows * 2).sum(0).max() * 2 + 1] * 4
    begun = ["get_unique_id()", "comm_init_rank(2, 01, 0)"]
    assert library.calls == begun + ["all_reduce(?, ?, 3, Float32, Sum)"] * 4


def test_a_rank_has_the_gpu_of_its_place_on_its_host() -> None:
    """Rank 9 may be the second of its host; or the launcher shows it its own only."""
    of_two_hosts = World(9, 16, local_rank=1)
    assert of_two_hosts.ordinal("CUDA:9", 8) == 1
    assert of_two_hosts.ordinal("CUDA:9", 1) == 0
    assert World().ordinal("CUDA:3", 8) == 3


def test_without_nccl_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nccl", None)
    with pytest.raises(NotImplementedError, match=r'pip install "lazygrad\[nccl\]"'):
        _nccl.bindings()


@needs("cuda", "nccl")
@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"])
def test_a_gpu_that_is_alone_gets_what_it_sends(kind: str) -> None:
    gpu, values = Device["CUDA"], np.arange(5, dtype=np.float32)
    send, receive = gpu.allocator.alloc(20), gpu.allocator.alloc(20)
    gpu.allocator._copyin(send, memoryview(values).cast("B"))
    meeting = Meeting()
    meeting.rank, meeting.size = 0, 1
    op = "ADD" if kind.startswith(("all_reduce", "reduce")) else None
    nccl = Nccl(gpu.gpu, meeting)  # type: ignore[attr-defined, arg-type]
    nccl.start(kind, (0,), op, [send], [receive], F).wait()
    found = bytearray(20)
    gpu.allocator._copyout(memoryview(found), receive)
    assert np.frombuffer(found, np.float32).tolist() == values.tolist()


@needs("nccl")
def test_the_recorded_functions_are_the_librarys() -> None:
    real = require("nccl")
    for ours, theirs in ((DataType, real.DataType), (RedOp, real.RedOp)):
        assert {each.name: int(each) for each in ours}.items() <= {e.name: int(e) for e in theirs}.items()
    for name, function in vars(RecordedNCCL).items():
        if inspect.isfunction(function) and not name.startswith("_"):
            expected = list(inspect.signature(getattr(real, name)).parameters)
            assert list(inspect.signature(function).parameters)[1:] == expected, name
    assert len(bytes(real.UniqueId.from_buffer(bytes(range(128))))) == 128
    assert issubclass(real.NCCLError, Exception)

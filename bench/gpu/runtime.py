"""Stage 4: what the runtime does between kernels, and what happens when something goes wrong.

Graphs, streams, events, threads, memory that ends, a kernel that faults (its process is lost, as the player
knows), and NCCL with one rank.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lazygrad import Context, Device, Tensor, TinyJit, Variable, dtypes
from lazygrad.device import Buffer, DeviceError, OutOfMemoryError
from lazygrad.renderer import ProgramSpec

from .machine import Machine
from .stages import Case, Missing
from .timing import torch_of


def cases(machine: Machine) -> dict[str, Case]:
    found: dict[str, Case] = {
        "graphs": lambda: graphs(machine),
        "what a launch costs": lambda: launches(machine),
        "copies in the order of kernels": lambda: order(machine),
        "events": lambda: events(machine),
        "threads": lambda: threads(machine),
        "beside PyTorch in a process": lambda: beside_torch(machine),
    }
    if machine.runs:
        found |= {
            "out of memory": lambda: out_of_memory(machine),
            "copies to and from the host": lambda: copies(machine),
            **{f"NCCL: {kind}": lambda kind=kind: nccl(machine, kind) for kind in COLLECTIVES},
            "a kernel that faults": fault,
            "a kernel that does not load": refused,
        }
    return found


COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast")


def _expect(machine: Machine, found: Any, expected: Any) -> None:
    if machine.runs and not np.allclose(found, expected, rtol=1e-4, atol=1e-5):
        raise ValueError(
            f"{np.asarray(found).reshape(-1)[:4]} instead of {np.asarray(expected).reshape(-1)[:4]}"
        )


def graphs(machine: Machine) -> dict[str, Any]:
    """A chain of kernels, replayed with other arguments, another Variable and other addresses each time."""
    size, length = machine.size(256, 16), machine.size(20, 3)
    w = machine.array(size, size, seed=1)
    weight = Tensor(w, device="CUDA").realize()

    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        for _ in range(length):
            x = (x @ weight).tanh().contiguous()
        return (x * n).realize()

    kept = []
    for turn in range(6):
        a = machine.array(size, size, seed=10 + turn)
        n = Variable("n", 1, 9).bind(turn + 1)
        given = Tensor(a, device="CUDA").realize()
        kept.append(given)  # so that the next one lies elsewhere
        right = a
        for _ in range(length):
            right = np.tanh(right @ w)
        _expect(machine, step(given, n).numpy(), right * (turn + 1))
    return {"kernels": length + 1, "has graphs": Device["CUDA"].has_graphs}


def launches(machine: Machine) -> dict[str, Any]:
    """Seconds of a call: eager, captured as one kernel, captured as a hundred."""
    x = Tensor(machine.array(64), device="CUDA").realize()
    device, found = Device["CUDA"], {}

    def chain(length: int) -> Any:
        def run(x: Tensor) -> Tensor:
            for _ in range(length):
                x = (x + 1).contiguous()
            return x.realize()

        return run

    many = machine.size(100, 4)
    for name, call in (
        ("eager", chain(1)),
        ("captured", TinyJit(chain(1))),
        (f"captured {many}", TinyJit(chain(many))),
    ):
        for _ in range(5):
            result = call(x)
        device.synchronize()
        times = machine.size(300, 2)
        start = time.perf_counter()
        for _ in range(times):
            result = call(x)
        device.synchronize()
        if machine.is_real:
            found[name] = (time.perf_counter() - start) / times
        _expect(machine, result.numpy(), machine.array(64) + (many if "captured " in name else 1))
    return found


def order(machine: Machine) -> dict[str, Any]:
    """Bytes go to the GPU, through kernels, and back, while other kernels run: none overtakes another."""
    size, turns = machine.size(1 << 20, 1 << 10), machine.size(50, 4)
    results = []
    for turn in range(turns):
        x = Tensor(np.full(size, turn, np.float32), device="CUDA").realize()
        y = x
        for _ in range(3):
            y = (y * 2 + 1).contiguous()
        results.append(y.realize())
        x.assign(Tensor(np.full(size, -1.0, np.float32), device="CUDA")).realize()  # after what reads it
    for turn, result in enumerate(results):
        _expect(machine, result.numpy(), np.full(size, 8 * turn + 7.0, np.float32))
    return {"turns": turns}


def events(machine: Machine) -> dict[str, Any]:
    """The GPU's time of a kernel, beside the host's, which has waited for it."""
    size = machine.size(1 << 26, 1 << 8)
    device: Any = Device["CUDA"]
    body = "int n = blockIdx.x*256+threadIdx.x; a[n] = a[n]*2+1;"
    text = f'extern "C" __global__ void twice(float* a) {{ {body} }}'
    spec = ProgramSpec(
        "twice", text, "CUDA", globals=1, global_size=(size // 256, 1, 1), local_size=(256, 1, 1)
    )
    program = device.load(spec, device.compile(spec))
    memory = Buffer("CUDA", size, dtypes.float32).allocate()
    best, host = float("inf"), float("inf")
    for _ in range(5):
        start = time.perf_counter()
        best = min(best, program((memory._buf,), wait=True))
        host = min(host, time.perf_counter() - start)
    _expect(machine, memory.numpy().max(), 31.0)
    if not machine.is_real:
        return {}
    if not 0 < best <= host:
        raise ValueError(f"the GPU's time is {best} s, the host's {host} s")
    return {"gpu": best, "host": host, "GB/s": round(8e-9 * size / best, 1)}


def threads(machine: Machine) -> dict[str, Any]:
    """Four threads of the host share a kernel, and each has its own result."""
    from concurrent.futures import ThreadPoolExecutor

    arrays = [machine.array(1000, seed=k) for k in range(4)]
    tensors = [Tensor(a, device="CUDA").realize() for a in arrays]
    turns = machine.size(50, 2)

    def work(k: int) -> None:
        with Context(DEV="CUDA"):
            for _ in range(turns):
                _expect(machine, (tensors[k] * 2 + 1).numpy(), arrays[k] * 2 + 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    return {"turns": turns}


def beside_torch(machine: Machine) -> dict[str, Any]:
    """Both use the GPU's primary context by turns; tensors of PyTorch's go in through the host."""
    torch = torch_of(machine)
    a = machine.array(64, 64)
    x, t = Tensor(a, device="CUDA").realize(), torch.from_numpy(a).to(machine.torch_device)
    for _ in range(machine.size(10, 2)):
        _expect(machine, (x @ x).numpy(), a @ a)
        _expect(machine, (t @ t).cpu().numpy(), a @ a)
    _expect(machine, (Tensor(t.cpu().numpy(), device="CUDA") + 1).numpy(), a + 1)
    return {"torch": str(torch.__version__)}


def out_of_memory(machine: Machine) -> dict[str, Any]:
    """More than there is: an error that says how much, after which all goes on."""
    device: Any = Device["CUDA"]
    held = Tensor(machine.array(1000), device="CUDA").realize()
    largest = device.allocator.largest
    said = []
    blocks: list[Any] = []
    try:
        for _ in range(64):
            blocks.append(Buffer("CUDA", largest // 3, dtypes.uint8).allocate())
    except OutOfMemoryError as error:
        said.append(str(error)[:300])
    taken = len(blocks)
    blocks.clear()
    try:
        Buffer("CUDA", largest + 1, dtypes.uint8).allocate()
    except OutOfMemoryError as error:
        said.append(str(error)[:300])
    device.allocator.free_cache()
    if len(said) != 2:
        raise ValueError(
            f"of two errors {len(said)} came; {taken} blocks of a third of the memory were given"
        )
    _expect(machine, (held + 1).numpy(), machine.array(1000) + 1)
    return {"said": said, "blocks of a third": taken}


def copies(machine: Machine) -> dict[str, Any]:
    """Bytes a second from and to the host, as numpy's arrays, beside PyTorch's from ordinary memory."""
    a = machine.array(machine.size(1 << 26, 1 << 10))
    found: dict[str, Any] = {}
    for _ in range(2):
        start = time.perf_counter()
        x = Tensor(a, device="CUDA").realize()
        Device["CUDA"].synchronize()
        found["to"], start = time.perf_counter() - start, time.perf_counter()
        came = x.numpy()
        found["from"] = time.perf_counter() - start
    if not np.array_equal(came, a):
        raise ValueError("other bytes came back")
    try:
        torch = torch_of(machine)
    except Missing:
        torch = None
    if torch is not None and machine.is_real:
        for _ in range(2):
            start = time.perf_counter()
            t = torch.from_numpy(a).cuda()
            torch.cuda.synchronize()
            found["torch to"], start = time.perf_counter() - start, time.perf_counter()
            t.cpu()
            found["torch from"] = time.perf_counter() - start
    return (
        {name: round(a.nbytes * 1e-9 / seconds, 2) for name, seconds in found.items()}
        if machine.is_real
        else {}
    )


def nccl(machine: Machine, kind: str) -> dict[str, Any]:
    """A rank that is alone gets what it sends."""
    from lazygrad.runtime import _nccl
    from tests.runtime.test_nccl import Meeting

    try:
        _nccl.bindings()
    except NotImplementedError as error:
        raise Missing(str(error)) from None
    gpu: Any = Device["CUDA"]
    values = np.arange(5, dtype=np.float32)
    send, receive = gpu.allocator.alloc(20), gpu.allocator.alloc(20)
    gpu.allocator._copyin(send, memoryview(values).cast("B"))
    meeting = Meeting()
    meeting.rank, meeting.size = 0, 1
    op = "ADD" if "reduce" in kind else None
    _nccl.Nccl(gpu.gpu, meeting).start(kind, (0,), op, [send], [receive], dtypes.float32).wait()  # type: ignore[arg-type]
    found = bytearray(20)
    gpu.allocator._copyout(memoryview(found), receive)
    _expect(machine, np.frombuffer(found, np.float32), values)
    return {}


def fault() -> dict[str, Any]:
    """A kernel writes where there is no memory: the next call says that the device is lost."""
    device: Any = Device["CUDA"]
    on_host = Tensor([1.0, 2.0], device="CPU").realize()
    text = 'extern "C" __global__ void stray(float* a) { a[((long long)threadIdx.x+1) << 40] = 1; }'
    spec = ProgramSpec("stray", text, "CUDA", globals=1, global_size=(1, 1, 1), local_size=(4, 1, 1))
    memory = Buffer("CUDA", 4, dtypes.float32).allocate()
    program = device.load(spec, device.compile(spec))
    program((memory._buf,))
    said = ""
    try:
        memory.numpy()
    except DeviceError as error:
        said = str(error)
    if "CUDA is lost" not in said or "stray" not in said:
        raise ValueError(f"a kernel that faults is not told: {said!r}")
    if (on_host + 1).tolist() != [2.0, 3.0]:
        raise ValueError("the CPU does not go on")
    return {"said": said}


def refused() -> dict[str, Any]:
    """After the fault this is a new process. A kernel that is larger than a workgroup may be is refused."""
    device: Any = Device["CUDA"]
    text = 'extern "C" __global__ void wide(float* a) { a[threadIdx.x] = 1; }'
    spec = ProgramSpec("wide", text, "CUDA", globals=1, global_size=(1, 1, 1), local_size=(2048, 1, 1))
    try:
        device.load(spec, device.compile(spec))
    except DeviceError as error:
        return {"said": str(error)}
    raise ValueError("a workgroup of 2,048 threads was not refused")

"""An adapter's device under WebGPU: its queue, what its errors become, and its clock."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..device import DeviceError
from ..renderer.cstyle import WGSL64Renderer, WGSLRenderer

_Result = TypeVar("_Result")

#: The feature that is no part of WebGPU and that brings int64; and the one that brings times of kernels.
_INT64, _TIMES = "shader-int64", "timestamp-query"
#: Limits that a device has only as far as they are asked for.
_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
)


class Connection:
    """An adapter's device, and its queue. One thread calls it at a time.

    clock  takes the times of passes; None where the adapter has none
    """

    def __init__(self, name: str, wgpu: Any, adapter: Any) -> None:
        self.name, self.wgpu, self.adapter = name, wgpu, adapter
        features = [feature for feature in (_INT64, _TIMES) if feature in adapter.features]
        self.renderer = WGSL64Renderer if _INT64 in features else WGSLRenderer
        limits = {limit: adapter.limits[limit] for limit in _LIMITS if limit in adapter.limits}
        self.lock = threading.RLock()
        try:
            self.device = adapter.request_device_sync(required_features=features, required_limits=limits)
        except (wgpu.GPUError, RuntimeError) as error:
            raise DeviceError(f"{name}: {said(adapter)} gives no device: {error}") from None
        self.queue = self.device.queue
        self.limits = self.device.limits
        self.bound_at = int(self.limits["min-storage-buffer-offset-alignment"])
        self.small = self.call("open", self.device.create_buffer, size=16, usage=self.usage)
        tick = _tick(self.queue) if _TIMES in features else None
        self.clock = None if tick is None else self.call("open", Clock, self, tick)

    @property
    def usage(self) -> int:
        use = self.wgpu.BufferUsage
        return int(use.STORAGE | use.COPY_SRC | use.COPY_DST)

    def call(self, what: str, function: Callable[..., _Result], *args: Any, **more: Any) -> _Result:
        """Call wgpu; its error is a DeviceError that says what was tried."""
        try:
            with self.lock:
                return function(*args, **more)
        except self.wgpu.GPUOutOfMemoryError as error:
            raise MemoryError(f"{self.name}: {what}: {error}") from error
        except DeviceError:
            raise
        except (self.wgpu.GPUError, RuntimeError) as error:
            lost = " (the device is lost: start the process again)" if "lost" in str(error) else ""
            raise DeviceError(f"{self.name} does not {what}{lost}: {short(error)}") from error

    def wait(self) -> None:
        """Until all that was started is done."""
        self.call("answer", self.queue.read_buffer, self.small, 0, 4)


class Clock:
    """Two timestamps of the adapter's: where a pass begins, and where it ends."""

    def __init__(self, gpu: Connection, tick: float) -> None:
        use = gpu.wgpu.BufferUsage
        self.gpu, self.tick = gpu, tick
        self.queries = gpu.device.create_query_set(type=gpu.wgpu.QueryType.timestamp, count=2)
        self.memory = gpu.device.create_buffer(size=16, usage=use.QUERY_RESOLVE | use.COPY_SRC)
        self.writes = {
            "query_set": self.queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }

    def resolve(self, encoder: Any) -> None:
        """Have the commands leave the times of their pass in memory."""
        encoder.resolve_query_set(self.queries, 0, 2, self.memory, 0)

    def read(self) -> float | None:
        """Seconds of the last pass, when it is done; None where the adapter gives none (WebGPU lets it)."""
        begin, end = struct.unpack("=2Q", self.gpu.queue.read_buffer(self.memory, 0, 16))
        return float((end - begin) * self.tick) if end > begin else None


def _tick(queue: Any) -> float | None:
    """Seconds of one tick of timestamps, which wgpu gives as the driver does; None where it does not say."""
    try:
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(queue._internal)) * 1e-9
    except (ImportError, AttributeError):
        return None


def said(adapter: Any) -> str:
    """What an adapter is called."""
    info = adapter.info
    return f"{info['device']} ({info['adapter_type']}, {info['backend_type']})"


def short(error: Exception) -> str:
    """wgpu's text without the lines around what went wrong."""
    rows = [row.strip() for row in str(error).splitlines() if row.strip()]
    return ": ".join(row for row in rows if row not in ("Validation Error", "Caused by:"))

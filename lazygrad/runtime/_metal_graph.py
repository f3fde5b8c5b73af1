"""A recorded list of kernels as an indirect command buffer of Metal's: written once, started by one command.

A replay compares what it is given with what the buffer was told last, and tells it anew what is not the same:
commands whose memory is elsewhere; integers, in memory that the commands read (an indirect command has no
bytes of its own). What the GPU may still read is not changed: there are up to SLOTS buffers, and the one that
is to be told is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import DeviceError, Launch

#: So many replays with arguments of their own may be on their way.
SLOTS = 3
#: The most commands that one command starts ("executeCommandsInBuffer:", Apple's documentation of Metal).
MOST_COMMANDS = 16384
#: Integers are at multiples of this many bytes: as every family allows (Apple's "Metal Feature Set Tables").
APART = 256
#: MTLCommandBufferStatusCompleted; what is behind it has ended with an error.
_COMPLETED = 4

#: A kernel, the memory of a call, and its integers.
Given = tuple[Any, Sequence[Any], Sequence[int]]


class _Slot:
    """An indirect command buffer, and what it was told."""

    def __init__(self, gpu: Any, given: Sequence[Given]) -> None:
        metal, device = gpu.metal, gpu.device
        told = metal.MTLIndirectCommandBufferDescriptor.alloc().init()
        told.setCommandTypes_(metal.MTLIndirectCommandTypeConcurrentDispatch)
        told.setInheritBuffers_(False)
        told.setInheritPipelineState_(False)
        taken = [len(handles) + len(vals) for _, handles, vals in given]
        told.setMaxKernelBufferBindCount_(max(taken))
        shared = metal.MTLResourceStorageModeShared
        self.buffer = device.newIndirectCommandBufferWithDescriptor_maxCommandCount_options_(
            told, len(given), shared
        )
        count = sum(len(vals) for _, _, vals in given)
        self.integers = device.newBufferWithLength_options_(APART * max(count, 1), shared)
        if self.buffer is None or self.integers is None:
            raise DeviceError(f"{gpu.name} has no room for {len(given)} commands")
        self.view = memoryview(self.integers.contents().as_buffer(APART * max(count, 1))).cast("B")
        self.range = (0, len(given))
        self.commands: Any = None
        #: of each command it, and where its integers begin
        self.mutated: list[tuple[Any, int]] = []
        self.regions: list[list[tuple[Any, int]]] = [[] for _ in given]
        self.values: list[list[int]] = [[] for _ in given]
        at = 0
        for number, (_, _, vals) in enumerate(given):
            self.mutated.append((self.buffer.indirectComputeCommandAtIndex_(number), at))
            at += APART * len(vals)
        self.tell(given)

    def knows(self, given: Sequence[Given]) -> bool:
        """Whether this is what it was told."""
        return all(
            places == _regions(handles) and values == list(vals)
            for places, values, (_, handles, vals) in zip(self.regions, self.values, given, strict=True)
        )

    def tell(self, given: Sequence[Given]) -> None:
        """What is not as it was; the GPU must be done with it."""
        for number, (program, handles, vals) in enumerate(given):
            now = _regions(handles)
            if now != self.regions[number]:
                self._write(number, program, now, len(vals))
            if self.values[number] != list(vals):
                at = self.mutated[number][1]
                for place, (form, value) in enumerate(zip(program.values, vals, strict=True)):
                    form.pack_into(self.view, at + APART * place, value)
            self.regions[number], self.values[number] = now, list(vals)

    def _write(self, number: int, program: Any, places: Sequence[tuple[Any, int]], integers: int) -> None:
        """A command, whole. One that was written is reset before, and barriers are set before the command is
        encoded ("MTLIndirectComputeCommand", Apple's documentation of Metal).
        """
        command, at = self.mutated[number]
        command.reset()
        command.setComputePipelineState_(program.pipeline)
        for index, (memory, offset) in enumerate(places):
            command.setKernelBuffer_offset_atIndex_(memory.metal, offset, index)
        for place in range(integers):
            command.setKernelBuffer_offset_atIndex_(self.integers, at + APART * place, len(places) + place)
        if number:
            command.setBarrier()  # commands run at once where none keeps them apart
        command.concurrentDispatchThreadgroups_threadsPerThreadgroup_(program.groups, program.threads)

    def encode(self, encoder: Any, usage: int) -> None:
        """The command that starts them all; Metal is told which memory they use."""
        encoder.useResource_usage_(self.integers, usage)
        for memory in {id(m): m for places in self.regions for m, _ in places}.values():
            encoder.useResource_usage_(memory.metal, usage)
        encoder.executeCommandsInBuffer_withRange_(self.buffer, self.range)


def _regions(handles: Sequence[Any]) -> list[tuple[Any, int]]:
    return [(handle.buffer, handle.offset) for handle in handles]


class MetalGraph:
    """Kernels that run one after the other. Made with its first launch, which knows the arguments."""

    def __init__(self, gpu: Any, launches: Sequence[Launch]) -> None:
        self.gpu, self.launches = gpu, launches
        self.slots: list[_Slot] = []
        self.last = 0

    def __call__(self, handles: Sequence[Any], integers: Sequence[int]) -> None:
        given: list[Given] = [
            (program, tuple([handles[n] for n in places]), tuple([integers[n] for n in values]))
            for program, places, values in self.launches
        ]
        if len(given) > MOST_COMMANDS or not all(program.fits(own) for program, own, _ in given):
            for program, own, vals in given:
                program(own, vals)
            return
        gpu = self.gpu
        usage = gpu.metal.MTLResourceUsageRead | gpu.metal.MTLResourceUsageWrite
        with gpu.lock, gpu.objc.autorelease_pool():
            slot = self._slot(given)
            slot.commands = gpu.run("a captured function", lambda encoder: slot.encode(encoder, usage))

    def _slot(self, given: Sequence[Given]) -> _Slot:
        """One that was told this."""
        for slot in self.slots:
            if slot.knows(given):
                return slot
        if len(self.slots) < SLOTS:
            self.slots.append(_Slot(self.gpu, given))
            self.last = len(self.slots) - 1
            return self.slots[-1]
        self.last = (self.last + 1) % SLOTS
        slot = self.slots[self.last]
        if slot.commands.status() < _COMPLETED:
            slot.commands.waitUntilCompleted()
        slot.tell(given)
        return slot

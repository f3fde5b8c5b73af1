"""A recorded list of kernels as a CUDA graph: one launch runs all of them, one after the other.

The graph keeps the arguments of each kernel. A replay compares what it is given (addresses of the call's
arguments and outputs, values of Variables, the counters of random numbers) with what it was given last, and
sets the kernels anew that take something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Graph, Launch
from ._cuda_driver import Arguments, Connection
from ._segments import in_segments


class _Node:
    """A kernel of the graph: its arguments, and where they come from."""

    def __init__(self, gpu: Connection, launch: Launch) -> None:
        self.program, self.slots, self.values = launch
        program: Any = self.program
        self.arguments = Arguments(len(self.slots), len(self.values))
        self.parameters = parameters = gpu.driver.CUDA_KERNEL_NODE_PARAMS()
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = program.groups
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = program.local
        parameters.kernelParams = self.arguments.address
        self.handle: Any = None

    def set(self, addresses: Sequence[int], integers: Sequence[int]) -> None:
        """The arguments of the next launch."""
        given = [addresses[place] for place in self.slots]
        self.parameters.func = self.program.function_for(given)  # type: ignore[attr-defined]
        self.arguments.set(given, [integers[value] for value in self.values])


class CUDAGraph:
    """Kernels that run one after the other. Made with its first launch, which knows the arguments."""

    def __init__(self, gpu: Connection, launches: Sequence[Launch]) -> None:
        self.gpu = gpu
        self.nodes = [_Node(gpu, launch) for launch in launches]
        self.name = f"a graph of {len(self.nodes)} kernels, {self.nodes[0].program.spec.name} first"  # type: ignore[attr-defined]
        #: place of a handle or of an integer → the kernels that take it
        self.of_slot: dict[int, list[_Node]] = {}
        self.of_value: dict[int, list[_Node]] = {}
        for node in self.nodes:
            for place in set(node.slots):
                self.of_slot.setdefault(place, []).append(node)
            for value in set(node.values):
                self.of_value.setdefault(value, []).append(node)
        self.runnable: Any = None
        self.addresses: dict[int, int] = {}
        self.integers: dict[int, int] = {}

    def __call__(self, handles: Sequence[Any], integers: Sequence[int]) -> None:
        gpu, driver = self.gpu, self.gpu.driver
        addresses = {place: handles[place].buffer.address + handles[place].offset for place in self.of_slot}
        numbers = {value: integers[value] for value in self.of_value}
        with gpu.entered():
            if self.runnable is None:
                self._make(addresses, numbers)
            else:
                self._change(addresses, numbers)
            gpu.last = self.name
            gpu.checked(f"run {self.name}", driver.cuGraphLaunch(self.runnable, gpu.stream))
            gpu.tick = tick = gpu.tick + 1
            for place in self.of_slot:
                handles[place].buffer.used = tick

    def _make(self, addresses: dict[int, int], integers: dict[int, int]) -> None:
        gpu, driver = self.gpu, self.gpu.driver
        graph = gpu.checked("make a graph", driver.cuGraphCreate(0))
        gpu.own(self, driver.cuGraphDestroy, graph)
        before: list[Any] = []
        for node in self.nodes:
            node.set(addresses, integers)  # type: ignore[arg-type]
            added = driver.cuGraphAddKernelNode(graph, before, len(before), node.parameters)
            node.handle = gpu.checked(f"add {node.program.spec.name} to a graph", added)  # type: ignore[attr-defined]
            before = [node.handle]
        self.runnable = gpu.checked("make a graph runnable", driver.cuGraphInstantiate(graph, 0))
        gpu.own(self, driver.cuGraphExecDestroy, self.runnable)
        self.addresses, self.integers = addresses, integers

    def _change(self, addresses: dict[int, int], integers: dict[int, int]) -> None:
        gpu, driver = self.gpu, self.gpu.driver
        changed: dict[_Node, None] = {}
        for users, now, before in (
            (self.of_slot, addresses, self.addresses),
            (self.of_value, integers, self.integers),
        ):
            if now != before:
                for number, nodes in users.items():
                    if now[number] != before[number]:
                        changed.update(dict.fromkeys(nodes))
        #: what fails half-way is set again by the next call
        self.addresses, self.integers = dict.fromkeys(addresses, -1), dict.fromkeys(integers, 1 << 63)
        for node in changed:
            node.set(addresses, integers)  # type: ignore[arg-type]
            code = driver.cuGraphExecKernelNodeSetParams(self.runnable, node.handle, node.parameters)
            gpu.checked("change a graph", code)
        self.addresses, self.integers = addresses, integers


def graph_of(gpu: Connection, launches: Sequence[Launch]) -> Graph:
    """What runs a list: kernels of this GPU that follow each other as one graph."""
    return in_segments(
        launches, lambda program: hasattr(program, "function_for"), lambda run: CUDAGraph(gpu, run)
    )

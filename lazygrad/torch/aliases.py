"""Results of a graph that share memory, with inputs or with each other, and operations that ask how it lies.

PyTorch's graphs say it by operations that look at the memory of their argument (`aten.select`). Where it can
be seen, what is looked at is computed, and PyTorch itself does the looking.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from .slots import filled, with_slots


def looks(node: Any) -> bool:
    """Whether an operation gives another look at the memory of its first argument."""
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return False
    if node.target is operator.getitem:  # one of several looks
        return looks(node.args[0])
    schema: Any = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.returns) and schema.returns[0].alias_info is not None


def memory_of(node: fx.Node) -> fx.Node:
    """The node at whose memory this one looks; itself where it has memory of its own."""
    while looks(node):
        node = node.all_input_nodes[0]
    return node


def is_all_of_its_memory(x: torch.Tensor) -> bool:
    """Whether a (fake) tensor is contiguous, and no part of a larger one; not where sizes are symbolic."""
    known = all(isinstance(size, int) for size in (*x.shape, x.storage_offset()))
    return (
        known and x.is_contiguous() and x.storage_offset() == 0 and x.untyped_storage().nbytes() == x.nbytes
    )


def asks_what_may_lie_otherwise(module: fx.GraphModule) -> bool:
    """Whether a graph of Dynamo's counts in the memory (`as_strided`) of what is computed from something that
    is not contiguous. How such a result lies PyTorch's fake tensors do not always say as its kernels leave
    it: `roll` of what is channels last stays so, and is said to be contiguous.
    """
    graphs = [each.graph for each in module.modules() if isinstance(each, fx.GraphModule)]
    asking = [node for graph in graphs for node in graph.nodes if "as_strided" in str(node.target)]
    return any(_may_lie_otherwise(node.all_input_nodes[0]) for node in asking if node.op != "placeholder")


def _may_lie_otherwise(node: fx.Node) -> bool:
    """Whether something that is not contiguous is among what the memory of this is computed from."""
    waiting = list(_computed_in(node).all_input_nodes)
    known = set(waiting)
    while waiting:
        each = waiting.pop()
        value = each.meta.get("example_value")
        if isinstance(value, torch.Tensor) and not value.is_contiguous():
            return True
        waiting += [source for source in each.all_input_nodes if source not in known]
        known.update(each.all_input_nodes)
    return False


def _computed_in(node: fx.Node) -> fx.Node:
    """The node of Dynamo's graph that made the memory which this one sees."""
    while node.all_input_nodes and _memory(node) == _memory(node.all_input_nodes[0]) is not None:
        node = node.all_input_nodes[0]
    return node


def _memory(node: fx.Node) -> int | None:
    """Which memory a (fake) tensor is in."""
    value = node.meta.get("example_value")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


class Looks:
    """The results of a graph, from its inputs and what was computed."""

    def __init__(self, known: Sequence[fx.Node], outputs: Sequence[Any]) -> None:
        self.number = {node: number for number, node in enumerate(known)}
        #: in order: the first is done after what is known, and each has the next number
        self.steps: list[tuple[Callable[..., Any], Any, Any]] = []
        self.outputs = [with_slots(output, self._step) for output in outputs]

    def _step(self, node: fx.Node) -> int:
        """The number of a node, which is done when others of its kind are known."""
        if node not in self.number:
            args, kwargs = with_slots(node.args, self._step), with_slots(node.kwargs, self._step)
            assert callable(node.target)  # looks, and what is done with sizes
            self.number[node] = len(self.number)
            self.steps.append((node.target, args, kwargs))
        return self.number[node]

    def __call__(self, known: Sequence[Any]) -> list[Any]:
        made = [*known]
        for fn, args, kwargs in self.steps:
            made.append(fn(*filled(args, made), **filled(kwargs, made)))
        return [filled(output, made) for output in self.outputs]


def without_looks(module: fx.GraphModule, seen: int | None) -> tuple[fx.GraphModule, Looks | None]:
    """A graph that computes what results look at, each thing once, and how results come of it; the graph as
    it is where nothing is shared.

    seen  of how many results, the first ones, it can be seen that they share memory; None: of all; 0: each
          has memory of its own
    """
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    given: Any = output.args[0]
    every = list(given) if isinstance(given, (list, tuple)) else [given]
    nodes = list(dict.fromkeys(each for each in every[:seen] if isinstance(each, fx.Node)))
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    used = Counter(map(memory_of, nodes))
    shared = {n for n in nodes if looks(n) and (used[memory_of(n)] > 1 or memory_of(n).op == "placeholder")}
    shared = {node for node in shared if _follows(node, inputs)}
    computed = [memory_of(each) if each in shared else each for each in every]
    computed = [each for each in computed if isinstance(each, fx.Node) and each.op != "placeholder"]
    rest = list(dict.fromkeys(computed))
    if seen == 0 or (not shared and len(rest) == len(computed)):
        return module, None
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    graph.graph_copy(module.graph, copied)
    graph.output([copied[node] for node in rest])
    return fx.GraphModule(module, graph), Looks([*inputs, *rest], every)


def _follows(node: fx.Node, inputs: Sequence[fx.Node]) -> bool:
    """Whether a look needs nothing but the memory that it looks at, and sizes that inputs say."""
    memory, waiting = memory_of(node), [node]
    while waiting:
        each = waiting.pop()
        if each is memory or each.op == "placeholder":
            continue
        if not looks(each) and isinstance(each.meta.get("val"), torch.Tensor):
            return False
        waiting += each.all_input_nodes
    return True

"""What lazygrad can do of a graph, in as few parts as there can be; PyTorch does the rest, op by op."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import Any

from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .aliases import looks
from .graph import GraphFunction, missing
from .replay import CompiledGraph
from .table import name_of

#: The operations that were warned of: once each.
warned: set[str] = set()


class _Support(OperatorSupportBase):
    def __init__(self, refused: dict[fx.Node, str]) -> None:
        self.refused = refused

    def is_node_supported(self, submodules: Any, node: fx.Node) -> bool:
        return node.op == "call_function" and node not in self.refused


def compiled(module: fx.GraphModule, seen: int | None = None) -> Any:
    """The graph as something to call: lazygrad's kernels, or parts of them among operations of PyTorch.

    seen  of how many results, the first ones, it can be seen that they share memory; None: of all
    """
    if any(_writes(node) for node in module.graph.nodes):
        return module  # AOTAutograd has taken out writes; if one is left, what it changes is not known here
    refused = {node: why for node in module.graph.nodes if (why := missing(node))}
    refused |= GraphFunction(module).refused(refused)
    computed = [node for node in module.graph.nodes if node.op == "call_function"]
    if not computed:
        return module
    if not refused:
        return CompiledGraph(module, seen)
    for node, why in refused.items():
        if node.target is not operator.getitem and not _only_checks(node):  # one of several results
            _warn(node, why)
    refused |= _looks_before(refused)
    partitioner = CapabilityBasedPartitioner(module, _Support(refused), allows_single_node_partition=True)
    parts = partitioner.partition_and_fuse()
    for name, part in list(parts.named_children()):
        if name.startswith("fused_"):
            delattr(parts, name)
            made = CompiledGraph(part, seen and None)  # of a part's results any may be seen, but gradients
            object.__setattr__(parts, name, made)  # a module of PyTorch it is not
    return parts


def _looks_before(refused: Iterable[fx.Node]) -> dict[fx.Node, str]:
    """The operations that look at the memory where PyTorch's `as_strided` counts its steps."""
    found = {}
    for node in refused:
        each = node.all_input_nodes[0] if "as_strided" in str(node.target) else node
        while looks(each):
            found[each] = "as_strided sees where it looks"
            each = each.all_input_nodes[0]
    return found


def _writes(node: fx.Node) -> bool:
    """Whether an operation changes one of its arguments."""
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def _only_checks(node: fx.Node) -> bool:
    """Whether an operation has no result: it raises an error, or does not."""
    checked = node.args[1] if str(node.target) == "with_effects" else node.target
    schema = getattr(checked, "_schema", None)
    return schema is not None and not schema.returns


def _warn(node: fx.Node, why: str) -> None:
    name = name_of(node.target)
    if name not in warned:
        warned.add(name)
        warnings.warn(f"{name} runs in PyTorch, op by op: {why}", RuntimeWarning, stacklevel=2)

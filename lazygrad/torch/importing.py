"""Models of PyTorch as modules of lazygrad: `torch.export` gives the graph, lazygrad's methods compute it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from ..dtype import DType, dtypes
from ..nn import Module
from ..nn.block_formats import format_named
from ..nn.frozen_weights import FrozenWeights
from ..nn.quantized import quantize
from ..tensor import Tensor
from .dynamo import decompositions
from .graph import GraphFunction, missing
from .table import name_of


class Imported(Module):
    """A model that came from PyTorch. Called as the model was, with lazygrad tensors.

    Its weights have PyTorch's names in `state_dict()`; those that a model writes, such as the running
    statistics of a batch norm in training, are assigned.
    """

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self._function = GraphFunction(program.graph_module)
        refused = {node: missing(node) for node in program.graph_module.graph.nodes if missing(node)}
        refused |= self._function.refused(refused)
        if refused:
            texts = dict.fromkeys(f"{name_of(node.target)} ({why})" for node, why in refused.items())
            raise NotImplementedError(f"the model has operations that lazygrad lacks: {', '.join(texts)}")
        signature, spec = program.graph_signature, program.call_spec
        #: for each input of the graph the weight that it is, None for one that a call gives
        self._inputs = [_target(each, InputKind.USER_INPUT) for each in signature.input_specs]
        #: for each output the weight that it is written to
        self._outputs = [_target(each, OutputKind.USER_OUTPUT) for each in signature.output_specs]
        self._takes, self._gives = _template(spec.in_spec), _template(spec.out_spec)
        #: what quantised weights are in the graph
        self._dtypes: dict[str, DType] = {}
        tensors = {**program.constants, **dict(program.named_buffers()), **dict(program.named_parameters())}
        for name, value in tensors.items():
            if isinstance(value, torch.Tensor):
                self._put(name, _copied(value).requires_grad_(value.requires_grad))

    def _put(self, name: str, weight: Tensor | FrozenWeights) -> None:
        """Keep a weight where its name says: `layers.0.bias` is in the dicts `layers` and `0`."""
        first, *path = name.split(".")
        if not path:
            setattr(self, first, weight)
            return
        inner: dict[str, Any] = self.__dict__.setdefault(first, {})
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = weight

    def _weight(self, name: str) -> Any:
        first, *path = name.split(".")
        return functools.reduce(operator.getitem, path, getattr(self, first))

    def quantize(self, format: str = "Q8_0") -> Imported:
        """Hold matrices of weights in blocks, which the kernels that read them dequantise; gives itself.

        format  of `nn.quantized.quantize`; what is no matrix of floats, or has rows that are not whole
                blocks, stays as it is

        What is quantised is not trained any more.
        """
        elements, found = format_named(format).elements, False
        for name in dict.fromkeys(name for name in self._inputs if name is not None):
            weight = self._weight(name)
            if not isinstance(weight, Tensor) or not dtypes.is_float(weight.dtype):
                continue
            if weight.ndim == 2 and weight.numel() and weight.shape[1] % elements == 0:
                self._dtypes[name], found = weight.dtype, True
                self._put(name, quantize(weight, format))
        if not found:
            raise ValueError(f"the model has no matrix of floats whose rows are blocks of {elements} numbers")
        return self

    def _given(self, name: str) -> Any:
        """A weight as the graph takes it."""
        weight = self._weight(name)
        frozen = isinstance(weight, FrozenWeights)
        return weight.dequantize().cast(self._dtypes[name]) if frozen else weight

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = iter(_flat([list(args), kwargs], self._takes))
        made = self._function([next(given) if name is None else self._given(name) for name in self._inputs])
        results = []
        for name, value in zip(self._outputs, made, strict=True):
            if name is None:
                results.append(value)
            else:
                self._weight(name).assign(value)
        return _nested(self._gives, results)


def _target(each: Any, users: Any) -> str | None:
    """The weight that an input or output of a graph is."""
    if each.kind is users:
        return None
    if each.target is None or each.kind.name not in (
        "PARAMETER",
        "BUFFER",
        "CONSTANT_TENSOR",
        "BUFFER_MUTATION",
    ):
        raise NotImplementedError(
            f"a model with a graph that has an input or output of kind {each.kind.name}"
        )
    return str(each.target)


def _template(spec: Any) -> Any:
    """A nest in Python's own containers, with the number of each value in the flat list."""
    return _own(pytree.tree_unflatten(list(range(spec.num_leaves)), spec))


def _own(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_own(each) for each in value] if isinstance(value, list) else tuple(map(_own, value))
    return {key: _own(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _flat(value: Any, template: Any) -> list[Any]:
    """The values of a nest that is like the template."""
    if isinstance(template, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(template):
            raise TypeError(f"the model was exported with {len(template)} values here, not {value!r}")
        return [leaf for each, inner in zip(value, template, strict=True) for leaf in _flat(each, inner)]
    if isinstance(template, dict):
        if not isinstance(value, Mapping) or value.keys() != template.keys():
            raise TypeError(f"the model was exported with the names {list(template)}, not with {value!r}")
        return [leaf for key, inner in template.items() for leaf in _flat(value[key], inner)]
    return [value]


def _nested(template: Any, values: Sequence[Any]) -> Any:
    if isinstance(template, (list, tuple)):
        return type(template)([_nested(each, values) for each in template])
    if isinstance(template, dict):
        return {key: _nested(each, values) for key, each in template.items()}
    return values[template] if isinstance(template, int) else template


def _copied(x: torch.Tensor) -> Tensor:
    """lazygrad's own copy: the model in PyTorch may go on."""
    return Tensor.from_torch(x, copy=True)


def from_torch(
    model: torch.nn.Module, example: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> Imported:
    """A model of PyTorch as a module of lazygrad, in the mode (training or not) that it is in.

    example, kwargs  arguments that the model can be called with; later ones have the same shapes and dtypes

    Raises NotImplementedError where the model has an operation that lazygrad lacks, and names it.
    """
    program = torch.export.export(model, tuple(example), dict(kwargs or {}), strict=False)
    return Imported(program.run_decompositions(decompositions()))

"""Models of PyTorch as modules of lazygrad: `torch.export` gives the graph, lazygrad's methods compute it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from ..device import Devices
from ..dtype import DType, dtypes
from ..nn import Module
from ..nn.block_formats import format_named
from ..nn.frozen_weights import FrozenWeights
from ..nn.quantized import quantize
from ..nn.state import Hidden
from ..tensor import Tensor
from .dtypes import from_torch_dtype
from .dynamo import decompositions
from .graph import GraphFunction, missing
from .table import name_of


class Imported(Module):
    """A model that came from PyTorch. Called as the model was, with lazygrad tensors.

    Its weights have PyTorch's names in `state_dict()`; tied ones are one tensor. What a model writes, such as
    the running statistics of a batch norm in training, or an argument, is assigned.
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
        users = [each.arg.name for each in signature.input_specs if each.kind is InputKind.USER_INPUT]
        #: for each output the weight that it is written to, or the number of the argument
        self._outputs = [
            users.index(each.target)
            if each.kind is OutputKind.USER_INPUT_MUTATION
            else _target(each, OutputKind.USER_OUTPUT)
            for each in signature.output_specs
        ]
        self._takes, self._gives = _template(spec.in_spec), _template(spec.out_spec)
        #: what a call gives, in order
        nodes = (node for node in program.graph_module.graph.nodes if node.op == "placeholder")
        self._wanted = [
            _wanted(each.arg, node)
            for each, node in zip(signature.input_specs, nodes, strict=True)
            if each.kind is InputKind.USER_INPUT
        ]
        #: what quantised weights are in the graph
        self._dtypes: dict[str, DType] = {}
        #: what PyTorch does not save either: constants, and buffers that are not persistent
        self._unsaved = _Unsaved()
        tensors = {**program.state_dict, **program.constants}
        made: dict[Any, Tensor] = {}
        for name, value in tensors.items():
            if isinstance(value, torch.Tensor):
                key = value.data_ptr(), value.shape, value.stride(), value.dtype
                if value.numel() == 0 or key not in made:  # else it is tied: one tensor with two names
                    made[key] = _copied(value).requires_grad_(value.requires_grad)
                self._put(name, made[key], name in program.constants)

    def _put(self, name: str, weight: Tensor | FrozenWeights, unsaved: bool = False) -> None:
        """Keep a weight where its name says: `layers.0.bias` is in the dicts `layers` and `0`."""
        if unsaved:
            self._unsaved[name] = weight
            return
        first, *path = name.split(".")
        if first.startswith("_") and hasattr(self, first) and not isinstance(vars(self).get(first), dict):
            raise NotImplementedError(f"a weight called {name}: an imported model has an attribute {first}")
        if not path:
            setattr(self, first, weight)
            return
        inner: dict[str, Any] = self.__dict__.setdefault(first, {})
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = weight

    def _weight(self, name: str) -> Any:
        if name in self._unsaved:
            return self._unsaved[name]
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

    def _given(self, name: str, devices: Devices | None) -> Any:
        """A weight as the graph takes it; what is not saved is where the arguments are."""
        weight = self._weight(name)
        if name in self._unsaved and devices is not None and weight.device != devices:
            return weight.shard(devices) if isinstance(devices, tuple) else weight.to(devices)
        frozen = isinstance(weight, FrozenWeights)
        return weight.dequantize().cast(self._dtypes[name]) if frozen else weight

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        flat = _flat([list(args), kwargs], self._takes)
        values = [_checked(value, wanted) for value, wanted in zip(flat, self._wanted, strict=True)]
        given, devices = iter(values), next((x.device for x in values if isinstance(x, Tensor)), None)
        inputs = [next(given) if name is None else self._given(name, devices) for name in self._inputs]
        results = []
        for target, value in zip(self._outputs, self._function(inputs), strict=True):
            if target is None:
                results.append(value)
            elif isinstance(target, int):
                values[target].assign(value)
            else:
                self._weight(target).assign(value)
        return _nested(self._gives, results)


class _Unsaved(Hidden, dict[str, Any]):
    """Tensors of a model that are no part of its state dict."""


class _Wanted(NamedTuple):
    """What a model was exported with: a tensor of a shape (None: any size) and dtype; or a constant."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: DType | None
    constant: Any = None


def _wanted(arg: Any, node: Any) -> _Wanted:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return _Wanted(arg.name, None, None, getattr(arg, "value", value))
    shape = tuple(size if isinstance(size, int) else None for size in value.shape)
    return _Wanted(arg.name, shape, from_torch_dtype(value.dtype))


def _checked(value: Any, wanted: _Wanted) -> Any:
    """What a call gives, if it is like what the model was exported with; whole numbers in its dtype."""
    name, shape, dtype, constant = wanted
    if shape is None or dtype is None:
        if type(value) is not type(constant) or value != constant:
            raise ValueError(
                f"the model was exported with {name}={constant!r}, a constant in it, not with {value!r}"
            )
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"the model takes a Tensor as {name}, not {value!r}")
    fits = len(value.shape) == len(shape) and all(
        want is None or want == size for want, size in zip(shape, value.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"the model was exported with shape {shape} of {name}, not {value.shape}")
    if value.dtype is dtype:
        return value
    if dtypes.is_int(value.dtype) and dtypes.is_int(dtype):
        return value.cast(dtype)
    raise TypeError(f"the model was exported with {dtype} of {name}, not {value.dtype}: cast it first")


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
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"the model was exported with {len(template)} values here, not with {value!r}")
        if len(value) != len(template):
            raise TypeError(f"the model was exported with {len(template)} values here, not with {len(value)}")
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

"""PyTorch's containers: a list or dict does the same here, and these have its methods and names beside.

What is in them is found where it lies, as in a plain list or dict: `layers.0.weight`, `blocks.first.weight`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, SupportsIndex, overload

from ..dtype import dtypes
from ..tensor import Tensor
from .module import Module, is_parameter, text_of
from .parameters import buffer, parameter


class _ParameterKind(type):
    """Parameters are Tensors: the class says which Tensors are such, and makes them."""

    def __call__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        value = data.detach() if isinstance(data, Tensor) else Tensor(data)
        if not requires_grad and not dtypes.is_float(value.dtype):
            return buffer(value)
        made = parameter(value)
        return made if requires_grad else made.requires_grad_(False)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and bool(instance._leaf) and is_parameter(instance)


class Parameter(metaclass=_ParameterKind):
    """A Tensor that is trained, in memory of its own that begins with `data`.

    requires_grad  False: frozen, and among the parameters all the same

    `isinstance(x, nn.Parameter)` says whether a Tensor is a parameter, however it was made.

    >>> scale = nn.Parameter(Tensor([1.0]))
    >>> scale.requires_grad, isinstance(scale, nn.Parameter), isinstance(Tensor([1.0]), nn.Parameter)
    (True, True, False)
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        """What the metaclass makes: for the signature."""


class ModuleList(list[Any], Module):
    """A list of layers, which is a module: not called, walked through.

    >>> layers = nn.ModuleList([nn.Linear(2, 3)]).append(nn.Linear(3, 1))
    >>> [name for name, parameter in layers.named_parameters()]
    ['0.weight', '0.bias', '1.weight', '1.bias']
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__(_layer(type(self), module) for module in modules)

    def append(self, module: Any) -> Self:  # type: ignore[override]
        """Put a layer behind the others; gives the list."""
        super().append(_layer(type(self), module))
        return self

    def extend(self, modules: Iterable[Any]) -> Self:  # type: ignore[override]
        """Put several layers behind the others; gives the list."""
        super().extend([_layer(type(self), module) for module in modules])
        return self

    def insert(self, index: SupportsIndex, module: Any) -> None:
        """Put a layer before that of a number."""
        super().insert(index, _layer(type(self), module))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        found = super().__getitem__(index)
        return type(self)(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return text_of(self)


class ModuleDict(dict[str, Any], Module):
    """A dict of layers by name, which is a module.

    >>> parts = nn.ModuleDict({"first": nn.Linear(2, 3), "act": nn.ReLU()})
    >>> [name for name, parameter in parts.named_parameters()]
    ['first.weight', 'first.bias']
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def __setitem__(self, name: str, module: Any) -> None:
        super().__setitem__(_name(name), _layer(type(self), module))

    def update(self, modules: Any) -> None:  # type: ignore[override]
        """Put in layers by name, from a dict or from pairs."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def add_module(self, name: str, module: Any) -> None:
        """Put in a layer: `self[name] = module`."""
        self[name] = module

    def __repr__(self) -> str:
        return text_of(self)


class ParameterList(list[Any], Module):
    """A list of parameters; a Tensor that is none becomes one.

    >>> nn.ParameterList([Tensor([1.0]), Tensor([2.0, 3.0])])[1].requires_grad
    True
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(_trained(value) for value in values)

    def append(self, value: Any) -> Self:  # type: ignore[override]
        """Put a parameter behind the others; gives the list."""
        super().append(_trained(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:  # type: ignore[override]
        """Put several behind the others; gives the list."""
        super().extend([_trained(value) for value in values])
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(
            index, [_trained(v) for v in value] if isinstance(index, slice) else _trained(value)
        )

    def __repr__(self) -> str:
        return text_of(self)


class ParameterDict(dict[str, Any], Module):
    """A dict of parameters by name; a Tensor that is none becomes one.

    >>> list(nn.ParameterDict({"scale": Tensor([1.0])}).state_dict())
    ['scale']
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.update(parameters)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(_name(name), _trained(value))

    def update(self, values: Any) -> None:  # type: ignore[override]
        """Put in parameters by name, from a dict or from pairs."""
        for name, value in values.items() if isinstance(values, Mapping) else values:
            self[name] = value

    def __repr__(self) -> str:
        return text_of(self)


def _trained(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _layer(kind: type, module: Any) -> Callable[..., Any] | None:
    if module is not None and not callable(module) and not isinstance(module, Module):
        raise TypeError(f"{kind.__name__} takes layers, not {module!r}")
    return module  # type: ignore[no-any-return]


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(
            f"a name in a dict of layers or parameters must be a text without dots, not {name!r}"
        )
    return name

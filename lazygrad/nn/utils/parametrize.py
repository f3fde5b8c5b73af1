"""A weight that is computed from others whenever it is asked for: PyTorch's `torch.nn.utils.parametrize`.

The module becomes an object of a class derived from its own, in which the weight is a property. What it is
computed from is in `module.parametrizations`, under PyTorch's names: `parametrizations.weight.original`.
"""

from __future__ import annotations

from typing import Any

from ...shape import shape_text
from ...tensor import Tensor
from ..containers import Parameter
from ..module import Module, is_parameter


class ParametrizationList(Module):
    """What a weight is computed from, and the modules that compute it, one after another, as "0", "1", ...

    >>> nn.utils.parametrize.ParametrizationList(Tensor([1.0]))().tolist()
    [1.0]
    """

    def __init__(self, weight: Tensor) -> None:
        self.original = weight
        self.steps = 0
        self.count = 0  #: how many originals there are, where the first step takes several; else 0

    def add(self, step: Any, unsafe: bool) -> None:
        """Compute by one more step, from what the others give."""
        before = self().detach()
        if self.steps == 0 and hasattr(step, "right_inverse"):
            begin = step.right_inverse(before)
            if isinstance(begin, (tuple, list)):
                trained = is_parameter(self.original)
                vars(self).pop("original")
                self.count = len(begin)
                for number, part in enumerate(begin):
                    setattr(self, f"original{number}", Parameter(part, requires_grad=trained))
            else:
                self.original.assign(begin.detach())
        setattr(self, str(self.steps), step)
        self.steps += 1
        made = self()
        if not unsafe and (made.shape != before.shape or made.dtype is not before.dtype):
            raise ValueError(
                f"the parametrization {type(step).__name__} makes shape {shape_text(made.shape)} and "
                f"{made.dtype} of a weight of shape {shape_text(before.shape)} and {before.dtype}; "
                "unsafe=True allows it"
            )

    def originals(self) -> list[Tensor]:
        """The tensors that are trained."""
        return [getattr(self, f"original{n}") for n in range(self.count)] if self.count else [self.original]

    def forward(self) -> Tensor:
        """The weight."""
        values = self.originals()
        for number in range(self.steps):
            values = [getattr(self, str(number))(*values)]
        return values[0]

    def write(self, value: Tensor) -> None:
        """Let the weight be this value: written into the originals by the steps' `right_inverse`."""
        for number in reversed(range(self.steps)):
            step = getattr(self, str(number))
            if not hasattr(step, "right_inverse"):
                raise NotImplementedError(
                    f"a weight by {type(step).__name__} is not assigned to: it has no right_inverse"
                )
            value = step.right_inverse(value)
        parts = value if isinstance(value, (tuple, list)) else (value,)
        for original, part in zip(self.originals(), parts, strict=True):
            original.assign(part.detach())


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Module:
    """Let `module.weight` (by its name) be `parametrization(original)`; gives the module.

    parametrization  a module, or another function of the original; where it has a `right_inverse`, the
                     original begins with what that gives of the weight (several, where it gives a tuple)
    unsafe           the result may have another shape or dtype

    >>> layer = nn.Linear(2, 2, bias=False)
    >>> nn.utils.parametrize.register_parametrization(layer, "weight", nn.ReLU()).weight.min().item() >= 0
    True
    >>> list(layer.state_dict())
    ['parametrizations.weight.original']
    """
    known = getattr(module, "parametrizations", {})
    if tensor_name not in known:
        weight = vars(module).get(tensor_name)
        if not isinstance(weight, Tensor):
            raise ValueError(f"{type(module).__name__} has no tensor {tensor_name!r} to parametrize")
        held = ParametrizationList(weight)
        held.add(parametrization, unsafe)
        if not is_parametrized(module):
            _derive(module)
            module.parametrizations = {}  # type: ignore[attr-defined]
        _set_property(type(module), tensor_name)
        del vars(module)[tensor_name]
        module.parametrizations[tensor_name] = held  # type: ignore[attr-defined]
    else:
        known[tensor_name].add(parametrization, unsafe)
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module (or its weight of a name) is computed from others.

    >>> nn.utils.parametrize.is_parametrized(nn.ReLU())
    False
    """
    known = getattr(module, "parametrizations", {})
    return bool(known) and (tensor_name is None or tensor_name in known)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a weight a tensor of its own again.

    leave_parametrized  with the value that it is computed to now; else with its original

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> list(nn.utils.parametrize.remove_parametrizations(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__} has no parametrization of {tensor_name!r}")
    known: dict[str, ParametrizationList] = module.parametrizations  # type: ignore[attr-defined]
    held = known[tensor_name]
    if not leave_parametrized and held.count:
        raise ValueError(f"{tensor_name!r} has {held.count} originals: leave_parametrized=False needs one")
    originals = held.originals()
    value = held().detach() if leave_parametrized else originals[0]
    weight = Parameter(value, requires_grad=originals[0].requires_grad)
    del known[tensor_name]
    if known:
        delattr(type(module), tensor_name)
    else:
        del vars(module)["parametrizations"]
        module.__class__ = type(module).__mro__[1]
    setattr(module, tensor_name, weight)
    return module


def _derive(module: Module) -> None:
    """Give a module a class of its own, for the properties."""
    kind = type(module)
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"__module__": kind.__module__})


def _set_property(kind: Any, name: str) -> None:
    def value(self: Any) -> Tensor:
        made: Tensor = self.parametrizations[name]()
        return made

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].write(value)

    setattr(kind, name, property(value, write))

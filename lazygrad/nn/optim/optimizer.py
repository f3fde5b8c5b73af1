"""What all optimizers share: parameters in groups, numbers in memory, a step that runs at once.

A step is one `Tensor.realize` of everything that moves: parameters, their moments, and what the optimizer
counts. All of that, the learning rate too, is memory, so every step has the same graph: the second plans and
compiles nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ...device import Devices
from ...dtype import ConstType, DType, dtypes, least_upper_dtype
from ...shape import shape_text
from ...tensor import Tensor, no_grad
from ...tensor.modes import mode
from ...tensor.owners import show_model
from ...tensor.trace import called
from ..parameters import buffer
from ..state import Hidden, get_state_dict, load_state_dict
from . import cached_step

#: Tensors, or groups of them: {"params": tensors, and options that differ}.
Params = Iterable[Tensor] | Iterable[Mapping[str, Any]]


class Group:
    """Parameters that share options: `group["lr"]`, `group["params"]`, `group["weight_decay"]`, ...

    Setting "lr" writes into memory; setting another option changes the kernels of the next step.
    """

    def __init__(self, params: list[Tensor], lr: Tensor, options: dict[str, Any]) -> None:
        self._items: dict[str, Any] = {"params": params, "lr": lr, **options}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._items or key == "params":
            names = ", ".join(name for name in self._items if name != "params")
            raise KeyError(f"a group has the options {names}, not {key!r}")
        if key == "lr":
            _write_rate(self._items["lr"], value)
        else:
            _check_option(key, value)
            self._items[key] = value

    def get(self, key: str) -> Any:
        """An option, None where the optimizer has none of that name or it is 0."""
        value = self._items.get(key)
        return value if isinstance(value, Tensor) or value else None

    def keep(self, key: str, memory: Tensor) -> None:
        """Let an option be read from memory from now on."""
        self._items[key] = memory

    def options(self) -> dict[str, Any]:
        """Everything but the parameters and the learning rate."""
        return {name: value for name, value in self._items.items() if name not in ("params", "lr")}


def _write_rate(memory: Tensor, value: float | Tensor) -> None:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"a learning rate must be one number, not shape {shape_text(value.shape)}")
        memory.assign(value.detach().reshape(()).to(memory.device).cast(dtypes.float32))
    elif isinstance(value, (int, float)) and value >= 0:
        memory.assign(as_data(value, memory.device))
    else:
        raise ValueError(f"a learning rate must be a number of at least 0, or a Tensor, not {value!r}")


def as_data(value: ConstType, device: Devices) -> Tensor:
    """A number that arrives as data, not as a constant of a kernel: another one compiles nothing new."""
    return Tensor([value], dtype=dtypes.float32, device=device).reshape(())


class Common(TypedDict, total=False):
    """What PyTorch's optimizers take besides.

    maximize  go up the gradient, not down

    The others choose how PyTorch computes a step. Here planning decides that, so they change nothing;
    `differentiable=True` is not there.
    """

    maximize: bool
    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


def common(given: Common) -> dict[str, bool]:
    """The option `maximize`, of what was given by PyTorch's names."""
    known = Common.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(
                f"an optimizer has no option {name!r}; besides its own there are {', '.join(known)}"
            )
    if given.get("differentiable"):
        raise NotImplementedError("differentiable=True: no gradient flows through an optimizer's step")
    return {"maximize": bool(given.get("maximize", False))}


class Optimizer:
    """What all optimizers share.

    params  the Tensors to train, each once (`nn.state.get_parameters(model)` lists those of a model); or
            groups of them with options of their own: [{"params": [...], "lr": 0.1}, {"params": [...]}]
    lr      the learning rate, a number or a 0-d Tensor; `opt.lr = 0.01` writes another into the same memory,
            for all groups; `opt.param_groups[1]["lr"] = 0.01` for one
    """

    #: Options that all groups have in common.
    shared: tuple[str, ...] = ()

    def __init__(self, params: Params, lr: float | Tensor, **options: Any) -> None:
        for name, value in options.items():
            _check_option(name, value)
        groups = _grouped(params, options, self.shared)
        self.params = _checked([param for tensors, _ in groups for param in tensors])
        self.device = self.params[0].device
        #: all memory but that of the parameters
        self._buffers: Any = _Groups()
        self._started = Started()
        rates = [self._number(0.0) for _ in groups]
        # Beside the property of the same name, so that a state dict has the first as `lr`.
        vars(self)["lr"] = rates[0]
        if len(rates) > 1:
            self.other_rates = rates[1:]
        self.param_groups = _Groups()
        self._group_of: Any = _Groups()
        for (tensors, own), rate in zip(groups, rates, strict=True):
            group = Group(tensors, rate, {**options, **{k: v for k, v in own.items() if k != "lr"}})
            group["lr"] = own.get("lr", lr)
            self.param_groups.append(group)
            self._group_of.extend([group] * len(tensors))
        self._only_if: Any = _Groups()
        self._remember()
        show_model(self)
        Tensor.realize(*self.params, *self._buffers)

    def _remember(self) -> None:
        """Make what is remembered from step to step: `_number`, `_moments`, `_memory`."""

    @property
    def lr(self) -> Tensor:
        """The learning rate (of the first group): memory that `step` reads."""
        rate: Tensor = vars(self)["lr"]
        return rate

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def _memory(
        self,
        *shape: Any,
        value: float = 0.0,
        dtype: DType = dtypes.float32,
        like: Tensor | None = None,
    ) -> Tensor:
        """Memory of the optimizer's own; float32 where the dtype is narrower. `like`: sharded as it is."""
        wide = least_upper_dtype(dtype, dtypes.float32)
        filled = Tensor.full(shape, value, dtype=wide, device=self.device)
        self._buffers.append(buffer(filled if like is None else filled.shard_like(like)))
        made: Tensor = self._buffers[-1]
        return made

    def _number(self, value: float) -> Tensor:
        """A number in memory."""
        return self._memory(value=value)

    def _moments(self, value: float = 0.0) -> list[Tensor]:
        """Memory in the shapes of the parameters, filled with a number."""
        return [self._memory(*p.shape, value=value, dtype=p.dtype, like=p) for p in self.params]

    def has_momentum(self) -> bool:
        """Whether there is a momentum for schedules to move: `momentum`, or the b1 of Adam and others."""
        return any(group.get("momentum") is not None for group in self.param_groups) or hasattr(self, "b1")

    def write_momentum(self, value: float) -> None:
        """Write the momentum of all groups (b1, where that is its name) into memory that `step` reads."""
        number = vars(self).get("momentum_memory")
        if number is None:
            number = self.momentum_memory = self._number(value)
            if hasattr(self, "b1"):
                self.b1 = number
            for group in self.param_groups:
                group.keep("b1" if hasattr(self, "b1") else "momentum", number)
        number.assign(as_data(value, self.device)).realize()

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Train more parameters, with options of their own: {"params": [...], "lr": 0.1}.

        Only before the first step: what all parameters share, corrections for the first steps say, does
        not fit new ones later. Give those to a second optimizer.
        """
        if self._started.steps:
            raise NotImplementedError(
                f"{type(self).__name__}.add_param_group after steps were made: give the new parameters to a "
                "second optimizer, and step both"
            )
        first: Any = self.param_groups[0]
        groups = _grouped([param_group], first.options(), self.shared)
        ((tensors, own),) = groups
        _checked([*self.params, *tensors])
        saved: Any = [
            {"params": g["params"], "lr": float(g["lr"].item()), **g.options()} for g in self.param_groups
        ]
        added = {"params": tensors, "lr": float(first["lr"].item()), **first.options(), **own}
        Optimizer.__init__(self, [*saved, added], float(first["lr"].item()), **first.options())

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or make them zeros: the next `backward` starts anew."""
        for param in self.params:
            param.grad = None if set_to_none or param.grad is None else param.grad.zeros_like()

    def state_dict(self) -> dict[str, Tensor]:
        """All memory of the optimizer by name, as `nn.state.get_state_dict` finds it."""
        return get_state_dict(self)

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Go on from where another optimizer of the same kind and parameters was."""
        load_state_dict(self, state_dict, verbose=False)

    def step(self, closure: Callable[[], Any] | None = None, only_if: Tensor | None = None) -> Any:
        """Move the parameters once, by their gradients; see `schedule_step`.

        closure  computes the loss and its gradients before the step; `step` returns what it gave
        """
        loss = None if closure is None else closure()
        Tensor.realize(*self.schedule_step(only_if))
        return loss

    def schedule_step(self, only_if: Tensor | None = None) -> list[Tensor]:
        """Record a step: it runs when the returned tensors are realized, perhaps with others (the loss).

        only_if  a 0-d bool: where it is False, everything stays as it was
        """
        check_training(self)
        grads = self._gradients()
        self._started.steps = True
        self._only_if[:] = [] if only_if is None else [only_if]
        with no_grad(), called(type(self).__name__):
            cached_step.step(self, grads)
        self._only_if.clear()
        # The last layers first: their gradients are done first, and what these read is then free.
        return [*reversed(self.params), *self._buffers]

    def _gradients(self) -> list[Tensor]:
        missing = [i for i, param in enumerate(self.params) if param.grad is None]
        if len(missing) == len(self.params):
            raise RuntimeError("no parameter has a gradient: call loss.backward() before step()")
        if missing:
            shape = shape_text(self.params[missing[0]].shape)
            raise RuntimeError(
                f"{len(missing)} of {len(self.params)} parameters have no gradient, the first is number "
                f"{missing[0]}, of shape {shape}: the loss does not depend on them; leave them out"
            )
        grads = [param.grad for param in self.params if param.grad is not None]
        up = [bool(group.get("maximize")) for group in self._group_of]
        return [-grad if back else grad for grad, back in zip(grads, up, strict=True)]

    def _write(self, memory: Tensor, value: Tensor) -> None:
        """Write a new value, if this step is to be made."""
        value = value.cast(memory.dtype)
        memory.assign(self._only_if[0].where(value, memory) if self._only_if else value)

    def _step(self, grads: Sequence[Tensor]) -> None:
        """Write the new values of the parameters and of what is remembered."""
        self._begin()
        for i, (param, grad) in enumerate(zip(self.params, grads, strict=True)):
            group = self._group_of[i]
            self._write(param, self._moved(i, param, grad, group["lr"], **group.options()))

    def _begin(self) -> None:
        """Write what is counted once a step."""

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        """Where parameter i goes by its gradient. Its moments are written on the way."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")


class Started(Hidden):
    """Whether an optimizer has made a step."""

    steps = False


class _Groups(list[Any], Hidden):
    """A list that state dicts do not look into: the optimizer has the same tensors elsewhere."""


def check_training(optimizer: Optimizer) -> None:
    """Steps are made in training."""
    if not (Tensor.training or mode.by_modules):
        raise RuntimeError(
            f"{type(optimizer).__name__}.step() outside training: put the loop into `with Tensor.train():`, "
            "or call model.train() before it"
        )


def _grouped(
    params: Params, options: Mapping[str, Any], shared: Sequence[str]
) -> list[tuple[list[Tensor], Mapping[str, Any]]]:
    """(tensors, options of their own) of each group."""
    if isinstance(params, Tensor):
        raise TypeError("an optimizer takes a list of tensors, not one tensor: put it in a list")
    if isinstance(params, Mapping) or not isinstance(params, Iterable):
        kind = type(params).__name__
        raise TypeError(
            f"an optimizer takes a list of tensors, not a {kind}: nn.state.get_parameters finds them"
        )
    given = list(params)
    if not any(isinstance(entry, Mapping) for entry in given):
        return [(given, {})]  # type: ignore[list-item]
    groups: list[tuple[list[Tensor], Mapping[str, Any]]] = []
    for number, entry in enumerate(given):
        if not isinstance(entry, Mapping) or "params" not in entry:
            raise TypeError(f'group {number} must be a dict with "params", not {entry!r}')
        own = {key: value for key, value in entry.items() if key != "params"}
        for key in own:
            if key not in options and key != "lr":
                raise ValueError(f"group {number}: no option {key!r}; there are lr, {', '.join(options)}")
            if key in shared and own[key] != options[key]:
                raise ValueError(f"group {number}: {key} is one for all groups")
            _check_option(key, own[key])
        tensors = entry["params"]
        groups.append(([tensors] if isinstance(tensors, Tensor) else list(tensors), own))
    return groups


def _checked(params: Iterable[Tensor]) -> list[Tensor]:
    """The parameters, if they can be trained."""
    found = list(params)
    if not found:
        raise ValueError("an optimizer needs at least one parameter")
    position: dict[int, int] = {}
    for i, param in enumerate(found):
        if not isinstance(param, Tensor):
            raise TypeError(f"parameter {i} is not a Tensor but {param!r}")
        shape = shape_text(param.shape)
        if id(param) in position:
            raise ValueError(
                f"parameter {i}, of shape {shape}, is parameter {position[id(param)]} again; give each once"
            )
        position[id(param)] = i
        if not param.requires_grad:
            raise ValueError(
                f"parameter {i}, of shape {shape}, does not require a gradient: call requires_grad_() on it, "
                "or leave it out (nn.state.get_parameters(model) lists what can be trained)"
            )
        if param.device != found[0].device:
            raise ValueError(
                f"parameter {i} is on {param.device} and parameter 0 on {found[0].device}: "
                "make one optimizer for each device"
            )
    return found


#: What options of these names are less than; none is negative.
_BELOW = {"b1": 1.0, "b2": 1.0, "rho": 1.0, "momentum": math.inf, "weight_decay": math.inf}
_BELOW |= {"alpha": math.inf, "eps": math.inf, "lr_decay": math.inf, "momentum_decay": math.inf}


def _check_option(name: str, value: Any) -> None:
    if name not in _BELOW or isinstance(value, Tensor):
        return
    parts = {f"{name}[{i}]": v for i, v in enumerate(value)} if isinstance(value, tuple) else {name: value}
    for part, number in parts.items():
        if not isinstance(number, (int, float)):
            raise TypeError(f"{part} must be a number, not {number!r}")
        not_negative(part, number, _BELOW[name])


def not_negative(name: str, value: float, below: float = math.inf) -> None:
    if not 0 <= value < below:
        limit = "must be at least 0" if below == math.inf else f"must be in [0, {below:g})"
        raise ValueError(f"{name} {limit}, not {value!r}")

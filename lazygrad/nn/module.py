"""`nn.Module`: what every layer answers, and what people's own classes may inherit.

A model is any object, and its tensors are found where they lie (`state`). The base adds methods to that, and
nothing else: no registry, no hook on attributes. What it gives a class is found by walking when it is asked.

**Mode.** A layer trains where `Tensor.training` says so while it is called. A module that `train()` or
`eval()` was called on has a mode of its own: it sets `Tensor.training` for as long as it is called, whatever
is said around it, and so for all that it calls. The nearest word counts: the module's own, that of the module
that calls it, then `with Tensor.train():`. `train(None)` takes the word back.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, Self

from ..device import Devices
from ..dtype import DTypeSaid, dtypes, says_dtype, to_dtype
from ..tensor import Tensor
from ..tensor.creation_like import cuda_name
from ..tensor.modes import mode
from ..tensor.observer import observing
from ..tensor.owners import show_model
from ..tensor.signatures import DTypeLike
from .frozen_weights import FrozenWeights
from .hooks import AFTER, BEFORE, RemovableHandle, call_with_hooks, registered
from .state import UNSAVED, get_state_dict, load_state_dict, members_of, need_weights

#: What has attributes or elements, and is no layer.
_CONTAINERS = (list, tuple, dict, set, frozenset, str, bytes, Tensor, FrozenWeights)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


class IncompatibleKeys(NamedTuple):
    """What `Module.load_state_dict` did not load."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Watcher:
    """Told of every call of a module: `summary` looks on."""

    def called(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A module has given a result."""


_watchers: list[Watcher] = []


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Within the block a watcher is told of every call of a module, in any thread."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _in_own_mode(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a module, within the mode that the module has for itself."""

    @functools.wraps(call)
    def wrapper(self: Module, *args: Any, **kwargs: Any) -> Any:
        own, attributes = self._mode, getattr(self, "__dict__", ())
        # a call that `super().__call__` makes is a part of the one that has the hooks
        hooked = (AFTER in attributes or BEFORE in attributes) and _outermost(self, call)
        todo = functools.partial(call_with_hooks, call) if hooked else call
        if observing.by is not None and self.training:
            observing.by.is_trained(type(self).__name__)
        if own is None or own is mode.training:
            result = todo(self, *args, **kwargs)
        else:
            mode.training = own
            try:
                result = todo(self, *args, **kwargs)
            finally:
                mode.training = not own
        if _watchers:
            for watcher in _watchers:
                watcher.called(self, args, kwargs, result)
        return result

    return wrapper


def _outermost(module: Module, call: Callable[..., Any]) -> bool:
    """Whether this is the `__call__` of the module's class, and not one that it inherits and calls."""
    own: Any = type(module).__call__
    return getattr(own, "__wrapped__", None) is call


class Module:
    """The base of all layers, and of one's own classes for those who want its methods.

    Write `forward` (or `__call__`) and keep tensors, layers, and lists and dicts of them as attributes:
    nothing is registered. A tensor that requires a gradient is a parameter, also once `requires_grad_(False)`
    has frozen it; another tensor is a buffer: a part of the state that is not trained.

    >>> class Network(nn.Module):
    ...     def __init__(self):
    ...         self.hidden, self.out = nn.Linear(3, 4), nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x).relu())
    >>> network = Network()
    >>> network(Tensor.ones(5, 3)).shape
    (5, 2)
    >>> [name for name, parameter in network.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    __slots__ = ()
    _mode: bool | None = None  #: None: nobody told this module whether it trains

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        call = vars(cls).get("__call__")
        if isinstance(call, types.FunctionType):
            cls.__call__ = _in_own_mode(call)  # type: ignore[method-assign]

    @_in_own_mode
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward = getattr(self, "forward", None)
        if forward is None:
            raise NotImplementedError(
                f"{type(self).__name__} cannot be called: it has neither forward nor __call__"
            )
        return forward(*args, **kwargs)

    # *** what it consists of

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This module and all under it, each once, by the path that leads to it.

        A list or dict is no module, its elements are; an object of a plain class that can be called is one.

        >>> [name for name, module in nn.Sequential(nn.Linear(2, 2), nn.ReLU()).named_modules()]
        ['', '0', '1']
        """
        return _layers(self, prefix, deep=True)

    def modules(self) -> Iterator[Any]:
        """`named_modules` without the names."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly under this one, also those in lists and dicts."""
        found = _layers(self, "", deep=False)
        next(found)  # itself
        return found

    def children(self) -> Iterator[Any]:
        """`named_children` without the names."""
        return (module for _, module in self.named_children())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are trained, or were until they were frozen, each once, by name.

        recurse  also those of the modules under this one
        """
        return _named_tensors(self, prefix, recurse, parameters=True)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """`named_parameters` without the names.

        >>> [tensor.shape for tensor in nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are no parameters, each once, by name."""
        return _named_tensors(self, prefix, recurse, parameters=False)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """`named_buffers` without the names."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """What a path of `named_modules` leads to: `model.get_submodule("layers.0")`."""
        found: Any = self
        for part in target.split(".") if target else ():
            inside = {str(name): value for name, value in members_of(found, unsaved=True)}
            if part not in inside:
                raise AttributeError(f"{type(self).__name__} has no {target!r}: {part!r} is not there")
            found = inside[part]
        return found

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of this name."""
        known = dict(self.named_parameters())
        if target not in known:
            raise AttributeError(
                f"{type(self).__name__} has no parameter {target!r}; it has {', '.join(known)}"
            )
        return known[target]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is not trained as the attribute `name`.

        persistent  False: it is no part of `state_dict()`
        """
        self._register(name, tensor, "buffer")
        if tensor is not None:
            tensor.requires_grad_(False)
        unsaved: frozenset[str] = vars(self).get(UNSAVED, frozenset())
        left = unsaved - {name} if persistent else unsaved | {name}
        if left != unsaved:
            setattr(self, UNSAVED, left)

    def register_parameter(self, name: str, tensor: Tensor | None) -> None:
        """Keep a tensor that is trained as the attribute `name`."""
        self._register(name, tensor, "parameter")
        if tensor is not None:
            tensor.requires_grad_()

    def _register(self, name: str, tensor: Tensor | None, what: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(f"the name of a {what} must be an attribute, without dots, not {name!r}")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"the {what} {name!r} must be a Tensor or None, not {type(tensor).__name__}")
        setattr(self, name, tensor)

    def add_module(self, name: str, module: Any) -> None:
        """Keep a module as the attribute `name`: `setattr(self, name, module)`."""
        setattr(self, name, module)

    # *** its state

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Its tensors by name: parameters and buffers (`nn.state.get_state_dict`)."""
        return get_state_dict(self, prefix)

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> IncompatibleKeys:
        """Write values into its tensors, in place (`nn.state.load_state_dict`).

        strict  False: load what both have; the result names the rest
        """
        own = self.state_dict()
        load_state_dict(self, state_dict, strict, verbose=False)
        missing = [name for name in own if name not in state_dict]
        return IncompatibleKeys(missing, [name for name in state_dict if name not in own])

    # *** what is done to all of it

    def train(self, mode: bool | None = True) -> Self:
        """Let this module and all under it train, whatever `Tensor.training` is where they are called.

        mode  False: `eval()`. None: as nobody had said anything, by `Tensor.training`.

        >>> layer = nn.Dropout(0.5).eval()
        >>> with Tensor.train():
        ...     layer(Tensor.ones(3)).tolist()
        [1.0, 1.0, 1.0]
        """
        if mode is not None and not isinstance(mode, bool):
            raise TypeError(f"the mode of a module must be True, False or None, not {mode!r}")
        for module in self.modules():
            if isinstance(module, Module):
                module._set_mode(mode)
        return self

    def eval(self) -> Self:
        """Let this module and all modules under it not train: `train(False)`."""
        return self.train(False)

    @property
    def training(self) -> bool:
        """Whether it would train if it were called here."""
        return mode.training if self._mode is None else self._mode

    @training.setter
    def training(self, value: bool | None) -> None:
        self._set_mode(None if value is None else bool(value))

    def _set_mode(self, value: bool | None) -> None:
        if value is None:
            vars(self).pop("_mode", None)
        else:
            vars(self)["_mode"] = value
        if value:
            mode.by_modules = True

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze its parameters (False), or let all of them be trained."""
        for tensor in self.parameters():
            tensor.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of its parameters, or make them zeros."""
        for tensor in self.parameters():
            tensor.grad = None if set_to_none or tensor.grad is None else tensor.grad.zeros_like()

    def apply(self, function: Callable[[Any], Any]) -> Self:
        """Call a function with every module under this one, from the innermost on, and with itself.

        >>> seen = []
        >>> network = nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: seen.append(type(m).__name__))
        >>> seen
        ['ReLU', 'Tanh', 'Sequential']
        """
        for module in _innermost_first(self):
            function(module)
        return self

    def to(self, device: Devices | DTypeSaid | Tensor | None = None, dtype: DTypeLike = None) -> Self:
        """Move its tensors to a device, in place, and those of floats into a float dtype.

        device  a device or several, a dtype instead, or a tensor that is there and has the dtype

        Make optimizers afterwards: their moments stay where they are.

        >>> nn.Linear(2, 2).to("float16").weight.dtype
        dtypes.half
        """
        target: Any = device
        if isinstance(device, Tensor):
            target, dtype = device.device, dtype or device.dtype
        elif device is not None and not isinstance(device, tuple) and says_dtype(device):
            target, dtype = None, dtype or device
        wanted = None if dtype is None else to_dtype(dtype)
        if wanted is not None and not dtypes.is_float(wanted):
            raise TypeError(f"a module is cast to a float dtype, not to {wanted}")
        moved = []
        for tensor, castable in _tensors_to_move(self):
            floats = wanted is not None and castable and dtypes.is_float(tensor.dtype)
            value = tensor.detach() if target is None else tensor.detach().to(target)
            value = value.cast(wanted) if floats and wanted is not None else value
            if value.device == tensor.device and value.dtype is tensor.dtype:
                continue
            trained = tensor.requires_grad
            tensor.replace(value.empty_like().assign(value))
            if trained:  # the new memory is a node that no other tensor is
                tensor._requires_grad = None
                tensor.requires_grad_()
            moved.append(tensor)
            if tensor.grad is not None:
                tensor.grad = tensor.grad.to(tensor.device).cast(tensor.dtype)
        if moved:
            Tensor.realize(*moved)
        return self

    def cpu(self) -> Self:
        """Its tensors on device CPU, in place."""
        return self.to("CPU")

    def cuda(self, device: int | str | None = None) -> Self:
        """Its tensors on device CUDA, in place, or on that number of it."""
        return self.to(cuda_name(device))

    def float(self) -> Self:
        """Its floats in float32, in place."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Its floats in float64, in place."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Its floats in float16, in place."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """Its floats in bfloat16, in place."""
        return self.to(dtypes.bfloat16)

    # *** what is called around its call

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Let `hook(module, args)` be called before each call of this module; what it gives, unless it is
        None, takes the place of the arguments.

        prepend      call it before those that are there
        with_kwargs  `hook(module, args, kwargs)`, which gives None or (args, kwargs)

        >>> layer = nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
        >>> layer(Tensor([1.0])).item(), handle.remove(), layer(Tensor([1.0])).item()
        (2.0, None, 1.0)
        """
        return registered(self, BEFORE, hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Let `hook(module, args, result)` be called after each call of this module; what it gives, unless it
        is None, takes the place of the result.

        prepend      call it before those that are there
        with_kwargs  `hook(module, args, kwargs, result)`
        always_call  also where the call raises, with None for the result

        A replay of a jit calls nothing in Python: hooks see the calls that are captured.

        >>> seen = []
        >>> layer = nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, result: seen.append(result))
        >>> layer(Tensor([-1.0])) is seen[0]
        True
        """
        return registered(self, AFTER, hook, prepend, with_kwargs=with_kwargs, always=always_call)

    # *** how it is printed

    def extra_repr(self) -> str:
        """What stands in the parentheses of its `repr`: the arguments it was made with."""
        return _arguments(self)

    def __repr__(self) -> str:
        return text_of(self)


# ---- walks ----


def is_layer(value: Any) -> bool:
    """Whether an object counts as a module: a Module, or an object of a plain class that can be called."""
    if isinstance(value, Module):
        return True
    plain = callable(value) and not isinstance(value, (*_CONTAINERS, *_CODE))
    return plain and hasattr(value, "__dict__") and not isinstance(value, functools.partial)


def _layers(root: Any, prefix: str, deep: bool) -> Iterator[tuple[str, Any]]:
    """The root, then the layers under it, each once, outer ones first; not `deep`: only the nearest."""
    visited: dict[int, Any] = {}
    todo: list[tuple[str, Any]] = [(prefix.strip("."), root)]
    while todo:
        name, value = todo.pop()
        if id(value) in visited or isinstance(value, Tensor):
            continue
        visited[id(value)] = value
        if value is root or is_layer(value):
            yield name, value
            if not deep and value is not root:
                continue
        inner = [
            (f"{name}.{key}" if name else str(key), part) for key, part in members_of(value, unsaved=True)
        ]
        todo.extend(reversed(inner))


def _innermost_first(root: Any) -> list[Any]:
    """All layers: each behind those under it, in the order they stand."""
    found: list[Any] = []
    visited: set[int] = set()
    todo: list[tuple[Any, bool]] = [(root, False)]
    while todo:
        layer, done = todo.pop()
        if done:
            found.append(layer)
        elif id(layer) not in visited:
            visited.add(id(layer))
            inner = _layers(layer, "", deep=False)
            next(inner)
            todo.append((layer, True))
            todo.extend((part, False) for _, part in reversed(list(inner)))
    return found


def walk_tensors(root: Any, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a model, each once, by the first path that leads to it."""
    show_model(root)
    visited: dict[int, Any] = {}
    todo: list[tuple[str, Any]] = [(prefix.strip("."), root)]
    while todo:
        name, value = todo.pop()
        if id(value) in visited:
            continue
        visited[id(value)] = value
        if isinstance(value, Tensor):
            yield name, value
        elif recurse or value is root or not is_layer(value):
            inner = [
                (f"{name}.{key}" if name else str(key), part) for key, part in members_of(value, unsaved=True)
            ]
            todo.extend(reversed(inner))


def _tensors(root: Any) -> list[Tensor]:
    return [tensor for _, tensor in walk_tensors(root)]


def _tensors_to_move(root: Any) -> list[tuple[Tensor, bool]]:
    """The tensors of a model, and whether each may be cast: those of quantised weights may not."""
    kept = set()
    todo: list[tuple[str, Any]] = [("", root)]
    visited: set[int] = set()
    while todo:
        _, value = todo.pop()
        if isinstance(value, FrozenWeights):
            kept |= {id(tensor) for tensor in value.memory}
        elif id(value) not in visited and not isinstance(value, Tensor):
            visited.add(id(value))
            todo.extend(members_of(value, unsaved=True))
    return [(tensor, id(tensor) not in kept) for tensor in _tensors(root)]


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor of a model is trained, or was until it was frozen."""
    return tensor.requires_grad or hasattr(tensor, "_frozen")


def _named_tensors(root: Any, prefix: str, recurse: bool, parameters: bool) -> Iterator[tuple[str, Tensor]]:
    if parameters:
        need_weights(root)
    for name, tensor in walk_tensors(root, prefix, recurse):
        if is_parameter(tensor) is parameters:
            yield name, tensor


# ---- printed forms ----


def parameter_count(model: Any) -> int:
    """How many numbers the parameters of a model have, each tensor counted once."""
    return sum(tensor._static_numel() for tensor in _tensors(model) if is_parameter(tensor))


def text_of(module: Any, outer: frozenset[int] = frozenset()) -> str:
    """A module and what is under it, as PyTorch prints it, with the number of its parameters behind.

    outer  the ids of what it lies in: a part may know the whole it belongs to
    """
    name, inside = type(module).__name__, _inside(module)
    extra = module.extra_repr() if isinstance(module, Module) else ""
    total = parameter_count(module)
    count = f"  # {total:,} parameters" if total else ""
    if not inside:
        return f"{name}({extra}){count}"
    return "\n".join([f"{name}({extra}", *_indented(inside, outer | {id(module)}), f"){count}"])


def _indented(parts: Iterable[tuple[Any, Any]], outer: frozenset[int]) -> Iterator[str]:
    for key, part in parts:
        head, *rest = _part_text(part, outer).split("\n")
        yield f"  ({key}): {head}"
        yield from (f"  {line}" for line in rest)


def _part_text(part: Any, outer: frozenset[int]) -> str:
    if id(part) in outer:
        return "..."
    if is_layer(part):
        own = not isinstance(part, Module) and getattr(type(part), "__repr__", None) != object.__repr__
        return repr(part) if own else text_of(part, outer)
    if isinstance(part, (list, tuple, dict)):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        return "\n".join([f"{type(part).__name__}(", *_indented(items, outer | {id(part)}), ")"])
    return getattr(part, "__name__", None) or type(part).__name__


def _inside(module: Any) -> list[tuple[str, Any]]:
    """The layers directly in a module, and the lists, tuples and dicts with layers in them."""
    if isinstance(module, (list, tuple)):
        return [(str(key), part) for key, part in enumerate(module)]
    return [
        (str(k), part) for k, part in members_of(module, unsaved=True) if is_layer(part) or _has_layers(part)
    ]


def _has_layers(value: Any) -> bool:
    if not isinstance(value, (list, tuple, dict)):
        return False
    found = _layers(value, "", deep=False)
    next(found)  # itself
    return next(found, None) is not None


def _arguments(module: Any) -> str:
    """The arguments of the constructor that are attributes: those it needs, and those that are no default."""
    if is_dataclass(module):
        return ", ".join(f"{f.name}={getattr(module, f.name)!r}" for f in fields(module) if f.repr)
    shown = []
    for name, parameter in inspect.signature(type(module).__init__).parameters.items():
        own = vars(module).get(name, inspect.Parameter.empty)
        if name == "bias" and (own is None or isinstance(own, Tensor)):
            own = own is not None
        plain = own is None or isinstance(own, (bool, int, float, str, tuple))
        if plain and (parameter.default is inspect.Parameter.empty or not _same(own, parameter.default)):
            shown.append(f"{name}={own!r}")
    return ", ".join(shown)


def _same(value: Any, default: Any) -> bool:
    """Whether an attribute is what the default stands for: (1, 1) is a stride of 1."""
    if isinstance(value, tuple) and not isinstance(default, tuple):
        return all(item == default for item in value)
    return bool(value == default)

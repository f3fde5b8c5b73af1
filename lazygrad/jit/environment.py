"""What a captured function reads besides its arguments: closure cells, globals, attributes of these.

The names come from the bytecode of the function and of the user's functions that it may call: those to which
names, attributes, containers, closures and defaults lead (reachable.py), and methods that some code names.
When one is read, the values it can see are noted. Every later call compares them. Attribute chains are
taken apart: `self.config.rate` is three keys of three dicts, each compared by identity first, which takes a
tenth of a microsecond. An object that comes by another way, from a list or a call, is reached nevertheless
(reachable.py), and those of its attributes that the code names are noted.
"""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..ir.uop import UOp
from ..tensor import Tensor
from .bytecode import EVERY, Reads, in_own_mode, is_installed, is_user_code, parameters_of, reads_of
from .declared_sizes import sizes_are_hidden
from .environment_specs import EnvironmentDescriber
from .errors import JitError
from .guard import AttributeSlot, CellGuard, Compared, Guard, KeysGuard, SizeGuard, SlotGuard, cell_value
from .impure_calls import CLOCK, NumpyRandom, Patch, is_clock_method, patched, reads_outside, refusal
from .python_values import MISSING, PLAIN, fields_of, is_closed_module, is_instance
from .reachable import Reach, functions_of
from .specs import Call, PlainSpec, SameSpec
from .tensor_specs import CapturedSpec

#: So many functions are read.
MOST_FUNCTIONS = 2000

#: What `asks_nothing` sets on a function.
_MARK = "_asks_nothing"


def asks_nothing(fxn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of lazygrad's own that asks for nothing that changes but its arguments, and calls no
    function of a user. A TinyJit captures it in its first call, and does not read the code of what it calls.
    """
    setattr(fxn, _MARK, True)
    return fxn


def is_unwatched(fxn: Callable[..., Any]) -> bool:
    """Whether a function is marked by `asks_nothing`."""
    return hasattr(fxn, _MARK)


class Environment:
    """The values that one capture could see, besides its arguments; `check` compares them with those of now.

    on_tensor  called with each tensor when it is found, before the function uses it
    state      what the user has declared: then the code of the functions that it calls is not read, and all
               attributes of these objects and of the arguments count
    """

    def __init__(self, on_tensor: Callable[[Tensor], None], state: tuple[Any, ...] | None = None) -> None:
        self._state = state
        self._in_state = False  #: the walk is below it
        self.guards: dict[tuple[int, Any], Guard] = {}
        self.names: set[str] = set()
        self.every = False  #: all attributes of all that is reached are asked for
        self.watches = True  #: what is called while the function runs may be the user's
        self.hides_sizes = False  #: the function may not be told a size of a tensor
        self._on_tensor = on_tensor
        self._describer = EnvironmentDescriber()
        self._reach = Reach(on_tensor, self._met, self._met_function, self._met_instance)
        self._slots: dict[str, list[AttributeSlot]] = {}
        self._numpy = NumpyRandom()
        self._patches: list[Patch] = []
        self._refused: str | None = None
        #: functions whose code is to be read, with the object that they are a method of
        self._found: collections.deque[tuple[types.FunctionType, Any]] = collections.deque()
        self._read: dict[types.FunctionType, None] = {}
        #: the objects that were met, and the functions that are methods of them, by class
        self._instances: dict[type, list[Any]] = {}
        self._methods: dict[type, list[types.FunctionType]] = {}
        self.check: Callable[[Call], None]  #: raises Changed where something is not as it was; after `close`

    # *** noting

    def function(self, fxn: Any, arguments: tuple[Any, ...] = ()) -> None:
        """Begin with the function that is captured: its cells, globals, and the object it is a method of."""
        owner: Any = MISSING
        if self._state is not None:
            self._declare(self._state)
        while True:
            if isinstance(fxn, functools.partial):
                self._key({"partial": fxn}, "partial", "partial")
                fxn = fxn.func
            elif isinstance(fxn, types.MethodType):
                owner, fxn = fxn.__self__, fxn.__func__
            elif isinstance(fxn, types.FunctionType) or not is_instance(fxn):
                break
            else:
                call = getattr(type(fxn), "__call__", None)  # noqa: B004  the function is wanted
                owner, fxn = fxn, in_own_mode(call)
        self.watches = not is_unwatched(fxn)
        for argument in arguments:
            self._reach.walk(argument, "an argument", passed=True)
        if owner is not MISSING:
            self._reach.walk(owner, "self")
        if isinstance(fxn, types.FunctionType):
            self._reach.walk(fxn, fxn.__name__)
            if self.watches and is_user_code(fxn.__code__):
                self._found.append((fxn, MISSING))  # of whatever package it is
        self._read_found()
        self.every = self.every or self._state is not None  # of the arguments, from here on

    @contextmanager
    def intercepted(self) -> Iterator[None]:
        """Within the block, what the function reads of the world outside is refused where it is read."""
        if not self.watches:
            if self.hides_sizes:
                raise JitError("what the function asks is not looked at, so it may have asked for a size")
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(patched(self._patches, self._refuse, self._environment_is_read))
            if self.hides_sizes:
                stack.enter_context(sizes_are_hidden(self._refuse))
            yield
        self._refused = self._refused or self._numpy.drawn()
        if self._refused is not None:
            raise JitError(self._refused)

    def _environment_is_read(self) -> None:
        self._key(vars(os), "environ", "os.environ")

    def _refuse(self, why: str) -> None:
        self._refused = self._refused or why  # whoever catches what is raised here
        raise JitError(why)

    # *** the functions that it may call

    def _read_found(self) -> None:
        """Read the code of the functions that were met, and of those to which that leads."""
        while self._found:
            function, owner = self._found.popleft()
            if owner is MISSING:
                if function not in self._read:
                    self._read_function(function)
            else:
                self._chains(function, dict.fromkeys(parameters_of(function.__code__)[:1], owner))

    def _declare(self, state: tuple[Any, ...]) -> None:
        """What the objects hold counts, whoever asks for it."""
        self._in_state = True
        for number, value in enumerate(state):
            name = f"state[{number}]"
            if isinstance(value, Tensor) or not is_instance(value):
                self._key({"state": value}, "state", name)
            self._reach.walk(value, name)
        self._in_state = False

    def _met_function(self, function: types.FunctionType) -> None:
        if (
            self._state is None
            and self.watches
            and len(self._read) < MOST_FUNCTIONS
            and _is_looked_at(function)
        ):
            self._found.append((function, MISSING))

    def _met_instance(self, value: Any) -> None:
        kind = type(value)
        known = self._instances.setdefault(kind, [])
        if not known:
            self._methods[kind] = [function for function in self._read if _is_method(function, kind)]
        known.append(value)
        self._found += [(function, value) for function in self._methods[kind]]

    def _read_function(self, function: types.FunctionType) -> None:
        self._read[function] = None
        owned = function.__name__ == "__init__"  # its object is new
        for kind, instances in self._instances.items():
            if _is_method(function, kind):
                self._methods[kind].append(function)
                self._found += [(function, value) for value in instances]
                owned = True
        for key in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, key)
            if not all(type(part) in PLAIN for part in _values_of(defaults)):
                self._note(SlotGuard, function, key, defaults, f"{function.__name__}.{key}")
        self._chains(function, {})
        reads = reads_of(function.__code__)
        for name, level in reads.imports:
            self._imported(name, level, function.__globals__)
        first = parameters_of(function.__code__)[:1] if owned else ()
        unknown = [c for c in reads.chains if c.kind == "param" and c.root not in first]
        asked = any(chain.attributes[-1:] == (EVERY,) for chain in unknown)
        self._mention(reads, asked)

    def _chains(self, function: types.FunctionType, bound: dict[str, Any]) -> None:
        """Follow what the code of a function names, or with `bound` what it names of these parameters."""
        scope = function.__globals__
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for chain in reads_of(function.__code__).chains:
            root = chain.root
            if chain.kind == "param":
                if root in bound:
                    self._follow(bound[root], root, chain.attributes)
            elif bound:
                continue
            elif chain.kind == "global":
                if root in scope or not hasattr(builtins, root):
                    self._follow(self._key(scope, root, root), root, chain.attributes)
            elif root in cells:
                self._follow(self._cell(cells[root], root), root, chain.attributes)

    def _mention(self, reads: Reads, asks_for_every: bool) -> None:
        """The code asks for attributes of these names, of whatever object."""
        new = reads.names - self.names
        if "__match_args__" in reads.names:  # a pattern of a class names attributes by their order
            for kind in list(self._reach.classes):
                new |= set(getattr(kind, "__match_args__", ())) - self.names
        self.names |= new
        if (reads.every or asks_for_every) and not self.every:
            self.every = True
            new = frozenset(self._slots)
        for name in new:
            for place in self._slots.get(name, ())[:]:
                self._note_slot(place)
        for module in list(self._reach.modules.values()):
            for name in new:
                if name in vars(module):
                    self._key(vars(module), name, f"{module.__name__}.{name}")

    def _imported(self, name: str, level: int, scope: dict[str, Any]) -> None:
        """A module that the function imports, if that was imported before."""
        if level:
            package = str(scope.get("__package__") or "").split(".")
            name = ".".join([*package[: len(package) - level + 1], *filter(None, [name])])
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = sys.modules.get(".".join(parts[:count]))
            if module is not None:
                self._new_module(module)

    def _new_module(self, module: types.ModuleType) -> None:
        if id(module) in self._reach.modules or is_closed_module(module.__name__):
            return
        self._reach.walk(module, module.__name__)
        for name in self.names & vars(module).keys():
            self._key(vars(module), name, f"{module.__name__}.{name}")

    def _met(self, place: AttributeSlot, always: bool) -> None:
        """An attribute that can be reached: noted if it is named, or when it will be."""
        if always:
            spec = PlainSpec(f"`{place.name}`", place.value)
            self.guards.setdefault((id(place.holder), place.key), Guard(*place[1:4], spec))
        elif self._in_state and _counts_in_state(place):
            all_of = place.kind is KeysGuard
            self._note_slot(place._replace(kind=SizeGuard, value=len(place.value)) if all_of else place)
        elif place.key in self.names or self.every:
            self._note_slot(place)
        self._slots.setdefault(place.key, []).append(place)

    def _note_slot(self, place: AttributeSlot) -> None:
        certain, self._describer.certain = self._describer.certain, place.key in self.names
        try:
            self._note(*place)
        finally:
            self._describer.certain = certain

    # *** chains

    def _follow(self, value: Any, name: str, attributes: tuple[str, ...]) -> None:
        for attribute in attributes:
            if attribute == EVERY:
                self._all_of(value, name)
                return
            name = f"{name}.{attribute}"
            if is_clock_method(value, attribute):
                self._refuse(refusal(f"`{name}`()", CLOCK))
            if isinstance(value, types.ModuleType):
                value = self._of_module(value, attribute, name)
            elif isinstance(value, types.FunctionType) and is_user_code(value.__code__):
                value = self._key(value.__dict__, attribute, name)
            elif _is_leaf(value):
                return
            elif isinstance(value, type):
                value = self._of_class(value, attribute, name)
            else:
                value = self._of_instance(value, attribute, name)
            if value is MISSING:
                return

    def _all_of(self, value: Any, name: str) -> None:
        """All attributes of an object are asked for."""
        if isinstance(value, types.ModuleType) and not is_closed_module(value.__name__):
            for key, part in list(vars(value).items()):
                if isinstance(part, (types.FunctionType, type)):
                    self._key(vars(value), key, f"{name}.{key}")
        if isinstance(value, (types.ModuleType, type, types.FunctionType)) or _is_leaf(value):
            return
        for base in type(value).__mro__:
            if not is_closed_module(base.__module__):
                for key in [key for key, part in vars(base).items() if functions_of(part)]:
                    self._key(self._reach.dict_of(base), key, f"{name}.{key}")
        held = getattr(value, "__dict__", None)
        if held is not None:
            self._note(KeysGuard, held, MISSING, tuple(held), f"{name}.__dict__")
        for key, part in list(fields_of(value)):
            if held is not None and key in held:
                self._key(held, key, f"{name}.{key}")
            else:
                self._note(SlotGuard, value, key, part, f"{name}.{key}")

    def _of_module(self, module: types.ModuleType, attribute: str, name: str) -> Any:
        if not is_closed_module(module.__name__):
            return self._key(vars(module), attribute, name)
        value = vars(module).get(attribute, MISSING)
        fixed = isinstance(value, (types.ModuleType, type)) or callable(value)
        if fixed or module.__name__.partition(".")[0] not in sys.stdlib_module_names:
            return value
        if hasattr(value, "writable") and value.writable():
            return MISSING  # sys.stdout, whatever it is now
        return self._key(vars(module), attribute, name)

    def _of_class(self, cls: type, attribute: str, name: str) -> Any:
        for base in cls.__mro__:
            if attribute in vars(base):
                value = self._key(self._reach.dict_of(base), attribute, name)
                return MISSING if isinstance(value, (property, staticmethod, classmethod)) else value
            if not is_closed_module(base.__module__):
                self._key(self._reach.dict_of(base), attribute, name)  # it may be given to the class later
        return MISSING

    def _of_instance(self, value: Any, attribute: str, name: str) -> Any:
        held = getattr(value, "__dict__", None)
        if held is not None and attribute in held:
            return self._key(held, attribute, name)
        for base in type(value).__mro__:
            if attribute in vars(base):
                found = vars(base)[attribute]
                if isinstance(found, types.MemberDescriptorType):
                    return self._note(SlotGuard, value, attribute, getattr(value, attribute, MISSING), name)
                if held is not None and not isinstance(found, property):
                    self._key(held, attribute, name)  # it may be given to the instance later
                return self._of_class(type(value), attribute, name)
        return self._key(held, attribute, name) if held is not None else MISSING

    def _key(self, holder: Any, key: str, name: str) -> Any:
        return self._note(Guard, holder, key, holder.get(key, MISSING), name)

    def _cell(self, cell: types.CellType, name: str) -> Any:
        return self._note(CellGuard, cell, "", cell_value(cell), name)

    def _note(self, kind: type[Guard], holder: Any, key: Any, value: Any, name: str) -> Any:
        place = (id(holder), key)
        if place not in self.guards:
            count = len(self._describer.captured)
            if kind in (Guard, CellGuard) and reads_outside(value) and not isinstance(holder, _READ_ONLY):
                self._patches.append(Patch(holder, key))
                self.guards[place] = kind(holder, key, value, SameSpec(f"`{name}`", value))
                return value
            try:
                spec = self._describer.describe(value, f"`{name}`")
            except JitError as error:
                self._refused = self._refused or str(error)
                raise
            self.guards[place] = kind(holder, key, value, spec)
            for held in self._describer.captured[count:]:
                self._on_tensor(held.tensor)
            self._numpy.note(value, f"`{name}`")
            if isinstance(value, types.ModuleType):
                self._new_module(value)
            else:
                self._reach.walk(value, name)
        return self.guards[place].value

    # *** the capture is done

    def close(self, is_used: Callable[[Tensor], bool], gradients: list[Tensor]) -> None:
        """Of the tensors inside objects, those whose memory the capture used are held.

        How tensors are now is how they must be later. The function sets the `gradients` of some.
        """
        for found in self._reach.inside.values():
            if is_used(found.tensor):
                for guard in found.way:
                    self.guards.setdefault((id(guard.holder), guard.key), guard)
                last = found.way[-1]
                held = self.guards[id(last.holder), last.key]
                if isinstance(held.spec, SameSpec):
                    spec = CapturedSpec(held.spec.name, found.tensor)
                    self._describer.captured.append(spec)
                    held.spec = spec
        self._gradients(is_used, gradients)
        for spec in self._describer.captured:
            spec.hold()
        kept = [guard for guard in self.guards.values() if not _stays(guard.value)]
        requires = bool(gradients) or "requires_grad" in self.names or self._state is not None
        compared = Compared(kept, requires)
        self.check = compared.check
        self._on_tensor = _note_nothing  # the session of the capture is over
        # without a way back to here, which would be a cycle: what a jit holds ends with it
        self._reach = Reach(*[_note_nothing] * 4)
        for table in (self._slots, self._patches, self._read, self._instances, self._methods):
            table.clear()
        self._numpy = NumpyRandom()

    def binds(self) -> list[UOp]:
        """The bound Variables that names lead to."""
        return self._describer.binds

    def tensors(self) -> list[Tensor]:
        """The tensors that names lead to."""
        return [spec.tensor for spec in self._describer.captured]

    def _gradients(self, is_used: Callable[[Tensor], bool], set_inside: list[Tensor]) -> None:
        """Gradients that the function reads and does not set: they are tensors found outside too."""
        found = [each.tensor for each in self._reach.inside.values() if is_used(each.tensor)]
        for tensor in dict.fromkeys((*found, *self.tensors())):
            grad = tensor.grad
            if any(tensor is each for each in set_inside):
                continue
            if "grad" in self.names or (grad is not None and is_used(grad)):
                spec = self._describer.describe(grad, "the gradient of a tensor")
                self.guards.setdefault((id(tensor), "grad"), SlotGuard(tensor, "grad", grad, spec))


def _counts_in_state(place: AttributeSlot) -> bool:
    """Whether it is what an object holds, or which attributes it has; its class is not declared with it."""
    return not isinstance(place.holder, _READ_ONLY) and place.value is not MISSING


_OWN_NAME = __package__.partition(".")[0]
_READ_ONLY = types.MappingProxyType


def _note_nothing(*found: Any) -> None:
    """What is met after the capture is nobody's."""


def _values_of(defaults: Any) -> Any:
    """A function's default values."""
    return defaults.values() if isinstance(defaults, dict) else defaults or ()


def _is_method(function: types.FunctionType, kind: type) -> bool:
    """Whether objects of a class have a function as a method, maybe one that is decorated."""
    if function.__name__ == "__init__":  # whose object is new
        return False
    found = inspect.getattr_static(kind, function.__name__, None)
    todo = functions_of(found)
    while todo:
        each = todo.pop()
        if each is function:
            return not isinstance(found, staticmethod)
        todo += [each.__wrapped__] if hasattr(each, "__wrapped__") else []
    return False


def _is_looked_at(function: types.FunctionType) -> bool:
    """Whether the code of a function is read: of an installed package only in a module that uses lazygrad."""
    if not is_installed(function.__code__.co_filename):
        return True
    return any(_is_ours(value) for value in list(function.__globals__.values()))


def _is_ours(value: Any) -> bool:
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == _OWN_NAME


def _stays(value: Any) -> bool:
    """Whether nobody replaces a value: the modules and classes of libraries."""
    return _is_leaf(value) and isinstance(value, (types.ModuleType, type))


def _is_leaf(value: Any) -> bool:
    """Whether a value's attributes are not looked at: numbers, containers, functions, what libraries hold."""
    if isinstance(value, (Tensor, list, tuple, set, frozenset, types.FunctionType)):
        return True
    if type(value) in PLAIN or type(value) is dict:
        return True
    if isinstance(value, (types.BuiltinFunctionType, types.MethodType)):
        return True
    if isinstance(value, (types.ModuleType, type)):
        name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        return is_closed_module(name)
    return False

"""What a captured function reads besides its arguments: closure cells, globals, attributes of these.

The names come from the bytecode of the function and of the user's functions that run during the capture; the
first time one is met, the values it can see are noted. Every later call compares them. Attribute chains are
taken apart: `self.config.rate` is three keys of three dicts, each compared by identity first, which takes a
tenth of a microsecond. An object that comes by another way, from a list or a call, is reached nevertheless
(reachable.py), and those of its attributes that the code names are noted.
"""

from __future__ import annotations

import builtins
import functools
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..engine.realize import recording
from ..ir.uop import UOp
from ..tensor import Tensor
from .bytecode import EVERY, Reads, in_own_mode, is_own_file, is_user_code, parameters_of, reads_of
from .declared_sizes import tells_size
from .environment_specs import EnvironmentDescriber
from .errors import JitError
from .guard import AttributeSlot, CellGuard, Compared, Guard, KeysGuard, SlotGuard, cell_value
from .impure_calls import NumpyRandom, codes_of_collectors, is_of_the_engine, reads_outside, user_who_called
from .python_values import MISSING, PLAIN, fields_of, is_closed_module, is_instance
from .reachable import Reach
from .specs import Call, PlainSpec, SameSpec
from .tensor_specs import CapturedSpec

#: What `asks_nothing` sets on a function.
_MARK = "_asks_nothing"


def asks_nothing(fxn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of lazygrad's own that asks for nothing that changes but its arguments, and calls no
    function of a user. A TinyJit captures it in its first call, and does not watch what it calls, which takes
    two thirds of a capture's time.
    """
    setattr(fxn, _MARK, True)
    return fxn


def is_unwatched(fxn: Callable[..., Any]) -> bool:
    """Whether a function is marked by `asks_nothing`."""
    return hasattr(fxn, _MARK)


class Environment:
    """The values that one capture could see, besides its arguments; `check` compares them with those of now.

    on_tensor  called with each tensor when it is found, before the function uses it
    """

    def __init__(self, on_tensor: Callable[[Tensor], None]) -> None:
        self.guards: dict[tuple[int, Any], Guard] = {}
        self.names: set[str] = set()
        self.every = False  #: all attributes of all that is reached are asked for
        self.watches = True  #: what is called while the function runs may be the user's
        self.hides_sizes = False  #: the function may not be told a size of a tensor
        self._on_tensor = on_tensor
        self._describer = EnvironmentDescriber()
        self._reach = Reach(on_tensor, self._met)
        self._slots: dict[str, list[AttributeSlot]] = {}
        self._numpy = NumpyRandom()
        self._refused: str | None = None
        self._visited: set[Any] = set()
        self._inner: set[types.CodeType] = set()
        self.check: Callable[[Call], None]  #: raises Changed where something is not as it was; after `close`

    # *** noting

    def function(self, fxn: Any, arguments: tuple[Any, ...] = ()) -> None:
        """Begin with the function that is captured: its cells, globals, and the object it is a method of."""
        owner: Any = MISSING
        for argument in arguments:
            self._reach.walk(argument, "an argument", passed=True)
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
        if owner is not MISSING:
            self._reach.walk(owner, "self")
        if isinstance(fxn, types.FunctionType):
            self.watches = not is_unwatched(fxn)
            self._reach.walk(fxn, fxn.__name__)
            if not self.watches or not is_user_code(fxn.__code__):
                return  # or a decorator of a library: what it calls is seen when it runs
            bound = dict.fromkeys(parameters_of(fxn.__code__)[:1], owner) if owner is not MISSING else {}
            self._chains(fxn.__code__, fxn.__globals__, [fxn], bound)

    @contextmanager
    def functions_that_run(self) -> Iterator[None]:
        """Within the block, the user's functions that are called in this thread are noted too."""
        outer = sys.getprofile()
        if not self.watches:
            if self.hides_sizes:
                raise JitError("what the function asks is not looked at, so it may have asked for a size")
            yield
            return
        if outer is not None and not isinstance(outer, types.FunctionType):
            if self.hides_sizes:
                raise JitError("a profiler written in C is in the way of looking at what the function asks")
            yield  # a profiler written in C cannot be shared: only the function itself is looked at
            return

        collectors = codes_of_collectors()

        def profile(frame: types.FrameType, event: str, arg: Any) -> None:
            if event != "return" and is_own_file(frame.f_code.co_filename):
                pass  # most calls are lazygrad's own
            elif event == "call":
                if is_user_code(frame.f_code) and frame.f_code not in collectors:
                    self._called(frame)
                elif frame.f_code is _READS_ENVIRONMENT and user_who_called(frame) is not None:
                    self._key(vars(os), "environ", "os.environ")
                elif frame.f_code is _DRAWS_TWO:
                    self._refuse(reads_outside(random.Random().random, frame))
            elif event == "c_call":
                self._refuse(reads_outside(arg, frame))
            elif self.hides_sizes and event == "return" and tells_size(frame, arg):
                self._refuse(f"Python asks for `{frame.f_code.co_name}`")
            if outer is not None:
                outer(frame, event, arg)

        sys.setprofile(profile)
        if outer is None:
            recording.watch = profile
        try:
            yield
        finally:
            recording.watch = None
            sys.setprofile(outer)
        self._refused = self._refused or self._numpy.drawn()
        if self._refused is not None:
            raise JitError(self._refused)

    def _refuse(self, why: str | None) -> None:
        if why is not None:
            self._refused = self._refused or why  # whoever catches what is raised here
            raise JitError(why)

    def _called(self, frame: types.FrameType) -> None:
        code = frame.f_code
        local = frame.f_locals
        bound = {}
        for name in parameters_of(code):
            value = local.get(name)
            if value is not None and self._reach.is_known(value):
                bound[name] = value
        key = (code, tuple(map(id, bound.values())))
        if key not in self._visited and not is_of_the_engine(frame):
            self._visited.add(key)
            functions = self._reach.functions.get(code)
            if functions is None and code.co_freevars and code not in self._inner:
                functions = _functions_of(frame)
            self._chains(code, frame.f_globals, functions or (), bound)

    def _chains(
        self, code: types.CodeType, scope: dict[str, Any], functions: Any, bound: dict[str, Any]
    ) -> None:
        reads = reads_of(code)
        self._inner |= reads.inner
        for function in functions:
            for key in ("__defaults__", "__kwdefaults__"):
                defaults = getattr(function, key)
                if not all(type(part) in PLAIN for part in _values_of(defaults)):
                    name = f"{function.__name__}.{key}"
                    self._note(SlotGuard, function, key, defaults, name)
        for chain in reads.chains:
            if chain.kind == "global":
                if chain.root in scope or not hasattr(builtins, chain.root):
                    self._follow(self._key(scope, chain.root, chain.root), chain.root, chain.attributes)
            elif chain.kind == "free":
                for function in functions:
                    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
                    if chain.root in cells:
                        value = self._cell(cells[chain.root], chain.root)
                        self._follow(value, chain.root, chain.attributes)
            elif chain.root in bound:
                self._follow(bound[chain.root], chain.root, chain.attributes)
        for name, level in reads.imports:
            self._imported(name, level, scope)
        self._mention(reads)

    def _mention(self, reads: Reads) -> None:
        """The code asks for attributes of these names, of whatever object."""
        new = reads.names - self.names
        if "__match_args__" in reads.names:  # a pattern of a class names attributes by their order
            for kind in list(self._reach.classes):
                new |= set(getattr(kind, "__match_args__", ())) - self.names
        self.names |= new
        if reads.every and not self.every:
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
        if isinstance(value, (types.ModuleType, type, types.FunctionType)) or _is_leaf(value):
            return
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
                if isinstance(vars(base)[attribute], (property, staticmethod, classmethod)):
                    return MISSING  # what it runs is seen when it runs
                return self._key(self._reach.dict_of(base), attribute, name)
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
            try:
                spec = self._describer.describe(value, f"`{name}`")
            except JitError as error:
                self._refused = self._refused or str(error)
                raise
            self.guards[place] = kind(holder, key, value, spec)
            for held in self._describer.captured[count:]:
                self._on_tensor(held.tensor)
            self._numpy.note(value, f"`{name}`")
            if isinstance(value, functools._lru_cache_wrapper):
                self._cached(value.__wrapped__)
            if isinstance(value, types.ModuleType):
                self._new_module(value)
            else:
                self._reach.walk(value, name)
        return self.guards[place].value

    def _cached(self, fxn: Any) -> None:
        """A function whose results are kept may not run: what it and what it calls would read counts."""
        todo, done = [fxn], set()
        while todo:
            each = todo.pop()
            if not isinstance(each, types.FunctionType) or not is_user_code(each.__code__) or each in done:
                continue
            done.add(each)
            known = set(self.guards)
            self._chains(each.__code__, each.__globals__, [each], {})
            todo += [guard.value for place, guard in self.guards.items() if place not in known]

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
        compared = Compared(kept, bool(gradients) or "requires_grad" in self.names)
        self.check = compared.check
        self._on_tensor = _note_nothing  # the session of the capture is over
        # without a way back to here, which would be a cycle: what a jit holds ends with it
        self._reach = Reach(_note_nothing, _note_nothing)
        self._slots.clear()
        self._visited.clear()
        self._inner.clear()
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


_DRAWS_TWO = random.Random.gauss.__code__  # and keeps one of them for its next call
_CAPTURES = os.path.dirname(__file__) + os.sep
_READS_ENVIRONMENT = type(os.environ).__getitem__.__code__


def _note_nothing(*found: Any) -> None:
    """What is met after the capture is nobody's."""


def _values_of(defaults: Any) -> Any:
    """A function's default values."""
    return defaults.values() if isinstance(defaults, dict) else defaults or ()


def _functions_of(frame: types.FrameType) -> list[types.FunctionType]:
    """The functions that a frame may be of, where no name leads to one: those that a variable of a caller
    holds, up to the function that is captured, with its code and with cells that hold what it sees.
    """
    code, local = frame.f_code, frame.f_locals
    at = frame.f_back
    while at is not None and not at.f_code.co_filename.startswith(_CAPTURES):
        found = []
        for function in map(_function_in, at.f_locals.values()):
            if function is not None and function.__code__ is code:
                held = zip(code.co_freevars, function.__closure__ or (), strict=True)
                if all(cell_value(cell) is local.get(name, MISSING) for name, cell in held):
                    found.append(function)
        if found:
            return found
        at = at.f_back
    return []


def _function_in(value: Any) -> types.FunctionType | None:
    """The function that a variable holds, or a method or partial in it is of."""
    while isinstance(value, (types.MethodType, functools.partial)):
        value = value.__func__ if isinstance(value, types.MethodType) else value.func
    return value if isinstance(value, types.FunctionType) else None


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

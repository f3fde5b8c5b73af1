"""`TinyJit`: a function whose kernels are captured at its second call and replayed afterwards.

Call 1 runs plainly, call 2 captures, later calls replay: arguments are compared with the captured ones, their
memory is put in place, and the list of kernels runs without building a graph. What the captured kernels
depend on and is not memory is compared too (specs.py: arguments; environment.py: what else the function can
see); where it has changed, the call is captured again.
"""

from __future__ import annotations

import copy
import functools
import threading
import time
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from ..config import DEBUG, JIT
from ..events import listeners, tell
from ..locks import lock_across_fork
from ..report.terminal import show
from ..tensor import Tensor
from ..tensor.modes import mode
from ..tensor.storage import Storage
from ..tensor.tracebacks import shorten
from .bytecode import in_own_mode
from .capture import Capture, capturing, recorded, refuse_nested
from .captured import Captured
from .describer import Describer
from .environment import Environment, is_unwatched
from .errors import Changed, Mismatch, NothingToCapture, describe_fn, user_level
from .hidden import refuse_hidden
from .nest import Nest
from .python_values import PLAIN
from .session import Session
from .size_families import Families
from .specs import Call, Spec, binds_in, note_bind
from .stored import stored_capture
from .tensor_memory import computed, put_into_memory, settled
from .writable_memory import begin_writes

P = ParamSpec("P")
R = TypeVar("R")

#: After so many captures because of one name, calls in which it differs run without a capture.
MAX_RECAPTURES = 3
#: So many captures are kept of each signature; one more drops the one that was not used for longest.
MAX_CAPTURES = MAX_RECAPTURES + 1
#: So many signatures (shapes, dtypes and devices of the arguments) are kept, in the same way.
MAX_SIGNATURES = 8


#: A capture computes every tensor that is new at its end: those of another one must not be among them.
one_capture = lock_across_fork()


class TinyJit(Generic[P, R]):
    """Replays a function's kernels from the third call on. A decorator, for functions and methods.

    The function may take and return tensors in any nesting. It must do its work through tensors: what else it
    does, printing for example, happens in the first two calls only. docs/jit.md says what is compared.

    state  the objects that the function reads besides its arguments, such as `[model, optimizer]`: each call
           compares all that they hold, and what the function's own code names, but nothing else that
           functions which it calls may read. Without it, the code of these says what is compared.

    Raises TypeError for what is no function, and for a state that is no list of objects.
    """

    __slots__ = ("__weakref__", "_run")

    def __init__(self, fxn: Callable[P, R], state: Sequence[Any] | None = None) -> None:
        if not callable(fxn):
            raise TypeError(f"TinyJit takes a function, not {fxn!r}")
        # A bound method, so that walks over a model's attributes end here.
        self._run = _State(fxn, _declared(state)).call

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self._run(args, kwargs)  # type: ignore[no-any-return]
        except Exception as error:
            shorten(error)
            raise

    def __get__(self, owner: Any, kind: type | None = None) -> TinyJit[P, R]:
        """As a method: each instance has captures of its own, kept in the instance."""
        if owner is None:
            return self
        state: _State = self._run.__self__  # type: ignore[attr-defined]
        bound: Any = types.MethodType(state.fxn, owner)
        held = getattr(owner, "__dict__", None)
        name = state.attribute
        if held is None or name is None:
            return types.MethodType(self, owner)  # type: ignore[return-value]
        made: TinyJit[P, R] = held.setdefault(name, TinyJit(bound, state.state))
        return made

    def __set_name__(self, owner: type, name: str) -> None:
        self._run.__self__.attribute = name  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<TinyJit of {describe_fn(self.fxn)}>"

    def __reduce__(self) -> Any:
        """Captures are not pickled: the copy captures anew."""
        return (TinyJit, (self.fxn, self._run.__self__.state))  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> TinyJit[P, R]:
        state = self._run.__self__.state  # type: ignore[attr-defined]
        return TinyJit(copy.deepcopy(self.fxn, memo), copy.deepcopy(state, memo))

    @property
    def fxn(self) -> Callable[P, R]:
        """The function."""
        return self._run.__self__.fxn  # type: ignore[attr-defined, no-any-return]

    __wrapped__ = fxn

    @property
    def __name__(self) -> str:
        return getattr(self.fxn, "__name__", type(self.fxn).__name__)

    @property
    def captured(self) -> Captured | None:
        """The capture that was used last, if there is one."""
        return self._run.__self__.used  # type: ignore[attr-defined, no-any-return]

    @property
    def captures(self) -> tuple[Captured, ...]:
        """The captures that are kept, the last used first."""
        return tuple(self._run.__self__.captures)  # type: ignore[attr-defined]

    def reset(self) -> None:
        """Forget every capture and free its memory; the next call is the first again."""
        self._run.__self__.reset()  # type: ignore[attr-defined]


jit = TinyJit


class _State:
    """What a TinyJit knows. One thread at a time is in a call of it."""

    def __init__(self, fxn: Any, state: tuple[Any, ...] | None, sized: bool = False) -> None:
        self.fxn, self.state = fxn, state
        #: its captures are of symbolic sizes, which Python must not ask for
        self.sized = sized
        self.lock = threading.RLock()
        self.attribute: str | None = None
        self.reset()

    def __repr__(self) -> str:
        return f"<TinyJit of {describe_fn(self.fxn)}>"

    def reset(self) -> None:
        with self.lock:
            self.calls = 1 if is_unwatched(self.fxn) else 0
            self.captures: list[Captured] = []
            #: the capture that was used last
            self.used: Captured | None = None
            #: the captures for many sizes
            self.families = Families(describe_fn(self.fxn))
            #: what got other memory in the last capture; in the next it gets it before
            self.moved: list[Storage] = []
            #: why the last capture was not kept: the function changed an argument
            self.refused: Changed | None = None
            #: how often it was captured because of a name, for each signature
            self.recaptures: dict[tuple[Any, str], int] = {}
            self.warned: set[str] = set()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if capturing.now is not None:  # inlined: its kernels are those of the capture that is open
            refuse_nested(capturing.now)
            return self.fxn(*args, **kwargs)
        if mode.examples:  # inlined: `vmap` turns what it does for one example into what it does for all
            return self.fxn(*args, **kwargs)
        with self.lock:
            if self.calls >= 2 and JIT.value:
                return self._replay(args, kwargs)
            if self.calls == 0 or not JIT.value:
                if JIT.value:
                    _put_into_memory(args, kwargs)
                result = self._plain(args, kwargs)
                self.calls = max(self.calls, 1)
                return result
            return self._captured(args, kwargs)

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nest = Nest(self.fxn(*args, **kwargs), lambda tensor: False)
        return nest.build(computed(nest.tensors))

    def _replay(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        changed: Changed | None = None
        mismatch: Mismatch | None = None
        signature: Any = None
        others: list[Captured] = []  # those that differ in the arguments' tensors alone
        for number, captured in enumerate(self.captures[:]):
            call = Call()
            try:
                captured.match(args, kwargs, call)
                if number:
                    self.captures.insert(0, self.captures.pop(number))
                self.used = captured
                return captured.run(call)
            except Changed as reason:
                if call.mismatch is None:
                    if changed is None:
                        changed, signature = reason, captured.signature
                else:
                    mismatch = mismatch or call.mismatch
            except Mismatch as reason:
                mismatch = mismatch or reason
                others.append(captured)
        of_family = self.families.replay(args, kwargs, self._plain)
        if of_family is not None:
            self.used, value = of_family
            return value
        if changed is None and mismatch is not None:
            if DEBUG >= 1:
                show(f"JIT captures {describe_fn(self.fxn)} for another signature: {mismatch}")
            before = self.used
            value = self._captured(args, kwargs)
            if self.used is not None and self.used is not before:
                self.families.consider(args, kwargs, self.used, others, value, self._sized)
            return value
        if changed is None:  # the last capture could not be kept
            changed = self.refused or Changed("the memory of a tensor", "its own", "held by others")
        return self._changed(changed, signature, args, kwargs)

    def _changed(
        self, changed: Changed, signature: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = changed.name
        count = self.recaptures.get((signature, name), 0)
        if count < MAX_RECAPTURES:
            if DEBUG >= 1:
                show(f"JIT captures {describe_fn(self.fxn)} again: {changed}")
            value = self._captured(args, kwargs)
            self.recaptures[signature, name] = count + 1  # where the function raises, there is none
            return value
        if name not in self.warned:
            self.warned.add(name)
            warnings.warn(
                f"{self!r} runs without its captures where {name} differs, since it changed in "
                f"{count + 1} calls (the last time: {changed}); make it a Tensor or a bound Variable that is "
                "passed as an argument, or a tensor that is assigned in place",
                RuntimeWarning,
                stacklevel=user_level(),
            )
        return self._plain(args, kwargs)

    # *** capturing

    def _sized(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Captured | None]:
        """The results of arguments of symbolic sizes, and the capture of them."""
        state = _State(self.fxn, self.state, sized=True)
        return state._captured(args, kwargs), state.used

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with one_capture:
            return self._capture(args, kwargs)

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        start = time.perf_counter()
        capture = Capture(repr(self))
        session = Session(capture)
        describer = Describer()
        names = argument_names(self.fxn, args)
        positional = [describer.describe(value, name) for value, name in zip(args, names, strict=True)]
        keywords = {key: describer.describe(value, f"argument `{key}`") for key, value in kwargs.items()}
        call = Call()
        for bind in describer.binds:
            note_bind(call, bind, "an argument")
        try:
            for tensor, spec in describer.tensors:
                call.tensors.append(tensor)
                call.buffers += session.prepare(tensor, spec)
                for bind in binds_in(tensor.shape):
                    note_bind(call, bind, spec.name)
            specs = [spec for _, spec in describer.tensors]
            place = stored_capture(self.fxn, positional, keywords)
            if place is not None:
                stored = place.load(call, session)
                if stored is not None:
                    captured = Captured(positional, keywords, Environment(session.realize_before))
                    captured.restore(stored, specs, call)
                    now = Call()
                    captured.match(args, kwargs, now)  # it fits, or has another place
                    self.calls += 1
                    self._keep(captured, start)
                    return captured.run(now)
            environment = Environment(session.realize_before, self.state)
            environment.hides_sizes = self.sized
            environment.function(self.fxn, (*args, *kwargs.values()))
            if self.moved:
                for storage in self.moved:
                    settled(storage)
                begin_writes(self.moved)
                self.moved = []
            session.start()
            captured = Captured(positional, keywords, environment)
            with recorded(capture):
                with environment.intercepted():
                    result = self.fxn(*args, **kwargs)
                nest = Nest(result, session.existed)
                refuse_hidden(self.fxn, nest.opaque, session.existed)
                session.finish(nest.tensors)
        finally:
            session.end()
        if not capture.items:
            raise NothingToCapture(
                f"didn't JIT anything! {describe_fn(self.fxn)} ran no kernel: all that it returns was there "
                "already, or is constant"
            )
        value = nest.build(nest.tensors)
        self.calls += 1
        self.moved = session.moved()
        self.refused = _changed_arguments(args, kwargs, positional, keywords)
        if not self.moved and self.refused is None:
            roles = captured.complete(capture, session, specs, call, nest)
            if roles is not None:
                if place is not None:
                    place.store(captured, capture, roles, call)
                self._keep(captured, start)
                return value
        if listeners:
            tell("capture", start, repr(self), None)
        return value

    def _keep(self, captured: Captured, start: float) -> None:
        if listeners:
            tell("capture", start, repr(self), captured.replay)
        if DEBUG >= 1:
            captured.announce()
        self.used = captured
        self.captures.insert(0, captured)
        self.captures = _retained(self.captures)


def _declared(state: Any) -> tuple[Any, ...] | None:
    """The objects of `state=`."""
    if state is None:
        return None
    if not isinstance(state, (list, tuple)):
        raise TypeError(
            "state= takes a list of the objects that the function reads, such as [model, optimizer], "
            f"not a {type(state).__name__}"
        )
    for number, value in enumerate(state):
        if type(value) in PLAIN or isinstance(value, (type, types.ModuleType, types.FunctionType)):
            raise TypeError(
                f"state[{number}] is {value!r}, which holds nothing that changes; declare the object, list "
                "or dict that the function reads it from"
            )
    return tuple(state)


def _put_into_memory(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Compute tensors that are arguments first, as a capture does, which finds the plan of the first call."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            put_into_memory(value)


def _retained(captures: list[Captured]) -> list[Captured]:
    """Of the captures, the last used first: a few of each signature, and of not too many signatures."""
    kept, counts = [], dict[Any, int]()
    for captured in captures:
        signature = captured.signature
        if signature not in counts and len(counts) == MAX_SIGNATURES:
            continue
        counts[signature] = counts.get(signature, 0) + 1
        if counts[signature] <= MAX_CAPTURES:
            kept.append(captured)
    return kept


def _changed_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], positional: list[Spec], keywords: dict[str, Spec]
) -> Changed | None:
    """What the function did to its arguments besides writing tensors: a replay would not do it."""
    call = Call()
    try:
        for spec, value in zip(positional, args, strict=True):
            spec.read(value, call)
        for name, spec in keywords.items():
            spec.read(kwargs[name], call)
    except Changed as changed:
        return changed
    return None


def argument_names(fxn: Any, args: tuple[Any, ...]) -> list[str]:
    """What errors call the positional arguments."""
    bound = 0
    while not isinstance(fxn, types.FunctionType):
        if isinstance(fxn, functools.partial):
            bound += len(fxn.args)
            fxn = fxn.func
        elif isinstance(fxn, types.MethodType):
            bound += 1
            fxn = fxn.__func__
        elif isinstance(fxn, TinyJit):
            fxn = fxn.fxn
        else:
            inner = in_own_mode(getattr(type(fxn), "__call__", None))  # noqa: B004  the function is wanted
            if isinstance(inner, types.FunctionType) and inner.__code__.co_argcount == 1:
                inner = getattr(type(fxn), "forward", inner)  # of an nn.Module
            if not isinstance(inner, types.FunctionType):
                break
            bound += 1
            fxn = inner
    code = getattr(fxn, "__code__", None)
    names = () if code is None else code.co_varnames[bound : code.co_argcount]
    return [f"argument `{names[n]}`" if n < len(names) else f"argument {n + 1}" for n in range(len(args))]

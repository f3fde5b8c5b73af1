"""What the words of Python do in a kernel's function (`syntax.py` puts these calls in their place).

A condition that is known while the function runs is Python's own. Of one that only the kernel knows, both
sides are recorded; variables that a branch or a loop changes are then memory of the kernel (`_Variable`),
which is as wide as all that is assigned to it: where a later assignment is wider, or a `while` begins with a
condition that is known and goes on with one that is not, the function is traced again (`TraceAgain`).
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.own import MOST_TURNS
from ...ir.uop import UOp
from .arrays import KernelArray, Register
from .exits import RESULT
from .language import Language, opened_branch
from .recording import Block, KernelError, Recorder, recorder
from .syntax import rewritten
from .values import Computed, Value, as_condition, common_dtype, value_of, where


class TraceAgain(BaseException):
    """The function must be traced again, with what was found out in `recorder.known`."""


class _Unbound:
    def __repr__(self) -> str:
        return "<no value yet>"


UNBOUND = _Unbound()


class _Variable(Computed):
    """A Python variable that a branch or loop of the kernel changes.

    block     where it was when that began
    register  its memory; None until the first value, or where it is no number
    other     what it is, if that is no number: an array, a list, a function
    """

    def __init__(self, name: str, value: Any) -> None:
        here = recorder()
        self.name, self.block = name, here.block
        self.number = here.number("variable")
        self.register: Register | None = None
        self.other: Any = UNBOUND
        self.marker: tuple[Block, UOp] | None = None
        if _is_number(value):
            self._begin(value_of(value)).set(value)
        else:
            self.other, self.marker = value, here.marked()

    def _begin(self, value: Value) -> Register:
        """Its memory, which begins with 0 where it was marked."""
        here = recorder()
        kind: DType = here.known.get(self.number) or (
            dtypes.int64 if value.dtype is dtypes.index else value.dtype
        )
        memory = here.memory(kind, 1)
        here.owners[memory] = self.block
        if self.marker is not None:
            block, marker = self.marker
            place = UOp(Ops.INDEX, memory.dtype, (memory, index.const(0)))
            begin = UOp(Ops.STORE, dtypes.void, (place, UOp.const(kind, 0)), here.number("store"))
            block.items[block.items.index(marker)] = begin
        self.register = Register(self.name, memory, kind, ())
        return self.register

    def set(self, value: Any) -> None:
        here = recorder()
        if not _is_number(value):
            if self.register is None and (self.other is UNBOUND or self.other is value):
                self.other = value
                return
            raise KernelError(
                f"{self.name} becomes another {type(value).__name__} in a branch or loop that only the "
                "kernel knows: numbers may change there, not which object a name is"
            )
        if self.register is None:
            if self.other is not UNBOUND:
                raise KernelError(
                    f"{self.name} is {type(self.other).__name__} before a branch or loop that only the "
                    "kernel knows, and a number inside: take another name"
                )
            self._begin(value_of(value))
        assert self.register is not None
        kind = self.register.dtype
        given = value_of(value, kind)
        wide = common_dtype(kind, given.dtype)
        wide = dtypes.int64 if wide is dtypes.index else wide
        if wide is not kind:
            here.known[self.number] = wide
            raise TraceAgain
        self.register.set(given)

    def get(self) -> Any:
        if self.register is None:
            return self.other
        return self.register._value()

    def _value(self) -> Value:
        return value_of(self.get())

    def may_become(self, value: Any) -> bool:
        """Whether the name is another object from here on, not this variable with another value."""
        here = recorder()
        if not self.block.open or (here.block is self.block and not _is_number(value)):
            return True
        made = here.owners.get(value.memory) if isinstance(value, KernelArray) else None
        return made is not None and made.depth > self.block.depth and not isinstance(value, Register)


def _is_number(value: Any) -> bool:
    return isinstance(value, (Computed, bool, int, float))


def _is_dynamic(value: Any) -> bool:
    """Whether only the kernel knows it."""
    return isinstance(value, Computed)


# *** variables


def read(name: str, value: Any) -> Any:
    """A name where it is read."""
    found = value.get() if isinstance(value, _Variable) else value
    if found is UNBOUND:
        raise KernelError(f"{name} has no value here: give it one before the loop or branch that assigns it")
    return found


def assigned(name: str, before: Any, value: Any) -> Any:
    """What a name is after `name = value`."""
    if not isinstance(before, _Variable) or before.may_become(value):
        return value
    before.set(value)
    return before


def in_place(word: str, before: Any, value: Any) -> Any:
    """`before += value` and its like."""
    return getattr(operator, word)(before, value)


def entering(
    asked: Any, names: tuple[str, ...], values: tuple[Any, ...], both: tuple[bool, ...]
) -> list[Any]:
    """Variables that what begins now changes: memory of the kernel, if only that knows its turns.

    both  whether each is assigned on both sides of a branch: then it has a value behind it
    """
    kind = asked.kind if isinstance(asked, _Iterations) else AxisType.LOOP if _is_dynamic(asked) else None
    if kind is None:
        return list(values)
    if kind is not AxisType.LOOP:  # each place has its own
        return [
            value.get() if isinstance(value, _Variable) and value.block.open else value for value in values
        ]
    return [
        _entered(name, value, side or name == RESULT)
        for name, value, side in zip(names, values, both, strict=True)
    ]


def _entered(name: str, value: Any, both: bool) -> Any:
    if isinstance(value, _Variable):
        if value.block.open:
            return value
        value = UNBOUND
    if isinstance(value, Register) or (isinstance(value, Value) and not value.block.open):
        return value if not both or isinstance(value, Register) else _Variable(name, UNBOUND)
    if value is UNBOUND and not both:
        return value
    return _Variable(name, value)


# *** conditions


def condition(asked: Any) -> Any:
    """What an `if` asks: True or False, or a condition that the kernel knows."""
    if not _is_dynamic(asked):
        return bool(asked)
    found = as_condition(asked)
    return bool(found.node.arg) if found.node.op is Ops.CONST else found


def conditional() -> Value:
    """What stands for the condition of `kernel.when`."""
    return Value(index.TRUE, recorder().root)


def sides(asked: Any, has_else: bool) -> Iterator[bool]:
    """The sides of an `if` that may be taken; those that the kernel chooses are recorded."""
    if not _is_dynamic(asked):
        yield asked
        return
    here = recorder()
    for side in (True, False)[: 1 + has_else]:
        node = asked.node if side else index.logical_not(asked.node)
        with opened_branch(here, node):
            yield side


def not_(asked: Any) -> Any:
    return where(as_condition(asked), False, True) if _is_dynamic(asked) else not asked


def all_of(first: Any, *others: Callable[[], Any]) -> Any:
    """`and`: from the first condition on that only the kernel knows, all of them are computed."""
    for place, other in enumerate(others):
        if _is_dynamic(first):
            found = as_condition(first)
            for each in others[place:]:
                found = found & as_condition(each())
            return found
        if not first:
            return first
        first = other()
    return first


def any_of(first: Any, *others: Callable[[], Any]) -> Any:
    """`or`, as `all_of`."""
    for place, other in enumerate(others):
        if _is_dynamic(first):
            found = as_condition(first)
            for each in others[place:]:
                found = found | as_condition(each())
            return found
        if first:
            return first
        first = other()
    return first


def chain(words: str, left: Any, *others: Callable[[], Any]) -> Any:
    """`a < b < c`."""
    found: Any = True
    for word, other in zip(words.split(), others, strict=True):
        right = other()
        held = getattr(operator, word)(left, right)
        if not _is_dynamic(held) and not held:
            return held
        found = held if not _is_dynamic(found) else found & as_condition(held)
        left = right
    return found


def selected(asked: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`yes if asked else no`; of a condition that only the kernel knows both are computed."""
    found = condition(asked)
    if _is_dynamic(found):
        return where(found, yes(), no())
    return yes() if found else no()


def none_of(*flags: Any) -> Any:
    """Whether no flag is set."""
    return not_(any_of(flags[0], *[lambda flag=flag: flag for flag in flags[1:]]))


def raises() -> None:
    """Before a `raise`: it is done while the function runs, or never."""
    block = recorder().block
    if any(each.opener is not None and each.kind is None for each in block.around()):
        raise KernelError(f"a kernel cannot raise in the branch at {block.line}, which only the kernel knows")


# *** loops


class _Iterations:
    """A loop: Python's own, or one of the kernel.

    kind  what it is in the kernel; None of a Python loop
    """

    kind: AxisType | None = None

    def __init__(self, turns: Any) -> None:
        self.iterator: Any = turns
        if type(turns) in Language.LOOPS:
            self.kind = turns.kind

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterator)

    def _open(self) -> Block | None:
        return self.iterator.block if self.kind is not None else None

    def going(self, *flags: Any) -> Iterator[bool]:
        """The body, if no flag was set in an earlier turn: a loop of the kernel has ended then."""
        if self.kind is not None:
            yield True
            return
        for side in sides(condition(none_of(*flags)), False):
            if side:
                yield True

    def ends(self, *flags: Any) -> bool:
        """At the end of the body: whether Python's loop ends; the kernel's is left where a flag is set."""
        asked = condition(any_of(flags[0], *[lambda flag=flag: flag for flag in flags[1:]]))
        if self.kind is None:
            return self._known(asked)
        if asked is False:
            return False
        block = self._open()
        if self.kind is not AxisType.LOOP:
            raise KernelError(
                f"`break` or `return` in the grid or threads at {block.line if block else ''}: points "
                "run in any order, so none can end the others; `continue` ends one point"
            )
        here = recorder()
        assert block is not None
        if asked is True:
            here.leave(block)
        else:
            with opened_branch(here, asked.node):
                here.leave(block)
        return False

    def _known(self, asked: Any) -> bool:
        return asked is True


def going(loop: _Iterations, *flags: Any) -> Iterator[bool]:
    """The body of a loop that flags may end."""
    return loop.going(*flags)


def ends(loop: _Iterations, *flags: Any) -> bool:
    """Whether Python leaves a loop behind its body."""
    return loop.ends(*flags)


def iterations(given: Any) -> _Iterations:
    """What a `for` goes through."""
    if isinstance(given, _Iterations):
        return given
    return _Iterations(iter(given))


class While(_Iterations):
    """`while`: Python's own, as long as it knows the condition; else a loop of the kernel that is left.

    always  whether the condition is a constant: such a loop is left by `break`, which the kernel knows
    """

    def __init__(self, line: int, test: Callable[[], Any], always: bool) -> None:
        here = recorder()
        self.test, self.key = test, ("while", line)
        self.block: Block | None = None
        asked = here.known.get(self.key, False) or (always and bool(test()))
        if not asked:
            place = len(here.block.items)
            asked = _is_dynamic(condition(test()))
            del here.block.items[place:]
        self.kind = AxisType.LOOP if asked else None
        self.iterator = self._kernels(here) if asked else self._pythons()

    def _pythons(self) -> Iterator[None]:
        while True:
            asked = condition(self.test())
            if _is_dynamic(asked):
                self._again()
            if not asked:
                return
            yield

    def _again(self) -> None:
        here = recorder()
        for key in [key for key in here.known if not isinstance(key, tuple)]:  # variables count anew
            del here.known[key]
        here.known[self.key] = True
        raise TraceAgain

    def _kernels(self, here: Recorder) -> Iterator[None]:
        self.block = here.open_loop(index.const(MOST_TURNS), AxisType.LOOP)
        asked = condition(self.test())
        if asked is not True:
            with opened_branch(here, not_(asked).node if _is_dynamic(asked) else index.TRUE):
                here.leave(self.block)
        yield
        here.close(self.block)

    def _open(self) -> Block | None:
        return self.block

    def _known(self, asked: Any) -> bool:
        if _is_dynamic(asked):
            self._again()
        return bool(asked)


# *** functions


def callee(function: Any) -> Any:
    """A function that a kernel's function calls: written anew too, if it is the user's own."""
    if type(function) is types.FunctionType:
        return own_function(function)
    if type(function) is types.MethodType and type(function.__func__) is types.FunctionType:
        return types.MethodType(own_function(function.__func__), function.__self__)
    return function


_PACKAGE = __name__.partition(".")[0]


def own_function(function: Any) -> Any:
    """A function as a kernel can trace it, if its source is there."""
    ours = (function.__module__ or "").partition(".")[0] == _PACKAGE
    if ours or type(function) is not types.FunctionType:
        return function
    return rewritten(function, sys.modules[__name__]) or function


def result(value: Callable[[], Any], returned: Any, always: bool) -> Any:
    """What a function gives that returns in branches or loops."""
    done = condition(read("the result", returned))
    if done is False:
        return None
    if _is_dynamic(done) and not always:
        raise KernelError(
            "a function returns a value on some paths that only the kernel knows, and none on others"
        )
    return value()

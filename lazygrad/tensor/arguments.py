"""What is said of an argument that a method cannot take, where the method itself did not look.

The annotations say what an argument may be (argument_types.py); a method checks what else can be wrong. What
still fails somewhere below, in Python's words (`'str' object has no attribute 'shape'`), becomes an error
about the argument here.
"""

from __future__ import annotations

import dis
import inspect
import os
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

from .argument_types import Contract, is_tensor, shown

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: The folders that compute what the graph of a method says, and the one that watches them.
COMPUTING = {"renderer", "runtime", "codegen", "direct", "gpu", "oracle", "tuning", "schedule", "sharding"}
COMPUTING |= {"programs", "report", "engine", "inspection", "jit"}
_RAISE = dis.opmap["RAISE_VARARGS"]
#: How a Tensor prints itself; in an error its shape says enough.
_REPR = re.compile(r"<Tensor <UOp \S+ (\(.*?\)) .*?> on \S+ with grad .*?>", re.DOTALL)
_UNKNOWN = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
#: What Python raises where a value is not what the code takes it for.
FAILURES = (TypeError, AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError, OverflowError)


def explained(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception
) -> Exception | None:
    """The error to raise instead; None where the one that was raised speaks for itself."""
    trace, caller = error.__traceback__, None
    while trace is not None and trace.tb_next is not None:
        caller = caller if trace.tb_frame.f_code.co_name == "wrapper" else trace
        trace = trace.tb_next
    if trace is None or not _is_ours(trace) or _computes(trace):
        return None
    missed = trace.tb_frame.f_code.co_name == "__getattr__" and caller is not None and _is_ours(caller)
    if _is_raised(trace) and not (missed and function.__name__ != "__getattr__"):
        plain = _REPR.sub(r"a Tensor of shape \1", str(error))
        return type(error)(plain) if len(error.args) == 1 and plain != str(error) else None
    contract = Contract(function)
    name, signature = contract.name, contract.signature
    also = getattr(function, "also_named", {})
    unknown = _UNKNOWN.search(str(error))
    if unknown is not None and unknown[2] in kwargs:
        return _unknown_argument(contract, args, also, unknown[1], unknown[2])
    try:
        bound = signature.bind(*args, **{also.get(key, key): value for key, value in kwargs.items()})
    except TypeError:
        return _wrong_number(contract, args, kwargs, also)
    given = {key: value for key, value in bound.arguments.items() if key not in ("self", "cls")}
    more = next((key for key, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD), "")
    given |= given.pop(more, {})
    text = ", ".join(f"{key}={shown(value)}" for key, value in given.items())
    own = None if name == "Tensor" else bound.arguments.get("self")
    if "self" in bound.arguments and not is_tensor(bound.arguments["self"]):
        return TypeError(f"{name} is a method of Tensors, not of {shown(own)}")
    place = f" of {shown(own)}" if is_tensor(own) else ""
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    return kind(f"{name}{place} cannot take {text or 'this'}; help(Tensor.{name}) says what it takes")


def _is_ours(trace: types.TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def _computes(trace: types.TracebackType) -> bool:
    """Whether it failed where tensors are planned, compiled and run: that is no argument's fault."""
    return os.path.relpath(trace.tb_frame.f_code.co_filename, _PACKAGE).split(os.sep)[0] in COMPUTING


def _is_raised(trace: types.TracebackType) -> bool:
    """Whether it is a `raise` statement that raised, and not an operation that failed."""
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def at_most(name: str, what: str, number: int, most: int) -> int:
    """A number that is looped over or laid out at the call; ValueError where that would never end."""
    if number > most:
        raise ValueError(f"{name} takes at most {most:,} {what}, not {number:,}")
    return number


def _names(signature: inspect.Signature, *kinds: Any) -> list[str]:
    found = signature.parameters.items()
    return [name for name, p in found if p.kind in kinds and name not in ("self", "cls")]


def _unknown_argument(
    contract: Contract, args: tuple[Any, ...], also: Mapping[str, str], refused_by: str, key: str
) -> TypeError:
    """`sum has no argument 'keepdm'; did you mean keepdim?`

    The names are those of the function, and of the one that it hands the rest to.
    """
    import difflib

    parameter = inspect.Parameter
    wanted = (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    known = _names(contract.signature, *wanted)
    if refused_by != contract.name and args:
        inner = getattr(args[0], refused_by, None)
        if inner is not None:
            signature = inspect.signature(inner)
            optional = [
                n
                for n in _names(signature, *wanted)
                if signature.parameters[n].default is not parameter.empty
            ]
            known += [name for name in optional if name not in known]
    near = difflib.get_close_matches(key, [*known, *also], 2, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    takes = f"; it takes {', '.join(known)}" if known and not near else ""
    return TypeError(f"{contract.name} has no argument {key!r}{hint}{takes}")


def _wrong_number(
    contract: Contract, args: tuple[Any, ...], kwargs: Mapping[str, Any], also: Mapping[str, str]
) -> TypeError:
    """What is missing, or how many there are too many, or what is given twice."""
    parameter, signature = inspect.Parameter, contract.signature
    in_order = _names(signature, parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    own = 1 if next(iter(signature.parameters), "") in ("self", "cls") else 0
    count = len(args) - own
    if count > len(in_order) and not _names(signature, parameter.VAR_POSITIONAL):
        by_name = _names(signature, parameter.KEYWORD_ONLY)
        takes = [f"{', '.join(in_order)} in this order"] if in_order else []
        takes += [f"{', '.join(by_name)} by name"] if by_name else []
        given = "1 was given" if count == 1 else f"{count} were given"
        return TypeError(f"{contract.name} takes {' and '.join(takes) or 'no arguments'}; {given} in order")
    for name in kwargs:
        if also.get(name) in in_order[:count]:
            return TypeError(f"{contract.name}: give {also[name]} or {name}, which are the same, not both")
    twice = [name for name in in_order[:count] if name in kwargs]
    if twice:
        return TypeError(f"{contract.name}: {twice[0]} is given twice, by its place and by its name")
    missing = [
        name
        for place, (name, p) in enumerate(signature.parameters.items())
        if p.default is parameter.empty
        and p.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and place >= len(args)
        and name not in {also.get(key, key) for key in kwargs}
    ]
    needed = ["a Tensor" if name == "self" else name for name in missing]
    return TypeError(f"{contract.name} needs {' and '.join(needed)}")

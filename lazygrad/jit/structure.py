"""What a function of lazygrad's own can see, as a text that is the same in every process, and its tensors.

Two functions of one text compute the same of other memory: their code, the objects that they reach, numbers,
shapes, dtypes and how tensors look at memory are in it. What cannot be told from its like in another process
(an object of a user's class, a lock, a file) raises Unlasting.
"""

from __future__ import annotations

import collections
import enum
import functools
import hashlib
import types
from typing import Any

from ..codegen.records import expression_rows
from ..device import Buffer
from ..dtype import DType, const_bits
from ..ir.members import Member
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of
from ..structure import Unlasting
from ..tensor import Tensor
from ..tensor.storage import Storage, base_of
from .bytecode import is_user_code
from .guard import cell_value
from .layout import moves_of
from .python_values import PLAIN, fields_of
from .tensor_memory import put_into_memory

_OWN = __package__.partition(".")[0] + "."
_SEQUENCES = (list, tuple, collections.deque)


class Structure:
    """What is below some values.

    tensors  those with memory, each once, in the order in which they were met
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self._members: list[str] = []
        self._number: dict[int, int] = {}
        #: what has a number lives as long: another object could be at its address
        self._values: list[Any] = []
        self._memory: dict[Buffer, int] = {}
        self._storages: dict[Storage | None, int] = {}
        _require_own_methods(Tensor)

    def add(self, value: Any) -> None:
        """Walk a value, and compute the tensors in it. Raises Unlasting."""
        write = self._members.append
        if type(value) in PLAIN:
            write(value.hex() if type(value) is float else repr(value))
            return
        if isinstance(value, (enum.Enum, Member)):
            write(f"{_name_of(type(value))}.{value.name}")
            return
        if isinstance(value, DType):
            write(repr(value))
            return
        number = self._number.get(id(value))
        if number is not None:
            write(f"#{number}")
            return
        self._number[id(value)] = len(self._values)
        self._values.append(value)
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, UOp):
            write(repr(expression_rows(value)))
        elif isinstance(value, type):
            write(_name_of(value))
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._all("method", value.__func__, value.__self__)
        elif type(value) is functools.partial:
            self._all("partial", value.func, value.args, value.keywords)
        elif type(value) in _SEQUENCES or (isinstance(value, tuple) and hasattr(value, "_fields")):
            kind = type(value)
            self._all(kind.__name__ if kind in _SEQUENCES else _name_of(kind), *value)
        elif type(value) is dict:
            self._all("dict", *value, *value.values())
        elif type(value) in (set, frozenset) and all(type(part) in PLAIN for part in value):
            write(f"{type(value).__name__} {sorted(map(repr, value))}")
        else:
            self._object(value)

    def _all(self, kind: str, *parts: Any) -> None:
        self._members.append(f"{kind}({len(parts)}")
        for part in parts:
            self.add(part)

    def _object(self, value: Any) -> None:
        """An instance that holds attributes and nothing else: a class from outside may hold more."""
        kind = type(value)
        name = _name_of(kind)
        for base in kind.__mro__[:-1]:
            _require_own_methods(base)
        fields = dict(fields_of(value))
        self._all(name, *fields, *fields.values())

    def _function(self, fxn: types.FunctionType) -> None:
        if not _is_own(fxn.__module__):
            raise Unlasting(fxn.__qualname__)
        self._members.append(f"{fxn.__module__}.{fxn.__qualname__} {_code_text(fxn.__code__)}")
        cells = [cell_value(cell) for cell in fxn.__closure__ or ()]
        self._all("function", fxn.__defaults__, fxn.__kwdefaults__, *cells)

    def _tensor(self, tensor: Tensor) -> None:
        kind = type(tensor)
        if not _is_own(kind.__module__) or isinstance(tensor.device, tuple):
            raise Unlasting(f"a tensor on {tensor.device}")
        if base_of(tensor._value()).op not in (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.CONST):
            put_into_memory(tensor)
        value = tensor._value()
        base, moves = base_of(value), moves_of(value)
        text: list[Any] = [
            _name_of(kind),
            tensor._requires_grad,
            tensor.grad is None,
            base.op.name,
            repr(base.dtype),
        ]
        text += [(op.name, _argument_text(argument)) for op, argument in moves]
        if base.op is Ops.CONST:
            text += [const_bits(base.arg, base.dtype), tensor.device]
        elif base.op is Ops.BUFFER:
            buffer = buffer_of(base)
            whole = buffer.base
            place = self._memory.setdefault(whole, len(self._memory))
            text += [
                place,
                self._storages.setdefault(tensor._memory(), len(self._storages)),
                whole.size,
                repr(whole.dtype),
                whole.device,
            ]
            text += [buffer.size, buffer.offset, "fresh" in base.facts]
            self.tensors.append(tensor)
        else:
            raise Unlasting(base.op.name)
        self._members.append(repr(text))

    def text(self) -> str:
        """A digest of all that was added."""
        whole = "\n".join([f"{len(part)} {part}" for part in self._members])
        return hashlib.blake2b(whole.encode(), digest_size=32).hexdigest()


def _is_own(module: str) -> bool:
    return module.startswith(_OWN)


def _require_own_methods(kind: type) -> None:
    """Raise Unlasting for a class of somebody else, and for one of ours that was given other methods."""
    if not _is_own(kind.__module__):
        raise Unlasting(kind.__name__)
    for name, value in vars(kind).items():
        if isinstance(value, types.FunctionType) and is_user_code(value.__code__):
            made = value.__code__.co_filename == "<string>" and _is_own(value.__module__)
            if not made:  # as those of a dataclass are
                raise Unlasting(f"{kind.__name__}.{name}")


def _name_of(kind: type) -> str:
    if not _is_own(kind.__module__):
        raise Unlasting(f"{kind.__module__}.{kind.__qualname__}")
    return f"{kind.__module__}.{kind.__qualname__}"


def _code_text(code: types.CodeType) -> str:
    """Which code of a file it is: functions without a name have the same one."""
    return f"{code.co_firstlineno} {code.co_code.hex()} {code.co_names} {_constants(code)}"


def _constants(code: types.CodeType) -> str:
    members: list[Any] = []
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            members.append(_code_text(part))
        else:
            members.append(sorted(map(repr, part)) if isinstance(part, frozenset) else part)
    return repr(members)


def _argument_text(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return tuple([_argument_text(part) for part in argument])
    return expression_rows(argument)

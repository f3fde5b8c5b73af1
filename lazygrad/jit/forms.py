"""What a function takes and gives, as plain data and back: arguments, results, how tensors look at memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..codegen.records import expression_of, expression_rows
from ..dtype import DTYPES_BY_NAME
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..tensor import Tensor
from .layout import Moves
from .nest import Build
from .specs import BoundSpec, DictSpec, PlainSpec, SequenceSpec, Spec
from .tensor_specs import TensorSpec

_PLAIN = (type(None), bool, int, float, str)
_CONTAINERS = {"list": list, "tuple": tuple}

# *** arguments


def argument_form(spec: Spec) -> dict[str, Any]:
    """What one argument must be like."""
    name = spec.name
    if isinstance(spec, TensorSpec):
        return {
            "kind": "tensor",
            "name": name,
            "shape": [expression_rows(size) for size in spec.shape],
            "symbolic": spec.symbolic,
            "dtype": "" if spec.first is not None else spec.dtype.name,
            "device": spec.device,
            "size": spec.size,
            "written": spec.changed,
            "number": spec.number,
            "first": spec.first,
        }
    if isinstance(spec, BoundSpec):
        return {"kind": "variable", "name": name, "rows": expression_rows(spec.variable)}
    if isinstance(spec, PlainSpec) and type(spec.value) in _PLAIN:
        return {"kind": "plain", "name": name, "value": spec.value}
    if isinstance(spec, SequenceSpec) and spec.kind in (list, tuple):
        items = [argument_form(item) for item in spec.items]
        return {"kind": spec.kind.__name__, "name": name, "items": items}
    if isinstance(spec, DictSpec) and spec.kind is dict and all(type(key) is str for key in spec.keys):
        return {
            "kind": "dict",
            "name": name,
            "keys": spec.keys,
            "items": [argument_form(item) for item in spec.items],
        }
    raise NotImplementedError(
        f"{name} cannot be described in a file: an exported function takes tensors, bound Variables, "
        "numbers, texts, and lists, tuples and dicts of these; what else it needs it has from outside"
    )


def argument_spec(form: dict[str, Any]) -> Spec:
    """What compares an argument with its form."""
    kind, name = form["kind"], form["name"]
    if kind == "tensor":
        spec = TensorSpec(name, form["number"], form["first"])
        spec.shape = tuple([expression_of(size) for size in form["shape"]])
        spec.symbolic, spec.device, spec.size = form["symbolic"], form["device"], form["size"]
        spec.changed = form["written"]
        if form["dtype"]:
            spec.dtype = DTYPES_BY_NAME[form["dtype"]]
        return spec
    if kind == "variable":
        variable = expression_of(form["rows"])
        return BoundSpec(name, variable.bind(variable.arg[1]))
    if kind == "plain":
        return PlainSpec(name, form["value"])
    items = [argument_spec(item) for item in form["items"]]
    if kind == "dict":
        return DictSpec(name, dict, form["keys"], items)
    return SequenceSpec(name, _CONTAINERS[kind], items)


# *** results


class _TensorSlot:
    """Stands for tensor `number` of a result."""

    def __init__(self, number: int) -> None:
        self.number = number


def result_form(build: Build, count: int) -> Any:
    """How a result is built of its tensors."""
    return _form_of(build([_TensorSlot(n) for n in range(count)]))  # type: ignore[misc]


def _form_of(value: Any) -> Any:
    if isinstance(value, _TensorSlot):
        return {"tensor": value.number}
    if type(value) in _PLAIN:
        return {"plain": value}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_form_of(part) for part in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": [list(value), [_form_of(part) for part in value.values()]]}
    raise NotImplementedError(
        f"a result of type {type(value).__name__} cannot be described in a file: an exported function gives "
        "tensors, numbers, texts, and lists, tuples and dicts (with texts as keys) of these"
    )


def result_of(form: Any, tensors: Sequence[Tensor]) -> Any:
    """A result, built of its tensors."""
    ((kind, value),) = form.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "plain":
        return value
    if kind == "dict":
        keys, parts = value
        return {key: result_of(part, tensors) for key, part in zip(keys, parts, strict=True)}
    return _CONTAINERS[kind]([result_of(part, tensors) for part in value])


# *** how a tensor looks at memory


def moves_rows(moves: Moves) -> list[Any]:
    return [[op.name, _argument_rows(argument)] for op, argument in moves]


def _argument_rows(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return {"tuple": [_argument_rows(part) for part in argument]}
    return {"rows": expression_rows(argument)} if isinstance(argument, UOp) else argument


def moves_of_rows(rows: list[Any]) -> Moves:
    return tuple((Ops[op], _argument_of(argument)) for op, argument in rows)


def _argument_of(argument: Any) -> Any:
    if not isinstance(argument, dict):
        return argument
    if "tuple" in argument:
        return tuple([_argument_of(part) for part in argument["tuple"]])
    return expression_of(argument["rows"])

"""What a kernel AST (form 2) means: a slow, obvious evaluator, the oracle of every generated kernel.

Each node becomes the list of all its elements, as Python numbers in row-major order. Views are walked with
plain integers, and arithmetic is `ir.ops.execute`: nothing here is shared with lowering.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..dtype import ConstType, DType, cast_value
from ..ir import index
from ..ir.ops import ELEMENTWISE, Ops, execute, from_bits, start_value
from ..ir.uop import UOp

Memory = dict[int, list[ConstType]]


class Array(NamedTuple):
    """All elements of a value, in row-major order."""

    shape: tuple[int, ...]
    values: list[ConstType]


def evaluate(
    ast: UOp, buffers: Sequence[Any], var_vals: Mapping[Any, int] | None = None
) -> list[list[ConstType]]:
    """What the kernel leaves in the buffers it writes, in the order of their numbers.

    `buffers[i]` is what DEFINE_GLOBAL i holds before: numbers, or a numpy array (of bits, for bf16 and fp8);
    None holds zeros. `var_vals` gives each Variable, or its name, its value. Loads see the memory as before.
    """
    nodes = ast.toposort()
    variables = _variables(nodes, var_vals or {})
    memory = {
        node.arg: _contents(buffers[node.arg], node.dtype.base, node.dtype.size)  # type: ignore[attr-defined]
        for node in nodes
        if node.op is Ops.DEFINE_GLOBAL
    }
    arrays: dict[UOp, Array] = {}
    for node in nodes:
        of_memory = node.op is Ops.VIEW and not node.src
        if node.op not in (Ops.SINK, Ops.STORE, Ops.DEFINE_GLOBAL, Ops.PROGRAM) and not of_memory:
            arrays[node] = _value(node, arrays, memory, variables)
    value = ast.src[0].src[2]
    if value.op is Ops.PROGRAM:
        kernel = value.arg.kernel
        if kernel.kind not in PROGRAMS:
            raise NotImplementedError(
                f"the {kernel.kind} {kernel.name!r} has no evaluation: its program says what is where in the "
                "memory that it leaves, and signs and the order of equal values are free"
            )
        return [PROGRAMS[kernel.kind](*[arrays[source] for source in value.src])]
    for store in ast.src:
        _store(store, arrays, memory, variables)
    written = sorted({store.src[0].arg for store in ast.src})
    return [memory[number] for number in written]


def _variables(nodes: Iterable[UOp], var_vals: Mapping[Any, int]) -> dict[UOp, int]:
    values = {}
    names = {key.arg[0] if isinstance(key, UOp) else key: value for key, value in var_vals.items()}
    found = {node for node in nodes if node.op is Ops.DEFINE_VAR}
    for node in nodes:
        if node.op is Ops.VIEW:
            found.update(v for size in _sizes(node.arg) for v in size.toposort() if v.op is Ops.DEFINE_VAR)
    for variable in found:
        values[variable] = names[variable.arg[0]]
    return values


def _sizes(tracker: Any) -> list[UOp]:
    """Every symbolic number in the views of a ShapeTracker."""
    numbers: list[Any] = []
    for view in tracker.views:
        numbers += (*view.shape, *view.strides, view.offset, *itertools.chain(*(view.mask or ())))
    return [number for number in numbers if isinstance(number, UOp)]


def _contents(buffer: Any, dtype: DType, size: int) -> list[ConstType]:
    if buffer is None:
        return [cast_value(0, dtype)] * size
    numbers = list(buffer.reshape(-1).tolist() if hasattr(buffer, "reshape") else buffer)
    if dtype.fmt is None and hasattr(buffer, "dtype") and buffer.dtype.kind == "u":
        return [from_bits(bits, dtype) for bits in numbers]
    return [cast_value(number, dtype) for number in numbers]


# *** views, with plain integers


def _number(value: Any, variables: dict[UOp, int]) -> int:
    return index.evaluate(value, dict(variables)) if isinstance(value, UOp) else value


def _shape(tracker: Any, variables: dict[UOp, int]) -> tuple[int, ...]:
    return tuple(_number(size, variables) for size in tracker.shape)


def _addresses(tracker: Any, variables: dict[UOp, int]) -> list[int | None]:
    """For each index of the shape the number of the element, None where there is none."""
    views = []
    for view in reversed(tracker.views):
        shape = [_number(size, variables) for size in view.shape]
        strides = [_number(stride, variables) for stride in view.strides]
        mask = [(0, size) for size in shape]
        if view.mask is not None:
            mask = [(_number(begin, variables), _number(end, variables)) for begin, end in view.mask]
        views.append((shape, strides, _number(view.offset, variables), mask))
    return [_address(i, views) for i in range(math.prod(views[0][0]))]


def _address(number: int, views: list[Any]) -> int | None:
    for shape, strides, offset, mask in views:
        place = offset
        for size, stride, (begin, end) in zip(
            reversed(shape), reversed(strides), reversed(mask), strict=True
        ):
            number, i = divmod(number, size)
            if not begin <= i < end:
                return None
            place += i * stride
        number = place
    return number


# *** values


def _value(node: UOp, arrays: dict[UOp, Array], memory: Memory, variables: dict[UOp, int]) -> Array:
    op, src = node.op, node.src
    if op in ELEMENTWISE:
        return _elementwise(node, [arrays[s] for s in src])
    if op is Ops.REDUCE_AXIS:
        return _reduce(node, arrays[src[0]])
    if op is Ops.SCAN:
        return _scan(node, [arrays[s] for s in src])
    if op is Ops.DEFINE_VAR:
        return Array((), [variables[node]])
    if op is Ops.CONST and not src:
        return Array((), [node.arg])
    if op in (Ops.STAGE, Ops.ONE_PASS):  # where it is kept, and in which order it is made, changes nothing
        return arrays[src[0]]
    zero = cast_value(0, node.dtype)
    if op is Ops.LOAD:
        contents, tracker = memory[src[0].arg], src[1].arg
        addresses = _addresses(tracker, variables)
        shape = _shape(tracker, variables)
        if len(src) > 2:
            shape, places = arrays[src[2]]
            addresses = [addresses[int(i)] if 0 <= i < len(addresses) else None for i in places]
        return Array(shape, [zero if at is None else _element(contents, at) for at in addresses])
    tracker = node.arg if op is Ops.VIEW else src[0].arg
    addresses = _addresses(tracker, variables)
    shape = _shape(tracker, variables)
    if op is Ops.VIEW:
        values = arrays[src[0]].values
        return Array(shape, [zero if at is None else _element(values, at) for at in addresses])
    if op is Ops.CONST:
        return Array(shape, [zero if at is None else node.arg for at in addresses])
    if op is Ops.IOTA:
        return Array(shape, [zero if at is None else cast_value(at, node.dtype) for at in addresses])
    raise NotImplementedError(f"{op} in a kernel AST has no evaluation yet")


def _element(values: list[ConstType], at: int) -> ConstType:
    if not 0 <= at < len(values):
        raise IndexError(f"element {at} of {len(values)}")
    return values[at]


def _elementwise(node: UOp, sources: list[Array]) -> Array:
    shape = sources[0].shape
    if any(source.shape != shape for source in sources):
        raise ValueError(f"{node.op} of values of shapes {[source.shape for source in sources]}")
    dtype, source_dtype = node.dtype, node.src[-1].dtype
    elements = zip(*(source.values for source in sources), strict=True)
    return Array(shape, [execute(node.op, dtype, values, source_dtype) for values in elements])


def _reduce(node: UOp, source: Array) -> Array:
    """One element after the other, in row-major order, from the value that changes nothing."""
    op, axes = node.arg
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(source.shape))
    result = [start_value(op, node.dtype)] * math.prod(shape)
    places = itertools.product(*(range(size) for size in source.shape))
    for place, value in zip(places, source.values, strict=True):
        at = 0
        for size, i in zip(shape, place, strict=True):
            at = at * size + (0 if size == 1 else i)
        result[at] = execute(op, node.dtype, (result[at], value), node.dtype)
    return Array(shape, result)


def _sort(keys: Array) -> list[ConstType]:
    """In each row the places of its elements in rising order, equal ones as they come."""
    size = keys.shape[-1]
    order: list[ConstType] = []
    for begin in range(0, len(keys.values), size):
        row = [int(key) for key in keys.values[begin : begin + size]]
        indices: list[int] = sorted(range(size), key=row.__getitem__)
        order.extend(indices)
    return order


#: Kind of PROGRAM → its one result.
PROGRAMS = {"sort": _sort}


def _scan(node: UOp, sources: list[Array]) -> Array:
    """Along one axis, each element combined with all before it, from the value that changes nothing."""
    op, (axis,) = node.arg
    shape = sources[0].shape
    step = math.prod(shape[axis + 1 :])
    start = start_value(op, node.dtype)
    result = [start] * math.prod(shape)
    for at in range(len(result)):
        before = start if at // step % shape[axis] == 0 else result[at - step]
        value, *factor = (source.values[at] for source in sources)
        result[at] = execute(op, node.dtype, (before, *factor, value), node.dtype)
    return Array(shape, result)


def _store(store: UOp, arrays: dict[UOp, Array], memory: Memory, variables: dict[UOp, int]) -> None:
    contents, addresses = memory[store.src[0].arg], _addresses(store.src[1].arg, variables)
    dtype = store.src[0].dtype.base
    values = arrays[store.src[2]].values
    if len(store.src) > 3:
        places = arrays[store.src[3]].values
        addresses = [addresses[int(i)] if 0 <= i < len(addresses) else None for i in places]
    for at, value in zip(addresses, values, strict=True):
        if at is None:
            continue
        before = _element(contents, at)
        contents[at] = value if store.arg is None else execute(store.arg, dtype, (before, value), dtype)

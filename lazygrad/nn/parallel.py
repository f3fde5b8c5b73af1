"""Ways to train a model on a mesh: what is split along which axis of it (docs/sharding.md).

Each is a few calls of `shard_`. What devices send each other follows from how the tensors lie, and is planned
with everything else; none of these functions runs anything.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..device.mesh import Mesh
from ..ir.mesh import is_axis, number_along, span_at
from ..schedule.extensions import sharding
from ..schedule.graph.layouts import all_here, copied, even_spans, split
from ..schedule.graph.versions import multi
from ..tensor import Function, Tensor
from .copies import check_equal, watch
from .pipelines import Pipeline as Pipeline
from .state import get_state_dict

# ---- batches ----


def share_of(mesh: Mesh, axis: str) -> tuple[int, int]:
    """Which share of what is split along an axis this process has: (number, of how many).

    Of one process that has all devices, (0, 1): all of it.
    """
    place = mesh.axis_number(axis)
    if all_here(mesh):
        return 0, 1
    numbers = _own_numbers(mesh, place)
    return numbers[0] // len(numbers), mesh.size(axis) // len(numbers)


def _own_numbers(mesh: Mesh, place: int) -> list[int]:
    """Which devices along an axis are of this process."""
    [group, *_] = sharding().groups_here(copied(mesh), tuple(range(len(mesh.sizes))))
    return sorted({number_along(mesh, group.slots[own], [place]) for own in group.numbers})


def from_local(part: Tensor, mesh: Mesh, axis: str, size: int) -> Tensor:
    """A tensor whose first axis is split along an axis of a mesh, from what each process has of it.

    part  the elements of this process (`share_of`), as `Tensor.shard` divides them; of one process that has
          all devices, the whole tensor
    size  of the first axis of the whole

    Nothing is sent. ValueError where the part does not have the elements that it should.
    """
    if all_here(mesh):
        return part.shard(mesh, {0: axis})
    placements: list[Any] = [0 if name == axis else None for name in mesh.names]
    target = split(mesh, placements, (size, *part.shape[1:]))
    number, count = share_of(mesh, axis)
    begin, end = even_spans(size, count)[number]
    if part.shape[0] != end - begin:
        raise ValueError(
            f"of {size} elements in {count} parts, part {number} has {end - begin}, not {part.shape[0]}"
        )
    parts = []
    for device, place in zip(target.local, target.here, strict=True):
        low, high = span_at(target, 0, place) if target.axes else (begin, end)
        own = part[low - begin : high - begin].to(device)
        parts.append(own.contiguous().uop)
    return Tensor._make(multi(parts, target))


def map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """A function of each Tensor in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: map_tensors(part, function) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        made = [map_tensors(part, function) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


# ---- models ----


def data_parallel(model: Any, mesh: Mesh) -> None:
    """A copy of a model on each device of a mesh; batches are split (`DataLoader(mesh=...)`).

    Each device computes the gradients of its examples, and they are summed over the devices. All copies make
    the same step, so they stay equal. RuntimeError on all ranks where they are not, now or after one of every
    1,000 steps.
    """
    _lay(get_state_dict(model), mesh, lambda name, tensor: None)


def _lay(
    tensors: Mapping[str, Tensor], mesh: Mesh, way: Callable[[str, Tensor], dict[int, str] | None]
) -> None:
    """Lay tensors on a mesh, each in its way. Those that are copied have to be equal, and are watched."""
    ways = {name: way(name, tensor) for name, tensor in tensors.items()}
    copied = {name: tensor for name, tensor in tensors.items() if ways[name] is None}
    check_equal(copied)
    for name, tensor in tensors.items():
        tensor.shard_(mesh, ways[name])
    watch(copied)


def split_optimizer(optimizer: Any, mesh: Mesh, axis: str = "data") -> None:
    """What an optimizer keeps for each parameter, split along an axis of a mesh instead of copied.

    Each device makes the step of its part, and the parameters are gathered from the parts. These are the
    first two stages of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054): what the optimizer keeps takes the
    memory of one device divided by their number.
    """
    parameters = {id(tensor) for tensor in optimizer.params}
    for tensor in get_state_dict(optimizer).values():
        if id(tensor) not in parameters:
            along = _split_along(tensor, mesh.size(axis))
            tensor.shard_(mesh, None if along is None else {along: axis})


def fully_sharded(model: Any, mesh: Mesh, axis: str = "data") -> None:
    """The parameters of a model split along an axis of a mesh, and gathered where they are used.

    With batches split along the same axis this is the third stage of ZeRO: parameters, gradients and what an
    optimizer keeps (make it afterwards) take the memory of one device divided by their number. A tensor with
    fewer elements along each axis than there are devices is copied.
    """

    def way(name: str, tensor: Tensor) -> dict[int, str] | None:
        along = _split_along(tensor, mesh.size(axis))
        return None if along is None else {along: axis}

    _lay(get_state_dict(model), mesh, way)


#: An axis may be split if the largest part is no more than by this much larger than an even one.
UNEVEN = 1 / 16


def _split_along(tensor: Tensor, parts: int) -> int | None:
    """The first axis that has nearly even parts, since those of the first one of all are whole memory, which
    is sent as it lies; otherwise the longest axis, if it has an element for each part.
    """
    if not tensor.ndim:
        return None
    sizes: list[Any] = list(tensor.shape)
    for axis, size in enumerate(sizes):
        if size >= parts and -(-size // parts) * parts <= size * (1 + UNEVEN):
            return axis
    along = sizes.index(max(sizes))
    return along if sizes[along] >= parts else None


def tensor_parallel(
    model: Any, mesh: Mesh, columns: str | Sequence[str], rows: str | Sequence[str], axis: str = "model"
) -> None:
    """The layers of a model split along an axis of a mesh; all else is copied.

    columns  names of linear layers whose outputs are split, as `nn.state.get_state_dict` calls them: patterns
             such as "layers.*.first" are allowed
    rows     names of those whose inputs are split: what the others give, so nothing is sent in between

    A layer of the first kind and one of the second together take one sum over the devices, forward and
    backward each (Shoeybi et al. 2019, arXiv:1909.08053). ValueError where a pattern fits no layer with a
    weight of two axes.
    """
    tensors = get_state_dict(model)
    wanted = dict.fromkeys(_listed(columns), 0) | dict.fromkeys(_listed(rows), 1)
    found: dict[str, int] = {}
    for pattern, along in wanted.items():
        layers = [name for name in tensors if fnmatch.fnmatchcase(name, f"{pattern}.weight")]
        layers = [name for name in layers if tensors[name].ndim == 2]
        if not layers:
            raise ValueError(f"no layer of the model is called {pattern!r} and has a weight of two axes")
        for weight in layers:
            found[weight] = along
            if along == 0:
                found[weight.removesuffix("weight") + "bias"] = 0
    _lay(tensors, mesh, lambda name, tensor: {found[name]: axis} if name in found else None)


def whole_sequence(
    function: Callable[[Tensor], Tensor], x: Tensor, mesh: Mesh, axis: str = "model"
) -> Tensor:
    """A function of `x` that has all of the axis that is split along an axis of a mesh; the result lies as x
    did.

    In tensor parallel these are the layers between which nothing is sent: what is around them (norms,
    dropout, sums) then computes and keeps only a part of the sequence on each device. `x` is gathered before
    (an all-gather), and what the function leaves as a pending sum is added up in parts (a reduce-scatter):
    together they send what one all-reduce would (Korthikanti et al. 2022, arXiv:2205.05198). The result has
    the shape of x along that axis.
    """
    if not isinstance(x.device, tuple):
        return function(x)
    lies: dict[int, list[str]] = {}
    for name, place in zip(mesh.names, sharding().layout_of_value(x.uop).placements, strict=True):
        if is_axis(place):
            lies.setdefault(place, []).append(name)  # type: ignore[arg-type]
    gathered = {along: [name for name in names if name != axis] for along, names in lies.items()}
    whole = {along: names for along, names in gathered.items() if names}
    result: Tensor = _Laid.apply(function(_Laid.apply(x, mesh, whole, lies)), mesh, lies, whole)
    return result


class _Laid(Function):
    """A tensor laid in one way, and its gradient in another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mesh: Mesh, lies: Any, gradient: Any) -> Tensor:
        ctx.mesh, ctx.gradient = mesh, gradient
        return x.shard(mesh, lies)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient.shard(ctx.mesh, ctx.gradient), None, None, None


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names

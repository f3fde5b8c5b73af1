"""Loops over time: a function that is called once, and runs in a loop of few kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..config import SCAN
from ..device import Device, Devices
from ..dtype import dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp, origin, toposort
from ..schedule.graph.versions import placed
from ..shape import movement, shape_of, shape_text
from .computing import live_tensors
from .face import Tensor
from .modes import mode
from .nests import aligned, form_of, leaves_of, rebuilt
from .same_device import devices_text, meeting
from .storage import marked
from .transforms.loop_gradients import KEPT, Looped
from .transforms.loops import Body, invariants_of, stand_in


class Scanning(Tensor):
    """Loops over time."""

    @staticmethod
    def scan(
        fn: Callable[..., Any], carry: Any, xs: Any = None, length: int | None = None, reverse: bool = False
    ) -> tuple[Any, Any]:
        """(the carry at the end, the outputs of all iterations stacked), as `jax.lax.scan`.

            for x in xs: carry, y = fn(carry, x)

        The function is called once, on tensors without values, and what it computes runs in a loop: a few
        kernels for any number of iterations. Gradients flow to its arguments and to all tensors that it uses.

        fn       (carry, x) → (carry, y): a carry of the same structure, y any nest of tensors or None
        carry    what the first iteration takes: a tensor or number, or a nest of them (tuples, lists, dicts)
        xs       what is iterated along the first axis: a tensor or a nest of them, or None
        length   the number of iterations, if there are no xs
        reverse  start at the end; each y has the index of its x

        >>> total, sums = Tensor.scan(lambda c, x: (c + x, c + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
        >>> total.item(), sums.tolist()
        (6.0, [1.0, 3.0, 6.0])
        """
        turns = _length(xs, length)
        walked = [value for _, value in leaves_of(xs)]
        begins = leaves_of(carry)
        device = _device([*[value for _, value in begins if isinstance(value, Tensor)], *walked])
        firsts = [_tensor(value, f"carry{where}") for where, value in begins]
        given = [*firsts, *walked]
        kind = type(given[0]) if given else Tensor
        if turns and (not isinstance(device, str) or mode.examples or not SCAN):
            return _unrolled(fn, rebuilt(carry, firsts), xs, turns, reverse)
        if not isinstance(device, str):
            raise NotImplementedError("scan of no iterations on several devices is not implemented yet")
        for (where, _), first in zip(begins, firsts, strict=True):
            _known(first, f"carry{where}")
        stands = [stand_in(device, first.shape, first.dtype) for first in firsts]  # type: ignore[arg-type]
        parts = [stand_in(device, x.shape[1:], x.dtype) for x in walked]
        seen = [_stand_in(kind, node, first.shape) for node, first in zip(stands, firsts, strict=True)]
        seen_parts = [_stand_in(kind, node, x.shape[1:]) for node, x in zip(parts, walked, strict=True)]
        with _users_code():
            result = fn(rebuilt(carry, seen), rebuilt(xs, seen_parts))
        carried, stacks = _pair(result)
        ends = _carried_on(carry, carried, firsts)
        made = [_tensor(value, f"y{where}") for where, value in leaves_of(stacks)]
        sizes = [t.numel() for t in (*firsts, *walked, *ends, *made)]
        if turns == 0 or 0 in sizes:
            return _unrolled(fn, carry, xs, turns, reverse, rebuilt(stacks, made))
        nodes: dict[UOp, int] = {}
        for tensor in (*ends, *made):
            nodes.setdefault(tensor.uop, len(nodes))
        carries = tuple([(node, nodes[end.uop]) for node, end in zip(stands, ends, strict=True)])
        stacked = frozenset(nodes[y.uop] for y in made)
        _, invariants = invariants_of(list(nodes), {*stands, *parts})
        body = Body(
            "scan", device, turns, reverse, carries,
            tuple([first.shape for first in firsts]),  # type: ignore[misc]
            tuple(parts), tuple([x.shape[1:] for x in walked]),
            tuple(invariants), tuple(nodes), stacked,
        )  # fmt: skip
        uses = [_invariant(kind, node) for node in invariants]
        sources = [_placed(tensor, device) for tensor in (*given, *uses)]
        keeps = mode.grad and any(tensor.requires_grad for tensor in sources)
        if keeps:
            body = body._replace(roots=(*body.roots, *_worth_keeping(body)))
        if not sources:
            raise ValueError("scan: there is no tensor in the carry or in xs, and the function uses none")
        found = Looped.apply(body, keeps, *sources)
        results = dict(zip(body.results(keeps), found, strict=True))
        by_root = {result.root: (tensor, result.stacked) for result, tensor in results.items()}
        last = [
            tensor[0 if reverse else turns - 1] if is_stacked else tensor
            for tensor, is_stacked in (by_root[root] for _, root in carries)
        ]
        ys = [by_root[nodes[y.uop]][0] for y in made]
        return rebuilt(carry, last), rebuilt(stacks, ys)


def _length(xs: Any, length: int | None) -> int:
    sizes = {}
    for where, x in leaves_of(xs):
        if not isinstance(x, Tensor):
            raise TypeError(f"scan: xs{where} must be a Tensor, not {x!r}")
        if x.ndim == 0:
            raise ValueError(f"scan: xs{where} needs at least one axis, not shape ()")
        _known(x, f"xs{where}")
        sizes[f"xs{where}"] = x.shape[0]
    if length is not None:
        if not isinstance(length, int) or isinstance(length, bool) or length < 0:
            raise ValueError(
                f"scan: length, the number of iterations, must be a whole number of at "
                f"least 0, not {length!r}"
            )
        sizes["length"] = length
    if not sizes:
        raise ValueError("scan: give xs or length=, which say how many iterations there are")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" if name != "length" else f"length is {size}"
                           for name, size in sizes.items())  # fmt: skip
        raise ValueError(f"scan: all xs must have the same length along their first axis: {listed}")
    return int(next(iter(sizes.values())))  # type: ignore[arg-type]


def _known(tensor: Tensor, name: str) -> None:
    if not all(isinstance(size, int) for size in tensor.shape):
        raise NotImplementedError(f"scan: {name} of shape {shape_text(tensor.shape)}, which is symbolic")


def _tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return Tensor._make(UOp.const(Tensor(value).dtype, value))  # on no device: it meets every tensor
    raise TypeError(f"scan: {name} must be a Tensor or a number, not {value!r}")


def _device(tensors: Sequence[Tensor]) -> Devices:
    known = [tensor for tensor in tensors if tensor._device_known()]
    for tensor in known:
        if tensor._devices_differ(known[0]):
            first, second = devices_text(known[0].device), devices_text(tensor.device)
            raise ValueError(
                f"scan: tensors on {first} and {second} cannot be combined; "
                f"{meeting(known[0].device, tensor.device)}"
            )
    return known[0].device if known else Device.DEFAULT


def _stand_in(kind: type[Tensor], node: UOp, shape: Any) -> Tensor:
    """A stand-in as the user's function sees it."""
    made: Any = object.__new__(kind)
    made._setup(movement.reshape(node, shape), mode.grad and dtypes.is_float(node.dtype), leaf=False)
    return made  # type: ignore[no-any-return]


@contextlib.contextmanager
def _users_code() -> Iterator[None]:
    """Methods that are called within are the user's calls."""
    outer, origin.current = origin.current, None
    try:
        yield
    finally:
        origin.current = outer


def _carried_on(carry: Any, given: Any, firsts: Sequence[Tensor]) -> list[Tensor]:
    """What a turn carries on, which has the form of what it took."""
    given = aligned(given, carry)
    if form_of(given) != form_of(carry):
        raise TypeError(
            "scan: the function must return a carry of the structure that it takes: it takes "
            f"{form_of(carry)} and returns {form_of(given)}"
        )
    ends = []
    for (where, value), first in zip(leaves_of(given), firsts, strict=True):
        end = _tensor(value, f"carry{where}")
        if not isinstance(value, Tensor):
            end = end.cast(first.dtype)
        if end.shape != first.shape or end.dtype != first.dtype:
            before, after = (f"{shape_text(t.shape)} of {t.dtype}" for t in (first, end))
            raise TypeError(
                f"scan: carry{where} is {before} before an iteration and {after} after it; the "
                f"carry must keep its shape and dtype: {_advice(first, end)}"
            )
        ends.append(end)
    return ends


def _advice(first: Tensor, end: Tensor) -> str:
    if end.shape == first.shape:
        return f"cast one of them, as with .cast({end.dtype}) before the scan"
    return "start with the shape that the function returns, or return the shape that it takes"


def _kind_of(value: Any) -> str:
    return "a Tensor" if isinstance(value, Tensor) else repr(value)


def _placed(tensor: Tensor, device: str) -> Tensor:
    """A value that is on no device, being made of numbers alone, as one that is."""
    node = tensor.uop
    there = placed(node, device)
    if there is node:
        return tensor
    made: Any = object.__new__(type(tensor))
    made._setup(marked(there) if tensor.requires_grad else there, tensor.requires_grad, leaf=False)
    return made  # type: ignore[no-any-return]


def _invariant(kind: type[Tensor], node: UOp) -> Tensor:
    """A value that a function uses as a tensor: gradients flow to it, if they do to what it is made of."""
    wanted = False
    if mode.grad and dtypes.is_float(node.dtype):
        below = set(node.toposort())
        wanted = any(
            t._requires_grad and dtypes.is_float(t.dtype) and t._uop in below for t in live_tensors()
        )
    made: Any = object.__new__(kind)
    made._setup(node, wanted, leaf=False)
    return made  # type: ignore[no-any-return]


def _worth_keeping(body: Body) -> list[UOp]:
    """Sums of products that a gradient need not compute again: they are no larger than a few carries."""
    stands = {*[node for node, _ in body.carries], *body.slices}
    carried = sum(body.roots[root].dtype.itemsize * _count(shape)
                  for (_, root), shape in zip(body.carries, body.shapes, strict=True))  # fmt: skip
    found, depends = [], set(stands)
    for node in toposort(list(body.roots)):
        if node in depends or not any(source in depends for source in node.src):
            continue
        depends.add(node)
        if node.op is Ops.REDUCE_AXIS and dtypes.is_float(node.dtype) and node not in body.roots:
            carried_on = node.dtype.itemsize * _count(shape_of(node))
            if carried_on <= KEPT * carried:
                found.append(node)
    return found


def _count(shape: Any) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _unrolled(
    fn: Callable[..., Any], carry: Any, xs: Any, turns: int, reverse: bool, one: Any = None
) -> tuple[Any, Any]:
    """The loop turn by turn; `one`: what a turn gives to stack, where there are no turns."""
    rows: list[list[Tensor]] = []
    now = one
    for turn in reversed(range(turns)) if reverse else range(turns):
        before = [_tensor(value, f"carry{where}") for where, value in leaves_of(carry)]
        with _users_code():
            result = fn(carry, rebuilt(xs, [x[turn] for _, x in leaves_of(xs)]))
        given, now = _pair(result)
        ends = _carried_on(carry, given, before)
        # what passes from turn to turn is stored, forwards and backwards: all turns are the same kernels
        carry = rebuilt(carry, [end.contiguous().contiguous_backward() for end in ends])
        rows.append([_tensor(value, f"y{where}") for where, value in leaves_of(now)])
    if reverse:
        rows.reverse()
    if rows:
        return carry, rebuilt(now, [Tensor.stack(*column) for column in zip(*rows, strict=True)])
    empty = [Tensor.zeros(0, *t.shape, dtype=t.dtype, device=t.device) for _, t in leaves_of(one)]
    return rebuilt(carry, [_tensor(value, "carry") for _, value in leaves_of(carry)]), rebuilt(one, empty)


def _pair(result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise TypeError(
        f"scan: the function must return a pair (carry, y), not {form_of(result, _kind_of)}; "
        "if there is nothing to stack, return (carry, None)"
    )

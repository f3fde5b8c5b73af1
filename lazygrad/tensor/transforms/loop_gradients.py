"""Loops with gradients: `Looped` is a loop whose gradient is another one, the other way round.

It knows what was carried (each turn's is kept) and the sums of products, and computes the rest of a turn
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...dtype import dtypes
from ...gradient import filled, reduce_axes
from ...gradient import gradient as gradient_of
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import device_of
from ...schedule.graph.versions import placed
from ...shape import movement
from ...shape.rules import shape_of
from ..face import Tensor
from .batching import batched
from .function import Function
from .loops import Body, Given, known_shape, looped, stand_in

#: Values of so many times the bytes that are carried are kept for the gradient rather than computed again.
KEPT = 8


class Looped(Function):
    """`Looped.apply(body, keeps, *sources)`: the results of a loop, and with `keeps` what its gradient needs.

    Without, the gradient runs the loop once more: for what may never be differentiated, as a gradient.
    """

    def forward(self, body: Body, keeps: bool, *sources: Tensor) -> tuple[Tensor, ...]:
        self.body, self.keeps = body, keeps
        nodes = body.nodes([each.uop for each in sources], body.results(keeps))
        results = tuple([type(sources[0])._make(node, view=False) for node in nodes])
        self.save_for_backward(*sources, *results)
        return results

    def backward(self, *grads: Tensor) -> tuple[Tensor | None, ...]:
        body, count = self.body, len(grads)
        sources, results = self.saved_tensors[:-count], self.saved_tensors[-count:]
        if not self.keeps:
            results = Looped.apply(body, True, *sources)
        wanted = self.needs_input_grad[2:]
        return (None, None, *_Backwards(body, sources, wanted, results, grads, self.keeps).gradients())


class _Backwards:
    """The gradient of a loop: a loop the other way round."""

    def __init__(
        self,
        body: Body,
        sources: Sequence[Tensor],
        wanted: Sequence[bool],
        kept: Sequence[Tensor],
        grads: Sequence[Tensor],
        all_stacked: bool,
    ) -> None:
        self.body, self.sources, self.wanted, self.saved_slots = body, sources, wanted, kept
        self.kind = type(sources[0])
        self.stacked: dict[int, Tensor] = {}  #: root → the gradient of its values in all turns
        self.last: dict[int, Tensor] = {}  #: root → the gradient of its last value
        for number, (grad, result) in enumerate(zip(grads, body.results(all_stacked), strict=True)):
            if not _is_zero(grad.uop) and dtypes.is_float(body.roots[number].dtype):
                (self.stacked if result.stacked else self.last)[result.root] = grad

    def gradients(self) -> list[Tensor | None]:
        """The gradient of each source, or None."""
        body = self.body
        self.floats = [n for n, (node, _) in enumerate(body.carries) if dtypes.is_float(node.dtype)]
        self.flow = {n: stand_in(body.device, body.shapes[n], body.carries[n][0].dtype) for n in self.floats}
        self.seeds = {
            r: stand_in(body.device, known_shape(body.roots[r], body.name), body.roots[r].dtype)
            for r in self.stacked
        }
        _firsts, walked, others = body.parted(self.wanted)
        slices = [node for node, want in zip(body.slices, walked, strict=True) if want]
        invariants = [node for node, want in zip(body.invariants, others, strict=True) if want]
        found = self._of_one_iteration([*[body.carries[n][0] for n in self.floats], *slices, *invariants])
        return self._loop(found, slices, invariants)

    def _of_one_iteration(self, targets: list[UOp]) -> dict[UOp, UOp]:
        """The gradients of the stand-ins and invariants in one turn."""
        body = self.body
        gradients_of: dict[int, list[UOp]] = {}
        for n in self.floats:
            root = body.carries[n][1]
            gradients_of.setdefault(root, []).append(movement.reshape(self.flow[n], body.shapes[n]))
        for r, node in self.seeds.items():
            gradients_of.setdefault(r, []).append(movement.reshape(node, shape_of(body.roots[r])))
        wide = (
            dtypes.float64
            if any(body.roots[r].dtype == dtypes.float64 for r in gradients_of)
            else dtypes.float32
        )
        self.saved: dict[UOp, UOp] = {}
        total: UOp | None = None
        for r, seeds in gradients_of.items():
            seed = seeds[0]
            for other in seeds[1:]:
                seed = seed + other
            product = body.roots[r].cast(wide) * seed.cast(wide)
            shape = shape_of(product)
            one = movement.reshape(reduce_axes(product, Ops.ADD, tuple(range(len(shape)))), ())
            total = one if total is None else total + one
        if total is None:
            return {}
        # an invariant may be made of another one: what flows to it goes on from there outside of the loop
        found = gradient_of(total, filled((), wide, 1.0), targets, leaves={*body.invariants})
        saved = {root: n for n, root in enumerate(body.roots) if n not in {r for _, r in body.carries}}
        self.saved = {
            root: stand_in(body.device, known_shape(root, body.name), root.dtype)
            for root in saved
            if root.op is Ops.REDUCE_AXIS
        }
        swaps = {root: movement.reshape(node, shape_of(root)) for root, node in self.saved.items()}
        return dict(zip(found, _swapped(list(found.values()), swaps), strict=True))

    def _loop(self, found: dict[UOp, UOp], slices: list[UOp], invariants: list[UOp]) -> list[Tensor | None]:
        body = self.body
        firsts, walked, others = body.parted(self.sources)
        roots: dict[UOp, int] = {}
        roots_of: dict[UOp, int] = {}  # as `roots`, also for values that are a root in another shape
        stacked: set[int] = set()

        def root(node: UOp) -> int:
            return roots.setdefault(node, len(roots))

        def stack(node: UOp) -> int:
            """The number of a root whose values are all wanted, in whatever shape."""
            number = next((n for other, n in roots.items() if _unshaped(other) is _unshaped(node)), None)
            if number is None:
                number = root(node)
            stacked.add(number)
            roots_of[node] = number
            return number

        carried: list[tuple[UOp, tuple[int, ...], Tensor, int]] = []
        for n in self.floats:
            node, at = body.carries[n]
            shape = body.shapes[n]
            grad = found.get(node)
            whole = filled(shape, node.dtype, 0.0) if grad is None else movement.reshape(grad, shape)
            begin = self._begin(n, at)
            carried.append((self.flow[n], shape, begin, root(whole)))
        slice_roots = {
            node: stack(movement.reshape(found[node], body.slice_shapes[body.slices.index(node)]))
            for node in slices
            if node in found
        }
        later: dict[UOp, tuple[UOp, list[UOp]]] = {}
        sums: dict[UOp, int] = {}
        for node in sorted((n for n in invariants if n in found), key=_size, reverse=True):
            leaves = self._factors(found[node], body.slices)
            if leaves is not None and self._pays(leaves, node, roots_of, stacked):
                for leaf in leaves:
                    if leaf not in body.slices:
                        stack(leaf)
                later[node] = (found[node], leaves)
                continue
            shape = known_shape(node, body.name)
            wide = dtypes.float32 if node.dtype.itemsize < 4 else node.dtype
            held = stand_in(body.device, shape, wide)
            added = movement.reshape(held, shape) + found[node].cast(wide)
            sums[node] = len(carried)
            carried.append((held, shape, self._tensor(filled(shape, wide, 0.0)), root(added)))
        if not roots:
            return [None] * len(self.sources)
        tensors = self._run(carried, roots, stacked, firsts, walked, others)
        by_number = list(tensors)
        results = {node: by_number[number] for node, number in roots_of.items()}
        answers: list[Tensor | None] = [None] * len(self.sources)
        for n, flow in zip(self.floats, carried, strict=False):
            if self.wanted[n]:
                number = flow[3]
                answers[n] = self._end(by_number[number], number in stacked)
        place = len(body.carries)
        for part, at in slice_roots.items():
            slot = body.slices.index(part)
            answers[place + slot] = by_number[at].reshape(body.iterations, *body.slice_shapes[slot])
        place += len(body.slices)
        for invariant, summed in sums.items():
            held_root = carried[summed][3]
            total = self._end(by_number[held_root], held_root in stacked)
            answers[place + body.invariants.index(invariant)] = total.cast(invariant.dtype)
        for invariant, (graph, leaves) in later.items():
            answers[place + body.invariants.index(invariant)] = self._summed(graph, leaves, results, walked)
        return answers

    def _end(self, result: Tensor, is_stacked: bool) -> Tensor:
        """The last value of a result of the loop that runs the other way round."""
        if not is_stacked:
            return result
        return result[-1 if self.body.reverse else 0]

    def _begin(self, carry: int, root: int) -> Tensor:
        """What flows into a carried value after the last turn."""
        node, at = self.body.carries[carry]
        is_first = next(n for n, (_, other) in enumerate(self.body.carries) if other == at) == carry
        if root in self.last and is_first:
            return self.last[root]
        return self._tensor(filled(self.body.shapes[carry], node.dtype, 0.0))

    def _tensor(self, node: UOp) -> Tensor:
        return self.kind._make(placed(node, self.body.device), view=False)

    def _run(
        self,
        carried: list[tuple[UOp, tuple[int, ...], Tensor, int]],
        roots: dict[UOp, int],
        stacked: set[int],
        firsts: Sequence[Tensor],
        walked: Sequence[Tensor],
        others: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """The loop: its results in the order of the roots."""
        body = self.body
        slices = [*body.slices, *self.seeds.values(), *self.saved.values()]
        values = [*walked, *[self.stacked[r] for r in self.seeds]]
        values += [self.saved_slots[body.roots.index(root)] for root in self.saved]
        shapes = [*body.slice_shapes, *[known_shape(body.roots[r], body.name) for r in self.seeds]]
        shapes += [known_shape(root, body.name) for root in self.saved]
        before = []
        for (node, at), shape, first in zip(body.carries, body.shapes, firsts, strict=True):
            before.append((node, shape, first, self.saved_slots[at]))
        inner = _Gradient(
            f"{body.name}_grad", body.device, body.iterations, not body.reverse,
            tuple([(node, number) for node, _, _, number in carried]),
            tuple([shape for _, shape, _, _ in carried]),
            tuple(slices), tuple(shapes), body.invariants, tuple(roots), frozenset(stacked),
            tuple([(node, shape) for node, shape, _, _ in before]),
        )  # fmt: skip
        sources = [*[begin for _, _, begin, _ in carried], *values, *others]
        sources += [part for _, _, first, kept in before for part in (first, kept)]
        made: tuple[Tensor, ...] = LoopedBack.apply(inner, *sources)
        return made

    # *** gradients that are sums over all turns

    def _factors(self, grad: UOp, slices: Sequence[UOp]) -> list[UOp] | None:
        """What a sum of products is computed from, if the gradient of an invariant is one: its factors."""
        node = grad
        while node.op in MOVEMENT or node.op is Ops.CAST:
            node = node.src[0]
        if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD:
            return None
        leaves: dict[UOp, None] = {}
        todo = [node.src[0]]
        while todo:
            node = todo.pop()
            if node.op in MOVEMENT or node.op in (Ops.CAST, Ops.MUL, Ops.REDUCE_AXIS):
                todo += node.src
            elif node.op is not Ops.CONST:
                leaves[node] = None
        return list(leaves)

    def _pays(self, leaves: list[UOp], node: UOp, roots: dict[UOp, int], stacked: set[int]) -> bool:
        """Whether keeping the factors of all turns is less than carrying the sum."""
        more = [leaf for leaf in leaves if roots.get(leaf) not in stacked and leaf not in self.body.slices]
        known = all(device_of(leaf) is not None for leaf in leaves)
        return known and sum(map(_size, more)) <= _size(node)

    def _summed(
        self, graph: UOp, leaves: list[UOp], results: dict[UOp, Tensor], walked: Sequence[Tensor]
    ) -> Tensor:
        """The sum over all turns of a graph of these factors."""
        body = self.body
        examples = {}
        for leaf in leaves:
            whole = walked[body.slices.index(leaf)] if leaf in body.slices else results[leaf]
            examples[leaf] = movement.reshape(whole.uop, (body.iterations, *shape_of(leaf)))
        sum_ = graph
        while sum_.op is not Ops.REDUCE_AXIS:  # `_factors` found one below movements and casts
            sum_ = sum_.src[0]
        # the sum of a turn and that over the turns are one, whose axes are walked as one where they can be
        (terms,) = batched([sum_.src[0]], examples, body.iterations)
        axes = (0, *[axis + 1 for axis in sum_.arg.axes])
        total = movement.reshape(reduce_axes(terms, Ops.ADD, axes), shape_of(sum_))
        (made,) = _swapped([graph], {sum_: total})
        return self.kind._make(made, *[results[leaf] for leaf in leaves if leaf in results], view=False)


def _unshaped(node: UOp) -> UOp:
    """The value below reshapes: the same bytes."""
    while node.op is Ops.RESHAPE:
        node = node.src[0]
    return node


def _size(node: UOp) -> int:
    size = node.dtype.itemsize
    for length in shape_of(node):
        size *= length  # type: ignore[assignment]
    return size


def _is_zero(node: UOp) -> bool:
    while node.op in MOVEMENT or node.op is Ops.CAST:
        node = node.src[0]
    return node.op is Ops.CONST and node.arg == 0


def _swapped(roots: list[UOp], swaps: dict[UOp, UOp]) -> list[UOp]:
    """Graphs with some nodes replaced."""
    made = dict(swaps)
    for node in toposort(roots):
        if node not in made and any(source in made for source in node.src):
            made[node] = node.replace(src=tuple([made.get(source, source) for source in node.src]))
    return [made.get(root, root) for root in roots]


class _Gradient(NamedTuple):
    """The body of a gradient's loop: as a Body; `before`: stand-ins of what was carried into a turn."""

    name: str
    device: str
    iterations: int
    reverse: bool
    carries: tuple[tuple[UOp, int], ...]
    shapes: tuple[tuple[int, ...], ...]
    slices: tuple[UOp, ...]
    slice_shapes: tuple[tuple[int, ...], ...]
    invariants: tuple[UOp, ...]
    roots: tuple[UOp, ...]
    stacked: frozenset[int]
    before: tuple[tuple[UOp, tuple[int, ...]], ...]


class LoopedBack(Function):
    """`LoopedBack.apply(inner, *sources)`: the loop of a gradient, which may be differentiated again."""

    def forward(self, inner: _Gradient, *sources: Tensor) -> tuple[Tensor, ...]:
        self.inner = inner
        body, before = self._split(inner)
        count = len(sources) - 2 * len(before)
        firsts, walked, others = body.parted([each.uop for each in sources[:count]])
        pairs = [each.uop for each in sources[count:]]
        given = [
            Given(node, "carry", shape, first, root=root)
            for (node, root), shape, first in zip(body.carries, body.shapes, firsts, strict=True)
        ]
        given += [
            Given(node, "slice", shape, whole)
            for node, shape, whole in zip(body.slices, body.slice_shapes, walked, strict=True)
        ]
        given += [
            Given(node, "next", shape, pairs[2 * n], pairs[2 * n + 1])
            for n, (node, shape) in enumerate(before)
        ]
        known = dict(zip(body.invariants, others, strict=True))
        nodes = looped(
            body.name,
            body.device,
            body.iterations,
            body.reverse,
            given,
            body.roots,
            body.results(False),
            known,
        )
        self.save_for_backward(*sources)
        return tuple([type(sources[0])._make(node, view=False) for node in nodes])

    @staticmethod
    def _split(inner: _Gradient) -> tuple[Body, tuple[tuple[UOp, tuple[int, ...]], ...]]:
        return Body(*inner[:-1]), inner.before

    def backward(self, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The same loop, with what was carried laid out as one more thing that is walked through."""
        body, before = self._split(self.inner)
        sources = list(self.saved_tensors)
        count = len(sources) - 2 * len(before)
        laid = []
        for n in range(len(before)):
            first, kept = sources[count + 2 * n], sources[count + 2 * n + 1]
            # body.reverse is of the way back: where that goes from the last on, the first value comes first
            if body.reverse:
                laid.append(Tensor.cat(first.unsqueeze(0), kept[:-1]))
            else:
                laid.append(Tensor.cat(kept[1:], first.unsqueeze(0)))
        slices = (*body.slices, *[node for node, _ in before])
        shapes = (*body.slice_shapes, *[shape for _, shape in before])
        plain = body._replace(slices=slices, slice_shapes=shapes)
        firsts, walked, others = body.parted(sources[:count])
        given = [*firsts, *walked, *laid, *others]
        wanted = [dtypes.is_float(each.dtype) for each in given]
        kept = Looped.apply(plain, True, *given)
        found = _Backwards(plain, given, wanted, kept, grads, False).gradients()
        begin = len(firsts) + len(walked)
        pairs: list[Tensor | None] = []
        for n in range(len(before)):
            grad = found[begin + n]
            if grad is None:
                pairs += [None, None]
                continue
            if body.reverse:
                edge, rest = grad[0], Tensor.cat(grad[1:], grad[:1] * 0)
            else:
                edge, rest = grad[-1], Tensor.cat(grad[:1] * 0, grad[:-1])
            pairs += [edge, rest]
        return (None, *found[:begin], *found[begin + len(before) :], *pairs)

"""`checkpoint`: what a function computes on the way is computed again for the gradient, and not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtype import dtypes
from ...gradient import filled
from ...gradient import gradient as gradient_of
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort
from ...shape import movement
from ...shape.movement import expanded, forward_to
from ...shape.rules import shape_of
from ..backward import Positions
from ..computing import live_tensors
from ..face import Tensor
from ..modes import enable_grad, mode
from .function import outputs_of


def checkpoint(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """function(*args), whose intermediate values are computed again when the gradient asks for them.

    Memory for work: a network of n layers, each checkpointed, keeps n values between layers for the backward
    pass instead of all that layers compute (Chen et al. 2016). Gradients flow to the tensors among `args`
    and to all that the function itself uses. Random numbers are the same the second time.

    >>> x = Tensor([2.0], requires_grad=True)
    >>> _ = checkpoint(lambda x: x.exp().sin(), x).sum().backward()
    >>> print(round(x.grad.item(), 4))
    3.3129
    """
    if not mode.grad:
        return function(*args, **options)
    given, begins = list(args), []
    for i, arg in enumerate(args):
        if isinstance(arg, Tensor):
            node = UOp(Ops.FUNCTION, arg.dtype, (arg.uop,), _Begin(bool(arg._leaf and arg._requires_grad)))
            forward_to(node, arg.uop)
            inner: Any = object.__new__(type(arg))
            # marked, so that it goes on standing for its own node
            inner._setup(node, True, leaf=False)
            given[i] = inner
            begins.append((node, arg))
    if not begins:
        raise TypeError("checkpoint: no argument is a Tensor")
    with enable_grad():
        result = function(*given, **options)
    made = [_recomputed(output, begins) for output in outputs_of(result, "checkpoint")]
    return type(result)(made) if isinstance(result, (tuple, list)) else made[0]


class _Begin:
    """The argument of a FUNCTION node that stands for a tensor where a checkpoint begins: the same value.

    is_parameter  it is there all the time, so the second computation reads it as it is
    """

    is_plain = False

    def __init__(self, is_parameter: bool) -> None:
        self.is_parameter = is_parameter

    def __repr__(self) -> str:
        return "<checkpoint begins>"

    def gradients(self, grad: UOp, node: UOp) -> tuple[UOp | None, ...]:
        return (grad,)


class _End:
    """The argument of the FUNCTION node of a result: (result, begins, tensors used within).

    begins  how many nodes after the first stand for the arguments
    """

    is_plain = False

    def __init__(self, begins: int) -> None:
        self.begins = begins

    def __repr__(self) -> str:
        return "<checkpoint ends>"

    def gradients(self, grad: UOp, node: UOp) -> tuple[UOp | None, ...]:
        """Those of a second computation, which begins when `grad` is there."""
        whole = UOp(Ops.CONTIGUOUS, grad.dtype, (grad,), "passing")  # nobody asks for it once it was used
        whole.facts["checkpointed"] = grad
        begins, used = node.src[1 : 1 + self.begins], node.src[1 + self.begins :]
        late = [begin for begin in begins if not begin.arg.is_parameter] or begins
        after = {begin: _after(begin, whole) if begin in late else begin for begin in begins}
        # the walk ends at the arguments, below which the same tensors may be used again
        ends = {begin: UOp(Ops.DETACH, late.dtype, (late,)) for begin, late in after.items()}
        for begin, end in ends.items():
            end.facts["checkpointed"] = begin
        for begin in late:
            after[begin].facts["checkpointed"] = begin
        again = _replaced([node.src[0]], ends)[0]
        found = gradient_of(again, whole, [*ends.values(), *used])
        nodes = [*(ends[begin] for begin in begins), *used]
        grads = [found[n] for n in nodes if n in found]
        # a second derivative goes on through the arguments
        through = iter(_replaced(grads, {ends[begin]: after[begin] for begin in begins}))
        return (None, *(next(through) if n in found else None for n in nodes))


def _recomputed(output: Tensor, begins: list[tuple[UOp, Tensor]]) -> Tensor:
    """A result whose gradient is that of the second computation."""
    inside = Positions(_inside(output.uop, {node for node, _ in begins}))
    used = {node: t for t in live_tensors() if t._leaf and t._requires_grad for node in inside.of(t)}
    parents = [*(tensor for _, tensor in begins), *used.values()]
    if not dtypes.is_float(output.dtype) or not any(parent._requires_grad for parent in parents):
        return type(output)._make(output.uop)
    sources = (output.uop, *(node for node, _ in begins), *used)
    node = UOp(Ops.FUNCTION, output.dtype, sources, _End(len(begins)))
    forward_to(node, output.uop)
    return type(output)._make(node, *parents)


def _inside(root: UOp, ends: set[UOp]) -> set[UOp]:
    """The nodes below root, without going past some of them."""
    found, todo = {root}, [root]
    while todo:
        for source in todo.pop().src:
            if source not in found and source not in ends:
                found.add(source)
                todo.append(source)
    return found


def _after(node: UOp, grad: UOp) -> UOp:
    """The value of a node, to be used when `grad` has been computed: the choice is always the first.

    One element of the gradient is less than 0, or not, or NaN.
    """
    shape = shape_of(grad)
    first = movement.reshape(movement.shrink(grad, tuple((0, 1) for _ in shape)), ())
    if not dtypes.is_float(first.dtype):
        raise RuntimeError("a gradient is of floats")
    zero = filled((), first.dtype, 0.0)
    known = (first < zero) | zero.alu(Ops.CMPLE, first) | first.ne(first)
    nothing = UOp.const(node.dtype, 0)
    return expanded(known, shape_of(node)).where(node, expanded(nothing, shape_of(node)))


def _replaced(roots: list[UOp], replacements: dict[UOp, UOp]) -> list[UOp]:
    """The graphs below roots with some nodes replaced."""
    made = dict(replacements)
    for node in toposort(roots):
        if node in made or not any(source in made for source in node.src):
            continue
        new = UOp(node.op, node.dtype, tuple(made.get(s, s) for s in node.src), node.arg)
        if node.op is Ops.FUNCTION:
            forward_to(new, new.src[0])
        made[node] = new
    return [made.get(root, root) for root in roots]

"""The legal moves: what each OptOps does to `Loops`, and when it may.

An action has a contract (its docstring, with a picture), a check that refuses with a reason, and one change
of the loops. Which of them to apply is decided elsewhere (`heuristic`, searches), which finds them in
`ACTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from ....ir import index
from ....ir.args import AxisType
from ....ir.index import as_index, bounds
from ....ir.members import Member
from ....ir.nest import ranges_of
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....ir.walks import has_op, of_op
from ....shape import size_text
from ....target import Target
from ...expressions.ranges import divides, in_order
from .loops import Axis, Loops

#: The most neighbouring elements that one thread computes along one axis.
MAX_UPCAST = 256
#: The most steps of a reduction that are written out.
MAX_UNROLL = 512
#: The most pieces of a kernel.
MAX_PIECES = 256
#: Padding may not make a kernel do more than this many times its work.
MAX_PADDING = 4


class OptOps(Member):
    """The kinds of optimization."""

    TC = "tensor core"
    UPCAST = "upcast"
    UNROLL = "unroll"
    LOCAL = "local"
    GROUP = "group"
    GROUPTOP = "group, consecutive"
    THREAD = "thread"
    TILE = "tile"
    STAGE = "stage"
    ROUNDS = "rounds"
    AHEAD = "ahead"
    INLINE = "inline"
    PADTO = "pad"
    SWAP = "swap"
    NOLOCALS = "no locals"

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"

    __str__ = __repr__


class Opt(NamedTuple):
    """One optimization: `eval` of its text gives it back.

    `amount` 0 is the whole axis; for SWAP it is the number of the other axis.
    """

    op: OptOps
    axis: int | None = None
    amount: int | None = None

    def __repr__(self) -> str:
        fields = "".join(
            f", {name}={v}" for name, v in (("axis", self.axis), ("amount", self.amount)) if v is not None
        )
        return f"Opt(op={self.op}{fields})"


class KernelOptError(ValueError):
    """An Opt that does not fit the kernel: the reason, and the loops with the axis marked.

    The loops are written when the text is asked for: a search is refused thousands of times.
    """

    def __init__(self, reason: str, loops: Callable[[], str]) -> None:
        super().__init__(reason)
        self.loops = loops

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.loops()}"


class _Refused(Exception):
    """Why an action does not fit."""


def require(holds: bool, reason: str) -> None:
    """Refuse an action, for a reason, unless the condition holds."""
    if not holds:
        raise _Refused(reason)


class Action(Protocol):
    """One kind of optimization."""

    #: The axes it counts: all, or those of reduces, or none.
    counts: str

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None: ...

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops: ...


#: Kind of optimization → what it does, and, where a grid of threads takes it another way, what it does there.
ACTIONS: dict[OptOps, Action] = {}
GRID_ACTIONS: dict[OptOps, Action] = {}
#: Why a grid cannot run loops, "" where it can: asked after each Opt.
LIMITS: list[Callable[[Loops, Target], str]] = []
_A = TypeVar("_A", bound=type)


def opt(op: OptOps, *, grid: bool = False) -> Callable[[_A], _A]:
    """Enter an action into the registry, or what it does on a `grid` alone.

    The registry has the order of OptOps, whoever is imported first: searches and random answers walk it.
    """

    def enter(action: _A) -> _A:
        table = GRID_ACTIONS if grid else ACTIONS
        table[op] = action()
        for each in [each for each in OptOps if each in table]:
            table[each] = table.pop(each)
        return action

    return enter


# *** applying


def apply_opts(kernel: UOp | Loops, opts: Iterable[Opt], target: Target) -> UOp:
    """The kernel (form 3) after a list of Opts (form 4)."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    for each in opts:
        loops = apply_opt(loops, each, target)
    return loops.finished()


def apply_opt(loops: Loops, each: Opt, target: Target) -> Loops:
    """The loops after one Opt. One that does not fit raises KernelOptError."""
    action = action_of(each.op, target)
    if action is None:
        raise NotImplementedError(
            f"{each.op.name} is not implemented yet: this version has {', '.join(o.name for o in ACTIONS)}"
        )
    axis: Axis | None = None
    try:
        axis = _axis(loops, action, each)
        amount = each.amount or 0
        if (
            action.counts != "none"
            and amount == 0
            and each.op not in (OptOps.SWAP, OptOps.THREAD, OptOps.STAGE, OptOps.INLINE)
        ):
            amount = axis.size if isinstance(axis.size, int) else 0
            require(amount > 0, f"the size {size_text(axis.size)} is not known: give an amount")
        action.check(loops, axis, amount, target)
        changed = action.apply(loops, axis, amount, target)
        for limit in LIMITS if target.grid else ():
            too_much = limit(changed, target)
            require(not too_much, too_much)
        return changed
    except _Refused as refused:
        place = "" if each.axis is None else f" axis {each.axis}"
        by = "" if each.amount is None else f" by {each.amount}"
        marked = () if axis is None else (axis,)
        raise KernelOptError(
            f"{each.op.name}{place}{by}: {refused}", lambda: loops.text(marked, action.counts == "reduces")
        ) from None


def action_of(op: OptOps, target: Target) -> Action | None:
    """What a kind of optimization does on a target."""
    own = GRID_ACTIONS.get(op) if target.grid else None
    return own or ACTIONS.get(op)


def _axis(loops: Loops, action: Action, each: Opt) -> Axis:
    counted = loops.reduce_axes if action.counts == "reduces" else loops.axes
    number = each.axis or 0
    if action.counts == "none":
        return Axis(0, 1, (), False, None)
    what = "reduce axis" if action.counts == "reduces" else "axis"
    if not counted:
        require(False, f"there is no {what}")
    require(0 <= number < len(counted), f"there is no {what} {number}; the last is {len(counted) - 1}")
    return counted[number]


# *** the actions


def require_whole_steps(axis: Axis, amount: int) -> None:
    """Refuse an amount that changes nothing or does not divide the axis."""
    require(amount > 1, f"an amount of {amount} changes nothing")
    require(divides(amount, axis.size), f"{amount} does not divide {size_text(axis.size)}")


def require_any_order(loops: Loops, axis: Axis) -> None:
    """Refuse to change the order of loops whose stores depend on it."""
    require(not in_order(loops.sink), "stores at computed indices must stay in their order")


def require_shared_stages(loops: Loops, axis: Axis) -> None:
    """Lanes and registers read one STAGE: what it holds may not depend on which of them asks."""
    stages = of_op(loops.sink.toposort(), Ops.STAGE)
    apart = any(not ranges_of(stage).isdisjoint(axis.ranges) for stage in stages)
    require(not apart, "a STAGE along this axis is filled in each iteration: apply this Opt before STAGE")


@opt(OptOps.UPCAST)
class Upcast:
    """Compute `amount` neighbours along an output axis at once, in lanes and registers.

        for i in 0..n:    out[i] = f(i)
    becomes
        for i in 0..n/4:  out[4i], out[4i+1], out[4i+2], out[4i+3] = f(4i), f(4i+1), f(4i+2), f(4i+3)

    Where reductions walk the same axis before (a row's maximum, then the row), they are unrolled alike.
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(axis.output, "UPCAST is for axes of outputs; UNROLL is for those that are only reduced")
        require_shared_stages(loops, axis)
        require_whole_steps(axis, amount)
        require(amount <= MAX_UPCAST, f"at most {MAX_UPCAST} are computed at once")
        require_any_order(loops, axis)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.split(axis, amount, AxisType.UPCAST)


@opt(OptOps.UNROLL)
class Unroll:
    """Do `amount` steps of a reduction at once, in lanes and registers; the axis counts among those reduced.

        for r in 0..n:    acc += f(r)
    becomes
        for r in 0..n/4:  acc += f(4r) + f(4r+1) + f(4r+2) + f(4r+3)
    """

    counts = "reduces"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require_whole_steps(axis, amount)
        require(amount <= MAX_UNROLL, f"at most {MAX_UNROLL} steps are written out")
        require_shared_stages(loops, axis)
        if axis.output:
            require_any_order(loops, axis)
        elif axis.size == amount:
            warps = has_op(loops.sink.toposort(), Ops.WMMA)
            require(not warps, "no loop would be left for the sums of tensor cores")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.split(axis, amount, AxisType.UPCAST if axis.output else AxisType.UNROLL)


@opt(OptOps.THREAD)
class Thread:
    """Cut a loop over outputs, which becomes the outermost, into `amount` pieces for the cores of a CPU.

        for i in 0..n:  out[i] = f(i)
    becomes
        for each piece p of 4, at once:  for i in n*p/4..n*(p+1)/4:  out[i] = f(i)
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(not target.grid, f"{target.name} runs a grid of threads already")
        require(axis.output, "THREAD is for axes of outputs")
        cut = axis.outermost
        parallel = cut and all(r.arg.kind in (AxisType.GLOBAL, AxisType.TILE) for r in cut)
        require(bool(parallel), "every thread would repeat what the axis shares")
        threaded = any(r.arg.kind is AxisType.THREAD for each in loops.axes for r in each.outermost)
        require(not threaded, "THREAD was applied already")
        require(2 <= amount <= MAX_PIECES, f"the pieces are 2 to {MAX_PIECES}")
        most = bounds(cut[0].src[0])[1]
        require(amount <= most, f"{most} steps are too few")
        require_any_order(loops, axis)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.retype(axis, AxisType.THREAD)


@opt(OptOps.PADTO)
class PadTo:
    """Round the size of an axis up to a multiple of `amount`, with nothing done beyond the end.

        for i in 0..30:  out[i] = f(i)
    becomes
        for i in 0..32:  if i < 30: out[i] = f(i)
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(amount > 1, f"rounding up to a multiple of {amount} changes nothing")
        require(not divides(amount, axis.size), f"{size_text(axis.size)} is a multiple of {amount}")
        most = max(index.bounds(as_index(axis.size))[1], 1)
        require(-(-most // amount) * amount <= MAX_PADDING * most, f"more than {MAX_PADDING} times the work")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.pad(axis, amount)


@opt(OptOps.SWAP)
class Swap:
    """Walk two output axes in the other order; `amount` is the number of the other one.

        for i in 0..n: for j in 0..m:  out[i, j] = f(i, j)
    becomes
        for j in 0..m: for i in 0..n:  out[i, j] = f(i, j)
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(
            0 <= amount < len(loops.axes), f"there is no axis {amount}; the last is {len(loops.axes) - 1}"
        )
        require(amount != axis.number, "an axis is not swapped with itself")
        for each in (axis, loops.axes[amount]):
            require(
                each.output and len(each.ranges) == 1, f"axis {each.number} is no loop over outputs alone"
            )
        kinds = {axis.ranges[0].arg.kind, loops.axes[amount].ranges[0].arg.kind}
        require(len(kinds) == 1, "one is parallel and the other is not")
        require_any_order(loops, axis)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.swap(axis, loops.axes[amount])

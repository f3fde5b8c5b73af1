"""Lists of Opts drawn at random, of those that a kernel takes: legal answers to the decision `opts`.

Half of them walk, from the plain loops or from some of the predicted Opts: an Opt after the other, each drawn
until one fits. The others are what a policy proposes. What is too long to compile, or too dear by the
prediction for programs (`predict.py`), loses its last Opts until it is neither.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from ..decisions import DEAREST
from ..dtype import DType
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Renderer
from ..target import Target
from .cost.predict import all_iterations, predict
from .expressions.ranges import in_order
from .opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt
from .opt.cpu.contraction import candidates
from .opt.cpu.plans import plans
from .opt.facts import Facts
from .opt.moves.inline import all_inline
from .opt.search import AMOUNTS, is_small
from .passes import PASSES, Job

#: A walk has up to so many Opts, and each is drawn so often at most.
LONGEST, TRIES = 6, 12
#: Amounts are taken of those that divide an axis, in such a share of draws.
WHOLE = 0.7
#: A program has at most so many instructions, or so many times as many as with the predicted list.
LONG, LONGER = 3000, 2


def drawn(loops: Loops, target: Target, predicted: Sequence[Opt], rng: random.Random) -> list[Opt]:
    """A list of Opts that a kernel takes; the predicted one where no other one that was drawn is legal."""
    if not loops.axes:
        return list(predicted)
    way = rng.random()
    if way < 1 / 6:
        opts: list[Opt] = []
    elif way < 1 / 2:
        opts = _proposed(loops, target, predicted, rng)
    else:
        opts = _walked(loops, target, predicted, rng)
    if not target.grid and rng.random() < 1 / 2:
        opts = _with_threads(loops, opts, target, rng)
    return _cheap(loops, opts, target, list(predicted))


def _proposed(loops: Loops, target: Target, predicted: Sequence[Opt], rng: random.Random) -> list[Opt]:
    """What a policy of a processor proposes; on a grid its policies cannot be listed, and it is a walk."""
    if target.grid or target.vector_bytes == 0:
        return _walked(loops, target, predicted, rng)
    plain, inline = all_inline(loops)
    if in_order(loops.sink):
        return _walked(loops, target, predicted, rng)
    facts = Facts.of(plain)
    tiles = [[*inline, *opts] for opts in candidates(facts, target)]
    if tiles and rng.random() < 3 / 4:
        return rng.choice(tiles)
    found = [plan.opts() for plan in plans(facts, target, loops)]
    return rng.choice(found)


def _walked(loops: Loops, target: Target, predicted: Sequence[Opt], rng: random.Random) -> list[Opt]:
    begun = [opt for opt in predicted if opt.op is not OptOps.THREAD]
    found = begun[: rng.randint(0, len(begun))] if rng.random() < 1 / 2 else []
    for opt in found:
        loops = apply_opt(loops, opt, target)
    for _ in range(rng.randint(1, LONGEST)):
        for _ in range(TRIES):
            tried = _any_opt(loops, rng)
            after = None if tried is None else _after(loops, tried, target)
            if tried is not None and after is not None and is_small(after, target):
                loops = after
                found.append(tried)
                break
    return found


def _any_opt(loops: Loops, rng: random.Random) -> Opt | None:
    """Something that may fit. THREAD comes last: nests of one kernel take it from a list (`nests.py`)."""
    op = rng.choice([op for op in ACTIONS if op is not OptOps.THREAD])
    if ACTIONS[op].counts == "none":
        return Opt(op) if rng.random() < 1 / 8 else None
    axes = loops.reduce_axes if ACTIONS[op].counts == "reduces" else loops.axes
    if not axes:
        return None
    number = rng.randrange(len(axes))
    if op is OptOps.SWAP:
        return Opt(op, number, rng.randrange(len(axes)))
    if op is OptOps.INLINE:
        return Opt(op, number)
    if op is OptOps.STAGE:
        inputs = sorted({n.src[0].src[0].arg for n in loops.sink.toposort() if _reads(n)})
        return Opt(op, number, rng.choice(inputs)) if inputs else None
    size = axes[number].size
    whole = [n for n in range(2, 33) if isinstance(size, int) and size % n == 0]
    return Opt(op, number, rng.choice(whole if whole and rng.random() < WHOLE else AMOUNTS))


def _reads(node: UOp) -> bool:
    return node.op is Ops.LOAD and node.src[0].src[0].op is Ops.DEFINE_GLOBAL


def _with_threads(loops: Loops, opts: list[Opt], target: Target, rng: random.Random) -> list[Opt]:
    """A loop over outputs cut for several cores, where one can be."""
    opts = [opt for opt in opts if opt.op is not OptOps.THREAD]
    for opt in opts:
        loops = apply_opt(loops, opt, target)
    for _ in range(TRIES if loops.axes else 0):
        thread = Opt(OptOps.THREAD, rng.randrange(len(loops.axes)), rng.choice((2, 3, 4, 7, 8, 16)))
        if _after(loops, thread, target) is not None:
            return [*opts, thread]
    return opts


def _after(loops: Loops, opt: Opt, target: Target) -> Loops | None:
    try:
        return apply_opt(loops, opt, target)
    except KernelOptError:
        return None


# *** what is legal


def _cheap(loops: Loops, opts: list[Opt], target: Target, predicted: list[Opt]) -> list[Opt]:
    """The list, as much of it as is neither too dear nor too long; the predicted one if that is nothing."""
    if opts == predicted:
        return opts
    most, longest = _price(loops, predicted, target)
    most, longest = DEAREST * most, max(LONG, LONGER * longest)
    while True:
        price, length = _price(loops, opts, target)
        if price <= most and length <= longest:
            return opts
        if not opts:
            return predicted
        opts = opts[:-1]


def _price(loops: Loops, opts: Sequence[Opt], target: Target) -> tuple[float, int]:
    """The predicted cycles of the program that a list of Opts makes, no number where the driver would
    end it, and its instructions.
    """
    for opt in opts:
        loops = apply_opt(loops, opt, target)
    uops: Any = loops.finished()
    job = Job(_Anything(target))
    for step in PASSES:
        uops = step.on(uops, job) if step.shapes else uops
    if target.loop_iterations and all_iterations(uops) > target.loop_iterations:
        return math.inf, len(uops)
    return predict(uops, target), len(uops)


class _Anything(Renderer):
    """Says everything: a price is asked before a kernel is made of what its language has."""

    def supports(self, op: Ops, dtype: DType) -> bool:
        return op is not Ops.MULACC or self.target.has_fma

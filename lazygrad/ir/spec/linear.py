"""Form 7, the linear program: a list of steps in the order of execution, every loop closed."""

from __future__ import annotations

from ..args import Filled, Prefetch
from ..ops import Ops
from ..uop import UOp
from .checks import Spec, arg_is, both, no_index, ok, sources, void
from .loops import TARGET, loop_range, not_in_registers


def _range(u: UOp) -> str | None:
    return loop_range(u) or not_in_registers(u)


def _assign(u: UOp) -> str | None:
    value = u.src[1].dtype
    return None if value is u.src[0].dtype else f"it puts {value} into an accumulator of {u.src[0].dtype}"


def _matrices(u: UOp) -> str | None:
    sums, factors = u.src[: u.arg.sums], u.src[u.arg.sums :]
    if len(sums) < u.arg.sums or any(s.op is not Ops.DEFINE_ACC for s in sums):
        return f"it adds to {u.arg.sums} accumulators"
    return None if len(factors) > 1 else "it multiplies two matrices"


_GRAPHS_ONLY = (Ops.SINK, Ops.REDUCE, Ops.SCAN, Ops.STAGE)
_ASKED = (Ops.INDEX, Ops.DEFINE_GLOBAL)
LINEAR = Spec(
    7,
    "linear program",
    {
        **{op: check for op, check in TARGET.checks.items() if op not in _GRAPHS_ONLY},
        Ops.CHECK: both(void, sources(None, None)),
        Ops.DEFINE_ACC: both(sources(None, Ops.RANGE, more=True), arg_is(tuple)),
        Ops.WMMA: both(void, _matrices),
        Ops.RANGE: both(sources(None, None), no_index(_range)),
        Ops.ENDRANGE: both(void, sources(Ops.RANGE)),
        Ops.ASSIGN: both(sources(Ops.DEFINE_ACC, None), _assign),
        Ops.IF: both(void, sources(None, more=True)),
        Ops.ENDIF: both(void, sources(Ops.IF)),
        Ops.BREAK: both(void, sources(Ops.RANGE)),
        Ops.STAGE: both(void, sources(Ops.DEFINE_LOCAL), arg_is(Filled)),
        Ops.SCAN: sources(Ops.DEFINE_ACC),
        Ops.BARRIER: ok,
        Ops.COMMIT: ok,
        Ops.WAIT: arg_is(int),
        Ops.PREFETCH: both(void, sources(_ASKED, Ops.RANGE, more=True, least=1), arg_is(Prefetch)),
        Ops.NOOP: ok,
    },
)

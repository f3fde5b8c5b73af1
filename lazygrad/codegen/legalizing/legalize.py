"""Vector code (form 5) becomes target code (form 6): only the ops and dtypes that the target has.

What a renderer may rely on in form 6:

- No `dtypes.index`: every integer has a width.
- IDIV and MOD are on integers that are not negative (unsigned, or so by construction), and the divisor is
  not 0: rounding down and C's rounding to zero agree, and nothing traps.
- SHR keeps the sign of a signed number. Amounts of SHL and SHR are from 0 to width - 1.
- No CAST to bool (it is CMPNE with 0) and no arithmetic on bools but AND, OR, XOR, CMPEQ, CMPNE and WHERE.
- CAST float → integer is of a value in range, unless the renderer says that its CAST saturates.
- MULACC is rounded once (`fma`); no other product and sum may be contracted.
- bfloat16 and the fp8s, and half where the target lacks it, are read and written as integers (emulate.py).
  No CAST is from or to half but of float32.

What legalizing asks of a renderer, `renderer.supports(op, dtype)`, with the scalar dtype of the operands:

- any elementwise op but CAST: it means on every input what `ir.ops` says. MAX and MIN give NaN if either is
  NaN and the first of equals, EXP and its like are within BOUNDS;
- (Ops.CAST, integer type): CAST from float to it saturates and sends NaN to 0;
- (Ops.LOAD, float type): the type can be loaded, stored, and cast from and to float32;
- (Ops.ADD, float type): arithmetic on it works, each result rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.spec import TARGET, WIDTHS, Spec
from ...ir.uop import UOp
from ...renderer import Renderer
from ..expressions.checks import short_conditions
from .decompose import decompose
from .emulate import NARROW, Emulation
from .join_loads import join_loads
from .products import form_multiply_add
from .split_lanes import split_lanes
from .warp_groups import with_indices
from .widths import choose_width
from .words import pack_bits


class Step(NamedTuple):
    """A step of legalizing, one walk; left out where nothing in the kernel, or its target, asks for it.

    promise  what is true after it
    spec     what is legal after it
    asks     ops and dtypes of which one asks for it; none: it is always done
    scalars  whether it is for targets whose vectors only load and store
    """

    name: str
    run: Callable[[UOp, Renderer], UOp]
    promise: str
    spec: Spec = TARGET
    asks: frozenset[Any] = frozenset()
    scalars: bool = False

    def on(self, sink: UOp, renderer: Renderer) -> UOp:
        """What it makes of a kernel."""
        if self.scalars and renderer.target.vector_bytes:
            return sink
        if self.asks:
            order = sink.toposort()
            if self.asks.isdisjoint({n.op for n in order} | {n.dtype.scalar_type for n in order}):
                return sink
        return self.run(sink, renderer)


# fmt: off
#: In this order.
STEPS = [
    Step("choose widths", lambda sink, _: transform(sink, choose_width, "choose widths"),
         "every integer has a width", spec=WIDTHS),
    Step("short conditions", lambda sink, _: short_conditions(sink),
         "no condition asks again what a CHECK says", spec=WIDTHS, asks=frozenset((Ops.CHECK,))),
    Step("pack bits", lambda sink, _: pack_bits(sink),
         "what is packed is a word", spec=WIDTHS, asks=frozenset((Ops.PACK,))),
    Step("emulate narrow floats",
         lambda sink, renderer: transform(sink, Emulation(renderer).change, "emulate narrow floats"),
         "arithmetic on floats that the target has", spec=WIDTHS, asks=frozenset(NARROW)),
    Step("decompose", decompose, "only ops and dtypes that the target has"),
    Step("split lanes", split_lanes, "no arithmetic on vectors, where the target has none", scalars=True),
    Step("place matrices", lambda sink, _: with_indices(sink),
         "WMMAs say where matrices lie", asks=frozenset((Ops.WMMA,)), scalars=True),
    Step("join loads", join_loads, "neighbours are loaded as vectors", scalars=True),
    Step("form multiply-add", form_multiply_add,
         "a product that is only added to is a MULACC, where the target has it"),
]
# fmt: on


def legalize(sink: UOp, renderer: Renderer) -> UOp:
    """The same computation in the ops and dtypes of the renderer's target."""
    for step in STEPS:
        sink = step.on(sink, renderer)
    return sink

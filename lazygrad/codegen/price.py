"""How many operations an op becomes on a target: what a kernel's size is counted in.

A target without a sine computes it in 150 operations, one without half in 20 for each sum. `legalize` itself
is asked, once for each op and its types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..dtype import DType, dtypes
from ..ir.ops import ELEMENTWISE, OPS, Ops
from ..ir.uop import UOp
from ..locks import WeakKeys
from ..renderer import Renderer
from .passes import legalize

#: No op becomes more operations than so many times its rough price (`OPS[op].cost`).
WORST = 60


@dataclass(eq=False)
class Prices:
    """The prices for a renderer's target: `prices(node)` for a node of any form before 6."""

    renderer: Renderer
    known: dict[Any, int] = field(default_factory=dict)

    def __call__(self, node: UOp) -> int:
        if node.op not in ELEMENTWISE or node.op is Ops.CHECK:
            return OPS[node.op].cost
        sources = tuple([s.dtype.scalar_type for s in node.src])
        key = (node.op, node.dtype.scalar_type, sources)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._counted(*key)
        return found

    def _counted(self, op: Ops, dtype: DType, sources: tuple[DType, ...]) -> int:
        if dtypes.index in (dtype, *sources) or all(self._native(op, d) for d in (dtype, *sources)):
            return OPS[op].cost
        values = tuple([_loaded(number, source) for number, source in enumerate(sources)])
        try:
            return max(1, self._size(UOp(op, dtype, values)) - self._size(*values))
        except NotImplementedError:  # compiling will say so
            return OPS[op].cost

    def _native(self, op: Ops, dtype: DType) -> bool:
        """Whether the target has the op and computes in the type, so that nothing need be asked."""
        supports = self.renderer.supports
        return supports(op, dtype) and (not dtypes.is_float(dtype) or supports(Ops.ADD, dtype))

    def _size(self, *values: UOp) -> int:
        """Operations for these values, in the form in which others compute on."""
        wide = [value.cast(dtypes.float32) if dtypes.is_float(value.dtype) else value for value in values]
        made = legalize(UOp.sink(*wide), self.renderer)
        return sum(node.op in ELEMENTWISE for node in made.toposort())


def _loaded(number: int, dtype: DType) -> UOp:
    memory = UOp(Ops.DEFINE_GLOBAL, dtype.ptr(1), (), number)
    return UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, memory.dtype, (memory, UOp.const(dtypes.index, 0))),))


_of: WeakKeys[Renderer, Prices] = WeakKeys()


def prices_for(renderer: Renderer) -> Prices:
    """The prices for a renderer, which remember what was asked."""
    return _of.get(renderer) or _of.put(renderer, Prices(renderer))

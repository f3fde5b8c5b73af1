"""A sum of two constants as a graph, and as text of two languages."""

from tinygrad import dtypes
from tinygrad.ops import Ops, UOp
from tinygrad.renderer.cstyle import CUDARenderer, MetalRenderer

const = UOp(Ops.CONST, dtypes.float, arg=1.0)
add = UOp(Ops.ADD, dtypes.float, src=(const, const), arg=None)
print(add)
print(MetalRenderer().render("example", [const, add]))
print(CUDARenderer("sm_50").render("example", [const, add]))

"""Where a thread is in its grid, in two languages."""

from tinygrad import dtypes
from tinygrad.ops import Ops, UOp
from tinygrad.renderer.cstyle import CUDARenderer, MetalRenderer

first = UOp(Ops.SPECIAL, dtypes.int, arg=("gidx0", 16))
print(MetalRenderer().render([first]))
print(CUDARenderer("sm_50").render([first]))
print(CUDARenderer("sm_50").render("example", [first, UOp(Ops.SPECIAL, dtypes.int, arg=("gidx1", 16))]))

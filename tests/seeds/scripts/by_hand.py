"""A kernel that stores a half and a half, built node by node."""

from tinygrad import dtypes
from tinygrad.ops import Ops, UOp
from tinygrad.renderer.cstyle import MetalRenderer

memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(16), arg=0)
place = UOp(Ops.SPECIAL, dtypes.int, arg=("gidx0", 16))
half = UOp(Ops.CONST, dtypes.float, arg=0.5)
one = UOp(Ops.ADD, dtypes.float, (half, half))
address = UOp(Ops.INDEX, dtypes.float.ptr(16), (memory, place))
store = UOp(Ops.STORE, dtypes.void, (address, one))
print(MetalRenderer().render("rendered", [memory, place, half, one, address, store]))

"""A concrete node and a view of it."""

from tinygrad import Tensor

a = Tensor([[1, 2], [3, 4]]).realize()
total = a + a
view = total.permute(1, 0)
print(total.lazydata.base is total.lazydata, view.lazydata.base is total.lazydata)
print(view.lazydata.st)
print(len(total.lazydata.srcs), a.lazydata.realized)
print(view.lazydata.realized)
total.realize()
print(view.tolist(), view.lazydata.realized is total.lazydata.realized)

"""Two empty squares, added; the sum printed as it is recorded and as it is computed."""

from tinygrad import Tensor

a = Tensor.empty(4, 4)
b = Tensor.empty(4, 4)
print(a + b)
print((a + b).tolist())

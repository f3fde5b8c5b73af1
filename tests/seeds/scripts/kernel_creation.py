"""Three numbers in memory, a product and a sum that become one kernel, and what a child of it reads."""

from tinygrad import Tensor

a = Tensor([1]).realize()
b = Tensor([2]).realize()
c = Tensor([3]).realize()

mul = a * b
out = mul + c
print(mul)
print(out)
out.kernelize()
print(mul)
print(out)

print(out.uop.src[0])
print(out.uop.src[1])
assert str(out.lazydata) == str(out.uop)

child = out + 2
child.kernelize()
print(child.uop.src[1].arg.ast)

Tensor.realize(out)
print(out)
print(out.item())

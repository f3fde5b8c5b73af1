"""One addition of two squares under Opts chosen by hand, for a Mac that need not be here."""

from tinygrad import Tensor
from tinygrad.codegen.kernel import Kernel, Opt, OptOps
from tinygrad.renderer.cstyle import MetalRenderer

total = Tensor.empty(4, 4) + Tensor.empty(4, 4)
ast = total.schedule()[-1].ast
for opts in ([], [Opt(OptOps.UPCAST, 0, 8)], [Opt(OptOps.LOCAL, 0, 2)]):
    k = Kernel(ast, opts=MetalRenderer())
    for opt in opts:
        k.apply_opt(opt)
    k.linearize()
    print(k.to_program().src)

"""A jitted step that calls a jitted forward pass; the flag that avoids it."""

from tinygrad import Tensor, TinyJit


class Model:
    def __init__(self, jit=True):
        self.forward_jit = TinyJit(self.forward) if jit else None

    def forward(self, x):
        return (x * 2).realize()

    def __call__(self, x):
        return self.forward_jit(x) if self.forward_jit is not None else self.forward(x)


for jit in (True, False):
    model = Model(jit)

    @TinyJit
    def train(x, model=model):
        return (model(x) + 1).realize()

    try:
        for n in range(4):
            result = train(Tensor([n]).realize())
        print(result.tolist())
    except RuntimeError as error:
        print(type(error).__name__, str(error)[:91])

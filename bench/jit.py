"""What a call of a TinyJit costs besides its kernels: `python -m bench.jit`. Wall time, best of rounds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.optim import AdamW
from lazygrad.nn.state import get_parameters


def microseconds(call: Callable[[], object], times: int, rounds: int = 300) -> float:
    """The best mean of `times` calls. Many short rounds: one falls between what else the machine does."""
    best = float("inf")
    for _ in range(5):
        call()
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - start) / times)
    return best * 1e6


class Deep:
    """Twenty small layers: a step of many tiny kernels."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(8, 8) for _ in range(20)]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return x


def chain(x: Tensor) -> Tensor:
    """A hundred kernels, each reading what the one before wrote."""
    for _ in range(100):
        x = (x + 1).contiguous()
    return x


def main(arguments: list[str]) -> int:
    x = Tensor.ones(4, 4).contiguous().realize()
    state = Tensor.zeros(4, 4).contiguous().realize()
    one, hundred = TinyJit(lambda x: x + 1), TinyJit(chain)
    write = TinyJit(lambda x: (state.assign(state + x), None)[1])
    draw = TinyJit(lambda: Tensor.rand(4))
    print(f"eager, one kernel                {microseconds(lambda: (x + 1).realize(), 20):8.1f} us")
    print(f"jit, one kernel                  {microseconds(lambda: one(x), 40):8.1f} us")
    kept: list[Tensor] = []

    def keep() -> None:
        kept.append(one(x))
        if len(kept) > 20:
            del kept[:10]

    print(f"jit, one kernel, 10 to 20 kept   {microseconds(keep, 40):8.1f} us")
    print(f"jit, one kernel, all kept        {microseconds(lambda: kept.append(one(x)), 40):8.1f} us")
    print(f"jit, one kernel writing in place {microseconds(lambda: write(x), 40):8.1f} us")
    print(f"jit, one kernel of random numbers{microseconds(draw, 40):8.1f} us")
    each = microseconds(lambda: hundred(x), 20)
    print(f"jit, 100 dependent kernels       {each:8.1f} us   {each / 100:.3f} us a kernel")
    net = Deep()
    optimizer = AdamW(get_parameters(net), lr=0.01)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    batch = Tensor.rand(4, 8).realize()
    jitted = TinyJit(step)
    with Tensor.train():
        eager = microseconds(lambda: step(batch), 1, 20)
        took = microseconds(lambda: jitted(batch), 10)
    captured = jitted.captured
    kernels = captured.kernels if captured is not None else 0
    print(f"eager, an AdamW step             {eager:8.1f} us")
    print(f"jit, the same step               {took:8.1f} us   {kernels} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

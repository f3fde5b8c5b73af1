"""The cases in lazygrad: a TinyJit around what a user writes, as JAX has its jit."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lazygrad import Context, Device, Tensor, TinyJit, dtypes
from lazygrad.config import THREADS
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import Ops
from lazygrad.nn.optim import Adam
from lazygrad.programs.runners import get_runner
from lazygrad.report.roofline import Roofline, forget, roofline
from lazygrad.schedule.kernels.items import ScheduleItem

from ..cases import DECODE_CACHE, DECODE_LAYERS, Arrays, Case
from ..limit import BEYOND, Memory


def chain(x: Tensor) -> Tensor:
    return (((x * 2 + 1) * x - 3) * 0.5 + x).relu() * x


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.linear(weight.T, bias)


def layernorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.layernorm() * weight + bias


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v)


def block(x: Tensor, *weights: Tensor) -> Tensor:
    qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights
    d = x.shape[-1]
    heads = linear(layernorm(x, g1, b1), qkv, qkv_b).chunk(3, -1)
    q, k, v = (part.unflatten(-1, (d // 64, 64)).transpose(1, 2) for part in heads)
    mixed = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).flatten(2)
    x = x + linear(mixed, proj, proj_b)
    return x + linear(linear(layernorm(x, g2, b2), up, up_b).gelu(), down, down_b)


def decode(x: Tensor, caches: Tensor, *weights: Tensor) -> Tensor:
    for layer in range(DECODE_LAYERS):
        qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights[
            12 * layer : 12 * layer + 12
        ]
        q, k, v = linear(layernorm(x, g1, b1), qkv, qkv_b).chunk(3, -1)
        caches[2 * layer, DECODE_CACHE - 1] = k[0]
        caches[2 * layer + 1, DECODE_CACHE - 1] = v[0]
        split = [
            t.unflatten(-1, (8, 64)).transpose(0, 1) for t in (q, caches[2 * layer], caches[2 * layer + 1])
        ]
        mixed = split[0].scaled_dot_product_attention(split[1], split[2]).transpose(0, 1).flatten(1)
        x = x + linear(mixed, proj, proj_b)
        x = x + linear(linear(layernorm(x, g2, b2), up, up_b).gelu(), down, down_b)
    return x


def without_signs(*parts: Tensor) -> Tensor:
    """A line to which each part of a decomposition adds its squares: signs of vectors are free."""
    return sum([part.square().sum(0) for part in parts])


def mlp_loss(x: Tensor, y: Tensor, *weights: Tensor) -> Tensor:
    w1, b1, w2, b2, w3, b3 = weights
    hidden = linear(linear(x, w1, b1).relu(), w2, b2).relu()
    return linear(hidden, w3, b3).sparse_categorical_crossentropy(y)


def cnn_loss(x: Tensor, y: Tensor, *weights: Tensor) -> Tensor:
    c1, b1, c2, b2, w, b = weights
    hidden = x.conv2d(c1, b1).relu().conv2d(c2, b2).relu().max_pool2d(2)
    return linear(hidden.flatten(1), w, b).sparse_categorical_crossentropy(y)


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "matmul": Tensor.matmul,
    "chain": chain,
    "gelu": Tensor.gelu,
    "sum": lambda x, axis=None: x.sum(axis),
    "softmax": lambda x: x.softmax(-1),
    "layernorm": layernorm,
    "conv": Tensor.conv2d,
    "attention": attention,
    "transpose": lambda x: x.T.contiguous(),
    "gather": lambda table, rows: table[rows],
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort()[0],
    "block": block,
    "decode": decode,
    "cholesky": lambda x: x.cholesky(),
    "inverse": lambda x: x.inv(),
    "solve": lambda x: x.solve(x.T),
    "qr": lambda x: without_signs(*x.qr()),
    "eigh": lambda x: without_signs(*x.eigh()),
    "svd": lambda x: without_signs(*x.svd()),
}
LOSSES = {"mlp_step": mlp_loss, "cnn_step": cnn_loss}


def setup(threads: int) -> None:
    """THREADS is in the environment."""


def make(case: Case, arrays: Arrays, dtype: str) -> Callable[[], Any]:
    kind = getattr(dtypes, dtype)
    inputs = [
        (Tensor(a).cast(kind) if a.dtype == np.float32 else Tensor(a)).contiguous().realize() for a in arrays
    ]
    if case.function in LOSSES:
        step = TinyJit(_step(LOSSES[case.function], inputs))
        return lambda: _wait(step())
    function = FUNCTIONS[case.function]
    jitted = TinyJit(lambda *given: function(*given, **case.options).realize())
    return lambda: _wait(jitted(*inputs))


def _wait(result: Tensor) -> Tensor:
    Device[Device.DEFAULT].synchronize()
    return result


def _step(loss_of: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], Tensor]:
    """A training step with Adam; the loss before it."""
    x, y, *weights = inputs
    for weight in weights:
        weight.requires_grad = True
    optimizer = Adam(weights, lr=1e-3)

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = loss_of(x, y, *weights)
            loss.backward()
            return loss.realize(*optimizer.schedule_step())

    return step


def measured_roofline() -> Roofline:
    """Operations a second, and bytes a second of each cache, measured now."""
    with Context(CACHELEVEL=0):
        forget()
        found = roofline(Device.DEFAULT)
    if found is None:
        raise NotImplementedError(f"{Device.DEFAULT} has no roofline")
    return found


def measured_memory(budget: float) -> tuple[float, float]:
    """Bytes a second of reading memory, and of reading and writing it, measured in about so many seconds."""
    if Device[Device.DEFAULT].target.grid:  # its memory is not the host's
        rate = measured_roofline().memory
        return rate, rate
    memory, total = _memory()
    return memory.rates(total, budget)


@functools.cache
def _memory() -> tuple[Memory, Callable[[], Tensor]]:
    """Arrays of the host, kept for the next turn; and a sum of one of them."""
    held = max(Device[Device.DEFAULT].target.memory.sizes)
    memory = Memory(BEYOND * held, THREADS.value)
    x, total = Tensor(memory.x).contiguous().realize(), TinyJit(lambda x: x.sum().realize())
    for _ in range(3):  # a jit captures on its second call
        total(x)
    return memory, lambda: _wait(total(x))


def kernels_of(run: Callable[[], Any], budget: float) -> list[dict[str, Any]]:
    """What one call runs, each timed by itself on the same memory: the least of about `budget` seconds."""
    calls: list[list[tuple[ScheduleItem, str, float, int, int]]] = []
    end = time.perf_counter() + budget
    while len(calls) < 3 or time.perf_counter() < end:
        calls.append([])
        with observe_kernels(lambda item, name, s, ops, n: calls[-1].append((item, name, s or 0.0, ops, n))):
            run()
    found = []
    for same in zip(*calls, strict=True):
        item, name, _, ops, nbytes = same[0]
        opts: Any = ()
        if item.ast.op is Ops.SINK:
            opts = get_runner(item.bufs[0].device, item.ast).spec.applied_opts
        seconds = min(call[2] for call in same)
        text = ", ".join(f"{o.op.name} {o.axis} {o.amount}" for o in opts)
        found.append({"name": name, "seconds": seconds, "ops": ops, "bytes": nbytes, "opts": text})
    return found


def numpy_of(result: Any) -> np.ndarray:
    return result.numpy()

"""Programs of the record by what they are to hold still: each is small, and of a size where choices differ.

They are what `bench speed` has none of: sizes that grow, a budget of memory, ranks and meshes, variances,
horizontal fusion, gradients of attention, kernels that are written directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.gpt import gpt
from lazygrad import Context, Device, Tensor, Variable, checkpoint, dtypes, fft, linalg, nn
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.nn import parallel
from lazygrad.nn.optim import SGD, Adam
from lazygrad.nn.state import get_parameters

from ..growing import Gpt

Program = Callable[[], Any]
FAMILIES: dict[str, Program] = {}


def program(name: str) -> Callable[[Program], Program]:
    """Adds a program to the record."""

    def add(function: Program) -> Program:
        FAMILIES[name] = function
        return function

    return add


def memory(*shape: int, learned: bool = False) -> Tensor:
    """Numbers in memory."""
    found = Tensor.zeros(*shape).contiguous().realize()
    return found.requires_grad_() if learned else found


def gradients(loss: Tensor, *of: Tensor) -> None:
    Tensor.realize(loss, *loss.gradient(*of))


# *** growing sizes


@program("growing rows")
def _growing_rows() -> None:
    """From the third on they have one plan, as only a cache of plans knows."""
    weights = memory(64, 96)
    with Context(CACHELEVEL=1):
        for rows in range(3, 9):
            (memory(rows, 64) @ weights).softmax(-1).sum(0).realize()


@program("growing context")
def _growing_context() -> None:
    model = Gpt(64, 8)
    Tensor.realize(*get_parameters(model))
    with Context(CACHELEVEL=1):
        for count in range(2, 7):
            model([0] * count).argmax().item()


@program("bound sizes")
def _bound() -> None:
    size = Variable("size", 1, 256).bind(100)
    keys, values = memory(4, 256, 32), memory(4, 256, 32)
    kept = keys.shrink((None, (0, size), None)), values.shrink((None, (0, size), None))
    memory(4, 1, 32).scaled_dot_product_attention(*kept).realize()


# *** a budget of memory


@program("budget")
def _budget() -> None:
    """Layers of which a budget computes some again."""
    x = memory(512, 64)
    layers = [memory(64, 64, learned=True) for _ in range(6)]
    with Context(MEMORY_BUDGET=1 << 20):
        found = x
        for weights in layers:
            found = (found @ weights).gelu()
        gradients(found.square().mean(), *layers)


@program("checkpoints")
def _checkpoints() -> None:
    x = memory(256, 64)
    layers = [memory(64, 64, learned=True) for _ in range(4)]
    found = x
    for weights in layers:
        found = checkpoint(lambda x, w: (x @ w).tanh().exp(), found, weights)
    gradients(found.mean(), *layers)


# *** ranks and meshes


def ranked(rank: int, count: int, run: Program) -> Program:
    """The program as one of several ranks plans it; nothing is sent."""

    def as_rank() -> None:
        before = set_world(World(rank, count))
        try:
            with Context(DEV=f"{Device.DEFAULT}:{rank}" if rank else Device.DEFAULT):
                run()
        finally:
            set_world(before)

    return as_rank


class _Layers:
    def __init__(self) -> None:
        self.first, self.norm, self.second = nn.Linear(48, 96), nn.LayerNorm(96), nn.Linear(96, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.norm(self.first(x).gelu()))


def _step(
    lay: Callable[[Any, Mesh], Any], sizes: tuple[int, ...], names: tuple[str, ...], split: Any
) -> Program:
    """Two training steps on a mesh."""

    def run() -> None:
        mesh, model = Mesh(sizes, names), _Layers()
        lay(model, mesh)
        optimizer = Adam(get_parameters(model), lr=1e-3)
        for _ in range(2):
            x = Tensor.zeros(32, 48).contiguous().shard(mesh, split)
            labels = Tensor.zeros(32, dtype=dtypes.int32).contiguous().shard(mesh, split)
            with Tensor.train():
                loss = model(x).sparse_categorical_crossentropy(labels)
                optimizer.zero_grad()
                loss.backward()
                loss.realize(*optimizer.schedule_step())

    return run


def _tensor_parallel(model: _Layers, mesh: Mesh) -> None:
    parallel.data_parallel(model.norm, mesh)
    for layer, axis in ((model.first, 0), (model.second, 1)):
        layer.weight.shard_(mesh, {axis: "model"})
        layer.bias.shard_(mesh, {0: "model"} if axis == 0 else {})


_DATA = _step(parallel.data_parallel, (4,), ("data",), {0: "data"})
_FULL = _step(parallel.fully_sharded, (4,), ("data",), {0: "data"})
_GRID = _step(_tensor_parallel, (2, 2), ("data", "model"), {0: "data"})
FAMILIES |= {
    "sharded batch": _DATA,
    "sharded parameters": _FULL,
    "sharded batch and columns": _GRID,
    "rank 0 of 4: batch": ranked(0, 4, _DATA),
    "rank 3 of 4: batch": ranked(3, 4, _DATA),
    "rank 1 of 4: parameters": ranked(1, 4, _FULL),
    "rank 2 of 4: batch and columns": ranked(2, 4, _GRID),
}


@program("sharded uneven rows")
def _uneven() -> None:
    mesh = Mesh(3, "row")
    x = memory(100, 70).shard(mesh, {0: "row"})
    Tensor.realize(x.softmax(0), (x.T @ x).relu(), x.var(1), x.to(Device.DEFAULT))


# *** variances


@program("variances")
def _variances() -> None:
    """Over rows, columns, a middle axis, everything; with their means, and long ones."""
    x, cube, line = memory(256, 1000), memory(16, 100, 64), memory(1 << 18)
    for found in (x.var(1), x.var(0), cube.std(1), x.var(), line.var()):
        found.realize()
    Tensor.realize(x.mean(1), x.var(1), x.std(0))


@program("normalisations and their gradients")
def _normalisations() -> None:
    x = memory(64, 512, learned=True)
    picture = memory(4, 32, 16, 16, learned=True)
    with Tensor.train():
        for layer, given in (
            (nn.LayerNorm(512), x),
            (nn.RMSNorm(512), x),
            (nn.BatchNorm2d(32), picture),
            (nn.GroupNorm(8, 32), picture),
        ):
            gradients(layer(given).square().mean(), given, *get_parameters(layer))


# *** horizontal fusion


@program("kernels side by side")
def _side_by_side() -> None:
    a, b, c = memory(40, 50), memory(700), memory(9, 9, 9)
    Tensor.realize(a.sum(1), b * b, c.max(2), a.sum(0), (b + 1).sum())


@program("an optimizer's step over many parameters")
def _many() -> None:
    given = [memory(size, 7 * size, learned=True) for size in range(1, 20)]
    optimizer = SGD(given, lr=0.1, momentum=0.9)
    loss = Tensor.stack(*[each.square().sum() for each in given]).sum()
    with Tensor.train():
        loss.backward()
        loss.realize(*optimizer.schedule_step())


@program("two layers of one input")
def _of_one_input() -> None:
    x, first, second = memory(128, 64), memory(64, 48), memory(64, 32)
    Tensor.realize((x @ first).relu(), (x @ second).tanh(), x.sum(1))


# *** attention


def _attention(shape: tuple[int, ...], keys: tuple[int, ...], masked: bool, **how: Any) -> Program:
    def run() -> None:
        q, k, v = memory(*shape, learned=True), memory(*keys, learned=True), memory(*keys, learned=True)
        mask = memory(shape[-2], keys[-2]) if masked else None
        found = q.scaled_dot_product_attention(k, v, attn_mask=mask, **how)
        gradients(found.square().mean(), q, k, v)

    return run


FAMILIES |= {
    "attention and gradients": _attention((2, 4, 128, 64), (2, 4, 128, 64), False),
    "attention and gradients, causal": _attention((1, 4, 256, 64), (1, 4, 256, 64), False, is_causal=True),
    "attention and gradients, a mask": _attention((2, 4, 60, 32), (2, 4, 90, 32), True),
    "attention and gradients, grouped": _attention((1, 8, 64, 64), (1, 2, 64, 64), False, enable_gqa=True),
}


@program("a GPT's step")
def _gpt() -> None:
    model = gpt(nn, layers=1, width=64, tokens=32, vocabulary=100, head_width=32)
    words = memory(2, 32).cast(dtypes.int32).realize()
    loss = model(words).flatten(0, 1).sparse_categorical_crossentropy(words.flatten())
    gradients(loss, *get_parameters(model))


# *** kernels that are written directly


def _matrices(size: int = 24) -> Tensor:
    return (memory(3, size, size) + Tensor.eye(size)).realize()


_DIRECT: dict[str, Callable[[Tensor], Any]] = {
    "qr": lambda a: linalg.qr(a),
    "lu": lambda a: linalg.lu_factor(a),
    "cholesky": lambda a: linalg.cholesky(a),
    "symmetric factors": lambda a: linalg.ldl_factor(a),
    "solve": lambda a: linalg.solve(a, a),
    "triangular solve": lambda a: linalg.solve_triangular(a, a, upper=False),
    "symmetric spectrum": lambda a: linalg.eigh(a),
    "spectrum": lambda a: linalg.eig(a),
    "singular values": lambda a: linalg.svd(a),
    "determinant": lambda a: linalg.det(a),
    "sort": lambda a: a.sort(-1),
    "top k": lambda a: a.topk(5),
    "Fourier transform": lambda a: fft.fft(a.reshape(3, 288, 2)),
    "real Fourier transform": lambda a: fft.rfft(a.reshape(3, 576)),
    "running sum": lambda a: a.cumsum(-1),
}


def _direct(call: Callable[[Tensor], Any]) -> Program:
    def run() -> None:
        found = call(_matrices())
        Tensor.realize(*found) if isinstance(found, tuple) else found.realize()

    return run


FAMILIES |= {f"direct: {name}": _direct(call) for name, call in _DIRECT.items()}


@program("a loop over time and its gradients")
def _loop() -> None:
    x, weights = memory(12, 8, 16), memory(16, 16, learned=True)

    def turn(carry: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        carry = (carry @ weights + given).tanh()
        return carry, carry

    last, every = Tensor.scan(turn, memory(8, 16), x)
    gradients(last.sum() + every.square().sum(), weights)

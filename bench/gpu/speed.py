"""Stage 3, kernels: products, attention, and what moves memory, beside PyTorch, whose products are cuBLAS's.

A case is a Program: what we call, what PyTorch calls, and the operations or bytes that it cannot do without.
Answers are compared before times are taken. In each result: seconds of both, the rate of ours, our kernels by
the GPU's events, and what the model of time believed of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Context, Tensor, TinyJit, dtypes

from .machine import PLAY, Machine
from .stages import Case, Missing
from .summary import OURS
from .timing import Side, compared, kernels_of, theirs, torch_of

#: Kinds of products → our dtype, how far the answers may be apart.
KINDS = {
    "float32": ("float32", 1e-4),
    "tf32": ("float32", 5e-3),
    "bfloat16": ("bfloat16", 2e-2),
    "float16": ("float16", 5e-3),
    "fp8e4m3": ("fp8e4m3", 3e-2),
}
SIZES = (512, 1024, 2048, 4096, 8192)


class Program(NamedTuple):
    """What is computed: arrays, our function and PyTorch's on tensors of them.

    dtype      of both sides' floats
    flops, moved  operations, and bytes, that it takes at least
    flags      of lazygrad while ours is planned
    peer       what PyTorch's side is called
    prepare    makes PyTorch's tensors, where converting them is not enough
    """

    arrays: Callable[[], list[np.ndarray]]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    tolerance: float
    dtype: str = "float32"
    flops: float = 0.0
    moved: float = 0.0
    flags: dict[str, Any] = {}
    peer: str = "torch"
    prepare: Callable[[Any, list[Any]], list[Any]] | None = None

    def call(self) -> Callable[[], Any]:
        """Ours, captured."""
        kind = getattr(dtypes, self.dtype)
        inputs = [
            (Tensor(a).cast(kind) if a.dtype == np.float32 else Tensor(a)).contiguous().realize()
            for a in self.arrays()
        ]

        def run(*given: Any) -> Any:
            found = self.ours(*given)
            return Tensor.realize(*found) if isinstance(found, list | tuple) else found.realize()

        jitted = TinyJit(run)

        def call() -> Any:
            with Context(**self.flags):
                return jitted(*inputs)

        return call

    def side(self, machine: Machine) -> Side:
        """PyTorch's."""
        torch = torch_of(machine)
        tensors = [torch.from_numpy(a).to(machine.torch_device) for a in self.arrays()]
        if self.prepare is not None:
            tensors = self.prepare(torch, tensors)
        else:
            kind = getattr(torch, self.dtype)
            tensors = [t.to(kind) if t.is_floating_point() else t for t in tensors]
        torch.backends.cuda.matmul.allow_tf32 = bool(self.flags.get("TF32"))
        torch.backends.cudnn.allow_tf32 = bool(self.flags.get("TF32"))
        return theirs(machine, lambda: self.theirs(torch, *tensors))

    def play(self, machine: Machine) -> dict[str, Any]:
        """The result of the case."""
        with Context(**self.flags):  # also where its kernels are looked up
            return self._play(machine)

    def _play(self, machine: Machine) -> dict[str, Any]:
        call = self.call()
        found = compared(machine, call, {self.peer: lambda: self.side(machine)}, self.tolerance)
        ours = found.get("sides", {}).get(OURS, {})
        if "seconds" in ours:
            rate = self.flops / 1e12 if self.flops else self.moved / 1e9
            ours["rate"] = f"{rate / ours['seconds']:.1f} {'TFLOP/s' if self.flops else 'GB/s'}"
        return {**found, "kernels": kernels_of(machine, call)}


PARTS: dict[str, Callable[[Machine], dict[str, Program]]] = {}


def cases(machine: Machine, part: str) -> dict[str, Case]:
    return {name: lambda p=program: p.play(machine) for name, program in PARTS[part](machine).items()}


# *** products


def _products(machine: Machine) -> dict[str, Program]:
    found = {}
    for size in SIZES if machine.mode != PLAY else SIZES[:1]:
        for kind, (dtype, tolerance) in KINDS.items():
            found[f"{kind} {size}"] = _product(machine, machine.size(size, 64), kind, dtype, tolerance)
    return found


def _product(machine: Machine, size: int, kind: str, dtype: str, tolerance: float) -> Program:
    fp8 = dtype.startswith("fp8")

    def multiplied(x: Any, w: Any) -> Any:
        return x.matmul(w, dtype=dtypes.float32).cast(dtypes.bfloat16) if fp8 else x @ w

    def cublas(torch: Any, x: Any, w: Any, *scale: Any) -> Any:
        return torch._scaled_mm(x, w, *scale, out_dtype=torch.bfloat16) if fp8 else x @ w

    def to_fp8(torch: Any, tensors: list[Any]) -> list[Any]:
        x, w = (t.to(torch.float8_e4m3fn) for t in tensors)
        one = torch.ones((), device=x.device)
        return [x, w.t().contiguous().t(), one, one]  # cuBLAS takes its second factor by columns

    return Program(
        lambda: [machine.array(size, size, seed=1), machine.array(size, size, seed=2)],
        multiplied,
        cublas,
        tolerance,
        dtype,
        flops=2.0 * size**3,
        flags={"TF32": 1} if kind == "tf32" else {},
        peer="cuBLAS",
        prepare=to_fp8 if fp8 else None,
    )


# *** attention


def _attention(machine: Machine) -> dict[str, Program]:
    found = {}
    shapes = {
        "4x16x1024x64": machine.size((4, 16, 1024, 64), (1, 2, 32, 16)),
        "2x16x4096x128": machine.size((2, 16, 4096, 128), (1, 2, 48, 16)),
    }
    for name, shape in shapes.items():
        for dtype, tolerance in (("float32", 1e-3), ("bfloat16", 3e-2)):
            for causal in (False, True):
                how = f"{dtype} {name}{' causal' if causal else ''}"
                found[f"forward {how}"] = _forward(machine, shape, shape, dtype, tolerance, causal)
                if causal:
                    found[f"backward {how}"] = _backward(machine, shape, dtype, 3 * tolerance)
    query, keys = machine.size(((8, 32, 1, 128), (8, 32, 4096, 128)), ((1, 2, 1, 16), (1, 2, 32, 16)))
    found["a token, 4096 before it"] = _forward(machine, query, keys, "bfloat16", 3e-2, False)
    return found if machine.mode != PLAY else dict(list(found.items())[:3])


def _forward(
    machine: Machine,
    query: tuple[int, ...],
    keys: tuple[int, ...],
    dtype: str,
    tolerance: float,
    causal: bool,
) -> Program:
    batch, heads, rows, width = query
    return Program(
        lambda: [machine.array(*shape, seed=n) for n, shape in enumerate((query, keys, keys))],
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=causal),
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
        tolerance,
        dtype,
        flops=4.0 * batch * heads * rows * keys[2] * width / (2 if causal else 1),
    )


def _backward(machine: Machine, shape: tuple[int, ...], dtype: str, tolerance: float) -> Program:
    def ours(q: Any, k: Any, v: Any, g: Any) -> Any:
        return (q.scaled_dot_product_attention(k, v, is_causal=True) * g).sum().gradient(q, k, v)

    def peers(torch: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(found, (q, k, v), g)

    batch, heads, rows, width = shape
    return Program(
        lambda: [machine.array(*shape, seed=n) for n in range(4)],
        ours,
        peers,
        tolerance,
        dtype,
        flops=14.0 * batch * heads * rows * rows * width / 2,
    )


# *** bandwidth


def _bandwidth(machine: Machine) -> dict[str, Program]:
    rows, columns = machine.size((16384, 4096), (64, 96))
    many = machine.size(1 << 28, 1 << 10)
    size, each = 4.0 * rows * columns, (rows, columns)

    def program(
        ours: Any, peers: Any, moved: float, *shapes: tuple[int, ...], tolerance: float = 1e-4
    ) -> Program:
        def arrays() -> list[np.ndarray]:
            return [machine.array(*shape, seed=n) for n, shape in enumerate(shapes)]

        return Program(arrays, ours, peers, tolerance, moved=moved)

    def looked_up() -> list[np.ndarray]:
        index = np.random.default_rng(5).integers(0, rows, rows).astype(np.int32)
        return [machine.array(rows, columns), index]

    line = (columns,)
    return {
        "two added": program(lambda x, y: x + y, lambda torch, x, y: x + y, 3 * size, each, each),
        "gelu": program(
            lambda x: x.gelu(),
            lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
            2 * size,
            each,
        ),
        "softmax": program(lambda x: x.softmax(-1), lambda torch, x: x.softmax(-1), 2 * size, each),
        "layer norm": program(
            lambda x, w, b: x.layernorm() * w + b,
            lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
            2 * size,
            each,
            line,
            line,
        ),
        "row sums": program(lambda x: x.sum(1), lambda torch, x: x.sum(1), size, each, tolerance=1e-3),
        "column sums": program(lambda x: x.sum(0), lambda torch, x: x.sum(0), size, each, tolerance=1e-3),
        "sum of all": program(
            lambda x: x.sum(), lambda torch, x: x.sum(), 4.0 * many, (many,), tolerance=1e-2
        ),
        "greatest of each row": program(lambda x: x.max(1), lambda torch, x: x.amax(1), size, each),
        "transposed": program(
            lambda x: x.T.contiguous(), lambda torch, x: x.T.contiguous(), 2 * size, each, tolerance=0.0
        ),
        "running sums": program(
            lambda x: x.cumsum(1), lambda torch, x: x.cumsum(1), 2 * size, each, tolerance=1e-3
        ),
        "rows looked up": Program(
            looked_up, lambda x, i: x[i], lambda torch, x, i: x[i.long()], 0.0, moved=2 * size
        ),
        "gradient of softmax": program(
            lambda x: x.softmax(-1).square().sum().gradient(x)[0],
            _softmax_gradient,
            2 * size,
            each,
            tolerance=1e-3,
        ),
    }


def _softmax_gradient(torch: Any, x: Any) -> Any:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(x.softmax(-1).square().sum(), x)[0]


PARTS |= {"products": _products, "attention": _attention, "bandwidth": _bandwidth}


def program_of(machine: Machine, part: str, name: str) -> Program:
    """One by its stage and name."""
    found = PARTS[part](machine)
    if name not in found:
        raise Missing(f"there is no {name} in {part}")
    return found[name]

"""Random functions on PyTorch's tensors, for tests/fuzz/test_torch.py: their text, and what they are given.

A program is data: arguments, steps, how many values it returns. A step has the number of an expression and
small numbers that choose its operands among what there is, so that whatever numbers a shrinking hypothesis
tries make a program. Eager PyTorch goes first and says which steps count: what it refuses, what leaves the
range in which errors are small, and what asks values that are rounded for their order is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.torch.support import torch

#: N is a size that changes between calls where sizes are symbolic.
N = -1
SHAPES = ((N,), (N, 3), (3, N), (), (1, N), (3,), (2, N, 3), (N, 1), (3, 2), (N, 0))
DTYPES = ("float32", "float32", "float32", "float64", "bfloat16", "int64", "int32", "uint8", "bool")
LARGEST, MOST_ELEMENTS, MOST_AXES = 300.0, 200, 4

#: Of values x, y, z; k and m are small numbers.
PLAIN = """
-x; x + y; x - y; x * y; x * 2; x + 0.5; 1 - x; x + k; x * x; x / 2; x.float() / 4; x.double() * 0.5
x.bfloat16() + 1; x.clone(); x.detach(); x.contiguous(); x.sum(); x.sum(k % x.ndim)
x.mean(m % x.ndim, True); x.transpose(0, -1); x.T; x[k % len(x)]; x[..., -1]; x[k % 2 :]; x[:: k % 2 + 1]
x[:-1]; x[..., ::2]; x.flatten(); x.reshape(-1); x.view(-1); x.unsqueeze(k % 2); x.squeeze()
x.unsqueeze(0).expand(2, *x.shape); x.permute(*range(x.ndim)[::-1]); x.narrow(k % x.ndim, 0, 2)
x.split(2)[-1]; x.unbind(-1)[0]; x.chunk(2)[0]; x.flip(k % x.ndim); x.roll(m, k % x.ndim)
x.repeat(2, *[1] * (x.ndim - 1)); x.repeat_interleave(2, k % x.ndim); torch.cat([x, y])
torch.cat([x, y, x], -1); torch.stack([x, y], m % 2); x.tril(); x.diagonal(); x.unfold(0, 2, 1); x @ y
x @ y.T; x.outer(y); x.cumsum(k % x.ndim); x.cumprod(0); x.prod(k % x.ndim); x.to(y.dtype); x.long() + y
F.pad(x, (1, m)); F.pad(x, (1, -1), value=1.0); x.where(x == x, y)
x.index_select(0, torch.tensor([0, 1, 0])); x[torch.tensor([1, 0])]; x[..., torch.tensor([0, -1])]
x.gather(0, x.long() * 0); x.new_zeros(3) + x; x.ravel(); x.index_add(0, torch.tensor([0, 1, 1]), y)
x.scatter_add(0, y.long() * 0, y); torch.ones_like(x) * y; x.mT; x.new_full((2,), 3).sum() + x
x.masked_fill(x != x, 0); torch.full_like(x, 1.5) + x; x.expand(3, *x.shape)[1]
x.index_put((torch.tensor([0, 0]),), y, True); x.select_scatter(y, 0, k % len(x))
x.slice_scatter(y, 0, k % 2); torch.einsum("...i,...i->...", x, y); torch.addmm(x, y, z)
x.addcmul(y, z, value=2); x.lerp(y, 0.5); x.diff(); x.as_strided((2,), (1,)); x.movedim(0, -1)
x.swapaxes(0, 1).contiguous(); x.numel() + x; x.shape[0] * x
"""
#: What is rounded; the result is asked nothing of the next kind.
ROUNDED = """
x.sin(); x.cos(); x.tanh(); x.sigmoid(); x.exp(); (x * x + 1).log(); (x * x + 1).sqrt(); (x * x + 1).rsqrt()
x.softmax(-1); x.log_softmax(k % x.ndim); x.logsumexp(-1); F.gelu(x); F.silu(x); F.softplus(x); x.erf()
x / 3; x / (y * y + 1); x.std(); x.var(k % x.ndim, correction=0); x.norm(); F.layer_norm(x, x.shape[-1:])
x.expm1(); (x * x + 1).pow(0.5); F.normalize(x, dim=-1); x.atan2(y * y + 1); x.mean(); F.mse_loss(x, y)
x.logaddexp(y); F.scaled_dot_product_attention(x, x, x)
F.cross_entropy(x, x.abs().long().clamp(max=0)[..., 0]); x.hypot(y)
"""
#: What is discontinuous, or whose slope is: of values that are not rounded.
STEEP = """
x.relu(); x.abs(); x.sign(); x.floor(); x.round(); x.clamp(-1, 1); x.clamp(min=0.25); x > y; x == y
x <= 0.5; x.maximum(y); x.minimum(y); x.max(); x.amax(k % x.ndim); x.max(k % x.ndim)[0]; x.argmax()
x.sort(k % x.ndim)[0]; x.argsort(0, stable=True); x.topk(2)[0]; torch.where(x > 0, x, y); (x > 0) & (y > 0)
x.bool(); x.int(); ~(x > 0); x.any(k % x.ndim); x.all(); F.leaky_relu(x); F.elu(x); F.hardtanh(x)
x.masked_fill(y > 0, 2); x.min(0)[1]; x % 3; x % 1.5; x.fmod(2); x // 2; x.div(3, rounding_mode="trunc")
x.cummax(0)[0]; x.median(); x.amin(); x.count_nonzero(); F.max_pool1d(x, 2, 1); F.smooth_l1_loss(x, y)
x.clamp(y, z); x.msort(); x.masked_scatter(x > 9, y)
"""
#: They have no value: x is another afterwards, and so is what shares memory with it.
WRITES = """
x.add_(1); x.mul_(2); x.add_(y); x.mul_(y); x.copy_(y); x.zero_(); x.neg_(); x.sub_(y, alpha=2); x.fill_(k)
x[k % len(x)] = y; x[0] = 1; x[..., 0] = y; x[1:] = x[:-1].clone(); x[:-1] += y; x[::2] *= 2; x.T[0] = k
x.transpose(0, -1).add_(y); x.view(-1)[k % 3] = 2; x.diagonal().add_(1); x.t_(); x.unsqueeze_(0)
x.squeeze_(); x.index_add_(0, torch.tensor([0, 1]), y); x.masked_fill_(x != x, 3)
x[torch.tensor([1, 0])] = y; x += x; x.scatter_(0, x.long() * 0, 1); x.detach().mul_(2); x.div_(2)
x.addcmul_(y, z); x.lerp_(y, 0.5); x.squeeze().add_(1); x.flatten().add_(1); x.unbind(0)[-1].mul_(2)
x.split(2)[0].add_(y); x.narrow(0, 0, 1).zero_(); x.data.add_(1); x.index_fill_(0, torch.tensor([0]), 2)
x.index_copy_(0, torch.tensor([1]), y); x.reshape(-1)[0] = 1; x.cumsum_(0); torch.add(x, y, out=x)
x.expand(*x.shape).add_(1); x.resize_(x.shape); x.transpose_(0, -1); x.as_strided((2,), (1,)).add_(1)
"""
#: What is x but for some of its elements.
SCATTERS = """
x.index_put((torch.tensor([0, 1]),), y); x.index_put((torch.tensor([0, 0]),), y, True)
x.index_put((None, torch.tensor([k % 2])), y); x.index_add(0, torch.tensor([0, 1, 1]), y)
x.index_copy(0, torch.tensor([1, 0]), y); x.index_fill(0, torch.tensor([0]), k); x.scatter(0, y.long() * 0, 2)
x.scatter(0, y.long() * 0, y); x.scatter_add(0, y.long() * 0, y); x.select_scatter(y, 0, k % len(x))
x.scatter_reduce(0, y.long() * 0, y, "prod"); x.scatter_reduce(0, y.long() * 0, y, "sum", include_self=False)
x.scatter_reduce(0, y.long() * 0, y, "mean"); x.scatter_reduce(-1, y.long() * 0, y, "amax")
x.slice_scatter(y, 0, k % 2); x.slice_scatter(y, 0, 0, 4, 2); x.diagonal_scatter(y)
x.masked_scatter(x == x, y); x.put(torch.tensor([0, 2]), torch.stack([y.sum(), z.sum()]), True)
torch.zeros_like(x).index_add(0, torch.tensor([0, 1, 1]), y)
F.embedding(x.long() * 0, y); F.embedding_bag(x.long().reshape(1, -1) * 0, y); x[torch.tensor([1, 0, 1])]
F.embedding_bag(x.long().reshape(-1) * 0, y, torch.tensor([0, 1]), mode="max"); x.bincount(); x.clone(); x.mT
torch.cat([x, y]); x.flatten(); x.gather(0, y.long() * 0); x + y
"""
#: How a value is returned: itself, another look at it, a copy.
COPIES = """
x; x.clone(); x.clone(); x.contiguous(); x.detach().clone(); x.reshape(-1).clone(); x.mT.clone()
x.mT.contiguous(); x.transpose(0, -1).clone(memory_format=torch.contiguous_format); x.view(x.shape)
x[:1].clone(); x + 0; x * 1; x.to(x.dtype, copy=True); x.unsqueeze(0).clone(); torch.cat([x])
torch.stack([x])[0]; x.new_empty(x.shape).copy_(x)
"""


class Kind(NamedTuple):
    """Expressions. steep  whether they are of values that are not rounded; writes  whether they have none."""

    texts: tuple[str, ...]
    steep: bool = False
    writes: bool = False


def _split(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for line in text.strip().splitlines() for each in line.split(";"))


KINDS = {
    "plain": Kind(_split(PLAIN)),
    "rounded": Kind(_split(ROUNDED)),
    "steep": Kind(_split(STEEP), steep=True),
    "writes": Kind(_split(WRITES), writes=True),
    "scatters": Kind(_split(SCATTERS)),
}
_COPIES = _split(COPIES)


class Step(NamedTuple):
    """kind: of expression; number: which; operands: which values, the last first; k: small numbers."""

    kind: str
    number: int
    operands: tuple[int, int, int]
    k: tuple[int, int]


class Argument(NamedTuple):
    """The number of a shape and of a dtype; how it lies in memory; whether it wants a gradient.

    lies  0: contiguous; 1: transposed; 2: every second element; 3: inside of something larger; 4: the memory
          of the argument before it
    """

    shape: int
    dtype: int
    lies: int
    wants: bool


class Program(NamedTuple):
    """What is given, what is done, how many values are returned.

    symbolic  whether sizes change
    copies    results besides them: of a value, the last first, and how it is copied
    """

    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    returns: int
    symbolic: bool
    copies: tuple[tuple[int, int], ...] = ()


def programs(
    kinds: Sequence[str] = ("plain", "plain", "rounded", "steep", "writes"),
) -> st.SearchStrategy[Program]:
    """Programs of steps of some kinds."""
    small = st.integers(0, 5)
    argument = st.builds(
        Argument,
        st.integers(0, len(SHAPES) - 1),
        st.integers(0, len(DTYPES) - 1),
        st.integers(0, 4),
        st.booleans(),
    )
    step = st.builds(
        Step,
        st.sampled_from(kinds),
        st.integers(0, 199),
        st.tuples(small, small, small),
        st.tuples(small, small),
    )
    return st.builds(
        Program,
        st.lists(argument, min_size=1, max_size=3).map(tuple),
        st.lists(step, min_size=3, max_size=14).map(tuple),
        st.integers(1, 4),
        st.sampled_from([False, False, False, True]),
        st.lists(st.tuples(small, st.integers(0, len(_COPIES) - 1)), max_size=3).map(tuple),
    )


def arguments(program: Program, n: int, seed: int) -> list[Any]:
    """The arguments, the same for the same seed: quarters from -2 to 2, whole numbers from 0 to 3."""
    source = torch.Generator().manual_seed(seed)
    made: list[Any] = []
    for each in program.arguments:
        dtype = getattr(torch, DTYPES[each.dtype])
        if each.lies == 4 and made and not made[-1].requires_grad:
            made.append(made[-1][..., 1:] if made[-1].ndim else made[-1].view(1))
            continue
        x = _lying([n if size == N else size for size in SHAPES[each.shape]], each.lies, source, dtype)
        made.append(x.requires_grad_(each.wants and dtype.is_floating_point))
    return made


def _lying(shape: list[int], lies: int, source: Any, dtype: Any) -> Any:
    def numbers(*sizes: int) -> Any:
        if dtype.is_floating_point:
            return (torch.randint(-8, 9, sizes, generator=source) / 4).to(dtype)
        return torch.randint(0, 4, sizes, generator=source).to(dtype)

    if lies == 1:
        return numbers(*shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    if lies == 2 and shape:
        return numbers(*shape[:-1], 2 * shape[-1])[..., ::2]
    if lies == 3 and shape:
        return numbers(shape[0] + 2, *shape[1:])[1:-1]
    return numbers(*shape)


def text_of(program: Program, calls: Sequence[tuple[int, int]]) -> str:
    """The function, as far as eager PyTorch takes its steps in each call (of size n, with a seed)."""
    names = [f"a{number}" for number in range(len(program.arguments))]
    count, lines = len(names), list[str]()

    def played() -> list[dict[str, Any]]:
        states = [dict(zip(names[:count], arguments(program, *call), strict=True)) for call in calls]
        for line in lines:
            for state in states:
                exec(line, NAMES, state)
        return states

    states = played()
    for number, step in enumerate(program.steps):
        kind, name = KINDS[step.kind], f"v{number}"
        chosen = [names[-1 - place % len(names)] for place in step.operands]
        text = _with_names(kind.texts[step.number % len(kind.texts)], [*chosen, *map(str, step.k)])
        lines.append(text if kind.writes else f"{name} = {text}")
        fit = [_counts(kind, lines[-1], name, chosen, state) for state in states]
        if all(fit):
            names += [] if kind.writes else [name]
        else:
            lines.pop()
            states = played()  # it may have written before it was refused
    returned = ", ".join([*names[-program.returns :], *_copies(program, names, states)])
    return (
        "\n    ".join([f"def function({', '.join(names[:count])}):", *lines, f"return [{returned}]"]) + "\n"
    )


def _copies(program: Program, names: list[str], states: list[dict[str, Any]]) -> list[str]:
    """The copies that PyTorch makes in each call."""
    found = []
    for place, number in program.copies:
        name = names[-1 - place % len(names)]
        text = _with_names(_COPIES[number], [name] * 5)
        try:
            for state in states:
                eval(text, NAMES, state)
        except (RuntimeError, IndexError):
            continue
        found.append(text)
    return found


def _with_names(text: str, names: Sequence[str]) -> str:
    meant = dict(zip("xyzkm", names, strict=True))
    return re.sub(r"\b[xyzkm]\b", lambda found: meant[found[0]], text)


def _counts(kind: Kind, line: str, name: str, operands: list[str], state: dict[str, Any]) -> bool:
    """Whether PyTorch takes a step, and what there is then is compared well."""
    if kind.steep and any(_is_rounded(state[each]) for each in operands):
        return False
    try:
        exec(line, NAMES, state)
    except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError):
        return False
    made = state[operands[0] if kind.writes else name]
    if made.dtype == torch.uint8 and any(_has_no_uint8(state[each]) for each in operands):
        return False
    return all(_is_fit(x) for x in state.values())


def _has_no_uint8(x: Any) -> bool:
    """Whether floats of a value are too small for a uint8: C leaves open what they become, and PyTorch's 255
    for -1 is this processor's. (Ours is 0 on each.)
    """
    return x.is_floating_point() and bool((x.detach() <= -1).any())


def _is_rounded(x: Any) -> bool:
    if x.dtype == torch.bfloat16:
        return True
    return x.is_floating_point() and bool((x.detach() * 64 != (x.detach() * 64).round()).any())


def _is_fit(x: Any) -> bool:
    """Whether there are few numbers, and all are finite and small."""
    y = x.detach().double()
    return x.numel() <= MOST_ELEMENTS and x.ndim <= MOST_AXES and bool((y.abs() <= LARGEST).all())


NAMES: dict[str, Any] = {} if torch is None else {"torch": torch, "F": torch.nn.functional}

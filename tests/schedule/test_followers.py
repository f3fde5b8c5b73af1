"""Kernels that wait for each other as nests of one: in pieces that keep step, or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.aligned_chunks import in_chunks, shared_memory
from lazygrad.codegen.lowering.lower import lowered
from lazygrad.codegen.nests import nests_of
from lazygrad.codegen.opt import Loops, Opt, OptOps, apply_opts
from lazygrad.codegen.select_opts import select_opts
from lazygrad.device import Device
from lazygrad.ir.args import AxisType
from lazygrad.ir.index import evaluate
from lazygrad.ir.nest import ranges_of
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.memo import forget_all
from lazygrad.schedule import plan
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.horizontal_fusion.joined_kernel import joined_kernel
from lazygrad.schedule.what_if import Planned
from lazygrad.target import Target

pytestmark = pytest.mark.choice


def memory(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return Tensor(values).realize()


@pytest.fixture
def on_cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans are for two cores that are woken soon, wherever the test runs."""
    renderer = Device["CPU"].renderer
    with Context(CACHELEVEL=1):
        forget_all()
        target = cores(getattr(request, "param", 2000.0))
        monkeypatch.setattr(plan, "_target_of", lambda roots: (target, renderer))
        monkeypatch.setattr(renderer, "target", target)
        yield
        forget_all()


def cores(fork: float = 2000.0) -> Target:
    target = Device["CPU"].renderer.target
    return replace(target, threads=2, launch=replace(target.launch, fork=fork))


def nests(tensor: Tensor) -> list[int]:
    """For each kernel, how many nests it has."""
    return [len(nests_of(item.ast)) for item in tensor.schedule()]


@pytest.mark.parametrize("on_cores", [6000.0], indirect=True)
def test_gelu_follows_a_product_of_one_row(on_cores):
    x, w = memory(1, 512), memory(512, 512, seed=1)
    made = (x @ w.T).contiguous().gelu()
    assert nests(made) == [2]
    assert_gelu(made, x.numpy() @ w.numpy().T)


def assert_gelu(made: Tensor, x: np.ndarray) -> None:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    np.testing.assert_allclose(made.numpy(), 0.5 * x * (1 + np.tanh(inner)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("on_cores", [700.0], indirect=True)
def test_pieces_need_not_divide_the_turns(on_cores):
    """Those of a product's loop are walked in blocks, as many as GELU's has turns."""
    x, w = memory(1, 64), memory(208, 64, seed=1)
    made = (x @ w.T).contiguous().gelu()
    (item,) = made.schedule()
    both = [lowered(nest) for nest in nests_of(item.ast)]
    opts = [[opt for opt in select_opts(nest, cores()).opts if opt.op is not OptOps.THREAD] for nest in both]
    found = in_chunks(both, opts, 3, cores())
    assert [own[-1] for own in found.opts] == [Opt(OptOps.THREAD, 0, 3)] * 2
    assert any(OptOps.TILE in [opt.op for opt in own] for own in found.opts)
    assert_gelu(made, x.numpy() @ w.numpy().T)


@pytest.mark.usefixtures("on_cores")
@pytest.mark.parametrize("check", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_step_of_decoding_writes_and_attends_in_one_kernel(check):
    """Heads keep step: rows are written to the memory of keys and values, and read with those before."""
    rows, cache = memory(3, 8 * 64), memory(2, 256, 8 * 64, seed=1)
    old = cache.numpy()
    new = (rows * rows.sum(0)).contiguous()
    with Context(CHECK=check):
        cache[0, 7] = new[1]
        cache[1, 7] = new[2]
        q, k, v = (t.unflatten(-1, (8, 64)).transpose(0, 1) for t in (new[:1], cache[0], cache[1]))
        mixed = q.scaled_dot_product_attention(k, v)
        *_, item = mixed.schedule()
        assert len(nests_of(item.ast)) == 5
        assert len(item.outputs) == 4  # both rows go to the same memory
        made = mixed.numpy()
    old[0, 7], old[1, 7] = new.numpy()[1], new.numpy()[2]
    np.testing.assert_array_equal(cache.numpy(), old)
    keys, values = (each.reshape(256, 8, 64).transpose(1, 0, 2) for each in old)
    scores = np.exp(np.einsum("hd,hjd->hj", new.numpy()[0].reshape(8, 64), keys) / 8)
    expected = np.einsum("hj,hjd->hd", scores / scores.sum(1, keepdims=True), values)
    np.testing.assert_allclose(made[:, 0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("on_cores")
def test_what_needs_every_piece_waits():
    x, w = memory(1, 512), memory(512, 512, seed=1)
    assert nests((x @ w).contiguous().softmax()) == [1, 1]


@pytest.mark.usefixtures("on_cores")
def test_what_reads_old_memory_that_is_written_later_has_a_kernel_of_its_own():
    x, w = memory(64, 64), memory(64, seed=1)
    before = x.numpy()
    sums = (x * w).sum(1).contiguous()
    x.assign(sums.reshape(64, 1).expand(64, 64) + 1)
    assert nests(x) == [1, 1]
    np.testing.assert_allclose(x.numpy()[:, 0], (before * w.numpy()).sum(1) + 1, rtol=1e-4, atol=1e-5)


def test_where_no_core_is_woken_each_waits():
    x = memory(4, 5)
    sums = x.sum(1).contiguous()
    assert nests(x / sums.reshape(4, 1)) == [1, 1]


# *** which element belongs to which piece

MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "as it is": lambda y: y,
    "flat": lambda y: y.flatten(),
    "rows of halves": lambda y: y.reshape(32, 8),
    "sums of rows": lambda y: y.sum(1),
    "each row turned around": lambda y: y.flip(1),
    "every second row": lambda y: y[::2],
    "transposed": lambda y: y.T,
    "turned around": lambda y: y.flip(0),
    "from the second row on": lambda y: y[1:],
    "moved by one": lambda y: y[:-1].pad(((1, 0), (0, 0))),
    "sums of columns": lambda y: y.sum(0),
    "neighbours": lambda y: y[1:] + y[:-1],
    "halves exchanged": lambda y: y.reshape(2, 8, 16).flip(0),
    "as windows": lambda y: y.unfold(0, 3, 1).sum(-1),
}
#: The first of them need of each row no other row.
IN_STEP = 6


@pytest.mark.parametrize("most", [16, 6])
@pytest.mark.parametrize("name", MOVES)
def test_no_piece_touches_what_belongs_to_another(name, most):
    y = (memory(16, 16).exp() * 2).contiguous()
    template = Planned(Request.of([MOVES[name](y).exp().contiguous().uop]), fuse=True).template
    assert len(template.kernels) == 2
    both = [lowered(nest) for nest in nests_of(joined_kernel(template.kernels).ast)]
    opts = [[opt for opt in select_opts(nest, cores()).opts if opt.op is not OptOps.THREAD] for nest in both]
    found = in_chunks(both, opts, most, cores())
    if name in list(MOVES)[:IN_STEP]:
        assert found is not None
    if found is not None:  # of others too, as of blocks of a transposed matrix
        assert 2 <= found.shares <= most
        owners = _owners(both, found.opts)
        assert len(owners) >= 16
        assert all(len(each) == 1 for each in owners.values())


def _owners(nests: list[UOp], opts: list[list[Opt]]) -> dict[tuple[int, int], set[int]]:
    """(memory, element) → the pieces that touch it."""
    owners: dict[tuple[int, int], set[int]] = {}
    for nest, own in zip(nests, opts, strict=True):
        for node in apply_opts(Loops.of(nest), own, cores()).toposort():
            if node.op is not Ops.INDEX or node.src[0].arg not in shared_memory(nests):
                continue
            loops = sorted(ranges_of(node), key=lambda r: r.arg.id)
            (cut,) = [n for n, r in enumerate(loops) if r.arg.kind is AxisType.THREAD]
            turns = [r.src[0].arg for r in loops]
            for at in itertools.product(*map(range, turns)):
                place = evaluate(node.src[1], dict(zip(loops, at, strict=True)))
                piece = at[cut] * own[-1].amount // turns[cut]
                owners.setdefault((node.src[0].arg, place), set()).add(piece)
    return owners

"""Where in a plan ranks begin to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lazygrad import Tensor
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.ir.ops import Ops
from lazygrad.tensor.storage import base_of


@pytest.fixture
def two_ranks() -> Iterator[None]:
    """A world of two of which this process is the first; nothing can be sent."""
    before = set_world(World(0, 2))
    yield
    set_world(before)


@pytest.mark.choice
@pytest.mark.usefixtures("two_ranks")
def test_kernels_that_need_no_result_run_meanwhile() -> None:
    mesh = Mesh(2, "data")
    x = Tensor.ones(4, 4).contiguous().shard(mesh, {0: "data"}).realize()
    total, other = x.sum(0).contiguous().exp(), (x * 2).contiguous().sum(1)
    items = total.schedule(other)
    assert [item.ast.op.name for item in items] == ["SINK", "COLLECTIVE", *["SINK"] * 3]
    assert [number for number, item in enumerate(items) if items[1].bufs[0] in item.inputs] == [3]


@pytest.mark.usefixtures("two_ranks")
def test_a_layer_on_512_devices_sends_what_the_books_say() -> None:
    """Two weights in parts along both axes of a mesh, the batch along one: each weight is gathered along that
    one, and its gradient summed in parts; the sums along the other are one in each direction.
    """
    set_world(World(0, 512))
    mesh = Mesh((64, 8), ("data", "model"), [f"NULL:{number}" for number in range(512)])

    def weights(*shape: int, **split: int) -> Tensor:
        made = Tensor.empty(*shape, device="NULL", requires_grad=True)
        return made.shard_(mesh, {axis: name for name, axis in split.items()}).realize()

    first, second = weights(1024, 4096, data=0, model=1), weights(4096, 1024, data=1, model=0)
    x = weights(2048, 1024, data=0)
    ((x @ first).relu() @ second + x).square().mean().backward()
    gradients = [tensor.grad for tensor in (first, second, x) if tensor.grad is not None]
    items = Tensor.schedule(*gradients)
    kinds = sorted(item.ast.arg.kind for item in items if item.ast.op is Ops.COLLECTIVE)
    assert kinds == ["all_gather"] * 2 + ["all_reduce"] * 2 + ["reduce_scatter"] * 2


@pytest.mark.usefixtures("two_ranks")
def test_a_table_that_is_read_and_multiplied_has_one_sum_of_its_gradients() -> None:
    """The words' rows are terms, too: what both ways give is added before it is sent."""
    mesh = Mesh(2, "data")
    table = Tensor.ones(50, 8).contiguous().shard(mesh).realize().requires_grad_()
    words = Tensor([[1, 2, 3], [4, 1, 0]]).shard(mesh, {0: "data"}).realize()
    (table[words] @ table.T).exp().sum().backward()
    items = Tensor.schedule(table.grad)
    sent = [item.ast.arg.kind for item in items if item.ast.op is Ops.COLLECTIVE]
    assert sent == ["all_reduce"]


@pytest.mark.usefixtures("two_ranks", "undisturbed")
def test_what_nobody_holds_is_no_part_of_what_ranks_plan() -> None:
    """It is gone at once on each of them, whenever their collectors run."""
    x = Tensor.ones(4, 4).contiguous().shard(Mesh(2, "data"), {0: "data"}).realize()
    held = x.sum(0)
    other = held + 1
    del held, other
    x.assign(x + 1)
    assert [item.ast.op for item in x.schedule()] == [Ops.SINK]


@pytest.mark.usefixtures("two_ranks")
@pytest.mark.parametrize("make", [lambda x: (x * 2).contiguous(), lambda x: x.sum(0)], ids=["parts", "sum"])
def test_what_is_made_anew_is_planned_anew(make: Callable[[Tensor], Tensor]) -> None:
    """Whether an equal value of before still exists depends on each rank's collector."""
    x = Tensor.ones(4, 4).contiguous().shard(Mesh(2, "data"), {0: "data"}).realize()
    before = make(x)
    reader = before + 1  # which keeps the graph of what is computed, as garbage may
    kernels = [item.kernel for item in before.schedule()]
    again = [item.kernel for item in make(x).schedule()]
    assert [kernel.arg.program for kernel in again] == [kernel.arg.program for kernel in kernels]
    assert not set(again) & set(kernels)
    del reader


@pytest.mark.usefixtures("two_ranks", "undisturbed")
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_sent_with_a_write_does_not_depend_on_who_shares_the_memory(shared: bool) -> None:
    """On one rank garbage may have it, and the write goes to other memory there."""
    x = Tensor.ones(4, 4).contiguous().shard(Mesh(2, "data"), {0: "data"}).realize()
    value = x * 2
    node = value.uop
    value.realize()
    if not shared:
        del node
    held = value.sum(0)
    value.assign(value + 1)
    memory = value._memory()
    assert memory is not None
    assert ("supersedes" in base_of(memory.version.src[0].src[0]).facts) is shared
    assert [item.ast.op for item in value.schedule()].count(Ops.COLLECTIVE) == 1
    assert held.shape == (4,)


@pytest.mark.usefixtures("two_ranks")
def test_a_rank_plans_its_own_part_alone() -> None:
    """As large a plan for many ranks as for two."""
    set_world(World(0, 512))
    x = Tensor.ones(1024, 4).shard(Mesh(512, "data"), {0: "data"})
    assert len(((x * 2).sum(0) + 1).schedule()) == 5

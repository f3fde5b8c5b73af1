"""Where in a plan ranks begin to send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lazygrad import Tensor
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh


@pytest.fixture
def two_ranks() -> Iterator[None]:
    """A world of two of which this process is the first; nothing can be sent."""
    before = set_world(World(0, 2))
    yield
    set_world(before)


@pytest.mark.usefixtures("two_ranks")
def test_kernels_that_need_no_result_run_meanwhile() -> None:
    mesh = Mesh(2, "data")
    x = Tensor.ones(4, 4).contiguous().shard(mesh, {0: "data"}).realize()
    total, other = x.sum(0).contiguous().exp(), (x * 2).contiguous().sum(1)
    items = total.schedule(other)
    assert [item.ast.op.name for item in items] == ["SINK", "COLLECTIVE", *["SINK"] * 4]
    assert [number for number, item in enumerate(items) if items[1].bufs[0] in item.inputs] == [4]


@pytest.mark.usefixtures("two_ranks")
def test_a_rank_plans_its_own_part_alone() -> None:
    """As large a plan for many ranks as for two."""
    set_world(World(0, 512))
    x = Tensor.ones(1024, 4).shard(Mesh(512, "data"), {0: "data"})
    assert len(((x * 2).sum(0) + 1).schedule()) == 5

"""Memory of large results that is kept: when it is given again, and when it is let go."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = needs("torch")


@pytest.fixture
def pool() -> Any:
    made = door.recycled.Pool()
    yield made
    if made._timer is not None:
        made._timer.cancel()


def kept(pool: Any, size: int = 40_000) -> Any:
    return door.recycled.RecycledMemory((size,), (1,), torch.float32, pool)


def test_memory_is_given_again_when_no_tensor_is_in_it(pool):
    result = kept(pool)
    one = result.tensor()
    places = [one.data_ptr()]
    part = one[1:]
    del one
    other = result.tensor()
    assert other.data_ptr() not in places  # `part` is there
    places.append(other.data_ptr())
    del part
    assert result.tensor().data_ptr() == places[0]
    assert (other.shape, other.stride(), other.dtype) == ((40_000,), (1,), torch.float32)


@pytest.mark.parametrize(
    "hold",
    [
        lambda x: x.untyped_storage(),
        lambda x: x.storage(),
        lambda x: memoryview(x.numpy()),
        lambda x: torch.utils.dlpack.to_dlpack(x),
        lambda x: torch.empty(0).set_(x.untyped_storage()),
        lambda x: x.detach(),
    ],
    ids=["storage", "typed storage", "memoryview", "capsule", "set_", "detach"],
)
def test_memory_that_somebody_holds_without_the_tensor_is_not_given_again(pool, hold):
    result = kept(pool)
    for _ in range(2):
        one = result.tensor()
        place, held = one.data_ptr(), hold(one)
        del one
        assert result.tensor().data_ptr() != place
        del held


def test_memory_that_was_asked_for_as_an_object_makes_room_for_other(pool):
    """PyTorch keeps the object, so nobody can tell whether somebody still has it."""
    result = kept(pool)
    for _ in range(2):
        result.tensor().untyped_storage()
    made = {result.tensor().data_ptr() for _ in range(3)}
    assert len(made) == 1
    assert len(result.blocks) == 2


def test_two_blocks_are_kept_for_a_result(pool):
    result = kept(pool)
    held = [result.tensor() for _ in range(4)]
    assert len({each.data_ptr() for each in held}) == 4
    assert len(result.blocks) == 2
    assert pool.nbytes == 2 * 160_000


def test_a_result_can_be_written_and_differentiated_as_a_new_tensor(pool):
    result = kept(pool)
    result.tensor()
    again = result.tensor().fill_(1).requires_grad_()
    assert again.is_leaf
    assert not again._is_view()
    (again * 2).sum().backward()
    assert again.grad.sum() == 80_000


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.share_memory_(),
        lambda x: x.untyped_storage().resize_(4),
        lambda x: x.resize_(2 * x.numel()),
        lambda x: x.set_(torch.empty(0)),
    ],
    ids=["share_memory_", "resize", "resize of the tensor", "set_"],
)
def test_memory_that_has_changed_is_not_given_again(pool, change):
    result = kept(pool)
    one = result.tensor()
    change(one)
    del one
    assert result.tensor().untyped_storage().nbytes() == 160_000
    assert not result.tensor().is_shared()


def test_no_more_than_a_bound_is_kept(pool, monkeypatch):
    monkeypatch.setattr(door.recycled, "MOST", 200_000)
    first, second = kept(pool), kept(pool)
    held = [first.tensor(), second.tensor()]
    assert pool.nbytes == 160_000
    assert [len(each.blocks) for each in (first, second)] == [1, 0]
    assert len(held) == 2


def test_what_is_not_asked_for_is_let_go(pool, monkeypatch):
    monkeypatch.setattr(door.recycled, "IDLE", 0.02)
    result = kept(pool)
    value = result.tensor().fill_(3)
    for _ in range(200):
        if pool._timer is None:
            break
        time.sleep(0.01)
    assert (pool.results, pool.nbytes, result.blocks) == (set(), 0, [])
    assert value.sum() == 120_000  # it lives on


def test_a_child_process_begins_with_nothing(pool):
    result = kept(pool)
    result.tensor()
    timer = pool._timer
    pool.in_child()
    timer.cancel()
    assert (pool.nbytes, pool._timer, result.blocks) == (0, None, [])


def test_threads_get_memory_of_their_own(pool):
    result = kept(pool)

    def run(number: int) -> bool:
        mine = result.tensor().fill_(number)
        time.sleep(0.0005)
        return bool((mine == number).all())

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(100)))


def test_a_compiled_graph_keeps_its_large_results():
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: (x + 1, x[0] * 2), tracing_mode="fake")(
        torch.ones(200, 200)
    )
    call = door.replay.CompiledGraph(graph)
    places = set()
    for number in range(4):
        large, small = call(torch.full((200, 200), float(number)))
        assert large[3, 4] == number + 1
        assert small[5] == 2 * number
        places.add(large.data_ptr())
    assert len(places) <= 2  # `large` is held until the next one is there

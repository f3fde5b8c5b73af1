"""Every kind of collective, with lengths even, uneven and zero, compared with what numpy says."""

import numpy as np
from mpi4py import MPI

from lazygrad import distributed
from lazygrad.device.world import world
from lazygrad.dtype import dtypes

distributed.init(seed=1)
transport, size, rank = world().transport, distributed.world_size(), distributed.rank()
every = tuple(range(size))
both = MPI.COMM_WORLD
random = np.random.default_rng(rank)


def start(kind, ranks, op, sends, receives, dtype=dtypes.float32):
    return transport.start(kind, ranks, op, sends, receives, dtype)


for count in (0, 1, 1000, 50_001, 700_001):  # nothing, one message, and many of them
    mine = random.random(count, np.float32)
    values = both.allgather(mine)
    total = values[0]
    for value in values[1:]:
        total = total + value  # in the order of the ranks, so equal to the bit
    found = np.zeros_like(mine)
    start("all_reduce", every, "ADD", [mine], [found]).wait()
    assert (found == total).all(), count

    in_place = mine.copy()
    start("all_reduce", every, "ADD", [in_place], [in_place]).wait()
    assert (in_place == total).all(), count

    ends = np.cumsum([0] + [count // size + (place < count % size) for place in every])
    parts = [slice(ends[place], ends[place + 1]) for place in every]
    own = np.zeros_like(mine[parts[rank]])
    start("reduce_scatter", every, "ADD", [mine[part] for part in parts], [own]).wait()
    assert (own == total[parts[rank]]).all(), count

    gathered = np.zeros_like(mine)
    start("all_gather", every, None, [own], [gathered[part] for part in parts]).wait()
    assert (gathered == total).all(), count

    # Begun together, and waited for in another order on each rank.
    results = [np.zeros_like(mine) for _ in range(3)]
    begun = [start("all_reduce", every, "ADD", [mine], [result]) for result in results]
    for request in begun if rank % 2 else begun[::-1]:
        request.wait()
    assert all((result == total).all() for result in results), count

    root = (*every[1:], 0)
    told = np.zeros_like(mine)
    start("broadcast", root, None, [mine] if rank == 1 else [], [told]).wait()
    assert (told == values[1]).all(), count

    sent = [np.full(count + 2 * place + rank, 10 * rank + place, np.float32) for place in every]
    came = [np.zeros(count + 2 * rank + place, np.float32) for place in every]
    start("all_to_all", every, None, sent, came).wait()
    assert all((part == 10 * place + rank).all() for place, part in enumerate(came)), count

    after, before = (rank + 1) % size, (rank - 1) % size
    out = [mine if place == after else mine[:0] for place in every]
    start("send", every, None, out, [told if place == before else told[:0] for place in every]).wait()
    assert (told == values[before]).all(), count

# What was begun goes on while its rank waits for something else: ranks 1 and up are late by a sum.
wide = np.full(3_000_001, rank + 1, np.float32)
for wait in (lambda: distributed.agree("a test", b""), lambda: distributed.broadcast(rank)):
    result = np.zeros_like(wide)
    request = start("all_reduce", every, "ADD", [wide], [result])
    if rank:
        request.wait()
    wait()
    request.wait()
    assert (result == size * (size + 1) / 2).all(), result

worst = np.array([np.nan if rank == 0 else 1.0, -rank, 0.0], np.float32)
found = np.zeros_like(worst)
start("all_reduce", every, "MAX", [worst], [found]).wait()
assert np.isnan(found[0]), found
assert found[1] == 0, found
flags = np.array([True, rank == 0, False])
some = np.zeros_like(flags)
start("all_reduce", every, "ADD", [flags], [some], dtypes.bool).wait()
assert some.tolist() == [True, True, False], some

if size > 2:  # each rank takes part in as many collectives as the others, whatever its group
    group = (0, 1) if rank < 2 else every[2:]
    inner = np.zeros(1, np.float32)
    start("all_reduce", group, "ADD", [np.full(1, rank + 1, np.float32)], [inner]).wait()
    assert inner[0] == sum(member + 1 for member in group), inner
distributed.barrier()
distributed.print_main("all are right")

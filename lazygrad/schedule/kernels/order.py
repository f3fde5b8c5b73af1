"""In which order the kernels of a plan run: one in which memory in between is free again early.

To find the best order is NP-hard (Sethi 1975, "Complete register allocation problems"), so an order is
improved by a rule: a kernel that is ready and takes no more memory than it frees runs at once, what frees
most first. So a weight's gradient is computed right after that of what its layer made, and not at the end.
The result is used where it needs less memory than the order as it was.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from .template import Template

#: Fewer kernels have next to nothing to choose.
SHORTEST = 4
#: So little of what it reads a kernel of a rank may take more than it frees: a choice, above what a bias's
#: gradient is of what it sums up, below what a layer makes of what it reads.
LITTLE = 1 / 4


def order_kernels(template: Template) -> Template:
    """The same kernels in the order that needs least memory for what only they can reach."""
    if len(template.kernels) < SHORTEST:
        return template
    before = template.before
    memory = [(sorted(users), output.nbytes) for output, users in template.touching().items()]
    given = list(range(len(before)))
    depth = template.depth_first([template.maker_of[output] for _, output in template.results])
    orders = [given, depth, _freeing_early(given, before, memory), _freeing_early(depth, before, memory)]
    if template.sends:
        # what comes from others is kept until it is summed up
        orders.insert(0, _freeing_early(depth, before, memory, LITTLE))
    best = min(orders, key=lambda order: _most(order, memory))
    return template if best == given else template.ordered(best)


def _freeing_early(
    order: Sequence[int],
    before: Sequence[Sequence[int]],
    memory: Sequence[tuple[list[int], int]],
    little: float = 0.0,
) -> list[int]:
    """The order, but whatever is ready and takes no more memory than it frees comes at once.

    before  the kernels that must run before each     memory  (who uses it, bytes)
    little  this part of what it uses it may take more: of several that read a memory only the last frees it
    """
    rank = {kernel: number for number, kernel in enumerate(order)}
    after: list[list[int]] = [[] for _ in order]
    for kernel, needed in enumerate(before):
        for earlier in needed:
            after[earlier].append(kernel)
    waits = [len(needed) for needed in before]
    used_by: list[list[int]] = [[] for _ in order]
    grows = [0] * len(order)  # bytes that a kernel would take now, less what it would free
    left = [len(users) for users, _ in memory]
    begun = [False] * len(memory)
    for number, (users, nbytes) in enumerate(memory):
        for kernel in users:
            used_by[kernel].append(number)
            grows[kernel] += nbytes if len(users) > 1 else 0
    spare = [little * sum(memory[number][1] for number in numbers) for numbers in used_by] if little else []
    ready = [rank[kernel] for kernel in order if not waits[kernel]]
    heapq.heapify(ready)
    early: list[tuple[int, int]] = []  # (how much it grows, its rank), perhaps as it was
    done: dict[int, None] = {}
    while ready:
        if early:
            growth, place = heapq.heappop(early)
            kernel = order[place]
            if growth != grows[kernel]:
                continue
        else:
            kernel = order[heapq.heappop(ready)]
        if kernel in done:
            continue
        done[kernel] = None
        changed = []
        for number in used_by[kernel]:
            users, nbytes = memory[number]
            left[number] -= 1
            if not begun[number]:
                begun[number] = True
                changed += [user for user in users if user not in done]
                for user in users:
                    grows[user] -= nbytes
            if left[number] == 1:
                last = next(user for user in users if user not in done)
                grows[last] -= nbytes
                changed.append(last)
        for later in after[kernel]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, rank[later])
                changed.append(later)
        for each in changed:
            if not waits[each] and grows[each] <= (spare[each] if little else 0):
                heapq.heappush(early, (grows[each], rank[each]))
    return list(done)


def _most(order: Sequence[int], memory: Sequence[tuple[list[int], int]]) -> int:
    """The bytes in use at most."""
    rank = {kernel: number for number, kernel in enumerate(order)}
    change = [0] * (len(order) + 1)
    for users, nbytes in memory:
        places = [rank[user] for user in users]
        change[min(places)] += nbytes
        change[max(places) + 1] -= nbytes
    most = now = 0
    for step in change:
        now += step
        most = max(most, now)
    return most

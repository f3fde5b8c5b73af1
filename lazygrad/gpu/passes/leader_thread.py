"""What only the first thread of a workgroup stores, only it computes (form 6, between nest and list).

acc1 = sum of temp0                        if (lidx0 == 0) {
if (lidx0 == 0) data0[...] = acc1            acc1 = sum of temp0
                                 becomes     data0[...] = acc1
                                           }
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.nest import Block, Guard
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort

Item = UOp | Block
#: What all threads do, or what changes memory.
_TOGETHER = (Ops.STAGE, Ops.STORE, Ops.FETCH, Ops.BARRIER, Ops.SHUFFLE)


def guard_leader_thread(body: Block) -> None:
    """Put what leads to the last STOREs of each Block, and to nothing else, behind their condition."""
    for block in list(body.walk()):
        stores = _last_stores(block)
        if stores:
            moved = _only_for(block, stores)
            if moved:
                kept = [item for item in block.items if item not in moved and item not in stores]
                guarded = [*(item for item in block.items if item in moved), *stores]
                guard = Guard(None, block.depth + 1, guarded, condition=_condition(stores[0]))
                block.items = [*kept, guard]


def _condition(store: UOp) -> UOp:
    return store.src[0].src[2]


def _last_stores(block: Block) -> list[UOp]:
    """The STOREs at the end of a Block that one thread alone does, if there is no other before them."""
    found: list[UOp] = []
    for item in reversed(block.items):
        if not isinstance(item, UOp) or item.op is not Ops.STORE or len(item.src[0].src) < 3:
            break
        if not _of_one_thread(_condition(item)) or (found and _condition(item) is not _condition(found[0])):
            break
        found.insert(0, item)
    rest = block.items[: len(block.items) - len(found)] if found else []
    return [] if any(_writes_memory(item) for item in rest) else found


def _of_one_thread(condition: UOp) -> bool:
    """Whether a condition names the thread for which it holds."""
    return any(
        node.op is Ops.CMPEQ and node.src[0].op is Ops.SPECIAL and node.src[0].arg[0].startswith("lidx")
        for node in toposort((condition,))
    )


def _writes_memory(item: Item) -> bool:
    """Whether an item stores to the kernel's outputs."""
    stores = [node for node in _nodes(item) if node.op is Ops.STORE]
    return any(store.src[0].src[0].op is Ops.DEFINE_GLOBAL for store in stores)


def _nodes(item: Item) -> Iterator[UOp]:
    """The nodes that are written where an item stands."""
    if isinstance(item, UOp):
        yield item
        return
    for inner in item.walk():
        yield from (node for node in inner.items if isinstance(node, UOp))


def _only_for(block: Block, stores: list[UOp]) -> set[Item]:
    """The items that nothing but these STOREs needs."""
    item_of = {node: item for item in block.items for node in _nodes(item)}
    pinned = {source for closed in block.closes for source in closed.src}
    pinned.update(toposort((_condition(stores[0]),)))
    users: dict[Item, set[Item]] = {}
    for node, user in item_of.items():
        sources = node.src
        for source in sources:
            item = item_of.get(source)
            if item is not None and item is not user:
                users.setdefault(item, set()).add(user)
    for item in block.items:  # a REDUCE stands after its loops
        if isinstance(item, Block):
            for inner in item.walk():
                for closed in inner.closes:
                    owner = item_of.get(closed)
                    if owner is not None and owner is not item:
                        users.setdefault(item, set()).add(owner)
    moved: set[Item] = set()
    goal: set[Item] = set(stores)
    for item in reversed(block.items):
        needed = users.get(item)
        shared = any(node.op in _TOGETHER or node in pinned for node in _nodes(item))
        if needed and not shared and needed <= moved | goal:
            moved.add(item)
    return moved

"""The loop nest of a kernel, derived from its graph (forms 3 to 6) and stored nowhere.

Every node depends on a set of ranges, and stands in the outermost loop where all of them are open: what does
not change inside a loop is computed before it, by construction. The ranges of the outputs nest in one chain;
the ranges of a REDUCE, or of a STAGE, open inside the deepest loop that its result depends on.
`codegen/linearizing/linearize.py` writes this nest as a list, `ir/text.py` prints it as loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..dtype import PtrDType
from .args import KernelInfo
from .ops import Ops
from .uop import UOp, toposort
from .walks import noted, reached

Ranges = frozenset[UOp]
_NONE: Ranges = frozenset()

#: Declarations: they stand at the head of a kernel, not at a place in its loops.
LEAVES = frozenset(
    (Ops.CONST, Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.SPECIAL, Ops.RANGE, Ops.SINK)
)


# *** which loops a node depends on


def ranges_of(node: UOp) -> Ranges:
    """The open ranges of a node: those below it, except what a REDUCE or STAGE below it has closed."""
    found = node.facts.get("ranges")
    if found is None:
        found = noted(node, "ranges", _ranges_of)
    return found | {node} if node.op is Ops.RANGE else found


def _ranges_of(node: UOp) -> Ranges:
    result = _NONE
    for source in node.src:
        more = source.facts["ranges"]
        if source.op is Ops.RANGE:
            more |= {source}
        if more is not result and more:
            if not result or result < more:
                result = more
            elif not more <= result:
                result = result | more
    return result.difference(closed_ranges(node)) if node.op in _CLOSING else result


#: The ops whose ranges nobody above them sees.
_CLOSING = frozenset((Ops.REDUCE, Ops.STAGE))


def closed_ranges(node: UOp) -> tuple[UOp, ...]:
    """The ranges that a REDUCE or STAGE closes, outermost first; of any other node none."""
    if node.op is Ops.REDUCE:
        return node.src[1:]
    if node.op is Ops.STAGE:
        return tuple([source for source in node.src if source.op is Ops.RANGE])
    return ()


def stage_stores(stage: UOp) -> tuple[UOp, ...]:
    """The STOREs and FETCHes that fill the memory of a STAGE."""
    return tuple([source for source in stage.src if source.op in (Ops.STORE, Ops.FETCH)])


def loops_around(load: UOp) -> tuple[UOp, ...]:
    """The loops that a LOAD stands inside of, wherever it reads: their turns write the memory."""
    return tuple([source for source in load.src[1:] if source.op is Ops.RANGE])


def scan_ranges(scan: UOp) -> tuple[UOp, ...]:
    """The ranges that a SCAN runs along, the slowest first; they stay open for who uses it."""
    return scan.src[2:] if scan.arg is Ops.MULACC else scan.src[1:]


def operands(node: UOp) -> tuple[UOp, ...]:
    """What a node computes with: of a REDUCE or SCAN its values, without its loops."""
    if node.op is Ops.SCAN:
        return scan_values(node)
    return node.src[:1] if node.op is Ops.REDUCE else node.src


def scan_values(scan: UOp) -> tuple[UOp, ...]:
    """What a SCAN combines in each turn: a value, or for MULACC a value and a factor."""
    return scan.src[:2] if scan.arg is Ops.MULACC else scan.src[:1]


# *** the nest


@dataclass(eq=False, slots=True)
class Block:
    """One loop, or (without a range) the kernel's body.

    range   the loop's RANGE             items   what stands in it, in order: nodes and inner Blocks
    depth   the number of loops around   opens   the REDUCEs and SCANs whose accumulators start before it
                                         closes  those that accumulate at the end of this loop's body

    It does not know the Block that it is an item of: what is in a circle lives until garbage is collected.
    """

    range: UOp | None = None
    depth: int = 0
    items: list[UOp | Block] = field(default_factory=list)
    opens: list[UOp] = field(default_factory=list)
    closes: list[UOp] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Block({self.range.arg if self.range else 'body'}, {len(self.items)} items)"

    def walk(self) -> Iterable[Block]:
        """This Block and all inside it, outer before inner, in order."""
        return reached([self], lambda block: [item for item in block.items if isinstance(item, Block)])


@dataclass(eq=False, slots=True)
class Guard(Block):
    """A Block that is entered where a condition holds, once."""

    condition: UOp = field(kw_only=True)


def output_ranges(nodes: Iterable[UOp]) -> list[UOp]:
    """The ranges that nothing closes, outermost first: by kind and number, those of SCANs last."""
    nodes = list(nodes)
    closed = {r for node in nodes for r in closed_ranges(node)}
    scanned = {r for node in nodes if node.op is Ops.SCAN for r in scan_ranges(node)}
    found = [node for node in nodes if node.op is Ops.RANGE and node not in closed]
    return sorted(found, key=lambda r: (r in scanned, r.arg.kind.value, r.arg.id))


def free_numbers(nodes: Sequence[UOp]) -> tuple[int, int]:
    """The first free number of a RANGE, and of memory of a kernel's own."""
    loops = max((node.arg.id for node in nodes if node.op is Ops.RANGE), default=-1)
    memory = max((node.arg for node in nodes if node.op is Ops.DEFINE_LOCAL), default=-1)
    return loops + 1, memory + 1


def is_shared(stage: UOp) -> bool:
    """Whether a node is a STAGE in memory that the threads of a workgroup fill and read together."""
    if stage.op is not Ops.STAGE:
        return False
    memory = stage.src[0].dtype
    return isinstance(memory, PtrDType) and memory.local


def is_pipelined(item: object) -> bool:
    """Whether an item of a loop is a STAGE that fills what later turns read."""
    return isinstance(item, UOp) and item.op is Ops.STAGE and item.src[0].op is Ops.STAGE


def is_begun(item: UOp) -> bool:
    """Whether a STAGE fills what the first turns of a loop read, which wait for it."""
    return is_shared(item) and item.arg is not None and not is_pipelined(item)


def nests_of_stores(sink: UOp) -> list[tuple[UOp, ...]]:
    """The STOREs of each nest of loops: of a later one nothing stands before the end of those before it."""
    counts = sink.arg.nests if isinstance(sink.arg, KernelInfo) else ()
    if not counts:
        return [sink.src]
    ends = list(itertools.accumulate(counts, initial=0))
    return [sink.src[begin:end] for begin, end in itertools.pairwise(ends)]


def nodes_in_order(sink: UOp) -> list[UOp]:
    """Every node after its sources, in the order of first need; a STORE needs its value before its place.

    What a workgroup shares is filled first, so that its threads wait for each other once, and not at each.
    """
    roots: list[UOp] = []
    for store in sink.src:
        roots += (*store.src[1:], *store.src[:1], store)
    order = toposort((*roots, sink))
    first = [node for node in order if is_shared(node)]
    return toposort((*first, *roots, sink)) if first else order


def loop_nest(sink: UOp) -> Block:
    """The kernel's body with all its loops, everything in its place and order."""
    nodes = nodes_in_order(sink)
    ranges_of(sink)
    body = Block()
    around: dict[Block, Block] = {}
    block_of = _assign_ranges(nodes, body, around)
    home = _assign_nodes(nodes, block_of, body)
    before = _dependencies(nodes, home, block_of, around)
    placed: set[UOp | Block] = set()
    nests = nests_of_stores(sink)
    for stores in nests:
        needed = nodes if len(nests) == 1 else nodes_in_order(UOp.sink(*stores))
        _order_items(needed, home, before, block_of, around, placed)
    return body


def _assign_ranges(nodes: list[UOp], body: Block, around: dict[Block, Block]) -> dict[UOp, Block]:
    """The Block of each RANGE; `around` is told in which Block it stands.

    Outer REDUCEs and STAGEs are met before those inside them.
    """
    block_of: dict[UOp, Block] = {}
    stores = [ranges_of(node) for node in nodes if node.op is Ops.STORE]
    for outer in output_ranges(nodes):
        beside = frozenset().union(*(ranges for ranges in stores if outer in ranges))
        parent = _deepest(beside & block_of.keys(), block_of, body)
        block = block_of[outer] = Block(outer, parent.depth + 1)
        around[block] = parent
    reduces = [node for node in nodes if node.op is Ops.REDUCE]
    for closing in reversed([node for node in nodes if node.op in _CLOSING]):
        parent = _deepest(closing.facts["ranges"], block_of, body)
        for inner in closed_ranges(closing):
            block = block_of.setdefault(inner, Block(inner, parent.depth + 1))
            if around.setdefault(block, parent) is not parent:
                raise RuntimeError(f"RANGE {inner.arg} is closed in two places")
            parent = block
    for reduce in reduces:
        block_of[reduce.src[1]].opens.append(reduce)
        block_of[reduce.src[-1]].closes.append(reduce)
    for scan in (node for node in nodes if node.op is Ops.SCAN):
        along = sorted((block_of[r] for r in scan_ranges(scan)), key=lambda block: block.depth)
        if along[-1] is not _deepest(scan.facts["ranges"], block_of, body):
            raise RuntimeError(f"a SCAN along {along[-1]} depends on a loop inside of it")
        along[0].opens.append(scan)
        along[-1].closes.append(scan)
    return block_of


def _deepest(ranges: Ranges, block_of: dict[UOp, Block], body: Block) -> Block:
    deepest = body
    for r in ranges:
        block = block_of[r]
        if block.depth > deepest.depth:
            deepest = block
    return deepest


def _assign_nodes(nodes: list[UOp], block_of: dict[UOp, Block], body: Block) -> dict[UOp, Block]:
    """The Block in which each node stands; declarations stand in none."""
    home: dict[UOp, Block] = {}
    known: dict[Ranges, Block] = {_NONE: body}
    for node in nodes:
        if node.op in LEAVES:
            continue
        ranges = node.facts["ranges"]
        block = known.get(ranges)
        if block is None:
            block = known[ranges] = _deepest(ranges, block_of, body)
        home[node] = block
    for stage in nodes:
        if stage.op is Ops.STAGE:
            loops = closed_ranges(stage)
            for store in stage_stores(stage):
                home[store] = block_of[loops[-1]] if loops else home[stage]
    return home


Before = dict[UOp | Block, list[UOp | Block]]


def _dependencies(
    nodes: list[UOp], home: dict[UOp, Block], block_of: dict[UOp, Block], around: dict[Block, Block]
) -> Before:
    """Item → items of the same Block that must stand before it.

    A node deep inside a loop that needs a value from outside makes the whole loop wait for it.
    """
    before: Before = {}
    for node in nodes:
        if node.op is Ops.REDUCE:
            before[node] = [block_of[node.src[1]]]
            user, sources = block_of[node.src[-1]], node.src[:1]
        elif node.op is Ops.STAGE:
            loops = closed_ranges(node)
            before[node] = [block_of[loops[0]]] if loops else list(stage_stores(node))
            continue
        elif node.op is Ops.RANGE:
            user, sources = block_of[node], node.src
        elif node in home:
            user, sources = home[node], node.src
        else:
            continue
        for source in sources:
            outer = home.get(source)
            if outer is None:
                continue
            if outer is not user:
                inside = user
                while around.get(inside) is not outer:
                    if inside not in around:
                        raise RuntimeError(f"{user} uses a value of {outer}, which is not around it")
                    inside = around[inside]
                before.setdefault(inside, []).append(source)
            elif node.op is not Ops.REDUCE:
                before.setdefault(node, []).append(source)
    return before


def _order_items(
    nodes: list[UOp],
    home: dict[UOp, Block],
    before: Before,
    block_of: dict[UOp, Block],
    around: dict[Block, Block],
    placed: set[UOp | Block],
) -> None:
    """Fill the items: values and reductions in the order of first need, then the storing loop, then STOREs.

    So every load of a Block comes before what is stored in it, and a kernel may overwrite what it reads.
    Lanes that only a STORE needs are taken just before it: their vectors are there, and take less room.
    """
    filling = {store for node in nodes if node.op is Ops.STAGE for store in stage_stores(node)}
    late = _lanes_to_store(nodes, filling, home)
    stores: list[UOp] = []
    for node in nodes:
        if node.op is Ops.STORE and node not in filling:
            stores.append(node)
        elif node in home and node not in late:
            for inner in closed_ranges(node)[1:]:
                block = block_of[inner]
                _append_after_needs(block, around[block].items, before, placed)
            _append_after_needs(node, home[node].items, before, placed)
    for store in stores:
        block = home[store]
        while block in around and block not in placed:
            placed.add(block)
            around[block].items.append(block)
            block = around[block]
    for store in stores:
        items = home[store].items
        if store.src[1] in late:
            _append_after_needs(store.src[1], items, before, placed)
        items.append(store)


def _lanes_to_store(nodes: list[UOp], filling: set[UOp], home: dict[UOp, Block]) -> set[UOp]:
    """Lanes of vectors, and choices among them, that nothing but STOREs to a kernel's outputs needs."""
    lanes: set[UOp] = set()
    for node in nodes:
        if node.op is Ops.GEP or (
            node.op is Ops.WHERE and all(s in lanes or s.op is Ops.CONST for s in node.src)
        ):
            lanes.add(node)
    for node in reversed(nodes) if lanes else ():
        stores = node.op is Ops.STORE and node not in filling and len(node.src) == 2
        for place, source in enumerate(node.src):
            waits = node in lanes or (stores and place == 1)
            if source in lanes and not (waits and home[node] is home[source]):
                lanes.discard(source)
    return lanes


def _append_after_needs(
    wanted: UOp | Block, items: list[UOp | Block], before: Before, placed: set[UOp | Block]
) -> None:
    """Append a node or a loop to the items of its Block, after whatever it waits for there."""
    if wanted in placed:
        return
    stack: list[UOp | Block] = [wanted]
    entered: set[UOp | Block] = set()
    while stack:
        item = stack[-1]
        waiting = [needed for needed in before.get(item, ()) if needed not in placed]
        if waiting:
            if item in entered:
                raise RuntimeError(
                    f"{item} must stand before itself: its loop is shared by what waits for it"
                )
            entered.add(item)
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if item not in placed:
            placed.add(item)
            items.append(item)

"""Which reductions over one axis are done in one pass, and why that is the same.

    Σⱼ f(xⱼ - s)·vⱼ,   where s is made of m = maxⱼ xⱼ, l = Σⱼ f(xⱼ - s) and what does not depend on j

asks for x three times: for m, for l and for the sum. Let f turn a sum into a product, f(a + b) = f(a)·f(b):
EXP and EXP2 do. Then for any number t

    Σⱼ f(xⱼ - s)·vⱼ  =  f(t - s) · Σⱼ f(xⱼ - t)·vⱼ,

because f(xⱼ - s) = f(xⱼ - t)·f(t - s), and the second factor does not depend on j. So a loop over blocks of j
may sum with the greatest x that it has met as t. A block that has a greater one multiplies what was summed by
f(t_old - t_new), at most 1, which makes it the sum of the blocks so far with t_new: the same identity, with
t_old for t and t_new for s. In the end t = m, and f(m - s) is the last correction. Nothing overflows that did
not before: no x is greater than t. A row whose x are all -inf has sums of 0, with t = 0.

A factor of the summed products that does not depend on j, such as 1/l, is multiplied in the end: real
arithmetic, where the order of rounding is not promised. Where x ends in WHERE(c, x, -inf), an element with
c false adds f(-inf) = 0: blocks of j without any other are left out.

With vⱼ = 1 nothing but m and l is left: a log-sum-exp m + log l of products is one loop too, with one number
for each row.

m and l may be stored beside the sum: for whoever reads them, they are what is known of a row in the end.

A sum Σⱼ x(i, j)·v(j, c) whose terms depend on no other reduction over j needs no correction at all, with
any x that is made of sums of products over a depth: the same loop computes x of a tile from what these
multiply. It may run for each of some more ranges that are summed over (`outer`), if the left factors are the
same for all. The gradients of a softmax of products are such sums, once m and l are in memory.

In: a kernel with all of its reductions in one another, as loops (form 3). Out: its parts, as `OnePass`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...codegen.expressions.ranges import make_range, substitute_ranges
from ...dtype import dtypes
from ...ir.args import AxisType
from ...ir.index import TRUE, const
from ...ir.index.division import add
from ...ir.index.polynomials import mul
from ...ir.nest import ranges_of
from ...ir.ops import ELEMENTWISE, SUMS_TO_PRODUCTS, Ops
from ...ir.uop import UOp, toposort
from .limits import Limit, limits_of, limits_of_zero


class Product(NamedTuple):
    """A sum of products in x: total = Σ over depth of left(row, depth)·right(key, depth)."""

    total: UOp
    depth: UOp
    left: UOp
    right: UOp


class Factor(NamedTuple):
    """A factor that does not depend on the key axis, or what the sum is divided by."""

    value: UOp
    divides: bool


class OnePass(NamedTuple):
    """A kernel in one pass over the range `key`. Ranges of size 1 are none.

    store    what is stored, and where; its value is made of `total`
    batch    output ranges that all depend on
    groups   output ranges that x depends on and v does not, but `row`, the longest of them
    columns  the output range that v depends on and x does not
    x        what is shifted, with its `products`; `limits`: where it is not -inf
    power    f(x - shift); shift is None where nothing is subtracted. None: the terms are x·v as they are
    weights  what the power is multiplied by, of key and row
    values   v: factors of key and column; none: the result is made of the sum of the powers, which is `total`
    late     factors of the sum
    most     the reductions that are maxⱼ xⱼ, `sums` those that are Σⱼ power
    outer    more ranges that are summed over
    beside   what else is stored: reductions of `most` and `sums`
    """

    store: UOp
    total: UOp
    key: UOp
    batch: tuple[UOp, ...]
    groups: tuple[UOp, ...]
    row: UOp
    column: UOp
    x: UOp
    products: tuple[Product, ...]
    limits: tuple[Limit, ...]
    power: UOp | None
    shift: UOp | None
    weights: tuple[UOp, ...]
    values: tuple[UOp, ...]
    late: tuple[Factor, ...]
    most: tuple[UOp, ...]
    sums: tuple[UOp, ...]
    outer: tuple[UOp, ...] = ()
    beside: tuple[UOp, ...] = ()


def one_pass(sink: UOp) -> OnePass | None:
    """The parts of a kernel (form 3) whose reductions are done in one pass; None where the rule is silent."""
    found = _pattern(sink)
    for split in _splits(sink):
        better = _pattern(split)
        if better is not None and (found is None or _iterations(better.batch) < _iterations(found.batch)):
            found = better
    return found


def _iterations(ranges: Iterable[UOp]) -> int:
    return math.prod(map(_size, ranges))


def _pattern(sink: UOp) -> OnePass | None:
    if not sink.src or not _is_simple(sink):
        return None
    store, *beside = sink.src
    if (found := _of_rows(store)) is not None and {*found.most, *found.sums}.issuperset(_stored(beside)):
        return found._replace(beside=tuple(beside))
    totals = _reductions(store.src[1])
    if len(totals) != 1 or totals[0].arg is not Ops.ADD or not dtypes.is_float(totals[0].dtype):
        return None
    (total,) = totals
    key = total.src[1]
    powers = [n for n in toposort((total.src[0],)) if n.op in SUMS_TO_PRODUCTS and key in ranges_of(n)]
    for power in reversed(powers) if _is_sum(total) else ():
        found = _with_power(store, total, key, power)
        if found is not None:
            known = {*found.most, *found.sums}
            return found._replace(beside=tuple(beside)) if known.issuperset(_stored(beside)) else None
    return None if beside else _without_power(store, total)


def _stored(stores: Iterable[UOp]) -> list[UOp]:
    return [store.src[1] for store in stores]


def _is_simple(sink: UOp) -> bool:
    """Whether all sizes are known, no load has a condition, and all else is loops, arithmetic and memory."""
    known = {Ops.SINK, Ops.STORE, Ops.LOAD, Ops.INDEX, Ops.RANGE, Ops.REDUCE, Ops.CONST}
    known |= {Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR}
    for node in sink.toposort():
        if (node.op not in ELEMENTWISE and node.op not in known) or node.op is Ops.CHECK:
            return False
        if node.op is Ops.RANGE and node.src[0].op is not Ops.CONST:
            return False
        if node.op is Ops.INDEX and node.src[2:] not in ((), (TRUE,)):
            return False
    return True


def _is_sum(node: UOp) -> bool:
    return node.arg is Ops.ADD and len(node.src) == 2 and dtypes.is_float(node.dtype)


def _reductions(*values: UOp) -> list[UOp]:
    """The REDUCEs that values are made of, without those inside of others."""
    found, seen, stack = [], set(values), list(values)
    while stack:
        node = stack.pop()
        if node.op is Ops.REDUCE:
            found.append(node)
            continue
        stack += [s for s in node.src if s not in seen]
        seen.update(node.src)
    return found


def _with_power(store: UOp, total: UOp, key: UOp, power: UOp) -> OnePass | None:
    factors = _factors(total.src[0], power)
    if factors is None:
        return None
    x, shift = power.src[0], None
    if x.op is Ops.SUB and key not in ranges_of(x.src[1]):
        x, shift = x.src
    of_row = ranges_of(x) - {key}
    late = [f for f in factors if key not in ranges_of(f.value)]
    inside = [f.value for f in factors if key in ranges_of(f.value)]
    if any(f.divides for f in factors if key in ranges_of(f.value)):
        return None
    outputs = ranges_of(store)
    columns = frozenset().union(*[ranges_of(f) for f in inside]) & outputs - of_row
    values = tuple([f for f in inside if not columns.isdisjoint(ranges_of(f))])
    weights = tuple([f for f in inside if columns.isdisjoint(ranges_of(f))])
    of_values = frozenset().union(*[ranges_of(f) for f in values])
    rows = of_row - of_values
    if len(columns) != 1 or not rows or any(not rows.isdisjoint(ranges_of(v)) for v in values):
        return None
    batch = outputs - columns - rows
    products = _products(x, key, rows)
    if products is None or not of_row <= outputs or total.dtype is not power.dtype:
        return None
    (column,) = columns
    row = max(rows, key=lambda r: (_size(r), r.arg.id))
    others = [shift] if shift is not None else []
    most, sums = [], []
    for reduction in _reductions(*others, *[f.value for f in late]):
        if reduction.arg is Ops.MAX and is_same(x, reduction.src[0], {key: reduction.src[1]}):
            most.append(reduction)
        elif _is_sum(reduction) and is_same(power, reduction.src[0], {key: reduction.src[1]}):
            sums.append(reduction)
        else:
            return None
    if _reductions(*values, *weights) or not (most or sums):
        return None
    return OnePass(
        store, total, key, _in_order(batch), _in_order(rows - {row}), row, column, x, products,
        tuple(limits_of(x, key)), power, shift, weights, values, tuple(late), tuple(most), tuple(sums),
    )  # fmt: skip


def _of_rows(store: UOp) -> OnePass | None:
    """A value of rows alone, made of Σⱼ f(xⱼ - s) and the greatest x: nothing is multiplied, and there is one
    column. x is made of sums of products; others are in memory, or as well computed twice.
    """
    outputs, reductions = ranges_of(store), _reductions(store.src[1])
    sums = [reduction for reduction in reductions if _is_sum(reduction)]
    if len(sums) != 1 or sums[0].src[0].op not in SUMS_TO_PRODUCTS:
        return None
    (total,) = sums
    power, key = total.src
    x, shift = power.src[0], None
    if x.op is Ops.SUB and key not in ranges_of(x.src[1]):
        x, shift = x.src
    most = [each for each in reductions if each is not total]
    most += [each for each in _reductions(shift) if each not in most] if shift is not None else []
    if any(r.arg is not Ops.MAX or not is_same(x, r.src[0], {key: r.src[1]}) for r in most):
        return None
    factors = [factor for node in _reductions(x) for factor in node.src[0].src]
    of_keys = [factor for factor in factors if key in ranges_of(factor)]
    batch = frozenset().union(*[ranges_of(factor) for factor in of_keys]) & outputs
    rows = outputs - batch
    products = _products(x, key, rows)
    if not products or not rows or not ranges_of(x) - {key} <= outputs or total.dtype is not power.dtype:
        return None
    row = max(rows, key=lambda r: (_size(r), r.arg.id))
    newest = max(node.arg.id for node in store.toposort() if node.op is Ops.RANGE)
    column = make_range(1, newest + 1, AxisType.GLOBAL)
    return OnePass(
        store, total, key, _in_order(batch), _in_order(rows - {row}), row, column, x, products,
        tuple(limits_of(x, key)), power, shift, (), (), (), tuple(most), (total,),
    )  # fmt: skip


def _without_power(store: UOp, total: UOp) -> OnePass | None:
    """A sum whose terms depend on no other reduction over its axis: values, times x that is made of sums."""
    outputs, factors = ranges_of(store), _multiplied(total.src[0])
    made = [f for f in factors if _reductions(f)]
    of_made = frozenset().union(*[ranges_of(f) for f in made])
    values = tuple([f for f in factors if f not in made and not ranges_of(f) & outputs <= of_made])
    of_values = frozenset().union(*[ranges_of(f) for f in values])
    x: UOp | None = None
    for factor in factors:
        if factor not in values:
            x = factor if x is None else UOp(Ops.MUL, total.dtype, (x, factor))
    if x is None or not values or any(f.dtype is not total.dtype for f in factors):
        return None
    of_x, columns = ranges_of(x), (of_values & outputs) - of_made
    rows = (of_x & outputs) - of_values
    keys = [r for r in total.src[1:] if r in of_x and r in of_values]
    if len(columns) != 1 or not rows or not keys:
        return None
    key = max(keys, key=lambda r: (_size(r), -r.arg.id))
    outer = tuple([r for r in total.src[1:] if r is not key])
    products = _products(x, key, rows)
    if not products or not of_x <= outputs.union(total.src[1:]):
        return None
    if any(not ranges_of(product.left).isdisjoint(outer) for product in products):
        return None
    (column,) = columns
    row = max(rows, key=lambda r: (_size(r), r.arg.id))
    return OnePass(
        store, total, key, _in_order(outputs - columns - rows), _in_order(rows - {row}), row, column, x,
        products, tuple(limits_of_zero(x, key)), None, None, (), values, (), (), (), outer,
    )  # fmt: skip


def _multiplied(node: UOp) -> list[UOp]:
    return [f for s in node.src for f in _multiplied(s)] if node.op is Ops.MUL else [node]


def _in_order(ranges: Iterable[UOp]) -> tuple[UOp, ...]:
    return tuple(sorted(ranges, key=lambda r: r.arg.id))


def _factors(node: UOp, power: UOp) -> list[Factor] | None:
    """A value as the power times factors; None where it is not a product of the power."""
    if node is power:
        return []
    if power not in node.toposort():
        return [Factor(node, False)]
    if node.op is Ops.CAST and dtypes.is_float(node.dtype) and dtypes.is_float(node.src[0].dtype):
        return _factors(node.src[0], power)  # rounded less than it was
    if node.op is Ops.MUL:
        return _both(node.src, power)
    if node.op is Ops.FDIV and power not in node.src[1].toposort():
        above = _factors(node.src[0], power)
        return None if above is None else [*above, Factor(node.src[1], True)]
    if node.op is Ops.WHERE and power not in node.src[0].toposort():
        yes, no = node.src[1:]
        one, zero = UOp.const(node.dtype, 1.0), UOp.const(node.dtype, 0.0)
        if _is_number(no, 0.0):
            kept, chosen = yes, UOp(Ops.WHERE, node.dtype, (node.src[0], one, zero))
        elif _is_number(yes, 0.0):
            kept, chosen = no, UOp(Ops.WHERE, node.dtype, (node.src[0], zero, one))
        else:
            return None
        above = _factors(kept, power)
        return None if above is None else [*above, Factor(chosen, False)]
    return None


def _both(sources: Iterable[UOp], power: UOp) -> list[Factor] | None:
    found: list[Factor] = []
    powers = 0
    for source in sources:
        powers += power in source.toposort()
        more = _factors(source, power)
        if more is None:
            return None
        found += more
    return found if powers == 1 else None


def _is_number(node: UOp, value: float) -> bool:
    return node.op is Ops.CONST and node.arg == value


def _products(x: UOp, key: UOp, rows: frozenset[UOp]) -> tuple[Product, ...] | None:
    """The sums of products in x. None where another reduction is in it."""
    found = []
    for node in _reductions(x):
        if not _is_sum(node) or node.src[0].op is not Ops.MUL or node.dtype is not x.dtype:
            return None
        left, right = node.src[0].src
        if key in ranges_of(left):
            left, right = right, left
        depth = node.src[1]
        if key in ranges_of(left) or not rows.isdisjoint(ranges_of(right)) or _reductions(left, right):
            return None
        if depth not in ranges_of(left) or depth not in ranges_of(right) or key not in ranges_of(right):
            return None
        found.append(Product(node, depth, left, right))
    return tuple(found)


def is_same(a: UOp, b: UOp, renamed: dict[UOp, UOp]) -> bool:
    """Whether two expressions differ in the names of their loops only.

    What commutes in conditions and places may stand in another order, which follows those names.
    """
    return _same(a, b, renamed, set())


def _same(a: UOp, b: UOp, renamed: dict[UOp, UOp], done: set[tuple[UOp, UOp]]) -> bool:
    if a.op is Ops.RANGE:
        return renamed.get(a, a) is b
    if (a, b) in done:
        return True
    if a.op is not b.op or a.dtype is not b.dtype or a.arg != b.arg or len(a.src) != len(b.src):
        return False
    if a.op is Ops.REDUCE:
        for one, other in zip(a.src[1:], b.src[1:], strict=True):
            if one.op is not Ops.RANGE or other.op is not Ops.RANGE or one.src != other.src:
                return False
            renamed[one] = other
    if a.op in (Ops.AND, Ops.ADD, Ops.MUL) and a.dtype in (dtypes.bool, dtypes.index):
        found = _in_some_order(_chain(a), _chain(b), renamed, done)
    else:
        found = all(_same(one, other, renamed, done) for one, other in zip(a.src, b.src, strict=True))
    if found:
        done.add((a, b))
    return found


def _in_some_order(
    some: list[UOp], others: list[UOp], renamed: dict[UOp, UOp], done: set[tuple[UOp, UOp]]
) -> bool:
    if len(some) != len(others):
        return False
    for one in some:
        other = next((other for other in others if _same(one, other, renamed, done)), None)
        if other is None:
            return False
        others.remove(other)
    return True


def _chain(node: UOp) -> list[UOp]:
    """What a chain of one op combines."""
    found, stack = [], [node]
    while stack:
        top = stack.pop()
        if top.op is node.op:
            stack += top.src
        else:
            found.append(top)
    return found


# *** rows that share their keys


def _splits(sink: UOp) -> Iterator[UOp]:
    """The kernel with an output range r in two, where something depends on r // n: n rows share it, as the
    query heads of a group share their keys and values.
    """
    nodes = sink.toposort()
    newest = max([n.arg.id for n in nodes if n.op is Ops.RANGE], default=0)
    places = [
        (node.src[0], node.src[1].arg)
        for node in nodes
        if node.op is Ops.IDIV and node.src[0].op is Ops.RANGE and node.src[1].op is Ops.CONST
    ]
    for r, count in dict.fromkeys(places):
        if r in ranges_of(sink) and count > 1 and _size(r) % count == 0 and _size(r) > count:
            outer = make_range(_size(r) // count, newest + 1, AxisType.GLOBAL)
            inner = make_range(count, newest + 2, AxisType.GLOBAL)
            yield substitute_ranges(sink, {r: add(mul(outer, const(count)), inner)})


def _size(r: UOp) -> int:
    size: int = r.src[0].arg
    return size

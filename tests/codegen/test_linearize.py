"""Target code becomes a list: what comes first, where loops close, what stores are guarded by."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import stages
from lazygrad.codegen.expressions.ranges import make_range
from lazygrad.codegen.legalizing.products import form_sums
from lazygrad.codegen.linearizing.linearize import linearize
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, apply_opts
from lazygrad.codegen.passes import legalize
from lazygrad.dtype import dtypes
from lazygrad.gpu.moves.workgroup import radices
from lazygrad.gpu.passes.assign_grid import assign_grid
from lazygrad.gpu.passes.barriers import synchronize
from lazygrad.gpu.passes.partial_results import share
from lazygrad.ir.args import AxisType
from lazygrad.ir.ops import Ops
from lazygrad.ir.text import linear_text
from lazygrad.ir.uop import UOp, Variable
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CStyleRenderer
from lazygrad.renderer.python import PythonRenderer
from lazygrad.target import Target

from .kernels import (
    GRID,
    SEVEN,
    load,
    memory,
    plain,
    random_contents,
    reduce,
    run,
    scatter,
    sink,
    spread,
    store,
)
from .programs import Programs
from .test_opt import row_sum

PYTHON, PYTHON_GRID = PythonRenderer(), PythonRenderer(GRID)


def program(*stores: UOp) -> list[UOp]:
    return form_sums(linearize(legalize(lower(sink(*stores)), PYTHON), PYTHON), PYTHON)


def ops(uops: Iterable[UOp]) -> list[str]:
    return [u.op.name for u in uops]


def test_dot_reads_as_the_documents_table():
    """Seed S61: the same rows in the same order; what the loop leaves is read as its accumulator."""
    uops = linearize(legalize(lower(SEVEN["dot"]()), PYTHON))
    assert ops(uops) == [
        *["DEFINE_GLOBAL"] * 3, "CONST", "CONST", "DEFINE_ACC", "RANGE", "INDEX", "LOAD", "INDEX", "LOAD",
        "MUL", "ADD", "ASSIGN", "ENDRANGE", "INDEX", "STORE",
    ]  # fmt: skip
    rows = linear_text(uops).splitlines()
    assert rows[5].split()[-4:] == ["dtypes.int", "['0',", "6]", "(0,)"]
    assert "['0', '2']" in rows[6]


def check_order(uops: list[UOp]) -> None:
    """Everything is written before it is read, inside of the loops where it was written; loops are closed."""
    scopes: list[set[UOp]] = [set()]
    opened: list[UOp] = []
    for u in uops:
        known = set().union(*scopes)
        needed = u.src[:1] if u.op is Ops.DEFINE_ACC else u.src
        for source in needed:
            assert source in known, f"{u.op} reads {source.op} before it is written"
        if u.op in (Ops.RANGE, Ops.IF):
            opened.append(u)
            scopes.append({u})
        elif u.op in (Ops.ENDRANGE, Ops.ENDIF):
            assert opened.pop() is u.src[0]
            scopes.pop()
        else:
            assert u not in known, f"{u.op} is written twice"
            scopes[-1].add(u)
    assert not opened


def test_order_and_scopes_of_random_kernels():
    for seed in range(200):
        ast = Programs(seed).kernel()
        check_order(form_sums(linearize(legalize(lower(ast), PYTHON), PYTHON), PYTHON))


def test_accumulators_in_one_loop():
    x = load(1, plain(3, 4))
    uops = program(store(0, reduce(x, Ops.ADD, 1) * reduce(x, Ops.MAX, 1)))
    names = ops(uops)
    assert names.count("RANGE") == 2
    assert names.count("DEFINE_ACC") == names.count("ASSIGN") == 2
    assert names.index("DEFINE_ACC") < max(i for i, name in enumerate(names) if name == "RANGE")
    check_order(uops)


def test_reductions_inside_of_reductions():
    x = load(1, plain(2, 3, 4))
    inner = reduce(x, Ops.ADD, 2).alu(Ops.EXP)
    total = reduce(inner / spread(reduce(inner, Ops.MAX, 1), 2, 3, 1), Ops.ADD, 1)
    uops = program(store(0, total))
    check_order(uops)
    assert ops(uops).count("RANGE") == 5


def test_a_product_is_accumulated_at_once_where_the_target_can():
    a, b = load(1, plain(4)), load(2, plain(4))
    names = ops(program(store(0, reduce(a * b, Ops.ADD, 0))))
    assert "MULACC" in names
    assert "MUL" not in names
    names = ops(program(store(0, reduce(a * b, Ops.ADD, 0) + reduce(a * b, Ops.MAX, 0))))
    assert "MUL" in names  # the maximum needs the product too


def test_loads_come_before_stores():
    x, y = load(0, plain(4), size=4), load(1, plain(4), size=4)
    names = ops(program(store(0, x + y), store(1, x - y)))
    assert names.index("STORE") > max(i for i, name in enumerate(names) if name == "LOAD")


def test_stores_under_one_condition_share_it():
    x = load(3, plain(3, 4))
    a, b = load(4, plain(3, 1)), load(5, plain(3, 1))
    names = ops(program(store(0, x), store(1, a), store(2, b)))
    assert [n for n in names if n in ("IF", "STORE", "ENDIF")] == ["STORE", "IF", "STORE", "STORE", "ENDIF"]


def test_what_a_scatter_adds_to_is_read_in_the_branch_that_stores_it():
    uops = program(scatter(0, 4, load(1, plain(6)), load(2, plain(6), dtypes.int), Ops.ADD))
    assert ops(uops)[-7:] == ["INDEX", "IF", "LOAD", "ADD", "STORE", "ENDIF", "ENDRANGE"]
    assert all(len(u.src) == 2 for u in uops if u.op is Ops.INDEX)


def test_a_masked_load_says_what_it_is_otherwise():
    uops = program(store(0, load(1, plain(3).pad(((1, 1),)))))
    (masked,) = [u for u in uops if u.op is Ops.LOAD]
    assert len(masked.src[0].src) == 3
    assert (masked.src[1].op, masked.src[1].arg) == (Ops.CONST, 0.0)


def test_arguments_that_nobody_reads():
    unread = memory(1, 4)
    uops = linearize(lower(sink(store(0, load(2, plain(4))))), None, (unread,))
    assert [u.arg for u in uops if u.op is Ops.DEFINE_GLOBAL] == [0, 1, 2]


def test_variables_stand_in_the_head():
    n = Variable("n", 1, 10)
    uops = program(store(0, reduce(load(1, plain(n), size=10), Ops.ADD, 0)))
    names = ops(uops)
    assert names.index("DEFINE_VAR") < names.index("CONST")
    (loop,) = [u for u in uops if u.op is Ops.RANGE]
    assert loop.src[1].op is Ops.DEFINE_VAR


# *** grids


def grid(*stores: UOp) -> UOp:
    return assign_grid(lower(sink(*stores)), Target("GPU", grid=True))


def places(lowered: UOp) -> list[tuple[str, int]]:
    return sorted(u.arg for u in lowered.toposort() if u.op is Ops.SPECIAL)


def test_the_last_axis_of_a_grid_is_x():
    x = load(1, plain(4, 3).permute((1, 0)))
    assert places(grid(store(0, x))) == [("gidx0", 4), ("gidx1", 3)]


def test_more_than_three_axes_are_counted_through_z():
    x = load(1, plain(2, 3, 4, 5, 6).permute((4, 3, 2, 1, 0)))
    lowered = grid(store(0, x))
    assert places(lowered) == [("gidx0", 2), ("gidx1", 3), ("gidx2", 4 * 5 * 6)]
    assert not any(u.op is Ops.RANGE for u in lowered.toposort())


def test_more_workgroups_than_an_axis_takes_are_counted_through_x():
    x = load(1, plain(4, 3).permute((1, 0)))
    small = Target("GPU", grid=True, grid_sizes=(100, 2, 2))
    assert places(assign_grid(lower(sink(store(0, x))), small)) == [("gidx0", 12)]


def test_only_the_first_thread_computes_what_it_alone_stores():
    """The final sum stands behind the condition of its store, past the BARRIER."""
    gpu = Target("GPU", grid=True, has_local=True, local_bytes=1 << 10)
    kernel = apply_opts(lower(row_sum(4, 8)), [Opt(OptOps.GROUP, 0, 4)], gpu)
    names = ops(synchronize(linearize(legalize(assign_grid(kernel, gpu), PYTHON), PYTHON_GRID)))
    tail = names[names.index("BARRIER") :]
    assert tail[:3] == ["BARRIER", "CMPEQ", "IF"]
    assert tail[-2:] == ["STORE", "ENDIF"]
    assert tail.count("RANGE") == tail.count("IF") == 1


def test_loops_over_what_threads_left_are_numbered_as_they_come():
    """A set of nodes has an order that differs from process to process."""
    gpu = Target("GPU", grid=True, has_local=True, local_bytes=1 << 12)
    x = load(1, plain(4, 8))
    total = reduce(x, Ops.ADD, 1)
    for _ in range(5):
        total = reduce(x + spread(total, 4, 8), Ops.ADD, 1)
    kernel = apply_opts(lower(sink(store(0, total))), [Opt(OptOps.GROUP, 0, 8)], gpu)
    numbers = [u.arg.id for u in assign_grid(kernel, gpu).toposort() if u.op is Ops.RANGE]
    assert numbers == list(range(numbers[0], numbers[0] + 6))


@pytest.mark.parametrize(
    ("parts", "steps"), [(2, [2]), (16, [16]), (32, [8, 4]), (256, [16, 16]), (23, [23])]
)
def test_many_parts_are_combined_level_by_level(parts, steps):
    assert radices(parts) == steps
    assert radices(1024) == [16, 8, 8]
    ast = row_sum(2, 2 * parts)
    contents = random_contents(ast, 1)
    assert run(ast, "GRID", contents, opts=[Opt(OptOps.GROUP, 0, parts)]) == evaluate(ast, contents)


def test_a_symbolic_axis_is_launched_at_its_maximum():
    n = Variable("n", 1, 10)
    lowered = grid(store(0, load(1, plain(n), size=10)))
    assert places(lowered) == [("gidx0", 10)]
    access = lowered.src[0].src[0]
    assert access.src[2].dtype is dtypes.bool


def test_each_buffer_is_declared_once_also_where_the_target_lacks_its_type():
    x = Tensor.empty(2, dtype="fp8e4m3")
    (kernel,) = (x + x).schedule()
    for opts in ([], None):
        program = dict(stages(kernel.ast, CStyleRenderer(), opts))["linearize"]
        buffers = [node for node in program if node.op is Ops.DEFINE_GLOBAL]
        assert [(node.arg, node.dtype.base) for node in buffers] == [(0, dtypes.uint8), (1, dtypes.uint8)]


def test_loops_over_parts_are_numbered_alike_in_every_process():
    ranges = [make_range(4, number, AxisType.GROUP) for number in range(6)]
    sums = [UOp(Ops.REDUCE, dtypes.float, (r.cast(dtypes.float), r), Ops.ADD) for r in ranges]
    place = UOp(Ops.SPECIAL, dtypes.index, (), ("lidx0", 4))
    _, done = share(UOp.sink(*sums), [ranges], dict.fromkeys(ranges, place), frozenset(ranges), Target("GPU"))
    assert [done[each].src[1].arg.id for each in sums] == [6, 7, 8, 9, 10, 11]

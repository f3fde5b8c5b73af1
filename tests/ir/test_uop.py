"""The node: equal is the same object, constants by their bits, nothing leaks, nothing recurses."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import weakref

import pytest

from lazygrad.dtype import dtypes, to_dtype
from lazygrad.ir import Ops, UOp, Variable
from lazygrad.ir.uop import live_nodes, new_node, toposort
from tests.helpers import PATIENCE, in_threads, often_switched


def leaf(number):
    return UOp(Ops.UNIQUE, dtypes.int, arg=number)


# *** identity


def test_equal_construction_is_the_same_object():
    assert leaf(1) is leaf(1)
    assert leaf(1) is not leaf(2)
    assert leaf(1) + leaf(2) is leaf(1) + leaf(2)
    assert UOp(Ops.ADD, dtypes.int, (leaf(1), leaf(2))) is not UOp(Ops.ADD, dtypes.long, (leaf(1), leaf(2)))
    assert UOp(Ops.NOOP) is UOp(Ops.NOOP, dtypes.void, (), None)


def test_constants_become_their_dtypes_numbers():
    assert UOp.const(dtypes.int, 1) is UOp.const(dtypes.int, 1.0) is UOp.const(dtypes.int, True)
    assert UOp.const(dtypes.float, 0.1) is UOp.const(dtypes.float, 0.10000000149)
    assert type(UOp.const(dtypes.float, 1).arg) is float
    assert type(UOp.const(dtypes.bool, 1).arg) is bool
    assert UOp.const(dtypes.uint8, -1).arg == 255
    assert UOp.const(dtypes.int, 2.9).arg == 2
    assert UOp.const(dtypes.float, 1e60).arg == math.inf


def test_constants_that_compare_equal_stay_apart():
    ones = [UOp.const(d, 1) for d in (dtypes.bool, dtypes.int, dtypes.long, dtypes.float, dtypes.half)]
    assert len({id(one) for one in ones}) == 5
    zero, negative = UOp.const(dtypes.float, 0.0), UOp.const(dtypes.float, -0.0)
    assert zero is not negative
    assert math.copysign(1, negative.arg) == -1
    assert math.copysign(1, zero.arg) == 1
    lanes = [UOp.const(dtypes.float.vec(2), (0.0, value)) for value in (0.0, -0.0)]
    assert lanes[0] is not lanes[1]


@pytest.mark.parametrize(("integer", "dtype", "held"), [(-128, "uint32", 2**32 - 128), (300, "uint8", 44)])
def test_an_integer_wraps_and_an_equal_float_goes_to_the_nearest_end(integer, dtype, held):
    """In either order: each was once held as the other, if that had come before."""
    nearest = 0 if integer < 0 else 255
    asked = [integer, float(integer), integer]
    assert [UOp.const(to_dtype(dtype), value).arg for value in asked] == [held, nearest, held]


def test_nan_is_one_object():
    assert UOp.const(dtypes.float, math.nan) is UOp.const(dtypes.float, float("nan") * 2)
    assert UOp.const(dtypes.float, math.nan) is not UOp.const(dtypes.half, math.nan)


def test_copies_are_the_node_itself():
    node = leaf(1) + 1
    assert copy.copy(node) is copy.deepcopy(node) is node
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(node)


def test_replace():
    node = leaf(1) + leaf(2)
    assert node.replace(src=(leaf(2), leaf(1))) is leaf(2) + leaf(1)
    assert node.replace(op=Ops.MUL) is leaf(1) * leaf(2)
    assert node.replace() is node


# *** operators


def test_operators():
    x, y, p = leaf(1), leaf(2), UOp(Ops.UNIQUE, dtypes.bool)
    two = UOp.const(dtypes.int, 2)
    assert (x + 2).src == (x, two)
    assert (2 - x).src == (two, x)
    assert (x < y).dtype is (x <= y).dtype is x.eq(y).dtype is dtypes.bool
    assert (x > y) is (y < x)
    assert (x >= 2) is UOp(Ops.CMPLE, dtypes.bool, (two, x))
    assert p.where(x, 2) is UOp(Ops.WHERE, dtypes.int, (p, x, two))
    assert p.where(2, x) is UOp(Ops.WHERE, dtypes.int, (p, two, x))
    assert x.cast(dtypes.int) is x
    assert x.cast(dtypes.float).dtype is dtypes.float
    assert (-x).op is Ops.NEG
    assert (x // y, x % y, x << y, x >> y)[0].op is Ops.IDIV
    vector = UOp(Ops.UNIQUE, dtypes.float.vec(4))
    assert (vector + 1).src[1].arg == (1.0,) * 4
    assert (vector < 1).dtype is dtypes.bool.vec(4)
    assert vector.cast(dtypes.int).dtype is dtypes.int.vec(4)
    with pytest.raises(TypeError, match="where needs a UOp"):
        p.where(1, 2)
    with pytest.raises(TypeError, match="needs its dtype stated"):
        x.alu(Ops.CAST)


def test_variables():
    n = Variable("n", 1, 8)
    bound = n.bind(3)
    assert bound.op is Ops.BIND
    assert bound.unbind() == (n, 3)
    assert bound.val == 3
    assert n.bind(3) is bound
    assert (n.bind(1).val, n.bind(8).val) == (1, 8)
    for outside in (0, 9):
        with pytest.raises(ValueError, match=f"Variable n must be between 1 and 8, not {outside}"):
            n.bind(outside)
    with pytest.raises(TypeError, match=r"Variable n takes an int, not 1\.0"):
        n.bind(1.0)
    with pytest.raises(TypeError, match="only a Variable is bound"):
        (n + 1).bind(1)
    with pytest.raises(TypeError, match="is not a bound Variable"):
        n.unbind()
    with pytest.raises(ValueError, match="with a letter first, not '1n'"):
        Variable("1n", 0, 1)
    with pytest.raises(ValueError, match="needs whole bounds with low <= high, not 3 and 2"):
        Variable("n", 3, 2)


# *** graphs


@pytest.mark.parametrize("compute", [lambda n: n * 2.5, lambda n: 0.5 + n, lambda n: n < 2.5])
def test_variables_do_not_cut_floats(compute):
    with pytest.raises(TypeError, match=r"whole numbers, \d\.5 is not"):
        compute(Variable("n", 1, 8))
    assert Variable("n", 1, 8) * 2.0 is Variable("n", 1, 8) * 2


def test_toposort_is_in_the_order_of_first_visit():
    x, y = leaf(1), leaf(2)
    total = x + y
    product = total * x
    assert product.toposort() == [x, y, total, product]
    assert toposort((y, product)) == [y, x, total, product]


def test_a_shared_graph_is_walked_once():
    node = leaf(1)
    for _ in range(500):
        node = node + node
    assert len(node.toposort()) == 501


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_chain_builds_prints_and_is_freed(length):
    gc.collect()
    before = live_nodes()
    node = leaf(10**9)  # no other test makes nodes of it
    for _ in range(length):
        node = UOp(Ops.NEG, dtypes.int, (node,))
    assert live_nodes() > length  # what other tests left may go at any time
    start = time.process_time()
    assert "..." in repr(node)
    assert time.process_time() - start < 5
    assert len(node.toposort()) == length + 1
    del node
    assert live_nodes() <= before


@pytest.mark.usefixtures("undisturbed")
def test_the_table_holds_nodes_weakly():
    gc.collect()
    before = live_nodes()
    nodes = [leaf(10**9 + n) * 3 + n for n in range(1000, 2000)]
    ref = weakref.ref(nodes[0])
    assert live_nodes() > before + 2000
    del nodes
    gc.collect()
    assert live_nodes() <= before + 10
    assert ref() is None


def test_a_dead_node_keeps_no_source_alive():
    source = leaf(10**9 + 1)
    ref, user = weakref.ref(source), source + 54321
    del source, user
    assert ref() is None  # although no node was made since


def test_a_node_made_again_is_a_new_one_and_stays():
    numbers = set()
    for _ in range(3):
        node = leaf(10**9 + 2)
        numbers.add(node.number)
        assert leaf(10**9 + 2) is node
        del node
    assert len(numbers) == 3


INTERRUPTED = """
    import itertools, signal
    from lazygrad.dtype import dtypes, to_dtype
    from lazygrad.ir import Ops, UOp
    from lazygrad.tensor import Tensor

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    heard = 0
    for number in itertools.count():
        if heard >= 300:
            break
        try:
            signal.setitimer(signal.ITIMER_REAL, 3e-5 + number % 7 * 1e-5)
            for n in range(number * 1000, number * 1000 + 200):
                node = UOp(Ops.UNIQUE, arg=n)
            tensor = Tensor(float(number))
            del node, tensor
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            heard += 1
"""

AT_EXIT = """
    from lazygrad.dtype import dtypes, to_dtype
    from lazygrad.ir import Ops, UOp, uop
    from lazygrad.tensor import Tensor, live

    node, tensor = UOp(Ops.UNIQUE, arg=1), Tensor(1.0)
    last_to_go = uop.nodes, live._live
    for module in (uop, live):
        vars(module).update(dict.fromkeys(vars(module)))
    del node, tensor
"""


@pytest.mark.parametrize("script", [INTERRUPTED, AT_EXIT], ids=["Ctrl-C", "exit"])
def test_nothing_is_said_where_nodes_and_tensors_die(script):
    """Python prints what is raised while something dies, and goes on as if it had not been."""
    if "setitimer" in script and not hasattr(signal, "setitimer"):
        pytest.skip("this system has no timers that interrupt")
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("make", [UOp, new_node], ids=["UOp", "new_node"])
def test_ctrl_c_between_any_two_lines_of_making_a_node(make):
    """What it leaves half-made is no node, and disturbs none."""
    code = make.__new__.__code__ if make is UOp else make.__code__
    before, source = sys.gettrace(), (leaf(0),)
    lines = sorted({line for _, _, line in code.co_lines() if line is not None})
    interrupted = set()

    def made_until(stop, number):
        def watch(frame, event, _):
            if frame.f_code is not code:
                return None
            if event == "line" and frame.f_lineno == stop:
                interrupted.add(stop)
                raise KeyboardInterrupt
            return watch

        sys.settrace(watch)
        try:
            make(Ops.NOOP, dtypes.int, source, 10**9 + number)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)

    for number, stop in enumerate(lines):
        made_until(stop, 5000 + number)
        assert live_nodes() > 0  # the dead leave the table
    assert len(interrupted) > 8


def test_facts_do_not_keep_users_alive():
    x = leaf(1)
    ref = weakref.ref(x + 12345)
    repr(x)
    gc.collect()
    assert ref() is None


def test_a_deep_graph_survives_interpreter_exit():
    code = (
        "from lazygrad.ir import *; from lazygrad.dtype import dtypes\n"
        "n = UOp(Ops.UNIQUE, dtypes.int)\n"
        "for _ in range(300_000): n = UOp(Ops.NEG, dtypes.int, (n,))\n"
        "print('built')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "built\n", "")


# *** threads


def test_threads_make_the_same_nodes():
    made: list[list[UOp]] = []

    def build(number: int) -> None:
        node = leaf(77)
        nodes = []
        for n in range(3000):
            node = node * 3 + n
            nodes.append(node)
        made.append(nodes)

    with often_switched():
        in_threads(8, build)
    assert len(made) == 8
    assert all(a is b for nodes in made[1:] for a, b in zip(made[0], nodes, strict=True))


def test_threads_that_drop_and_make_the_same_nodes():
    def churn(number: int) -> None:
        for n in range(20_000):
            node = leaf(n % 5) + n % 3
            assert node is leaf(n % 5) + n % 3, "two objects for one node"

    with often_switched():
        in_threads(6, churn)

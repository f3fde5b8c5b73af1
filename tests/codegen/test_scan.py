"""SCAN in kernels: a running value along one axis is one pass, in every loop order, under every Opt."""

from __future__ import annotations

import itertools

import pytest

from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, choose
from lazygrad.config import Context
from lazygrad.dtype import DType, dtypes
from lazygrad.ir.args import ReduceArg
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from lazygrad.target import Target
from tests.helpers import needs

from .kernels import const, equal, load, move, plain, random_contents, reduce, run, sink, store
from .programs import Programs, Shape

DEVICES = [
    "PYTHON",
    "CPU",
    pytest.param("AARCH64", marks=needs("aarch64")),
    pytest.param("CLANG", marks=needs("clang")),
]


def scan(value: UOp, op: Ops, axis: int, *factor: UOp) -> UOp:
    return UOp(Ops.SCAN, value.dtype, (value, *factor), ReduceArg(op, (axis,)))


def check(ast: UOp, device: str, opts: object = (), seed: int = 0, low: int = -4, high: int = 5) -> None:
    contents = random_contents(ast, seed, low, high)
    with Context(CHECK=1):
        found = run(ast, device, contents, opts=opts)
    for a, b in zip(found, evaluate(ast, contents), strict=True):
        assert equal(a, b), f"{a} is not {b}"


# *** the loops


def loops(ast: UOp) -> str:
    return loops_text(lower(ast))


def test_a_scan_is_one_pass():
    x = load(1, plain(3, 4))
    text = """\
for gidx0 in 0..3   GLOBAL
  acc0 = 0.0
  for gidx1 in 0..4   LOOP
    val0 = data1[gidx0*4+gidx1]
    data0[gidx0*4+gidx1] = acc0 + val0
    acc0 += val0"""
    assert loops(sink(store(0, scan(x, Ops.ADD, 1)))) == text


def test_the_scanned_axis_is_the_innermost():
    x = load(1, plain(3, 4))
    assert loops(sink(store(0, scan(x, Ops.MAX, 0)))).splitlines()[:3] == [
        "for gidx0 in 0..4   GLOBAL",
        "  acc0 = -inf",
        "  for gidx1 in 0..3   LOOP",
    ]


def test_what_is_computed_before_and_after_stands_in_the_same_loop():
    x, y = load(1, plain(5)), load(2, plain(5))
    text = """\
acc0 = 0.0
for gidx0 in 0..5   LOOP
  val0 = data2[gidx0]
  alu0 = data1[gidx0] * val0
  data0[gidx0] = (acc0 + alu0) * val0
  acc0 += alu0"""
    assert loops(sink(store(0, scan(x * y, Ops.ADD, 0) * y))) == text


def test_a_linear_recurrence():
    x, y = load(1, plain(5)), load(2, plain(5))
    text = """\
acc0 = 0.0
for gidx0 in 0..5   LOOP
  val0 = data1[gidx0]
  val1 = data2[gidx0]
  data0[gidx0] = acc0 * val1 + val0
  acc0 = acc0*val1 + val0"""
    assert loops(sink(store(0, scan(x, Ops.MULACC, 0, y)))) == text


def test_a_scan_of_a_scan_is_one_loop():
    x = load(1, plain(2, 9))
    text = loops(sink(store(0, scan(scan(x, Ops.ADD, 1), Ops.MAX, 1))))
    assert text.count("for ") == 2
    assert "acc1" in text


def test_what_is_not_read_in_order_is_a_reduce_up_to_there():
    x = load(1, plain(4))
    text = loops(sink(store(0, move(scan(x, Ops.ADD, 0), plain(4).flip((0,))))))
    assert "REDUCE" in text
    assert "LOOP" not in text


# *** the choice of lanes


@pytest.mark.parametrize(
    ("size", "lanes"),
    [
        (4096, [128]),  # eight vectors of running values wait for one total
        (1000, [128, 128]),  # rounded up to eight steps
        (128, [64]),  # two steps
        (131, [48, 48]),  # three steps of three vectors: nine hold 131 anyway
        (77, [80, 80]),  # no two steps of some vectors: the whole row
        (16, [16]),
    ],
)
def test_running_values_are_computed_several_vectors_at_once(size, lanes):
    target = Target("CPU", vector_bytes=64, vector_registers=32, has_masks=True)
    opts = choose(lower(sink(store(0, scan(load(1, plain(64, size)), Ops.ADD, 1)))), target)
    assert [opt.amount for opt in opts] == lanes
    assert {opt.axis for opt in opts} == {1}


# *** values


def kernels(shape: Shape, dtype: DType) -> dict[str, UOp]:
    x, y = load(1, plain(*shape), dtype), load(2, plain(*shape), dtype)
    u, v = load(2, plain(*shape), dtype), load(3, plain(*shape), dtype)  # beside two outputs
    backwards = plain(*shape).flip((1,))
    greatest = move(reduce(y, Ops.MAX, 1), plain(shape[0], 1).expand(shape))
    found = {
        f"{op.name} {axis}": sink(store(0, scan(x, op, axis) + y))
        for op in (Ops.ADD, Ops.MAX, Ops.MIN, Ops.MUL)
        for axis in (0, 1)
    }
    found |= {
        "of a product": sink(store(0, scan(x * y, Ops.ADD, 1) * y)),
        "both axes": sink(store(0, scan(x, Ops.ADD, 1) + scan(y, Ops.ADD, 0))),
        "twice": sink(store(0, scan(scan(x, Ops.ADD, 1) * y, Ops.MAX, 1))),
        "recurrence": sink(store(0, scan(x, Ops.MULACC, 1, y.ne(const(0, y)).cast(dtype)))),
        "backwards": sink(
            store(0, move(scan(x, Ops.ADD, 1), backwards) + scan(move(y, backwards), Ops.ADD, 1))
        ),
        "of a statistic": sink(store(0, scan(x - greatest, Ops.ADD, 1) + y)),
        "with a statistic": sink(store(0, scan(u, Ops.ADD, 1) + v), store(1, reduce(u * v, Ops.MAX, 1))),
        "two outputs": sink(store(0, scan(u, Ops.ADD, 0) + v), store(1, scan(u, Ops.MIN, 0))),
    }
    if shape[1] > 1:
        inner = plain(*shape).shrink(((0, shape[0]), (0, shape[1] - 1)))
        border = plain(*inner.shape).pad(((0, 0), (1, 0)))
        found["moved"] = sink(store(0, move(move(scan(x, Ops.ADD, 1), inner), border)))
        found["of a border"] = sink(store(0, scan(move(move(x, inner), border), Ops.MAX, 1) + y))
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [dtypes.float, dtypes.int], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (2, 16), (6, 1)], ids=str)
def test_values(shape: Shape, dtype: DType, device: str) -> None:
    for ast in kernels(shape, dtype).values():
        for opts in ((), None):
            check(ast, device, opts, low=-2, high=3)


OPTS = [
    [Opt(OptOps.UPCAST, 1, 4)],
    [Opt(OptOps.UPCAST, 1, 0)],
    [Opt(OptOps.UPCAST, 1, 2), Opt(OptOps.UPCAST, 1, 4)],
    [Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.UPCAST, 0, 3)],
    [Opt(OptOps.UPCAST, 0, 0), Opt(OptOps.UPCAST, 1, 8)],
    [Opt(OptOps.PADTO, 1, 5), Opt(OptOps.UPCAST, 1, 5)],
    [Opt(OptOps.PADTO, 0, 4), Opt(OptOps.UPCAST, 0, 4)],
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opts", OPTS, ids=str)
def test_under_opts(opts: list[Opt], device: str) -> None:
    """Lanes of the scanned axis are combined with twice the reach each time, registers in turn."""
    for op, axis, dtype in itertools.product((Ops.ADD, Ops.MAX), (0, 1), (dtypes.float, dtypes.int)):
        shape = (6, 16) if axis else (16, 6)
        x, y = load(1, plain(*shape), dtype), load(2, plain(*shape), dtype)
        ast = sink(store(0, scan(x * y, op, axis) + y))
        check(ast, device, opts)
    x, y = load(1, plain(6, 16)), load(2, plain(6, 16))
    factor = (x < y).cast(dtypes.float)
    check(sink(store(0, scan(x, Ops.MULACC, 1, factor) + y)), device, opts)


def test_the_scanned_axis_is_not_parallel():
    x = load(1, plain(8, 16))
    for opt in (Opt(OptOps.LOCAL, 1, 4),):
        with pytest.raises(ValueError, match="LOCAL"):
            check(sink(store(0, scan(x, Ops.ADD, 1))), "CPU", [opt])


@pytest.mark.parametrize("dtype", [dtypes.half, dtypes.uint8, dtypes.int64, dtypes.double], ids=str)
def test_dtypes(dtype: DType) -> None:
    for op in (Ops.ADD, Ops.MAX, Ops.MUL):
        for device, opts in itertools.product(("PYTHON", "CPU"), ((), None)):
            check(sink(store(0, scan(load(1, plain(2, 16), dtype), op, 1))), device, opts, low=0, high=3)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN], ids=str)
def test_bools(op: Ops) -> None:
    """A sum is `or`, a product `and`."""
    x = load(1, plain(2, 16))
    ast = sink(store(0, scan(x < const(0, x), op, 1).cast(dtypes.int)))
    for device, opts in itertools.product(("PYTHON", "CPU"), ((), None)):
        check(ast, device, opts)


def test_bfloat16_extremes() -> None:
    ast = sink(store(0, scan(load(1, plain(2, 16)).cast(dtypes.bfloat16), Ops.MAX, 1).cast(dtypes.float)))
    for device, opts in itertools.product(("PYTHON", "CPU"), ((), None)):
        check(ast, device, opts)


# *** random kernels


class Scans(Programs):
    """Kernels in which some values are scans."""

    def _value(self, shape: Shape, dtype: DType, depth: int) -> UOp:
        if depth <= 0 or self.rng.random() < 0.7:
            return super()._value(shape, dtype, depth)
        value, axis = self.value(shape, dtype, depth - 1), self.rng.randrange(len(shape))
        return scan(value, self.rng.choice((Ops.ADD, Ops.MAX, Ops.MIN)), axis)


class LongScans(Scans):
    SIZES = (1, 3, 8, 16)


@pytest.mark.parametrize("programs", [Scans, LongScans])
@pytest.mark.parametrize("device", DEVICES)
def test_random_kernels(programs: type[Programs], device: str) -> None:
    for seed in range(60 if programs is Scans and device == "PYTHON" else 12):
        ast = programs(seed).kernel()
        for opts in ((), None):
            check(ast, device, opts, seed)

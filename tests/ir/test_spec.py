"""What each form allows: good graphs pass, wrong ones are named with their node and their pass."""

from __future__ import annotations

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import SPECS, AxisType, Ops, RangeArg, ReduceArg, SpecError, UOp, Variable, verify
from lazygrad.ir.ops import ELEMENTWISE

CPU = UOp(Ops.DEVICE, arg="CPU")


def buffer(number, size=4, dtype=dtypes.float):
    return UOp(Ops.BUFFER, dtype, (CPU, UOp(Ops.UNIQUE, arg=number)), size)


A, B, I = buffer(1), buffer(2), buffer(3, dtype=dtypes.int)


class Tracker:
    def __init__(self):
        self.views = ()


VIEW = UOp(Ops.VIEW, arg=Tracker())


def memory(number, dtype=dtypes.float):
    return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(64), arg=number)


def load(number, dtype=dtypes.float):
    return UOp(Ops.LOAD, dtype, (memory(number, dtype), VIEW))


def loop(number, size, kind=AxisType.GLOBAL):
    return UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, size),), RangeArg(number, kind))


G0, R1 = loop(0, 8), loop(1, 8, AxisType.REDUCE)


def element(number, place, *valid, dtype=dtypes.float):
    m = memory(number, dtype.scalar())
    return UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, m.dtype, (m, place, *valid)),))


def stored(value, place=G0):
    m = memory(0, value.dtype.scalar())
    return UOp.sink(UOp(Ops.STORE, src=(UOp(Ops.INDEX, m.dtype, (m, place)), value)))


def total(value, *ranges):
    return UOp(Ops.REDUCE, value.dtype, (value, *ranges), Ops.ADD)


V4 = element(1, G0 * 4, dtype=dtypes.float.vec(4))
INT = {**{n: UOp.const(dtypes.int, n) for n in range(9)}}
LOOP = UOp(Ops.RANGE, dtypes.int, (INT[0], INT[8]), RangeArg(0, AxisType.REDUCE))
ACC = UOp(Ops.DEFINE_ACC, dtypes.int, (INT[0], LOOP), (0,))
PLACE = UOp(Ops.INDEX, dtypes.int.ptr(64), (memory(1, dtypes.int), LOOP))
VALUE = UOp(Ops.LOAD, dtypes.int, (PLACE,))
SUM = ACC + VALUE
ASSIGN = UOp(Ops.ASSIGN, dtypes.int, (ACC, SUM))
END = UOp(Ops.ENDRANGE, src=(LOOP,))
OUT = UOp(Ops.INDEX, dtypes.int.ptr(64), (memory(0, dtypes.int), INT[0]))
STORE = UOp(Ops.STORE, src=(OUT, ACC))
HEAD = [memory(0, dtypes.int), memory(1, dtypes.int), INT[0], INT[8], ACC]
PROGRAM = [*HEAD, LOOP, PLACE, VALUE, SUM, ASSIGN, END, OUT, STORE]

GOOD = {
    "elementwise": (1, (A + B).sqrt().cast(dtypes.half)),
    "movement": (1, UOp(Ops.PERMUTE, dtypes.float, (UOp(Ops.RESHAPE, dtypes.float, (A,), (2, 2)),), (1, 0))),
    "pad": (1, UOp(Ops.PAD, dtypes.float, (A,), ((0, Variable("n", 0, 4)),))),
    "reduce": (1, UOp(Ops.REDUCE_AXIS, dtypes.float, (A,), ReduceArg(Ops.ADD, (0,)))),
    "gather": (1, UOp(Ops.GATHER, dtypes.float, (A, I))),
    "scatter": (1, UOp(Ops.SCATTER, dtypes.float, (A, I, B), Ops.ADD)),
    "scatter that combines nothing": (1, UOp(Ops.SCATTER, dtypes.float, (A, I, B))),
    "constants": (1, UOp.const(dtypes.float, 1) + UOp(Ops.CONST, dtypes.float, (CPU,), 1)),
    "kernel": (2, UOp.sink(UOp(Ops.STORE, src=(memory(0), VIEW, load(1) + load(2))))),
    "kernel gather": (
        2,
        UOp.sink(
            UOp(
                Ops.STORE,
                src=(memory(0), VIEW, UOp(Ops.LOAD, dtypes.float, (memory(1), VIEW, load(2, dtypes.int)))),
            )
        ),
    ),
    "kernel variable": (
        2,
        UOp.sink(UOp(Ops.STORE, src=(memory(0), VIEW, load(1) * Variable("n", 1, 4).cast(dtypes.float)))),
    ),
    "loops": (3, stored(element(1, G0 * 3 + 1, G0 < 5) + G0.cast(dtypes.float))),
    "reduction": (3, stored(total(element(1, G0 * 8 + R1), R1))),
    "vectors": (5, stored(V4 * UOp(Ops.VECTORIZE, V4.dtype, (element(2, G0),) * 4), G0 * 4)),
    "lanes": (5, stored(UOp(Ops.GEP, dtypes.float, (V4,), (2,)))),
    "program": (7, PROGRAM),
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name):
    form, graph = GOOD[name]
    verify(graph, SPECS[form])


X = UOp(Ops.ADD, dtypes.float, (A, I))
WRONG = {
    "mixed dtypes": (1, X, "Ops.ADD: its sources have one dtype, not dtypes.float, dtypes.int"),
    "arity": (1, UOp(Ops.ADD, dtypes.float, (A,)), "it takes 2 sources, not 1"),
    "result dtype": (1, UOp(Ops.CMPLT, dtypes.float, (A, B)), "its dtype is dtypes.bool"),
    "condition": (1, UOp(Ops.WHERE, dtypes.float, (A, A, B)), "its condition is a bool"),
    "sqrt of ints": (1, I.sqrt(), "it is for floats"),
    "shift of floats": (1, UOp(Ops.SHL, dtypes.float, (A, A)), "it is for integers"),
    "and of floats": (1, UOp(Ops.AND, dtypes.float, (A, A)), "it is for integers and bools"),
    "bitcast size": (1, UOp(Ops.BITCAST, dtypes.half, (A,)), "it changes the size"),
    "permute": (1, UOp(Ops.PERMUTE, dtypes.float, (A,), (1, 1)), "its arg is different axes"),
    "order": (1, UOp(Ops.PERMUTE, dtypes.float, (A,), (1, 2)), "an order of all axes"),
    "shape": (1, UOp(Ops.RESHAPE, dtypes.float, (A,), (2, 2.5)), "its arg is a shape"),
    "pairs": (1, UOp(Ops.PAD, dtypes.float, (A,), (1, 2)), "a pair of sizes per axis"),
    "reduce": (1, UOp(Ops.REDUCE_AXIS, dtypes.float, (A,), ReduceArg(Ops.SUB, (0,))), "an op that combines"),
    "gather": (1, UOp(Ops.GATHER, dtypes.float, (A, B)), "it is indexed by integers"),
    "scatter by an op that does not combine": (
        1,
        UOp(Ops.SCATTER, dtypes.float, (A, I, B), Ops.SUB),
        "its arg is an op that combines, or None, not <Ops.SUB",
    ),
    "scattered dtype": (
        1,
        UOp(Ops.SCATTER, dtypes.float, (A, I, I)),
        "it stores values of dtypes.float, not dtypes.int",
    ),
    "not of this form": (1, G0.cast(dtypes.int), "Ops.RANGE: it has no place in this form"),
    "buffer": (1, UOp(Ops.BUFFER, dtypes.float, (CPU,), 4), "it takes 2 sources, not 1"),
    "kernel store": (
        2,
        UOp.sink(UOp(Ops.STORE, src=(memory(0, dtypes.int), VIEW, load(1)))),
        "it stores dtypes.float into dtypes.int.ptr",
    ),
    "kernel load": (2, UOp(Ops.LOAD, dtypes.int, (memory(0), VIEW)), "it reads dtypes.float"),
    "kernel constant": (2, load(1) + 1, "Ops.CONST: it takes 1 sources, not 0"),
    "kernel index": (2, Variable("n", 1, 4) < 3, "is index arithmetic"),
    "reshape in a kernel": (
        2,
        UOp(Ops.RESHAPE, dtypes.float, (load(1),), (2,)),
        "it has no place in this form",
    ),
    "a view in loops": (
        3,
        UOp.sink(UOp(Ops.STORE, src=(memory(0), VIEW, load(1)))),
        "it has no place in this form",
    ),
    "place": (3, stored(element(1, UOp.const(dtypes.int, 3))), "its place is index arithmetic"),
    "validity": (3, stored(element(1, G0, G0)), "its validity is a bool"),
    "lanes too early": (4, stored(V4, G0 * 4), "vectors come later"),
    "loaded dtype": (3, stored(element(1, G0).replace(dtype=dtypes.int)), "it reads dtypes.float"),
    "same number": (3, stored(element(1, G0 + loop(0, 9))), "two RANGEs have the number 0"),
    "unrolled": (5, stored(element(1, G0 + loop(1, 4, AxisType.UPCAST))), "UPCAST ranges have become lanes"),
    "lanes": (5, stored(UOp(Ops.GEP, dtypes.float, (V4,), (4,))), r"it takes lanes \(4,\)"),
    "mixed lanes": (5, stored(UOp(Ops.ADD, V4.dtype, (V4, element(2, G0)))), "it has 4 lanes and its source"),
    "target index": (6, stored(element(1, G0)), "is index arithmetic"),
    "program order": (7, [*HEAD, LOOP, VALUE], "it uses Ops.INDEX None, which is not computed yet"),
    "program scope": (
        7,
        [*HEAD, LOOP, PLACE, VALUE, SUM, ASSIGN, END, OUT, UOp(Ops.STORE, src=(OUT, VALUE))],
        "no more in scope",
    ),
    "open loop": (7, PROGRAM[:-3], "the program ends before Ops.RANGE"),
    "closed twice": (7, [*HEAD, LOOP, END, UOp(Ops.ENDRANGE, src=(LOOP,), arg=1)], "not the innermost"),
    "twice": (7, [*HEAD, HEAD[0]], "it is in the list twice"),
    "accumulator": (
        7,
        [*HEAD, LOOP, UOp(Ops.ASSIGN, dtypes.int, (ACC, UOp.const(dtypes.half, 1)))],
        "it puts dtypes.half into an accumulator of dtypes.int",
    ),
}
WRONG["open loop"] = (7, PROGRAM[:10], "the program ends before Ops.RANGE")


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    form, graph, message = WRONG[name]
    with pytest.raises(SpecError, match=message) as raised:
        verify(graph, SPECS[form], "the pass")
    assert str(raised.value).startswith(f"after the pass ({SPECS[form].name}): ")


def test_the_error_shows_the_node():
    with pytest.raises(SpecError, match=r"UOp\(Ops.ADD, dtypes.float, arg=None, src=\(\n  UOp\(Ops.BUFFER"):
        verify(X.sqrt(), SPECS[1])


def test_the_target_decides_what_it_has():
    place = UOp.const(dtypes.int, 0)
    graph = stored(element(1, place).alu(Ops.EXP2), place)
    verify(graph, SPECS[6], "legalize", lambda op, dtype: True)
    with pytest.raises(SpecError, match=r"the target has no EXP2 of dtypes.float"):
        verify(graph, SPECS[6], "legalize", lambda op, dtype: op is not Ops.EXP2)


def test_threads_may_wait_again():
    wait = UOp(Ops.WAIT, dtypes.void, (), 0)
    verify([*HEAD, wait, wait], SPECS[7])


def test_every_elementwise_op_is_legal_in_every_form():
    for spec in SPECS.values():
        assert set(spec.checks) >= ELEMENTWISE
    assert sorted(SPECS) == [1, 2, 3, 4, 5, 6, 7]


def test_every_op_belongs_to_some_form():
    known = {op for spec in SPECS.values() for op in spec.checks}
    assert set(Ops) == known


def test_a_long_chain_is_verified():
    node = A
    for _ in range(20_000):
        node = node + B
    verify(node, SPECS[1])

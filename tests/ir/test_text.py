"""The printed forms: what the documents show, and that size does not matter."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import pytest

from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir import (
    Ops,
    RangeArg,
    ReduceArg,
    UOp,
    Variable,
    expression,
    linear_text,
    register_style,
    render,
)
from lazygrad.ir.args import AxisType
from lazygrad.ir.text import FEW_NODES, STYLES, number_text, short_text, styled, uop_text


class Words:
    """An arg that prints as the documents' own records do."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


VIEW1 = Words("ShapeTracker(views=(View(shape=(1,), strides=(0,), offset=0, mask=None, contiguous=True),))")


def test_the_sum_of_two_constants():
    const = UOp(Ops.CONST, dtypes.float, arg=1.0)
    assert repr(UOp(Ops.ADD, dtypes.float, src=(const, const), arg=None)) == (
        "UOp(Ops.ADD, dtypes.float, arg=None, src=(\n"
        "  x0:=UOp(Ops.CONST, dtypes.float, arg=1.0, src=()),\n   x0,))"
    )


def test_leaf_is_one_line():
    assert repr(UOp(Ops.DEVICE, arg="METAL")) == "UOp(Ops.DEVICE, dtypes.void, arg='METAL', src=())"


def test_a_buffer():
    buffer = UOp(Ops.BUFFER, dtypes.int, (UOp(Ops.DEVICE, arg="METAL"), UOp(Ops.UNIQUE, arg=6)), 1)
    assert repr(buffer) == (
        "UOp(Ops.BUFFER, dtypes.int, arg=1, src=(\n"
        "  UOp(Ops.DEVICE, dtypes.void, arg='METAL', src=()),\n"
        "  UOp(Ops.UNIQUE, dtypes.void, arg=6, src=()),))"
    )


def test_a_kernel_shares_its_device(golden):
    device = UOp(Ops.DEVICE, arg="METAL")
    buffers = [UOp(Ops.BUFFER, dtypes.int, (device, UOp(Ops.UNIQUE, arg=n)), 1) for n in (6, 1, 3, 5)]
    kernel = UOp(
        Ops.KERNEL, src=tuple(buffers), arg=Words("<Kernel 12 SINK(<Ops.STORE: 45>,) (__add__, __mul__)>")
    )
    assert golden(repr(kernel))


def test_a_kernel_ast(golden):
    view = UOp(Ops.VIEW, arg=VIEW1)
    out, data = (UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(1), arg=n) for n in (0, 1))
    total = UOp(Ops.LOAD, dtypes.int, (data, view)) + UOp(Ops.CONST, dtypes.int, (view,), 2)
    assert golden(repr(UOp.sink(UOp(Ops.STORE, src=(out, view, total)))))


def test_args():
    x = UOp(Ops.CONST, dtypes.float, (), 0.1)
    assert "arg=(Ops.ADD, (0,))" in repr(UOp(Ops.REDUCE_AXIS, dtypes.float, (x,), ReduceArg(Ops.ADD, (0,))))
    assert "arg=Ops.MAX" in repr(UOp(Ops.REDUCE, dtypes.float, (x,), Ops.MAX))
    assert "arg=0.1," in repr(x)
    assert "arg=True," in repr(UOp.const(dtypes.bool, 1))
    assert "dtypes.float.vec(2), arg=(0.1, -0.0)," in repr(UOp.const(dtypes.float.vec(2), (0.1, -0.0)))
    assert repr(Variable("pos", 1, 8)) == "UOp(Ops.DEFINE_VAR, dtypes.index, arg=('pos', 1, 8), src=())"
    symbolic = UOp(Ops.RESHAPE, dtypes.float, (x,), (Variable("pos", 1, 8) * 4 + 1, 3))
    assert "arg=(((pos*4)+1), 3)" in repr(symbolic)


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (dtypes.float32, 0.1, "0.1"),
        (dtypes.float32, 1e-5, "1e-05"),
        (dtypes.float32, 16777216.0, "16777216.0"),
        (dtypes.float32, 1 / 3, "0.33333334"),
        (dtypes.float64, 0.1, "0.1"),
        (dtypes.float16, 0.1, "0.1"),
        (dtypes.bfloat16, 3.140625, "3.14"),
        (dtypes.float32, math.inf, "inf"),
        (dtypes.float32, math.nan, "nan"),
        (dtypes.float32, -0.0, "-0.0"),
    ],
)
def test_floats_print_shortest(dtype, value, text):
    assert number_text(UOp.const(dtype, value).arg, dtype) == text
    assert math.isnan(value) or UOp.const(dtype, float(text)) is UOp.const(dtype, value)


def test_a_print_stops_at_depth_200_unless_asked():
    node = UOp.const(dtypes.int, 1)
    for n in range(300):
        node = UOp(Ops.NEG, dtypes.int, (node,), n)
    assert len(repr(node).splitlines()) == 201
    assert "src=(...))" in repr(node)
    full = uop_text(node, full=True)
    assert len(full.splitlines()) == 301
    assert "..." not in full


def test_a_long_chain_prints_quickly():
    node = UOp.const(dtypes.int, 1)
    for n in range(20_000):
        node = UOp(Ops.ADD, dtypes.int, (node, UOp.const(dtypes.int, n % 7)))
    start = time.process_time()
    assert repr(node).count("\n") < 500
    assert uop_text(node, full=True).count("\n") == 40_000
    assert time.process_time() - start < 10


def test_a_graph_with_2_to_the_100_paths_prints_each_node_once():
    node = UOp(Ops.UNIQUE, dtypes.int)
    for _ in range(100):
        node = UOp(Ops.MUL, dtypes.int, (node, node))
    text = repr(node)
    assert text.count("UOp(") == 101
    assert len(text.splitlines()) == 201


# *** expressions

R0, R1 = (
    UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, size),), RangeArg(n, AxisType.LOOP))
    for n, size in enumerate((64, 30))
)
A = UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(1920), arg=1)


def test_render_puts_everything_in_parentheses():
    assert render(R0 * 2 + R1) == "((gidx0*2)+gidx1)"


def test_expressions_have_few_parentheses():
    index = R0 * 30 + R1
    load = UOp(Ops.LOAD, dtypes.float, (UOp(Ops.INDEX, A.dtype, (A, index)),))
    assert expression(load + 1) == "data1[gidx0*30+gidx1] + 1.0"
    assert expression((load + 1) * load - (load - 2)) == (
        "(data1[gidx0*30+gidx1] + 1.0) * data1[gidx0*30+gidx1] - (data1[gidx0*30+gidx1] - 2.0)"
    )
    assert expression(index + (-5)) == "gidx0*30+gidx1-5"
    assert expression((R0 + R1) // 4 % 3 * 7) == "(gidx0+gidx1)//4%3*7"
    assert expression((load < 1).where(load, load + -1.0)) == (
        "data1[gidx0*30+gidx1] < 1.0 ? data1[gidx0*30+gidx1] : data1[gidx0*30+gidx1] - 1.0"
    )
    assert expression(load.sqrt().maximum(0)) == "max(sqrt(data1[gidx0*30+gidx1]), 0.0)"
    assert expression(load.cast(dtypes.half)) == "half(data1[gidx0*30+gidx1])"


def test_a_load_shows_when_it_is_valid():
    index = UOp(Ops.INDEX, A.dtype, (A, R0, R0 < 5))
    assert expression(UOp(Ops.LOAD, dtypes.float, (index,))) == "(gidx0 < 5 ? data1[gidx0] : 0)"


def test_an_expression_of_any_depth_prints():
    node = UOp(Ops.UNIQUE, dtypes.int)
    for _ in range(20_000):
        node = node * 3 - node
    assert len(expression(node)) < 10_000


# *** linear programs


def test_the_table_of_the_dot_product(golden):
    index = dtypes.int
    data = [UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(n), arg=i) for i, n in enumerate((1, 2, 2))]
    zero, two = UOp.const(index, 0), UOp.const(index, 2)
    loop = UOp(Ops.RANGE, index, (zero, two), RangeArg(0, AxisType.REDUCE))
    acc = UOp(Ops.DEFINE_ACC, dtypes.int, (zero, loop), (0,))
    at = [UOp(Ops.INDEX, d.dtype, (d, loop)) for d in data[1:]]
    loads = [UOp(Ops.LOAD, dtypes.int, (i,)) for i in at]
    product = loads[0] * loads[1]
    total = acc + product
    assign = UOp(Ops.ASSIGN, dtypes.int, (acc, total))
    end = UOp(Ops.ENDRANGE, dtypes.void, (loop,))
    where = UOp(Ops.INDEX, data[0].dtype, (data[0], zero))
    store = UOp(Ops.STORE, dtypes.void, (where, acc))
    rows = [
        *data,
        zero,
        two,
        acc,
        loop,
        at[0],
        loads[0],
        at[1],
        loads[1],
        product,
        total,
        assign,
        end,
        where,
        store,
    ]
    text = linear_text(rows)
    assert golden(text)
    first = text.splitlines()[0]
    assert (
        first
        == "   0 Ops.DEFINE_GLOBAL   : dtypes.int.ptr(1)              []                               0"
    )


# *** styles


def test_styles():
    node = UOp.const(dtypes.int, 1)
    register_style("short", {"graph": lambda node: node.op.name})
    try:
        with Context(DEBUG_STYLE="short"):
            assert styled("graph", node) == "CONST"
            assert styled("linear", [node]) == linear_text([node])
        assert styled("graph", node) == repr(node)
        with (
            Context(DEBUG_STYLE="shrt"),
            pytest.raises(ValueError, match=r"'shrt' is not a style; known: '',.* 'short'"),
        ):
            styled("graph", node)
    finally:
        del STYLES["short"]
    with pytest.raises(ValueError, match="a style prints"):
        register_style("wrong", {"picture": repr})


def test_records_print():
    class Named(NamedTuple):
        a: int

    assert "arg=Named(a=1)" in repr(UOp(Ops.NOOP, arg=Named(1)))


@pytest.mark.parametrize("nodes", [FEW_NODES, FEW_NODES + 1])
def test_a_large_graph_in_short(nodes):
    root = UOp.const(dtypes.int, 0)
    for _ in range(nodes - 1):
        root = UOp(Ops.NEG, dtypes.int, (root,))
    whole = uop_text(root)
    assert short_text(root) == (
        whole if nodes == FEW_NODES else f"{whole.splitlines()[0]}... {nodes} nodes))"
    )

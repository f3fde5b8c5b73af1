"""An index is checked where it is asked for: not in lanes and turns that Opts or grids add, and whatever is
known of where its value is used. Run in the interpreter, with the Opts and vectors of other machines.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor, Variable
from lazygrad.codegen.expressions.checks import places
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.rewrite import graph_rewrite
from lazygrad.ir.uop import UOp
from lazygrad.renderer.python import target as interpreter
from lazygrad.target import Target
from lazygrad.target.processors import PROCESSORS, refined

from .kernels import GRID, buffers_of, left_by


def processor(name: str) -> Target:
    """The interpreter with the vectors of a processor, whose Opts it chooses."""
    known = PROCESSORS[name]
    return replace(refined(interpreter(), name, known.features), has_gathers=known.gathers)


TARGETS = {name: processor(name) for name in ("x86-64", "x86-64-v3", "x86-64-v4", "znver5")} | {"grid": GRID}


def played(value: Tensor, target: Target) -> tuple[list[float], bool]:
    """What a target computes with the one kernel of a tensor, and whether a CHECK failed."""
    (item,) = value.schedule()
    buffers = buffers_of(item.ast)
    inputs = dict(enumerate(item.bufs))
    contents = [
        inputs[b.arg].numpy().tolist()
        if b.arg in inputs and inputs[b.arg].is_allocated
        else [0] * b.dtype.size
        for b in buffers
    ]
    variables = {variable.arg[0]: number for variable, number in item.var_vals.items()}
    left = left_by(item.ast, target, contents, variables, None)
    return left[0], any(any(left[b.arg]) for b in buffers if b.dtype.role == "bad")


@pytest.mark.choice
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [3, 5, 13])
def test_no_target_asks_beyond_an_axis(target, size):
    i, table = Tensor.arange(size), Tensor(np.arange(size, dtype=np.float32)).realize()
    apart = (i.unsqueeze(1) - i).abs()
    wanted = np.abs(np.arange(size)[:, None] - np.arange(size)).ravel().tolist()
    assert played(table[apart], TARGETS[target]) == (wanted, False)
    assert played(table[apart + 1], TARGETS[target])[1]


@pytest.mark.choice
@pytest.mark.parametrize("target", TARGETS)
def test_no_target_asks_beyond_a_symbolic_size(target):
    places, table = Tensor.arange(10)[: Variable("n", 1, 10).bind(3)], Tensor([5.0, 6.0, 7.0]).realize()
    found, failed = played(table[places] * 2, TARGETS[target])
    assert (found[:3], failed) == ([10.0, 12.0, 14.0], False)
    assert played(table[places + 1] * 2, TARGETS[target])[1]


def test_what_is_loaded_for_a_place_is_read_where_it_was():
    """Where the outer condition fails the inner place is read all the same: it stays inside of its buffer."""
    counts = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("counts", 0, 1)).ne(0)
    number = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("number", 0, 99))
    table, rows = (UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(4), (), number) for number in (0, 1))
    inner = UOp(Ops.INDEX, rows.dtype, (rows, counts.where(number, 0)))
    row = UOp(Ops.LOAD, dtypes.int, (inner,))
    access = UOp(Ops.INDEX, table.dtype, (table, counts.where(row, 0), counts))
    assert graph_rewrite(access, places).src[1] is row

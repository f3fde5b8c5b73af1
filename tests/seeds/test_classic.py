"""SEEDS 6 and 7: the tree and the table of the oldest seed, and when they are printed."""

from __future__ import annotations

import pytest

from lazygrad import Device, Tensor
from lazygrad.codegen.compile import stages
from lazygrad.compat.classic_text import table_text, tree_text

from .support import run_file

VIEW = "ShapeTracker(views=(View(shape=({},), strides=({},), offset=0, mask=None, contiguous=True),))"
TREE = [
    f"  0 ━┳ STORE MemBuffer(idx=0, dtype=dtypes.int, st={VIEW.format(1, 0)})",
    "  1  ┗━┳ SUM (0,)",
    "  2    ┗━┳ MUL ",
    f"  3      ┣━━ LOAD MemBuffer(idx=1, dtype=dtypes.int, st={VIEW.format(2, 1)})",
    f"  4      ┗━━ LOAD MemBuffer(idx=2, dtype=dtypes.int, st={VIEW.format(2, 1)})",
]
TABLE = """\
step  Op_name               type                      input                           arg
   0 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (0, 'data0', True)
   1 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (1, 'data1', False)
   2 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (2, 'data2', False)
   3 UOps.DEFINE_ACC     : dtypes.int                []                               0
   4 UOps.CONST          : dtypes.int                []                               0
   5 UOps.CONST          : dtypes.int                []                               2
   6 UOps.LOOP           : dtypes.int                [4, 5]                           None
   7 UOps.LOAD           : dtypes.int                [1, 6]                           None
   8 UOps.LOAD           : dtypes.int                [2, 6]                           None
   9 UOps.ALU            : dtypes.int                [7, 8]                           BinaryOps.MUL
  10 UOps.ALU            : dtypes.int                [9, 3]                           BinaryOps.ADD
  11 UOps.PHI            : dtypes.int                [3, 10, 6]                       None
  12 UOps.ENDLOOP        :                           [6]                              None
  13 UOps.STORE          :                           [0, 4, 11]                       None"""


@pytest.fixture
def dot():
    return Tensor([1, 2]).dot(Tensor([3, 4])).schedule()[-1].ast


@pytest.mark.choice
def test_S53_C9_the_tree(dot):
    assert tree_text(dot).splitlines() == TREE


@pytest.mark.choice
def test_S58_S59_C1_C17_the_table(dot):
    *_, (_, program) = stages(dot, Device["CPU"].renderer, [])
    assert table_text(program) == TABLE


@pytest.mark.parametrize(("level", "tree", "table"), [(2, False, False), (3, True, False), (5, True, True)])
def test_S57_S65_at_which_level_they_are_printed(level, tree, table):
    out = run_file("dot_product", DEBUG=level, NOOPT=1, DEBUG_STYLE="classic")
    assert ("\n".join(TREE) in out, TABLE in out) == (tree, table)


def test_S57_the_ast_before_and_after_the_opts():
    out = run_file("dot_product", DEBUG=5, NOOPT=1)
    before = out.index("UOp(Ops.SINK, dtypes.void, arg=None")
    info = "KernelInfo(name='r_2', local_dims=0, upcasted=0, dont_use_locals=False)"
    assert before < out.index("r_2: opts []") < out.index(f"UOp(Ops.SINK, dtypes.void, arg={info}")


def test_S65_C6_the_newer_table_from_5_on():
    assert "Ops.DEFINE_ACC      : dtypes.int" in run_file("dot_product", DEBUG=5, NOOPT=1)

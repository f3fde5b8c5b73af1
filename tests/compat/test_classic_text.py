"""The printed forms of early 2024."""

from __future__ import annotations

import pytest

from lazygrad import Context, Device, Tensor, UOp, dtypes
from lazygrad.codegen.compile import stages
from lazygrad.compat.classic_text import HEADER, MemBuffer, print_tree, table_text, tree_text
from lazygrad.ir import styled
from lazygrad.renderer.cstyle import MetalRenderer
from lazygrad.shape.tracker import ShapeTracker


def ast_of(tensor):
    return tensor.schedule()[-1].ast


def program(ast, renderer=None, opts=()):
    return list(stages(ast, renderer or Device["CPU"].renderer, opts))[-1][1]


@pytest.mark.choice
def test_the_tree_of_a_softmax():
    tree = tree_text(ast_of(Tensor.empty(4, 5).softmax())).splitlines()
    drawn = [
        line.partition(" (")[0].partition(" MemBuffer")[0].partition(" ShapeTracker")[0].rstrip()
        for line in tree
    ]
    assert drawn == [
        "  0 ━┳ STORE",
        "  1  ┗━┳ DIV",
        "  2    ┣━┳ EXP",
        "  3    ┃ ┗━┳ SUB",
        "  4    ┃   ┣━━ LOAD",
        "  5    ┃   ┗━┳ VIEW",
        "  6    ┃     ┗━┳ MAX",
        "  7    ┃       ┗━━ LOAD",
        "  8    ┗━┳ VIEW",
        "  9      ┗━┳ SUM",
        " 10        ┗━⬆ goto 2: EXP",
    ]


def test_constants_and_casts():
    tree = tree_text(ast_of((Tensor.empty(4).realize() + 2.0).cast(dtypes.int)))
    assert "CAST (dtypes.int, False)" in tree
    assert "CONST ConstBuffer(val=2.0, dtype=dtypes.float, st=ShapeTracker(" in tree


def test_several_outputs_are_one_after_the_other():
    a = Tensor.empty(4).realize()
    both = UOp.sink(*ast_of(a + 1).src, *ast_of(a * 2).src)
    tops = [line for line in tree_text(both).splitlines() if "STORE" in line]
    assert [line[3:9] for line in tops] == [" ━┳ ST", " ━┳ ST"]


def test_print_tree(capsys):
    print_tree(ast_of(Tensor.empty(2).realize() + 1))
    assert capsys.readouterr().out.startswith("  0 ━┳ STORE MemBuffer(idx=0, dtype=dtypes.float, st=")


def test_a_long_chain():
    x = Tensor([1.0]).realize()
    for _ in range(300):
        x = x.sin()
    assert len(tree_text(x.uop).splitlines()) > 300


def test_memory():
    tracker = ShapeTracker.from_shape((2,))
    assert repr(MemBuffer(1, dtypes.int, tracker)) == f"MemBuffer(idx=1, dtype=dtypes.int, st={tracker!r})"


def rows(text: str) -> list[list[str]]:
    return [
        [line[5:25].strip(), line[27:53].strip(), line[53:86].strip(), line[86:]]
        for line in text.splitlines()[1:]
    ]


def test_a_grid():
    text = table_text(program(ast_of(Tensor.empty(16).realize() + 1), MetalRenderer()))
    assert text.splitlines()[0] == HEADER
    found = rows(text)
    assert ["UOps.SPECIAL", "dtypes.int", "[]", "(0, 'gidx0', 16)"] in found
    assert found[-1][0] == "UOps.STORE"


def test_a_masked_load_has_its_condition():
    text = table_text(program(ast_of(Tensor.empty(3).realize().pad(((1, 1),)) + 1)))
    load = next(row for row in rows(text) if row[0] == "UOps.LOAD")
    assert load[2].count(",") == 3


@pytest.mark.choice
def test_the_accumulator_is_what_it_became():
    """Two sums in one kernel: each PHI belongs to its loop, and later rows read the PHI."""
    text = table_text(program(ast_of(Tensor.empty(4, 5).realize().softmax())))
    found = rows(text)
    phis = [n for n, row in enumerate(found) if row[0] == "UOps.PHI"]
    assert len(phis) == 2
    for phi in phis:
        loop = int(found[phi][2].strip("[]").split(", ")[-1])
        assert found[loop][0] == "UOps.LOOP"
        assert any(str(phi) in row[2].strip("[]").split(", ") for row in found[phi + 1 :])


def test_the_style_is_chosen_by_a_flag():
    ast = ast_of(Tensor.empty(2).realize() + 1)
    assert styled("graph", ast).startswith("UOp(Ops.SINK")
    with Context(DEBUG_STYLE="classic"):
        assert styled("graph", ast) == tree_text(ast)
        assert styled("linear", program(ast)).startswith(HEADER)

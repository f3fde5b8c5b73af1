"""SEEDS 4 to 7: the node and its print, names of ops, kernel ASTs, the linear table."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, dtypes
from lazygrad.codegen.compile import stages
from lazygrad.device import Device
from lazygrad.ir import Ops, UOp
from lazygrad.ir.text import linear_text


def one():
    return UOp(Ops.CONST, dtypes.float, arg=1.0)


def test_S40_fields():
    add = UOp(Ops.ADD, dtypes.float, src=(one(), one()), arg=None)
    assert (add.op, add.dtype, add.src, add.arg) == (Ops.ADD, dtypes.float, (one(), one()), None)
    bare = UOp(Ops.NOOP)
    assert (bare.dtype, bare.src, bare.arg) == (dtypes.void, (), None)


def test_S41_imported_from_ir():
    import lazygrad.ir

    assert lazygrad.ir.UOp is UOp
    assert lazygrad.UOp is UOp


def test_S42_print_of_a_node():
    add = UOp(Ops.ADD, dtypes.float, src=(one(), UOp(Ops.CONST, dtypes.float, arg=1.0)))
    assert str(add) == (
        "UOp(Ops.ADD, dtypes.float, arg=None, src=(\n"
        "  x0:=UOp(Ops.CONST, dtypes.float, arg=1.0, src=()),\n"
        "   x0,))"
    )


def test_S43_S48_a_leaf_is_one_line_and_shows_every_field():
    assert str(one()) == "UOp(Ops.CONST, dtypes.float, arg=1.0, src=())"
    assert str(UOp(Ops.NOOP)) == "UOp(Ops.NOOP, dtypes.void, arg=None, src=())"


def test_S44_indent_and_closers():
    x, y = UOp(Ops.CONST, dtypes.int, arg=1), UOp(Ops.CONST, dtypes.int, arg=2)
    text = str(UOp(Ops.NEG, dtypes.int, (UOp(Ops.ADD, dtypes.int, (x, y)),)))
    assert text.splitlines() == [
        "UOp(Ops.NEG, dtypes.int, arg=None, src=(",
        "  UOp(Ops.ADD, dtypes.int, arg=None, src=(",
        "    UOp(Ops.CONST, dtypes.int, arg=1, src=()),",
        "    UOp(Ops.CONST, dtypes.int, arg=2, src=()),)),))",
    ]


def test_S45_S46_names_of_what_is_used_again():
    """N counts nodes in the order of their first visit; only what is used again is named."""
    x, y = UOp(Ops.CONST, dtypes.int, arg=1), UOp(Ops.CONST, dtypes.int, arg=2)
    total = UOp(Ops.ADD, dtypes.int, (x, y))
    lines = str(UOp(Ops.MUL, dtypes.int, (UOp(Ops.NEG, dtypes.int, (x,)), total))).splitlines()
    assert lines[2] == "    x1:=UOp(Ops.CONST, dtypes.int, arg=1, src=()),)),"
    assert lines[4] == "     x1,"
    assert lines[5] == "    UOp(Ops.CONST, dtypes.int, arg=2, src=()),)),))"


def test_S47_equal_is_the_same():
    assert one() is UOp(Ops.CONST, dtypes.float, arg=1.0)
    assert UOp(Ops.ADD, dtypes.float, (one(), one())) is UOp(Ops.ADD, dtypes.float, (one(), one()))


def test_S49_pointers_and_vectors():
    assert repr(dtypes.int.ptr(1)) == "dtypes.int.ptr(1)"
    assert repr(dtypes.float.vec(4)) == "dtypes.float.vec(4)"


NAMES = """SINK STORE LOAD DEFINE_GLOBAL DEFINE_ACC CONST VIEW ADD MUL SUM MAX REDUCE_AXIS SPECIAL RANGE
    ENDRANGE ASSIGN BUFFER DEVICE UNIQUE KERNEL COPY EMPTY INDEX VECTORIZE GEP"""


@pytest.mark.parametrize("name", NAMES.split())
def test_S50_names_of_ops(name):
    assert isinstance(Ops[name], Ops)


def test_S51_numbers_of_ops():
    found = [op.value for op in (Ops.STORE, Ops.MUL, Ops.ADD, Ops.ASSIGN, Ops.BUFFER)]
    assert found == [45, 48, 52, 66, 23]


def test_S52_text_of_an_op():
    assert repr(Ops.MUL) == "<Ops.MUL: 48>"
    assert str(Ops.MUL) == "Ops.MUL"


def dot_ast() -> UOp:
    a, b = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    return a.dot(b).schedule()[-1].ast


@pytest.mark.choice
def test_S54_S56_ast_of_the_dot_product():
    view = "ShapeTracker(views=(View(shape=({0},), strides=({1},), offset=0, mask=None, contiguous=True),))"
    assert str(dot_ast()).splitlines() == [
        "UOp(Ops.SINK, dtypes.void, arg=None, src=(",
        "  UOp(Ops.STORE, dtypes.void, arg=None, src=(",
        "    UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(1), arg=0, src=()),",
        f"    UOp(Ops.VIEW, dtypes.void, arg={view.format(1, 0)}, src=()),",
        "    UOp(Ops.REDUCE_AXIS, dtypes.int, arg=(Ops.ADD, (0,)), src=(",
        "      UOp(Ops.MUL, dtypes.int, arg=None, src=(",
        "        UOp(Ops.LOAD, dtypes.int, arg=None, src=(",
        "          UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(2), arg=1, src=()),",
        f"          x7:=UOp(Ops.VIEW, dtypes.void, arg={view.format(2, 1)}, src=()),)),",
        "        UOp(Ops.LOAD, dtypes.int, arg=None, src=(",
        "          UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(2), arg=2, src=()),",
        "           x7,)),)),)),)),))",
    ]


@pytest.mark.choice
def test_S55_a_store_is_on_top():
    for tensor in (Tensor.empty(2) + 1, Tensor.empty(2, 2).sum(), Tensor.empty(3).softmax()):
        (item,) = tensor.schedule()
        assert {store.op for store in item.ast.src} == {Ops.STORE}
        assert item.ast.src[0].src[0].arg == 0


def dot_table() -> list[str]:
    *_, (_, program) = stages(dot_ast(), Device["CPU"].renderer, [])
    return linear_text(program).splitlines()


def test_S60_columns_of_the_table():
    for number, row in enumerate(dot_table()):
        assert row[:5] == f"{number:4d} "
        assert row[5:9] == "Ops."
        assert row[25:27] == ": "
        assert row[27:34] == "dtypes."
        assert row[58] == "["
        assert row[90] == " "
        assert row[91] != " "


@pytest.mark.choice
def test_S61_table_of_the_dot_product():
    ops = " ".join(row[5:25].strip().removeprefix("Ops.") for row in dot_table())
    assert ops == (
        "DEFINE_GLOBAL DEFINE_GLOBAL DEFINE_GLOBAL CONST CONST DEFINE_ACC RANGE INDEX LOAD INDEX LOAD "
        "MUL ADD ASSIGN ENDRANGE INDEX STORE"
    )
    inputs = [row[58:91].strip() for row in dot_table()]
    assert inputs[5:15] == [
        "['0', 6]",
        "['0', '2']",
        "[1, 6]",
        "[7]",
        "[2, 6]",
        "[9]",
        "[8, 10]",
        "[5, 11]",
        "[5, 12]",
        "[6]",
    ]
    assert inputs[15] == "[0, '0']"


def test_S62_the_table_is_in_the_order_of_the_code():
    seen = []
    for number, row in enumerate(dot_table()):
        inputs = row[58:91].strip().strip("[]").split(", ")
        used = [int(text) for text in inputs if text and not text.startswith("'")]
        seen.append(all(n < number for n in used) or "DEFINE_ACC" in row)
    assert all(seen)


@pytest.mark.choice
def test_S63_the_first_rows_are_the_parameters():
    rows = dot_table()
    assert [row[27:58].strip() for row in rows[:3]] == [f"dtypes.int.ptr({n})" for n in (1, 2, 2)]
    assert [row[91:] for row in rows[:3]] == ["0", "1", "2"]


def test_S64_the_accumulator_is_assigned_in_the_loop():
    ops = [row[5:25].strip() for row in dot_table()]
    assert (
        ops.index("Ops.DEFINE_ACC")
        < ops.index("Ops.RANGE")
        < ops.index("Ops.ASSIGN")
        < ops.index("Ops.ENDRANGE")
    )

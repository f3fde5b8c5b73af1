"""SEEDS 8 to 10: what DEBUG prints, folded constants, kernel names."""

from __future__ import annotations

import re

import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.config import DEBUG, NOOPT
from lazygrad.device import Device
from lazygrad.engine import realize
from lazygrad.ir import Ops

from .support import rows, run_script

ADD = """
    from lazygrad import Tensor
    a = Tensor.empty(4, 4)
    b = Tensor.empty(4, 4)
    print((a+b).tolist())
"""
DOT = """
    from lazygrad.tensor import Tensor
    a = Tensor([1,2])
    b = Tensor([3,4])
    res = a.dot(b).numpy()
    print(res) # 11
"""
ZEROS = str([[0.0] * 4] * 4)


def test_S81_constants_are_folded():
    (item,) = (Tensor(1.0) + 1.0).schedule()
    *_, (_, program) = stages(item.ast, Device["CPU"].renderer, [])
    assert Ops.ADD not in [node.op for node in program]
    a = Tensor([1.0]).realize()
    (item,) = (a + 1.0 * (Tensor(1.0) + 1.0)).schedule()
    *_, (_, program) = stages(item.ast, Device["CPU"].renderer, [])
    assert [node.op for node in program].count(Ops.ADD) == 1


def test_S82_the_rows_of_the_first_script():
    out = run_script(ADD, DEBUG=2).splitlines()
    assert re.fullmatch(r"opened device CPU from pid:\d+", out[0])
    empty = "empty         16 dtypes.float             arg  1 mem  0.00 GB"
    assert out[1:3] == [f"*** CPU        1 {empty}", f"*** CPU        2 {empty}"]
    assert re.match(r"\*\*\* CPU        3 E_\d+(_\d+)* +arg  3 mem  0.00 GB tm ", out[3])
    assert re.search(r" \['__add__'\] \d+% of [\d.]+ (GB/s|GFLOPS)$", out[3])
    assert out[4:] == [ZEROS]


def test_S83_S86_columns_of_a_row():
    row = rows(run_script(ADD, DEBUG=2))[2]
    assert re.match(r"\*\*\* CPU        3 E_\d", row)
    assert row[58:63] == " arg "
    assert row[63:82] == " 3 mem  0.00 GB tm "
    timing = r".{9}(us|ms|s )/.{9}ms \(.{9} GFLOPS .{6}\|.{7} GB/s\) \['__add__'\]"
    roofline = r" \d+% of [\d.]+ (GB/s|GFLOPS)"  # ours, after the documents' columns
    assert re.fullmatch(timing + roofline, row[82:])


def test_S84_empty_rows_have_no_time():
    for row in rows(run_script(ADD, DEBUG=2))[:2]:
        assert row.endswith("GB")


def test_S85_copy_rows():
    out = rows(run_script(DOT, DEBUG=2))
    assert out[0].startswith("*** CPU        1 copy        8,     CPU <- NPY ")
    big = "from lazygrad import Tensor; Tensor.ones(1000000).contiguous().to('CPU:1').realize()"
    assert "xfer    4.00M,   CPU:1 <- CPU" in rows(run_script(big, DEBUG=2))[1]
    moved = "from lazygrad import Tensor; (Tensor.ones(4).contiguous().realize().to('CPU:1')).realize()"
    assert "xfer       16,   CPU:1 <- CPU" in rows(run_script(moved, DEBUG=2))[1]


def test_S85_view_rows(tmp_path):
    (tmp_path / "bytes").write_bytes(bytes(range(16)))
    script = f"""
        import pathlib
        from lazygrad import Tensor
        print(Tensor(pathlib.Path({str(tmp_path / "bytes")!r}))[4:8].to("CPU").tolist())
    """
    view, copy = rows(run_script(script, DEBUG=2))
    assert view.startswith("*** DISK:/")
    assert "    1 view        4 @ 4                         arg  2 mem  0.00 GB" in view
    assert "copy        4,     CPU <- DISK:/" in copy
    assert run_script(script) == "[4, 5, 6, 7]\n"


def test_S87_values_come_back_by_a_copy():
    script = """
        from lazygrad import Device, Tensor
        from lazygrad.runtime._host import HostAllocator
        from lazygrad.runtime.python import PythonDevice
        class Hidden(HostAllocator):
            def _as_buffer(self, handle):
                return None
        def far(name):
            device = PythonDevice(name)
            device.allocator = Hidden(name)
            return device
        Device.register("far", far)
        Device.DEFAULT = "FAR"
        print((Tensor.empty(4, 4) + Tensor.empty(4, 4)).tolist())
    """
    out = run_script(script, DEBUG=2).splitlines()
    assert out[-1] == ZEROS
    assert out[-2].startswith("*** CPU        4 copy       64,     CPU <- FAR             arg  2 mem")
    assert [row.split()[1] for row in rows(chr(10).join(out))] == ["FAR", "FAR", "FAR", "CPU"]


def test_S88_opened_once():
    out = run_script(ADD + "\n    (a * 2).realize()\n", DEBUG=1)
    assert len(re.findall(r"^opened device CPU from pid:\d+$", out, re.M)) == 1


def test_S89_order_of_debug_5():
    out = run_script(DOT, DEBUG=5, NOOPT=1)
    ast, opts = out.index("UOp(Ops.SINK"), out.index("r_2: opts []")
    table, code, row = out.index("Ops.DEFINE_GLOBAL   :"), out.index("define "), out.index(" r_2     ")
    assert ast < opts < table < code < row
    assert out.index("\n11\n") > row


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        (0, [], ["***", "opened", "UOp("]),
        (1, ["opened device CPU"], ["***"]),
        (2, ["*** CPU", "opened"], ["opts", "avg:"]),
        (3, ["opts [", "avg:"], ["define ", "UOp("]),
        (4, ["define "], ["UOp(", "Ops.STORE"]),
        (5, ["UOp(Ops.SINK", "Ops.STORE           :"], ["after lower"]),
        (6, ["after lower\nfor gidx0 in 0..16   GLOBAL\n  data0[gidx0] = ", "after vectorize\n"], [".globl"]),
        (7, ["after lower\n", "define ", ".globl"], []),
    ],
)
def test_S89_levels(level, shown, hidden):
    out = run_script(ADD, DEBUG=level)
    assert ZEROS in out
    for text in shown:
        assert text in out
    for text in hidden:
        assert text not in out


@pytest.mark.choice
def test_S90_summary_at_exit():
    out = run_script(DOT, DEBUG=3).splitlines()[-1]
    assert re.match(
        r"avg: +[\d.]+ GFLOPS +[\d.]+ GB/s +total: +3 kernels +[\d.]+ GOPS +[\d.]+ GB +[\d.]+ ms$", out
    )


def test_S91_flags_combine_and_are_set_in_a_block():
    assert "E_16 " in run_script(ADD, DEBUG=2, NOOPT=1)
    script = """
        from lazygrad import Context, Tensor
        with Context(DEBUG=2, NOOPT=1):
            (Tensor.empty(4, 4) + 1).realize()
        (Tensor.empty(4, 4) + 1).realize()
    """
    assert len(rows(run_script(script))) == 2
    with Context(DEBUG=0, NOOPT=1):
        assert (DEBUG.value, NOOPT.value) == (0, 1)
    assert NOOPT.value == 0


@pytest.mark.parametrize("flag", ["GRAPH", "VIZ"])
def test_S93_the_graph_is_logged(flag):
    out = run_script(ADD, **{flag: 1})
    graph, _, values = out.rpartition("\n[[")
    assert graph.startswith(
        "UOp(Ops.ADD, dtypes.float, arg=None, src=(\n  UOp(Ops.RESHAPE, dtypes.float, arg=(4, 4)"
    )
    assert f"[[{values}" == f"{ZEROS}\n"


def names(work) -> list[str]:
    seen: list[str] = []
    with realize.observe_kernels(lambda item, name, *_: seen.append(name)):
        work()
    return [name for name in seen if " " not in name]


def test_S94_names_of_kernels():
    with Context(NOOPT=1):
        assert names(lambda: (Tensor.empty(4, 4) + 1).realize()) == ["E_16"]
        assert names(lambda: Tensor.empty(2).sum().realize()) == ["r_2"]
        assert names(lambda: Tensor.empty(4, 8).sum(1).realize()) == ["r_4_8"]
    for shape in ((4, 4), (3, 5), (64, 33), (7,)):
        (name,) = names(lambda shape=shape: (Tensor.empty(*shape) + 1).realize())
        kind, *sizes = name.split("_")
        assert kind == "E"
        product, count = 1, 1
        for size in sizes:
            product *= int(size)
        for size in shape:
            count *= size
        assert product >= count  # more where a tail is masked


def test_S94_a_name_says_the_shape_after_the_opts():
    a = Tensor.empty(16, 16).realize()
    (item,) = (a + 1).schedule()
    spec = compile_kernel(item.ast, Device["CPU"].renderer)
    sizes = [int(size) for size in spec.name.split("_")[1:]]
    amounts = [opt.amount for opt in spec.applied_opts]
    assert spec.name.startswith("E_")
    assert sizes[-1] in amounts or not amounts


def test_S11_S99_S150_rows_of_the_dot_product():
    out = rows(run_script(DOT, DEBUG=2, NOOPT=1))
    assert [row[17:58].split()[0] for row in out] == ["copy", "copy", "r_2"]
    assert run_script(DOT, DEBUG=2, NOOPT=1).splitlines()[-1] == "11"

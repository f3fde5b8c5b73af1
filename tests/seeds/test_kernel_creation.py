"""SEEDS 2 and 3: the script of seed 000, its output, and what kernelize promises."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.device import GlobalCounters
from lazygrad.ir import Ops

from .support import on_cpu, run_script

# The calls of the page in its order; `# ->` is what it shows for the line above.
SCRIPT = """
    from lazygrad import Tensor
    a = Tensor([1]).realize()
    b = Tensor([2]).realize()
    c = Tensor([3]).realize()
    mul = a*b
    out = mul+c
    print(mul)
    print(out)
    out.kernelize()
    print(mul)
    print(out)
    print(out.uop.src[0])
    print(out.uop.src[1])
    child = out+2
    child.kernelize()
    print(child.uop.src[1].arg.ast)
    Tensor.realize(out)
    print(out)
    print(out.item())
"""

SHOWN = """\
    <Tensor <UOp METAL (1,) int (<Ops.MUL: 48>, None)> on METAL with grad None>
    <Tensor <UOp METAL (1,) int (<Ops.ADD: 52>, None)> on METAL with grad None>
    <Tensor <UOp METAL (1,) int (<Ops.MUL: 48>, None)> on METAL with grad None>
    <Tensor <UOp METAL (1,) int (<Ops.ASSIGN: 66>, None)> on METAL with grad None>
    UOp(Ops.BUFFER, dtypes.int, arg=1, src=(
      UOp(Ops.DEVICE, dtypes.void, arg='METAL', src=()),
      UOp(Ops.UNIQUE, dtypes.void, arg=6, src=()),))
    UOp(Ops.KERNEL, dtypes.void, arg=<Kernel 12 SINK(<Ops.STORE: 45>,) (__add__, __mul__)>, src=(
      UOp(Ops.BUFFER, dtypes.int, arg=1, src=(
        x1:=UOp(Ops.DEVICE, dtypes.void, arg='METAL', src=()),
        UOp(Ops.UNIQUE, dtypes.void, arg=6, src=()),)),
      UOp(Ops.BUFFER, dtypes.int, arg=1, src=(
         x1,
        UOp(Ops.UNIQUE, dtypes.void, arg=1, src=()),)),
      UOp(Ops.BUFFER, dtypes.int, arg=1, src=(
         x1,
        UOp(Ops.UNIQUE, dtypes.void, arg=3, src=()),)),
      UOp(Ops.BUFFER, dtypes.int, arg=1, src=(
         x1,
        UOp(Ops.UNIQUE, dtypes.void, arg=5, src=()),)),))
    UOp(Ops.SINK, dtypes.void, arg=None, src=(
      UOp(Ops.STORE, dtypes.void, arg=None, src=(
        UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(1), arg=0, src=()),
        x2:=UOp(Ops.VIEW, dtypes.void, arg=ShapeTracker(views=(VIEW,)), src=()),
        UOp(Ops.ADD, dtypes.int, arg=None, src=(
          UOp(Ops.LOAD, dtypes.int, arg=None, src=(
            UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(1), arg=1, src=()),
             x2,)),
          UOp(Ops.CONST, dtypes.int, arg=2, src=(
             x2,)),)),)),))
    <Tensor <UOp METAL (1,) int (<Ops.BUFFER: 23>, BUF)> on METAL with grad None>
    5
"""
SHOWN = SHOWN.replace(
    "VIEW,)), src", "View(shape=(1,), strides=(0,), offset=0, mask=None, contiguous=True),)), src"
)
SHOWN = SHOWN.replace("BUF)>", "<buf real:True device:METAL size:1 dtype:dtypes.int offset:0>)>")


@pytest.mark.choice
def test_S21_to_S34_the_script_of_the_page():
    assert run_script(SCRIPT) == on_cpu(SHOWN)


def test_S18_another_device_changes_the_device_word_only():
    assert run_script(SCRIPT, DEV="PYTHON") == on_cpu(SHOWN).replace("CPU", "PYTHON")


def small():
    a, b, c = (Tensor([n]).realize() for n in (1, 2, 3))
    return a, b, c


def test_S13_S14_S15_unrealized_operations():
    a, b, c = small()
    assert repr(a * b) == "<Tensor <UOp CPU (1,) int (<Ops.MUL: 48>, None)> on CPU with grad None>"
    assert repr(a * b + c) == "<Tensor <UOp CPU (1,) int (<Ops.ADD: 52>, None)> on CPU with grad None>"
    total = Tensor.empty(4, 4) + Tensor.empty(4, 4)
    assert repr(total) == "<Tensor <UOp CPU (4, 4) float (<Ops.ADD: 52>, None)> on CPU with grad None>"


def test_S16_after_kernelize():
    a, b, c = small()
    product = a * b
    out = (product + c).kernelize()
    assert "(<Ops.ASSIGN: 66>, None)" in repr(out)
    assert "(<Ops.MUL: 48>, None)" in repr(product)


def test_S17_after_realize():
    a, *_ = small()
    held = "(<Ops.BUFFER: 23>, <buf real:True device:CPU size:1 dtype:dtypes.int offset:0>)"
    assert held in repr(a)
    assert held in repr((a + 1).realize())


def test_S19_a_grad_is_printed_in_the_place_of_none():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward()
    text = repr(x)
    assert " with grad UOp(Ops." in text
    assert text.count("\n") > 1


def test_S19_a_large_graph_is_its_first_line_and_the_number_of_its_nodes():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x
    for _ in range(60):
        y = (y * 2).sin()
    y.sum().backward()
    first, count = repr(x.grad.uop).partition("\n")[0], len(x.grad.uop.toposort())
    assert repr(x).endswith(f" with grad {first}... {count} nodes))>")


def test_S20_an_unrealized_buffer():
    assert "<buf real:False device:CPU size:16 dtype:dtypes.float offset:0>" in repr(Tensor.empty(4, 4))


def test_S21_ops_of_the_page():
    names = "BUFFER BUFFER_VIEW COPY ASSIGN RESHAPE EXPAND PERMUTE PAD SHRINK FLIP ADD MUL REDUCE_AXIS"
    assert all(isinstance(Ops[name], Ops) for name in names.split())


@pytest.mark.usefixtures("undisturbed")
def test_S22_kernelize_runs_nothing_and_allocates_nothing():
    a, b, c = small()
    before = GlobalCounters.kernel_count, GlobalCounters.mem_used
    out = (a * b + c).kernelize()
    assert (GlobalCounters.kernel_count, GlobalCounters.mem_used) == before
    assert not out.schedule()[0].outputs[0].is_allocated


def test_S23_what_is_fused_away_keeps_its_print():
    a, b, c = small()
    product = a * b
    (product + c).kernelize().realize()
    assert "<Ops.MUL: 48>" in repr(product)


def test_S24_lazydata_is_uop():
    a, b, c = small()
    out = (a * b + c).kernelize()
    assert out.lazydata is out.uop
    assert str(out.lazydata) == str(out.uop)


@pytest.mark.choice
def test_S25_S26_S29_an_output_is_its_buffer_and_its_kernel():
    a, b, c = small()
    out = (a * b + c).kernelize()
    assert out.uop.op is Ops.ASSIGN
    buffer, kernel = out.uop.src
    assert (buffer.op, buffer.arg, [s.op for s in buffer.src]) == (Ops.BUFFER, 1, [Ops.DEVICE, Ops.UNIQUE])
    assert kernel.src == (buffer, a.uop, b.uop, c.uop)


def test_S27_numbering():
    script = """
        from lazygrad import Tensor
        tensors = [Tensor([n]).realize() for n in (1, 2, 3)]
        out = (tensors[0] * tensors[1] + tensors[2]).kernelize()
        print([t.uop.src[1].arg for t in tensors], out.uop.src[0].src[1].arg)
    """
    assert run_script(script) == "[1, 3, 5] 6\n"


@pytest.mark.choice
def test_S28_S31_the_kernels_record():
    a, b, c = small()
    kernel = (a * b + c).kernelize().uop.src[1]
    assert repr(kernel.arg) == "<Kernel 12 SINK(<Ops.STORE: 45>,) (__add__, __mul__)>"
    assert len(kernel.arg.ast.toposort()) == 12
    assert [str(m) for m in kernel.arg.metadata] == ["__add__", "__mul__"]


def test_S32_S33_a_child_loads_the_buffer():
    a, b, c = small()
    out = (a * b + c).kernelize()
    child = (out + 2).kernelize()
    ops = [node.op for node in child.uop.src[1].arg.ast.toposort()]
    assert ops.count(Ops.LOAD) == 1
    assert Ops.MUL not in ops
    assert out.uop in child.uop.src[1].src


@pytest.mark.choice
def test_S34_S35_realize_runs_what_is_planned_and_leaves_a_buffer():
    a, b, c = small()
    out = (a * b + c).kernelize()
    before = GlobalCounters.kernel_count
    Tensor.realize(out)
    assert GlobalCounters.kernel_count - before == 1
    assert out.uop.op is Ops.BUFFER
    assert out.item() == 5


def test_S36_fusion_is_laid_out_step_by_step():
    x, *_ = small()
    for _ in range(4):
        x = ((x + 1) * 2).kernelize()
    assert len(x.schedule()) == 4
    assert x.item() == 46


def test_S37_kernelize_of_a_realized_tensor():
    a, *_ = small()
    before = a.uop
    assert a.kernelize() is a
    assert a.uop is before


def test_S38_kernelize_takes_several():
    a, b, c = small()
    x, y = a + b, b * c
    x.kernelize(y)
    assert (x.uop.op, y.uop.op) == (Ops.ASSIGN, Ops.ASSIGN)


def test_S39_schedule_stands_beside_kernelize():
    a, b, _ = small()
    assert len((a + b).schedule()) == 1
    items, values = (a * b).schedule_with_vars()
    assert (len(items), values) == (1, {})

"""Kernels to look at for any target, and to run by hand."""

from __future__ import annotations

import numpy as np
import pytest

import lazygrad
from lazygrad import Context, Device, Tensor, Variable
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps
from lazygrad.device import DeviceError, GlobalCounters
from lazygrad.inspection.kernels import FORMS
from lazygrad.inspection.targets import find_target
from tests.helpers import needs


def matmul() -> Tensor:
    a = Tensor.arange(16).reshape(4, 4).cast("float32").realize()
    b = (Tensor.arange(16).reshape(4, 4) % 3).cast("float32").realize()
    return a @ b


TEXTS = {
    "metal": "kernel void r_4_4_4(device float* data0",
    "cuda:sm_90": 'extern "C" __global__ void __launch_bounds__(16) r_4_4_4(float* data0',
    "cl": "__kernel void r_4_4_4(__global float* data0",
    "c": "void r_4_4_4(float* restrict data0",
    "llvm": "define internal void @r_4_4_4(ptr noalias %data0",
    "webgpu": "@compute @workgroup_size(4, 4, 1) fn r_4_4_4(",
}


@pytest.mark.choice
@pytest.mark.parametrize("target", TEXTS)
def test_a_kernel_for_a_target_that_need_not_be_here(target):
    [kernel] = matmul().kernels(target=target)
    assert TEXTS[target] in kernel.source
    assert kernel.name == "r_4_4_4"
    assert [(a.name, a.size, a.access) for a in kernel.arguments] == [
        ("data0", 16, "out"),
        ("data1", 16, "in"),
        ("data2", 16, "in"),
    ]
    assert "__matmul__" in map(str, kernel.metadata)
    if target in ("metal", "cuda:sm_90", "cl", "webgpu"):
        assert (kernel.global_size, kernel.local_size) == ((1, 1, 1), (4, 4, 1))
    else:
        assert kernel.global_size is None


@pytest.mark.choice
def test_what_is_looked_at_for_a_gpu_is_planned_for_it():
    """A GPU does not give a few rows to a few workgroups; a processor's plan would be one pass."""
    rng = np.random.default_rng(0)
    q, k = (Tensor(rng.normal(size=(1, 2, rows, 16)).astype(np.float32)) for rows in (8, 512))
    assert len(q.scaled_dot_product_attention(k, k).kernels(target="llvm")) == 1
    value = (q * 1).scaled_dot_product_attention(k, k)
    assert len(value.kernels(target="cuda:sm_90")) == 4  # one makes q
    np.testing.assert_allclose(value.numpy(), q.scaled_dot_product_attention(k, k).numpy(), atol=1e-5)


def test_looking_runs_nothing():
    y = matmul()
    before = GlobalCounters.kernel_count
    for target in TEXTS:
        assert lazygrad.kernels(y, target)[0].source
    assert GlobalCounters.kernel_count == before
    assert not y.is_realized
    assert y.tolist() == matmul().tolist()
    assert y.kernels() == []


def test_kernels_of_several_tensors():
    x = Tensor([1.0, 2.0]).realize()
    kernels = lazygrad.kernels([x + 1, x.sum()], target="metal")
    assert [kernel.name[0] for kernel in kernels] == ["E", "r"]


def test_a_copy_is_no_kernel():
    [kernel] = (Tensor([1.0, 2.0]) + 1).kernels()
    assert kernel.name == "E_2"


@pytest.mark.choice
def test_every_form():
    [kernel] = matmul().kernels(target="c")
    texts = {form: kernel.form(form) for form in FORMS if form != "asm"}
    assert texts["ast"].startswith("UOp(Ops.SINK")
    assert "for ridx0 in 0..4   REDUCE" in texts["loops"]
    assert "UPCAST" not in texts["loops"]
    assert "UPCAST" in texts["opt"]
    assert "Ops.MULACC" in texts["linear"]
    assert texts["source"] == kernel.source
    with pytest.raises(
        ValueError, match="'text' is not a form; the forms are ast, loops, opt, linear, source, asm"
    ):
        kernel.form("text")


@pytest.mark.choice
def test_assembly_where_the_compiler_is_here():
    [kernel] = matmul().kernels(target="llvm")
    assert "r_4_4_4:" in kernel.form("asm")
    with pytest.raises(DeviceError, match="METAL"):
        matmul().kernels(target="metal")[0].form("asm")


def test_a_sort_has_no_loops():
    kernel = next(kernel for kernel in Tensor([3, 1, 2]).sort()[1].kernels() if "sort" in kernel.name)
    assert kernel.form("opt") == "a sort: it is written as a linear program at once"
    assert kernel.form("linear")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("metl", "'metl' is not a target. Did you mean metal?"),
        (
            "xyz",
            "'xyz' is not a target. "
            "There are c, cl, cuda, llvm, metal, python, webgpu, cuda:sm_90, llvm:aarch64",
        ),
        ("cuda:90", "'cuda:90': after cuda: comes an architecture, as in cuda:sm_90"),
        ("metal:m3", "'metal:m3': metal has no architectures to choose from"),
    ],
)
def test_a_target_that_is_not_there(target, message):
    with pytest.raises(ValueError, match=message):
        matmul().kernels(target=target)


def test_a_device_is_a_target():
    assert find_target("NULL").device == "NULL"
    assert find_target("llvm").renderer is Device["CPU"].renderer


def test_one_thread_is_a_launch_too():
    [kernel] = Tensor([1.0, 2.0]).realize().sum().kernels(target="metal")
    assert (kernel.global_size, kernel.local_size) == ((1, 1, 1), (1, 1, 1))


def test_variables_are_shown():
    n = Variable("n", 1, 8).bind(3)
    x = Tensor.arange(8).cast("float32").realize()
    [kernel] = x[:n].sum().kernels(target="metal")
    assert ("n", 1, 8, 3) in kernel.variables
    assert "constant int& n" in kernel.source


# *** by hand


@pytest.mark.choice
def test_a_kernel_runs_by_hand_on_what_it_reads():
    y = matmul()
    [kernel] = y.kernels()
    done = kernel.run()
    np.testing.assert_array_equal(done.outputs[0], y.numpy().reshape(-1))
    assert done.seconds > 0
    assert 1 <= done.runs <= 10
    assert "GFLOPS" in repr(done)


@pytest.mark.choice
def test_opts_by_hand_give_the_same_numbers():
    y = matmul()
    [kernel] = y.kernels()
    for opts in ([], [Opt(OptOps.UPCAST, 0, 2)], Opt(OptOps.UNROLL, 0, 4), "[Opt(OptOps.UPCAST, 1, 2)]"):
        changed = kernel.with_opts(opts)
        np.testing.assert_array_equal(changed.run(1).outputs[0], y.numpy().reshape(-1))
    assert changed.applied_opts == (Opt(OptOps.UPCAST, 1, 2),)
    assert kernel.applied_opts != changed.applied_opts


@pytest.mark.choice
def test_a_kernel_replays_from_its_printed_opts():
    [kernel] = matmul().kernels(target="metal")
    assert kernel.with_opts(repr(list(kernel.applied_opts))).source == kernel.source


@pytest.mark.choice
def test_an_opt_that_does_not_fit_shows_the_loops():
    [kernel] = matmul().kernels()
    with pytest.raises(KernelOptError, match="UPCAST axis 0 by 3: 3 does not divide 4") as refused:
        kernel.with_opts([Opt(OptOps.UPCAST, 0, 3)])
    assert "> for gidx0 in 0..4   GLOBAL      <- axis 0\n" in str(refused.value)


def test_noopt_is_the_default_of_kernels_too():
    with Context(NOOPT=1):
        assert matmul().kernels()[0].applied_opts == ()


def test_inputs_that_wait_are_computed_first():
    x = Tensor.arange(6).cast("float32").contiguous()
    y = (x * 2).contiguous() + 1
    kernels = y.kernels()
    assert len(kernels) > 1
    np.testing.assert_array_equal(kernels[-1].run().outputs[0], np.arange(6) * 2 + 1)
    assert y.tolist() == [1, 3, 5, 7, 9, 11]


def test_a_run_by_hand_writes_no_tensor():
    x = Tensor([1.0, 2.0, 3.0]).realize()
    x.assign(x * 2)
    [kernel] = x.kernels()
    np.testing.assert_array_equal(kernel.run(5).outputs[0], [2, 4, 6])
    assert x.tolist() == [2, 4, 6]
    np.testing.assert_array_equal(kernel.run(5).outputs[0], [4, 8, 12])
    assert x.tolist() == [2, 4, 6]


def test_a_part_of_memory_is_written_by_hand():
    x = Tensor.zeros(6).contiguous().realize()
    x[2:4] = Tensor([1.0, 2.0]).realize()
    kernel = x.kernels()[-1]
    assert 1.0 in kernel.run().outputs[0]
    assert x.tolist() == [0, 0, 1, 2, 0, 0]


@pytest.mark.choice
@pytest.mark.parametrize("target", ["python", pytest.param("c", marks=needs("clang"))])
def test_a_kernel_runs_on_another_device(target):
    y = matmul()
    done = y.kernels(target=target)[0].run(1)
    np.testing.assert_array_equal(done.outputs[0], y.numpy().reshape(-1))


def test_a_kernel_of_a_device_that_is_not_here_does_not_run():
    with pytest.raises(DeviceError, match="METAL"):
        matmul().kernels(target="metal")[0].run()
    with pytest.raises(ValueError, match="a kernel runs at least once, not 0 times"):
        matmul().kernels()[0].run(0)

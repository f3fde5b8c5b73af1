"""What is known of an architecture of GPUs decides how kernels for it are shared among threads."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.inspection.targets import find_target
from lazygrad.target import GPUS, Launch


def opts(value: Tensor, arch: str) -> list[Opt]:
    (kernel,) = value.kernels(target=f"cuda:{arch}")
    return list(kernel.applied_opts)


@pytest.mark.parametrize("arch", GPUS)
def test_a_target_has_the_row_of_its_architecture(arch):
    target = find_target(f"cuda:{arch}").renderer.target
    assert target.launch is GPUS[arch]
    assert target.arch == arch
    assert target.launch.resident % (target.launch.warp * 32) == 0


def test_an_architecture_without_a_row_is_an_ordinary_one():
    assert find_target("cuda:sm_50").renderer.target.launch == Launch()
    assert find_target("cuda:sm_90a").renderer.target.launch is GPUS["sm_90"]


def test_a_reduction_is_shared_as_far_as_threads_run_at_once():
    rows = Tensor.empty(4096, 4096).sum(1)
    shared = {arch: next(o.amount for o in opts(rows, arch) if o.op is OptOps.GROUP) for arch in GPUS}
    assert shared == {"sm_75": 32, "sm_80": 32, "sm_86": 32, "sm_89": 32, "sm_90": 64, "sm_100": 64}


@pytest.mark.parametrize(("arch", "is_shared"), [("sm_75", False), ("sm_86", False), ("sm_90", True)])
def test_a_small_matmul_fills_a_large_gpu_along_its_reduction_too(arch, is_shared):
    """Blocks of 16 x 16 results would be 30 workgroups, for 132 multiprocessors."""
    product = Tensor.empty(80, 256) @ Tensor.empty(256, 96)
    assert (OptOps.GROUP in [o.op for o in opts(product, arch)]) == is_shared


@pytest.mark.parametrize(("arch", "is_tiled"), [("sm_75", True), ("sm_80", False), ("sm_90", False)])
def test_a_thread_computes_a_tile_where_enough_are_left(arch, is_tiled):
    pictures = Tensor.empty(1, 16, 12, 12).conv2d(Tensor.empty(160, 16, 3, 3))
    assert (OptOps.UPCAST in [o.op for o in opts(pictures, arch)]) == is_tiled

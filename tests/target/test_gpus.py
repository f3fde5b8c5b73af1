"""What is known of an architecture of GPUs decides how kernels for it are shared among threads."""

from __future__ import annotations

import math

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


@pytest.mark.choice
def test_more_multiprocessors_share_more_of_a_reduction():
    """64 rows of 4,096 are few for any of them."""
    rows = Tensor.empty(64, 4096).sum(1)
    shared = {
        arch: math.prod(o.amount or 1 for o in opts(rows, arch) if o.op is OptOps.GROUP) for arch in GPUS
    }
    assert min(shared.values()) >= 128


@pytest.mark.parametrize("arch", GPUS)
def test_a_common_gpu_stands_for_one_without_a_row(arch):
    row = GPUS[arch]
    assert row.machine == (row.multiprocessor, row.multiprocessors)
    machine, count = Launch().machine
    assert machine.threads * count == Launch().resident
    assert row.bandwidth / row.clock < 64 * row.multiprocessors  # less than the shared cache gives

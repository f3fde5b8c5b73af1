"""How kernels are shared out on a GPU where nobody says: coalesced, wide, and with threads enough."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, dtypes
from lazygrad.codegen.cost.predict import _Moves
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.dtype import PtrDType
from lazygrad.gpu.passes.assign_grid import is_far
from lazygrad.inspection.kernels import InspectedKernel
from lazygrad.ir.ops import Ops
from lazygrad.viz.record import record

E = Tensor.empty
TARGETS = ("cuda:sm_90", "metal", "webgpu")

#: What lies side by side, so that it can be loaded and stored 16 bytes at once.
ALIGNED = {
    "add": lambda: E(1 << 20) + E(1 << 20),
    "bias": lambda: E(1024, 1024) + E(1024),
    "transpose": lambda: E(2048, 1024).permute(1, 0).contiguous(),
    "softmax": lambda: E(1024, 1024).softmax(1),
    "row sums": lambda: E(4096, 4096).sum(1),
    "sums of short rows": lambda: E(1 << 18, 16).sum(1),
    "column sums": lambda: E(4096, 4096).sum(0),
    "sum": lambda: E(1 << 24).sum(),
    "layer norm": lambda: E(1024, 768).layernorm(),
    "embedding": lambda: E(50000, 768)[E(4096, dtype=dtypes.int32)],
    "matrix times vector": lambda: E(4096, 4096) @ E(4096),
}
#: What is reached behind conditions, or at distances that no vector walks.
OTHERS = {
    "argmax": lambda: E(1024, 1000).argmax(1),
    "depthwise convolution": lambda: E(8, 64, 56, 56).conv2d(E(64, 1, 3, 3), groups=64, padding=1),
    "pool": lambda: E(8, 64, 56, 56).max_pool2d((2, 2)),
}
#: Part of the threads that can run at once, or elements for each.
BUSY, ELEMENTS = 1 / 16, 16


def first_kernel(value: Tensor, target: str) -> InspectedKernel:
    return value.kernels(target=target)[0]


def accesses(kernel: InspectedKernel) -> list[tuple[Ops, int, int]]:
    """(op, bytes at once, bytes to where the next thread looks) of every place in memory of the device."""
    uops = kernel.spec.uops
    moves = _Moves(uops)
    first = next((u for u in uops if u.op is Ops.SPECIAL and u.arg[0] == "lidx0"), None)
    found = []
    for u in uops:
        if u.op not in (Ops.LOAD, Ops.STORE) or u.src[0].src[0].op is not Ops.DEFINE_GLOBAL:
            continue
        memory = u.src[0].src[0].dtype
        assert isinstance(memory, PtrDType)
        steps = moves.of(u.src[0].src[1])[1]
        value = u if u.op is Ops.LOAD else u.src[1]
        found.append((u.op, value.dtype.itemsize, abs(steps.get(first, 0)) * memory.base.itemsize))
    return found


@pytest.mark.choice
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("work", [*ALIGNED, *OTHERS])
def test_threads_are_coalesced_and_enough(work, target):
    kernel = first_kernel({**ALIGNED, **OTHERS}[work](), target)
    launch, found = kernel.target.renderer.target.launch, accesses(kernel)
    near = [(op, not is_far(step, 1)) for op, _, step in found]
    assert all(fits for op, fits in near if op is Ops.LOAD) or all(
        fits for op, fits in near if op is Ops.STORE
    )
    prediction = kernel.prediction
    assert prediction is not None
    elements = max(argument.size for argument in kernel.arguments[1:])
    enough = min(BUSY * launch.resident, elements / ELEMENTS)
    if work in ("embedding", "sum"):  # the table is not read whole; the sum's parts are planned for a CPU
        enough = 64 * 128
    assert prediction.workgroups * prediction.threads >= enough


@pytest.mark.choice
@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("work", ALIGNED)
def test_16_bytes_are_loaded_at_once(work, target):
    """Single elements are only what is one for each row, or tells where a row is."""
    kernel = first_kernel(ALIGNED[work](), target)
    widths = [width for _, width, _ in accesses(kernel)]
    assert widths.count(16) >= 1
    assert kernel.prediction is not None
    assert kernel.prediction.wide == 16


def test_webgpu_has_no_wide_loads():
    assert {width for _, width, _ in accesses(first_kernel(ALIGNED["add"](), "webgpu"))} == {4}


def test_threads_that_share_a_sum_follow_its_length():
    few = {size: first_kernel(E(64, size).sum(1), "cuda:sm_90").prediction.threads for size in (64, 1 << 18)}
    assert few[64] < few[1 << 18]


@pytest.mark.choice
def test_a_transpose_is_of_vectors_both_ways():
    kernel = first_kernel(ALIGNED["transpose"](), "cuda:sm_90")
    assert {width for _, width, _ in accesses(kernel)} == {16}
    assert "?" not in kernel.source  # squares are turned by names alone


def test_a_block_of_a_product_stores_neighbours_from_neighbouring_threads():
    kernel = first_kernel(E(1024, 1024) @ E(1024, 1024), "cuda:sm_90")
    assert all(not is_far(step, 1) for op, _, step in accesses(kernel) if op is Ops.STORE)


@pytest.mark.choice
def test_what_opts_share_out_is_predicted():
    """Rows of 4,096 by one thread each are read apart, and by few threads."""
    kernel = first_kernel(E(4096, 4096).sum(1), "cuda:sm_90")
    alone = kernel.with_opts([Opt(OptOps.LOCAL, 0, 128)]).prediction
    assert alone is not None
    assert kernel.prediction is not None
    assert (alone.workgroups, alone.threads) == (32, 128)
    assert alone.seconds > 10 * kernel.prediction.seconds
    assert 0 < kernel.prediction.share <= 1


def test_nothing_is_predicted_on_a_processor():
    assert first_kernel(E(64) + 1, "llvm:x86-64-v3").prediction is None


def test_explain_says_what_is_predicted():
    kernel = first_kernel(E(64, 64).sum(1), "metal")
    recording = record(kernel.ast, kernel.target.renderer)
    assert recording.forms[-1].promise == f"text for a compiler; {kernel.prediction}"
    assert str(kernel.prediction).endswith("on a common GPU")

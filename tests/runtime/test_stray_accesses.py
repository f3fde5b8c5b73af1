"""No kernel reads or writes beside its memory, nor memory that was freed: each such access ends the process.

In processes of their own, on device GUARDED (tests/guarded.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import PATIENCE, ROOT, needs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guards are those of Linux")

BEGIN = """
import contextlib, gc, os
import numpy as np
from hypothesis import given, settings
from lazygrad import Context, Device, Tensor, TinyJit, Variable, dtypes, nn
from lazygrad.device import Buffer
from lazygrad.device.allocator import take_back
from lazygrad.dtype import ALL_DTYPES
from tests import guarded
from tests.fuzz.harness import NO_FAILURE
from tests.fuzz.writes import Player, programs
guarded.register(os.environ['BASE'])
"""


def run(code: str, guard: str, **flags: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GUARD": guard, "BASE": "CPU"}
    environment |= {"PYTHONFAULTHANDLER": "1", **{name: str(flag) for name, flag in flags.items()}}
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )


def passes(code: str, guard: str, **flags: object) -> None:
    done = run(code, guard, **flags)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr[-4000:]


# *** the guards work


@pytest.mark.parametrize(
    ("guard", "code"),
    [
        ("end", "memory = Buffer('GUARDED', 5, dtypes.uint8).allocate(); at = memory._buf.address + 5"),
        ("start", "memory = Buffer('GUARDED', 5, dtypes.uint8).allocate(); at = memory._buf.address - 1"),
        ("end", "at = Buffer('GUARDED', 5, dtypes.uint8).allocate()._buf.address; take_back()"),
    ],
    ids=["behind the end", "before the start", "freed"],
)
def test_a_stray_access_ends_the_process(guard, code):
    done = run(
        code + "\nimport ctypes\nprint('alive', flush=True)\nctypes.c_uint8.from_address(at).value", guard
    )
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "alive\n")


# *** what runs on it

EVERY_KIND = """
    rng = np.random.default_rng(0)

    def memory(*shape):  # computed: what is copied from numpy keeps numpy's memory, which has no guards
        return (Tensor(rng.standard_normal(shape).astype(np.float32)) * 1.0).realize()

    for n in SIZES:
        x, line = memory(n, n + 3), memory(n)
        values = x.numpy()
        assert np.allclose((x * 2 + 1).numpy(), values * 2 + 1)
        assert np.allclose((x @ x.T).numpy(), values @ values.T, atol=1e-3)
        assert np.allclose(x.softmax(1).sum(1).numpy(), 1, atol=1e-5)
        assert np.allclose(x.sum(0).numpy(), values.sum(0), atol=1e-4)
        assert np.allclose(x.pad(((1, 2), (0, 1))).T.contiguous().numpy(), np.pad(values, ((1, 2), (0, 1))).T)
        assert np.allclose(line.cumsum(0).numpy(), np.cumsum(line.numpy()), atol=1e-4)
        assert np.array_equal(line.sort()[0].numpy(), np.sort(line.numpy()))
        assert np.array_equal(x[Tensor([0, n - 1, -1, 7, -9])].shape, (5, n + 3))
        for checked in (0, 1):
            with Context(CHECK_INDEX=checked), contextlib.suppress(*[IndexError][:checked]):
                x[Tensor([0, n + 40, -n - 40])] = 0.0
                x.realize()
        x.layernorm().gelu().realize()
        for dtype in (dtypes.bool, dtypes.int8, dtypes.float16, dtypes.bfloat16, dtypes.float64):
            (line.cast(dtype) + line.flip(0).cast(dtype)).realize()
        for begin in (1, 3):
            if n > begin:
                line[begin:] = line[begin:] + 1
                (line[begin:] * line[:-begin]).sum().realize()
        size = Variable("size", 1, 300).bind(n)
        (memory(300)[:size].exp().sum()).realize()
    images = memory(2, 3, 9, 9)
    nn.Conv2d(3, 5, 3)(images).max_pool2d().sum().backward()
"""

REPLAYED = """
    model = [nn.Linear(13, 7), nn.Linear(7, 3)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(model))

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = model[1](model[0](x).relu()).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        return loss.realize(), x.sum(0)

    kept = []
    with Tensor.train():
        for call in range(STEPS):
            x = Tensor.rand(5, 13).realize()
            loss, rows = step(x, Tensor([0, 1, 2, 1, call % 3]))
            kept = [*kept[-2:], rows]  # results that are held while others come and go
            assert np.isfinite(loss.item()) and np.allclose(rows.numpy(), x.numpy().sum(0), atol=1e-5)
            if call % 7 == 0:
                gc.collect()
    step.reset()
    assert all(np.isfinite(each.numpy()).all() for each in kept)
"""

GROWING = """
    Device.DEFAULT = "GUARDED"
    w = memory(8, 12)
    embedding = nn.Embedding(5, 8)
    for n in GROWING_SIZES:
        x, y = memory(n, 8), memory(8, n)
        values, others = x.numpy(), y.numpy()
        assert np.allclose((x @ w).relu().sum(1).numpy(), np.maximum(values @ w.numpy(), 0).sum(1), atol=1e-4)
        assert np.allclose((y @ x).numpy(), others @ values, atol=1e-4)
        assert np.allclose((y * 2 + 1).T.contiguous().numpy(), others.T * 2 + 1)
        powers = np.exp(others)
        assert np.allclose(y.softmax(1).numpy(), powers / powers.sum(1, keepdims=True), atol=1e-5)
        assert np.allclose(x[1:].flip(0).pad(((2, 1), (0, 0))).sum(0).numpy(), values[1:].sum(0), atol=1e-4)
        assert np.allclose(y.cumsum(1).numpy(), others.cumsum(1), atol=1e-4)
        assert np.allclose(x.cat(x + 1).mean(0).numpy(), values.mean(0) + 0.5, atol=1e-4)
        seen = x.reshape(1, n, 2, 4).transpose(1, 2)
        seen.scaled_dot_product_attention(seen, seen, is_causal=True).realize()
        assert embedding(Tensor([[1] * n])).numpy().shape == (1, n, 8)
"""

ONE_PASS = """
    Device.DEFAULT = "GUARDED"

    for rows, keys in ((5, 7), (64, 101), (33, 523)):
        q, mask = memory(2, rows, 64), memory(rows, keys)
        k, v = memory(2, keys, 64), memory(2, keys, 64)
        scores = q.numpy() @ k.numpy().transpose(0, 2, 1) / 8 + mask.numpy()
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True)
        found = (q @ k.transpose(1, 2) / 8 + mask).softmax(-1)
        assert np.allclose((found @ v).numpy(), weights @ v.numpy(), atol=1e-4)
        assert np.allclose(((found * mask) @ v).numpy(), (weights * mask.numpy()) @ v.numpy(), atol=1e-4)
"""

NESTED = """
    from lazygrad.direct.one_pass import is_one_pass
    from lazygrad.direct.one_pass.nested_sums import NestedSums
    NestedSums._pays = lambda self, family: True  # also where it takes longer

    for rows, keys, columns in ((64, 101, 20), (33, 37, 64)):
        q, k, v = memory(2, rows, 12), memory(2, keys, 12), memory(2, keys, columns)
        arriving = memory(2, rows, columns)
        hidden = Tensor(np.arange(keys) > np.arange(rows)[:, None]).to("GUARDED").contiguous().realize()
        for mask in (None, hidden):
            leaves = [each.detach().requires_grad_() for each in (q, k, v)]
            result = leaves[0].scaled_dot_product_attention(*leaves[1:], attn_mask=mask)
            result.backward(arriving)
            gradients = [each.grad for each in leaves]
            assert sum(is_one_pass(item.ast) for item in result.schedule(*gradients)) >= 2
            Tensor.realize(result, *gradients)
            assert all(np.isfinite(each.numpy()).all() for each in (result, *gradients))
"""

PROGRAMS = """
    same = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": NO_FAILURE}
    @settings(max_examples=EXAMPLES, **same)
    @given(programs(10))
    def play(program):
        Player("GUARDED", program.shapes).play(program)
    play()
"""


@pytest.mark.parametrize("guard", ["end", "start"])
def test_no_kernel_leaves_its_memory(guard):
    parts = EVERY_KIND.replace("SIZES", "(1, 5, 17)") + REPLAYED.replace("STEPS", "8")
    passes(parts + PROGRAMS.replace("EXAMPLES", "10") + "    print('done')", guard)


@pytest.mark.parametrize("guard", ["end", "start"])
def test_sizes_that_grow_stay_inside_their_memory(guard):
    """What is planned for many sizes works on memory that is as long as each of them."""
    code = EVERY_KIND.replace("SIZES", "()") + GROWING.replace(
        "GROWING_SIZES", "(3, 4, 5, 6, 7, 8, 13, 33, 2)"
    )
    passes(code + "    print('done')", guard)


@pytest.mark.parametrize("guard", ["end", "start"])
def test_reductions_in_one_pass_stay_inside_their_memory(guard):
    """The last block of keys is no whole number of vectors."""
    passes(EVERY_KIND.replace("SIZES", "()") + ONE_PASS + NESTED + "    print('done')", guard)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("guard", ["end", "start"])
def test_no_kernel_leaves_its_memory_for_long(guard, threads):
    parts = EVERY_KIND.replace("SIZES", "(*range(1, 40), 64, 100, 257)") + REPLAYED.replace("STEPS", "150")
    passes(parts + PROGRAMS.replace("EXAMPLES", "200") + "    print('done')", guard, THREADS=threads)


@pytest.mark.slow
@needs("clang")
def test_no_kernel_in_c_leaves_its_memory():
    parts = EVERY_KIND.replace("SIZES", "(1, 5, 17, 33)") + REPLAYED.replace("STEPS", "30")
    passes(parts + PROGRAMS.replace("EXAMPLES", "30") + "    print('done')", "end", BASE="CLANG")


# *** a store of a few narrow lanes


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "float16", "bfloat16", "fp8e4m3"])
@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=[needs("clang"), pytest.mark.slow])])
def test_nothing_beside_a_part_is_written(device, dtype):
    """LLVM 22 stores the only lane of a mask as wide as it was before it was made narrow."""
    kind = getattr(dtypes, dtype)
    for count in (1, 2, 5, 9, 17, 33, 65):
        whole = Tensor.full((80,), 1.0, device=device).cast(kind).contiguous().realize()
        shifted = Tensor([4 << 16] * count, device=device).realize() >> 16
        long = Tensor([4 << 32] * count, dtype=dtypes.int64, device=device).realize() >> 32
        halves = Tensor([4.0] * count, device=device).realize()
        for values in (shifted.cast(kind), long.cast(kind), halves.cast(kind), (halves * 2 > 3).cast(kind)):
            whole[3 : 3 + count] = values
            beside = whole.cast("float").numpy()
            assert (beside[:3] == 1).all(), (count, beside)
            assert (beside[3 + count :] == 1).all(), (count, beside)

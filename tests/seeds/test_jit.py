"""SEEDS 15: TinyJit and programs."""

from __future__ import annotations

import re

import pytest

from lazygrad import Context, JitError, Tensor, TinyJit
from lazygrad.programs import runners
from lazygrad.programs.runners import get_runner, method_cache

BATCH = r"JIT GRAPHing batch with {} kernels on device {}"


def fresh(*values) -> Tensor:
    return Tensor(list(values)).realize()


def test_S132_plain_then_captured_then_replayed(capsys):
    @TinyJit
    def step(x):
        print("runs")
        return (x + 1).realize()

    assert [step(fresh(n)).item() for n in range(5)] == [1, 2, 3, 4, 5]
    assert capsys.readouterr().out == "runs\nruns\n"


def nested():
    inner = TinyJit(lambda x: (x * 2).realize())
    return TinyJit(lambda x: (inner(x) + 1).realize())


def test_S133_an_inner_jit_is_inlined():
    outer = nested()
    assert [outer(fresh(n)).item() for n in range(4)] == [1, 3, 5, 7]


def test_S133_or_refused():
    message = "having TinyJit inside another TinyJit is not supported len(capturing)=1 capturing=["
    outer = nested()
    outer(fresh(1))
    with Context(JIT_NESTED="error"), pytest.raises(JitError, match=re.escape(message)) as error:
        outer(fresh(2))
    assert isinstance(error.value, RuntimeError)


def test_S135_a_second_device_of_a_kind_compiles_nothing(monkeypatch):
    ast = (Tensor.empty(3, 7) * 5 + 1).schedule()[-1].ast
    first = get_runner("CPU", ast)
    monkeypatch.setattr(runners, "compile_kernel", None)
    second = get_runner("CPU:1", ast)
    assert second is not first
    assert second.lib is first.lib
    assert get_runner("CPU", ast) is first
    assert {key[0] for key in method_cache if key[1] is ast} == {"CPU", "CPU:1"}


def test_S136_C19_what_a_program_is_kept_under():
    ast = (Tensor.empty(5, 9) * 3 + 1).schedule()[-1].ast
    chosen = get_runner("CPU", ast)
    with Context(NOOPT=1):
        plain = get_runner("CPU", ast)
        assert get_runner("CPU", ast) is plain
    assert plain is not chosen
    assert (plain.spec.applied_opts, plain.spec.name) == ((), "E_45")
    assert get_runner("CPU", ast) is chosen
    assert get_runner("CPU", (Tensor.empty(5, 9) * 4 + 1).schedule()[-1].ast) is not chosen


def output_of(step, make, capsys) -> str:
    """What DEBUG=2 prints of three calls."""
    with Context(DEBUG=2):
        for n in range(3):
            step(*make(n))
    return capsys.readouterr().out


def test_S137_kernels_are_batched(capsys):
    @TinyJit
    def step(x):
        return ((x + 1).contiguous() * 2).sum().realize()

    out = output_of(step, lambda n: (fresh(n, 1),), capsys)
    assert re.search(BATCH.format(2, "CPU$"), out, re.M)
    assert re.search(r"^\*\*\* CPU +\d+ <batched 2> ", out, re.M)


def test_S137_one_kernel_is_none(capsys):
    step = TinyJit(lambda x: (x + 1).realize())
    out = output_of(step, lambda n: (fresh(n, 1),), capsys)
    assert "JIT GRAPHing failed batch with 1 kernels on device CPU: only one kernel doesn't graph\n" in out
    assert "<batched" not in out


def test_S138_devices_by_turns_are_batched_each(capsys):
    @TinyJit
    def step(a, b):
        for _ in range(2):
            a = (a + 1).contiguous().realize()
            b = (b * 2).contiguous().realize()
        return a, b

    out = output_of(step, lambda n: (fresh(n), Tensor([n], device="CPU:1").realize()), capsys)
    for device in ("CPU", "CPU:1"):
        assert re.search(BATCH.format(2, device + "$"), out, re.M)
        assert re.search(rf"^\*\*\* {device} +\d+ <batched 2> ", out, re.M)

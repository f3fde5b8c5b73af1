"""Every kind of kernel can be looked at: `explain`, `kernels`, `tune`, each level of DEBUG, CHECK."""

from __future__ import annotations

import runpy

import pytest

from lazygrad import Context
from lazygrad.__main__ import main
from lazygrad.inspection.kernels import FORMS
from lazygrad.inspection.targets import TARGETS
from lazygrad.programs.runners import clear_programs
from lazygrad.tuning.trials import Trials

SLOW = pytest.mark.slow

#: Scripts about `x`, floats of shape (6, 8).
KINDS = {
    "elementwise": "((x * 2 + 1).exp() / (x + 1).sqrt()).realize()",
    "types": "(x.cast('bfloat16') * x.cast('half') + x.bitcast('int32').cast('int64') % 7).realize()",
    "reduce": "x.sum().realize(), x.softmax().realize(), x.max(0).realize()",
    "random": "Tensor.rand(5, 8).realize(), Tensor.randint(7, high=9).realize(), Tensor.randn(6).realize()",
    "sort": "x.sort()[0].realize(), x.argsort(0).realize(), x.median().realize()",
    "scan": "x.cumsum(1).realize(), x.cummax(0)[0].realize(), x.flatten().cumprod(0).realize()",
    "gather": "x[Tensor([1, 3, 0])].realize(), x.gather(1, (x < 9).cast('int64')).realize()",
    "scatter": "x.scatter_reduce(1, (x < 9).cast('int64'), x, 'sum').realize()",
    "masked": "x.masked_select(x > 7).realize(), x.nonzero().realize()",
    "conv": "x.reshape(1, 1, 6, 8).conv2d(Tensor.ones(2, 1, 3, 3), padding=1).relu().realize()",
    "matmul": "(x @ x.T).realize(), Tensor.einsum('ij,ik->jk', x, x).realize()",
    "gradient": "(x.requires_grad_() @ x.T).tanh().sum().backward(), x.grad.realize()",
    "copy": "(x.to('CPU:1') + 1).to('PYTHON').exp().to('CPU').realize()",
    "symbolic": "[x[:, :Variable('n', 1, 8).bind(n)].sum(1).realize() for n in (3, 5)]",
    "written": "x[2:4].assign(x[0:2] + 1).realize(), x.assign(x.flip(0)).realize()",
    "several outputs": "Tensor.realize(x + 1, x * 2, (x + 1).sum(1))",
    "joined": "Tensor.cat(x, x + 1, x.flip(0), dim=1).realize(), Tensor.stack(*x.split(2)).realize()",
    "sharded": "s = x.shard(('CPU', 'CPU:1'), 0); (s @ s.T).sum(0).realize(), s.softmax(1).sum().realize()",
    "jit": "f = TinyJit(lambda y: (y.exp().contiguous() + 1).sum(1)); [f(x).realize() for _ in range(4)]",
}


@pytest.fixture(params=KINDS)
def script(request, tmp_path):
    path = tmp_path / "script.py"
    lines = ["from lazygrad import Tensor, TinyJit, Variable"]
    lines += ["x = (Tensor.arange(48).reshape(6, 8) % 17).cast('float32').contiguous().realize()"]
    path.write_text("\n".join([*lines, KINDS[request.param], ""]), encoding="utf-8")
    clear_programs()
    with Context(CACHELEVEL=1):  # programs are compiled, and none comes from disk
        yield str(path)
    clear_programs()


def test_explain(script, capsys):
    """Each kernel in turn, until there is no further one."""
    number = 1
    while main(["explain", script, "--plain", "--kernel", str(number)]) == 0:
        assert "== form 8, after render: " in capsys.readouterr().out
        number += 1
    assert f"runs only {number - 1} different kernels" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["cuda", *[pytest.param(t, marks=SLOW) for t in TARGETS if t != "cuda"]])
def test_kernels_for_a_target(script, target, capsys):
    assert main(["kernels", script, "--target", target]) == 0, capsys.readouterr().err
    assert f" for {target}, run " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("style", ["", "classic"])
def test_kernels_in_every_form(script, style, capsys):
    with Context(DEBUG_STYLE=style):
        for form in FORMS:
            assert main(["kernels", script, "--form", form]) == 0, capsys.readouterr().err
            assert "kernel 1: " in capsys.readouterr().out


@pytest.mark.slow
def test_tune(script, capsys, monkeypatch, tmp_path):
    """The search with made-up times: one round for each kernel."""
    monkeypatch.setattr(Trials, "time", lambda *_: 1.0)
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db")):
        assert main(["tune", script, "--beam", "1"]) == 0, capsys.readouterr().err
    assert "BEAM=1 uses what was found" in capsys.readouterr().out


@pytest.mark.parametrize("style", ["", pytest.param("classic", marks=SLOW)])
@pytest.mark.parametrize("level", [*[pytest.param(level, marks=SLOW) for level in range(1, 7)], 7])
def test_debug(script, level, style, capsys):
    with Context(DEBUG=level, DEBUG_STYLE=style):
        runpy.run_path(script)
    out = capsys.readouterr().out
    assert ("*** CPU " in out) is (level >= 2)
    assert ("STORE" in out) is (level >= (3 if style else 5))  # the classic tree stands above the source


@pytest.mark.parametrize("check", [1, pytest.param("nan", marks=SLOW)])
def test_check(script, check):
    with Context(CHECK=check):
        runpy.run_path(script)

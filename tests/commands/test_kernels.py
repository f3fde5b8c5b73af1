"""python -m lazygrad kernels: every kernel of a script, for a target that need not be here."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest

from lazygrad import Device
from lazygrad.__main__ import main
from lazygrad.device import DeviceError
from tests.helpers import ROOT

MATMUL = """
import sys
from lazygrad import Tensor
print("the words", sys.argv[1:], __name__)
a = Tensor([[1., 2.], [3., 4.]]).realize()
b = Tensor([[1., 0.], [0., 2.]]).realize()
for _ in range(3):
    print((a @ b).tolist())
"""


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.choice
def test_the_kernels_of_a_script(script, capsys):
    path = script(MATMUL)
    assert main(["kernels", path, "--target", "metal", "--", "one", "--two"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("the words ['one', '--two'] __main__\n[[1.0, 4.0], [3.0, 8.0]]\n")
    lines = out.splitlines()
    assert lines[:6] == [
        "kernel 1: r_2_2_2 for metal, run 3 times",
        "  grid 1 x 1 x 1, workgroup 2 x 2 x 1",
        "  1 workgroup of 4 threads, 0 bytes shared, about 32 registers, occupancy 0%; predicted 3.5 us, "
        "0% of the roofline (bandwidth), on a common GPU",
        "  takes out data0 dtypes.float[4], in data1 dtypes.float[4], in data2 dtypes.float[4]",
        "  opts [Opt(op=OptOps.UNROLL, axis=0, amount=0), Opt(op=OptOps.LOCAL, axis=1, amount=2), "
        "Opt(op=OptOps.LOCAL, axis=0, amount=2)]",
        f"  from __matmul__ - {path}:8",
    ]
    assert lines[6] == "#include <metal_stdlib>"
    assert out.count("kernel void") == 1


@pytest.mark.choice
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ast", "UOp(Ops.SINK"),
        ("loops", "for gidx0 in 0..2   GLOBAL"),
        ("opt", "for lidx0 in 0..2   LOCAL"),
        ("linear", "Ops.SPECIAL"),
        ("source", "__global__ void"),
    ],
)
def test_the_forms_of_a_script(form, text, script, capsys):
    assert main(["kernels", script(MATMUL), "--target", "cuda:sm_90", "--form", form]) == 0
    assert text in capsys.readouterr().out


def test_without_a_target_it_is_the_device_of_the_script(script, capsys):
    assert main(["kernels", script(MATMUL), "--form", "asm"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("kernel 1: r_2_2_2 for CPU, run 3 times\n")
    assert "r_2_2_2:" in out


def test_a_script_may_name_devices_that_are_not_here(script, capsys):
    assert "METAL" not in Device.opened()
    path = script(
        "from lazygrad import Tensor, Device\n"
        "x = Tensor([1., 2.], device='METAL:1').to('CPU') + 1\n"
        "print(x.tolist(), (Tensor([3.], device='metal') * 2).item(), Device['METAL'])\n"
    )
    assert main(["kernels", path]) == 0
    out, err = capsys.readouterr()
    assert err == "[2.0, 3.0] 6.0 <device METAL>\n"
    assert "kernel 1: E_2 for CPU, run once" in out
    assert "kernel 2: E_1 for metal, run once" in out
    assert "kernel void" in out
    assert "METAL" not in Device.opened()
    with pytest.raises(DeviceError, match="METAL"):
        Device["METAL"]


def test_nothing_is_opened_that_the_script_does_not_name(script, capsys):
    code = f"from lazygrad.__main__ import main; main(['kernels', {script('print(1)')!r}])\n"
    code += "from lazygrad import Device; print(Device.opened())"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"


def test_an_error_in_the_script_shows_its_lines_and_what_ran_before(script, capsys):
    path = script(
        "from lazygrad import Tensor\n(Tensor([1., 2.]) + 1).tolist()\n"
        "def wrong():\n    return Tensor([1, 2]) + Tensor([1, 2, 3])\nwrong()\n"
    )
    assert main(["kernels", path, "--target", "metal"]) == 1
    out, err = capsys.readouterr()
    assert "kernel 1: E_2 for metal" in out
    trace = err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[1] == f'  File "{path}", line 5, in <module>'
    assert trace[-1].startswith("ValueError: cannot broadcast (2,), (3,)")


def test_a_script_that_does_not_parse(script, capsys):
    assert main(["kernels", script("def f(:\n"), "--target", "metal"]) == 1
    assert "SyntaxError" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "status"), [("3", 3), ("'no data'", 1), ("", 0), ("0", 0)])
def test_the_exit_status_of_the_script(text, status, script, capsys):
    assert main(["kernels", script(f"import sys\nsys.exit({text})\n"), "--target", "metal"]) == status
    err = capsys.readouterr().err
    assert ("no data" in err) is ("no data" in text)


def test_a_target_that_is_not_there(script, capsys):
    assert main(["kernels", script(MATMUL), "--target", "metl"]) == 2
    out, err = capsys.readouterr()
    assert err == (
        "lazygrad kernels: 'metl' is not a target. Did you mean metal? "
        "There are c, cl, cuda, llvm, metal, python, webgpu, cuda:sm_90, llvm:aarch64\n"
    )
    assert out == ""


def test_a_form_that_is_not_there(script, capsys):
    with pytest.raises(SystemExit):
        main(["kernels", script(MATMUL), "--form", "text"])
    out, err = capsys.readouterr()
    assert "invalid choice: 'text' (choose from" in err
    assert "the words" not in out + err  # nothing ran


def test_a_script_that_is_not_there(capsys):
    assert main(["kernels", "nowhere.py"]) == 2
    assert "there is no script 'nowhere.py'" in capsys.readouterr().err


def test_a_script_from_stdin(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(MATMUL))
    assert main(["kernels", "-", "--target", "c", "--", "one"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("the words ['one'] __main__\n")
    assert out.startswith("kernel 1: r_2_2_2 for c, run 3 times\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 / 0"))
    assert main(["kernels", "-"]) == 1
    assert capsys.readouterr().err.splitlines()[1] == '  File "<stdin>", line 1, in <module>'


def test_a_module(capsys, monkeypatch, tmp_path):
    (tmp_path / "some_package").mkdir()
    (tmp_path / "some_package" / "inner.py").write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["kernels", "-m", "some_package.inner", "--", "one"]) == 0
    assert capsys.readouterr().err == (
        "['one'] __main__\nlazygrad kernels: module some_package.inner runs no kernel\n"
    )
    for name in ("some_package.other", "no_such_package.inner"):
        assert main(["kernels", "-m", name]) == 2
        assert capsys.readouterr().err == f"there is no module {name!r}\n"


@pytest.mark.parametrize("words", [[], ["-m", "some_package", "script.py"]])
def test_a_script_or_a_module(words, capsys):
    with pytest.raises(SystemExit):
        main(["kernels", *words])
    assert re.search("one of the arguments script -m is required|not allowed with", capsys.readouterr().err)


def test_a_script_without_kernels(script, capsys):
    path = script("print(1)\n")
    assert main(["kernels", path]) == 0
    assert f"{path} runs no kernel" in capsys.readouterr().err


def test_words_after_the_dashes_are_a_scripts(capsys):
    with pytest.raises(SystemExit):
        main(["devices", "--", "x"])
    assert "only a command that runs a script takes arguments after --" in capsys.readouterr().err

"""docs/adding.md: its changes are applied to a copy of the package, and what they add works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.helpers import PATIENCE, ROOT

PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")


def apply_page(root: Path) -> None:
    """Do what the page shows in the package below `root`."""
    blocks = re.findall(r"^```(diff|file)\n--- (\S+)\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(blocks) == 9
    for kind, name, text in blocks:
        path = root / name
        if kind == "file":
            assert not path.exists()
            path.write_text(text, encoding="utf-8")
            continue
        lines = text.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] == " ")
        after = "".join(f"{line[1:]}\n" for line in lines)
        source = path.read_text(encoding="utf-8")
        assert source.count(before) == 1, f"{name} has not once {before!r}"
        path.write_text(source.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A folder with the changed package."""
    root = tmp_path_factory.mktemp("adding")
    shutil.copytree(ROOT / "lazygrad", root / "lazygrad", ignore=shutil.ignore_patterns("__pycache__"))
    apply_page(root)
    return root


def run(root: Path, script: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(root), "CACHELEVEL": "0"}
    env.pop("DEV", None)
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=root, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_op(changed):
    script = """
        from lazygrad import Context, Tensor
        from lazygrad.gradient import GRADIENTS
        from lazygrad.ir import OPS, Ops
        from lazygrad.shape.rules import SHAPES
        assert Ops.SIGN in GRADIENTS and Ops.SIGN in SHAPES and Ops.SIGN in OPS
        for device in ("CPU", "PYTHON"):
            x = Tensor([-2.5, 0.0, 3.0, float("nan")], device=device, requires_grad=True)
            y = x._unary(x.uop.alu(Ops.SIGN))
            with Context(CHECK=1):
                print(y.tolist())
            y.sum().backward()
            print(x.grad.tolist())
    """
    assert run(changed, script) == "[-1.0, 0.0, 1.0, nan]\n[0.0, 0.0, 0.0, 0.0]\n" * 2


def test_an_op_that_a_language_has(changed):
    script = """
        from lazygrad import dtypes
        from lazygrad.ir import Ops
        from lazygrad.renderer.cstyle import CStyleRenderer, MetalRenderer
        print([r.supports(Ops.SIGN, dtypes.float) for r in (MetalRenderer(), CStyleRenderer())])
        from lazygrad.ir import UOp
        memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(1), arg=0)
        zero = UOp.const(dtypes.int, 0)
        place = UOp(Ops.INDEX, dtypes.float.ptr(1), (memory, zero))
        value = UOp(Ops.LOAD, dtypes.float, (place,))
        sign = value.alu(Ops.SIGN)
        store = UOp(Ops.STORE, dtypes.void, (place, sign))
        print(MetalRenderer().render([memory, zero, place, value, sign, store]).splitlines()[-2].strip())
    """
    assert run(changed, script) == "[True, False]\n*(data0+0) = (val0!=val0?val0:sign(val0));\n"


def test_a_device(changed):
    script = """
        from lazygrad import Device, Tensor
        Device.DEFAULT = "ECHO"
        print((Tensor([1, 2]) + 1).tolist())
    """
    assert re.fullmatch(r"ECHO runs E_\w+ on 2 buffers\n\[2, 3\]\n", run(changed, script))
    assert "ECHO" in run(changed, "from lazygrad import Device; print(Device.known())")


def test_an_optimization(changed):
    script = """
        from lazygrad import Tensor
        from lazygrad.codegen.opt import KernelOptError, Opt, OptOps
        from lazygrad.codegen.opt.text import parse_opts
        kernel = (Tensor([1, 2, 3]).realize() + 1).kernels()[0]
        reversed_ = kernel.with_opts(parse_opts("[Opt(OptOps.REVERSE, 0)]"))
        print(reversed_.form("opt"))
        print(reversed_.run().outputs[0].tolist())
        row = Tensor([1, 2, 3]).realize().sum().kernels()[0]
        try:
            row.with_opts([Opt(OptOps.REVERSE, 0)]).source
        except KernelOptError as error:
            print(str(error).splitlines()[0])
    """
    loops = "for gidx0 in 0..3   GLOBAL\n  data0[gidx0*-1+2] = data1[gidx0*-1+2] + 1\n"
    refused = "REVERSE axis 0: REVERSE is for axes of outputs\n"
    assert run(changed, script) == f"{loops}[2, 3, 4]\n{refused}"

"""The import paths of older scripts."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import lazygrad
from lazygrad import Tensor, UOp
from lazygrad.compat import aliases, patched
from lazygrad.config import JIT_NESTED
from lazygrad.dtype import numpy_name
from tests.helpers import ROOT

pytestmark = pytest.mark.usefixtures("installed")


@pytest.mark.parametrize("path", aliases.MODULES)
def test_every_path_is_imported(path):
    name = f"tinygrad.{path}".rstrip(".")
    module = importlib.import_module(name)
    assert module.__name__ == name
    for public in module.__all__:
        assert getattr(module, public) is aliases.MODULES[path][public]


def test_the_names_are_the_classes_themselves():
    import tinygrad
    from tinygrad import nn
    from tinygrad.nn.state import safe_save
    from tinygrad.tensor import Tensor as other
    from tinygrad.uop.ops import UOp as node

    assert other is Tensor is tinygrad.Tensor
    assert node is UOp
    assert nn.Linear is lazygrad.nn.Linear
    assert safe_save is lazygrad.nn.state.safe_save
    assert tinygrad.helpers.SI(3000) == "3.00k"
    assert tinygrad.nn.optim.SGD is lazygrad.nn.optim.SGD


def test_paths_that_are_not_served():
    with pytest.raises(
        ModuleNotFoundError, match=r"tinygrad.tensr is not one of the paths .* did you mean tinygrad.tensor"
    ):
        importlib.import_module("tinygrad.tensr")


def test_names_that_are_not_there():
    with pytest.raises(ImportError, match="cannot import name 'Opps'"):
        from tinygrad.ops import Opps  # noqa: F401
    import tinygrad

    with pytest.raises(AttributeError, match=r"tinygrad.helpers has no 'SIs' here; did you mean SI\?"):
        tinygrad.helpers.SIs


def test_defaults_of_older_scripts():
    assert JIT_NESTED.value == "error"
    aliases.uninstall()
    assert JIT_NESTED.value == ""
    assert "tinygrad" not in sys.modules
    for cls, names in patched.ADDED.items():
        assert all(vars(cls).get(name) is not value for name, value in names.items()), cls


def test_helpers_of_older_scripts():
    from tinygrad.helpers import (
        ContextVar,
        all_int,
        all_same,
        argfix,
        argsort,
        ceildiv,
        dedup,
        flatten,
        partition,
        prod,
        round_up,
    )

    assert (all_int((1, 2)), all_same([1, 1]), argfix(1, 2), argfix((1, 2))) == (True, True, (1, 2), (1, 2))
    assert (argsort([3, 1, 2]), ceildiv(7, 2), dedup([1, 2, 1]), flatten([[1], [2]])) == (
        [1, 2, 0],
        4,
        [1, 2],
        [1, 2],
    )
    assert (partition([1, 2, 3], lambda n: n > 1), prod((2, 3)), round_up(5, 4)) == (([2, 3], [1]), 6, 8)
    assert ContextVar("SOMEBODYS_FLAG", 3).value == 3


def test_create_schedule_and_print_uops(capsys):
    from tinygrad.engine.schedule import create_schedule
    from tinygrad.ops import print_uops

    out = Tensor([1.0]).realize() + 1
    assert len(create_schedule([out.lazydata])) == 1
    print_uops([UOp.const(lazygrad.dtypes.int, 3)])
    assert capsys.readouterr().out.startswith("   0 Ops.CONST ")


def test_every_name_of_the_renderers_renders():
    from tinygrad.renderer.cstyle import ClangRenderer, CUDARenderer, MetalRenderer

    nodes = [UOp.const(lazygrad.dtypes.float, 1.0)]
    assert "void example" in ClangRenderer().render(nodes)
    assert "__global__" in CUDARenderer("sm_50").render(nodes)
    assert "metal" in MetalRenderer().render(nodes)


SCRIPT = """
import sys
from tinygrad import Tensor
print(sys.argv[1:], __name__, (Tensor([1]) + 1).tolist())
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lazygrad.compat", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_a_script_is_run_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("print('beside')")
    script = tmp_path / "script.py"
    script.write_text("import beside\n" + SCRIPT)
    done = run(str(script), "a", "--b")
    assert (done.stdout, done.returncode) == ("beside\n['a', '--b'] __main__ [2]\n", 0)


def test_a_script_that_fails_or_is_missing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.exit(3)")
    assert run(str(script)).returncode == 3
    done = run(str(tmp_path / "none.py"))
    assert done.returncode == 2
    assert "there is no script" in done.stderr


def test_without_compat_there_is_no_alias():
    code = "import lazygrad, sys; print('tinygrad' in sys.modules, hasattr(lazygrad.UOp, 'st'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False False\n"


def test_names_of_dtypes():
    import numpy as np
    from tinygrad import Device, dtypes
    from tinygrad.dtype import can_lossless_cast, least_upper_float, to_dtype, truncate

    assert to_dtype("half") is dtypes.float16
    assert (least_upper_float(dtypes.int), least_upper_float(dtypes.half)) == (dtypes.float, dtypes.half)
    assert (truncate[dtypes.uint8](257), truncate[dtypes.half](0.1)) == (1, float(np.float16(0.1)))
    assert "CPU" in Device.get_available_devices()
    for source in dtypes.sints + dtypes.uints + (dtypes.half, dtypes.float, dtypes.double, dtypes.bool):
        for target in dtypes.sints + dtypes.uints + (dtypes.half, dtypes.float, dtypes.double):
            names = [numpy_name(source), numpy_name(target)]
            if names != ["int64", "float64"] and names != ["uint64", "float64"]:  # numpy calls these safe
                assert can_lossless_cast(source, target) == np.can_cast(*names), names

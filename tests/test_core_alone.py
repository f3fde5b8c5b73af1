"""The core runs without extensions: in a copy that lacks their folders its own tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXTENSIONS = ("direct", "gpu", "sharding")
#: What asks for an extension by its meaning: other devices, values on several, what is sorted.
ASKING = ("CL", "CUDA", "METAL", "WEBGPU", "MULTI", "sort", "mode", "quantile")

PROGRAM = """
import os
import numpy as np
from lazygrad import Device, Tensor

assert Device.DEFAULT == os.environ["DEV"]
rng = np.random.default_rng(0)
a, b = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal((7, 4)).astype(np.float32)
image = rng.standard_normal((2, 6, 5)).astype(np.float32)
kernel = rng.standard_normal((3, 2, 3, 2)).astype(np.float32)
near = lambda got, wanted: np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=2e-5)
near((Tensor(a) * 2 + 1).exp().sqrt(), np.sqrt(np.exp(a * 2 + 1)))
near(Tensor(a).sum(1), a.sum(1))
near(Tensor(a).max(0), a.max(0))
near(Tensor(a).softmax(), np.exp(a) / np.exp(a).sum(1, keepdims=True))
near(Tensor(a) @ Tensor(b), a @ b)
windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), (1, 2))
near(Tensor(image[None]).conv2d(Tensor(kernel))[0], np.einsum("cyxij,ocij->oyx", windows, kernel))
near(Tensor(a)[[4, 0], :, None], a[[4, 0], :, None])
near(Tensor(a).transpose(0, 1)[::2, 1:3], a.T[::2, 1:3])
weight = Tensor(b, requires_grad=True)
((Tensor(a) @ weight) ** 2).sum().backward()
near(weight.grad, 2 * a.T @ (a @ b))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the folders of the extensions are not there."""
    copy = tmp_path_factory.mktemp("core")
    without = shutil.ignore_patterns("__pycache__", *EXTENSIONS)
    shutil.copytree(
        ROOT / "lazygrad",
        copy / "lazygrad",
        ignore=lambda folder, names: without(folder, names) if Path(folder) == ROOT / "lazygrad" else [],
    )
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    page = copy / "lazygrad" / "__init__.py"
    text = page.read_text(encoding="utf-8")
    for name in EXTENSIONS:
        text, count = re.subn(rf"^from \.(?: import {name}|{name} import \w+) as \w+\n", "", text, flags=re.M)
        assert count == 1, name
    page.write_text(re.sub(r"^_EXTENSIONS = .*\n", "", text, flags=re.M), encoding="utf-8")
    return copy


def run(core: Path, device: str, *command: str) -> str:
    """What a command says there, with a device as the default one."""
    environment = {**os.environ, "PYTHONPATH": str(core), "DEV": device, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *command], cwd=core, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_each_kind_of_kernel(core: Path, device: str) -> None:
    run(core, device, "-c", PROGRAM)


def test_what_needs_an_extension_names_it(core: Path) -> None:
    program = "from lazygrad import Tensor\nTensor([2.0, 1.0]).sort()[0].tolist()"
    with pytest.raises(AssertionError, match=r"import lazygrad\.direct"):
        run(core, "CPU", "-c", program)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_its_own_tests(core: Path, device: str) -> None:
    files = [f"tests/{name}.py" for name in ("tensor/test_basics", "test_gradient", "tensor/test_indexing")]
    asking = [*ASKING, *(("a_variable_without", "COPY") if device == "PYTHON" else ())]
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-k", f"not ({' or '.join(asking)})")
    assert " passed" in run(core, device, "-m", "pytest", *options, *files)

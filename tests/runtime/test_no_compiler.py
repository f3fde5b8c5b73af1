"""A machine without any C compiler runs everything but CLANG, which says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from lazygrad import Device
from lazygrad.device import DeviceError
from tests.helpers import PATIENCE, ROOT


def run(script: str, tmp_path) -> str:
    """What a script prints where the PATH leads to nothing at all."""
    environment = {**os.environ, "PATH": str(tmp_path), "CACHEDB": str(tmp_path / "cache.db")}
    environment.pop("CC", None)
    environment.pop("DEV", None)
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


TRAINS = """
    from lazygrad import Device, Tensor, nn
    layer = nn.Linear(8, 4)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer))
    x = Tensor.rand(16, 8, device="CPU")
    with Tensor.train():
        for _ in range(3):
            loss = layer(x).exp().log_softmax().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(Device.DEFAULT, loss.item() > 0)
"""


def test_the_cpu_trains(tmp_path):
    assert run(TRAINS, tmp_path) == "CPU True"


def test_clang_says_what_to_install(tmp_path):
    script = """
        from lazygrad import Device, Tensor
        print("opened", Device["CLANG"].name)
        try:
            (Tensor([1.0], device="CLANG") + 1).realize()
        except RuntimeError as error:
            print(type(error).__name__, error)
        print((Tensor([1.0]) + 1).tolist())
    """
    opened, refused, after = run(script, tmp_path).splitlines()
    assert opened == "opened CLANG"
    assert refused.startswith("DeviceError device CLANG needs a C compiler")
    assert after == "[2.0]"


def test_the_list_of_devices_says_what_is_missing(tmp_path):
    done = run("from lazygrad.__main__ import main; main(['devices'])", tmp_path)
    rows = {line.split()[0]: line for line in done.splitlines() if line.strip()}
    assert "needs a C compiler" in rows["CLANG"]
    assert "missing" not in rows["CPU"]


@pytest.mark.parametrize("name", ["CUDA", "METAL", "CL", "WEBGPU"])
def test_devices_that_are_not_there_say_so(name):
    if not Device.status()[name]:
        pytest.skip(f"{name} works here")
    with pytest.raises(DeviceError, match=name):
        Device[name]


def test_no_compiler_is_taken_from_the_folder_that_runs(tmp_path, monkeypatch):
    from lazygrad import Context

    program = tmp_path / "clang"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    compiler = Device["CLANG"].compiler
    with monkeypatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join(["", ".", str(tmp_path / "nowhere")]))
        with Context(CC=""), pytest.raises(DeviceError, match="clang, gcc or cc is not on the PATH"):
            compiler.command()
    with Context(CC="./clang -x"):  # whoever says so
        assert compiler.command() == [str(program), "-x"]

"""Names of devices, how they are opened, and which is the default."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from lazygrad import Tensor
from lazygrad.config import DEV
from lazygrad.device import CompiledDevice, Device, DeviceError, MissingDeviceError
from lazygrad.runtime._host import HostAllocator
from tests.helpers import PATIENCE, ROOT, in_threads, needs, require


def run_python(script: str, **env: str) -> str:
    """What a fresh process prints."""
    clean = {k: v for k, v in os.environ.items() if k not in ("DEV", "DEBUG")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**clean, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("cpu", "CPU"),
        ("cpu:0", "CPU"),
        ("CPU:1", "CPU:1"),
        ("clang", "CLANG"),
        ("metal:01", "METAL:1"),
        ("disk:/Tmp/File.Bin", "DISK:/Tmp/File.Bin"),
        ("DISK:relative/a:b", "DISK:relative/a:b"),
    ],
)
def test_names_are_canonical(name, canonical):
    assert Device.canonicalize(name) == canonical
    assert Device.canonicalize(canonical) == canonical


def test_an_unknown_name_lists_the_known_and_suggests_the_nearest():
    with pytest.raises(DeviceError, match=r"'clamg' is not a device.*CLANG.*Known:.*CPU.*PYTHON"):
        Device.canonicalize("clamg")


@pytest.mark.parametrize("name", ["CPU:x", "CPU:-1", "CPU:", "DISK", "DISK:", ""])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(DeviceError):
        Device.canonicalize(name)


def test_a_name_is_a_string():
    with pytest.raises(TypeError, match="named by a string"):
        Device.canonicalize(3)


def test_a_device_that_is_not_here_says_what_is_missing():
    assert Device.canonicalize("metal") == "METAL"
    with pytest.raises(MissingDeviceError, match=r"device METAL (is for|needs)") as caught:
        Device["METAL"]
    assert isinstance(caught.value, DeviceError)
    assert isinstance(caught.value, NotImplementedError)


def test_the_same_device_object_each_time():
    assert Device["CPU"] is Device["cpu:0"]
    assert Device["CPU:1"] is not Device["CPU"]
    assert Device["CPU:1"].kind == "CPU"
    assert {"CPU", "CPU:1"} <= set(Device.opened())


def test_status_says_what_works_and_what_is_missing(monkeypatch, tmp_path):
    status = Device.status()
    assert [status[kind] for kind in ("CPU", "PYTHON", "NULL", "NPY", "DISK")] == [""] * 5
    assert not status["CUDA"] or "device CUDA" in status["CUDA"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install" in Device.status()["CLANG"]


def test_default_follows_dev():
    before = Device.DEFAULT
    DEV.set_default("clang")
    assert Device.DEFAULT == "CLANG"
    Device.DEFAULT = "python:0"
    assert Device.DEFAULT == "PYTHON"
    assert Device.canonicalize(None) == "PYTHON"
    DEV.set_default("")
    assert before == Device.DEFAULT


@pytest.mark.parametrize(
    ("env", "default"),
    [
        ({}, "CPU"),
        ({"CLANG": "1"}, "CLANG"),
        ({"PYTHON": "/usr/bin/python3"}, "CPU"),
        ({"DEV": "python"}, "PYTHON"),
        ({"DEV": "NULL", "CLANG": "1"}, "NULL"),
    ],
)
def test_default_from_the_environment(env, default):
    script = "from lazygrad.device import Device; print(Device.DEFAULT, Device.opened())"
    assert run_python(script, **env) == f"{default} []\n"


def test_an_opened_device_is_announced_once():
    script = "import os; from lazygrad.device import Device\n"
    script += "Device['PYTHON']; Device['python:0']; print(os.getpid())"
    *lines, pid = run_python(script, DEBUG="1").splitlines()
    assert lines == [f"opened device PYTHON from pid:{pid}"]
    assert len(run_python(script).splitlines()) == 1


def test_threads_open_a_device_once():
    opened = []

    def make(name: str) -> CompiledDevice:
        opened.append(name)
        threading.Event().wait(0.05)
        return CompiledDevice(name, HostAllocator(name))

    Device.register("slowopen", make)
    in_threads(8, lambda _: Device["SLOWOPEN"])
    Device.unregister("slowopen")
    assert opened == ["SLOWOPEN"]


def test_a_data_device_runs_nothing():
    with pytest.raises(DeviceError, match="NPY holds data and runs no kernels"):
        Device["NPY"].renderer


def test_another_stands_in_for_a_device_that_is_not_here():
    def make(name: str) -> CompiledDevice:
        return CompiledDevice(name, HostAllocator(name))

    with Device.stand_ins(["METAL", "CPU"], make) as absent:
        assert repr(Device["metal:1"]) == "<device METAL:1>"
        assert absent == ["METAL"]
        for name in ("nonsense", "CPU:x", "DISK", "CUDA"):
            with pytest.raises(DeviceError):
                Device[name]
        assert type(Device["CPU"]) is not CompiledDevice
    assert not {"METAL", "METAL:1"} & set(Device.opened())
    with pytest.raises(DeviceError, match="METAL"):
        Device["METAL"]


def test_a_registered_device_can_be_taken_away():
    Device.register("guest", lambda name: CompiledDevice(name, HostAllocator(name)))
    first = Device["guest:1"]
    Device.unregister("guest")
    assert "GUEST:1" not in Device.opened()
    with pytest.raises(DeviceError, match="'guest:1' is not a device"):
        Device["guest:1"]
    Device.register("guest", lambda name: CompiledDevice(name, HostAllocator(name)))
    assert Device["guest:1"] is not first
    Device.unregister("guest")


@needs("torch")
def test_pytorchs_devices_are_names():
    torch = require("torch")
    assert Device.canonicalize(torch.device("cuda", 1)) == "CUDA:1"
    assert Tensor([1], device="PYTHON").to(torch.device("cpu")).device == "CPU"

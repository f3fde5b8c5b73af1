"""python -m lazygrad: the demo learns and repeats itself to the bit; devices are listed; mistakes named."""

from __future__ import annotations

import re

import pytest

from lazygrad import Context, Device, Tensor
from lazygrad.__main__ import main
from lazygrad.device import CompiledDevice
from lazygrad.nn import demo
from lazygrad.runtime._host import HostAllocator
from tests.helpers import needs


@pytest.fixture
def quick(monkeypatch):
    """A small part of an epoch."""
    monkeypatch.setattr(demo, "BATCH", 512)


def numbers_of(text: str) -> list[str]:
    return re.findall(r"^(?:loss|accuracy): .*$", text, re.MULTILINE)


def test_the_demo_prints_its_accuracy_and_its_kernels(quick, capsys):
    assert main(["demo", "--epochs", "1"]) == 0
    text = capsys.readouterr().out
    assert "1438 digits to learn from, 359 held out" in text
    assert re.search(r"^accuracy: \d+\.\d %$", text, re.MULTILINE)
    rows = text[text.index("kernel ") :].splitlines()
    assert rows[0].split() == ["kernel", "shape", "FLOPs", "bytes", "time", "share", "from"]
    kernels = [row for row in rows if re.match(r"[rE]_\S+ +\(.*\) .* µs +\d+\.\d%", row)]
    total = next(row for row in rows if " in all" in row)
    assert int(total.split()[0]) >= len(kernels) > 20
    assert any("conv2d" in row for row in kernels)
    assert any("AdamW" in row for row in kernels)


def test_the_same_seed_gives_the_same_to_the_bit(quick, capsys):
    texts = []
    for seed in (3, 3, 4):
        demo.run(1, seed)
        texts.append(numbers_of(capsys.readouterr().out))
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=[pytest.mark.slow, needs("clang")])])
def test_the_demo_runs_where_it_is_told_to(device, quick, capsys, monkeypatch):
    before = Device.DEFAULT
    try:
        assert main(["demo", "--epochs", "1", "--device", device.lower()]) == 0
    finally:
        Device.DEFAULT = before
    assert f"on {device}\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_demo_reads_at_least_98_percent(seed):
    assert demo.run(seed=seed) >= 0.98


def test_the_batches_hold_the_images_that_their_labels_name():
    images, labels = Tensor.arange(6 * 64).reshape(6, 1, 8, 8).realize(), Tensor.arange(6).realize()
    x, y = demo.Batches(images, labels).draw(40)
    for image, label in zip(x.numpy(), y.numpy(), strict=True):
        inner = image[0, 1:-1, 1:-1]  # no shift moves these out
        assert inner.min() >= label * 64
        assert inner.max() < (label + 1) * 64


def test_devices_says_what_works_and_what_is_missing(capsys):
    assert main(["devices"]) == 0
    rows = {row.split()[0]: row.split(None, 2)[1:] for row in capsys.readouterr().out.splitlines()}
    assert rows["CPU"][0] == "+"
    assert rows["PYTHON"] == ["+", "works"]
    assert rows["METAL"][0] == "-"
    assert len(rows["METAL"][1]) > 10
    assert sum("the default" in row[1] for row in rows.values()) == 1


def test_devices_has_room_for_a_long_name(capsys, monkeypatch):
    monkeypatch.setattr(
        Device, "_registered", {"ACCELERATOR": lambda name: CompiledDevice(name, HostAllocator(name))}
    )
    main(["devices"])
    assert "ACCELERATOR  +  works" in capsys.readouterr().out.splitlines()


def test_devices_marks_the_default(capsys):
    with Context(DEV="PYTHON"):
        main(["devices"])
    assert re.search(r"^PYTHON +\+ +works; the default$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dmeo"], "no command 'dmeo': did you mean 'demo'?"),
        (["device"], "no command 'device': did you mean 'devices'?"),
        (["xyz"], "no command 'xyz': there are calibrate, demo, devices"),
        (["demo", "--epochs", "0"], "argument --epochs: '0' is not a whole number of at least 1"),
        (["demo", "--epochs", "many"], "argument --epochs: 'many' is not a whole number of at least 1"),
    ],
)
def test_a_command_that_is_not_there(words, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_device_that_is_not_there(capsys):
    assert main(["demo", "--device", "cpux"]) == 1
    assert "lazygrad demo: 'cpux' is not a device. Did you mean CPU?" in capsys.readouterr().err


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    assert "devices" in capsys.readouterr().out

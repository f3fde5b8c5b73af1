"""The programs of examples/, each at a small size: they run, learn, and write what they say."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

import lazygrad
from tests.helpers import ROOT


def example(name: str) -> ModuleType:
    """A program of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_digits_goes_on_and_is_exported(tmp_path, capsys):
    checkpoint, path = str(tmp_path / "run.safetensors"), str(tmp_path / "digits.lzg")
    main = example("digits").main
    main(["--epochs", "1", "--checkpoint", checkpoint])
    right = main(["--epochs", "2", "--checkpoint", checkpoint, "--export", path])
    assert "goes on after epoch 1" in capsys.readouterr().out
    assert right > 0.9
    read = lazygrad.load_exported(path)
    _, _, images, classes = lazygrad.nn.datasets.digits()
    found = [int(read(image.contiguous()).argmax().item()) for image in images[:20].chunk(20)]
    assert sum(a == b for a, b in zip(found, classes[:20].tolist(), strict=True)) > 15


@pytest.mark.slow
def test_char_gpt_learns_letters(capsys):
    losses = example("char_gpt").main(["--small"])
    assert losses[-1] < losses[0] - 0.8
    assert "characters, " in capsys.readouterr().out


def test_char_gpt_reads_a_text(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("abcd" * 400, encoding="utf-8")
    losses = example("char_gpt").main(["--small", "--text", str(text), "--temperature", "0.1"])
    assert losses[-1] < 0.2
    assert "abcdabcdabcd" in capsys.readouterr().out


def test_lora_beside_quantised_weights(tmp_path):
    lora = example("lora_smollm2")
    losses = lora.main(["--small", "--steps", "16", "--save", str(tmp_path)])
    assert losses[-1] < 0.7 * losses[0]
    model = lora.random_model()
    adapter = lazygrad.nn.lora.load(model, tmp_path, rename=lora.peft_name)
    tokens, follows = lora.batch_of([([n, n + 1, n + 2], [3 * n + 1, 2 * n, n + 9, n]) for n in range(4)])
    loss = model(tokens).flatten(0, 1).cross_entropy(follows.flatten(), ignore_index=-100)
    assert loss.item() < losses[-1] + 0.05
    assert len(adapter.layers) == 8


@pytest.mark.parametrize("name", ["digits", "char_gpt", "lora_smollm2"])
def test_each_says_what_it_takes(name, capsys):
    with pytest.raises(SystemExit) as ended:
        example(name).main(["--help"])
    assert ended.value.code == 0
    assert "--small" in capsys.readouterr().out


def test_the_text_that_comes_with_python():
    assert len(example("char_gpt").licence()) > 2000

"""The programs of examples/, each at a small size: they run, learn, and write what they say."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

import lazygrad
from lazygrad import Tensor
from lazygrad.renderer.cstyle import FLAGS
from tests.distributed.mpi import run
from tests.helpers import ROOT, needs, require


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


@pytest.mark.slow
def test_char_gpt_reads_a_text(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("abcd" * 400, encoding="utf-8")
    losses = example("char_gpt").main(["--small", "--text", str(text), "--temperature", "0.1"])
    assert losses[-1] < 0.2
    assert "abcdabcdabcd" in capsys.readouterr().out


@pytest.mark.slow
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


@pytest.mark.slow
@needs("clang")
@needs("onnxruntime")
@needs("onnx")
def test_a_quantised_language_model_as_a_file_as_c_and_as_onnx(tmp_path):
    import ctypes
    import subprocess

    import numpy as np

    model = example("lora_smollm2").random_model()
    tokens = np.array([[1, 5, 9, 3]], np.int32)
    given = (Tensor(tokens),)
    expected = model.forward(*given).numpy()
    lazygrad.export(model.forward, given, tmp_path / "model.lzg")
    np.testing.assert_array_equal(lazygrad.load_exported(tmp_path / "model.lzg")(*given).numpy(), expected)

    lazygrad.export(model.forward, given, tmp_path / "model.c")
    line = [require("clang"), "-O1", *FLAGS, "-shared", "-fPIC", "model.c", "-o", "model.so", "-lm"]
    subprocess.run(line, cwd=tmp_path, check=True)
    out = np.empty_like(expected)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (tokens, out)]
    assert ctypes.CDLL(str(tmp_path / "model.so")).model(*pointers) == 0
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)

    with Tensor.train():  # where the blocks are one graph
        lazygrad.export(model.forward, given, tmp_path / "model.onnx")
    session = require("onnxruntime").InferenceSession(str(tmp_path / "model.onnx"))
    np.testing.assert_allclose(session.run(None, {"tokens": tokens})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@needs("mpi")
def test_a_transformer_on_a_mesh_learns_the_same_on_two_ranks():
    script = str(ROOT / "examples" / "transformer_on_mesh.py")
    alone, ranks = run(1, script), run(2, script, "--model", "2")
    assert alone.out.count("loss") == 3, alone.error
    assert ranks.out == alone.out, ranks.error

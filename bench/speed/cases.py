"""What is computed: for each case its inputs, its floating-point operations, and the bytes it must move.

How each library computes it stands in `peers/`, one file per library, under the name in `function`. FLOPs and
bytes are those of the computation itself (each input read once, each result written once), for its limit.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A computation.

    name       what the table calls it
    function   its name in the files of peers/
    inputs     makes its arrays from a random generator
    flops      floating-point operations, a multiply-add counting as two
    read       bytes that must be read
    written    bytes that must be written
    dtype      of the floating-point inputs: a library converts them before the clock starts
    tolerance  largest error against float64, as a share of the largest value of the result
    """

    name: str
    function: str
    inputs: Callable[[np.random.Generator], Arrays]
    flops: float
    read: float
    written: float
    dtype: str = "float32"
    tolerance: float = 1e-5
    options: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> Arrays:
        """The inputs: the same in every process."""
        return self.inputs(np.random.default_rng(zlib.crc32(self.name.encode())))


def normal(*shapes: tuple[int, ...], scale: float = 1.0) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.standard_normal(shape, np.float32) * np.float32(scale) for shape in shapes]


def _matmul(m: int, k: int, n: int, dtype: str = "float32", tolerance: float = 1e-5) -> Case:
    size = {"float32": 4, "bfloat16": 2, "float16": 2}[dtype]
    name = f"matmul {m}" if m == k == n else f"matmul {m}x{k}x{n}"
    suffix = {"float32": "", "bfloat16": " bf16", "float16": " f16"}[dtype]
    read, written = size * (m * k + k * n), size * m * n
    return Case(
        name + suffix, "matmul", normal((m, k), (k, n)), 2 * m * k * n, read, written, dtype, tolerance
    )


def _gather(rng: np.random.Generator) -> Arrays:
    return [rng.standard_normal((50_000, 256), np.float32), rng.integers(0, 50_000, 8192).astype(np.int32)]


def _weights(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    """Weights as a layer starts with them, biases (one axis) included: uniform within 1/√fan_in."""
    made = []
    for shape in shapes:
        fan_in = math.prod(shape[1:]) if len(shape) > 1 else shape[0]
        made.append(rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(math.sqrt(fan_in)))
    return made


MLP_WEIGHTS = ((512, 784), (512,), (512, 512), (512,), (10, 512), (10,))
CNN_WEIGHTS = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (10, 64 * 12 * 12), (10,))


def _mlp(rng: np.random.Generator) -> Arrays:
    x, y = rng.standard_normal((512, 784), np.float32), rng.integers(0, 10, 512).astype(np.int32)
    return [x, y, *_weights(rng, *MLP_WEIGHTS)]


def _cnn(rng: np.random.Generator) -> Arrays:
    x, y = rng.standard_normal((128, 1, 28, 28), np.float32), rng.integers(0, 10, 128).astype(np.int32)
    return [x, y, *_weights(rng, *CNN_WEIGHTS)]


def block_weights(d: int) -> tuple[tuple[int, ...], ...]:
    """A transformer block: qkv, projection, two layers of four times the width, two normalisations."""
    return (
        (3 * d, d),
        (3 * d,),
        (d, d),
        (d,),
        (4 * d, d),
        (4 * d,),
        (d, 4 * d),
        (d,),
        (d,),
        (d,),
        (d,),
        (d,),
    )


def _block(rng: np.random.Generator) -> Arrays:
    return [rng.standard_normal((1, 128, 768), np.float32), *_weights(rng, *block_weights(768))]


def _symmetric(size: int) -> Callable[[np.random.Generator], Arrays]:
    def made(rng: np.random.Generator) -> Arrays:
        x = rng.standard_normal((size, size), np.float32)
        return [x + x.T]

    return made


def _definite(size: int) -> Callable[[np.random.Generator], Arrays]:
    def made(rng: np.random.Generator) -> Arrays:
        x = rng.standard_normal((size, size), np.float32)
        return [x @ x.T / np.float32(size) + np.eye(size, dtype=np.float32)]

    return made


DECODE_LAYERS, DECODE_CACHE = 4, 256


def _decode(rng: np.random.Generator) -> Arrays:
    x = rng.standard_normal((1, 512), np.float32)
    caches = rng.standard_normal((2 * DECODE_LAYERS, DECODE_CACHE, 512), np.float32)
    return [x, caches, *(w for _ in range(DECODE_LAYERS) for w in _weights(rng, *block_weights(512)))]


def _bytes(shapes: tuple[tuple[int, ...], ...]) -> int:
    return 4 * sum(map(math.prod, shapes))


MILLION = 1 << 20
MLP_BYTES, CNN_BYTES, BLOCK_BYTES = _bytes(MLP_WEIGHTS), _bytes(CNN_WEIGHTS), _bytes(block_weights(768))
CNN_MACS = (
    4 * 9 * 32 * 26 * 26 + 6 * 9 * 32 * 64 * 24 * 24 + 6 * 64 * 12 * 12 * 10
)  # of an image, all three passes
CNN_VALUES = 4 * 128 * (32 * 26 * 26 + 64 * 24 * 24)  # after the two convolutions, and their gradients
# fmt: off
CASES = [
    _matmul(512, 512, 512), _matmul(1024, 1024, 1024), _matmul(2048, 2048, 2048),
    _matmul(1024, 1024, 1024, "bfloat16", 2e-2), _matmul(1024, 1024, 1024, "float16", 4e-3),
    Case("matvec 4096", "matmul", normal((4096, 4096), (4096,)),
         2 * 4096**2, 4 * (4096**2 + 4096), 4 * 4096),
    Case("elementwise chain 16M", "chain", normal((16 * MILLION,)),
         8 * 16 * MILLION, 4 * 16 * MILLION, 4 * 16 * MILLION),
    Case("gelu 16M", "gelu", normal((16 * MILLION,)),
         30 * 16 * MILLION, 4 * 16 * MILLION, 4 * 16 * MILLION),
    Case("sum 64M", "sum", normal((64 * MILLION,)), 64 * MILLION, 4 * 64 * MILLION, 4, tolerance=1e-3),
    Case("row sums 4096", "sum", normal((4096, 4096)),
         4096**2, 4 * 4096**2, 4 * 4096, options={"axis": 1}),
    Case("column sums 4096", "sum", normal((4096, 4096)),
         4096**2, 4 * 4096**2, 4 * 4096, options={"axis": 0}),
    Case("softmax 4096x1024", "softmax", normal((4096, 1024)),
         20 * 4 * MILLION, 4 * 4 * MILLION, 4 * 4 * MILLION),
    Case("layernorm 4096x1024", "layernorm", normal((4096, 1024), (1024,), (1024,)),
         8 * 4 * MILLION, 4 * 4 * MILLION, 4 * 4 * MILLION),
    Case("conv 3x3 32x64x56x56", "conv", normal((32, 64, 56, 56), (64, 64, 3, 3), scale=0.2),
         2 * 32 * 64 * 54 * 54 * 64 * 9, 4 * (32 * 64 * 56 * 56 + 64 * 64 * 9), 4 * 32 * 64 * 54 * 54),
    Case("attention 8x512x64", "attention", normal(*[(8, 512, 64)] * 3),
         4 * 8 * 512 * 512 * 64, 3 * 4 * 8 * 512 * 64, 4 * 8 * 512 * 64),
    Case("transpose 4096", "transpose", normal((4096, 4096)), 0, 4 * 4096**2, 4 * 4096**2, tolerance=0),
    Case("gather 8192 of 50k x 256", "gather", _gather, 0, 4 * 8192 * 256, 4 * 8192 * 256, tolerance=0),
    Case("cumsum 1024x4096", "cumsum", normal((1024, 4096)), 4 * MILLION, 4 * 4 * MILLION, 4 * 4 * MILLION,
         tolerance=1e-4),
    Case("sort 1M", "sort", normal((MILLION,)), 0, 4 * MILLION, 4 * MILLION, tolerance=0),
    Case("MLP training step", "mlp_step", _mlp, 6 * 512 * (784 * 512 + 512 * 512 + 512 * 10),
         4 * MLP_BYTES, 3 * MLP_BYTES, tolerance=1e-3),
    Case("CNN training step", "cnn_step", _cnn, 128 * CNN_MACS,
         2 * CNN_VALUES + 4 * CNN_BYTES, 2 * CNN_VALUES + 3 * CNN_BYTES, tolerance=1e-3),
    Case("GPT block 128x768", "block", _block, 2 * 128 * 12 * 768**2 + 4 * 128 * 128 * 768,
         BLOCK_BYTES, 4 * 128 * 768, tolerance=1e-4),
    Case("decode, 4 layers of 512", "decode", _decode, 2 * 4 * 12 * 512**2 + 4 * 4 * 256 * 512,
         4 * _bytes(block_weights(512)) + 4 * 8 * 256 * 512, 4 * 512, tolerance=1e-4),
    _matmul(127, 127, 127), _matmul(128, 128, 128), _matmul(1000, 1000, 1000), _matmul(333, 77, 333),
    Case("softmax 4093x1021", "softmax", normal((4093, 1021)),
         20 * 4093 * 1021, 4 * 4093 * 1021, 4 * 4093 * 1021),
    Case("row sums 4093x4091", "sum", normal((4093, 4091)),
         4093 * 4091, 4 * 4093 * 4091, 4 * 4093, options={"axis": 1}),
    Case("cholesky 512", "cholesky", _definite(512), 512**3 // 3, 4 * 512**2, 4 * 512**2),
    Case("inverse 256", "inverse", _definite(256), 2 * 256**3, 4 * 256**2, 4 * 256**2),
    Case("solve 256", "solve", _definite(256), 8 * 256**3 // 3, 4 * 256**2, 4 * 256**2),
    Case("qr 256", "qr", normal((256, 256)), 8 * 256**3 // 3, 4 * 256**2, 8 * 256**2, tolerance=1e-4),
    Case("eigh 256", "eigh", _symmetric(256), 9 * 256**3, 4 * 256**2, 4 * 256**2, tolerance=1e-4),
    Case("svd 256", "svd", normal((256, 256)), 21 * 256**3, 4 * 256**2, 8 * 256**2, tolerance=1e-4),
]
# fmt: on


def named(words: list[str]) -> list[Case]:
    """The cases whose names contain one of the words; all of them for no words."""
    found = [case for case in CASES if not words or any(word.lower() in case.name.lower() for word in words)]
    if not found:
        asked, names = " or ".join(map(repr, words)), ", ".join(case.name for case in CASES)
        raise ValueError(f"no case has {asked} in its name: there are {names}")
    return found

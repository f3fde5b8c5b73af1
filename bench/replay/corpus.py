"""The programs of the record: the cases of `bench speed`, two training steps, families, random kernels.

A program runs on the default device, which computes nothing; random kernels are for the optimizer and the
renderers alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from bench.speed.cases import CASES, Case
from lazygrad import Tensor, dtypes, nn
from lazygrad.ir.uop import UOp
from lazygrad.nn.demo import Batches, Network, train_step
from lazygrad.nn.optim import Adam, AdamW
from lazygrad.nn.state import get_parameters

from .families import FAMILIES
from .libraries import LIBRARIES
from .libraries import Missing as Missing

#: Random kernels in one program, and programs of them.
RANDOM_KERNELS, RANDOM_PROGRAMS = 25, 8


def _speed(case: Case) -> Callable[[], Any]:
    def run() -> None:
        from bench.speed.peers.with_lazygrad import make

        make(case, case.arrays(), case.dtype)()

    return run


def _demo() -> None:
    """One training step of the demo."""
    images = Tensor.zeros(1438, 1, 8, 8).contiguous()
    labels = Tensor.zeros(1438, dtype=dtypes.int32).contiguous()
    network = Network()
    with Tensor.train():
        train_step(network, AdamW(get_parameters(network), lr=1e-2), Batches(images, labels))


def _transformer() -> None:
    """One training step of two layers over (4, 64) words of a vocabulary of 1,000."""
    words = Tensor.zeros(4, 64, dtype=dtypes.int32).contiguous().realize()
    table, out = nn.Embedding(1000, 128), nn.Linear(128, 1000)
    layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
    layers = nn.TransformerEncoder(layer, 2)
    optimizer = Adam(get_parameters([table, layers, out]), lr=1e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(64)
    with Tensor.train():
        loss = out(layers(table(words), mask=mask, is_causal=True)).flatten(0, 1)
        loss = loss.sparse_categorical_crossentropy(words.flatten())
        optimizer.zero_grad()
        loss.backward()
        loss.realize(*optimizer.schedule_step())


#: Those that also run: `bench predict` measures their kernels.
RUNNABLE: dict[str, Callable[[], Any]] = {
    **{case.name: _speed(case) for case in CASES},
    "demo step": _demo,
    "transformer step": _transformer,
}
PROGRAMS: dict[str, Callable[[], Any]] = {**RUNNABLE, **FAMILIES, **LIBRARIES}


#: Programs of random kernels: name → its number.
RANDOM: dict[str, int] = {f"random kernels {part}": part for part in range(RANDOM_PROGRAMS)}


def random_kernels(part: int) -> list[UOp]:
    """The random kernels of a part, as those of the tests, the same in every process."""
    from tests.codegen.programs import Programs

    return [Programs(zlib.crc32(b"%d %d" % (part, number))).kernel() for number in range(RANDOM_KERNELS)]

"""A small transformer learns to copy what it has read: layers, loss, optimizer and jit together."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn import optim
from lazygrad.nn.state import get_parameters, get_state_dict, load_state_dict

SYMBOLS, LENGTH, WIDTH = 6, 4, 32


class Copier:
    """Symbols (batch, 2 · LENGTH - 1) → what comes next at each place."""

    def __init__(self) -> None:
        self.symbols = nn.Embedding(SYMBOLS, WIDTH)
        self.places = nn.Embedding(2 * LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def __call__(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        h = self.symbols(x) + self.places(Tensor.arange(length))
        return self.head(self.body(h, nn.causal_mask(length)))


@pytest.mark.slow
def test_a_transformer_learns_to_copy() -> None:
    Tensor.manual_seed(1)
    model = Copier()
    optimizer = optim.AdamW(get_parameters(model), lr=3e-3)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        # the second half says the first again: only that can be known
        said = model(x[:, :-1])[:, LENGTH - 1 :].flatten(0, 1)
        loss: Tensor = said.cross_entropy(x[:, LENGTH:].flatten()).backward()
        return loss.realize(*optimizer.schedule_step())

    call = TinyJit(step)
    random = np.random.RandomState(0)

    def batch() -> Tensor:
        words = random.randint(0, SYMBOLS, (64, LENGTH))
        return Tensor(np.concatenate([words, words], 1).astype(np.int32)).realize()

    with Tensor.train():
        first = call(batch()).item()
        for _ in range(249):
            loss = call(batch())
    assert first > 1.4  # nothing is known yet: about log(SYMBOLS)
    assert loss.item() < 0.05

    again = Copier()
    load_state_dict(again, get_state_dict(model), verbose=False)
    x = batch()
    said = again(x[:, :-1]).argmax(-1).numpy()[:, LENGTH - 1 :]
    assert (said == x.numpy()[:, LENGTH:]).mean() > 0.97

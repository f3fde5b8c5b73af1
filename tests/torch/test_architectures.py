"""Published architectures with random weights: answers and gradients are eager's. `python -m bench torch`
has 87, with times; here are a few, whose package CI has.
"""

from __future__ import annotations

import pytest

from bench.torch_compile import measure
from bench.torch_models import ARCHITECTURES
from bench.torch_table import EQUAL
from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = [needs("torch", "transformers"), pytest.mark.slow]

LEARN = ["RoBERTa", "GPT-2", "ViT"]
ANSWER = ["Llama", "T5", "Whisper"]


@pytest.mark.parametrize("name", LEARN + ANSWER)
def test_it_answers_and_learns_as_in_eager(name: str) -> None:
    door.partition.warned.clear()
    threads = torch.get_num_threads()
    (architecture,) = [each for each in ARCHITECTURES if each.name == name]
    try:
        found = measure(architecture, training=name in LEARN, inductor=False, timed=False)
    finally:
        torch.set_num_threads(threads)
    assert max(found["forward"], found.get("training", 0.0)) < EQUAL
    assert found["fell"] == []
    assert (found["forward graphs"], found["forward breaks"]) == (1, 0)

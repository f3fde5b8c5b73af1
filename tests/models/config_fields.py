"""Every field of a configuration class, set to something else: what `transformers` makes of it, and we do.

A class of `transformers` says which fields there are. For each a few other values are tried: a model is made
of the changed configuration, its numbers are compared with ours, and ours may refuse instead. What must not
be is other numbers without a word.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.helpers import require

#: What changes no number of a text that is read: dropout and losses in training, how texts are written and
#: what is given out besides, what files say of themselves; or the class refuses it, or it cannot be another.
SILENT = """
    transformers_version architectures dtype torch_dtype return_dict output_hidden_states output_attentions
    id2label label2id problem_type num_labels _name_or_path name_or_path model_type use_cache
    initializer_range
    tokenizer_class task_specific_params finetuning_task attn_implementation _attn_implementation
    output_router_logits router_aux_loss_coef router_jitter_noise bos_token_id eos_token_id sep_token_id
    cls_token_id unk_token_id
"""

#: Field → values that are tried besides those that its type suggests.
VALUES: dict[str, list[Any]] = {
    "hidden_act": ["gelu", "relu", "silu", "gelu_new", "gelu_fast", "quick_gelu", "mish"],
    "position_embedding_type": ["relative_key", "relative_key_query"],
    "sliding_window": [None, 5],
    "chunk_size_feed_forward": [4],
    "pruned_heads": [{0: [1]}],
    "rope_parameters": [
        {"rope_type": "default", "rope_theta": 300.0},
        {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0},
        {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
        {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16},
        {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    ],
}
for alias in ("activation", "activation_function", "hidden_activation"):
    VALUES[alias] = VALUES["hidden_act"]


def other_values(name: str, value: Any) -> list[Any]:
    """What a field is set to instead."""
    if name in VALUES:
        return [each for each in VALUES[name] if each != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value * 2, max(1, value // 2)]
    if isinstance(value, float):
        return [value * 2 + 0.25]
    if isinstance(value, list) and value and isinstance(value[0], str):  # kinds of layers
        kinds = ("full_attention", "sliding_attention")
        return [[kinds[kinds[0] == each] for each in value], [kinds[0]] * len(value), [kinds[1]] * len(value)]
    if isinstance(value, list):
        return [[0], [1 - each for each in value] if all(each in (0, 1) for each in value) else [1]]
    if value is None:
        return [True, 3, 0.5]
    return []


def changes(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each field with each other value."""
    for name, value in config.items():
        in_training = "dropout" in name or name.endswith("_pdrop") or name.startswith("mask_")
        if name not in SILENT.split() and not name.startswith("output_") and not in_training:
            for other in other_values(name, value):
                yield name, other


def filled(model: Any) -> Any:
    """A model whose weights follow from their names and shapes, wide enough that mistakes show."""
    torch = require("torch")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            numbers = rng.standard_normal(tuple(parameter.shape)) * 0.2
            parameter.copy_(
                torch.tensor(numbers + (1.0 if parameter.ndim == 1 and "norm" in name.lower() else 0.0))
            )
    return model.eval()


class Found:
    """What became of the changes of one class."""

    def __init__(self) -> None:
        self.equal: list[str] = []
        self.refused: list[str] = []
        self.silent: list[str] = []  #: theirs gives the same numbers, and so does ours
        self.impossible: list[str] = []  #: theirs refuses too
        self.wrong: list[str] = []


def play(
    config: dict[str, Any],
    theirs: Callable[[dict[str, Any]], tuple[Any, Any]],
    ours: Callable[[dict[str, Any], Any], Any],
) -> Found:
    """Compare all changes.

    theirs  a configuration → its numbers, and the model
    ours    a configuration and their model → the same numbers; it may raise ValueError, NotImplementedError
    """
    found = Found()
    base = theirs(config)[0]
    for name, value in [("", None), *changes(config)]:
        changed = copy.deepcopy({**config, name: value} if name else config)  # which theirs fills in
        what = f"{name}={value!r}"
        try:
            expected, weights = theirs(changed)
        except Exception:  # whatever theirs raises of a configuration that cannot be
            found.impossible.append(what)
            continue
        same = expected.shape == base.shape and np.array_equal(expected, base)
        try:
            got = ours(changed, weights)
        except (ValueError, NotImplementedError) as error:
            (found.refused if not same or name else found.wrong).append(f"{what}: {error}")
            continue
        if got.shape != expected.shape or np.abs(got - expected).max() > 1e-4 * max(
            1, np.abs(expected).max()
        ):
            off = np.abs(got - expected).max() if got.shape == expected.shape else got.shape
            found.wrong.append(f"{what}: off by {off}")
        else:
            (found.silent if same else found.equal).append(what)
    return found

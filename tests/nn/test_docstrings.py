"""The examples in the docstrings of nn and of what it is made of run, and every public name has one."""

from __future__ import annotations

import doctest
import inspect
import sys
from types import ModuleType
from typing import Any

import pytest

import lazygrad
from lazygrad import Tensor, dtypes, nn
from lazygrad.nn import (
    activation,
    attention,
    convolution,
    dropout,
    embedding,
    images,
    init,
    layers,
    module,
    normalization,
    padding,
    pooling,
    recurrent,
    rotary,
    sequential,
    transformer,
)
from lazygrad.nn import losses as loss_layers
from lazygrad.nn.functional import activation as activation_functions
from lazygrad.nn.functional import axes, lookup, products
from lazygrad.nn.functional import losses as loss_functions
from lazygrad.nn.functional import normalization as normalization_functions
from lazygrad.nn.optim import adam, adaptive, combined, cycles, gradients, plateau, schedule, sgd
from lazygrad.tensor.elementwise import activation as activations
from lazygrad.tensor.neural import adaptive_pooling, class_losses, losses
from lazygrad.tensor.neural import attention as attentions
from lazygrad.tensor.neural import convolution as convolutions
from lazygrad.tensor.neural import layers as weights
from lazygrad.tensor.neural import normalization as normalizations
from lazygrad.tensor.neural import pooling as poolings
from lazygrad.tensor.shape import folding, resizing
from lazygrad.tensor.transforms import derivatives

MODULES: list[ModuleType] = [
    *(
        activation,
        attention,
        convolution,
        dropout,
        embedding,
        images,
        init,
        layers,
        module,
        normalization,
        pooling,
    ),
    *(padding, recurrent, rotary, sequential, transformer, loss_layers),
    *(activation_functions, axes, lookup, loss_functions, normalization_functions, products),
    *(adam, adaptive, combined, cycles, gradients, plateau, schedule, sgd),
    *(activations, attentions, class_losses, losses, weights, resizing, derivatives),
    *(adaptive_pooling, convolutions, folding, normalizations, poolings),
]
#: The function of the same name hides the module.
MODULES.append(sys.modules["lazygrad.tensor.transforms.checkpoint"])
MODULES += [sys.modules[f"lazygrad.nn.{name}"] for name in ("summary", "data", "logs")]
MODULES += [sys.modules[f"lazygrad.tensor.{name}"] for name in ("modes", "print_options", "random.generator")]
NAMES = {"Tensor": Tensor, "nn": nn, "dtypes": dtypes, "lazygrad": lazygrad}
NAMES |= {name: getattr(lazygrad, name) for name in lazygrad.__all__}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("lazygrad."))
def test_examples_run(module: ModuleType) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=NAMES):
        Tensor.manual_seed(0)
        runner.run(example, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


def public(module: Any) -> list[tuple[str, Any]]:
    found = []
    for name, member in vars(module).items():
        own = getattr(member, "__module__", None) == module.__name__
        if name.startswith("_") or not own or not callable(member) or not member.__doc__:
            continue
        if inspect.isclass(member) and issubclass(member, Tensor):  # a family
            found += [
                (f"{name}.{n}", m) for n, m in vars(member).items() if not n.startswith("_") and callable(m)
            ]
        elif inspect.isclass(member) or inspect.isfunction(member):
            found.append((name, member))
    return found


#: helpers and bases, which are no examples of anything
PLAIN = {
    "over_axes", "checked_symbol", "LRScheduler", "GroupsLR", "other_defaults", "least_float",
    "each", "greatest", "paddings", "named_padding", "checked_probability",
    "SummaryRow", "Summary", "IncompatibleKeys", "Watcher", "watched", "is_layer", "walk_tensors",
    "is_parameter", "parameter_count", "text_of", "Dataset", "collate", "Curves", "Examples", "Setting",
    "no_grad", "enable_grad", "inference_mode", "TrainingMode", "TestMode", "TrainingFlag", "PrintOptions",
    "printoptions",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("lazygrad."))
def test_every_public_name_has_an_example(module: ModuleType) -> None:
    without = [
        name for name, member in public(module) if ">>>" not in (member.__doc__ or "") and name not in PLAIN
    ]
    assert not without

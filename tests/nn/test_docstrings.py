"""The examples in the docstrings of nn and of what it is made of run, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

import lazygrad
from lazygrad import Tensor, dtypes, nn

#: Modules by their path; some are hidden by a function of their name.
PATHS = """
    nn.activation nn.attention nn.containers nn.convolution nn.data
    nn.dropout nn.embedding nn.images nn.init nn.layers
    nn.logs nn.losses nn.module nn.normalization nn.padding nn.pooling nn.recurrent nn.rotary nn.sequential
    nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.rnn
    nn.summary nn.transformer nn.functional.activation nn.functional.axes nn.functional.lookup
    nn.functional.losses nn.functional.normalization nn.functional.products
    nn.optim.adam nn.optim.adaptive nn.optim.combined
    nn.optim.cycles nn.optim.gradients nn.optim.plateau nn.optim.schedule nn.optim.sgd
    tensor.elementwise.activation tensor.modes tensor.neural.adaptive_pooling tensor.neural.attention
    tensor.neural.class_losses tensor.neural.convolution tensor.neural.layers tensor.neural.losses
    tensor.neural.normalization tensor.neural.pooling tensor.print_options tensor.random.generator
    tensor.shape.folding tensor.shape.resizing tensor.transforms.checkpoint tensor.transforms.derivatives
"""
MODULES = [importlib.import_module(f"lazygrad.{path}") for path in PATHS.split()]
NAMES = {"Tensor": Tensor, "nn": nn, "linalg": lazygrad.linalg, "dtypes": dtypes, "lazygrad": lazygrad}
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
    "printoptions", "usual_modes",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("lazygrad."))
def test_every_public_name_has_an_example(module: ModuleType) -> None:
    without = [
        name for name, member in public(module) if ">>>" not in (member.__doc__ or "") and name not in PLAIN
    ]
    assert not without

"""PyTorch's own samples of its operations (OpInfo), through graphs as `torch.compile` makes them.

What draws random numbers, reads memory that nobody has written, or has sizes that depend on values is left
out. What runs in PyTorch for want of a row gives PyTorch's results, so it is no fault here.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = [needs("torch", "expecttest"), pytest.mark.slow]

#: The operations are taken in so many parts, and so many samples of each.
PARTS, SAMPLES = 48, 3
#: Results that nobody can compare: random numbers, and memory as it is found.
FREE = ("empty", "rand", "dropout", "bernoulli", "multinomial", "normal", "uniform", "exponential", "cauchy")
FREE += ("geometric", "rrelu", "fractional_max_pool", "log_normal", "jiterator", "svd_lowrank", "pca_lowrank")
#: Dropout is inside, or tensors are sparse.
FREE += ("multi_head_attention_forward", "sparse.")

#: Each vector among the results may have the other sign.
SIGNS = ("linalg.eigh",)


#: Of the core set, what has a row and may run in PyTorch for some samples → why.
SOMETIMES = {
    "aten.as_strided.default": "how the memory of its input lies is not known",
    "aten.index_put.default": "indexing by a mask",
}


def numbered(part: int) -> Iterator[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db[part::PARTS]:
        if not any(word in op.name for word in FREE) and torch.float32 in op.dtypes:
            yield op


def as_function(op: Any, sample: Any) -> tuple[Callable[..., list[Any]], list[Any]]:
    """The operation as a function of the sample's tensors, and these."""
    from torch.utils import _pytree as pytree

    given, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, value in enumerate(given) if isinstance(value, torch.Tensor)]

    def run(*tensors: Any) -> list[Any]:
        values = list(given)
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(values, spec)
        return pytree.tree_leaves(op.op(first, *args, **kwargs))

    return run, [given[place].detach() for place in places]


def found_by_us(run: Callable[..., list[Any]], tensors: list[Any]) -> list[Any] | None:
    """What our graphs give; None where PyTorch makes no graph of it."""
    from functorch.compile import aot_function
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    refused = (DataDependentOutputException, DynamicOutputShapeException)
    compiled = aot_function(
        run, fw_compiler=door.dynamo.compiled_graph, decompositions=door.dynamo.decompositions()
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(compiled(*tensors))
    except refused:
        return None


@pytest.fixture
def warned() -> Iterator[dict[str, str]]:
    """What ran in PyTorch in the test, and why."""
    found: dict[str, str] = {}
    plain = door.partition._warn

    def noted(node: Any, why: str) -> None:
        found[door.table.name_of(node.target)] = why
        plain(node, why)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door.partition, "_warn", noted)
        yield found


def wrongly_in_pytorch(warned: dict[str, str]) -> dict[str, str]:
    """Of the core set, what has a row and ran in PyTorch all the same; numbers that are complex it has to."""
    rows = {door.table.name_of(op) for op in door.table.core_set() if door.table.row_of(op) is not None}
    return {
        name: why
        for name, why in warned.items()
        if name in rows and "no dtype like torch.complex" not in why and SOMETIMES.get(name, "?") not in why
    }


@pytest.mark.parametrize("part", range(PARTS))
def test_results_are_those_of_eager(part: int, warned: dict[str, str]) -> None:
    compared = 0
    for op in numbered(part):
        for sample in itertools.islice(op.sample_inputs("cpu", torch.float32), SAMPLES):
            if "dropout_p" in sample.kwargs or "p" in sample.kwargs:
                continue
            run, tensors = as_function(op, sample)
            try:
                expected = run(*tensors)
            except RuntimeError:
                continue  # a sample that PyTorch itself refuses here
            found = found_by_us(run, tensors)
            if found is None:
                continue
            for one, other in zip(found, expected, strict=True):
                if isinstance(other, torch.Tensor):
                    if op.name in SIGNS:
                        one, other = one.abs(), other.abs()
                    torch.testing.assert_close(
                        one,
                        other,
                        atol=1e-4,
                        rtol=1e-3,
                        equal_nan=True,
                        msg=functools.partial("{}: {}".format, op.name),
                    )
            compared += 1
    assert compared
    assert wrongly_in_pytorch(warned) == {}

"""The table of ATen operations: what of the core set has a row."""

from __future__ import annotations

from typing import Any

import pytest

from lazygrad import Tensor
from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = needs("torch")


def test_the_core_set_has_rows():
    lacking, core = door.table.core_without_row(), door.table.core_set()
    assert len(core) > 180
    assert len(lacking) <= 0.03 * len(core)
    assert not [name for name, why in lacking.items() if "not in the table" in why]
    assert not [name for name in door.table.WITHOUT_ROW if name in door.table.ATEN]


def test_what_has_a_row_is_not_decomposed():
    assert torch.ops.aten.native_layer_norm.default not in door.dynamo.decompositions()
    assert torch.ops.aten.silu.default in door.dynamo.decompositions()


#: Rows for the older releases that lazygrad takes.
GONE_SINCE = {"cholesky": (2, 14)}


@pytest.mark.parametrize("name", [] if door is None else sorted(door.table.ATEN))
def test_a_row_is_of_an_operation_that_there_is(name):
    """So that none is left over, or stands under a name that no graph has."""
    parts = name.split(".")
    if parts[0] == "transformers":
        return  # it has them once it is imported
    if name in GONE_SINCE and tuple(map(int, torch.__version__.split(".")[:2])) >= GONE_SINCE[name]:
        assert not hasattr(torch.ops.aten, name)
        return
    space, name, *overload = parts if parts[0] == "prims" else ["aten", *parts]
    packet = getattr(getattr(torch.ops, space), name)
    assert not overload or overload[0] in packet.overloads()


def test_a_name_has_one_row():
    with pytest.raises(ValueError, match=r"the table has two rows of add"):
        door.table.aten("add")(lambda x: x)


def row(name: str) -> Any:
    return door.table.row_of(getattr(torch.ops.aten, name).default)


def test_a_histogram_counts_the_end_of_its_range():
    given = [-0.1, 0.0, 0.2, 0.25, 0.9, 1.0, 1.1]
    assert (
        row("histc")(Tensor(given), 4, 0.0, 1.0).tolist() == torch.tensor(given).histc(4, 0.0, 1.0).tolist()
    )


def test_what_strides_see_is_replaced():
    x, source = torch.arange(12.0).reshape(3, 4), -torch.ones(2, 2)
    expected = torch.as_strided_scatter(x, source, (2, 2), (4, 2), 1)
    found = row("as_strided_scatter")(Tensor(x.numpy()), Tensor(source.numpy()), (2, 2), (4, 2), 1)
    assert found.tolist() == expected.tolist()


def test_the_gradient_of_normalized_weights():
    torch.manual_seed(0)
    v, g, slope = torch.randn(2, 3), torch.randn(2, 1), torch.randn(2, 3)
    norms = v.norm(dim=1, keepdim=True)
    expected = torch.ops.aten._weight_norm_interface_backward(slope, v, g, norms, 0)
    ours = [Tensor(x.numpy()) for x in (slope, v, g, norms)]
    for found, wanted in zip(row("_weight_norm_interface_backward")(*ours, 0), expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found.numpy()), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [1, *[pytest.param(n, marks=pytest.mark.slow) for n in (None, 0, 2)]])
def test_attention_of_whole_layers_and_its_masks(kind):
    torch.manual_seed(0)
    x, weights = (
        torch.randn(2, 3, 4),
        [torch.randn(12, 4), torch.randn(12), torch.randn(4, 4), torch.randn(4)],
    )
    shape = {0: (3, 3), 1: (2, 3), 2: (2, 2, 3, 3)}.get(kind)
    mask = None if shape is None else torch.ones(shape).triu(1).bool()
    given = [x, x, x, 4, 2, *weights, mask, True, False, kind]
    expected = torch._native_multi_head_attention(*given)
    ours = [Tensor(each.numpy()) if isinstance(each, torch.Tensor) else each for each in given]
    for found, wanted in zip(row("_native_multi_head_attention")(*ours), expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found.numpy()), wanted, atol=1e-5, rtol=1e-5)


def test_means_of_bags_and_which_bag_an_index_is_in():
    given = [torch.randn(5, 2), torch.tensor([0, 3, 1, 1]), torch.tensor([0, 1, 1])]
    expected = torch.ops.aten._embedding_bag(*given, False, 1)
    found = row("_embedding_bag")(*[Tensor(x.numpy()) for x in given], False, 1)
    for one, wanted in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(torch.from_numpy(one.numpy()), wanted, check_dtype=False)


@pytest.mark.parametrize("size", [5, 6, 7])
def test_sums_of_windows_that_reach_beyond(size):
    x = torch.arange(float(size * size)).reshape(1, size, size)
    how = ((3, 2), (3, 3), (1, 1), True, True, 5)
    found = row("avg_pool2d")(Tensor(x.numpy()), *how)
    torch.testing.assert_close(torch.from_numpy(found.numpy()), torch.ops.aten.avg_pool2d(x, *how))


@pytest.mark.parametrize(
    "how", [((5, 9), False), ((5, 9), True), ((5, 9), False, 1.7, 1.9)], ids=["size", "corners", "scales"]
)
def test_pictures_are_resized(how):
    x = torch.arange(30.0).reshape(1, 2, 3, 5)
    found = row("upsample_bilinear2d")(Tensor(x.numpy()), *how)
    torch.testing.assert_close(torch.from_numpy(found.numpy()), torch.ops.aten.upsample_bilinear2d(x, *how))


@pytest.mark.parametrize("form", ["rows", "columns", "sums", "batches"])
def test_grouped_products(form):
    torch.manual_seed(0)
    ends = None if form == "batches" else torch.tensor([3, 3, 8], dtype=torch.int32)
    shapes = {
        "rows": ((8, 8), (3, 8, 4)),
        "columns": ((3, 4, 8), (8, 8)),
        "sums": ((8, 8), (8, 4)),
        "batches": ((3, 2, 8), (3, 8, 4)),
    }
    x, y = (torch.randn(shape) for shape in shapes[form])
    given = [None if each is None else Tensor(each.numpy()) for each in (x, y, ends)]
    found = torch.from_numpy(row("_grouped_mm")(*given).numpy())
    torch.testing.assert_close(found, torch._grouped_mm(x, y, ends))


def test_the_operators_of_transformers_for_groups():
    torch.manual_seed(0)
    x, weight, slope, ends = (
        torch.randn(6, 4),
        torch.randn(3, 5, 4).transpose(1, 2),
        torch.randn(6, 5),
        [1, 1, 6],
    )
    ours = [Tensor(x.numpy()), Tensor.from_torch(weight), Tensor(ends)]
    forward, backward = (
        door.table.ATEN[f"transformers.grouped_mm_fallback{kind}.default"] for kind in ("", "_backward")
    )
    leaves = [x.requires_grad_(), weight.requires_grad_()]
    expected = torch.cat([x[:1] @ weight[0], x[1:] @ weight[2]])
    torch.testing.assert_close(torch.from_numpy(forward(*ours).numpy()), expected.detach())
    wanted = torch.autograd.grad(expected, leaves, slope)
    for found, each in zip(backward(*ours, Tensor(slope.numpy())), wanted, strict=True):
        torch.testing.assert_close(torch.from_numpy(found.numpy()), each)

"""Named meshes in one process: how tensors lie, what ops make of that, and what devices send each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.config import Context
from lazygrad.distributed import Mesh
from lazygrad.ir.ops import Ops
from lazygrad.ir.spec import TENSOR
from lazygrad.sharding.multi_rules import NO_RULE, RULES

GRID = Mesh((2, 2), ("data", "model"))
ROW = Mesh(2, "data")


def values(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def test_a_mesh_says_what_it_is() -> None:
    assert repr(GRID) == "Mesh(data=2, model=2: CPU, CPU:1, CPU:2, CPU:3)"
    assert (GRID.size("model"), GRID.axis_number("model")) == (2, 1)
    assert repr(Mesh(2, "x", ("CPU:3", "CPU:1"))) == "Mesh(x=2: CPU:3, CPU:1)"


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "names": (lambda: Mesh((2, 2), ("data",)), "a name for each axis, not 1 for 2"),
    "twice": (lambda: Mesh((1, 2), ("a", "a")), "different names, not a, a"),
    "size": (lambda: Mesh((0,), ("a",)), "at least one device"),
    "count": (lambda: Mesh((2,), ("a",), ("CPU",)), "a mesh of 2 has 2 devices, not 1: CPU"),
    "device": (lambda: Mesh((2,), ("a",), ("CPU", "CPU")), "CPU, CPU names CPU twice"),
    "axis": (lambda: Tensor.ones(4, 4).shard(GRID, {0: "rows"}), "the axes of the mesh are data, model"),
    "both": (
        lambda: Tensor.ones(4, 4).shard(GRID, {0: "data", 1: "data"}),
        "cannot split both axis 0 and axis 1",
    ),
    "few": (lambda: Tensor.ones(3).shard(GRID, {0: ("data", "model")}), "3 elements for 4 devices"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_meshes(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call()


SHARDINGS: dict[str, Any] = {
    "copies": {},
    "rows": {0: "data"},
    "grid": {0: "data", 1: "model"},
    "both": {1: ("data", "model")},
}


@pytest.mark.parametrize("name", SHARDINGS)
def test_a_tensor_on_a_grid_has_its_values(name: str) -> None:
    x = values(5, 7)
    assert np.array_equal(Tensor(x).shard(GRID, SHARDINGS[name]).numpy(), x)


#: Names → (a function of tensors, the placement of its result for x in parts along data and model).
PLACED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "elementwise": (lambda x: x * 2 + x, "data: axis 0, model: axis 1"),
    "a sum": (lambda x: x.sum(1), "data: axis 0, model: pending sum"),
    "a mean": (lambda x: x.mean(), "data: pending sum, model: pending sum"),
    "a maximum": (lambda x: x.max(0), "data: pending max, model: axis 0"),
    "what is not linear": (lambda x: x.sum(1).abs(), "data: axis 0, model: copy"),
    "a sum of sums": (lambda x: x.sum(1) + x.sum(1) * 2, "data: axis 0, model: pending sum"),
    "transposed": (lambda x: x.transpose(0, 1), "data: axis 1, model: axis 0"),
    "a product": (lambda x: x @ x.transpose(0, 1), "data: axis 0, model: pending sum"),
    "flipped": (lambda x: x.flip(0), "data: axis 0, model: axis 1"),
    "a part": (lambda x: x[1:, :4], "data: axis 0, model: axis 1"),
    "padded": (lambda x: x.pad(((1, 2), (0, 1))), "data: axis 0, model: axis 1"),
    "one row": (lambda x: x[1:2], "data: copy, model: axis 1"),
    "a running sum": (lambda x: x.cumsum(0), "data: copy, model: axis 1"),
    "sorted": (lambda x: x.sort(1)[0], "data: axis 0, model: copy"),
    "in one row": (lambda x: x.reshape(-1), "data: axis 0, model: copy"),
}


@pytest.mark.parametrize("name", PLACED)
def test_ops_place_their_results(name: str) -> None:
    function, placement = PLACED[name]
    x = values(6, 6)
    found = function(Tensor(x).shard(GRID, {0: "data", 1: "model"}))
    assert (repr(found.placement), found.tolist()) == (
        f"Placement({placement})",
        function(Tensor(x)).tolist(),
    )


def test_two_factors_meet_without_an_exchange() -> None:
    x, w = values(4, 5), values(5, 6)
    product = Tensor(x).shard(GRID, {0: "data"}) @ Tensor(w).shard(GRID, {1: "model"})
    assert repr(product.placement) == "Placement(data: axis 0, model: axis 1)"
    assert np.array_equal(product.numpy(), x @ w)


def test_a_sum_for_what_is_in_parts_is_made_in_parts() -> None:
    """A reduce-scatter: each device reads the half that it wants of the other's terms; nothing goes back."""
    x, held = values(4, 6), Tensor(values(6)).shard(ROW, {0: "data"}).realize()
    rows = Tensor(x).shard(ROW, {0: "data"}).realize()
    items = (held + rows.sum(0)).schedule()
    crossing = [item.bufs[0].nbytes for item in items if item.ast.op is Ops.COPY]
    assert crossing == [12, 12]


def test_the_operand_with_fewer_bytes_moves(capsys: pytest.CaptureFixture[str]) -> None:
    large, small = (
        Tensor(values(8, 2, 8)).shard(ROW, {0: "data"}),
        Tensor(values(1, 2, 8)).shard(ROW, {1: "data"}),
    )
    with Context(DEBUG=3):
        placement = (small + large).placement
    assert repr(placement) == "Placement(data: axis 0)"
    assert "laid data: axis 0, since each device receives" in capsys.readouterr().out


def test_gradients_lie_as_their_leaves() -> None:
    w = Tensor(values(4, 3), requires_grad=True).shard_(ROW, {0: "data"}).realize()
    (Tensor(values(2, 4)).shard(ROW, {0: "data"}) @ w).sum().backward()
    assert w.grad is not None
    assert (w.grad.placement, w.grad.tolist()) == (
        w.placement,
        np.tile(values(2, 4).sum(0)[:, None], 3).tolist(),
    )


def test_every_op_of_a_tensor_graph_has_a_rule_or_a_reason() -> None:
    assert not RULES.keys() & NO_RULE.keys()
    kinds = {"sort", "routine", "custom", "loop"}
    assert set(TENSOR.checks) - {Ops.FUNCTION, Ops.PROGRAM} | kinds == RULES.keys() | NO_RULE.keys()


def test_what_has_no_rule_names_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(RULES, "sort")
    x = Tensor(values(3, 2)).shard(Mesh(2, "data"), {1: "data"})
    with pytest.raises(
        NotImplementedError, match="sort of a tensor that several devices hold: it has no rule"
    ):
        x.sort()[0].tolist()


def test_an_axis_of_one_device_is_no_axis() -> None:
    """Nothing is split or pending along it, and a gradient is made where its weight lies."""
    mesh = Mesh((1, 2), ("data", "model"))
    x = Tensor(values(4, 6)).shard(mesh, {0: "data"}).realize()
    w = Tensor(values(6, 8), requires_grad=True).shard_(mesh, {1: "model"}).realize()
    product = x @ w
    assert [repr(t.placement) for t in (x, product)] == [
        "Placement(data: copy, model: copy)",
        "Placement(data: copy, model: axis 1)",
    ]
    product.square().sum().backward()
    assert w.grad is not None
    assert not [item for item in w.grad.schedule() if item.ast.op is Ops.COPY]
    assert w.grad.tolist() == (2 * values(4, 6).T @ values(4, 6) @ values(6, 8)).tolist()

"""The table of ATen operations: each as a function of lazygrad tensors.

A row is for an overload (`add.Tensor`) or for all overloads of a name (`abs`). It gets the arguments that
the graph has, with lazygrad tensors for PyTorch's, and gives a tensor, or a tuple of them. What it gives is
cast to the dtype that PyTorch says the result has, and must have the shape that PyTorch says (graph.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: Name, or name and overload → the function.
ATEN: dict[str, Callable[..., Any]] = {}
#: Those that draw random numbers.
RANDOM: set[str] = set()
#: Those whose results depend on how their first argument lies in memory: they get `contiguous`, a bool.
LYING: set[str] = set()


def aten(
    *names: str, random: bool = False, lying: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table under these names."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in ATEN:
                raise ValueError(f"the table has two rows of {name}")
            ATEN[name] = fn
            if random:
                RANDOM.add(name)
            if lying:
                LYING.add(name)
        return fn

    return add


def row_of(target: Any) -> Callable[..., Any] | None:
    """The row of an operation of a graph; None if there is none."""
    return ATEN.get(_overload(target)) or ATEN.get(_name(target))


def is_random(target: Any) -> bool:
    """Whether an operation draws random numbers."""
    return _overload(target) in RANDOM or _name(target) in RANDOM


def asks_how_it_lies(target: Any) -> bool:
    """Whether a row is told if its first argument is contiguous."""
    return _overload(target) in LYING or _name(target) in LYING


#: Why an operation has no row → its names.
_WITHOUT_ROW = {
    "lazygrad has no complex numbers": """_conj_physical _fft_c2c _fft_c2r _fft_r2c complex linalg_eig polar
        view_as_complex view_as_real""",
    "a size depends on values": """_ctc_loss _unique2 linalg_lstsq masked_select nonzero nonzero_static
        unique_consecutive""",
    "Python reads the value": "_local_scalar_dense",
    "how many products it takes depends on values": "linalg_matrix_exp",
    "lazygrad has no sparse tensors": "_to_sparse",
    "its factors are LAPACK's own": "geqrf ormqr",
}
#: Name → why it has no row.
WITHOUT_ROW = {name: why for why, names in _WITHOUT_ROW.items() for name in names.split()}


def why_without_row(target: Any) -> str:
    """Why an operation without a row has none."""
    return WITHOUT_ROW.get(_name(target), "it is not in the table of operations")


def core_without_row() -> dict[str, str]:
    """Of PyTorch's core ATen set, which operations have no row, and why. What writes in place is not counted:
    such operations become others before.
    """
    found = {}
    for op in core_set():
        if row_of(op) is None and not is_of_sizes(op):
            found[_overload(op)] = why_without_row(op)
    return found


def core_set() -> list[Any]:
    """The operations of PyTorch's core ATen set that do not write in place."""
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    every = [getattr(packet, each) for packet in packets for each in getattr(packet, "overloads", list)()]
    return [op for op in every if torch.Tag.core in op.tags and not op._schema.is_mutable]


def is_of_sizes(target: Any) -> bool:
    """Whether an operation gives a size or a stride, which Python knows."""
    return _overload(target).startswith("sym_")


def name_of(target: Any) -> str:
    """What errors call it: `aten.add.Tensor`."""
    return str(target)


def _overload(target: Any) -> str:
    return str(target).removeprefix("aten.")


def _name(target: Any) -> str:
    return _overload(target).partition(".")[0]

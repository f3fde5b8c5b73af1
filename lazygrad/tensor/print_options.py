"""How tensors are printed: `set_printoptions`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class PrintOptions:
    """What `set_printoptions` sets, with numpy's names and defaults."""

    values: bool = False
    precision: int = 4
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 80


class _Printing:
    """The options that hold in the process."""

    options = PrintOptions()


printing = _Printing()


def set_printoptions(
    *,
    values: bool | None = None,
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
) -> None:
    """How tensors are printed from now on; what is not given stays.

    values     True: `repr` computes a tensor and shows its values; False (the default): the operation that it
               stands for, and nothing is computed
    precision  digits behind the point
    threshold  of tensors with more elements only the edges are shown     edgeitems  so many at each edge
    linewidth  characters in a line

    The options but `values` hold for notebooks, too, which always show values.

    >>> lazygrad.set_printoptions(values=True)
    >>> Tensor([[1.5, 2.0], [3.0, 4.0]])
    Tensor([[1.5, 2. ],
            [3. , 4. ]], dtype=float, device=CPU)
    >>> lazygrad.set_printoptions(values=False)
    """
    given: dict[str, Any] = {
        "values": values,
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    least = {"precision": 0, "threshold": 0, "edgeitems": 1, "linewidth": 8}
    for name, value in given.items():
        if value is None:
            continue
        if name == "values":
            if not isinstance(value, bool):
                raise TypeError(f"values must be True or False, not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a whole number, not {value!r}")
        elif value < least[name]:
            raise ValueError(f"{name} must be at least {least[name]}, not {value}")
    printing.options = replace(printing.options, **{k: v for k, v in given.items() if v is not None})


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Within the block tensors are printed so; takes what `set_printoptions` takes."""
    before = printing.options
    set_printoptions(**options)
    try:
        yield
    finally:
        printing.options = before

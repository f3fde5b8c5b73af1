"""Layers in sequence, products with weights, embeddings.

All of it is movement, arithmetic and reductions; nothing here has a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import dtypes
from ...ir.index import sint
from ...shape import shape_text
from ..creation import counting_dtype, iota
from ..face import Tensor
from ..indexing.addresses import trusted
from ..signatures import DTypeLike


class Layers(Tensor):
    """Methods for networks."""

    def sequential(self, layers: Sequence[Callable[[Any], Any]]) -> Any:
        """The result of one layer after another: `x.sequential([layer, Tensor.relu, layer])`.

        >>> Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda x: x * 2]).tolist()
        [0.0, 4.0]
        """
        x: Any = self
        for layer in layers:
            x = layer(x)
        return x

    def linear(self, weight: Tensor, bias: Tensor | None = None, dtype: DTypeLike = None) -> Tensor:
        """self @ weight + bias; a weight with one axis scales. (Weights are (in, out).

        `nn.Linear` keeps (out, in).)

        >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [1.0]]), Tensor([0.5])).tolist()
        [[3.5]]
        """
        product = self * weight if weight.ndim == 1 else self.dot(weight, dtype)
        return product if bias is None else product + bias

    # *** embeddings: this tensor holds symbols, the weights a line for each

    def embedding(
        self,
        weight: Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        wrap: bool = False,
    ) -> Tensor:
        """The row of `weight` for each index in this tensor.

        weight       (symbols, depth) → (..., depth)
        padding_idx  the symbol whose row is not trained
        max_norm     rows with a larger `norm_type`-norm are scaled down to it (in the result only)
        wrap         whether negative symbols count from the end; otherwise they are out of range

        A symbol that is out of range raises IndexError when a result is read (under `CHECK_INDEX=0` it gives
        zeros).

        >>> Tensor([1, 0]).embedding(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[3.0, 4.0], [1.0, 2.0]]
        """
        table = self._operand(weight)
        if not dtypes.is_int(self.dtype):
            raise TypeError(f"embedding takes integer indices, not {self.dtype}")
        if table.ndim != 2:
            raise ValueError(
                f"embedding takes a weight (symbols, depth), not shape {shape_text(table.shape)}"
            )
        lines: Tensor = table._picked([(0, self, False)], wrap)
        if max_norm is not None:
            norm = lines.detach()._safe_norm(norm_type, -1, True)
            lines = (norm > max_norm).where(lines * (max_norm / (norm + 1e-7)), lines)
        if padding_idx is None:
            return lines
        size = table.shape[0]
        if isinstance(size, int) and not -size <= padding_idx < size:
            raise ValueError(f"padding_idx must be one of {size} symbols, not {padding_idx}")
        return self._names(padding_idx, size, wrap).unsqueeze(-1).where(lines.detach(), lines)

    def _names(self, symbol: int, size: sint, wrap: bool) -> Tensor:
        """Whether each is a symbol, which may itself count from the end; with `wrap`, as these may."""
        first = symbol if symbol >= 0 else size + symbol
        if not wrap or dtypes.is_unsigned(self.dtype):
            return self == first
        return (self == first) | (self == first - size)

    def embedding_bag(
        self,
        weight: Tensor,
        offsets: Tensor | None = None,
        mode: str = "mean",
        per_sample_weights: Tensor | None = None,
        padding_idx: int | None = None,
        include_last_offset: bool = False,
        *,
        wrap: bool = False,
    ) -> Tensor:
        """The sum, mean or maximum of the embeddings of each bag of symbols.

        self     (bags, symbols); or all symbols in a 1-d tensor, and in `offsets` where each bag begins
        weight   (symbols, depth) → (bags, depth)
        per_sample_weights   what each symbol counts, for the sum
        wrap     whether negative symbols count from the end; otherwise they are out of range

        An empty bag gives zeros. A symbol that is out of range raises IndexError when a result is
        read.

        >>> table = Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> Tensor([0, 1, 1]).embedding_bag(table, Tensor([0, 1]), "sum").tolist()
        [[1.0, 2.0], [6.0, 8.0]]
        """
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"embedding_bag's mode must be sum, mean or max, not {mode!r}")
        if per_sample_weights is not None and mode != "sum":
            raise ValueError(f"per_sample_weights are for mode 'sum', not {mode!r}")
        flat: Any = self
        if self.ndim == 2:
            if offsets is not None:
                raise ValueError("embedding_bag of (bags, symbols) takes no offsets: each row is a bag")
            count = self.shape[0]
            bags = self._make(iota(count, counting_dtype(count), self.device)).unsqueeze(1).expand(self.shape)
            flat, bag = self.flatten(), bags.flatten()
        elif self.ndim == 1 and offsets is not None:
            begins = self._operand(offsets)
            if begins.ndim != 1:
                raise ValueError(f"offsets must be a 1-d tensor, not shape {shape_text(begins.shape)}")
            if include_last_offset:
                begins = begins._window(0, 0, begins.shape[0] - 1)
            count = begins.shape[0]
            whole = self.shape[0]
            place = self._make(iota(whole, counting_dtype(whole), self.device))
            bag = (begins.unsqueeze(0) <= place.unsqueeze(1)).sum(1) - 1
        else:
            raise ValueError(
                "embedding_bag takes (bags, symbols), or a 1-d tensor with offsets, not "
                f"{shape_text(self.shape)}"
            )
        lines: Tensor = flat.embedding(weight, padding_idx, wrap=wrap)
        if per_sample_weights is not None:
            lines = lines * self._operand(per_sample_weights).flatten().unsqueeze(1)
        used: Tensor = lines._filled(True, dtypes.bool)
        if padding_idx is not None:
            padding = flat._names(padding_idx, weight.shape[0], wrap)
            used = padding.logical_not().unsqueeze(1) & used
        zeros = lines._make(lines.zeros(count, lines.shape[1], dtype=lines.dtype, device=self.device).uop)
        index = bag.unsqueeze(1).expand(lines.shape)
        with trusted():  # each symbol is in a bag
            counts = zeros.scatter_add(0, index, used.cast(lines.dtype))
            if mode == "max":
                lowest = dtypes.min(lines.dtype)
                chosen = used.where(lines, lowest)
                best: Tensor = zeros._filled(lowest).scatter_reduce(0, index, chosen, "amax")
                return (counts > 0).where(best, 0.0)
            total: Tensor = zeros.scatter_add(0, index, used.where(lines, 0.0))
        return total if mode == "sum" else total / counts.clamp(min=1.0)

"""A softmax over very many classes, the rare ones in clusters with fewer features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..device import Devices
from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.linalg.routines import or_nan
from ..tensor.signatures import DTypeLike, Numbers
from .layers import Linear
from .module import Module
from .parameters import count, need_tensors
from .sequential import Sequential


class ASMoutput(NamedTuple):
    """The logarithm of the probability of each example's class, and the mean of its negative."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Efficient softmax approximation (Grave, Joulin, Cissé, Grangier, Jégou 2017).

    cutoffs    the classes before the first are in the head, those between two in one cluster: rare classes
               have high numbers
    div_value  cluster i (from 1 on) has in_features / div_value^i features
    head_bias  whether the head has a bias

    head  a Linear: of the frequent classes, then of each cluster        tail  two Linears for each cluster

    `layer(input, target)` is (output, loss). All clusters are computed for all examples: shapes that do not
    depend on data can be captured by a jit; what is saved are the parameters.

    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    >>> layer(Tensor.ones(3, 8), Tensor([0, 7, 19])).output.shape, layer.log_prob(Tensor.ones(3, 8)).shape
    ((3,), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        ends = [count("a cutoff", cutoff) for cutoff in cutoffs]
        if not ends or ends != sorted(set(ends)) or ends[-1] >= n_classes:
            raise ValueError(
                f"cutoffs must be whole numbers in ascending order, below n_classes={n_classes}, "
                f"not {cutoffs}"
            )
        made: Any = {"device": device, "dtype": dtype, "generator": generator}
        self.in_features, self.n_classes = count("in_features", in_features), n_classes
        self.cutoffs, self.div_value, self.head_bias = [*ends, n_classes], div_value, head_bias
        self.n_clusters = len(ends)
        self.head = Linear(in_features, ends[0] + self.n_clusters, bias=head_bias, **made)
        self.tail = []
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            if width < 1:
                raise ValueError(f"cluster {i + 1} has no features: {in_features} / {div_value}^{i + 1}")
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            parts = Linear(in_features, width, bias=False, **made), Linear(width, size, bias=False, **made)
            self.tail.append(Sequential(*parts))

    def __call__(self, input: Tensor, target: Tensor) -> ASMoutput:
        """(output, loss) for examples (n, in_features) and classes (n,), or for one example."""
        need_tensors(self, input, target)
        if target.ndim != input.ndim - 1 or target.shape != input.shape[:-1] or input.ndim not in (1, 2):
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss takes (n, in_features) and classes (n,), or one example, not "
                f"{shape_text(input.shape)} and {shape_text(target.shape)}"
            )
        if not dtypes.is_int(target.dtype):
            raise TypeError(f"classes must be integers, not {target.dtype}")
        if input.ndim == 1:
            one = self(input.unsqueeze(0), target.unsqueeze(0))
            return ASMoutput(one.output.squeeze(0), one.loss)
        log_prob = self.log_prob(input)
        outside = (target < 0) | (target >= self.n_classes)
        chosen = log_prob.gather(1, target.clamp(0, self.n_classes - 1).unsqueeze(1)).squeeze(1)
        problem = f"AdaptiveLogSoftmaxWithLoss: a class is not from 0 to {self.n_classes - 1}"
        output = or_nan(chosen, outside.cast(dtypes.int32), 0, problem)
        return ASMoutput(output, -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithm of the probability of every class: (n, n_classes)."""
        head = self.head(input).log_softmax(1)
        first = self.cutoffs[0]
        parts = [head[:, :first]]
        for i, cluster in enumerate(self.tail):
            parts.append(cluster(input).log_softmax(1) + head[:, first + i : first + i + 1])
        return parts[0].cat(*parts[1:], dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each example: (n,)."""
        return self.log_prob(input).argmax(1)

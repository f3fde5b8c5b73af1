"""Normalization: samples, channels or vectors brought to mean 0 and variance 1, or to norm 1."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import sum_acc_dtype
from ...shape import broadcast_shapes, prod, resolve_equal, shape_text
from ..face import Tensor


class Normalization(Tensor):
    """Methods that take out means and scales."""

    def batchnorm(
        self,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        invstd: Tensor,
        axis: int | Sequence[int] = 1,
    ) -> Tensor:
        """(self - mean) * invstd * weight + bias, where the four have the size of `axis` (the channels).

        >>> x, one = Tensor([[1.0, 3.0]]), Tensor.ones(2)
        >>> x.batchnorm(None, None, one, one).tolist()
        [[0.0, 2.0]]
        """
        axes = self._axes(axis)
        shape = tuple(size if i in axes else 1 for i, size in enumerate(self.shape))

        def fit(t: Tensor) -> Tensor:
            line = self._operand(t)
            if line.ndim <= len(axes) and not resolve_equal(prod(line.shape), prod(shape)):
                raise ValueError(
                    f"batchnorm along axis {axis} of shape {shape_text(self.shape)} takes "
                    f"{prod(shape)} numbers each, not shape {shape_text(line.shape)}"
                )
            return line.reshape(shape) if line.ndim <= len(axes) else line

        x = self - fit(mean)
        x = x * fit(invstd) if weight is None else x * (fit(invstd) * fit(weight))
        return x if bias is None else x + fit(bias)

    def layernorm(self, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Tensor:
        """Mean 0 and variance 1 along axes (the last one); eps is added to the variance (Ba et al. 2016).

        >>> Tensor([1.0, 3.0]).layernorm(eps=0.0).tolist()
        [-1.0, 1.0]
        """
        x = self._float()
        wide = x.cast(sum_acc_dtype(x.dtype))  # squares leave the numbers of float16 from 256 on
        away = wide - wide.mean(axis, keepdim=True)
        return (away * ((away * away).mean(axis, keepdim=True) + eps).rsqrt()).cast(x.dtype)

    def rms_norm(self, axis: int | Sequence[int] = -1, eps: float = 1e-6) -> Tensor:
        """Divided by the root of the mean square along axes, the last one (Zhang, Sennrich 2019).

        >>> Tensor([1.0, 7.0]).rms_norm(eps=0.0).tolist()
        [0.20000000298023224, 1.399999976158142]
        """
        x = self._float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        return (wide * ((wide * wide).mean(axis, keepdim=True) + eps).rsqrt()).cast(x.dtype)

    def group_norm(
        self, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Mean 0 and variance 1 of each sample's groups of channels (axis 1), then weight and bias.

        (Wu, He 2018.)

        >>> Tensor([[1.0, 3.0, 10.0, 30.0]]).group_norm(2, eps=0.0).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
        """
        channels = self.shape[1] if self.ndim > 1 else 0
        if self.ndim < 2 or num_groups < 1 or (isinstance(channels, int) and channels % num_groups):
            raise ValueError(
                f"group_norm takes (batch, channels, ...) and a number of groups that divides the channels, "
                f"not {num_groups} groups of shape {shape_text(self.shape)}"
            )
        x = self.unflatten(1, (num_groups, -1)).flatten(2).layernorm(-1, eps).reshape(self.shape)
        shape = (1, self.shape[1], *((1,) * (self.ndim - 2)))
        if weight is not None:
            x = x * self._operand(weight).reshape(shape)
        return x if bias is None else x + self._operand(bias).reshape(shape)

    def instance_norm(
        self, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Mean 0 and variance 1 of each channel of each sample, then weight and bias (Ulyanov et al. 2016).

        self  (batch, channels, ...)

        >>> Tensor([[[1.0, 3.0], [10.0, 30.0]]]).instance_norm(eps=0.0).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
        """
        if self.ndim < 3:
            raise ValueError(
                f"instance_norm takes (batch, channels, ...), not shape {shape_text(self.shape)}"
            )
        x = self.layernorm(tuple(range(2, self.ndim)), eps)
        shape = (self.shape[1],) + (1,) * (self.ndim - 2)
        if weight is not None:
            x = x * self._operand(weight).reshape(shape)
        return x if bias is None else x + self._operand(bias).reshape(shape)

    def local_response_norm(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> Tensor:
        """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta (Krizhevsky et al. 2012).

        self  (batch, channels, ...)

        >>> Tensor([[[2.0], [4.0]]]).local_response_norm(1, alpha=1.0, beta=1.0, k=0.0).tolist()
        [[[0.5], [0.25]]]
        """
        if self.ndim < 3:
            raise ValueError(
                f"local_response_norm takes (batch, channels, ...), not shape {shape_text(self.shape)}"
            )
        if size < 1:
            raise ValueError(f"local_response_norm takes at least one channel, not {size}")
        x = self._float()
        around = tuple((size // 2, (size - 1) // 2) if i == 1 else (0, 0) for i in range(x.ndim))
        near = (x * x).pad(around).unfold(1, size, 1).mean(-1)
        return x / (near * alpha + k).pow(beta)

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
        """Divided by the p-norm along an axis, or by `eps` where that is greater.

        >>> Tensor([[3.0, 4.0]]).normalize().tolist()
        [[0.6000000238418579, 0.800000011920929]]
        """
        x = self._float()
        return x / x._safe_norm(p, dim, True).clamp(min=eps)

    def _safe_norm(self, p: float, dim: int | Sequence[int], keepdim: bool) -> Tensor:
        """The p-norm along axes, whose slope at 0 is 0, as PyTorch's."""
        x = self._float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        if wide is not x:
            return wide._safe_norm(p, dim, keepdim).cast(x.dtype)
        if p in (0, 1) or p in (float("inf"), float("-inf")):
            return x.norm(p, dim, keepdim)
        total = (x * x if p == 2 else x.abs().pow(p)).sum(dim, keepdim)
        positive = total > 0
        inner = positive.where(total, 1.0)
        return positive.where(inner.sqrt() if p == 2 else inner.pow(1.0 / p), total)

    def cosine_similarity(self, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
        """The cosine of the angle between vectors along an axis; norms below `eps` count as eps.

        >>> Tensor([[3.0, 4.0]]).cosine_similarity(Tensor([[4.0, 3.0]])).tolist()
        [0.9600000381469727]
        """
        x, y = self._float(), self._operand(x2)._float()
        shape = broadcast_shapes(x.shape, y.shape)
        x, y = x.expand(shape), y.expand(shape)
        left, right = (t._safe_norm(2.0, dim, True).clamp(min=eps) for t in (x, y))
        return (x / left * (y / right)).sum(dim)

    def pairwise_distance(
        self, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> Tensor:
        """The p-norm of self - x2 + eps along the last axis.

        >>> Tensor([[3.0, 4.0]]).pairwise_distance(Tensor([[0.0, 0.0]]), eps=0.0).tolist()
        [5.0]
        """
        return (self._float() - x2 + eps)._safe_norm(p, -1, keepdim)

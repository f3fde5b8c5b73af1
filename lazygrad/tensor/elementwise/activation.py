"""Activations: what networks put between their products, element by element.

The slope at a kink is that of PyTorch. Where a formula has a paper, the docstring names it.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtype import dtypes
from ...shape import resolve_equal, shape_text
from ..face import Tensor
from ..modes import mode
from ..observer import observing
from ..signatures import Numbers

#: The constants of self-normalizing networks (Klambauer et al. 2017).
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def checked_probability(p: float, name: str) -> float:
    """A number in [0, 1] that a user gave."""
    if not 0 <= p <= 1:
        raise ValueError(f"{name} needs a probability in [0, 1], not {p}")
    return p


def _in_training(said: bool | None, name: str) -> bool:
    """Whether something acts as in training: as the caller said, else by the mode; an observer is told."""
    if said is None and mode.training and observing.by is not None:
        observing.by.is_trained(name)
    return mode.training if said is None else said


class Activation(Tensor):
    """The activations of networks, and what drops some of their elements."""

    def relu(self) -> Tensor:
        """max(x, 0); NaN stays, and the slope at 0 is 0.

        >>> Tensor([-1.0, 2.0]).relu().tolist()
        [0.0, 2.0]
        """
        return (self <= 0).where(self._filled(0), self)

    def relu6(self) -> Tensor:
        """min(max(x, 0), 6).

        >>> Tensor([-1.0, 2.0, 9.0]).relu6().tolist()
        [0.0, 2.0, 6.0]
        """
        return self.hardtanh(0, 6)

    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x), without overflow and accurate on both sides.

        >>> print(Tensor([0.0, 1.0]).sigmoid().numpy())
        [0.5       0.7310586]
        """
        x = self._float()
        negative = x < 0
        e = negative.where(x, -x).exp()
        upper = (e + 1.0).reciprocal()
        return negative.where(e * upper, upper)

    def hardsigmoid(self) -> Tensor:
        """min(max(x/6 + 1/2, 0), 1).

        >>> Tensor([-4.0, 0.0, 4.0]).hardsigmoid().tolist()
        [0.0, 0.5, 1.0]
        """
        return ((self + 3.0) / 6.0).clamp(0.0, 1.0)

    def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
        """Limited to [min_val, max_val]; integers stay integers, where the limits are whole.

        >>> Tensor([-4.0, 0.5, 4.0]).hardtanh().tolist()
        [-1.0, 0.5, 1.0]
        """
        if min_val > max_val:
            raise ValueError(f"hardtanh needs min_val <= max_val, not {min_val!r} and {max_val!r}")
        if dtypes.is_int(self.dtype) and float(min_val).is_integer() and float(max_val).is_integer():
            min_val, max_val = int(min_val), int(max_val)
        return self.clamp(min_val, max_val)

    def hardswish(self) -> Tensor:
        """x · hardsigmoid(x).

        >>> Tensor([0.0, 1.5, 4.0]).hardswish().tolist()
        [0.0, 1.125, 4.0]
        """
        return self * ((self + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0))

    def silu(self) -> Tensor:
        """x · sigmoid(x).

        >>> print(Tensor([-1.0, 0.0, 1.0]).silu().numpy())
        [-0.26894143  0.          0.7310586 ]
        """
        return self * self.sigmoid()

    def gelu(self, approximate: str = "tanh") -> Tensor:
        """x · Φ(x), Φ the normal distribution: by tanh, or exactly (by erf) with `approximate="none"`.

        >>> print(Tensor([-1.0, 0.0, 1.0]).gelu("none").numpy())
        [-0.15865526  0.          0.8413447 ]
        """
        x = self._float()
        if approximate == "none":
            return x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1.0)
        if approximate == "tanh":
            return x * 0.5 * (((x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)).tanh() + 1.0)
        raise ValueError(f"gelu's approximate must be 'none' or 'tanh', not {approximate!r}")

    def quick_gelu(self) -> Tensor:
        """x · sigmoid(1.702·x).

        >>> print(Tensor([0.0, 1.0]).quick_gelu().numpy())
        [0.         0.84579575]
        """
        return self * (self * 1.702).sigmoid()

    def softplus(self, beta: float = 1.0, threshold: float | None = None) -> Tensor:
        """log(1 + e^(beta·x)) / beta, without overflow.

        >>> print(Tensor([0.0, 1.0]).softplus().numpy())
        [0.6931472 1.3132617]
        """
        x = self._float() * beta
        negative = x < 0
        tail = negative.where(x, -x).exp().log1p()
        value = negative.where(tail, x + tail) / beta
        return value if threshold is None else (x > threshold).where(self._float(), value)

    def logsigmoid(self) -> Tensor:
        """log(sigmoid(x)), without overflow.

        >>> print(Tensor([0.0, 1.0]).logsigmoid().numpy())
        [-0.6931472 -0.3132617]
        """
        return -(-self).softplus()

    def mish(self) -> Tensor:
        """x · tanh(softplus(x)).

        >>> print(Tensor([0.0, 1.0]).mish().numpy())
        [0.        0.8650984]
        """
        return self * self.softplus().tanh()

    def leaky_relu(self, neg_slope: float = 0.01, *, negative_slope: float | None = None) -> Tensor:
        """x, and `neg_slope`·x where x is negative.

        >>> Tensor([-8.0, 2.0]).leaky_relu(0.25).tolist()
        [-2.0, 2.0]
        """
        slope = neg_slope if negative_slope is None else negative_slope
        return (self <= 0).where(self * slope, self)

    def elu(self, alpha: float = 1.0) -> Tensor:
        """x, and alpha·(e^x - 1) where x is negative.

        >>> print(Tensor([-1.0, 2.0]).elu().numpy())
        [-0.63212055  2.        ]
        """
        x = self._float()
        positive = x > 0
        return positive.where(x, positive.where(x._filled(0.0), x).expm1() * alpha)

    def celu(self, alpha: float = 1.0) -> Tensor:
        """x, and alpha·(e^(x/alpha) - 1) where x is negative.

        >>> print(Tensor([-1.0, 2.0]).celu(2.0).numpy())
        [-0.78693867  2.        ]
        """
        if alpha == 0:
            raise ValueError("celu needs an alpha other than 0")
        x = self._float()
        positive = x > 0
        return positive.where(x, (positive.where(x._filled(0.0), x) / alpha).expm1() * alpha)

    def selu(self) -> Tensor:
        """The scaled elu of self-normalizing networks (Klambauer et al. 2017).

        >>> print(Tensor([-1.0, 2.0]).selu().numpy())
        [-1.1113307  2.101402 ]
        """
        return self.elu(SELU_ALPHA) * SELU_SCALE

    def softsign(self) -> Tensor:
        """x / (1 + |x|).

        >>> Tensor([-1.0, 3.0]).softsign().tolist()
        [-0.5, 0.75]
        """
        return self / (self.abs() + 1.0)

    def threshold(self, threshold: float, value: float) -> Tensor:
        """x where it is greater than `threshold`, `value` elsewhere.

        >>> Tensor([1.0, 2.0, 3.0]).threshold(1.5, -1.0).tolist()
        [-1.0, 2.0, 3.0]
        """
        # asked the other way round, so that NaN stays
        return (self <= threshold).where(self._filled(value), self)

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """0 within [-lambd, lambd], x elsewhere.

        >>> Tensor([-1.0, 0.25, 2.0]).hardshrink().tolist()
        [-1.0, 0.0, 2.0]
        """
        return ((self >= -lambd) & (self <= lambd)).where(self._filled(0), self)

    def softshrink(self, lambd: float = 0.5) -> Tensor:
        """x moved towards 0 by `lambd`; 0 where it would pass it.

        >>> Tensor([-1.0, 0.25, 2.0]).softshrink().tolist()
        [-0.5, 0.0, 1.5]
        """
        if lambd < 0:
            raise ValueError(f"softshrink needs a lambd of at least 0, not {lambd}")
        x = self._float()
        inside = (x >= -lambd) & (x <= lambd)
        # the other branch is NaN for NaN
        return inside.where(x._filled(0.0), (x > lambd).where(x - lambd, x + lambd))

    def tanhshrink(self) -> Tensor:
        """x - tanh(x).

        >>> print(Tensor([0.0, 1.0]).tanhshrink().numpy())
        [0.         0.23840582]
        """
        return self._float() - self.tanh()

    def glu(self, dim: int = -1) -> Tensor:
        """The first half of an axis, times the sigmoid of the second (Dauphin et al. 2016).

        >>> Tensor([3.0, 5.0, 0.0, 0.0]).glu().tolist()
        [1.5, 2.5]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        if not isinstance(size, int) or size % 2:
            raise ValueError(
                f"glu halves an axis: axis {axis} of shape {shape_text(self.shape)} has size {size}"
            )
        gate = self._window(axis, size // 2, size)
        return self._window(axis, 0, size // 2) * gate.sigmoid()

    def prelu(self, weight: Tensor) -> Tensor:
        """x, and weight·x where x is negative (He et al. 2015).

        weight  one number, or a 1-d tensor with one for each channel (axis 1)

        >>> Tensor([-8.0, 2.0]).prelu(Tensor([0.5])).tolist()
        [-4.0, 2.0]
        """
        slope = self._operand(weight)
        if slope.ndim > 1 or (slope.ndim == 1 and slope.shape[0] != 1 and self.ndim < 2):
            raise ValueError(
                f"prelu of shape {shape_text(self.shape)} takes one weight, or a 1-d tensor with one for "
                f"each channel (axis 1), not shape {shape_text(slope.shape)}"
            )
        if slope.ndim == 1 and slope.shape[0] == 1:
            slope = slope.reshape(())
        elif slope.ndim == 1:
            if not resolve_equal(slope.shape[0], self.shape[1]):
                raise ValueError(
                    f"prelu of shape {shape_text(self.shape)} takes {self.shape[1]} weights, one for each "
                    f"channel, not {slope.shape[0]}"
                )
            slope = slope.reshape((slope.shape[0],) + (1,) * (self.ndim - 2))
        return (self > 0).where(self, self * slope)

    def rrelu(
        self,
        lower: float = 1.0 / 8,
        upper: float = 1.0 / 3,
        training: bool | None = None,
        *,
        generator: Numbers | None = None,
    ) -> Tensor:
        """x, and a·x where x is negative: a is random in [lower, upper] in training, else their mean.

        (Xu et al. 2015.) `training` is `Tensor.training` if not given.

        >>> Tensor([-8.0, 2.0]).rrelu(0.25, 0.75, training=False).tolist()
        [-4.0, 2.0]
        """
        if lower > upper:
            raise ValueError(f"rrelu needs lower <= upper, not {lower} and {upper}")
        if not _in_training(training, "rrelu"):
            return (self <= 0).where(self * ((lower + upper) / 2), self)
        how: dict[str, Any] = {"dtype": self.dtype, "device": self.device, "generator": generator}
        slope = self.uniform(*self.shape, low=lower, high=upper, **how)
        return (self <= 0).where(self * slope, self)

    # *** softmax of noise

    def gumbel_softmax(
        self, tau: float = 1.0, hard: bool = False, dim: int = -1, *, generator: Numbers | None = None
    ) -> Tensor:
        """A random choice along an axis by these logits, smooth in them (Jang, Gu, Poole 2016).

        tau   how smooth: towards 0 the result is a one-hot vector
        hard  the result is one-hot, and its gradient that of the smooth one

        >>> Tensor([[0.0, 100.0], [100.0, 0.0]]).gumbel_softmax(hard=True).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        if tau <= 0:
            raise ValueError(f"gumbel_softmax needs a positive tau, not {tau}")
        x = self._float()
        # -log(-log u), and 1 - u is never 0
        uniform = 1.0 - x.rand_like(generator=generator)
        noise = -(-uniform.log()).clamp(min=dtypes.finfo(x.dtype).tiny).log()
        soft = ((x + noise) / tau).softmax(dim)
        if not hard:
            return soft
        axis = self._axis(dim)
        chosen = soft.argmax(axis, keepdim=True)
        counter = chosen.arange(self.shape[axis], device=self.device)
        one_hot = (chosen == counter.reshape((-1,) + (1,) * (self.ndim - axis - 1))).cast(x.dtype)
        return (soft - soft.detach()) + one_hot

    # *** dropout

    def dropout(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """While training, elements are 0 with probability p and the others divided by 1 - p.

        Else the tensor itself. `training` is `Tensor.training` if not given.

        >>> Tensor([1.0, 2.0]).dropout(0.5).tolist()
        [1.0, 2.0]
        """
        return self._dropped(p, training, self.shape, generator)

    def _dropped(self, p: float, training: bool | None, shape: Any, generator: Numbers | None) -> Tensor:
        """Dropout that decides once for each element of a shape that broadcasts to this one."""
        checked_probability(p, "dropout")
        if not _in_training(training, "dropout") or p == 0:
            return self.cast(self.dtype)
        if p == 1:
            return self * 0
        kept = self.rand(*shape, dtype=dtypes.float32, device=self.device, generator=generator) >= p
        return kept.where(self * (1.0 / (1.0 - p)), 0)

    def _channels_dropped(
        self, p: float, training: bool | None, axes: int, name: str, generator: Numbers | None
    ) -> Tensor:
        if self.ndim not in (axes + 1, axes + 2):
            raise ValueError(
                f"{name} takes (batch, channels) and {axes} axes, or these without batch, "
                f"not shape {shape_text(self.shape)}"
            )
        return self._dropped(p, training, self.shape[: self.ndim - axes] + (1,) * axes, generator)

    def dropout1d(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """`dropout` of whole channels: shape (batch, channels, length), or without batch.

        >>> Tensor.ones(2, 3, 4).dropout1d(1.0, training=True).sum().item()
        0.0
        """
        return self._channels_dropped(p, training, 1, "dropout1d", generator)

    def dropout2d(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """`dropout` of whole channels: shape (batch, channels, height, width), or without batch.

        >>> Tensor.ones(2, 3, 4, 4).dropout2d(1.0, training=True).sum().item()
        0.0
        """
        return self._channels_dropped(p, training, 2, "dropout2d", generator)

    def dropout3d(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """`dropout` of whole channels: shape (batch, channels, depth, height, width), or without batch.

        >>> Tensor.ones(2, 3, 2, 2, 2).dropout3d(1.0, training=True).sum().item()
        0.0
        """
        return self._channels_dropped(p, training, 3, "dropout3d", generator)

    def alpha_dropout(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """Dropout that keeps mean 0 and variance 1, for networks with `selu` (Klambauer et al. 2017).

        Dropped elements become selu's limit -alpha·scale, then all are scaled and moved.

        >>> Tensor([1.0, 2.0]).alpha_dropout(0.5).tolist()
        [1.0, 2.0]
        """
        return self._alpha_dropped(p, training, self.shape, generator)

    def feature_alpha_dropout(
        self, p: float = 0.5, training: bool | None = None, *, generator: Numbers | None = None
    ) -> Tensor:
        """`alpha_dropout` of whole channels: shape (batch, channels, ...).

        >>> Tensor.ones(2, 3, 4).feature_alpha_dropout(0.0, training=True).sum().item()
        24.0
        """
        if self.ndim < 2:
            raise ValueError(
                f"feature_alpha_dropout takes (batch, channels, ...), not shape {shape_text(self.shape)}"
            )
        return self._alpha_dropped(p, training, self.shape[:2] + (1,) * (self.ndim - 2), generator)

    def _alpha_dropped(
        self, p: float, training: bool | None, shape: Any, generator: Numbers | None
    ) -> Tensor:
        checked_probability(p, "alpha_dropout")
        if not _in_training(training, "alpha_dropout") or p == 0:
            return self.cast(self.dtype)
        if p == 1:
            return self * 0
        limit = -SELU_ALPHA * SELU_SCALE
        scale = ((1.0 - p) * (1.0 + p * limit * limit)) ** -0.5
        kept = self.rand(*shape, dtype=dtypes.float32, device=self.device, generator=generator) >= p
        mixed = kept.where(self, limit) * scale
        moved: Tensor = mixed - scale * p * limit
        return moved

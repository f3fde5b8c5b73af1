"""Random numbers of other distributions, by transforming or rejecting uniform and normal ones.

Rejection has no loop: `TRIES` candidates are drawn for every number, along an axis of their own, and the
first that is accepted is taken. That all are refused is less likely than 1e-10; then the mode is taken.

Sources: Marsaglia and Tsang, A simple method for generating gamma variables (TOMS 26, 2000); Hörmann, The
transformed rejection method for generating Poisson random variables (1993); Devroye, Non-Uniform Random
Variate Generation (1986) for inversion.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtype import DType, cast_value, dtypes
from ..creation import sizes_of, with_grad
from ..face import Tensor
from ..indexing.addresses import trusted
from ..signatures import Numbers

TRIES = 24
#: Up to this rate Poisson numbers are counted up; above they are drawn by rejection.
SMALL_RATE = 10.0


class Distributions(Tensor):
    """Random tensors of other distributions. All take `dtype`, `device`, `requires_grad` and `generator`."""

    @classmethod
    def exponential(
        cls, *shape: Any, lambd: float = 1.0, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Exponentially distributed numbers of rate `lambd`: mean 1 / lambd.

        >>> bool((Tensor.exponential(100) >= 0).all())
        True
        """
        _need_positive("exponential", "lambd", lambd)
        return with_grad((1.0 - cls.rand(*shape, **more)).log() * (-1.0 / lambd), requires_grad)

    @classmethod
    def laplace(
        cls, *shape: Any, loc: float = 0.0, scale: float = 1.0, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """Numbers of Laplace's distribution: two exponentials back to back.

        >>> Tensor.laplace(3).shape
        (3,)
        """
        _need_positive("laplace", "scale", scale)
        u = cls.rand(*shape, **more) - 0.5
        size = (1.0 - u.abs() * 2.0).clamp(min=dtypes.finfo(u.dtype).eps * 0.25)
        return with_grad((u < 0).where(size.log(), -size.log()) * scale + loc, requires_grad)

    @classmethod
    def cauchy(
        cls,
        *shape: Any,
        median: float = 0.0,
        sigma: float = 1.0,
        requires_grad: bool | None = None,
        **more: Any,
    ) -> Tensor:
        """Numbers of Cauchy's distribution, which has no mean.

        >>> Tensor.cauchy(3).shape
        (3,)
        """
        _need_positive("cauchy", "sigma", sigma)
        return with_grad(((cls.rand(*shape, **more) - 0.5) * math.pi).tan() * sigma + median, requires_grad)

    @classmethod
    def log_normal(
        cls, *shape: Any, mean: float = 1.0, std: float = 2.0, requires_grad: bool | None = None, **more: Any
    ) -> Tensor:
        """e to the power of normally distributed numbers of this mean and standard deviation.

        >>> bool((Tensor.log_normal(10) > 0).all())
        True
        """
        return with_grad(cls.normal(*shape, mean=mean, std=std, **more).exp(), requires_grad)

    @classmethod
    def geometric(cls, *shape: Any, p: float = 0.5, requires_grad: bool | None = None, **more: Any) -> Tensor:
        """How many trials of probability p it takes until one succeeds: 1, 2, ..., as floats.

        >>> bool((Tensor.geometric(10, p=0.3) >= 1).all())
        True
        """
        if not 0 < p < 1:
            raise ValueError(f"geometric needs p in (0, 1), not {p}")
        made = ((1.0 - cls.rand(*shape, **more)).log() * (1.0 / math.log1p(-p))).ceil().clamp(min=1.0)
        return with_grad(made, requires_grad)

    @classmethod
    def truncated_normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        a: float = -2.0,
        b: float = 2.0,
        requires_grad: bool | None = None,
        **more: Any,
    ) -> Tensor:
        """Normally distributed numbers of which those outside of [a, b] do not occur, by inversion.

        a, b  limits of the numbers themselves, as in `torch.nn.init.trunc_normal_`

        >>> bool((Tensor.truncated_normal(100, a=-1.0, b=1.0).abs() <= 1).all())
        True
        """
        if not a < b:
            raise ValueError(f"truncated_normal needs a < b, not {a} and {b}")
        _need_positive("truncated_normal", "std", std)
        low, high = (math.erf((x - mean) / (std * math.sqrt(2.0))) for x in (a, b))
        u: Any = cls.rand(*shape, **more) * (high - low) + low
        return with_grad((u.erfinv() * (std * math.sqrt(2.0)) + mean).clamp(a, b), requires_grad)

    @classmethod
    def gamma(
        cls,
        *shape: Any,
        concentration: float = 1.0,
        rate: float = 1.0,
        requires_grad: bool | None = None,
        generator: Numbers | None = None,
        **more: Any,
    ) -> Tensor:
        """Numbers of the gamma distribution: mean concentration / rate.

        >>> bool((Tensor.gamma(10, concentration=0.5) >= 0).all())
        True
        """
        _need_positive("gamma", "concentration", concentration)
        _need_positive("gamma", "rate", rate)
        like: Any = cls.full(sizes_of(shape), concentration, **{"dtype": dtypes.float32, **more})
        return with_grad(like.standard_gamma(generator=generator) * (1.0 / rate), requires_grad)

    def standard_gamma(self, *, generator: Numbers | None = None) -> Tensor:
        """A sample of the gamma distribution of rate 1 for each concentration in this tensor.

        >>> Tensor([0.5, 20.0]).standard_gamma().shape
        (2,)
        """
        alpha = self.detach()._float()
        small = alpha < 1.0
        shape = small.where(alpha + 1.0, alpha)
        d = shape - 1.0 / 3.0
        c = (d * 9.0).rsqrt()
        more: dict[str, Any] = {"dtype": alpha.dtype, "device": alpha.device, "generator": generator}
        x = self.randn(TRIES, *alpha.shape, **more)
        u = 1.0 - self.rand(TRIES, *alpha.shape, **more)
        root = x * c + 1.0
        positive = root > 0
        v = positive.where(root, 1.0).pow(3)
        accepted = positive & (u.log() < x * x * 0.5 + d * (1.0 - v + v.log()))
        value = d * _first_accepted(accepted, v, 1.0)
        lifted = value * (1.0 - alpha.rand_like(generator=generator)).pow(1.0 / small.where(alpha, 1.0))
        return small.where(lifted, value)

    @classmethod
    def beta(
        cls, *shape: Any, concentration1: float = 1.0, concentration0: float = 1.0, **more: Any
    ) -> Tensor:
        """Numbers in [0, 1] of the beta distribution: mean c1 / (c1 + c0) of the two concentrations.

        >>> Tensor.beta(3, concentration1=2.0, concentration0=3.0).shape
        (3,)
        """
        a = cls.gamma(*shape, concentration=concentration1, **more)
        b = cls.gamma(*shape, concentration=concentration0, **more)
        return a / (a + b)

    def poisson(self, *, generator: Numbers | None = None) -> Tensor:
        """A number of Poisson's distribution for each rate in this tensor, as floats.

        >>> Tensor([0.0, 3.0]).poisson()[0].item()
        0.0
        """
        rate = self.detach()._float()
        wide = rate._wide()
        small = wide < SMALL_RATE
        # inversion: the probabilities of 0, 1, 2, ... are added up until they pass a uniform number
        low = small.where(wide, 1.0)
        u = wide.rand_like(generator=generator)
        term = (-low).exp()
        total, count = term, u._filled(0.0)
        for k in range(1, 46):
            count = count + (u >= total).cast(wide.dtype)
            term = term * low * (1.0 / k)
            total = total + term
        many = small.where(SMALL_RATE, wide)._poisson_by_rejection(generator)
        return small.where(count, many).cast(rate.dtype)

    def _poisson_by_rejection(self, generator: Numbers | None) -> Tensor:
        """Hörmann's PTRS, for rates from 10 on."""
        rate = self
        more: dict[str, Any] = {"dtype": rate.dtype, "device": rate.device, "generator": generator}
        b = rate.sqrt() * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
        limit = 0.9277 - 3.6224 / (b - 2.0)
        u = rate.rand(TRIES, *rate.shape, **more) - 0.5
        v = 1.0 - rate.rand(TRIES, *rate.shape, **more)
        us = (0.5 - u.abs()).clamp(min=1e-9)
        k = ((a * 2.0 / us + b) * u + rate + 0.43).floor()
        quick = (us >= 0.07) & (v <= limit)
        possible = (k >= 0) & ((us >= 0.013) | (v <= us))
        safe: Any = possible.where(k, 0.0)
        left = v.log() + inverse_alpha.log() - (a / (us * us) + b).log()
        slow = possible & (left <= safe * rate.log() - rate - (safe + 1.0).lgamma())
        return _first_accepted(quick | slow, k, 0.0) + (~(quick | slow).any(0)).where(rate.floor(), 0.0)  # type: ignore[no-any-return]

    def dirichlet(self, *, generator: Numbers | None = None) -> Tensor:
        """Positive numbers that add up to 1 along the last axis, for concentrations along it.

        >>> round(Tensor([1.0, 2.0]).dirichlet().sum().item(), 5)
        1.0
        """
        parts = self.standard_gamma(generator=generator)
        return parts / parts.sum(-1, keepdim=True)

    def binomial(self, prob: Any, count: int | None = None, *, generator: Numbers | None = None) -> Tensor:
        """The number of successes in n trials (n: this tensor, at most `count`), each of probability `prob`.

        The trials are made one by one, along an axis that is summed up: it runs to find the largest number,
        if `count` is not given.

        >>> Tensor([5.0]).binomial(Tensor([1.0])).tolist()
        [5.0]
        """
        if isinstance(prob, (int, float)) and not 0 <= prob <= 1:
            raise ValueError(f"binomial needs a probability in [0, 1], not {prob}")
        if count is not None and count < 0:
            raise ValueError(f"binomial needs a count of at least 0, not {count}")
        trials = self.detach()._float()
        chance = trials._operand(prob).detach()
        most = int(trials.max().item()) if count is None else count
        both = trials + chance * 0.0
        number = self.arange(most, dtype=dtypes.int32, device=self.device)
        number = number.reshape((most,) + (1,) * both.ndim)
        u = self.rand(most, *both.shape, dtype=both.dtype, device=self.device, generator=generator)
        return ((u < chance) & (number < trials)).sum(0).cast(both.dtype)

    # *** in place

    def uniform_(self, from_: float = 0.0, to: float = 1.0, *, generator: Numbers | None = None) -> Any:
        """Write uniform numbers in [from_, to) into this tensor's memory; returns the tensor.

        >>> Tensor.zeros(3).uniform_().shape
        (3,)
        """
        if to < from_:
            raise ValueError(f"uniform_ needs from_ <= to, not {from_} and {to}")
        return self.assign(self.rand_like(generator=generator) * (to - from_) + from_)

    def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Numbers | None = None) -> Any:
        """Write normally distributed numbers into this tensor's memory; returns the tensor.

        >>> Tensor.zeros(3).normal_().shape
        (3,)
        """
        if std < 0:
            raise ValueError(f"normal_ needs a standard deviation of at least 0, not {std}")
        return self.assign(self.randn_like(generator=generator) * std + mean)

    def exponential_(self, lambd: float = 1.0, *, generator: Numbers | None = None) -> Any:
        """Write exponentially distributed numbers into this tensor's memory; returns the tensor.

        >>> Tensor.zeros(3).exponential_().shape
        (3,)
        """
        how: dict[str, Any] = {"dtype": self.dtype, "device": self.device, "generator": generator}
        return self.assign(self.exponential(*self.shape, lambd=lambd, **how))

    def bernoulli_(self, p: float = 0.5, *, generator: Numbers | None = None) -> Any:
        """Write 1 with probability p, else 0, into this tensor's memory; returns the tensor.

        >>> Tensor.zeros(3).bernoulli_(1.0).tolist()
        [1.0, 1.0, 1.0]
        """
        if not 0 <= p <= 1:
            raise ValueError(f"bernoulli_ needs a probability in [0, 1], not {p!r}")
        chance = self.rand(*self.shape, device=self.device, generator=generator) < p
        return self.assign(chance.cast(self.dtype))

    def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator: Numbers | None = None) -> Any:
        """Write numbers of Cauchy's distribution into this tensor's memory; returns the tensor.

        >>> Tensor.zeros(3).cauchy_().shape
        (3,)
        """
        return self._redrawn("cauchy_", self.cauchy, generator, median=median, sigma=sigma)

    def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator: Numbers | None = None) -> Any:
        """Write e to the power of normally distributed numbers into this tensor's memory; returns the tensor.

        >>> bool((Tensor.zeros(3).log_normal_() > 0).all())
        True
        """
        _need_positive("log_normal_", "std", std)
        return self._redrawn("log_normal_", self.log_normal, generator, mean=mean, std=std)

    def geometric_(self, p: float, *, generator: Numbers | None = None) -> Any:
        """Write how many trials of probability p it takes until one succeeds into this tensor's memory.

        Returns the tensor.

        >>> bool((Tensor.zeros(3, dtype="int32").geometric_(0.5) >= 1).all())
        True
        """
        how: dict[str, Any] = {"device": self.device, "generator": generator}
        wide = self.dtype if dtypes.is_float(self.dtype) else dtypes.float32
        return self.assign(self.geometric(*self.shape, p=p, dtype=wide, **how).cast(self.dtype))

    def random_(self, from_: int = 0, to: int | None = None, *, generator: Numbers | None = None) -> Any:
        """Write whole numbers in [from_, to) into this tensor's memory; returns the tensor.

        One number alone is `to`: `x.random_(6)` is 0 to 5. With neither they go up to the largest number of
        the dtype, of floats up to 2 to the power of the mantissa's bits, below which no integer is left out.

        >>> Tensor.zeros(3).random_(5, 6).tolist()
        [5.0, 5.0, 5.0]
        """
        low, high = (from_, to) if to is not None else (0, from_) if from_ else (0, _end_of(self.dtype))
        if not low < high:
            raise ValueError(f"random_ needs from_ < to, not {low} and {high}")
        for name, value in (("from_", low), ("to - 1", high - 1)):
            if not dtypes.is_float(self.dtype) and cast_value(value, self.dtype) != value:
                raise ValueError(f"random_: {name} = {value} does not fit into {self.dtype}")
        if low < -(1 << 63) or high > 1 << 64:
            raise ValueError(f"random_ draws numbers of 64 bits, not from {low} to {high}")
        wide = dtypes.uint64 if high > 1 << 63 else dtypes.int64
        how: dict[str, Any] = {"device": self.device, "generator": generator}
        drawn = self.randint(*self.shape, low=low, high=high, dtype=wide, **how)
        return self.assign(drawn.cast(self.dtype))

    def _redrawn(self, name: str, draw: Any, generator: Numbers | None, **parameters: float) -> Any:
        if not dtypes.is_float(self.dtype):
            raise TypeError(f"{name} writes floats, not into a tensor of {self.dtype}")
        how: dict[str, Any] = {"dtype": self.dtype, "device": self.device, "generator": generator}
        return self.assign(draw(*self.shape, **parameters, **how))


def _end_of(dtype: DType) -> int:
    """Above the greatest whole number that `random_` writes into a dtype."""
    if dtypes.is_bool(dtype):
        return 2
    if not dtypes.is_float(dtype):
        return int(dtypes.max(dtype)) + 1
    return round(2.0 / dtypes.finfo(dtype).eps) + 1


def _first_accepted(accepted: Tensor, values: Tensor, otherwise: float) -> Tensor:
    """Along the first axis, the first value that was accepted."""
    first = accepted.cast(dtypes.int32).argmax(0, keepdim=True)
    with trusted():
        found = values.gather(0, first).squeeze(0)
    return accepted.any(0).where(found, otherwise)


def _need_positive(name: str, parameter: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} needs a positive {parameter}, not {value}")

"""Optimizers with running means of the gradient and of its square: Adam and those that came of it."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from ...tensor import Tensor
from .optimizer import Common, Optimizer, Params, common, not_negative


class Adam(Optimizer):
    """Adam (Kingma, Ba 2014).

        g = grad + weight_decay · p
        m = b1 · m + (1 - b1) · g                          c1 = 1 - b1ᵗ
        v = b2 · v + (1 - b2) · g²                         c2 = 1 - b2ᵗ
        p = p - lr · (m / c1) / (√(v / c2) + eps)

    c1 and c2 are what the weights in m and v have summed to until step t: averages of ones. Kept like that
    they are exact to float32's rounding, which 1 - b2ᵗ is not while b2ᵗ is close to 1.

    amsgrad  v is the greatest so far where p is moved (Reddi, Kale, Kumar 2018)

    >>> weight = Tensor([3.0], requires_grad=True)
    >>> optimizer = nn.optim.Adam([weight], lr=0.5)
    >>> with Tensor.train():
    ...     _ = (weight * weight).sum().backward()
    ...     optimizer.step()
    >>> weight.tolist()
    [2.5]
    """

    #: whether the decay is a part of the gradient, or shrinks the parameter beside it
    decoupled = False
    shared = ("b1", "b2")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        betas: tuple[float, float] | None = None,
        amsgrad: bool = False,
        **more: Unpack[Common],
    ) -> None:
        if isinstance(b1, (tuple, list)):
            raise TypeError(f"betas are given by name: betas={b1!r}")
        b1, b2 = (b1, b2) if betas is None else betas
        self.b1: Any = b1  # a Tensor, once a schedule moves it
        self.b2 = b2
        if amsgrad and type(self)._moved is not Adam._moved:
            raise ValueError(f"amsgrad is for Adam and AdamW, not for {type(self).__name__}")
        options: dict[str, Any] = {"eps": eps, "weight_decay": weight_decay, "amsgrad": bool(amsgrad)}
        super().__init__(params, lr, b1=b1, b2=b2, **options, **common(more))

    def _remember(self) -> None:
        self.c1, self.c2 = self._number(0.0), self._number(0.0)
        self.m, self.v = self._moments(), self._moments()
        #: the greatest v so far
        self.top = self._moments() if any(group["amsgrad"] for group in self.param_groups) else []

    def _begin(self) -> None:
        self._write(self.c1, self.b1 * self.c1 + (1.0 - self.b1))
        self._write(self.c2, self.b2 * self.c2 + (1.0 - self.b2))

    def _averaged(self, i: int, p: Tensor, g: Tensor, lr: Tensor, weight_decay: float) -> tuple[Tensor, ...]:
        """(p after a decoupled decay, gradient, m, v), the last two written."""
        if weight_decay and self.decoupled:
            p = p - lr * weight_decay * p
        elif weight_decay:
            g = g + weight_decay * p
        m = self.b1 * self.m[i] + (1.0 - self.b1) * g
        v = self.b2 * self.v[i] + (1.0 - self.b2) * (g * g)
        self._write(self.m[i], m)
        self._write(self.v[i], v)
        return p, g, m, v

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        p, _, m, v = self._averaged(i, p, g, lr, options["weight_decay"])
        if options["amsgrad"]:
            v = v.maximum(self.top[i])
            self._write(self.top[i], v)
        return p - lr * (m / self.c1) / ((v / self.c2).sqrt() + options["eps"])


Kind = TypeVar("Kind", bound=type[Adam])


def other_defaults(**values: float) -> Callable[[Kind], Kind]:
    """A decorator of classes: the constructor of the base, with some other defaults."""

    def given(kind: Kind) -> Kind:
        base: Any = kind.__init__
        made = types.FunctionType(base.__code__, base.__globals__, "__init__", closure=base.__closure__)
        known = inspect.signature(base).parameters.values()
        defaults = [values.get(p.name, p.default) for p in known if p.kind is p.POSITIONAL_OR_KEYWORD]
        made.__defaults__ = tuple(value for value in defaults if value is not inspect.Parameter.empty)
        made.__kwdefaults__, made.__annotations__ = base.__kwdefaults__, base.__annotations__
        made.__module__, made.__qualname__ = kind.__module__, f"{kind.__qualname__}.__init__"
        kind.__init__ = made  # type: ignore[method-assign]
        return kind

    return given


@other_defaults(weight_decay=0.01)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov, Hutter 2017): first p shrinks by lr · weight_decay.

    >>> nn.optim.AdamW([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    decoupled = True


class NAdam(Adam):
    """Adam with Nesterov momentum (Dozat 2016).

        μₜ = b1 · (1 - 0.96^(t · momentum_decay) / 2)          their product until t is Π
        p  = p - lr · ((1 - μₜ) / (1 - Π) · g + μₜ₊₁ / (1 - Π · μₜ₊₁) · m) / (√(v / c2) + eps)

    >>> nn.optim.NAdam([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.002,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
        *,
        betas: tuple[float, float] | None = None,
        **more: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, betas=betas, **more)
        not_negative("momentum_decay", momentum_decay)
        self.momentum_decay = momentum_decay

    def _remember(self) -> None:
        super()._remember()
        self.t, self.product = self._number(0.0), self._number(1.0)

    def _begin(self) -> None:
        super()._begin()
        self._write(self.t, self.t + 1.0)
        self._write(self.product, self.product * self._mu(0))

    def _mu(self, later: int) -> Tensor:
        power = (self.t + float(later)) * (self.momentum_decay * math.log(0.96))
        mu: Tensor = self.b1 * (1.0 - 0.5 * power.exp())
        return mu

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        p, g, m, v = self._averaged(i, p, g, lr, options["weight_decay"])
        now, then = self._mu(0), self._mu(1)
        move = (1.0 - now) / (1.0 - self.product) * g + then / (1.0 - self.product * then) * m
        return p - lr * move / ((v / self.c2).sqrt() + options["eps"])


class RAdam(Adam):
    """Adam that waits for its variance (Liu et al. 2019).

        ρ∞ = 2 / (1 - b2) - 1        ρ = ρ∞ - 2·t·b2ᵗ / c2
        p  = p - lr · m / c1 · r · √c2 / (√v + eps)    where ρ > 5, else p - lr · m / c1
        r² = (ρ - 4)(ρ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρ)

    >>> nn.optim.RAdam([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def _remember(self) -> None:
        super()._remember()
        self.t = self._number(0.0)

    def _begin(self) -> None:
        super()._begin()
        self._write(self.t, self.t + 1.0)

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        p, _, m, v = self._averaged(i, p, g, lr, options["weight_decay"])
        most = 2.0 / (1.0 - self.b2) - 1.0
        rho = most - 2.0 * self.t * (1.0 - self.c2) / self.c2
        ready = rho > 5.0
        safe = ready.where(rho, 6.0)
        root = ((safe - 4.0) * (safe - 2.0) * most / ((most - 4.0) * (most - 2.0) * safe)).sqrt()
        adapted = root * self.c2.sqrt() / (v.sqrt() + options["eps"])
        return p - lr * (m / self.c1) * ready.where(adapted, 1.0)


@other_defaults(lr=0.002)
class Adamax(Adam):
    """Adam with the greatest gradient instead of the mean square (Kingma, Ba 2014).

        v = max(b2 · v, |g| + eps)        p = p - lr / c1 · m / v

    >>> nn.optim.Adamax([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        m = self.b1 * self.m[i] + (1.0 - self.b1) * g
        v = (self.b2 * self.v[i]).maximum(g.abs() + options["eps"])
        self._write(self.m[i], m)
        self._write(self.v[i], v)
        return p - lr / self.c1 * m / v


@other_defaults(eps=1e-6)
class LAMB(Adam):
    """Adam whose rate is fitted to each parameter, for large batches (You et al. 2019).

        u = (m / c1) / (√(v / c2) + eps) + weight_decay · p
        p = p - lr · |p| / |u| · u                              the quotient is 1 where a norm is 0

    >>> nn.optim.LAMB([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        p, _, m, v = self._averaged(i, p, g, lr, 0.0)
        u = (m / self.c1) / ((v / self.c2).sqrt() + options["eps"])
        if options["weight_decay"]:
            u = u + options["weight_decay"] * p
        size, length = p.square().sum().sqrt(), u.square().sum().sqrt()
        fitted = ((size > 0) & (length > 0)).where(size / length, 1.0)
        return p - lr * fitted * u

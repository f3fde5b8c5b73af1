"""Optimizers that follow the gradient, or a running mean of it: SGD, LARS, Lion, Muon."""

from __future__ import annotations

import math
from typing import Any, Unpack

from ...shape import shape_text
from ...tensor import Tensor
from .optimizer import Common, Optimizer, Params, common


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum where that is not 0.

        g = grad + weight_decay · p
        b = momentum · b + (1 - dampening) · g             the first step takes b = g
        p = p - lr · (g + momentum · b if nesterov else b)

    >>> weight = Tensor([3.0], requires_grad=True)
    >>> optimizer = nn.optim.SGD([weight], lr=0.25)
    >>> with Tensor.train():
    ...     _ = (weight * weight).sum().backward()
    ...     optimizer.step()
    >>> weight.tolist()
    [1.5]
    """

    shared = ("dampening",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        dampening: float = 0.0,
        **more: Unpack[Common],
    ) -> None:
        if nesterov and (not momentum or dampening):
            raise ValueError("nesterov needs momentum, and no dampening")
        super().__init__(
            params,
            lr,
            momentum=momentum,
            weight_decay=weight_decay,
            nesterov=nesterov,
            dampening=dampening,
            **common(more),
        )
        self.dampening = dampening

    def _remember(self) -> None:
        self.b = self._moments() if any(group["momentum"] for group in self.param_groups) else []
        #: what a gradient is multiplied by on its way into b: 1 in the first step
        self.intake = self._number(1.0)

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        momentum, weight_decay = options["momentum"], options["weight_decay"]
        move = g + weight_decay * p if weight_decay else g
        if isinstance(momentum, Tensor) or momentum:
            b = momentum * self.b[i] + (self.intake * move if self.dampening else move)
            self._write(self.b[i], b)
            move = move + momentum * b if options["nesterov"] else b
        return p - lr * move

    def _step(self, grads: Any) -> None:
        super()._step(grads)
        if self.b and self.dampening:  # behind the moves, which read what it was
            self._write(self.intake, self.intake * 0.0 + (1.0 - self.dampening))


class LARS(Optimizer):
    """SGD whose rate is fitted to each parameter: layer-wise adaptive rates (You, Gitman, Ginsburg 2017).

        r = tcoef · |p| / (|grad| + weight_decay · |p| + eps)       1 where a norm is 0
        b = momentum · b + lr · r · (grad + weight_decay · p)
        p = p - b                                                   with nesterov p - (g + momentum · b)

    >>> nn.optim.LARS([Tensor([3.0], requires_grad=True)], lr=0.1).lr.item()
    0.10000000149011612
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        nesterov: bool = False,
        tcoef: float = 0.001,
        eps: float = 0.0,
    ) -> None:
        super().__init__(
            params, lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, tcoef=tcoef, eps=eps
        )

    def _remember(self) -> None:
        self.b = self._moments()

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        weight_decay, momentum = options["weight_decay"], options["momentum"]
        size, slope = p.square().sum().sqrt(), g.square().sum().sqrt()
        fitted = options["tcoef"] * size / (slope + weight_decay * size + options["eps"])
        rate = ((size > 0) & (slope > 0)).where(fitted, 1.0)
        move = lr * rate * (g + weight_decay * p)
        b = momentum * self.b[i] + move
        self._write(self.b[i], b)
        return p - (move + momentum * b if options["nesterov"] else b)


class Lion(Optimizer):
    """The sign of a running mean of the gradient (Chen et al. 2023).

        p = p - lr · (sign(b1 · m + (1 - b1) · grad) + weight_decay · p)
        m = b2 · m + (1 - b2) · grad

    >>> nn.optim.Lion([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        b1: float = 0.9,
        b2: float = 0.99,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr, b1=b1, b2=b2, weight_decay=weight_decay)

    def _remember(self) -> None:
        self.m = self._moments()

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        b1, b2, m = options["b1"], options["b2"], self.m[i]
        self._write(m, b2 * m + (1.0 - b2) * g)
        move = (b1 * m + (1.0 - b1) * g).sign()
        return p - lr * (move + options["weight_decay"] * p if options["weight_decay"] else move)


class Muon(Optimizer):
    """Momentum whose matrix is made orthogonal: for weights of hidden layers (Jordan et al. 2024).

        b = momentum · b + grad
        o = newton_schulz(grad + momentum · b if nesterov else b)      singular values near 1
        p = p - lr · weight_decay · p - lr · scale · o

    Parameters with more than two axes are matrices of their first axis and all others. Vectors have no
    singular values to speak of: give them to another optimizer.

    ns_coefficients, ns_steps, eps  the iteration, see `Tensor.newton_schulz`
    adjust_lr_fn  the scale: "original" is √max(1, rows / columns), also if not given; "match_rms_adamw" is
                  0.2 · √max(rows, columns), for rates that were found for AdamW (Liu et al. 2025, Moonlight)

    >>> weight = Tensor.eye(2).requires_grad_()
    >>> optimizer = nn.optim.Muon([weight], lr=0.5, weight_decay=0.0)
    >>> with Tensor.train():
    ...     _ = (weight * weight).sum().backward()
    ...     optimizer.step()
    >>> (weight.diag() < 0.7).tolist()
    [True, True]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.001,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"adjust_lr_fn must be 'original' or 'match_rms_adamw', not {adjust_lr_fn!r}")
        if len(ns_coefficients) != 3 or ns_steps < 1:
            raise ValueError(
                f"Muon needs three ns_coefficients and at least one of ns_steps, not {ns_coefficients!r} and "
                f"{ns_steps}"
            )
        super().__init__(
            params,
            lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        for i, param in enumerate(self.params):
            if param.ndim < 2:
                raise ValueError(
                    f"Muon takes matrices; parameter {i} has shape {shape_text(param.shape)}: "
                    "give it to another optimizer, AdamW for example"
                )

    def _remember(self) -> None:
        self.b = self._moments()

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        momentum = options["momentum"]
        b = momentum * self.b[i] + g
        self._write(self.b[i], b)
        matrix = (g + momentum * b if options["nesterov"] else b).flatten(1)
        rows, columns = matrix.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1.0, rows / columns))
        o = matrix.newton_schulz(options["ns_steps"], options["ns_coefficients"], options["eps"])
        kept = p - lr * options["weight_decay"] * p if options["weight_decay"] else p
        return kept - lr * scale * o.reshape(p.shape)

"""Optimizers that divide by the size of earlier gradients, without a mean of these: RMSprop, Adagrad, ..."""

from __future__ import annotations

from typing import Any

from ...dtype import dtypes, least_upper_dtype
from ...tensor import Tensor
from ..layers import buffer
from .optimizer import Optimizer, Params, not_negative


class RMSprop(Optimizer):
    """The gradient divided by the root of its mean square (Hinton 2012).

        v = alpha · v + (1 - alpha) · g²               (centered: less the square of the mean gradient a)
        b = momentum · b + g / (√v + eps)              p = p - lr · b

    >>> nn.optim.RMSprop([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        not_negative("alpha", alpha)
        not_negative("weight_decay", weight_decay)
        not_negative("momentum", momentum)
        super().__init__(
            params, lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered
        )
        self.v = self._moments()
        self.a = self._moments() if any(group["centered"] for group in self.param_groups) else []
        self.b = self._moments() if any(group["momentum"] for group in self.param_groups) else []
        Tensor.realize(*self.v, *self.a, *self.b)

    def _begin(self) -> list[Tensor]:
        return [*self.v, *self.a, *self.b]

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        alpha = options["alpha"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = alpha * self.v[i] + (1.0 - alpha) * (g * g)
        self._write(self.v[i], v)
        if options["centered"]:
            a = alpha * self.a[i] + (1.0 - alpha) * g
            self._write(self.a[i], a)
            v = v - a * a
        move = g / (v.sqrt() + options["eps"])
        if options["momentum"]:
            move = options["momentum"] * self.b[i] + move
            self._write(self.b[i], move)
        return p - lr * move


class Adagrad(Optimizer):
    """The gradient divided by the root of the sum of all squares until now (Duchi, Hazan, Singer 2011).

        v = v + g²        p = p - lr / (1 + (t - 1) · lr_decay) · g / (√v + eps)

    >>> nn.optim.Adagrad([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        not_negative("lr_decay", lr_decay)
        not_negative("weight_decay", weight_decay)
        not_negative("initial_accumulator_value", initial_accumulator_value)
        super().__init__(params, lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        self.v, self.t = self._moments(initial_accumulator_value), self._number(0.0)
        Tensor.realize(self.t, *self.v)

    def _begin(self) -> list[Tensor]:
        self._write(self.t, self.t + 1.0)
        return [self.t, *self.v]

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = self.v[i] + g * g
        self._write(self.v[i], v)
        rate = lr / (1.0 + (self.t - 1.0) * options["lr_decay"]) if options["lr_decay"] else lr
        return p - rate * g / (v.sqrt() + options["eps"])


class Adadelta(Optimizer):
    """The gradient in units of the steps taken before (Zeiler 2012).

        v = rho · v + (1 - rho) · g²        d = √(u + eps) / √(v + eps) · g
        u = rho · u + (1 - rho) · d²        p = p - lr · d

    >>> nn.optim.Adadelta([Tensor([3.0], requires_grad=True)]).lr.item()
    1.0
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        not_negative("rho", rho, 1.0)
        not_negative("weight_decay", weight_decay)
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay)
        self.v, self.u = self._moments(), self._moments()
        Tensor.realize(*self.v, *self.u)

    def _begin(self) -> list[Tensor]:
        return [*self.v, *self.u]

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = rho * self.v[i] + (1.0 - rho) * (g * g)
        d = (self.u[i] + eps).sqrt() / (v + eps).sqrt() * g
        self._write(self.v[i], v)
        self._write(self.u[i], rho * self.u[i] + (1.0 - rho) * (d * d))
        return p - lr * d


class Adafactor(Optimizer):
    """Adam without the mean, whose mean squares are kept as one row and one column (Shazeer, Stern 2018).

        w = 1 - t^beta2_decay                           the weight of what was
        V = row · columnᵀ / mean(row)                   of matrices; of lines the mean square itself
        U = grad / √V, and divided by max(1, rms(U) / d)
        p = p · (1 - lr · weight_decay) - max(eps2, rms(p)) · min(lr, 1/√t) · U

    >>> nn.optim.Adafactor([Tensor.ones(3, 2).requires_grad_()], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
    ) -> None:
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay is not positive; it was given as {beta2_decay}")
        not_negative("weight_decay", weight_decay)
        super().__init__(params, lr, beta2_decay=beta2_decay, eps=tuple(eps), d=d, weight_decay=weight_decay)
        self.t = self._number(0.0)
        self.rows: list[Tensor] = []
        self.columns: list[Tensor | None] = []  # of lines there is none
        for p in self.params:
            kept: dict[str, Any] = {
                "dtype": least_upper_dtype(p.dtype, dtypes.float32),
                "device": self.device,
            }
            if p.ndim > 1:
                self.rows.append(buffer(Tensor.zeros(*p.shape[:-1], 1, **kept)))
                self.columns.append(buffer(Tensor.zeros(*p.shape[:-2], 1, p.shape[-1], **kept)))
            else:
                self.rows.append(buffer(Tensor.zeros(*p.shape, **kept)))
                self.columns.append(None)
        Tensor.realize(*self._own())

    def _begin(self) -> list[Tensor]:
        self._write(self.t, self.t + 1.0)
        return self._own()

    def _own(self) -> list[Tensor]:
        return [self.t, *self.rows, *(column for column in self.columns if column is not None)]

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        eps1, eps2 = options["eps"]
        least = dtypes.finfo(p.dtype).eps if eps1 is None else eps1
        new = (self.t.log() * options["beta2_decay"]).exp()
        square = g * g

        def averaged(memory: Tensor, value: Tensor) -> Any:
            result = memory + new * (value - memory)
            self._write(memory, result)
            return result

        kept = self.columns[i]
        if kept is not None:
            row = averaged(self.rows[i], square.mean(-1, keepdim=True))
            column = averaged(kept, square.mean(-2, keepdim=True))
            v: Tensor = row * column / row.mean(-2, keepdim=True).clamp(min=least)
        else:
            v = averaged(self.rows[i], square)
        u = g * v.clamp(min=least * least).rsqrt()
        u = u / (u.square().mean().sqrt() / options["d"]).clamp(min=1.0)
        size: Tensor = p.square().mean().sqrt()
        rate = size.clamp(min=eps2) * lr.minimum(self.t.rsqrt())
        if options["weight_decay"]:
            p = p - lr * options["weight_decay"] * p
        return p - rate * u
